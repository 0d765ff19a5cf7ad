"""Entry point: finds the command, runs it, and turns what goes wrong into one line and a status."""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from jmsish.cli import bindings, broker, browse, cert, check, freeze, management, move, receive, send, topology, user
from jmsish.cli.demo import command as demo
from jmsish.cli.doctor import command as doctor
from jmsish.cli.parsing import CommandError, OneLineParser, UsageError, note
from jmsish.errors import JMSError

DESCRIPTION = "JMS for Python over AMQP 1.0: a demo, a broker, and tools that talk to any AMQP 1.0 broker."
EPILOG = """\
examples:
  jmsish demo                                   the main job on the orders that come with the product
  jmsish demo orders.csv --trace                ... on a file of yours, with the life of each delivery
  jmsish broker --port 5672                     serve the bundled broker
  echo hello | jmsish send amqp://localhost greetings
  jmsish receive amqp://localhost greetings -n 1
  jmsish browse amqp://localhost greetings      look without taking

Each command explains itself: jmsish COMMAND --help
Status: 0 done, 1 it failed (one line on standard error says why), 2 wrong usage.
"""

CARET = re.compile(r":\n[^\n]*\n *\^")
"""A selector with a caret below it, which says nothing in one line; the position stands before it in words."""


def build_parser() -> OneLineParser:
    parser = OneLineParser(prog="jmsish", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"jmsish {own_version()}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=OneLineParser)
    for module in (
        demo, broker, send, receive, browse, move, management, bindings, freeze, topology, check, doctor, user, cert
    ):  # fmt: skip
        module.add_parser(commands)
    return parser


def own_version() -> str:
    try:
        return version("jmsish")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "from source"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and give its status."""
    soften_output()
    arguments = build_parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        return quiet_exit()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (JMSError, CommandError, UsageError, OSError, ValueError, TypeError, ImportError) as error:
        return report(error, arguments)


def soften_output() -> None:
    """A terminal that knows no UTF-8 gets escapes for what it cannot show, not an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="backslashreplace")


def quiet_exit() -> int:
    """Our reader has gone (`jmsish receive … | head`): nothing more can be said, nor flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


def report(error: BaseException, arguments: argparse.Namespace) -> int:
    if arguments.debug:
        traceback.print_exception(error)
    note(describe(error))
    return 2 if isinstance(error, UsageError) else 1


def describe(error: BaseException) -> str:
    """One sentence: what the error says, and the name of its class where that is no everyday word."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = CARET.sub("", str(error)) or type(error).__name__
    return f"{text} ({type(error).__name__})" if isinstance(error, (JMSError, TypeError)) else text


if __name__ == "__main__":
    sys.exit(main())
