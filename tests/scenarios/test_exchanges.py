"""Programs that publish to exchanges of all types: a JMS topic whose name is that of an exchange is that exchange."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import MODES, expect, outcome
from .topics import client


async def published(face: Face, name: str, mode: str = "auto") -> tuple[Any, Any]:
    """A session, and a producer of the topic of that name."""
    play = await client(face, None, mode)
    return play.session, await play.session.create_producer(play.session.create_topic(name))


async def reader(face: Face, queue: str) -> Any:
    session = await (await face.connect()).create_session(**MODES["auto"])
    return await session.create_consumer(session.create_queue(queue))


async def send(session: Any, producer: Any, body: str, subject: str | None = None, **properties: Any) -> None:
    message = session.create_text_message(body)
    if subject is not None:
        message.jms_type = subject
    message.properties.update(properties)
    await producer.send(message)


async def test_direct_by_subject(face: Face) -> None:
    for queue in ("red", "all"):
        face.broker.declare_queue(queue)
    exchange = face.broker.declare_exchange("colours", "direct", unroutable="discard")
    exchange.rebind(add=[("red", "red"), ("all", "red"), ("all", "green")])
    session, producer = await published(face, "colours")
    for body, subject in (("m1", "red"), ("m2", "green"), ("m3", "blue"), ("m4", "RED")):
        await send(session, producer, body, subject)
    await send(session, producer, "m5")
    await expect(await reader(face, "red"), "m1 none")
    await expect(await reader(face, "all"), "m1 m2 none")
    assert (exchange.received, exchange.routed, exchange.dropped) == (5, 2, 3)


async def test_fanout_to_all(face: Face) -> None:
    for queue in ("one", "two"):
        face.broker.declare_queue(queue)
        face.broker.exchange("amq.fanout").bind(queue)
    session, producer = await published(face, "amq.fanout")
    await send(session, producer, "m1", "anything")
    await send(session, producer, "m2")
    for queue in ("one", "two"):
        await expect(await reader(face, queue), "m1 m2 none")


async def test_headers_by_properties(face: Face) -> None:
    for queue in ("large", "red"):
        face.broker.declare_queue(queue)
    exchange = face.broker.exchange("amq.match")
    exchange.bind("large", "", {"x-match": "all", "size": 9})
    exchange.bind("red", "", {"x-match": "any", "colour": "red", "shade": "crimson"})
    session, producer = await published(face, "amq.match")
    await send(session, producer, "m1", size=9, colour="red")
    await send(session, producer, "m2", size=jmsish.Long(9))
    await send(session, producer, "m3", colour="blue", shade="crimson")
    await send(session, producer, "m4", size="9")
    await expect(await reader(face, "large"), "m1 m2 none")
    await expect(await reader(face, "red"), "m1 m3 none")


async def test_a_key_in_the_name_of_the_topic(face: Face) -> None:
    face.broker.declare_queue("q")
    face.broker.exchange("amq.direct").bind("q", "k")
    session, producer = await published(face, "amq.direct/k")
    await send(session, producer, "m1", "another subject")
    await expect(await reader(face, "q"), "m1 none")


@pytest.mark.parametrize("unroutable", ["reject", "release"])
async def test_the_sender_hears_that_nobody_wanted_it(face: Face, unroutable: str) -> None:
    exchange = face.broker.declare_exchange("x", "fanout", unroutable=unroutable)
    session, producer = await published(face, "x")
    assert isinstance(await outcome(send(session, producer, "m1", "some.key")), jmsish.JMSError)
    face.broker.declare_queue("q")
    exchange.bind("q")
    await send(session, producer, "m2")
    await expect(await reader(face, "q"), "m2 none")


async def test_a_commit_with_a_message_that_nobody_wanted(face: Face) -> None:
    """Rejected in a transaction: none of it is there afterwards, and the session goes on."""
    face.broker.declare_queue("q")
    face.broker.declare_exchange("x", "direct", unroutable="reject").bind("q", "k")
    session, producer = await published(face, "x", "transacted")
    await send(session, producer, "m1", "k")
    await send(session, producer, "m2", "nobody")
    assert isinstance(await outcome(session.commit()), jmsish.TransactionRolledBackError)
    await send(session, producer, "m3", "k")
    await session.commit()
    await expect(await reader(face, "q"), "m3 none")


async def test_numbers_are_in_the_order_of_the_queue(face: Face) -> None:
    face.broker.declare_queue("q")
    face.broker.declare_exchange("x", "fanout", sequence=True).bind("q")
    session, producer = await published(face, "x", "transacted")
    other, second = await published(face, "x")
    await send(session, producer, "m2")
    await send(other, second, "m1")
    await session.commit()
    await expect(await reader(face, "q"), "m1 m2 none")


async def test_late_readers_see_the_last_value(face: Face) -> None:
    exchange = face.broker.declare_exchange("x", "topic", initial_value=True)
    session, producer = await published(face, "x")
    for body in ("m1", "m2"):
        await send(session, producer, body, "k")
    face.broker.declare_queue("late")
    exchange.bind("late", "#")
    await expect(await reader(face, "late"), "m2 none")
