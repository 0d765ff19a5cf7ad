"""For tests of programs that use jmsish: a clock that moves only when told to, and a wire that breaks when told to."""

from __future__ import annotations

import math
import threading
import time
import weakref
from typing import Any, Protocol

from jmsish._router_network import RouterNetwork

__all__ = ["ClockListener", "RouterNetwork", "VirtualClock", "cut"]


def cut(connection: Any) -> None:
    """Break the wire under a connection of either face, as a failing network would: neither side says a word.

    Calls that wait raise ``ConnectionLostError``, the broker takes back what was unsettled, and nothing of the
    connection's buffers is handed over any more.
    """
    connection._driver.cut()


class ClockListener(Protocol):
    """Who lives by a :class:`VirtualClock`: a broker's driver, a client's."""

    @property
    def deadline(self) -> float | None:
        """When it wants to be called next, by this clock."""

    def time_passed(self) -> None:
        """The clock was moved: do what is due, before returning."""


class VirtualClock:
    """A clock that starts at the real time and stands still until :meth:`advance`.

    ::

        clock = VirtualClock()
        with jmsish.EmbeddedBroker(clock=clock) as broker:
            ...                             # send with time_to_live=30
            clock.advance(31)               # and it has expired

    Calling it gives the time: seconds since the epoch.
    """

    def __init__(self) -> None:
        self._now = time.time()
        self._target = self._now
        self._lock = threading.Lock()  # a leaf: no listener is called under it
        self._listeners: weakref.WeakSet[ClockListener] = weakref.WeakSet()

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on by ``seconds``. Everything that falls due on the way is done at its time, in this thread.

        So a redelivery that is delayed by ten seconds after a transaction that times out after five is there after
        fifteen, as it would be by a real clock.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise TypeError(f"a clock is moved by a number of seconds, not by {seconds!r}")
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time only goes forward, by a number of seconds, not by {seconds!r}")
        with self._lock:
            self._target += seconds
            target = self._target
        while True:
            arrived = self._move_on(target)
            for listener in self._subscribed():
                listener.time_passed()
            if arrived:
                return

    def _move_on(self, target: float) -> bool:
        """To the next deadline on the way, or to the target: then it is true."""
        deadlines = [due for listener in self._subscribed() if (due := listener.deadline) is not None]
        with self._lock:
            # Only what lies ahead: somebody whose deadline has passed already was told so at this very time.
            next_stop = min((due for due in deadlines if self._now < due < target), default=target)
            self._now = max(self._now, next_stop)
            return next_stop >= target

    def _subscribed(self) -> list[ClockListener]:
        with self._lock:
            return list(self._listeners)

    def subscribe(self, listener: ClockListener) -> None:
        """Call ``listener`` when the clock moves; it is held weakly."""
        with self._lock:
            self._listeners.add(listener)

    def unsubscribe(self, listener: ClockListener) -> None:
        with self._lock:
            self._listeners.discard(listener)

    def __repr__(self) -> str:
        return f"<VirtualClock at {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(self._now))}Z>"
