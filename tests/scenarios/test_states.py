"""Closing twice, use after close, and two users of one session at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import MODES, expect, outcome, seen, send, stage


async def everything(face: Face) -> dict[str, Any]:
    play = await stage(face, "transacted", "m1")
    return {
        "connection": play.connection,
        "session": play.session,
        "consumer": await play.consumer(),
        "producer": await play.session.create_producer(play.destination),
        "browser": await play.session.create_browser(play.destination),
        "queue": play.destination,
    }


@pytest.mark.parametrize("name", ["connection", "session", "consumer", "producer", "browser"])
async def test_closing_twice_is_silent(face: Face, name: str) -> None:
    """The second close of anything is silent, also after its parent was closed."""
    things = await everything(face)
    await things[name].close()
    await things[name].close()
    await things["connection"].close()
    await things[name].close()


USES: dict[str, list[Callable[[dict[str, Any]], Awaitable[Any]]]] = {
    "consumer": [
        lambda it: it["consumer"].receive_no_wait(),
        lambda it: it["consumer"].receive(timeout=0),
        lambda it: it["consumer"].receive(),
    ],
    "producer": [lambda it: it["producer"].send("m2")],
    "session": [
        lambda it: it["session"].commit(),
        lambda it: it["session"].rollback(),
        lambda it: it["session"].create_producer(it["queue"]),
        lambda it: it["session"].create_consumer(it["queue"]),
        lambda it: it["session"].create_browser(it["queue"]),
        lambda it: it["session"].create_temporary_queue(),
    ],
    "connection": [
        lambda it: it["connection"].create_session(),
        lambda it: it["connection"].start(),
        lambda it: it["connection"].stop(),
    ],
}
CHILDREN = {
    "consumer": ["consumer"],
    "producer": ["producer"],
    "session": ["session", "consumer", "producer"],
    "connection": ["connection", "session", "consumer", "producer"],
}


@pytest.mark.parametrize("name", CHILDREN)
async def test_use_after_close_is_illegal_state(face: Face, name: str) -> None:
    """After close every other call, of the object and of its children, raises IllegalStateError."""
    things = await everything(face)
    await things[name].close()
    for child in CHILDREN[name]:
        for use in USES[child]:
            assert isinstance(await outcome(use(things)), jmsish.IllegalStateError), child
    if name in ("session", "connection"):
        assert things[name].is_closed
    await face.sight("orders").holds(1)


async def test_messages_stay_readable_after_close(face: Face) -> None:
    """Messages created or received stay readable after the close of everything (JMS 6.1.8)."""
    play = await stage(face, "auto")
    await send(play.connection, "orders", "m1", properties={"colour": "red"})
    (message,) = await expect(await play.consumer(), "m1")
    made = play.session.create_text_message("made")
    await play.connection.close()
    assert message.body == "m1" and message.properties["colour"] == "red" and message.jms_message_id
    assert made.text == "made"


async def test_two_at_once_in_one_session(face: Face) -> None:
    """Two threads (or tasks) in one session at once: ConcurrencyError for the one that came second, naming both."""
    play = await stage(face, "auto")
    first = await play.consumer()
    second = await play.session.create_consumer(play.session.create_queue("other"))
    waiter = await face.spawn(outcome(first.receive()), name="the waiter")
    error: Any = None
    while error is None and not waiter.done():
        error = await outcome(second.receive_no_wait())
    if error is None:
        error = await waiter  # then it was the waiter that came second
    assert isinstance(error, jmsish.ConcurrencyError)
    assert "the waiter" in str(error) and face.here() in str(error)
    # Nothing broke: the one that came first goes on, and close is exempt.
    if not waiter.done():
        sender = await face.connect()
        await send(sender, "orders", "m1")
        message: Any = await waiter
        assert seen(message) == "m1"
    waiter = await face.spawn(outcome(first.receive()), name="the waiter")
    await play.session.close()
    assert await waiter is None or isinstance(await waiter, jmsish.IllegalStateError)


async def test_sessions_side_by_side(face: Face) -> None:
    """One thread (task) a session, many sessions a connection: all receive, none is refused."""
    play = await stage(face, "auto", " ".join(f"m{n}" for n in range(40)))

    taken: list[str] = []

    async def reading(mode: str) -> None:
        session = await play.connection.create_session(**MODES[mode])
        consumer = await session.create_consumer(play.destination, prefetch=1)
        while len(taken) < 40:
            message = await consumer.receive(timeout=0.05)
            if message is None:
                continue
            taken.append(seen(message))
            if mode == "transacted":
                await session.commit()
            else:
                await message.acknowledge()
        await session.close()

    workers = [await face.spawn(reading(mode), name=mode) for mode in ("auto", "client", "transacted", "dups_ok")]
    for worker in workers:
        await worker
    assert sorted(taken) == sorted(f"m{n}" for n in range(40))
    await play.queue.holds(0)


async def test_transaction_block(face: Face) -> None:
    """`session.transaction()` commits at its end, and rolls back on an exception, which goes on."""
    play = await stage(face, "transacted", "m1 m2")
    consumer = await play.consumer()
    with pytest.raises(ZeroDivisionError):
        async with play.session.transaction():
            await expect(consumer, "m1")
            raise ZeroDivisionError
    async with play.session.transaction():
        await expect(consumer, "m1[R2]")
    await play.queue.holds(1)
    await expect(consumer, "m2 none")


async def test_iteration_over_a_consumer(face: Face) -> None:
    """A consumer is an iterator: in order, until the loop is left."""
    play = await stage(face, "auto", "m1 m2 m3")
    consumer = await play.consumer()
    got = []
    async for message in consumer:
        got.append(seen(message))
        if message.body == "m2":
            break
    assert got == ["m1", "m2"]
    await expect(consumer, "m3 none")


async def test_context_managers(face: Face) -> None:
    """Connections, sessions, consumers, producers and browsers close at the end of their block."""
    connection = await face.connect()
    async with connection:
        async with await connection.create_session() as session:
            queue = session.create_queue("orders")
            async with await session.create_producer(queue) as producer:
                await producer.send("m1")
            async with await session.create_browser(queue) as browser:
                assert [message.body async for message in browser] == ["m1"]
            async with await session.create_consumer(queue) as consumer:
                await expect(consumer, "m1 none")
        assert session.is_closed
    assert connection.is_closed


async def test_a_transaction_block_is_not_nested(face: Face) -> None:
    """The inner one would commit what the outer one may still undo: it is refused, and the outer one can be undone."""
    play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    with pytest.raises(jmsish.IllegalStateError, match="would commit its work"):
        async with play.session.transaction():
            await producer.send("m1")
            async with play.session.transaction():
                raise AssertionError("not reached")
    await play.queue.holds(0)
    async with play.session.transaction():
        await producer.send("m2")
    await play.queue.holds(1)
