"""The rest of a connection's input, where a disposition names so many messages that it is worked off in portions."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from jmsish.broker.outgoing import OutgoingLink
from jmsish.broker.portions import Halt
from jmsish.engine.outcomes import AmqpError
from jmsish.engine.rest import go_on

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.engine.delivery import Delivery

AT_ONCE: Final = 1000
"""Messages of one disposition that are worked off in one piece, in one to four milliseconds: whoever settles what it
has prefetched is answered as ever."""

_log = logging.getLogger("jmsish.broker")


class ReadingOn:
    """A job: a disposition of a connection is worked off to its end, and then what came behind it."""

    __slots__ = ("_connection", "_halt", "is_cut_off")

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._halt = Halt()
        self.is_cut_off = False
        """The peer is gone, which is heard behind all that it has said."""

    def halt(self, deliveries: list[Delivery]) -> None:
        """These come back, and others of the same disposition are to follow."""
        for link in {delivery.link for delivery in deliveries}:
            if isinstance(link.context, OutgoingLink):
                self._halt.add(link.context.queue)

    def go_on(self, most: int) -> int:
        connection = self._connection
        rest = connection.engine.rest
        if rest is None:
            self._end()
            return 0
        worth = min(len(rest), connection.engine.limits.most_disposed)
        try:
            go_on(connection.engine)
            connection.work()
            if not rest:
                self._halt.lift()  # before what is behind it, which may be another one
        except BaseException:
            _log.exception("a fault inside the broker ends the connection %s", connection)
            connection.engine.rest = None
            connection.close(AmqpError("amqp:internal-error", "the broker met a fault of its own"))
            self._end()
            raise
        return max(worth, 1)

    def _end(self) -> None:
        self._halt.lift()
        self._connection.reading_on = None
        self._connection.end_waiting()
        if self.is_cut_off:
            self._connection.receive_eof()
