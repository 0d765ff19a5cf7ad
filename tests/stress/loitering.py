"""Threads that are changed as often as can be, and that loiter wherever a lock is taken or let go."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import jmsish.drivers.serving
import jmsish.drivers.standby
import jmsish.drivers.threaded
import jmsish.drivers.transport
import jmsish.sync.consumer
import jmsish.sync.exclusive
import jmsish.sync.listeners

WHERE: tuple[ModuleType, ...] = (
    jmsish.drivers.threaded,
    jmsish.drivers.standby,
    jmsish.drivers.transport,
    jmsish.drivers.serving,
    jmsish.sync.consumer,
    jmsish.sync.exclusive,
    jmsish.sync.listeners,
)


_NEVER = threading.Event()


class Loiterer:
    """A lock at which one stays a moment before and behind."""

    def __init__(self, lock: Any, dice: random.Random) -> None:
        self._lock, self._dice = lock, dice

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)

    def _loiter(self) -> None:
        roll = self._dice.random()
        if roll < 0.05:
            _NEVER.wait(roll * 0.01)
        elif roll < 0.4:
            _NEVER.wait(1e-6)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        self._loiter()
        taken: bool = self._lock.acquire(blocking, timeout)
        self._loiter()
        return taken

    def release(self) -> None:
        self._loiter()
        self._lock.release()
        self._loiter()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *failure: Any) -> None:
        self.release()


class _Threading:
    """The module, with other locks."""

    def __init__(self, dice: random.Random) -> None:
        self.Lock = lambda: Loiterer(threading.Lock(), dice)
        self.RLock = lambda: Loiterer(threading.RLock(), dice)

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


@contextlib.contextmanager
def loitering(dice: random.Random) -> Iterator[None]:
    """What is made inside of the block loiters."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    proxy = _Threading(random.Random(dice.random()))
    places = [module for module in WHERE if getattr(module, "threading", None) is threading]
    for module in places:
        module.threading = proxy  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in places:
            module.threading = threading  # type: ignore[attr-defined]
        sys.setswitchinterval(before)
