"""`jmsish list`, `create`, `update`, `delete` and `purge`: a broker's queues and exchanges, by its management node."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jmsish
from jmsish.cli.output import emit
from jmsish.cli.parsing import (
    CommandError,
    UsageError,
    add_command,
    add_connection_arguments,
    connect,
    destination,
    visible,
)

ADDRESS = "$management"
MARK = "exchange://"
TIMEOUT = 15.0
"""Seconds to wait for an answer."""

COLUMNS = {
    "queue": ("name", "depth", "available", "acquired", "consumer_count", "enqueued", "dequeued", "dead_lettered"),
    "exchange": ("name", "exchange_type", "bindings", "received", "routed", "dropped", "rejected", "released"),
    "binding": ("identity", "matched", "arguments"),
    "subscription": ("name", "client_id", "topic", "selector", "durable", "shared", "depth", "consumers"),
}
ROUTER_COLUMNS = {
    "router": ("name", "hops"),
    "neighbour": ("name", "role", "up", "connector", "peer"),
    "connector": ("name", "url", "role", "up", "error"),
    "address": ("name", "hops", "multicast", "receivers", "senders", "deliveries_in", "deliveries_out", "waiting"),
    "link_route": ("name", "hops", "up"),
    "connection": ("name", "role", "container_id", "peer", "user", "senders", "receivers"),
    "link": ("identity", "kind", "address", "peer", "credit", "unsettled", "delivered"),
}
POLICY_COLUMNS = {
    "policy": (
        "name", "max_message_size", "on_oversize", "connections_current", "connections_denied", "links_denied",
        "max_message_size_denied", "total_denials",
    ),
    "vhost": (
        "name", "max_message_size", "connections_current", "connections_denied", "sessions_denied", "senders_denied",
        "receivers_denied", "max_message_size_denied",
    ),
    "group": ("name", "users", "remote_hosts", "max_message_size", "sources", "targets"),
}  # fmt: skip

EPILOG = """\
examples:
  jmsish list amqp://localhost                                   queues, exchanges, bindings and subscriptions
  jmsish list amqp://router                                      routers, neighbours, addresses, connections and links
  jmsish list amqp://localhost --policy                          limits, and how often they refused something
  jmsish create amqp://localhost orders max_delivery_attempts=5 dead_letter=orders.dead
  jmsish update amqp://localhost orders max_messages=10000 overflow=block
  jmsish create amqp://localhost topic://prices
  jmsish create amqp://localhost exchange://news type=fanout alternate=amq.topic
  jmsish update amqp://localhost exchange://news unroutable=reject alternate=
  jmsish purge amqp://localhost orders
  jmsish delete amqp://localhost orders

They ask the management node ($management) of the bundled broker, or of a router, which can be listed only.
A destination is queue://NAME, topic://NAME, exchange://NAME, or NAME for a queue. An exchange is of the type direct,
topic, fanout or headers.
"""

TEXTS = {
    "list": "show queues, exchanges, bindings and subscriptions; what a router knows",
    "create": "make a queue, a topic or another exchange",
    "update": "change the settings of a queue or an exchange",
    "delete": "delete a queue, a topic or another exchange with all it holds",
    "purge": "remove the available messages of a queue",
}


def add_parser(commands: Any) -> None:
    for verb, text in TEXTS.items():
        description = text[0].upper() + text[1:] + "."
        parser = add_command(commands, verb, run, help=text, description=description, epilog=EPILOG)
        parser.set_defaults(verb=verb)
        parser.add_argument("url", metavar="URL", help="amqp://HOST[:PORT] or amqps://HOST[:PORT]")
        if verb == "list":
            parser.add_argument("--json", action="store_true", help="all attributes, one JSON object a line")
            parser.add_argument("--policy", action="store_true", help="virtual hosts, groups, and what was refused")
        else:
            helps = "queue://NAME, topic://NAME, exchange://NAME, or NAME for a queue"
            parser.add_argument("destination", metavar="DESTINATION", help=helps)
        if verb in ("create", "update"):
            parser.add_argument("settings", metavar="NAME=VALUE", nargs="*", help="settings of it")
        add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    with connect(arguments) as connection, node(connection) as management:
        if arguments.verb == "list":
            show(management, arguments.policy, as_json=arguments.json)
        else:
            change(management, arguments)
    return 0


def change(management: Management, arguments: argparse.Namespace) -> None:
    kind, name = entity(arguments.destination)
    settings = dict(setting(text) for text in getattr(arguments, "settings", ()))
    said = management.ask(arguments.verb.upper(), kind, settings, name=name)
    if arguments.verb == "purge":
        print(f"{said['purged']} removed from {kind}://{name}", flush=True)


def entity(text: str) -> tuple[str, str]:
    """The type and the name of what is managed: a destination, or ``exchange://NAME``."""
    mark, name = text[: len(MARK)], text[len(MARK) :]
    if mark == MARK and name:
        return "exchange", name
    place = destination(text)
    return ("queue" if isinstance(place, jmsish.Queue) else "topic"), place.name


def setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE: a number, true or false where it is one, else a text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{text!r} is not NAME=VALUE")
    try:
        found = json.loads(value)
    except ValueError:
        return name, value
    return name, found if isinstance(found, (bool, int, float)) else value


def show(management: Management, policy: bool, *, as_json: bool) -> None:
    shown = POLICY_COLUMNS if policy else ROUTER_COLUMNS if is_router(management) else COLUMNS
    for kind, columns in shown.items():
        rows = management.rows(kind)
        if as_json:
            for row in rows:
                told = {name: value for name, value in row.items() if value is not None}
                emit(json.dumps(told, ensure_ascii=False, default=str))
        elif rows:
            print_table([(kind, *columns[1:]), *(tuple(cell(row[name]) for name in columns) for row in rows)])


def cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(visible(str(each)) for each in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else visible(str(value))


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Numbers and the like stand at the right of their columns, texts at the left."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    texts = [any(not (each.isdigit() or each in ("-", "true", "false")) for each in column[1:]) for column in columns]
    for row in rows:
        cells = [
            text.ljust(width) if left else text.rjust(width)
            for text, width, left in zip(row, widths, texts, strict=True)
        ]
        emit("  ".join(cells).rstrip())


class Management:
    """Requests to the management node over a session of its own.

    The answers come by a link from the node itself: that takes no queue, nor the right to make one.
    """

    def __init__(self, session: jmsish.Session) -> None:
        self.session = session
        node = session.create_queue(ADDRESS)
        self.producer = session.create_producer(node)
        self.consumer = session.create_consumer(node)

    @property
    def answers(self) -> jmsish.Destination:
        """Where answers are wanted: what is for the target of a link that receives from the node comes by that link."""
        link = self.consumer._core.link
        if link is None:
            raise CommandError("the broker's management node does not answer any more")
        return self.session.create_queue(link.name)

    def ask(
        self,
        operation: str,
        kind: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        patience: float | None = 0.0,
        **named: str,
    ) -> Any:
        """The body of the answer, which may take ``patience`` seconds longer than others (None: as long as it takes).

        Raises `CommandError` with what the broker said where it refused.
        """
        request = self.session.create_object_message(dict(attributes or {}))
        request.jms_reply_to = self.answers
        for name, value in {"operation": operation, "type": kind, **named}.items():
            request.set_string_property(name, value)
        self.producer.send(request)
        answer = self.consumer.receive(timeout=None if patience is None else TIMEOUT + patience)
        if answer is None:
            raise CommandError(f"the broker's management node did not answer within {TIMEOUT:g} s")
        status = answer.get_int_property("statusCode")
        if not 200 <= status < 300:
            raise CommandError(f"{answer.get_string_property('statusDescription')} (status {status})")
        return answer.body

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """The attributes of each entity of a type."""
        table = self.ask("QUERY", "org.amqp.management", entityType=kind)
        return [dict(zip(table["attributeNames"], row, strict=True)) for row in table["results"]]


def is_router(management: Management) -> bool:
    """Whether it is a router that answers, and not a broker."""
    kinds = management.ask("GET-TYPES", "org.amqp.management")
    return "join" in kinds and "queue" not in kinds


@contextmanager
def node(connection: jmsish.Connection) -> Iterator[Management]:
    session = connection.create_session()
    try:
        yield Management(session)
    except jmsish.InvalidDestinationError as error:
        raise CommandError(f"the broker has no management node: {error}") from error
