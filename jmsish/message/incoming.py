"""Which kind of message came in, and which kind a body makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jmsish.destination import Destination, Prefixes
from jmsish.errors import MessageFormatError
from jmsish.message.base import UNREAD, Message
from jmsish.message.bodies import ObjectMessage, TextMessage
from jmsish.message.content_types import charset_of
from jmsish.message.fields import (
    AMQP_SEQUENCE,
    AMQP_VALUE,
    CONTENT_TYPE,
    DATA,
    JAVA_OBJECT,
    OCTET_STREAM,
    MessageSource,
)
from jmsish.message.foreign import adopt, is_message
from jmsish.message.headers import READERS, meaning
from jmsish.message.maps import MapMessage
from jmsish.message.octets import BytesMessage
from jmsish.message.streams import StreamMessage

__all__ = ["body_to_message", "message_from", "read_in"]

# By the number in the annotation.
_CLASSES: tuple[type[Message], ...] = (
    Message,
    ObjectMessage,
    MapMessage,
    BytesMessage,
    StreamMessage,
    TextMessage,
)

_NO_PREFIXES = ("", "")


def message_from(
    source: MessageSource,
    default_destination: Destination | None = None,
    prefixes: Prefixes = _NO_PREFIXES,
    arrival: int = 0,
) -> Message:
    """The message that came in as these octets.

    ``default_destination`` is that of the consumer, for what the message does not say; ``prefixes`` are those that the
    broker wants before the names of queues and topics; ``arrival``, milliseconds since the epoch, is what a time to
    live without an absolute expiry time counts from. ``MessageFormatError`` if the octets are no message.
    """
    try:
        code = meaning(source.prefix).type_code
        kind = _class_by_body(source) if code is None else _CLASSES[code]
    except ValueError as fault:
        raise MessageFormatError(f"the message cannot be read: {fault}") from fault
    message: Any = kind.__new__(kind)
    message._source = source
    message._owner = None
    message._body = UNREAD
    message._locked_body = message._locked_properties = True
    message._plain = False
    message._default_destination = default_destination
    message._prefixes = prefixes
    if arrival and source.prefix.header.ttl:
        _compute_expiration(message, arrival)
    found: Message = message
    return found


def read_in(
    source: MessageSource,
    default_destination: Destination | None = None,
    prefixes: Prefixes = _NO_PREFIXES,
    arrival: int = 0,
) -> Message:
    """The same, for an application that shall not find out later that the message cannot be read.

    ``source`` has been checked; properties and body are decoded now, and kept. ``MessageFormatError`` if one of them
    cannot be, or the body is not what the message says it is. Only a body of octets is left where it is: nothing can
    be wrong in it.
    """
    message = message_from(source, default_destination, prefixes, arrival)
    if source.has_application_properties:
        message._properties = READERS["_properties"](message)
    message._load()
    return message


def _compute_expiration(message: Message, arrival: int) -> None:
    """3.2.1: "a message expiration time will be computed based on the time of arrival", if the sender gave none."""
    if not message._expiration:
        message._expiration = arrival + message._source.prefix.header.ttl  # type: ignore[union-attr]


def _class_by_body(source: MessageSource) -> type[Message]:
    """For a message that does not say what it is: by the section its body is, and its content type."""
    section = source.body_section()
    if section == AMQP_VALUE:
        value = source.body()[1]
        # Symbols and decimals are strings and bytes in Python, but not in AMQP.
        if value is None or type(value) is str:
            return TextMessage
        return BytesMessage if type(value) is bytes else ObjectMessage
    if section == AMQP_SEQUENCE:
        return ObjectMessage
    found = source.property(CONTENT_TYPE)
    content_type = str(found) if isinstance(found, str) else None
    if content_type == JAVA_OBJECT:
        return ObjectMessage
    charset = charset_of(content_type)
    if charset is not None:
        return TextMessage if section != DATA or _is_text(source.body()[1], charset) else BytesMessage
    if section == DATA or content_type in (None, OCTET_STREAM):
        return BytesMessage
    return Message


def _is_text(octets: bytes, charset: str) -> bool:
    """A sender that says nothing of JMS and errs in the character set still gets through, as octets."""
    try:
        str(octets, charset)
    except ValueError:
        return False
    return True


def body_to_message(body: Any) -> Message:
    """The message that fits a body: text, octets, mapping, list or tuple, or ``None``; else ``MessageFormatError``.

    A message of another implementation gives one of ours with the same body, properties and headers (jms rule 179).
    """
    if isinstance(body, str):
        return TextMessage(body)
    if body is None:
        return Message()
    if isinstance(body, (bytes, bytearray, memoryview)):
        return BytesMessage(bytes(body))
    if is_message(body):
        return body if isinstance(body, Message) else adopt(_of_body(body.body), body)
    if isinstance(body, Mapping):
        return MapMessage(body)
    if isinstance(body, (list, tuple)):
        return StreamMessage(body)
    raise MessageFormatError(
        f"a body of type {type(body).__name__}: str, bytes, dict, list, tuple and None make a message by themselves; "
        "an ObjectMessage takes any other value that AMQP has a type for"
    )


def _of_body(body: Any) -> Message:
    known = (str, bytes, bytearray, memoryview, Mapping, list, tuple, type(None))
    return body_to_message(body) if isinstance(body, known) else ObjectMessage(body)
