"""Everything before the body of a plain message, as one format that only wants the id and the times.

Nearly all messages of a producer are alike but for id, timestamp and body; the rest is encoded once.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from jmsish.destination import Destination, Prefixes, wire_name
from jmsish.engine.encoding import (
    NULL,
    encode_binary,
    encode_described,
    encode_list,
    encode_map,
    encode_string,
    encode_symbol,
)
from jmsish.engine.sections import MESSAGE_ANNOTATIONS, PROPERTIES, Header, encode_header
from jmsish.message.fields import DESTINATION_KIND, MESSAGE_TYPE, OCTET_STREAM, REPLY_TO_KIND
from jmsish.modes import DeliveryMode

BYTES_MESSAGE = 3

_UINT_MAX = 0xFFFFFFFF
pack_time = Struct(">q").pack


def header_octets(delivery_mode: int, priority: int, ttl: int) -> bytes:
    """The header of a message that is sent; a time to live beyond its 32 bits is in the expiry time alone."""
    return encode_header(
        Header(delivery_mode == DeliveryMode.PERSISTENT, priority, min(ttl, _UINT_MAX) if ttl else None)
    )


def jms_annotations(type_code: int, destination_kind: int, reply_to_kind: int | None = None) -> list[bytes]:
    """Keys and values, in turn, of the annotations that every message of the JMS mapping has."""
    parts = [_MESSAGE_TYPE, bytes((0x51, type_code)), _DESTINATION_KIND, bytes((0x51, destination_kind))]
    if reply_to_kind is not None:
        parts += (_REPLY_TO_KIND, bytes((0x51, reply_to_kind)))
    return parts


def jms_annotations_section(type_code: int, destination_kind: int) -> bytes:
    """The section with these annotations alone."""
    return encode_described(MESSAGE_ANNOTATIONS, encode_map(jms_annotations(type_code, destination_kind)))


_MESSAGE_TYPE = encode_symbol(MESSAGE_TYPE)
_DESTINATION_KIND = encode_symbol(DESTINATION_KIND)
_REPLY_TO_KIND = encode_symbol(REPLY_TO_KIND)


def escaped(octets: bytes) -> bytes:
    """As part of a format."""
    return octets.replace(b"%", b"%%")


class Terms(NamedTuple):
    """On what terms a message is sent: all that a producer chooses, and its connection adds."""

    destination: Destination
    prefixes: Prefixes
    delivery_mode: int
    priority: int
    ttl: int
    user_id: str | None


class Layout:
    """The octets of header, annotations and properties of messages that differ in id and times only."""

    __slots__ = ("_identified", "_stamped", "_ttl", "format")

    def __init__(self, type_code: int, terms: Terms, id_size: int, stamped: bool, id_format: bytes = b"%b") -> None:
        """``id_size`` is the number of octets of the ids, negative for messages that have none.

        ``id_format`` is for an id that is not given as its octets.
        """
        self._identified = id_size >= 0
        self._stamped = stamped
        self._ttl = terms.ttl
        parts = _property_parts(type_code, terms, id_size, stamped, id_format)
        size = sum(part.size for part in parts)
        list_head = encode_list([bytes(part.size) for part in parts])[:-size]
        beginning = (
            header_octets(terms.delivery_mode, terms.priority, terms.ttl)
            + jms_annotations_section(type_code, terms.destination.kind_byte)
            + encode_described(PROPERTIES, list_head)
        )
        self.format = escaped(beginning) + b"".join([part.format for part in parts])

    def fill(self, message_id: bytes, timestamp: int, expiration: int) -> bytes:
        """The octets for one message, to be followed by its body; what the layout has no place for is not looked at."""
        times: tuple[bytes, ...] = ()
        if self._ttl:
            times = (pack_time(expiration), pack_time(timestamp)) if self._stamped else (pack_time(expiration),)
        elif self._stamped:
            times = (pack_time(timestamp),)
        return self.format % ((message_id, *times) if self._identified else times)


class _Part(NamedTuple):
    """A field of the properties: its format, and how many octets it will have."""

    format: bytes
    size: int

    @classmethod
    def fixed(cls, octets: bytes) -> _Part:
        return cls(escaped(octets), len(octets))

    @classmethod
    def time(cls) -> _Part:
        return cls(b"\x83%b", 9)

    @classmethod
    def id_of(cls, size: int, format: bytes) -> _Part:
        head = encode_binary(bytes(size))[: -size or None]
        # Binary and string have the same forms of size; their codes are neighbours.
        return cls(escaped(bytes((head[0] + 1,)) + head[1:]) + format, len(head) + size)


_NOTHING = _Part.fixed(NULL)


def _property_parts(type_code: int, terms: Terms, id_size: int, stamped: bool, id_format: bytes) -> list[_Part]:
    """The fields of the properties section, those at the end that are null left out."""
    parts = [
        _Part.id_of(id_size, id_format) if id_size >= 0 else _NOTHING,
        _NOTHING if terms.user_id is None else _Part.fixed(encode_binary(terms.user_id.encode())),
        _Part.fixed(encode_string(wire_name(terms.destination, terms.prefixes))),
        _NOTHING,
        _NOTHING,
        _NOTHING,
        _Part.fixed(encode_symbol(OCTET_STREAM)) if type_code == BYTES_MESSAGE else _NOTHING,
        _NOTHING,
        _Part.time() if terms.ttl else _NOTHING,
        _Part.time() if stamped else _NOTHING,
    ]
    while parts[-1] == _NOTHING:
        parts.pop()
    return parts
