"""Portions: of what one read of a layer holds, each connection has some worked off in a turn of the I/O thread.

A quarter of a megabyte of the smallest frames of WebSocket takes a layer a second. So it gives a few at a time
(`Layer.unread`), and whoever wants the next says so here: one has them in a turn of the thread, however many
connections flood it, and between two turns everybody else is heard.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

__all__ = ["Portions"]


class Portions:
    """Of one I/O thread, used by it alone; ``post`` has something called in its next turn."""

    __slots__ = ("_post", "_waiting")

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post
        self._waiting: deque[Callable[[], None]] = deque()

    def ask(self, action: Callable[[], None]) -> None:
        """Have it called when its turn comes."""
        self._waiting.append(action)
        if len(self._waiting) == 1:
            self._post(self._next)

    def _next(self) -> None:
        action = self._waiting[0]
        try:
            action()
        finally:
            self._waiting.popleft()  # only now: what it asks for itself comes last, and is not posted beside the others
            if self._waiting:
                self._post(self._next)
