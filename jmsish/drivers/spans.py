"""Spans: a connection between two brokers of one process, from one driver straight to the other.

Theory of operation.  Each end is an outlet of one driver, whose octets are fed to the other. To feed a driver is to run
its broker, which has something to say to the first one, and so on: on the stack that would grow with the conversation.
So an end that is woken while its thread is moving octets already is put in that thread's line, and moved when its turn
comes. Who moves octets for others does so for a while only; then they are left to the drivers' own threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from jmsish.drivers.serving import BrokerDriver, Lane, ServerConnection
from jmsish.drivers.transport import LOW_WATER

__all__ = ["connect_drivers"]

#: Ends are moved so often by one thread before it goes back to what it came from.
_TURNS = 256


class _Line(threading.local):
    """The ends that wait for this thread to move them."""

    def __init__(self) -> None:
        self.waiting: deque[SpanEnd] = deque()
        self.is_moving = False


_line = _Line()


class SpanEnd:
    """What one driver writes to, an :class:`~jmsish.drivers.transport.Outlet`, and the other is fed from."""

    __slots__ = (
        "_chunks",
        "_driver",
        "_ended",
        "_lane",
        "_moving",
        "_source",
        "consumed",
        "delivered",
        "held",
        "peer",
    )

    def __init__(self, peer: str, driver: BrokerDriver) -> None:
        self.peer = peer
        self.delivered = 0
        self.consumed = 0
        self.held = False
        self._driver = driver
        self._lane: Lane | None = None
        self._source: tuple[BrokerDriver, Lane] | None = None
        self._chunks: deque[bytes] = deque()
        self._ended = False
        self._moving = threading.Lock()  # held while octets are handed over, so that they stay in order

    def join(self, source: tuple[BrokerDriver, Lane], lane: Lane) -> None:
        """Whose outlet it is, and the lane that it leads to: both are there."""
        self._source, self._lane = source, lane
        self.wake()

    # The outlet.

    def deliver(self, data: bytes) -> None:
        self.delivered += len(data)
        self._chunks.append(data)

    def end(self) -> None:
        self._ended = True

    def wake(self) -> None:
        line = _line
        line.waiting.append(self)
        if line.is_moving:
            return
        line.is_moving = True
        turns = 0
        try:
            while line.waiting:
                turns += 1
                line.waiting.popleft()._move(BrokerDriver.pump if turns <= _TURNS else BrokerDriver.pump_later)
        finally:
            line.is_moving = False

    def _move(self, pump: Callable[[BrokerDriver], None]) -> None:
        """Hand over what there is, unless another thread is at it, which then looks again."""
        moved = False
        while (self._chunks or self._ended) and self._lane is not None and self._moving.acquire(False):
            try:
                moved = self._bring() or moved
            finally:
                self._moving.release()
        if moved:
            pump(self._driver)
            if self._source is not None:
                pump(self._source[0])

    def _bring(self) -> bool:
        lane = self._lane
        if lane is None:
            return False
        ended = self._ended  # looked at first: nothing is delivered after it
        data = b"".join([self._chunks.popleft() for _ in range(len(self._chunks))])
        if data:
            self.consumed += len(data)
            # Looked at after consumed is written, as the driver looks at consumed after it has written held.
            if self.held and self._source is not None and self.delivered - self.consumed <= LOW_WATER:
                driver, source = self._source
                driver.bring(source, None)
            self._driver.bring(lane, data)
        if ended:
            self._lane = self._source = None
            self._driver.bring(lane, b"")
        return True

    def __repr__(self) -> str:
        return f"<SpanEnd to {self.peer}>"


def connect_drivers(near: BrokerDriver, make: Callable[[], ServerConnection | None], far: BrokerDriver) -> None:
    """Join a connection that ``near`` has dialled, and now makes, with one that ``far`` accepts.

    Raises :class:`~jmsish.errors.ConnectionLostError` where ``far`` is stopped.
    """
    there, here = SpanEnd(f"vm://{near.name}", near), SpanEnd(f"vm://{far.name}", far)
    far_lane = far.open(there, trusted=True, peer=here.peer if far is near else f"vm://{near.name}")
    near_lane = near.adopt(here, make)
    if near_lane is None:
        far.bring(far_lane, b"")
        far.pump()
        return
    there.join((far, far_lane), near_lane)
    here.join((near, near_lane), far_lane)
