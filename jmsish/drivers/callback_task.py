"""The application's callbacks of an asyncio connection; apart from `callbacks.py`, so that threads need no asyncio."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from jmsish.drivers.callbacks import Call, as_given
from jmsish.drivers.telling import tell_fault

log = logging.getLogger("jmsish.client")


class CallbackTask:
    """A task that lives while there is something to call, coroutine functions included."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Call] = deque()
        self._task: asyncio.Task[None] | None = None
        self._calling: Callable[..., Any] | None = None

    @property
    def calling(self) -> Callable[..., Any] | None:
        """What the caller of this property runs in, if it runs in one of the calls."""
        return self._calling if self._task is not None and asyncio.current_task() is self._task else None

    def take(self, calls: list[Call]) -> None:
        """Take over what is to be called."""
        self._calls.extend(calls)
        calls.clear()
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._run(), name="jmsish callbacks")

    async def finish(self) -> None:
        """Wait until all that was taken so far has returned; in one of the calls itself, do not wait."""
        task = self._task
        if task is not None and not task.done() and asyncio.current_task() is not task:
            await asyncio.wait([task])

    async def _run(self) -> None:
        while self._calls:
            self._calling, args = self._calls.popleft()
            try:
                result = self._calling(*args)
                if inspect.isawaitable(result):
                    await result
            except Exception:
                tell_fault(log, "a callback of the application failed: %r", as_given(self._calling))
            finally:
                self._calling = None
