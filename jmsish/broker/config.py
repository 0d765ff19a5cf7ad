"""The configuration of a broker: one mapping, checked whole before anything is made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jmsish.broker.bindings import Binding
from jmsish.broker.declared import ExchangeConfig, bindings_of, exchanges_of
from jmsish.broker.exchanges import Exchanges
from jmsish.broker.names import check_queue_name
from jmsish.broker.policy import QueueSettings, near_miss
from jmsish.broker.users import User
from jmsish.engine.scram import ScramKey

SECTIONS = ("policy", "users", "queues", "exchanges", "bindings", "listeners")
NOT_YET = ("vhosts", "connectors", "link_routes", "addresses", "router")
"""Sections that the reference knows and this version does not serve: refused by name, never silently ignored."""

POLICY_KEYS = ("transaction_timeout", "transaction_idle_timeout", "max_transaction_size", "auto_create")
POLICY_NOT_YET = ("max_message_size", "on_oversize", "max_connections", "default_vhost")
SCRAM_KEYS = {"scram_sha_256": "SCRAM-SHA-256", "scram_sha_512": "SCRAM-SHA-512"}
USER_KEYS = ("password", *SCRAM_KEYS)
LISTENER_KEYS = ("host", "port", "role")


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """Where the broker is to listen; the broker itself opens no socket, its driver does."""

    host: str = "127.0.0.1"
    port: int = 5672


MAX_TRANSACTION_SIZE = 100_000
"""A discharge is one step, and this many posts or retirements take about 50 ms: the longest that others wait for it.
What a transaction holds is in memory, too."""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Everything a broker is told before it starts."""

    transaction_timeout: float = 0.0
    """Seconds from the first work of a transaction until it is rolled back; 0 for none."""
    transaction_idle_timeout: float = 0.0
    """Seconds without further work until it is rolled back; 0 for none."""
    max_transaction_size: int = MAX_TRANSACTION_SIZE
    """Posts and retirements that one transaction may hold; 0 for no limit."""
    auto_create: bool = True
    users: Mapping[str, User] = field(default_factory=dict)
    queues: Mapping[str, QueueSettings] = field(default_factory=dict)
    exchanges: Mapping[str, ExchangeConfig] = field(default_factory=dict)
    bindings: tuple[Binding, ...] = ()
    listeners: tuple[ListenerConfig, ...] = ()

    @classmethod
    def from_mapping(cls, config: Mapping[str, Any] | BrokerConfig | None) -> BrokerConfig:
        """Check a mapping of the documented shape; raises ``ValueError`` or ``TypeError`` that names the place."""
        if config is None:
            return cls()
        if isinstance(config, BrokerConfig):
            return config
        _check_keys(_mapping(config, "the configuration"), SECTIONS, NOT_YET, "the configuration")
        policy = _section(config, "policy")
        _check_keys(policy, POLICY_KEYS, POLICY_NOT_YET, "[policy]")
        queues = _each(_section(config, "queues"), "queues", QueueSettings.from_mapping)
        for name in queues:
            check_queue_name(name, f"[queues.{name}]")
        exchanges = exchanges_of(_each(_section(config, "exchanges"), "exchanges", lambda table, where: table))
        return cls(
            transaction_timeout=_seconds(policy.get("transaction_timeout", 0.0), "[policy] transaction_timeout"),
            transaction_idle_timeout=_seconds(
                policy.get("transaction_idle_timeout", 0.0), "[policy] transaction_idle_timeout"
            ),
            max_transaction_size=_count(
                policy.get("max_transaction_size", MAX_TRANSACTION_SIZE), "[policy] max_transaction_size"
            ),
            auto_create=_flag(policy.get("auto_create", True), "[policy] auto_create"),
            users=_each(_section(config, "users"), "users", _user),
            queues=queues,
            exchanges=exchanges,
            bindings=bindings_of(_list(config, "bindings"), exchanges, queues),
            listeners=tuple(map(_listener, _list(config, "listeners"))),
        )

    def declare_exchanges(self, exchanges: Exchanges) -> None:
        """Make the exchanges, whose queues are there already, and bind what is to be bound."""
        for name, each in self.exchanges.items():
            exchanges.declare(name, each.type, {**each.settings, "alternate": None})
        for name, each in self.exchanges.items():
            exchanges.declare(name, each.type, each.settings)
        for binding in self.bindings:
            exchanges.named(binding.exchange).rebind(add=[binding])


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{where} must be a table, not {type(value).__name__}")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"{where}: a name must be a string, not {key!r}")
    return value


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return _mapping(config.get(name, {}), f"[{name}]")


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], not_yet: tuple[str, ...], where: str) -> None:
    for key in table:
        if key in known:
            continue
        if key in not_yet:
            raise ValueError(f"{key!r} in {where} is not supported in this version")
        raise ValueError(f"unknown key {key!r} in {where}: {near_miss(key, known)}")


def _each(table: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any], str], Any]) -> dict[str, Any]:
    places = {key: f"[{name}.{key}]" for key in table}
    return {key: read(_mapping(value, places[key]), places[key]) for key, value in table.items()}


def _user(table: Mapping[str, Any], where: str) -> User:
    _check_keys(table, USER_KEYS, (), where)
    if not table:
        raise ValueError(f"{where} needs a password, or a key in its place: {', '.join(SCRAM_KEYS)}")
    for key, value in table.items():
        if not isinstance(value, str):
            raise ValueError(f"{key} in {where} must be a string, not {type(value).__name__}")
    keys = {}
    for key, mechanism in SCRAM_KEYS.items():
        if key in table:
            try:
                keys[mechanism] = ScramKey.parse(mechanism, table[key])
            except ValueError as error:
                raise ValueError(f"{key} in {where} {error}") from None
    return User(table.get("password"), keys)


def _seconds(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError(f"{where} must be seconds, 0 or more, not {value!r}")
    return float(value)


def _count(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{where} must be a whole number, 0 or more, not {value!r}")
    return value


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{where} must be true or false, not {value!r}")
    return value


def _list(config: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = config.get(name, ())
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise TypeError(f"[[{name}]] must be a list of tables, not {type(value).__name__}")
    return [_mapping(item, f"[[{name}]]") for item in value]


def _listener(table: Mapping[str, Any]) -> ListenerConfig:
    _check_keys(table, LISTENER_KEYS, (), "[[listeners]]")
    if table.get("role", "normal") != "normal":
        raise ValueError(f"the role {table['role']!r} in [[listeners]] is not supported in this version")
    host, port = table.get("host", "127.0.0.1"), table.get("port", 5672)
    if not isinstance(host, str):
        raise TypeError(f"host in [[listeners]] must be a string, not {host!r}")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ValueError(f"port in [[listeners]] must be a number from 0 to 65535, not {port!r}")
    return ListenerConfig(host, port)
