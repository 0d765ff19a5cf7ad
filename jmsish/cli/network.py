"""What `jmsish topology` reads of a network of routers: all of it, from one of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from jmsish.cli.management import Management

WHO = ("receiver", "sender")


@dataclass(frozen=True)
class Address:
    """A mobile address, as the router that was asked knows it."""

    name: str
    multicast: bool
    hops: int | None
    """To the nearest receiver; None: there is none, and somebody waits for one."""
    at: str | None
    """The router where the nearest receiver is; None where that is one of several, or there is none."""
    towards: tuple[str, ...]
    counters: str
    delivered: int


@dataclass(frozen=True)
class Route:
    """A link route: prefixes that lead to the broker of one connector."""

    router: str
    connector: str
    prefixes: tuple[str, ...]
    hops: int
    up: bool = True
    """Whether the broker can be reached."""


@dataclass(frozen=True)
class Router:
    """One router, and those that hang from it, as seen from the one that was asked."""

    name: str
    mode: str
    hops: int
    beyond: tuple[Router, ...]


@dataclass(frozen=True)
class Network:
    """All of it, at one time."""

    root: Router
    """The one that was asked."""
    addresses: tuple[Address, ...]
    routes: tuple[Route, ...]
    down: tuple[tuple[str, str], ...]
    """Connectors of this router that are not up, and why."""

    @property
    def routers(self) -> list[Router]:
        """The routers, each before those that are farther away on the same way."""
        found, waiting = [], [self.root]
        while waiting:
            router = waiting.pop()
            found.append(router)
            waiting += reversed(router.beyond)
        return found


def read(management: Management) -> Network:
    """What there is now. The tables are read one after the other; what went between two of them is left out."""
    itself = management.ask("READ", "router", name="self")
    ways: dict[str, set[str]] = defaultdict(set)
    edges = {itself["name"]} if itself["mode"] == "edge" else set()
    for row in management.rows("join"):
        ways[row["dialler"]].add(row["dialled"])
        ways[row["dialled"]].add(row["dialler"])
        if row["role"] == "edge":
            edges.add(row["dialler"])
    root = _grown(itself["name"], ways, edges, {itself["name"]}, 0)
    places = _places(root)
    addresses = tuple(_address(row, places) for row in management.rows("address"))
    down = tuple((row["name"], f"{row['url']}: {row['error']}") for row in management.rows("connector") if row["error"])
    return Network(root, addresses, _routes(management.rows("link_route")), down)


def _grown(name: str, ways: dict[str, set[str]], edges: set[str], seen: set[str], hops: int) -> Router:
    """A router with all that lies beyond it. What is no tree, as one row may be older than another, is cut."""
    beyond = []
    for far in sorted(ways[name], key=lambda each: (each not in edges, each)):
        if far not in seen:
            seen.add(far)
            beyond.append(_grown(far, ways, edges, seen, hops + 1))
    return Router(name, "edge" if name in edges else "interior", hops, tuple(beyond))


def _places(root: Router) -> dict[tuple[str, int], list[str]]:
    """The routers by the neighbour they lie behind, and their hops."""
    found: dict[tuple[str, int], list[str]] = defaultdict(list)

    def walk(router: Router, behind: str) -> None:
        found[behind, router.hops].append(router.name)
        for each in router.beyond:
            walk(each, behind)

    for neighbour in root.beyond:
        walk(neighbour, neighbour.name)
    found[root.name, 0].append(root.name)
    return found


def _address(row: dict[str, Any], places: dict[tuple[str, int], list[str]]) -> Address:
    hops, towards = row["hops"], tuple(row["towards"])
    near = [name for (_, far), names in places.items() if hops == 0 and far == 0 for name in names]
    near += [name for way in towards for name in places.get((way, hops), ())]
    counters = [f"{row[f'deliveries_{way}']:,} {way}" for way in ("in", "out") if row["deliveries_in"]]
    counters += [f"{row[f'{who}s']:,} {who}{'' if row[f'{who}s'] == 1 else 's'}" for who in WHO if row[f"{who}s"]]
    counters += [f"{row['waiting']:,} waiting"] if row["waiting"] else []
    at = near[0] if len(near) == 1 else None
    return Address(row["name"], row["multicast"], hops, at, towards, ", ".join(counters), row["deliveries_out"])


def _routes(rows: list[dict[str, Any]]) -> tuple[Route, ...]:
    prefixes: dict[tuple[str, str, int, bool], list[str]] = defaultdict(list)
    for row in rows:
        prefixes[row["router"], row["connector"], row["hops"], row["up"]].append(row["prefix"])
    return tuple(
        Route(router, name, tuple(sorted(each)), hops, up) for (router, name, hops, up), each in prefixes.items()
    )
