"""How far the demo is: a bar by rich where it is installed, a bar of plain characters on other terminals, nothing
elsewhere.

Bars go to standard error, so that standard output holds the table and the line of JSON alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from jmsish.cli.demo.ledger import Ledger

REFRESH = 0.1


def plain_bar(done: int, total: int, tail: str = "", width: int = 30) -> str:
    filled = width * done // total if total else width
    return f"[{'#' * filled}{'-' * (width - filled)}] {done:,}/{total:,}{tail}"


def tail_of(ledger: Ledger) -> str:
    return f"  {ledger.rollbacks} rolled back, {ledger.dead_lettered} dead-lettered"


class Progress:
    """Shows nothing; the parent of those that do."""

    def update(self, ledger: Ledger) -> None:
        """The work has got this far."""


class PlainProgress(Progress):
    """Redraws one line, at most ten times a second."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.due = 0.0

    def update(self, ledger: Ledger) -> None:
        now = time.monotonic()
        if now < self.due and not ledger.done:
            return
        self.due = now + REFRESH
        bar = plain_bar(ledger.processed + ledger.dead_lettered, ledger.total, tail_of(ledger))
        self.stream.write("\r" + bar)
        self.stream.flush()

    def clear(self) -> None:
        self.stream.write("\r\x1b[K")
        self.stream.flush()


class RichProgress(Progress):
    """One task of a `rich.progress.Progress`."""

    def __init__(self, bar: Any, total: int) -> None:
        self.bar = bar
        self.task = bar.add_task("orders", total=total, tail="")
        self.due = 0.0

    def update(self, ledger: Ledger) -> None:
        now = time.monotonic()
        if now < self.due and not ledger.done:
            return
        self.due = now + REFRESH
        self.bar.update(self.task, completed=ledger.processed + ledger.dead_lettered, tail=tail_of(ledger))


@contextmanager
def showing(total: int, *, quiet: bool = False, stream: TextIO | None = None) -> Iterator[Progress]:
    """A bar for the time of the block, as good as the terminal allows."""
    target = stream or sys.stderr
    if quiet or not target.isatty():
        yield Progress()
        return
    rich = _rich_bar(target)
    if rich is not None:
        with rich:
            yield RichProgress(rich, total)
        return
    plain = PlainProgress(target)
    try:
        yield plain
    finally:
        plain.clear()


def _rich_bar(stream: TextIO) -> Any:
    try:  # optional extra: jmsish[cli]
        from rich import console, progress
    except ImportError:
        return None
    parts = ("{task.description}", progress.BarColumn(), progress.MofNCompleteColumn(), "{task.fields[tail]}")
    return progress.Progress(*parts, progress.TimeElapsedColumn(), console=console.Console(file=stream), transient=True)
