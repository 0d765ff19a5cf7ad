"""LIKE: ``_`` is one character, ``%`` any run of them, and every other character is itself (rule 196).

The text between two ``%`` is looked for from left to right, and each is taken where it is first found: no pattern makes
the search go back, so none takes more than the length of the text times that of the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["PATTERN_LIMIT", "matcher"]

PATTERN_LIMIT = 1024
"""Characters in a pattern: with it a long text takes long, but not for ever."""

_Piece = list["str | None"]
"""Characters that stand next to each other; None is any one character."""

_Search = Callable[[str, int, int], int]
"""Where a piece is found in a text between two offsets, or -1."""


def matcher(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """What tells whether a text is like ``pattern``."""
    first, *others = _pieces(pattern, escape)
    if not others:
        return _whole(first)
    *middle, last = others
    searches = [(_search(piece), len(piece)) for piece in middle if piece]
    begins, ends = _at(first), _at(last)
    head, tail = len(first), len(last)

    def like(text: str) -> bool:
        position, end = head, len(text) - tail
        if position > end or not begins(text, 0) or not ends(text, end):
            return False
        for search, size in searches:
            position = search(text, position, end)
            if position < 0:
                return False
            position += size
        return True

    return like


def _pieces(pattern: str, escape: str | None) -> list[_Piece]:
    """What stands between the ``%`` of a pattern; without any it is one piece."""
    pieces: list[_Piece] = [[]]
    characters = iter(pattern)
    for char in characters:
        if char == escape:
            pieces[-1].append(next(characters))
        elif char == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if char == "_" else char)
    return pieces


def _literal(piece: _Piece) -> str | None:
    """The piece as text, if every character of it is given."""
    return None if None in piece else "".join([char for char in piece if char is not None])


def _expression(piece: _Piece) -> re.Pattern[str]:
    return re.compile("".join(["." if char is None else re.escape(char) for char in piece]), re.DOTALL)


def _whole(piece: _Piece) -> Callable[[str], bool]:
    literal = _literal(piece)
    if literal is not None:
        return lambda text: text == literal
    fullmatch = _expression(piece).fullmatch
    return lambda text: fullmatch(text) is not None


def _at(piece: _Piece) -> Callable[[str, int], bool]:
    """Whether the piece stands at an offset."""
    literal = _literal(piece)
    if literal is not None:
        return lambda text, position: text.startswith(literal, position)
    match = _expression(piece).match
    return lambda text, position: match(text, position) is not None


def _search(piece: _Piece) -> _Search:
    literal = _literal(piece)
    if literal is not None:
        return lambda text, position, end: text.find(literal, position, end)
    search = _expression(piece).search

    def find(text: str, position: int, end: int) -> int:
        found = search(text, position, end)
        return -1 if found is None else found.start()

    return find
