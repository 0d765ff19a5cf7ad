"""Scenarios H, as far as the API shows them: outcomes, counts, limits, dead letters."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish import DeliveryMode
from jmsish.testing import VirtualClock

from .face import Face
from .steps import again, expect, numbered, seen, send, stage

FIVE = numbered(1, 5)


def counted(story: str, count: int) -> str:
    return story if count == 1 else again(story, count)


async def test_s139_rejected_goes_to_the_dead_letter_queue(face: Face) -> None:
    """139: an explicit rejected dead-letters at once; the message does not come again."""
    face.broker.declare_queue("orders", dead_letter="orders.dead")
    play = await stage(face, "transacted", "m1 m2", max_redeliveries=0, redelivery_outcome="rejected")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.session.rollback()
    await expect(consumer, "m2 none")
    await play.session.commit()
    await play.queue.holds(0)
    assert face.sight("orders.dead").bodies == ["m1"]


async def test_s139_rejected_from_the_dead_letter_queue_is_dropped(face: Face) -> None:
    """139: rejected from the dead-letter queue itself: dropped (D13)."""
    face.broker.declare_queue("orders", dead_letter="orders.dead", max_delivery_attempts=1)
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.session.rollback()
    dead = await stage(face, "transacted", queue="orders.dead", max_redeliveries=0, redelivery_outcome="rejected")
    await dead.queue.holds(1, acquired=0)
    reader = await dead.consumer()
    if (message := await reader.receive_no_wait()) is not None:  # its count may have begun anew in this queue
        assert message.body == "m1"
        await dead.session.rollback()
        await expect(reader, "none")
    await dead.queue.holds(0)
    await play.queue.holds(0)


async def test_s140_client_redelivery_limit_by_rollback(face: Face) -> None:
    """140: max_redeliveries 5 and the broker's maximum 6: six passes in order, the seventh empty, all five
    dead-lettered."""
    face.broker.declare_queue("orders", max_delivery_attempts=6, dead_letter="orders.dead")
    dead = face.sight("orders.dead")
    play = await stage(face, "transacted", FIVE, max_redeliveries=5)
    consumer = await play.consumer()
    for count in range(1, 7):
        await expect(consumer, counted(FIVE, count))
        await dead.holds(0)
        await play.session.rollback()
    await expect(consumer, "none")
    await play.queue.holds(0)
    assert dead.bodies == FIVE.split()


async def test_s140_client_redelivery_limit_in_a_listener(face: Face) -> None:
    """140, asynchronous: the same six passes in a listener."""
    face.broker.declare_queue("orders", max_delivery_attempts=6, dead_letter="orders.dead")
    play = await stage(face, "transacted", FIVE, max_redeliveries=5, start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        if message.body == "m5":
            await play.session.rollback()
        log.add(seen(message))

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(30) == [word for count in range(1, 7) for word in counted(FIVE, count).split()]
    await play.connection.close()
    assert len(log.items) == 30
    await play.queue.holds(0)
    assert face.sight("orders.dead").bodies == FIVE.split()


@pytest.mark.parametrize(
    ("policy", "left", "count", "dead"),
    [
        ("accepted", 0, 0, 0),
        ("rejected", 0, 0, 5),
        ("released", 5, 3, 0),
        ("modified_failed", 5, None, 0),
        ("modified_failed_undeliverable", 5, 4, 0),
    ],
)
async def test_s141_client_limit_on_arrival(face: Face, policy: str, left: int, count: int | None, dead: int) -> None:
    """141: five arrive over the client's limit and get the policy's outcome; the receive returns the good one
    after them."""
    before = await stage(face, "transacted", FIVE)
    consumer = await before.consumer()
    for attempt in (1, 2):
        await expect(consumer, counted(FIVE, attempt))
        await before.session.rollback()
    await before.connection.close()

    play = await stage(face, "auto", "good", max_redeliveries=1, redelivery_outcome=policy)
    await expect(await play.consumer(), "good")
    await play.connection.close()
    await play.queue.holds(left, acquired=0)
    assert face.sight("DLQ").depth == dead
    if left:
        other = await play.beside("auto")
        reader = await other.consumer()
        got = [await reader.receive(timeout=30) for _ in range(left)]
        assert [message.body for message in got if message] == FIVE.split()
        counts = {message.delivery_count for message in got if message}
        assert counts == {count} if count is not None else min(counts) >= 4


async def test_s142_limit_zero_with_zero_prefetch(face: Face) -> None:
    """142: max_redeliveries 0 and prefetch 0: once handed over, never again here; another consumer may have it."""
    play = await stage(face, "transacted", "m1", max_redeliveries=0, prefetch=0)
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.session.rollback()
    await expect(consumer, "none")
    await play.queue.holds(1, acquired=0)
    other = await play.beside("auto")
    (message,) = [await (await other.consumer()).receive(timeout=30)]
    assert message is not None and message.jms_redelivered and message.delivery_count == 3


@pytest.mark.parametrize("persistent", [True, False], ids=["persistent", "non-persistent"])
@pytest.mark.parametrize("mode", ["transacted", "client"])
async def test_s143_broker_limit_exact_boundary_and_order(face: Face, mode: str, persistent: bool) -> None:
    """143: ten attempts, each the five in order; the dead-letter queue is empty until the put-back that reaches
    the maximum."""
    face.broker.declare_queue("orders", max_delivery_attempts=10, dead_letter="orders.dead")
    play = await stage(face, mode)
    await play.send(FIVE, delivery_mode=DeliveryMode.PERSISTENT if persistent else DeliveryMode.NON_PERSISTENT)
    consumer = await play.consumer()
    for count in range(1, 11):
        await expect(consumer, counted(FIVE, count))
        await face.sight("orders.dead").holds(0)
        await play.give_back()
    await expect(consumer, "none")
    await play.queue.holds(0)
    assert face.sight("orders.dead").bodies == FIVE.split()


async def test_s143_broker_limit_by_listener_error(face: Face) -> None:
    """143: by listener error in AUTO: each message fails its attempts in a row, then the next; dead letters in
    order."""
    face.broker.declare_queue("orders", max_delivery_attempts=3, dead_letter="orders.dead")
    play = await stage(face, "auto", FIVE, start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(seen(message))
        raise ValueError("refused")

    (await play.consumer()).listener = on_message
    await play.connection.start()
    expected = [word if count == 1 else f"{word}[R{count}]" for word in FIVE.split() for count in (1, 2, 3)]
    assert await log.reach(15) == expected
    await play.queue.comes_to(0)
    await play.connection.close()
    assert len(log.items) == 15
    assert face.sight("orders.dead").bodies == FIVE.split()


async def test_s144_broker_limit_mixed(face: Face) -> None:
    """144: maximum 2, even ones always rolled back: eight deliveries, always the lowest unfinished next."""
    face.broker.declare_queue("orders", max_delivery_attempts=2, dead_letter="orders.dead")
    play = await stage(face, "transacted", numbered(0, 4))
    consumer = await play.consumer()
    for word in "m0 m0[R2] m1 m2 m2[R2] m3 m4 m4[R2]".split():
        await expect(consumer, word)
        await (play.session.commit() if word in ("m1", "m3") else play.session.rollback())
    await expect(consumer, "none")
    await play.queue.holds(0)
    assert face.sight("orders.dead").bodies == ["m0", "m2", "m4"]


async def test_s144_broker_limit_mixed_in_a_listener(face: Face) -> None:
    """144, in a listener."""
    face.broker.declare_queue("orders", max_delivery_attempts=2, dead_letter="orders.dead")
    play = await stage(face, "transacted", numbered(0, 4), start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        await (play.session.commit() if message.body in ("m1", "m3") else play.session.rollback())
        log.add(seen(message))

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(8) == "m0 m0[R2] m1 m2 m2[R2] m3 m4 m4[R2]".split()
    await play.connection.close()
    assert len(log.items) == 8
    await play.queue.holds(0)
    assert face.sight("orders.dead").bodies == ["m0", "m2", "m4"]


async def test_s145_browsing_does_not_count(face: Face) -> None:
    """145: browsed more often than the maximum of deliveries, the message is still there, unmarked."""
    face.broker.declare_queue("orders", max_delivery_attempts=2, dead_letter="orders.dead")
    play = await stage(face, "transacted", "m1 m2")
    for _ in range(4):
        browser = await play.session.create_browser(play.destination)
        assert [seen(message) async for message in browser] == ["m1", "m2"]
        await browser.close()
    await play.queue.holds(2, acquired=0)
    await expect(await play.consumer(), "m1 m2 none")
    await play.session.commit()
    await play.queue.holds(0)
    await face.sight("orders.dead").holds(0)


async def test_s146_unread_passes_do_not_count_received_ones_do(face: Face) -> None:
    """146, as b.4 has it: passes that only prefetch leave 1, passes that receive give 1 to n; a browser counts
    nothing."""
    play = await stage(face, "transacted", "m1 m2")
    for _ in range(3):
        consumer = await play.consumer()
        await play.queue.prefetched(2)
        await play.session.rollback()
        await consumer.close()
    consumer = await play.consumer(prefetch=1)
    for word in ("m1", "m1[R2]", "m1[R3]"):
        await expect(consumer, word)
        await play.session.rollback()
    await consumer.close()
    browser = await play.session.create_browser(play.destination)
    assert [seen(message) async for message in browser] == ["m1[R4]", "m2"]
    await browser.close()
    await expect(await play.consumer(), "m1[R4] m2 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_dead_letters_say_where_they_came_from_and_why(face: Face) -> None:
    """A dead letter keeps its body and properties; annotations of the broker name its queue and the reason."""
    face.broker.declare_queue("orders", max_delivery_attempts=1, dead_letter="orders.dead")
    play = await stage(face, "transacted")
    await send(play.connection, "orders", "m1", properties={"colour": "red"})
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.session.rollback()
    dead = await play.beside("auto")
    reader = await dead.session.create_consumer(dead.session.create_queue("orders.dead"))
    message: Any = await reader.receive(timeout=30)
    assert message is not None and message.body == "m1"
    assert message.properties["colour"] == "red"


@pytest.mark.parametrize("way", ["rollback", "recover", "session close"])
async def test_s148_redelivery_delay(face: Face, way: str) -> None:
    """148: not before the delay, whichever way the message came back; meanwhile the later ones pass (D10)."""
    clock = VirtualClock()
    face.broker_with(clock=clock).declare_queue("orders", redelivery_delay=10)
    play = await stage(face, "client" if way == "recover" else "transacted", "m1 m2 m3")
    consumer = await play.consumer(prefetch=1)
    await expect(consumer, "m1")
    if way == "session close":
        await play.session.close()
        play = await play.beside("transacted")
        consumer = await play.consumer(prefetch=1)
    else:
        await play.give_back()
    await expect(consumer, "m2 m3 none")
    clock.advance(9)
    await expect(consumer, "none")
    clock.advance(1)
    await expect(consumer, "m1[R2] none")


async def test_s148_the_delay_starts_anew_with_each_failure(face: Face) -> None:
    """148: and grows where the queue says so."""
    clock = VirtualClock()
    face.broker_with(clock=clock).declare_queue("orders", redelivery_delay=10, redelivery_multiplier=3)
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    for count, delay in ((2, 10), (3, 30), (4, 90)):
        await play.session.rollback()
        clock.advance(delay - 1)
        await expect(consumer, "none")
        clock.advance(1)
        await expect(consumer, again("m1", count))
    await play.session.commit()
    await play.queue.holds(0)
