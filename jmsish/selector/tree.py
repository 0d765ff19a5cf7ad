"""What a selector is made of: one class for each kind of expression. ``position`` is where it begins in the text."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = [
    "Arithmetic",
    "Between",
    "Both",
    "Comparison",
    "Either",
    "Identifier",
    "InList",
    "IsNull",
    "Like",
    "Literal",
    "Node",
    "Not",
    "Signed",
    "identifiers_of",
]


class Literal(NamedTuple):
    """A number, a string, or a boolean."""

    value: int | float | str | bool
    position: int


class Identifier(NamedTuple):
    """The name of a property or of a header."""

    name: str
    position: int


class Signed(NamedTuple):
    """A minus before a number, or a plus, which changes nothing but has a value only for numbers."""

    negative: bool
    operand: Node
    position: int


class Arithmetic(NamedTuple):
    """Operations of one level of precedence, from left to right: ``+ -``, or ``* /``."""

    first: Node
    rest: list[tuple[str, Node]]
    position: int


class Comparison(NamedTuple):
    """``= <> < <= > >=``."""

    operator: str
    left: Node
    right: Node
    position: int


class Between(NamedTuple):
    """``operand BETWEEN low AND high``, both included."""

    operand: Node
    low: Node
    high: Node
    position: int


class InList(NamedTuple):
    """``identifier IN ('a', 'b')``."""

    name: str
    values: frozenset[str]
    position: int


class Like(NamedTuple):
    """``identifier LIKE 'pattern' ESCAPE 'c'``."""

    name: str
    pattern: str
    escape: str | None
    position: int


class IsNull(NamedTuple):
    """``identifier IS NULL``, or ``IS NOT NULL``."""

    name: str
    negated: bool
    position: int


class Not(NamedTuple):
    """``NOT condition``."""

    operand: Node
    position: int


class Both(NamedTuple):
    """Conditions joined by AND: a chain of them is one node, however long."""

    items: list[Node]
    position: int


class Either(NamedTuple):
    """Conditions joined by OR."""

    items: list[Node]
    position: int


Node: TypeAlias = (
    "Literal | Identifier | Signed | Arithmetic | Comparison | Between | InList | Like | IsNull | Not | Both | Either"
)


def identifiers_of(tree: Node) -> frozenset[str]:
    """The names in a tree."""
    names = set()
    waiting: list[object] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (Identifier, InList, Like, IsNull)):
            names.add(node.name)
        elif isinstance(node, (tuple, list)):
            waiting.extend(node)
    return frozenset(names)
