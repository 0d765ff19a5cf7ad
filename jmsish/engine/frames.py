"""Frames: their header, and the fields of the three performatives that come by the thousand.

Part 2, 2.3.1: size (4 octets, itself included), data offset in words of 4 (1), type (1), channel (2), then an extended
header that is passed over, then the body: one described list and, for a transfer, the payload.

Transfers, flows and dispositions are read by :func:`read_fields`, which knows the encodings that peers choose for
their fields and leaves everything else to the general decoder. All other performatives are decoded whole, in
:mod:`~jmsish.engine.performatives`.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from .conditions import FRAMING_ERROR, Fault
from .states import decode_state
from .values import DecodeError, decode

__all__ = [
    "AMQP_FRAME",
    "AMQP_HEADER",
    "EMPTY_FRAME",
    "HEADER",
    "MIN_MAX_FRAME_SIZE",
    "SASL_FRAME",
    "SASL_HEADER",
    "check_frame",
    "frame",
    "name_foreign_protocol",
    "read_descriptor",
    "read_fields",
]

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"

AMQP_FRAME = 0
SASL_FRAME = 1

MIN_MAX_FRAME_SIZE = 512
"""What every peer can take, and the limit until it says otherwise in its open (Part 2, 2.3.1)."""

HEADER = Struct(">IBBH")
_pack_header = HEADER.pack
_uint = Struct(">I").unpack_from
_two_uints = Struct(">II").unpack_from

EMPTY_FRAME = _pack_header(8, 2, AMQP_FRAME, 0)
"""A frame without a body: it says only that we live."""


def frame(channel: int, body: bytes, kind: int = AMQP_FRAME) -> bytes:
    """The octets of a frame."""
    return _pack_header(len(body) + 8, 2, kind, channel) + body


# -- protocols that are not AMQP 1.0 -----------------------------------------------------------------------------------

_OTHER_HEADERS = {
    b"AMQP\x00\x00\x09\x01": "AMQP 0-9-1",
    b"AMQP\x01\x01\x00\x09": "AMQP 0-9",
    b"AMQP\x01\x01\x00\x0a": "AMQP 0-10",
    b"AMQP\x01\x01\x08\x00": "AMQP 0-8",
    b"AMQP\x02\x01\x00\x00": "AMQP 1.0 with its own TLS layer",
}

_HTTP_WORDS = (b"HTTP", b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC", b"PRI ")


def name_foreign_protocol(octets: bytes) -> str:
    """What the peer speaks, by the first octets it sent, where they are not an AMQP 1.0 header."""
    if octets[:4] == b"AMQP":
        known = _OTHER_HEADERS.get(octets[:8])
        if known is not None:
            return known
        numbers = ".".join(str(octet) for octet in octets[5:8])
        return f"AMQP protocol id {octets[4]}, version {numbers}" if len(octets) >= 8 else "a cut off AMQP header"
    if octets[:4].startswith(_HTTP_WORDS):
        return "HTTP"
    # A TLS record: type (change cipher spec, alert, handshake, data), then the major version 3.
    if octets[:1] and 0x14 <= octets[0] <= 0x17 and octets[1:2] in (b"\x03", b""):
        return "TLS"
    return f"octets that are no AMQP header ({octets[:8]!r})"


# -- bodies ------------------------------------------------------------------------------------------------------------


def read_descriptor(buf: bytes, pos: int) -> tuple[Any, int]:
    """The descriptor of the described value at ``pos``, and where its value begins."""
    if buf[pos] != 0:
        raise DecodeError("a frame body that is no described value", pos)
    if buf[pos + 1] == 0x53:
        return buf[pos + 2], pos + 3
    return decode(buf, pos + 1)


# hot: one loop, for a call for each field would cost more than the fields themselves.
def read_fields(buf: bytes, pos: int, end: int) -> tuple[list[Any], int]:
    """The fields of the list at ``pos``, which ends at ``end`` at the latest, and the offset behind it.

    Numbers, booleans and binaries come as plain values, described values as delivery states, all else as
    :func:`~jmsish.engine.values.decode` gives it.
    """
    code = buf[pos]
    if code == 0xC0:
        stop, count = pos + 2 + buf[pos + 1], buf[pos + 2]
        pos += 3
    elif code == 0xD0:
        size, count = _two_uints(buf, pos + 1)
        stop = pos + 5 + size
        pos += 9
    elif code == 0x45:
        return [], pos + 1
    else:
        raise DecodeError(f"a performative with {code:#04x} where its list should be", pos)
    if stop > end:
        raise DecodeError("a performative longer than its frame", pos)
    if count > stop - pos:
        raise DecodeError(f"a list of {count} fields in {stop - pos} octets", pos)
    fields: list[Any] = []
    append = fields.append
    for _ in range(count):
        code = buf[pos]
        if code == 0x70:
            append(_uint(buf, pos + 1)[0])
            pos += 5
        elif code == 0x52 or code == 0x50:
            append(buf[pos + 1])
            pos += 2
        elif code == 0x43:
            append(0)
            pos += 1
        elif code == 0x40:
            append(None)
            pos += 1
        elif code == 0x42:
            append(False)
            pos += 1
        elif code == 0x41:
            append(True)
            pos += 1
        elif code == 0xA0:
            start = pos + 2
            pos = start + buf[pos + 1]
            append(buf[start:pos])
        elif code == 0x00:
            state, pos = decode_state(buf, pos)
            append(state)
        else:
            value, pos = decode(buf, pos)
            if type(value) is int:
                raise DecodeError("a signed number in a performative that has none", pos)
            append(value)
    if pos != stop:
        raise DecodeError("the size of a performative does not match its fields", pos)
    return fields, pos


def check_frame(size: int, offset: int, kind: int, limit: int, opened: bool) -> None:
    """Refuse the head of a frame that is too large, that does not add up, or that is of another type than AMQP's."""
    if size > limit:
        when = "" if opened else " before open"
        raise Fault(FRAMING_ERROR, f"a frame of {size} octets{when}, where {limit} are the most")
    if size < 8 or offset < 2 or offset * 4 > size:
        raise Fault(FRAMING_ERROR, f"a frame of {size} octets with a data offset of {offset} words")
    if kind != AMQP_FRAME:
        raise Fault(FRAMING_ERROR, f"a frame of type {kind}, where type 0 is AMQP's")
