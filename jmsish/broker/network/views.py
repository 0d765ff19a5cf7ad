"""What tests and tools see of a router: what is true when it is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from jmsish.broker.network.control import Listener, Teller
from jmsish.broker.network.doors import EDGE, INTER_ROUTER, INTERIOR
from jmsish.broker.network.reach import ADDRESS, BETWEEN, JOIN, ROUTER
from jmsish.broker.network.relay_ends import RelayIn, RelayOut
from jmsish.engine.outcomes import Coordinator

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection, Terminal
    from jmsish.broker.network.node import RouterNode
    from jmsish.engine.link import Link

_MASK: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Join:
    """Two routers of the network that are neighbours."""

    role: str
    """``"inter-router"``, or ``"edge"``: then ``dialler`` is the edge."""
    dialler: str
    dialled: str


@dataclass(frozen=True, slots=True)
class NeighbourView:
    """A neighbour, or one that a connector of this router has lost."""

    router: str
    mode: str
    role: str
    up: bool
    connector: str | None
    """The connector that dials it; None where it dials us."""
    connection: int | None
    peer: str
    behind: dict[str, int]
    """The routers that are reached over it, itself included, by their hops from here."""


@dataclass(frozen=True, slots=True)
class AddressView:
    """A mobile address, as one router knows it."""

    name: str
    multicast: bool
    hops: int | None
    """To the nearest receiver, 0 for one at this router; None: there is none."""
    towards: tuple[str, ...]
    """The neighbours over which the nearest are reached; none where they are here."""
    receivers: int
    """Links of this router that receive from it."""
    senders: int
    """Links that send to it through this router: from clients here, and from neighbours."""
    deliveries_in: int
    deliveries_out: int
    """Copies that went to receivers here and to neighbours, since the address is known here."""
    waiting: int
    """Messages here that no receiver has had credit for yet."""


@dataclass(frozen=True, slots=True)
class LinkView:
    """A link of a router, as it was when asked for."""

    connection: int
    name: str
    direction: Literal["in", "out"]
    """``"in"`` where messages come into the router on it."""
    kind: str
    """``"mobile"``, ``"route"`` (to a broker, and from one), or ``"control"`` between routers."""
    address: str | None
    """None: each message names its own, or it leads to a transaction coordinator."""
    peer: str
    """The id of the router at the other end, or the container id of a client or a broker."""
    credit: int
    unsettled: int
    delivered: int


def joins(node: RouterNode) -> list[Join]:
    """How all routers of the network are joined; in a tree there is one join less than there are routers."""
    found = []
    for key in node.reach.keys(JOIN):
        parts = key.split(BETWEEN)
        if len(parts) == 3 and parts[0] in (EDGE, INTER_ROUTER):
            found.append(Join(*parts))
    return sorted(found, key=lambda join: (join.role, join.dialler, join.dialled))


def neighbours(node: RouterNode) -> list[NeighbourView]:
    """The neighbours, and those that connectors have lost and look for."""
    found = []
    for connection in node.neighbours:
        hello = connection.neighbour
        if hello is not None:
            name = None if connection.connector is None else connection.connector.name
            behind = node.reach.behind(connection, ROUTER)
            view = NeighbourView(
                hello.router, hello.mode, hello.role, True, name, connection.number, connection.peer, behind
            )
            found.append(view)
    for connector in node.connectors.values():
        if connector.router and not connector.is_up:
            view = NeighbourView(
                connector.router, INTERIOR, connector.role, False, connector.name, None, connector.shown, {}
            )
            found.append(view)
    return found


def address(node: RouterNode, name: str) -> AddressView | None:
    """What the router knows of an address; None where neither a receiver anywhere nor a sender here has it."""
    here = node.known_address(name)
    hops = node.reach.distance(ADDRESS + name)
    if here is None and hops is None:
        return None
    towards = [
        way.neighbour.router for far, way in node.reach.ways(ADDRESS + name) if hops and far == hops and way.neighbour
    ]
    if here is None:
        return AddressView(name, node.is_multicast(name), hops, tuple(sorted(towards)), 0, 0, 0, 0, 0)
    waiting = sum(len(branch.waiting) for branch in here.branches)
    waiting += sum(len(receiver.queue) for receiver in here.receivers)
    return AddressView(
        name, here.is_multicast, hops, tuple(sorted(towards)), len(here.receivers), len(here.branches),
        here.deliveries_in, here.deliveries_out, waiting,
    )  # fmt: skip


def addresses(node: RouterNode) -> Iterator[AddressView]:
    """All of them."""
    for name in sorted({*node.reach.keys(ADDRESS), *node.address_names()}):
        view = address(node, name)
        if view is not None:
            yield view


def links(node: RouterNode) -> Iterator[LinkView]:
    """All links of all connections, those between routers included."""
    for connection in node.opened_connections():
        yield from _links_of(connection)


def _links_of(connection: RouterConnection) -> Iterator[LinkView]:
    for session in connection.sessions:
        unsettled = Counter(id(delivery.link) for delivery in (*session.incoming.values(), *session.outgoing.values()))
        for terminal in session.context:
            link = terminal.link
            yield LinkView(
                connection.number,
                link.name,
                "out" if link.is_sender else "in",
                _kind(terminal),
                _address(terminal, link),
                connection.container_id if connection.neighbour is None else connection.neighbour.router,
                link.credit,
                unsettled[id(link)],
                (link.delivery_count - link.initial_delivery_count) & _MASK if link.attached else 0,
            )


def _kind(terminal: Terminal) -> str:
    if isinstance(terminal, (Teller, Listener)):
        return "control"
    return "route" if isinstance(terminal, (RelayIn, RelayOut)) else "mobile"


def _address(terminal: Terminal, link: Link) -> str | None:
    terminus = (link.source or link.remote_source) if link.is_sender else (link.target or link.remote_target)
    if terminus is None or isinstance(terminus, Coordinator):
        return None
    name = getattr(terminus, "address", None)
    return name if isinstance(name, str) else None
