"""Programs that read from exchanges of all types: by the name of a topic, or by ``exchange/key`` as queue or topic."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import expect, outcome
from .topics import KINDS, client

TYPES = ("direct", "topic", "fanout", "headers")


async def send(play: Any, destination: Any, *messages: tuple[str, str | None]) -> None:
    """Each of them is a body and a subject."""
    producer = await play.session.create_producer(destination)
    for body, subject in messages:
        message = play.session.create_text_message(body)
        message.jms_type = subject
        await producer.send(message)
    await producer.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type", TYPES)
async def test_a_topic_of_the_name_of_an_exchange(face: Face, type: str, kind: str) -> None:
    """All of it, or of a direct exchange what has no subject."""
    face.broker.declare_exchange("prices", type)
    play = await client(face, "desk")
    consumer = await play.subscribe(kind, "prices")
    await send(play, play.session.create_topic("prices"), ("m1", None), ("m2", "eu.steel"))
    await expect(consumer, "m1 none" if type == "direct" else "m1 m2 none")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type", ["direct", "topic"])
async def test_a_topic_that_says_the_key(face: Face, type: str, kind: str) -> None:
    face.broker.declare_exchange("prices", type)
    play = await client(face, "desk")
    consumer = await play.subscribe(kind, "prices/eu.steel")
    await send(play, play.session.create_topic("prices"), ("m1", "eu.steel"), ("m2", "us.steel"), ("m3", None))
    await send(play, play.session.create_topic("prices/eu.steel"), ("m4", None), ("m5", "us.steel"))
    await expect(consumer, "m1 m4 m5 none")


@pytest.mark.parametrize("type", ["direct", "topic"])
async def test_a_queue_that_says_exchange_and_key(face: Face, type: str) -> None:
    """Each consumer has a subscription of its own: two of them are no rivals."""
    exchange = face.broker.declare_exchange("prices", type)
    play = await client(face, None)
    queue = play.session.create_queue("prices/eu.steel")
    consumers = [await play.session.create_consumer(queue) for _ in range(2)]
    await send(play, queue, ("m1", None), ("m2", "another"))
    for consumer in consumers:
        await expect(consumer, "m1 m2 none")
        await consumer.close()
    assert exchange.bindings() == [] and face.broker.subscriptions() == []


@pytest.mark.parametrize("type", TYPES)
async def test_a_selector_and_no_local(face: Face, type: str) -> None:
    face.broker.declare_exchange("prices", type)
    play = await client(face, None)
    topic = play.session.create_topic("prices")
    consumer = await play.session.create_consumer(topic, "JMSPriority > 4", no_local=True)
    other = await client(face, None)
    producer = await other.session.create_producer(topic)
    for body, priority in (("m1", 4), ("m2", 9)):
        await producer.send(body, priority=priority)
    mine = await play.session.create_producer(topic)
    await mine.send("m3", priority=9)
    await expect(consumer, "m2 none")


@pytest.mark.parametrize("type", TYPES)
async def test_a_durable_subscription_waits(face: Face, type: str) -> None:
    face.broker.declare_exchange("prices", type)
    play = await client(face, "desk")
    await play.subscribe("durable", "prices")
    await play.close()
    publisher = await client(face, None)
    await send(publisher, publisher.session.create_topic("prices"), ("m1", None))
    again = await client(face, "desk")
    consumer = await again.subscribe("durable", "prices")
    await expect(consumer, "m1 none")
    await consumer.close()
    await again.session.unsubscribe("s")
    assert face.broker.subscriptions() == [] and face.broker.exchange("prices").bindings() == []


async def test_who_uses_an_exchange_that_is_deleted_hears_of_it(face: Face) -> None:
    face.broker.declare_exchange("prices", "fanout")
    play = await client(face, None)
    topic = play.session.create_topic("prices")
    consumer, producer = await play.session.create_consumer(topic), await play.session.create_producer(topic)
    await producer.send("m1")
    await expect(consumer, "m1")
    face.broker.delete_exchange("prices")
    assert isinstance(await outcome(producer.send("m2")), jmsish.JMSError)
    assert isinstance(await outcome(consumer.receive(timeout=30)), jmsish.JMSError)
