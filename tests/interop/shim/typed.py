"""Values of AMQP as the interop test writes them in JSON: a pair of the name of a type and what stands for the value.

Floating point numbers and decimals are written as their bits in hexadecimal, octets in hexadecimal, characters as code
points. A list is a list of such pairs, a map a list of pairs of them, an array one name and what stands for the items.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
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

Pair = list[Any]

# ---------------------------------------------------------------------------------------------------- what is sent


def _whole(kind: Callable[[int], Any]) -> Callable[[Any], Any]:
    return lambda text: kind(int(text, 0) if isinstance(text, str) else text)


def _bits(text: Any, size: int) -> bytes:
    number = int(text, 16) if isinstance(text, str) else text
    octets: bytes = number.to_bytes(size, "big")
    return octets


def _character(text: Any) -> Char:
    if isinstance(text, int):
        return Char(chr(text))
    if text in ("", "\\x00"):
        return Char("\0")
    return Char(text if len(text) == 1 else chr(int(text, 0)))


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "null": lambda text: None,
    "boolean": lambda text: text if isinstance(text, bool) else text == "True",
    "ubyte": _whole(UByte),
    "ushort": _whole(UShort),
    "uint": _whole(UInt),
    "ulong": _whole(ULong),
    "byte": _whole(Byte),
    "short": _whole(Short),
    "int": _whole(Int),
    "long": _whole(Long),
    "float": lambda text: Float(struct.unpack(">f", _bits(text, 4))[0]),
    "double": lambda text: Double(struct.unpack(">d", _bits(text, 8))[0]),
    "decimal32": lambda text: Decimal32(_bits(text, 4)),
    "decimal64": lambda text: Decimal64(_bits(text, 8)),
    "decimal128": lambda text: Decimal128(_bits(text, 16)),
    "char": _character,
    "timestamp": _whole(Timestamp),
    "uuid": UUID,
    "binary": bytes.fromhex,
    "string": str,
    "symbol": Symbol,
}

_CODES = {
    "null": 0x40, "boolean": 0x56, "ubyte": 0x50, "ushort": 0x60, "uint": 0x70, "ulong": 0x80, "byte": 0x51,
    "short": 0x61, "int": 0x71, "long": 0x81, "float": 0x72, "double": 0x82, "decimal32": 0x74, "decimal64": 0x84,
    "decimal128": 0x94, "char": 0x73, "timestamp": 0x83, "uuid": 0x98, "binary": 0xB0, "string": 0xB1, "symbol": 0xB3,
    "list": 0xD0, "map": 0xD1, "array": 0xF0,
}  # fmt: skip
"""The format code of the elements of an array, by their type."""


def value_of(name: str, written: Any) -> Any:
    """The value of the type `name` that `written` stands for."""
    if name == "list":
        return [value_of(*item) for item in written]
    if name == "map":
        return {value_of(*key): value_of(*item) for key, item in written}
    if name == "array":
        element = written["element_type"]
        return Array([value_of(element, item) for item in written.get("elements", ())], _CODES[element])
    if name == "described":
        return Described(value_of(*written["descriptor"]), value_of(*written["value"]))
    return _SCALARS[name](written)


def property_of(name: str, written: Any) -> Any:
    """The same for a property, whose whole numbers are written as bits too, negative ones as two's complement."""
    width = {"byte": 1, "short": 2, "int": 4, "long": 8}.get(name)
    if width is not None and isinstance(written, str) and not written.startswith("-"):
        written = int.from_bytes(_bits(written, width), "big", signed=True)
    return value_of(name, written)


# ---------------------------------------------------------------------------------------------------- what was received

_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    UByte: "ubyte",
    UShort: "ushort",
    UInt: "uint",
    ULong: "ulong",
    Byte: "byte",
    Short: "short",
    Int: "int",
    int: "int",
    Long: "long",
    Float: "float",
    float: "double",
    Double: "double",
    Decimal32: "decimal32",
    Decimal64: "decimal64",
    Decimal128: "decimal128",
    Char: "char",
    Timestamp: "timestamp",
    UUID: "uuid",
    bytes: "binary",
    str: "string",
    Symbol: "symbol",
    list: "list",
    dict: "map",
    Array: "array",
    Described: "described",
}

_ELEMENTS = {code: name for name, code in _CODES.items()}
# The same types in their shorter and special forms.
_ELEMENTS |= {
    0x41: "boolean", 0x42: "boolean", 0x43: "uint", 0x52: "uint", 0x44: "ulong", 0x53: "ulong", 0x54: "int",
    0x55: "long", 0xA0: "binary", 0xA1: "string", 0xA3: "symbol", 0x45: "list", 0xC0: "list", 0xC1: "map",
    0xE0: "array",
}  # fmt: skip


def pair_of(value: Any) -> Pair:
    """The name of the type of a value, and what stands for it."""
    name = _NAMES[type(value)]
    if name == "list":
        return [name, [pair_of(item) for item in value]]
    if name == "map":
        return [name, [[pair_of(key), pair_of(item)] for key, item in value.items()]]
    if name == "array":
        items = [pair_of(item)[1] for item in value]
        return [name, {"element_type": _ELEMENTS[value.code], "elements": items}]
    if name == "described":
        return [name, {"descriptor": pair_of(value.descriptor), "value": pair_of(value.value)}]
    return [name, _scalar(name, value)]


def _scalar(name: str, value: Any) -> Any:
    if name == "float":
        return "0x" + struct.pack(">f", value).hex()
    if name == "double":
        return "0x" + struct.pack(">d", value).hex()
    if name.startswith("decimal"):
        return "0x" + value.hex()
    if name == "binary":
        return value.hex()
    if name == "char":
        return ord(value)
    if name in ("null", "boolean"):
        return value
    return str(value) if name in ("uuid", "string", "symbol") else int(value)


def property_pair_of(value: Any) -> Pair:
    """The same for a property: whole numbers as bits, in the width of their type."""
    name, written = pair_of(value)
    width = {"byte": 1, "short": 2, "int": 4, "long": 8}.get(name)
    if width is not None:
        written = "0x" + int(written).to_bytes(width, "big", signed=True).hex()
    return [name, written]
