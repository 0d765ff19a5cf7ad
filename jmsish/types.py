"""Values that say how wide they travel.

Python has one ``int`` and one ``float``; AMQP and JMS have several widths of each. A plain value takes a sensible
width by itself (an ``int`` travels as a 32-bit int when it fits and as a 64-bit long otherwise, a ``float`` as a
double, a ``str`` as a string). Wrap a value in one of these classes to fix its width::

    message.properties["count"] = Long(5)

They are ordinary numbers and strings otherwise: equal to, hashed like and usable as the plain value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from operator import index
from typing import Any, ClassVar, TypeVar

__all__ = [
    "Array",
    "Byte",
    "Char",
    "Decimal128",
    "Decimal32",
    "Decimal64",
    "Described",
    "Double",
    "Float",
    "Int",
    "Long",
    "Short",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)

_Self = TypeVar("_Self", bound="_FixedInt")


class _FixedInt(int):
    """An integer of fixed width; a value out of range raises ``ValueError``."""

    __slots__ = ()
    MIN: ClassVar[int]
    MAX: ClassVar[int]

    def __new__(cls: type[_Self], value: Any = 0) -> _Self:
        self = int.__new__(cls, index(value))
        if not cls.MIN <= self <= cls.MAX:
            raise ValueError(f"{int(self)} is out of range for {cls.__name__} ({cls.MIN} to {cls.MAX})")
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int.__repr__(self)})"

    # str() and format() fall back on __repr__, which would put the class name into every text made of a number.
    __str__ = int.__repr__


class Byte(_FixedInt):
    """A signed 8-bit integer, JMS's ``byte``."""

    __slots__ = ()
    MIN = -(1 << 7)
    MAX = (1 << 7) - 1


class Short(_FixedInt):
    """A signed 16-bit integer, JMS's ``short``."""

    __slots__ = ()
    MIN = -(1 << 15)
    MAX = (1 << 15) - 1


class Int(_FixedInt):
    """A signed 32-bit integer, JMS's ``int``."""

    __slots__ = ()
    MIN = -(1 << 31)
    MAX = (1 << 31) - 1


class Long(_FixedInt):
    """A signed 64-bit integer, JMS's ``long``."""

    __slots__ = ()
    MIN = -(1 << 63)
    MAX = (1 << 63) - 1


class UByte(_FixedInt):
    """An unsigned 8-bit integer. AMQP only: JMS reads it as ``short``."""

    __slots__ = ()
    MIN = 0
    MAX = (1 << 8) - 1


class UShort(_FixedInt):
    """An unsigned 16-bit integer. AMQP only: JMS reads it as ``int``."""

    __slots__ = ()
    MIN = 0
    MAX = (1 << 16) - 1


class UInt(_FixedInt):
    """An unsigned 32-bit integer. AMQP only: JMS reads it as ``long``."""

    __slots__ = ()
    MIN = 0
    MAX = (1 << 32) - 1


class ULong(_FixedInt):
    """An unsigned 64-bit integer. AMQP only: JMS reads it as ``long`` when it fits."""

    __slots__ = ()
    MIN = 0
    MAX = (1 << 64) - 1


class Timestamp(_FixedInt):
    """A point in time: milliseconds since the epoch, signed 64 bits."""

    __slots__ = ()
    MIN = -(1 << 63)
    MAX = (1 << 63) - 1

    @classmethod
    def from_datetime(cls, moment: datetime) -> Timestamp:
        """The timestamp of ``moment``; one without a time zone is local time, as in ``datetime.timestamp``."""
        if moment.tzinfo is None:
            moment = moment.astimezone()
        return cls((moment - _EPOCH) // _MILLISECOND)

    def to_datetime(self) -> datetime:
        """The same moment as a ``datetime`` in UTC; ``OverflowError`` outside the years 1 to 9999."""
        return _EPOCH + int(self) * _MILLISECOND


class Float(float):
    """A 32-bit floating point number, JMS's ``float``; the value is rounded to 32 bits when it is made."""

    __slots__ = ()

    def __new__(cls, value: Any = 0.0) -> Float:
        wide = float(value)
        try:
            (narrow,) = struct.unpack(">f", struct.pack(">f", wide))
        except OverflowError:
            raise ValueError(f"{wide!r} is out of range for Float") from None
        if math.isnan(wide):
            narrow = wide
        return float.__new__(cls, narrow)

    def __repr__(self) -> str:
        return f"Float({float.__repr__(self)})"

    __str__ = float.__repr__


class Double(float):
    """A 64-bit floating point number, JMS's ``double``; what a plain ``float`` is anyway."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Double({float.__repr__(self)})"

    __str__ = float.__repr__


class Char(str):
    """One character: any Unicode scalar value."""

    __slots__ = ()

    def __new__(cls, value: str) -> Char:
        if not isinstance(value, str):
            raise TypeError(f"a Char is made of a str, not {type(value).__name__}")
        if len(value) != 1 or "\ud800" <= value <= "\udfff":
            raise ValueError(f"{value!r} is not one character")
        return str.__new__(cls, value)

    def __repr__(self) -> str:
        return f"Char({str.__repr__(self)})"

    def __str__(self) -> str:
        return str.__str__(self)


class Symbol(str):
    """A name of the protocol: ASCII text that AMQP keeps apart from strings."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Symbol({str.__repr__(self)})"

    def __str__(self) -> str:
        return str.__str__(self)


class Decimal32(bytes):
    """An IEEE 754 decimal of 32 bits, kept as its four octets: Python has no such number."""

    __slots__ = ()
    WIDTH: ClassVar[int] = 4

    def __new__(cls, octets: bytes) -> Decimal32:
        if len(octets) != cls.WIDTH:
            raise ValueError(f"{cls.__name__} takes {cls.WIDTH} octets, not {len(octets)}")
        return bytes.__new__(cls, octets)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({bytes.__repr__(self)})"


class Decimal64(Decimal32):
    """An IEEE 754 decimal of 64 bits, kept as its eight octets."""

    __slots__ = ()
    WIDTH = 8


class Decimal128(Decimal32):
    """An IEEE 754 decimal of 128 bits, kept as its sixteen octets."""

    __slots__ = ()
    WIDTH = 16


class Described:
    """A value with a descriptor that says what it means; equal when both parts are."""

    __slots__ = ("descriptor", "value")

    def __init__(self, descriptor: Any, value: Any) -> None:
        self.descriptor = descriptor
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Described):
            return NotImplemented
        return bool(self.descriptor == other.descriptor and self.value == other.value)

    def __hash__(self) -> int:
        return hash((self.descriptor, self.value))

    def __repr__(self) -> str:
        return f"Described({self.descriptor!r}, {self.value!r})"


# Format codes that write the same type in another width, by the widest of them.
_SAME_TYPE = {
    0x41: 0x56, 0x42: 0x56, 0x43: 0x70, 0x52: 0x70, 0x44: 0x80, 0x53: 0x80, 0x54: 0x71, 0x55: 0x81, 0xA0: 0xB0,
    0xA1: 0xB1, 0xA3: 0xB3, 0x45: 0xD0, 0xC0: 0xD0, 0xC1: 0xD1, 0xE0: 0xF0,
}  # fmt: skip


class Array:
    """Values of one AMQP type, written with one constructor; equal when type, descriptor and items are.

    ``code`` is the format code of the elements (0xA3 for symbols, 0x71 for ints …); ``descriptor`` is that of an
    array of described values, whose ``items`` are then the bare values.
    """

    __slots__ = ("code", "descriptor", "items")

    def __init__(self, items: Iterable[Any], code: int, descriptor: Any = None) -> None:
        self.items = tuple(items)
        self.code = code
        self.descriptor = descriptor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Array):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return self.items, _SAME_TYPE.get(self.code, self.code), self.descriptor

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Any:
        return iter(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]

    def __repr__(self) -> str:
        described = "" if self.descriptor is None else f", descriptor={self.descriptor!r}"
        return f"Array({self.items!r}, {self.code:#x}{described})"
