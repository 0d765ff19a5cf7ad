"""Who takes from a queue, and the one place where messages are handed out.

Competing consumers are served in turn, one message each, those of the highest priority first. A consumer without
credit, or whose connection has too much unsent output, leaves the turn and comes back by :func:`ask`. One for which
nothing is there waits aside until something comes. Browsers look, and take nothing (D14).
"""

from __future__ import annotations

from bisect import insort
from collections import deque

from jmsish.broker.choosing import SLICE, Search, cost_of, first_after, has_for, matches, take_for
from jmsish.broker.groups import Selects
from jmsish.broker.order import FRONT, Entry, Place
from jmsish.broker.queues import NOBODY, Queue


class Consumer:
    """One taker of a queue. How a message travels is the subclass's affair."""

    __slots__ = (
        "barred_from", "copies", "id", "in_turn", "next_place", "priority", "queue", "search", "searching", "selects",
        "session", "wants_answer", "weight",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        queue: Queue,
        *,
        copies: bool = False,
        selects: Selects | None = None,
        priority: int = 0,
    ) -> None:
        self.id = number
        self.queue = queue
        self.copies = copies
        """A browser."""
        self.selects = selects
        """Whether it wants a message, by its octets and its failed attempts; None wants all."""
        self.priority = priority
        """Among those that could take, the highest are served first."""
        self.session: object = self
        """Those of one session keep their order among each other themselves."""
        self.weight = 1
        """What it costs to ask whether it wants a message, where 1 is the least."""
        self.search = None if selects is None or copies else Search(self, queue, selects)
        self.searching = False
        """There is more to look at than was looked at in this step."""
        self.in_turn = False
        self.wants_answer = False
        """It drains, and has not been told yet that nothing is left."""
        self.barred_from: Place = FRONT
        """All barred places before this one are barred for this consumer."""
        self.next_place: Place = FRONT
        """Where a browser goes on."""

    def can_take(self) -> bool:
        """Credit is there, and room for output."""
        raise NotImplementedError

    def lacks_room(self) -> bool:
        """Credit is there, but no room for output: it will ask again."""
        raise NotImplementedError

    def deliver(self, entry: Entry) -> None:
        """Send a message that is acquired for this consumer."""
        raise NotImplementedError

    def show(self, payload: bytes, count: int, expires: float) -> bool:
        """Send a copy of a message that stays where it is; False where it is more than the receiver takes."""
        raise NotImplementedError

    def drained(self) -> None:
        """Answer a drain: all that was there has been sent."""
        raise NotImplementedError

    def lost_queue(self) -> None:
        """The queue was deleted."""
        raise NotImplementedError


_RANKS = 16


class Turns:
    """Who of a queue's consumers is served when. Each that waits is in one of ``ranks``, ``idle`` and ``standby``."""

    __slots__ = ("_most", "_seats", "chosen", "idle", "ranks", "standby", "unseated")

    def __init__(self) -> None:
        self._seats: dict[int, deque[Consumer]] = {}
        self.ranks: list[tuple[int, deque[Consumer]]] = []
        """By falling priority; of each, the consumer served next in front."""
        self._most = _RANKS
        """With so many of them it is looked which are empty: a priority is any number, and consumers come and go."""
        self.idle: list[Consumer] = []
        """Nothing was there for them, until there are news."""
        self.standby: list[Consumer] = []
        """Those that an exclusive queue does not serve now."""
        self.chosen: Consumer | None = None
        """The one that an exclusive queue serves."""
        self.unseated = False
        """All are to be seated anew: who may take has changed."""

    def seat(self, consumer: Consumer) -> None:
        seats = self._seats.get(consumer.priority)
        if seats is None:
            if len(self.ranks) >= self._most:
                self.ranks = [each for each in self.ranks if each[1]]
                self._seats = dict(self.ranks)
                self._most = 2 * len(self.ranks) + _RANKS
            seats = self._seats[consumer.priority] = deque()
            insort(self.ranks, (consumer.priority, seats), key=lambda each: -each[0])
        seats.append(consumer)

    def unseat(self, consumer: Consumer) -> None:
        for seats in (self.idle, self.standby, *(ready for _, ready in self.ranks)):
            if consumer in seats:
                seats.remove(consumer)

    def seat_idle(self) -> None:
        """There are news."""
        idle, self.idle = self.idle, []
        for consumer in idle:
            self.seat(consumer)

    def seat_anew(self, chosen: Consumer | None) -> None:
        """Seat all, or on an exclusive queue the chosen one alone."""
        self.unseated = False
        self.chosen = chosen
        waiting = [consumer for _, ready in self.ranks for consumer in ready] + self.idle + self.standby
        for _, ready in self.ranks:
            ready.clear()
        self.idle, self.standby = [], []
        for consumer in waiting:
            if chosen is None or consumer is chosen:
                self.seat(consumer)
            else:
                self.standby.append(consumer)


def enter(consumer: Consumer) -> None:
    """A consumer joins its queue; it is served once it asks."""
    queue = consumer.queue
    if queue.consumers is NOBODY:
        queue.consumers = {}
    queue.consumers[consumer.id] = consumer
    if queue.turns is None:
        queue.turns = Turns()
    if consumer.search is not None:
        if queue.searches is None:
            queue.searches = []
        queue.searches.append(consumer.search)
        queue.special += 1
    if queue.settings.exclusive_consumer:
        queue.turns.unseated = True


def leave(consumer: Consumer) -> None:
    """A consumer goes; what it holds is not touched here."""
    queue, turns = consumer.queue, consumer.queue.turns
    if queue.consumers.pop(consumer.id, None) is None or turns is None:
        return
    turns.unseat(consumer)
    for group in (queue.browsers, queue.draining):
        if group and consumer in group:
            group.remove(consumer)
    queue.wanting -= consumer.in_turn
    consumer.in_turn = consumer.wants_answer = consumer.searching = False
    if consumer.search is not None and queue.searches is not None:
        queue.searches.remove(consumer.search)
        queue.special -= 1
        consumer.search.leave()
        consumer.search = None
    if queue.groups is not None:
        queue.groups.left(consumer)
    if consumer is turns.chosen:
        turns.unseated = True
        queue.notice()
    elif not queue.consumers:
        queue.turns = queue.searches = None
        queue.consumers = NOBODY


def ask(consumer: Consumer, *, drain: bool = False) -> None:
    """The consumer has credit (or room again), or drains: it takes its turn in this step."""
    queue, turns = consumer.queue, consumer.queue.turns
    if queue.deleted or turns is None:
        return
    if not consumer.in_turn:
        consumer.in_turn = True
        queue.wanting += 1
        if consumer.copies:
            if queue.browsers is None:
                queue.browsers = []
            queue.browsers.append(consumer)
        elif turns.chosen is None or turns.chosen is consumer:
            turns.seat(consumer)
        else:
            turns.standby.append(consumer)
    if drain and not consumer.wants_answer:
        consumer.wants_answer = True
        if queue.draining is None:
            queue.draining = []
        queue.draining.append(consumer)
    queue.wake()


def ask_all(queue: Queue) -> None:
    """Each consumer takes its turn, whatever was noted of that: the program was interrupted in the middle of it."""
    turns = queue.turns
    if turns is not None:
        queue.turns = Turns()
        queue.turns.chosen, queue.turns.unseated = turns.chosen, True
        queue.draining = [consumer for consumer in queue.consumers.values() if consumer.wants_answer] or None
        queue.browsers, queue.wanting = None, 0
        for consumer in queue.consumers.values():
            consumer.in_turn = False
            ask(consumer)
    queue.dirty = False
    queue.stir()


def serve(queue: Queue, now: float, patience: int = SLICE) -> None:
    """Hand out what is available to those that want it, then answer those that drain.

    As many messages are looked at for selectors as ``patience`` says; what of it is left is the queue's.
    """
    queue.dirty = False
    queue.patience = patience
    turns = queue.turns
    if turns is None:
        return
    if turns.unseated:
        _choose(queue, turns)
    if queue.news:
        queue.news = False
        if turns.idle:
            turns.seat_idle()
    if queue.passing is None or _has_passed(queue, turns):
        for _, ready in turns.ranks:
            if ready:
                _serve_takers(queue, turns, ready, now)
    if queue.browsers:
        _serve_browsers(queue, now)
    if queue.draining:
        _answer_drains(queue)


def _choose(queue: Queue, turns: Turns) -> None:
    """Of an exclusive queue the consumer of the highest priority takes, of equals the first that came."""
    before, chosen = turns.chosen, None
    if queue.settings.exclusive_consumer:
        takers = [consumer for consumer in queue.consumers.values() if not consumer.copies]
        chosen = max(takers, key=lambda each: each.priority, default=None)
        if chosen is not before and queue.acquired and queue.passing is None:
            queue.passing = turns if before is None else before.session
    elif queue.passing is not None:
        queue.passing = None
    if chosen is not None or not queue.settings.exclusive_consumer:
        turns.seat_anew(chosen)


def _has_passed(queue: Queue, turns: Turns) -> bool:
    """Whether an exclusive queue is free for its next consumer: nothing earlier is in other hands, or in its own."""
    if queue.acquired and (turns.chosen is None or turns.chosen.session is not queue.passing):
        return False
    queue.passing = None
    return True


def _serve_takers(queue: Queue, turns: Turns, ready: deque[Consumer], now: float) -> None:
    unfinished: list[Consumer] = []
    while ready:
        consumer = ready[0]
        if not consumer.can_take():
            ready.popleft()
            consumer.in_turn = False
            queue.wanting -= 1
            continue
        if not queue.special:
            entry = queue.take()
            if entry is None:
                break
        else:
            entry = take_for(queue, consumer)
            if entry is None:
                if not queue.available:
                    break
                # Another may have what is left.
                ready.popleft()
                (unfinished if consumer.searching else turns.idle).append(consumer)
                continue
        history = entry.history
        if history is not None and history.expires and history.expires <= now:
            queue.expire(entry)
            continue
        consumer.deliver(entry)
        if len(ready) > 1:
            ready.rotate(-1)
    if unfinished:
        # The first used up the patience of this step; the next step begins with another.
        ready.extend(unfinished[1:])
        ready.append(unfinished[0])
        queue.home.resume(queue)


def _serve_browsers(queue: Queue, now: float) -> None:
    browsers = queue.browsers or []
    for browser in list(browsers):
        browser.searching = False
        while browser.can_take():
            if not _show_next(queue, browser, now):
                break
        else:
            browsers.remove(browser)
            browser.in_turn = False
            queue.wanting -= 1
        if browser.searching:
            queue.home.resume(queue)
    if not browsers:
        queue.browsers = None


def _show_next(queue: Queue, browser: Consumer, now: float) -> bool:
    """Show a browser the next message, if it wants that; False if there is none, or none in this step."""
    found = first_after(queue, browser.next_place)
    if found is None:
        return False
    (minus_priority, number, index), payload, history = found
    if browser.selects is not None:
        if queue.patience <= 0:
            browser.searching = True
            return False
        queue.patience -= cost_of(browser, payload)
    browser.next_place = (minus_priority, number, index + 1)
    if history is not None and history.expires and history.expires <= now:
        return True
    if browser.selects is None or matches(browser.selects, payload, history):
        if not browser.show(payload, *((0, 0.0) if history is None else (history.count, history.expires))):
            queue.patience -= 1
            browser.searching = queue.patience <= 0
            return not browser.searching
    return True


def _answer_drains(queue: Queue) -> None:
    waiting = []
    for consumer in queue.draining or ():
        if consumer.searching or (consumer.lacks_room() and _has_more(queue, consumer)):
            waiting.append(consumer)
        else:
            consumer.wants_answer = False
            consumer.drained()
    queue.draining = waiting or None


def _has_more(queue: Queue, consumer: Consumer) -> bool:
    if consumer.copies:
        return first_after(queue, consumer.next_place) is not None
    return has_for(queue, consumer)
