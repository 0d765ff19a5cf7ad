"""Everything that closes is a context manager."""

from __future__ import annotations

from typing import Any, TypeVar

from jmsish._attributes import KnownAttributes

C = TypeVar("C", bound="Closing")


class Closing(KnownAttributes):
    """Closed at the end of a `with` block."""

    def close(self) -> None:
        """Close it.  Twice is silent."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it closes")

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *failure: Any) -> None:
        self.close()
