"""The task that calls back: what one call does, or waits for, keeps nobody from the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from jmsish.drivers.callback_task import CallbackTask

PATIENCE = 30.0


def played(play: Callable[[CallbackTask], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        await asyncio.wait_for(play(CallbackTask(asyncio.get_running_loop())), PATIENCE)

    asyncio.run(whole())


def test_a_call_that_awaits_what_was_cancelled_keeps_nobody_from_the_others() -> None:
    async def play(callbacks: CallbackTask) -> None:
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        called: list[int] = []

        async def call(number: int) -> None:
            called.append(number)
            await gone

        callbacks.take([(call, (number,)) for number in range(3)])
        await callbacks.finish()
        assert called == [0, 1, 2]

    played(play)


def test_a_task_that_a_call_waits_for_does_not_wait_for_the_call() -> None:
    async def play(callbacks: CallbackTask) -> None:
        ended: list[str] = []

        async def call() -> None:
            await asyncio.gather(callbacks.finish())
            ended.append("call")

        callbacks.take([(call, ())])
        await callbacks.finish()
        assert ended == ["call"]

    played(play)


def test_a_task_that_an_earlier_call_began_waits_for_the_others() -> None:
    async def play(callbacks: CallbackTask) -> None:
        told: list[str] = []
        begun: list[asyncio.Task[None]] = []
        go = asyncio.get_running_loop().create_future()

        async def finish() -> None:
            await go
            await callbacks.finish()
            told.append("finished")

        async def first() -> None:
            begun.append(asyncio.create_task(finish()))

        async def second() -> None:
            go.set_result(None)
            for _ in range(5):
                await asyncio.sleep(0)
            told.append("called")

        callbacks.take([(first, ()), (second, ())])
        await callbacks.finish()
        await begun[0]
        assert told == ["called", "finished"]

    played(play)
