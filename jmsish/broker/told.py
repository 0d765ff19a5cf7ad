"""Lines of the log that a peer can have written as often as it likes: so many in a while, and then how many there were.

Who is kept out, or has its work undone, chooses how often; and shall not fill the disk with that, nor hide in it what
others do. (Of refused links it is each connection that is counted: :func:`~jmsish.broker.link_policy.is_told`.)
"""

from __future__ import annotations

from typing import Final

__all__ = ["Told"]

MOST: Final = 100
"""Lines of one kind in a while."""
WHILE: Final = 60.0
"""Seconds."""


class _Kind:
    __slots__ = ("since", "told", "untold")

    def __init__(self, now: float) -> None:
        self.since = now
        self.told = self.untold = 0


class Told:
    """What the log was told of each kind. No clock: time is an argument."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}

    def more(self, kind: str, now: float) -> str | None:
        """What a line of this kind has at its end; ``None`` where there is to be no line."""
        there = self._kinds.get(kind)
        if there is None:
            there = self._kinds[kind] = _Kind(now)
        if not 0 <= now - there.since < WHILE:
            there.since, there.told = now, 0
        if there.told >= MOST:
            there.untold += 1
            return None
        there.told += 1
        untold, there.untold = there.untold, 0
        return f" ({untold} more like this had no line)" if untold else ""
