"""What a connection tells its application beside messages and errors: interrupted, restored, and what that cost.

A callable set as `connection.event_listener` gets one of these for each thing that happens, in order, in the thread or
task that also calls the exception listener.
"""

from __future__ import annotations

from dataclasses import dataclass

from jmsish.destination import Destination
from jmsish.errors import JMSError

__all__ = [
    "ConnectionEvent",
    "ConnectionInterrupted",
    "ConnectionRestored",
    "DeliveriesLost",
    "LinkReattached",
    "TemporaryDestinationRenamed",
    "TransactionLost",
]


@dataclass(frozen=True)
class ConnectionEvent:
    """The base of them all."""


@dataclass(frozen=True)
class ConnectionInterrupted(ConnectionEvent):
    """The connection to `peer` was lost, for `cause`, and is being made again."""

    peer: str
    cause: JMSError
    unconfirmed: int = 0
    """Messages that had left without a call or callback to hear their outcome (not persistent ones): the broker may
    have them or not."""


@dataclass(frozen=True)
class ConnectionRestored(ConnectionEvent):
    """The connection stands again, to `peer`, with all its sessions, consumers and producers."""

    peer: str
    attempts: int
    """How many attempts it took."""


@dataclass(frozen=True)
class DeliveriesLost(ConnectionEvent):
    """One session lost deliveries with its connection, or with a link; the broker gives them out again."""

    destinations: tuple[Destination, ...]
    """Whose consumers had them."""
    prefetched: int
    """What nobody had received: it comes again, perhaps elsewhere."""
    unacknowledged: int
    """What was received and not acknowledged: it comes again, marked as redelivered, and to acknowledge the messages
    received before has no effect."""


@dataclass(frozen=True)
class TransactionLost(ConnectionEvent):
    """A transaction that had work was lost with its connection: the broker rolls it back, and its commit will raise
    `TransactionRolledBackError`."""

    sent: int
    """How many messages had been sent in it."""
    cause: JMSError


@dataclass(frozen=True)
class TemporaryDestinationRenamed(ConnectionEvent):
    """A temporary destination was made again, and has another name: replies to the old one arrive nowhere.

    The object that the application has goes on working: consumers, producers and `jms_reply_to` use the new name.
    """

    old: Destination
    new: Destination


@dataclass(frozen=True)
class LinkReattached(ConnectionEvent):
    """The broker had detached a consumer's or producer's link for being idle, and has it again."""

    destination: Destination | None
