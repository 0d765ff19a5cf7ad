"""Values of a selector as it is evaluated: numbers, strings, booleans, and None for what is unknown.

Numbers are compared exactly, whatever their types: Python compares an int with a float without rounding either.
Arithmetic is that of Java's long and double.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from jmsish.selector.literals import LONG_MAX, LONG_SIZE

__all__ = ["ARITHMETIC", "OPERATORS", "compare", "is_number", "negative"]

OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_NUMBER, _STRING, _BOOLEAN = 1, 2, 3
_KINDS: Mapping[type, int] = {int: _NUMBER, float: _NUMBER, str: _STRING, bool: _BOOLEAN}


def is_number(value: Any) -> bool:
    """Whether a value counts as a number: booleans do not, numbers of a fixed width do."""
    kind = value.__class__
    return kind is int or kind is float or (kind is not bool and isinstance(value, (int, float)))


def _kind(value: Any) -> int:
    kind = _KINDS.get(value.__class__)
    if kind is None:
        # Values that keep the width they travelled in, or characters and symbols.
        kind = _NUMBER if isinstance(value, (int, float)) else _STRING if isinstance(value, str) else 0
    return kind


def compare(sign: str, left: Any, right: Any) -> bool:
    """Two values that are known. Those of unlike type compare to false (rule 190), with ``<>`` too, and so does what
    is neither number, string nor boolean; strings and booleans have no order (rule 191)."""
    kind = _kind(left)
    if not kind or kind != _kind(right) or (kind != _NUMBER and sign not in ("=", "<>")):
        return False
    return OPERATORS[sign](left, right)


def _wrapped(value: int) -> int:
    """Java's long: what does not fit 64 bits loses the bits above them."""
    if -LONG_MAX <= value <= LONG_MAX:
        return value
    value &= LONG_SIZE - 1
    return value - LONG_SIZE if value > LONG_MAX else value


def _result(value: int | float) -> int | float:
    return _wrapped(value) if isinstance(value, int) else value


def _divided(left: int | float, right: int | float) -> int | float | None:
    """Integers are divided as in Java, towards zero; nothing is divided by zero."""
    if not right:
        return None
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return _wrapped(quotient if (left < 0) == (right < 0) else -quotient)
    return left / right


ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: _result(left + right),
    "-": lambda left, right: _result(left - right),
    "*": lambda left, right: _result(left * right),
    "/": _divided,
}
"""Operations on two numbers; None where there is no result."""


def negative(value: int | float) -> int | float:
    """A number with its sign turned round; the least long is its own negative, as in Java."""
    return _result(-value)
