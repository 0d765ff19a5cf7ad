"""Scenarios F: listeners."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import again, expect, numbered, outcome, seen, send, stage, when_free


@pytest.mark.parametrize("mode", ["transacted", "client"])
async def test_s104_give_back_in_a_listener(face: Face, mode: str) -> None:
    """104: rollback or recover in the callback of a: a again before b, which is already buffered."""
    play = await stage(face, mode, "a b c", start=False)
    consumer = await play.consumer()
    await play.primed(3)
    log = face.log()

    async def on_message(message: Any) -> None:
        if seen(message) == "a":
            await play.give_back()
        elif message.body == "c":
            await play.settle(message)
        log.add(seen(message))

    consumer.listener = on_message
    await play.connection.start()
    assert await log.reach(4) == "a a[R2] b c".split()
    await play.connection.close()
    assert len(log.items) == 4
    assert play.queue.depth == 0


async def test_s105_rollback_in_a_listener_commit_the_second_time(face: Face) -> None:
    """105: each message rolled back at first sight and committed at the second: four deliveries, order kept."""
    play = await stage(face, "transacted", "m1 m2", start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        await (play.session.commit() if message.jms_redelivered else play.session.rollback())
        log.add(seen(message))

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(4) == "m1 m1[R2] m2 m2[R2]".split()
    await play.connection.close()
    assert len(log.items) == 4
    assert play.queue.depth == 0


async def test_s106_commit_inside_a_listener(face: Face) -> None:
    """106: the acknowledgement of the current message and the send are both in the transaction that the callback
    commits."""
    play = await stage(face, "transacted", "m1 m2 m3", start=False)
    results = face.sight("results")
    producer = await play.session.create_producer(play.session.create_queue("results"))
    log = face.log()

    async def on_message(message: Any) -> None:
        await producer.send(f"r-{message.body}")
        before = (play.queue.depth, results.depth)
        if message.body != "m3":
            await play.session.commit()
        log.add(f"{seen(message)} {before} {(play.queue.depth, results.depth)}")

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(3) == ["m1 (3, 0) (2, 1)", "m2 (2, 1) (1, 2)", "m3 (1, 2) (1, 2)"]
    await play.connection.close()
    assert (play.queue.depth, results.depth) == (1, 2)
    other = await play.beside("auto")
    await expect(await other.consumer(), "m3[R2] none")


@pytest.mark.parametrize("mode", ["auto", "dups_ok"])
async def test_s107_listener_raises_and_the_session_acknowledges(face: Face, mode: str) -> None:
    """107: AUTO, DUPS_OK: the same message again at once, marked, before the others (D6)."""
    play = await stage(face, mode, "a b c", start=False)
    consumer = await play.consumer()
    await play.primed(3)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(seen(message))
        if seen(message) == "a":
            raise ValueError("the first a is refused")

    consumer.listener = on_message
    await play.connection.start()
    assert await log.reach(4) == "a a[R2] b c".split()
    await play.connection.close()
    assert len(log.items) == 4
    assert play.queue.depth == 0


@pytest.mark.parametrize("mode", ["transacted", "client"])
async def test_s108_listener_raises_and_the_application_decides(face: Face, mode: str) -> None:
    """108: transacted, CLIENT: the next message is delivered; the earlier one comes again after rollback or recover."""
    play = await stage(face, mode, "a b c", start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(seen(message))
        if seen(message) == "a":
            raise ValueError("the first a is refused")
        if seen(message) == "c":
            await play.give_back()
        elif message.body == "c":
            await play.settle(message)
            log.add("settled")

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(7) == "a b c a[R2] b[R2] c[R2] settled".split()
    await play.connection.close()
    assert len(log.items) == 7
    assert play.queue.depth == 0


@pytest.mark.parametrize("mode", ["transacted", "client"])
async def test_s108_listener_raises_and_the_connection_closes(face: Face, mode: str) -> None:
    """108: no fourth delivery; after a close without decision all three come back, each counted once."""
    play = await stage(face, mode, "a b c", start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(seen(message))
        if message.body == "a":
            raise ValueError("a is refused")

    (await play.consumer()).listener = on_message
    await play.connection.start()
    await log.reach(3)
    await face.turns(3)
    await play.connection.close()
    assert log.items == "a b c".split()
    await play.queue.holds(3, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), again("a b c") + " none")


@pytest.mark.parametrize("mode", ["auto", "transacted"])
async def test_s110_listener_closes_its_own_consumer(face: Face, mode: str) -> None:
    """110: AUTO: acknowledged when it returns normally (D7); transacted: the queue's until the commit. The unread
    go back."""
    play = await stage(face, mode, "a b", start=False)
    consumer = await play.consumer()
    await play.primed(2)
    log = face.log()

    async def on_message(message: Any) -> None:
        await consumer.close()
        log.add(seen(message))

    consumer.listener = on_message
    await play.connection.start()
    await log.reach(1)
    if mode == "auto":
        await play.queue.comes_to(1, acquired=0)
    else:
        await play.queue.comes_to(2, acquired=1)
        await when_free(play.session.commit, face)
        await play.queue.holds(1, acquired=0)
    await play.session.close()
    assert log.items == ["a"]
    other = await play.beside("auto")
    await expect(await other.consumer(), "b none")


@pytest.mark.parametrize("order", ["recover-close", "close-recover"])
@pytest.mark.parametrize("mode", ["auto", "dups_ok", "client", "individual"])
async def test_s111_listener_recovers_and_closes(face: Face, mode: str, order: str) -> None:
    """111: recover and close in the callback, in either order: the message goes back, counted, and is not accepted."""
    play = await stage(face, mode, "a b", start=False)
    consumer = await play.consumer()
    await play.primed(2)
    log = face.log()

    async def on_message(message: Any) -> None:
        for step in order.split("-"):
            await (consumer.close() if step == "close" else play.session.recover())
        log.add(seen(message))

    consumer.listener = on_message
    await play.connection.start()
    await log.reach(1)
    await play.session.close()
    assert log.items == ["a"]
    await play.queue.holds(2, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), "a[R2] b none")


@pytest.mark.parametrize("mode", ["auto", "transacted", "client"])
@pytest.mark.parametrize("target", ["consumer", "session", "connection"])
async def test_s112_close_waits_for_a_running_listener(face: Face, target: str, mode: str) -> None:
    """112: close returns after the callback; then the message is settled as the session's mode says."""
    play = await stage(face, mode, "m1", start=False)
    consumer = await play.consumer()
    closed: Any = {"consumer": consumer, "session": play.session, "connection": play.connection}[target]
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add("in")
        await log.until("closing")
        await face.turns(3)
        log.add("out")

    async def closing() -> None:
        log.add("closing")
        await closed.close()
        log.add("closed")

    consumer.listener = on_message
    await play.connection.start()
    await log.until("in")
    await (await face.spawn(closing()))
    assert log.items == ["in", "closing", "out", "closed"]
    await play.session.close()
    await play.connection.close()
    if mode == "auto":
        await play.queue.holds(0)
    else:
        await play.queue.holds(1, acquired=0)
        other = await play.beside("auto")
        await expect(await other.consumer(), "m1[R2] none")


async def test_s113_stop_roll_back_restart(face: Face) -> None:
    """113: a hundred handed to a listener, stopped, rolled back: all hundred again to a new listener, in order,
    counted."""
    words = numbered(1, 100).split()
    play = await stage(face, "transacted", " ".join(words), start=False)
    consumer = await play.consumer()
    first, second = face.log(), face.log()

    async def on_message(message: Any) -> None:
        first.add(seen(message))

    async def once_more(message: Any) -> None:
        if len(second.items) == 99:
            await play.session.commit()
        second.add(seen(message))

    consumer.listener = on_message
    await play.connection.start()
    assert await first.reach(100) == words
    await play.connection.stop()
    await play.session.rollback()
    await play.queue.holds(100)
    consumer.listener = once_more
    await play.connection.start()
    assert await second.reach(100) == again(" ".join(words)).split()
    await play.connection.close()
    assert len(first.items) == 100
    assert play.queue.depth == 0


@pytest.mark.parametrize("target", ["session", "connection", "stop"])
async def test_closing_what_the_listener_runs_in(face: Face, target: str) -> None:
    """Session close, connection close and stop from a listener of their own are IllegalStateError; the work goes on."""
    play = await stage(face, "auto", "m1 m2", start=False)
    log = face.log()
    errors: list[Any] = []

    async def on_message(message: Any) -> None:
        if target == "stop":
            errors.append(await outcome(play.connection.stop()))
        else:
            errors.append(await outcome((play.session if target == "session" else play.connection).close()))
        log.add(seen(message))

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(2) == ["m1", "m2"]
    assert [type(error) for error in errors] == [jmsish.IllegalStateError] * 2
    await play.queue.comes_to(0)


async def test_a_session_with_a_listener_refuses_receive(face: Face) -> None:
    """A session that has a listener refuses synchronous receives, and the other way round (JMS 6.2.6)."""
    play = await stage(face, "auto", start=False)
    first = await play.consumer()
    second = await play.session.create_consumer(play.session.create_queue("other"))

    async def on_message(message: Any) -> None:
        del message

    first.listener = on_message
    assert first.listener is not None
    assert isinstance(await outcome(second.receive_no_wait()), jmsish.IllegalStateError)
    first.listener = None
    await send(play.connection, "other", "m1")
    await play.connection.start()
    await expect(second, "m1 none")


async def test_a_listener_that_fails_again_and_again(face: Face) -> None:
    """D6: the same message comes again, each time counted, also beyond the fourth failure where the consumer
    backs off."""
    play = await stage(face, "auto", "a b", start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(seen(message))
        if message.body == "a" and message.delivery_count <= 5:
            raise ValueError("refused")

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(7) == "a a[R2] a[R3] a[R4] a[R5] a[R6] b".split()
    await play.connection.close()
    assert play.queue.depth == 0
