"""Messages of other implementations: any session sends them too (jms rule 179), as the message here that says the same.

Such a message is any object that has what all JMS messages have in Python's dress: ``body``, ``properties`` and headers
named ``jms_…``. Python has no common base class for them, so they are known by these.
"""

from __future__ import annotations

from typing import Any

from jmsish.message.base import Message

__all__ = ["adopt", "is_message", "tell"]

_OF_THE_APPLICATION = ("jms_correlation_id", "jms_reply_to", "jms_type")
_SET_BY_SEND = (
    "jms_message_id", "jms_destination", "jms_delivery_mode", "jms_priority", "jms_timestamp", "jms_expiration",
    "jms_delivery_time",
)  # fmt: skip


def is_message(value: Any) -> bool:
    """Whether the value is a message, of this implementation or of another."""
    return isinstance(value, Message) or (hasattr(value, "jms_correlation_id") and hasattr(value, "body"))


def adopt(message: Message, other: Any) -> Message:
    """Give ``message``, which has the body of ``other``, its properties and the headers that belong to applications."""
    for name in _OF_THE_APPLICATION:
        value = getattr(other, name, None)
        if value is not None:
            setattr(message, name, value)
    for name, value in dict(getattr(other, "properties", None) or {}).items():
        message.properties[name] = value
    return message


def tell(other: Any, message: Message) -> None:
    """Tell a message of another implementation the headers it was sent with, as far as it takes them (jms rule 84)."""
    for name in _SET_BY_SEND:
        try:
            setattr(other, name, getattr(message, name))
        except (AttributeError, TypeError, ValueError):
            continue
