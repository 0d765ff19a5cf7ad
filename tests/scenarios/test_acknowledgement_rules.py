"""Acknowledging, recovering, transactions, and what listeners raise: rules 47 to 68, 71 and 107 to 112 of JMS."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import jmsish
from jmsish.testing import VirtualClock

from .face import Face
from .steps import Stage, again, expect, numbered, outcome, seen, stage

BACK = ("client", "transacted")
"""The modes that give back by a call of their own: recover, rollback."""


async def raised(face: Face, mode: str, story: str, times: int = 1) -> tuple[Stage, Any]:
    """A listener that raises the first `times` it sees the first message; its log of what it saw."""
    play = await stage(face, mode, story, start=False)
    consumer = await play.consumer()
    await play.primed(len(story.split()))
    log = face.log()
    first = story.split()[0]
    failed = [0]

    async def on_message(message: Any) -> None:
        log.add(seen(message))
        if message.body == first and failed[0] < times:
            failed[0] += 1
            raise ValueError(f"{first} is refused")

    consumer.listener = on_message
    await play.connection.start()
    return play, log


# --- AUTO, DUPS_OK, CLIENT


async def test_rule_047_auto_acknowledges_when_receive_returns(face: Face) -> None:
    play = await stage(face, "auto", "m1 m2")
    consumer = await play.consumer(prefetch=1)
    await expect(consumer, "m1")
    await play.queue.comes_to(1)


async def test_rule_047_auto_acknowledges_when_the_listener_returned(face: Face) -> None:
    play = await stage(face, "auto", "m1", start=False)
    consumer = await play.consumer()
    await play.primed(1)
    depths: list[int] = []
    log = face.log()

    async def on_message(message: Any) -> None:
        depths.append(play.queue.depth)
        log.add(seen(message))

    consumer.listener = on_message
    await play.connection.start()
    assert await log.reach(1) == ["m1"]
    await play.queue.comes_to(0)
    assert depths == [1], "not before it returned"


async def test_rule_048_auto_after_a_crash_only_the_last_message_is_in_doubt(face: Face) -> None:
    play = await stage(face, "auto", numbered(1, 5), cuttable=True)
    consumer = await play.consumer()
    await play.queue.prefetched(5)
    await expect(consumer, "m1 m2 m3")
    await play.queue.comes_to(2)
    face.cut(play.connection)
    await play.queue.comes_to(2, acquired=0)
    other = await play.beside("auto")
    # What had not been handed over came to a client that is gone: it may have been seen, and says so (D5).
    await expect(await other.consumer(), again("m4 m5") + " none")


async def test_rule_049_dups_ok_may_deliver_again_after_a_failure(face: Face) -> None:
    """It acknowledges ten at a time (D12): what was received since comes again, marked, and nothing is lost."""
    clock = VirtualClock()  # which stands still: the second in which nothing is acknowledged does not pass
    play = await stage(face, "dups_ok", numbered(1, 12), cuttable=True, clock=clock)
    consumer = await play.consumer()
    await expect(consumer, numbered(1, 12))
    await play.queue.comes_to(2)
    face.cut(play.connection)
    other = await play.beside("auto")
    await expect(await other.consumer(), again("m11 m12") + " none")


async def test_rule_050_acknowledge_is_for_all_the_session_has_delivered(face: Face) -> None:
    """Over all its consumers, by any message, an early one too."""
    play = await stage(face, "client", "m1 m2 m3")
    session = play.session
    producer = await session.create_producer(session.create_queue("others"))
    await producer.send("o1")
    first = await play.consumer()
    second = await session.create_consumer(session.create_queue("others"))
    messages = await expect(first, "m1 m2")
    await expect(second, "o1")
    await messages[0].acknowledge()
    await play.queue.comes_to(1)
    await face.sight("others").comes_to(0)
    await session.recover()
    await expect(first, "m3 none")


@pytest.mark.parametrize("mode", ["auto", "dups_ok", "transacted"])
@pytest.mark.usefixtures("hasty")
async def test_rule_051_acknowledge_elsewhere_does_nothing(face: Face, mode: str) -> None:
    play = await stage(face, mode, "m1 m2")
    consumer = await play.consumer()
    (message,) = await expect(consumer, "m1")
    await message.acknowledge()
    if mode == "transacted":
        await play.session.rollback()
        await expect(consumer, "m1[R2] m2 none")
        await play.session.commit()
    else:
        await expect(consumer, "m2 none")
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["auto", "dups_ok", "client", "individual", "transacted"])
async def test_rule_053_what_is_acknowledged_never_comes_again(face: Face, mode: str) -> None:
    play = await stage(face, mode, "m1 m2")
    consumer = await play.consumer()
    (message,) = await expect(consumer, "m1")
    await play.settle(message)
    await outcome(play.give_back())
    await expect(consumer, "m2 none")
    await play.connection.close()
    other = await play.beside("auto")
    seen_again = await (await other.consumer()).receive_no_wait()
    assert seen_again is None or seen_again.body == "m2"


# --- recover


async def test_rule_054_recover_begins_again_at_the_first_unacknowledged(face: Face) -> None:
    play = await stage(face, "client", numbered(1, 4))
    consumer = await play.consumer()
    messages = await expect(consumer, "m1")
    await messages[0].acknowledge()
    await expect(consumer, "m2 m3")
    await play.session.recover()
    await expect(consumer, again("m2 m3") + " m4 none")


async def test_rule_055_recover_in_a_transacted_session(face: Face) -> None:
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    with pytest.raises(jmsish.IllegalStateError):
        await play.session.recover()
    await play.session.commit()
    await play.queue.holds(0)


async def test_rule_056_what_was_acknowledged_before_recover_does_not_come_back(face: Face) -> None:
    play = await stage(face, "individual", numbered(1, 4))
    consumer = await play.consumer()
    messages = await expect(consumer, "m1 m2 m3")
    await messages[1].acknowledge()
    await play.session.recover()
    await expect(consumer, again("m1 m3") + " m4 none")


@pytest.mark.parametrize("mode", BACK)
async def test_rule_057_each_giving_back_raises_the_count_by_one(face: Face, mode: str) -> None:
    play = await stage(face, mode, "m1 m2")
    consumer = await play.consumer()
    await expect(consumer, "m1 m2")
    for count in range(2, 6):
        await play.give_back()
        await expect(consumer, again("m1 m2", count) + " none")


async def test_rule_058_recover_may_change_what_is_seen_next(face: Face) -> None:
    """A message of higher priority that came meanwhile goes first, one that has expired is gone."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "client", clock=clock)
    await play.send("mayfly", time_to_live=10)
    await play.send("m1")
    consumer = await play.consumer()
    await expect(consumer, "mayfly m1")
    await play.send("urgent", priority=9)
    clock.advance(11)
    await play.session.recover()
    await expect(consumer, "urgent m1[R2] none")


@pytest.mark.parametrize("mode", BACK)
async def test_rule_059_what_comes_again_is_the_original(face: Face, mode: str) -> None:
    play = await stage(face, mode)
    session = play.session
    message = session.create_map_message({"a": 1})
    message.properties["colour"] = "red"
    producer = await session.create_producer(play.destination)
    await producer.send(message)
    if session.transacted:
        await session.commit()
    consumer = await play.consumer()
    received: Any = await consumer.receive(timeout=30)
    received.clear_body()
    received.clear_properties()
    received.set_int("b", 2)
    received.properties["colour"] = "blue"
    received.jms_type = "edited"
    await play.give_back()
    received = await consumer.receive(timeout=30)
    assert received.body == {"a": 1} and received.properties["colour"] == "red" and received.jms_type is None


@pytest.mark.parametrize("mode", BACK)
async def test_rule_060_redelivered_means_a_count_of_two_or_more(face: Face, mode: str) -> None:
    play = await stage(face, mode, numbered(1, 4))
    consumer = await play.consumer()
    await expect(consumer, "m1 m2")
    await play.give_back()
    for message in await expect(consumer, again("m1 m2") + " m3 m4"):
        assert message.jms_redelivered == (message.properties["JMSXDeliveryCount"] >= 2)


@pytest.mark.parametrize("mode", ["auto", "dups_ok", "client", "individual", "transacted"])
async def test_rule_061_the_first_delivery_is_not_marked(face: Face, mode: str) -> None:
    play = await stage(face, mode, "m1")
    (message,) = await expect(await play.consumer(), "m1")
    assert message.jms_redelivered is False and message.properties["JMSXDeliveryCount"] == 1


# --- transactions


async def test_rule_062_one_transaction_begins_where_the_other_ends(face: Face) -> None:
    play = await stage(face, "transacted", numbered(1, 4))
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.session.commit()
    await expect(consumer, "m2")
    await play.session.rollback()
    await expect(consumer, "m2[R2] m3")
    await play.session.commit()
    await play.session.commit()
    await play.queue.holds(1)


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_rule_063_064_sends_and_receives_are_one_unit(face: Face, ending: str) -> None:
    play = await stage(face, "transacted", numbered(1, 3))
    results = face.sight("results")
    producer = await play.session.create_producer(play.session.create_queue("results"))
    consumer = await play.consumer()
    await expect(consumer, "m1 m2")
    await producer.send("r1")
    await getattr(play.session, ending)()
    if ending == "commit":
        await play.queue.holds(1)
        assert results.bodies == ["r1"]
        await expect(consumer, "m3 none")
    else:
        await play.queue.holds(3)
        assert results.depth == 0
        await expect(consumer, again("m1 m2") + " m3 none")


async def test_rule_065_what_is_sent_is_invisible_before_the_commit(face: Face) -> None:
    play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    own = await play.consumer()
    other = await (await play.beside("auto")).consumer()
    await producer.send("m1")
    await face.barrier()
    await expect(own, "none")
    await expect(other, "none")
    await own.close()
    await play.session.commit()
    await expect(other, "m1")


@pytest.mark.parametrize("call", ["commit", "rollback"])
@pytest.mark.parametrize("mode", ["auto", "client", "dups_ok", "individual"])
async def test_rule_066_no_transaction_to_end(face: Face, mode: str, call: str) -> None:
    play = await stage(face, mode)
    with pytest.raises(jmsish.IllegalStateError):
        await getattr(play.session, call)()


async def test_rule_067_a_commit_that_ends_in_a_rollback(face: Face) -> None:
    """The queue cannot take what was sent: nothing of the transaction is done, and the commit says so."""
    face.broker_with().declare_queue("full", max_messages=1)
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    producer = await play.session.create_producer(play.session.create_queue("full"))
    for body in ("f1", "f2"):
        await producer.send(body)
    with pytest.raises(jmsish.TransactionRolledBackError):
        await play.session.commit()
    assert face.sight("full").depth == 0
    await expect(consumer, "m1[R2] none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_rule_068_a_lost_answer_is_no_success(face: Face) -> None:
    """The wire breaks before the answer: the commit raises, as one in doubt where it had been sent."""
    play = await stage(face, "transacted", "m1", cuttable=True)
    await expect(await play.consumer(), "m1")
    face.cut(play.connection)
    error = await outcome(play.session.commit())
    assert isinstance(error, (jmsish.TransactionInDoubtError, jmsish.TransactionRolledBackError,
                              jmsish.ConnectionLostError))  # fmt: skip


# --- receiving, and listeners that raise


async def test_rule_107_receive_with_and_without_patience(face: Face) -> None:
    """`None` waits until there is one; 0, and `receive_no_wait`, answer at once."""
    play = await stage(face, "auto")
    consumer = await play.consumer()
    assert await consumer.receive_no_wait() is None
    assert await consumer.receive(timeout=0) is None
    sender = await play.beside("auto")
    waiting = await face.spawn(consumer.receive(), "receiver")
    await sender.send("m1")
    message = await waiting
    assert seen(message) == "m1"


async def test_rule_108_nobody_sees_a_message_before_its_time(face: Face) -> None:
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    await play.send("later", delivery_delay=60)
    await play.send("now")

    async def browsed() -> list[str]:
        browser = await play.session.create_browser(play.destination)
        found = [message.body async for message in browser]
        await browser.close()
        return found

    assert await browsed() == ["now"]
    consumer = await play.consumer()
    await expect(consumer, "now none")
    clock.advance(60)
    await expect(consumer, "later none")


@pytest.mark.parametrize("prefetch", [0, 1000])
async def test_rule_109_what_has_expired_is_not_delivered(face: Face, prefetch: int) -> None:
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    consumer = await play.consumer(prefetch=prefetch)
    await play.send("mayfly", time_to_live=1)
    await play.send("m1")
    clock.advance(2)
    await expect(consumer, "m1 none")


@pytest.mark.parametrize("mode", ["auto", "dups_ok"])
async def test_rule_110_a_listener_raises_and_sees_the_same_message_again(face: Face, mode: str) -> None:
    play, log = await raised(face, mode, "a b", times=2)
    assert await log.reach(4) == ["a", "a[R2]", "a[R3]", "b"]
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["client", "transacted"])
async def test_rule_071_rule_111_a_listener_raises_and_sees_the_next(face: Face, mode: str) -> None:
    """Nothing is given back by itself: recover, or rollback, brings the earlier one back."""
    play, log = await raised(face, mode, "a b")
    assert await log.reach(2) == ["a", "b"]
    await play.connection.close()
    other = await play.beside("auto")
    await expect(await other.consumer(), again("a b") + " none")


@pytest.mark.parametrize("mode", ["auto", "client"])
async def test_rule_112_what_a_listener_raised_is_visible(
    face: Face, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In the log, with what it was."""
    with caplog.at_level(logging.WARNING, logger="jmsish"):
        play, log = await raised(face, mode, "a b")
        await log.reach(2)
        await play.connection.close()
    assert any("a is refused" in record.getMessage() or (record.exc_info and "a is refused" in str(record.exc_info[1]))
               for record in caplog.records)  # fmt: skip
