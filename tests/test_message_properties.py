"""Properties: nothing lost on the way, the conversion table, names, read-only and back."""

from __future__ import annotations

import enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.destination import Queue
from jmsish.engine.codec import AMQP_VALUE, ReceivedMessage, encode_for_send, encode_message
from jmsish.errors import MessageFormatError, MessageNotWriteableError, NumberFormatError
from jmsish.message import Message, TextMessage, message_from
from jmsish.types import (
    Byte,
    Char,
    Double,
    Float,
    Int,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)


def through(message: Message) -> Message:
    """The message as its receiver sees it."""
    payload = encode_for_send(
        message, message_id="ID:1", timestamp=5, now=5, destination=Queue("q"), delivery_mode=2, priority=4, ttl=0
    )
    return message_from(ReceivedMessage(payload), Queue("q"))


def received(properties: dict[str, Any] | None = None, fields: dict[int, Any] | None = None) -> Message:
    positions = [(fields or {}).get(index) for index in range(13)]
    payload = encode_message(properties=positions, application_properties=properties, body=(AMQP_VALUE, "x"))
    return message_from(ReceivedMessage(payload))


IDENTITY = UUID("12345678-1234-5678-1234-567812345678")

# ---------------------------------------------------------------- the mapping


def test_properties_are_a_mutable_mapping() -> None:
    message = TextMessage("x")
    properties = message.properties
    properties["a"] = 1
    properties.update(b="two", JMSXGroupID="g")
    assert dict(message.properties) == {"a": 1, "b": "two", "JMSXGroupID": "g"} and len(properties) == 3
    assert "a" in properties and "c" not in properties and properties.get("c") is None and message.property_exists("a")
    del properties["a"], properties["JMSXGroupID"]
    assert repr(properties) == "{'b': 'two'}"
    for gone in ("a", "JMSXGroupID"):
        with pytest.raises(KeyError):
            _ = properties[gone]
        with pytest.raises(KeyError):
            del properties[gone]


VALUES: list[tuple[Any, type]] = [
    (True, bool),
    (Byte(1), Byte),
    (Short(1), Short),
    (1, int),
    (-(2**31), int),
    (2**31, Long),
    (Int(5), int),
    (Long(5), Long),
    (Float(1.5), Float),
    (1.5, float),
    (Double(1.5), float),
    ("text", str),
    (None, type(None)),
]


@pytest.mark.parametrize(("value", "kind"), VALUES)
def test_m28_properties_travel_with_their_type(value: Any, kind: type) -> None:
    message = TextMessage("x")
    message.properties["a"] = value
    found = through(message).properties["a"]
    assert found == value and type(found) is kind


FOREIGN = [
    (UByte(200), "short", 200, "200"),
    (UShort(60000), "int", 60000, "60000"),
    (UInt(4_000_000_000), "long", 4_000_000_000, "4000000000"),
    (ULong(5), "long", 5, "5"),
    (Timestamp(5), "long", 5, "5"),
]


@pytest.mark.parametrize(("value", "kind", "number", "text"), FOREIGN)
def test_m28_types_that_jms_lacks_read_as_the_nearest(value: Any, kind: str, number: int, text: str) -> None:
    message = received({"a": value})
    assert message.properties["a"] == value and type(message.properties["a"]) is type(value)
    assert message.get_long_property("a") == number and message.get_string_property("a") == text
    smaller = {"short": "byte", "int": "short", "long": "int"}[kind]
    with pytest.raises(MessageFormatError, match=f"is a {kind} and cannot be read as {smaller}"):
        getattr(message, f"get_{smaller}_property")("a")


def test_m28_more_of_these() -> None:
    message = received({"u": ULong(2**63), "s": Symbol("12"), "c": Char("7"), "i": IDENTITY, "b": b"x"})
    assert message.get_string_property("u") == str(2**63) and message.get_object_property("u") == 2**63
    with pytest.raises(ValueError, match="out of range for a long"):
        message.get_long_property("u")
    assert message.get_int_property("s") == 12 and message.get_int_property("c") == 7
    assert message.get_string_property("i") == str(IDENTITY) and message.get_object_property("b") == b"x"
    with pytest.raises(MessageFormatError):
        message.get_string_property("b")


class Colour(enum.IntEnum):
    RED = 7


class Name(str, enum.Enum):
    A = "a"


@pytest.mark.parametrize(("value", "plain"), [(Colour.RED, 7), (Name.A, "a")])
def test_members_of_enumerations_are_their_values(value: Any, plain: Any) -> None:
    message = TextMessage("x")
    message.properties["a"] = value
    assert message.properties["a"] == plain and type(message.properties["a"]) is type(plain)


@pytest.mark.parametrize(
    "value", [b"x", [1], {"a": 1}, object(), 2**63, Char("x"), Symbol("x"), Timestamp(1), UInt(1), IDENTITY, 1j]
)
def test_rule_155_m113_other_values_are_no_properties(value: Any) -> None:
    message = TextMessage("x")
    for write in (message.properties.__setitem__, message.set_object_property):
        with pytest.raises(MessageFormatError, match="property a cannot be"):
            write("a", value)


GOOD_NAMES = [
    "a",
    "_a",
    "$a",
    "a$1",
    "JMS_vendor",
    "ä",
    "JMSXAppID",
    "nothing",
    "Island",
    "€uro",
    "a€",
    "٣a"[::-1],
    "Ⅷ",
]
GOOD_NAMES += ["a\u0301", "‿a", "x" * 300, "jmspriority"]
BAD_NAMES = [
    "",
    "1a",
    "٣",
    "\u0301a",
    "a™",
    "a\n",
    "😀",
    "JMSPriority",
    "JMSCorrelationID",
    "a b",
    "a-b",
    "a.b",
    "null",
    "NULL",
    "True",
    "false",
    "not",
    "AND",
    "or",
    "Between",
    "like",
    "in",
    "is",
    "escape",
]


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_rule_156_names_that_may_be_given(name: str) -> None:
    message = TextMessage("x")
    message.properties[name] = 1
    assert through(message).properties[name] == 1


@pytest.mark.parametrize("name", BAD_NAMES)
def test_rule_156_m113_names_that_may_not_be_given(name: str) -> None:
    for write in (TextMessage("x").properties.__setitem__, TextMessage("x").set_int_property):
        with pytest.raises(
            ValueError, match="the name of a property is empty|no name of a property|a word of the selector|is a header"
        ):
            write(name, 1)
    assert name == "" or received({name: 1}).properties[name] == 1, "but a message may come with them"


def test_rule_156_a_header_is_set_as_what_it_is() -> None:
    with pytest.raises(ValueError, match="it is the attribute jms_correlation_id of the message"):
        TextMessage("x").properties["JMSCorrelationID"] = "a"
    for read in (TextMessage("x").get_int_property, TextMessage("x").get_string_property):
        with pytest.raises(ValueError, match="the name of a property is empty"):
            read("")


def test_rule_156_a_name_is_a_text() -> None:
    with pytest.raises(TypeError, match="the name of a property is a str"):
        TextMessage("x").properties[None] = 1  # type: ignore[index]


# ---------------------------------------------------------------- read-only


def test_rule_157_rule_158_properties_of_a_received_message_are_read_only_until_cleared() -> None:
    message = received({"a": 1}, {10: "g", 12: "rg", 1: b"u"})
    for change in (
        lambda: message.properties.__setitem__("b", 1),
        lambda: message.properties.__delitem__("a"),
        lambda: message.set_int_property("b", 1),
        lambda: message.properties.update(JMSXGroupID="x"),
    ):
        with pytest.raises(MessageNotWriteableError, match=r"clear_properties\(\)"):
            change()
    message.clear_properties()
    assert dict(message.properties) == {"JMSXDeliveryCount": 1} and message.body == "x"
    message.properties["b"] = 2
    assert dict(message.properties) == {"b": 2, "JMSXDeliveryCount": 1}


def test_changes_do_not_reach_the_octets() -> None:
    source = ReceivedMessage(encode_message(application_properties={"a": 1}, body=(AMQP_VALUE, "x")))
    message = message_from(source)
    message.clear_properties()
    message.properties["a"] = 2
    assert message_from(source).properties["a"] == 1


def test_a_sent_message_stays_writable() -> None:
    message = TextMessage("x")
    message.properties["a"] = 1
    through(message)
    message.properties["a"] = 2
    assert through(message).properties["a"] == 2


# ---------------------------------------------------------------- properties that are fields


def test_m13_rule_163_group_properties_travel_as_fields() -> None:
    message = TextMessage("x")
    message.properties.update(JMSXGroupID="g", JMSXGroupSeq=-1, JMS_AMQP_REPLY_TO_GROUP_ID="rg")
    again = through(message)
    source = again._source
    assert source is not None and (source.property(10), source.property(11), source.property(12)) == (
        "g",
        2**32 - 1,
        "rg",
    )
    assert source.application_properties() == {} and again.properties["JMSXGroupSeq"] == -1
    assert again.get_int_property("JMSXGroupSeq") == -1 and again.get_string_property("JMSXGroupID") == "g"


def test_m27_vendor_properties_of_qpid_jms() -> None:
    message = received()
    message.properties["JMS_AMQP_ACK_TYPE"] = 2
    assert message._ack_type == 2, "set on a message that is read-only otherwise"
    for wrong in (0, 6):
        with pytest.raises(MessageFormatError, match="out of range"):
            message.properties["JMS_AMQP_ACK_TYPE"] = wrong
    new = TextMessage("x")
    for wrong in (-1, 2**32):
        with pytest.raises(MessageFormatError, match="out of range"):
            new.properties["JMS_AMQP_TTL"] = wrong
    new.properties["JMS_AMQP_TTL"] = 2**32 - 1
    assert new.properties["JMS_AMQP_TTL"] == 2**32 - 1


@pytest.mark.parametrize(
    ("name", "value"), [("JMSXGroupID", [1]), ("JMSXGroupSeq", True), ("JMSXGroupSeq", "x"), ("JMSXGroupSeq", 2**31)]
)
def test_properties_that_are_fields_have_their_type(name: str, value: Any) -> None:
    with pytest.raises((MessageFormatError, NumberFormatError)):
        TextMessage("x").properties[name] = value


def test_the_delivery_count_can_be_copied_from_message_to_message() -> None:
    """Code that copies all properties of one message to another need not know which are special."""
    message, copy = received({"a": 1}), TextMessage("x")
    for name, value in message.properties.items():
        copy.properties[name] = value
    assert through(copy).delivery_count == 1 and through(copy).properties["a"] == 1


# ---------------------------------------------------------------- the conversion table

TYPES = ["boolean", "byte", "short", "int", "long", "float", "double", "string"]

# written as, value, what each read gives; a read that is not named is refused (3.5.4)
TABLE: list[tuple[str, Any, dict[str, Any]]] = [
    ("boolean", True, {"boolean": True, "string": "true"}),
    ("boolean", False, {"boolean": False, "string": "false"}),
    ("byte", 7, {"byte": 7, "short": 7, "int": 7, "long": 7, "string": "7"}),
    ("short", -7, {"short": -7, "int": -7, "long": -7, "string": "-7"}),
    ("int", 70000, {"int": 70000, "long": 70000, "string": "70000"}),
    ("long", 7, {"long": 7, "string": "7"}),
    ("float", 1.5, {"float": 1.5, "double": 1.5, "string": "1.5"}),
    ("float", 1.1, {"float": Float(1.1), "double": Float(1.1), "string": "1.1"}),
    ("double", 1.1, {"double": 1.1, "string": "1.1"}),
    (
        "string",
        "7",
        {"boolean": False, "byte": 7, "short": 7, "int": 7, "long": 7, "float": 7.0, "double": 7.0, "string": "7"},
    ),
]


@pytest.mark.parametrize("travelled", [False, True])
@pytest.mark.parametrize("read", TYPES)
@pytest.mark.parametrize(("written", "value", "readable"), TABLE)
def test_rule_161_the_conversion_table(
    written: str, value: Any, readable: dict[str, Any], read: str, travelled: bool
) -> None:
    message: Message = TextMessage("x")
    getattr(message, f"set_{written}_property")("a", value)
    message = through(message) if travelled else message
    if read in readable:
        found = getattr(message, f"get_{read}_property")("a")
        assert found == readable[read] and type(found) is type(
            readable[read] + 0.0 if read in ("float", "double") else readable[read]
        )
    else:
        with pytest.raises(MessageFormatError, match=f"property a is a {written} and cannot be read as {read}"):
            getattr(message, f"get_{read}_property")("a")


PARSED = [
    ("true", "boolean", True),
    ("TRUE", "boolean", True),
    ("yes", "boolean", False),
    ("+5", "int", 5),
    ("-128", "byte", -128),
    ("1e3", "double", 1000.0),
    ("-inf", "double", float("-inf")),
]


@pytest.mark.parametrize(("text", "read", "value"), PARSED)
def test_rule_160_texts_are_parsed(text: str, read: str, value: Any) -> None:
    message = TextMessage("x")
    message.properties["a"] = text
    assert getattr(message, f"get_{read}_property")("a") == value


@pytest.mark.parametrize(
    ("text", "read"),
    [("x", "int"), ("", "int"), ("1.0", "int"), ("1_0", "int"), (" 1", "int"), ("128", "byte"), ("٣", "int")]
    + [("2147483648", "int"), ("x", "double"), ("1_0.0", "double"), ("1e39", "float"), ("0x10", "long")],
)
def test_rule_160_texts_that_are_no_number(text: str, read: str) -> None:
    message = TextMessage("x")
    message.properties["a"] = text
    with pytest.raises(NumberFormatError):
        getattr(message, f"get_{read}_property")("a")


@pytest.mark.parametrize("present", [True, False])
def test_rule_159_what_is_not_there_or_none(present: bool) -> None:
    message = TextMessage("x")
    if present:
        message.properties["a"] = None
    assert message.get_boolean_property("a") is False
    assert message.get_string_property("a") is None and message.get_object_property("a") is None
    for read in ("byte", "short", "int", "long", "float", "double"):
        with pytest.raises(NumberFormatError, match="property a is not there, or None"):
            getattr(message, f"get_{read}_property")("a")


WRONG = [
    ("boolean", 1, TypeError),
    ("byte", 128, ValueError),
    ("byte", "1", TypeError),
    ("short", 2**15, ValueError),
    ("int", 2**31, ValueError),
    ("int", True, TypeError),
    ("int", 1.0, TypeError),
    ("long", 2**63, ValueError),
    ("float", "1", TypeError),
    ("float", 1e39, ValueError),
    ("double", None, TypeError),
    ("string", 1, TypeError),
]


@pytest.mark.parametrize(("kind", "value", "error"), WRONG)
def test_rule_155_a_typed_set_takes_its_type(kind: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        getattr(TextMessage("x"), f"set_{kind}_property")("a", value)


def test_a_double_may_be_written_as_a_whole_number() -> None:
    message = TextMessage("x")
    message.set_double_property("a", 3)
    assert type(message.properties["a"]) is float
    message.set_string_property("b", None)
    assert message.properties["b"] is None


PROPERTY_VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-128, 127).map(Byte)
    | st.integers(-(2**15), 2**15 - 1).map(Short)
    | st.integers(-(2**63), 2**63 - 1).map(Long)
    | st.floats(width=32, allow_nan=False).map(Float)
)


@given(st.dictionaries(st.from_regex(r"p[A-Za-z0-9_$]{0,10}", fullmatch=True), PROPERTY_VALUES))
def test_any_properties_travel(properties: dict[str, Any]) -> None:
    message = TextMessage("x")
    message.properties.update(properties)
    again = through(message)
    assert dict(again.properties) == {**properties, "JMSXDeliveryCount": 1}
    for name, value in properties.items():
        assert again.get_string_property(name) == message.get_string_property(name)
        assert type(value) is int or type(again.properties[name]) is type(value)
