"""The management node as links see it: requests come to `$management`, answers go where they say.

Answers go to the link that receives from `$management` and whose target has the address of ``reply-to``, on the
connection of the request; else to the queue of that name, as a temporary one. There is no queue behind the node: a
request is done when it becomes visible, which in a transaction is at its commit. An answer that has to wait holds up
no other.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from jmsish.broker.link_policy import check_management, may_send, shortened
from jmsish.broker.management import answer
from jmsish.broker.queues import Arrival, Queue

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker
    from jmsish.broker.connection import ServerConnection
    from jmsish.engine.link import Link

_log = logging.getLogger("jmsish.broker")
_PRIORITY = 4

MOST_UNREAD: Final = 1 << 24
"""With so many octets in the queue where answers go, there are no more of them: a request of a hundred octets may ask
for a megabyte, and who asks on and on and reads nothing has no part of the memory that grows."""


class ManagementNode:
    """Where requests go and answers come from."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def check(self, connection: ServerConnection, *, receives: bool) -> None:
        """The peer may use the node: else `LinkDenied`."""
        check_management(connection, receives=receives)

    def requests(self, connection: ServerConnection) -> Requests:
        """What takes the messages that a connection posts to the node."""
        return Requests(self, connection)

    def receives(self, connection: ServerConnection, link: Link, queue: Queue) -> None:
        """A link receives from the node; what is for its target's address is put into this queue, which is its own."""
        connection.answers = {name: each for name, each in connection.answers.items() if not each.deleted}
        address = getattr(link.remote_target, "address", None)
        if isinstance(address, str):
            connection.answers[address] = queue

    def do(self, connection: ServerConnection, payload: bytes) -> None:
        """Do what a message asks, and send the answer where it is wanted, when it is there."""
        reply_to, octets = self.answer(connection, payload)
        if reply_to is None:
            return
        if isinstance(octets, bytes):
            self._send(connection, reply_to, octets)
        else:
            octets.add_done_callback(lambda done: self._send(connection, reply_to, done.result()))

    def answer(self, connection: ServerConnection, payload: bytes) -> tuple[str | None, bytes | Future[bytes]]:
        """To whom, and what, once it is there."""
        return answer(self._broker, payload, connection)

    def _send(self, connection: ServerConnection, reply_to: str, octets: bytes) -> None:
        queue = connection.answers.get(reply_to)
        if (queue is None or queue.deleted) and may_send(connection, reply_to):
            queue = self._broker.router.queues.get(reply_to)
        if queue is None or queue.octets > MOST_UNREAD or queue.refusal(1, len(octets)) is not None:
            _log.info("an answer of the management node has no way to %r and is dropped", shortened(reply_to))
            return
        queue.append(octets, _PRIORITY)


class Requests:
    """The requests of one connection. They are taken as a queue takes messages, and done at once if they can be."""

    __slots__ = ("_connection", "_node")

    def __init__(self, node: ManagementNode, connection: ServerConnection) -> None:
        self._node = node
        self._connection = connection

    @property
    def present(self) -> tuple[Queue, ...]:
        """No queues, so none that could be full."""
        return ()

    def append(self, payload: bytes, priority: int) -> None:
        """A request."""
        self._node.do(self._connection, payload)

    def add(self, arrival: Arrival) -> None:
        """A request; what it says of its time does not count here."""
        self._node.do(self._connection, arrival.payload)

    def refusal(self, messages: int, octets: int) -> str | None:
        """Requests are never too many: each is done as it comes."""
        return None
