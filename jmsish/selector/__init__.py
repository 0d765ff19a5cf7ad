"""Message selectors: the conditional expressions of JMS 3.1, 3.8, checked and compiled once.

::

    selector = Selector("colour = 'red' AND weight > 10")
    selector.matches(message)

A selector sees header fields and properties, never the body. The grammar by example is in docs/selectors.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jmsish.selector.conditions import Lookup, selecting
from jmsish.selector.grammar import parse
from jmsish.selector.names import value_of
from jmsish.selector.tree import identifiers_of

if TYPE_CHECKING:
    from jmsish.message import Message

__all__ = ["Selector"]


class Selector:
    """A selector, compiled; nothing of it changes, so any number of threads may share it.

    ``InvalidSelectorError`` for a fault in ``text``: its message shows the place with a caret, its ``position`` is the
    offset. An empty or blank text is such a fault too; :meth:`parse` takes it for no selector (rules 180 and 181).
    """

    __slots__ = ("identifiers", "select", "text")

    text: str
    """The selector as it was given."""
    identifiers: frozenset[str]
    """The names of properties and headers in it."""
    select: Callable[[Lookup], bool]
    """Whether it selects a message whose values a function looks up: called with a name, it gives a number, a string or
    a boolean, and ``None`` where the message has nothing of that name. ``JMSDeliveryMode`` is the string ``PERSISTENT``
    or ``NON_PERSISTENT``."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a selector is a str, not {type(text).__name__}")
        tree = parse(text)
        self.text = text
        self.identifiers = identifiers_of(tree)
        self.select = selecting(tree)

    @classmethod
    def parse(cls, text: str | None) -> Selector | None:
        """The selector of a text, or ``None``: null, empty and blank texts select everything (rule 180)."""
        if text is None or (isinstance(text, str) and not text.strip()):
            return None
        return cls(text)

    def matches(self, message: Message) -> bool:
        """Whether it selects ``message``, made here or received; the message is not changed.

        ``MessageFormatError`` if the message was received and its properties cannot be read.
        """
        return self.select(lambda name: value_of(message, name))

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Selector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"
