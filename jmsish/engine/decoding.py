"""Octets to AMQP 1.0 values.

:func:`decode` keeps each width, by the classes of :mod:`jmsish.types`, so that what was decoded is encoded as the
same type again. :func:`decode_plain` gives numbers, symbols and arrays as plain ``int``, ``float``, ``str`` and
``list``, for performatives, whose fields have one type each.

Decoding is strict: unknown codes, sizes that do not add up, text that is not UTF-8 and maps with a key twice raise
:class:`DecodeError`, whatever the octets are; no input makes it allocate more than in proportion to its length.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as struct_error
from typing import Any
from uuid import UUID

from jmsish.engine.encoding import DEPTH_LIMIT, ZERO_WIDTH_LIMIT
from jmsish.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

_SHORT = Struct(">h")
_USHORT = Struct(">H")
_INT = Struct(">i")
_UINT = Struct(">I")
_LONG = Struct(">q")
_ULONG = Struct(">Q")
_FLOAT = Struct(">f")
_DOUBLE = Struct(">d")


class DecodeError(ValueError):
    """Octets that are not what AMQP says; ``position`` is the offset at which that showed."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} (at octet {position})")
        self.position = position


# A decoder is called with the offset behind the format code; it gives the value and the offset behind it.
_Decoder = Callable[[bytes, int, int], "tuple[Any, int]"]
_Table = list[_Decoder]


def decode(buf: bytes, pos: int = 0) -> tuple[Any, int]:
    """The value at ``pos``, each number and symbol in its own class, and the offset behind it."""
    return _decode(_TYPED, buf, pos)


def decode_plain(buf: bytes, pos: int = 0) -> tuple[Any, int]:
    """The value at ``pos``, in plain Python types (arrays as lists), and the offset behind it."""
    return _decode(_PLAIN, buf, pos)


def _decode(table: _Table, buf: bytes, pos: int) -> tuple[Any, int]:
    try:
        return table[buf[pos]](buf, pos + 1, 0)
    except (IndexError, struct_error):
        raise DecodeError("the octets end inside a value", len(buf)) from None


def _unknown(code: int) -> _Decoder:
    def unknown(buf: bytes, pos: int, depth: int) -> tuple[Any, int]:
        raise DecodeError(f"{code:#04x} is no format code", pos - 1)

    return unknown


def _constant(value: Any) -> _Decoder:
    return lambda buf, pos, depth: (value, pos)


def _fixed(layout: Struct, kind: type | None) -> _Decoder:
    """A number of fixed width; ``kind`` is built without the range check of its constructor, it fits by nature."""
    unpack, width = layout.unpack_from, layout.size
    if kind is None:
        return lambda buf, pos, depth: (unpack(buf, pos)[0], pos + width)
    new: Callable[..., Any] = float.__new__ if issubclass(kind, float) else int.__new__
    return lambda buf, pos, depth: (new(kind, unpack(buf, pos)[0]), pos + width)


def _boolean(buf: bytes, pos: int, depth: int) -> tuple[Any, int]:
    octet = buf[pos]
    if octet > 1:
        raise DecodeError(f"a boolean of {octet:#04x}", pos)
    return octet == 1, pos + 1


def _char(buf: bytes, pos: int, depth: int) -> tuple[Any, int]:
    (point,) = _UINT.unpack_from(buf, pos)
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        raise DecodeError(f"{point:#x} is no character", pos)
    return Char(chr(point)), pos + 4


def _octets(kind: Callable[[bytes], Any], width: int) -> _Decoder:
    def octets(buf: bytes, pos: int, depth: int) -> tuple[Any, int]:
        end = pos + width
        if end > len(buf):
            raise IndexError
        return kind(bytes(buf[pos:end])), end

    return octets


def _text(of: Callable[[bytes], Any], wide: bool) -> _Decoder:
    """Text or binary with its size in front; ``of`` makes the value of the octets."""

    def text(buf: bytes, pos: int, depth: int) -> tuple[Any, int]:
        if wide:
            start = pos + 4
            end = start + _UINT.unpack_from(buf, pos)[0]
        else:
            start = pos + 1
            end = start + buf[pos]
        if end > len(buf):
            raise IndexError
        try:
            return of(buf[start:end]), end
        except UnicodeDecodeError as fault:
            raise DecodeError(f"text that is not {fault.encoding}", start + fault.start) from None

    return text


def _string_of(octets: bytes) -> str:
    return str(octets, "utf-8")


def _symbol_of(octets: bytes) -> Symbol:
    return Symbol(str(octets, "ascii"))


def _plain_symbol_of(octets: bytes) -> str:
    return str(octets, "ascii")


def _extent(buf: bytes, pos: int, depth: int, wide: bool) -> tuple[int, int, int]:
    """Where the items of a compound value begin, where they end, and how many there are."""
    if depth >= DEPTH_LIMIT:
        raise DecodeError(f"values nested deeper than {DEPTH_LIMIT} levels", pos)
    if wide:
        end = pos + 4 + _UINT.unpack_from(buf, pos)[0]
        start, count = pos + 8, _UINT.unpack_from(buf, pos + 4)[0]
    else:
        end = pos + 1 + buf[pos]
        start, count = pos + 2, buf[pos + 1]
    if end > len(buf):
        raise IndexError
    if start > end:
        raise DecodeError("a size too small for its count", pos)
    return start, end, count


def _list(table: _Table, wide: bool) -> _Decoder:
    def decode_list(buf: bytes, pos: int, depth: int) -> tuple[Any, int]:
        pos, end, count = _extent(buf, pos, depth, wide)
        if count > end - pos:
            raise DecodeError(f"a list of {count} items in {end - pos} octets", pos)
        items = []
        for _ in range(count):
            item, pos = table[buf[pos]](buf, pos + 1, depth + 1)
            items.append(item)
        if pos != end:
            raise DecodeError("the size of a list does not match its items", pos)
        return items, end

    return decode_list


_PLENTY = 512
"""A map of more keys and values than this has keys of few types only."""
_SCATTERED = frozenset(range(0x40, 0x45)) | frozenset((
    0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x60, 0x61, 0x70, 0x71, 0x73, 0x80, 0x81, 0x83,
    0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3,
))  # fmt: skip
"""Format codes of keys that cannot be chosen so that they meet in a dict: text and binaries are hashed with a secret of
this process, and of whole numbers of 64 bits no more than 16 hash alike. A UUID, a decimal or a described value is
hashed as its maker likes: a frame full of them would take seconds."""


def _map(table: _Table, wide: bool) -> _Decoder:
    def decode_map(buf: bytes, pos: int, depth: int) -> tuple[Any, int]:
        pos, end, count = _extent(buf, pos, depth, wide)
        if count > end - pos or count & 1:
            raise DecodeError(f"a map of {count} keys and values in {end - pos} octets", pos)
        items: dict[Any, Any] = {}
        is_large = count > _PLENTY
        for _ in range(count >> 1):
            at = pos
            code = buf[pos]
            if is_large and code not in _SCATTERED:
                raise DecodeError(f"a map of {count >> 1} pairs with a key of the format code {code:#04x}", at)
            key, pos = table[code](buf, pos + 1, depth + 1)
            value, pos = table[buf[pos]](buf, pos + 1, depth + 1)
            try:
                if key in items:
                    raise DecodeError(f"the key {key!r} twice in a map", at)
                items[key] = value
            except TypeError:
                raise DecodeError("a map key that is a list or a map", at) from None
        if pos != end:
            raise DecodeError("the size of a map does not match its items", pos)
        return items, end

    return decode_map


_CODES: set[int] = set()
"""The format codes that there are."""

# Elements of these codes take no octets.
_ZERO_WIDTH = frozenset({0x40, 0x41, 0x42, 0x43, 0x44, 0x45})


def _array(table: _Table, wide: bool, typed: bool) -> _Decoder:
    def decode_array(buf: bytes, pos: int, depth: int) -> tuple[Any, int]:
        pos, end, count = _extent(buf, pos, depth, wide)
        descriptor = None
        code = buf[pos]
        if code == 0:
            descriptor, pos = table[buf[pos + 1]](buf, pos + 2, depth + 1)
            code = buf[pos]
        pos += 1
        if count > (ZERO_WIDTH_LIMIT if code in _ZERO_WIDTH else end - pos):
            raise DecodeError(f"an array of {count} elements in {end - pos} octets", pos)
        element = table[code]
        if not count and code not in _CODES:
            element(buf, pos, depth)  # raises: nothing could be of that type, even where nothing is
        items = []
        for _ in range(count):
            item, pos = element(buf, pos, depth + 1)
            items.append(item)
        if pos != end:
            raise DecodeError("the size of an array does not match its elements", pos)
        if typed:
            return Array(items, code, descriptor), end
        return (items if descriptor is None else [Described(descriptor, item) for item in items]), end

    return decode_array


def _described(table: _Table) -> _Decoder:
    def decode_described(buf: bytes, pos: int, depth: int) -> tuple[Any, int]:
        if depth >= DEPTH_LIMIT:
            raise DecodeError(f"values nested deeper than {DEPTH_LIMIT} levels", pos)
        descriptor, pos = table[buf[pos]](buf, pos + 1, depth + 1)
        value, pos = table[buf[pos]](buf, pos + 1, depth + 1)
        return Described(descriptor, value), pos

    return decode_described


def _number_decoders(typed: bool) -> dict[int, _Decoder]:
    def kind(of: type) -> type | None:
        return of if typed else None

    octet, signed_octet = Struct(">B"), Struct(">b")
    return {
        0x43: _constant(UInt(0) if typed else 0),
        0x44: _constant(ULong(0) if typed else 0),
        0x50: _fixed(octet, kind(UByte)),
        0x51: _fixed(signed_octet, kind(Byte)),
        0x52: _fixed(octet, kind(UInt)),
        0x53: _fixed(octet, kind(ULong)),
        # A plain int is written as int when it fits 32 bits, which an int always does: no class is needed.
        0x54: _fixed(signed_octet, None),
        0x55: _fixed(signed_octet, kind(Long)),
        0x60: _fixed(_USHORT, kind(UShort)),
        0x61: _fixed(_SHORT, kind(Short)),
        0x70: _fixed(_UINT, kind(UInt)),
        0x71: _fixed(_INT, None),
        0x72: _fixed(_FLOAT, kind(Float)),
        0x80: _fixed(_ULONG, kind(ULong)),
        0x81: _fixed(_LONG, kind(Long)),
        0x82: _fixed(_DOUBLE, None),
        0x83: _fixed(_LONG, kind(Timestamp)),
    }


def _table(typed: bool) -> _Table:
    table: _Table = [_unknown(code) for code in range(256)]
    decoders = _number_decoders(typed)
    symbol_of: Callable[[bytes], Any] = _symbol_of if typed else _plain_symbol_of
    for code, of in ((0xA0, bytes), (0xA1, _string_of), (0xA3, symbol_of)):
        decoders[code] = _text(of, wide=False)
        decoders[code + 0x10] = _text(of, wide=True)
    for wide in (False, True):
        shift = 0x10 if wide else 0
        decoders[0xC0 + shift] = _list(table, wide)
        decoders[0xC1 + shift] = _map(table, wide)
        decoders[0xE0 + shift] = _array(table, wide, typed)
    decoders |= {
        0x00: _described(table),
        0x40: _constant(None),
        0x41: _constant(True),
        0x42: _constant(False),
        0x45: lambda buf, pos, depth: ([], pos),
        0x56: _boolean,
        0x73: _char,
        0x74: _octets(Decimal32, 4),
        0x84: _octets(Decimal64, 8),
        0x94: _octets(Decimal128, 16),
        0x98: _octets(lambda octets: UUID(bytes=octets), 16),
    }
    for code, decoder in decoders.items():
        table[code] = decoder
        _CODES.add(code)
    return table


_TYPED = _table(typed=True)
_PLAIN = _table(typed=False)
