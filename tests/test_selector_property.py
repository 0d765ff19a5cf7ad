"""The compiled selector against a plain evaluator: any condition, of any message, to the same of three values."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from jmsish.engine.selecting import predicate
from jmsish.errors import InvalidSelectorError
from jmsish.selector import Selector
from jmsish.selector.like import matcher
from tests.effort import examples
from tests.selector_cases import foreign_octets, made, octets_of, received

# An expression is a tuple: what it is, and what it is made of. It is written out with a parenthesis around each part,
# and with as few as rule 193 allows.
Expression = tuple[Any, ...]

NAMES = st.sampled_from(["a", "b", "c", "d", "s", "t", "flag", "absent"])
TEXTS = st.text("ab%_'x", max_size=4)
INTEGERS = st.one_of(st.integers(-3, 12), st.integers(-(2**63) + 1, 2**63 - 1))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.one_of(INTEGERS, FLOATS, st.booleans(), TEXTS)
MESSAGES = st.fixed_dictionaries({}, optional=dict.fromkeys(("a", "b", "c", "d", "s", "t", "flag"), VALUES))

NUMBERS = st.recursive(
    st.one_of(
        st.tuples(st.just("name"), NAMES), st.tuples(st.just("value"), INTEGERS), st.tuples(st.just("value"), FLOATS)
    ),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*/"), inner, inner), st.tuples(st.sampled_from(["minus", "plus"]), inner)
    ),
    max_leaves=4,
)
ANYTHING = st.one_of(
    NUMBERS,
    st.tuples(st.just("value"), st.booleans()),
    st.tuples(st.just("value"), TEXTS),
    st.tuples(st.just("name"), NAMES),
)
PREDICATES = st.one_of(
    st.tuples(st.sampled_from(["=", "<>"]), ANYTHING, ANYTHING),
    st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), NUMBERS, NUMBERS),
    st.tuples(st.just("between"), NUMBERS, NUMBERS, NUMBERS, st.booleans()),
    st.tuples(st.just("in"), NAMES, st.lists(TEXTS, min_size=1, max_size=3), st.booleans()),
    st.tuples(st.just("like"), NAMES, TEXTS, st.booleans()),
    st.tuples(st.just("null"), NAMES, st.booleans()),
    st.tuples(st.just("name"), NAMES),
    st.tuples(st.just("value"), st.booleans()),
)
CONDITIONS = st.recursive(
    PREDICATES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner, inner),
        st.tuples(st.just("not"), inner),
    ),
    max_leaves=12,
)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def written(expression: Expression) -> str:
    """The text of an expression."""
    kind, *parts = expression
    if kind == "name":
        return str(parts[0])
    if kind == "value":
        value = parts[0]
        return quoted(value) if isinstance(value, str) else repr(value).upper()
    if kind in ("minus", "plus"):
        return f"{'-' if kind == 'minus' else '+'} ({written(parts[0])})"
    if kind == "between":
        *operands, negated = parts
        operand, low, high = [f"({written(part)})" for part in operands]
        return f"{operand} {'NOT ' if negated else ''}BETWEEN {low} AND {high}"
    if kind == "in":
        return f"{parts[0]} {'NOT ' if parts[2] else ''}IN ({', '.join(map(quoted, parts[1]))})"
    if kind == "like":
        return f"{parts[0]} {'NOT ' if parts[2] else ''}LIKE {quoted(parts[1])}"
    if kind == "null":
        return f"{parts[0]} IS {'NOT ' if parts[1] else ''}NULL"
    if kind == "not":
        return f"NOT ({written(parts[0])})"
    return f" {kind.upper()} ".join([f"({written(part)})" for part in parts])


# Rule 193: the higher, the tighter.
LEVELS = {"or": 1, "and": 2, "not": 3, "+": 5, "-": 5, "*": 6, "/": 6, "minus": 7, "plus": 7, "name": 8}


def level_of(expression: Expression) -> int:
    """How tightly an expression binds; a literal that begins with a sign binds as a sign does."""
    kind = expression[0]
    if kind == "value":
        return 7 if repr(expression[1]).startswith("-") else 8
    return LEVELS.get(kind, 4)


def bare(expression: Expression, least: int = 0) -> str:
    """The text with no more parentheses than it needs where what binds ``least`` may stand."""
    kind, *parts = expression
    level = level_of(expression)
    if kind in ("and", "or", "+", "-", "*", "/"):
        first, *rest = parts
        text = f" {kind.upper()} ".join([bare(first, level), *[bare(part, level + 1) for part in rest]])
    elif kind == "not":
        text = f"NOT {bare(parts[0], level)}"
    elif kind in ("minus", "plus"):
        text = f"{'-' if kind == 'minus' else '+'} {bare(parts[0], level)}"
    elif kind == "between":
        operand, low, high = [bare(part, 5) for part in parts[:3]]
        text = f"{operand} {'NOT ' if parts[3] else ''}BETWEEN {low} AND {high}"
    elif kind in ("=", "<>", "<", "<=", ">", ">="):
        text = f"{bare(parts[0], 5)} {kind} {bare(parts[1], 5)}"
    else:
        text = written(expression)
    return text if level >= least else f"({text})"


# -- the plain evaluator -----------------------------------------------------------------------------------------------


def kind_of(value: Any) -> str:
    return {bool: "boolean", str: "string", int: "number", float: "number"}[type(value)]


def java_long(value: Any) -> Any:
    return (value + 2**63) % 2**64 - 2**63 if isinstance(value, int) else value


def arithmetic(sign: str, left: Any, right: Any) -> Any:
    if any(value is None or kind_of(value) != "number" for value in (left, right)):
        return None
    if sign == "/":
        if right == 0:
            return None
        if isinstance(left, float) or isinstance(right, float):
            return left / right
        whole = (abs(left) - abs(left) % abs(right)) // abs(right)
        return java_long(whole if left * right >= 0 else -whole)
    return java_long({"+": left + right, "-": left - right, "*": left * right}[sign])


def comparison(sign: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if kind_of(left) != kind_of(right):
        return False
    if sign in ("=", "<>"):
        return bool((left == right) == (sign == "="))
    if kind_of(left) != "number":
        return False
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[sign])


def conjunction(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def negation(value: bool | None, negated: bool = True) -> bool | None:
    return value if value is None or not negated else not value


def like(pattern: str, text: str) -> bool:
    expression = "".join([{"%": ".*", "_": "."}.get(char, re.escape(char)) for char in pattern])
    return re.fullmatch(expression, text, re.DOTALL) is not None


def truth(value: Any) -> bool | None:
    return None if value is None else value is True


def number_or_none(value: Any) -> Any:
    return value if value is not None and kind_of(value) == "number" else None


def evaluated(expression: Expression, message: dict[str, Any]) -> Any:
    kind, *parts = expression
    if kind == "name":
        return message.get(parts[0])
    if kind == "value":
        return parts[0]
    if kind in ("minus", "plus"):
        value = evaluated(parts[0], message)
        return arithmetic("-" if kind == "minus" else "+", 0 if isinstance(value, int) else -0.0, value)
    if kind in "+-*/":
        return arithmetic(kind, *[evaluated(part, message) for part in parts])
    if kind in ("=", "<>", "<", "<=", ">", ">="):
        return comparison(kind, *[evaluated(part, message) for part in parts])
    if kind == "between":
        value, low, high = [number_or_none(evaluated(part, message)) for part in parts[:3]]
        return negation(conjunction([comparison(">=", value, low), comparison("<=", value, high)]), parts[3])
    if kind == "null":
        return (message.get(parts[0]) is None) != parts[1]
    if kind in ("in", "like"):
        value = message.get(parts[0])
        if not isinstance(value, str):
            return None
        found = value in parts[1] if kind == "in" else like(parts[1], value)
        return negation(found, parts[2])
    values = [truth(evaluated(part, message)) for part in parts]
    if kind == "not":
        return negation(values[0])
    return conjunction(values) if kind == "and" else negation(conjunction([negation(value) for value in values]))


# -- properties --------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(400))
@given(CONDITIONS, MESSAGES)
@example(("=", ("-", ("name", "a"), ("value", 1)), ("value", 2**63 - 1)), {"a": -(2**63)})
@example(("between", ("name", "a"), ("name", "absent"), ("value", 1), True), {"a": 5})
def test_a_compiled_selector_has_the_value_that_the_rules_give(condition: Expression, message: dict[str, Any]) -> None:
    value = truth(evaluated(condition, message))
    for text in (written(condition), bare(condition)):
        assert Selector(text).select(message.get) is (value is True), text
        assert Selector(f"NOT ({text})").select(message.get) is (value is False), text


@given(CONDITIONS, MESSAGES)
def test_octets_are_selected_as_the_message_is(condition: Expression, message: dict[str, Any]) -> None:
    selector = Selector(written(condition))
    local = made(message)
    octets = octets_of(local)
    chosen = selector.matches(local)
    assert predicate(selector)(octets, 0) is chosen
    assert selector.matches(received(octets)) is chosen


@given(st.text("ab%_", max_size=8), st.text("ab", max_size=12))
def test_like_is_what_a_regular_expression_says(pattern: str, text: str) -> None:
    assert matcher(pattern, None)(text) is like(pattern, text)
    shell = pattern.replace("%", "*").replace("_", "?")
    assert matcher(pattern, None)(text) is fnmatch.fnmatchcase(text, shell)


@given(st.text(max_size=10), st.sampled_from("!\\%_'x"))
def test_an_escaped_text_is_like_itself_alone(text: str, escape: str) -> None:
    pattern = "".join([escape + char if char in ("%", "_", escape) else char for char in text])
    matches = matcher(pattern, escape)
    assert matches(text)
    assert not matches(text + "x")


@given(st.one_of(VALUES, st.none()))
def test_any_literal_is_read_back(value: Any) -> None:
    """A property equals the literal of its own value, and no other value of its type."""
    if value is None:
        assert Selector("a IS NULL").select({}.get)
        return
    text = written(("value", value))
    assert predicate(Selector(f"a = {text}"))(foreign_octets({"a": value}), 0)
    assert not predicate(Selector(f"a <> {text}"))(foreign_octets({"a": value}), 0)


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.sampled_from(
            ["a", "AND", "OR", "NOT", "(", ")", "=", "<>", "<", "1", "'x'", "IN", "LIKE", "BETWEEN", "IS", "NULL",
            ",", "-", "+",
             "*", "/", "ESCAPE", "TRUE", "0x", "1.5f", "JMSType", "JMSReplyTo", "'", "\n", "é", "--",
             "9223372036854775808"]
        ),
        max_size=14,
    ).map(" ".join)
)  # fmt: skip
def test_any_words_make_a_selector_or_a_fault_in_the_text(text: str) -> None:
    try:
        found = Selector(text)
    except InvalidSelectorError as fault:
        assert fault.position is not None
        assert 0 <= fault.position <= len(text)
        assert str(fault).split("\n")[2].strip() == "^"
    else:
        assert found.select({}.get) in (True, False)
