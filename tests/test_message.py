"""Messages as they come in: which type they are, and their headers. Facts M1 to M30 of the JMS mapping by number."""

from __future__ import annotations

import copy
import pickle
from typing import Any
from uuid import UUID

import pytest

from jmsish.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsish.engine.codec import AMQP_SEQUENCE, AMQP_VALUE, DATA, Header, ReceivedMessage, encode_message
from jmsish.errors import MessageFormatError
from jmsish.message import (
    BytesMessage,
    MapMessage,
    Message,
    ObjectMessage,
    StreamMessage,
    TextMessage,
    body_to_message,
    message_from,
)
from jmsish.modes import DeliveryMode
from jmsish.types import Array, Byte, Char, Decimal32, Described, Float, Long, Symbol, Timestamp, UInt, ULong

TYPE = "x-opt-jms-msg-type"
CONTENT_TYPE = 6


def incoming(
    body: tuple[int, Any] = (0, None),
    *,
    kind: int | None = None,
    content_type: str | None = None,
    fields: dict[int, Any] | None = None,
    header: Header | None = None,
    annotations: dict[str, Any] | None = None,
    properties: dict[str, Any] | None = None,
    default: Destination | None = None,
    prefixes: tuple[str, str] = ("", ""),
    arrival: int = 0,
) -> Message:
    """A message made of these parts, as it comes in."""
    positions = dict(fields or {})
    if content_type is not None:
        positions[CONTENT_TYPE] = Symbol(content_type)
    marks = dict(annotations or {})
    if kind is not None:
        marks[TYPE] = Byte(kind)
    payload = encode_message(
        header=header,
        annotations=marks,
        properties=[positions.get(index) for index in range(13)] if positions else (),
        application_properties=properties,
        body=body,
    )
    return message_from(ReceivedMessage(payload), default, prefixes, arrival)


# ---------------------------------------------------------------- type and body

ANNOTATED = [
    (0, (0, None), Message, None),
    (1, (AMQP_VALUE, {"a": 1}), ObjectMessage, {"a": 1}),
    (2, (AMQP_VALUE, {"a": 1}), MapMessage, {"a": 1}),
    (3, (DATA, b"ab"), BytesMessage, b"ab"),
    (4, (AMQP_SEQUENCE, [1, "b"]), StreamMessage, [1, "b"]),
    (5, (AMQP_VALUE, "text"), TextMessage, "text"),
]


@pytest.mark.parametrize(("number", "body", "kind", "value"), ANNOTATED)
def test_m01_the_annotation_says_the_type(number: int, body: tuple[int, Any], kind: type, value: Any) -> None:
    message = incoming(body, kind=number)
    assert type(message) is kind and message.body == value


@pytest.mark.parametrize("number", [Byte(-1), Byte(6), "text", True, 99, 1.0])
def test_m01_a_type_that_there_is_not_is_refused(number: Any) -> None:
    with pytest.raises(MessageFormatError, match="the types of messages are 0 to 5"):
        incoming((AMQP_VALUE, "x"), annotations={TYPE: number})


def test_m02_the_annotation_is_not_a_property() -> None:
    assert dict(incoming((AMQP_VALUE, "x"), kind=5).properties) == {"JMSXDeliveryCount": 1}


def test_m03_the_annotation_wins_over_the_body() -> None:
    assert type(incoming((AMQP_VALUE, {"a": 1}), kind=2)) is MapMessage
    assert type(incoming((AMQP_VALUE, {"a": 1}))) is ObjectMessage
    assert type(incoming((DATA, b"x"), kind=5, content_type="application/octet-stream")) is TextMessage


JAVA = "application/x-java-serialized-object"
OCTETS = "application/octet-stream"
TEXTUAL = [
    "text/plain",
    "text/html; charset=utf-8",
    "TEXT/XML",
    "application/xml",
    "application/xml-dtd",
    "application/json",
    "application/javascript",
    "application/ecmascript",
    "application/soap+xml",
    "application/problem+json",
]

NO_BODY = [
    (None, BytesMessage, b""),
    (OCTETS, BytesMessage, b""),
    (JAVA, ObjectMessage, None),
    *[(textual, TextMessage, None) for textual in TEXTUAL],
    ("image/png", Message, None),
    ("text/plain; charset=unheard-of", Message, None),
    ("nonsense", Message, None),
]


@pytest.mark.parametrize(("content_type", "kind", "value"), NO_BODY)
def test_m04_without_a_body_the_content_type_decides(content_type: str | None, kind: type, value: Any) -> None:
    message = incoming(content_type=content_type)
    assert type(message) is kind and message.body == value


DATA_BODIES = [
    (None, b"\xe9", BytesMessage, b"\xe9"),
    (OCTETS, b"\xe9", BytesMessage, b"\xe9"),
    (JAVA, b"\xac\xed\x00\x05", ObjectMessage, b"\xac\xed\x00\x05"),
    *[(textual, "é".encode(), TextMessage, "é") for textual in TEXTUAL],
    ("text/plain; charset=iso-8859-1", b"\xe9", TextMessage, "é"),
    ('text/plain;format=flowed; Charset="UTF-16BE"', b"\x00\xe9", TextMessage, "é"),
    ("text/plain; charset=unheard-of", b"\xe9", BytesMessage, b"\xe9"),
    *[(f"text/plain; charset={none}", b"\xe9", BytesMessage, b"\xe9") for none in ("hex", "rot13", "undefined", "zip")],
    *[
        (f"text/plain; charset={codec}", b"xn--a-b", BytesMessage, b"xn--a-b")  # hours for some megabytes
        for codec in ("punycode", "IDNA", "unicode_escape", "raw-unicode-escape")
    ],
    ("text/plain; charset=a\0b", b"\xe9", BytesMessage, b"\xe9"),
    ("text/plain; charset=", b"\xe9", BytesMessage, b"\xe9"),
    ("image/png", b"\xe9", BytesMessage, b"\xe9"),
    ("text", b"\xe9", BytesMessage, b"\xe9"),
]


@pytest.mark.parametrize(("content_type", "octets", "kind", "value"), DATA_BODIES)
def test_m05_data_by_content_type(content_type: str | None, octets: bytes, kind: type, value: Any) -> None:
    message = incoming((DATA, octets), content_type=content_type)
    assert type(message) is kind and message.body == value


VALUE_BODIES = [
    (None, TextMessage),
    ("text", TextMessage),
    (b"ab", BytesMessage),
    ({"a": 1}, ObjectMessage),
    ([1, 2], ObjectMessage),
    (5, ObjectMessage),
    (True, ObjectMessage),
    (UUID(int=1), ObjectMessage),
    (Symbol("s"), ObjectMessage),
    (Char("c"), ObjectMessage),
    (Decimal32(b"abcd"), ObjectMessage),
    (Described(ULong(5), [1]), ObjectMessage),
    (Array([1], 0x71), ObjectMessage),
]


@pytest.mark.parametrize(("value", "kind"), VALUE_BODIES)
def test_m06_m08_an_amqp_value_by_its_type(value: Any, kind: type) -> None:
    message = incoming((AMQP_VALUE, value))
    assert type(message) is kind and message.body == value and type(message.body) is type(value)


def test_m07_a_sequence_is_an_object() -> None:
    message = incoming((AMQP_SEQUENCE, [1, "b"]))
    assert type(message) is ObjectMessage and message.body == [1, "b"]


READABLE = [
    (4, (AMQP_SEQUENCE, [1]), [1]),
    (4, (AMQP_VALUE, [1]), [1]),
    (4, (AMQP_VALUE, None), []),
    (4, (0, None), []),
    (3, (DATA, b"ab"), b"ab"),
    (3, (AMQP_VALUE, b"ab"), b"ab"),
    (3, (AMQP_VALUE, None), b""),
    (3, (0, None), b""),
    (2, (AMQP_VALUE, None), {}),
    (2, (0, None), {}),
    (5, (DATA, "é".encode()), "é"),
    (5, (0, None), None),
    (1, (DATA, b"ab"), b"ab"),
    (1, (0, None), None),
    (0, (AMQP_VALUE, "ignored"), None),
]


@pytest.mark.parametrize(("number", "body", "value"), READABLE)
def test_m10_bodies_that_a_type_reads(number: int, body: tuple[int, Any], value: Any) -> None:
    assert incoming(body, kind=number).body == value


UNREADABLE = [
    (2, (AMQP_VALUE, "text")),
    (2, (DATA, b"x")),
    (3, (AMQP_VALUE, "text")),
    (3, (AMQP_SEQUENCE, [1])),
    (4, (AMQP_VALUE, {"a": 1})),
    (4, (DATA, b"x")),
    (5, (AMQP_VALUE, 5)),
    (5, (AMQP_SEQUENCE, ["x"])),
    (5, (DATA, b"\xff")),
]


@pytest.mark.parametrize(("number", "body"), UNREADABLE)
def test_a_body_that_is_not_what_the_message_says_is_refused_when_read(number: int, body: tuple[int, Any]) -> None:
    message = incoming(body, kind=number)
    with pytest.raises(MessageFormatError):
        _ = message.body


def test_m12_several_data_sections_are_one_body() -> None:
    one = encode_message(body=(DATA, b"ab"))
    assert message_from(ReceivedMessage(one + one)).body == b"abab"


@pytest.mark.parametrize("tail", [b"\x00Sw\xa1\x02\xc3\x28", b"\x00Sw\xa1\x05ab", b"\x00Sw\xff"])
def test_octets_that_are_no_body_are_a_format_error(tail: bytes) -> None:
    message = message_from(ReceivedMessage(encode_message(annotations={TYPE: Byte(5)}) + tail))
    with pytest.raises(MessageFormatError, match="the body of the message cannot be read"):
        _ = message.body


def test_octets_that_are_no_properties_are_a_format_error() -> None:
    message = message_from(
        ReceivedMessage(encode_message(annotations={TYPE: Byte(5)}) + b"\x00Ss\xc0\x05\x01\xa1\xff\x00\x00")
    )
    with pytest.raises(MessageFormatError):
        _ = message.jms_message_id
    message = message_from(ReceivedMessage(encode_message(annotations={TYPE: Byte(5)}) + b"\x00St\xc1\x02\x03\x40"))
    with pytest.raises(MessageFormatError, match="application properties"):
        _ = message.properties["a"]


# ---------------------------------------------------------------- headers

NOW = 1_700_000_000_000

HEADERS = [
    ("jms_message_id", {0: "ID:1"}, "ID:1", None),
    ("jms_correlation_id", {5: "mine"}, "mine", None),
    ("jms_type", {3: "kind"}, "kind", None),
    ("jms_timestamp", {9: Timestamp(NOW)}, NOW, 0),
    ("jms_destination", {2: "q"}, Queue("q"), None),
    ("jms_reply_to", {4: "r"}, Queue("r"), None),
    ("jms_expiration", {8: Timestamp(NOW)}, NOW, 0),
]


@pytest.mark.parametrize(("name", "fields", "value", "absent"), HEADERS)
def test_m13_headers_of_the_properties_section(name: str, fields: dict[int, Any], value: Any, absent: Any) -> None:
    assert getattr(incoming((AMQP_VALUE, "x"), fields=fields), name) == value
    for empty in (incoming((AMQP_VALUE, "x")), incoming((AMQP_VALUE, "x"), fields={6: None}), TextMessage("x")):
        assert getattr(empty, name) == absent


def test_m13_properties_of_the_properties_section() -> None:
    message = incoming(fields={1: b"ann", 10: "g", 11: UInt(2**32 - 1), 12: "rg"})
    assert dict(message.properties) == {
        "JMSXGroupID": "g",
        "JMSXGroupSeq": -1,
        "JMSXUserID": "ann",
        "JMSXDeliveryCount": 1,
        "JMS_AMQP_REPLY_TO_GROUP_ID": "rg",
    }
    assert incoming(fields={1: b"\xff"}).properties["JMSXUserID"] == "\ufffd"


def test_m13_m30_mode_and_priority_of_the_header() -> None:
    absent = incoming((AMQP_VALUE, "x"))
    assert (absent.jms_delivery_mode, absent.jms_priority) == (DeliveryMode.NON_PERSISTENT, 4)
    message = incoming((AMQP_VALUE, "x"), header=Header(durable=True, priority=7))
    assert (message.jms_delivery_mode, message.jms_priority) == (DeliveryMode.PERSISTENT, 7)
    assert incoming((AMQP_VALUE, "x"), header=Header(priority=200)).jms_priority == 9


@pytest.mark.parametrize(
    ("before", "count", "again"), [(0, 1, False), (1, 2, True), (6, 7, True), (2**32 - 1, 2**31 - 1, True)]
)
def test_m14_delivery_count_and_redelivered(before: int, count: int, again: bool) -> None:
    message = incoming(header=Header(delivery_count=before))
    assert (message.delivery_count, message.jms_redelivered) == (count, again)
    assert message.properties["JMSXDeliveryCount"] == count
    assert incoming((AMQP_VALUE, "x")).delivery_count == 1 and not incoming((AMQP_VALUE, "x")).jms_redelivered


def test_a_message_that_was_not_received_has_no_delivery_count() -> None:
    message = TextMessage("x")
    assert message.delivery_count == 0 and "JMSXDeliveryCount" not in message.properties


def test_m15_expiration_by_ttl_counts_from_the_arrival() -> None:
    assert incoming(header=Header(ttl=500), arrival=NOW).jms_expiration == NOW + 500
    assert incoming(header=Header(ttl=500), fields={8: Timestamp(7)}, arrival=NOW).jms_expiration == 7
    assert incoming(header=Header(), arrival=NOW).jms_expiration == 0


@pytest.mark.parametrize("value", [Long(NOW), Timestamp(NOW)])
def test_m17_delivery_time(value: Any) -> None:
    assert incoming(annotations={"x-opt-delivery-time": value}).jms_delivery_time == NOW
    assert incoming(fields={9: Timestamp(5)}).jms_delivery_time == 5


@pytest.mark.parametrize("value", [5, "soon", UInt(5), True])
def test_m17_a_delivery_time_of_another_type_is_refused(value: Any) -> None:
    message = incoming(annotations={"x-opt-delivery-time": value})
    with pytest.raises(MessageFormatError, match="neither a long nor a timestamp"):
        _ = message.jms_delivery_time


DESTINATIONS = [
    ({"x-opt-jms-dest": Byte(0)}, Topic("d"), Queue("x")),
    ({"x-opt-jms-dest": Byte(1)}, Queue("d"), Topic("x")),
    ({"x-opt-jms-dest": Byte(2)}, Queue("d"), TemporaryQueue("x")),
    ({"x-opt-jms-dest": Byte(3)}, Queue("d"), TemporaryTopic("x")),
    ({"x-opt-to-type": "queue"}, Topic("d"), Queue("x")),
    ({"x-opt-to-type": "topic"}, Queue("d"), Topic("x")),
    ({"x-opt-to-type": "temporary,queue"}, Topic("d"), TemporaryQueue("x")),
    ({"x-opt-to-type": "topic, temporary"}, Queue("d"), TemporaryTopic("x")),
    ({"x-opt-to-type": "else"}, Topic("d"), Topic("x")),
    ({"x-opt-jms-dest": Byte(9)}, Topic("d"), Topic("x")),
    ({}, Queue("d"), Queue("x")),
    ({}, TemporaryTopic("d"), TemporaryTopic("x")),
    ({}, None, Queue("x")),
]


@pytest.mark.parametrize(("annotations", "default", "place"), DESTINATIONS)
def test_m23_m24_kind_of_the_destination(annotations: dict[str, Any], default: Any, place: Destination) -> None:
    message = incoming(fields={2: "x"}, annotations=annotations, default=default)
    assert message.jms_destination == place
    names = {"x-opt-jms-dest": "x-opt-jms-reply-to", "x-opt-to-type": "x-opt-reply-type"}
    reply = {names[name]: value for name, value in annotations.items()}
    assert incoming(fields={4: "x"}, annotations=reply, default=default).jms_reply_to == place


def test_m24_a_missing_address_is_the_consumers_own() -> None:
    own = TemporaryQueue("own", owner=object())
    assert incoming(default=own).jms_destination is own and incoming(fields={2: ""}, default=own).jms_destination is own
    assert incoming(fields={2: "own"}, default=own).jms_destination is own
    assert incoming(default=own).jms_reply_to is None and incoming().jms_destination is None


def test_m25_prefixes_are_taken_off() -> None:
    message = incoming(
        fields={2: "q.x", 4: "t.y"},
        annotations={"x-opt-jms-reply-to": Byte(1)},
        default=Queue("x"),
        prefixes=("q.", "t."),
    )
    assert (message.jms_destination, message.jms_reply_to) == (Queue("x"), Topic("y"))
    temporary = incoming(fields={2: "q.x"}, annotations={"x-opt-jms-dest": Byte(2)}, prefixes=("q.", "t."))
    assert temporary.jms_destination == TemporaryQueue("q.x")
    assert incoming(fields={2: "q."}, prefixes=("q.", "")).jms_destination == Queue("q.")


SETTABLE = [
    ("jms_message_id", "ID:x", [5]),
    ("jms_correlation_id", "x", [5]),
    ("jms_correlation_id_bytes", b"x", ["x"]),
    ("jms_reply_to", Queue("x"), ["x"]),
    ("jms_destination", Topic("x"), ["x"]),
    ("jms_delivery_mode", DeliveryMode.NON_PERSISTENT, [3, "x"]),
    ("jms_redelivered", True, [1]),
    ("jms_type", "x", [5]),
    ("jms_expiration", 5, ["x", True, 2**63]),
    ("jms_priority", 9, [10, -1, "x", True]),
    ("jms_timestamp", 5, [1.5]),
    ("jms_delivery_time", 5, [None]),
]


@pytest.mark.parametrize("received", [True, False])
@pytest.mark.parametrize(("name", "value", "wrong"), SETTABLE)
def test_headers_can_be_set_on_any_message(name: str, value: Any, wrong: list[Any], received: bool) -> None:
    message = incoming((AMQP_VALUE, "x"), kind=5) if received else TextMessage("x")
    setattr(message, name, value)
    assert getattr(message, name) == value
    for bad in wrong:
        with pytest.raises((TypeError, ValueError)):
            setattr(message, name, bad)
    assert getattr(message, name) == value


@pytest.mark.parametrize(
    "name", ["jms_message_id", "jms_correlation_id", "jms_correlation_id_bytes", "jms_reply_to", "jms_type"]
)
def test_some_headers_can_be_none(name: str) -> None:
    message = TextMessage("x")
    setattr(message, name, None)
    assert getattr(message, name) is None


# ---------------------------------------------------------------- what all have in common

BODIES = [
    ("text", TextMessage, "text"),
    ("", TextMessage, ""),
    (b"ab", BytesMessage, b"ab"),
    (bytearray(b"ab"), BytesMessage, b"ab"),
    ({"a": 1}, MapMessage, {"a": 1}),
    ([1, "b"], StreamMessage, [1, "b"]),
    ((1, "b"), StreamMessage, [1, "b"]),
    (None, Message, None),
]


@pytest.mark.parametrize(("body", "kind", "value"), BODIES)
def test_a_body_makes_the_message_that_fits(body: Any, kind: type, value: Any) -> None:
    message = body_to_message(body)
    assert type(message) is kind and message.body == value


@pytest.mark.parametrize("body", [5, 1.5, True, object(), {1, 2}])
def test_other_bodies_need_an_object_message(body: Any) -> None:
    with pytest.raises(MessageFormatError, match="an ObjectMessage takes any other value"):
        body_to_message(body)


@pytest.mark.parametrize("kind", [Message, TextMessage, BytesMessage, MapMessage, StreamMessage, ObjectMessage])
def test_a_message_without_body_is_still_something(kind: Any) -> None:
    assert bool(kind()) and kind() != kind() and len({kind(), kind()}) == 2
    assert repr(kind()).startswith(f"<{kind.__name__} not sent")


def test_repr_shows_id_and_the_beginning_of_a_text() -> None:
    message = incoming((AMQP_VALUE, "x" * 50), kind=5, fields={0: "ID:7"})
    assert repr(message) == "<TextMessage ID:7>"
    assert message.body and repr(message) == f"<TextMessage ID:7 {'x' * 40 + '…'!r}>"


def test_an_attribute_that_there_is_not() -> None:
    with pytest.raises(AttributeError, match="'TextMessage' object has no attribute 'txt'"):
        _ = TextMessage("x").txt
    with pytest.raises(AttributeError):
        TextMessage("x").txt = 1


def test_messages_can_be_copied_and_pickled() -> None:
    message = TextMessage("x")
    message.properties["a"] = 1
    for twin in (copy.copy(message), pickle.loads(pickle.dumps(message))):
        assert (twin.body, dict(twin.properties)) == ("x", {"a": 1})


def test_acknowledge_asks_the_owner_and_passes_its_answer_on() -> None:
    class Owner:
        def acknowledge(self, message: Message) -> Any:
            return ["acknowledged", message]

    message = TextMessage("x")
    assert message.acknowledge() is None
    message._owner = Owner()
    assert message.acknowledge() == ["acknowledged", message]


ASSIGNABLE = [
    (TextMessage("x"), [str, object], [bytes, dict, int]),
    (TextMessage(None), [str, int, object], []),
    (BytesMessage(b"x"), [bytes, object], [str, bytearray]),
    (BytesMessage(b""), [bytes, str], []),
    (MapMessage({"a": 1}), [dict, object], [str, list]),
    (MapMessage(), [dict, str], []),
    (ObjectMessage(5), [int, object], [str]),
    (ObjectMessage(Float(1)), [float], [int]),
    (ObjectMessage(None), [int, str], []),
    (Message(), [str, int, object], []),
    (StreamMessage([1]), [], [list, object]),
    (StreamMessage(), [], [list, object]),
]


@pytest.mark.parametrize(("message", "fitting", "others"), ASSIGNABLE, ids=repr)
def test_rule_118_rule_120_get_body_and_whether_it_can(
    message: Message, fitting: list[type], others: list[type]
) -> None:
    for kind in fitting:
        assert message.is_body_assignable_to(kind)
        found = message.get_body(kind)
        assert found == (message.body or None) if found is not None else not message.body
    for kind in others:
        assert not message.is_body_assignable_to(kind)
        with pytest.raises(MessageFormatError, match="cannot be had as"):
            message.get_body(kind)
