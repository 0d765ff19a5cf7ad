"""What a headers exchange matches: the application properties of a message, and nothing else of it.

Decided (exchanges and policy, 1.6): ``x-match`` must be there and be ``all`` or ``any``, in any case of letters; other
arguments that begin with ``x-`` are passed over; an entry without a value asks for presence; numbers are equal by
value, whatever their widths, and booleans equal booleans only; ``any`` of nothing matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from struct import error as struct_error
from typing import Any, Final
from uuid import UUID

from jmsish.engine.selecting import property_scanner
from jmsish.types import Char, Decimal32, Timestamp

X_MATCH: Final = "x-match"
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


class Special(Enum):
    """Values that equal themselves only, where Python would find more equal."""

    TRUE = "true"
    FALSE = "false"
    PRESENT = "present"
    """Of an entry: any value will do."""
    NULL = "null"
    """Of a message: there, but nothing."""
    COMPOUND = "compound"
    """Of a message: a value that no entry can have."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """What a binding asks of the properties of a message: all of its entries, or any."""

    every: bool
    entries: tuple[tuple[str, Any], ...]
    """Names, in their order, and what their values are compared as."""
    shape: tuple[tuple[str, bool], ...] = field(compare=False)
    """The names, each with whether presence will do: bindings of one shape are looked up together."""
    values: tuple[Any, ...] = field(compare=False)
    """What is compared, in the order of the shape."""

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> Criteria:
        """From the arguments of a binding; ``ValueError`` says which is wrong."""
        modes = [value for name, value in arguments.items() if name.lower() == X_MATCH]
        if len(modes) != 1:
            raise ValueError(
                f"a binding of a headers exchange needs the argument {X_MATCH!r} once: 'all' or 'any'; "
                f"this one has it {len(modes)} times"
            )
        mode = modes[0].lower() if isinstance(modes[0], str) else modes[0]
        if mode not in ("all", "any"):
            raise ValueError(f"{X_MATCH} must be 'all' or 'any', not {modes[0]!r}")
        names = sorted(name for name in arguments if not name.lower().startswith("x-"))
        entries = tuple((name, _entry(name, arguments[name])) for name in names)
        shape = tuple((name, value is Special.PRESENT) for name, value in entries)
        values = tuple(value for _, value in entries if value is not Special.PRESENT)
        return cls(mode == "all", entries, shape, values)


def _entry(name: str, value: Any) -> Any:
    if value is None:
        return Special.PRESENT
    compared = comparable(value)
    if compared is Special.COMPOUND:
        raise ValueError(
            f"the argument {name!r} has a value that no property of a message has ({type(value).__name__}): "
            "a number, a boolean, a text, octets or None is"
        )
    if type(compared) is int and not _LEAST <= compared <= _MOST:
        raise ValueError(f"the argument {name!r} is too large for a number of 64 bits: {compared}")
    return compared


def comparable(value: Any) -> Any:  # hot: run for each property of each message that is looked at
    """What a value is compared as: equal exactly if the values are, and fit to be looked up."""
    kind = type(value)
    if kind is str or kind is int or kind is float:
        return value
    if value is None:
        return Special.NULL
    if kind is bool:
        return Special.TRUE if value else Special.FALSE
    if isinstance(value, Timestamp):
        return ("timestamp", int(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Char):
        return ("char", str(value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Decimal32):
        return (kind.__name__, bytes(value))
    if isinstance(value, (bytes, UUID)):
        return bytes(value) if isinstance(value, bytes) else value
    return Special.COMPOUND


Reader = Callable[[bytes], "dict[str, Any]"]
"""The properties of a message that somebody asks about, comparable."""


def reader(names: frozenset[str]) -> Reader:
    """What reads the application properties of these names; a message that cannot be read has none."""
    if not names:
        return lambda payload: {}
    scan = property_scanner(names)

    def read(payload: bytes) -> dict[str, Any]:
        try:
            found = scan(payload)
        except (ValueError, IndexError, struct_error):
            return {}
        for name, value in found.items():
            found[name] = comparable(value)
        return found

    return read
