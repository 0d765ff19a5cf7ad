"""A network of routers as a tree of text, as a Mermaid flowchart, and as a picture (SVG).

In the picture routers stand in columns by their hops from the one that was asked, each beside those that lie beyond it;
so joins lead from column to column and never cross. A router's rows are the addresses whose nearest receiver it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from jmsish.cli.drawings import escaped, quoted
from jmsish.cli.network import Address, Network, Route, Router
from jmsish.cli.parsing import visible
from jmsish.cli.svg import COLOURS, GAP, TOP, Box, Curve, Picture, cut, width_of, written

GUTTER: Final = 90.0
"""Pixels between two columns."""
LEFT: Final = 24.0


def place(address: Address) -> str:
    """Where the nearest receiver is, in a few words."""
    if address.hops is None:
        return "nobody receives"
    if address.hops == 0:
        return "here"
    far = f"{address.hops} hop{'' if address.hops == 1 else 's'}"
    return f"{far}, at {address.at}" if address.at else f"{far}, over {' and '.join(address.towards)}"


def _named(address: Address) -> str:
    return f"{address.name} (multicast)" if address.multicast else address.name


# --- a tree


def tree(network: Network) -> str:
    """The routers from the one that was asked, then addresses, link routes, and connectors that are down."""
    lines = [f"{network.root.name} ({network.root.mode})", *_branches(network.root, "")]
    addresses = [(_named(each), f"{place(each)}  {each.counters}".rstrip()) for each in network.addresses]
    routes = [(f"{prefix}*", _leads(route)) for route in network.routes for prefix in route.prefixes]
    for title, rows in (("addresses", addresses), ("link routes", routes), ("not connected", list(network.down))):
        if rows:
            width = min(max(len(name) for name, _ in rows), 40)
            lines += ["", title]
            for number, (name, said) in enumerate(rows, 1):
                lines.append(f"{'└─' if number == len(rows) else '├─'} {name.ljust(width)}  {said}")
    return "\n".join(visible(line) for line in lines) + "\n"


def _branches(router: Router, indent: str) -> Iterator[str]:
    for number, each in enumerate(router.beyond, 1):
        last = number == len(router.beyond)
        yield f"{indent}{'└─' if last else '├─'} {each.name} ({each.mode})"
        yield from _branches(each, f"{indent}{'   ' if last else '│  '}")


def _leads(route: Route) -> str:
    far = "here" if not route.hops else f"{route.hops} hop{'' if route.hops == 1 else 's'}"
    away = "" if route.up else ", not connected"
    return f"{far}, the connector {route.connector} of {route.router}{away}"


# --- where addresses are drawn


def _held(network: Network) -> dict[str, list[tuple[str, str]]]:
    """The rows of each router: addresses, at the nearest place that is known for certain, and how often they went."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for each in network.addresses:
        if each.hops is None:
            continue
        for at in (each.at,) if each.at else each.towards:
            more = "" if each.at else " (beyond)"
            rows.setdefault(at, []).append((_named(each) + more, f"{each.delivered:,}"))
    return rows


# --- Mermaid


def mermaid(network: Network) -> str:
    """A flowchart: interiors are boxes, edges rounded, brokers of link routes cylinders with their prefixes."""
    lines = ["---", f"title: {quoted(f'the network of {network.root.name}')}", "---", "flowchart LR"]
    held, routers = _held(network), network.routers
    names = {router.name: f"r{number}" for number, router in enumerate(routers)}
    for router in routers:
        label = "<br>".join(
            [f"{escaped(router.name)} ({router.mode})", *(escaped(name) for name, _ in held.get(router.name, ()))]
        )
        left, right = ('("', '")') if router.mode == "edge" else ('["', '"]')
        lines.append(f"    {names[router.name]}{left}{label}{right}")
    for router in routers:
        lines += [f"    {names[router.name]} --- {names[each.name]}" for each in router.beyond]
    for number, route in enumerate(network.routes):
        if route.router in names:
            prefixes = ", ".join(escaped(f"{prefix}*") for prefix in route.prefixes)
            away = "" if route.up else "<br>not connected"
            lines.append(f'    b{number}[("{escaped(route.connector)}{away}")]')
            lines.append(f'    {names[route.router]} -- "{prefixes}" --> b{number}')
    return "\n".join(lines) + "\n"


# --- a picture


@dataclass
class _Spot:
    """A router or a broker, and what stands at its right."""

    box: Box
    beyond: list[_Spot] = field(default_factory=list)
    is_broker: bool = False

    @property
    def height(self) -> float:
        """Pixels that it needs, with all beyond it."""
        return max(self.box.height, sum(each.height + GAP for each in self.beyond) - GAP)


def draw(network: Network) -> str:
    """A picture, an XML document."""
    return written(layout(network))


def layout(network: Network) -> Picture:
    """Boxes and curves."""
    root = _spot(network.root, network, _held(network))
    columns: list[list[_Spot]] = []
    _sort(root, columns, 0)
    x = LEFT
    for column in columns:
        width = max(spot.box.width for spot in column)
        for spot in column:
            spot.box.x, spot.box.width = x, width
        x += width + GUTTER
    _stand(root, float(TOP))
    spots = [spot for column in columns for spot in column]
    routers = network.routers
    title = f"{network.root.name}: {len(routers)} routers, {len(network.addresses)} addresses"
    return Picture(
        title,
        max(x - GUTTER, LEFT + len(title) * 9.5) + LEFT,
        TOP + root.height + LEFT,
        [spot.box for spot in spots if not spot.is_broker],
        [spot.box for spot in spots if spot.is_broker],
        [curve for spot in spots for curve in _curves(spot)],
    )


def _spot(router: Router, network: Network, held: dict[str, list[tuple[str, str]]]) -> _Spot:
    far = "asked" if not router.hops else f"{router.hops} hop{'' if router.hops == 1 else 's'}"
    lines = [(cut(router.name), router.mode), (far, "")]
    lines += [(cut(name), count) for name, count in held.get(router.name, ())]
    spot = _Spot(Box(0, 0, width_of(lines), lines, "box" if router.mode == "interior" else "box frozen", router.name))
    spot.beyond = [_spot(each, network, held) for each in router.beyond]
    for route in network.routes:
        if route.router == router.name:
            lines = [(cut(route.connector), "broker" if route.up else "not connected"), ("link routes", "")]
            lines += [(cut(f"{prefix}*"), "") for prefix in route.prefixes]
            spot.beyond.append(_Spot(Box(0, 0, width_of(lines), lines, "box queue", route.connector), is_broker=True))
    return spot


def _sort(spot: _Spot, columns: list[list[_Spot]], depth: int) -> None:
    if depth == len(columns):
        columns.append([])
    columns[depth].append(spot)
    for each in spot.beyond:
        _sort(each, columns, depth + 1)


def _stand(spot: _Spot, y: float) -> None:
    """Give a box its place in the middle of the height that is its own, and then to what is beyond it."""
    spot.box.y = y + (spot.height - spot.box.height) / 2
    y += max(0.0, (spot.height - sum(each.height + GAP for each in spot.beyond) + GAP) / 2) if spot.beyond else 0.0
    for each in spot.beyond:
        _stand(each, y)
        y += each.height + GAP


def _curves(spot: _Spot) -> Iterator[Curve]:
    for each in spot.beyond:
        x, y = spot.box.x + spot.box.width, spot.box.y + spot.box.rows[0]
        to, end = each.box.y + each.box.rows[0], each.box.x
        middle = (x + end) / 2
        path = f"M{x:.1f} {y:.1f} C{middle:.1f} {y:.1f} {middle:.1f} {to:.1f} {end:.1f} {to:.1f}"
        shape, colour = ("way alternate", COLOURS[-1]) if each.is_broker else ("way", COLOURS[0])
        yield Curve(path, colour, shape, f"{spot.box.hint} - {each.box.hint}", arrow=each.is_broker)
