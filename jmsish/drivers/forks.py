"""After a fork: in the child, every broker and every connection is the parent's.

A child has one thread, the one that forked, and a copy of everything as it was just then: locks held by threads that it
does not have, brokers in the middle of a step, and the very sockets of its parent. So nothing of all this may go on in
it: not a word may be said on a socket, by nobody's end, and no lock may be waited for.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable
from typing import Protocol

__all__ = ["brokers", "in_child", "living"]


class Disowned(Protocol):
    """What has to be told that it is in a child now. No lock that was there before the fork may be taken."""

    def disown(self) -> None: ...


brokers: weakref.WeakSet[Disowned] = weakref.WeakSet()
"""Brokers, their drivers and their threads."""

living: weakref.WeakSet[Disowned] = weakref.WeakSet()
"""Connections of clients that have begun. They come after the brokers, who would serve the end of one in memory."""


def _disown_all() -> None:
    before = logging.root.manager.disable
    # What is said of a connection that ends is not true here, and the terminal may be locked by a thread of the parent.
    logging.disable(logging.CRITICAL)
    try:
        for each in (*brokers, *living):
            each.disown()
    finally:
        logging.disable(before)


def in_child(action: Callable[[], None]) -> None:
    """Have something called in a child after a fork, in the order of these calls."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)


in_child(_disown_all)
