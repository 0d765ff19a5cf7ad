"""Temporary destinations of one connection: each lives as long as the link that made it (M103, M104)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsish.client.links import OUTCOMES
from jmsish.client.own_session import OwnLink
from jmsish.client.procedures import Interrupted, Procedure
from jmsish.destination import Destination, TemporaryQueue, TemporaryTopic
from jmsish.engine.outcomes import Source, Target
from jmsish.errors import IllegalStateError, InvalidDestinationError
from jmsish.events import TemporaryDestinationRenamed
from jmsish.profiles.profile import TEMPORARY
from jmsish.types import Described, Symbol, ULong

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection

DELETE_ON_CLOSE = Described(ULong(0x2B), [])
"""The lifetime policy of Part 3, 3.5.10: the node goes when the link that created it goes."""

FORMER = 16
"""So many of the names that a temporary destination had before are known on: the first, and the last ones."""


class TemporaryNodes:
    """Creates and deletes the temporary destinations, in the connection's own AMQP session (M41).

    A lost connection takes them along.  They are made again before everything else, under other names (M105), and the
    objects that the application has stand for the new ones.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.nodes: dict[Destination, OwnLink] = {}
        self.aliases: dict[Destination, Destination] = {}
        """What was called otherwise before a loss, by its former names."""

    def create(self, topic: bool) -> Procedure[Destination]:
        """A new temporary destination.  Raises what the broker refuses it with."""
        while True:
            try:
                yield from self.connection.open()
                self.connection.profile.require(TEMPORARY)
                return self.current((yield from self._make(topic)))
            except Interrupted:
                continue

    def _make(self, topic: bool) -> Procedure[Destination]:
        connection = self.connection
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
        made: list[Destination] = []

        def known(node: OwnLink) -> None:
            assert isinstance(link.remote_target, Target)
            made.append(kind(str(link.remote_target.address)))
            self.nodes[made[0]] = node

        # Known from the first moment on: a loss may be faster than whoever waits here, and then it is made again.
        yield from OwnLink(connection.own_session, link, "temporary destination", known).until_attached()
        return made[0]

    def restore(self) -> Procedure[None]:
        """Make all of them again."""
        for old in list(self.nodes):
            new = yield from self._make(old.is_topic)
            if self.nodes.pop(old, None) is not None:  # else deleted meanwhile
                self._rename(old, new)

    def _rename(self, old: Destination, new: Destination) -> None:
        former = [*(name for name, current in self.aliases.items() if current == old), old]
        for name in former[1 : 1 - FORMER]:
            del self.aliases[name]
        for name in (former[0], *former[1:][1 - FORMER :]):
            self.aliases[name] = new
        for session in self.connection.sessions:
            for producer in session.producers:
                if producer.destination == old:
                    producer.destination = new
            for consumer in [each for each in session.consumers if each.destination == old]:
                session.strike(consumer)
                consumer.rename(new)
                session.enroll(consumer)
        self.connection.tell(TemporaryDestinationRenamed(old, new))

    def current(self, destination: Destination) -> Destination:
        """What a destination is called now."""
        return self.aliases.get(destination, destination)

    def delete(self, destination: Destination) -> Procedure[None]:
        """Delete one of ours.

        Raises `IllegalStateError` while a consumer reads it, and after the close of the connection (jms rules 145, 30).
        """
        if self.connection.closed:
            self.connection.check()
        destination = self.current(destination)
        node = self.nodes.get(destination)
        if node is None:
            return
        users = [c for s in self.connection.sessions for c in s.consumers if c.destination == destination]
        if users:
            raise IllegalStateError(f"{destination} cannot be deleted: {len(users)} consumer(s) still read it")
        del self.nodes[destination]
        self.aliases = {name: current for name, current in self.aliases.items() if current != destination}
        if node in self.connection.own_session.links:
            try:
                yield from node.close()
            except Interrupted:
                pass  # it went with the connection

    def check_consumable(self, destination: Destination) -> None:
        """Only the connection that made a temporary destination may consume from it (jms rule 143)."""
        if destination.is_temporary and destination not in self.nodes:
            raise InvalidDestinationError(f"{destination} is a temporary destination of another connection, or deleted")

    def forget(self) -> None:
        """They went with the session that made them."""
        self.nodes.clear()
        self.aliases.clear()
