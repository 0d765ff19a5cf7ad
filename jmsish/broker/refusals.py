"""What is not granted, and the conditions that say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jmsish.engine.outcomes import AmqpError

INVALID_FIELD: Final = "amqp:invalid-field"
NOT_ALLOWED: Final = "amqp:not-allowed"
NOT_FOUND: Final = "amqp:not-found"
NOT_IMPLEMENTED: Final = "amqp:not-implemented"
PRECONDITION_FAILED: Final = "amqp:precondition-failed"
RESOURCE_DELETED: Final = "amqp:resource-deleted"
RESOURCE_LIMIT_EXCEEDED: Final = "amqp:resource-limit-exceeded"
RESOURCE_LOCKED: Final = "amqp:resource-locked"
UNAUTHORIZED_ACCESS: Final = "amqp:unauthorized-access"


class Refusal(Exception):
    """An address, or a wish about it, that is not granted."""

    def __init__(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        super().__init__(description)
        self.error = AmqpError(condition, description, info)


class Unroutable(Refusal):
    """A message that nothing is bound for, and that its exchange does not discard."""

    def __init__(self, description: str, *, released: bool) -> None:
        super().__init__(NOT_FOUND, description)
        self.released = released
        """It is given back to its sender, not rejected."""
