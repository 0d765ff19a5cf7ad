"""The broker's driver: one owner at a time for a sans-I/O broker, without a thread of its own.

Whoever brings bytes puts them into the inbox and tries to take the broker lock. Who gets it does the work of all: it
feeds what is in the inbox, lets the broker dispatch, puts the output into the outlets, lets the lock go and wakes
whom it has served. Who does not get it goes away: the holder looks into the inbox again after it has let the lock go,
and so finds what was brought meanwhile. (Why nothing is left lying: the one who goes away has put its bytes in before
it found the lock taken, so before the holder let it go, so before the holder looks again.)
"""

from __future__ import annotations

import logging
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from types import FrameType
from typing import Any, TypeVar

from jmsish.drivers.broker_core import BrokerCore, ServerConnection, SteppedClock
from jmsish.drivers.errands import Errands
from jmsish.drivers.forks import brokers
from jmsish.drivers.kept_time import KeptTime
from jmsish.drivers.telling import tell_fault
from jmsish.drivers.transport import Outlet, PipeEnd, wake_all
from jmsish.drivers.turns import ALONE, AT_ONCE, COMPANY, ROUND, SLICE, SMALL, Behind, Lane, Share
from jmsish.errors import ConnectionLostError, IllegalStateError

__all__ = ["BrokerCore", "BrokerDriver", "Lane", "ServerConnection", "SteppedClock"]

_log = logging.getLogger("jmsish.broker")
_T = TypeVar("_T")

#: So many times a caller serves the others after its own work; then the alarm's thread takes over. Without a limit one
#: client's send would not return while the others keep the broker busy.
_ROUNDS = 16


class BrokerDriver(KeptTime):
    """Owns a broker: its lock, its time, and the way of bytes in and out.

    ``clock`` tells the broker's time (wall seconds), which drives what happens to messages and transactions; the
    timers of the connections run by ``time.monotonic``. Both are kept by one thread, started when there is a deadline,
    or by that of the sockets, where there is one.
    """

    def __init__(self, broker: BrokerCore, *, name: str, clock: Callable[[], float]) -> None:
        super().__init__(name, clock)
        self.name = name
        self._broker = broker
        self._lock = threading.Lock()
        self._inbox: deque[tuple[Lane, bytes | None]] = deque()
        self._lanes: dict[ServerConnection, Lane] = {}
        self._left: dict[Lane, None] = {}  # with a rest that is to be worked off, by `work_off`
        self._behind = Behind()
        self._more = False  # the broker has more to give out, which was left for the sake of others
        self._company_until = 0.0  # somebody beside those with a rest brings something, so that slices are small
        self.on_left: Callable[[], None] = lambda: None
        """Wakes whoever calls :meth:`work_off`; any thread may call it."""
        self.pressing: Callable[[], bool] = lambda: False
        """Whether somebody else has brought something, or would."""
        self._stopped = False
        self._disowned = False
        self.errands = Errands(name, self.call)
        weakref.finalize(self, self._alarm.stop).atexit = False
        if self._stepped is not None:
            self._stepped.subscribe(self)
        brokers.add(self)

    # Connections.

    def connect(self, peer: str, identity: str | None = None) -> PipeEnd:
        """A pipe into this broker. It is inside the process and trusted."""
        end = PipeEnd(peer)
        lane = self.open(end, trusted=True, identity=identity, peer=peer)
        end.connect(partial(self.feed, lane))
        return end

    def open(
        self,
        outlet: Outlet,
        *,
        trusted: bool,
        identity: str | None = None,
        peer: str = "",
        certificate: Mapping[str, Any] | None = None,
        exposed: bool = False,
        resume: Callable[[], None] | None = None,
        role: str | None = None,
    ) -> Lane:
        """A new connection, whose output goes to ``outlet``; the rest is as for ``accept`` of the broker.

        With ``resume`` its input is worked off in turns (`turns`): while its lane has a rest it should bring no more,
        and ``resume`` is called, by any thread and under the broker lock, when it may again.
        """
        lane = self.adopt(
            outlet,
            lambda: self._broker.accept(
                trusted=trusted, identity=identity, peer=peer, certificate=certificate, exposed=exposed, role=role
            ),
            resume,
        )
        assert lane is not None
        return lane

    def adopt(
        self, outlet: Outlet, make: Callable[[], ServerConnection | None], resume: Callable[[], None] | None = None
    ) -> Lane | None:
        """A connection that ``make`` makes as the owner of the broker; none where that does not want one."""

        def enter() -> Lane | None:
            if self._stopped:
                raise ConnectionLostError(f"the broker {self.name!r} is stopped")
            connection = make()
            if connection is None:
                return None
            lane = Lane(connection, outlet, None if resume is None else Share(resume))
            self._lanes[lane.connection] = lane
            self._inbox.append((lane, None))  # so that its first deadline, and what it says unasked, are seen
            return lane

        return self.call(enter)

    def feed(self, lane: Lane, data: bytes | None) -> None:
        """Bytes for a connection; ``b""`` is their end, ``None`` says that its outlet has room again."""
        self._inbox.append((lane, data))
        self.pump()

    def bring(self, lane: Lane, data: bytes | None) -> None:
        """As :meth:`feed`, for one who brings for several connections and calls :meth:`pump` once after them."""
        self._inbox.append((lane, data))

    # Doing the work.

    def pump(self) -> None:
        """Serve what is in the inbox, unless somebody else is at it, who then serves it too."""
        if self._pump(False):
            self._alarm.set(0.0)
        if self._left:
            self.on_left()

    def pump_between(self) -> None:
        """As :meth:`pump`, by one who looks for what others bring, and comes with :meth:`work_off` soon."""
        self._pump(True)

    def _pump(self, pressed: bool) -> bool:
        """Whether there is more, after so many rounds."""
        inbox = self._inbox
        try:
            for _ in range(_ROUNDS):
                if not inbox or not self._round(pressed):
                    return False
            return bool(inbox)
        except BaseException:
            # The program was interrupted: somebody else looks after those who went away because of us.
            self._alarm.set(0.0)
            raise

    def work_off(self) -> float | None:
        """As :meth:`pump`, and then what is due, and some of what was left. In how many seconds to come again, having
        looked for what others bring: ``None`` where nothing is left, nor was brought by those who were served."""
        is_due = self._alarm.has_come()
        more = self._pump(True)
        if not (is_due or more or self._left or self._more):
            return None
        if not self._round(True, what_is_left=True):
            if is_due:
                self._alarm.set(0.0)
            return ROUND / 8
        return 0.0 if self._left or self._more or self._inbox else None

    def _round(self, pressed: bool, what_is_left: bool = False) -> bool:
        """With the lock, unless another has it. ``pressed`` by others, it ends before all is done, for `work_off`.

        The lock is taken and noted in one step, as an interrupt may come whenever a built-in function has returned.
        """
        woken: dict[Outlet, None] = {}
        taken: list[bool] = []
        try:
            try:
                taken.extend(map(self._lock.acquire, AT_ONCE))
                if not taken[0]:
                    return False
                self._serve(woken, pressed, what_is_left)
            finally:
                if taken and taken[0]:
                    self._lock.release()
        finally:
            if woken:
                wake_all(woken)
        return True

    def call(self, function: Callable[[], _T]) -> _T:
        """Run ``function`` as the owner of the broker, and then what follows from it.

        ``IllegalStateError`` from inside the broker itself (in its clock, or in a signal that came while this thread
        was at work in it), instead of a wait without end, and in a child made by fork, whose the broker is not.
        """
        if self._disowned:
            raise IllegalStateError(f"the broker {self.name!r} belongs to the process that made it, not to its child")
        if self._lock.locked() and self._is_inside(sys._getframe(1)):
            raise IllegalStateError("this was called from inside the broker, while it works: it would wait for itself")
        woken: dict[Outlet, None] = {}
        try:
            try:
                with self._lock:
                    return self._run(function, woken)
            finally:
                wake_all(woken)
                self.pump()
        except Exception:
            raise
        except BaseException:
            self._alarm.set(0.0)  # as above
            raise

    def _run(self, function: Callable[[], _T], woken: dict[Outlet, None]) -> _T:
        """Lock held."""
        try:
            return function()
        finally:
            self._serve(woken)

    def _serve(self, woken: dict[Outlet, None], pressed: bool = False, what_is_left: bool = False) -> None:
        """One round, under the lock: input, dispatch, time, dispatch, output. ``woken`` gets whom it was for."""
        touched: list[Lane] = []
        try:
            self._receive(touched, woken)
            if what_is_left:
                self._receive_left(touched, woken)
            self._work(touched, woken, pressed)
        except BaseException:
            # The program was interrupted (Ctrl-C) in the middle of the broker, which runs in its thread. What this
            # round was doing is half done: the connections it was for end, so that nobody waits for the other half.
            for lane in touched:
                self._break(lane, woken)
            self._broker.interrupted()
            for lane in self._lanes.values():  # What was just done for the others nobody knows.
                woken[lane.outlet] = None
                self._inbox.append((lane, None))
            self._alarm.set(0.0)  # and somebody looks after what is in the inbox
            raise

    def _work(self, touched: list[Lane], woken: dict[Outlet, None], pressed: bool) -> None:
        end = monotonic() + SLICE
        self._more = False
        spoken = self._step(touched, woken)
        self._collect(spoken, woken)
        self._keep_time(touched, spoken, woken)
        # What time, or output taken away, has made possible. Ends because output that nobody reads holds its lane.
        while self._collect(self._step(touched, woken), woken):
            if pressed and monotonic() >= end:
                self._more = True  # but first what there is goes out, and who has come is heard
                break
        for lane in self._behind.lanes and self._behind.over():
            self._left[lane] = None
        if self._broker.unfinished:
            self._alarm.set(0.0)
        if self._broker.questions or self._broker.dials:
            self.errands.take(self._broker)
        for lane in touched:
            if not lane.gone and (lane.over or lane.connection.closed):
                self._finish(lane, woken)
        if self._stopped:
            for lane in list(self._lanes.values()):
                self._finish(lane, woken)

    def _receive(self, touched: list[Lane], woken: dict[Outlet, None]) -> None:
        inbox = self._inbox
        for _ in range(len(inbox)):
            lane, data = inbox[0]
            if not lane.gone:
                touched.append(lane)  # first: an interrupt may come when it was taken out
            inbox.popleft()
            if lane.gone:
                continue
            try:
                if data is None:
                    lane.outlet.held = False
                    self._collect((lane.connection,), woken)
                    if lane.share is not None and lane.share.rest:
                        self._left[lane] = None
                elif lane.share is None or (len(data) <= SMALL and not lane.share.rest and not lane.has_to_wait):
                    if self._left:
                        self._company_until = monotonic() + COMPANY
                    self._take(lane, data)
                else:
                    self._take_share(lane, lane.share, data)
            except Exception:
                self._break(lane, woken)

    def _take(self, lane: Lane, data: bytes) -> None:
        if data:
            lane.connection.receive(data)
        else:
            lane.over = True
            lane.connection.receive_eof()

    def _take_share(self, lane: Lane, share: Share, data: bytes) -> None:
        """Work off some of it, unless there is something before it, of its own or of others."""
        is_first = not share.rest and not self._left
        share.put(data)
        lane.ending = lane.ending or not data  # who has left takes no output, so nothing is to be waited for
        if self._behind.keeps(lane):
            return
        if is_first and data:
            share.work(lane.connection.receive, self._slice())
        if share.rest:
            self._left[lane] = None
        else:
            share.resume()  # the I/O thread may have looked in between

    def _slice(self) -> float:
        return SLICE if monotonic() < self._company_until else ALONE

    def _receive_left(self, touched: list[Lane], woken: dict[Outlet, None]) -> None:
        """What was left of earlier rounds: one slice for each in turn, until it is time for something else."""
        end = monotonic() + ROUND
        left = self._left
        while left:
            lane = next(iter(left))
            del left[lane]
            share = lane.share
            if share is None or lane.gone or self._behind.keeps(lane):
                continue
            touched.append(lane)
            try:
                if lane.connection.closed:
                    share.rest.clear()  # nobody reads it; what comes after it is to be read off the socket
                elif share.rest and not share.rest[0]:
                    share.rest.clear()
                    self._take(lane, b"")
                elif share.rest:
                    share.work(lane.connection.receive, self._slice())
            except Exception:
                self._break(lane, woken)
            if share.rest:
                left[lane] = None
            else:
                share.resume()
            if monotonic() >= end or self._inbox or self.pressing():
                return

    def _step(self, touched: list[Lane], woken: dict[Outlet, None]) -> Sequence[ServerConnection]:
        try:
            return self._broker.step()
        except Exception:
            # A fault of the broker itself. Those whose bytes led to it are told so by the end of their connection,
            # which is sooner and clearer than an answer that never comes; the others are served on.
            for lane in touched:
                self._break(lane, woken)
            return ()

    def _collect(self, connections: Sequence[ServerConnection], woken: dict[Outlet, None]) -> bool:
        """Output into the outlets; whether there was any."""
        taken = False
        for connection in connections:
            lane = self._lanes.get(connection)
            if lane is None:
                continue
            outlet = lane.outlet
            try:
                if outlet.delivered - outlet.consumed > self._broker.high_water and lane.holds():
                    continue
                data = connection.take_output()
                if data:
                    outlet.deliver(data)
                    woken[outlet] = None
                    taken = True
                if connection.closed:
                    self._finish(lane, woken)
            except Exception:
                self._break(lane, woken)
        return taken

    def _finish(self, lane: Lane, woken: dict[Outlet, None]) -> None:
        """The connection has ended, from either side: its last words, and the end."""
        lane.gone = True
        if lane.share is not None:
            lane.share.rest.clear()
        self._dues.forget(lane)
        self._lanes.pop(lane.connection, None)
        try:
            data = lane.connection.take_output()
            if data:
                lane.outlet.deliver(data)
        except Exception:
            tell_fault(_log, "a fault inside the broker %r met the last words of %s", self.name, lane.connection)
        lane.outlet.end()
        woken[lane.outlet] = None
        lane.share = None
        del lane.connection, lane.outlet  # they refer to it, and `_dues` may keep it for long

    def _break(self, lane: Lane, woken: dict[Outlet, None]) -> None:
        """A fault of ours met this connection: it ends, so that the broker takes back what it had."""
        if lane.gone:
            return
        tell_fault(_log, "a fault inside the broker %r ends the connection %s", self.name, lane.connection)
        try:
            if not lane.over:
                lane.connection.receive_eof()
        except Exception:
            tell_fault(_log, "and its end met another one")
        self._finish(lane, woken)

    def runs_here(self) -> bool:
        """Whether the calling thread is inside this broker already: then :meth:`call` would wait for itself.

        The stack tells, so that nobody else has to keep a record.
        """
        return self._is_inside(sys._getframe(1))

    def _is_inside(self, frame: FrameType | None) -> bool:
        while frame is not None:
            if frame.f_code in _INSIDE and frame.f_locals.get("self") is self:
                return True
            frame = frame.f_back
        return False

    # The end.

    @property
    def stopped(self) -> bool:
        return self._stopped

    def stop(self, *, farewell: bool = True) -> None:
        """Say goodbye on every connection, unless it is to look like a crash, and end it. Twice is silent."""

        def close() -> None:
            if not self._stopped:
                self._stopped = True
                if farewell:
                    self._broker.close()

        if self._disowned:
            return
        self.call(close)
        if self._stepped is not None:
            self._stepped.unsubscribe(self)
        self.errands.stop()
        self._alarm.stop()
        self._alarm.join(timeout=5)

    def disown(self) -> None:
        """After a fork, in the child: the broker is the parent's, and it may be half a step of it that is here.

        Whoever brings octets finds the lock taken, and goes away; whoever would wait for it is refused.
        """
        self._disowned = self._stopped = True
        self._lock = threading.Lock()
        self._lock.acquire()
        self._inbox.clear()
        self._left.clear()
        self._alarm.disown()


_INSIDE = (BrokerDriver._run.__code__, BrokerDriver._serve.__code__)
