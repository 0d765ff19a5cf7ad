"""Questions of a broker that take their time, or run code of the program: asked by threads of their own.

The broker's lock is not held meanwhile, nor any other, so a directory server that does not answer keeps waiting whoever
wants to log in, and nobody else. The threads are daemons, begun when there is something to ask, few at a time, and gone
when there has been nothing for a while.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

__all__ = ["Asking"]

_log = logging.getLogger("jmsish.broker")

#: So many questions are asked at a time; further ones wait.
_THREADS = 8

#: A thread that has had nothing to ask for so many seconds ends.
_PATIENCE = 10.0


class Asking:
    """Runs what it is given, each with no lock held."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._idle = 0
        self._threads = 0
        self._stopped = False

    def ask(self, question: Callable[[], None]) -> None:
        """Have it called, soon; may be called under any lock."""
        with self._changed:
            if self._stopped:
                return
            self._waiting.append(question)
            if self._idle >= len(self._waiting):
                self._changed.notify()
            elif self._threads < _THREADS:
                self._threads += 1
                threading.Thread(target=self._run, name=f"jmsish-broker-{self._name}-asks", daemon=True).start()

    def stop(self) -> None:
        """Ask nothing further. What is being asked runs to its end, which nobody waits for."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while (question := self._next()) is not None:
            try:
                question()
            except BaseException:  # one that ended would be missed: there are only so many
                _log.exception("a question of the broker %r failed", self._name)

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._waiting and not self._stopped:
                self._idle += 1
                called = self._changed.wait(_PATIENCE)
                self._idle -= 1
                if not called and not self._waiting:
                    break
            if self._waiting and not self._stopped:
                return self._waiting.popleft()
            self._threads -= 1
            return None
