"""Where the wire of a connection in memory is: the one thing that the public API does not show."""

from __future__ import annotations

from typing import Any


def cut_in_memory(connection: Any) -> None:
    """Breaks the pipe under a connection of `vm://`: what arrived can still be read, then both ends see the end."""
    driver = connection._driver
    wire = getattr(driver, "wire", None)
    pipe = wire._pipe if wire is not None else driver.transport
    pipe = getattr(pipe, "transport", pipe)  # where somebody reads along
    pipe._feed(b"")
    pipe.end()
    pipe.wake()
