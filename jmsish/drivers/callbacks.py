"""The application's callbacks (completions, the exception listener): one by one, in order, outside all locks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from jmsish.drivers.telling import began, tell_fault

log = logging.getLogger("jmsish.client")

Call = tuple[Callable[..., Any], tuple[Any, ...]]


def as_given(call: Any) -> Any:
    """The callable that the application gave, where ours stands around it: that is the one it knows."""
    return getattr(getattr(call, "__self__", None), "callback", call)


class CallbackThread:
    """A thread that makes the calls of one blocking connection; it begins with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Call | threading.Event | None] = SimpleQueue()
        self._over = False
        self._thread: threading.Thread | None = None
        self._calling: Callable[..., Any] | None = None

    @property
    def calling(self) -> Callable[..., Any] | None:
        """What the caller of this property runs in, if it runs in one of the calls."""
        return self._calling if threading.current_thread() is self._thread else None

    def take(self, calls: list[Call]) -> None:
        """Take over what is to be called.  The owner of the connection calls this, one at a time."""
        if self._thread is None:
            self._thread = began(log, self._run, self._name)
            if self._thread is None:
                return  # they stay where they are until the next is taken
        for call in calls:
            self._calls.put(call)
        calls.clear()

    def finish(self, timeout: float | None) -> None:
        """Wait until all that was taken so far has returned; in one of the calls itself, do not wait."""
        thread = self._thread
        if thread is None or threading.current_thread() is thread or not thread.is_alive():
            return  # also in a child made by fork, where it is not there
        returned = threading.Event()
        self._calls.put(returned)
        if not self._over:  # else nobody may see it any more, and all calls have returned
            returned.wait(timeout)

    def end(self) -> None:
        """No further calls.  Waits for nothing."""
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            if isinstance(call, threading.Event):
                call.set()
                continue
            self._calling, args = call
            try:
                self._calling(*args)
            except BaseException:  # a SystemExit too: it would end the callbacks of the whole connection
                tell_fault(log, "a callback of the application failed: %r", as_given(self._calling))
            finally:
                self._calling = None
        self._over = True
        while not self._calls.empty():  # who came to wait meanwhile
            late = self._calls.get()
            if isinstance(late, threading.Event):
                late.set()
