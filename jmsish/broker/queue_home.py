"""What a queue asks of those around it: of the broker it lives in, and of who brings messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from jmsish.broker.order import Entry
    from jmsish.broker.portions import Job
    from jmsish.broker.queues import Queue

__all__ = ["Producer", "QueueHome"]


class QueueHome(Protocol):
    """What a queue asks of the broker it lives in."""

    def now(self) -> float:
        """Seconds of the wall clock."""

    def wake(self, queue: Queue) -> None:
        """Serve the queue's consumers in this step."""

    def resume(self, queue: Queue) -> None:
        """Serve the queue's consumers again in the next step, which is to come soon."""

    def begin(self, job: Job) -> None:
        """Do it, in this step as far as it goes."""

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
