"""Messages and their octets: the one door to the modules that take them apart and put them together."""

from __future__ import annotations

from jmsish.engine.composing import encode_for_send, encode_message
from jmsish.engine.received import ReceivedMessage
from jmsish.engine.sections import (
    Header,
    bare_offset,
    check_sections,
    delivery_count_of,
    encode_header,
    is_expired,
    message_annotations_at,
    peek_properties,
    property_at,
    split_header,
    with_annotations,
    with_header,
)
from jmsish.engine.template import MessageTemplate
from jmsish.message.fields import (
    ABSOLUTE_EXPIRY_TIME,
    AMQP_SEQUENCE,
    AMQP_VALUE,
    CONTENT_ENCODING,
    CONTENT_TYPE,
    CORRELATION_ID,
    CREATION_TIME,
    DATA,
    GROUP_ID,
    GROUP_SEQUENCE,
    MESSAGE_ID,
    REPLY_TO,
    REPLY_TO_GROUP_ID,
    SUBJECT,
    TO,
    USER_ID,
)

__all__ = [
    "ABSOLUTE_EXPIRY_TIME",
    "AMQP_SEQUENCE",
    "AMQP_VALUE",
    "CONTENT_ENCODING",
    "CONTENT_TYPE",
    "CORRELATION_ID",
    "CREATION_TIME",
    "DATA",
    "GROUP_ID",
    "GROUP_SEQUENCE",
    "Header",
    "MESSAGE_ID",
    "MessageTemplate",
    "REPLY_TO",
    "REPLY_TO_GROUP_ID",
    "ReceivedMessage",
    "SUBJECT",
    "TO",
    "USER_ID",
    "bare_offset",
    "check_sections",
    "delivery_count_of",
    "encode_for_send",
    "encode_header",
    "encode_message",
    "is_expired",
    "message_annotations_at",
    "peek_properties",
    "property_at",
    "split_header",
    "with_annotations",
    "with_header",
]
