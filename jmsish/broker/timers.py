"""What the broker is to do at a time of its clock."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import Protocol


class Timed(Protocol):
    """Something that is called when its time has come."""

    def on_time(self, now: float) -> None:
        """It is ``now``, at or after the time asked for."""


class Timers:
    """A heap of dues. Nothing is taken out early: who is called in vain does nothing."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timed]] = []
        self._numbers = count()

    def add(self, due: float, timed: Timed) -> None:
        heappush(self._heap, (due, next(self._numbers), timed))

    def ring(self, now: float) -> float | None:
        """Call all that is due; when the next is."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            heappop(heap)[2].on_time(now)
        return heap[0][0] if heap else None
