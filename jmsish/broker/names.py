"""The names of nodes: which are the broker's own, and what others may be called."""

from __future__ import annotations

from typing import Final

MANAGEMENT: Final = "$management"
"""The address of the management node."""
TEMPORARY: Final = "jmsish.temporary."
"""How the names of temporary nodes begin. Such a name is never made on first use: used when gone, it is an error."""
SUBSCRIPTION: Final = "jmsish.subscription."
"""How the names of the queues of subscriptions begin; such a queue is never made on first use."""


def check_text(name: object, what: str) -> None:
    """Refuse what is no name at all: ``ValueError``."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"{what} needs a name, not {name!r}")
    if any("\ud800" <= char <= "\udfff" for char in name):
        raise ValueError(f"{what} cannot be called {name!r}: half a character is no text")


def check_queue_name(name: object, what: str) -> None:
    """Refuse a name that a queue cannot have, or that only the broker gives: ``ValueError``."""
    check_text(name, what)
    assert isinstance(name, str)
    if name == MANAGEMENT:
        raise ValueError(f"{what}: {name!r} is the management node, and no name for a queue")
    if name.startswith((TEMPORARY, SUBSCRIPTION)):
        raise ValueError(f"{what}: names that begin with {TEMPORARY!r} or {SUBSCRIPTION!r} are the broker's own")
