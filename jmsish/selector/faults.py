"""What is said about a selector with a fault: where it is, in a line with a caret below it."""

from __future__ import annotations

from unicodedata import combining, east_asian_width

from jmsish.errors import InvalidSelectorError

_BEFORE, _BEHIND = 48, 24
"""How much of the text is shown on either side of the fault; a selector may be long."""


class Fault(Exception):
    """Something is wrong at an offset of the text; who has the text makes the error for the application of it."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position

    def error(self, text: str) -> InvalidSelectorError:
        """The same with the place shown, in three lines. People count positions from one, offsets count from zero."""
        shown, indent = _line_around(text, self.position)
        said = _printable(self.message)
        return InvalidSelectorError(
            f"{said}, at position {self.position + 1} of the selector:\n  {shown}\n  {' ' * indent}^",
            position=self.position,
        )


def _line_around(text: str, position: int) -> tuple[str, int]:
    """What stands around ``position``, as one line, and how many columns stand before it."""
    first, last = max(0, position - _BEFORE), position + _BEHIND
    before = ("…" if first else "") + _printable(text[first:position])
    behind = _printable(text[position:last]) + ("…" if last < len(text) else "")
    return before + behind, sum(map(_columns, before))


def _printable(text: str) -> str:
    """Line ends and whatever else does not show take one column, so that the caret stands where it should."""
    return "".join([char if char.isprintable() else " " if char.isspace() else "\ufffd" for char in text])


def _columns(char: str) -> int:
    if combining(char):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1
