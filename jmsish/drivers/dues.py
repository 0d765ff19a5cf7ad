"""Dues: when the connections of a broker want to be called for their own timers, the earliest first.

Activity moves deadlines back all the time. So a later one is not noted: the earlier comes up, its connection is asked
again, and says the later one then.
"""

from __future__ import annotations

import heapq
from itertools import count

from jmsish.drivers.turns import NEVER, Lane

__all__ = ["Dues"]


class Dues:
    """Of lanes, by time.monotonic; each has at most one that counts, in ``lane.due``."""

    __slots__ = ("_gone", "_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Lane]] = []
        self._gone = 0
        self._numbers = count()

    @property
    def at(self) -> float:
        """When the next is due."""
        return self._heap[0][0] if self._heap else NEVER

    def note(self, lane: Lane, due: float) -> None:
        """It wants to be called then, unless it is called earlier anyway."""
        if due < lane.due:
            lane.due = due
            heapq.heappush(self._heap, (due, next(self._numbers), lane))

    def take(self, now: float) -> Lane | None:
        """One that is due; it is to be asked for its next time."""
        while self._heap and self._heap[0][0] <= now:
            due, _, lane = heapq.heappop(self._heap)
            if not lane.gone and lane.due == due:
                lane.due = NEVER
                return lane
        return None

    def forget(self, lane: Lane) -> None:
        """It is gone."""
        self._gone += lane.due != NEVER

    def sweep(self, lanes: int) -> None:
        """Those that have gone are not kept until they would have been due: not beyond an eighth of so many."""
        if self._gone > lanes // 8 + 64:
            self._gone = 0
            self._heap = [entry for entry in self._heap if not entry[2].gone and entry[2].due == entry[0]]
            heapq.heapify(self._heap)
