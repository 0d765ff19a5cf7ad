"""`jmsish move`: take messages from one queue and put them on another, dead letters back to where they died."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

import jmsish
from jmsish.cli.parsing import (
    CommandError,
    UsageError,
    add_command,
    add_connection_arguments,
    connect,
    destination,
    note,
    positive,
    visible,
)

DEAD_FROM = "x-opt-dead-letter-from"

EPILOG = """\
examples:
  jmsish move amqp://localhost DLQ                          each dead letter back to the queue it died in
  jmsish move amqp://localhost DLQ orders -n 10             ten of them, to a queue of your choice
  jmsish move amqp://localhost DLQ --selector "colour = 'red'"
  jmsish move amqp://localhost orders topic://news

In transactions of --batch messages: a message is taken and put in one step, so an interrupted move loses
and doubles none. It ends when the queue is empty, or when a message comes by that it has moved already.
Headers, properties and body go on as they are; message id and timestamp are new, attempts count from zero.
"""


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "move",
        run,
        help="move messages from a queue to another, dead letters back",
        description="Move messages from one queue to another destination.",
        epilog=EPILOG,
    )
    parser.add_argument("url", metavar="URL", help="amqp://HOST[:PORT] or amqps://HOST[:PORT]")
    parser.add_argument("source", metavar="FROM", help="queue://NAME or NAME")
    parser.add_argument("target", metavar="TO", nargs="?", help="where to; without it each dead letter goes back")
    parser.add_argument("-n", "--count", metavar="N", type=positive, help="end after N messages")
    parser.add_argument("--selector", metavar="TEXT", help="a JMS selector, as \"colour = 'red'\"")
    parser.add_argument("--batch", metavar="N", type=positive, default=100, help="messages a transaction (100)")
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    source = destination(arguments.source)
    target = None if arguments.target is None else destination(arguments.target)
    if not isinstance(source, jmsish.Queue):
        raise UsageError(f"{arguments.source!r} is a topic; messages are moved from queues")
    if source == target:
        raise UsageError(f"{arguments.source!r} is where the messages are")
    with connect(arguments) as connection:
        move = Move(connection, source, target, arguments)
        moved = move.run()
    for place, count in sorted(moved.items()):
        print(f"{count} to {visible(place)}", flush=True)
    if move.stuck is not None:
        raise move.stuck
    if not moved:
        note(f"nothing to move on {source}")
    return 0


class Move:
    """One move, batch by batch."""

    def __init__(
        self,
        connection: jmsish.Connection,
        source: jmsish.Queue,
        target: jmsish.Destination | None,
        arguments: argparse.Namespace,
    ) -> None:
        self.source = source
        self.target = target
        self.limit: int | None = arguments.count
        self.batch = min(arguments.batch, self.limit or arguments.batch)
        self.session = connection.create_session(transacted=True)
        self.consumer = self.session.create_consumer(source, arguments.selector, prefetch=self.batch)
        self.producer = self.session.create_producer()
        self.seen: set[str] = set()
        """Ids of what is moved: one that is back already has died again, and is not moved in circles."""
        self.stuck: CommandError | None = None
        """What ended the move: a message that has no place to go to."""
        self.places: dict[str, jmsish.Queue] = {}

    def run(self) -> Counter[str]:
        moved: Counter[str] = Counter()
        while self.limit is None or sum(moved.values()) < self.limit:
            left = self.batch if self.limit is None else min(self.batch, self.limit - sum(moved.values()))
            batch, more = self._move_some(left)
            self.session.commit()
            moved += batch
            if not more:
                break
        return moved

    def _move_some(self, count: int) -> tuple[Counter[str], bool]:
        """Move so many in one transaction; what went where, and whether there may be more."""
        batch: Counter[str] = Counter()
        for taken in range(count):
            message = self.consumer.receive_no_wait()
            if message is None:
                return batch, False
            place = None if message.jms_message_id in self.seen else self._place_of(message)
            if place is None:
                # It must stay, so what was taken with it is taken once more without it.
                self.session.rollback()
                return self._move_some(taken)[0], False
            self._send(message, place)
            batch[str(place)] += 1
        return batch, True

    def _send(self, message: jmsish.Message, place: jmsish.Destination) -> None:
        expires = message.jms_expiration
        left = max(expires / 1000 - time.time(), 0.001) if expires else 0
        self.producer.send(
            message,
            destination=place,
            delivery_mode=message.jms_delivery_mode,
            priority=message.jms_priority,
            time_to_live=left,
        )
        if message.jms_message_id is not None:
            self.seen.add(message.jms_message_id)

    def _place_of(self, message: jmsish.Message) -> jmsish.Destination | None:
        """Where it goes; None, and ``stuck`` says why, where there is no such place."""
        if self.target is not None:
            return self.target
        name = message.annotations.get(DEAD_FROM)
        if not isinstance(name, str) or not name:
            self._stick(message, "does not say where it died")
            return None
        if name not in self.places:
            place = jmsish.Queue(name)
            try:
                self.session.create_producer(place).close()
            except jmsish.InvalidDestinationError as error:
                self._stick(message, f"died in a queue that is no more ({error})")
                return None
            self.places[name] = place
        return self.places[name]

    def _stick(self, message: jmsish.Message, why: str) -> None:
        self.stuck = CommandError(
            f"{message.jms_message_id} on {self.source} {why}: say where it is to go, "
            f"with --selector \"JMSMessageID = '{message.jms_message_id}'\" for it alone"
        )
