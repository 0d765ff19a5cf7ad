"""`jmsish receive`: take messages from a destination and print them."""

from __future__ import annotations

import argparse
from typing import Any

import jmsish
from jmsish.cli.output import Write, writer
from jmsish.cli.parsing import (
    CommandError,
    UsageError,
    add_command,
    add_connection_arguments,
    connect,
    destination,
    positive,
    seconds,
    whole,
)

EPILOG = """\
examples:
  jmsish receive amqp://localhost greetings -n 1            wait for one message
  jmsish receive amqp://localhost orders --timeout 2        all there is, until none came for two seconds
  jmsish receive amqp://localhost orders                    on and on, until interrupted
  jmsish receive amqp://localhost orders -n 5 --json        headers, properties and body, one JSON object a line
  jmsish receive amqp://localhost photos -n 1 --file cat.jpg
  jmsish receive amqp://localhost topic://news              a topic: what is published from now on
  jmsish receive amqp://localhost orders -n 100 --transacted --batch 10
  jmsish receive amqp://localhost orders -n 3 --rollback    take three, show them, and give them back (counted)

A message is acknowledged (or its transaction committed) only after it was printed, so an interrupted
pipe loses none. Status 1 when -n asked for more than came within --timeout.
"""


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "receive",
        run,
        help="take messages and print them",
        description="Receive messages from a destination, one body a line.",
        epilog=EPILOG,
    )
    parser.add_argument("url", metavar="URL", help="amqp://HOST[:PORT] or amqps://HOST[:PORT]")
    parser.add_argument("destination", metavar="DESTINATION", help="queue://NAME, topic://NAME, or NAME (a queue)")
    parser.add_argument("-n", "--count", metavar="N", type=positive, help="end after N messages")
    parser.add_argument("--timeout", metavar="S", type=seconds, help="end when no message came for S seconds")
    parser.add_argument("--selector", metavar="TEXT", help="a JMS selector, as \"colour = 'red'\"")
    parser.add_argument("--prefetch", metavar="N", type=whole, help="messages fetched ahead (1000, at most -n)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print headers, properties and body as JSON")
    how.add_argument("--file", metavar="FILE", help="write bodies to FILE, FILE-2 ... and print their names")
    parser.add_argument("--transacted", action="store_true", help="in transactions of --batch messages")
    parser.add_argument("--batch", metavar="N", type=positive, default=1, help="messages a transaction (1)")
    parser.add_argument("--rollback", action="store_true", help="give everything back at the end, in one transaction")
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.batch != 1 and not arguments.transacted:
        raise UsageError("--batch goes with --transacted")
    source = destination(arguments.destination)
    write = writer(as_json=arguments.json, file=arguments.file)
    with connect(arguments) as connection:
        session = open_session(connection, arguments)
        consumer = session.create_consumer(source, arguments.selector, prefetch=prefetch(arguments))
        received = receive_all(session, consumer, write, arguments)
        if arguments.rollback:
            session.rollback()
        elif session.transacted:
            session.commit()
    if arguments.count is not None and received < arguments.count:
        raise CommandError(f"received {received} of {arguments.count} messages: none came for {arguments.timeout:g} s")
    return 0


def open_session(connection: jmsish.Connection, arguments: argparse.Namespace) -> jmsish.Session:
    if arguments.transacted or arguments.rollback:
        return connection.create_session(transacted=True)
    return connection.create_session(acknowledge_mode=jmsish.AcknowledgeMode.CLIENT)


def prefetch(arguments: argparse.Namespace) -> int | None:
    """No more than we shall take: what lies in our buffer is out of reach for others."""
    wanted: int | None = arguments.prefetch
    if wanted is None and arguments.count is not None:
        return min(int(arguments.count), 1000)
    return wanted


def receive_all(
    session: jmsish.Session, consumer: jmsish.MessageConsumer, write: Write, arguments: argparse.Namespace
) -> int:
    received = 0
    while arguments.count is None or received < arguments.count:
        message = consumer.receive(timeout=arguments.timeout)
        if message is None:
            break
        write(message)
        received += 1
        if not session.transacted:
            message.acknowledge()
        elif not arguments.rollback and received % arguments.batch == 0:
            session.commit()
    return received
