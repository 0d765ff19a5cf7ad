"""Steps of scenarios about messages: there and back again, from others and to others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jmsish.engine.codec import ReceivedMessage

from .face import Face
from .foreign import ForeignClient
from .steps import Stage


async def sent(play: Stage, *messages: Any, **terms: Any) -> list[Any]:
    """Sends these messages, or bodies, and receives them."""
    producer = await play.session.create_producer(play.destination)
    for message in messages:
        await producer.send(message, **terms)
    return await got(play, len(messages))


async def got(play: Stage, count: int = 1) -> list[Any]:
    consumer = await play.consumer()
    messages: list[Any] = [await consumer.receive(timeout=30) for _ in range(count)]
    await consumer.close()
    assert None not in messages
    return messages


async def came(face: Face, play: Stage, *payloads: bytes) -> list[Any]:
    """What a client that knows nothing of JMS sends, as it is received."""
    with ForeignClient(face) as client:
        client.put(play.queue.name, *payloads)
    return await got(play, len(payloads))


async def leaves(face: Face, play: Stage, message: Any, queue: str = "out") -> ReceivedMessage:
    """What such a client gets of a message that is sent, or sent on."""
    producer = await play.session.create_producer(play.session.create_queue("out"))
    await producer.send(message)
    with ForeignClient(face) as client:
        (octets,) = client.take(queue)
    return ReceivedMessage(octets)


def types(values: Iterable[Any]) -> list[type]:
    return [type(value) for value in values]


def bare(value: Any) -> Any:
    """As it is, where the blocking face is dressed."""
    return getattr(value, "raw", value)


def kind(message: Any) -> str:
    return type(bare(message)).__name__
