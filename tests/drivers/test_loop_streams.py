# ruff: noqa: F811
"""Streams in the event loop, cancelled at any turn: nothing is torn, and the session goes on."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest

import jmsish
from jmsish import aio

from .reach import broker, url  # noqa: F401
from .test_loop import cancelled_after, play

PIECE = bytes(range(256)) * 200
PIECES = 30
TURNS = range(0, 90, 3)


async def pieces() -> AsyncIterator[bytes]:
    for _ in range(PIECES):
        yield PIECE
        await asyncio.sleep(0)


def test_a_streamed_send_cancelled_at_any_turn_is_whole_or_not_there(url: str) -> None:
    """Either way the next send works, and comes behind it."""

    async def scene() -> None:
        async with aio.connect(url, stream_threshold=10_000) as connection:
            session = await connection.create_session()
            queue = session.create_queue("q")
            producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
            for turns in TURNS:
                await cancelled_after(turns, producer.send(stream=pieces()))
                await producer.send("after it")
                message: Any = await consumer.receive(timeout=30)
                if isinstance(message, jmsish.BytesMessage):
                    async with message.open() as body:
                        assert await body.read() == PIECE * PIECES
                    message = await consumer.receive(timeout=30)
                assert message.body == "after it" and await consumer.receive_no_wait() is None

    play(scene())


def test_a_read_cancelled_at_any_turn_loses_no_octet(url: str) -> None:
    """What was read before and what is read after it are the body."""

    async def scene() -> None:
        async with aio.connect(url, stream_threshold=10_000) as connection:
            session = await connection.create_session()
            queue = session.create_queue("q")
            producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
            await producer.send(stream=pieces())
            message: Any = await consumer.receive(timeout=30)
            read = bytearray()
            async with message.open() as body:
                for turns in TURNS:
                    read += await cancelled_after(turns % 5, body.read(10_000)) or b""
                read += await body.read()
            assert bytes(read) == PIECE * PIECES
            assert await consumer.receive_no_wait() is None

    play(scene())


@pytest.mark.parametrize("cancel", [False, True])
def test_a_source_that_never_gives_holds_nobody_up(url: str, cancel: bool) -> None:
    """While it is waited for, other sessions of the connection work; cancelled, the send leaves nothing."""

    async def scene() -> None:
        more = asyncio.Event()

        async def slowly() -> AsyncIterator[bytes]:
            yield PIECE
            await more.wait()
            yield PIECE

        async with aio.connect(url) as connection:
            session, other = await connection.create_session(), await connection.create_session()
            producer = await session.create_producer(session.create_queue("q"))
            sending = asyncio.ensure_future(producer.send(stream=slowly()))
            await (await other.create_producer(other.create_queue("q"))).send("meanwhile")
            consumer = await other.create_consumer(other.create_queue("q"))
            first: Any = await consumer.receive(timeout=30)
            assert first.body == "meanwhile" and not sending.done()
            if cancel:
                sending.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await sending
                assert await consumer.receive_no_wait() is None
            else:
                more.set()
                await sending
                second: Any = await consumer.receive(timeout=30)
                assert second.body == PIECE * 2

    play(scene())


class Pausing:
    """An asynchronous file, or an iterable, that has nothing to give in the middle."""

    def __init__(self) -> None:
        self.gives = iter([b"one", None, b"two", b""])

    async def read(self, size: int) -> Any:
        return next(self.gives)


@pytest.mark.parametrize("source", [Pausing, lambda: Pausing().gives])
def test_a_source_that_gives_nothing_in_the_middle_is_not_at_its_end(url: str, source: Any) -> None:
    """The message is taken back: its beginning would have been sent as the whole."""

    async def scene() -> None:
        async with aio.connect(url) as connection:
            session = await connection.create_session()
            queue = session.create_queue("q")
            producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
            with pytest.raises((BlockingIOError, TypeError), match="nothing to give|NoneType"):
                await producer.send(stream=source())
            assert await consumer.receive_no_wait() is None

    play(scene())


def test_half_a_message_is_not_pickled(url: str) -> None:
    """It says why, and what reads it."""

    async def scene() -> None:
        async with aio.connect(url, stream_threshold=10_000) as connection:
            session = await connection.create_session()
            queue = session.create_queue("q")
            producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
            await producer.send(stream=pieces())
            message: Any = await consumer.receive(timeout=30)
            with pytest.raises(jmsish.IllegalStateError, match="still arriving"):
                pickle.dumps(message)
            assert await message.open().read() == PIECE * PIECES

    play(scene())
