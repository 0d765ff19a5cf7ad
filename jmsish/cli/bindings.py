"""`jmsish bind`, `unbind` and `rebind`: what of an exchange goes to which queue, by the management node."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from jmsish.cli.management import MARK, entity, node
from jmsish.cli.parsing import CommandError, UsageError, add_command, add_connection_arguments, connect, seconds

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WAIT = 30.0
"""Seconds to wait for an exchange that somebody else has frozen."""

EPILOG = """\
examples:
  jmsish bind amqp://localhost prices orders 'eu.#'
  jmsish bind amqp://localhost amq.match orders --argument x-match=all --argument colour=red
  jmsish bind amqp://localhost prices orders '#' --argument "x-filter-jms-selector=price > 100"
  jmsish bind amqp://localhost prices exchange://news         another exchange is given what matches
  jmsish unbind amqp://localhost prices orders 'eu.#'
  jmsish rebind amqp://localhost prices switch.toml           several changes in one step, or none of them

The file of a rebind is TOML or JSON, with a list to remove, a list to add, or both:

  [[remove]]
  queue = "blue"
  key = "eu.#"
  [[add]]
  queue = "green"
  key = "eu.#"                      # also: arguments = {...}, kind = "exchange", replace = true

A change of an exchange that is frozen waits until it is not.
"""

TEXTS = {
    "bind": "bind a queue to an exchange",
    "unbind": "take a binding away",
    "rebind": "change several bindings of an exchange in one step",
}


def add_parser(commands: Any) -> None:
    for verb, text in TEXTS.items():
        description = text[0].upper() + text[1:] + "."
        parser = add_command(commands, verb, run, help=text, description=description, epilog=EPILOG)
        parser.set_defaults(verb=verb)
        parser.add_argument("url", metavar="URL", help="amqp://HOST[:PORT] or amqps://HOST[:PORT]")
        parser.add_argument("exchange", metavar="EXCHANGE", help="NAME or exchange://NAME")
        if verb == "rebind":
            parser.add_argument("file", metavar="FILE", help="what to add and remove, TOML or JSON; or - to read it")
        else:
            parser.add_argument("queue", metavar="QUEUE", help="NAME, or exchange://NAME for another exchange")
            parser.add_argument("key", metavar="KEY", nargs="?", default="", help="key or pattern (default: empty)")
        if verb == "bind":
            parser.add_argument(
                "--argument",
                metavar="NAME=VALUE",
                action="append",
                default=[],
                help="an argument: a JSON value, or else a text; again for more",
            )
            parser.add_argument("--replace", action="store_true", help="in place of one with other arguments")
        parser.add_argument(
            "--timeout", metavar="S", type=seconds, default=WAIT, help=f"seconds to wait while it is frozen ({WAIT:g})"
        )
        add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    asked: dict[str, Any] = {"timeout": arguments.timeout}
    asked.update(changes(arguments.file) if arguments.verb == "rebind" else binding(arguments))
    name = exchange(arguments.exchange)
    with connect(arguments) as connection, node(connection) as management:
        said = management.ask(arguments.verb.upper(), "exchange", asked, patience=arguments.timeout, name=name)
    if arguments.verb == "rebind":
        print(f"{said['added']} added, {said['removed']} removed, {said['bindings']} in force", flush=True)
    return 0


def exchange(text: str) -> str:
    """The name of an exchange."""
    kind, name = entity(text if text.startswith(MARK) else MARK + text)
    assert kind == "exchange"
    return name


def binding(arguments: argparse.Namespace) -> dict[str, Any]:
    kind, name = entity(arguments.queue)
    if kind == "topic":
        raise UsageError(f"{arguments.queue!r} is a topic: name a queue, or an exchange as exchange://NAME")
    asked: dict[str, Any] = {"queue": name, "kind": kind, "key": arguments.key}
    if arguments.verb == "bind":
        asked["arguments"] = dict(argument(text) for text in arguments.argument) or None
        asked["replace"] = arguments.replace
    return asked


def argument(text: str) -> tuple[str, Any]:
    """NAME=VALUE: a number, true, false, null or a quoted text as in JSON, or else a text as it stands."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--argument {text!r} is not NAME=VALUE")
    try:
        found = json.loads(value)
    except ValueError:
        return name, value
    return name, value if isinstance(found, (list, dict)) else found


def changes(path: str) -> dict[str, Any]:
    """What a file says is to be added and removed."""
    where = "standard input" if path == "-" else path
    text = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    found = read(text, path, where)
    unknown = [key for key in found if key not in ("add", "remove")]
    if unknown or not found:
        what = f"knows no {unknown[0]!r}" if unknown else "says nothing"
        raise CommandError(f"{where} {what}: it may have the lists 'add' and 'remove'")
    return found


def read(octets: bytes, path: str, where: str) -> dict[str, Any]:
    """A table in JSON or TOML, as the name of the file says, or as it can be read."""
    try:
        text = octets.decode("utf-8-sig")
        if path.endswith(".toml") or not path.endswith(".json") and not text.lstrip().startswith("{"):
            found: Any = tomllib.loads(text)
        else:
            found = json.loads(text)
    except ValueError as error:
        raise CommandError(f"{where}: {error}") from error
    if not isinstance(found, dict):
        raise CommandError(f"{where}: the lists 'add' and 'remove' are expected in an object")
    return found
