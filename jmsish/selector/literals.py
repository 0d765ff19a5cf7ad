"""The values of literals: strings as in SQL, numbers as Java writes them."""

from __future__ import annotations

from math import inf, isinf
from re import fullmatch
from struct import pack, unpack

from jmsish.selector.faults import Fault
from jmsish.selector.tokens import Token

LONG_SIZE = 1 << 64
LONG_MAX = (1 << 63) - 1
BEYOND_LONG = 1 << 63
"""The one number that may be written only behind a minus: the least long is -9223372036854775808."""

# Compiled by `fullmatch` when the first number is read, and kept by it. No digit can be matched in two ways, or a long
# number with a fault at its end would take quadratic time.
_DECIMAL = r"(0|[1-9][0-9]*)[lL]?"
_HEXADECIMAL = r"0[xX]([0-9a-fA-F]+)[lL]?"
_OCTAL = r"0([0-7]+)[lL]?"
_FLOATING = r"((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([fFdD]?)"
_NOT_OCTAL = r"0[0-7]*[89][0-9]*[lL]?"


def string(token: Token) -> str:
    """The text of a string literal; a quote inside is written twice."""
    return token.text[1:-1].replace("''", "'")


def number(token: Token) -> int | float:
    """The value of a number, ``BEYOND_LONG`` included."""
    word = token.text
    if found := fullmatch(_DECIMAL, word):
        # Twenty digits are more than 64 bits hold, and a longer text takes Python quadratic time.
        value = int(found[1]) if len(found[1]) < 20 else LONG_SIZE
        if value > BEYOND_LONG:
            raise Fault(f"an integer beyond 64 bits: {LONG_MAX} is the largest", token.position)
        return value
    if found := fullmatch(_HEXADECIMAL, word):
        return _bits(token, found[1], 16)
    if found := fullmatch(_OCTAL, word):
        return _bits(token, found[1], 8)
    if fullmatch(_NOT_OCTAL, word):
        raise Fault(f"{word} is no number: a leading 0 means octal, whose digits are 0 to 7", token.position)
    if found := fullmatch(_FLOATING, word):
        return _floating(token, found[1], found[2])
    raise Fault(f"{word[:40]} is no number: write 57, 7L, 0x1F, 017, 7.5, 7E3, 1.5f or 2d", token.position)


def _bits(token: Token, digits: str, base: int) -> int:
    """Hexadecimal and octal spell out the 64 bits of a long, so the upper half of them is negative, as in Java."""
    digits = digits.lstrip("0") or "0"
    value = int(digits, base) if len(digits) <= 22 else LONG_SIZE
    if value >= LONG_SIZE:
        raise Fault("an integer beyond 64 bits", token.position)
    return value - LONG_SIZE if value > LONG_MAX else value


def _floating(token: Token, digits: str, suffix: str) -> float:
    value, kind = float(digits), "a double of 64 bits"
    if suffix in ("f", "F"):
        kind = "a float of 32 bits"
        try:
            (value,) = unpack(">f", pack(">f", value))
        except OverflowError:
            value = inf
    if isinf(value):
        raise Fault(f"a number too large for {kind}", token.position)
    return value
