"""How much memory the contents of a broker or a router account for: by counts, not by looking at each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jmsish.broker.guests import Guest
    from jmsish.broker.queues import Queue

__all__ = ["blocks_of"]

# Measured, with what the driver has of a connection, and half as much again: what is counted too high hides a loss for
# a while, what is counted too low has everything looked at in vain.
CONNECTION: Final = 250
LINK: Final = 60
QUEUE: Final = 40
MESSAGE: Final = 8


def blocks_of(connections: Iterable[Guest], queues: Iterable[Queue] = ()) -> int:
    """About how many blocks of memory these are made of, whatever the sizes of the blocks."""
    blocks = 0
    for connection in connections:
        blocks += CONNECTION + LINK * connection.engine.remote_link_count
    for queue in queues:
        blocks += QUEUE + MESSAGE * queue.depth
    return blocks
