"""A message that cannot be read is given back, as failed and undeliverable here, and reported: not lost, not looped."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import jmsish
from jmsish.engine.codec import AMQP_SEQUENCE, AMQP_VALUE, DATA, Header, ReceivedMessage, encode_message
from jmsish.engine.values import encode, encode_described
from jmsish.types import Byte, Symbol

from .face import Face
from .foreign import ForeignClient
from .log import Log
from .steps import Stage, expect, stage


def of_type(number: int, body: tuple[int, Any]) -> bytes:
    return encode_message(annotations={"x-opt-jms-msg-type": Byte(number)}, body=body)


def section(code: int, value: Any) -> bytes:
    return encode_described(code, encode(value))


TEXT = section(AMQP_VALUE, "x")

UNREADABLE: dict[str, bytes] = {
    "a type that there is not": of_type(6, (AMQP_VALUE, "x")),
    "a type that is no number": encode_message(annotations={"x-opt-jms-msg-type": "text"}, body=(AMQP_VALUE, "x")),
    "an unknown section behind the body": TEXT + b"\x00\x53\x24\x45",
    "two bodies": TEXT + TEXT,
    "sections out of order": section(0x74, {"a": 1}) + section(0x73, ["ID:1"]) + TEXT,
    "a body that ends too early": TEXT[:-1],
    "text that is no text": b"\x00\x53\x77\xa1\x02\xff\xfe",
    "long text that is no text": b"\x00\x53\x77\xb1\x00\x00\x00\x02\xff\xfe",
    "a map with a key twice": b"\x00\x53\x77\xc1\x0b\x04\xa1\x01a\x54\x01\xa1\x01a\x54\x02",
    "text for a map": of_type(2, (AMQP_VALUE, "x")),
    "a map with numbers for names": of_type(2, (AMQP_VALUE, {1: 2})),
    "octets for a stream": of_type(4, (DATA, b"x")),
    "a map for a stream": of_type(4, (AMQP_VALUE, {"a": 1})),
    "text for octets": of_type(3, (AMQP_VALUE, "x")),
    "a sequence for octets": of_type(3, (AMQP_SEQUENCE, [1])),
    "a number for text": of_type(5, (AMQP_VALUE, 5)),
    "octets that are no text": of_type(5, (DATA, b"\xff")),
    "data that is no binary": section(DATA, "x"),
    "an id that is none": section(0x73, [[1]]) + TEXT,
    "a subject that is no text": b"\x00\x53\x73\xc0\x08\x04\x40\x40\x40\xa1\x02\xff\xff" + TEXT,
    "properties that end too early": b"\x00\x53\x73\xc0\x04\x05\x40\x40\x40" + TEXT,
    "application properties without names": section(0x74, {5: 5}) + TEXT,
    "application properties that are no text": b"\x00\x53\x74\xc1\x07\x02\xa1\x01a\xa1\x01\xff" + TEXT,
    "a footer that ends too early": TEXT + b"\x00\x53\x78\xc1\x05\x00",
}


async def listening(face: Face, mode: str, *payloads: bytes, **options: Any) -> tuple[Stage, Log]:
    """A stage with these octets on its queue, and a good message behind them; and what the exception listener hears."""
    play = await stage(face, mode, **options)
    heard = face.log()
    play.connection.exception_listener = heard.add
    with ForeignClient(face) as client:
        client.put("orders", *payloads, section(AMQP_VALUE, "good"))
    return play, heard


@pytest.mark.parametrize("payload", UNREADABLE.values(), ids=UNREADABLE)
async def test_it_goes_back_and_is_told(face: Face, payload: bytes) -> None:
    """Who receives gets the next message; the exception listener hears of it once; others can have it, octet for
    octet, counted."""
    play, heard = await listening(face, "auto", payload)
    consumer = await play.consumer()
    await expect(consumer, "good none none")
    (error,) = await heard.reach(1)
    assert isinstance(error, jmsish.MessageFormatError)
    assert "a message on queue://orders cannot be read and was given back, for others to read: " in str(error)
    await play.queue.holds(1, acquired=0)
    with ForeignClient(face) as client:
        (octets,) = client.take("orders")
    received = ReceivedMessage(octets)
    assert received.header() == Header(delivery_count=1) and octets.endswith(payload)
    await expect(consumer, "none")
    assert len(heard.items) == 1


MODES = ["auto", "dups_ok", "client", "individual", "transacted"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("prefetch", [0, 1, 1000])
async def test_it_stays_whatever_the_mode(face: Face, mode: str, prefetch: int) -> None:
    """What is acknowledged, committed or rolled back about it has nothing to do with it."""
    bad = UNREADABLE["text for a map"]
    play, heard = await listening(face, mode, bad, bad)
    consumer = await play.consumer(prefetch=prefetch)
    (message, _) = await expect(consumer, "good none")
    assert len(await heard.reach(2)) == 2
    if mode in ("client", "transacted"):
        await play.give_back()
        (message, _) = await expect(consumer, "good[R2] none")
    await play.settle(message)
    await play.session.close()
    await play.queue.comes_to(2, acquired=0)
    assert len(heard.items) == 2


async def test_what_comes_settled_cannot_go_back(face: Face) -> None:
    """In NONE mode the broker has forgotten it already: all that is left is to say so."""
    play, heard = await listening(face, "auto", UNREADABLE["a number for text"])
    session = await play.connection.create_session(acknowledge_mode=jmsish.AcknowledgeMode.NONE)
    await expect(await session.create_consumer(play.destination), "good none")
    (error,) = await heard.reach(1)
    assert "cannot be read and was passed over" in str(error)
    await play.queue.holds(0)


async def test_a_listener_is_called_with_the_next(face: Face) -> None:
    """The listener never sees it, and goes on."""
    play, heard = await listening(face, "auto", UNREADABLE["a type that there is not"])
    consumer = await play.consumer()
    got = face.log()
    consumer.listener = lambda message: got.add(message.body)
    assert await got.reach(1) == ["good"]
    assert len(await heard.reach(1)) == 1
    await play.queue.comes_to(1, acquired=0)
    consumer.listener = None


async def test_a_browser_passes_over_it(face: Face) -> None:
    """It cannot give back what it does not have; it says so, and shows the rest."""
    play, heard = await listening(face, "auto", UNREADABLE["a number for text"])
    browser = await play.session.create_browser(play.destination)
    assert [message.body async for message in browser] == ["good"]
    (error,) = await heard.reach(1)
    assert "cannot be read and was passed over" in str(error)
    await play.queue.holds(2, acquired=0)


async def test_at_the_limit_it_is_a_dead_letter(face: Face) -> None:
    """It counts as an attempt: no number of clients that cannot read it turns it round for ever."""
    face.broker_with(config={"queues": {"orders": {"max_delivery_attempts": 2}}})
    play, heard = await listening(face, "auto", UNREADABLE["two bodies"])
    await expect(await play.consumer(), "good none")
    await play.queue.holds(1, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), "none")
    await play.queue.holds(0)
    await face.sight("DLQ").holds(1)
    (shown,) = face.broker.queue("DLQ").messages()
    assert isinstance(shown, jmsish.BytesMessage) and shown.data.endswith(UNREADABLE["two bodies"])
    assert len(await heard.reach(1)) == 1


async def test_without_an_exception_listener_the_log_has_it(face: Face, caplog: pytest.LogCaptureFixture) -> None:
    """Somebody must hear of it."""
    play = await stage(face, "auto")
    with ForeignClient(face) as client:
        client.put("orders", UNREADABLE["text for a map"])
    with caplog.at_level(logging.WARNING, "jmsish.client"):
        await expect(await play.consumer(), "none")
    assert "cannot be read and was given back" in caplog.text


async def test_a_body_of_octets_is_never_unreadable(face: Face) -> None:
    """A picture, a zip, a pickle: what is in the octets is the application's business."""
    play = await stage(face, "auto")
    payload = encode_message(properties=[None] * 6 + [Symbol("image/png")], body=(DATA, b"\xff\x00\xfe"))
    with ForeignClient(face) as client:
        client.put("orders", payload, payload + section(DATA, b"more"))
    consumer = await play.consumer()
    first, second = await consumer.receive(timeout=30), await consumer.receive(timeout=30)
    assert first is not None and first.body == b"\xff\x00\xfe"
    assert second is not None and second.body == b"\xff\x00\xfemore"
