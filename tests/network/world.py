"""A network of routers in one memory, and clients at them: engines joined by hand, a clock that stands still."""

from __future__ import annotations

from typing import Any

from jmsish.broker import Broker
from jmsish.broker.config import BrokerConfig
from jmsish.broker.connection import ServerConnection
from jmsish.broker.network.connection import RouterConnection
from jmsish.broker.network.node import RouterNode
from tests.broker.world import Clock, Peer


class Site:
    """One router, in the shape in which `tests.broker.world.Peer` wants its world."""

    def __init__(self, network: Network, node: RouterNode) -> None:
        self.network = network
        self.broker: Any = node

    def run(self) -> None:
        self.network.run()


class Wire:
    """A dialled connection: its two ends, and whether it is cut."""

    def __init__(self, near: RouterConnection, far: RouterConnection | ServerConnection) -> None:
        self.near = near
        self.far = far
        self.is_cut = False
        self.carried: list[tuple[bool, bytes]] = []

    @property
    def ends(self) -> set[str]:
        return {self.near.broker.name, self.far.broker.name}

    def carry(self, named: set[Any]) -> bool:
        """Only what a step has named, and only once, as a driver does."""
        out, back = (end.take_output() if end in named else b"" for end in (self.near, self.far))
        named -= {self.near, self.far}
        if self.is_cut:
            return False
        for is_out, data, end in ((True, out, self.far), (False, back, self.near)):
            if data:
                self.carried.append((is_out, data))
                end.receive(data)
        return bool(out or back)

    def cut(self) -> None:
        self.is_cut = True
        self.near.receive_eof()
        self.far.receive_eof()


class Network:
    """Routers by a line like ``EA1-INT.A-INT.B-EB1``, joined when this is made, and their clients.

    ``routes`` are prefixes of link routes, each with the router that has the connector and the name of the broker.
    """

    def __init__(
        self,
        line: str = "",
        *,
        limits: dict[str, int] | None = None,
        multicast: tuple[str, ...] = (),
        routes: dict[str, tuple[str, str]] | None = None,
        vhosts: dict[str, Any] | None = None,
        caps: dict[str, Any] | None = None,
    ) -> None:
        self.clock = Clock()
        self.monotonic = 1000.0
        self.nodes: dict[str, RouterNode] = {}
        self.wires: list[Wire] = []
        self.named: set[Any] = set()
        """Connections that a step said to have output."""
        self.peers: list[Peer] = []
        self.multicast = multicast
        self.limits = limits or {}
        self.vhosts = vhosts or {}
        self.caps = caps or {}
        self.link_routes = routes or {}
        self.joined: list[tuple[str, str, str | None]] = []
        self.brokers = {broker: Broker(broker, None, clock=self.clock) for _, broker in self.link_routes.values()}
        for part in filter(None, (part.strip() for part in line.split(","))):
            names = part.split("-")
            for name in names:
                self.router(name)
            for near, far in zip(names, names[1:]):  # noqa: B905
                self.join(near, far)
        self.run()

    def router(self, name: str, mode: str | None = None) -> RouterNode:
        if name not in self.nodes:
            config = BrokerConfig.from_mapping(self._config(name, mode))
            node = self.nodes[name] = RouterNode(name, config, clock=self.clock)
            for connector in config.connectors:
                node.connector(connector.name, connector.url, connector.role)
        return self.nodes[name]

    def _config(self, name: str, mode: str | None) -> dict[str, Any]:
        mine = {prefix: broker for prefix, (router, broker) in self.link_routes.items() if router == name}
        return {
            "router": {"id": name, "mode": mode or ("edge" if name.startswith("E") else "interior")},
            "addresses": {"multicast": list(self.multicast)},
            "connectors": [{"url": f"vm://{broker}", "name": broker} for broker in sorted(set(mine.values()))],
            "link_routes": [{"prefix": prefix, "connector": broker} for prefix, broker in mine.items()],
            "policy": {"max_message_size": self.limits.get(name, 0)},
            "vhosts": self.vhosts,
            "limits": self.caps,
        }

    def join(self, near: str, far: str, role: str | None = None) -> None:
        """Who dials: an edge its interior, and of two interiors the first."""
        if far.startswith("E"):
            near, far = far, near
        if (near, far, role) not in self.joined:
            self.joined.append((near, far, role))
        role = role or ("edge" if near.startswith("E") else "inter-router")
        self.nodes[near].connector(f"to-{far}", f"vm://{far}", role)

    def kill(self, name: str) -> None:
        """A router is gone, and what was connected to it is cut off."""
        node = self.nodes.pop(name)
        for wire in self.wires:
            if node in (wire.near.broker, wire.far.broker) and not wire.is_cut:
                wire.cut()
        for peer in self.peers:
            if peer.world.broker is node and not peer.cut_off:
                peer.cut_off = True
        self.named = {each for each in self.named if each.broker is not node}
        self.run()

    def revive(self, name: str) -> None:
        """It is there again, and knows nothing."""
        self.router(name)
        for near, far, role in self.joined:
            if near == name:
                self.join(near, far, role)
        self.run()

    def __getitem__(self, name: str) -> RouterNode:
        return self.nodes[name]

    def connect(self, name: str, **options: Any) -> Peer:
        peer = Peer(Site(self, self.nodes[name]), f"peer-{len(self.peers)}", **options)  # type: ignore[arg-type]
        self.peers.append(peer)
        self.run()
        return peer

    def wire(self, one: str, other: str) -> Wire:
        """The first live connection between two routers, or a router and a broker."""
        return next(wire for wire in self.wires if wire.ends == {one, other} and not wire.near.ended)

    def run(self) -> None:
        """Carry bytes to and fro until nobody has anything to say."""
        moved = True
        while moved:
            moved = self._dial()
            for peer in self.peers:
                moved = peer.speak() or moved
            self._step()
            for wire in self.wires:
                moved = wire.carry(self.named) or moved
            self._step()
            for peer in self.peers:
                if peer.connection in self.named:
                    self.named.discard(peer.connection)
                    moved = peer.hear() or moved
            moved = moved or bool(self.named)
            moved = moved or any(node.unfinished for node in (*self.nodes.values(), *self.brokers.values()))

    def _step(self) -> None:
        for node in (*self.nodes.values(), *self.brokers.values()):
            self.named.update(node.step())
        alive = {end for wire in self.wires if not wire.is_cut for end in (wire.near, wire.far)}
        self.named &= alive | {peer.connection for peer in self.peers}

    def _dial(self) -> bool:
        dialled = False
        for node in self.nodes.values():
            for dial in node.take_dials():
                dialled = True
                name = dial.url.removeprefix("vm://")
                target = self.nodes.get(name) or self.brokers.get(name)
                if target is None:
                    dial.connector.failed("there is no such router")
                    continue
                near = dial.connector.dialled(dial.url)
                if near is not None:
                    self.wires.append(Wire(near, target.accept(trusted=True, peer=node.name)))
        return dialled

    def advance(self, seconds: float) -> None:
        """Let time pass; what asks to be called learns first what time it is now."""
        self._tick()
        self.clock.now += seconds
        self.monotonic += seconds
        self._tick()
        self.run()

    def wait_for_next(self) -> None:
        """Let time pass until something is due."""
        dues = [due for node in self.nodes.values() if (due := node.tick(self.clock.now)) is not None]
        if dues:
            self.advance(max(min(dues) - self.clock.now, 0))

    def _tick(self) -> None:
        for node in (*self.nodes.values(), *self.brokers.values()):
            node.tick(self.clock.now)
            for connection in list(node._connections):
                connection.tick(self.monotonic)
