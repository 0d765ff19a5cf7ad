"""`jmsish cert`: a certificate authority for development, and certificates by it."""

from __future__ import annotations

import argparse
import os
from importlib.util import find_spec
from typing import Any

from jmsish.cli import issuing
from jmsish.cli.parsing import CommandError, add_command, positive

EPILOG = """\
examples:
  jmsish cert certs                                     a CA, and a certificate for this machine (localhost)
  jmsish cert certs --host broker.example --host 10.0.0.7 --client alice

Makes, in the directory: ca.pem and ca.key, once; server.pem and server.key, anew each time; client-NAME.pem and
client-NAME.key. Keys are readable for their owner alone. Then:

  jmsish broker --cert certs/server.pem --key certs/server.key --port 5671
  jmsish receive amqps://localhost orders --ca certs/ca.pem

This is for development and tests: who has ca.key can be anybody to those who trust ca.pem. A broker that runs takes a
new server.pem by itself.
"""
DAYS = 365


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "cert",
        run,
        help="make certificates for development",
        description="Make a certificate authority for development, and certificates by it (extra `cert`).",
        epilog=EPILOG,
    )
    parser.add_argument("directory", metavar="DIRECTORY", help="where to make them; it is made if it is not there")
    parser.add_argument(
        "--host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name or address of the broker; again for more (default: localhost, 127.0.0.1 and ::1)",
    )
    parser.add_argument(
        "--client",
        metavar="USER",
        action="append",
        default=[],
        help="a certificate for this user; again for more",
    )
    parser.add_argument("--days", metavar="N", type=positive, default=DAYS, help=f"how long it is good ({DAYS})")


def run(arguments: argparse.Namespace) -> int:
    if find_spec("cryptography") is None:
        raise CommandError("this takes the library cryptography, which is not there: pip install 'jmsish[cert]'")
    for name in arguments.client:
        if not name.isprintable() or not name or os.sep in name or name.startswith("."):
            raise CommandError(f"a certificate for {name!r} could not be kept in a file of that name")
    os.makedirs(arguments.directory, exist_ok=True)
    hosts = arguments.host or ["localhost", "127.0.0.1", "::1"]
    for line in issuing.make(arguments.directory, hosts, arguments.client, arguments.days):
        print(line)
    return 0
