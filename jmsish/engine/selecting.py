"""Selectors on messages that are octets: only the sections that a selector names something in are looked into.

What JMS calls a name stands in one of three places. A few names are fields of the properties section, two are in the
header, and all others are application properties: of these the wanted ones are decoded and the rest stepped over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from struct import error as struct_error
from typing import Any

from jmsish.engine.decoding import DecodeError, decode, decode_plain
from jmsish.engine.sections import (
    APPLICATION_PROPERTIES,
    WIDTH,
    bare_offset,
    property_at,
    section_at,
    skip,
    split_header,
)
from jmsish.errors import MessageFormatError
from jmsish.message.fields import (
    CORRELATION_ID,
    CREATION_TIME,
    GROUP_ID,
    GROUP_SEQUENCE,
    MESSAGE_ID,
    REPLY_TO_GROUP_ID,
    SUBJECT,
    USER_ID,
)
from jmsish.message.ids import correlation_id_text, message_id_text
from jmsish.selector import Selector
from jmsish.selector.names import delivery_mode_name

__all__ = ["Predicate", "predicate", "property_scanner"]

Predicate = Callable[[bytes, int], bool]
"""Called with the octets of an annotated message and its delivery count: how often it was delivered before."""

_UINT = Struct(">I").unpack_from
_LONG = Struct(">q").unpack_from
_INT = Struct(">i").unpack_from
_INT_MAX = (1 << 31) - 1

MOST_PROPERTIES = 1 << 18
"""Octets of application properties, forty thousand of the smallest: a message with more is selected by nobody, for to
look through them takes longer than the others should wait."""

_FAULTS = (ValueError, IndexError, struct_error, MessageFormatError)
"""What octets that are no message raise; whoever sent them, they are selected by nobody."""


def predicate(selector: Selector) -> Predicate:
    """What tells whether ``selector`` selects a message: what :meth:`Selector.matches` says of it once received.

    It never raises: a section that is looked into and cannot be read makes it false.
    """
    headers = [(name, _HEADERS[name]) for name in selector.identifiers if name in _HEADERS]
    fields = [(name, *_FIELDS[name]) for name in selector.identifiers if name in _FIELDS]
    names = selector.identifiers - _HEADERS.keys() - _FIELDS.keys() - _NEVER
    scan = _scanner(names)
    select = selector.select

    def by_properties(payload: bytes, delivery_count: int) -> bool:
        try:
            return select(scan(payload).get)
        except _FAULTS:
            return False

    def by_all(payload: bytes, delivery_count: int) -> bool:
        try:
            values = scan(payload) if names else {}
            for name, read in headers:
                values[name] = read(payload, delivery_count)
            if fields:
                bare = bare_offset(payload)
                for name, index, meaning in fields:
                    values[name] = meaning(property_at(payload, bare, index))
            return select(values.get)
        except _FAULTS:
            return False

    return by_all if headers or fields or not names else by_properties


# -- header and properties ---------------------------------------------------------------------------------------------


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, str) else None


def _moment(value: Any) -> int:
    return int(value) if isinstance(value, int) else 0


def _group_sequence(value: Any) -> int | None:
    """AMQP counts in unsigned 32 bits, JMS in signed ones: the same 32 bits."""
    if not isinstance(value, int):
        return None
    return int(value) - (1 << 32) if value > _INT_MAX else int(value)


def _user_id(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None


def _delivery_mode(payload: bytes, delivery_count: int) -> str:
    header = split_header(payload)[0]
    return delivery_mode_name(header is not None and header.durable)


def _priority(payload: bytes, delivery_count: int) -> int:
    header = split_header(payload)[0]
    return 4 if header is None else min(header.priority, 9)


_HEADERS: Mapping[str, Callable[[bytes, int], Any]] = {
    "JMSDeliveryMode": _delivery_mode,
    "JMSPriority": _priority,
    "JMSXDeliveryCount": lambda payload, delivery_count: min(delivery_count + 1, _INT_MAX),
}
"""The names that stand in the header, each with how it is read."""

_FIELDS: Mapping[str, tuple[int, Callable[[Any], Any]]] = {
    "JMSCorrelationID": (CORRELATION_ID, correlation_id_text),
    "JMSMessageID": (MESSAGE_ID, message_id_text),
    "JMSTimestamp": (CREATION_TIME, _moment),
    "JMSType": (SUBJECT, _text),
    "JMSXGroupID": (GROUP_ID, _text),
    "JMSXGroupSeq": (GROUP_SEQUENCE, _group_sequence),
    "JMSXUserID": (USER_ID, _user_id),
    "JMS_AMQP_REPLY_TO_GROUP_ID": (REPLY_TO_GROUP_ID, _text),
}
"""The names that are fields of the properties, each with its position and what it says to JMS."""

_NEVER = frozenset({"JMS_AMQP_TTL", "JMS_AMQP_ACK_TYPE"})
"""Names that say how a message is to be sent, or acknowledged; a message on its way has none of them."""


# -- application properties --------------------------------------------------------------------------------------------


def _properties_at(payload: bytes) -> tuple[int, int, int]:
    """Where the application properties begin and end, and how many keys and values they are; 0 if there are none."""
    pos, size, before = 0, len(payload), 0
    while pos < size:
        # Run for every message that a selector looks at: the usual forms are recognised without a call.
        if payload[pos] == 0 and payload[pos + 1] == 0x53:
            code, pos = payload[pos + 2], pos + 3
        else:
            code, pos = section_at(payload, pos)
        form = payload[pos]
        if code >= APPLICATION_PROPERTIES:
            break
        if code <= before:
            raise DecodeError(f"section {code:#x} after section {before:#x}", pos)
        before = code
        pos = pos + 2 + payload[pos + 1] if form == 0xC0 or form == 0xC1 else skip(payload, pos)
    else:
        if pos > size:
            raise DecodeError("the octets end inside a section", size)
        return pos, pos, 0
    if code != APPLICATION_PROPERTIES:
        return pos, pos, 0
    if form == 0xC1:
        end, count, pos = pos + 2 + payload[pos + 1], payload[pos + 2], pos + 3
    elif form == 0xD1:
        end, count, pos = pos + 5 + _UINT(payload, pos + 1)[0], _UINT(payload, pos + 5)[0], pos + 9
    else:
        raise DecodeError("application properties that are no map", pos)
    if end > size or count & 1:
        raise DecodeError("application properties whose size or count is wrong", pos)
    if end - pos > MOST_PROPERTIES:
        raise DecodeError(f"application properties of {end - pos} octets, too many to select by", pos)
    return pos, end, count


def property_scanner(names: frozenset[str]) -> Callable[[bytes], dict[str, Any]]:
    """What finds the application properties of these names, those that are no plain numbers or texts in their types.

    It raises ``ValueError``, ``IndexError`` or ``struct.error`` for octets that cannot be read.
    """
    return _scanner(names, decode)


# hot: what a selector costs for each property of each message it looks at.
def _scanner(
    names: frozenset[str], decode_value: Callable[[bytes, int], tuple[Any, int]] = decode_plain
) -> Callable[[bytes], dict[str, Any]]:
    """What finds the application properties of these names; it stops behind the last of them."""
    wanted = {name.encode(): name for name in names}.get
    total = len(names)

    # hot: and it is the loop.
    def scan(payload: bytes) -> dict[str, Any]:
        pos, end, count = _properties_at(payload)
        found: dict[str, Any] = {}
        missing = total
        for _ in range(count >> 1):
            if payload[pos] == 0xA1:
                start = pos + 2
                pos = start + payload[pos + 1]
                name = wanted(payload[start:pos])
            else:
                key, pos = decode_plain(payload, pos)
                name = key if isinstance(key, str) and key in names else None
            code = payload[pos]
            if name is None:
                width = WIDTH[code]
                if width <= 16:
                    pos += 1 + width
                else:
                    pos = pos + 2 + payload[pos + 1] if code == 0xA1 else skip(payload, pos)
                continue
            if name in found:
                raise DecodeError(f"the key {name!r} twice in a map", pos)
            if code == 0xA1:
                start = pos + 2
                pos = start + payload[pos + 1]
                found[name] = payload[start:pos].decode()
            elif code == 0x54:
                value = payload[pos + 1]
                found[name], pos = value if value < 128 else value - 256, pos + 2
            elif code == 0x71:
                found[name], pos = _INT(payload, pos + 1)[0], pos + 5
            elif code == 0x81:
                found[name], pos = _LONG(payload, pos + 1)[0], pos + 9
            else:
                found[name], pos = decode_value(payload, pos)
            missing -= 1
            if not missing:
                break
        if pos > end or (missing and pos != end):
            raise DecodeError("the size of a map does not match its items", pos)
        return found

    return scan
