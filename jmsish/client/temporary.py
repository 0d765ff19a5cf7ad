"""Temporary destinations of one connection: each lives as long as the link that made it (M103, M104)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsish.client.links import OUTCOMES
from jmsish.client.own_session import OwnLink
from jmsish.client.procedures import Procedure
from jmsish.destination import Destination, TemporaryQueue, TemporaryTopic
from jmsish.engine.outcomes import Source, Target
from jmsish.errors import IllegalStateError, InvalidDestinationError
from jmsish.profiles.profile import TEMPORARY
from jmsish.types import Described, Symbol, ULong

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection

DELETE_ON_CLOSE = Described(ULong(0x2B), [])
"""The lifetime policy of Part 3, 3.5.10: the node goes when the link that created it goes."""


class TemporaryNodes:
    """Creates and deletes the temporary destinations, in the connection's own AMQP session (M41)."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.nodes: dict[Destination, OwnLink] = {}

    def create(self, topic: bool) -> Procedure[Destination]:
        """A new temporary destination.  Raises what the broker refuses it with."""
        connection = self.connection
        yield from connection.open()
        connection.profile.require(TEMPORARY)
        kind = TemporaryTopic if topic else TemporaryQueue
        name = connection.unique_name(f"{kind.capability}-creator")
        link = connection.own_session.begin().sender(
            name,
            source=Source(address=name, outcomes=OUTCOMES),
            target=Target(
                address=None,
                dynamic=True,
                expiry_policy="link-detach",
                capabilities=(kind.capability,),
                dynamic_node_properties={Symbol("lifetime-policy"): DELETE_ON_CLOSE},
            ),
        )
        node = OwnLink(connection.own_session, link, "temporary destination")
        yield from node.until_attached()
        assert isinstance(link.remote_target, Target)
        destination = kind(str(link.remote_target.address))
        self.nodes[destination] = node
        return destination

    def delete(self, destination: Destination) -> Procedure[None]:
        """Delete one of ours.  Raises `IllegalStateError` while a consumer reads it (jms rule 145)."""
        node = self.nodes.get(destination)
        if node is None:
            return
        users = [c for s in self.connection.sessions for c in s.consumers if c.destination == destination]
        if users:
            raise IllegalStateError(f"{destination} cannot be deleted: {len(users)} consumer(s) still read it")
        del self.nodes[destination]
        if node in self.connection.own_session.links:
            yield from node.close()

    def check_consumable(self, destination: Destination) -> None:
        """Only the connection that made a temporary destination may consume from it (jms rule 143)."""
        if destination.is_temporary and destination not in self.nodes:
            raise InvalidDestinationError(f"{destination} is a temporary destination of another connection, or deleted")

    def forget(self) -> None:
        """They went with the session that made them."""
        self.nodes.clear()
