"""What messages of one link have in common, octet for octet, so that what was found out of one holds for the next.

Producers write the same header, annotations and properties again and again; what differs is the id, the time of
creation, and what follows the properties. A message that equals one that was read in all else has the same sections,
the same fields, and the same values in them: nothing of it has to be walked through. This is a comparison of octets,
not a guess: where the id is longer or a field is another, it fails, and the message is read as if it were the first.
"""

from __future__ import annotations

from struct import error as struct_error
from typing import Any, NamedTuple

from jmsish.engine.sections import skip
from jmsish.message.fields import ABSOLUTE_EXPIRY_TIME, CREATION_TIME, MESSAGE_ID

SHORT_TEXT = b"\x00Sw\xa1"
"""How a body begins that is a text of less than 256 octets, as anybody writes it."""
LEARNING = 16
"""To learn costs as much as to read a few messages: it is done for one in so many at most."""
SAVED_AT_MOST = 64
LONGEST = 1024
"""Octets that are worth to be kept."""


class Likeness(NamedTuple):
    """The octets that are the same, with two gaps: of the text that the id is, and of the time of creation.

    Whoever compares spells it out, for the sake of speed: ``head`` at the beginning, ``middle`` at ``id_end``, ``tail``
    at ``times_end``; what is between ``id_at`` and ``id_end`` must be a text too if it is to be read as one.
    """

    head: bytes
    id_at: int
    id_end: int
    middle: bytes
    times_end: int
    tail: bytes
    end: int
    """Where the properties end."""
    is_short_text: bool
    """The first octets of the body are those of a short text, and belong to the tail."""
    known: Any
    """What was found out."""


def likeness_of(payload: bytes, bare: int, known: Any) -> Likeness | None:
    """That of a message which was read without a fault; None if it has none, or none that would be met again."""
    try:
        return _likeness_of(payload, bare, known)
    except (IndexError, struct_error):
        return None


def _likeness_of(payload: bytes, bare: int, known: Any) -> Likeness | None:
    if payload[bare : bare + 3] != b"\x00Ss" or payload[bare + 3] not in (0xC0, 0xD0):
        return None
    narrow = payload[bare + 3] == 0xC0
    count = payload[bare + 5] if narrow else int.from_bytes(payload[bare + 8 : bare + 12], "big")
    pos = bare + (6 if narrow else 12)
    gaps = [(0, 0), (0, 0)]
    for index in range(count):
        behind = skip(payload, pos)
        code = payload[pos]
        if index == MESSAGE_ID and code == 0xA1:
            gaps[0] = gaps[1] = (pos + 2, behind)
        elif index == ABSOLUTE_EXPIRY_TIME and code != 0x40:
            return None  # the next message has another
        elif index == CREATION_TIME and code == 0x83:
            gaps[1] = (pos + 1, behind)
        pos = behind
    if pos > len(payload):
        return None
    is_short_text = payload[pos : pos + 4] == SHORT_TEXT
    (id_at, id_end), (times_at, times_end) = gaps
    tail = payload[times_end : pos + (4 if is_short_text else 0)]
    if times_end + len(tail) > LONGEST:
        return None
    middle = payload[id_end:times_at]
    return Likeness(payload[:id_at], id_at, id_end, middle, times_end, tail, pos, is_short_text, known)
