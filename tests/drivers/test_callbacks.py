"""The thread that calls back: who waits for it is not kept waiting by its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from jmsish.drivers.callbacks import CallbackThread

PATIENCE = 30.0


def returns(wait: Callable[[], Any]) -> bool:
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return not thread.is_alive()


@pytest.fixture
def callbacks() -> CallbackThread:
    return CallbackThread("callbacks")


def test_who_waits_goes_on_when_what_was_taken_has_returned(callbacks: CallbackThread) -> None:
    called: list[int] = []
    callbacks.take([(called.append, (number,)) for number in range(5)])
    callbacks.finish(None)
    assert called == [0, 1, 2, 3, 4]
    callbacks.end()


def test_after_the_end_nobody_waits(callbacks: CallbackThread) -> None:
    callbacks.take([(lambda: None, ())])
    callbacks.end()
    for _ in range(3):
        assert returns(lambda: callbacks.finish(None))


def test_who_comes_between_the_end_and_the_last_call_waits_for_that_one(callbacks: CallbackThread) -> None:
    going, go, called = threading.Event(), threading.Event(), []

    def call() -> None:
        going.set()
        go.wait(PATIENCE)
        called.append("returned")

    callbacks.take([(call, ())])
    assert going.wait(PATIENCE)
    callbacks.end()
    seen: list[list[str]] = []
    thread = threading.Thread(target=lambda: (callbacks.finish(None), seen.append(list(called))), daemon=True)
    thread.start()
    go.set()
    thread.join(PATIENCE)
    assert seen == [["returned"]]


def test_one_that_never_called_is_waited_for_by_nobody(callbacks: CallbackThread) -> None:
    assert returns(lambda: callbacks.finish(None))
    callbacks.end()
    assert returns(lambda: callbacks.finish(None))
