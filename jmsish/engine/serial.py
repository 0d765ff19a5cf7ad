"""Serial numbers of 32 bits: delivery-ids, transfer-ids, delivery-counts (Part 2, 2.8.10: RFC 1982)."""

from __future__ import annotations

__all__ = ["serial_difference"]


def serial_difference(later: int, earlier: int) -> int:
    """``later - earlier``, between -2^31 and 2^31 - 1."""
    return ((later - earlier + 0x80000000) & 0xFFFFFFFF) - 0x80000000
