"""What the broker is to do at a time of its clock."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from typing import Protocol

_FEW = 64


class Timed(Protocol):
    """Something that is called when its time has come."""

    def on_time(self, now: float) -> None:
        """It is ``now``, at or after the time asked for."""


class Timers:
    """A heap of dues. Who is called in vain does nothing; who is never to be called again is dismissed.

    The heap holds numbers only, so what is dismissed is let go at once, however far off its time is.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self._numbers = count()
        self._waiting: dict[int, Timed] = {}
        self._asked: dict[Timed, set[int]] = {}

    def __len__(self) -> int:
        """How many dues are kept, those of the dismissed included."""
        return len(self._heap)

    def add(self, due: float, timed: Timed) -> None:
        """Call ``timed.on_time`` then."""
        heap = self._heap
        if len(heap) > _FEW and len(heap) > 2 * len(self._waiting):
            heap[:] = [mark for mark in heap if mark[1] in self._waiting]
            heapify(heap)
        number = next(self._numbers)
        self._waiting[number] = timed
        self._asked.setdefault(timed, set()).add(number)
        heappush(heap, (due, number))

    def dismiss(self, timed: Timed) -> None:
        """Whatever this one asked for, it is not to be called."""
        for number in self._asked.pop(timed, ()):
            del self._waiting[number]

    def ring(self, now: float) -> float | None:
        """Call all that is due; when the next is."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            timed = self._take(heappop(heap)[1])
            if timed is not None:
                timed.on_time(now)
        while heap and heap[0][1] not in self._waiting:
            heappop(heap)
        return heap[0][0] if heap else None

    def _take(self, number: int) -> Timed | None:
        timed = self._waiting.pop(number, None)
        if timed is not None:
            numbers = self._asked[timed]
            numbers.discard(number)
            if not numbers:
                del self._asked[timed]
        return timed
