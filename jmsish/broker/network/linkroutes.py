"""Link routes: which addresses lead to a broker, over which connector of which router, and who is on the way (R10).

A router with prefixes that lead to a broker tells them its neighbours as keys for as long as it runs, and the connector
while it is up: so a link to a broker that is away is refused by name, and does not become one to a mobile address. A
link whose address begins with such a prefix goes there, by the longest prefix and then by the shortest way; it takes a
connection of its own from the router at the end, one for each connection of a client at the beginning, and the links to
the coordinator go with it, so that transactions are the client's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from jmsish.broker.network.doors import EDGE, NORMAL
from jmsish.broker.network.reach import BETWEEN, CONNECTOR, PREFIX
from jmsish.broker.network.relay import ROUTE, RelayLink, RelaySession, Way
from jmsish.broker.network.relay_ends import RelayEnd
from jmsish.broker.refusals import INVALID_FIELD, NOT_ALLOWED, NOT_FOUND, NOT_IMPLEMENTED, Refusal
from jmsish.engine.outcomes import AmqpError

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.broker.network.connectors import Connector
    from jmsish.broker.network.node import RouterNode
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession

_log = logging.getLogger("jmsish.broker")


class Through:
    """A connection to a broker for one client, dialled once: if it is lost, so are the links that used it."""

    __slots__ = ("_connector", "connection", "name", "role", "url", "way")

    def __init__(self, connector: Connector, way: Way) -> None:
        self._connector = connector
        self.name = connector.name
        self.url = connector.url
        self.role = NORMAL
        self.way = way
        self.connection: RouterConnection | None = None

    def dialled(self, peer: str) -> RouterConnection | None:
        """There is a way for octets; None where nobody waits for it any more."""
        if not self.way.sessions:
            return None
        self.connection = self._connector.node.connect_out(self, peer, container_id=self.way.container)
        return self.connection

    def failed(self, reason: str) -> None:
        """It could not be dialled."""
        self.way.failed(self._error(reason))

    def opened(self) -> None:
        """The broker has let us in."""
        if self.connection is not None:
            self.way.opened(self.connection)

    def lost(self, reason: str) -> None:
        """The broker is gone, or has let us go."""
        self.connection = None
        self.way.failed(self._error(reason))

    def _error(self, reason: str) -> AmqpError:
        return AmqpError("amqp:not-found", f"the link route to {self.name!r} has lost its broker: {reason}")


class LinkRoutes:
    """The link routes that one router knows, and those who are on the way."""

    def __init__(self, node: RouterNode) -> None:
        self._node = node
        self._ways: dict[tuple[RouterConnection, str, str], Way] = {}
        """By whence they come, who is at the beginning, and where they lead. A neighbour says of its clients who they
        are; of those of others it has no say."""
        self._relays: dict[EngineSession, dict[str, RelaySession]] = {}
        self._controls: dict[EngineSession, str] = {}
        """Where the coordinator of a session is."""
        named = {connector.name for connector in node.config.connectors}
        for route in node.config.link_routes:
            node.reach.begin(f"{PREFIX}{route.prefix}{BETWEEN}{self._home(route.connector)}")
            if route.connector not in named:
                text = "the router %r has no connector %r yet, to which links to %r are to go"
                _log.warning(text, node.router, route.connector, route.prefix)

    # --- which there are

    def announce(self, connector: Connector) -> None:
        """The broker of a connector can be reached."""
        if self._leads_to(connector.name):
            self._node.reach.begin(CONNECTOR + self._home(connector.name))

    def withdraw(self, connector: Connector) -> None:
        """It cannot any more."""
        if self._leads_to(connector.name):
            self._node.reach.end(CONNECTOR + self._home(connector.name))

    def _leads_to(self, connector: str) -> bool:
        return any(route.connector == connector for route in self._node.config.link_routes)

    def _home(self, connector: str) -> str:
        return f"{self._node.router}/{connector}"

    def is_open(self, home: str | None) -> bool:
        """Whether the broker there can be reached."""
        return home is not None and self._node.reach.distance(CONNECTOR + home) is not None

    def open_routes(self) -> list[tuple[str, str, int]]:
        """Those of :meth:`routes` whose brokers can be reached."""
        return [route for route in self.routes() if self.is_open(route[1])]

    def came(self, key: str) -> None:
        """A prefix is known now that was not: what clients have here of it as a mobile address ends, with the reason.

        They would wait there for ever, and those who come from now on are at the broker.
        """
        prefix = key[1:].rpartition(BETWEEN)[0]
        for name in [name for name in self._node.address_names() if name.startswith(prefix)]:
            address = self._node.known_address(name)
            if address is not None and address.owner is None:
                text = f"{name!r} leads to a broker by a link route now: attach the link again"
                address.turn_out(AmqpError("amqp:link:detach-forced", text))

    def routes(self) -> list[tuple[str, str, int]]:
        """Prefix, home and hops of all that there are, those of brokers that are away included."""
        found = []
        for key, hops in self._node.reach.keys(PREFIX).items():
            prefix, _, home = key.rpartition(BETWEEN)
            found.append((prefix, home, hops))
        return found

    def home_of(self, address: str) -> str | None:
        """Where an address leads; None where it is a mobile one. Of several it is one that is open, and near."""
        found = [
            ((len(prefix), self.is_open(home), -hops), home)
            for prefix, home, hops in self.routes()
            if address.startswith(prefix)
        ]
        return max(found)[1] if found else None

    # --- who is on the way

    def relay(
        self, connection: RouterConnection, link: Link, address: str | None, home: str | None = None
    ) -> RelayEnd | None:
        """The end of a link that goes through; None where it does not. ``address`` None is the coordinator's.

        ``home`` is where it leads, if that is known.
        """
        asked = (link.remote_properties or {}).get(ROUTE) if connection.is_neighbour else None
        if asked is not None:
            home, origin, name, container = _checked(asked)
            self._check_asked(connection, home, origin, address)
        else:
            origin, name, container = f"{self._node.router}/{connection.number}", link.name, connection.container_id
            if home is None:
                home = self.only_home(connection, link, strict=True) if address is None else self.home_of(address)
            if home is None:
                return None
        relays = self._relays.setdefault(link.session, {})
        if self._controls.get(link.session, home) != home:
            raise Refusal(
                NOT_IMPLEMENTED,
                f"the transactions of this session are those of {self._controls[link.session]!r}, and this address "
                f"leads to {home!r}: one session cannot have transactions at two brokers",
            )
        session = relays.get(home)
        if session is None or session.over:
            session = relays[home] = RelaySession(link.session, self._way(connection, origin, home, container))
        if address is None:
            self._controls[link.session] = home
        relay = RelayLink(session, link, name, connection)
        session.add(relay)
        return relay.ends[link]

    def only_home(self, connection: RouterConnection, link: Link, *, strict: bool = False) -> str | None:
        """Where a link without an address leads: where those of its session, or of its connection, do, or the only one.

        Of several, Refusal where it is ``strict``, as it is for the coordinator.
        """
        near = {home for home, each in self._relays.get(link.session, {}).items() if not each.over}
        mine = {
            home
            for session in connection.sessions
            for home, each in self._relays.get(session, {}).items()
            if not each.over
        }
        for homes in (near, mine, {home for _, home, _ in self.routes()}):
            if len(homes) == 1:
                return next(iter(homes))
            if homes and strict:
                raise Refusal(
                    NOT_IMPLEMENTED,
                    f"transactions are those of one broker, and link routes lead to {len(homes)}: "
                    f"{', '.join(sorted(homes))}; attach a link to an address of one of them first",
                )
        return None

    def _check_asked(self, connection: RouterConnection, home: str, origin: str, address: str | None) -> None:
        """Refusal where a neighbour asks for more of a broker than link routes lead to, or an edge for another."""
        hello = connection.neighbour
        if hello is not None and hello.mode == EDGE and origin.partition("/")[0] != hello.router:
            raise Refusal(NOT_ALLOWED, f"the edge {hello.router!r} has no clients of {origin!r}")
        if address and not any(address.startswith(prefix) for prefix, its, _ in self.routes() if its == home):
            raise Refusal(NOT_FOUND, f"no link route leads from {address!r} to {home!r}, or none any more")

    def _way(self, connection: RouterConnection, origin: str, home: str, container: str) -> Way:
        way = self._ways.get((connection, origin, home))
        if way is not None:
            return way
        node = self._node
        router, _, name = home.partition("/")
        way = Way(self, connection, home, origin, container)
        if router == node.router:
            connector = node.connectors.get(name)
            if connector is None or connector.role != NORMAL or not connector.is_up:
                raise Refusal(NOT_FOUND, f"the link route to {name!r} has no broker: it is not connected")
            node.dial(Through(connector, way))
        else:
            ways = sorted(node.reach.ways(CONNECTOR + home), key=lambda each: each[0])
            if not ways:
                raise Refusal(NOT_FOUND, f"the link route to {home!r} cannot be reached from {node.router!r}")
            way.connection = ways[0][1]
        self._ways[connection, origin, home] = way
        return way

    def forget(self, way: Way) -> None:
        """Nobody is on it any more; a connection that was dialled for it is closed."""
        if self._ways.get((way.whence, way.origin, way.home)) is way:
            del self._ways[way.whence, way.origin, way.home]
        connection, way.connection = way.connection, None
        if connection is not None and not connection.is_neighbour:
            connection.close(None)

    def session_lost(self, session: EngineSession) -> None:
        """A session of a peer has ended."""
        self._controls.pop(session, None)
        for relay in self._relays.pop(session, {}).values():
            relay.near_lost()


def _checked(asked: object) -> tuple[str, str, str, str]:
    if isinstance(asked, list) and len(asked) == 4 and all(isinstance(each, str) for each in asked):
        home, origin, name, container = (str(each) for each in asked)
        return home, origin, name, container
    raise Refusal(INVALID_FIELD, "the property jmsish-route names home, origin, link and container")
