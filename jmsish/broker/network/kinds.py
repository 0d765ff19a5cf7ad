"""What there is to see at a router: itself, neighbours, connectors, connections and links, and what can be reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.entities import NOT_FOUND, Kind, Refused
from jmsish.broker.network import views
from jmsish.broker.network.connectors import STATES
from jmsish.broker.network.reach import ADDRESS, ROUTER
from jmsish.broker.policy_kinds import GroupKind, PolicyKind, VhostKind
from jmsish.broker.views import ConnectionView
from jmsish.engine.outcomes import AmqpError

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.broker.network.connectors import Connector
    from jmsish.broker.network.node import RouterNode

LOOKING: Final = ("READ",)


class RouterKind(Kind["RouterNode"]):
    """The routers of the network; of those that are not asked, only the name and how far away they are."""

    name = "router"
    aliases = ()
    operations = LOOKING
    attributes = (
        "name", "identity", "type", "mode", "hops", "neighbours", "addresses", "link_routes", "connections", "links",
    )  # fmt: skip

    def read(self, broker: RouterNode, name: str) -> dict[str, Any]:
        """``self`` is the one that is asked."""
        wanted = broker.router if name == "self" else name
        for each in self.entities(broker):
            if each[1] == wanted:
                return self.describe(each)
        raise Refused(NOT_FOUND, f"the router {name!r} is not known to {broker.router!r}")

    def entities(self, broker: RouterNode) -> Iterable[tuple[RouterNode, str, int]]:
        routers = broker.reach.keys(ROUTER).items()
        return ((broker, router, hops) for router, hops in sorted(routers, key=lambda each: (each[1], each[0])))

    def describe(self, entity: tuple[RouterNode, str, int]) -> dict[str, Any]:
        node, router, hops = entity
        found: dict[str, Any] = {"name": router, "identity": router, "type": self.name, "hops": hops}
        if router != node.router:
            return found
        found["mode"] = node.mode
        found["neighbours"] = len(node.neighbours)
        found["addresses"] = len(node.reach.keys(ADDRESS))
        found["link_routes"] = len(node.link_routes.routes())
        connections = node.opened_connections()
        found["connections"] = len(connections)
        found["links"] = sum(len(session.context) for each in connections for session in each.sessions)
        return found


class JoinKind(Kind["RouterNode"]):
    """How all routers of the network are joined: the tree."""

    name = "join"
    aliases = ()
    operations = LOOKING
    attributes = ("name", "identity", "type", "role", "dialler", "dialled")

    def read(self, broker: RouterNode, name: str) -> dict[str, Any]:
        return _named(self, broker, name)

    def entities(self, broker: RouterNode) -> Iterable[views.Join]:
        return views.joins(broker)

    def describe(self, entity: views.Join) -> dict[str, Any]:
        name = f"{entity.dialler}-{entity.dialled}"
        return {"name": name, "identity": name, "type": self.name, **asdict(entity)}


class NeighbourKind(Kind["RouterNode"]):
    """The neighbours of this router."""

    name = "neighbour"
    aliases = ()
    operations = LOOKING
    attributes = (
        "name", "identity", "type", "mode", "role", "up", "hops", "connector", "connection", "peer", "behind",
    )  # fmt: skip

    def read(self, broker: RouterNode, name: str) -> dict[str, Any]:
        return _named(self, broker, name)

    def entities(self, broker: RouterNode) -> Iterable[views.NeighbourView]:
        return views.neighbours(broker)

    def describe(self, entity: views.NeighbourView) -> dict[str, Any]:
        found = asdict(entity)
        name = found.pop("router")
        return {"name": name, "identity": name, "type": self.name, "hops": 1, **found}


class AddressKind(Kind["RouterNode"]):
    """The mobile addresses: those with a receiver somewhere, and those to which somebody here sends."""

    name = "address"
    aliases = ()
    operations = LOOKING
    attributes = (
        "name", "identity", "type", "multicast", "hops", "towards", "receivers", "senders", "deliveries_in",
        "deliveries_out", "waiting",
    )  # fmt: skip

    def read(self, broker: RouterNode, name: str) -> dict[str, Any]:
        found = views.address(broker, name)
        if found is None:
            raise Refused(NOT_FOUND, f"nobody receives from {name!r}, and nobody here sends to it")
        return self.describe(found)

    def entities(self, broker: RouterNode) -> Iterable[views.AddressView]:
        return views.addresses(broker)

    def describe(self, entity: views.AddressView) -> dict[str, Any]:
        found = asdict(entity)
        found["towards"] = list(entity.towards)
        return {"identity": entity.name, "type": self.name, **found}


class LinkRouteKind(Kind["RouterNode"]):
    """The link routes of all routers; ``up`` while their broker can be reached."""

    name = "link_route"
    aliases = ()
    operations = LOOKING
    attributes = ("name", "identity", "type", "prefix", "router", "connector", "hops", "up")

    def read(self, broker: RouterNode, name: str) -> dict[str, Any]:
        return _named(self, broker, name)

    def entities(self, broker: RouterNode) -> Iterable[tuple[str, str, int, bool]]:
        routes = broker.link_routes
        return [(*route, routes.is_open(route[1])) for route in sorted(routes.routes())]

    def describe(self, entity: tuple[str, str, int, bool]) -> dict[str, Any]:
        prefix, home, hops, is_up = entity
        router, _, connector = home.partition("/")
        name = f"{prefix}@{home}"
        where = {"prefix": prefix, "router": router, "connector": connector, "hops": hops, "up": is_up}
        return {"name": name, "identity": name, "type": self.name, **where}


class ConnectorKind(Kind["RouterNode"]):
    """What this router dials. No password is told."""

    name = "connector"
    aliases = ()
    operations = LOOKING
    attributes = ("name", "identity", "type", "url", "role", "up", "state", "error", "router", "connection")

    def read(self, broker: RouterNode, name: str) -> dict[str, Any]:
        return _named(self, broker, name)

    def entities(self, broker: RouterNode) -> Iterable[Connector]:
        return list(broker.connectors.values())

    def describe(self, entity: Connector) -> dict[str, Any]:
        return {
            "name": entity.name,
            "identity": entity.name,
            "type": self.name,
            "url": entity.shown,
            "role": entity.role,
            "up": entity.is_up,
            "state": STATES[entity.state],
            "error": entity.error or None,
            "router": entity.router or None,
            "connection": None if entity.connection is None else entity.connection.number,
        }


class RouterConnectionKind(Kind["RouterNode"]):
    """Connections that are open, each called by its number. To end one takes ``may_manage = true``."""

    name = "connection"
    aliases = ()
    operations = ("READ", "DELETE")
    attributes = (
        "name", "identity", "type", "role", "router", "container_id", "peer", "user", "vhost", "group", "sessions",
        "senders", "receivers",
    )  # fmt: skip
    rights = {"DELETE": "may_administer"}

    def read(self, broker: RouterNode, name: str) -> dict[str, Any]:
        return self.describe(self._find(broker, name))

    def delete(self, broker: RouterNode, name: str) -> None:
        self._find(broker, name).close(AmqpError("amqp:connection:forced", "closed by management"))

    def entities(self, broker: RouterNode) -> Iterable[RouterConnection]:
        return broker.opened_connections()

    def describe(self, entity: RouterConnection) -> dict[str, Any]:
        grant, neighbour, name = entity.grant, entity.neighbour, str(entity.number)
        found = asdict(ConnectionView(entity))
        found.update(role=entity.neighbour_role, router=None if neighbour is None else neighbour.router)
        found.update(user=grant.user, vhost=grant.vhost, group=grant.group)
        named = {"name": name, "identity": name, "type": self.name}
        return {**{key: found[key] for key in self.attributes if key in found}, **named}

    def _find(self, broker: RouterNode, name: str) -> RouterConnection:
        for connection in broker.opened_connections():
            if str(connection.number) == name:
                return connection
        raise Refused(NOT_FOUND, f"there is no connection {name!r}")


class LinkKind(Kind["RouterNode"]):
    """The links of this router's connections, as seen from the router."""

    name = "link"
    aliases = ()
    operations = LOOKING
    attributes = (
        "name", "identity", "type", "connection", "direction", "kind", "address", "peer", "credit", "unsettled",
        "delivered",
    )  # fmt: skip

    def read(self, broker: RouterNode, name: str) -> dict[str, Any]:
        return _named(self, broker, name)

    def entities(self, broker: RouterNode) -> Iterable[views.LinkView]:
        return views.links(broker)

    def describe(self, entity: views.LinkView) -> dict[str, Any]:
        identity = f"{entity.connection}/{entity.direction}/{entity.name}"
        return {"identity": identity, "type": self.name, **asdict(entity)}


def _named(kind: Kind[RouterNode], node: RouterNode, name: str) -> dict[str, Any]:
    """The attributes of the one of that name or identity."""
    for entity in kind.entities(node):
        found = kind.describe(entity)
        if name in (found["identity"], found["name"]):
            return found
    raise Refused(NOT_FOUND, f"there is no {kind.name} {name!r}")


KINDS: Final[tuple[Kind[Any], ...]] = (
    RouterKind(), NeighbourKind(), JoinKind(), AddressKind(), LinkRouteKind(), ConnectorKind(), RouterConnectionKind(),
    LinkKind(), PolicyKind(), VhostKind(), GroupKind(),
)  # fmt: skip
