"""What of a queue waits for a time: messages to become visible, or to be redelivered, and those that will expire."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from jmsish.broker.order import ACQUIRED, RETURNED, Block, Entry, History, Place

if TYPE_CHECKING:
    from jmsish.broker.arrival import Arrival
    from jmsish.broker.queues import Queue

NEVER = float("inf")
_FEW = 64
_TICKETS = count()
"""Keeps apart what is due in the same moment, first come first served."""


class Calendar:
    """The times of one queue. The broker's timers ring for the next of them."""

    __slots__ = ("_delayed", "_expiries", "_next_due", "_queue", "expiring")

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._delayed: list[tuple[float, int, Entry | Arrival]] = []
        self._expiries: list[tuple[float, int, int, int]] = []
        self._next_due = NEVER
        self.expiring = 0
        """How many messages that have a place will expire."""

    def __len__(self) -> int:
        """How many dues are kept, those that have lost their message included."""
        return len(self._delayed) + len(self._expiries)

    def delay(self, due: float, item: Entry | Arrival, history: History | None) -> None:
        """Keep a message out of sight until then."""
        if history is not None and history.expires:
            due = min(due, history.expires)  # what expires before its time comes is seen then, and goes
        heappush(self._delayed, (due, next(_TICKETS), item))
        self._schedule(due)

    def note_expiry(self, due: float, place: Place) -> None:
        """The message that stands there expires then."""
        self.expiring += 1
        heap = self._expiries
        if len(heap) > _FEW and len(heap) > 2 * self.expiring:
            # Consumed messages leave their mark behind; half of the marks being stale, sweep them out.
            heap[:] = [mark for mark in heap if self._find(*mark) is not None]
            heapify(heap)
        heappush(heap, (due, *place))
        self._schedule(due)

    def on_time(self, now: float) -> None:
        """What was delayed until now becomes visible; what has expired goes."""
        if now < self._next_due:
            return  # A call asked for before an earlier one was, and made good by that.
        self._next_due = NEVER
        queue, delayed, expiries = self._queue, self._delayed, self._expiries
        while delayed and delayed[0][0] <= now:
            item = heappop(delayed)[2]
            if not isinstance(item, Entry):
                queue.show(item)
            elif item.state == RETURNED:
                self._redeliver(item)
        while expiries and expiries[0][0] <= now:
            found = self._find(*heappop(expiries))
            if found is not None:
                block, index = found
                if block.flags[index]:
                    queue.expire_at(block, index)
        for heap in (delayed, expiries):
            if heap:
                self._schedule(heap[0][0])

    def drop_first(self) -> bool:
        """What was to become visible first is gone for good; False where nothing waits."""
        queue, delayed = self._queue, self._delayed
        while delayed:
            item = heappop(delayed)[2]
            if not isinstance(item, Entry):
                queue.depth -= 1
                queue.octets -= len(item.payload)
                queue.dequeued += 1
                return True
            if item.state == RETURNED:
                self._take_up(item)
                queue.archive(item)
                return True
        return False

    def _redeliver(self, entry: Entry) -> None:
        self._take_up(entry)
        self._queue.put_back(entry)

    def _take_up(self, entry: Entry) -> None:
        """The delay of a redelivery is over."""
        queue, history = self._queue, entry.history
        entry.state = ACQUIRED
        queue.acquired += 1
        if history is not None and history.group is not None and queue.groups is not None:
            queue.groups.delay_over(history.group)

    def _find(self, due: float, minus_priority: int, number: int, index: int) -> tuple[Block, int] | None:
        """Where the message stands that is to expire then, if it is still there."""
        for level in self._queue.levels:
            if level.priority == -minus_priority:
                block = level.blocks.get(number)
                item = block.slots[index] if block is not None else None
                if isinstance(item, Entry) and item.history is not None and item.history.expires == due:
                    assert block is not None
                    return block, index
        return None

    def _schedule(self, due: float) -> None:
        if due < self._next_due:
            self._next_due = due
            self._queue.home.schedule(due, self._queue)
