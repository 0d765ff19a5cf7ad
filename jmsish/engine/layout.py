"""Everything before the body of a plain message, as one format that only wants the id and the times.

Nearly all messages of a producer are alike but for id, timestamp and body; the rest is encoded once.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from jmsish.destination import Destination, wire_name
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
_pack_time = Struct(">q").pack


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


class Layout:
    """The octets of header, annotations and properties of messages that differ in id and times only."""

    __slots__ = ("_format", "_identified", "_stamped", "_ttl")

    def __init__(
        self,
        type_code: int,
        destination: Destination,
        prefixes: tuple[str, str],
        delivery_mode: int,
        priority: int,
        ttl: int,
        id_size: int,
        stamped: bool,
        user_id: str | None,
    ) -> None:
        """``id_size`` is the number of octets of the ids, negative for messages without; ``ttl`` milliseconds or 0."""
        self._identified = id_size >= 0
        self._stamped = stamped
        self._ttl = ttl
        fixed = [
            NULL if user_id is None else encode_binary(user_id.encode()),
            encode_string(wire_name(destination, prefixes)),
            NULL,
            NULL,
            NULL,
            encode_symbol(OCTET_STREAM) if type_code == BYTES_MESSAGE else NULL,
            NULL,
        ]
        parts = [
            _Part.id_of(id_size) if self._identified else _Part.fixed(NULL),
            *map(_Part.fixed, fixed),
            _Part.time() if ttl else _Part.fixed(NULL),
            _Part.time() if stamped else _Part.fixed(NULL),
        ]
        while parts[-1] == _Part.fixed(NULL):
            parts.pop()
        size = sum(part.size for part in parts)
        list_head = encode_list([bytes(part.size) for part in parts])[:-size]
        self._format = b"".join(
            [
                _escaped(header_octets(delivery_mode, priority, ttl)),
                _escaped(jms_annotations_section(type_code, destination.kind_byte)),
                _escaped(encode_described(PROPERTIES, list_head)),
                *[part.format for part in parts],
            ]
        )

    def fill(self, message_id: bytes, timestamp: int, expiration: int) -> bytes:
        """The octets for one message, to be followed by its body; what the layout has no place for is not looked at."""
        times: tuple[bytes, ...] = ()
        if self._ttl:
            times = (_pack_time(expiration), _pack_time(timestamp)) if self._stamped else (_pack_time(expiration),)
        elif self._stamped:
            times = (_pack_time(timestamp),)
        return self._format % ((message_id, *times) if self._identified else times)


class _Part(NamedTuple):
    """A field of the properties: its format, and how many octets it will have."""

    format: bytes
    size: int

    @classmethod
    def fixed(cls, octets: bytes) -> _Part:
        return cls(_escaped(octets), len(octets))

    @classmethod
    def time(cls) -> _Part:
        return cls(b"\x83%b", 9)

    @classmethod
    def id_of(cls, size: int) -> _Part:
        head = encode_binary(bytes(size))[: -size or None]
        # Binary and string have the same forms of size; their codes are neighbours.
        return cls(_escaped(bytes((head[0] + 1,)) + head[1:]) + b"%b", len(head) + size)


def _escaped(octets: bytes) -> bytes:
    return octets.replace(b"%", b"%%")
