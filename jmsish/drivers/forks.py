"""After a fork: in the child, every connection is the parent's."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Disowned(Protocol):
    """What has to be told that it is in a child now."""

    def disown(self) -> None: ...


living: weakref.WeakSet[Disowned] = weakref.WeakSet()
"""All of them that have begun."""


def _disown_all() -> None:
    for driver in list(living):
        driver.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
