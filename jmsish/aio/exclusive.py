"""A session is used by one task at a time: a second one is refused, not made to wait.

While a listener runs, the session is its task's. What that begins and waits for, by `asyncio.wait_for` (up to Python
3.11), `gather` or a task group, runs in tasks of their own and works for the listener: one at a time is let in.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any, Final

from jmsish.errors import ConcurrencyError

INSIDE: Final[ContextVar[object]] = ContextVar("jmsish_inside", default=None)
"""The call of a listener in which the running code was begun; tasks have it from the task that made them."""


class Exclusive:
    """Held by the task that uses a session, for as long as its call lasts; the same task may enter again."""

    __slots__ = ("_depth", "_guest", "_guest_depth", "_owner", "_waiters", "is_looking", "lent")

    def __init__(self) -> None:
        self._owner: asyncio.Task[Any] | None = None
        self._depth = 0
        self._guest: asyncio.Task[Any] | None = None
        """A task that works for the owner, and is in the session for it."""
        self._guest_depth = 0
        self.lent: object = None
        """The call of a listener that runs: tasks begun in it are let in, one at a time."""
        self._waiters: list[asyncio.Future[None]] = []
        self.is_looking = False
        """It is held by the task of the listeners, which looks whether there is something for one of them: there may
        be none any more, so whoever comes meanwhile waits for the answer, and is not refused for nothing."""

    def __enter__(self) -> None:
        me = asyncio.current_task()
        if self._owner is None:
            self._owner = me
        elif self._owner is not me or self._guest is not None:
            if not self._enter_as_guest(me):
                raise refusal(me, self._guest or self._owner)
            return
        self._depth += 1

    def _enter_as_guest(self, me: asyncio.Task[Any] | None) -> bool:
        if self._guest is None and self.lent is not None and INSIDE.get() is self.lent:
            self._guest = me
        elif self._guest is None or self._guest is not me:
            return False
        self._guest_depth += 1
        return True

    def __exit__(self, *failure: Any) -> None:
        self.leave()

    async def __aenter__(self) -> None:
        if self.is_looking:
            await self.looked()
        self.__enter__()

    async def __aexit__(self, *failure: Any) -> None:
        self.leave()

    @property
    def is_others(self) -> bool:
        """Whether another task is in the session."""
        return self._owner is not None and self._owner is not current_task()

    def check(self, but: asyncio.Task[Any] | None) -> None:
        """Raise `ConcurrencyError` while a task other than the caller and `but` uses the session."""
        if self._owner is None or self._owner is but:
            return
        me = current_task()
        if self._owner is not me:
            raise refusal(me, self._owner)

    def leave(self) -> None:
        if self._guest is not None:
            if self._guest is asyncio.current_task():
                self._guest_depth -= 1
                if not self._guest_depth:
                    self._guest = None
                return
            if self._depth == 1:  # the listener has returned, and what it began goes on by itself
                self._owner, self._depth = self._guest, self._guest_depth
                self._guest, self._guest_depth = None, 0
                return
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self.end_look()

    def end_look(self) -> None:
        """What was looked for is found, or the session is left: who waited may ask again whether it is let in."""
        self.is_looking = False
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def looked(self) -> None:
        """Wait as long as the session is only looked at; see `is_looking`."""
        while self.is_looking:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    async def wait(self, timeout: float | None = None, *, as_guest: bool = False, looking: bool = False) -> bool:
        """Enter, waiting for whoever uses the session (for listeners and closes); whether that came in time.

        ``as_guest``: without waiting for the listener for which the caller works.  ``looking`` is for `is_looking`.
        """
        me = asyncio.current_task()
        if as_guest and self._owner is not me and self._enter_as_guest(me):
            return True
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while self._owner is not None and self._owner is not me:
            waiter = loop.create_future()
            self._waiters.append(waiter)
            await asyncio.wait([waiter], timeout=None if deadline is None else deadline - loop.time())
            if not waiter.done():
                self._waiters.remove(waiter)
                return False
        self._owner = me
        self._depth += 1
        self.is_looking = looking
        return True


def current_task() -> asyncio.Task[Any] | None:
    """The task that runs, or None outside a loop, where a listener may be set as well."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def refusal(me: asyncio.Task[Any] | None, owner: asyncio.Task[Any]) -> ConcurrencyError:
    return ConcurrencyError(
        f"a session is used by one task at a time: task {name_of(me)!r} came while task {name_of(owner)!r} uses it"
    )


def name_of(task: asyncio.Task[Any] | None) -> str:
    return "outside a task" if task is None else task.get_name()
