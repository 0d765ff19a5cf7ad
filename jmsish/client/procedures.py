"""Procedures: operations of several steps, spelled out as generators.

A procedure yields `(future, deadline)` pairs and is resumed with the future's result, or with its exception raised at
the `yield`.  `deadline` is a moment of the connection's monotonic clock in seconds, or None to wait for ever; when it
passes, the driver raises `OperationTimeoutError` at the `yield`, so running out of time is an input like any other.
Each step runs while the driver owns the connection; between steps nobody owns it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, TypeVar

from jmsish.errors import ConnectionLostError, JMSError

T = TypeVar("T")

Wait = tuple["Future[Any]", "float | None"]
Procedure = Generator[Wait, Any, T]


class Interrupted(ConnectionLostError):
    """What was waited for went with a connection that is being made again; it may be asked for anew.

    The loss itself is its cause.
    """


def silenced(closing: Procedure[None], lost: Callable[[], bool]) -> Procedure[None]:
    """Close something; a connection lost meanwhile is no error of the close: what it held has gone back."""
    try:
        yield from closing
    except JMSError:
        if not lost():
            raise


def settle(future: Future[Any] | None, result: Any = None) -> None:
    """Complete `future` unless somebody did already (a waiter that gave up cancels it)."""
    if future is not None and not future.done():
        future.set_result(result)


def fail(future: Future[Any] | None, error: BaseException) -> None:
    """Fail `future` unless it is done already."""
    if future is not None and not future.done():
        future.set_exception(error)
