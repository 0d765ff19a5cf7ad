"""What tells a command to end comes in the middle of anything, of its wait for it too."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any

import pytest

from jmsish.cli.signals import Told, told_by_signals

PATIENCE = 30.0


def interrupted_at(line: int, wait: Callable[[], Any], what: Callable[[], None]) -> bool:
    """Waits in a thread that does ``what`` in the middle, when it comes to so many lines; whether there were so many.

    As a signal does, it does that between two lines, whatever is held there.
    """
    lines, came, returned = count(1), threading.Event(), threading.Event()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line" and next(lines) == line:
            came.set()
            sys.settrace(None)
            what()
            return None
        return trace

    def run() -> None:
        sys.settrace(trace)
        try:
            wait()
        finally:
            sys.settrace(None)
            returned.set()

    threading.Thread(target=run, daemon=True).start()
    assert returned.wait(PATIENCE), f"it hangs at line {line}"
    return came.is_set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_told_to_end_amid_its_wait_ends(number: signal.Signals) -> None:
    """An event is no way to tell it: who was interrupted while it had the lock of the event waited for itself."""
    for line in count(1):
        with told_by_signals() as told:
            heard = signal.getsignal(number)
            assert callable(heard)
            there = interrupted_at(line, lambda: told.wait(0.001), lambda: heard(number, None))  # noqa: B023
            assert not there or told.wait(PATIENCE)
        if not there:
            break
    assert line > 5


def test_a_hangup_amid_a_wait_is_heard() -> None:
    for line in count(1):
        heard: list[int] = []
        told = Told(lambda: heard.append(1))  # noqa: B023
        there = interrupted_at(line, lambda: told.wait(0.001), told.hang_up)  # noqa: B023
        told.wait(0)
        assert bool(heard) is there
        told.close()
        if not there:
            break
    assert line > 5


def test_signals_mean_what_they_meant_before_after_the_block() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    heard: list[int] = []
    with told_by_signals(lambda: heard.append(1)) as told:
        signal.raise_signal(signal.SIGHUP)
        assert not told.wait(0) and heard == [1]
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(PATIENCE) and told.wait(0)
    assert [signal.getsignal(number) for number in numbers] == before
    told.stop()  # by a thread that comes late: nobody waits any more


def test_a_signal_that_has_called_nothing_yet_wakes_who_waits() -> None:
    """It came before the system had put the thread to sleep, which would have slept on: for `jmsish broker` half a
    minute, for `jmsish freeze` as long as it held."""
    with told_by_signals() as told:
        written = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(written)

        def come() -> None:
            told._is_stopped = True  # what the signal calls, if it did
            os.write(written, bytes([signal.SIGTERM]))  # as the interpreter does, at once

        coming = threading.Thread(target=come)
        coming.start()
        assert told.wait(1e6)
        coming.join(PATIENCE)
    assert signal.set_wakeup_fd(-1) == -1


def test_who_waits_is_woken_by_another_thread() -> None:
    told = Told()
    telling = threading.Thread(target=told.stop)
    telling.start()
    assert told.wait(PATIENCE)
    telling.join(PATIENCE)
    told.close()
