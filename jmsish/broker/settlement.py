"""What an outcome does to a message: it goes, comes back, comes back counted, or goes to the dead letters.

A :class:`Settlement` is one put-back: all that one range of dispositions, one discharge or one lost link gives back.
Messages stand at their places again at once; those that reached their limit are dead-lettered together at the end, in
the order of the queue they leave, whatever order the outcomes came in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from jmsish.broker.octets import annotated
from jmsish.broker.order import Entry
from jmsish.broker.queues import Queue
from jmsish.engine.outcomes import Accepted, AmqpError, DeliveryState, Modified, Rejected, Released

if TYPE_CHECKING:
    from jmsish.broker.consumers import Consumer

REJECTED = "rejected"
TOO_MANY_ATTEMPTS = "max-delivery-attempts"


class Graveyard(Protocol):
    """Where dead letters go."""

    def bury(self, queue: Queue, entry: Entry, reason: str, error: AmqpError | None) -> None:
        """Archive the entry and put what it carries into the dead-letter queue."""


class Settlement:
    """One put-back, to be finished once all its outcomes are applied."""

    __slots__ = ("_dead", "_graveyard")

    def __init__(self, graveyard: Graveyard) -> None:
        self._graveyard = graveyard
        self._dead: list[tuple[Queue, Entry, str, AmqpError | None]] = []

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
            self._dead.append((queue, entry, REJECTED, outcome.error))
        else:
            return False
        return True

    def apply_default(
        self, consumer: Consumer, entry: Entry, default: DeliveryState | None, *, seen: bool
    ) -> None:
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

    def finish(self) -> None:
        """Bury the dead, in the order of their queues."""
        if len(self._dead) > 1:
            self._dead.sort(key=lambda dead: (dead[0].name, dead[1].place))
        for queue, entry, reason, error in self._dead:
            self._graveyard.bury(queue, entry, reason, error)
        self._dead.clear()

    def _modify(self, consumer: Consumer, entry: Entry, outcome: Modified, *, attempt: bool) -> None:
        queue = consumer.queue
        if outcome.message_annotations:
            queue.replace_payload(entry, annotated(entry.payload, outcome.message_annotations))
        if outcome.undeliverable_here:
            history = entry.past()
            if history.barred is None:
                history.barred = set()
            history.barred.add(consumer.id)
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
            # The put-back that makes attempts = maximum dead-letters (D8).
            if settings.max_delivery_attempts and history.attempts >= settings.max_delivery_attempts:
                self._dead.append((queue, entry, TOO_MANY_ATTEMPTS, None))
                return
        if settings.redelivery_delay:
            history.due = queue.home.now() + settings.redelivery_delay
        queue.put_back(entry)
