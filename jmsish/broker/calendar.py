"""What of a queue waits for a time: messages to become visible, or to be redelivered, and those that will expire."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from jmsish.broker.order import ACQUIRED, RETURNED, Block, Entry, History, Place
from jmsish.broker.portions import BURIAL, Halt

if TYPE_CHECKING:
    from jmsish.broker.arrival import Arrival
    from jmsish.broker.queues import Queue

NEVER = float("inf")
_FEW = 64
_TICKETS = count()
"""Keeps apart what is due in the same moment, first come first served."""


class Calendar:
    """The times of one queue. The broker's timers ring for the next of them."""

    __slots__ = ("_delayed", "_expiries", "_next_due", "expiring", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
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
        self.queue.home.begin(_Due(self, now))

    def do_next(self, now: float) -> int:
        """Do what was due first by then; what that was worth, in messages, and 0 where nothing is."""
        queue, delayed, expiries = self.queue, self._delayed, self._expiries
        if delayed and delayed[0][0] <= now:
            item = heappop(delayed)[2]
            if not isinstance(item, Entry):
                queue.show(item)
            elif item.state == RETURNED:
                self._redeliver(item)
            return 1
        if expiries and expiries[0][0] <= now:
            found = self._find(*heappop(expiries))
            if found is None:
                return 1
            block, index = found
            if block.flags[index]:
                queue.expire_at(block, index)
            return 1 if not queue.settings.expiry_address else BURIAL
        return 0

    def note_next(self) -> None:
        """Nothing more is due now: have it rung for what will be."""
        for heap in (self._delayed, self._expiries):
            if heap:
                self._schedule(heap[0][0])

    def drop_first(self) -> bool:
        """What was to become visible first is gone for good; False where nothing waits."""
        queue, delayed = self.queue, self._delayed
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
        self.queue.put_back(entry)

    def _take_up(self, entry: Entry) -> None:
        """The delay of a redelivery is over."""
        queue, history = self.queue, entry.history
        entry.state = ACQUIRED
        queue.acquired += 1
        if history is not None and history.group is not None and queue.groups is not None:
            queue.groups.delay_over(history.group)

    def _find(self, due: float, minus_priority: int, number: int, index: int) -> tuple[Block, int] | None:
        """Where the message stands that is to expire then, if it is still there."""
        for level in self.queue.levels:
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
            self.queue.home.schedule(due, self.queue)


class _Due:
    """A job: what is due in a queue by some time. Nobody is served from it before all is, so it comes as one."""

    __slots__ = ("_calendar", "_halt", "_now")

    def __init__(self, calendar: Calendar, now: float) -> None:
        self._calendar = calendar
        self._halt = Halt((calendar.queue,))
        self._now = now

    def go_on(self, most: int) -> int:
        calendar = self._calendar
        worth = 0
        while worth < most and not calendar.queue.deleted:
            done = calendar.do_next(self._now)
            if not done:
                break
            worth += done
        if not worth:
            calendar.note_next()
            self._halt.lift()
        return worth
