"""What a send makes of a message: its sections, by the fast way and by the general one, and of one that came in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.destination import Queue, TemporaryQueue, Topic
from jmsish.engine.codec import (
    AMQP_SEQUENCE,
    AMQP_VALUE,
    DATA,
    SUBJECT,
    Header,
    MessageTemplate,
    ReceivedMessage,
    check_sections,
    encode_for_send,
)
from jmsish.engine.values import encode, encode_described
from jmsish.errors import MessageFormatError
from jmsish.message import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage, message_from
from jmsish.types import Byte, Long, Symbol, Timestamp, UByte, UInt

NOW = 1_700_000_000_000
DELIVERY_ANNOTATIONS = encode_described(0x71, encode({Symbol("x-opt-d"): 1}))
FOOTER = encode_described(0x78, encode({Symbol("x-opt-f"): 1}))


def section(code: int, value: Any) -> bytes:
    return encode_described(code, encode(value))


def sent(message: Message, **given: Any) -> bytes:
    terms: dict[str, Any] = {
        "message_id": "ID:1", "timestamp": NOW, "now": NOW, "destination": Queue("q"), "delivery_mode": 2,
        "priority": 4, "ttl": 0,
    }  # fmt: skip
    return encode_for_send(message, **{**terms, **given})


SENT = [
    (Message(), 0, b""),
    (ObjectMessage({"a": 1}), 1, section(AMQP_VALUE, {"a": 1})),
    (MapMessage({"a": b"x"}), 2, section(AMQP_VALUE, {"a": b"x"})),
    (BytesMessage(b"ab"), 3, section(DATA, b"ab")),
    (StreamMessage([1, None]), 4, section(AMQP_SEQUENCE, [1, None])),
    (TextMessage("é"), 5, section(AMQP_VALUE, "é")),
    (TextMessage(None), 5, section(AMQP_VALUE, None)),
]


@pytest.mark.parametrize(("message", "number", "body"), SENT)
def test_m01_m09_types_and_bodies_that_are_sent(message: Message, number: int, body: bytes) -> None:
    received = ReceivedMessage(sent(message))
    assert received.body_octets() == body
    annotations = received.message_annotations()
    assert annotations == {"x-opt-jms-msg-type": number, "x-opt-jms-dest": 0}
    assert {type(value) for value in annotations.values()} == {Byte}
    assert received.properties()[6] == ("application/octet-stream" if number == 3 else None)
    check_sections(received.payload)


FIELDS = [
    ("message-id", 0, {"message_id": "ID:7"}, "ID:7"),
    ("no message-id", 0, {"message_id": None}, None),
    ("user-id", 1, {"jmsx_user_id": "ann"}, b"ann"),
    ("to", 2, {"destination": Topic("t")}, "t"),
    ("expiry", 8, {"ttl": 5000}, Timestamp(NOW + 5000)),
    ("no expiry", 8, {"ttl": 0}, None),
    ("timestamp", 9, {"timestamp": NOW}, Timestamp(NOW)),
    ("no timestamp", 9, {"timestamp": 0}, None),
]


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(("name", "index", "given", "value"), FIELDS)
def test_m13_fields_that_a_send_fills(name: str, index: int, given: dict[str, Any], value: Any, plain: bool) -> None:
    message = TextMessage("x")
    if not plain:
        message.properties["a"] = 1
    found = ReceivedMessage(sent(message, **given)).property(index)
    assert found == value and type(found) is type(value)


@given(
    type_code=st.sampled_from([Message(), TextMessage("%b%"), BytesMessage(b"%"), MapMessage({"%": 1})]),
    name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300),
    identity=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=300).map("ID:".__add__),
    mode=st.sampled_from([1, 2]),
    priority=st.integers(0, 9),
    ttl=st.sampled_from([0, 1, 2**32, 2**40]),
    timestamp=st.sampled_from([0, NOW]),
    user=st.none() | st.text(max_size=5),
)
def test_the_fast_way_gives_the_octets_of_the_general_one(
    type_code: Message,
    name: str,
    identity: str | None,
    mode: int,
    priority: int,
    ttl: int,
    timestamp: int,
    user: str | None,
) -> None:
    terms: dict[str, Any] = {
        "message_id": identity, "timestamp": timestamp, "destination": TemporaryQueue(name), "delivery_mode": mode,
        "priority": priority, "ttl": ttl, "jmsx_user_id": user,
    }  # fmt: skip
    fast = sent(type_code, **terms)
    type_code._plain = False
    try:
        assert sent(type_code, **terms) == fast
    finally:
        type_code._plain = True
    check_sections(fast)


@pytest.mark.parametrize("body", ["text", "x" * 300, b"octets", {"a": 1}, [1, 2], (1, 2), None])
@pytest.mark.parametrize("ttl", [0, 1000])
@pytest.mark.parametrize("identified", [True, False])
def test_a_template_gives_the_octets_of_a_message(body: Any, ttl: int, identified: bool) -> None:
    template = MessageTemplate(
        Topic("t"),
        prefixes=("q.", "t."),
        delivery_mode=1,
        priority=7,
        ttl=ttl,
        id_prefix="ID:%p:" if identified else None,
    )
    kinds: dict[type, type[Any]] = {str: TextMessage, bytes: BytesMessage, dict: MapMessage, list: StreamMessage}
    kinds |= {tuple: StreamMessage}
    for number in (9, 10, 123456):
        message = Message() if body is None else kinds[type(body)](body)
        identity = template.message_id(number)
        assert identity == (f"ID:%p:{number}" if identified else None)
        assert template.encode(body, number, NOW) == sent(
            message,
            message_id=identity,
            destination=Topic("t"),
            prefixes=("q.", "t."),
            delivery_mode=1,
            priority=7,
            ttl=ttl,
        )


def test_a_template_refuses_a_body_that_makes_no_message() -> None:
    with pytest.raises(MessageFormatError, match="a body of type object"):
        MessageTemplate(Queue("q"), id_prefix=None).encode(object(), 1, NOW)


def test_m16_m30_the_header_is_always_there_and_says_mode_priority_and_ttl() -> None:
    assert ReceivedMessage(sent(Message())).prefix.has_header
    assert ReceivedMessage(sent(Message())).header() == Header(durable=True)
    other = sent(Message(), delivery_mode=1, priority=9, ttl=500)
    assert ReceivedMessage(other).header() == Header(durable=False, priority=9, ttl=500)
    # A time to live beyond the 32 bits of the header is in the expiry time alone.
    assert ReceivedMessage(sent(Message(), ttl=2**40)).header().ttl == 2**32 - 1
    assert ReceivedMessage(sent(Message(), ttl=2**40)).property(8) == NOW + 2**40


def test_m16_jms_amqp_ttl_overrides_the_header_alone() -> None:
    message = TextMessage("x")
    message.properties["JMS_AMQP_TTL"] = 77
    received = ReceivedMessage(sent(message, ttl=500))
    assert received.header().ttl == 77 and received.property(8) == NOW + 500
    assert received.application_properties() == {}
    message.properties["JMS_AMQP_TTL"] = 0
    assert ReceivedMessage(sent(message, ttl=500)).header().ttl is None


def test_m17_a_delay_is_an_annotation_and_only_then() -> None:
    delayed = ReceivedMessage(sent(TextMessage("x"), delivery_time=NOW + 1))
    assert delayed.message_annotations()["x-opt-delivery-time"] == NOW + 1
    assert type(delayed.message_annotations()["x-opt-delivery-time"]) is Long
    assert "x-opt-delivery-time" not in ReceivedMessage(sent(TextMessage("x"))).message_annotations()


def test_m22_the_user_id_is_never_the_applications() -> None:
    message = TextMessage("x")
    message.properties["JMSXUserID"] = "admin"
    assert ReceivedMessage(sent(message)).property(1) is None and "JMSXUserID" not in message.properties
    message.properties["JMSXUserID"] = "admin"
    assert ReceivedMessage(sent(message, jmsx_user_id="ann")).property(1) == b"ann"
    assert message.properties["JMSXUserID"] == "ann"


def test_m23_kinds_are_annotated() -> None:
    message = TextMessage("x")
    message.jms_reply_to = TemporaryQueue("r")
    annotations = ReceivedMessage(sent(message, destination=Topic("t"))).message_annotations()
    assert annotations == {"x-opt-jms-msg-type": 5, "x-opt-jms-dest": 1, "x-opt-jms-reply-to": 2}


def test_m25_prefixes_go_before_names_on_the_wire() -> None:
    message = TextMessage("x")
    message.jms_reply_to = Queue("r")
    received = ReceivedMessage(sent(message, destination=Topic("t"), prefixes=("q.", "t.")))
    assert (received.property(2), received.property(4)) == ("t.t", "q.r")
    temporary = ReceivedMessage(sent(TextMessage("x"), destination=TemporaryQueue("n"), prefixes=("q.", "t.")))
    assert temporary.property(2) == "n"


def test_a_send_sets_the_headers_of_the_message() -> None:
    message = TextMessage("x")
    message.jms_message_id, message.jms_priority, message.jms_expiration, message.jms_timestamp = "ID:own", 1, 2, 3
    sent(message, message_id="ID:9", priority=8, ttl=10, destination=Topic("t"), delivery_mode=1)
    assert (message.jms_message_id, message.jms_priority, message.jms_expiration) == ("ID:9", 8, NOW + 10)
    assert (message.jms_timestamp, message.jms_delivery_time, message.jms_destination) == (NOW, NOW, Topic("t"))
    assert message.jms_delivery_mode == 1 and message.jms_delivery_mode.name == "NON_PERSISTENT"
    sent(message, message_id=None, timestamp=0, delivery_time=NOW + 5)
    assert (message.jms_message_id, message.jms_timestamp, message.jms_expiration) == (None, 0, 0)
    assert message.jms_delivery_time == NOW + 5


def test_a_message_that_cannot_be_encoded_stays_as_it_was() -> None:
    message = TextMessage("\ud800")
    with pytest.raises(ValueError, match="surrogates"):
        sent(message)
    assert message.jms_message_id is None


# ---------------------------------------------------------------- sending on what was received

FORWARDED = (
    section(0x70, [True, UByte(9), UInt(50), None, UInt(2)])
    + DELIVERY_ANNOTATIONS
    + section(
        0x72,
        {
            Symbol("x-opt-jms-msg-type"): Byte(5),
            Symbol("x-opt-to-type"): "queue",
            Symbol("x-opt-qpid-tracestate"): {"a": 1},
        },
    )
    + section(
        0x73,
        ["other", b"user", "old", "kind", "back", "corr", Symbol("text/plain; charset=latin-1"), Symbol("identity")]
        + [Timestamp(1), Timestamp(2), "group", UInt(5), "reply-group"],
    )
    + section(0x74, {"a": UInt(1), "odd name": Timestamp(2)})
    + section(DATA, b"\xe9")
    + FOOTER
)


def test_a_received_message_goes_on_with_the_octets_of_its_body_and_properties() -> None:
    message = message_from(ReceivedMessage(FORWARDED), Queue("old"))
    received = ReceivedMessage(sent(message, destination=Queue("new"), message_id="ID:new"))
    assert received.body_octets() == section(DATA, b"\xe9")
    assert received.application_property_octets() == section(0x74, {"a": UInt(1), "odd name": Timestamp(2)})
    assert received.header() == Header(durable=True)
    assert received.properties() == [
        "ID:new", None, "new", "kind", "back", "corr", "text/plain; charset=latin-1", "identity", None, NOW, "group", 5,
        "reply-group",
    ]  # fmt: skip
    assert received.delivery_annotations() == {}


def test_m02_m29_annotations_of_the_mapping_are_made_anew_and_others_kept() -> None:
    message = message_from(ReceivedMessage(FORWARDED), Queue("old"))
    annotations = ReceivedMessage(sent(message, destination=Topic("new"))).message_annotations()
    assert annotations == {
        "x-opt-jms-msg-type": 5, "x-opt-jms-dest": 1, "x-opt-jms-reply-to": 0, "x-opt-qpid-tracestate": {"a": 1},
    }  # fmt: skip


def test_a_changed_body_and_changed_properties_are_encoded_anew() -> None:
    message = message_from(ReceivedMessage(FORWARDED), Queue("old"))
    assert isinstance(message, TextMessage) and message.text == "é"
    message.clear_body()
    message.text = "new"
    message.clear_properties()
    message.properties["b"] = True
    received = ReceivedMessage(sent(message))
    assert received.body() == (AMQP_VALUE, "new") and received.application_properties() == {"b": True}
    assert received.properties()[6:8] == [None, None] and received.properties()[10:] == [None, None, None]
    assert received.property(SUBJECT) == "kind"


def test_annotations_of_names_that_are_no_symbols_go_on_with_their_message() -> None:
    strange = encode_described(0x72, encode({"größe": "XL"}))
    came = message_from(ReceivedMessage(strange + section(AMQP_VALUE, "m1")))
    assert ReceivedMessage(sent(came)).message_annotations()["größe"] == "XL"


@pytest.mark.parametrize("size", [0, 1, 255, 256])
def test_texts_of_all_numbers_of_digits_are_as_the_whole_message_would_be(size):
    """The usual text is one format, made for as many digits as its number has; it says the same as all others."""
    terms = {"prefixes": ("queue%d://", ""), "delivery_mode": 1, "priority": 9}
    template = MessageTemplate(Queue("100%b"), id_prefix="ID:%s:", **terms)
    for number in (0, 1, 2, 9, 10, 11, 99, 100, 7, 100_000, 100_001, 999_999, 1_000_000):
        text = chr(ord("a") + number % 26) * size
        payload = encode_for_send(
            TextMessage(text), message_id=f"ID:%s:{number}", timestamp=NOW, now=NOW, destination=Queue("100%b"), ttl=0,
            delivery_time=0, **terms,
        )  # fmt: skip
        assert template.encode_text(text, number, NOW) == payload


def test_a_text_of_few_characters_and_many_octets_is_a_long_one():
    template = MessageTemplate(Queue("q"), id_prefix="ID:")
    first, second = (template.encode_text("\u20ac" * 86, number, NOW) for number in (1, 2))
    assert ReceivedMessage(first).body() == ReceivedMessage(second).body() == (AMQP_VALUE, "\u20ac" * 86)
