"""A session is used by one task at a time: a second one is refused, not made to wait."""

from __future__ import annotations

import asyncio
from typing import Any

from jmsish.errors import ConcurrencyError


class Exclusive:
    """Held by the task that uses a session, for as long as its call lasts; the same task may enter again."""

    __slots__ = ("_depth", "_owner", "_waiters")

    def __init__(self) -> None:
        self._owner: asyncio.Task[Any] | None = None
        self._depth = 0
        self._waiters: list[asyncio.Future[None]] = []

    def __enter__(self) -> None:
        me = asyncio.current_task()
        if self._owner is not None and self._owner is not me:
            raise refusal(me, self._owner)
        self._owner = me
        self._depth += 1

    def __exit__(self, *failure: Any) -> None:
        self.leave()

    async def __aenter__(self) -> None:
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
        self._depth -= 1
        if not self._depth:
            self._owner = None
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._waiters.clear()

    async def wait(self, timeout: float | None = None) -> bool:
        """Enter, waiting for whoever uses the session (for listeners and closes); whether that came in time."""
        me = asyncio.current_task()
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
