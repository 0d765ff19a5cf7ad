"""Messages to octets: a message of the application's, with the headers that a send gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jmsish.destination import Destination, Prefixes, wire_name
from jmsish.engine.encoding import (
    NULL,
    encode,
    encode_binary,
    encode_described,
    encode_list,
    encode_map,
    encode_string,
    encode_symbol,
    encode_timestamp,
    encode_uint,
)
from jmsish.engine.layout import Layout, Terms, header_octets, jms_annotations
from jmsish.engine.sections import (
    APPLICATION_PROPERTIES,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    Header,
    encode_annotation_name,
    encode_header,
)
from jmsish.message import BytesMessage, Message
from jmsish.message.fields import (
    AMQP_SEQUENCE,
    AMQP_VALUE,
    CONTENT_ENCODING,
    CONTENT_TYPE,
    DATA,
    DELIVERY_TIME,
    JMS_ANNOTATIONS,
    OCTET_STREAM,
)
from jmsish.message.ids import id_from_text
from jmsish.modes import DeliveryMode
from jmsish.types import Long, Symbol

_UINT_MAX = 0xFFFFFFFF
_NO_PREFIXES = ("", "")
_MODES = {int(mode): mode for mode in DeliveryMode}

_LAYOUTS: dict[tuple[Any, ...], Layout] = {}
_LAYOUTS_LIMIT = 512


def encode_for_send(
    message: Message,
    *,
    message_id: str | None,
    timestamp: int,
    now: int,
    destination: Destination,
    delivery_mode: int,
    priority: int,
    ttl: int,
    delivery_time: int = 0,
    prefixes: Prefixes = _NO_PREFIXES,
    jmsx_user_id: str | None = None,
    delay_annotation: str | None = None,
) -> bytes:
    """The octets of a message that is sent now; sets the headers that JMS has the provider set.

    Times are milliseconds since the epoch, ``ttl`` milliseconds; 0 is none. ``timestamp`` is 0 and ``message_id``
    ``None`` where the producer disabled them; ``delay_annotation`` is what the broker wants in place of M17. A message
    that was received and not changed keeps the octets of its body.
    ``ValueError`` for a value that has no AMQP form, with the message as it was.
    """
    expiration = now + ttl if ttl else 0
    if message._plain and not delivery_time:
        payload = plain_octets(
            message.type_code, message_id, timestamp, expiration, destination, prefixes, delivery_mode, priority, ttl,
            jmsx_user_id,
        ) + encode_body(*message._outgoing_body())  # fmt: skip
    else:
        payload = b"".join(
            (
                header_octets(delivery_mode, priority, ttl if message._ttl is None else message._ttl),
                _annotations(message, destination, delivery_time, delay_annotation),
                _properties(message, message_id, timestamp, expiration, destination, prefixes, jmsx_user_id),
                _application_properties(message), _body(message),
            )
        )  # fmt: skip
        message._user_id = jmsx_user_id
    message._message_id = message_id
    message._timestamp = timestamp
    message._destination = destination
    message._expiration = expiration
    message._priority = priority
    message._delivery_mode = _MODES[delivery_mode]
    message._delivery_time = delivery_time or now
    return payload


def plain_octets(
    type_code: int,
    message_id: str | None,
    timestamp: int,
    expiration: int,
    destination: Destination,
    prefixes: Prefixes,
    delivery_mode: int,
    priority: int,
    ttl: int,
    user_id: str | None,
) -> bytes:
    """What stands before the body of a message that has nothing but what every message has."""
    id_octets = b"" if message_id is None else message_id.encode()
    id_size = -1 if message_id is None else len(id_octets)
    key = (
        type_code, id_size, not timestamp, destination.name, destination.kind_byte, prefixes, delivery_mode, priority,
        ttl, user_id,
    )  # fmt: skip
    layout = _LAYOUTS.get(key)
    if layout is None:
        if len(_LAYOUTS) >= _LAYOUTS_LIMIT:
            _LAYOUTS.clear()
        terms = Terms(destination, prefixes, delivery_mode, priority, ttl, user_id)
        layout = _LAYOUTS[key] = Layout(type_code, terms, id_size, bool(timestamp))
    return layout.fill(id_octets, timestamp, expiration)


def encode_body(section: int, value: Any) -> bytes:
    """The section of a body; nothing for section 0."""
    if section == AMQP_VALUE:
        return b"\x00Sw" + encode(value)
    if section == DATA:
        return b"\x00Su" + encode_binary(value)
    if section == AMQP_SEQUENCE:
        return b"\x00Sv" + encode(value)
    return b""


def _body(message: Message) -> bytes:
    source = message._source
    if source is not None and message._locked_body:
        return source.body_octets()
    return encode_body(*message._outgoing_body())


def _annotations(message: Message, destination: Destination, delivery_time: int, delay_annotation: str | None) -> bytes:
    """The annotations of the mapping, and those of a received message that are not of the mapping."""
    reply_to = message._reply_to
    parts = jms_annotations(message.type_code, destination.kind_byte, None if reply_to is None else reply_to.kind_byte)
    if delivery_time:
        if delay_annotation is None:
            parts += (encode_symbol(DELIVERY_TIME), encode(Long(delivery_time)))
        else:
            parts += (encode_symbol(delay_annotation), encode_timestamp(delivery_time))
    if message._source is not None:
        for key, value in message._source.prefix.annotations.items():
            if key not in JMS_ANNOTATIONS:
                parts += (encode_annotation_name(key), encode(value))
    return encode_described(MESSAGE_ANNOTATIONS, encode_map(parts))


def _text_or_null(value: str | None) -> bytes:
    return NULL if value is None else encode_string(value)


def _properties(
    message: Message,
    message_id: str | None,
    timestamp: int,
    expiration: int,
    destination: Destination,
    prefixes: Prefixes,
    user_id: str | None,
) -> bytes:
    """The properties section. The user id is what the connection says, never what the application does."""
    reply_to, sequence = message._reply_to, message._group_sequence
    content_type, content_encoding = _content(message)
    fields = [
        NULL if message_id is None else encode(id_from_text(message_id)),
        NULL if user_id is None else encode_binary(user_id.encode()),
        encode_string(wire_name(destination, prefixes)),
        _text_or_null(message._type),
        NULL if reply_to is None else encode_string(wire_name(reply_to, prefixes)),
        encode(message._correlation_id),
        content_type,
        content_encoding,
        encode_timestamp(expiration) if expiration else NULL,
        encode_timestamp(timestamp) if timestamp else NULL,
        _text_or_null(message._group_id),
        NULL if sequence is None else encode_uint(sequence & _UINT_MAX),
        _text_or_null(message._reply_to_group_id),
    ]
    while fields[-1] == NULL:
        fields.pop()
    return encode_described(PROPERTIES, encode_list(fields))


def _content(message: Message) -> tuple[bytes, bytes]:
    """Content type and encoding: as they came with a body that goes on as it came, else by the type of message."""
    source = message._source
    if source is not None and message._locked_body:
        return encode(source.property(CONTENT_TYPE)), encode(source.property(CONTENT_ENCODING))
    content_type = OCTET_STREAM if isinstance(message, BytesMessage) else message._content_type
    return NULL if content_type is None else encode_symbol(content_type), NULL


def _application_properties(message: Message) -> bytes:
    source = message._source
    if source is not None and message._locked_properties:
        return source.application_property_octets()
    return _application_property_section(message._properties)


def _application_property_section(properties: Mapping[str, Any]) -> bytes:
    if not properties:
        return b""
    parts: list[bytes] = []
    for name, value in properties.items():
        parts += (encode_string(name), encode(value))
    return encode_described(APPLICATION_PROPERTIES, encode_map(parts))


def encode_message(
    *,
    header: Header | None = None,
    annotations: Mapping[str, Any] | None = None,
    properties: Sequence[Any] = (),
    application_properties: Mapping[str, Any] | None = None,
    body: tuple[int, Any] = (0, None),
) -> bytes:
    """The octets of any message, section by section; ``properties`` by position, ``body`` as section and value."""
    parts = []
    if header is not None:
        parts.append(encode_header(header))
    if annotations:
        by_symbol = {Symbol(key): value for key, value in annotations.items()}
        parts.append(encode_described(MESSAGE_ANNOTATIONS, encode(by_symbol)))
    if properties:
        parts.append(encode_described(PROPERTIES, encode(list(properties))))
    parts.append(_application_property_section(application_properties or {}))
    parts.append(encode_body(*body))
    return b"".join(parts)
