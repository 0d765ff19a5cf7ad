"""Telling of a fault, and of threads that cannot begin: neither ends what has to go on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["began", "tell_fault"]


def tell_fault(log: logging.Logger, text: str, *arguments: object) -> None:
    """Log the exception that is being handled. A handler of the program's that fails itself ends no thread of ours, and
    leaves nothing half done."""
    try:
        log.exception(text, *arguments)
    except Exception:
        pass  # there is nobody left to tell


def began(log: logging.Logger, target: Callable[..., object], name: str, *arguments: Any) -> threading.Thread | None:
    """A daemon thread that has begun; None, which is told, where the system has none left.

    Who needs it tries again when there is the next thing to do.
    """
    thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        tell_fault(log, "the thread %r cannot begin, and is tried again", name)
        return None
    return thread
