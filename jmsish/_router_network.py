"""A whole network of routers in one process, for the tests of programs whose production has one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from secrets import token_hex
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

from jmsish.broker.network.doors import EDGE, INTER_ROUTER, INTERIOR, NORMAL
from jmsish.embedded import EmbeddedBroker, Listener
from jmsish.errors import OperationTimeoutError

__all__ = ["RouterNetwork"]

_networks = count(1)
TRANSPORTS: Final = ("vm", "tcp")


class NetworkRouter(EmbeddedBroker):
    """One router of a network. Its ``url`` reaches the door for clients, by the transport of the network."""

    def __init__(self, router: str, transport: str, name: str, config: dict[str, Any], **options: Any) -> None:
        super().__init__(name, config=config, **options)
        self.id = router
        self._transport = transport
        self._doors: dict[str, Listener] = {}
        self._ports: dict[str, int] = {}
        self._urls: dict[str, str] = {}

    @property
    def url(self) -> str:
        return super().url if self._transport == "vm" else self.door(NORMAL)

    def door(self, role: str) -> str:
        """The URL of the door for a role."""
        return super().url if self._transport == "vm" else self._urls[role]

    def start(self) -> None:
        super().start()
        if self._transport == "vm" or self._doors:
            return
        for role in (NORMAL, INTER_ROUTER, EDGE) if self.router.mode == INTERIOR else (NORMAL,):
            # A router that is revived is found where it was.
            self._doors[role] = self.listen(port=self._ports.get(role, 0), role=role)
            self._ports[role], self._urls[role] = self._doors[role].port, self._doors[role].url

    def stop(self) -> None:
        super().stop()
        self._doors.clear()

    def kill(self) -> None:
        """End it as a crash would: without a word to anybody."""
        self._driver.stop(farewell=False)
        self.stop()


class RouterNetwork:
    """Several routers, joined as a line says, and whole when the block begins.

    ::

        with RouterNetwork("EA1-INT.A-INT.B-EB1", limits={"EA1": 50_000}) as network:
            with jmsish.connect(network["EA1"].url) as connection:
                ...

    Names that begin with ``E`` are edges, others interiors. A line has two routers at least, or one alone; several
    lines, divided by commas, make any tree: ``"EA1-INT.A, EA2-INT.A, INT.A-INT.B"``. ``limits`` are maximum message
    sizes in octets by router, ``multicast`` prefixes of addresses whose messages go to everybody, and ``routes`` link
    routes: a prefix, and the router whose connector leads to the broker of a URL. ``configs`` are further sections of a
    router's configuration, and ``transport`` is ``"vm"``, in memory, or ``"tcp"``, over sockets of this machine.
    """

    def __init__(
        self,
        line: str,
        *,
        limits: Mapping[str, int] | None = None,
        transport: str = "vm",
        multicast: Iterable[str] = (),
        routes: Mapping[str, tuple[str, str]] | None = None,
        configs: Mapping[str, Mapping[str, Any]] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        if transport not in TRANSPORTS:
            raise ValueError(f"transport must be one of {', '.join(TRANSPORTS)}, not {transport!r}")
        if isinstance(multicast, str):
            raise TypeError(f"multicast must be a list of prefixes, not {multicast!r}")
        names, self._edges = parse(line)
        self._configs = {name: dict((configs or {}).get(name, {})) for name in names}
        self._check(limits or {}, routes or {}, configs or {})
        number = next(_networks)
        options = {} if clock is None else {"clock": clock}
        for name, config in self._configs.items():
            self._fill(name, config, limits or {}, routes or {}, tuple(multicast))
        self._logins: dict[tuple[str, str], str] = {}
        for near, far in self._edges:
            self._let_in(near, far)
        self.routers = {
            name: NetworkRouter(name, transport, f"network-{number}.{name}", config, **options)
            for name, config in self._configs.items()
        }
        """The routers by their names, in the order of the line."""

    def _check(self, *given: Mapping[str, Any]) -> None:
        limits, routes, configs = given
        for prefix, route in routes.items():
            if not isinstance(route, tuple) or len(route) != 2:  # noqa: PLR2004  # a router, and a URL
                raise TypeError(f"routes[{prefix!r}] must be (router, url of the broker), not {route!r}")
        for name in (*limits, *configs, *(router for router, _ in routes.values())):
            if name not in self._configs:
                raise ValueError(f"there is no router {name!r} in this network: {', '.join(self._configs)}")

    def _fill(
        self,
        name: str,
        config: dict[str, Any],
        limits: Mapping[str, int],
        routes: Mapping[str, tuple[str, str]],
        multicast: tuple[str, ...],
    ) -> None:
        mine = {prefix: url for prefix, (router, url) in routes.items() if router == name}
        brokers = {url: f"broker-{index}" for index, url in enumerate(dict.fromkeys(mine.values()), 1)}
        config["router"] = {"id": name, "mode": EDGE if name.startswith("E") else INTERIOR}
        if name in limits:
            config["policy"] = {**config.get("policy", {}), "max_message_size": limits[name]}
        if multicast:
            config["addresses"] = {"multicast": [*config.get("addresses", {}).get("multicast", ()), *multicast]}
        if mine:
            connectors = [{"url": url, "name": broker} for url, broker in brokers.items()]
            config["connectors"] = [*config.get("connectors", ()), *connectors]
            leads = [{"prefix": prefix, "connector": brokers[url]} for prefix, url in mine.items()]
            config["link_routes"] = [*config.get("link_routes", ()), *leads]

    # --- life

    def start(self) -> None:
        """Start all routers, and return when each knows all others, and which link routes there are."""
        try:
            for router in self.routers.values():
                router.start()
            for near, far in self._edges:
                self._join(near, far)
            self.wait()
        except BaseException:
            self.stop()
            raise

    def _join(self, near: str, far: str) -> None:
        role = EDGE if near.startswith("E") else INTER_ROUTER
        head, _, door = self.routers[far].door(role).partition("//")
        self.routers[near].connector(f"{head}//{self._logins.get((near, far), '')}{door}", role=role, name=f"to {far}")

    def _let_in(self, near: str, far: str) -> None:
        """Where a router has users, its neighbour is one: by its own name, with the password it has there, or a new."""
        config = self._configs[far]
        if not config.get("users") and "users_file" not in config.get("authentication", {}):
            return
        users = config["users"] = dict(config.get("users", {}))
        known = users.setdefault(near, {"password": token_hex(16)})
        password = str(known.get("password", "")) if isinstance(known, Mapping) else ""  # what is wrong is told later
        self._logins[near, far] = f"{quote(near, safe='')}:{quote(password, safe='')}@"

    def wait(self, timeout: float | None = 10.0) -> None:
        """Wait until the network is whole (again), the brokers of its link routes included.

        ``OperationTimeoutError`` after ``timeout`` seconds for a router, which says what is not connected, and why.
        """
        try:
            self._wait(timeout)
        except OperationTimeoutError as error:
            down = [
                f"{connector.name!r} of {router.id!r} to {connector.url}: {connector.error}"
                for router in self.routers.values()
                if router.is_running
                for connector in router.router.connectors
                if connector.error
            ]
            raise OperationTimeoutError("; not connected: ".join([str(error), *down])) from None

    def _wait(self, timeout: float | None) -> None:
        for router in self.routers.values():
            router.router.wait_for_routers(*self.routers, timeout=timeout)
            for config in self._configs.values():
                for route in config.get("link_routes", ()):
                    router.router.wait_for_link_route(route["prefix"], timeout)

    def stop(self) -> None:
        """Stop all routers. Twice is silent."""
        for router in self.routers.values():
            if router.is_running:
                for connector in router.router.connectors:
                    connector.close()  # none is to look for a neighbour that was stopped before it
        for router in self.routers.values():
            router.stop()

    def __enter__(self) -> RouterNetwork:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # --- asked

    def __getitem__(self, name: str) -> NetworkRouter:
        router = self.routers.get(name)
        if router is None:
            raise KeyError(f"there is no router {name!r} in this network: {', '.join(self.routers)}")
        return router

    def __iter__(self) -> Iterator[NetworkRouter]:
        return iter(self.routers.values())

    def wait_for_address(self, address: str, at: str | None = None, timeout: float | None = 10.0) -> None:
        """Wait until an address can be reached from the router ``at``, or from all."""
        for router in self if at is None else (self[at],):
            router.router.wait_for_address(address, timeout)

    # --- trouble

    def kill(self, name: str) -> None:
        """End a router as a crash would, without a word to anybody; its neighbours look for it again and again."""
        self[name].kill()

    def revive(self, name: str) -> None:
        """Start a router again that was killed or stopped, where it was. One that runs is left as it is."""
        if self[name].is_running:
            return
        self[name].start()
        for near, far in self._edges:
            if near == name:
                self._join(near, far)

    def __repr__(self) -> str:
        return f"<RouterNetwork {', '.join(f'{near}-{far}' for near, far in self._edges) or ', '.join(self.routers)}>"


def parse(line: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The routers of a line, and who dials whom: an edge its interior, and of two interiors the first."""
    names: dict[str, None] = {}
    edges = []
    for part in line.split(","):
        row = [name.strip() for name in part.split("-")]
        if not all(row):
            raise ValueError(f"{part.strip()!r} is no line of routers: write EA1-INT.A-INT.B-EB1")
        names.update(dict.fromkeys(row))
        for near, far in zip(row, row[1:]):  # noqa: B905 - neighbours of one line
            if near.startswith("E") and far.startswith("E"):
                raise ValueError(f"the edges {near!r} and {far!r} cannot be neighbours: an edge hangs from an interior")
            edges.append((far, near) if far.startswith("E") else (near, far))
    for name in names:
        uplinks = [far for near, far in edges if near == name]
        if name.startswith("E") and len(uplinks) > 1:
            raise ValueError(f"the edge {name!r} hangs from {' and '.join(map(repr, uplinks))}: it can from one only")
    if len(edges) != len(set(map(frozenset, edges))) or len(edges) != len(names) - 1:
        raise ValueError(f"{line!r} is no tree: between any two routers there is to be exactly one way")
    return list(names), edges
