"""Values inside bodies: which there may be, and copies of them, so that no two messages share a list or a map."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from jmsish.errors import MessageFormatError
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

_SCALARS = frozenset(
    {type(None), bool, float, str, bytes, UUID, Byte, Short, Int, Long, UByte, UShort, UInt, ULong, Timestamp, Float}
    | {Double, Char, Symbol, Decimal32, Decimal64, Decimal128, Array}
)

_DEPTH_LIMIT = 64


def copy_value(value: Any, depth: int = 0) -> Any:
    """The value as a body keeps it: lists and maps copied, other buffers as ``bytes``, a ``datetime`` as timestamp.

    ``MessageFormatError`` for what cannot travel in a body.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is int:
        if not Long.MIN <= value <= Long.MAX:
            raise MessageFormatError(f"{value} does not fit 64 bits")
        return value
    if depth >= _DEPTH_LIMIT:
        raise MessageFormatError(f"the value is nested deeper than {_DEPTH_LIMIT} levels, or contains itself")
    if isinstance(value, Mapping):
        if any(isinstance(key, tuple) for key in value):
            raise MessageFormatError("a map key that is a list or a map")
        return {copy_value(key, depth + 1): copy_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [copy_value(item, depth + 1) for item in value]
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, datetime):
        return Timestamp.from_datetime(value)
    if isinstance(value, Described):
        return Described(copy_value(value.descriptor, depth + 1), copy_value(value.value, depth + 1))
    # Heirs of plain types, such as members of enumerations, travel as what they are at bottom.
    if isinstance(value, (int, float, bytes)):
        base = int if isinstance(value, int) else float if isinstance(value, float) else bytes
        return copy_value(base(value), depth)  # type: ignore[arg-type]  # base is the class it was found to be
    if isinstance(value, str):
        # Not str(): a member of an enumeration answers it with its own name.
        return str.__str__(value)
    raise MessageFormatError(f"a value of type {kind.__name__} cannot travel in a message")


def fresh(value: Any) -> Any:
    """A copy of a value that a body keeps, for the application to have; what cannot be changed is the value itself."""
    kind = type(value)
    if kind is dict:
        return {key: fresh(item) for key, item in value.items()}
    if kind is list:
        return [fresh(item) for item in value]
    if kind is Described:
        return Described(value.descriptor, fresh(value.value))
    return value
