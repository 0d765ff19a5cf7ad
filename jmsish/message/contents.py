"""Values inside messages: which there may be, and copies of them, so that no two messages share a list or a map.

JMS and AMQP differ in what there may be. An ObjectMessage carries whatever AMQP has a type for; a property, an item of
a MapMessage and a value of a StreamMessage are single values of JMS's types.
"""

from __future__ import annotations

import reprlib
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

_OF_PROPERTIES = frozenset({type(None), bool, float, str, Byte, Short, Int, Long, Float, Double})
_OF_BODIES = _OF_PROPERTIES | {Char, bytes}
_SCALARS = _OF_BODIES | {UUID, UByte, UShort, UInt, ULong, Timestamp, Symbol, Decimal32, Decimal64, Decimal128, Array}

# Heirs of plain types that JMS has no type for: they may come in a message, but a JMS program could not have sent them.
_NO_HEIRS = (Char, Symbol, Timestamp, UByte, UShort, UInt, ULong, Decimal32)

_DEPTH_LIMIT = 64


def _plain(value: Any) -> Any:
    """An heir of a plain type, such as a member of an enumeration, as what it is at bottom; else ``NotImplemented``."""
    if isinstance(value, str):
        # Not str(): a member of an enumeration answers it with its own name.
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else NotImplemented


def check_body_type(kind: Any) -> type[Any]:
    """What a body may be asked for as: a class.  Raises ``TypeError`` for anything else, ``list[int]`` for one."""
    if not isinstance(kind, type) or hasattr(kind, "__origin__"):
        raise TypeError(f"the type of a body is a class such as str, bytes or dict, not {kind!r}")
    return kind


# ---------------------------------------------------------------- single values, as JMS has them


def _single(value: Any, what: str, where: object, known: frozenset[type], hint: str) -> Any:
    kind = type(value)
    if kind in known:
        return value
    plain = value if kind is int else NotImplemented if isinstance(value, _NO_HEIRS) else _plain(value)
    if type(plain) is int:
        if not Long.MIN <= plain <= Long.MAX:
            raise MessageFormatError(f"{what} {where} cannot be {plain}, which does not fit 64 bits")
    elif type(plain) not in known:
        raise MessageFormatError(f"{what} {where} cannot be {reprlib.repr(value)}, of type {kind.__name__}: {hint}")
    return plain


def property_value(value: Any, name: str) -> Any:
    """A value that a property may be given: boolean, a number of at most 64 bits, a text, or ``None`` (jms rule 155).

    ``MessageFormatError``, with the name of the property, for any other.
    """
    hint = "a property is a boolean, a number of at most 64 bits or a text"
    return _single(value, "property", name, _OF_PROPERTIES, hint)


def item_value(value: Any, what: str, where: object) -> Any:
    """A value that a map or a stream may be given: as a property, or a character, or octets (jms rules 169 and 175).

    ``MessageFormatError``, with ``what`` and ``where`` it is, for any other, lists and maps among them.
    """
    return _single(
        value, what, where, _OF_BODIES,
        "the values of maps and streams are booleans, numbers of at most 64 bits, texts, characters and octets; "
        "an ObjectMessage carries lists, maps and every other type of AMQP",
    )  # fmt: skip


# ---------------------------------------------------------------- any value of AMQP


def copy_value(value: Any) -> Any:
    """The value as a body keeps it: lists and maps copied, other buffers as ``bytes``, a ``datetime`` as timestamp.

    ``MessageFormatError`` for what cannot travel in a body, with the place where it is.
    """
    try:
        return _copy(value, 0)
    except MessageFormatError as fault:
        place = _place_of_fault(value, 0)
        if not place:
            raise
        raise MessageFormatError(f"at {place}: {fault}") from None


def _copy(value: Any, depth: int) -> Any:
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
        return {_copy(key, depth + 1): _copy(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(item, depth + 1) for item in value]
    if isinstance(value, datetime):
        return Timestamp.from_datetime(value)
    if isinstance(value, Described):
        return Described(_copy(value.descriptor, depth + 1), _copy(value.value, depth + 1))
    plain = _plain(value)
    if plain is NotImplemented:
        raise MessageFormatError(f"a value of type {kind.__name__} cannot travel in a message")
    return _copy(plain, depth)


def _place_of_fault(value: Any, depth: int) -> str:
    """Where in a value that cannot be copied the first part is that cannot: ``['orders'][2]``; empty for itself."""
    items: Any = ()
    if depth < _DEPTH_LIMIT and isinstance(value, (list, tuple)):
        items = enumerate(value)
    elif depth < _DEPTH_LIMIT and isinstance(value, Mapping):
        items = value.items()
    for key, item in items:
        try:
            _copy(item, depth + 1)
        except MessageFormatError:
            inner = _place_of_fault(item, depth + 1)
            return f"[{key!r}]{inner}" if len(inner) < 200 else f"[{key!r}]…"
    return ""


def fresh(value: Any) -> Any:
    """A copy of a value that a body keeps, for the application to have; what cannot be changed is the value itself."""
    kind = type(value)
    if kind is dict:
        return {key: fresh(item) for key, item in value.items()}
    if kind is list:
        return [fresh(item) for item in value]
    if kind is Described:
        return Described(value.descriptor, fresh(value.value))
    return bytearray(value) if kind is bytearray else value
