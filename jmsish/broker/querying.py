"""QUERY in portions: a table of ten thousand queues takes a tenth of a second, and who may ask may ask again and again.

Theory of operation.  The queries of a broker stand in one line and are answered one after the other, each a few rows
at a time. A short one is answered at once, if nobody is before it. Of an entity is told what is true when its row is
written; which entities there are is looked up when the turn of the query comes. Whose query waits is not read
meanwhile, so the line is no longer than what the connections had brought by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.asked import FAULT, OK, Answer
from jmsish.engine.encoding import Encoded, encode, encode_list

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.entities import Kind
    from jmsish.broker.portions import Portions

__all__ = ["Queries", "Query"]

ROW: Final = 10
"""What a row is worth, in messages that change hands (`portions`)."""


class Query:
    """One table, row by row."""

    def __init__(self, kinds: Sequence[Kind[Any]], home: Any, columns: Sequence[str], first: int, last: int) -> None:
        self.done: Future[Answer] = Future()
        self._kinds = kinds
        self._home = home
        self._columns = columns
        self._range = (first, last)
        self._page: deque[tuple[Kind[Any], Any]] | None = None
        self._rows: list[bytes] = []

    def run(self) -> Answer:
        """All of it, now."""
        while not self.done.done():
            self.go_on(ROW)
        return self.done.result()

    def go_on(self, most: int) -> int:
        """Write some rows; what that was worth. ``done`` has the answer after the last."""
        before = len(self._rows)
        try:
            if not self._write(most // ROW + 1):
                rows = Encoded(encode_list(self._rows))
                self.done.set_result(Answer(OK, "OK", {"attributeNames": list(self._columns), "results": rows}))
        except (TypeError, ValueError) as error:
            # An argument of a binding may be any value of Python, if it was bound in this process.
            self.done.set_result(Answer(FAULT, f"the answer has no AMQP form: {error}", None))
        except Exception as error:
            self.done.set_exception(error)
        return (len(self._rows) - before) * ROW + 1

    def _write(self, count: int) -> int:
        """So many rows; how many are left."""
        if self._page is None:
            # What is not asked for is not looked at: a page of a thousand costs a thousand, wherever it is.
            every = ((kind, entity) for kind in self._kinds for entity in kind.entities(self._home))
            self._page = deque(islice(every, *self._range))
        page, columns = self._page, self._columns
        for _ in range(min(count, len(page))):
            kind, entity = page.popleft()
            attributes = kind.describe(entity)
            self._rows.append(encode([attributes.get(name) for name in columns]))
        return len(page)


class Queries:
    """The line of them, and a job: the first is gone on with."""

    __slots__ = ("_line", "_portions")

    def __init__(self, portions: Portions) -> None:
        self._portions = portions
        self._line: deque[tuple[Query, ServerConnection | None]] = deque()

    def add(self, query: Query, connection: ServerConnection | None) -> None:
        """Answer it as far as this step may, and else when its turn comes."""
        self._line.append((query, connection))
        if connection is not None:
            connection.begin_waiting()
        if len(self._line) == 1:
            self._portions.begin(self)

    def go_on(self, most: int) -> int:
        if not self._line:
            return 0
        query, connection = self._line[0]
        is_wanted = connection is None or not connection.ended
        worth = query.go_on(most) if is_wanted else 1
        if not is_wanted or query.done.done():
            self._line.popleft()
            if connection is not None:
                connection.end_waiting()
        return worth
