"""Scenarios E: closing consumer, session and connection, and losing the connection."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import Stage, again, expect, numbered, outcome, seen, send, stage, take_all


async def test_s077_opened_and_closed_on_a_stopped_connection(face: Face) -> None:
    """77: a consumer opened and closed on a stopped connection takes nothing away, and marks nothing."""
    play = await stage(face, "auto", start=False)
    consumer = await play.consumer()
    await play.send("m1")
    await consumer.close()
    second = await play.consumer()
    await play.connection.start()
    await expect(second, "m1 none")
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["transacted", "client", "auto", "dups_ok", "individual"])
async def test_s078_prefetched_and_never_read(face: Face, mode: str) -> None:
    """78: prefetched, idle, closed: the next consumer gets it unmarked."""
    play = await stage(face, mode, "m1")
    consumer = await play.consumer()
    await play.queue.prefetched(1)
    await consumer.close()
    await play.queue.holds(1, acquired=0)
    await expect(await play.consumer(), "m1")


async def test_s080_prefetched_and_the_connection_closed(face: Face) -> None:
    """80: a clean close of the connection does not mark what lay unread in a buffer."""
    play = await stage(face, "auto", "m1")
    await play.consumer()
    await play.queue.prefetched(1)
    await play.connection.close()
    await play.queue.holds(1, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), "m1 none")
    await play.queue.comes_to(0)


async def test_s081_received_and_the_session_closed(face: Face) -> None:
    """81: received, not acknowledged, session closed: marked."""
    play = await stage(face, "client", "m1")
    await expect(await play.consumer(), "m1")
    await play.session.close()
    await play.queue.holds(1, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), "m1[R2] none")


async def test_s082_client_count_after_close(face: Face) -> None:
    """82: recoveries and the close count alike: 1, 2, 3, then 4."""
    play = await stage(face, "client", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    for word in ("m1[R2]", "m1[R3]"):
        await play.session.recover()
        await expect(consumer, word)
    await play.session.close()
    other = await play.beside("client")
    await expect(await other.consumer(), "m1[R4] none")


async def test_s084_consumer_closed_with_unacknowledged_then_recover(face: Face) -> None:
    """84: the close gives back the unread only; the recover gives back the two that were received, counted."""
    play = await stage(face, "client", numbered(1, 4))
    consumer = await play.consumer()
    await play.queue.prefetched(4)
    await expect(consumer, "m1 m2")
    await consumer.close()
    await play.queue.holds(4, acquired=2)
    await play.session.recover()
    await play.queue.holds(4, acquired=0)
    await expect(await play.consumer(), "m1[R2] m2[R2] m3 m4 none")


async def test_s085_consumer_closed_acknowledged_later(face: Face) -> None:
    """85: at the close 4 and 5 are given back; a later acknowledge of the third accepts 1 to 3."""
    play = await stage(face, "client", numbered(1, 5))
    consumer = await play.consumer()
    await play.queue.prefetched(5)
    messages = await expect(consumer, "m1 m2 m3")
    await consumer.close()
    await play.queue.holds(5, acquired=3)
    await messages[2].acknowledge()
    await play.queue.holds(2, acquired=0)
    await expect(await play.consumer(), "m4 m5 none")


async def test_s087_consumer_closed_session_closed(face: Face) -> None:
    """87: the handed-over ones come back marked; acknowledging one of them after the close is IllegalStateError."""
    play = await stage(face, "client", numbered(1, 5))
    consumer = await play.consumer()
    await play.queue.prefetched(5)
    messages = await expect(consumer, "m1 m2 m3")
    await consumer.close()
    await play.session.close()
    await play.queue.holds(5, acquired=0)
    assert isinstance(await outcome(messages[2].acknowledge()), jmsish.IllegalStateError)
    other = await play.beside("auto")
    await expect(await other.consumer(), "m1[R2] m2[R2] m3[R2] m4 m5 none")
    await play.queue.comes_to(0)


async def test_s089_session_close_is_a_rollback(face: Face) -> None:
    """Closing a transacted session rolls back: 1 and 2 marked, 3 to 5 not (the number is a durable one; the rule
    is not)."""
    play = await stage(face, "transacted", numbered(1, 5))
    consumer = await play.consumer()
    await play.queue.prefetched(5)
    await expect(consumer, "m1 m2")
    await play.session.close()
    await play.queue.holds(5, acquired=0)
    other = await play.beside("transacted")
    await expect(await other.consumer(), "m1[R2] m2[R2] m3 m4 m5 none")
    await other.session.commit()
    await play.queue.holds(0)


@pytest.mark.parametrize("ending", ["open", "commit", "rollback"])
async def test_s090_connection_closed_with_an_open_transaction(face: Face, ending: str) -> None:
    """90: closing the connection rolls back what is open; with commit nothing is left, with rollback all ten are."""
    story = numbered(1, 10)
    play = await stage(face, "transacted", story)
    await expect(await play.consumer(), story)
    if ending == "commit":
        await play.session.commit()
    elif ending == "rollback":
        await play.session.rollback()
    await play.connection.close()
    await play.queue.holds(0 if ending == "commit" else 10, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), "none" if ending == "commit" else again(story) + " none")
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["auto", "transacted", "client", "dups_ok"])
async def test_s091_one_consumed_one_buffered(face: Face, mode: str) -> None:
    """91: one consumed, one in the buffer, connection closed: the second comes unmarked, the first never."""
    play = await stage(face, mode, "One Two")
    consumer = await play.consumer()
    await play.queue.prefetched(2)
    (message,) = await expect(consumer, "One")
    await play.settle(message)
    await play.connection.close()
    await play.queue.holds(1, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), "Two none")
    await play.queue.comes_to(0)


async def test_s092_three_connections_that_hold_everything(face: Face) -> None:
    """92: a hundred messages over three connections, none committed, all closed: one reader gets 0 to 99 in order."""
    words = numbered(0, 99).split()
    play = await stage(face, "transacted", " ".join(words))
    holders = [await play.beside("transacted") for _ in range(3)]
    received = set()
    for holder in holders:
        consumer = await holder.consumer(prefetch=10)
        for _ in range(25):
            message: Any = await consumer.receive(timeout=30)
            received.add(message.body)
    assert len(received) == 75
    for holder in reversed(holders):
        await holder.connection.close()
    await play.queue.holds(100, acquired=0)
    told = " ".join(f"{word}[R2]" if word in received else word for word in words)
    await expect(await play.consumer(), told + " none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s094_closing_one_session_does_not_touch_another(face: Face) -> None:
    """94: one session closed without commit, the other committed: exactly the first one's message is back."""
    play = await stage(face, "transacted", "m1 m2 m3")
    other = await play.beside("transacted", same_connection=True)
    await expect(await play.consumer(prefetch=0), "m1")
    await expect(await other.consumer(prefetch=0), "m2")
    await play.session.close()
    await play.queue.holds(3, acquired=1)
    await other.session.commit()
    await play.queue.holds(2, acquired=0)
    reader = await play.beside("auto")
    await expect(await reader.consumer(), "m1[R2] m3 none")
    await play.queue.comes_to(0)


@pytest.mark.parametrize("same_connection", [True, False], ids=["same-connection", "other-connection"])
async def test_s096_a_waiting_consumer_is_prompted(face: Face, same_connection: bool) -> None:
    """96: a blocked receive of session 2 returns the message, marked, when session 1 closes."""
    play = await stage(face, "client", "m1")
    await expect(await play.consumer(), "m1")
    other = await play.beside("client", same_connection=same_connection)
    consumer = await other.consumer()
    waiting = await face.spawn(consumer.receive(timeout=30))
    await face.comes_to_wait(consumer)
    await play.session.close()
    message = await waiting
    assert message is not None and seen(message) == "m1[R2]"
    await message.acknowledge()
    await play.queue.holds(0)


async def test_s097_second_receiver_gets_what_the_first_did_not_read(face: Face) -> None:
    """97: the first accepts some of its window and closes; the second gets all others, none lost, none marked."""
    play = await stage(face, "auto", numbered(1, 20))
    consumer = await play.consumer(prefetch=5)
    await expect(consumer, "m1 m2 m3")
    await consumer.close()
    other = await play.beside("auto")
    await expect(await other.consumer(), numbered(4, 20) + " none")
    await play.queue.comes_to(0)


def closer(play: Stage, consumer: Any, target: str) -> Any:
    return {"consumer": consumer, "session": play.session, "connection": play.connection}[target]


@pytest.mark.parametrize("timeout", [None, 30], ids=["for-ever", "timed"])
@pytest.mark.parametrize("target", ["consumer", "session", "connection"])
async def test_s099_blocked_receive_returns_at_the_close(face: Face, target: str, timeout: float | None) -> None:
    """99: a blocked receive returns nothing when its consumer, session or connection closes; the queue keeps the
    next."""
    play = await stage(face, "auto")
    consumer = await play.consumer()
    sender = await face.connect()
    waiting = await face.spawn(consumer.receive(timeout=timeout))
    await face.comes_to_wait(consumer)
    await closer(play, consumer, target).close()
    assert await waiting is None
    await send(sender, "orders", "m1")
    await play.queue.holds(1, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), "m1 none")
    await play.queue.comes_to(0)


@pytest.mark.parametrize("target", ["consumer", "session", "connection"])
async def test_s099_a_message_that_comes_just_then_is_not_lost(face: Face, target: str) -> None:
    """99: a message that races with the close is either received or stays on the queue, unmarked."""
    sender = await face.connect()
    for attempt in range(10):
        play = await stage(face, "auto")
        consumer = await play.consumer()
        waiting = await face.spawn(outcome(consumer.receive()))
        sending = await face.spawn(send(sender, "orders", f"m{attempt}"), name="sender")
        await closer(play, consumer, target).close()
        message: Any = await waiting
        await sending
        if message is None or isinstance(message, jmsish.IllegalStateError):  # the close came first
            other = await play.beside("auto")
            await expect(await other.consumer(), f"m{attempt}")
            await other.connection.close()
        else:
            assert seen(message) == f"m{attempt}"
        await play.connection.close()
        await play.queue.comes_to(0, acquired=0)


async def test_s101_a_stopped_connection_delivers_nothing(face: Face) -> None:
    """101: nothing while stopped, prefetched or arriving; after the start all, in order, unmarked."""
    play = await stage(face, "auto", "m1 m2")
    consumer = await play.consumer()
    await play.queue.prefetched(2)
    await play.connection.stop()
    await play.send("m3")
    assert await consumer.receive_no_wait() is None
    assert await consumer.receive(timeout=0.01) is None
    await play.connection.start()
    await expect(consumer, "m1 m2 m3 none")
    await play.queue.comes_to(0)


async def test_s101_stop_waits_for_a_running_listener(face: Face) -> None:
    """101: stop returns after the running callback, and no other begins until the start."""
    play = await stage(face, "auto", "m1 m2", start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(f"in {message.body}")
        if message.body == "m1":
            await log.until("stopping")
            await face.turns(3)
        log.add(f"out {message.body}")

    async def stopped() -> None:
        log.add("stopping")
        await play.connection.stop()
        log.add("stopped")

    (await play.consumer()).listener = on_message
    await play.connection.start()
    await log.until("in m1")
    await (await face.spawn(stopped()))
    await face.turns(3)
    assert log.items == ["in m1", "stopping", "out m1", "stopped"]
    await play.connection.start()
    assert (await log.reach(6))[4:] == ["in m2", "out m2"]
    await play.queue.comes_to(0)


async def test_s102_connection_drops_with_an_unacknowledged_message(face: Face) -> None:
    """102: the wire breaks after the hand-over: the message is available again, marked, not stuck."""
    play = await stage(face, "client", "m1", cuttable=True)
    await expect(await play.consumer(), "m1")
    other = await play.beside("auto")
    face.cut(play.connection)
    await play.queue.comes_to(1, acquired=0)
    await expect(await other.consumer(), "m1[R2] none")
    await play.queue.comes_to(0)


async def test_s103_acknowledge_races_with_the_cleanup_of_a_dead_connection(face: Face) -> None:
    """103: acknowledgements run while the wire breaks: each message is acknowledged or comes back, exactly once."""
    words = numbered(1, 2000).split()
    play = await stage(face, "individual")
    session = await play.connection.create_session(transacted=True)
    producer = await session.create_producer(play.destination)
    for word in words:
        await producer.send(word)
    await session.commit()
    doomed = await play.beside("individual", cuttable=True)
    consumer = await doomed.consumer()
    messages = [await consumer.receive(timeout=30) for _ in range(1000)]
    log = face.log()

    async def acknowledging() -> None:
        for message in messages:
            assert message is not None
            if isinstance(await outcome(message.acknowledge()), jmsish.JMSError):
                return
            log.add(message.body)
            if len(log.items) == 200:
                await face.turns(1)  # lets the other side of the race begin

    racer = await face.spawn(acknowledging())
    await log.reach(100)
    face.cut(doomed.connection)
    await racer
    await face.sight("orders").frees_all()
    left = await take_all(await play.consumer())
    bodies = [word.split("[")[0] for word in left]
    assert bodies == sorted(set(bodies), key=lambda word: int(word[1:])), "back in order, none twice"
    assert set(words) - set(log.items) <= set(bodies), "what was not acknowledged is back"
    assert set(words[1000:]) <= set(bodies)
    assert play.queue.depth == len(bodies)
