"""The management node of a router: requests come to `$management`, answers go where they say.

Each router answers for itself: `$management` is never that of a neighbour. Answers go to the link of the same
connection that receives from `$management` and whose target has the address of ``reply-to``; else they are messages to
the mobile address of that name, and find their way as all messages do, or are dropped where there is none. A request is
counted as under way until its answer has left, so that no more are here than a link's window.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jmsish.broker.link_policy import shortened
from jmsish.broker.management import answer
from jmsish.broker.network.egress import Egress
from jmsish.broker.network.ingress import Ingress
from jmsish.broker.network.kinds import KINDS
from jmsish.broker.network.passage import Passage
from jmsish.broker.network.screening import check_user, may_send
from jmsish.broker.refusals import NOT_IMPLEMENTED, Refusal
from jmsish.engine.delivery import UNSENT, Delivery
from jmsish.engine.outcomes import ACCEPTED, AmqpError, DeliveryState, Source

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.engine.link import Link

REQUEST_LIMIT: Final = 1 << 20
"""Octets of a request: it comes whole."""
_log = logging.getLogger("jmsish.broker")


class Requests(Ingress):
    """A link on which requests come. What leaves for it are the answers, each settled before it is sent."""

    __slots__ = ()

    def __init__(self, connection: RouterConnection, link: Link) -> None:
        limit = connection.max_message_size
        link.attach(max_message_size=min(limit, REQUEST_LIMIT) if limit else REQUEST_LIMIT)
        super().__init__(connection, link, None)
        self.reach_changed()

    @property
    def is_anonymous(self) -> bool:
        """There is always somebody who takes what comes: the router itself."""
        return True

    def delivered(self, delivery: Delivery) -> None:
        """A request."""
        if self.over:
            return
        try:
            if delivery.remote_state is not None:
                raise Refusal(NOT_IMPLEMENTED, "a router has no transactions")
            if self._asks:
                check_user(self.connection, delivery)
        except Refusal as refusal:
            self._refuse(delivery, refusal.error)
        else:
            ask(self, delivery)

    def finished(self) -> None:
        """An answer has left, or will not: there is room for another request."""
        super().finished()
        idle = [branch for branch in self._branches.values() if not (branch.in_flight or branch.onward)]
        for branch in idle:
            del self._branches[branch.address.name]
            branch.close()


def ask(ingress: Ingress, delivery: Delivery) -> None:
    """Do what a request asks. It is accepted when it is done, whatever the answer to it says."""
    connection = ingress.connection
    reply_to, octets = answer(connection.node, delivery.payload, connection, KINDS)
    if connection.ended:
        return  # it asked for its own end
    if not delivery.remote_settled:
        delivery.link.session.disposition(delivery, ACCEPTED, True)
    connection.touched()
    if isinstance(octets, Future):
        raise TypeError("nothing that a router is asked has to wait")
    if reply_to is None or not _reply(ingress, reply_to, octets):
        ingress.in_flight += 1
        ingress.finished()


def _reply(ingress: Ingress, reply_to: str, octets: bytes) -> bool:
    """Send an answer; False where it has no way, or may not go there."""
    connection = ingress.connection
    message = Delivery(ingress.link, UNSENT, None, octets, False, True)
    box = connection.answers.get(reply_to)
    if box is not None and box.egress is not None:
        ingress.in_flight += 1
        Passage(Outgoing(ingress), message).start([box.egress])
        return True
    if not may_send(connection, reply_to) or not connection.node.reaches(reply_to):
        _log.info("an answer of the management node has no way to %r and is dropped", shortened(reply_to))
        return False
    ingress.branch_to(reply_to).arrived(message)
    return True


class Outgoing:
    """The sender of an answer that goes to a link of its own: nobody is to be told anything, the answer is settled."""

    __slots__ = ("_ingress",)

    def __init__(self, ingress: Ingress) -> None:
        self._ingress = ingress

    def tell(self, delivery: Delivery, state: DeliveryState | None, settled: bool) -> None:
        """Nothing is said of an answer."""

    def walk(self) -> None:
        """Nothing is asked of an answer."""

    def disordered(self, delivery: Delivery, error: AmqpError) -> None:
        """It is in order."""

    def took(self) -> None:
        """It came whole."""

    def finished(self, passage: Passage) -> None:
        """It has left, or will not: there is room for another request."""
        self.crossed()

    def crossed(self) -> None:
        self._ingress.finished()


class Answers:
    """What a link that receives from the management node is given: the answers for the address of its target."""

    __slots__ = ("_connection", "_reply_to", "egress")

    def __init__(self, connection: RouterConnection, link: Link) -> None:
        self._connection = connection
        self._reply_to = str(getattr(link.remote_target, "address", None) or "")
        self.egress: Egress | None = Egress(connection, link, self, is_local=True)
        connection.answers[self._reply_to] = self

    @property
    def is_served(self) -> bool:
        """An answer waits for credit only."""
        return True

    def wake(self) -> None:
        """There is credit, or room."""
        if self.egress is not None:
            self.egress.flush()

    def remove_receiver(self, egress: Egress) -> None:
        """The link is gone."""
        if self._connection.answers.get(self._reply_to) is self:
            del self._connection.answers[self._reply_to]
        self.egress = None


def answers(connection: RouterConnection, link: Link) -> Egress:
    """The end of a link that receives from the management node."""
    link.snd_settle_mode = link.remote_snd_settle_mode
    source = link.remote_source
    assert isinstance(source, Source)
    link.attach(source=replace(source, filter=None, distribution_mode="move"))
    box = Answers(connection, link)
    assert box.egress is not None
    return box.egress
