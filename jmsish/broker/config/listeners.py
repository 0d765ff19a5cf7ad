"""The section ``[[listeners]]``: where the broker is to be reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jmsish.broker.config.faults import Table

LISTENER_KEYS: Final = ("host", "port", "role", "protocol", "origins")
PROTOCOLS: Final = ("amqp", "ws")
"""AMQP on the socket itself (or in TLS), or over WebSocket."""


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """Where the broker is to listen; the broker itself opens no socket, its driver does."""

    host: str = "127.0.0.1"
    port: int = 5672
    protocol: str = "amqp"
    origins: tuple[str, ...] = ()
    """The web sites whose pages may connect over WebSocket, besides those of the listener itself."""


def read_listeners(config: Table) -> tuple[ListenerConfig, ...]:
    """The listeners in their order."""
    return tuple(map(_listener, config.list_of("listeners")))


def _listener(table: Table) -> ListenerConfig:
    table.check_keys(LISTENER_KEYS)
    if table.get("role", "normal") != "normal":
        table.faults.add(f"the role {table.get('role')!r} in {table.where} is not supported in this version")
    host = table.text("host", "127.0.0.1")
    port = table.get("port", 5672)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        table.wrong("port", "a number from 0 to 65535")
        port = 5672
    protocol = table.choice("protocol", PROTOCOLS, "amqp")
    origins = table.texts("origins")
    if origins and protocol != "ws":
        table.faults.add(f"{table.where} has origins, which are for the protocol ws only")
    return ListenerConfig(host, port, protocol, origins)
