"""Queue redirect: two queues are paired, and what is sent to either goes into the other (QPID-4650).

Theory of operation.  It is a matter of the queues, not of who sends: whatever brings a message (a link, a binding, a
commit, a dead letter) gives it to the queue it is meant for, and that one passes it on while it has a peer. So all that
came into a queue since a mark is the peer's. At the end of the pair it goes to the peer, behind what is there, which is
older: each queue has its own messages again, in the order in which they came. The broker has one owner, and either is
one step of it: no message comes in between.

What somebody holds at the end stays where it is, as does what waits for its redelivery: it has a place in that queue,
and if it is given back it is given back there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsish.broker.arrival import Arrival
from jmsish.broker.intake import read
from jmsish.broker.names import SUBSCRIPTION, TEMPORARY
from jmsish.broker.order import Entry, History
from jmsish.broker.queues import Queue
from jmsish.errors import IllegalStateError, InvalidDestinationError

Mark = Mapping[int, tuple[int, int]]
"""By priorities, the place that the next message gets: the number of the block, the index in it."""
_FRONT: Final = (0, 0)


class Redirects:
    """The pairs of queues of a broker."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues
        self._marks: dict[Queue, Mark] = {}
        """Of each paired queue, how far it had come."""

    def begin(self, source: str, target: str) -> None:
        """Pair two queues. The error says why they cannot be, and nothing has changed.

        ``InvalidDestinationError`` for one that is unknown, ``ValueError`` for a queue with itself and for one that is
        deleted by itself, ``IllegalStateError`` where one of them is in a pair already.
        """
        one, other = self._find(source), self._find(target)
        if one is other:
            raise ValueError(f"the queue {source!r} cannot be redirected to itself")
        for queue in (one, other):
            if queue.name.startswith((TEMPORARY, SUBSCRIPTION)):
                raise ValueError(
                    f"the queue {queue.name!r} goes with its user and cannot be redirected: only lasting queues can"
                )
            if queue.peer is not None:
                raise IllegalStateError(f"the queue {queue.name!r} is redirected already, to {queue.peer.name!r}")
        for queue, peer in ((one, other), (other, one)):
            self._marks[queue] = {level.priority: (level.tail.number, len(level.tail.slots)) for level in queue.levels}
            _set_peer(queue, peer)

    def end(self, name: str) -> int:
        """End the pair of a queue, either of the two: how many messages went back to the queue they were sent to.

        ``InvalidDestinationError`` for one that is unknown, ``IllegalStateError`` for one that is in no pair.
        """
        queue = self._find(name)
        if queue.peer is None:
            raise IllegalStateError(f"the queue {name!r} is not redirected")
        return self._part(queue, queue.peer)

    def forget(self, queue: Queue) -> None:
        """A queue is about to be deleted: its peer gets back what is its own."""
        if queue.peer is not None:
            self._part(queue, queue.peer)

    def _find(self, name: str) -> Queue:
        queue = self._queues.get(name) if isinstance(name, str) else None
        if queue is None:
            raise InvalidDestinationError(f"there is no queue {name!r}")
        return queue

    def _part(self, one: Queue, other: Queue) -> int:
        strayed = [(one, _taken_since(self._marks.pop(other), other)), (other, _taken_since(self._marks.pop(one), one))]
        for queue in (one, other):
            _set_peer(queue, None)
        for home, entries in strayed:
            for entry in entries:
                home.take_in(_sent_again(entry, home.home.now()))
        return sum(len(entries) for _, entries in strayed)


def _set_peer(queue: Queue, peer: Queue | None) -> None:
    queue.peer = peer
    queue.change(queue.settings)  # so its producers look where there is room now


def _taken_since(mark: Mark, queue: Queue) -> list[Entry]:
    """What is available of all that came since, taken out of the queue, in the order of each priority."""
    taken = []
    for level in queue.levels:
        found = level.first_available(*mark.get(level.priority, _FRONT))
        while found is not None:
            block, index = found
            entry = queue.take_at(level, block, index)
            queue.archive(entry)
            taken.append(entry)
            found = level.first_available(block.number, index + 1)
    return taken


def _sent_again(entry: Entry, now: float) -> Arrival:
    """The message for the queue it was meant for, with its attempts and the time it expires."""
    past = entry.history
    asked = read(entry.payload, now)
    group = None if isinstance(asked, int) else asked.group
    history = None
    if past is not None and (past.count or past.expires):
        history = History(past.count, past.expires)
        history.attempts = past.attempts
    return Arrival(entry.payload, entry.block.level.priority, history, 0.0, group)
