"""Connections that a router makes itself: what is to be dialled, when, and what became of it (R11).

The core says what is to be dialled; a driver dials and says how it went. States and inputs:

               due        dialled    failed     opened     lost       close
    DOWN       DIALLING   -          -          -          -          CLOSED
    DIALLING   -          OPENING    DOWN       -          -          CLOSED
    OPENING    -          -          -          UP         DOWN       CLOSED
    UP         -          -          -          -          DOWN       CLOSED
    CLOSED     -          CLOSED     CLOSED     -          CLOSED     CLOSED
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from jmsish.broker.config.network import shown_url
from jmsish.broker.network.doors import EDGE, INTER_ROUTER, NORMAL

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.broker.network.linkroutes import Through
    from jmsish.broker.network.node import RouterNode

DOWN, DIALLING, OPENING, UP, CLOSED = range(5)
STATES: Final = ("down", "dialling", "opening", "up", "closed")
DUE, DIALLED, FAILED, OPENED, LOST, CLOSE = range(6)
INPUTS: Final = ("due", "dialled", "failed", "opened", "lost", "close")

TABLE: Final[tuple[tuple[int | None, ...], ...]] = (
    (DIALLING, None, None, None, None, CLOSED),  # DOWN
    (None, OPENING, DOWN, None, None, CLOSED),  # DIALLING
    (None, None, None, UP, DOWN, CLOSED),  # OPENING
    (None, None, None, None, DOWN, CLOSED),  # UP
    (None, CLOSED, CLOSED, None, CLOSED, CLOSED),  # CLOSED
)

FIRST_DELAY: Final = 0.02
AFTER_A_LOSS: Final = 0.3
"""Seconds after which a connection that was lost is dialled again: longer than what is under way to it needs to be told
so (`ingress.LINGER`)."""
LONGEST_DELAY: Final = 1.0
"""Seconds between two tries, at most: few enough that a network heals within two. A part of each is left to chance, so
that routers which found a ring, and all let go, do not close it again at the same moment."""


@dataclass(frozen=True, slots=True)
class Dial:
    """An output of the core: dial this, and say how it went by ``connector.dialled`` or ``connector.failed``."""

    connector: Connector | Through
    url: str = field(repr=False)


class Connector:
    """One connection to be had, for as long as the router runs or until it is closed."""

    __slots__ = ("_chance", "_delay", "connection", "error", "name", "node", "role", "router", "state", "url")

    def __init__(self, node: RouterNode, name: str, url: str, role: str) -> None:
        self.node = node
        self.name = name
        self.url = url
        self.role = role
        self.state = DOWN
        self.connection: RouterConnection | None = None
        self.error = ""
        """Why it is not up, where that is known."""
        self.router = ""
        """The neighbour that was found there last."""
        self._delay = 0.0
        self._chance = Random(f"{node.router} {name}")

    def __repr__(self) -> str:
        return f"<Connector {self.name!r} to {self.shown} {STATES[self.state]}>"

    @property
    def shown(self) -> str:
        """Its URL, without a password."""
        return shown_url(self.url)

    @property
    def is_up(self) -> bool:
        return self.state == UP

    def _advance(self, input: int) -> bool:
        """Take an input; whether it means something in this state."""
        following = TABLE[self.state][input]
        if following is None:
            return False
        self.state = following
        return True

    def on_time(self, now: float) -> None:
        """It is time to try (again)."""
        if self._advance(DUE):
            self.node.dial(self)

    def dialled(self, peer: str) -> RouterConnection | None:
        """There is a way for octets: the connection that they belong to; None where it is not wanted any more."""
        if not self._advance(DIALLED) or self.state == CLOSED:
            return None
        self.connection = self.node.connect_out(self, peer)
        return self.connection

    def failed(self, reason: str) -> None:
        """It could not be dialled."""
        if self._advance(FAILED) and self.state == DOWN:
            self._retry(reason, FIRST_DELAY)

    def opened(self) -> None:
        """The peer has let us in."""
        if self._advance(OPENED):
            self._delay, self.error = 0.0, ""
            self.node.came_up(self)

    def lost(self, reason: str) -> None:
        """The connection has ended, whoever ended it."""
        self.connection = None
        was_up = self.is_up
        if self._advance(LOST) and self.state == DOWN:
            self._retry(reason, AFTER_A_LOSS)
        if was_up:
            self.node.went_down(self)

    def _retry(self, reason: str, least: float) -> None:
        known, self.error = self.error, reason  # before the log says so: who reads it there may ask here
        if reason != known:
            self.node.log_down(self, reason)
        self._delay = min(max(self._delay * 2, least), LONGEST_DELAY)
        self.node.remind(self.node.now() + self._delay * self._chance.uniform(0.7, 1), self)

    def close(self) -> None:
        """It is not wanted any more."""
        was_up = self.is_up
        self._advance(CLOSE)
        if was_up:
            self.node.went_down(self)
        self.node.dismiss(self)
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close(None)
        self.node.connector_closed(self)


CONNECTOR_ROLES: Final = (NORMAL, INTER_ROUTER, EDGE)
