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


def threads_of_ours() -> list[threading.Thread]:
    """All but the one that writes the frame trace: it is there once for the whole process, where anybody traced."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("jmsish ")]
    return [thread for thread in threads if thread.name != "jmsish frame trace"]


def await_end(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), thread
