"""The collector of garbage in a process that does nothing but serve: no client waits for it.

Theory of operation.  Python frees most objects when nothing refers to them any more, and has a collector for rings of
objects that refer to each other. From time to time that looks at all objects there are, while all threads stand still:
a tenth of a second or two with five thousand connections. The broker leaves no rings behind, so nearly always there is
nothing to be found; but an authenticator or a library may.

So what is there at the start, and what has outlived a collection or two, is put aside (``gc.freeze``): a collection
looks at what was made since the last one, which takes well under a millisecond, and a few where a queue has just been
filled. A ring that was soon dropped is found by that. One that lived longer stays, and the net for it is to look from
time to time how much memory there is beside what the broker's connections, links and messages explain. Where that is
too much, everything is looked at after all: in a quiet moment, or at four times as much in any. What turns out to be
no garbage is not looked for again: from then on twice as much may be unexplained.

All this is the process's own affair, so an embedded broker does nothing of the kind.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable
from time import monotonic, process_time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self  # in the standard library from 3.11 on

__all__ = ["Collector"]

_log = logging.getLogger("jmsish.broker")

THRESHOLDS: Final = (500, 2, 10)
"""Of the generations: so many new objects from one collection of the youngest to the next, and two of these from one of
the middle one to the next. What survives that is put aside, so the oldest never has any. So few, because one object may
be a block of a queue, with a hundred messages to be looked at."""

LOOK: Final = 30.0
"""Seconds between two looks at what is unexplained."""

ALLOWANCE: Final = 500_000
"""Blocks of memory that may be unexplained at first: 50 MB or so."""

URGENT: Final = 4
"""With so many times the allowance nobody waits for a quiet moment any more."""

QUIET: Final = 0.05
"""The share of a processor, since the last look, up to which the process has little to do."""

FOUND: Final = 0.5
"""A collection was not in vain if it freed this part of what was unexplained."""


class Collector:
    """Has the collector of this process do its work unnoticed, for the time of the block.

    ``explained`` says about how many blocks of memory the broker's contents account for; it is asked only where there
    is reason to. Whoever owns the process calls :meth:`look` every :data:`LOOK` seconds.
    """

    def __init__(self, explained: Callable[[], int], *, allowance: int = ALLOWANCE) -> None:
        self._explained = explained
        self._allowance = allowance
        self._floor = self._known = 0
        self._looked = self._used = 0.0
        self._before = gc.get_threshold()
        self._is_at_all = False
        """Everything is being looked at: what another thread's collection puts aside meanwhile would not be."""

    def __enter__(self) -> Self:
        gc.callbacks.append(self._collected)
        gc.set_threshold(*THRESHOLDS)
        gc.collect()
        self._settle()
        self._looked, self._used = monotonic(), process_time()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        gc.callbacks.remove(self._collected)
        gc.set_threshold(*self._before)
        gc.unfreeze()

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        """By whatever thread the collection came upon."""
        if phase == "stop" and info["generation"] > 0 and not self._is_at_all:
            gc.freeze()

    def look(self) -> None:
        """Have everything looked at where too much is unexplained."""
        is_quiet = self._is_quiet()
        excess = sys.getallocatedblocks() - self._floor
        if excess > self._allowance:
            excess -= self._explained() - self._known
        if excess > self._allowance * (1 if is_quiet else URGENT):
            self._collect_all(excess)

    def _is_quiet(self) -> bool:
        now, used = monotonic(), process_time()
        share = (used - self._used) / max(now - self._looked, 1e-6)
        self._looked, self._used = now, used
        return share < QUIET

    def _collect_all(self, excess: int) -> None:
        before = sys.getallocatedblocks()
        self._is_at_all = True
        try:
            gc.unfreeze()
            found = gc.collect()
        finally:
            self._is_at_all = False
            gc.freeze()
        freed = before - sys.getallocatedblocks()
        _log.info("%d objects that nothing could reach were found, of %d blocks unexplained", found, excess)
        if freed < excess * FOUND:
            self._allowance *= 2
        self._settle()

    def _settle(self) -> None:
        """What is there now is what there is to be."""
        self._floor, self._known = sys.getallocatedblocks(), self._explained()
