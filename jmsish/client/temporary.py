"""Temporary destinations of one connection: each lives as long as the link that made it (M103, M104)."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsish.client.links import OUTCOMES
from jmsish.client.procedures import Procedure, fail, settle
from jmsish.destination import Destination, TemporaryQueue, TemporaryTopic
from jmsish.engine.outcomes import AmqpError, Source, Target
from jmsish.errors import IllegalStateError, InvalidDestinationError, JMSError, error_for
from jmsish.types import Described, Symbol, ULong

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession

DELETE_ON_CLOSE = Described(ULong(0x2B), [])
"""The lifetime policy of Part 3, 3.5.10: the node goes when the link that created it goes."""


class TemporaryNode:
    """The creating link of one temporary destination."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.attached: Future[None] = Future()
        self.detached: Future[None] = Future()
        self.closing = False

    def on_attached(self) -> None:
        if self.link.remote_target is not None:
            settle(self.attached)

    def on_credit(self) -> None:
        """Nothing is sent on this link."""

    def on_detached(self, error: AmqpError | None) -> None:
        if self.link.attached:
            self.link.detach(closed=True)
        condition = error.condition if error else None
        text = (error.description or condition) if error else "the broker detached the link"
        fail(self.attached, error_for(condition, f"temporary destination: {text}", scope="link"))
        settle(self.detached)


class TemporaryNodes:
    """Creates and deletes the temporary destinations, on an AMQP session of their own (M41)."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.nodes: dict[Destination, TemporaryNode] = {}
        self.creating: list[TemporaryNode] = []
        self.leaving: list[TemporaryNode] = []
        self.session: EngineSession | None = None
        self.begun: Future[None] = Future()

    def create(self, topic: bool) -> Procedure[Destination]:
        """A new temporary destination.  Raises what the broker refuses it with."""
        yield from self.connection.open()
        if self.session is None:
            self.session = self.connection.engine.begin()
            self.session.context = self
        kind = TemporaryTopic if topic else TemporaryQueue
        capability = "temporary-topic" if topic else "temporary-queue"
        name = self.connection.unique_name(f"{capability}-creator")
        link = self.session.sender(
            name,
            source=Source(address=name, outcomes=OUTCOMES),
            target=Target(
                address=None, dynamic=True, expiry_policy="link-detach", capabilities=(capability,),
                dynamic_node_properties={Symbol("lifetime-policy"): DELETE_ON_CLOSE},
            ),
        )
        node = link.context = TemporaryNode(link)
        self.creating.append(node)
        try:
            yield node.attached, self.connection.request_deadline()
        finally:
            if node in self.creating:
                self.creating.remove(node)
        assert isinstance(link.remote_target, Target)
        destination = kind(str(link.remote_target.address))
        self.nodes[destination] = node
        return destination

    def delete(self, destination: Destination) -> Procedure[None]:
        """Delete one of ours.  Raises `IllegalStateError` while a consumer reads it."""
        node = self.nodes.get(destination)
        if node is None:
            return
        users = [c for s in self.connection.sessions for c in s.consumers if c.destination == destination]
        if users:
            raise IllegalStateError(f"{destination} cannot be deleted: {len(users)} consumer(s) still read it")
        del self.nodes[destination]
        node.link.detach(closed=True)
        self.leaving.append(node)
        try:
            yield node.detached, self.connection.close_deadline()
        finally:
            self.leaving.remove(node)

    def check_consumable(self, destination: Destination) -> None:
        """Only the connection that made a temporary destination may consume from it."""
        if destination.is_temporary and destination not in self.nodes:
            raise InvalidDestinationError(f"{destination} is a temporary destination of another connection, or deleted")

    def on_ended(self, error: AmqpError | None) -> None:
        condition = error.condition if error else None
        self.fail(error_for(condition, "the broker ended the session of the temporary destinations", scope="session"))
        self.session = None

    def fail(self, error: JMSError) -> None:
        for node in [*self.nodes.values(), *self.creating, *self.leaving]:
            fail(node.attached, error)
            fail(node.detached, error)
        self.nodes.clear()
