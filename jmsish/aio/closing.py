"""Everything that closes is an asynchronous context manager."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from jmsish._attributes import KnownAttributes

C = TypeVar("C", bound="Closing")


class Closing(KnownAttributes):
    """Closed at the end of an `async with` block."""

    async def close(self) -> None:
        """Close it.  Twice is silent."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it closes")

    async def __aenter__(self: C) -> C:
        return self

    async def __aexit__(self, *failure: Any) -> None:
        await self.close()


class Opening(Generic[C]):
    """What is to be opened: by awaiting it, or by entering it with `async with`, which closes it at the end."""

    def __init__(self, opening: Callable[[], Coroutine[Any, Any, C]]) -> None:
        self._open = opening
        self._opened: C | None = None

    def __await__(self) -> Generator[Any, None, C]:
        return self._open().__await__()

    async def __aenter__(self) -> C:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(self, *failure: Any) -> None:
        assert self._opened is not None
        await self._opened.close()
