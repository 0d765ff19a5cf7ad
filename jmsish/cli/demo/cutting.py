"""Cutting a connection for real: the socket is reset, the pipe is closed, and neither side says a word of farewell."""

from __future__ import annotations

from typing import Any


def cut(connection: Any) -> None:
    """Closes the transport under a connection. Nothing in the public API does this, since no application should."""
    connection._driver.transport.close()
