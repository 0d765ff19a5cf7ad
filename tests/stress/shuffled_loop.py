"""An event loop that runs what is ready in another order than it came, and puts some of it off for a few turns.

asyncio promises little about that order: what one transport tells its protocol comes in its order, and so do callbacks
of one future. Who is ready of several tasks goes first by the age of their being so, which no program should need: here
it is by the dice. What is neither a task's step nor a future's callback (sockets, pipes, timers, `call_soon`) keeps its
own order.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LONGEST = 4
"""Turns for which something is put off at most; it may be put off again."""


class ShuffledLoop(asyncio.SelectorEventLoop):
    """By a seed, the same programs without sockets and threads run the same way."""

    def __init__(self, seed: object, put_off: float = 0.25) -> None:
        super().__init__()
        self.dice = random.Random(f"{seed}")
        self.put_off = put_off
        """How likely it is that a step is put off."""
        self._held: dict[object, tuple[int, list[Any]]] = {}
        """Whose turns are put off: until which turn of the loop, and what is to be done then."""
        self._turn = 0

    def _run_once(self) -> None:
        if self._held:
            self.call_soon(_nothing)  # so that it does not sleep over them
        super()._run_once()  # type: ignore[misc]

    def _process_events(self, events: list[Any]) -> None:
        super()._process_events(events)  # type: ignore[misc]
        self._turn += 1
        ready: deque[Any] = self._ready  # type: ignore[has-type]
        lines: dict[object, deque[Any]] = {}
        for whose in [whose for whose, (until, _) in self._held.items() if until <= self._turn]:
            lines[whose] = deque(self._held.pop(whose)[1])
        for handle in ready:
            whose = whose_is(handle)
            if whose in self._held:
                self._held[whose][1].append(handle)
            elif whose is not None and whose not in lines and self.dice.random() < self.put_off:
                self._held[whose] = self._turn + self.dice.randint(1, LONGEST), [handle]
            else:
                lines.setdefault(whose, deque()).append(handle)
        ready.clear()
        order = [whose for whose, line in lines.items() for _ in line]
        self.dice.shuffle(order)
        ready.extend(lines[whose].popleft() for whose in order)


def _nothing() -> None: ...


def whose_is(handle: Any) -> object:
    """Whose turn it is: a task's or a future's, or None for what has to keep its place."""
    callback, args = handle._callback, handle._args or ()
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.AbstractEventLoop):
        return None
    if args and asyncio.isfuture(args[0]):  # all that one future wakes goes by its order
        return id(args[0])
    if isinstance(owner, asyncio.Task):
        return id(owner)
    return None


def run_shuffled(seed: object, work: Callable[[], Coroutine[Any, Any, T]], put_off: float = 0.25) -> T:
    """As `asyncio.run`; a complaint to the loop (an exception nobody retrieved) is an error."""
    complaints: list[str] = []
    loop = ShuffledLoop(seed, put_off)
    loop.set_exception_handler(lambda _, context: complaints.append(f"{context}"))
    try:
        result = loop.run_until_complete(work())
        loop.run_until_complete(_rest(loop))
    finally:
        loop.close()
    if complaints:
        raise AssertionError("\n".join(complaints))
    return result


async def _rest(loop: ShuffledLoop) -> None:
    """What `asyncio.run` does at its end."""
    left = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
