"""The conversion tables of JMS: what a value that was written as one type may be read as.

::

    written as   readable as                         (Jakarta Messaging 3.1, 3.5.4 and 3.11.3)
    boolean      boolean, string
    byte         byte, short, int, long, string
    short        short, int, long, string
    char         char, string                        (bodies only; a property is a string)
    int          int, long, string
    long         long, string
    float        float, double, string
    double       double, string
    string       string, and by parsing boolean, byte, short, int, long, float, double
    bytes        bytes                               (bodies only)

Types of AMQP that JMS lacks are read as the nearest that holds them all: ubyte as short, ushort as int, uint as long,
ulong as long where it fits, timestamp as long, symbol and uuid as string.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from math import isfinite, isnan
from typing import Any
from uuid import UUID

from jmsish.errors import MessageFormatError, NumberFormatError
from jmsish.types import (
    Byte,
    Char,
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

_RANGES = {
    "byte": (Byte.MIN, Byte.MAX),
    "short": (Short.MIN, Short.MAX),
    "int": (Int.MIN, Int.MAX),
    "long": (Long.MIN, Long.MAX),
}

_READABLE: Mapping[str, frozenset[str]] = {
    "boolean": frozenset({"boolean", "string"}),
    "byte": frozenset({"byte", "short", "int", "long", "string"}),
    "short": frozenset({"short", "int", "long", "string"}),
    "char": frozenset({"char", "string"}),
    "int": frozenset({"int", "long", "string"}),
    "long": frozenset({"long", "string"}),
    "float": frozenset({"float", "double", "string"}),
    "double": frozenset({"double", "string"}),
    "string": frozenset({"boolean", "byte", "short", "int", "long", "float", "double", "string"}),
    "bytes": frozenset({"bytes"}),
}

_KINDS: Mapping[type, str] = {
    bool: "boolean",
    Byte: "byte",
    Short: "short",
    UByte: "short",
    Int: "int",
    UShort: "int",
    Long: "long",
    UInt: "long",
    Timestamp: "long",
    float: "double",
    Double: "double",
    Float: "float",
    str: "string",
    Symbol: "string",
    UUID: "string",
    Char: "char",
    bytes: "bytes",
}


def kind_of(value: Any) -> str | None:
    """The JMS type of a value, by its class; ``None`` for one that JMS has no type for."""
    kind = _KINDS.get(type(value))
    if kind is None and isinstance(value, int):
        if Int.MIN <= value <= Int.MAX and not isinstance(value, ULong):
            return "int"
        return "long" if Long.MIN <= value <= Long.MAX else "string" if isinstance(value, ULong) else None
    return kind


def _whole(text: str, target: str) -> int:
    low, high = _RANGES[target]
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        raise NumberFormatError(f"{text!r} is no {target}")
    value = int(text)
    if not low <= value <= high:
        raise NumberFormatError(f"{text!r} is out of range for a {target}")
    return value


def _floating(text: str, target: str) -> float:
    try:
        if "_" in text:
            raise ValueError
        value = float(text)
        return float(Float(value)) if target == "float" else value
    except ValueError:
        raise NumberFormatError(f"{text!r} is no {target}") from None


def _shortest(value: float) -> str:
    """The shortest text that gives the same 32-bit number back."""
    for digits in range(6, 10):
        text = repr(float(f"{value:.{digits}g}"))
        if struct.pack(">f", float(text)) == struct.pack(">f", value):
            return text
    return repr(float(value))


def text_of(value: Any) -> str:
    """A value as text, the way JMS converts it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return _shortest(value) if isinstance(value, Float) else str(value)


_PARSE: Mapping[str, Callable[[str], Any]] = {
    "boolean": lambda text: text.lower() == "true",
    "byte": lambda text: _whole(text, "byte"),
    "short": lambda text: _whole(text, "short"),
    "int": lambda text: _whole(text, "int"),
    "long": lambda text: _whole(text, "long"),
    "float": lambda text: _floating(text, "float"),
    "double": lambda text: _floating(text, "double"),
}


def convert(value: Any, target: str, what: str) -> Any:
    """``value`` read as ``target``, one of the JMS types; ``what`` names it in errors.

    ``MessageFormatError`` where the table has no entry; ``NumberFormatError`` for a text, or ``None``, that is no
    number; ``TypeError`` for ``None`` as a char. ``None`` is false as a boolean, and itself as string and bytes.
    """
    if value is None:
        return _convert_none(target, what)
    kind = kind_of(value)
    if kind is None or target not in _READABLE[kind]:
        raise MessageFormatError(f"{what} is a {kind or type(value).__name__} and cannot be read as {target}")
    if target == "string":
        return text_of(value)
    if kind == "string":
        return _PARSE[target](str(value))
    if target == "boolean":
        return bool(value)
    if target in ("float", "double"):
        return float(value)
    return value if target in ("char", "bytes") else int(value)


def _convert_none(target: str, what: str) -> Any:
    if target == "boolean":
        return False
    if target in ("string", "bytes"):
        return None
    if target == "char":
        raise TypeError(f"{what} is not there, or None: not a char")
    raise NumberFormatError(f"{what} is not there, or None: no {target}")


def _java_char(value: str) -> Char:
    """Java has characters of 16 bits; those beyond are two of them, and so a text."""
    char = Char(value)
    if char > "\uffff":
        raise ValueError(f"{value!r} does not fit the 16 bits of a Java character; write it as a string")
    return char


_WRITE: Mapping[str, tuple[type, Callable[[Any], Any]]] = {
    "byte": (int, Byte),
    "short": (int, Short),
    # What fits 32 bits is an int by itself.
    "int": (int, lambda value: int(Int(value))),
    "long": (int, Long),
    "float": (float, Float),
    "double": (float, float),
    "string": (str, str),
    "char": (str, _java_char),
    "bytes": (bytes, bytes),
}


def written(value: Any, target: str, what: str) -> Any:
    """``value`` as it is kept when the application writes it as ``target``.

    ``TypeError`` for another kind of value, ``ValueError`` for one out of range.
    """
    if target == "boolean":
        if not isinstance(value, bool):
            raise TypeError(f"{what} as boolean takes True or False, not {value!r}")
        return value
    if value is None and target in ("string", "bytes"):
        return None
    if target == "bytes" and isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    expected, build = _WRITE[target]
    fits = isinstance(value, (int, float) if expected is float else expected)
    if not fits or isinstance(value, bool):
        raise TypeError(f"{what} as {target} takes a {expected.__name__}, not {value!r}")
    return build(value)
