"""One deadline, one thread that waits for it, and none before there is a deadline; or somebody who waits anyway."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from time import monotonic

from jmsish.drivers.telling import began, tell_fault

__all__ = ["Alarm"]

_log = logging.getLogger("jmsish.drivers")

#: A day: longer than this no condition waits at once (``threading.TIMEOUT_MAX`` is shorter than some deadlines).
_LONGEST_WAIT = 86400.0


class Alarm:
    """Calls ``ring`` (a bound method, held weakly) in a thread of its own when the time set has come.

    The thread is a daemon, started by the first :meth:`set`; it waits on a condition, without polling. Its lock is a
    leaf: ``ring`` is called with no lock held, so :meth:`set` may be called under any lock. It is the lock that is
    entered, not the condition: an interrupt at the end of that one's ``__enter__`` would leave it taken.
    """

    def __init__(self, ring: Callable[[], None], name: str) -> None:
        self.at = float("inf")  #: by ``time.monotonic``; read without the lock by the owner, who alone makes it earlier
        self._ring = weakref.WeakMethod(ring)
        self._name = name
        # Re-entrant, because the collector may run the owner's finalizer, which stops us, in a thread that holds it.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._wake: Callable[[], None] | None = None
        self._stopped = False

    def entrust(self, wake: Callable[[], None]) -> None:
        """Somebody waits anyway, and calls :meth:`has_come` when it is time: this needs no thread any more.

        ``wake`` is called by whoever sets an earlier time, under any lock and ours: it only signals.
        """
        with self._lock:
            self._wake = wake
            self._changed.notify()  # who has waited goes
            wake()

    def has_come(self) -> bool:
        """Whether it is time, by the clock; then nothing is set any more."""
        if self.at > monotonic():
            return False
        with self._lock:
            self.at = float("inf")
        return True

    def set(self, at: float) -> None:
        """Ring at this time, if nothing earlier is set."""
        with self._lock:
            if self._stopped or at >= self.at:
                return
            self.at = at
            if self._wake is not None:
                self._wake()
            elif self._thread is None:
                self._thread = began(_log, self._run, self._name)
                if self._thread is None:
                    self.at = float("inf")
            else:
                self._changed.notify()

    def stop(self) -> None:
        """Ring no more, and end the thread."""
        with self._lock:
            self._stopped = True
            self._changed.notify()

    def disown(self) -> None:
        """After a fork, in the child: whoever held the lock is not there, nor the thread."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._stopped = True
        self._thread = None

    def join(self, timeout: float) -> None:
        """Wait until the thread has ended."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _run(self) -> None:
        while self._wait():
            ring = self._ring()
            if ring is None:
                return
            try:
                ring()
            except Exception:
                tell_fault(_log, "%s failed", self._name)
            del ring  # the owner must not live on in this frame while we wait

    def _wait(self) -> bool:
        """True when it is time to ring, false when it is time to go."""
        with self._lock:
            while not self._stopped and self._wake is None:
                left = self.at - monotonic()
                if left <= 0:
                    self.at = float("inf")
                    return True
                self._changed.wait(min(left, _LONGEST_WAIT))
            return False
