"""What a listener saw, and a way to wait until it has seen it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from .blocking import PATIENCE


class Log:
    """A list that others can wait for. This one belongs to the blocking face: any thread adds, any thread waits."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self._grown = threading.Condition()

    def add(self, item: str) -> None:
        with self._grown:
            self.items.append(item)
            self._grown.notify_all()

    async def _when(self, condition: Callable[[], bool]) -> bool:
        with self._grown:
            return self._grown.wait_for(condition, PATIENCE)

    async def reach(self, count: int) -> list[str]:
        """Waits for `count` items and returns all there are."""
        if not await self._when(lambda: len(self.items) >= count):
            raise AssertionError(f"waited for {count} items, there are {self.items}")
        return list(self.items)

    async def until(self, item: str) -> None:
        """Waits for this very item."""
        if not await self._when(lambda: item in self.items):
            raise AssertionError(f"waited for {item!r}, there are {self.items}")


class LoopLog(Log):
    """The same for one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def add(self, item: str) -> None:
        self.items.append(item)
        for condition, future in self._waiting:
            if not future.done() and condition():
                future.set_result(None)

    async def _when(self, condition: Callable[[], bool]) -> bool:
        if condition():
            return True
        entry = (condition, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        try:
            await asyncio.wait_for(entry[1], PATIENCE)
        except asyncio.TimeoutError:
            return False
        finally:
            self._waiting.remove(entry)
        return True
