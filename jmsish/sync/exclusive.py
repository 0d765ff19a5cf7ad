"""A session is used by one thread at a time: a second one is refused, not made to wait."""

from __future__ import annotations

import threading
from os import getpid
from threading import get_ident
from typing import Any

from jmsish.errors import ConcurrencyError

LOOK = 0.01
"""Seconds after which one who waits for the end of a look asks again whether it is one still."""


class Exclusive:
    """Held by the thread that uses a session, for as long as its call lasts; the same thread may enter again.

    A Ctrl-C may come between any two steps here. The lock knows by itself who has it, so that what was taken in the
    very moment of an interrupt is given back, and a close does not wait for a thread that is not there.
    """

    __slots__ = ("_depth", "_lock", "_owner", "_process", "is_looking")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner = 0
        self._depth = 0
        self._process = getpid()
        self.is_looking = False
        """It is held by the thread of the listeners, which looks whether there is something for one of them: there may
        be none any more, so whoever comes meanwhile waits for the answer, and is not refused for nothing."""

    def __enter__(self) -> None:
        me = get_ident()
        if self._owner == me:
            self._depth += 1
            return
        try:
            if not (self._lock.acquire(False) or self._await_look()):
                raise refusal(me, self._owner)
            self.is_looking = False
            self._owner = me
            self._depth = 1
        except BaseException:
            self._give_back()
            raise

    def _await_look(self) -> bool:
        """Whether it came free as its holder had found nothing to do.

        Who has just taken the lock has not said yet who it is and whether it only looks, and who is about to give it
        back says nothing any more: both are over in a moment.
        """
        while (self.is_looking or not self._owner) and self._process == getpid():
            if self._lock.acquire(timeout=LOOK):
                return True
        return False

    def __exit__(self, *failure: Any) -> None:
        self.leave()

    @property
    def is_others(self) -> bool:
        """Whether another thread of this process is in the session."""
        return self._owner not in (0, get_ident()) and self._process == getpid()

    def check(self, but: int | None) -> None:
        """Raise `ConcurrencyError` while a thread other than the caller and `but` uses the session."""
        me, owner = get_ident(), self._owner
        if owner and owner not in (me, but):
            raise refusal(me, owner)

    def leave(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._lock.release()

    def wait(self, timeout: float | None = None, *, looking: bool = False) -> bool:
        """Enter, waiting for whoever uses the session (for listeners and closes); whether that came in time.

        ``looking`` is for :attr:`is_looking`.
        """
        me = get_ident()
        if self._process != getpid():  # in a child made by fork: whoever used it is not here
            self.__init__()  # type: ignore[misc]
        if self._owner == me:
            self._depth += 1
            return True
        try:
            if not self._lock.acquire(timeout=-1 if timeout is None else min(timeout, threading.TIMEOUT_MAX)):
                return False
            self.is_looking = looking  # before it is known who it is: who knows that goes by this
            self._owner = me
            self._depth = 1
        except BaseException:
            self._give_back()
            raise
        return True

    def _give_back(self) -> None:
        """Entering was refused, or interrupted: then the lock may be ours already."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._owner = self._depth = 0
            self._lock.release()


def refusal(me: int, owner: int) -> ConcurrencyError:
    return ConcurrencyError(
        f"a session is used by one thread at a time: thread {name_of(me)!r} came while "
        f"thread {name_of(owner)!r} uses it"
    )


def name_of(ident: int) -> str:
    for thread in threading.enumerate():
        if thread.ident == ident:
            return thread.name
    return str(ident)
