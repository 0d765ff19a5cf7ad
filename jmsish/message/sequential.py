"""Messages that are read from beginning to end: octets, and a sequence of values.

Such a body is in one of two modes. In write mode, that of a new message or after ``clear_body()``, values are added at
its end; in read mode, that of a received message or after ``reset()``, they are read one after the other.
"""

from __future__ import annotations

from jmsish.errors import MessageNotReadableError, MessageNotWriteableError
from jmsish.message.base import Message

__all__ = ["Sequential", "room"]


def room(into: int | bytearray | memoryview | None) -> tuple[int | None, memoryview | None]:
    """How many octets a read is asked for, ``None`` for all, and the buffer they go to, if there is one."""
    if into is None:
        return None, None
    if isinstance(into, (bytearray, memoryview)):
        view = memoryview(into).cast("B")
        return len(view), view
    if isinstance(into, bool) or not isinstance(into, int):
        raise TypeError(f"read_bytes takes a number of octets or a buffer to fill, not {into!r}")
    if into < 0:
        raise ValueError(f"read_bytes of {into} octets: the number is negative")
    return into, None


class Sequential(Message):
    """What messages of octets and of values have in common: the two modes."""

    __slots__ = ("_position", "_writing")
    _writing: bool
    _position: int

    def __init__(self) -> None:
        super().__init__()
        self._writing = True
        self._position = 0

    def reset(self) -> None:
        """Go to read mode, at the beginning."""
        self._writing = False
        self._position = 0

    def clear_body(self) -> None:
        """Make the body empty, in write mode; headers and properties stay."""
        super().clear_body()
        self._writing = True
        self._position = 0

    def _check_readable(self) -> None:
        if self._writing:
            raise MessageNotReadableError("the body is in write mode; reset() goes to reading")

    def _check_writing(self) -> None:
        if not self._writing:
            raise MessageNotWriteableError("the body is in read mode; clear_body() empties it and goes to writing")
