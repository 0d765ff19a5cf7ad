"""What a message is made of, by the numbers AMQP gives its parts, and what a message asks of its source."""

from __future__ import annotations

from typing import Any, Protocol

# Sections that hold a body (Part 3, 3.2).
DATA = 0x75
AMQP_SEQUENCE = 0x76
AMQP_VALUE = 0x77

# Fields of the properties section, by position (Part 3, 3.2.4).
MESSAGE_ID = 0
USER_ID = 1
TO = 2
SUBJECT = 3
REPLY_TO = 4
CORRELATION_ID = 5
CONTENT_TYPE = 6
CONTENT_ENCODING = 7
ABSOLUTE_EXPIRY_TIME = 8
CREATION_TIME = 9
GROUP_ID = 10
GROUP_SEQUENCE = 11
REPLY_TO_GROUP_ID = 12
PROPERTY_COUNT = 13

# Message annotations of the JMS mapping.
MESSAGE_TYPE = "x-opt-jms-msg-type"
DESTINATION_KIND = "x-opt-jms-dest"
REPLY_TO_KIND = "x-opt-jms-reply-to"
DELIVERY_TIME = "x-opt-delivery-time"
LEGACY_DESTINATION_KIND = "x-opt-to-type"
LEGACY_REPLY_TO_KIND = "x-opt-reply-type"

JMS_ANNOTATIONS = frozenset(
    {MESSAGE_TYPE, DESTINATION_KIND, REPLY_TO_KIND, DELIVERY_TIME, LEGACY_DESTINATION_KIND, LEGACY_REPLY_TO_KIND}
)
"""Those that say what the headers of a message say, and are written anew from them when it is sent on."""

OCTET_STREAM = "application/octet-stream"
JAVA_OBJECT = "application/x-java-serialized-object"
PICKLED = "application/x-python-serialize"


class MessageSource(Protocol):
    """The octets a received message is read from, part by part, each when it is asked for.

    Whatever a method gives is the caller's own; octets that are no message raise ``ValueError``.
    """

    prefix: Any
    """What stands before the bare message: ``header`` (with ``durable``, ``priority``, ``ttl`` and ``delivery_count``),
    ``annotations``, and ``meaning``, ``None`` at first: what the reader made of them, for the next such message."""

    text: str | None
    """The body, where it is one short text that has been decoded already."""
    has_application_properties: bool
    """Whether there are any, in a message that has been checked."""

    def property(self, index: int) -> Any: ...
    def application_properties(self) -> dict[str, Any]: ...
    def application_property_octets(self) -> bytes: ...
    def body_section(self) -> int: ...
    def body(self) -> tuple[int, Any]: ...
    def body_octets(self) -> bytes: ...
