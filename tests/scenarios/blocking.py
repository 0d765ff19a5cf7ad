"""The blocking face dressed as coroutines, so that a scenario is written once for both faces.

Every call is made in place, in the thread that awaits it: nothing here suspends. A coroutine that uses only these
objects therefore runs to its end without an event loop (`inline`), in whatever thread it was started, the library's own
listener threads included.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds that a scenario waits for something that has to happen."""

AWAITED = frozenset(
    "connect create_context send read readinto receive receive_no_wait receive_body receive_body_no_wait"
    " commit rollback recover acknowledge start stop close delete create_session create_connection"
    " create_producer create_consumer create_durable_consumer create_shared_consumer"
    " create_shared_durable_consumer create_browser create_temporary_queue create_temporary_topic unsubscribe".split()
)
"""The calls that `jmsish.aio` makes awaitable; all others are plain in both faces."""

LIVELY = ("close", "acknowledge", "delete", "send", "__enter__")
"""A value whose class has one of these acts; it is dressed. All other values are shown as they are."""


def inline(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end in this thread, without a loop; it must not suspend."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise AssertionError("a scenario on the blocking face suspended: something in it is not a blocking call")


def dressed(value: Any) -> Any:
    if isinstance(value, type) or not any(hasattr(type(value), name) for name in LIVELY):
        return value
    return Blocking(value)


def undressed(value: Any) -> Any:
    return value.raw if isinstance(value, Blocking) else value


class Blocking:
    """A blocking object whose waiting calls are awaitable."""

    raw: Any

    def __init__(self, raw: Any) -> None:
        object.__setattr__(self, "raw", raw)

    def __repr__(self) -> str:
        return repr(self.raw)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.raw, name)
        if not callable(value) or isinstance(value, type):
            return dressed(value)

        def called(*args: Any, **kwargs: Any) -> Any:
            plain = {key: undressed(argument) for key, argument in kwargs.items()}
            return dressed(value(*map(undressed, args), **plain))

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return called(*args, **kwargs)

        return awaited if name in AWAITED else called

    def __setattr__(self, name: str, value: Any) -> None:
        if inspect.iscoroutinefunction(value):
            setattr(self.raw, name, in_place(value))
        else:
            setattr(self.raw, name, undressed(value))

    async def __aenter__(self) -> Any:
        return dressed(self.raw.__enter__())

    async def __aexit__(self, *failure: Any) -> Any:
        return self.raw.__exit__(*failure)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in self.raw:
            yield dressed(item)


def in_place(listener: Callable[[Any], Coroutine[Any, Any, None]]) -> Callable[[Any], None]:
    """A coroutine function as the plain callable that the blocking face wants."""

    def listen(message: Any) -> None:
        inline(listener(dressed(message)))

    return listen


class Running(Generic[T]):
    """A coroutine that runs in a thread of its own; awaiting it joins it in place."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], name: str) -> None:
        self._result: Future[T] = Future()
        self._begun = threading.Event()
        threading.Thread(target=self._run, args=(coroutine,), name=name, daemon=True).start()
        self._begun.wait()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._begun.set()
        try:
            self._result.set_result(inline(coroutine))
        except BaseException as error:
            self._result.set_exception(error)

    def done(self) -> bool:
        return self._result.done()

    def __await__(self) -> Generator[Any, None, T]:
        yield from ()
        return self._result.result(PATIENCE)
