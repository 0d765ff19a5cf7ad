"""Commands that make many connections, one after the other: what each of them would say in the log is said once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _New(logging.Filter):
    """Lets through what was not said before."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in self._said
        self._said.add(text)
        return is_new


@contextmanager
def told_once() -> Iterator[None]:
    """A broker of a ``failover:`` list that is not reached is a warning of the first connection alone."""
    log, new = logging.getLogger("jmsish.client"), _New()
    log.addFilter(new)
    try:
        yield
    finally:
        log.removeFilter(new)
