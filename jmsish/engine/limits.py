"""What one peer may cost us at most, whoever it is: the same for a broker's clients and for a client's broker."""

from __future__ import annotations

from dataclasses import dataclass
from sys import maxsize

from .conditions import RESOURCE_LIMIT_EXCEEDED

__all__ = ["DEFAULT_LIMITS", "SHORTEST_IDLE_TIME_OUT", "Limits"]

SHORTEST_IDLE_TIME_OUT = 100
"""Milliseconds. A peer that asks for a frame more often than twenty times a second wants us busy, not alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Beyond each of them the connection ends with ``amqp:resource-limit-exceeded``."""

    frame_timeout: float | None = 60.0
    """Seconds for a frame that was begun to come whole: the largest that a broker takes, 128 KiB, at 2.2 KiB a second.
    Without it a frame could be fed octet by octet for ever, each in time for the idle time-out."""
    max_links: int = 20_000
    """Links that the peer has attached and not detached, those that were refused included. A link costs about 2 KiB."""
    max_answers: int = 4 << 20
    """Octets of answers that the engine itself gives (a flow to a flow with echo) to a peer that takes none of them.
    What is sent besides waits below a megabyte of it (`outgoing`), so this is reached by asking only."""

    max_unfinished: int = 0
    """Octets of messages that have come in part, beside the largest of them (`unfinished`); 0 is no limit."""

    most_disposed: int = maxsize
    """Deliveries that are reported at once of those which one disposition names. To name more is no fault, but work
    that is to be done in parts (`rest`)."""

    def answers_refused(self) -> tuple[str, str]:
        """Condition and sentence for a peer that asks and does not listen."""
        return (
            RESOURCE_LIMIT_EXCEEDED,
            f"the peer asked for more than {self.max_answers} octets of answers and took none",
        )


DEFAULT_LIMITS = Limits()
