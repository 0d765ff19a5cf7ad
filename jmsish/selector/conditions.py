"""A tree made into functions: each takes what looks up names, and gives a value, or None for unknown.

::

    AND      true     false    unknown        OR       true     false    unknown        NOT
    true     true     false    unknown        true     true     true     true           true     false
    false    false    false    false          false    true     false    unknown        false    true
    unknown  unknown  false    unknown        unknown  true     unknown  unknown        unknown  unknown

The shapes that most selectors have, ``name operator literal`` and an AND of two, have functions of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jmsish.selector import like
from jmsish.selector.tree import (
    Arithmetic,
    Between,
    Both,
    Comparison,
    Either,
    Identifier,
    InList,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Signed,
)
from jmsish.selector.values import ARITHMETIC, OPERATORS, compare, is_number, negative

__all__ = ["Lookup", "condition", "selecting"]

Lookup = Callable[[str], Any]
Condition = Callable[[Lookup], "bool | None"]
Value = Callable[[Lookup], Any]

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def selecting(node: Node) -> Callable[[Lookup], bool]:
    """Whether the condition is true: only true selects (rule 192), so what is false need not be told from unknown."""
    if isinstance(node, Both):
        return _all_true([selecting(item) for item in node.items])
    if isinstance(node, Either):
        return _any_true([selecting(item) for item in node.items])
    found = condition(node)
    return lambda get: found(get) is True


def _all_true(items: list[Callable[[Lookup], bool]]) -> Callable[[Lookup], bool]:
    if len(items) == 2:
        first, second = items
        return lambda get: first(get) and second(get)

    def all_true(get: Lookup) -> bool:
        for item in items:
            if not item(get):
                return False
        return True

    return all_true


def _any_true(items: list[Callable[[Lookup], bool]]) -> Callable[[Lookup], bool]:
    def any_true(get: Lookup) -> bool:
        for item in items:
            if item(get):
                return True
        return False

    return any_true


def condition(node: Node) -> Condition:
    """The function of a node that is a condition."""
    made: Condition = _CONDITIONS[node.__class__](node)
    return made


def _value(node: Node) -> Value:
    """The function of any node."""
    made: Value = _VALUES[node.__class__](node)
    return made


# -- operands ----------------------------------------------------------------------------------------------------------


def _literal(node: Literal) -> Value:
    value = node.value
    return lambda get: value


def _identifier(node: Identifier) -> Value:
    name = node.name
    return lambda get: get(name)


def _signed(node: Signed) -> Value:
    operand, turned = _value(node.operand), node.negative

    def signed(get: Lookup) -> Any:
        value = operand(get)
        if not is_number(value):
            return None
        return negative(value) if turned else value

    return signed


def _arithmetic(node: Arithmetic) -> Value:
    """Rule 192: arithmetic with NULL is unknown; so is arithmetic with what is no number, or has no result."""
    first = _value(node.first)
    steps = [(ARITHMETIC[sign], _value(operand)) for sign, operand in node.rest]

    def arithmetic(get: Lookup) -> Any:
        result = first(get)
        for operation, operand in steps:
            value = operand(get)
            if not is_number(result) or not is_number(value):
                return None
            result = operation(result, value)
        return result

    return arithmetic


# -- predicates --------------------------------------------------------------------------------------------------------


def _truth(node: Literal) -> Condition:
    value = node.value is True
    return lambda get: value


def _flag(node: Identifier) -> Condition:
    """A name alone is its own comparison with TRUE."""
    name = node.name

    def flag(get: Lookup) -> bool | None:
        value = get(name)
        return None if value is None else value is True

    return flag


def _comparison(node: Comparison) -> Condition:
    left, right, sign = node.left, node.right, node.operator
    if isinstance(left, Literal) and isinstance(right, Identifier):
        left, right, sign = right, left, _MIRRORED[sign]
    if isinstance(left, Identifier) and isinstance(right, Literal):
        return _with_literal(left.name, sign, right.value)
    first, second = _value(left), _value(right)

    def comparison(get: Lookup) -> bool | None:
        one = first(get)
        if one is None:
            return None
        other = second(get)
        return None if other is None else compare(sign, one, other)

    return comparison


def _with_literal(name: str, sign: str, literal: Any) -> Condition:
    if isinstance(literal, str):
        return _with_string(name, sign, literal)
    if isinstance(literal, bool):
        return _with_boolean(name, sign, literal)
    operation = OPERATORS[sign]

    def number(get: Lookup) -> bool | None:
        value = get(name)
        kind = value.__class__
        if kind is int or kind is float:
            return operation(value, literal)
        if value is None:
            return None
        return is_number(value) and operation(value, literal)

    return number


def _with_string(name: str, sign: str, literal: str) -> Condition:
    def equal(get: Lookup) -> bool | None:
        value = get(name)
        return None if value is None else isinstance(value, str) and value == literal

    def unequal(get: Lookup) -> bool | None:
        value = get(name)
        return None if value is None else isinstance(value, str) and value != literal

    return equal if sign == "=" else unequal


def _with_boolean(name: str, sign: str, literal: bool) -> Condition:
    wanted = literal if sign == "=" else not literal

    def boolean(get: Lookup) -> bool | None:
        value = get(name)
        return None if value is None else value is wanted

    return boolean


def _between(node: Between) -> Condition:
    """Rule 194: ``low <= operand AND operand <= high``, by the tables above; unknown where a number is missing.

    3.8.1.2 says of NOT BETWEEN that it is ``operand < low OR operand > high``, which is not true of what is no number.
    """
    operand, low, high = _value(node.operand), _value(node.low), _value(node.high)

    def between(get: Lookup) -> bool | None:
        value = operand(get)
        if not is_number(value):
            return None
        least, most = low(get), high(get)
        above = compare(">=", value, least) if is_number(least) else None
        below = compare("<=", value, most) if is_number(most) else None
        if above is False or below is False:
            return False
        return None if above is None or below is None else True

    return between


def _in_list(node: InList) -> Condition:
    """Rule 195: unknown when the identifier is null, or no string: 3.8.1.2 has a meaning for neither IN nor NOT IN."""
    name, values = node.name, node.values

    def in_list(get: Lookup) -> bool | None:
        value = get(name)
        return value in values if isinstance(value, str) else None

    return in_list


def _like(node: Like) -> Condition:
    """Rule 196: unknown when null; works on strings only, NOT LIKE too."""
    name, matches = node.name, like.matcher(node.pattern, node.escape)

    def is_like(get: Lookup) -> bool | None:
        value = get(name)
        return matches(value) if isinstance(value, str) else None

    return is_like


def _is_null(node: IsNull) -> Condition:
    name = node.name
    if node.negated:
        return lambda get: get(name) is not None
    return lambda get: get(name) is None


# -- conditions --------------------------------------------------------------------------------------------------------


def _not(node: Not) -> Condition:
    operand = condition(node.operand)

    def negation(get: Lookup) -> bool | None:
        value = operand(get)
        return None if value is None else not value

    return negation


def _both(node: Both) -> Condition:
    items = [condition(item) for item in node.items]

    def both(get: Lookup) -> bool | None:
        result: bool | None = True
        for item in items:
            value = item(get)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return both


def _either(node: Either) -> Condition:
    items = [condition(item) for item in node.items]

    def either(get: Lookup) -> bool | None:
        result: bool | None = False
        for item in items:
            value = item(get)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return either


_PREDICATES: dict[type, Any] = {
    Between: _between,
    Both: _both,
    Comparison: _comparison,
    Either: _either,
    InList: _in_list,
    IsNull: _is_null,
    Like: _like,
    Not: _not,
}
_CONDITIONS: dict[type, Any] = {**_PREDICATES, Literal: _truth, Identifier: _flag}
_VALUES: dict[type, Any] = {
    **_PREDICATES,
    Arithmetic: _arithmetic,
    Identifier: _identifier,
    Literal: _literal,
    Signed: _signed,
}
