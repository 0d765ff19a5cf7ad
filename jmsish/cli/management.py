"""`jmsish list`, `create`, `update`, `delete` and `purge`: a broker's queues and topics, by its management node."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jmsish
from jmsish.cli.output import emit
from jmsish.cli.parsing import CommandError, UsageError, add_command, add_connection_arguments, connect, destination

ADDRESS = "$management"
TIMEOUT = 15.0
"""Seconds to wait for an answer."""

COLUMNS = {
    "queue": ("name", "depth", "available", "acquired", "consumer_count", "enqueued", "dequeued", "dead_lettered"),
    "topic": ("name", "bindings", "received", "routed", "dropped"),
    "subscription": ("name", "client_id", "topic", "selector", "durable", "shared", "depth", "consumers"),
}

EPILOG = """\
examples:
  jmsish list amqp://localhost                                   every queue, topic and subscription
  jmsish create amqp://localhost orders max_delivery_attempts=5 dead_letter=orders.dead
  jmsish update amqp://localhost orders max_messages=10000 overflow=block
  jmsish create amqp://localhost topic://prices
  jmsish purge amqp://localhost orders
  jmsish delete amqp://localhost orders

They ask the management node ($management) of the bundled broker. A destination is queue://NAME, topic://NAME,
or NAME for a queue.
"""

TEXTS = {
    "list": "show queues, topics and subscriptions",
    "create": "make a queue or a topic",
    "update": "change the settings of a queue",
    "delete": "delete a queue or a topic with all it holds",
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
        else:
            parser.add_argument("destination", metavar="DESTINATION", help="queue://NAME, topic://NAME, or NAME")
        if verb in ("create", "update"):
            parser.add_argument("settings", metavar="NAME=VALUE", nargs="*", help="settings of the queue")
        add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    with connect(arguments) as connection, node(connection) as management:
        if arguments.verb == "list":
            show(management, as_json=arguments.json)
        else:
            change(management, arguments)
    return 0


def change(management: Management, arguments: argparse.Namespace) -> None:
    place = destination(arguments.destination)
    kind = "queue" if isinstance(place, jmsish.Queue) else "topic"
    settings = dict(setting(text) for text in getattr(arguments, "settings", ()))
    said = management.ask(arguments.verb.upper(), kind, settings, name=place.name)
    if arguments.verb == "purge":
        print(f"{said['purged']} removed from {place}", flush=True)


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


def show(management: Management, *, as_json: bool) -> None:
    for kind, columns in COLUMNS.items():
        table = management.ask("QUERY", "org.amqp.management", entityType=kind)
        names = table["attributeNames"]
        rows = [dict(zip(names, row, strict=True)) for row in table["results"]]
        rows = [row for row in rows if row["name"] != management.answers.name]
        if as_json:
            for row in rows:
                emit(json.dumps({name: value for name, value in row.items() if value is not None}, ensure_ascii=False))
        elif rows:
            print_table([(kind, *columns[1:]), *(tuple(cell(row[name]) for name in columns) for row in rows)])


def cell(value: Any) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        first = row[0].ljust(widths[0])
        emit("  ".join([first, *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]))


class Management:
    """Requests to the management node over a session of its own."""

    def __init__(self, session: jmsish.Session, answers: jmsish.Destination) -> None:
        self.session = session
        self.answers = answers
        self.producer = session.create_producer(session.create_queue(ADDRESS))
        self.consumer = session.create_consumer(answers)

    def ask(self, operation: str, kind: str, attributes: Mapping[str, Any] | None = None, **named: str) -> Any:
        """The body of the answer. Raises `CommandError` with what the broker said where it refused."""
        request = self.session.create_map_message(attributes)
        request.jms_reply_to = self.answers
        for name, value in {"operation": operation, "type": kind, **named}.items():
            request.set_string_property(name, value)
        self.producer.send(request)
        answer = self.consumer.receive(timeout=TIMEOUT)
        if answer is None:
            raise CommandError(f"the broker's management node did not answer within {TIMEOUT:g} s")
        status = answer.get_int_property("statusCode")
        if not 200 <= status < 300:
            raise CommandError(f"{answer.get_string_property('statusDescription')} (status {status})")
        return answer.body


@contextmanager
def node(connection: jmsish.Connection) -> Iterator[Management]:
    session = connection.create_session()
    try:
        yield Management(session, session.create_temporary_queue())
    except jmsish.InvalidDestinationError as error:
        raise CommandError(f"the broker has no management node: {error}") from error
