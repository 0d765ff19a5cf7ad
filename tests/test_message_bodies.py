"""Bodies: each type of message, its conversions, and that no two messages share anything."""

from __future__ import annotations

import copy
import enum
import math
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.destination import Queue
from jmsish.engine.codec import ReceivedMessage, encode_for_send
from jmsish.errors import (
    MessageFormatError,
    MessageNotWriteableError,
    NumberFormatError,
)
from jmsish.message import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage, message_from
from jmsish.types import Array, Byte, Char, Decimal64, Described, Float, Long, Symbol, Timestamp, UInt, ULong


def through(message: Message) -> Any:
    """The message as its receiver sees it."""
    payload = encode_for_send(
        message, message_id="ID:1", timestamp=5, now=5, destination=Queue("q"), delivery_mode=2, priority=4, ttl=0
    )
    return message_from(ReceivedMessage(payload), Queue("q"))


# ---------------------------------------------------------------- all types

SAMPLES = [
    (lambda: TextMessage("text"), "text", None, "new"),
    (lambda: BytesMessage(b"octets"), b"octets", b"", b"new"),
    (lambda: MapMessage({"a": 1}), {"a": 1}, {}, {"b": 2}),
    (lambda: StreamMessage([1, "b"]), [1, "b"], [], ["new"]),
    (lambda: ObjectMessage([1, {"a": None}]), [1, {"a": None}], None, "new"),
]


@pytest.mark.parametrize(("make", "body", "empty", "other"), SAMPLES)
def test_rule_165_a_received_body_is_read_only_until_it_is_cleared(
    make: Any, body: Any, empty: Any, other: Any
) -> None:
    sent = make()
    sent.properties["p"] = 1
    message = through(sent)
    assert message.body == body
    with pytest.raises(MessageNotWriteableError):
        message.body = other
    message.clear_body()
    assert message.body == empty and message.properties["p"] == 1
    message.body = other
    assert through(message).body == other
    assert through(message).properties["p"] == 1


@pytest.mark.parametrize(("make", "body", "empty", "other"), SAMPLES)
def test_rule_165_a_body_that_was_cleared_unread_is_empty(make: Any, body: Any, empty: Any, other: Any) -> None:
    message = through(make())
    message.clear_body()
    assert message.body == empty and through(message).body == empty


@pytest.mark.parametrize(("make", "body", "empty", "other"), SAMPLES)
def test_rule_95_a_body_can_be_sent_again_and_changed_in_between(make: Any, body: Any, empty: Any, other: Any) -> None:
    message = make()
    first = through(message)
    message.clear_body()
    message.body = other
    assert (first.body, through(message).body) == (body, other)


@pytest.mark.parametrize(("make", "body", "empty", "other"), SAMPLES)
def test_a_body_goes_on_from_receiver_to_receiver(make: Any, body: Any, empty: Any, other: Any) -> None:
    again = through(through(make()))
    assert type(again) is type(make()) and again.body == body


MUTABLE = [
    (MapMessage, {"a": 1, "b": b"c"}),
    (StreamMessage, [1, b"c"]),
    (ObjectMessage, {"a": [1], "b": {"c": 2}}),
    (ObjectMessage, [[1], {"c": 2}]),
]


def spoil(value: Any) -> None:
    """Change every list and map inside."""
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, (list, dict)):
            spoil(item)
    value.clear()


@pytest.mark.parametrize(("kind", "body"), MUTABLE)
def test_rule_172_what_is_handed_out_or_in_is_a_copy(kind: Any, body: Any) -> None:
    given_in = copy.deepcopy(body)
    message = kind(given_in)
    spoil(given_in)
    assert message.body == body
    spoil(message.body)
    received = through(message)
    spoil(received.body)
    assert message.body == body == received.body


class Colour(enum.IntEnum):
    RED = 7


class Name(str, enum.Enum):
    A = "a"


def spoken(value: object) -> str:
    """A value as the name of a test: the same in every process."""
    return "memoryview" if isinstance(value, memoryview) else repr(value)


INNER = [
    (bytearray(b"x"), b"x"),
    (memoryview(b"x"), b"x"),
    (Colour.RED, 7),
    (Name.A, "a"),
    (2**40, Long(2**40)),
    (Byte(1), Byte(1)),
    (Char("c"), Char("c")),
    (None, None),
]

OF_OBJECTS = [
    ((1, 2), [1, 2]),
    (MappingProxyType({"a": 1}), {"a": 1}),
    (datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc), Timestamp(1000)),
    (UUID(int=5), UUID(int=5)),
    (UInt(5), UInt(5)),
    (Symbol("s"), Symbol("s")),
    (Decimal64(b"12345678"), Decimal64(b"12345678")),
    (Described(ULong(1), [1]), Described(ULong(1), [1])),
    (Array([1], 0x71), Array([1], 0x71)),
]
"""What AMQP has a type for, and JMS has none."""


@pytest.mark.parametrize(("value", "kept"), INNER, ids=spoken)
def test_values_inside_maps_and_streams(value: Any, kept: Any) -> None:
    mapping, stream = through(MapMessage({"a": value})).body, through(StreamMessage([value])).body
    for inner in (mapping["a"], stream[0]):
        assert inner == kept and type(inner) is type(kept)


@pytest.mark.parametrize(("value", "kept"), INNER + OF_OBJECTS, ids=spoken)
def test_values_of_objects(value: Any, kept: Any) -> None:
    for found in (through(ObjectMessage(value)).body, through(ObjectMessage([value])).body[0]):
        assert found == kept and type(found) is type(kept)


@pytest.mark.parametrize("value", [value for value, _ in OF_OBJECTS], ids=spoken)
def test_rule_175_what_jms_has_no_type_for_is_refused_by_name(value: Any) -> None:
    for make, name in (
        (lambda: MapMessage({"ok": 1, "orders": value}), "item orders"),
        (lambda: MapMessage().set_object("orders", value), "item orders"),
        (lambda: MapMessage().update(orders=value), "item orders"),
        (lambda: StreamMessage([1, value]), "value 1"),
        (lambda: StreamMessage().write_object(value), "value 0"),
        (lambda: TextMessage().properties.update(orders=value), "property orders"),
        (lambda: TextMessage().set_object_property("orders", value), "property orders"),
    ):
        with pytest.raises(MessageFormatError, match=f"^{name} cannot be"):
            make()


def test_rule_175_the_error_says_what_carries_it() -> None:
    with pytest.raises(MessageFormatError, match="an ObjectMessage carries lists, maps"):
        MapMessage({"a": [1]})
    with pytest.raises(MessageFormatError, match="a boolean, a number of at most 64 bits or a text"):
        TextMessage().properties["a"] = [1]


def test_m28_whole_numbers_inside_lists_and_maps_take_the_width_they_need() -> None:
    body = through(ObjectMessage({"a": [1, 2**31], "b": {"c": -(2**31) - 1}})).body
    assert [type(body["a"][0]), type(body["a"][1]), type(body["b"]["c"])] == [int, Long, Long]


RING: list[Any] = []
RING.append(RING)


IMPOSSIBLE = {
    "object": object(),
    "set": {1, 2},
    "complex": 1j,
    "too wide": 2**63,
    "in a list": [object()],
    "in a map": {"a": {1}},
    "as a key": {("k",): 1},
    "in itself": RING,
}


@pytest.mark.parametrize("value", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_rule_175_values_that_no_body_takes(value: Any) -> None:
    for make in (
        lambda: ObjectMessage(value),
        lambda: MapMessage({"a": value}),
        lambda: StreamMessage([value]),
        lambda: StreamMessage().write_object(value),
        lambda: MapMessage().set_object("a", value),
    ):
        with pytest.raises(MessageFormatError):
            make()


WRONG_BODIES = [
    (TextMessage, [5, b"x"]),
    (BytesMessage, ["x", 5, None]),
    (MapMessage, [[1], "x"]),
    (StreamMessage, ["x", b"x", {"a": 1}, 5]),
]


@pytest.mark.parametrize(("kind", "bodies"), WRONG_BODIES)
def test_a_body_of_the_wrong_type_is_a_type_error(kind: Any, bodies: list[Any]) -> None:
    for body in bodies:
        with pytest.raises(TypeError):
            kind(body)
        with pytest.raises(TypeError):
            kind().body = body


# ---------------------------------------------------------------- maps


@pytest.mark.parametrize("wrong", ["str", None, list[int]], ids=str)
@pytest.mark.parametrize(
    "message", [TextMessage("x"), TextMessage(), BytesMessage(b"x"), StreamMessage([1]), Message()]
)
def test_a_body_is_asked_for_by_a_class(message: Message, wrong: Any) -> None:
    with pytest.raises(TypeError, match="the type of a body is a class such as str"):
        message.get_body(wrong)
    with pytest.raises(TypeError, match="the type of a body is a class such as str"):
        message.is_body_assignable_to(wrong)


def test_a_map_message_is_a_mapping() -> None:
    message = MapMessage({"a": 1})
    message["b"] = b"2"
    message.update(c="three")
    assert (list(message), len(message), message["b"], message.get("z"), "c" in message) == (
        ["a", "b", "c"],
        3,
        b"2",
        None,
        True,
    )
    assert message.pop("a") == 1 and message.item_exists("b") and not message.item_exists("a")
    message.body["b"] = 5
    assert message.body == {"b": b"2", "c": "three"} and dict(through(message)) == message.body
    with pytest.raises(KeyError):
        _ = message["a"]
    received = through(message)
    for change in (lambda: received.__setitem__("x", 1), lambda: received.__delitem__("b"), received.clear):
        with pytest.raises(MessageNotWriteableError):
            change()


@pytest.mark.parametrize(("name", "error"), [("", ValueError), (None, TypeError), (5, TypeError)])
def test_rule_171_names_of_items_are_texts_that_are_not_empty(name: Any, error: type[Exception]) -> None:
    for write in (
        lambda: MapMessage({name: 1}),
        lambda: MapMessage().set_int(name, 1),
        lambda: MapMessage().__setitem__(name, 1),
    ):
        with pytest.raises(error):
            write()


# ---------------------------------------------------------------- the conversion table of maps and streams

TYPES = ["boolean", "byte", "short", "char", "int", "long", "float", "double", "string", "bytes"]

# written as, value, what each read gives; a read that is not named is refused (3.11.3)
TABLE: list[tuple[str, Any, dict[str, Any]]] = [
    ("boolean", True, {"boolean": True, "string": "true"}),
    ("byte", 7, {"byte": 7, "short": 7, "int": 7, "long": 7, "string": "7"}),
    ("short", -7, {"short": -7, "int": -7, "long": -7, "string": "-7"}),
    ("char", "7", {"char": "7", "string": "7"}),
    ("int", 70000, {"int": 70000, "long": 70000, "string": "70000"}),
    ("long", 7, {"long": 7, "string": "7"}),
    ("float", 1.5, {"float": 1.5, "double": 1.5, "string": "1.5"}),
    ("double", 1.1, {"double": 1.1, "string": "1.1"}),
    (
        "string",
        "7",
        {"boolean": False, "byte": 7, "short": 7, "int": 7, "long": 7, "float": 7.0, "double": 7.0, "string": "7"},
    ),
    ("bytes", b"7", {"bytes": b"7"}),
]


@pytest.mark.parametrize("travelled", [False, True])
@pytest.mark.parametrize("read", TYPES)
@pytest.mark.parametrize(("written", "value", "readable"), TABLE)
def test_rule_169_the_conversion_table(
    written: str, value: Any, readable: dict[str, Any], read: str, travelled: bool
) -> None:
    mapping, stream = MapMessage(), StreamMessage()
    getattr(mapping, f"set_{written}")("a", value)
    getattr(stream, f"write_{written}")(value)
    if travelled:
        mapping, stream = through(mapping), through(stream)
    stream.reset()
    for get in (lambda: getattr(mapping, f"get_{read}")("a"), getattr(stream, f"read_{read}")):
        if read in readable:
            assert get() == readable[read]
        else:
            with pytest.raises(MessageFormatError, match=f"is a {written} and cannot be read as {read}"):
                get()
    assert mapping.get_object("a") == value


@pytest.mark.parametrize("present", [True, False])
def test_rule_170_rule_171_none_in_a_map(present: bool) -> None:
    message = MapMessage({"a": None} if present else {})
    assert message.get_boolean("a") is False
    assert (message.get_string("a"), message.get_bytes("a"), message.get_object("a")) == (None, None, None)
    for read in ("byte", "short", "int", "long", "float", "double"):
        with pytest.raises(NumberFormatError):
            getattr(message, f"get_{read}")("a")
    with pytest.raises(TypeError):
        message.get_char("a")


WRONG_WRITES = [
    ("boolean", 1, TypeError),
    ("byte", -129, ValueError),
    ("char", "ab", ValueError),
    ("char", 5, TypeError),
    ("int", "1", TypeError),
    ("long", 2**63, ValueError),
    ("float", 1e39, ValueError),
    ("string", 5, TypeError),
    ("bytes", "x", TypeError),
]


@pytest.mark.parametrize(("kind", "value", "error"), WRONG_WRITES)
def test_a_typed_write_takes_its_type(kind: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        getattr(MapMessage(), f"set_{kind}")("a", value)
    with pytest.raises(error):
        getattr(StreamMessage(), f"write_{kind}")(value)


def test_nothing_can_be_written_as_text_and_octets() -> None:
    message = StreamMessage()
    message.write_string(None)
    message.write_bytes(None)
    message.write_bytes(bytearray(b"x"))  # type: ignore[arg-type]
    assert message.body == [None, None, b"x"]


# ---------------------------------------------------------------- any body

SINGLE = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.binary(max_size=300)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=300) | st.integers(-128, 127).map(Byte)
    | st.floats(width=32, allow_nan=False).map(Float) | st.characters(exclude_categories=["Cs"]).map(Char)
)  # fmt: skip
SCALARS = SINGLE | st.uuids() | st.text(st.characters(max_codepoint=127)).map(Symbol)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
NESTED = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=8
)


@given(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=1000))
def test_any_text_travels(text: str | None) -> None:
    assert through(TextMessage(text)).text == text


@given(st.binary(max_size=1000))
def test_any_octets_travel(octets: bytes) -> None:
    assert through(BytesMessage(octets)).data == octets


@given(st.dictionaries(NAMES, SINGLE, max_size=8))
def test_any_map_travels(body: dict[str, Any]) -> None:
    assert through(MapMessage(body)).body == body


@given(st.lists(SINGLE, max_size=8))
def test_any_sequence_travels(body: list[Any]) -> None:
    assert through(StreamMessage(body)).body == body


@given(NESTED)
def test_any_value_travels(value: Any) -> None:
    assert through(ObjectMessage(value)).body == value


def test_not_a_number_travels() -> None:
    assert math.isnan(through(ObjectMessage(math.nan)).body)
