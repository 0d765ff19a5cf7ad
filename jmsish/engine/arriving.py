"""What the properties of a message ask of a broker, in one walk over them: when it expires, which group it is of."""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error

from jmsish.engine.decoding import DecodeError, decode
from jmsish.engine.sections import PROPERTIES, bare_offset, field_at, section_at, skip
from jmsish.message.fields import ABSOLUTE_EXPIRY_TIME, GROUP_ID, GROUP_SEQUENCE

_LIST8, _LIST32 = Struct(">BB").unpack_from, Struct(">II").unpack_from
_NARROW, _WIDE = Struct(">BBB").pack, Struct(">BII").pack
_NULL = 0x40

Asked = tuple[object, object, object]


def asked_of(payload: bytes, bare: int) -> Asked | None:
    """The absolute expiry time, the group id and the group sequence of a bare message that begins at ``bare``.

    None where none of them is set, which is the usual case and costs no more than the way to the first of them.
    """
    try:
        found = field_at(payload, bare, ABSOLUTE_EXPIRY_TIME)
        if found is None:
            return None
        pos, count = found
        if count <= GROUP_ID:
            return None if payload[pos] == _NULL else (decode(payload, pos)[0], None, None)
        return _with_group(payload, pos, count)
    except (IndexError, struct_error):
        raise DecodeError("the octets end inside the properties", len(payload)) from None


def _with_group(payload: bytes, pos: int, count: int) -> Asked | None:
    expiry = decode(payload, pos)[0]
    for _ in range(ABSOLUTE_EXPIRY_TIME, GROUP_ID):
        pos = skip(payload, pos)
    group, behind = decode(payload, pos)
    if group is None:
        return None if expiry is None else (expiry, None, None)
    return expiry, group, decode(payload, behind)[0] if count > GROUP_SEQUENCE else None


def without_expiry(payload: bytes) -> bytes:
    """The message without an absolute expiry time in its properties; all other octets are as they were.

    Where the properties cannot be read they stay, whatever they are.
    """
    try:
        return _without_expiry(payload, bare_offset(payload))
    except (DecodeError, IndexError, struct_error):
        return payload


def _without_expiry(payload: bytes, bare: int) -> bytes:
    if bare >= len(payload):
        return payload
    code, form = section_at(payload, bare)
    if code != PROPERTIES or payload[form] not in (0xC0, 0xD0):
        return payload
    wide = payload[form] == 0xD0
    size, count = _LIST32(payload, form + 1) if wide else _LIST8(payload, form + 1)
    if count <= ABSOLUTE_EXPIRY_TIME:
        return payload
    begin = form + (9 if wide else 3)
    pos = begin
    for _ in range(ABSOLUTE_EXPIRY_TIME):
        pos = skip(payload, pos)
    end = skip(payload, pos)
    if end > form + size + (5 if wide else 2):
        return payload  # fields that are not all inside the list
    head = (_WIDE if wide else _NARROW)(payload[form], size - (end - pos - 1), count)
    return payload[:form] + head + payload[begin:pos] + bytes((_NULL,)) + payload[end:]
