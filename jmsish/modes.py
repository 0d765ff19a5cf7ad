"""The choices of Jakarta Messaging that are numbers in Java."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["AcknowledgeMode", "DeliveryMode"]


class AcknowledgeMode(IntEnum):
    """Who acknowledges what a session receives, and when (the values are those of JMS and Qpid JMS)."""

    TRANSACTED = 0
    """`commit` acknowledges all that was received, and sends all that was sent, as one; `rollback` undoes both."""
    AUTO = 1
    """Each message as it is received, or when its listener returns."""
    CLIENT = 2
    """`Message.acknowledge` acknowledges all that the session has received."""
    DUPS_OK = 3
    """Lazily, in batches: after a crash some messages may come again."""
    NONE = 100
    """Nothing: the broker sends messages settled and forgets them."""
    INDIVIDUAL = 101
    """`Message.acknowledge` acknowledges that message only."""


class DeliveryMode(IntEnum):
    """Whether a message must survive a restart of the broker."""

    NON_PERSISTENT = 1
    """It may be lost with the broker; a send does not wait for it to be taken."""
    PERSISTENT = 2
    """It is kept; a send returns when the broker has taken it."""
