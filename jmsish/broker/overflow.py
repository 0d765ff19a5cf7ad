"""What goes when a queue that drops its oldest messages is over a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jmsish.broker.queues import Queue


def shed(queue: Queue) -> None:
    """Drop until the queue is within its limits, or nothing is left that could go: what somebody holds stays."""
    settings = queue.settings
    while (settings.max_messages and queue.depth > settings.max_messages) or (
        settings.max_octets and queue.octets > settings.max_octets
    ):
        if not _drop_one(queue):
            return
        queue.dropped += 1


def _drop_one(queue: Queue) -> bool:
    """The oldest of the least priority goes, so that what is urgent does not give way to what is not.

    Where all others wait for their time, the one whose time comes first goes, and not the one that just came.
    """
    if queue.calendar is not None and queue.available <= 1 and queue.calendar.drop_first():
        return True
    for level in reversed(queue.levels):
        entry = queue.take_from(level)
        if entry is not None:
            queue.archive(entry)
            return True
    return False
