"""Timeouts for what is meant to run out of time, and for nothing before or after it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any


@contextlib.contextmanager
def hurried(connection: Any, **timeouts: float) -> Iterator[None]:
    """Inside the block these options of the connection hold; outside of it a busy machine has its time."""
    core = getattr(connection, "raw", connection)._core
    before = core.options
    core.options = replace(before, **timeouts)
    try:
        yield
    finally:
        core.options = before


def give_up_after(connection: Any, seconds: float) -> None:
    """From now on a peer that says nothing for so long is given up; before, a busy one had its time."""
    heartbeat = connection._core.engine._heartbeat
    heartbeat.timeout, heartbeat._give_up = seconds, None
