"""The section ``[policy]``: what holds for the whole broker."""

from __future__ import annotations

from typing import Any, Final

from jmsish.broker.config.faults import Table
from jmsish.broker.vhosts import DEFAULT, MAX_CONNECTIONS

GLOBAL_KEYS: Final = (
    "max_message_size",
    "on_oversize",
    "max_connections",
    "max_queues",
    "default_vhost",
    "transaction_timeout",
    "transaction_idle_timeout",
    "max_transaction_size",
    "auto_create",
)
ON_OVERSIZE: Final = ("connection", "link")
LARGEST_SIZE: Final = (1 << 64) - 1
"""A maximum message size is a ulong (2.7.3)."""
MAX_TRANSACTION_SIZE: Final = 100_000
"""A discharge is one step, and this many posts or retirements take about 50 ms: the longest that others wait for it.
What a transaction holds is in memory, too."""


def read_policy(config: Table) -> dict[str, Any]:
    """The fields of the broker's configuration that this section sets."""
    table = config.table_of("policy")
    table.check_keys(GLOBAL_KEYS)
    return read_global(table)


def read_global(table: Table) -> dict[str, Any]:
    """The same, of a table that is this section."""
    if table.get("default_vhost") == "":
        table.wrong("default_vhost", "the name of a virtual host")
    return {
        "max_message_size": table.count("max_message_size", 0, most=LARGEST_SIZE),
        "on_oversize": table.choice("on_oversize", ON_OVERSIZE, "connection"),
        "max_connections": table.count("max_connections", MAX_CONNECTIONS),
        "max_queues": table.count("max_queues", 0),
        "default_vhost": table.text("default_vhost", DEFAULT),
        "transaction_timeout": table.seconds("transaction_timeout"),
        "transaction_idle_timeout": table.seconds("transaction_idle_timeout"),
        "max_transaction_size": table.count("max_transaction_size", MAX_TRANSACTION_SIZE),
        "auto_create": table.flag("auto_create", True),
    }
