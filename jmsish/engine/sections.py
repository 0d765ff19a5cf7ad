"""The sections of a message: where they are, and the header, the one section that a broker writes anew.

Part 3, 3.2: "The bare message is immutable within the AMQP network. That is none of the sections can be changed by
any node acting as an AMQP intermediary." So nothing here decodes and encodes a bare message: its octets are passed on.

The functions a broker calls for each message look at the few octets they need. They recognise the shortest form of a
descriptor, which everybody writes, by its octets; any other form takes the longer way through :func:`section_at`.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from sys import maxsize
from typing import Any, NamedTuple

from jmsish.engine.decoding import DecodeError, decode
from jmsish.engine.encoding import (
    FALSE,
    NULL,
    TRUE,
    encode,
    encode_described,
    encode_list,
    encode_map,
    encode_string,
    encode_symbol,
    encode_ubyte,
    encode_uint,
)
from jmsish.message.fields import (
    ABSOLUTE_EXPIRY_TIME,
    AMQP_SEQUENCE,
    AMQP_VALUE,
    CORRELATION_ID,
    DATA,
    MESSAGE_ID,
    PROPERTY_COUNT,
)
from jmsish.types import UByte, UInt

HEADER = 0x70
DELIVERY_ANNOTATIONS = 0x71
MESSAGE_ANNOTATIONS = 0x72
PROPERTIES = 0x73
APPLICATION_PROPERTIES = 0x74
FOOTER = 0x78

_SYMBOLIC = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": AMQP_SEQUENCE,
    "amqp:amqp-value:*": AMQP_VALUE,
    "amqp:footer:map": FOOTER,
}

_LISTS, _MAPS, _BINARIES = frozenset({0x45, 0xC0, 0xD0}), frozenset({0xC1, 0xD1}), frozenset({0xA0, 0xB0})
FORMS: dict[int, Container[int]] = {
    HEADER: _LISTS,
    DELIVERY_ANNOTATIONS: _MAPS,
    MESSAGE_ANNOTATIONS: _MAPS,
    PROPERTIES: _LISTS,
    APPLICATION_PROPERTIES: _MAPS,
    DATA: _BINARIES,
    AMQP_SEQUENCE: _LISTS,
    AMQP_VALUE: range(256),
    FOOTER: _MAPS,
}
"""By section, the format codes of its value."""

FOLLOWERS: dict[int, frozenset[int]] = {
    last: frozenset(range(last + 1, FOOTER + 1)) for last in (*range(HEADER, APPLICATION_PROPERTIES + 1), FOOTER)
}
"""By section, those that may follow it (Part 3, 3.2): in their order, and each once; 0 is the beginning."""
# Data, sequences and a value exclude each other, though their numbers follow one another; of the first two are many.
FOLLOWERS |= {DATA: frozenset((DATA, FOOTER)), AMQP_SEQUENCE: frozenset((AMQP_SEQUENCE, FOOTER))}
FOLLOWERS |= {AMQP_VALUE: frozenset((FOOTER,)), 0: frozenset(range(HEADER, FOOTER + 1))}

_UINT = Struct(">I").unpack_from

# By format code, how many octets follow it; or that a size of one octet, or of four, says so.
_SIZE8, _SIZE32, _DESCRIBED, _UNKNOWN = 0xFC, 0xFD, 0xFE, 0xFF
_WIDTHS = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
_WIDTHS |= {0xA: _SIZE8, 0xB: _SIZE32, 0xC: _SIZE8, 0xD: _SIZE32, 0xE: _SIZE8, 0xF: _SIZE32}
WIDTH = bytes(_WIDTHS.get(code >> 4, _UNKNOWN if code else _DESCRIBED) for code in range(256))


def skip(buf: bytes, pos: int) -> int:
    """The offset behind the value at ``pos``, which is not decoded."""
    width = WIDTH[buf[pos]]
    if width <= 16:
        return pos + 1 + width
    if width == _SIZE8:
        return pos + 2 + buf[pos + 1]
    if width == _SIZE32:
        size: int = _UINT(buf, pos + 1)[0]
        return pos + 5 + size
    if width == _DESCRIBED:
        return _skip_described(buf, pos)
    raise DecodeError(f"{buf[pos]:#04x} is no format code", pos)


def _skip_described(buf: bytes, pos: int) -> int:
    """A loop, not a recursion: descriptors may themselves be described, as deep as the octets go."""
    awaited = 1
    while awaited:
        if buf[pos] == 0:
            pos += 1
            awaited += 1
        else:
            pos = skip(buf, pos)
            awaited -= 1
    return pos


def section_at(buf: bytes, pos: int) -> tuple[int, int]:
    """Which section begins at ``pos``, and the offset of its value."""
    try:
        if buf[pos] != 0:
            raise DecodeError(f"a section of a message begins with a descriptor, not with {buf[pos]:#04x}", pos)
        if buf[pos + 1] == 0x53:
            code, value = buf[pos + 2], pos + 3
        else:
            descriptor, value = decode(buf, pos + 1)
            code = _SYMBOLIC.get(descriptor, 0) if isinstance(descriptor, str) else descriptor
    except IndexError:
        raise DecodeError("the octets end inside a descriptor", len(buf)) from None
    if not isinstance(code, int) or not HEADER <= code <= FOOTER:
        raise DecodeError("a descriptor that is of no section of a message", pos)
    return code, value


def most_sections(size: int) -> int:
    """How many sections a message of so many octets may have where they are looked through for others."""
    return 1000 + (size >> 10)


def check_sections(payload: bytes, pos: int = 0, last: int = 0, most: int = maxsize) -> None:
    """Raise ``DecodeError`` if the octets are not sections in the order of Part 3, 3.2, with a body of one kind.

    What is inside the sections is not looked at. From ``pos`` on, where section ``last`` ends; ``most`` is how many
    there may be.
    """
    size = len(payload)
    count = 0
    try:
        while pos < size:
            code, value = section_at(payload, pos)
            if payload[value] not in FORMS[code]:
                raise DecodeError(f"section {code:#x} of format code {payload[value]:#04x}", value)
            if code not in FOLLOWERS[last]:
                raise DecodeError(f"section {code:#x} after section {last:#x}", pos)
            count += 1
            if count > most:
                raise DecodeError(f"{count} sections in {size} octets", pos)
            pos, last = skip(payload, value), code
    except (IndexError, struct_error):
        pos = size + 1
    if pos != size:
        raise DecodeError("the octets end inside a section", size)


class Header(NamedTuple):
    """The header section, with the defaults of the standard for what it leaves out."""

    durable: bool = False
    priority: int = 4
    ttl: int | None = None
    first_acquirer: bool = False
    delivery_count: int = 0


NO_HEADER = Header()

# Headers are few and come again and again, so they are kept by their octets; emptied when it has grown too large.
_HEADERS: dict[bytes, Header] = {}
_HEADERS_LIMIT = 1024
_HEADER_TYPES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (bool, bool),
    (UByte, int),
    (UInt, int),
    (bool, bool),
    (UInt, int),
)


def _decode_header(octets: bytes) -> Header:
    fields, end = decode(octets, section_at(octets, 0)[1])
    if not isinstance(fields, list) or len(fields) > 5 or end != len(octets):
        raise DecodeError("a header that is no list of five fields", 0)
    values: list[Any] = list(NO_HEADER)
    for index, (value, (kind, plain)) in enumerate(zip(fields, _HEADER_TYPES, strict=False)):
        if value is None:
            continue
        if type(value) is not kind:
            raise DecodeError(f"a header whose {Header._fields[index]} is {value!r}", 0)
        values[index] = plain(value)
    header = Header(*values)
    if len(_HEADERS) >= _HEADERS_LIMIT:
        _HEADERS.clear()
    _HEADERS[octets] = header
    return header


def split_header(payload: bytes) -> tuple[Header | None, int]:
    """The header, or ``None`` if there is none, and the offset of what goes on unchanged.

    That is what follows the header and the delivery annotations: these "convey information from the sending peer to
    the receiving peer" (Part 3, 3.2.2) and so end here.
    """
    try:
        if payload[:3] == b"\x00Sp":
            code = payload[3]
            end = 5 + payload[4] if code == 0xC0 else 4 if code == 0x45 else skip(payload, 3)
            octets = payload[:end]
            header: Header | None = _HEADERS.get(octets) or _decode_header(octets)
        else:
            header, end = _split_long_header(payload)
        if payload[end : end + 2] == b"\x00S" and payload[end + 2] != DELIVERY_ANNOTATIONS:
            return header, end
        return header, _behind_delivery_annotations(payload, end)
    except (IndexError, struct_error):
        raise DecodeError("the octets end inside a section", len(payload)) from None


def _split_long_header(payload: bytes) -> tuple[Header | None, int]:
    if not payload:
        return None, 0
    code, value = section_at(payload, 0)
    if code != HEADER:
        return None, 0
    end = skip(payload, value)
    return _decode_header(payload[:end]), end


def _behind_delivery_annotations(payload: bytes, pos: int) -> int:
    if pos == len(payload):
        return pos
    code, value = section_at(payload, pos)
    if code == DELIVERY_ANNOTATIONS:
        pos = skip(payload, value)
    if pos > len(payload):
        raise IndexError
    return pos


def encode_header(header: Header) -> bytes:
    """The octets of a header section; fields at the end that hold their defaults are left out."""
    durable, priority, ttl, first_acquirer, delivery_count = header
    fields = [
        TRUE if durable else FALSE,
        NULL if priority == 4 else encode_ubyte(priority),
        NULL if ttl is None else encode_uint(ttl),
        TRUE if first_acquirer else NULL,
        encode_uint(delivery_count) if delivery_count else NULL,
    ]
    while len(fields) > 1 and fields[-1] == NULL:
        fields.pop()
    return encode_described(HEADER, encode_list(fields))


def with_header(payload: bytes, header: Header | None, rest_offset: int, delivery_count: int = 0) -> bytes:
    """The message with a header written anew in front of its octets from ``rest_offset`` on.

    ``header`` and ``rest_offset`` are what :func:`split_header` gave. A message that came without a header leaves
    without one the first time: there is nothing to say in it until it has a delivery count.
    """
    if header is None:
        if not delivery_count:
            return payload[rest_offset:] if rest_offset else payload
        header = NO_HEADER
    return _header_with_count(header, delivery_count) + payload[rest_offset:]


@lru_cache(maxsize=1024)
def _header_with_count(header: Header, delivery_count: int) -> bytes:
    return encode_header(header._replace(delivery_count=delivery_count))


def with_annotations(payload: bytes, rest_offset: int, annotations: dict[str, Any]) -> bytes:
    """The octets from ``rest_offset`` on, with these message annotations added or replaced.

    The bare message behind them stays as it is.
    """
    kept, bare = message_annotations_at(payload, rest_offset)
    merged = {encode_annotation_name(key): encode(value) for key, value in {**kept, **annotations}.items()}
    parts = [part for pair in merged.items() for part in pair]
    return encode_described(MESSAGE_ANNOTATIONS, encode_map(parts)) + payload[bare:]


def encode_annotation_name(name: str) -> bytes:
    """A key of annotations: a symbol. What cannot be one came as a string, against the standard, and stays one."""
    return encode_symbol(name) if name.isascii() else encode_string(name)


def message_annotations_at(payload: bytes, pos: int) -> tuple[dict[str, Any], int]:
    """The message annotations that begin at ``pos``, if any do, and the offset of the bare message.

    Part 3, 3.2.10: keys are symbols or ulongs, "all ulong keys, and all symbolic keys except those beginning with
    'x-' are reserved"; a reserved number is not understood by anybody and is left out.
    """
    if pos >= len(payload):
        return {}, pos
    code, value = section_at(payload, pos)
    if code != MESSAGE_ANNOTATIONS:
        return {}, pos
    annotations, end = decode(payload, value)
    if not isinstance(annotations, dict):
        raise DecodeError("message annotations that are no map", value)
    return {str(key): item for key, item in annotations.items() if isinstance(key, str)}, end


def offset_behind(payload: bytes, last: int, pos: int = 0) -> int:
    """Where the first section after ``last`` begins, from ``pos`` on; the end where there is none."""
    size, before = len(payload), 0
    try:
        while pos < size:
            # Run for every message that comes in: the usual forms are recognised without a call.
            if payload[pos] == 0 and payload[pos + 1] == 0x53:
                code, value = payload[pos + 2], pos + 3
            else:
                code, value = section_at(payload, pos)
            if code > last:
                break
            if code <= before:  # else a message could be millions of them
                raise DecodeError(f"section {code:#x} after section {before:#x}", pos)
            before = code
            form = payload[value]
            pos = value + 2 + payload[value + 1] if form == 0xC0 or form == 0xC1 else skip(payload, value)
    except (IndexError, struct_error):
        pos = size + 1
    if pos > size:
        raise DecodeError("the octets end inside a section", size)
    return pos


def bare_offset(payload: bytes) -> int:
    """Where the bare message begins: behind header and annotations."""
    return offset_behind(payload, MESSAGE_ANNOTATIONS)


def field_at(payload: bytes, bare: int, index: int) -> tuple[int, int] | None:  # hot: run for most messages
    """Where a field of the properties section of a bare message at ``bare`` begins, and how many fields there are.

    None if there are not so many. ``DecodeError``, ``IndexError`` or ``struct.error`` for octets that end too soon.
    """
    if payload[bare : bare + 3] == b"\x00Ss":
        pos = bare + 3
    elif bare >= len(payload):
        return None
    else:
        code, pos = section_at(payload, bare)
        if code != PROPERTIES:
            return None
    code = payload[pos]
    if code == 0xC0:
        count, pos = payload[pos + 2], pos + 3
    elif code == 0xD0:
        count, pos = _UINT(payload, pos + 5)[0], pos + 9
    elif code == 0x45:
        return None
    else:
        raise DecodeError("properties that are no list", pos)
    if index >= count:
        return None
    while index:
        width = WIDTH[payload[pos]]
        if width <= 16:
            pos += 1 + width
        elif width == _SIZE8:
            pos += 2 + payload[pos + 1]
        else:
            pos = skip(payload, pos)
        index -= 1
    return pos, count


def property_at(payload: bytes, bare: int, index: int) -> Any:
    """One field of the properties section of a bare message that begins at ``bare``; ``None`` if absent."""
    try:
        found = field_at(payload, bare, index)
        if found is None or payload[found[0]] == 0x40:
            return None
        return decode(payload, found[0])[0]
    except (IndexError, struct_error):
        raise DecodeError("the octets end inside the properties", len(payload)) from None


def check_order(payload: bytes, bare: int) -> None:
    """``DecodeError`` where what was read of a bare message could be another to others: a section comes twice, or late.

    Libraries differ in which of two sections they take.
    """
    pos, last = bare, MESSAGE_ANNOTATIONS
    try:
        if payload[pos : pos + 3] == b"\x00Ss" and payload[pos + 3] in _LISTS:
            pos, last = skip(payload, pos + 3), PROPERTIES
        if payload[pos : pos + 4] == b"\x00Sw\xa1" and pos + 5 + payload[pos + 4] == len(payload):
            return  # a short text, which most bodies are, and nothing behind it
    except (IndexError, struct_error):
        pass  # it ends too soon, and is told so
    check_sections(payload, pos, last, most_sections(len(payload)))


# Fields that are an id: of these types, by format code (Part 3, 3.2.4: "message-id-ulong" and its three kin).
_IDS = frozenset({0x44, 0x53, 0x80, 0x98, 0xA0, 0xB0, 0xA1, 0xB1})


def check_properties(payload: bytes, bare: int) -> tuple[int | None, int]:  # hot: run for each message that is received
    """Whether the properties of a bare message that begins at ``bare`` are what the standard says, in one walk.

    Their expiry time, ``None`` if there is none, and the offset of what follows them. ``DecodeError`` for sizes that do
    not add up, text that is none and ids of another type; other fields of a wrong type count as absent when read.
    """
    size = len(payload)
    try:
        if payload[bare : bare + 3] == b"\x00Ss":
            pos = bare + 3
        elif bare >= size:
            return None, bare
        else:
            code, pos = section_at(payload, bare)
            if code != PROPERTIES:
                return None, bare
        code = payload[pos]
        if code == 0xC0:
            end, count, pos = pos + 2 + payload[pos + 1], payload[pos + 2], pos + 3
        elif code == 0xD0:
            end, count, pos = pos + 5 + _UINT(payload, pos + 1)[0], _UINT(payload, pos + 5)[0], pos + 9
        elif code == 0x45:
            return None, pos + 1
        else:
            raise DecodeError("properties that are no list", pos)
        if count > PROPERTY_COUNT or end > size:
            raise DecodeError("properties that are no list of thirteen fields", pos)
        expiry = None
        for index in range(count):
            code = payload[pos]
            if code == 0x40:
                pos += 1
            elif code == 0xA1:
                start = pos + 2
                pos = start + payload[pos + 1]
                str(payload[start:pos], "utf-8")
            elif code == 0x83 and index != ABSOLUTE_EXPIRY_TIME:
                pos += 9
            else:
                if index in (MESSAGE_ID, CORRELATION_ID) and code not in _IDS:
                    raise DecodeError(f"an id with the format code {code:#04x}: a string, uuid, ulong or binary", pos)
                value, pos = decode(payload, pos)
                if index == ABSOLUTE_EXPIRY_TIME and isinstance(value, int):
                    expiry = int(value)
        if pos != end:
            raise DecodeError("the size of the properties does not match their fields", pos)
        return expiry, end
    except (IndexError, struct_error):
        raise DecodeError("the octets end inside the properties", size) from None
    except UnicodeDecodeError:
        raise DecodeError("text in the properties that is not utf-8", bare) from None


def peek_properties(payload: bytes, *indices: int, bare: int | None = None) -> tuple[Any, ...]:
    """These fields of the properties section (``TO``, ``SUBJECT``, ``ABSOLUTE_EXPIRY_TIME`` …), and only these."""
    if bare is None:
        bare = bare_offset(payload)
    return tuple([property_at(payload, bare, index) for index in indices])


def delivery_count_of(payload: bytes) -> int:
    """How often the message was delivered before, by its header."""
    header = split_header(payload)[0]
    return 0 if header is None else header[4]


def is_expired(payload: bytes, now: int) -> bool:
    """Whether the absolute expiry time of a message has passed at ``now``, milliseconds since the epoch."""
    expiry = property_at(payload, bare_offset(payload), ABSOLUTE_EXPIRY_TIME)
    return isinstance(expiry, int) and 0 < expiry <= now
