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

from jmsish.drivers.telling import began, tell_fault

__all__ = ["Asking"]

_log = logging.getLogger("jmsish.broker")

#: So many questions are asked at a time; further ones wait.
_THREADS = 8

#: And so many of one who asks, so that others find somebody free.
_OF_ONE = 6

#: A thread that has had nothing to ask for so many seconds ends.
_PATIENCE = 10.0


Asked = Callable[[], None]


class Asking:
    """Runs what it is given, each with no lock held.

    Each question is somebody's, and all who ask have their turns: one host that asks for a thousand logins at once
    would have those of all others wait behind them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: dict[str, deque[Asked]] = {}  # whose turn is next comes first
        self._count = 0  # of all that wait
        self._asked: dict[str, int] = {}  # of whose questions so many are being asked
        self._changed = threading.Condition()
        self._idle = 0
        self._threads = 0
        self._stopped = False

    def ask(self, question: Asked, whose: str = "") -> None:
        """Have it called, soon; may be called under any lock."""
        with self._changed:
            if self._stopped:
                return
            self._waiting.setdefault(whose, deque()).append(question)
            self._count += 1
            if self._idle:
                self._changed.notify()  # who is woken sees whose turn it is: this one's, though many others wait
            if self._idle < self._count and self._threads < _THREADS:
                self._threads += 1
                if began(_log, self._run, f"jmsish-broker-{self._name}-asks") is None:
                    self._threads -= 1

    def stop(self) -> None:
        """Ask nothing further. What is being asked runs to its end, which nobody waits for."""
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._count = 0
            self._changed.notify_all()

    def _run(self) -> None:
        while (found := self._next()) is not None:
            whose, question = found
            try:
                question()
            except BaseException:  # one that ended would be missed: there are only so many
                tell_fault(_log, "a question of the broker %r failed", self._name)
            with self._changed:
                self._asked[whose] -= 1
                if not self._asked[whose]:
                    del self._asked[whose]
                if self._count:
                    self._changed.notify()  # one more of theirs may be asked

    def _next(self) -> tuple[str, Asked] | None:
        with self._changed:
            while not self._stopped:
                found = self._turn()
                if found is not None:
                    return found
                self._idle += 1
                called = self._changed.wait(_PATIENCE)
                self._idle -= 1
                if not called and not self._count:
                    break
            self._threads -= 1
            return None

    def _turn(self) -> tuple[str, Asked] | None:
        """The next question of the next who may ask, who is the last in the row then."""
        for whose, questions in self._waiting.items():
            if self._asked.get(whose, 0) < _OF_ONE:
                del self._waiting[whose]
                question = questions.popleft()
                if questions:
                    self._waiting[whose] = questions
                self._count -= 1
                self._asked[whose] = self._asked.get(whose, 0) + 1
                return whose, question
        return None
