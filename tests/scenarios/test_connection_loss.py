"""What a lost connection does to calls that wait, and to calls that come later."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import expect, outcome, stage


async def test_every_waiting_call_fails_with_the_first_cause(face: Face) -> None:
    """All calls that wait on a connection fail, with one and the same first cause; so do later calls."""
    connection = await face.connect(cuttable=True)
    tasks, consumers = [], []
    for number in range(4):
        session = await connection.create_session()
        consumers.append(await session.create_consumer(session.create_queue(f"q{number}")))
        tasks.append(await face.spawn(outcome(consumers[-1].receive()), name=f"reader {number}"))
    await face.comes_to_wait(*consumers)
    face.cut(connection)
    errors: list[Any] = [await task for task in tasks]
    assert [type(error) for error in errors] == [jmsish.ConnectionLostError] * 4
    assert len({str(error) for error in errors}) == 1
    later = await outcome(connection.create_session())
    assert isinstance(later, jmsish.ConnectionLostError) and str(later) == str(errors[0])
    await connection.close()
    await connection.close()


async def test_the_exception_listener_hears_of_it_once(face: Face) -> None:
    """A loss that no call could report goes to the exception listener, once."""
    connection = await face.connect(cuttable=True)
    log = face.log()
    connection.exception_listener = lambda error: log.add(type(error).__name__)
    await connection.create_session()
    face.cut(connection)
    assert await log.reach(1) == ["ConnectionLostError"]
    await face.turns(3)
    await connection.close()
    assert log.items == ["ConnectionLostError"]


async def test_commit_on_a_lost_connection(face: Face) -> None:
    """A commit that cannot be sent is an error, never success; what it received is back on the queue."""
    play = await stage(face, "transacted", "m1", cuttable=True)
    await expect(await play.consumer(), "m1")
    await play.queue.prefetched(1)
    face.cut(play.connection)
    error = await outcome(play.session.commit())
    assert isinstance(
        error, jmsish.TransactionRolledBackError | jmsish.TransactionInDoubtError | jmsish.ConnectionLostError
    )
    await play.queue.comes_to(1, acquired=0)


async def test_send_on_a_lost_connection(face: Face) -> None:
    """A send that cannot be sent raises ConnectionLostError, also again and again."""
    play = await stage(face, "auto", cuttable=True)
    producer = await play.session.create_producer(play.destination)
    await producer.send("m1")
    face.cut(play.connection)
    for _ in range(2):
        assert isinstance(await outcome(producer.send("m2")), jmsish.ConnectionLostError)
    other = await play.beside("auto")
    await expect(await other.consumer(), "m1 none")


async def test_a_listener_hears_no_more_after_a_loss(face: Face) -> None:
    """A buffered message of a lost connection is not handed over afterwards; the queue has it again."""
    play = await stage(face, "client", "m1 m2 m3", cuttable=True, start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add("in")
        await log.until("cut")
        log.add("out")

    consumer = await play.consumer()
    await play.primed(3)
    consumer.listener = on_message
    await play.connection.start()
    await log.until("in")
    play.connection.exception_listener = lambda error: log.add("cut")
    face.cut(play.connection)
    await log.until("cut")
    await play.queue.comes_to(3, acquired=0)
    await log.until("out")
    await face.turns(3)
    await play.connection.close()
    assert log.items == ["in", "cut", "out"]


async def test_the_broker_stops(face: Face) -> None:
    """A broker that stops fails waiting calls with a clear error; closing is silent then."""
    play = await stage(face, "auto")
    consumer = await play.consumer()
    waiting = await face.spawn(outcome(consumer.receive()))
    await face.comes_to_wait(consumer)
    face.broker.stop()
    face.broker.stop()
    error = await waiting
    assert isinstance(error, jmsish.JMSError | None)
    assert isinstance(await outcome(play.connection.create_session()), jmsish.JMSError)
    await play.connection.close()


@pytest.mark.parametrize("closing", ["session", "connection", "consumer"])
async def test_closing_on_a_lost_connection_is_silent(face: Face, closing: str) -> None:
    """Whatever is closed after the wire broke, closes at once and silently."""
    play = await stage(face, "client", "m1 m2", cuttable=True)
    consumer = await play.consumer()
    await expect(consumer, "m1")
    face.cut(play.connection)
    things: dict[str, Any] = {"consumer": consumer, "session": play.session, "connection": play.connection}
    await things[closing].close()
    await play.connection.close()
    await play.queue.comes_to(2, acquired=0)
