"""The embedded brokers that run in this process, by name: where ``vm://NAME`` leads."""

from __future__ import annotations

import threading
import weakref

from jmsish.drivers.forks import in_child
from jmsish.drivers.serving import BrokerDriver
from jmsish.drivers.transport import PipeEnd
from jmsish.errors import ConnectionLostError, IllegalStateError

__all__ = ["connect_vm", "find", "register", "running", "unregister"]

# Weak: a broker that was dropped without a stop, and to which nobody is connected, is gone.
_running: weakref.WeakValueDictionary[str, BrokerDriver] = weakref.WeakValueDictionary()
_lock = threading.Lock()  # a leaf: nothing is called under it


def register(driver: BrokerDriver) -> None:
    """Make a broker reachable by its name; two of one name never meet."""
    with _lock:
        if _running.get(driver.name, driver) is not driver:
            raise IllegalStateError(f"a broker named {driver.name!r} runs in this process already")
        _running[driver.name] = driver


def unregister(driver: BrokerDriver) -> None:
    """Take it off the list, if it is the one that is on it."""
    with _lock:
        if _running.get(driver.name) is driver:
            del _running[driver.name]


def running() -> list[str]:
    """The names of the brokers that run, sorted."""
    with _lock:
        return sorted(_running)


def find(name: str) -> BrokerDriver:
    """The broker of that name; ConnectionLostError where none runs."""
    with _lock:
        driver = _running.get(name)
    if driver is None:
        others = running()
        there = "running here: " + ", ".join(map(repr, others)) if others else "none is running"
        raise ConnectionLostError(f"cannot connect to vm://{name}: no broker of that name in this process ({there})")
    return driver


def connect_vm(name: str, *, identity: str | None = None) -> PipeEnd:
    """A pipe into the broker of that name. ``identity`` is the user's name for policy; nothing is asked of it."""
    return find(name).connect(f"vm://{name}", identity)


def _forget_all() -> None:
    """After a fork, in the child, in which none of them runs."""
    global _lock
    _lock = threading.Lock()
    _running.clear()


in_child(_forget_all)
