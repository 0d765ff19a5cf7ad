"""A queue: messages in the order (priority falling, sequence rising), taken, put back at their place, or gone.

Nothing here knows AMQP. Whoever changes a queue calls :meth:`Queue.wake` at most; the broker then serves each woken
queue once, after all input is processed. So a range of dispositions or a discharge is one put-back, and nobody is
offered the second of two returned messages before the first (redelivery b.5, 4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Protocol

from jmsish.broker.order import (
    ACQUIRED,
    ARCHIVED,
    BARRED,
    FRONT,
    RETURNED,
    Block,
    Entry,
    History,
    Level,
    Place,
)
from jmsish.broker.policy import QueueSettings

if TYPE_CHECKING:
    from jmsish.broker.consumers import Consumer

NEVER = float("inf")
_TICKETS = count()
"""Keeps apart what is due in the same moment, first come first served."""


class QueueHome(Protocol):
    """What a queue asks of the broker it lives in."""

    def now(self) -> float:
        """Seconds of the wall clock."""

    def wake(self, queue: Queue) -> None:
        """Serve the queue's consumers in this step."""

    def schedule(self, due: float, queue: Queue) -> None:
        """Call ``queue.on_time`` then."""

    def expired(self, queue: Queue, entry: Entry) -> None:
        """An archived entry was past its time: to the expiry address, or nowhere."""


class Producer(Protocol):
    """Who brings messages to a queue."""

    def top_up(self) -> None:
        """There is room: grant credit."""

    def lost_queue(self) -> None:
        """The queue was deleted."""


class Arrival:
    """A message about to become visible, with what its header and annotations ask of the queue."""

    __slots__ = ("due", "history", "payload", "priority")

    def __init__(self, payload: bytes, priority: int, history: History | None = None, due: float = 0.0) -> None:
        self.payload = payload
        self.priority = priority
        self.history = history
        self.due = due


class Queue:
    """One queue. ``depth`` is all it owns: available, acquired, and waiting for a time."""

    __slots__ = (
        "acquired",
        "barred",
        "consumers",
        "delayed",
        "deleted",
        "depth",
        "dirty",
        "draining",
        "enqueued",
        "expired_count",
        "expiries",
        "expiring",
        "browsers",
        "dequeued",
        "dead_lettered",
        "dropped",
        "home",
        "levels",
        "name",
        "next_due",
        "octets",
        "owner",
        "producers",
        "ready",
        "redelivered",
        "settings",
        "starved",
    )

    def __init__(self, name: str, settings: QueueSettings, home: QueueHome, owner: object = None) -> None:
        self.name = name
        self.settings = settings
        self.home = home
        self.owner = owner
        """The connection a temporary queue belongs to."""
        self.levels: list[Level] = []
        self.depth = self.acquired = self.octets = self.barred = 0
        self.dirty = self.deleted = False
        self.consumers: dict[int, Consumer] = {}
        self.ready: deque[Consumer] | None = None
        """Consumers that want messages, the one served next in front; made for the first, as an empty one is large."""
        self.browsers: list[Consumer] | None = None
        self.draining: list[Consumer] | None = None
        self.producers: dict[Producer, None] = {}
        self.starved: list[Producer] | None = None
        """Producers that wait for room."""
        self.delayed: list[tuple[float, int, Entry | Arrival]] | None = None
        self.expiries: list[tuple[float, int, int, int]] | None = None
        self.expiring = 0
        self.next_due = NEVER
        self.enqueued = self.dequeued = self.redelivered = 0
        self.expired_count = self.dead_lettered = self.dropped = 0

    # --- coming in

    def append(self, payload: bytes, priority: int) -> None:
        """A message without a past becomes visible, behind all of its priority."""
        for level in self.levels:
            if level.priority == priority:
                break
        else:
            level = self._new_level(priority)
        level.append(payload)
        self.depth += 1
        self.octets += len(payload)
        self.enqueued += 1
        if self.ready or self.browsers:
            self.wake()
        if self.settings.overflow == "drop-head":
            self._drop_head()

    def add(self, arrival: Arrival) -> None:
        """A message becomes visible now, or when its time comes."""
        if arrival.due > 0.0:
            if arrival.due > self.home.now():
                self.depth += 1
                self.octets += len(arrival.payload)
                self.enqueued += 1
                self._delay(arrival.due, arrival)
                return
        history = arrival.history
        if history is None:
            self.append(arrival.payload, arrival.priority)
            return
        self.depth += 1
        self.octets += len(arrival.payload)
        self.enqueued += 1
        self._place(arrival.payload, arrival.priority, history)
        if self.settings.overflow == "drop-head":
            self._drop_head()

    def refusal(self, messages: int, octets: int) -> str | None:
        """Why so much more cannot come in, or None."""
        settings = self.settings
        if self.deleted:
            return f"the queue {self.name!r} is gone"
        if settings.overflow != "reject":
            return None
        if settings.max_messages and self.depth + messages > settings.max_messages:
            return f"the queue {self.name!r} is full: {self.depth} messages, at most {settings.max_messages}"
        if settings.max_octets and self.octets + octets > settings.max_octets:
            return f"the queue {self.name!r} is full: {self.octets} octets, at most {settings.max_octets}"
        return None

    @property
    def is_full(self) -> bool:
        """At or over a limit."""
        settings = self.settings
        return bool(
            (settings.max_messages and self.depth >= settings.max_messages)
            or (settings.max_octets and self.octets >= settings.max_octets)
        )

    def _new_level(self, priority: int) -> Level:
        level = Level(priority)
        self.levels.append(level)
        self.levels.sort(key=lambda each: -each.priority)
        return level

    def _place(self, payload: bytes, priority: int, history: History) -> None:
        for level in self.levels:
            if level.priority == priority:
                break
        else:
            level = self._new_level(priority)
        entry = level.append_entry(payload, history)
        entry.state = RETURNED
        level.open(entry)
        if history.expires:
            self._note_expiry(history.expires, entry.place)
        if self.ready or self.browsers:
            self.wake()

    def _drop_head(self) -> None:
        settings = self.settings
        while (settings.max_messages and self.depth > settings.max_messages) or (
            settings.max_octets and self.octets > settings.max_octets
        ):
            entry = self.take()
            if entry is None:
                return
            self.archive(entry)
            self.dropped += 1

    def wake(self) -> None:
        """Have the consumers served at the end of this step."""
        if not self.dirty:
            self.dirty = True
            self.home.wake(self)

    # --- being taken

    @property
    def available(self) -> int:
        return sum(level.free + level.barred for level in self.levels)

    def take(self) -> Entry | None:
        """The first message that anybody may have."""
        for level in self.levels:
            if level.free:
                self.acquired += 1
                return level.take()
        return None

    def take_for(self, consumer: Consumer) -> Entry | None:
        """The first message this consumer may have, where some are barred for some."""
        barred = self._first_barred_for(consumer)
        free = self._first_free()
        if barred is None or (free is not None and free[0] < barred[0]):
            return self.take() if free is not None else None
        place, level, block, index = barred
        self.acquired += 1
        self.barred -= 1
        return level.take_at(block, index)

    def has_for(self, consumer: Consumer) -> bool:
        """Whether the consumer could take anything."""
        for level in self.levels:
            if level.free:
                return True
        return self.barred > 0 and self._first_barred_for(consumer) is not None

    def _first_free(self) -> tuple[Place, Level, Block, int] | None:
        for level in self.levels:
            found = level.first_free(0, 0) if level.free else None
            if found is not None:
                block, index = found
                return (-level.priority, block.number, index), level, block, index
        return None

    def _first_barred_for(self, consumer: Consumer) -> tuple[Place, Level, Block, int] | None:
        """Everything barred before ``consumer.barred_from`` is barred for this very consumer: looked at once only."""
        for level in self.levels:
            cursor = consumer.barred_from
            if not level.barred or -level.priority < cursor[0]:
                continue
            number, index = cursor[1:] if -level.priority == cursor[0] else (0, 0)
            while (found := level.first_barred(number, index)) is not None:
                block, at = found
                entry = block.slots[at]
                assert isinstance(entry, Entry) and entry.history is not None and entry.history.barred
                consumer.barred_from = place = (-level.priority, block.number, at)
                if consumer.id not in entry.history.barred:
                    return place, level, block, at
                number, index = block.number, at + 1
                consumer.barred_from = (-level.priority, number, index)
        return None

    def first_after(self, place: Place) -> tuple[Place, bytes, History | None] | None:
        """For browsers: the first available message at or after a place, left where it is."""
        for level in self.levels:
            if not (level.free or level.barred) or -level.priority < place[0]:
                continue
            number, index = place[1:] if -level.priority == place[0] else (0, 0)
            found = level.first_available(number, index)
            if found is not None:
                block, at = found
                item = block.slots[at]
                spot = (-level.priority, block.number, at)
                if isinstance(item, Entry):
                    return spot, item.payload, item.history
                assert item is not None
                return spot, item, None
        return None

    # --- going back, or away

    def put_back(self, entry: Entry) -> None:
        """Back where it stood, as it is; settled long ago, it stays so."""
        if entry.state != ACQUIRED:
            return
        entry.state = RETURNED
        entry.work = None
        self.acquired -= 1
        if self.deleted:
            return
        history = entry.history
        if history is not None and self._has_to_wait(entry, history):
            return
        entry.block.level.open(entry)
        if self.ready or self.browsers:
            self.wake()

    def _has_to_wait(self, entry: Entry, history: History) -> bool:
        """Expired meanwhile, or to be redelivered only after a delay; else its barred links are noted."""
        if history.expires or history.due:
            now = self.home.now()
            if history.expires and history.expires <= now:
                self._expire(entry)
                return True
            due, history.due = history.due, 0.0
            if due > now:
                self._delay(due, entry)
                return True
        if history.barred:
            self.barred += 1
            place = entry.place
            for consumer in self.consumers.values():
                if place < consumer.barred_from:
                    consumer.barred_from = place
        return False

    def archive(self, entry: Entry) -> None:
        """Gone for good: accepted, dead-lettered, dropped."""
        if entry.state != ACQUIRED:
            return
        self.acquired -= 1
        self._remove(entry)

    def _remove(self, entry: Entry) -> None:
        entry.state = ARCHIVED
        entry.work = None
        if self.deleted:
            return
        self.depth -= 1
        self.octets -= len(entry.payload)
        history = entry.history
        if history is not None and history.expires:
            self.expiring -= 1
        block = entry.block
        block.level.remove(block, entry.index)
        self.dequeued += 1
        if self.starved and not self.is_full:
            starved, self.starved = self.starved, None
            for producer in starved:
                producer.top_up()

    def replace_payload(self, entry: Entry, payload: bytes) -> None:
        """Other octets for a message in hand: its annotations changed."""
        if not self.deleted:
            self.octets += len(payload) - len(entry.payload)
        entry.payload = payload

    def unbar(self, entries: list[Entry], consumer: Consumer) -> None:
        """What was kept from the consumer until it asks again is to be had by it now."""
        for entry in entries:
            history = entry.history
            if history is None or not history.barred:
                continue
            history.barred.discard(consumer.id)
            block, index = entry.block, entry.index
            standing = block.slots[index]
            if isinstance(standing, Entry) and standing.history is history and block.flags[index] == BARRED:
                block.level.close(block, index)
                self.barred -= not history.barred
                block.level.open(standing)
                consumer.barred_from = min(consumer.barred_from, entry.place)

    def purge(self) -> int:
        """Remove all that is available; what somebody holds stays. Returns how many went."""
        gone = 0
        while (entry := self.take()) is not None:
            self.archive(entry)
            gone += 1
        for level in self.levels:
            while (found := level.first_barred(0, 0)) is not None:
                self.barred -= 1
                self.acquired += 1
                self.archive(level.take_at(*found))
                gone += 1
        return gone

    def places(self, acquired: bool) -> Iterator[tuple[bytes, History | None]]:
        """What is available, or all that has a place, in order."""
        for level in self.levels:
            for number in sorted(level.blocks):
                block = level.blocks[number]
                for index, item in enumerate(list(block.slots)):
                    if item is None or not (acquired or block.flags[index]):
                        continue
                    yield (item.payload, item.history) if isinstance(item, Entry) else (item, None)

    # --- time

    def on_time(self, now: float) -> None:
        """What was delayed until now becomes visible; what has expired goes."""
        if now < self.next_due:
            return  # A call asked for before an earlier one was, and made good by that.
        self.next_due = NEVER
        delayed = self.delayed
        while delayed and delayed[0][0] <= now:
            item = heappop(delayed)[2]
            if isinstance(item, Arrival):
                self._become_visible(item)
            elif item.state == RETURNED:
                item.state = ACQUIRED
                self.acquired += 1
                self.put_back(item)
        expiries = self.expiries
        while expiries and expiries[0][0] <= now:
            due, priority, number, index = heappop(expiries)
            self._expire_at(due, -priority, number, index)
        for heap in (self.delayed, self.expiries):
            if heap:
                self._schedule(heap[0][0])

    def expire(self, entry: Entry) -> None:
        """An entry in hand turned out to be past its time."""
        self.acquired -= 1
        self._expire(entry)

    def _become_visible(self, arrival: Arrival) -> None:
        self.depth -= 1
        self.octets -= len(arrival.payload)
        self.enqueued -= 1
        arrival.due = 0.0
        self.add(arrival)

    def _expire(self, entry: Entry) -> None:
        self._remove(entry)
        self.dequeued -= 1
        self.expired_count += 1
        self.home.expired(self, entry)

    def _expire_at(self, due: float, priority: int, number: int, index: int) -> None:
        for level in self.levels:
            block = level.blocks.get(number) if level.priority == priority else None
            if block is None or not block.flags[index]:
                continue
            entry = block.slots[index]
            if isinstance(entry, Entry) and entry.history is not None and entry.history.expires == due:
                if block.flags[index] == BARRED:
                    self.barred -= 1
                level.close(block, index)
                self._expire(entry)

    def _note_expiry(self, due: float, place: Place) -> None:
        self.expiring += 1
        if self.expiries is None:
            self.expiries = []
        heap = self.expiries
        if len(heap) > 64 and len(heap) > 2 * self.expiring:
            # Consumed messages leave their mark behind; half of the marks being stale, sweep them out.
            heap[:] = [mark for mark in heap if self._is_marked(*mark)]
            heapify(heap)
        heappush(heap, (due, *place))
        self._schedule(due)

    def _is_marked(self, due: float, minus_priority: int, number: int, index: int) -> bool:
        for level in self.levels:
            if level.priority == -minus_priority:
                block = level.blocks.get(number)
                item = block.slots[index] if block is not None else None
                return isinstance(item, Entry) and item.history is not None and item.history.expires == due
        return False

    def _delay(self, due: float, item: Entry | Arrival) -> None:
        if self.delayed is None:
            self.delayed = []
        heappush(self.delayed, (due, next(_TICKETS), item))
        self._schedule(due)

    def _schedule(self, due: float) -> None:
        if due < self.next_due:
            self.next_due = due
            self.home.schedule(due, self)


__all__ = ["FRONT", "Arrival", "Queue", "QueueHome"]
