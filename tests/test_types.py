"""Values of fixed width: ranges, rounding, and that they are the plain values otherwise."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from jmsish.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
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

RANGES = [
    (Byte, -128, 127),
    (Short, -32768, 32767),
    (Int, -(2**31), 2**31 - 1),
    (Long, -(2**63), 2**63 - 1),
    (Timestamp, -(2**63), 2**63 - 1),
    (UByte, 0, 255),
    (UShort, 0, 65535),
    (UInt, 0, 2**32 - 1),
    (ULong, 0, 2**64 - 1),
]


@pytest.mark.parametrize(("kind", "low", "high"), RANGES)
def test_an_integer_takes_its_range_and_nothing_beyond(kind: Any, low: int, high: int) -> None:
    assert (kind(low), kind(high)) == (low, high)
    for beyond in (low - 1, high + 1):
        with pytest.raises(ValueError, match=f"out of range for {kind.__name__}"):
            kind(beyond)


@pytest.mark.parametrize("wrong", [1.0, "1", None])
def test_an_integer_is_made_of_an_integer(wrong: Any) -> None:
    with pytest.raises(TypeError):
        Int(wrong)


def test_numbers_are_the_plain_values_in_use() -> None:
    assert Long(5) == 5 and hash(Long(5)) == hash(5) and Long(5) + 1 == 6
    assert (str(Long(5)), f"{Long(5)}", repr(Long(5))) == ("5", "5", "Long(5)")
    assert (str(Double(1.5)), repr(Float(0.5))) == ("1.5", "Float(0.5)")


def test_a_float_is_rounded_to_32_bits_when_it_is_made() -> None:
    assert Float(1.1) != 1.1 and abs(Float(1.1) - 1.1) < 1e-7
    assert Float(float("nan")) != Float(float("nan")) and Float(float("-inf")) == float("-inf")
    with pytest.raises(ValueError, match="out of range for Float"):
        Float(1e39)


@pytest.mark.parametrize("wrong", ["", "ab", "\ud800"])
def test_a_char_is_one_character(wrong: str) -> None:
    assert Char("€") == "€" and Char("\U0001f600") == "\U0001f600"
    with pytest.raises(ValueError, match="not one character"):
        Char(wrong)


def test_a_char_is_no_number() -> None:
    with pytest.raises(TypeError):
        Char(65)  # type: ignore[arg-type]


def test_text_kinds_show_what_they_are_and_print_as_text() -> None:
    assert repr(Symbol("a")) == "Symbol('a')" and str(Symbol("a")) == "a" and type(str(Symbol("a"))) is str
    assert repr(Char("a")) == "Char('a')" and f"{Char('a')}" == "a"


def test_timestamps_and_datetimes_are_one_moment() -> None:
    moment = datetime(2024, 2, 29, 12, 0, 0, 5000, tzinfo=timezone(timedelta(hours=2)))
    stamp = Timestamp.from_datetime(moment)
    assert stamp == 1709200800005 and stamp.to_datetime() == moment
    local = datetime(2024, 2, 29, 12)
    assert Timestamp.from_datetime(local) == int(local.timestamp() * 1000)


def test_decimals_are_octets_of_their_width() -> None:
    assert repr(Decimal32(b"abcd")) == "Decimal32(b'abcd')"
    with pytest.raises(ValueError, match="Decimal64 takes 8 octets, not 4"):
        Decimal64(b"abcd")


def test_described_values_are_equal_in_both_parts() -> None:
    assert Described(ULong(1), "a") == Described(ULong(1), "a") != Described(ULong(2), "a")
    assert Described(1, 2) != 2 and len({Described(1, 2), Described(1, 2)}) == 1


def test_arrays_are_equal_by_type_whatever_the_width_they_were_written_in() -> None:
    assert Array(["a"], 0xA3) == Array(["a"], 0xB3) != Array(["a"], 0xA1)
    assert Array([1], 0x71) != Array([1], 0x71, ULong(4)) and Array([], 0x71) != []
    array = Array([1, 2], 0x71)
    assert (list(array), len(array), array[1], hash(array) == hash(Array([1, 2], 0x54))) == ([1, 2], 2, 2, True)
    assert repr(Array([1], 0x71, "d")) == "Array((1,), 0x71, descriptor='d')"
