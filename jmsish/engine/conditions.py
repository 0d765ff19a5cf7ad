"""The error conditions of Part 2, 2.8.15 to 2.8.18, and the faults that carry them inside the engine.

A fault is raised where the frame that shows it is read, and caught in one place, which closes, ends or detaches the
endpoint the fault speaks of. Faults never leave the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .link import Link

INTERNAL_ERROR = "amqp:internal-error"
NOT_FOUND = "amqp:not-found"
UNAUTHORIZED_ACCESS = "amqp:unauthorized-access"
DECODE_ERROR = "amqp:decode-error"
RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded"
NOT_ALLOWED = "amqp:not-allowed"
INVALID_FIELD = "amqp:invalid-field"
NOT_IMPLEMENTED = "amqp:not-implemented"
ILLEGAL_STATE = "amqp:illegal-state"
FRAME_SIZE_TOO_SMALL = "amqp:frame-size-too-small"

CONNECTION_FORCED = "amqp:connection:forced"
FRAMING_ERROR = "amqp:connection:framing-error"

WINDOW_VIOLATION = "amqp:session:window-violation"
ERRANT_LINK = "amqp:session:errant-link"
HANDLE_IN_USE = "amqp:session:handle-in-use"
UNATTACHED_HANDLE = "amqp:session:unattached-handle"

DETACH_FORCED = "amqp:link:detach-forced"
TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded"
MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded"
STOLEN = "amqp:link:stolen"


class EngineStateError(RuntimeError):
    """A call that the state of the engine, session or link does not allow."""


class PeerLimitError(EngineStateError):
    """What was to be written goes beyond what the peer takes: its frames, its channels, its handles."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(f"{condition}: {description}")
        self.condition = condition
        self.description = description


class Fault(Exception):
    """What the peer did wrong: a condition and a sentence. A bare fault closes the connection."""

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(description)
        self.condition = condition
        self.description = description


class SessionFault(Fault):
    """Ends the session whose frame shows it."""


class LinkFault(Fault):
    """Detaches one link."""

    def __init__(self, condition: str, description: str, link: Link) -> None:
        super().__init__(condition, description)
        self.link = link
