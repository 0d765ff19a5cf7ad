"""AMQP 1.0 values to octets: every primitive type, described values and arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from struct import Struct
from struct import error as struct_error
from typing import Any
from uuid import UUID

from jmsish.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Double,
    Float,
    Int,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

DEPTH_LIMIT = 64
"""How deep values may be nested, in both directions."""

ZERO_WIDTH_LIMIT = 16
"""The most elements of an array whose elements take no octets: its count alone would otherwise fill the memory. An
array takes five octets, so many arrays of many such elements would, too."""

_SHORT = Struct(">h")
_USHORT = Struct(">H")
_INT = Struct(">i")
_UINT = Struct(">I")
_LONG = Struct(">q")
_ULONG = Struct(">Q")
_FLOAT = Struct(">f")
_DOUBLE = Struct(">d")

NULL = b"\x40"
TRUE = b"\x41"
FALSE = b"\x42"
EMPTY_LIST = b"\x45"

_pack_wide_int = Struct(">Bi").pack
_pack_wide_long = Struct(">Bq").pack
_pack_wide_uint = Struct(">BI").pack
_pack_wide_ulong = Struct(">BQ").pack
_pack_wide_double = Struct(">Bd").pack
_pack_compound8 = Struct(">BBB").pack
_pack_compound32 = Struct(">BII").pack


def encode_boolean(value: Any) -> bytes:
    """A boolean, in its one-octet form."""
    return TRUE if value else FALSE


def encode_ubyte(value: int) -> bytes:
    """An unsigned octet."""
    return bytes((0x50, value))


def encode_ushort(value: int) -> bytes:
    """An unsigned 16-bit integer."""
    return b"\x60" + _USHORT.pack(value)


def encode_uint(value: int) -> bytes:
    """An unsigned 32-bit integer, in its shortest form."""
    if value > 0xFF:
        return _pack_wide_uint(0x70, value)
    return b"\x52%c" % value if value else b"\x43"


def encode_ulong(value: int) -> bytes:
    """An unsigned 64-bit integer, in its shortest form."""
    if value > 0xFF:
        return _pack_wide_ulong(0x80, value)
    return b"\x53%c" % value if value else b"\x44"


def encode_int(value: int) -> bytes:
    """A signed 32-bit integer, in its shortest form."""
    if -128 <= value <= 127:
        return b"\x54%c" % (value & 0xFF)
    return _pack_wide_int(0x71, value)


def encode_long(value: int) -> bytes:
    """A signed 64-bit integer, in its shortest form."""
    if -128 <= value <= 127:
        return b"\x55%c" % (value & 0xFF)
    return _pack_wide_long(0x81, value)


def encode_timestamp(value: int) -> bytes:
    """Milliseconds since the epoch."""
    return _pack_wide_long(0x83, value)


def _variable(code8: int, data: bytes) -> bytes:
    size = len(data)
    if size <= 0xFF:
        return b"%c%c%b" % (code8, size, data)
    return _pack_wide_uint(code8 + 0x10, size) + data


def encode_binary(value: bytes) -> bytes:
    """Octets; any object with the buffer protocol will do."""
    return _variable(0xA0, value if isinstance(value, bytes) else bytes(value))


def encode_string(value: str) -> bytes:
    """Text, as UTF-8."""
    return _variable(0xA1, value.encode())


def encode_symbol(value: str) -> bytes:
    """A symbol; text beyond ASCII raises ``ValueError``."""
    return _variable(0xA3, value.encode("ascii"))


def encode_list(parts: Sequence[bytes]) -> bytes:
    """A list of values that are encoded already."""
    if not parts:
        return EMPTY_LIST
    return _compound(0xC0, len(parts), b"".join(parts))


def encode_map(parts: Sequence[bytes]) -> bytes:
    """A map of keys and values, in turn, that are encoded already."""
    return _compound(0xC1, len(parts), b"".join(parts))


def encode_symbols(values: Sequence[str]) -> bytes:
    """An array of symbols, the form of fields with several values; ``null`` when there are none."""
    return _encode_array(Array(values, 0xA3), 0) if values else NULL


def encode_described(code: int, value: bytes) -> bytes:
    """A described value: the descriptor is the number ``code``, the value is encoded already."""
    return b"\x00" + encode_ulong(code) + value


def _compound(code8: int, count: int, body: bytes) -> bytes:
    size = len(body)
    if size < 0xFF and count <= 0xFF:
        return _pack_compound8(code8, size + 1, count) + body
    return _pack_compound32(code8 + 0x10, size + 4, count) + body


class Encoded(bytes):
    """A value that is encoded already, to stand inside of one that is not."""

    __slots__ = ()


def encode(value: Any) -> bytes:
    """The octets of a value.

    ``int`` becomes int when it fits 32 bits, else long; ``float`` double; ``str`` string; ``bytes`` binary; ``UUID``
    uuid; ``datetime`` timestamp; ``dict`` map; ``list`` and ``tuple`` list. The classes of :mod:`jmsish.types` fix a
    width. What has no AMQP form raises ``TypeError``; a number too large, ``ValueError``.
    """
    return _encode(value, 0)


def _encode(value: Any, depth: int) -> bytes:
    encoder = _ENCODERS.get(type(value))
    if encoder is None:
        encoder = _encoder_of_kin(value)
    return encoder(value, depth)


def _encoder_of_kin(value: Any) -> Callable[[Any, int], bytes]:
    """The encoder of the nearest base class: enumerations, named tuples, other mappings travel as what they are."""
    for base in type(value).__mro__:
        if base in _ENCODERS:
            return _ENCODERS[base]
    if isinstance(value, Mapping):
        return _encode_mapping
    raise TypeError(f"a value of type {type(value).__name__} has no AMQP form")


def _encode_plain_int(value: int, depth: int) -> bytes:
    if -0x80000000 <= value <= 0x7FFFFFFF:
        return encode_int(value)
    if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        return _pack_wide_long(0x81, value)
    raise ValueError(f"{int(value)} does not fit 64 bits")


def _descend(depth: int) -> int:
    if depth >= DEPTH_LIMIT:
        raise ValueError(f"the value is nested deeper than {DEPTH_LIMIT} levels, or contains itself")
    return depth + 1


def _encode_sequence(value: Sequence[Any], depth: int) -> bytes:
    depth = _descend(depth)
    return encode_list([_encode(item, depth) for item in value])


def _mapping_parts(value: Mapping[Any, Any], depth: int) -> list[bytes]:
    depth = _descend(depth)
    parts = []
    for key, item in value.items():
        parts.append(_encode(key, depth))
        parts.append(_encode(item, depth))
    return parts


def _encode_mapping(value: Mapping[Any, Any], depth: int) -> bytes:
    return encode_map(_mapping_parts(value, depth))


def _encode_described(value: Described, depth: int) -> bytes:
    depth = _descend(depth)
    return b"\x00" + _encode(value.descriptor, depth) + _encode(value.value, depth)


def _wide_sequence(value: Sequence[Any], depth: int) -> bytes:
    depth = _descend(depth)
    body = b"".join([_encode(item, depth) for item in value])
    return _UINT.pack(len(body) + 4) + _UINT.pack(len(value)) + body


def _wide_mapping(value: Mapping[Any, Any], depth: int) -> bytes:
    parts = _mapping_parts(value, depth)
    body = b"".join(parts)
    return _UINT.pack(len(body) + 4) + _UINT.pack(len(parts)) + body


def _wide_array(value: Array, depth: int) -> bytes:
    body = _array_body(value, depth)
    return _UINT.pack(len(body) + 4) + _UINT.pack(len(value.items)) + body


def _packed(pack: Callable[[Any], bytes]) -> Callable[[Any, int], bytes]:
    return lambda value, depth: pack(value)


# Elements of an array share one constructor, so each type is written in its widest form:
# format code -> (code written, encoder of the element's octets alone). Text and binary: see _array_body.
_WIDE: Mapping[int, tuple[int, Callable[[Any, int], bytes]]] = {
    **dict.fromkeys((0x41, 0x42, 0x56), (0x56, _packed(lambda value: b"\x01" if value else b"\x00"))),
    **dict.fromkeys((0x43, 0x52, 0x70), (0x70, _packed(_UINT.pack))),
    **dict.fromkeys((0x44, 0x53, 0x80), (0x80, _packed(_ULONG.pack))),
    **dict.fromkeys((0x54, 0x71), (0x71, _packed(_INT.pack))),
    **dict.fromkeys((0x55, 0x81), (0x81, _packed(_LONG.pack))),
    **dict.fromkeys((0x45, 0xC0, 0xD0), (0xD0, _wide_sequence)),
    **dict.fromkeys((0xC1, 0xD1), (0xD1, _wide_mapping)),
    **dict.fromkeys((0xE0, 0xF0), (0xF0, _wide_array)),
    0x40: (0x40, _packed(lambda value: b"")),
    0x50: (0x50, _packed(Struct(">B").pack)),
    0x51: (0x51, _packed(Struct(">b").pack)),
    0x60: (0x60, _packed(_USHORT.pack)),
    0x61: (0x61, _packed(_SHORT.pack)),
    0x72: (0x72, _packed(_FLOAT.pack)),
    0x73: (0x73, _packed(lambda value: value.encode("utf-32-be"))),
    0x74: (0x74, _packed(bytes)),
    0x82: (0x82, _packed(_DOUBLE.pack)),
    0x83: (0x83, _packed(_LONG.pack)),
    0x84: (0x84, _packed(bytes)),
    0x94: (0x94, _packed(bytes)),
    0x98: (0x98, _packed(lambda value: value.bytes)),
}

_TEXT_OF: Mapping[int, Callable[[Any], bytes]] = {
    0xA0: bytes,
    0xA1: lambda value: value.encode(),
    0xA3: lambda value: value.encode("ascii"),
}


def _array_body(array: Array, depth: int) -> bytes:
    """Constructor and elements of an array, without its size and count."""
    depth = _descend(depth)
    prefix = b"" if array.descriptor is None else b"\x00" + _encode(array.descriptor, depth)
    code8 = array.code - 0x10 if array.code in (0xB0, 0xB1, 0xB3) else array.code
    try:
        if code8 in _TEXT_OF:
            octets = [_TEXT_OF[code8](item) for item in array.items]
            short = all(len(item) <= 0xFF for item in octets)
            size = Struct(">B" if short else ">I").pack
            code = code8 if short else code8 + 0x10
            return prefix + bytes((code,)) + b"".join([size(len(item)) + item for item in octets])
        code, element = _WIDE[array.code]
        if code == 0x40 and len(array.items) > ZERO_WIDTH_LIMIT:
            raise ValueError(f"an array of more than {ZERO_WIDTH_LIMIT} nulls")
        return prefix + bytes((code,)) + b"".join([element(item, depth) for item in array.items])
    except KeyError:
        raise ValueError(f"{array.code:#x} is no format code of an array's elements") from None
    except (struct_error, AttributeError, TypeError) as fault:
        raise ValueError(f"an element does not fit an array of type {array.code:#x}: {fault}") from fault


def _encode_array(array: Array, depth: int) -> bytes:
    return _compound(0xE0, len(array.items), _array_body(array, depth))


_ENCODERS: dict[type, Callable[[Any, int], bytes]] = {
    type(None): lambda value, depth: NULL,
    bool: lambda value, depth: TRUE if value else FALSE,
    int: _encode_plain_int,
    float: lambda value, depth: _pack_wide_double(0x82, value),
    str: lambda value, depth: _variable(0xA1, value.encode()),
    bytes: lambda value, depth: _variable(0xA0, value),
    bytearray: lambda value, depth: _variable(0xA0, bytes(value)),
    memoryview: lambda value, depth: _variable(0xA0, bytes(value)),
    dict: _encode_mapping,
    list: _encode_sequence,
    tuple: _encode_sequence,
    UUID: lambda value, depth: b"\x98" + value.bytes,
    datetime: lambda value, depth: encode_timestamp(Timestamp.from_datetime(value)),
    Byte: lambda value, depth: bytes((0x51, value & 0xFF)),
    Short: lambda value, depth: b"\x61" + _SHORT.pack(value),
    Int: lambda value, depth: encode_int(value),
    Long: lambda value, depth: encode_long(value),
    UByte: lambda value, depth: encode_ubyte(value),
    UShort: lambda value, depth: encode_ushort(value),
    UInt: lambda value, depth: encode_uint(value),
    ULong: lambda value, depth: encode_ulong(value),
    Timestamp: lambda value, depth: encode_timestamp(value),
    Float: lambda value, depth: b"\x72" + _FLOAT.pack(value),
    Double: lambda value, depth: _pack_wide_double(0x82, value),
    Char: lambda value, depth: b"\x73" + value.encode("utf-32-be"),
    Symbol: lambda value, depth: encode_symbol(value),
    Decimal32: lambda value, depth: b"\x74" + bytes(value),
    Decimal64: lambda value, depth: b"\x84" + bytes(value),
    Decimal128: lambda value, depth: b"\x94" + bytes(value),
    Described: _encode_described,
    Array: _encode_array,
    Encoded: lambda value, depth: bytes(value),
}
