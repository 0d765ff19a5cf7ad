"""The time of a broker: when the broker and its connections want to be called, and that they are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TypeVar

from jmsish.drivers.alarm import Alarm
from jmsish.drivers.broker_core import BrokerCore, ServerConnection, SteppedClock, stepped
from jmsish.drivers.dues import Dues
from jmsish.drivers.telling import tell_fault
from jmsish.drivers.transport import Outlet
from jmsish.drivers.turns import Lane

__all__ = ["KeptTime"]

_log = logging.getLogger("jmsish.broker")
_T = TypeVar("_T")

#: After a fault the time is looked at again in so many seconds, if not sooner for another reason.
_AGAIN = 1.0


class KeptTime:
    """The part of a broker's driver that sees to the time: by a thread of the alarm's, or by that of the sockets."""

    name: str
    _broker: BrokerCore
    _disowned: bool
    _stopped: bool
    _lanes: dict[ServerConnection, Lane]

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stepped: SteppedClock | None = stepped(clock)
        self._dues = Dues()
        self._deadline: float | None = None
        self._alarm = Alarm(self._ring, f"jmsish-broker-{name}-time")

    def call(self, function: Callable[[], _T]) -> _T:
        """Run ``function`` as the owner of the broker, and then what follows from it."""
        raise NotImplementedError

    def _break(self, lane: Lane, woken: dict[Outlet, None]) -> None:
        raise NotImplementedError

    def pump_later(self) -> None:
        """Have the inbox served by the thread of the driver itself."""
        self._alarm.set(0.0)

    def keep_time_by(self, wake: Callable[[], None]) -> None:
        """From now on the caller sees to the time, and calls ``work_off`` when :attr:`due`; ``wake`` has it look.

        A second thread for that would have the lock when it is made to wait for the interpreter by this one.
        """
        self._alarm.entrust(wake)

    @property
    def due(self) -> float:
        """When something is to be done, by ``time.monotonic``."""
        return self._alarm.at

    def _keep_time(self, touched: list[Lane], spoken: Sequence[ServerConnection], woken: dict[Outlet, None]) -> None:
        """Let pass what is due, and set the alarm for what is next; who had input or output may have a new time."""
        now = monotonic()
        self._dues.sweep(len(self._lanes))
        for lane in (*touched, *filter(None, map(self._lanes.get, spoken))):
            if not lane.gone:
                self._tick(lane, now, woken)
        while (due := self._dues.take(now)) is not None:
            touched.append(due)
            self._tick(due, now, woken)
        at, wall = self._dues.at, 0.0
        try:
            wall = self._clock()
            self._deadline = self._broker.tick(wall)
        except Exception:
            tell_fault(_log, "a fault inside the broker %r, or of its clock", self.name)
            self._deadline, at = None, min(at, now + _AGAIN)
        if self._deadline is not None and self._stepped is None:
            at = min(at, now + self._deadline - wall)
        if at < self._alarm.at:
            self._alarm.set(at)

    def _tick(self, lane: Lane, now: float, woken: dict[Outlet, None]) -> None:
        try:
            due = lane.connection.tick(now)
        except Exception:
            self._break(lane, woken)
            return
        if due is not None:
            self._dues.note(lane, due)

    def _ring(self) -> None:
        self.call(lambda: None)

    @property
    def deadline(self) -> float | None:
        """When the broker wants to be called next, by its clock: for a :class:`SteppedClock`."""
        return self._deadline

    def time_passed(self) -> None:
        """The clock was moved; what was due is done when this returns."""
        if self._disowned:
            return
        self.call(lambda: None)
        while self._broker.unfinished and not self._stopped:
            self.call(lambda: None)
