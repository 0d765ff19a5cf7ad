"""`jmsish browse`: look at a queue without taking anything from it."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import Any

import jmsish
from jmsish.cli.output import writer
from jmsish.cli.parsing import UsageError, add_command, add_connection_arguments, connect, destination, positive

EPILOG = """\
examples:
  jmsish browse amqp://localhost orders                 the bodies, first to last
  jmsish browse amqp://localhost orders -n 10 --json    the first ten with headers and properties
  jmsish browse amqp://localhost orders --selector "JMSPriority > 4"

Nothing is taken and no delivery is counted. Messages that a consumer holds are not shown.
"""


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "browse",
        run,
        help="look at a queue",
        description="Print what is on a queue, and leave it there.",
        epilog=EPILOG,
    )
    parser.add_argument("url", metavar="URL", help="amqp://HOST[:PORT] or amqps://HOST[:PORT]")
    parser.add_argument("queue", metavar="QUEUE", help="queue://NAME or NAME")
    parser.add_argument("-n", "--count", metavar="N", type=positive, help="show N messages at most")
    parser.add_argument("--selector", metavar="TEXT", help="a JMS selector, as \"colour = 'red'\"")
    parser.add_argument("--json", action="store_true", help="print headers, properties and body as JSON")
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    queue = destination(arguments.queue)
    if not isinstance(queue, jmsish.Queue):
        raise UsageError(f"{arguments.queue!r} is a topic; only queues can be browsed")
    write = writer(as_json=arguments.json, file=None)
    with connect(arguments) as connection:
        session = connection.create_session()
        with session.create_browser(queue, arguments.selector) as browser:
            for message in islice(browser, arguments.count):
                write(message)
    return 0
