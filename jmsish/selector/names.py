"""The names that JMS gives a meaning of its own, and how a message answers them (rules 187, 188 and 199)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jmsish.modes import DeliveryMode
from jmsish.selector.faults import Fault

if TYPE_CHECKING:
    from jmsish.message import Message

__all__ = ["HEADERS", "check_name", "delivery_mode_name", "value_of"]


def delivery_mode_name(persistent: bool) -> str:
    """What ``JMSDeliveryMode`` is in a selector (rule 188)."""
    return "PERSISTENT" if persistent else "NON_PERSISTENT"


# JMS 3.1, 3.8.1.1: "JMSMessageID, JMSCorrelationID, and JMSType values may be null and if so are treated as a NULL
# value"; a timestamp that nobody set is 0.
HEADERS: Mapping[str, Callable[[Message], Any]] = {
    "JMSCorrelationID": lambda message: message.jms_correlation_id,
    "JMSDeliveryMode": lambda message: delivery_mode_name(message.jms_delivery_mode == DeliveryMode.PERSISTENT),
    "JMSMessageID": lambda message: message.jms_message_id,
    "JMSPriority": lambda message: message.jms_priority,
    "JMSTimestamp": lambda message: message.jms_timestamp,
    "JMSType": lambda message: message.jms_type,
}
"""The headers that a selector may name, each with how it is read."""


def check_name(name: str, position: int) -> None:
    """Refuse a header that selectors may not name: a ``Fault`` at ``position``."""
    if name.startswith("JMS") and not name.startswith(("JMSX", "JMS_")) and name not in HEADERS:
        raise Fault(f"{name} cannot be selected by; of the headers only {', '.join(HEADERS)} can", position)


def value_of(message: Message, name: str) -> Any:
    """What ``name`` stands for in ``message``; ``None`` where it is absent (rule 189: as the type it was set with)."""
    read = HEADERS.get(name)
    return message.properties.get(name) if read is None else read(message)
