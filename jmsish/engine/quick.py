"""Transfers in the layouts of other peers, read without making a list of their fields.

Proton, Qpid JMS, rhea and others, and our own sender inside a transaction, write the small fields of a transfer in
various widths, but what stands behind the tag (format, settled, state …) is the same octets from one message to the
next. So the fields up to the tag are read by hand, and the octets behind it are looked up as a whole: what they mean
is decoded when they are first seen.

:func:`take_quick` says whether it has taken the frame. When it has not, nothing has changed and the general way in
:mod:`~jmsish.engine.incoming` takes the frame, or finds out what is wrong with it.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING

from .delivery import Delivery
from .events import DELIVERED
from .frames import read_fields
from .states import DeliveryState
from .values import DecodeError

if TYPE_CHECKING:
    from .engine import Engine

__all__ = ["take_quick"]

_uint = Struct(">I").unpack_from

_Tail = tuple[int, bool, "DeliveryState | None"]
"""How many fields the list has in all, whether the delivery is settled, and its state."""

_TAILS: dict[bytes, _Tail | None] = {}
_TAILS_LIMIT = 512


# hot: what each message of a foreign sender costs; the checks stand in the order in which they fail.
def take_quick(engine: Engine, channel: int, data: bytes, pos: int, end: int) -> bool:
    """Take a whole delivery in one frame; ``pos`` is the octet behind the descriptor 00 53 14.

    Octets that end too early raise IndexError or struct.error, before anything has changed.
    """
    session = engine.remote_sessions.get(channel)
    if session is None or data[pos] != 0xC0:
        return False
    stop = pos + 2 + data[pos + 1]
    count = data[pos + 2]
    pos += 3
    code = data[pos]
    if code == 0x43:
        handle, pos = 0, pos + 1
    elif code == 0x52:
        handle, pos = data[pos + 1], pos + 2
    else:
        return False
    link = session.remote_links.get(handle)
    # The limit is below zero for links that send, are not attached or are in the middle of a delivery.
    if link is None or end - stop > link.payload_limit or stop > end:
        return False
    code = data[pos]
    if code == 0x70:
        number, pos = _uint(data, pos + 1)[0], pos + 5
    elif code == 0x52:
        number, pos = data[pos + 1], pos + 2
    elif code == 0x43:
        number, pos = 0, pos + 1
    else:
        return False
    size = data[pos + 1]
    start = pos + 2
    pos = start + size
    octets = data[pos:stop]
    tail = _TAILS.get(octets) or _learn(octets, count)
    window = session.incoming_left - 1
    if (
        tail is None
        or pos > stop
        or tail[0] != count
        or data[start - 2] != 0xA0
        or size > 32
        or window <= session.low_mark
        or link.credit <= 0
        or number in session.incoming
    ):
        return False
    session.incoming_left = window
    link.credit -= 1
    _, settled, state = tail
    delivery = Delivery(link, number, data[start:pos], data[stop:end], settled, settled)
    delivery.remote_state = state
    if not settled:
        session.incoming[number] = delivery
    engine.report((DELIVERED, link, delivery))
    return True


def _learn(octets: bytes, count: int) -> _Tail | None:
    """What the fields behind the tag say, where they say nothing out of the ordinary."""
    if octets in _TAILS or not 3 <= count <= 11 or len(octets) > 160:
        return None
    if len(_TAILS) >= _TAILS_LIMIT:
        _TAILS.clear()
    tail: _Tail | None = None
    try:
        fields, _ = read_fields(b"\xc0%c%c%b" % (len(octets) + 1, count - 3, octets), 0, len(octets) + 3)
        fields.extend([None] * (8 - len(fields)))
        message_format, settled, more, mode, state, resume, aborted, _ = fields
        plain = not (more or resume or aborted) and mode is None and message_format in (None, 0)
        kinds = (settled is None or type(settled) is bool) and (state is None or isinstance(state, DeliveryState))
        if plain and kinds and type(message_format) is not bool:
            tail = (count, bool(settled), state)
    except (DecodeError, IndexError, StructError):
        pass  # The general way will say what is wrong.
    _TAILS[octets] = tail
    return tail
