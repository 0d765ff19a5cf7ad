"""Values that JMS has no type for, in messages of other AMQP clients; and messages of other implementations of JMS."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from jmsish.destination import Queue
from jmsish.engine.codec import AMQP_SEQUENCE, AMQP_VALUE, DATA, ReceivedMessage, encode_for_send, encode_message
from jmsish.errors import MessageFormatError
from jmsish.message import (
    BytesMessage,
    MapMessage,
    Message,
    ObjectMessage,
    StreamMessage,
    TextMessage,
    body_to_message,
    is_message,
    message_from,
    tell,
)
from jmsish.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

UUID_5 = UUID(int=5)
EVERY_READ = ("boolean", "byte", "short", "int", "long", "float", "double", "string", "char", "bytes")

# A value of AMQP, and each way it can be read as a value of JMS: one rule for each type.
RULES: list[tuple[Any, dict[str, Any]]] = [
    (UByte(200), {"short": 200, "int": 200, "long": 200, "string": "200"}),
    (UShort(60000), {"int": 60000, "long": 60000, "string": "60000"}),
    (UInt(4_000_000_000), {"long": 4_000_000_000, "string": "4000000000"}),
    (ULong(5), {"long": 5, "string": "5"}),
    (ULong(2**63), {"boolean": False, "float": 2.0**63, "double": 2.0**63, "string": str(2**63)}),
    (Timestamp(-5), {"long": -5, "string": "-5"}),
    (Symbol("7"), {"boolean": False, "byte": 7, "short": 7, "int": 7, "long": 7, "float": 7.0, "double": 7.0,
                   "string": "7"}),
    (UUID_5, {"boolean": False, "string": str(UUID_5)}),
    (Char("7"), {"char": "7", "string": "7"}),
    (Decimal32(b"1234"), {}),
    (Decimal64(b"12345678"), {}),
    (Decimal128(b"1234567812345678"), {}),
    ([1], {}),
    ({"a": 1}, {}),
    (Array([1], 0x71), {}),
    (Described(ULong(5), 1), {}),
]  # fmt: skip
IDS = [f"{type(value).__name__}-{value!r}"[:30] for value, _ in RULES]


def refused(read: Any) -> None:
    with pytest.raises((MessageFormatError, ValueError)):
        read()


@pytest.mark.parametrize("read", EVERY_READ)
@pytest.mark.parametrize(("value", "readable"), RULES, ids=IDS)
def test_m28_how_a_foreign_value_in_a_body_is_read(value: Any, readable: dict[str, Any], read: str) -> None:
    mapping: Any = received((AMQP_VALUE, {"a": value}), kind=2)
    stream: Any = received((AMQP_SEQUENCE, [value]), kind=4)
    for get in (lambda: getattr(mapping, f"get_{read}")("a"), getattr(stream, f"read_{read}")):
        if read in readable:
            assert get() == readable[read]
        else:
            refused(get)
    found = mapping.get_object("a")
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("read", EVERY_READ[:8])
@pytest.mark.parametrize(("value", "readable"), RULES, ids=IDS)
def test_m28_how_a_foreign_value_of_a_property_is_read(value: Any, readable: dict[str, Any], read: str) -> None:
    # A property of type char is a text, as JMS has no such properties.
    readable = RULES[6][1] if isinstance(value, Char) else readable
    message = received((AMQP_VALUE, "x"), kind=5, properties={"a": value})
    get = getattr(message, f"get_{read}_property")
    if read in readable:
        assert get("a") == readable[read]
    else:
        refused(lambda: get("a"))
    found = message.get_object_property("a")
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("value", [value for value, _ in RULES], ids=IDS)
def test_m28_foreign_values_go_on_as_they_came(value: Any) -> None:
    message = received((AMQP_VALUE, {"a": value}), kind=2, properties={"a": value})
    again: Any = through(message)
    for found in (again.get_object("a"), again.properties["a"]):
        assert found == value and type(found) is type(value)


def received(
    body: tuple[int, Any] = (0, None), *, kind: int | None = None, content_type: str | None = None, **given: Any
) -> Message:
    payload = encode_message(
        annotations={} if kind is None else {"x-opt-jms-msg-type": Byte(kind)},
        properties=[] if content_type is None else [None] * 6 + [Symbol(content_type)],
        application_properties=given.get("properties"),
        body=body,
    )
    return message_from(ReceivedMessage(payload), Queue("q"))


def message_octets(message: Message) -> bytes:
    return encode_for_send(
        message, message_id="ID:1", timestamp=5, now=5, destination=Queue("q"), delivery_mode=2, priority=4, ttl=0
    )


def through(message: Message) -> Message:
    return message_from(ReceivedMessage(message_octets(message)), Queue("q"))


# ---------------------------------------------------------------- what kind of message it is

JAVA = "application/x-java-serialized-object"
SERIALIZED = b"\xac\xed\x00\x05t\x00\x01x"


@pytest.mark.parametrize("kind", [None, 1])
def test_m05_a_serialised_java_object_stays_octets_and_goes_on_unchanged(kind: int | None) -> None:
    message = received((DATA, SERIALIZED), kind=kind, content_type=JAVA)
    for each in (message, through(message), through(through(message))):
        assert type(each) is ObjectMessage and each.body == SERIALIZED and each.content_type == JAVA
        assert each.get_body(bytes) == SERIALIZED and not each.is_body_assignable_to(str)
        assert "JMS_AMQP_TYPED_ENCODING" not in each.properties
    message.clear_body()
    assert message.content_type is None and message.body is None
    message.body = b"of AMQP"  # type: ignore[misc]
    assert through(message).body == b"of AMQP" and through(message).content_type is None


def test_rule_178_text_that_is_not_in_its_character_set_arrives_as_octets() -> None:
    message = received((DATA, b"\xff\xfe"), content_type="text/plain; charset=utf-8")
    assert type(message) is BytesMessage and message.body == b"\xff\xfe"


@pytest.mark.parametrize("content_type", ["text/plain", "image/png", None])
def test_the_content_type_shows(content_type: str | None) -> None:
    assert received((DATA, b"x"), content_type=content_type).content_type == content_type
    assert TextMessage("x").content_type is None


def test_m12_several_sequences_are_one_body() -> None:
    one = encode_message(body=(AMQP_SEQUENCE, [1, "a"]))
    for kind, of in ((4, StreamMessage), (None, ObjectMessage)):
        marked = encode_message(annotations={} if kind is None else {"x-opt-jms-msg-type": Byte(kind)})
        message = message_from(ReceivedMessage(marked + one + one))
        assert type(message) is of and message.body == [1, "a", 1, "a"]


# ---------------------------------------------------------------- messages of other implementations


class Elsewhere:
    """A message as another library might have it."""

    def __init__(self, body: Any, **headers: Any) -> None:
        self.body = body
        self.properties: dict[str, Any] = {"p": 1}
        self.jms_correlation_id = "c"
        self.jms_type = "t"
        self.jms_reply_to = Queue("r")
        self.jms_message_id: str | None = None
        self.jms_priority = 0
        self.__dict__.update(headers)


BODIES = [("x", TextMessage), (b"x", BytesMessage), ({"a": 1}, MapMessage), ([1], StreamMessage), (5, ObjectMessage)]


@pytest.mark.parametrize(("body", "kind"), [*BODIES, (None, Message)])
def test_rule_179_a_message_of_another_implementation_is_sent_as_one_of_ours(body: Any, kind: type) -> None:
    message = body_to_message(Elsewhere(body))
    found = through(message)
    assert type(found) is kind and found.body == body
    assert (found.jms_correlation_id, found.jms_type, found.jms_reply_to) == ("c", "t", Queue("r"))
    assert found.properties["p"] == 1


def test_rule_84_rule_179_it_hears_the_headers_it_was_sent_with() -> None:
    class Sealed(Elsewhere):
        @property
        def jms_timestamp(self) -> int:
            return 0

    other = Sealed("x")
    message = body_to_message(other)
    through(message)
    tell(other, message)
    assert (other.jms_message_id, other.jms_priority, other.jms_timestamp) == ("ID:1", 4, 0)


def test_what_counts_as_a_message() -> None:
    assert is_message(Elsewhere("x")) and is_message(TextMessage("x"))
    assert not any(is_message(value) for value in ("x", b"x", {}, [], None, 5, object()))


# ---------------------------------------------------------------- octets of Python programs


def test_m11_octets_are_a_bytes_message_in_either_form() -> None:
    """Proton writes `bytes` as an amqp-value, and as a data section where `inferred` is said; ours are data.

    One that is sent on keeps the form it came in."""
    assert ReceivedMessage(message_octets(BytesMessage(b"abc"))).body() == (DATA, b"abc")
    for body in ((AMQP_VALUE, b"abc"), (DATA, b"abc")):
        message = received(body)
        assert type(message) is BytesMessage and message.body == b"abc"
        assert ReceivedMessage(message_octets(message)).body() == body


@pytest.mark.interop
@pytest.mark.parametrize("inferred", [True, False])
def test_m11_as_proton_writes_and_reads_them(inferred: bool) -> None:
    """The value comes through, in both directions."""
    proton: Any = pytest.importorskip("proton", reason="python-qpid-proton is not installed (extra `peers`)")
    read = message_from(ReceivedMessage(bytes(proton.Message(body=b"abc", inferred=inferred).encode())))
    assert type(read) is BytesMessage and read.body == b"abc"
    back = proton.Message()
    back.decode(message_octets(BytesMessage(read.body)))
    assert back.inferred and bytes(back.body) == b"abc"
