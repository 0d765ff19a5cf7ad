"""Everything that closes is an asynchronous context manager."""

from __future__ import annotations

from typing import Any, TypeVar

C = TypeVar("C", bound="Closing")


class Closing:
    """Closed at the end of an `async with` block."""

    async def close(self) -> None:
        """Close it.  Twice is silent."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it closes")

    async def __aenter__(self: C) -> C:
        return self

    async def __aexit__(self, *failure: Any) -> None:
        await self.close()
