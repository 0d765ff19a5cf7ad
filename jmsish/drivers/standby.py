"""The standby reader of a blocking client: it reads when nobody else does, and connects again after a loss."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import get_ident
from typing import Any

from jmsish.drivers.callbacks import CallbackThread
from jmsish.drivers.core import COALESCE_OCTETS, LINGER_OCTETS, ClientCore, Steps
from jmsish.drivers.passing import PassingTime
from jmsish.drivers.telling import tell_fault
from jmsish.drivers.transport import PipeEnd, Transport
from jmsish.engine.engine import Engine
from jmsish.errors import ConnectionLostError, JMSError, OperationTimeoutError
from jmsish.options import ConnectionTarget

log = logging.getLogger("jmsish.client")

Connect = Callable[[ConnectionTarget], tuple[Transport, Callable[[str], Engine]]]
"""Connects to a broker, within its `connect_timeout`: the way there, and how the engine for it is made.

Raises `ConnectionLostError` that says why not.
"""

Wait = Callable[["Future[Any]", "float | None"], Any]
"""Waits for a future."""

QUIET = 0.010
"""Seconds without an application thread reading after which the standby reader reads."""


TICK = 0.5
"""Seconds between two looks of the core at the clock: half of the shortest deadline that it sets by itself (D12)."""


def packet_of(transport: Transport) -> int:
    """How much output is worth a write of its own.  In memory the writer itself runs the broker: all of it may wait."""
    return COALESCE_OCTETS if isinstance(transport, PipeEnd) else LINGER_OCTETS


class StandbyReader(PassingTime):
    """The part of a driver that stands by, in a thread of its own (see `threaded.py` for the theory)."""

    core: ClientCore
    transport: Transport
    lock: threading.Lock
    callbacks: CallbackThread
    _blocked: bool
    _broken: JMSError | None
    _connect: Connect | None
    _last_flush: float
    _last_read: float
    _napping: bool
    _packet: int
    _pause: threading.Lock
    _reader: int
    _sending: bool
    _standby: threading.Thread
    _standing_by: bool
    _stopped: bool
    _tick_at: float
    _waiters: dict[threading.Lock, Future[Any]]
    _waits: int
    _wired: bool

    def run(self, steps: Steps[Any], wait: Wait | None = None) -> Any:
        """Run a procedure to its end in this thread."""
        raise NotImplementedError

    def wait(self, future: Future[Any], deadline: float | None) -> Any:
        """The future's result."""
        raise NotImplementedError

    def flush(self, deadline: float | None = None, listening: bool = False) -> None:
        """Write what the core has to say."""
        raise NotImplementedError

    def _read(self, deadline: float | None, now: float, future: Future[Any] | None = None) -> bytes | None:
        raise NotImplementedError

    def _pass_on(self) -> None:
        raise NotImplementedError

    def _wake(self) -> None:
        raise NotImplementedError

    # -- standing by -----------------------------------------------------------------------------------------------

    def _stand_by(self) -> None:
        """The standby reader's life: to the close, or to the loss of the connection, which leaves nothing to read."""
        try:
            while not self._stopped and self.core.failure is None:
                if self.core.offline:
                    self._reconnect()
                    continue
                now = self.time()
                if self._reader or now - self._last_read < QUIET:
                    if now - self._last_flush >= QUIET:
                        self.flush(listening=True)
                    self._rest()
                    continue
                self._standing_by = True
                try:
                    self._read(None, now)
                finally:
                    self._standing_by = False
                    self._step_back()
                self.flush(listening=True)
            self.flush()
        except Exception as fault:
            tell_fault(log, "a fault inside the client ends the connection to %s", self.transport.peer)
            with self.lock:
                self.core.fail(ConnectionLostError(f"a fault inside the client: {fault!r}", scope="connection"))
                self._wake()
        finally:
            self.transport.close()

    def _rest(self) -> None:
        """Sleep a moment; longer while one application thread sits in its read, which wakes us when it leaves."""
        waits = self._waits
        if self._pause.acquire(timeout=QUIET) or waits != self._waits:
            return
        self._napping = True
        # Said before looking: who stops reading, or says something, first does so and then looks at the flag.
        if self._reader and not self.core.output_size and not self._stopped:
            self._pause.acquire(timeout=TICK)
        self._napping = False

    def _rouse(self) -> None:
        """Have the standby reader look after the output soon, if it sleeps longer than a moment."""
        if self._standing_by:
            self._last_read = self.time()
            self.transport.interrupt()
        elif self._napping:
            self._napping = False
            release(self._pause)

    def _step_back(self) -> None:
        """Once the standby reader has woken somebody, that thread reads on."""
        waiting = [signal for signal, future in list(self._waiters.items()) if not future.done()]
        if waiting:
            release(waiting[0])
            self._last_read = self.time()

    # -- connecting again ------------------------------------------------------------------------------------------

    def _is_away(self) -> bool:
        """The connection is being made again, and it is not this thread that does it."""
        return self.core.offline and get_ident() != self._standby.ident

    def _reconnect(self) -> None:
        """Until the connection stands again, or has failed.  What the old one had to say last is said, if it can be."""
        with suppress(JMSError):
            self.flush(self.time())
        self._unwire()
        try:
            self.run(self.core.reconnect(), self._dial_or_wait)
        except _Stopped:
            return
        with self.lock:
            self._wake()
        self._pass_on()

    def _dial_or_wait(self, future: Future[Any], deadline: float | None) -> Any:
        if future is self.core.dialling:
            return self._dial()
        if future is self.core.leaving and self._wired:
            # A pause: an attempt has failed, and nobody listens on its wire. What it has to say last is said.
            with suppress(JMSError):
                self.flush(self.time())
            self._unwire()
        if self._wired:
            return self.wait(future, deadline)
        while not future.done():
            if self._stopped:
                raise _Stopped
            left = None if deadline is None else deadline - self.time()
            if left is not None and left <= 0:
                raise OperationTimeoutError("the pause is over")
            if self.core.calls:
                self._give_calls()
            self._pause.acquire(timeout=TICK if left is None else min(left, TICK))
        return future.result()

    def _dial(self) -> None:
        self._give_calls()
        place = self.core.dialling.place
        assert self._connect is not None
        self._unwire()  # of an attempt before this one
        transport, make_engine = self._connect(place)
        with self.lock:
            if self._stopped:
                transport.close()
                raise _Stopped
            self.core.now = self.time()
            self.core.join(place, make_engine)
            self.transport = transport
            self._wired = True
            self._packet = packet_of(transport)
            self._sending = self._blocked = False
            self._broken = None
            self._tick_at = 0.0

    def _unwire(self) -> None:
        self._wired = False
        self.transport.close()

    def _give_calls(self) -> None:
        with self.lock:
            if self.core.calls:
                self.callbacks.take(self.core.calls)


class _Stopped(Exception):
    """The driver is stopped while it connects."""


def release(signal: threading.Lock) -> None:
    """Release a lock used as a signal; a signal given twice is given once."""
    try:
        signal.release()
    except RuntimeError:
        pass
