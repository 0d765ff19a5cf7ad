"""Portions: what would keep everybody waiting is done a little in each step, and between two steps others have turns.

Theory of operation.  Twenty octets can name a hundred thousand messages, the end of a connection gives back as many,
and as many may be due in one moment. Such a thing is a *job*. What one step does of all jobs together is one portion,
a millisecond of work or two; while something is left the broker is ``unfinished``, so its driver calls the next step
soon, and hears who has come before it does. Several jobs take turns.

What comes back is one put-back all the same, however many portions it takes: while messages come back to a queue it is
*halted*, and nobody is served from it. So nobody is offered the second of two messages before the first, whatever order
they come back in. It takes no part of anybody's time: what is asked of the queue meanwhile is done when all are back.
Each message is at any time with who had it, or in the queue again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from jmsish.broker.outgoing import OutgoingLink
    from jmsish.broker.queues import Queue
    from jmsish.broker.settlement import Settlement
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession

__all__ = ["BURIAL", "LEAST", "PORTION", "GivingBack", "Halt", "Job", "Portions"]

PORTION: Final = 1000
"""What a step does of all jobs, in messages that change hands: each is one or two microseconds of work, and twice as
much where it is counted, kept from somebody or delayed."""

LEAST: Final = 50
"""One of several jobs does so much when it has its turn."""

BURIAL: Final = 10
"""What it is worth that a message becomes a dead letter: it is written anew, with what is said of it."""


class Job(Protocol):
    """Something that is done little by little."""

    def go_on(self, most: int) -> int:
        """Do so much, in messages, or hardly more; what it was worth. 0: there was nothing left, nor will be."""


class Portions:
    """The jobs of one broker."""

    __slots__ = ("_jobs", "_left", "size")

    def __init__(self, size: int = PORTION) -> None:
        self._jobs: deque[Job] = deque()
        self._left = self.size = size

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def add(self, job: Job) -> None:
        """It is begun by the next step."""
        self._jobs.append(job)

    def begin(self, job: Job) -> None:
        """Do it now, as far as this step may; if something is left, in the next ones."""
        self._jobs.append(job)  # first: after a fault in the middle it goes on, too
        if self._do(job, self._left):
            self._jobs.remove(job)

    def go_on(self) -> None:
        """Another step: do a portion of what is left."""
        self._left = self.size
        while self._jobs and self._left > 0:
            job = self._jobs[0]
            if self._do(job, min(max(self._left // len(self._jobs), LEAST), self._left)):
                self._jobs.remove(job)
            else:
                self._jobs.rotate(-1)

    def finish(self) -> None:
        """Do all that is left: there will be no other step."""
        while self._jobs:
            self.go_on()

    def _do(self, job: Job, most: int) -> bool:
        """So much of a job; whether that was the last of it."""
        end = self._left - most
        while self._left > end:
            worth = job.go_on(self._left - end)
            if not worth:
                return True
            self._left -= worth
        return False


class Halt:
    """Queues from which nobody is served until it is lifted; several of them may halt the same."""

    __slots__ = ("_queues",)

    def __init__(self, queues: Iterable[Queue] = ()) -> None:
        self._queues: dict[Queue, None] = {}
        for queue in queues:
            self.add(queue)

    def add(self, queue: Queue) -> None:
        if queue not in self._queues:
            self._queues[queue] = None
            queue.halts += 1

    def lift(self) -> None:
        """What was asked of the queues meanwhile is done in this step."""
        queues, self._queues = self._queues, {}
        for queue in queues:
            queue.halts -= 1
            if queue.dirty and not queue.halts:
                queue.home.wake(queue)


class GivingBack:
    """A job: nothing more is heard of some deliveries, and each meets the default outcome, in their order."""

    __slots__ = ("_consumers", "_deliveries", "_halt", "_session", "_settlement")

    def __init__(
        self,
        settlement: Settlement,
        deliveries: list[Delivery],
        consumers: Mapping[Link, OutgoingLink],
        session: EngineSession | None = None,
    ) -> None:
        """``consumers`` are those of their links, by now. With a ``session`` they are in its ledger, and one that has
        gone from there was decided otherwise, by its receiver."""
        self._settlement = settlement
        self._deliveries = deliveries[::-1]  # the next one at the end, so that each is let go of when it is given back
        self._consumers = consumers
        self._session = session
        self._halt = Halt(consumer.queue for consumer in consumers.values())

    def go_on(self, most: int) -> int:
        settlement, session, deliveries = self._settlement, self._session, self._deliveries
        count = min(most, len(deliveries))
        for _ in range(count):
            delivery = deliveries.pop()
            if session is not None and session.outgoing.get(delivery.id) is not delivery:
                continue
            consumer = self._consumers.get(delivery.link)
            if consumer is not None:
                consumer.give_up(settlement, delivery)
            if session is not None:
                session.forget(delivery)
        if not count:
            self._halt.lift()
        return count
