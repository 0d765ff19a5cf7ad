"""Selectors with faults: where the error points, and that hostile ones are refused before they cost anything."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from jmsish.errors import InvalidSelectorError, JMSError
from jmsish.selector import Selector
from jmsish.selector.like import PATTERN_LIMIT
from jmsish.selector.tokens import DEPTH_LIMIT, LENGTH_LIMIT
from tests.selector_cases import refused

# -- what is said ------------------------------------------------------------------------------------------------------


def test_the_message_shows_the_place() -> None:
    fault = refused("colour = AND weight > 10")
    assert str(fault) == (
        "AND where an identifier, a literal or '(' is expected, at position 10 of the selector:\n"
        "  colour = AND weight > 10\n"
        "           ^"
    )
    assert fault.position == 9
    assert isinstance(fault, JMSError)


def shown(text: str) -> tuple[str, str]:
    """The line of the error that shows the text, and the character above the caret."""
    line, caret = str(refused(text)).split("\n")[1:]
    return line.strip(), line[len(caret) - 1 :][:1]


def test_a_long_text_is_shown_in_part() -> None:
    line, marked = shown("a = 1 OR " * 1000 + "? OR " + "a = 1 OR " * 1000)
    assert marked == "?"
    assert len(line) < 80
    assert line.startswith("…") and line.endswith("…")


def test_line_ends_and_wide_characters_do_not_move_the_caret() -> None:
    assert shown("a\n=\t1\nAND ?") == ("a = 1 AND ?", "?")
    assert shown("a = '\x00\u202e' AND ?")[1] == "?"
    # Two columns each on a terminal, so the caret stands four further to the right than the character.
    line, caret = str(refused("名前 = ?")).split("\n")[1:]
    assert len(caret) - 1 == line.index("?") + 2
    line, caret = str(refused("e\u0301 = ?")).split("\n")[1:]
    assert len(caret) - 1 == line.index("?") - 1


def test_words_of_the_text_do_not_break_the_line_of_what_is_said() -> None:
    first, line, caret = str(refused("a ' \n '")).split("\n")
    assert first == "'   ' where an operator is expected, at position 3 of the selector:"
    assert line[len(caret) - 1 :] == "'   '"


FAULTS = [
    # text, offset, what is said
    ("colour = 'red", 9, "the closing ' is missing"),
    ("colour = 'it''s", 9, "the closing ' is missing"),
    ('colour = "red"', 9, "single quotes"),
    ("(a = 1", 0, "a parenthesis that is not closed"),
    ("(a = 1 AND (b = 2)", 0, "a parenthesis that is not closed"),
    ("a IN ('x'", 5, "a parenthesis that is not closed"),
    ("a = 1)", 5, "a ')' without its '('"),
    ("a = 1 b = 2", 6, "b where AND, OR or the end is expected"),
    ("a 1", 2, "1 where an operator is expected"),
    ("a = 1 = 1", 6, "= where AND, OR or the end is expected"),
    ("1 < a < 3", 6, "< where AND, OR or the end is expected"),
    ("AND a = 1", 0, "AND where an identifier"),
    ("a = 1 AND", 9, "the selector ends where an identifier"),
    ("NOT", 3, "the selector ends"),
    ("a NOT = 1", 6, "= where BETWEEN, IN or LIKE is expected"),
    ("a IS NOT 1", 9, "1 where NULL is expected"),
    ("a = NOT b", 4, "NOT where an identifier"),
    ("a BETWEEN 1 OR 2", 12, "OR where AND is expected"),
    ("a != 1", 2, "unequal is written '<>'"),
    ("a == 1", 2, "equal is written '='"),
    ("a && b", 2, "write AND"),
    ("a || b", 2, "write OR"),
    ("a = 1;", 5, "';' is no part of a selector"),
    ("a = {b}", 4, "'{' is no part of a selector"),
    ("a % 2 = 1", 2, "'%' is no part of a selector"),
    ("a = b.c", 5, "'.' belongs into numbers only"),
    ("a\x00 = 1", 1, "is no part of a selector"),
    ("a = '\ud800'", 5, "half a character"),
    ("a\ud800 = 1", 1, "cannot stand in an identifier"),
    ("=> 1", 0, "= where"),
    ("1 + 2", 0, "a selector is a condition"),
    ("'red'", 0, "a string where a condition is expected"),
    ("-a", 0, "a number where a condition is expected"),
    ("9223372036854775808", 0, "9223372036854775807 is the largest"),
    ("a AND 5", 6, "a number where a condition is expected: AND joins conditions"),
    ("'x' OR a", 0, "a string where a condition is expected: OR joins conditions"),
    ("NOT 5", 4, "NOT turns a condition round"),
    ("a + 'x' = 1", 4, "a string where a number is expected: + joins numbers"),
    ("a * TRUE = 1", 4, "a boolean where a number is expected: * joins numbers"),
    ("(a = 1) + 1 = 2", 1, "a condition where a number is expected"),
    ("(a IN ('x')) + 1 = 2", 1, "a condition where a number is expected"),
    ("(a NOT LIKE 'x') > 1", 1, "a condition where a number is expected"),
    ("1 < (a IS NULL)", 5, "a condition where a number is expected"),
    ("(NOT a) + 1 = 1", 1, "a condition where a number is expected"),
    ("(a AND b) + 1 = 1", 1, "a condition where a number is expected"),
    ("(a BETWEEN 1 AND 2) + 1 = 1", 1, "a condition where a number is expected"),
    ("a BETWEEN (b OR c) AND 2", 11, "a condition where a number is expected: BETWEEN"),
    ("a AND (1 + 2 * 3)", 7, "a number where a condition is expected"),
    ("a AND (- b)", 7, "a number where a condition is expected"),
    ("-'x' = 1", 1, "a sign stands before a number"),
    ("+TRUE = 1", 1, "a sign stands before a number"),
    ("(a = 1) > 2", 1, "a condition where a number is expected"),
    ("a > b AND c >= 'x'", 15, ">= orders numbers"),
    ("a" * 50 + " 1", 51, "1 where an operator"),
    ("a = 1 " + "b" * 50, 6, "b" * 40 + "… where"),
]


@pytest.mark.parametrize(("text", "position", "said"), FAULTS)
def test_rule_181_faults_are_pointed_at(text: str, position: int, said: str) -> None:
    assert refused(text, said).position == position


@pytest.mark.parametrize("text", ["", "  "])
def test_a_selector_is_not_made_of_nothing(text: str) -> None:
    refused(text, "an empty selector")


@pytest.mark.parametrize("text", [None, 5, b"a = 1"])
def test_a_selector_is_made_of_a_str(text: object) -> None:
    with pytest.raises(TypeError, match="a selector is a str"):
        Selector(text)  # type: ignore[arg-type]


def test_parse_refuses_what_is_no_text() -> None:
    with pytest.raises(TypeError, match="a selector is a str, not int"):
        Selector.parse(5)  # type: ignore[arg-type]


def test_an_error_of_the_peer_has_no_position() -> None:
    assert InvalidSelectorError("refused", condition="amqp:invalid-field").position is None


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_selector_of_a_megabyte_is_refused_without_being_read() -> None:
    # The characters are none that a selector may have: had they been looked at, that would be the fault.
    fault = refused("?" * 1_000_000, f"a selector of 1000000 characters: the limit is {LENGTH_LIMIT}")
    assert fault.position == LENGTH_LIMIT
    assert len(str(fault)) < 300


NESTED = [
    "(",
    "NOT ",
    "- ",
    "+ ",
    "-(",
    "NOT (",
    "NOT(- ",
    "not not(",
    "a = (",
    "a IN (",
    "a OR NOT (b AND ",
    "1 + (2 * ",
]


@pytest.mark.parametrize("opening", NESTED)
def test_ten_thousand_levels_are_refused_before_the_grammar(opening: str) -> None:
    fault = refused((opening * 10_000)[:LENGTH_LIMIT], f"deeper than {DEPTH_LIMIT} levels")
    assert fault.position is not None
    assert fault.position < (DEPTH_LIMIT + 1) * len(opening)


DEEP = [
    ("(" * DEPTH_LIMIT + "a = 1" + ")" * DEPTH_LIMIT, True),
    ("NOT " * DEPTH_LIMIT + "a = 1", True),
    ("- " * DEPTH_LIMIT + "1 = a", True),
    ("a = " + "-(" * (DEPTH_LIMIT // 2) + "1" + ")" * (DEPTH_LIMIT // 2), True),
    ("NOT (" * (DEPTH_LIMIT // 2) + "a = 1" + ")" * (DEPTH_LIMIT // 2), True),
    ("(b = 2 OR a = 1 AND " * DEPTH_LIMIT + "a = 1" + ")" * DEPTH_LIMIT, True),
    ("a = " + "(1 + 0 * " * DEPTH_LIMIT + "1" + ")" * DEPTH_LIMIT, True),
    ("NOT (" + "((a = 1) OR " * (DEPTH_LIMIT - 3) + "b = 2" + ")" * (DEPTH_LIMIT - 2), False),
]


@pytest.mark.parametrize(("text", "selected"), DEEP)
def test_up_to_the_limit_nesting_works(text: str, selected: bool) -> None:
    assert Selector(text).select({"a": 1}.get) is selected


def test_what_is_done_with_counts_no_more() -> None:
    """Depth is what is nested, not how many there are."""
    for part in (
        "(a = 1)",
        "NOT NOT a = 1",
        "- -1 = a",
        "NOT (NOT (a = 1))",
        "b NOT IN ('x')",
        "a IS NOT NULL",
        "-(-1) = a",
    ):
        assert Selector(" AND ".join([part] * 500)).select({"a": 1, "b": "y"}.get)


LONG = [
    " AND ".join(["a = 1"] * 10_000),
    " OR ".join(["a = 2"] * 10_000 + ["a = 1"]),
    " AND ".join(["NOT (a = 2 OR b = 3 AND c)"] * 2_000),
    "b IN (" + ", ".join([f"'value {number}'" for number in range(8_000)]) + ")",
    "30000 = " + " + ".join(["a"] * 30_000),
    "1 = " + " * ".join(["a"] * 30_000),
    "NOT (" + " OR ".join(["a = 2"] * 10_000) + ")",
    "a = 1 AND s LIKE '" + "%" * PATTERN_LIMIT + "'",
]


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:12])
def test_long_and_flat_selectors_work(text: str) -> None:
    assert len(text) < LENGTH_LIMIT
    assert Selector(text).select({"a": 1, "b": "value 7999", "c": False, "s": "x"}.get)


def test_long_patterns_are_refused() -> None:
    Selector(f"a LIKE '{'_' * PATTERN_LIMIT}'")
    refused(f"a LIKE '{'_' * (PATTERN_LIMIT + 1)}'", f"the limit is {PATTERN_LIMIT}")


HOSTILE = [
    "a = '" + "''" * 60_000,
    "''" * 60_000,
    "a = " + "9" * 100_000,
    "a = " + "9" * 100_000 + "x",
    "a = 0" + "8" * 100_000 + "x",
    "a = ." + "8" * 100_000 + ".",
    "a = 1." + "8" * 100_000 + "e",
    "a = " + "1e" * 50_000,
    "a = 0x" + "f" * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:10])
def test_hostile_texts_are_refused_in_little_text(text: str) -> None:
    assert len(str(refused(text))) < 400


def test_no_pattern_makes_the_search_go_back() -> None:
    """Forty runs over a text that lacks the end: a search that went back would not come to an end."""
    assert not Selector(f"a LIKE '{'%a' * 40}b'").select({"a": "a" * 2000}.get)
    assert not Selector(f"a LIKE '{'%_a' * 40}b'").select({"a": "a" * 2000}.get)
    assert Selector(f"a LIKE '{'%a_' * 40}%'").select({"a": "a" * 2000}.get)


# -- the library -------------------------------------------------------------------------------------------------------


def test_lark_is_imported_with_the_first_selector() -> None:
    program = (
        "import sys, jmsish; assert 'lark' not in sys.modules;"
        "jmsish.Selector.parse(None); assert 'lark' not in sys.modules;"
        "jmsish.Selector('a = 1'); assert 'lark' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_threads_may_read_selectors_at_the_same_time() -> None:
    """They share one parser, which keeps nothing of a text between two calls."""
    texts = [
        f"a{number} = {number} AND (b IN ('x', 'y{number}') OR NOT c{number} LIKE '%{number}_')" for number in range(40)
    ]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(Selector, texts * 3))
    assert [selector.text for selector in found] == texts * 3
    for number, selector in enumerate(found):
        number %= len(texts)
        assert selector.identifiers == {f"a{number}", "b", f"c{number}"}
        assert selector.select({f"a{number}": number, "b": f"y{number}"}.get)
        assert not selector.select({f"a{number}": number, "b": "y", f"c{number}": f"{number}!"}.get)


def test_selectors_are_values() -> None:
    assert Selector("a = 1") == Selector("a = 1") != Selector("a = 2")
    assert Selector("a = 1") != "a = 1"
    assert len({Selector("a = 1"), Selector("a = 1"), Selector("a  = 1")}) == 2
    assert repr(Selector("a = '1'")) == """Selector("a = '1'")"""
