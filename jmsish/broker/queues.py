"""A queue: messages in the order (priority falling, sequence rising), taken, put back at their place, or gone.

Nothing here knows AMQP. Whoever changes a queue calls :meth:`Queue.wake` at most; the broker then serves each woken
queue once, after all input is processed. So a range of dispositions or a discharge is one put-back, and nobody is
offered the second of two returned messages before the first (redelivery b.5, 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.arrival import Arrival
from jmsish.broker.calendar import Calendar
from jmsish.broker.choosing import SLICE, Search
from jmsish.broker.groups import Groups, reader_of
from jmsish.broker.order import (
    ACQUIRED,
    ARCHIVED,
    BARRED,
    FREE,
    FRONT,
    RETURNED,
    Block,
    Entry,
    History,
    Level,
    Place,
)
from jmsish.broker.overflow import shed
from jmsish.broker.policy import QueueSettings

if TYPE_CHECKING:
    from jmsish.broker.consumers import Consumer, Turns
    from jmsish.broker.queue_home import Producer, QueueHome

NOBODY: Final[dict[Any, Any]] = {}
"""Of an idle queue: who has none needs no dictionary of its own. Never written to."""


class Queue:
    """One queue. ``depth`` is all it owns: available, acquired, and waiting for a time."""

    kind: Final = "queue"
    __slots__ = (
        "acquired", "barred", "browsers", "calendar", "consumers", "dead_lettered", "deleted", "depth", "dequeued",
        "dirty", "draining", "dropped", "drops_head", "enqueued", "expired_count", "group_of", "groups", "halts",
        "home", "levels", "limited", "name", "news", "octets", "owner", "passing", "patience", "peer", "plain",
        "producers", "redelivered", "searches", "settings", "special", "starved", "turns", "wanting",
    )  # fmt: skip

    def __init__(self, name: str, settings: QueueSettings, home: QueueHome, owner: object = None) -> None:
        self.name = name
        self.peer: Queue | None = None
        """The queue it is paired with: what comes in here goes there (see `redirects`)."""
        self._adopt(settings)
        self.home = home
        self.owner = owner
        """The connection a temporary queue belongs to."""
        self.levels: list[Level] = []
        self.depth = self.acquired = self.octets = self.barred = self.halts = 0
        self.special = 0
        """Messages that not everybody may have, and consumers that want not every message: 0 makes all simple."""
        self.wanting = 0
        """How many consumers and browsers wait for messages."""
        self.dirty = self.deleted = False
        self.news = False
        """Something came that those may want who found nothing before."""
        self.passing: object = None
        """An exclusive queue goes to another consumer, once all is settled that others than this session's hold."""
        self.patience = SLICE
        self.consumers: dict[int, Consumer] = NOBODY
        self.turns: Turns | None = None
        """Who is served when; made for the first consumer."""
        self.searches: list[Search] | None = None
        self.groups: Groups | None = None
        self.browsers: list[Consumer] | None = None
        self.draining: list[Consumer] | None = None
        self.producers: dict[Producer, None] = NOBODY
        self.starved: list[Producer] | None = None
        """Producers that wait for room."""
        self.calendar: Calendar | None = None
        self.enqueued = self.dequeued = self.redelivered = 0
        self.expired_count = self.dead_lettered = self.dropped = 0

    def _adopt(self, settings: QueueSettings) -> None:
        self.settings = settings
        self.drops_head = settings.overflow == "drop-head"
        self.group_of = reader_of(settings.group_key) if settings.message_groups else None
        """Reads the group of a message, where that is not its group-id."""
        self.plain = self.group_of is None and self.peer is None
        """What comes without a past has only to be appended."""
        limits = settings.max_messages or settings.max_octets or not settings.delayed_delivery
        self.limited = bool(limits or self.peer is not None)
        """A message may be refused."""

    @property
    def inbox(self) -> Queue:
        """The queue that its messages go into: itself, or the one it is paired with."""
        return self if self.peer is None else self.peer

    # --- coming in

    def append(self, payload: bytes, priority: int) -> None:
        """A message without a past becomes visible, behind all of its priority."""
        if not self.plain:
            self.add(Arrival(payload, priority))
            return
        for level in self.levels:
            if level.priority == priority:
                break
        else:
            level = self._new_level(priority)
        level.append(payload)
        self.depth += 1
        self.octets += len(payload)
        self.enqueued += 1
        if self.wanting:
            self.stir()
        if self.drops_head:
            shed(self)

    def add(self, arrival: Arrival) -> None:
        """A message becomes visible now, or when its time comes."""
        if arrival.due > 0.0:
            if arrival.due > self.home.now():
                self.depth += 1
                self.octets += len(arrival.payload)
                self.enqueued += 1
                self._dates().delay(arrival.due, arrival, arrival.history)
                if self.settings.overflow == "drop-head":
                    shed(self)
                return
        if self.peer is not None:
            self.peer.take_in(arrival)
            return
        self.take_in(arrival)

    def take_in(self, arrival: Arrival) -> None:
        """A message becomes visible here and now, behind all of its priority, whoever this queue is paired with."""
        history = arrival.history
        group = arrival.group if self.group_of is None else self.group_of(arrival.payload)
        if group is not None and self.settings.message_groups:
            history = self._join(group, history)
        elif history is None:
            if self.plain:
                self.append(arrival.payload, arrival.priority)
                return
            history = History()
        self.depth += 1
        self.octets += len(arrival.payload)
        self.enqueued += 1
        self._place(arrival.payload, arrival.priority, history)
        if self.drops_head:
            shed(self)

    def _join(self, group: tuple[str, bool], history: History | None) -> History:
        if self.groups is None:
            self.groups = Groups(self)
        if history is None:
            history = History()
        name, history.last = group
        history.group = self.groups.named(name)
        return history

    def refusal(self, messages: int, octets: int) -> str | None:
        """Why so much more cannot come in, or None."""
        if self.deleted:
            return f"the queue {self.name!r} is gone"
        if self.peer is not None:
            return self.peer.lack_of_room(messages, octets)
        return self.lack_of_room(messages, octets)

    def lack_of_room(self, messages: int, octets: int) -> str | None:
        """As :meth:`refusal`, whoever this queue is paired with."""
        settings = self.settings
        if settings.overflow != "reject":
            return None
        if settings.max_messages and self.depth + messages > settings.max_messages:
            said = f"{self.depth} messages and {messages} more, at most {settings.max_messages}"
        elif settings.max_octets and self.octets + octets > settings.max_octets:
            said = f"{self.octets} octets and {octets} more, at most {settings.max_octets}"
        else:
            return None
        return f"the queue {self.name!r} is full: {said}"

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
        if history.expires:
            self._dates().note_expiry(history.expires, entry.place)
        self._open(entry, history)

    def wake(self) -> None:
        """Have the consumers served at the end of this step."""
        if not self.dirty:
            self.dirty = True
            self.home.wake(self)

    def stir(self) -> None:
        """Something came that may be wanted: have all consumers served that wait."""
        self.news = True
        if not self.dirty:
            self.dirty = True
            self.home.wake(self)

    def notice(self) -> None:
        """As :meth:`stir`, if anybody waits."""
        if self.wanting:
            self.stir()

    def change(self, settings: QueueSettings) -> None:
        """Other settings, from now on."""
        self._adopt(settings)
        self._feed()
        if self.turns is not None:
            self.turns.unseated = True
            self.notice()

    # --- being taken

    @property
    def available(self) -> int:
        return sum(level.available for level in self.levels)

    def take(self) -> Entry | None:
        """The first message that anybody may have."""
        for level in self.levels:
            if level.free:
                self.acquired += 1
                return level.take()
        return None

    def take_at(self, level: Level, block: Block, index: int, consumer: Consumer | None = None) -> Entry:
        """The available message at a place, chosen for this consumer."""
        self.acquired += 1
        self._close(level, block, index)
        entry = level.entry_at(block, index)
        history = entry.history
        if history is not None and history.group is not None:
            assert self.groups is not None
            if consumer is not None:
                self.groups.taken(history.group, consumer, last=history.last)
            else:
                history.group = None
        return entry

    def take_any(self) -> Entry | None:
        """The first message, whoever may have it, for nobody: it will be archived."""
        for level in self.levels:
            entry = self.take_from(level)
            if entry is not None:
                return entry
        return None

    def take_from(self, level: Level) -> Entry | None:
        """The first message of a level, likewise."""
        if not self.special:
            if not level.free:
                return None
            self.acquired += 1
            return level.take()
        found = level.first_available(0, 0)
        return None if found is None else self.take_at(level, *found)

    def _close(self, level: Level, block: Block, index: int) -> None:
        flag = block.flags[index]
        if flag != FREE:
            self.special -= 1
            self.barred -= flag == BARRED
        level.close(block, index)

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
        if history is not None:
            self._return(entry, history)
            return
        entry.block.level.open(entry)
        if self.searches:
            self._tell_searches(entry.place)
        if self.wanting:
            self.stir()

    def _return(self, entry: Entry, history: History) -> None:
        """Back at its place; or expired meanwhile, or to be redelivered after a delay, in which its group waits."""
        group = history.group
        now = self.home.now() if history.expires or history.due else 0.0
        due, history.due = history.due, 0.0
        if history.expires and history.expires <= now:
            self._expire(entry)
        elif due > now:
            self._dates().delay(due, entry, history)
            if group is not None and self.groups is not None:
                self.groups.delayed(group)
        else:
            if history.barred:
                # Who cannot have it may be the very one that its group belongs to: it is out of the group's order.
                history.group = None
            self._open(entry, history)
            if self.searches:
                self._tell_searches(entry.place)
        if group is not None and self.groups is not None:
            self.groups.resolved(group)

    def _open(self, entry: Entry, history: History) -> None:
        """A message with a past is to be had, by all, or by some."""
        entry.block.level.open(entry)
        if history.barred:
            self.barred += 1
            self.special += 1
            place = entry.place
            for consumer in self.consumers.values():
                if place < consumer.barred_from:
                    consumer.barred_from = place
        elif history.group is not None and self.groups is not None:
            self.special += 1
            self.groups.came(history.group, entry.place)
        if self.wanting:
            self.stir()

    def _tell_searches(self, place: Place) -> None:
        for search in self.searches or ():
            search.returned(place)

    def archive(self, entry: Entry) -> None:
        """Gone for good: accepted, dead-lettered, dropped."""
        if entry.state != ACQUIRED:
            return
        self.acquired -= 1
        self._remove(entry)

    def _remove(self, entry: Entry) -> None:
        if entry.history is not None:
            self._part_with(entry, entry.history)
        entry.state = ARCHIVED
        entry.work = None
        if self.deleted:
            return
        self.depth -= 1
        self.octets -= len(entry.payload)
        block = entry.block
        block.level.remove(block, entry.index)
        self.dequeued += 1
        if self.passing and not self.acquired:
            self.notice()
        if self.starved and not self.is_full:
            self._feed()

    def _feed(self) -> None:
        """Have the producers look again that wait for room."""
        starved, self.starved = self.starved, None
        for producer in starved or ():
            producer.top_up()

    def _part_with(self, entry: Entry, history: History) -> None:
        """A message with a past is about to be gone."""
        if history.expires and self.calendar is not None:
            self.calendar.expiring -= 1
        if entry.state == ACQUIRED and history.group is not None and self.groups is not None:
            self.groups.resolved(history.group)

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
                self._close(block.level, block, index)
                self._open(standing, history)
                consumer.barred_from = min(consumer.barred_from, entry.place)
                if consumer.search is not None:
                    consumer.search.returned(entry.place)

    def purge(self) -> int:
        """Remove all that is available; what somebody holds stays. Returns how many went."""
        swept = [level.sweep() for level in self.levels]
        gone, octets = sum(messages for messages, _ in swept), sum(octets for _, octets in swept)
        self.depth -= gone
        self.octets -= octets
        self.dequeued += gone
        while (entry := self.take_any()) is not None:
            self.archive(entry)
            gone += 1
        if self.starved and not self.is_full:
            self._feed()
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
        if self.calendar is not None and not self.deleted:
            self.calendar.on_time(now)

    def show(self, arrival: Arrival) -> None:
        """The time of a delayed message has come."""
        self.depth -= 1
        self.octets -= len(arrival.payload)
        self.enqueued -= 1
        arrival.due = 0.0
        self.add(arrival)

    def expire(self, entry: Entry) -> None:
        """An entry in hand turned out to be past its time."""
        self.acquired -= 1
        self._expire(entry)

    def expire_at(self, block: Block, index: int) -> None:
        """The available message at a place is past its time."""
        entry = block.slots[index]
        assert isinstance(entry, Entry)
        self._close(block.level, block, index)
        self._expire(entry)

    def _expire(self, entry: Entry) -> None:
        self._remove(entry)
        self.dequeued -= 1
        self.expired_count += 1
        self.home.expired(self, entry)

    def _dates(self) -> Calendar:
        if self.calendar is None:
            self.calendar = Calendar(self)
        return self.calendar


__all__ = ["FRONT", "Arrival", "Queue"]
