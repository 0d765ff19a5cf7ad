"""Message groups: the messages of a group go to one consumer, in their order (JMSXGroupID, JMSXGroupSeq).

The first consumer that takes a message of a group owns the group until it leaves. Then the group passes on, but not
before everything of it that somebody still holds is settled or back: nobody gets a later message of a group while an
earlier one is in other hands. (Within one session it passes at once: there the order is the session's own.)

A group knows its waiting messages by their places. Each consumer has a heap of the groups it owns, by the place of the
first message of each; groups without an owner are in one that all look into. So what a consumer may have next is found
without looking at what waits for others, however much that is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from jmsish.broker.order import GROUPED, Block, Level, Place
from jmsish.engine.selecting import property_scanner

if TYPE_CHECKING:
    from jmsish.broker.consumers import Consumer
    from jmsish.broker.queues import Queue

MOST_IDLE = 65_536
"""So many groups without a message keep their owner; of more, the one that is idle longest is forgotten."""
_FEW = 64

Found = tuple[Place, Level, Block, int]
"""A place where something is to be had."""


class Group:
    """One group of one queue."""

    __slots__ = (
        "delays", "held", "id", "number", "offered", "offered_to", "owner", "pending", "queue", "session", "skippers"
    )  # fmt: skip

    def __init__(self, name: str, number: int, queue: Queue) -> None:
        self.id = name
        self.number = number
        self.queue = queue
        self.owner: Consumer | None = None
        self.session: object = None
        """Where messages of it were taken last."""
        self.held = 0
        """How many of its messages are in somebody's hands."""
        self.delays = 0
        """How many of its messages wait for their redelivery: until then no other is given out (D10)."""
        self.pending: list[Place] = []
        """A heap of the places of those to be had; some may be gone."""
        self.offered: Place | None = None
        self.offered_to: object = None
        """Under which place, and in whose heap, the group is found; anything else in a heap is out of date."""
        self.skippers: list[Consumer] | None = None
        """Selecting consumers that found messages for them while the group was not theirs."""

    @property
    def is_open(self) -> bool:
        """Whether its next message may be given out at all."""
        if self.delays:
            return False
        window = self.queue.settings.group_window
        return not window or self.held < window

    def admits(self, consumer: Consumer) -> bool:
        """Whether its next message may be given to this consumer."""
        if self.owner is not None:
            return self.owner is consumer and self.is_open
        return (not self.held or self.session is consumer.session) and self.is_open

    @property
    def holder(self) -> object:
        """Whose it is: the owner's, or where a former owner's session still holds messages, that session's."""
        if self.owner is not None:
            return self.owner
        return self.session if self.held else None

    def first(self) -> Found | None:
        """Where its first message stands."""
        pending = self.pending
        while pending:
            found = grouped_at(self.queue, pending[0])
            if found is not None:
                return found
            heappop(pending)
        return None


def grouped_at(queue: Queue, place: Place) -> Found | None:
    """The message of a group at a place, if it is to be had."""
    minus_priority, number, index = place
    for level in queue.levels:
        if level.priority == -minus_priority:
            block = level.blocks.get(number)
            if block is not None and block.flags[index] == GROUPED:
                return place, level, block, index
            break
    return None


def tidy(heap: list[Place], queue: Queue) -> None:
    """Sweep out the places of what is gone, once they are more than half: so a heap stays as small as the queue."""
    if len(heap) > _FEW and len(heap) > 2 * queue.depth:
        heap[:] = {place for place in heap if grouped_at(queue, place) is not None}
        heapify(heap)


Reader = Callable[[bytes], "tuple[str, bool] | None"]
"""The group of a message, and whether it is the last of it; None for none."""


def reader_of(key: str) -> Reader | None:
    """What reads the group of a message where an application property names it; None where group-id does."""
    if not key:
        return None
    scan = property_scanner(frozenset({key}))

    def read(payload: bytes) -> tuple[str, bool] | None:
        try:
            name = scan(payload).get(key)
        except (ValueError, IndexError, struct.error):
            return None
        return (name, False) if name and isinstance(name, str) else None

    return read


class Groups:
    """The groups of one queue."""

    __slots__ = ("_count", "_heads", "_idle", "_queue", "by_id", "owned")

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._count = 0
        self.by_id: dict[str, Group] = {}
        self.owned: dict[Consumer, dict[Group, None]] = {}
        self._heads: dict[object, list[tuple[Place, int, Group]]] = {}
        """By holder, the places of first messages. What is not true any more is found out when it is looked at."""
        self._idle: dict[Group, None] = {}
        """Owned, without a message: the longest idle in front."""

    def named(self, name: str) -> Group:
        group = self.by_id.get(name)
        if group is None:
            self._count += 1
            group = self.by_id[name] = Group(name, self._count, self._queue)
        elif self._idle:
            self._idle.pop(group, None)
        return group

    # --- what happens to messages

    def came(self, group: Group, place: Place) -> None:
        """A message of the group is to be had: a new one, or one that is back."""
        tidy(group.pending, self._queue)
        heappush(group.pending, place)
        if group.pending[0] is place:
            self._offer(group)

    def taken(self, group: Group, consumer: Consumer, *, last: bool) -> None:
        """A message of the group was taken. One that says it is the last ends the ownership (JMSXGroupSeq -1)."""
        group.held += 1
        group.session = consumer.session
        if group.owner is None:
            group.owner = consumer
            self.owned.setdefault(consumer, {})[group] = None
        if last and group.owner is consumer:
            self._disown(group, consumer)
        self._offer(group)

    def resolved(self, group: Group) -> None:
        """A message of the group is not in anybody's hands any more: it is gone, back, or waits for its redelivery."""
        group.held -= 1
        window = self._queue.settings.group_window
        if not group.held and group.owner is not None and not self._queue.settings.sticky_groups:
            self._disown(group, group.owner)
        if (not group.held and group.owner is None) or (window and group.held < window):
            self._offer(group)
            self._queue.notice()
            if group.owner is None:
                self._sweep(group.session)
        if not group.held and not group.delays and group.first() is None:
            self._rest(group)

    def delayed(self, group: Group) -> None:
        """One that is back waits for its redelivery, and the group with it."""
        group.delays += 1

    def delay_over(self, group: Group) -> None:
        """The message is about to be put back once more, as if it had been in somebody's hands."""
        group.delays -= 1
        group.held += 1
        self._offer(group)
        self._queue.notice()

    def _offer(self, group: Group) -> None:
        """Let whoever may have the group's first message find it."""
        if not group.is_open:
            return
        owner = group.owner
        if owner is None or owner.search is None:
            found = group.first()
            if found is None:
                return
            holder, offered = group.holder, group.offered
            if offered is None or group.offered_to is not holder or found[0] < offered:
                self._list(group, holder, found[0])
        for consumer in list(group.skippers or ()):
            if consumer.search is not None and group.admits(consumer):
                consumer.search.promote(group)

    def _list(self, group: Group, holder: object, place: Place) -> None:
        group.offered, group.offered_to = place, holder
        heappush(self._heads.setdefault(holder, []), (place, group.number, group))

    # --- whose a group is

    def left(self, consumer: Consumer) -> None:
        """A consumer goes: its groups pass on."""
        self._heads.pop(consumer, None)
        for group in list(self.owned.get(consumer, ())):
            self._disown(group, consumer)
            self._idle.pop(group, None)
            if group.held or group.delays or group.first() is not None:
                self._offer(group)
            else:
                del self.by_id[group.id]
        self._queue.notice()

    def _disown(self, group: Group, consumer: Consumer) -> None:
        group.owner = None
        mine = self.owned[consumer]
        del mine[group]
        if not mine:
            del self.owned[consumer]

    def _rest(self, group: Group) -> None:
        """Nothing of the group is left. Its owner keeps it, unless that are too many."""
        if group.owner is None:
            if self.by_id.get(group.id) is group:
                del self.by_id[group.id]
            return
        self._idle[group] = None
        if len(self._idle) > MOST_IDLE:
            longest = next(iter(self._idle))
            del self._idle[longest], self.by_id[longest.id]
            assert longest.owner is not None
            self._disown(longest, longest.owner)

    # --- who may have what

    def first_for(self, consumer: Consumer) -> Found | None:
        """The first message of a group that this consumer may have."""
        best: Found | None = None
        for holder in (consumer, consumer.session, None):
            if holder in self._heads:
                found = self._top(holder, consumer)
                if found is not None and (best is None or found[0] < best[0]):
                    best = found
        return best

    def _top(self, holder: object, consumer: Consumer) -> Found | None:
        heap = self._heads[holder]
        while heap:
            place, _, group = heap[0]
            if group.offered_to is holder and group.offered == place:
                if group.holder is holder and group.admits(consumer):
                    found = group.first()
                    if found is not None and found[0] == place:
                        return found
                    heappop(heap)
                    group.offered = None
                    if found is not None:
                        self._list(group, holder, found[0])
                    continue
                group.offered = None
            heappop(heap)
        del self._heads[holder]
        return None

    def _sweep(self, session: object) -> None:
        """Let go of a session that holds nothing any more."""
        heap = self._heads.get(session)
        while heap and (heap[0][2].offered_to is not session or heap[0][2].offered != heap[0][0]):
            heappop(heap)
        if heap is not None and not heap:
            del self._heads[session]


Selects = Callable[[bytes, int], bool]
"""Whether a consumer wants a message: its octets, and how often it failed so far."""
