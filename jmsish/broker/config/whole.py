"""The configuration of a broker: one mapping, checked whole before anything is made from it.

Each section is read in a file of its own. A reader says what is wrong to the :class:`~.faults.Faults` and goes on with
the default, so that one error tells all faults, each with its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from jmsish.broker.authentication import AuthenticationConfig
from jmsish.broker.bindings import Binding
from jmsish.broker.config.authentication import read_authentication
from jmsish.broker.config.caps import Caps, read_limits
from jmsish.broker.config.exchanges import ExchangeConfig, bindings_of, exchanges_of
from jmsish.broker.config.faults import Faults, Table
from jmsish.broker.config.limits import MAX_TRANSACTION_SIZE, read_policy
from jmsish.broker.config.listeners import ListenerConfig, read_listeners
from jmsish.broker.config.network import (
    ConnectorConfig,
    LinkRouteConfig,
    RouterConfig,
    read_connectors,
    read_link_routes,
    read_multicast,
    read_router,
)
from jmsish.broker.config.queues import read_queues
from jmsish.broker.config.users import read_users
from jmsish.broker.config.vhosts import read_vhosts
from jmsish.broker.exchanges import Exchanges
from jmsish.broker.policy import QueueSettings
from jmsish.broker.users import User
from jmsish.broker.vhosts import DEFAULT, MAX_CONNECTIONS, VhostSettings

SECTIONS: Final = (
    "policy", "authentication", "users", "vhosts", "limits", "queues", "exchanges", "bindings", "listeners", "router",
    "connectors", "link_routes", "addresses",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Everything a broker is told before it starts."""

    max_message_size: int = 0
    """Octets of a message, where virtual host and group do not say otherwise; 0 for no limit."""
    on_oversize: str = "connection"
    """What a larger message closes: ``"connection"`` or ``"link"``."""
    max_connections: int = MAX_CONNECTIONS
    """Connections at a time, of whatever kind; who is one too many finds its socket closed."""
    max_queues: int = 0
    """Queues at a time, those of subscriptions and temporary ones included; 0 for no limit."""
    default_vhost: str = DEFAULT
    """The virtual host of who names none that there is."""
    transaction_timeout: float = 0.0
    """Seconds from the first work of a transaction until it is rolled back; 0 for none."""
    transaction_idle_timeout: float = 0.0
    """Seconds without further work until it is rolled back; 0 for none."""
    max_transaction_size: int = MAX_TRANSACTION_SIZE
    """Posts and retirements that one transaction may hold; 0 for no limit."""
    auto_create: bool = True
    authentication: AuthenticationConfig = field(default_factory=AuthenticationConfig)
    users: Mapping[str, User] = field(default_factory=dict)
    vhosts: Mapping[str, VhostSettings] = field(default_factory=dict)
    """Where there are none, one is implied that is open to all."""
    queues: Mapping[str, QueueSettings] = field(default_factory=dict)
    exchanges: Mapping[str, ExchangeConfig] = field(default_factory=dict)
    bindings: tuple[Binding, ...] = ()
    listeners: tuple[ListenerConfig, ...] = ()
    caps: Caps = Caps()
    """What one peer may cost: the section ``[limits]``."""
    router: RouterConfig = RouterConfig("", "standalone")
    connectors: tuple[ConnectorConfig, ...] = ()
    link_routes: tuple[LinkRouteConfig, ...] = ()
    multicast: tuple[str, ...] = ()
    """Prefixes of the addresses whose messages go to all who receive from them."""

    @classmethod
    def from_mapping(cls, config: Mapping[str, Any] | BrokerConfig | None) -> BrokerConfig:
        """Check a mapping of the documented shape; one :class:`ConfigurationError` names all that is wrong."""
        if config is None:
            return cls()
        if isinstance(config, BrokerConfig):
            return config
        faults = Faults()
        whole = Table(config, "the configuration", faults)
        whole.check_keys(SECTIONS)
        queues = read_queues(whole)
        exchanges = exchanges_of(whole)
        router = read_router(whole)
        connectors = read_connectors(whole, router)
        read = cls(
            **read_policy(whole),
            authentication=read_authentication(whole),
            users=read_users(whole),
            vhosts=read_vhosts(whole),
            queues=queues,
            exchanges=exchanges,
            bindings=bindings_of(whole, exchanges, queues),
            listeners=read_listeners(whole, router),
            caps=read_limits(whole),
            router=router,
            connectors=connectors,
            link_routes=read_link_routes(whole, connectors),
            multicast=read_multicast(whole),
        )
        if "ANONYMOUS" in (read.authentication.mechanisms or ()) and (read.users or read.authentication.users_file):
            faults.add("[authentication] mechanisms: ANONYMOUS is off where there are users, and would not be offered")
        if 0 < read.max_queues < len(queues):
            faults.add(f"[policy] max_queues is {read.max_queues}, and [queues] has {len(queues)}")
        faults.check()
        return read

    def declare_exchanges(self, exchanges: Exchanges) -> None:
        """Make the exchanges, whose queues are there already, and bind what is to be bound."""
        for name, each in self.exchanges.items():
            exchanges.declare(name, each.type, {**each.settings, "alternate": None})
        for name, each in self.exchanges.items():
            exchanges.declare(name, each.type, each.settings)
        for binding in self.bindings:
            exchanges.named(binding.exchange).rebind(add=[binding])
