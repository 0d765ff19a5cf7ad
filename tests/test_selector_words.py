"""The rules of what selectors are written with, 183 to 186: strings, numbers, keywords, identifiers."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.selecting import predicate
from jmsish.selector import Selector
from jmsish.types import Float, Long
from tests.selector_cases import foreign_octets, refused, selects

# -- literals ----------------------------------------------------------------------------------------------------------


def test_rule_183_a_quote_in_a_string_is_written_twice() -> None:
    assert selects("quoted = 'it''s'")
    assert selects("empty = ''")
    assert selects("q = ''''", {"q": "'"})


@pytest.mark.parametrize("text", ["žluťoučký", "日本語", "🙂", "a\nb", '"', "--", "/* */", "a = 1"])
def test_rule_183_strings_hold_any_text(text: str) -> None:
    assert selects(f"word = '{text}'", {"word": text})
    assert not selects(f"word = '{text}'", {"word": text + "x"})


EXACT = [
    ("0", 0), ("57", 57), ("-957", -957), ("+62", 62), ("7L", 7), ("7l", 7), ("0x1F", 31), ("0X1f", 31), ("0x1fL", 31),
    ("017", 15), ("00", 0), ("017L", 15), ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)),
    ("- 9223372036854775808", -(2**63)), ("-9223372036854775808L", -(2**63)), ("0x7FFFFFFFFFFFFFFF", 2**63 - 1),
    ("0xFFFFFFFFFFFFFFFF", -1), ("0xFFFFFFFF", 2**32 - 1), ("0x8000000000000000", -(2**63)),
    ("01777777777777777777777", -1), ("0x00000000000000000000001", 1), ("- -5", 5), ("-+5", -5), ("-0", 0),
]  # fmt: skip


@pytest.mark.parametrize(("literal", "value"), EXACT)
def test_rule_184_exact_numbers_are_those_of_java_in_64_bits(literal: str, value: int) -> None:
    assert selects(f"n = {literal}", {"n": Long(value)})
    assert selects(f"n <> {literal}", {"n": Long(value - 1 if value > 0 else value + 1)})


APPROXIMATE = [
    ("7.", 7.0), ("7E3", 7000.0), ("7e+3", 7000.0), ("57.9E2", 5790.0), ("-957.34", -957.34), ("+6.2", 6.2), (".5",
    0.5),
    ("1.5f", 1.5), ("0.1f", Float(0.1)), ("0.1F", Float(0.1)), ("0.1d", 0.1), ("2d", 2.0), ("2D", 2.0), ("1.e5", 1e5),
    ("09.5", 9.5), ("08e1", 80.0), ("-.5e-1", -0.05), ("1e-400", 0.0), ("0f", 0.0), ("017.", 17.0),
]  # fmt: skip


@pytest.mark.parametrize(("literal", "value"), APPROXIMATE)
def test_rule_184_approximate_numbers_have_a_point_an_exponent_or_a_suffix(literal: str, value: float) -> None:
    assert selects(f"n = {literal}", {"n": float(value)})
    assert not selects(f"n = {literal}", {"n": float(value) + 0.01})


NO_NUMBERS = [
    ("9223372036854775808", "9223372036854775807 is the largest"),
    ("+9223372036854775808", "9223372036854775807 is the largest"),
    ("-(9223372036854775808)", "9223372036854775807 is the largest"),
    ("-9223372036854775809", "9223372036854775807 is the largest"),
    ("1 + 9223372036854775808", "9223372036854775807 is the largest"),
    ("1" * 5000, "9223372036854775807 is the largest"),
    ("0x10000000000000000", "beyond 64 bits"),
    ("02000000000000000000000", "beyond 64 bits"),
    ("09", "octal"),
    ("0128L", "octal"),
    ("0x", "no number"),
    ("0xG", "no number"),
    ("7abc", "no number"),
    ("1.2.3", "no number"),
    ("1e", "no number"),
    ("1e+", "no number"),
    ("7fL", "no number"),
    ("1_000", "no number"),
    ("1e309", "too large for a double"),
    ("1e39f", "too large for a float"),
    ("1e400f", "too large for a float"),
]


@pytest.mark.parametrize(("literal", "why"), NO_NUMBERS)
def test_rule_184_what_is_no_number_is_refused(literal: str, why: str) -> None:
    refused(f"n = {literal}", why)


# -- words -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [str.upper, str.lower, str.title])
def test_rule_185_keywords_have_no_case(change: Any) -> None:
    words = "NOT AND OR BETWEEN LIKE IN IS NULL ESCAPE TRUE FALSE".split()
    text = (
        "NOT no = TRUE AND weight BETWEEN 1 AND 20 AND (colour LIKE 'r%' ESCAPE '!' OR colour IN ('x')) "
        "AND absent IS NULL AND no = FALSE"
    )
    written = " ".join([change(word) if word.strip("()") in words else word for word in text.split(" ")])
    assert selects(written)


def test_rule_185_identifiers_have_case() -> None:
    assert selects("weight = 11 AND Weight = 99 AND WEIGHT IS NULL")
    assert selects("jmsPriority IS NULL AND JMSPriority = 4")


@pytest.mark.parametrize(
    "name", ["_", "$", "$a_1", "_9", "été", "变量", "µ", "a9", "Ⅷ", "ıs", "nOtable", "inn", "e1", "€"]
)
def test_rule_186_identifiers_are_those_of_java(name: str) -> None:
    selector = Selector(f"{name} = 1")
    assert selector.identifiers == {name}
    assert selector.select({name: 1}.get)
    assert predicate(selector)(foreign_octets({name: 1}), 0)


@pytest.mark.parametrize(
    ("name", "position"), [("a-é!", 3), ("a\u00a0", 1), ("a·b", 1), ("a#", 1), ("²", 0), ("a.b", 1)]
)
def test_rule_186_what_is_no_identifier_is_refused(name: str, position: int) -> None:
    assert refused(f"{name} = 1").position == position


@pytest.mark.parametrize("word", ["NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"])
def test_rule_186_keywords_are_no_identifiers(word: str) -> None:
    refused(f"{word.lower()} IS NULL")
