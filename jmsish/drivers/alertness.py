"""Looking again before falling asleep.

A peer nearby answers a small question in less time than it takes to fall asleep and be woken (some 20 µs each, more on
an idle virtual machine).  So who waits looks again for a moment first, as long as that has paid; where it has not, only
every sixteenth time, so that waiting for slower answers costs no CPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

MOMENT = 40e-6 if (os.cpu_count() or 1) > 1 else 0.0
"""Seconds: about what being put to sleep and woken costs. On a single processor the peer could not work meanwhile."""

RETRY = 16


class Alertness:
    """One waiter's memory of whether it paid."""

    __slots__ = ("_misses",)

    def __init__(self) -> None:
        self._misses = 0

    def look(self, ready: Callable[[int], list[T]]) -> list[T]:
        """What `ready(0)` gives now or within a moment; empty when it is time to sleep."""
        found = ready(0)
        if found or (self._misses and self._misses % RETRY):
            self._misses = 0 if found else self._misses + 1
            return found
        end = perf_counter() + MOMENT
        while not found and perf_counter() < end:
            found = ready(0)
        self._misses = 0 if found else self._misses + 1
        return found
