"""A session is used by one thread at a time, and by none once its thread has left it, whatever interrupted that."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from jmsish.aio.exclusive import INSIDE
from jmsish.aio.exclusive import Exclusive as AioExclusive
from jmsish.errors import ConcurrencyError
from jmsish.sync.exclusive import Exclusive


class InterruptedLock:
    """A lock that is taken, and then Ctrl-C comes before the taker is told."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.interrupts = 1

    def acquire(self, *arguments: Any, **named: Any) -> bool:
        taken = self._lock.acquire(*arguments, **named)
        if self.interrupts:
            self.interrupts -= 1
            raise KeyboardInterrupt
        return taken

    def release(self) -> None:
        self._lock.release()

    def _is_owned(self) -> bool:
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]


def refused_elsewhere(exclusive: Exclusive) -> bool:
    """Whether another thread is refused."""
    refused: list[bool] = []

    def enter() -> None:
        try:
            with exclusive:
                refused.append(False)
        except ConcurrencyError:
            refused.append(True)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return refused[0]


def test_one_thread_at_a_time_however_often_it_enters() -> None:
    exclusive = Exclusive()
    with exclusive, exclusive:
        assert exclusive.wait(0)
        assert refused_elsewhere(exclusive)
        exclusive.leave()
        assert refused_elsewhere(exclusive)
    assert not refused_elsewhere(exclusive)


@pytest.mark.parametrize("way", ["with", "wait"])
def test_an_interrupt_in_the_moment_of_entering_leaves_nobody_in(way: str) -> None:
    exclusive = Exclusive()
    exclusive._lock = InterruptedLock()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        if way == "wait":
            exclusive.wait(30)
        else:
            with exclusive:
                raise AssertionError("the interrupt comes before the body")
    assert not refused_elsewhere(exclusive)
    assert exclusive.wait(0)
    exclusive.leave()
    assert not refused_elsewhere(exclusive)


def test_who_is_refused_takes_nothing_away() -> None:
    exclusive = Exclusive()
    with exclusive:
        assert refused_elsewhere(exclusive) and refused_elsewhere(exclusive)
        assert exclusive.wait(0)
        exclusive.leave()
    assert not refused_elsewhere(exclusive)


class StoppedLock:
    """A lock whose first holder stops behind the step at which it has taken it, or before it gives it back, until
    another has found it taken, and has been refused or asks again."""

    def __init__(self, moment: str) -> None:
        self._lock = threading.RLock()
        self._moment = moment
        self._holder = 0
        self.stopped, self.goes_on = threading.Event(), threading.Event()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = threading.get_ident()
        if self.stopped.is_set() and me != self._holder and blocking:
            self.goes_on.set()
        taken = self._lock.acquire(blocking, timeout)
        if taken and not self._holder:
            self._holder = me
            self._stop("taken")
        return taken

    def release(self) -> None:
        self._stop("left")
        self._lock.release()

    def _stop(self, moment: str) -> None:
        if moment == self._moment and threading.get_ident() == self._holder and not self.stopped.is_set():
            self.stopped.set()
            assert self.goes_on.wait(30)

    def _is_owned(self) -> bool:
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]


@pytest.mark.parametrize("moment", ["taken", "left"])
def test_nobody_is_refused_for_a_look_that_has_just_begun_or_is_just_over(moment: str) -> None:
    """The thread of the listeners takes the session, says that it only looks, and leaves it: between these steps
    another thread was refused, for nothing, after a listener had come to its end or the connection was stopped."""
    exclusive = Exclusive()
    lock = StoppedLock(moment)
    exclusive._lock = lock  # type: ignore[assignment]

    def look() -> None:
        assert exclusive.wait(30, looking=True)
        exclusive.leave()

    looking = threading.Thread(target=look)
    looking.start()
    assert lock.stopped.wait(30)
    refused = refused_elsewhere(exclusive)
    lock.goes_on.set()
    looking.join()
    assert not refused


async def begun(call: object, *uses: AioExclusive) -> bool:
    """Whether a task that was begun in this call of a listener is let in by all of these."""

    async def enter() -> bool:
        with ExitStack() as stack:
            try:
                for use in uses:
                    stack.enter_context(use)
            except ConcurrencyError:
                return False
            return True

    mark = INSIDE.set(call)
    try:
        return await asyncio.create_task(enter())
    finally:
        INSIDE.reset(mark)


def test_a_task_that_a_listener_began_is_let_in_and_others_are_not() -> None:
    async def scene() -> None:
        exclusive, call = AioExclusive(), object()
        with exclusive:
            assert not await begun(call, exclusive)
            exclusive.lent = call
            assert await begun(call, exclusive) and await begun(call, exclusive, exclusive)
            assert not await begun(None, exclusive) and not await begun(object(), exclusive)
            exclusive.lent = None
            assert not await begun(call, exclusive)
        assert await begun(None, exclusive)

    asyncio.run(scene())


def test_of_what_a_listener_began_one_task_is_in_at_a_time_and_stays_when_it_returns() -> None:
    async def scene() -> None:
        exclusive, call = AioExclusive(), object()
        inside, leave = asyncio.Event(), asyncio.Event()

        async def stay() -> None:
            async with exclusive:
                with exclusive:
                    inside.set()
                    await leave.wait()

        with exclusive:
            exclusive.lent = call
            mark = INSIDE.set(call)
            guest = asyncio.create_task(stay(), name="guest")
            INSIDE.reset(mark)
            await inside.wait()
            assert not await begun(call, exclusive)
            with pytest.raises(ConcurrencyError, match="'guest'"):
                exclusive.__enter__()
            exclusive.lent = None
        assert not await begun(None, exclusive)
        waiting = asyncio.create_task(exclusive.wait())
        leave.set()
        await guest
        assert await waiting

    asyncio.run(scene())
