"""`jmsish freeze`: hold exchanges still while a command runs, or until told to go on."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from jmsish.cli.bindings import changes, exchange
from jmsish.cli.management import Management, node
from jmsish.cli.parsing import CommandError, UsageError, add_command, add_connection_arguments, connect, note, seconds
from jmsish.cli.signals import told_by_signals

EPILOG = """\
examples:
  jmsish freeze amqp://localhost orders -- ./backup.sh            while the command runs; its status is ours
  jmsish freeze amqp://localhost orders prices --hold 300         until interrupted, or standard input ends
  jmsish freeze amqp://localhost orders --rebind switch.toml -- ./drain-blue.sh

While exchanges are frozen, what is sent to them waits, in order; nothing is lost or refused. Queues go on: their
consumers receive, and what is sent straight to them arrives. When it ends, what waited is routed before all that
comes later. Changes of bindings by others wait too; those of --rebind (a file as for jmsish rebind, where each item
has an 'exchange' if there are several) are in force before the first message that waited, and not at all if the
COMMAND fails or the limit of the hold passes. The freeze ends with this process, in whatever way that ends.
"""


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "freeze",
        run,
        help="hold exchanges still while a command runs",
        description="Hold exchanges still while a command runs, or until interrupted, or standard input ends.",
        usage="jmsish freeze [options] URL EXCHANGE [EXCHANGE ...] [-- COMMAND ...]",
        epilog=EPILOG,
    )
    parser.takes_command = True
    parser.add_argument("url", metavar="URL", help="amqp://HOST[:PORT] or amqps://HOST[:PORT]")
    parser.add_argument("exchanges", metavar="EXCHANGE", nargs="+", help="NAME or exchange://NAME")
    parser.add_argument("--timeout", metavar="S", type=seconds, help="fail unless held within S seconds")
    parser.add_argument("--hold", metavar="S", type=seconds, help="the broker lifts it after S seconds (30)")
    parser.add_argument("--rebind", metavar="FILE", help="change bindings when it ends, in one step")
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.hold == 0:
        raise UsageError("--hold must be more than 0 seconds")
    staged = {} if arguments.rebind is None else changes(arguments.rebind)
    asked: dict[str, Any] = {"exchanges": [exchange(text) for text in arguments.exchanges]}
    asked.update({"timeout": arguments.timeout} if arguments.timeout is not None else {})
    asked.update({"max_hold": arguments.hold} if arguments.hold is not None else {})
    with connect(arguments) as connection, node(connection) as management:
        held = management.ask("FREEZE", "exchange", asked, patience=arguments.timeout)
        end = End(management, str(held["lease"]), staged)
        if arguments.command:
            return hold_for(arguments.command, end)
        interrupted = wait(f"frozen: {', '.join(held['exchanges'])}", float(held["max_hold"]))
        end(commit=not interrupted)
    return 128 + signal.SIGINT if interrupted and staged else 0


class End:
    """The end of a freeze, with what is to change then."""

    def __init__(self, management: Management, lease: str, staged: dict[str, Any]) -> None:
        self._management = management
        self._lease = lease
        self.staged = staged

    def __call__(self, *, commit: bool) -> None:
        """Thaw. One that was lifted before is an error: what was to be held still was not."""
        if commit or not self.staged:
            self._management.ask("THAW", "exchange", {"lease": self._lease, **self.staged})
        else:
            self._management.ask("CANCEL", "exchange", {"lease": self._lease})


def hold_for(command: Sequence[str], end: End) -> int:
    """Run a command; its status, or as a shell has it, 128 and the signal that ended it."""
    status = subprocess.call(command)
    status = 128 - status if status < 0 else status
    if status and end.staged:
        note(f"{command[0]} ended with status {status}: the bindings stay as they were")
    try:
        end(commit=not status)
    except CommandError as error:
        if not status:
            raise
        note(str(error))
    return status


def wait(line: str, longest: float) -> bool:
    """Say so, and wait until standard input ends, or the freeze has been lifted anyway; True when interrupted."""
    with told_by_signals() as told:
        ended = threading.Event()

        def read() -> None:
            drain()
            ended.set()
            told.stop()

        print(line, flush=True)  # whoever reads it may interrupt from now on
        threading.Thread(target=read, name="jmsish-standard-input", daemon=True).start()
        return told.wait(longest) and not ended.is_set()


def drain() -> None:
    """Read standard input to its end; by its descriptor, as its buffer must not be in use when the program ends."""
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        return  # closed, or no file
    while os.read(descriptor, 1 << 16):
        pass
