"""The application's callbacks of an asyncio connection; apart from `callbacks.py`, so that threads need no asyncio."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from jmsish.drivers.callbacks import Call, as_given
from jmsish.drivers.telling import tell_fault

log = logging.getLogger("jmsish.client")

_INSIDE: Final[ContextVar[object]] = ContextVar("jmsish_callback", default=None)
"""The call in which the running code was begun; tasks have it from the task that made them."""


class CallbackTask:
    """A task that lives while there is something to call, coroutine functions included."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Call] = deque()
        self._task: asyncio.Task[None] | None = None
        self._calling: Callable[..., Any] | None = None
        self._call: object = None
        """Which call it is."""

    @property
    def calling(self) -> Callable[..., Any] | None:
        """What the caller of this property runs in, if it runs in one of the calls."""
        return self._calling if self._task is not None and asyncio.current_task() is self._task else None

    @property
    def _is_inside(self) -> bool:
        """Whether the caller is one of the calls, or a task that it has begun and may be waiting for."""
        return self._call is not None and _INSIDE.get() is self._call

    def take(self, calls: list[Call]) -> None:
        """Take over what is to be called."""
        self._calls.extend(calls)
        calls.clear()
        self._begin()

    def _begin(self) -> asyncio.Task[None]:
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._run(), name="jmsish callbacks")
        return self._task

    async def finish(self) -> None:
        """Wait until all that was taken so far has returned; in one of the calls itself, do not wait."""
        while not self._is_inside and (self._calls or self._call is not None):
            await asyncio.wait([self._begin()])

    async def _run(self) -> None:
        while self._calls:
            self._calling, args = self._calls.popleft()
            self._call = object()
            begun = _INSIDE.set(self._call)
            try:
                result = self._calling(*args)
                if inspect.isawaitable(result):
                    await result
            except asyncio.CancelledError:
                if is_cancelled():
                    raise
                tell_fault(log, "a callback of the application awaited what was cancelled: %r", as_given(self._calling))
            except Exception:
                tell_fault(log, "a callback of the application failed: %r", as_given(self._calling))
            finally:
                _INSIDE.reset(begun)
                self._calling = self._call = None


def is_cancelled() -> bool:
    """Whether it is this task that somebody cancelled, and not just something it awaited (Python 3.10 does not say)."""
    task = asyncio.current_task()
    cancelling = getattr(task, "cancelling", None)
    return cancelling is None or cancelling() > 0
