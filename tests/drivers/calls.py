"""Calls in threads of their own, which have to come back in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import jmsish

PATIENCE = 30.0
FAST = 0.2
"""Seconds of a timeout that is meant to pass."""


def begin(call: Callable[[], Any], name: str = "caller") -> Future[Any]:
    """Run a call in a thread of its own."""
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return result


def prompt(call: Callable[[], Any], within: float = PATIENCE) -> Any:
    """What a call returns or raises, which it has to do in time."""
    result = begin(call)
    try:
        return result.result(within)
    except jmsish.JMSError as error:
        return error


def queue_of(session: Any) -> Any:
    return session.create_queue("q")


class Threads:
    """Those that are there now, and those that come later. A number would tell less: one that an earlier test has left
    may end at any moment."""

    def __init__(self) -> None:
        self.before = set(threading.enumerate())

    def new(self) -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread not in self.before]

    def new_of_ours(self) -> list[threading.Thread]:
        """All but the one that writes the frame trace: it is there once for the whole process, where anybody traced."""
        return [each for each in self.new() if each.name.startswith("jmsish ") and each.name != "jmsish frame trace"]


def await_end(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), thread
