"""Which deliveries a disposition names (Part 2, 2.7.6), at a cost that its octets cannot choose.

A range is two numbers, and may name all that a session has, or a hundred thousand that it has not. What is settled is
gone afterwards, so to look at it is paid for by its delivery. What was looked at and is there as before is counted: so
much of it is free for each frame, so much for each delivery, and beyond that the session ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .conditions import INVALID_FIELD, RESOURCE_LIMIT_EXCEEDED, SessionFault
from .serial import serial_difference

if TYPE_CHECKING:
    from .delivery import Delivery
    from .session import EngineSession

__all__ = ["deliveries_in"]

_MASK = 0xFFFFFFFF

FREE = 1000
"""Deliveries that each disposition may look at for nothing, in some fifty microseconds."""
EACH = 4
"""How often a delivery may be named in vain, on average, beyond that."""


def deliveries_in(
    session: EngineSession, ledger: dict[int, Delivery], first: int, last: int, settled: bool
) -> list[Delivery]:
    """Those of the ledger from ``first`` to ``last``; SessionFault for a range that is none, or one too many."""
    span = (last - first) & _MASK
    if span >= 0x80000000 and last < first:
        raise SessionFault(INVALID_FIELD, f"a disposition from {first} to {last}, which is backwards")
    if not ledger:
        return []
    is_ours = ledger is session.outgoing
    if is_ours and (span >= len(ledger) or serial_difference(first, next(iter(ledger))) <= 0):
        found, looks = _in_order(ledger, first, span)
    elif span < len(ledger):
        found, looks = _one_by_one(ledger, first, span)
    else:
        # The peer chose these numbers, in whatever order.
        found = [delivery for number, delivery in ledger.items() if (number - first) & _MASK <= span]
        looks = len(ledger)
    vain = looks - len(found) if settled else looks
    if vain > FREE:
        session.looked_in_vain += vain - FREE
        sent = (session.next_delivery_id - session.initial_outgoing_id) & _MASK
        if session.looked_in_vain > EACH * (sent + len(session.incoming)):
            text = f"dispositions have named {session.looked_in_vain} deliveries too many without settling them"
            raise SessionFault(RESOURCE_LIMIT_EXCEEDED, text)
    return found


def _one_by_one(ledger: dict[int, Delivery], first: int, span: int) -> tuple[list[Delivery], int]:
    end = first + span + 1
    numbers = range(first, end) if end <= _MASK else [number & _MASK for number in range(first, end)]
    return [delivery for delivery in map(ledger.get, numbers) if delivery is not None], span + 1


def _in_order(ledger: dict[int, Delivery], first: int, span: int) -> tuple[list[Delivery], int]:
    """The peer names more than there is, or all from the first on, as those do that settle up to here each time: look
    at what there is, which stands in the order of its numbers."""
    newest = next(reversed(ledger))
    if (newest - first) & _MASK > span and serial_difference(newest, first) < 0:
        return [], 1  # all of it was before
    if (next(iter(ledger)) - first) & _MASK <= (newest - first) & _MASK <= span:
        return list(ledger.values()), len(ledger)
    found: list[Delivery] = []
    looks = 0
    for number, delivery in ledger.items():
        looks += 1
        if (number - first) & _MASK <= span:
            found.append(delivery)
        elif found or serial_difference(number, first) > 0:
            break
    return found, looks
