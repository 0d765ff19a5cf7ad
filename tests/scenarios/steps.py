"""The steps that scenarios are made of, in the notation of the scenarios.

`m1` is a first delivery (not redelivered, count 1), `m1[R2]` a redelivery with JMSXDeliveryCount 2, `none` a receive
that finds nothing. Anything that JMS forbids (a flag without its count) shows as `m1[!...]` and so never equals what is
expected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import pytest

import jmsish
from jmsish import AcknowledgeMode, aio
from jmsish.broker.coordinator import ControlLink

from .blocking import PATIENCE
from .face import Face, Sight

T = TypeVar("T")

MODES: dict[str, dict[str, Any]] = {
    "auto": {"acknowledge_mode": AcknowledgeMode.AUTO},
    "client": {"acknowledge_mode": AcknowledgeMode.CLIENT},
    "dups_ok": {"acknowledge_mode": AcknowledgeMode.DUPS_OK},
    "individual": {"acknowledge_mode": AcknowledgeMode.INDIVIDUAL},
    "none": {"acknowledge_mode": AcknowledgeMode.NONE},
    "transacted": {"transacted": True},
}


def seen(message: Any) -> str:
    """A delivery in the notation of the scenarios."""
    body, again, count = message.body, message.jms_redelivered, message.delivery_count
    if not again and count == 1:
        return str(body)
    if again and count > 1:
        return f"{body}[R{count}]"
    return f"{body}[!redelivered={again},count={count}]"


def again(story: str, count: int = 2) -> str:
    """The same messages, each delivered for the `count`-th time."""
    return " ".join(f"{body}[R{count}]" for body in story.split())


def numbered(first: int, last: int) -> str:
    """m<first> … m<last>."""
    return " ".join(f"m{number}" for number in range(first, last + 1))


async def expect(consumer: aio.MessageConsumer, story: str) -> list[Any]:
    """Receives what the story says, in its order, and returns the messages."""
    told = story.split()
    got: list[str] = []
    messages: list[Any] = []
    for word in told:
        message = await (consumer.receive_no_wait() if word == "none" else consumer.receive(timeout=PATIENCE))
        messages.append(message)
        got.append("none" if message is None else seen(message))
        assert got == told[: len(got)]
    return messages


async def take_all(consumer: aio.MessageConsumer) -> list[str]:
    """Receives until there is nothing more."""
    got = []
    while (message := await consumer.receive_no_wait()) is not None:
        got.append(seen(message))
    return got


async def send(connection: aio.Connection, queue: str, story: str, **arguments: Any) -> None:
    """Sends one text message a word; all are on the queue when this returns."""
    session = await connection.create_session()
    producer = await session.create_producer(session.create_queue(queue))
    for body in story.split():
        await producer.send(body, **arguments)
    await session.close()


async def outcome(call: Awaitable[T]) -> T | jmsish.JMSError:
    """The value of a call, or the error it raised."""
    try:
        return await call
    except jmsish.JMSError as error:
        return error


async def cut_behind_the_discharge(face: Face, cut: Callable[[], None], ending: Coroutine[Any, Any, None]) -> Any:
    """What comes of a commit or rollback that the broker gets, where the wire breaks before it answers."""
    log = face.log()
    add = log.add if face.here() == "MainThread" else partial(asyncio.get_running_loop().call_soon_threadsafe, log.add)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ControlLink, "_discharge", lambda *_: add("discharge"))
        waiting = await face.spawn(outcome(ending))
        await log.until("discharge")
        cut()
        return await waiting


async def unanswered(face: Face, url: str, told: str, **options: Any) -> jmsish.JMSError:
    """The error of a connect that waits in vain for what comes next, with `told` in it: "no answer within {} s".

    The wait is longer the second time and the third: on a busy machine a short one may be over before that point of
    the conversation is reached, and the error is about an earlier one.
    """
    for seconds in (0.2, 2, 10):
        error = await outcome(face.connect(url, connect_timeout=seconds, **options))
        assert isinstance(error, jmsish.JMSError), f"{url} answered"
        if told.format(seconds) in str(error):
            return error
    raise AssertionError(f"{told!r} is not in {error}")


async def when_free(call: Callable[[], Coroutine[Any, Any, T]], face: Face) -> T:
    """Makes a call once the listener that uses the session has returned."""
    while True:
        try:
            return await call()
        except jmsish.ConcurrencyError:
            await face.turns(1)


class Stage:
    """The usual setup: one connection, one session in some mode, one queue with messages on it."""

    def __init__(self, face: Face, connection: aio.Connection, session: aio.Session, queue: str) -> None:
        self.face = face
        self.connection = connection
        self.session = session
        self.destination = session.create_queue(queue)
        self.queue: Sight = face.sight(queue)

    async def consumer(self, **arguments: Any) -> aio.MessageConsumer:
        return await self.session.create_consumer(self.destination, **arguments)

    async def send(self, story: str, **arguments: Any) -> None:
        await send(self.connection, self.queue.name, story, **arguments)

    async def beside(self, mode: str = "auto", *, same_connection: bool = False, **options: Any) -> Stage:
        """Another session on the same queue, on a connection of its own."""
        connection = self.connection if same_connection else await self.face.connect(**options)
        return Stage(self.face, connection, await connection.create_session(**MODES[mode]), self.queue.name)

    async def primed(self, count: int) -> None:
        """Waits on a stopped connection until this many messages lie unread at the client, for a listener to come."""
        await self.connection.start()
        await self.queue.prefetched(count)
        await self.connection.stop()

    async def give_back(self) -> None:
        """Rollback, or recover, as the session's mode has it."""
        await (self.session.rollback() if self.session.transacted else self.session.recover())

    async def settle(self, message: Any) -> None:
        """Commit, or acknowledge, as the session's mode has it."""
        await (self.session.commit() if self.session.transacted else message.acknowledge())


async def stage(face: Face, mode: str, story: str = "", *, queue: str = "orders", **options: Any) -> Stage:
    """Sets a stage; the messages are on the queue before a consumer exists."""
    connection = await face.connect(**options)
    if story:
        await send(connection, queue, story)
    return Stage(face, connection, await connection.create_session(**MODES[mode]), queue)
