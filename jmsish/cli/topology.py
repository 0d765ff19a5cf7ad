"""`jmsish topology`: what leads to which queue, drawn; at a router, the network and where its addresses are."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jmsish.cli import drawings, network, network_drawings, svg
from jmsish.cli.management import Management, is_router, node
from jmsish.cli.output import emit
from jmsish.cli.parsing import UsageError, add_command, add_connection_arguments, connect

EPILOG = """\
examples:
  jmsish topology amqp://localhost                     a tree in the terminal
  jmsish topology amqp://localhost -o broker.svg       a picture, for any browser
  jmsish topology amqp://localhost -o broker.mmd       a Mermaid flowchart, for READMEs and wikis
  jmsish topology amqp://localhost -o broker.txt       the tree in a file

Exchanges with their counters, bindings with their keys and how many messages they have wanted, queues with their
depths. Of the exchanges that are always there, only those that were used are shown, unless --all is given.
At a router it is the whole network, as this one router knows it: how the routers are joined, the addresses with their
nearest receivers, link routes with their brokers, and connectors of this router that are not connected.
"""
PREDECLARED = ("amq.direct", "amq.topic", "amq.fanout", "amq.match")


@dataclass(frozen=True)
class Binding:
    """One way out of an exchange."""

    target: str
    is_exchange: bool
    key: str
    said: str
    """The key, or what else it asks, as a reader wants to see it."""
    matched: int


@dataclass(frozen=True)
class Exchange:
    """An exchange and its ways out."""

    name: str
    type: str
    alternate: str | None
    frozen: bool
    counters: str
    bindings: tuple[Binding, ...]


@dataclass(frozen=True)
class Queue:
    """A queue; that of a subscription by the subscription."""

    name: str
    said: str
    depth: int
    counters: str


@dataclass(frozen=True)
class Topology:
    """All of it, at one time."""

    broker: str
    exchanges: tuple[Exchange, ...]
    queues: tuple[Queue, ...]


WRITERS: dict[str, Callable[[Topology], str]] = {".svg": svg.draw, ".mmd": drawings.mermaid, ".txt": drawings.tree}
NETWORK_WRITERS: dict[str, Callable[[network.Network], str]] = {
    ".svg": network_drawings.draw,
    ".mmd": network_drawings.mermaid,
    ".txt": network_drawings.tree,
}


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "topology",
        run,
        help="draw exchanges, bindings and queues, or a network of routers",
        description="Draw exchanges, bindings and queues of the bundled broker, with depths and counters; "
        "at a router, the network.",
        epilog=EPILOG,
    )
    parser.add_argument("url", metavar="URL", help="amqp://HOST[:PORT] or amqps://HOST[:PORT]")
    parser.add_argument("-o", "--output", metavar="FILE", help="FILE.svg, FILE.mmd (Mermaid) or FILE.txt")
    parser.add_argument("--all", action="store_true", help="with the exchanges that nobody uses")
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    path = None if arguments.output is None else Path(arguments.output)
    if path is not None and path.suffix.lower() not in WRITERS:
        raise UsageError(f"{arguments.output!r} should end in one of {', '.join(WRITERS)}")
    with connect(arguments) as connection, node(connection) as management:
        drawn = _draw(management, ".txt" if path is None else path.suffix.lower(), every=arguments.all)
    if path is None:
        emit(drawn.rstrip("\n"))
    else:
        path.write_text(drawn, encoding="utf-8")
    return 0


def _draw(management: Management, form: str, *, every: bool) -> str:
    if is_router(management):
        return NETWORK_WRITERS[form](network.read(management))
    return WRITERS[form](read(management, every=every))


def read(management: Management, *, every: bool) -> Topology:
    """What there is now. The tables are read one after the other; what went between two of them is left out."""
    name = management.ask("READ", "broker", name="self")["name"]
    queues = management.rows("queue")
    subscriptions = {row["identity"]: row for row in management.rows("subscription")}
    exchanges = management.rows("exchange")
    bindings = management.rows("binding")
    known = {(False, row["name"]) for row in queues} | {(True, row["name"]) for row in exchanges}
    ways: dict[str, list[Binding]] = {row["name"]: [] for row in exchanges}
    types = {row["name"]: row["exchange_type"] for row in exchanges}
    for row in bindings:
        is_exchange = row["kind"] == "exchange"
        if row["exchange"] in ways and (is_exchange, row["queue"]) in known:
            said = saying(types[row["exchange"]], row["key"], row["arguments"])
            ways[row["exchange"]].append(Binding(row["queue"], is_exchange, row["key"], said, row["matched"]))
    used = {way.target for each in ways.values() for way in each if way.is_exchange}
    used |= {row["alternate"] for row in exchanges}
    return Topology(
        name,
        tuple(
            exchange_of(row, ways[row["name"]])
            for row in exchanges
            if every or row["name"] not in PREDECLARED or row["bindings"] or row["received"] or row["name"] in used
        ),
        tuple(queue_of(row, subscriptions.get(row["name"])) for row in queues),
    )


def saying(type: str, key: str, arguments: dict[str, Any] | None) -> str:
    """What a binding asks: its key, and its arguments."""
    asked = [
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in (arguments or {}).items()
    ]
    if type in ("direct", "topic"):
        asked.insert(0, key or "(empty key)")
    return " ".join(asked) or key or "everything"


def exchange_of(row: dict[str, Any], ways: list[Binding]) -> Exchange:
    counters = [f"{row['received']:,} in", f"{row['routed']:,} routed"]
    counters += [f"{row[name]:,} {name}" for name in ("dropped", "rejected", "released", "waiting") if row[name]]
    ways.sort(key=lambda way: (way.key, way.said, way.target))
    kind = row["exchange_type"]
    return Exchange(row["name"], kind, row["alternate"], row["frozen"], ", ".join(counters), tuple(ways))


def queue_of(row: dict[str, Any], subscription: dict[str, Any] | None) -> Queue:
    consumers = f"{row['consumer_count']:,} consumer{'' if row['consumer_count'] == 1 else 's'}"
    counters = f"{row['depth']:,} deep, {consumers}, {row['enqueued']:,} in"
    said = str(row["name"])
    if subscription is not None:
        owner = subscription["client_id"]
        said = f"subscription {subscription['name']}" + (f" of {owner}" if owner else "")
    elif row["temporary"]:
        said = f"temporary {said.rpartition('.')[2][:8]}"
    return Queue(row["name"], said, row["depth"], counters)
