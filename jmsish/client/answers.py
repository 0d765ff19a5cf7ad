"""What one waits for, without a lock of its own.

A `concurrent.futures.Future` can be completed and waited for by any threads, and pays for that with a condition. What
the broker answers is always taken in by the owner of the connection, and drivers wait by means of their own: all they
ask of a future is whether it is done, and to be called, in the loop that also completes it, when it is.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Answer(Future[T]):
    """A future that only the owner of the connection completes, and nobody blocks on."""

    unheard = False
    """Whoever waited has given up: nobody is to wait on its account any more."""

    def __init__(self) -> None:
        self._over = False
        self._value: Any = None
        self._fault: BaseException | None = None
        self._calls: list[Callable[[Future[T]], object]] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'done' if self._over else 'pending'}>"

    def done(self) -> bool:
        return self._over

    def running(self) -> bool:
        return False

    def cancel(self) -> bool:
        """It cannot be: what was asked has been said."""
        return False

    def cancelled(self) -> bool:
        return False

    def set_result(self, result: T) -> None:
        self._value = result
        self._end()

    def set_exception(self, exception: BaseException | None) -> None:
        self._fault = exception
        self._end()

    def _end(self) -> None:
        assert not self._over, "answered twice"
        # Last: who sees it without owning the connection finds the rest.
        self._over = True
        if self._calls is not None:
            calls, self._calls = self._calls, None
            for call in calls:
                call(self)

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        if self._over:
            fn(self)
        elif self._calls is None:
            self._calls = [fn]
        else:
            self._calls.append(fn)

    def result(self, timeout: float | None = None) -> T:
        """What came, or the fault raised; it does not wait."""
        assert self._over, "not answered yet"
        if self._fault is not None:
            raise self._fault
        value: T = self._value
        return value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The fault, or None; it does not wait."""
        assert self._over, "not answered yet"
        return self._fault
