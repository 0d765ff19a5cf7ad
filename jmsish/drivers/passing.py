"""Time as a client's connection has it: monotonic seconds, and besides those by which a test's clock was moved.

So what is waited for is over when the time was waited for, as ever, and also when the clock was moved past it. Sockets
and heartbeats know nothing of that: a day in a millisecond is no silence of the peer.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from jmsish.drivers.broker_core import SteppedClock
from jmsish.drivers.core import ClientCore
from jmsish.moments import RealMoment

__all__ = ["PassingTime"]


class PassingTime:
    """The part of a driver that knows what time it is."""

    core: ClientCore
    time: Callable[[], float]
    """The moment by which deadlines are set and looked at."""
    _shift = 0.0
    _stepped: SteppedClock | None = None
    _began = 0.0

    def follow(self, clock: Any) -> None:
        """Let time pass as this clock is moved, if it is one that stands still otherwise; from now on."""
        if isinstance(clock, SteppedClock):
            self._stepped = clock
            self._began = clock()
            self.time = self._moved
            clock.subscribe(self)

    def _moved(self) -> float:
        return monotonic() + self._shift

    def _unfollow(self) -> None:
        if self._stepped is not None:
            self._stepped.unsubscribe(self)

    def _take_over(self) -> None:
        """By how much the clock has been moved.  By the owner of the core."""
        if self._stepped is not None:
            self._shift = self.core.shift = self._stepped() - self._began

    def _real(self, deadline: float | None) -> float | None:
        """A deadline in monotonic seconds, for a wire."""
        return deadline if deadline is None or type(deadline) is RealMoment else deadline - self._shift

    def _by(self, deadline: float | None) -> float | None:
        """A deadline by the time there is now, which may be moved on until then."""
        return deadline + self._shift if type(deadline) is RealMoment else deadline

    @property
    def deadline(self) -> float | None:
        """Nothing has to be done on the way: for the clock."""
        return None

    def time_passed(self) -> None:
        """The clock was moved: for the clock."""
        raise NotImplementedError
