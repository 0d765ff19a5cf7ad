"""Which message a consumer may have, where not everybody may have each: barred ones, groups, selectors.

A consumer without a selector never looks at what others are to have. One with a selector has to look at each message
once; :class:`Search` remembers how far it has looked, so that no message is looked at twice unless it came back.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from jmsish.broker.groups import Found, Group, Selects, tidy
from jmsish.broker.order import Block, Entry, History, Level, Place

if TYPE_CHECKING:
    from jmsish.broker.consumers import Consumer
    from jmsish.broker.queues import Queue

SLICE = 1000
"""So many messages are looked at for selectors before the broker turns to others (a few milliseconds), of large ones
and by long selectors less (:func:`cost_of`)."""
_FEW = 64


def take_for(queue: Queue, consumer: Consumer) -> Entry | None:
    """The first message this consumer may have, taken."""
    search = consumer.search
    if search is not None:
        found = search.find()
    elif not queue.barred and queue.groups is None:
        return queue.take()
    else:
        found = _first_free(queue)
        if queue.barred:
            found = _nearer(found, _first_barred_for(queue, consumer))
        if queue.groups is not None:
            found = _nearer(found, queue.groups.first_for(consumer))
    if found is None:
        return None
    _, level, block, index = found
    return queue.take_at(level, block, index, consumer)


def has_for(queue: Queue, consumer: Consumer) -> bool:
    """Whether the consumer could take anything."""
    if consumer.search is not None:
        return consumer.search.find() is not None or consumer.searching
    return (
        any(level.free for level in queue.levels)
        or (queue.barred > 0 and _first_barred_for(queue, consumer) is not None)
        or (queue.groups is not None and queue.groups.first_for(consumer) is not None)
    )


def first_after(queue: Queue, place: Place) -> tuple[Place, bytes, History | None] | None:
    """For browsers: the first available message at or after a place, left where it is."""
    for level in queue.levels:
        if not level.available or -level.priority < place[0]:
            continue
        number, index = place[1:] if -level.priority == place[0] else (0, 0)
        found = level.first_available(number, index)
        if found is not None:
            block, at = found
            return (-level.priority, block.number, at), *_content(block, at)
    return None


def matches(selects: Selects, payload: bytes, history: History | None) -> bool:
    """Whether a selector wants a message."""
    return selects(payload, 0 if history is None else history.count)


def cost_of(consumer: Consumer, payload: bytes) -> int:
    """What it takes of a step's patience to ask whether a consumer wants a message: a large one is long to read."""
    return consumer.weight + (len(payload) >> 12)


def _nearer(one: Found | None, other: Found | None) -> Found | None:
    if one is None or other is None:
        return one or other
    return one if one[0] < other[0] else other


def _content(block: Block, index: int) -> tuple[bytes, History | None]:
    item = block.slots[index]
    if isinstance(item, Entry):
        return item.payload, item.history
    assert item is not None
    return item, None


def _first_free(queue: Queue) -> Found | None:
    for level in queue.levels:
        found = level.first_free(0, 0) if level.free else None
        if found is not None:
            block, index = found
            return (-level.priority, block.number, index), level, block, index
    return None


def _first_barred_for(queue: Queue, consumer: Consumer) -> Found | None:
    """Everything barred before ``consumer.barred_from`` is barred for this very consumer: looked at once only."""
    for level in queue.levels:
        cursor = consumer.barred_from
        if not level.barred or -level.priority < cursor[0]:
            continue
        number, index = cursor[1:] if -level.priority == cursor[0] else (0, 0)
        while (found := level.first_barred(number, index)) is not None:
            block, at = found
            history = _content(block, at)[1]
            assert history is not None and history.barred
            consumer.barred_from = place = (-level.priority, block.number, at)
            if consumer.id not in history.barred:
                return place, level, block, at
            number, index = block.number, at + 1
            consumer.barred_from = (-level.priority, number, index)
    return None


class Search:
    """What a selecting consumer has looked at already.

    ``_cursors`` say, for each priority, before which place everything was looked at. What comes back before it is noted
    in ``_again``. What it wants, and the state of a group kept from it, is in ``_skipped``, by group.
    """

    __slots__ = ("_again", "_consumer", "_cursors", "_promoted", "_queue", "_selects", "_skipped")

    def __init__(self, consumer: Consumer, queue: Queue, selects: Selects) -> None:
        self._consumer = consumer
        self._queue = queue
        self._selects = selects
        self._cursors: dict[int, tuple[int, int]] = {}
        self._again: list[Place] = []
        self._skipped: dict[Group, list[Place]] = {}
        self._promoted: dict[Place, Group] = {}
        """Which of ``_again`` are there because their group may be had now."""

    def find(self) -> Found | None:
        """The first message for this consumer; None where there is none, or not in this slice (``searching``)."""
        queue = self._queue
        self._consumer.searching = False
        for level in queue.levels:
            found = self._look_again(level) or self._look_on(level)
            if found is not None:
                return found
            if self._consumer.searching:
                return None
        return None

    def _look_again(self, level: Level) -> Found | None:
        again = self._again
        while again and again[0][0] <= -level.priority:
            place = again[0]
            _, number, index = place
            block = level.blocks.get(number) if place[0] == -level.priority else None
            if block is not None and block.flags[index]:
                if self._is_out_of_patience():
                    return None
                if self._may_have(place, block, index):
                    return place, level, block, index
            heappop(again)
            if (group := self._promoted.pop(place, None)) is not None and group.admits(self._consumer):
                self.promote(group)
        return None

    def _look_on(self, level: Level) -> Found | None:
        tail = level.tail
        number, index = self._cursors.get(level.priority, (0, 0))
        if self._consumer.searching or (number == tail.number and index == len(tail.slots)):
            return None
        while (found := level.first_available(number, index)) is not None:
            block, at = found
            number = block.number
            self._cursors[level.priority] = (number, at)
            if self._is_out_of_patience():
                return None
            place = (-level.priority, number, at)
            if self._may_have(place, block, at):
                return place, level, block, at
            index = at + 1
        self._cursors[level.priority] = (tail.number, len(tail.slots))
        return None

    def _is_out_of_patience(self) -> bool:
        queue = self._queue
        if queue.patience <= 0:
            self._consumer.searching = True
            return True
        return False

    def _may_have(self, place: Place, block: Block, index: int) -> bool:
        payload, history = _content(block, index)
        self._queue.patience -= cost_of(self._consumer, payload)
        if history is not None and history.barred and self._consumer.id in history.barred:
            return False
        if not matches(self._selects, payload, history):
            return False
        if history is None or history.group is None or history.group.admits(self._consumer):
            return True
        self._skip(history.group, place)
        return False

    def returned(self, place: Place) -> None:
        """Something is back: to be looked at again, if this consumer had come past it."""
        cursor = self._cursors.get(-place[0])
        if cursor is not None and place[1:] < cursor:
            again = self._again
            if len(again) > _FEW and len(again) > 2 * self._queue.depth:
                again[:] = {each for each in again if self._is_there(each)}
                heapify(again)
            heappush(again, place)

    def _is_there(self, place: Place) -> bool:
        for level in self._queue.levels:
            if level.priority == -place[0]:
                block = level.blocks.get(place[1])
                return block is not None and bool(block.flags[place[2]])
        return False

    # --- groups

    def _skip(self, group: Group, place: Place) -> None:
        skipped = self._skipped.get(group)
        if skipped is None:
            skipped = self._skipped[group] = []
            if group.skippers is None:
                group.skippers = []
            group.skippers.append(self._consumer)
        tidy(skipped, self._queue)
        heappush(skipped, place)

    def promote(self, group: Group) -> None:
        """The group may be had by this consumer now: its first message that was wanted is looked at again."""
        skipped = self._skipped.get(group)
        while skipped:
            place = heappop(skipped)
            if self._is_there(place):
                heappush(self._again, place)
                self._promoted[place] = group
                return
        if skipped is not None:
            del self._skipped[group]
            assert group.skippers is not None
            group.skippers.remove(self._consumer)

    def leave(self) -> None:
        """The consumer goes."""
        for group in self._skipped:
            assert group.skippers is not None
            group.skippers.remove(self._consumer)
        self._skipped.clear()
