"""What receivers may add to messages: the annotations of the outcome modified (3.4.5), and how many.

One disposition names as many messages as a session has, and a default outcome decides on all that a link has, so a few
octets on the wire could have the broker write gigabytes. What is added is weighed before any of it is.
"""

from __future__ import annotations

from sys import maxsize
from typing import Final

from jmsish.broker.refusals import INVALID_FIELD, RESOURCE_LIMIT_EXCEEDED, Refusal
from jmsish.engine.outcomes import AmqpError, DeliveryState, Modified, TransactionalState

__all__ = ["check_default_notes", "most_unsettled", "too_many_notes"]

MOST_ADDED: Final = 1 << 20
"""Octets that one disposition may add to messages."""
LEAST_WEIGHT: Final = 512
"""What each message counts for at least: the work of writing it anew."""
MOST_DEFAULT_NOTES: Final = 256
"""Octets of annotations in a default outcome."""
MOST_WITH_DEFAULT_NOTES: Final = 2000
"""Messages that a link with such a default outcome may have unsettled."""


def notes_size(outcome: DeliveryState | None) -> int:
    """Octets of the annotations that an outcome adds, about; 0 where it adds none."""
    return len(outcome.encoded) if isinstance(outcome, Modified) and outcome.message_annotations else 0


def too_many_notes(state: DeliveryState | None, messages: int) -> AmqpError | None:
    """What is wrong with a disposition that adds more to so many messages than it may."""
    size = notes_size(state.outcome if isinstance(state, TransactionalState) else state)
    if not size or messages * max(size, LEAST_WEIGHT) <= MOST_ADDED or messages == 1:
        return None
    text = f"a disposition adds message-annotations of {size} octets to {messages} messages at once, which is too much"
    return AmqpError(RESOURCE_LIMIT_EXCEEDED, text)


def check_default_notes(outcome: DeliveryState | None) -> None:
    """Refuse a default outcome that adds much."""
    size = notes_size(outcome)
    if size > MOST_DEFAULT_NOTES:
        text = f"default-outcome: message-annotations of {size} octets, where {MOST_DEFAULT_NOTES} are the most"
        raise Refusal(INVALID_FIELD, text, {"field": "default-outcome"})


def most_unsettled(default: DeliveryState | None, limit: int) -> int:
    """How many messages a link of this default outcome may have unsettled, where ``limit`` holds for all; 0 is none."""
    return min(limit or maxsize, MOST_WITH_DEFAULT_NOTES if notes_size(default) else maxsize)
