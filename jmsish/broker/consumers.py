"""Who takes from a queue, and the one place where messages are handed out.

Competing consumers are served in turn, one message each. A consumer without credit, or whose connection has too much
unsent output, leaves the turn and comes back by :func:`ask`. Browsers look, and take nothing (D14).
"""

from __future__ import annotations

from collections import deque

from jmsish.broker.order import FRONT, Entry, Place
from jmsish.broker.queues import Queue


class Consumer:
    """One taker of a queue. How a message travels is the subclass's affair."""

    __slots__ = ("barred_from", "copies", "id", "in_turn", "next_place", "queue", "wants_answer")

    def __init__(self, number: int, queue: Queue, *, copies: bool = False) -> None:
        self.id = number
        self.queue = queue
        self.copies = copies
        """A browser."""
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

    def show(self, payload: bytes, count: int, expires: float) -> None:
        """Send a copy of a message that stays where it is."""
        raise NotImplementedError

    def drained(self) -> None:
        """Answer a drain: all that was there has been sent."""
        raise NotImplementedError

    def lost_queue(self) -> None:
        """The queue was deleted."""
        raise NotImplementedError


def enter(consumer: Consumer) -> None:
    """A consumer joins its queue; it is served once it asks."""
    queue = consumer.queue
    queue.consumers[consumer.id] = consumer


def leave(consumer: Consumer) -> None:
    """A consumer goes; what it holds is not touched here."""
    queue = consumer.queue
    queue.consumers.pop(consumer.id, None)
    for group in (queue.ready, queue.browsers, queue.draining):
        if group and consumer in group:
            group.remove(consumer)
    consumer.in_turn = consumer.wants_answer = False
    if not queue.consumers:
        queue.ready = None


def ask(consumer: Consumer, *, drain: bool = False) -> None:
    """The consumer has credit (or room again), or drains: it takes its turn in this step."""
    queue = consumer.queue
    if queue.deleted:
        return
    if not consumer.in_turn:
        consumer.in_turn = True
        if not consumer.copies:
            if queue.ready is None:
                queue.ready = deque()
            queue.ready.append(consumer)
        elif queue.browsers is None:
            queue.browsers = [consumer]
        else:
            queue.browsers.append(consumer)
    if drain and not consumer.wants_answer:
        consumer.wants_answer = True
        if queue.draining is None:
            queue.draining = []
        queue.draining.append(consumer)
    queue.wake()


def serve(queue: Queue, now: float) -> None:
    """Hand out what is available to those that want it, then answer those that drain."""
    queue.dirty = False
    if queue.ready:
        _serve_takers(queue, queue.ready, now)
    if queue.browsers:
        _serve_browsers(queue, now)
    if queue.draining:
        _answer_drains(queue)


def _serve_takers(queue: Queue, ready: deque[Consumer], now: float) -> None:
    passed: list[Consumer] = []
    while ready:
        consumer = ready[0]
        if not consumer.can_take():
            ready.popleft()
            consumer.in_turn = False
            continue
        entry = queue.take_for(consumer) if queue.barred else queue.take()
        if entry is None:
            if not queue.barred:
                break
            # What is left is barred for this one; another may have it.
            ready.popleft()
            passed.append(consumer)
            continue
        history = entry.history
        if history is not None and history.expires and history.expires <= now:
            queue.expire(entry)
            continue
        consumer.deliver(entry)
        if len(ready) > 1:
            ready.rotate(-1)
    ready.extend(passed)


def _serve_browsers(queue: Queue, now: float) -> None:
    browsers = queue.browsers or []
    for browser in list(browsers):
        while browser.can_take():
            found = queue.first_after(browser.next_place)
            if found is None:
                break
            (minus_priority, number, index), payload, history = found
            browser.next_place = (minus_priority, number, index + 1)
            if history is None:
                browser.show(payload, 0, 0.0)
            elif not history.expires or history.expires > now:
                browser.show(payload, history.count, history.expires)
        else:
            browsers.remove(browser)
            browser.in_turn = False
    if not browsers:
        queue.browsers = None


def _answer_drains(queue: Queue) -> None:
    waiting = []
    for consumer in queue.draining or ():
        if consumer.lacks_room() and _has_more(queue, consumer):
            waiting.append(consumer)
        else:
            consumer.wants_answer = False
            consumer.drained()
    queue.draining = waiting or None


def _has_more(queue: Queue, consumer: Consumer) -> bool:
    if consumer.copies:
        return queue.first_after(consumer.next_place) is not None
    return queue.has_for(consumer)
