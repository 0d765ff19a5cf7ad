"""What the thread or task that runs holds frozen, so that who publishes from inside a freeze need not wait for itself.

A context variable says it: tasks and ``asyncio.to_thread`` calls that are begun inside the block have it from there,
and to wait for them would be to wait for oneself.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

from jmsish.destination import Destination, wire_name
from jmsish.errors import FreezeReentryError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jmsish.broker.freezes import Freezes


class Held(Protocol):
    """A freeze as it is seen by who publishes, and by who wants to change what it holds."""

    @property
    def is_held(self) -> bool:
        """Whether it still holds."""

    def stands_before(self, peer: str, address: str, kind: str, payload: bytes) -> str | None:
        """The exchange at which it would make a message for this address wait, at the broker ``peer``; or None."""

    def keeps_out(self, freezes: Freezes, names: Iterable[str], who: object) -> str | None:
        """Which of these exchanges, of the broker with these freezes, it holds against ``who``; None for none."""


HELD: Final[ContextVar[tuple[Held, ...]]] = ContextVar("jmsish_held", default=())
"""The freezes inside whose blocks the running code is, the outermost first."""
ANY: Final[dict[Held, None]] = {}
"""Freezes of this process that hold, or did: nothing more is looked at on behalf of a send while there are none."""


def enter(freeze: Held) -> None:
    """The block begins."""
    ANY[freeze] = None
    HELD.set((*(each for each in HELD.get() if each.is_held), freeze))


def leave(freeze: Held) -> None:
    """The block ends."""
    ANY.pop(freeze, None)
    HELD.set(tuple(each for each in HELD.get() if each is not freeze))


def refuse_reentry(connection: Any, destination: Destination, payload: bytes) -> None:
    """Raises `FreezeReentryError` where a message, sent from inside a freeze over `vm://`, would wait for its end."""
    for freeze in list(ANY):
        if not freeze.is_held:
            ANY.pop(freeze, None)  # its holder died, or was lifted, and has not left the block yet
    peer = connection.peer
    if not peer.startswith("vm://"):
        return
    for freeze in HELD.get():
        address = wire_name(destination, connection.prefixes)
        name = freeze.stands_before(peer, address, destination.capability, payload)
        if name is not None:
            raise FreezeReentryError(
                f"a message for {destination} would wait for the exchange {name!r}, which is frozen here: "
                "publish before or after the block"
            )
