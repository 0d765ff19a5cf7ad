"""The sections of a router: ``[router]``, ``[[connectors]]``, ``[[link_routes]]`` and ``[addresses]``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from jmsish.broker.config.faults import Table

MODES: Final = ("standalone", "interior", "edge")
ROLES: Final = ("normal", "inter-router", "edge")
SCHEMES: Final = ("amqp", "amqps", "vm")
ADDRESS_LIMIT: Final = 1024
"""Octets of an address in a network of routers: it travels twice in an attach, which is one frame."""
NAME_LIMIT: Final = 255
"""Octets of the name of a connector."""
ID_LIMIT: Final = 127
"""Octets of a router id: it travels in an open, which has 512."""


@dataclass(frozen=True, slots=True)
class RouterConfig:
    """That the broker is a router, and which."""

    id: str
    mode: str

    @property
    def is_router(self) -> bool:
        """Whether it holds no queues, but forwards."""
        return self.mode != "standalone"


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """A connection that the router makes and keeps."""

    url: str = field(repr=False)
    """With the name and password for the other side, where it wants them."""
    role: str
    name: str


@dataclass(frozen=True, slots=True)
class LinkRouteConfig:
    """Links whose address begins with ``prefix`` go to the broker of a connector."""

    prefix: str
    connector: str


def read_router(config: Table) -> RouterConfig:
    """Which router this is; a stand-alone broker where nothing is said."""
    if "router" not in config:
        return RouterConfig("", "standalone")
    table = config.table_of("router")
    table.check_keys(("id", "mode"))
    mode = table.choice("mode", MODES, "standalone")
    router = table.text("id", "")
    if mode != "standalone" and not router and isinstance(table.get("id", ""), str):
        table.faults.add(f"{table.where} id is missing: a router of the mode {mode!r} has a name in its network")
    fault = id_fault(router)
    if fault is not None:
        table.wrong("id", fault)
    return RouterConfig(router, mode)


def id_fault(router: str) -> str | None:
    """What a router id has to be, if this is none. It stands before a slash where connectors are named."""
    if len(router.encode("utf-8", "replace")) > ID_LIMIT:
        return f"a name of {ID_LIMIT} octets at most"
    if not router.isprintable() or "/" in router:
        return "a name without control characters and slashes"
    return None


def read_connectors(config: Table, router: RouterConfig) -> tuple[ConnectorConfig, ...]:
    """The connectors in their order; each has a name of its own."""
    found: dict[str, ConnectorConfig] = {}
    for number, table in enumerate(config.list_of("connectors"), 1):
        table.check_keys(("url", "role", "name"))
        role = table.choice("role", ROLES, "normal")
        url = table.text("url", "")
        name = table.text("name", f"connector-{number}")
        fault = connector_fault(url, role, router) if url else "url is missing: whom is it to dial?"
        if fault is not None:
            table.faults.add(f"{table.where} {fault}")
        wrong_name = name_fault(name)
        if wrong_name is not None:
            table.faults.add(f"{table.where} {wrong_name}")
        if name in found:
            table.faults.add(f"{table.where} name {name!r} is that of another connector")
        found[name] = ConnectorConfig(url, role, name)
    return tuple(found.values())


def name_fault(name: str) -> str | None:
    """What is wrong with the name of a connector, if anything is: routers tell each other those of link routes."""
    if not name or not name.isprintable():
        return f"name must be a text without control characters, not {name!r}"
    if len(name.encode("utf-8", "replace")) > NAME_LIMIT:
        return f"name has at most {NAME_LIMIT} octets, not {len(name.encode('utf-8', 'replace'))}"
    return None


def connector_fault(url: str, role: str, router: RouterConfig) -> str | None:
    """What is wrong with a connector, if anything is."""
    if role not in ROLES:
        return f"role must be one of {', '.join(ROLES)}, not {role!r}"
    shown = shown_url(url)
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises for one that is no number
    except ValueError:  # whose text may have the password in it, as what it takes for a port
        return f"url must have a port from 0 to 65535, and a host in quoted form where it needs that, not {shown!r}"
    if parts.scheme not in SCHEMES or not parts.netloc:
        return f"url must be a URL like amqp://host:port, amqps://host:port or vm://name, not {shown!r}"
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        return f"url has a host and a port, and neither a path nor options: {shown!r}"
    if not router.is_router:
        return "a connector is of use to a router only: give [router] an id and a mode, interior or edge"
    if role == "inter-router" and router.mode != "interior":
        return "role 'inter-router' joins two interior routers, and this one is an edge"
    if role == "edge" and router.mode != "edge":
        return "role 'edge' is the uplink of an edge, and this router is an interior"
    return None


def shown_url(url: str) -> str:
    """The URL without a password: what stands before the last ``@`` is left out, quoted as it should be or not; so are
    options, and of what stands where the port should, all that is none."""
    head, mark, rest = url.partition("//")
    shown = f"{head}{mark}{rest.rpartition('@')[2]}" if mark else url.rpartition("@")[2]
    shown = re.split(r"[?#]", shown, maxsplit=1)[0]
    return re.sub(r"(//(?:\[[^\]]*\]|[^/:]+)):(?!\d{1,5}(?:/|$)).*", r"\1:…", shown, flags=re.DOTALL)


def check_listener_role(table: Table, role: str, router: RouterConfig) -> None:
    """Doors for routers are those of an interior router."""
    if role != "normal" and router.mode != "interior":
        table.faults.add(f"{table.where} role {role!r} is a door of an interior router, and this is none")


def read_link_routes(config: Table, connectors: tuple[ConnectorConfig, ...]) -> tuple[LinkRouteConfig, ...]:
    """The prefixes that lead to a connector of the role normal, which may also be made later, by a program."""
    named = {connector.name: connector for connector in connectors}
    found: dict[str, LinkRouteConfig] = {}
    for table in config.list_of("link_routes"):
        table.check_keys(("prefix", "connector"))
        prefix, connector = table.text("prefix", ""), table.text("connector", "")
        if not prefix:
            table.faults.add(f"{table.where} prefix is missing: which addresses are to go there?")
        elif len(prefix.encode("utf-8", "replace")) > ADDRESS_LIMIT:
            table.faults.add(f"{table.where} prefix has at most {ADDRESS_LIMIT} octets, as an address has")
        elif prefix in found:
            table.faults.add(f"{table.where} prefix {prefix!r} leads to another connector already")
        if not connector:
            table.faults.add(f"{table.where} connector is missing: whose broker is it to lead to?")
        elif connector in named and named[connector].role != "normal":
            table.faults.add(
                f"{table.where} connector {connector!r} leads to a router: a link route needs one of the role normal"
            )
        found.setdefault(prefix, LinkRouteConfig(prefix, connector))
    return tuple(found.values())


def read_multicast(config: Table) -> tuple[str, ...]:
    """Prefixes of addresses whose messages go to everybody."""
    table = config.table_of("addresses")
    table.check_keys(("multicast",))
    prefixes: tuple[str, ...] = table.texts("multicast")
    if "" in prefixes:
        table.faults.add(f"{table.where} multicast has an empty prefix, which would be every address")
    return prefixes


__all__ = [
    "ADDRESS_LIMIT",
    "ConnectorConfig",
    "LinkRouteConfig",
    "RouterConfig",
    "check_listener_role",
    "connector_fault",
    "id_fault",
    "name_fault",
    "read_connectors",
    "read_link_routes",
    "read_multicast",
    "read_router",
    "shown_url",
]
