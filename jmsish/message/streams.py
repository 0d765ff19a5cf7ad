"""The message whose body is a sequence of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, overload

from jmsish.errors import MessageEOFError, MessageFormatError
from jmsish.message.base import UNREAD
from jmsish.message.bodies import mismatch, read_body
from jmsish.message.contents import check_body_type, fresh, item_value
from jmsish.message.conversions import convert, written
from jmsish.message.fields import AMQP_SEQUENCE, AMQP_VALUE
from jmsish.message.sequential import Sequential, room

__all__ = ["StreamMessage"]


class StreamMessage(Sequential):
    """A message whose body is a sequence of values, each read as it was written or by JMS's conversion table.

    Values are booleans, numbers, texts, characters and ``bytes``; an ObjectMessage carries lists and maps of them. A
    read that fails leaves the position where it was.
    """

    __slots__ = ("_part",)
    _part: int
    """How much of the octets at the position has been read, negative while none of them has been asked for in parts."""
    type_code: ClassVar[int] = 4

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__()
        self.body = items

    @property
    def body(self) -> list[Any]:
        """All the values, in either mode, as a copy; setting them needs write mode."""
        return [fresh(item) for item in self._items()]

    @body.setter
    def body(self, value: Iterable[Any]) -> None:
        self._check_writing()
        if isinstance(value, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(value, Iterable):
            raise TypeError(f"the body of a StreamMessage is a sequence of values, not {value!r}")
        self._body = [item_value(item, "value", index) for index, item in enumerate(value)]

    def reset(self) -> None:
        """Go to read mode, at the beginning."""
        super().reset()
        self._part = -1

    def clear_body(self) -> None:
        """Make the body empty, in write mode; headers and properties stay."""
        super().clear_body()
        self._body = []
        self._part = -1

    def _load(self) -> None:
        self._items()

    def _items(self) -> list[Any]:
        value = self._body
        if value is UNREAD:
            section, value = read_body(self)
            if value is None:
                value = []
            elif section not in (AMQP_SEQUENCE, AMQP_VALUE) or not isinstance(value, list):
                raise mismatch(self, value)
            self._body = value
        items: list[Any] = value
        return items

    def is_body_assignable_to(self, type: type[Any]) -> bool:
        """Never: a stream is read value by value."""
        check_body_type(type)
        return False

    def _outgoing_body(self) -> tuple[int, Any]:
        return AMQP_SEQUENCE, self._items()

    # -- reading -------------------------------------------------------------------------------------------------------

    def _here(self) -> Any:
        self._check_readable()
        items = self._items()
        if self._position >= len(items):
            raise MessageEOFError(f"all {len(items)} values have been read")
        return items[self._position]

    def _next(self) -> Any:
        value = self._here()
        if self._part >= 0:
            raise MessageFormatError(
                f"{self._part} of the {len(value)} octets of value {self._position} have been read: read_bytes goes on "
                "until it gives less than it was asked for"
            )
        return value

    def _typed_next(self, target: str) -> Any:
        value = convert(self._next(), target, f"value {self._position}")
        self._position += 1
        return value

    def read_object(self) -> Any:
        """The next value as it is, whatever its type."""
        value = fresh(self._next())
        self._position += 1
        return value

    def read_boolean(self) -> bool:
        """The next value as a boolean."""
        return bool(self._typed_next("boolean"))

    def read_byte(self) -> int:
        """The next value as an 8-bit integer."""
        return int(self._typed_next("byte"))

    def read_short(self) -> int:
        """The next value as a 16-bit integer."""
        return int(self._typed_next("short"))

    def read_char(self) -> str:
        """The next value as a character."""
        return str(self._typed_next("char"))

    def read_int(self) -> int:
        """The next value as a 32-bit integer."""
        return int(self._typed_next("int"))

    def read_long(self) -> int:
        """The next value as a 64-bit integer."""
        return int(self._typed_next("long"))

    def read_float(self) -> float:
        """The next value as a 32-bit floating point number."""
        return float(self._typed_next("float"))

    def read_double(self) -> float:
        """The next value as a 64-bit floating point number."""
        return float(self._typed_next("double"))

    def read_string(self) -> str | None:
        """The next value as a text."""
        found: str | None = self._typed_next("string")
        return found

    @overload
    def read_bytes(self, into: int | None = None) -> bytes | None: ...
    @overload
    def read_bytes(self, into: bytearray | memoryview) -> int: ...

    def read_bytes(self, into: int | bytearray | memoryview | None = None) -> bytes | int | None:
        """The next value as octets, or part of it: at most ``into`` octets, or as many as the buffer ``into`` takes.

        Given a buffer it fills it and returns how many octets it put there, -1 for ``None``. Whoever reads in parts
        goes on until less comes than was asked for; a part that ends just there is followed by ``None``, or -1. Until
        then no other value can be read: ``MessageFormatError`` (jms rule 174).
        """
        size, view = room(into)
        if size is None and self._part < 0:
            whole: bytes | None = self._typed_next("bytes")
            return whole
        piece = self._piece(size)
        if view is None:
            return piece
        if piece is None:
            return -1
        view[: len(piece)] = piece
        return len(piece)

    def _piece(self, size: int | None) -> bytes | None:
        octets: bytes | None = convert(self._here(), "bytes", f"value {self._position}")
        start = max(self._part, 0)
        if octets is None or 0 < len(octets) == start:
            piece = None
        else:
            piece = octets[start:] if size is None else octets[start : start + size]
        if piece is None or size is None or len(piece) < size:
            self._position += 1
            self._part = -1
        else:
            self._part = start + size
        return piece

    # -- writing -------------------------------------------------------------------------------------------------------

    def write_object(self, value: Any) -> None:
        """Add a value of any type that a stream may hold; ``MessageFormatError`` for any other (jms rule 175)."""
        self._check_writing()
        items = self._items()
        items.append(item_value(value, "value", len(items)))

    def _append(self, value: Any, target: str) -> None:
        self.write_object(written(value, target, f"write_{target}"))

    def write_boolean(self, value: bool) -> None:
        """Add a boolean."""
        self._append(value, "boolean")

    def write_byte(self, value: int) -> None:
        """Add an 8-bit integer."""
        self._append(value, "byte")

    def write_short(self, value: int) -> None:
        """Add a 16-bit integer."""
        self._append(value, "short")

    def write_char(self, value: str) -> None:
        """Add a character."""
        self._append(value, "char")

    def write_int(self, value: int) -> None:
        """Add a 32-bit integer."""
        self._append(value, "int")

    def write_long(self, value: int) -> None:
        """Add a 64-bit integer."""
        self._append(value, "long")

    def write_float(self, value: float) -> None:
        """Add a 32-bit floating point number."""
        self._append(value, "float")

    def write_double(self, value: float) -> None:
        """Add a 64-bit floating point number."""
        self._append(value, "double")

    def write_string(self, value: str | None) -> None:
        """Add a text."""
        self._append(value, "string")

    def write_bytes(self, value: bytes | None) -> None:
        """Add octets."""
        self._append(value, "bytes")
