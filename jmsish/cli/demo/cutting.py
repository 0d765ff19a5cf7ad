"""Cutting a connection for real: the socket is shut, the pipe is closed, and neither side says a word of farewell.

No application should want this, so nothing in the public API does it; this module knows where the two drivers keep
their transport, and is the only one to know.
"""

from __future__ import annotations

from typing import Any


def cut(connection: Any) -> None:
    """Closes the transport under a connection of either face, as a network that fails."""
    driver = connection._driver
    wire = getattr(driver, "wire", None)
    if wire is None:
        driver.transport.close()
        return
    pipe = getattr(wire, "_pipe", None)
    if pipe is not None:
        pipe.close()
    else:
        wire._transport.abort()
