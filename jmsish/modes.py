"""The choices of Jakarta Messaging that are numbers in Java."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NoReturn

__all__ = ["AcknowledgeMode", "DeliveryMode"]


class Choice(IntEnum):
    """What is not one of them raises `ValueError` that names those there are."""

    @classmethod
    def _missing_(cls, value: Any) -> NoReturn:
        known = ", ".join(f"{each.name} ({each.value})" for each in cls)
        raise ValueError(f"{value!r} is no {cls.__name__}: there are {known}")


class AcknowledgeMode(Choice):
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


class DeliveryMode(Choice):
    """Whether a message must survive a restart of the broker."""

    NON_PERSISTENT = 1
    """It may be lost with the broker; a send does not wait for it to be taken."""
    PERSISTENT = 2
    """It is kept; a send returns when the broker has taken it."""
