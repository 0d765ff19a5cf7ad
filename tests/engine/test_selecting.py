"""Selectors on undecoded messages: every form of octets, only the sections that are needed, and nothing ever raised."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.engine.codec import (
    AMQP_VALUE,
    CORRELATION_ID,
    CREATION_TIME,
    GROUP_ID,
    GROUP_SEQUENCE,
    MESSAGE_ID,
    REPLY_TO_GROUP_ID,
    SUBJECT,
    USER_ID,
    Header,
    encode_header,
    encode_message,
)
from jmsish.engine.selecting import predicate
from jmsish.engine.values import encode, encode_described
from jmsish.errors import MessageFormatError
from jmsish.selector import Selector
from jmsish.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Described,
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
from tests.selector_cases import foreign_octets, received

IDENTITY = UUID("12345678-1234-5678-1234-567812345678")
COLOUR = encode_described(0x74, encode({"colour": "red", "weight": 11}))
RED = predicate(Selector("colour = 'red' AND weight > 10"))


def selected(text: str, octets: bytes) -> bool:
    """What the selector says of the octets; of the message once received it must say the same."""
    found = predicate(Selector(text))(octets, 0)
    assert Selector(text).matches(received(octets)) is found
    return found


# -- M-facts -----------------------------------------------------------------------------------------------------------

IDS = [
    ("ID:a", "ID:a", "ID:a"),
    ("plain", "ID:AMQP_NO_PREFIX:plain", "plain"),
    ("", "ID:AMQP_NO_PREFIX:", ""),
    ("ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x"),
    (IDENTITY, f"ID:AMQP_UUID:{IDENTITY}", f"ID:AMQP_UUID:{IDENTITY}"),
    (ULong(2**64 - 1), "ID:AMQP_ULONG:18446744073709551615", "ID:AMQP_ULONG:18446744073709551615"),
    (b"\x00\xfe", "ID:AMQP_BINARY:00FE", "ID:AMQP_BINARY:00FE"),
]


@pytest.mark.parametrize(("value", "message_id", "correlation_id"), IDS)
def test_m19_m20_ids_are_selected_in_their_jms_form(value: Any, message_id: str, correlation_id: str) -> None:
    octets = foreign_octets({}, {MESSAGE_ID: value, CORRELATION_ID: value})
    assert selected(f"JMSMessageID = '{message_id}'", octets)
    assert selected(f"JMSCorrelationID = '{correlation_id}'", octets)
    assert not selected("JMSMessageID = 'x' OR JMSCorrelationID = 'x'", octets)


def test_m13_fields_of_the_properties() -> None:
    fields = {
        SUBJECT: "order",
        CREATION_TIME: Timestamp(1_700_000_000_000),
        GROUP_ID: "g",
        GROUP_SEQUENCE: UInt(2**31),
        REPLY_TO_GROUP_ID: "r",
        USER_ID: "ann é".encode(),
    }
    octets = foreign_octets({}, fields)
    for condition in [
        "JMSType = 'order'",
        "JMSTimestamp = 1700000000000",
        "JMSTimestamp BETWEEN 1699999999999.5 AND 1700000000000.5",
        "JMSXGroupID = 'g'",
        "JMSXGroupSeq = -2147483648",
        "JMS_AMQP_REPLY_TO_GROUP_ID = 'r'",
        "JMSXUserID = 'ann é'",
        "JMSMessageID IS NULL AND JMSCorrelationID IS NULL",
    ]:
        assert selected(condition, octets), condition


@pytest.mark.parametrize(("wire", "jms"), [(0, 0), (2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (2**32 - 1, -1)])
def test_m13_the_group_sequence_wraps_to_32_bits_with_a_sign(wire: int, jms: int) -> None:
    assert selected(f"JMSXGroupSeq = {jms}", foreign_octets({}, {GROUP_SEQUENCE: UInt(wire)}))


@pytest.mark.parametrize(("priority", "seen"), [(0, 0), (4, 4), (9, 9), (10, 9), (255, 9)])
def test_m13_priority(priority: int, seen: int) -> None:
    octets = encode_header(Header(durable=True, priority=priority)) + COLOUR
    assert selected(f"JMSPriority = {seen} AND JMSDeliveryMode = 'PERSISTENT' AND colour = 'red'", octets)


def test_m30_without_a_header_a_message_is_non_persistent_and_of_priority_4() -> None:
    assert selected("JMSDeliveryMode = 'NON_PERSISTENT' AND JMSPriority = 4", COLOUR)


def test_m14_the_delivery_count_is_the_one_in_force() -> None:
    octets = encode_header(Header(delivery_count=7)) + COLOUR
    second = predicate(Selector("JMSXDeliveryCount = 2 AND colour = 'red'"))
    assert second(octets, 1)
    assert not second(octets, 7)
    assert predicate(Selector("JMSXDeliveryCount = 2147483647"))(octets, 2**32 - 1)


NUMBERS = [
    UByte(255), UShort(65535), UInt(2**32 - 1), ULong(2**64 - 1), ULong(0), UInt(0), Byte(-128), Short(-32768),
    Int(-(2**31)),
    Long(-(2**63)), Long(5), 5, -5, 127, 128, -128, -129, 2**31, Timestamp(-1), Timestamp(1_700_000_000_000),
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_m28_whole_numbers_are_exact(number: int) -> None:
    octets = foreign_octets({"n": number})
    if -(2**63) <= number < 2**63:
        assert selected(f"n = {int(number)} AND n <> {int(number) - 1 if number > 0 else int(number) + 1}", octets)
    assert selected(f"n > {float(number)} - 1e5 AND n < {float(number)} + 1e5 AND NOT n = 'x'", octets)


def test_m28_an_unsigned_long_beyond_the_signed_ones_is_no_negative_number() -> None:
    octets = foreign_octets({"n": ULong(2**64 - 1)})
    assert selected("n > 9223372036854775807 AND n <> -1 AND n < 18446744073709551616.0", octets)
    # Arithmetic is that of a signed long.
    assert selected("n + 0 = -1", octets)


@pytest.mark.parametrize("number", [Float(0.1), Double(0.1), 0.1, float("inf"), Float(-0.0)], ids=repr)
def test_m28_approximate_numbers(number: float) -> None:
    octets = foreign_octets({"n": number})
    assert selected("n = n AND n > -1", octets)
    assert selected("n = 0.1f", octets) is (number == Float(0.1))


def test_m28_symbols_and_characters_are_strings() -> None:
    octets = foreign_octets({"symbol": Symbol("red"), "char": Char("é"), "wide": "x" * 300})
    assert selected(
        f"symbol = 'red' AND symbol LIKE 'r__' AND char = 'é' AND char IN ('é') AND wide = '{'x' * 300}'", octets
    )


OTHERS = [b"red", IDENTITY, Decimal32(b"1234"), ["red"], {"red": 1}, Array([1], 0x71), Described(Symbol("d"), "red")]


@pytest.mark.parametrize("value", OTHERS, ids=repr)
def test_m28_other_values_are_there_and_like_nothing(value: Any) -> None:
    octets = foreign_octets({"first": value, "n": value, "last": 5})
    assert selected("n IS NOT NULL AND last = 5", octets)
    for condition in [
        "n = 'red'",
        "n <> 'red'",
        "n = 1",
        "n > 1",
        "n <> 1",
        "n = TRUE",
        "n",
    ]:
        assert not selected(condition, octets)
        assert selected(f"NOT ({condition})", octets)
    for operator in ["LIKE '%'", "IN ('red')", "BETWEEN 1 AND 2"]:
        assert not selected(f"n {operator}", octets)
        assert not selected(f"n NOT {operator}", octets)
    assert not selected("n = n", octets)


def test_m28_booleans_in_all_their_forms() -> None:
    pairs = [encode("a"), b"\x41", encode("b"), b"\x42", encode("c"), b"\x56\x01", encode("d"), b"\x56\x00"]
    octets = section_of(pairs)
    assert selected("a AND NOT b AND c AND NOT d AND a = c AND b <> TRUE", octets)


# -- octets in all their forms -----------------------------------------------------------------------------------------


def section_of(pairs: list[bytes], wide: bool = False, descriptor: bytes = b"\x53\x74") -> bytes:
    """Application properties of these keys and values, in a map of either width."""
    inside = b"".join(pairs)
    if wide:
        return b"\x00" + descriptor + b"\xd1" + struct.pack(">II", len(inside) + 4, len(pairs)) + inside
    return b"\x00" + descriptor + b"\xc1" + bytes((len(inside) + 1, len(pairs))) + inside


KEYS = [
    b"\xa1\x06colour",
    b"\xb1\x00\x00\x00\x06colour",
    b"\xa3\x06colour",
    b"\xb3\x00\x00\x00\x06colour",
]
REDS = [b"\xa1\x03red", b"\xb1\x00\x00\x00\x03red", b"\xa3\x03red", b"\xb3\x00\x00\x00\x03red"]
ELEVENS = [b"\x54\x0b", b"\x71\x00\x00\x00\x0b", b"\x55\x0b", b"\x81" + bytes(7) + b"\x0b", b"\x50\x0b", b"\x51\x0b",
           b"\x60\x00\x0b", b"\x61\x00\x0b", b"\x52\x0b", b"\x70\x00\x00\x00\x0b", b"\x53\x0b",
           b"\x80" + bytes(7) + b"\x0b",
           b"\x82" + struct.pack(">d", 11), b"\x72" + struct.pack(">f", 11), b"\x83" + bytes(7) + b"\x0b"]  # fmt: skip
DESCRIPTORS = [b"\x53\x74", b"\x80" + bytes(7) + b"\x74", b"\xa3\x23amqp:application-properties:map"]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("descriptor", DESCRIPTORS)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("red", REDS)
def test_every_form_of_text_and_section(wide: bool, descriptor: bytes, key: bytes, red: bytes) -> None:
    descriptor = descriptor.replace(b"\x23", bytes((len("amqp:application-properties:map"),)))
    octets = section_of([key, red, encode("weight"), encode(11)], wide, descriptor)
    assert RED(octets, 0)
    assert selected("colour = 'red' AND weight > 10", octets)


@pytest.mark.parametrize("eleven", ELEVENS)
def test_every_form_of_a_number(eleven: bytes) -> None:
    octets = section_of([encode("weight"), eleven, encode("colour"), encode("red")])
    assert selected("weight = 11 AND colour = 'red'", octets)


BEFORE = [
    b"",
    encode_header(Header(durable=True)),
    bytes.fromhex("00800000000000000070d0000000050000000141"),
    encode_described(0x71, encode({Symbol("x-opt-d"): "colour"})),
    encode_described(0x72, encode({Symbol("x-opt-a"): "x" * 300})),
    encode_described(0x73, encode(["id", None, "q", "colour"])),
    b"\x00\x53\x73\x45",
    # What looks like application properties is inside a string.
    encode_described(0x73, encode(["\x00St\xc1\x01\x00"])),
]
BEHIND = [
    b"",
    encode_described(AMQP_VALUE, encode({"colour": "blue"})),
    encode_described(0x78, encode({Symbol("f"): 1})),
]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("behind", BEHIND)
def test_sections_before_and_behind_are_stepped_over(before: bytes, behind: bytes) -> None:
    assert RED(before + COLOUR + behind, 0)
    assert not predicate(Selector("absent IS NOT NULL"))(before + COLOUR + behind, 0)
    assert predicate(Selector("colour IS NULL"))(before + behind, 0)


VALUES = [None, True, False, 5, Long(2**40), 1.5, "x", "x" * 300, b"x", Symbol("s"), IDENTITY, ["a",
    ["b"]], {"colour": "blue"},
          Array(["a"], 0xA1), Described(Described(1, 2), "colour")]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_properties_that_are_not_named_are_stepped_over(value: Any) -> None:
    octets = foreign_octets({"before": value, "colour": "red", "between": value, "weight": 11, "behind": value})
    assert selected("colour = 'red' AND weight > 10", octets)
    assert selected("before IS NULL", octets) is (value is None)


def test_a_text_that_looks_like_a_property_is_none() -> None:
    octets = foreign_octets({"note": "\u00a1\x06colour\u00a1\x03red", "\u00a1\x06colour": "red", "weight": 11})
    assert selected("colour IS NULL", octets)
    assert not RED(octets, 0)


def test_names_that_are_not_ascii() -> None:
    assert selected("größe = 5 AND 名前 = 'x'", foreign_octets({"größe": 5, "名前": "x", "gr": 1}))


# -- only what is needed -----------------------------------------------------------------------------------------------

# Sections of the right size, with nothing in them that could be read.
BROKEN_LIST = b"\xc0\x03\x02\xff\xff"
BROKEN_MAP = b"\xc1\x03\x02\xff\xff"
BROKEN_HEADER = b"\x00\x53\x70" + BROKEN_LIST
BROKEN_FIELDS = b"\x00\x53\x73" + BROKEN_LIST
BROKEN_PROPERTIES = b"\x00\x53\x74" + BROKEN_MAP
BROKEN_BODY = b"\x00\x53\x77\xff"


def test_sections_that_are_not_needed_are_not_read() -> None:
    assert RED(BROKEN_HEADER + BROKEN_FIELDS + COLOUR + BROKEN_BODY, 0)
    fields = encode_described(0x73, encode(["ID:1"]))
    assert predicate(Selector("JMSMessageID = 'ID:1'"))(BROKEN_HEADER + fields + BROKEN_PROPERTIES + BROKEN_BODY, 0)
    header = encode_header(Header(priority=7))
    assert predicate(Selector("JMSPriority = 7"))(header + BROKEN_FIELDS + BROKEN_PROPERTIES + BROKEN_BODY, 0)
    assert predicate(Selector("JMSXDeliveryCount = 1"))(b"\xff", 0)
    assert predicate(Selector("TRUE"))(b"\xff", 0)


@pytest.mark.parametrize(
    ("text", "octets"),
    [
        ("JMSPriority = 4", BROKEN_HEADER + COLOUR),
        ("JMSMessageID IS NULL", BROKEN_FIELDS + COLOUR),
        ("colour IS NULL", BROKEN_PROPERTIES),
        ("colour IS NULL", b"\x00\x53\x74" + BROKEN_LIST),
        ("colour IS NULL OR TRUE", b"\x00\x53\x74\xff"),
        ("colour IS NULL", b"\xff"),
        ("colour IS NULL", b"\x00\x80" + bytes(7) + b"\x20\x40"),
        ("colour IS NULL", section_of([encode("colour"), encode(None), encode("x")])),
        ("colour IS NOT NULL", section_of([encode("colour"), b"\xa1\x02\xff\xff"])),
        ("colour IS NOT NULL", section_of([encode("colour"), b"\x56\x02"])),
        ("colour IS NOT NULL", section_of([encode("colour"), b"\xa1\x40red"])),
        ("a IS NULL AND b IS NULL", section_of([encode("a"), encode(None), encode("a"), encode(None)])),
        ("a IS NULL", section_of([encode(["a"]), encode(1), b"\xff", b"\xff"])),
        ("JMSMessageID IS NOT NULL", foreign_octets({}, {MESSAGE_ID: True})),
        ("JMSCorrelationID IS NOT NULL", foreign_octets({}, {CORRELATION_ID: 1.5})),
    ],
)
def test_octets_that_cannot_be_read_are_not_selected(text: str, octets: bytes) -> None:
    assert not predicate(Selector(text))(octets, 0)


def test_what_stands_behind_the_last_property_that_is_named_is_not_looked_at() -> None:
    octets = section_of([encode("colour"), encode("red"), b"\xff", b"\xff"])
    assert predicate(Selector("colour = 'red'"))(octets, 0)
    assert not predicate(Selector("colour = 'red' AND absent IS NULL"))(octets, 0)


MESSAGE = encode_message(
    header=Header(durable=True, priority=5),
    annotations={"x-opt-jms-msg-type": Byte(5)},
    properties=["ID:1", b"ann", "q", "order", None, "c"],
    application_properties={"region": "north", "colour": "red", "count": 5, "weight": 11, "fragile": True},
    body=(AMQP_VALUE, "text"),
)
TEXTS = [
    "colour = 'red' AND weight > 10",
    "absent IS NULL",
    "JMSPriority = 5 AND JMSType = 'order'",
    "fragile AND JMSMessageID LIKE 'ID:%' AND JMSDeliveryMode = 'PERSISTENT' AND JMSXUserID = 'ann'",
    "NOT (region = 'south' OR count > 10)",
]
PREDICATES = [predicate(Selector(text)) for text in TEXTS]


def test_every_part_of_a_message_is_judged_without_an_error() -> None:
    assert all(chosen(MESSAGE, 0) for chosen in PREDICATES)
    for end in range(len(MESSAGE)):
        assert not any(chosen(MESSAGE[:end], 0) is None for chosen in PREDICATES)
    # Where the application properties are cut, nothing of them counts.
    cut = MESSAGE.index(b"fragile") - 2
    assert not any(PREDICATES[index](MESSAGE[:cut], 0) for index in (0, 1, 3, 4))


def whole(octets: bytes) -> Any:
    """The message, if all of it can be read."""
    try:
        message = received(octets)
        dict(message.properties)
        for name in ("message_id", "correlation_id", "type", "timestamp", "priority", "delivery_mode"):
            getattr(message, f"jms_{name}")
        return message
    except (MessageFormatError, ValueError):
        return None


@given(st.lists(st.tuples(st.integers(0, len(MESSAGE) - 1), st.integers(0, 255)), min_size=1, max_size=3))
def test_any_change_of_the_octets_is_judged_as_the_message_is(changes: list[tuple[int, int]]) -> None:
    changed = bytearray(MESSAGE)
    for position, octet in changes:
        changed[position] = octet
    octets = bytes(changed)
    message = whole(octets)
    for text, chosen in zip(TEXTS, PREDICATES, strict=True):
        found = chosen(octets, 0 if message is None else message.delivery_count - 1)
        assert found in (True, False)
        if message is not None:
            assert found is Selector(text).matches(message), text


@given(st.binary(max_size=40))
def test_any_octets_are_judged(octets: bytes) -> None:
    for chosen in PREDICATES:
        assert chosen(octets, 0) in (True, False)
        assert chosen(b"\x00\x53\x74\xc1" + octets, 0) in (True, False)
        assert chosen(b"\x00\x53\x73\xc0" + octets, 0) in (True, False)
