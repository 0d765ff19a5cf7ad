"""Maximum message size as an application meets it: told before anything is sent, or by a broker that refuses."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import jmsish
from jmsish import ConnectionLostError, JMSError, SendRejectedError

from .face import Face
from .steps import Stage, expect, outcome, stage

LIMIT = 3000
EXCEEDED = "amqp:link:message-size-exceeded"
LARGE = "x" * LIMIT
"""A body that alone is as large as the whole message may be."""


async def limited(face: Face, mode: str = "auto", on_oversize: str = "connection", **options: Any) -> Stage:
    face.broker_with(config={"policy": {"max_message_size": LIMIT, "on_oversize": on_oversize}})
    return await stage(face, mode, **options)


def refused(error: Any) -> bool:
    """Before it was sent, with both sizes."""
    assert isinstance(error, SendRejectedError) and not error.outcome_unknown and error.info is not None
    size, limit = error.info["message-size"], error.info["max-message-size"]
    assert size > limit == LIMIT and str(size) in str(error) and str(limit) in str(error)
    return error.condition == EXCEEDED


def blind(producer: Any) -> None:
    """A client that does not look at the limit, as Qpid JMS and others are."""
    getattr(producer, "raw", producer)._core.link.remote_max_message_size = 0


@pytest.mark.parametrize("mode", ["auto", "transacted"])
@pytest.mark.parametrize("anonymous", [False, True])
async def test_too_large_is_told_at_once_and_the_producer_goes_on(face: Face, mode: str, anonymous: bool) -> None:
    play = await limited(face, mode)
    producer = await play.session.create_producer(None if anonymous else play.destination)
    to = {"destination": play.destination} if anonymous else {}
    assert producer.max_message_size == LIMIT
    for _ in range(2):
        assert refused(await outcome(producer.send(LARGE, **to)))
        await producer.send("small", **to)
    if mode == "transacted":
        await play.session.commit()
    await play.queue.holds(2)
    assert face.broker.connections() and not play.connection.is_closed


async def test_without_a_limit_there_is_none_to_be_read(face: Face) -> None:
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    assert producer.max_message_size is None
    await producer.send("x" * 300_000)
    await play.queue.holds(1)


async def test_properties_count(face: Face) -> None:
    """A message of one character may be much larger over the wire than its body."""
    play = await limited(face)
    producer = await play.session.create_producer(play.destination)
    assert refused(await outcome(producer.send("m", properties={"note": LARGE})))
    await producer.send("m1", properties={"note": "x" * (LIMIT - 500)})
    await play.queue.holds(1)


async def test_an_asynchronous_send_raises_and_calls_nobody(face: Face) -> None:
    play = await limited(face)
    producer = await play.session.create_producer(play.destination)
    log = face.log()
    assert refused(await outcome(producer.send(LARGE, on_completion=lambda message, error: log.add("called"))))
    await producer.send("m1", on_completion=lambda message, error: log.add(f"{message.body} {error}"))
    assert await log.reach(1) == ["m1 None"]


@pytest.mark.parametrize("mode", ["auto", "transacted"])
async def test_a_file_is_refused_by_its_size_and_not_read(face: Face, mode: str) -> None:
    play = await limited(face, mode)
    producer = await play.session.create_producer(play.destination)
    file = io.BytesIO(bytes(LIMIT))
    assert refused(await outcome(producer.send(stream=file)))
    assert file.tell() == 0
    await producer.send(stream=io.BytesIO(bytes(LIMIT - 500)))
    if mode == "transacted":
        await play.session.commit()
    await play.queue.holds(1)


@pytest.mark.parametrize("mode", ["auto", "transacted"])
@pytest.mark.parametrize("piece", [10, 1000, 1_000_000])
async def test_a_stream_of_unknown_size_is_refused_as_soon_as_it_would_pass(face: Face, piece: int, mode: str) -> None:
    """An endless one too; of it nothing more is read than is needed to know."""
    play = await limited(face, mode)
    producer = await play.session.create_producer(play.destination)
    given = 0

    def pieces() -> Iterator[bytes]:
        nonlocal given
        while True:
            given += piece
            yield bytes(piece)

    assert refused(await outcome(producer.send(stream=pieces())))
    assert given <= LIMIT + piece
    await producer.send("m1")
    if mode == "transacted":
        await play.session.commit()
    await play.queue.holds(1)


async def test_an_asynchronous_stream_too(face: Face) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0)
            yield bytes(1000)

    play = await limited(face)
    producer: Any = await play.session.create_producer(play.destination)
    if hasattr(producer, "raw"):
        return  # The blocking face has no such streams.
    assert refused(await outcome(producer.send(stream=pieces())))
    await producer.send("m1")
    await play.queue.holds(1)


async def test_a_stream_longer_than_a_frame_is_taken_back_in_its_middle(face: Face) -> None:
    face.broker_with(config={"policy": {"max_message_size": 1_000_000}})
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    error = await outcome(producer.send(stream=iter([bytes(50_000)] * 40)))
    assert isinstance(error, SendRejectedError) and error.condition == EXCEEDED
    await producer.send("m1")
    await expect(await play.consumer(), "m1 none")
    assert face.broker.connections(), "it was the client that noticed"


# -- a client that does not look ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("persistent", [True, False])
async def test_the_broker_closes_the_connection_and_a_new_one_sends_the_next(face: Face, persistent: bool) -> None:
    """Whoever waits for the outcome hears that the message was too large; a new connection goes on (390)."""
    play = await limited(face)
    producer = await play.session.create_producer(play.destination)
    await producer.send("m1")
    blind(producer)
    how = jmsish.DeliveryMode.PERSISTENT if persistent else jmsish.DeliveryMode.NON_PERSISTENT
    error = await outcome(producer.send(LARGE, delivery_mode=how))
    if persistent:
        assert isinstance(error, SendRejectedError) and error.condition == EXCEEDED
    while not isinstance(error, ConnectionLostError):
        error = await outcome(producer.send("on"))
    assert error.condition == "amqp:connection:forced" and "Message size exceeded" in str(error)
    again = await stage(face, "auto")
    await again.send("m2")
    await expect(await again.consumer(), "m1 m2 none")


async def test_in_link_mode_the_session_and_its_others_go_on(face: Face) -> None:
    play = await limited(face, on_oversize="link")
    producer, second = [await play.session.create_producer(play.destination) for _ in range(2)]
    consumer = await play.consumer()
    blind(producer)
    error = await outcome(producer.send(LARGE))
    assert isinstance(error, SendRejectedError) and error.condition == EXCEEDED
    error = await outcome(producer.send("on"))
    assert isinstance(error, JMSError) and error.condition == EXCEEDED, "its link is closed"
    await second.send("m1")
    await (await play.session.create_producer(play.destination)).send("m2")
    await expect(consumer, "m1 m2 none")


@pytest.mark.parametrize("on_oversize", ["connection", "link"])
async def test_a_transaction_with_one_too_large_does_not_commit(face: Face, on_oversize: str) -> None:
    """What is sent in a transaction is sent settled: the commit tells, or the connection that is gone."""
    play = await limited(face, "transacted", on_oversize)
    producer = await play.session.create_producer(play.destination)
    second = await play.session.create_producer(play.destination)
    blind(producer)
    await producer.send("m1")
    await outcome(producer.send(LARGE))
    error = await outcome(play.session.commit())
    expected = jmsish.TransactionRolledBackError if on_oversize == "link" else JMSError
    assert isinstance(error, expected)
    await play.queue.comes_to(0)
    if on_oversize == "link":
        await second.send("m2")
        await play.session.commit()
        await play.queue.holds(1)


async def test_a_stream_that_is_refused_in_its_middle(face: Face) -> None:
    """A rejection before the message is whole: the rest is not read, and nobody waits for ever."""
    play = await limited(face)
    producer = await play.session.create_producer(play.destination)
    blind(producer)
    error = await outcome(producer.send(stream=iter([bytes(200_000)] * 20)))
    assert isinstance(error, (SendRejectedError, ConnectionLostError))
    await play.queue.comes_to(0)


# -- what a consumer takes ---------------------------------------------------------------------------------------------


async def test_a_consumer_gets_nothing_over_its_own_limit(face: Face) -> None:
    """The broker knows it, and keeps what is larger for others."""
    play = await stage(face, "auto", max_message_size=LIMIT)
    consumer = await play.consumer()
    producer = await play.session.create_producer(play.destination)
    assert producer.max_message_size is None
    await producer.send(LARGE)
    await producer.send("m1")
    await expect(consumer, "m1 none")
    await play.queue.holds(1)
    other = await face.connect()
    await other.start()
    session = await other.create_session()
    await expect(await session.create_consumer(session.create_queue("orders")), f"{LARGE} none")


async def test_a_browser_passes_over_what_is_over_its_limit(face: Face) -> None:
    play = await stage(face, "auto", max_message_size=LIMIT)
    producer = await play.session.create_producer(play.destination)
    for body in ("m1", LARGE, "m2"):
        await producer.send(body)
    for _ in range(2):
        browser = await play.session.create_browser(play.destination)
        assert [message.body async for message in browser] == ["m1", "m2"]
        await browser.close()
    await play.queue.holds(3)


async def test_every_topic_subscriber_or_none(face: Face) -> None:
    play = await limited(face)
    topic = play.session.create_topic("news")
    consumers = [await play.session.create_consumer(topic) for _ in range(3)]
    publisher = await face.connect()
    producer = await (await publisher.create_session()).create_producer(topic)
    await producer.send("m1")
    blind(producer)
    error = await outcome(producer.send(LARGE))
    assert isinstance(error, SendRejectedError) and error.condition == EXCEEDED
    for consumer in consumers:
        await expect(consumer, "m1 none")
