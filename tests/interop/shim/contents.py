"""Large bodies that sender and receiver can each make for themselves, out of a seed."""

from __future__ import annotations

from typing import Any

from jmsish.types import Array, Described, Symbol

_STRING = 0xB1
_TEXT = bytes(32 + octet % 95 for octet in range(256))


def octets(seed: int, size: int) -> bytes:
    """Octets of the linear congruential generator that the interop test prescribes."""
    state = seed & 0x7FFFFFFF
    made = bytearray(size)
    for place in range(size):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        made[place] = state >> 16 & 0xFF
    return bytes(made)


def text(seed: int, size: int) -> str:
    """The same as printable characters."""
    return octets(seed, size).translate(_TEXT).decode("ascii")


def items(seed: int, count: int, size: int) -> list[str]:
    """A text in `count` pieces of `size` characters."""
    whole = text(seed, count * size)
    return [whole[start : start + size] for start in range(0, count * size, size)]


def body(kind: str, pieces: list[str]) -> Any:
    """The collection of that kind that holds the pieces."""
    if kind == "array":
        return Array(pieces, _STRING)
    if kind == "map":
        return {f"key_{number:04d}": piece for number, piece in enumerate(pieces)}
    if kind == "described":
        return Described(Symbol("test.large.described"), pieces)
    return pieces


def pieces_of(kind: str, value: Any) -> list[Any]:
    """What a collection holds, in order."""
    if kind == "map":
        return [value.get(f"key_{number:04d}") for number in range(len(value))]
    if kind == "described" and isinstance(value, Described):
        value = value.value
    return list(value)


def first_difference(one: Any, other: Any) -> int | None:
    """The first place where two sequences differ; None if they are equal."""
    if one == other:
        return None
    pairs = zip(one, other, strict=False)
    return next((place for place, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
