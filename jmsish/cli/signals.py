"""Signals that tell a command to end, or to read its files anew."""

from __future__ import annotations

import selectors
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from jmsish.drivers.wakeup import Wakeup

__all__ = ["Told", "told_by_signals"]

#: A day: longer than this no selector waits at once.
_LONGEST_WAIT = 86400.0


class Told:
    """What a command was told, heard by who waits for it.

    A signal is heard by the main thread in the middle of anything, of its wait for this very signal too. So what it
    calls takes no lock, as that of an event would be: it notes what was told, and wakes. And one that comes when the
    thread has just gone to sleep, as the interpreter sees it, and has not yet, as the system does, calls nothing until
    the sleep is over: so the interpreter itself writes to what is waited for, as soon as it has the signal.
    """

    def __init__(self, reread: Callable[[], None] | None = None) -> None:
        """``reread`` is called by who waits, after :meth:`hang_up`."""
        self._reread = reread
        self._is_stopped = False
        self._is_hung_up = False
        self._wakeup = Wakeup()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wakeup, selectors.EVENT_READ)

    @property
    def written(self) -> int:
        """What is written to there wakes who waits."""
        return self._wakeup.written

    def stop(self, *_: object) -> None:
        """To end; by any thread, and by a signal."""
        self._is_stopped = True
        self._wakeup.set()

    def hang_up(self, *_: object) -> None:
        """To read the files anew."""
        self._is_hung_up = True
        self._wakeup.set()

    def wait(self, seconds: float) -> bool:
        """Wait until told to end, for so many seconds at most; whether it was."""
        until = monotonic() + seconds
        while not self._is_stopped:
            if self._is_hung_up and self._reread is not None:
                self._is_hung_up = False
                self._reread()
            left = until - monotonic()
            if left <= 0:
                break
            self._selector.select(min(left, _LONGEST_WAIT))
            self._wakeup.clear()  # before it is looked at what was told
        return self._is_stopped

    def close(self) -> None:
        self._selector.close()
        self._wakeup.close()


@contextmanager
def told_by_signals(reread: Callable[[], None] | None = None) -> Iterator[Told]:
    """For the time of the block SIGINT and SIGTERM tell to end, and SIGHUP, where there is ``reread``, to call that."""
    told = Told(reread)
    written = signal.set_wakeup_fd(told.written, warn_on_full_buffer=False)
    meant = {signal.SIGINT: told.stop, signal.SIGTERM: told.stop}
    if reread is not None:
        meant[signal.SIGHUP] = told.hang_up
    before = {number: signal.signal(number, what) for number, what in meant.items()}
    try:
        yield told
    finally:
        for number, action in before.items():
            signal.signal(number, action)
        signal.set_wakeup_fd(written)
        told.close()
