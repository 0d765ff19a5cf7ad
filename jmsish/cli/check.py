"""`jmsish check`: the conformance scenarios of this project against any broker, and the scorecard."""

from __future__ import annotations

import argparse
import json
from typing import Any

from jmsish import conformance
from jmsish.cli.parsing import (
    UsageError,
    add_command,
    add_connection_arguments,
    connection_options,
    read_target,
    seconds,
    url_with_options,
    visible,
)
from jmsish.cli.told_once import told_once

EPILOG = """\
examples:
  jmsish check amqp://localhost                        all scenarios
  jmsish check amqp://localhost --only 'redelivery-*'  some, by their names
  jmsish check amqp://localhost --list                 what there is, without a broker
  jmsish check amqp://rabbit --queue scratch           at a broker that makes no queues by itself
  jmsish check amqp://localhost --json > card.json

Each scenario uses queues and topics of its own, named jmsish.check.…, and empties them. With --queue they use that
queue: it is emptied first. A result is pass, fail with what was otherwise, or not supported with what the broker lacks.
Status: 0 nothing failed, 1 something did or the broker could not be reached, 2 wrong usage.
"""
MARKS = {"pass": "ok  ", "fail": "FAIL", "not supported": "-   "}


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "check",
        run,
        help="run the conformance scenarios against a broker",
        description="Run this project's conformance scenarios against a broker and print a scorecard.",
        epilog=EPILOG,
    )
    parser.add_argument("url", metavar="URL", nargs="?", help="amqp://HOST[:PORT] or amqps://HOST[:PORT]")
    parser.add_argument(
        "--only", metavar="PATTERN", action="append", default=[], help="scenarios by name; again for more"
    )
    parser.add_argument("--list", action="store_true", help="print the scenarios and end")
    parser.add_argument("--queue", metavar="NAME", help="use this queue, which is emptied, for all of them")
    parser.add_argument(
        "--patience", metavar="S", type=seconds, default=5.0, help="wait S for what must come (default: 5)"
    )
    parser.add_argument("--quiet", metavar="S", type=seconds, default=0.25, help="wait S where nothing may come (0.25)")
    parser.add_argument("--json", action="store_true", help="print the scorecard as one line of JSON")
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        wanted = conformance.scenarios(arguments.only)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if arguments.list:
        for each in wanted:
            print(f"{each.name:32} {each.title}")
        return 0
    if arguments.url is None:
        raise UsageError("check needs the URL of a broker (or --list)")

    url, options = url_with_options(arguments.url, arguments.option), connection_options(arguments)
    read_target(url, options)

    def tell(result: conformance.Result) -> None:
        print(f"{MARKS[result.result]} {result.scenario:32} {visible(result.why or result.title)}", flush=True)

    with told_once():
        card = conformance.check(
            url,
            only=arguments.only,
            queue=arguments.queue,
            patience=arguments.patience,
            quiet=arguments.quiet,
            tell=None if arguments.json else tell,
            **options,
        )
    if arguments.json:
        print(json.dumps(card.as_dict(), ensure_ascii=False))
    else:
        print(_summary(card))
    return 1 if card.failed else 0


def _summary(card: Any) -> str:
    version = f" {card.version}" if card.version else ""
    counts = f"{card.passed} passed, {card.failed} failed, {card.not_supported} not supported"
    return f"{visible(card.product + version)} ({card.profile}): {counts}"
