"""The section ``[[listeners]]``: where the broker is to be reached."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from jmsish.broker.config.faults import Table
from jmsish.broker.config.network import ROLES, RouterConfig, check_listener_role

TLS_KEYS: Final = ("certificate", "key", "key_password", "client_ca", "require_client_certificate")
LISTENER_KEYS: Final = ("host", "port", "role", "protocol", "origins", *TLS_KEYS, "allow_insecure")
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
    certificate: str | None = None
    """A file with the certificate to show, in PEM: then there is TLS."""
    key: str | None = None
    """A file with its key; None: it is in the same file."""
    key_password: str | None = field(default=None, repr=False)
    client_ca: str | None = None
    """A file with the certificates of those who issue certificates to clients."""
    require_client_certificate: bool = False
    allow_insecure: bool = False
    """Whether to serve other machines without TLS, or without asking who they are."""
    role: str = "normal"
    """Who comes in there: clients, or by ``"inter-router"`` and ``"edge"`` other routers."""


_ORIGIN: Final = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[!-.0-@\[-~]+")


def check_origin(origin: str) -> None:
    """``ValueError`` for what no browser says of a page (RFC 6454, 6.2), and which would let in nobody."""
    if not _ORIGIN.fullmatch(origin):
        raise ValueError(f"{origin!r} is no origin, such as https://app.example: small letters, without a path")


def read_listeners(config: Table, router: RouterConfig) -> tuple[ListenerConfig, ...]:
    """The listeners in their order."""
    return tuple(_listener(table, router) for table in config.list_of("listeners"))


def _listener(table: Table, router: RouterConfig) -> ListenerConfig:
    table.check_keys(LISTENER_KEYS)
    role = table.choice("role", ROLES, "normal")
    check_listener_role(table, role, router)
    host = table.text("host", "127.0.0.1")
    port = table.get("port", 5672)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        table.wrong("port", "a number from 0 to 65535")
        port = 5672
    protocol = table.choice("protocol", PROTOCOLS, "amqp")
    origins = table.texts("origins")
    if origins and protocol != "ws":
        table.faults.add(f"{table.where} has origins, which are for the protocol ws only")
    for origin in origins:
        with table.faults.caught(table.where):
            check_origin(origin)
    return ListenerConfig(
        host,
        port,
        protocol,
        origins,
        **_tls(table),
        allow_insecure=table.flag("allow_insecure"),
        role=role,
    )


def _tls(table: Table) -> dict[str, Any]:
    found = {key: table.text(key) for key in TLS_KEYS[:2]}
    # A password of the wrong type is not shown either.
    password = table.get("key_password")
    if password is not None and not isinstance(password, str):
        table.faults.add(f"{table.where} key_password must be a string, not {type(password).__name__}")
        password = None
    found |= {"key_password": password, "client_ca": table.text("client_ca")}
    found["require_client_certificate"] = table.flag("require_client_certificate")
    if found["certificate"] is None and any(found.values()):
        table.faults.add(f"{table.where}: {', '.join(TLS_KEYS[1:])} go with certificate")
    elif found["require_client_certificate"] and found["client_ca"] is None:
        table.faults.add(f"{table.where} require_client_certificate needs client_ca")
    return found
