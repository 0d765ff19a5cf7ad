"""Octets of AMQP values: the standard's own forms, round trips, and input that is broken or hostile."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jmsish.engine import values
from jmsish.engine.encoding import DEPTH_LIMIT
from jmsish.engine.values import DecodeError, decode, decode_plain, encode
from jmsish.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
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

IDENTITY = UUID("12345678-1234-5678-1234-567812345678")

# value, its octets (Part 1, 1.6: format codes), what decoding gives where that is not the value itself
OCTETS: list[tuple[Any, str]] = [
    (None, "40"),
    (True, "41"),
    (False, "42"),
    (UByte(200), "50c8"),
    (UShort(500), "6001f4"),
    (UInt(0), "43"),
    (UInt(255), "52ff"),
    (UInt(256), "7000000100"),
    (ULong(0), "44"),
    (ULong(255), "53ff"),
    (ULong(256), "800000000000000100"),
    (Byte(-1), "51ff"),
    (Short(-2), "61fffe"),
    (127, "547f"),
    (-128, "5480"),
    (128, "7100000080"),
    (-129, "71ffffff7f"),
    (2**31 - 1, "717fffffff"),
    (2**31, "810000000080000000"),
    (-(2**63), "818000000000000000"),
    (Int(5), "5405"),
    (Long(5), "5505"),
    (Long(-129), "81ffffffffffffff7f"),
    (Float(1.5), "723fc00000"),
    (1.5, "823ff8000000000000"),
    (Double(1.5), "823ff8000000000000"),
    (Char("€"), "73000020ac"),
    (Timestamp(-1), "83ffffffffffffffff"),
    (IDENTITY, "98" + IDENTITY.hex),
    (b"", "a000"),
    (b"\x01\x02", "a0020102"),
    (b"x" * 256, "b000000100" + "78" * 256),
    ("", "a100"),
    ("é", "a102c3a9"),
    ("x" * 255, "a1ff" + "78" * 255),
    ("x" * 256, "b100000100" + "78" * 256),
    (Symbol("ab"), "a3026162"),
    (Symbol("x" * 256), "b300000100" + "78" * 256),
    ([], "45"),
    ([None, True], "c003024041"),
    ([b"x" * 252], "c0ff01a0fc" + "78" * 252),
    ([b"x" * 253], "d00000010300000001a0fd" + "78" * 253),
    ([None] * 256, "d00000010400000100" + "40" * 256),
    ({}, "c10100"),
    ({"a": 1}, "c10602a101615401"),
    (Described(ULong(0x24), []), "00532445"),
    (Described(Symbol("a:b"), 1), "00a303613a625401"),
    (Array([1, 2], 0x71), "e00a02710000000100000002"),
    (Array([Symbol("a"), Symbol("bc")], 0xA3), "e00702a30161026263"),
    (Array([True, False], 0x56), "e00402560100"),
    (Array([], 0x71), "e0020071"),
    (Array([1], 0x71, ULong(5)), "e009010053057100000001"),
    (Decimal32(b"abcd"), "7461626364"),
    (Decimal64(b"abcdefgh"), "84" + b"abcdefgh".hex()),
    (Decimal128(b"x" * 16), "94" + "78" * 16),
]


@pytest.mark.parametrize(("value", "octets"), OCTETS, ids=[octets[:16] for _, octets in OCTETS])
def test_values_have_their_octets(value: Any, octets: str) -> None:
    assert encode(value).hex() == octets


@pytest.mark.parametrize(("value", "octets"), OCTETS, ids=[octets[:16] for _, octets in OCTETS])
def test_octets_are_decoded_as_value_and_class(value: Any, octets: str) -> None:
    decoded, end = decode(b"\xff" + bytes.fromhex(octets) + b"\xff", 1)
    assert decoded == value and end == 1 + len(octets) // 2
    if not isinstance(value, (Int, Double)):
        # int and double need no class to be written as what they are; a long keeps its own.
        assert type(decoded) is (Long if octets[:2] == "81" else type(value))
    assert encode(decoded).hex() == octets


@pytest.mark.parametrize(("value", "octets"), OCTETS, ids=[octets[:16] for _, octets in OCTETS])
def test_any_shorter_octets_are_refused(value: Any, octets: str) -> None:
    whole = bytes.fromhex(octets)
    for size in range(min(len(whole), 40)):
        for read in (decode, decode_plain):
            with pytest.raises(DecodeError):
                read(whole[:size], 0)


def test_plain_decoding_gives_plain_types() -> None:
    value = [UInt(1), ULong(2), Long(3), Float(0.5), Timestamp(4), Symbol("s"), Array([Symbol("t")], 0xA3), UByte(5)]
    plain, _ = decode_plain(encode(value), 0)
    assert plain == [1, 2, 3, 0.5, 4, "s", ["t"], 5]
    assert [type(item) for item in plain] == [int, int, int, float, int, str, list, int]
    described, _ = decode_plain(encode(Array([1], 0x71, ULong(9))), 0)
    assert described == [Described(9, 1)] and type(described[0].descriptor) is int


class Colour(enum.IntEnum):
    RED = 7


class Name(str, enum.Enum):
    A = "a"


class Pair(NamedTuple):
    a: int
    b: str


KIN: list[tuple[Any, Any]] = [
    (Colour.RED, 7),
    (Name.A, "a"),
    (Pair(1, "x"), [1, "x"]),
    (OrderedDict(a=1), {"a": 1}),
    (MappingProxyType({"a": 1}), {"a": 1}),
    ((1, 2), [1, 2]),
    (bytearray(b"ab"), b"ab"),
    (memoryview(b"ab"), b"ab"),
    (datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc), Timestamp(1000)),
]


@pytest.mark.parametrize(("value", "plain"), KIN)
def test_kin_of_plain_types_travel_as_these(value: Any, plain: Any) -> None:
    assert encode(value) == encode(plain)


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, iter([]), [object()], {"a": object()}, Ellipsis])
def test_what_has_no_form_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="has no AMQP form"):
        encode(value)


WRONG_VALUES: list[Any] = [
    2**63,
    -(2**63) - 1,
    "\ud800",
    Symbol("é"),
    Array([1], 0x99),
    Array(["x"], 0x71),
    Array([2**31], 0x71),
    Array([1], 0xA1),
    Array([None] * 256, 0x40),
]


@pytest.mark.parametrize("value", WRONG_VALUES, ids=repr)
def test_what_does_not_fit_is_a_value_error(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # several, each with its own text
        encode(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(ValueError, match="contains itself"):
        encode(ring)


WRONG_OCTETS = [
    ("", "end inside a value"),
    ("01", "0x01 is no format code"),
    ("3f", "is no format code"),
    ("5602", "a boolean of 0x02"),
    ("73 00110000", "is no character"),
    ("73 0000d800", "is no character"),
    ("a1 02 c328", "text that is not utf-8"),
    ("a3 01 e9", "text that is not ascii"),
    ("b1 ffffffff 61", "end inside a value"),
    ("c0 01 01", "1 items in 0 octets"),
    ("c0 02 01", "end inside a value"),
    ("c0 03 01 4141", "does not match its items"),
    ("c0 02 01 7100000001", "does not match its items"),
    ("c0 00", "end inside a value"),
    ("c0 00 00", "too small for its count"),
    ("d0 00000003 00000000", "too small for its count"),
    ("d0 00000004 ffffffff", "4294967295 items in 0 octets"),
    ("d0 ffffffff 00000001 40", "end inside a value"),
    ("c1 02 01 40", "keys and values"),
    ("c1 09 04 a10161 40 a10161 40", "the key 'a' twice"),
    ("c1 03 02 45 40", "a map key that is a list or a map"),
    ("c1 04 02 40 40 40", "does not match its items"),
    ("e0 02 01 71", "an array of 1 elements"),
    ("e0 03 01 00 53", "end inside a value"),
    ("f0 00000005 ffffffff 41", "an array of 4294967295 elements"),
    ("f0 00000005 00000100 40", "an array of 256 elements"),
    ("e0 04 01 53 05 05", "does not match its elements"),
    ("00 53", "end inside a value"),
    ("00 53 24", "end inside a value"),
]


@pytest.mark.parametrize(("octets", "text"), WRONG_OCTETS)
def test_broken_octets_are_refused_with_a_reason(octets: str, text: str) -> None:
    for read in (decode, decode_plain):
        with pytest.raises(DecodeError, match=text) as caught:
            read(bytes.fromhex(octets), 0)
        assert caught.value.position >= 0 and "at octet" in str(caught.value)


@pytest.mark.parametrize("level", ["c0ff01", "00", "c1ff0240", "e0ff01c0"])
def test_nesting_is_bounded(level: str) -> None:
    with pytest.raises(DecodeError):
        decode(bytes.fromhex(level) * 5000, 0)


def test_nesting_goes_to_the_limit_and_no_further() -> None:
    value: Any = None
    for _ in range(DEPTH_LIMIT):
        value = [value]
    assert decode(encode(value), 0)[0] == value
    with pytest.raises(ValueError, match="nested deeper"):
        encode([value])
    octets = encode(value)
    with pytest.raises(DecodeError, match="nested deeper"):
        decode(b"\xd0" + (len(octets) + 4).to_bytes(4, "big") + b"\x00\x00\x00\x01" + octets, 0)


def test_the_position_of_a_fault_is_where_it_is() -> None:
    with pytest.raises(DecodeError) as caught:
        decode(bytes.fromhex("c0050240a102c3"), 0)
    assert caught.value.position == 7
    with pytest.raises(DecodeError) as caught:
        decode(bytes.fromhex("c0060240a102c328"), 0)
    assert caught.value.position == 6


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
    | st.binary(max_size=300)
    | st.uuids()
    | st.integers(-128, 127).map(Byte)
    | st.integers(-(2**15), 2**15 - 1).map(Short)
    | st.integers(-(2**63), 2**63 - 1).map(Long)
    | st.integers(0, 255).map(UByte)
    | st.integers(0, 2**16 - 1).map(UShort)
    | st.integers(0, 2**32 - 1).map(UInt)
    | st.integers(0, 2**64 - 1).map(ULong)
    | st.integers(-(2**63), 2**63 - 1).map(Timestamp)
    | st.floats(width=32, allow_nan=False).map(Float)
    | st.characters(exclude_categories=["Cs"]).map(Char)
    | st.binary(min_size=8, max_size=8).map(Decimal64)
)

# Keys that Python takes for one (1, True, 1.0) are two in AMQP; no dict can hold both.
KEYS = st.text(max_size=20).filter(lambda text: text.isascii()) | st.integers(-(2**31), 2**31 - 1)

SYMBOLS = st.text(st.characters(max_codepoint=127), max_size=300).map(Symbol)

ARRAYS = (
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=300).map(lambda items: Array(items, 0x71))
    | st.lists(st.text(st.characters(max_codepoint=127), max_size=300).map(Symbol)).map(
        lambda items: Array(items, 0xA3)
    )
    | st.lists(st.booleans()).map(lambda items: Array(items, 0x56))
    | st.lists(st.lists(SCALARS, max_size=3), max_size=3).map(lambda items: Array(items, 0xD0))
    | st.lists(st.uuids()).map(lambda items: Array(items, 0x98, ULong(77)))
    | st.lists(st.lists(st.integers(0, 5)).map(lambda items: Array(items, 0x71)), max_size=3).map(
        lambda items: Array(items, 0xF0)
    )
)

VALUES = st.recursive(
    SCALARS | SYMBOLS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(KEYS, inner, max_size=6)
        | st.builds(Described, st.integers(0, 2**64 - 1).map(ULong), inner)
    ),
    max_leaves=12,
)


def same(a: Any, b: Any) -> bool:
    """Equal in value and class, all the way down."""
    if isinstance(a, list):
        return type(b) is list and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(b) is dict and len(a) == len(b) and all(key in b and same(a[key], b[key]) for key in a)
    if isinstance(a, Described):
        return isinstance(b, Described) and same(a.descriptor, b.descriptor) and same(a.value, b.value)
    if type(a) is int and not -(2**31) <= a < 2**31:
        return type(b) is Long and a == b
    if isinstance(a, float) and a == 0:
        return type(a) is type(b) and math.copysign(1, a) == math.copysign(1, b)
    return type(a) is type(b) and bool(a == b)


@given(VALUES)
def test_round_trip_keeps_value_and_class(value: Any) -> None:
    octets = encode(value)
    decoded, end = decode(octets, 0)
    assert end == len(octets) and same(value, decoded)
    assert encode(decoded) == octets
    assert decode_plain(octets, 0)[1] == len(octets)


@given(st.binary(max_size=200))
@example(b"\x00" * 200)
@example(bytes.fromhex("f00000000500000100") + b"\x45")
def test_any_octets_are_decoded_or_refused(octets: bytes) -> None:
    for read in (decode, decode_plain):
        try:
            _, end = read(octets, 0)
        except DecodeError as fault:
            assert 0 <= fault.position <= len(octets) + 1  # noqa: PT017  # nothing else may be raised
        else:
            assert 0 < end <= len(octets)


@given(VALUES, st.data())
def test_a_changed_octet_never_breaks_the_decoder(value: Any, data: st.DataObject) -> None:
    octets = bytearray(encode(value))
    octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(octets), 0)
    except DecodeError:
        pass


def test_not_a_number_travels() -> None:
    assert math.isnan(decode(encode(math.nan), 0)[0]) and math.isnan(decode(encode(Float(math.nan)), 0)[0])


def test_forms_for_performatives() -> None:
    assert values.encode_list([encode(1), values.NULL]) == encode([1, None])
    assert values.encode_map([encode("a"), encode(1)]) == encode({"a": 1})
    assert values.encode_symbols(()) == b"\x40"
    assert decode(values.encode_symbols(("a", "b")), 0)[0] == Array([Symbol("a"), Symbol("b")], 0xA3)
    assert decode(values.encode_described(0x10, values.EMPTY_LIST), 0)[0] == Described(ULong(0x10), [])
    assert (values.encode_boolean(True), values.encode_ubyte(7), values.encode_ushort(7)) == (
        b"A",
        b"P\x07",
        b"`\x00\x07",
    )


def test_an_array_without_elements_has_elements_of_some_type_all_the_same() -> None:
    with pytest.raises(DecodeError, match="0xff is no format code"):
        decode(b"\xe0\x02\x00\xff")
