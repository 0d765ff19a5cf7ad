"""Messages that clients send which know nothing of JMS: their types, their ids, what they leave out, and sending on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

import jmsish
from jmsish import DeliveryMode, Queue
from jmsish.engine.codec import AMQP_SEQUENCE, AMQP_VALUE, DATA, Header, ReceivedMessage, encode_message
from jmsish.testing import VirtualClock
from jmsish.types import Byte, Long, Symbol, Timestamp, UInt, ULong, UShort

from .face import Face
from .foreign import ForeignClient
from .letters import came, kind, leaves, sent
from .steps import stage

# --- ids of others

IDENTITY = UUID("12345678-1234-5678-1234-567812345678")
IDS: list[tuple[Any, str]] = [
    ("ID:theirs", "ID:theirs"),
    ("plain", "ID:AMQP_NO_PREFIX:plain"),
    (IDENTITY, f"ID:AMQP_UUID:{IDENTITY}"),
    (ULong(2**64 - 1), f"ID:AMQP_ULONG:{2**64 - 1}"),
    (b"\x00\xff", "ID:AMQP_BINARY:00FF"),
    ("ID:AMQP_UUID:no", "ID:AMQP_STRING:ID:AMQP_UUID:no"),
]


@pytest.mark.parametrize(("wire", "text"), IDS, ids=[text[:20] for _, text in IDS])
async def test_m19_m20_rule_94_an_answer_to_any_id(face: Face, wire: Any, text: str) -> None:
    """Whatever form a foreign request's id has, the answer's correlation id is that very id."""
    play = await stage(face, "auto")
    (request,) = await came(face, play, encode_message(properties=[wire], body=(AMQP_VALUE, "question")))
    assert request.jms_message_id == text
    answer = play.session.create_text_message("answer")
    answer.jms_correlation_id = request.jms_message_id
    octets = await leaves(face, play, answer)
    assert octets.property(5) == wire and type(octets.property(5)) is type(wire)
    (back,) = await came(face, play, encode_message(properties=[None] * 5 + [wire], body=(AMQP_VALUE, "x")))
    assert back.jms_correlation_id == (wire if wire == "plain" else text)
    octets = await leaves(face, play, back)
    assert octets.property(5) == wire and type(octets.property(5)) is type(wire)


async def test_rule_153_rule_154_correlation_ids_of_octets(face: Face) -> None:
    """They arrive as they were; asked for where there are none of octets, an error says what there is."""
    play = await stage(face, "auto")
    octets, text = play.session.create_message(), play.session.create_message()
    octets.jms_correlation_id_bytes = bytes(range(256))
    text.jms_correlation_id = "text"
    first, second = await sent(play, octets, text)
    assert first.jms_correlation_id_bytes == bytes(range(256))
    with pytest.raises(jmsish.MessageFormatError, match="jms_correlation_id has its text"):
        _ = second.jms_correlation_id_bytes
    for wrong in ("ID:AMQP_UUID:no", "ID:AMQP_BINARY:A", "ID:AMQP_ULONG:-1"):
        with pytest.raises(jmsish.MessageFormatError, match="does not hold the"):
            text.jms_correlation_id = wrong


# --- messages of others

FOREIGN: list[tuple[str, bytes, str, Any]] = [
    ("m03 an annotation", encode_message(annotations={"x-opt-jms-msg-type": Byte(2)}, body=(AMQP_VALUE, {"a": 1})),
     "MapMessage", {"a": 1}),
    ("m04 nothing", encode_message(properties=["ID:1"]), "BytesMessage", b""),
    ("m04 no text", encode_message(properties=[None] * 6 + [Symbol("text/plain")]), "TextMessage", None),
    ("m04 no picture", encode_message(properties=[None] * 6 + [Symbol("image/png")]), "Message", None),
    ("m05 octets", encode_message(body=(DATA, b"\xff")), "BytesMessage", b"\xff"),
    ("m05 json", encode_message(properties=[None] * 6 + [Symbol("application/json")], body=(DATA, b"{}")),
     "TextMessage", "{}"),
    ("m06 text", encode_message(body=(AMQP_VALUE, "x")), "TextMessage", "x"),
    ("m06 null", encode_message(body=(AMQP_VALUE, None)), "TextMessage", None),
    ("m06 binary", encode_message(body=(AMQP_VALUE, b"x")), "BytesMessage", b"x"),
    ("m06 number", encode_message(body=(AMQP_VALUE, UShort(5))), "ObjectMessage", UShort(5)),
    ("m07 sequence", encode_message(body=(AMQP_SEQUENCE, [1, [2]])), "ObjectMessage", [1, [2]]),
    ("m08 map", encode_message(body=(AMQP_VALUE, {"a": {"b": 1}})), "ObjectMessage", {"a": {"b": 1}}),
    ("m10 a stream in a value", encode_message(annotations={"x-opt-jms-msg-type": Byte(4)}, body=(AMQP_VALUE, [1])),
     "StreamMessage", [1]),
    ("m12 data in pieces", encode_message(body=(DATA, b"a")) + encode_message(body=(DATA, b"b")),
     "BytesMessage", b"ab"),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "name", "body"), [row[1:] for row in FOREIGN], ids=[row[0] for row in FOREIGN])
async def test_rule_178_foreign_messages_get_the_type_that_fits(
    face: Face, payload: bytes, name: str, body: Any
) -> None:
    """By their annotation, else by section and content type; sent on, they keep type and body, and say so (M2)."""
    play = await stage(face, "auto")
    (message,) = await came(face, play, payload)
    assert kind(message) == name and message.body == body and type(message.body) is type(body)
    octets = await leaves(face, play, message)
    assert octets.body_octets() == ReceivedMessage(payload).body_octets()
    number = ["Message", "ObjectMessage", "MapMessage", "BytesMessage", "StreamMessage", "TextMessage"].index(name)
    assert octets.message_annotations()["x-opt-jms-msg-type"] == number
    (again,) = await sent(play, message)
    assert kind(again) == name and again.body == body


async def test_m24_m30_what_a_foreign_message_does_not_say(face: Face) -> None:
    """Its destination is the consumer's; it is not persistent, of priority 4, without end."""
    play = await stage(face, "auto")
    (message,) = await came(face, play, encode_message(body=(AMQP_VALUE, "x")))
    assert message.jms_destination == play.destination and message.jms_reply_to is None
    assert (message.jms_delivery_mode, message.jms_priority) == (DeliveryMode.NON_PERSISTENT, 4)
    assert (message.jms_message_id, message.jms_expiration, message.jms_timestamp) == (None, 0, 0)
    assert (message.jms_type, message.jms_correlation_id, message.delivery_count) == (None, None, 1)


async def test_m15_a_time_to_live_alone_counts_from_the_arrival(face: Face) -> None:
    """A sender that gave no absolute time: the receiver computes it."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    (message,) = await came(face, play, encode_message(header=Header(ttl=5000), body=(AMQP_VALUE, "x")))
    assert message.jms_expiration == int(clock() * 1000) + 5000


@pytest.mark.parametrize("kind", [Long, Timestamp])
async def test_m17_m18_a_foreign_delivery_time(face: Face, kind: type[Any]) -> None:
    """In either type it is kept to and shown, and goes before a delay, which counts from the arrival at the broker."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    due = int(clock() * 1000) + 10_000
    at = encode_message(
        annotations={"x-opt-delivery-time": kind(due), "x-opt-delivery-delay": Long(50_000)}, body=(AMQP_VALUE, "at")
    )
    after = encode_message(annotations={"x-opt-delivery-delay": Long(20_000)}, body=(AMQP_VALUE, "after"))
    with ForeignClient(face) as client:
        client.put("orders", at, after)
    consumer = await play.consumer()
    assert await consumer.receive_no_wait() is None
    clock.advance(11)
    first: Any = await consumer.receive(timeout=30)
    assert first.body == "at" and first.jms_delivery_time == due
    assert await consumer.receive_no_wait() is None
    clock.advance(10)
    second: Any = await consumer.receive(timeout=30)
    assert second.body == "after"


async def test_m02_m29_rule_179_a_message_is_sent_on_by_any_session(face: Face) -> None:
    """Body and properties go on octet for octet, and foreign annotations with them; what the mapping says is new."""
    play = await stage(face, "auto")
    payload = encode_message(
        annotations={
            "x-opt-jms-msg-type": Byte(5), "x-opt-jms-dest": Byte(1), "x-opt-qpid-tracestate": {"span": 1},
            "x-opt-to-type": "topic",
        },
        properties=["ID:old", b"user", "old", "kind", "back", IDENTITY, Symbol("text/plain; charset=latin-1")],
        application_properties={"a": UInt(1), "odd name": Timestamp(2)},
        body=(DATA, b"\xe9"),
    )  # fmt: skip
    (message,) = await came(face, play, payload)
    assert (message.body, message.jms_reply_to, message.jms_type) == ("é", Queue("back"), "kind")
    other = await play.beside("transacted")
    producer = await other.session.create_producer(other.session.create_queue("out"))
    await producer.send(message)
    await other.session.commit()
    with ForeignClient(face) as client:
        octets = ReceivedMessage(client.take("out")[0])
    was = ReceivedMessage(payload)
    assert octets.body_octets() == was.body_octets()
    assert octets.application_property_octets() == was.application_property_octets()
    assert octets.message_annotations() == {
        "x-opt-jms-msg-type": 5, "x-opt-jms-dest": 0, "x-opt-jms-reply-to": 0, "x-opt-qpid-tracestate": {"span": 1},
    }  # fmt: skip
    assert octets.properties()[1:7] == [None, "out", "kind", "back", IDENTITY, "text/plain; charset=latin-1"]
    assert octets.property(0) == message.jms_message_id != "ID:old"


async def test_m05_a_serialised_java_object_stays_octets(face: Face) -> None:
    """It shows its octets and its content type, and goes on unchanged."""
    java, octets = "application/x-java-serialized-object", b"\xac\xed\x00\x05t\x00\x01x"
    play = await stage(face, "auto")
    payload = encode_message(properties=[None] * 6 + [Symbol(java)], body=(DATA, octets))
    (message,) = await came(face, play, payload)
    (again,) = await sent(play, message)
    for each in (message, again):
        assert kind(each) == "ObjectMessage" and each.body == octets and each.content_type == java
    left = await leaves(face, play, again)
    assert (left.body(), left.property(6)) == ((DATA, octets), java)
