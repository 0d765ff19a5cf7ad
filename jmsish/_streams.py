"""What `send(stream=…)` makes of a source of octets, for both faces: the parts of a message, one frame each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jmsish.message import BytesMessage, Message

EMPTY_BODY = b"\x00Su\xa0\x00"
"""A section of data without octets: how the message of a stream ends before its octets are put in."""

LONGEST_SECTION = 0xFFFFFFFF
"""One section of data holds so many octets at most."""

LONGEST_PIECE = 1 << 17
"""So much is read from a source at a time."""


def message_of_stream(given: Any) -> BytesMessage:
    """The message that carries a stream: a new one, or the one given for its headers and properties."""
    if given is None or given is ...:
        return BytesMessage()
    if not isinstance(given, BytesMessage):
        what = "a " + type(given).__name__ if isinstance(given, Message) else f"a body of type {type(given).__name__}"
        raise TypeError(f"a stream is the body of a BytesMessage, and cannot be sent with {what}")
    if given._octets():
        raise ValueError("the message has a body already; the stream would be a second one")
    return given


def size_of_stream(stream: Any) -> int | None:
    """How many octets a file has left; None where that is not known: devices and the like say 0."""
    if isinstance(stream, (bytes, bytearray, memoryview)):
        return memoryview(stream).nbytes
    try:
        if not stream.seekable():
            return None
        position = stream.tell()
        end = stream.seek(0, 2)
        stream.seek(position)
        size = end - position
    except (AttributeError, OSError, TypeError):
        return None
    return size if 0 < size <= LONGEST_SECTION else None


def pieces_of(stream: Any, size: int) -> Iterator[Any]:
    """The octets of a file, or of what an iterable gives."""
    if isinstance(stream, (bytes, bytearray, memoryview)):
        view = memoryview(stream).cast("B")
        yield from (view[start : start + size] for start in range(0, len(view), size))
        return
    read = getattr(stream, "read", None)
    if read is None:
        yield from stream
        return
    while piece := something(read(size)):
        yield piece


def something(read: Any) -> Any:
    """What a file gave.  Raises `BlockingIOError` for None, which says "nothing yet" and not "the end"."""
    if read is None:
        raise BlockingIOError("the stream has nothing to give just now; open a file to be sent so that its read blocks")
    return read


def message_size(head: bytes, size: int | None) -> int | None:
    """The octets of a message with that head and a body of that size; None where it is not known."""
    return None if size is None else len(head) + _LONG_HEAD + size


_LONG_HEAD = 8
"""What stands before the octets of a section of data: descriptor, constructor and size."""


class Parts:
    """Cuts pieces of a body into parts of a frame each, the beginning of the message in front of them.

    A body whose size is known becomes one section of data, as Qpid JMS wants it (M12); else each piece is a section.
    """

    def __init__(self, head: bytes, size: int | None, room: int) -> None:
        self._size = size
        self._room = room
        self._taken = 0
        self._given = 0
        self._held = bytearray(head)
        if size is not None:
            self._held += b"\x00Su\xb0" + size.to_bytes(4, "big")

    @property
    def piece(self) -> int:
        """How large a piece is best."""
        return max(min(self._room - 16, LONGEST_PIECE), 1)

    @property
    def octets(self) -> int:
        """How many octets of the message there are so far, its head included."""
        return self._given + len(self._held)

    def add(self, piece: Any) -> list[bytes]:
        """The parts that are full now; what is left waits for the next, or for the end."""
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise TypeError(f"a stream gives bytes, not {type(piece).__name__}; a text file is opened in binary mode")
        view = memoryview(piece).cast("B")
        self._taken += len(view)
        if self._size is None:
            if len(view):
                self._held += b"\x00Su\xb0" + len(view).to_bytes(4, "big")
        elif self._taken > self._size:
            raise ValueError(f"the stream gives more than the {self._size} octets that it had when the send began")
        self._held += view
        held, room = self._held, self._room
        full = [bytes(held[start : start + room]) for start in range(0, len(held) - room, room)]
        if full:
            del held[: len(full) * room]
            self._given += len(full) * room
        return full

    def end(self) -> bytes:
        """The last part."""
        if self._size is not None and self._taken != self._size:
            raise ValueError(f"the stream ended after {self._taken} of {self._size} octets")
        if not self._taken and self._size is None:
            self._held += EMPTY_BODY
        return bytes(self._held)
