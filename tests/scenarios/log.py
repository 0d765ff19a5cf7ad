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
        """Whether it comes true; it is waited for as long as now and then another item comes."""
        with self._grown:
            while not condition():
                if not self._grown.wait(PATIENCE):
                    return condition()
        return True

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
        self._waiting: list[asyncio.Future[None]] = []

    def add(self, item: str) -> None:
        self.items.append(item)
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def _when(self, condition: Callable[[], bool]) -> bool:
        while not condition():
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await asyncio.wait_for(future, PATIENCE)
            except asyncio.TimeoutError:
                return condition()
            finally:
                self._waiting.remove(future)
        return True
