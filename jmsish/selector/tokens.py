"""The words of a selector, found in one pass that also refuses what is too long or nested too deep.

The pass looks at each character once and calls nothing again for what is nested, so a hostile text is refused before
the grammar sees it.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from unicodedata import category
from unicodedata import name as name_of_char

from jmsish.selector.faults import Fault

LENGTH_LIMIT = 128 * 1024
"""Characters in a selector."""
DEPTH_LIMIT = 100
"""Parentheses, NOTs and signs inside one another."""

KEYWORDS = frozenset({"AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE"})

_OPERANDS = frozenset({"NAME", "NUMBER", "STRING", "TRUE", "FALSE"})

_OPERATORS = {
    "=": "COMPARISON", "<>": "COMPARISON", "<": "COMPARISON", "<=": "COMPARISON", ">": "COMPARISON", ">=": "COMPARISON",
    "+": "PLUS", "-": "MINUS", "*": "STAR", "/": "SLASH", "(": "OPEN", ")": "CLOSE", ",": "COMMA",
}  # fmt: skip

# What is written elsewhere, and is not written so here.
_FOREIGN = {
    "!=": "'!=' is no operator: unequal is written '<>'",
    "==": "'==' is no operator: equal is written '='",
    "&&": "'&&' is no operator: write AND",
    "||": "'||' is no operator: write OR",
    # Rule 198. Brokers that have comments would read another selector than those that have none.
    "--": "'--' begins a comment in SQL, and selectors have no comments; put a space between two signs",
    "/*": "'/*' begins a comment in SQL, and selectors have no comments",
}

# A number is whatever begins like one, up to where a number could not go on: `literals` says what is wrong with it.
_NUMBER = r"0[xX][0-9A-Za-z_$.]*|\.?[0-9](?:[eE][+-]?|[0-9A-DF-Za-df-z_$.])*"
_TOKEN = rf"""(?P<space>[ \t\n\r\f\v]+)
    |(?P<WORD>[A-Za-z_$\u0080-\U0010ffff][0-9A-Za-z_$\u0080-\U0010ffff]*)
    |(?P<NUMBER>{_NUMBER})
    |(?P<STRING>'[^']*(?:''[^']*)*'(?!'))
    |(?P<foreign>!=|==|&&|\|\||--|/\*)
    |(?P<operator><>|<=|>=|[=<>+\-*/(),])"""

# Java, Character.isJavaIdentifierStart and isJavaIdentifierPart, by general category.
_START = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"})
_PART = _START | {"Nd", "Mn", "Mc", "Cf"}


class Token(NamedTuple):
    """One word: its type as the grammar calls it, its text, and its offset."""

    type: str
    text: str
    position: int


def tokens(text: str) -> list[Token]:
    """The words of ``text``; ``Fault`` for what is none, and beyond the limits."""
    if len(text) > LENGTH_LIMIT:
        raise Fault(f"a selector of {len(text)} characters: the limit is {LENGTH_LIMIT}", LENGTH_LIMIT)
    found = []
    # Compiled when the first selector is read: `import jmsish` does not wait for it.
    token_at = re.compile(_TOKEN, re.VERBOSE).match
    position, size, depth = 0, len(text), _Depth()
    while position < size:
        match = token_at(text, position)
        if match is None:
            raise _no_word(text, position)
        kind, word = str(match.lastgroup), match[0]
        if kind != "space":
            kind = _kind(position, kind, word)
            depth.enter(kind, position)
            found.append(Token(kind, word, position))
        position = match.end()
    return found


def _kind(position: int, kind: str, word: str) -> str:
    if kind == "operator":
        return _OPERATORS[word]
    if kind == "foreign":
        raise Fault(_FOREIGN[word], position)
    if kind == "WORD":
        if not word.isascii():
            _check_identifier(position, word)
        # Only ASCII: the capital of a dotless i is an I too.
        elif (upper := word.upper()) in KEYWORDS:
            return upper
        return "NAME"
    if kind == "STRING" and not word.isascii():
        _check_text(position, word)
    return kind


def _check_identifier(position: int, word: str) -> None:
    for offset, char in enumerate(word):
        if category(char) not in (_PART if offset else _START):
            named = name_of_char(char, "no name")
            raise Fault(f"U+{ord(char):04X} ({named}) cannot stand in an identifier", position + offset)


def _check_text(position: int, word: str) -> None:
    for offset, char in enumerate(word):
        if "\ud800" <= char <= "\udfff":
            raise Fault(f"U+{ord(char):04X} is half a character, which no text can hold", position + offset)


def _no_word(text: str, position: int) -> Fault:
    char = text[position]
    if char == "'":
        return Fault("a string that does not end: the closing ' is missing", position)
    if char == '"':
        return Fault("strings stand in single quotes, not in double ones", position)
    if char == ".":
        return Fault("'.' belongs into numbers only, not into identifiers", position)
    return Fault(f"{char!r} is no part of a selector", position)


class _Depth:
    """How deep what follows is nested: open parentheses, and the NOTs and signs that wait for their operand."""

    __slots__ = ("_after_operand", "_depth", "_levels")

    def __init__(self) -> None:
        self._depth = 0
        self._levels: list[int] = []
        self._after_operand = False

    def enter(self, kind: str, position: int) -> None:
        if kind == "OPEN":
            self._levels.append(self._depth)
            self._deeper(position)
        elif kind == "CLOSE":
            if self._levels:
                self._levels.pop()
            self._arrive()
        elif kind in _OPERANDS:
            self._arrive()
        elif kind in ("NOT", "PLUS", "MINUS") and not self._after_operand:
            self._deeper(position)
        # NOT and signs behind an operand join it to something: NOT LIKE, IS NOT NULL, a difference.
        self._after_operand = kind in _OPERANDS or kind in ("CLOSE", "IS")

    def _arrive(self) -> None:
        """An operand is complete, and with it whatever waited for it since the last open parenthesis."""
        self._depth = self._levels[-1] + 1 if self._levels else 0

    def _deeper(self, position: int) -> None:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise Fault(f"parentheses, NOTs and signs nested deeper than {DEPTH_LIMIT} levels, the limit", position)
