"""What an outcome does to a message: it goes, comes back, comes back counted, or goes to the dead letters.

Whatever comes back stands at its place at once, and nobody is offered it before all input is in: all that one step of
the broker gives back, by ranges of dispositions, discharges and lost links, is one put-back. Messages that reached
their limit are gathered likewise and buried together, in the order of the queue they leave, whatever order their
outcomes came in.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from jmsish.broker.octets import annotated
from jmsish.broker.order import DYING, Entry, Place
from jmsish.engine.codec import bare_offset
from jmsish.engine.outcomes import Accepted, AmqpError, DeliveryState, Modified, Rejected, Released

if TYPE_CHECKING:
    from jmsish.broker.consumers import Consumer
    from jmsish.broker.queues import Queue

LARGEST_ANNOTATIONS = 1 << 16
"""Octets before the message proper up to which its receivers may add annotations. Each may add some each time that it
gives the message back, and no other limit is asked about that."""
REJECTED = "rejected"
TOO_MANY_ATTEMPTS = "max-delivery-attempts"


class Settlement:
    """Applies outcomes, and remembers who is to be buried."""

    __slots__ = ("_dead", "_numbers")

    def __init__(self) -> None:
        self._dead: dict[Queue, list[tuple[Place, int, Entry, str, AmqpError | None]]] = {}
        """Of each queue a heap, in its order."""
        self._numbers = count()

    def apply(self, consumer: Consumer, entry: Entry, outcome: DeliveryState) -> bool:
        """Apply a terminal outcome the receiver chose; False where the state is none."""
        queue = consumer.queue
        kind = type(outcome)
        if kind is Accepted:
            queue.archive(entry)
        elif kind is Released:
            queue.put_back(entry)
        elif isinstance(outcome, Modified):
            self._modify(consumer, entry, outcome, attempt=True)
        elif isinstance(outcome, Rejected):
            # "cause the delivery-count to be incremented in the header of the rejected message" (3.4.3).
            history = entry.past()
            history.count += 1
            history.attempts += 1
            self._doom(queue, entry, REJECTED, outcome.error)
        else:
            return False
        return True

    def apply_default(self, consumer: Consumer, entry: Entry, default: DeliveryState | None, *, seen: bool) -> None:
        """Apply the source's default outcome (3.5.3), or count one more delivery where none was given (W1).

        ``seen`` says that the message is known to have been handed over, as one acknowledged in a transaction that
        was rolled back is: only then it is an attempt that the limit counts (D5).
        """
        queue = consumer.queue
        if isinstance(default, Accepted):
            queue.archive(entry)
        elif isinstance(default, Released):
            queue.put_back(entry)
        elif isinstance(default, Modified):
            self._modify(consumer, entry, default, attempt=seen)
        else:
            # Nothing given, or rejected, which puts back (W3) with the count that 3.4.3 says.
            self._fail(queue, entry, attempt=seen)

    @property
    def has_dead(self) -> bool:
        """Whether somebody is to be buried."""
        return bool(self._dead)

    def take_dead(self, most: int) -> list[tuple[Queue, Entry, str, AmqpError | None]]:
        """Of those that reached their limit or were rejected, so many, in the order of their queues. Where others come
        back to the queue in portions, more of them may die: they are awaited."""
        taken: list[tuple[Queue, Entry, str, AmqpError | None]] = []
        if not self._dead:
            return taken
        for queue in sorted(self._dead, key=lambda each: each.name):
            dead = self._dead[queue]
            while dead and len(taken) < most and not queue.halts:
                _, _, entry, reason, error = heappop(dead)
                taken.append((queue, entry, reason, error))
            if not dead:
                del self._dead[queue]
        return taken

    def _doom(self, queue: Queue, entry: Entry, reason: str, error: AmqpError | None) -> None:
        """Nothing that comes in the same step about this delivery can save the message, or double it."""
        entry.state = DYING
        heappush(self._dead.setdefault(queue, []), (entry.place, next(self._numbers), entry, reason, error))

    def _modify(self, consumer: Consumer, entry: Entry, outcome: Modified, *, attempt: bool) -> None:
        queue = consumer.queue
        if outcome.message_annotations:
            payload = annotated(entry.payload, outcome.message_annotations)
            if bare_offset(payload) <= LARGEST_ANNOTATIONS or len(payload) <= len(entry.payload):
                queue.replace_payload(entry, payload)
        if outcome.undeliverable_here:
            entry.bar(consumer.id, queue.consumers)
        if outcome.delivery_failed:
            self._fail(queue, entry, attempt=attempt)
        else:
            queue.put_back(entry)

    def _fail(self, queue: Queue, entry: Entry, *, attempt: bool) -> None:
        history = entry.past()
        history.count += 1
        queue.redelivered += 1
        settings = queue.settings
        if attempt:
            history.attempts += 1
            # The put-back that makes attempts = maximum dead-letters (D8); but what has expired meanwhile has expired,
            # as the receiver found that says so with this outcome (scenarios 149, 177).
            over = settings.max_delivery_attempts and history.attempts >= settings.max_delivery_attempts
            if over and not (history.expires and history.expires <= queue.home.now()):
                self._doom(queue, entry, TOO_MANY_ATTEMPTS, None)
                return
        if settings.redelivery_delay:
            history.due = queue.home.now() + settings.delay_after(history.attempts)
        queue.put_back(entry)
