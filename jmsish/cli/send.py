"""`jmsish send`: lines, JSON values or a whole file to a destination."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import jmsish
from jmsish.cli import bodies
from jmsish.cli.parsing import (
    CommandError,
    UsageError,
    add_command,
    add_connection_arguments,
    connect,
    destination,
    positive,
    seconds,
)

EPILOG = """\
examples:
  echo hello | jmsish send amqp://localhost greetings          one text message
  jmsish send amqp://localhost orders orders.txt               a message for each line of the file
  jmsish send amqp://localhost orders -m "one order" --count 5 the same text five times
  jmsish send amqp://localhost photos --file cat.jpg           the whole file as one bytes message
  jmsish send amqp://localhost orders --json < orders.jsonl    objects as map messages, arrays as stream messages ...
  jmsish send amqp://localhost orders -m x --property colour=red --property weight:int=5 --header priority=9
  jmsish send amqp://localhost orders big.txt --transacted     all or nothing; --batch 100: a commit each 100
  jmsish receive amqp://a old --json --timeout 1 | jmsish send amqp://b new --envelope

A destination is queue://NAME or topic://NAME; a bare name is a queue.
Property types: string (default), boolean, byte, short, int, long, float, double.
Headers: type, correlation-id, reply-to, priority, time-to-live (seconds), delivery-delay (seconds),
delivery-mode (persistent or non-persistent).
"""


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "send",
        run,
        help="send lines, JSON or files",
        description="Send messages to a destination: one for each line.",
        epilog=EPILOG,
    )
    parser.add_argument("url", metavar="URL", help="amqp://HOST[:PORT] or amqps://HOST[:PORT]")
    parser.add_argument("destination", metavar="DESTINATION", help="queue://NAME, topic://NAME, or NAME (a queue)")
    parser.add_argument("lines", metavar="FILE", nargs="?", default="-", help="lines to send; - is standard input")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-m", "--message", metavar="TEXT", help="send this text instead of lines")
    what.add_argument("--file", metavar="FILE", help="send the whole file as one bytes message")
    parser.add_argument("--text", action="store_true", help="with --file: as a text message (UTF-8)")
    parser.add_argument("--json", action="store_true", help="each line is JSON and gives a typed body")
    parser.add_argument("--envelope", action="store_true", help="each line is what `receive --json` printed")
    parser.add_argument("--property", metavar="NAME[:TYPE]=VALUE", action="append", default=[], help="set a property")
    parser.add_argument("--header", metavar="NAME=VALUE", action="append", default=[], help="set a header")
    parser.add_argument("--count", metavar="N", type=positive, default=1, help="send everything N times")
    parser.add_argument("--transacted", action="store_true", help="in one transaction, or one for each --batch")
    parser.add_argument("--batch", metavar="N", type=positive, help="commit each N messages (implies --transacted)")
    parser.add_argument("--timeout", metavar="S", type=seconds, help="give up when a send takes longer")
    add_connection_arguments(parser)


@dataclass
class Parcel:
    """One message to send: its body, its properties, and headers by their names on the command line."""

    body: Any
    properties: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def run(arguments: argparse.Namespace) -> int:
    check(arguments)
    properties = dict(bodies.parse_property(text) for text in arguments.property)
    headers = dict(bodies.parse_header(text) for text in arguments.header)
    target = destination(arguments.destination)
    if arguments.timeout is not None:
        arguments.option.append(f"send_timeout={arguments.timeout}")
    # The input is opened first: a file that is not there needs no broker to be missed.
    with source_of(arguments) as parcels, connect(arguments) as connection:
        transacted = arguments.transacted or arguments.batch is not None
        sender = Sender(connection.create_session(transacted=transacted), target, arguments.batch)
        for parcel in parcels:
            sender.send(parcel, properties, headers)
        sender.finish()
    return 0


def check(arguments: argparse.Namespace) -> None:
    single = arguments.message is not None or arguments.file is not None
    if single and arguments.lines != "-":
        raise UsageError("FILE gives lines; it does not go with --message or --file")
    if arguments.text and not arguments.file:
        raise UsageError("--text goes with --file")
    if arguments.json and arguments.envelope:
        raise UsageError("--json and --envelope are two readings of the same line: choose one")
    if arguments.file and (arguments.json or arguments.envelope):
        raise UsageError("--file sends the file as it is; --json and --envelope read lines (give FILE without --file)")


@contextmanager
def source_of(arguments: argparse.Namespace) -> Iterator[Iterable[Parcel]]:
    """What is to be sent, parcel by parcel, as it is read."""
    if arguments.file is not None:
        data = Path(arguments.file).read_bytes()
        yield [Parcel(text_of(data, arguments.file) if arguments.text else data)] * arguments.count
    elif arguments.message is not None:
        yield parse_lines([arguments.message] * arguments.count, arguments, "--message")
    else:
        with opened(arguments.lines) as (stream, name):
            yield parse_lines(repeated(stream, arguments.count), arguments, name)


def repeated(stream: Iterable[str], count: int) -> Iterable[str]:
    """Once is as the lines come; more often needs them all first."""
    return stream if count == 1 else list(stream) * count


@contextmanager
def opened(path: str) -> Iterator[tuple[TextIO, str]]:
    """Standard input or a file as UTF-8 text; an octet that is none is named with its place."""
    if path == "-":
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(encoding="utf-8")
        yield sys.stdin, "standard input"
        return
    with open(path, encoding="utf-8") as stream:
        yield stream, path


def text_of(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is no UTF-8 text: {error.reason} at octet {error.start}") from error


def parse_lines(lines: Iterable[str], arguments: argparse.Namespace, name: str) -> Iterator[Parcel]:
    try:
        for number, line in enumerate(lines, 1):
            text = line[:-1] if line.endswith("\n") else line
            if (arguments.json or arguments.envelope) and not text.strip():
                continue
            try:
                yield parse_line(text, arguments)
            except ValueError as error:
                raise CommandError(f"{name}, line {number}: {error}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is no UTF-8 text ({error.reason}); --file sends octets as they are") from error


def parse_line(text: str, arguments: argparse.Namespace) -> Parcel:
    if arguments.envelope:
        return Parcel(*bodies.read_envelope(text))
    return Parcel(bodies.json_body(text) if arguments.json else text)


class Sender:
    """Sends parcels, and commits each `batch` of them (None: all at the end) when its session is transacted."""

    def __init__(self, session: jmsish.Session, target: jmsish.Destination, batch: int | None) -> None:
        self.session = session
        self.producer = session.create_producer(target)
        self.batch = batch
        self.pending = 0

    def send(self, parcel: Parcel, properties: dict[str, Any], headers: dict[str, str]) -> None:
        message = self.message(parcel.body)
        message.properties.update({**parcel.properties, **properties})
        options = apply_headers(message, {**parcel.headers, **headers})
        self.producer.send(message, **options)
        self.pending += 1
        if self.session.transacted and self.pending == self.batch:
            self.session.commit()
            self.pending = 0

    def finish(self) -> None:
        if self.session.transacted:
            self.session.commit()

    def message(self, body: Any) -> jmsish.Message:
        if isinstance(body, str):
            return self.session.create_text_message(body)
        if isinstance(body, bytes):
            return self.session.create_bytes_message(body)
        if isinstance(body, dict):
            return self.session.create_map_message(body)
        return self.session.create_message() if body is None else self.session.create_stream_message(body)


def apply_headers(message: jmsish.Message, headers: dict[str, str]) -> dict[str, Any]:
    """Sets the headers that belong to the message; gives those that belong to the send."""
    options: dict[str, Any] = {}
    for name, value in headers.items():
        try:
            match name:
                case "type":
                    message.jms_type = value
                case "correlation-id":
                    message.jms_correlation_id = value
                case "reply-to":
                    message.jms_reply_to = destination(value)
                case "priority":
                    options["priority"] = int(value)
                case "time-to-live" | "delivery-delay":
                    options[name.replace("-", "_")] = float(value)
                case "delivery-mode":
                    options["delivery_mode"] = delivery_mode(value)
        except ValueError as error:
            raise UsageError(f"header {name}: {error}") from error
    return options


def delivery_mode(text: str) -> jmsish.DeliveryMode:
    modes = {"persistent": jmsish.DeliveryMode.PERSISTENT, "non-persistent": jmsish.DeliveryMode.NON_PERSISTENT}
    if text not in modes:
        raise ValueError(f"{text!r} is neither persistent nor non-persistent")
    return modes[text]
