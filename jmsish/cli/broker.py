"""`jmsish broker`: serve the bundled broker over TCP until told to stop."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import jmsish
from jmsish.cli.collector import LOOK, Collector
from jmsish.cli.parsing import CommandError, OneLineParser, UsageError, add_command, note, port
from jmsish.cli.policy import check
from jmsish.cli.signals import told_by_signals
from jmsish.drivers.descriptors import raise_limit

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EPILOG = """\
examples:
  jmsish broker                                  listens on 127.0.0.1:5672
  jmsish broker --port 0                         on a free port, which is printed
  jmsish broker --config broker.toml --host 0.0.0.0 --cert server.pem --key server.key
  jmsish broker --check broker.toml              is it valid? All that is wrong is told
  jmsish broker --check broker.toml --as alice --host 10.0.0.7
  jmsish broker --profile rabbitmq               with the limits of RabbitMQ, for tests

Where other machines come, a broker has to have TLS and to ask who they are, or is started with --allow-insecure.
`jmsish cert` makes certificates to try it with, `jmsish user` a file of users.

Prints "listening on amqp://HOST:PORT" for each listener once it serves, and runs until SIGINT or SIGTERM.
SIGHUP reads the file of users and the certificates anew, as happens by itself when they change.
A configuration names users, queues and limits; all of it is optional:

  [queues.orders]
  max_delivery_attempts = 5          # then a message goes to
  dead_letter = "orders.dead"
  [users.alice]
  password = "secret"
  [[listeners]]
  host = "127.0.0.1"
  port = 5672

With [router] it is a router of a network, which holds no queues:

  [router]
  id = "EA1"
  mode = "edge"                      # or "interior", whose listeners may have role = "edge" or "inter-router"
  [[connectors]]
  url = "amqp://interior.example:5673"
  role = "edge"
"""
DEFAULT_PORT = 5672


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "broker",
        run,
        help="serve the bundled broker",
        description="Serve the bundled broker over TCP.",
        epilog=EPILOG,
    )
    parser.add_argument("--host", metavar="HOST", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", metavar="PORT", type=port, help="port; 0 takes a free one (default: 5672)")
    parser.add_argument("--ws-port", metavar="PORT", type=port, help="port for AMQP over WebSocket, beside the other")
    parser.add_argument("--config", metavar="FILE", help="configuration, TOML")
    parser.add_argument("--name", metavar="NAME", help="name of the broker")
    add_tls_arguments(parser)
    checking = parser.add_argument_group("checking a configuration, instead of serving")
    checking.add_argument("--check", metavar="FILE", help="say whether it is valid, or all that is wrong with it")
    checking.add_argument("--as", metavar="USER", dest="user", help="... and what this user may do")
    checking.add_argument("--vhost", metavar="NAME", help="... in this virtual host, coming from --host")
    parser.add_argument("--profile", metavar="NAME", help="behave as another broker does: rabbitmq, servicebus …")


def run(arguments: argparse.Namespace) -> int:
    if arguments.check is not None:
        if arguments.config is not None:
            raise UsageError("--check FILE checks that file; --config is for serving")
        config = read_config(arguments.check)
        return check(arguments.check, config, arguments.user, arguments.host, arguments.vhost)
    if arguments.user is not None or arguments.vhost is not None:
        raise UsageError("--as and --vhost go with --check FILE")
    raise_limit()
    config = read_config(arguments.config)
    configured = bool(config.get("listeners"))
    listening = tls_settings(arguments)
    made = jmsish.EmbeddedBroker(arguments.name, config=arguments.config, profile=arguments.profile)
    with told_by_signals(lambda: reload(made)) as told, made as broker:
        if not configured or arguments.host is not None or arguments.port is not None:
            number = DEFAULT_PORT if arguments.port is None else arguments.port
            broker.listen(arguments.host or "127.0.0.1", number, **listening)
        if arguments.ws_port is not None:
            broker.listen(arguments.host or "127.0.0.1", arguments.ws_port, protocol="ws", **listening)
        for listener in broker.listeners:
            role = "" if listener.role == "normal" else f" for {listener.role}"
            print(f"listening on {listener.url}{role}", flush=True)
        with Collector(broker._explained) as collector:
            while not told.wait(LOOK):
                collector.look()
    return 0


def add_tls_arguments(parser: OneLineParser) -> None:
    """TLS and its absence, for the listeners of the command line; those of a configuration have their own."""
    group = parser.add_argument_group("TLS of --host, --port and --ws-port")
    group.add_argument("--cert", metavar="FILE", help="certificate to show, with its key unless --key is given")
    group.add_argument("--key", metavar="FILE", help="the key of --cert")
    group.add_argument("--client-ca", metavar="FILE", help="who may issue certificates to clients")
    group.add_argument("--require-client-cert", action="store_true", help="nobody comes in without such a certificate")
    group.add_argument(
        "--allow-insecure", action="store_true", help="serve other machines without TLS, or without asking who they are"
    )


def tls_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "certificate": arguments.cert,
        "key": arguments.key,
        "client_ca": arguments.client_ca,
        "require_client_certificate": arguments.require_client_cert,
        "allow_insecure": arguments.allow_insecure,
    }


def reload(broker: jmsish.EmbeddedBroker) -> None:
    try:
        broker.reload()
    except ValueError as error:
        note(f"not everything could be read anew: {error}")


def read_config(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        config: dict[str, Any] = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}") from error
    return config
