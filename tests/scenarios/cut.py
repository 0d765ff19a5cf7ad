"""Where the wire of a connection in memory is: the one thing that the public API does not show."""

from __future__ import annotations

from typing import Any


def cut_in_memory(connection: Any) -> None:
    """Closes the pipe under a connection of `vm://`: to the client and to the broker it is a lost connection."""
    connection._driver.transport.close()
