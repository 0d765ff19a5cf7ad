"""Arguments: a parser whose errors are one line, the options that all commands share, and values with a type."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import jmsish
from jmsish.options import ConnectionTarget, parse_url

Command = Callable[[argparse.Namespace], int]


class UsageError(Exception):
    """Wrong usage that argparse cannot see; ends with status 2."""


class CommandError(Exception):
    """A command could not do what it was asked; ends with status 1."""


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of printing the whole usage before it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)

    is_command = False
    """One of a command of ours: what it does not know is its own affair, and its help is the one to look at."""
    takes_command = False
    """What comes after a ``--`` is a command line of its own, for ``namespace.command``."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"jmsish: {message} (see {self.prog} --help)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = list(args or ())
        at = words.index("--") if self.takes_command and "--" in words else len(words)
        found, unknown = super().parse_known_args(words[:at] if self.is_command else args, namespace)
        if self.is_command and unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        if self.takes_command:
            found.command = words[at + 1 :]
        return found, unknown


def add_command(commands: Any, name: str, run: Command, **texts: str) -> OneLineParser:
    """A command of the command line; `texts` are its help, description and epilog."""
    parser: OneLineParser = commands.add_parser(name, **texts)
    parser.is_command = True
    parser.set_defaults(run=run)
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show an error's traceback")
    return parser


def add_connection_arguments(parser: argparse.ArgumentParser) -> None:
    """Who we are and how the connection is made, alike for every command that connects."""
    group = parser.add_argument_group("connection")
    group.add_argument("--username", metavar="NAME", help="user name (default: $JMSISH_USERNAME, or as in the URL)")
    group.add_argument("--password", metavar="WORD", help="password (default: $JMSISH_PASSWORD, or as in the URL)")
    group.add_argument("--client-id", metavar="ID", help="client identifier of the connection")
    # Each is kept by the name of its option: `bind` has a KEY of another sort.
    for argument, option, text in (
        ("--ca", "tls_ca", "certificates to trust instead of the system's"),
        ("--cert", "tls_certificate", "our certificate, with its key unless --key is given"),
        ("--key", "tls_key", "the key of --cert"),
    ):
        group.add_argument(argument, metavar="FILE", dest=option, help=f"TLS: {text}")
    group.add_argument("--insecure", action="store_true", help="TLS: do not verify the broker's certificate")
    group.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="any connection option, as in a URL; again for more",
    )


def read_target(url: str, options: dict[str, Any]) -> ConnectionTarget:
    """What a URL and its options mean.  Raises `UsageError` for a wrong one."""
    try:
        return parse_url(url, **options)
    except ValueError as error:
        raise UsageError(str(error)) from error


def connection_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `jmsish.connect` that the command line gives."""
    options: dict[str, Any] = {}
    for name in ("username", "password"):
        value = getattr(arguments, name)
        if value is None:
            value = os.environ.get(f"JMSISH_{name.upper()}") or None  # one that is empty is not set
        if value is not None:
            options[name] = value
    if arguments.client_id:
        options["client_id"] = arguments.client_id
    for option in ("tls_ca", "tls_certificate", "tls_key"):
        if (file := getattr(arguments, option)) is not None:
            options[option] = file
    if arguments.insecure:
        options["tls_verify"] = False
    return options


def url_with_options(url: str, options: Sequence[str]) -> str:
    """The URL with `--option` values as URI options, where their text is read and checked already."""
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise UsageError(f"--option {option!r} is not NAME=VALUE")
        prefix = "" if name.partition(".")[0] in ("jms", "amqp", "transport", "failover") else "jms."
        url += f"{'&' if '?' in url else '?'}{prefix}{name}={value}"
    return url


def connect(arguments: argparse.Namespace) -> jmsish.Connection:
    """The connection that the arguments ask for.  Raises `UsageError` for a wrong URL or option."""
    url, options = url_with_options(arguments.url, arguments.option), connection_options(arguments)
    read_target(url, options)
    return jmsish.connect(url, **options)


def destination(name: str) -> jmsish.Destination:
    """`queue://NAME`, `topic://NAME`, or a bare name, which is a queue."""
    kind, mark, rest = name.partition("://")
    if not mark:
        kind, rest = "queue", name
    if kind not in ("queue", "topic") or not rest:
        raise UsageError(f"{name!r} is no destination: queue://NAME, topic://NAME, or NAME for a queue")
    return jmsish.Queue(rest) if kind == "queue" else jmsish.Topic(rest)


def positive(text: str) -> int:
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return number


def whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def visible(text: str) -> str:
    """A name that does nothing to a terminal or a file but to be read."""
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in text)


def note(text: str) -> None:
    """One line on standard error."""
    print("jmsish: " + visible(" ".join(text.split())), file=sys.stderr, flush=True)
