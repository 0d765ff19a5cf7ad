"""The section ``[vhosts]``: virtual hosts, their groups, and what these may do."""

from __future__ import annotations

from typing import Final

from jmsish.broker.access import Access, check_item, check_pattern
from jmsish.broker.config.faults import Table
from jmsish.broker.config.limits import LARGEST_SIZE
from jmsish.broker.hostnames import Hostnames
from jmsish.broker.names import check_text
from jmsish.broker.remote_hosts import RemoteHosts, ranges_of
from jmsish.broker.vhosts import (
    DEFAULT,
    EVERYBODY,
    IMPLIED_GROUP,
    MAX_CONNECTIONS,
    RIGHTS,
    UNLIMITED,
    GroupSettings,
    VhostSettings,
    memberships,
)

VHOST_KEYS: Final = (
    "aliases", "max_message_size", "max_connections", "max_connections_per_user", "max_connections_per_host",
    "allow_unknown_user", "groups",
)  # fmt: skip
GROUP_KEYS: Final = (
    "users", "remote_hosts", "max_message_size", "max_connections_per_user", "max_connections_per_host",
    "max_frame_size", "max_sessions", "max_session_window", "max_senders", "max_receivers", "sources", "targets",
    "source_pattern", "target_pattern", "allow_anonymous_sender", "allow_dynamic_source", "allow_user_id_proxy",
    *RIGHTS,
)  # fmt: skip
LEAST_FRAME: Final = 512
"""Part 2, 2.4.1: MIN-MAX-FRAME-SIZE."""
LARGEST_FRAME: Final = (1 << 32) - 1
MOST_SESSIONS: Final = 1 << 16
_LARGEST_LONG: Final = (1 << 63) - 1


def read_vhosts(config: Table) -> dict[str, VhostSettings]:
    """The virtual hosts by name; none where nothing is said of any."""
    tables = config.tables_of("vhosts")
    for name in filter(None, tables):  # one without a name is among the faults of hostnames
        with config.faults.caught():
            check_text(name, "[vhosts]: a virtual host")
    vhosts = {name: read_vhost(table) for name, table in tables.items()}
    config.faults.found += Hostnames.faults({name: each.aliases for name, each in vhosts.items()})
    return vhosts


def read_vhost(table: Table) -> VhostSettings:
    """One virtual host."""
    table.check_keys(VHOST_KEYS)
    tables = table.tables_of("groups")
    groups = {name: read_group(each) for name, each in tables.items()}
    for name in groups:
        with table.faults.caught():
            check_text(name, f"{table.where}: a group")
    for user, first, second in memberships(groups):
        who = "everybody ('*')" if user == EVERYBODY else f"the user {user!r}"
        where = f"{tables[second].where} users"
        table.faults.add(f"{where}: {who} is in one group only, and was put into {first!r} and {second!r}")
    allow_unknown_user = table.flag("allow_unknown_user")
    if allow_unknown_user and DEFAULT not in groups:
        groups[DEFAULT] = IMPLIED_GROUP
    return VhostSettings(
        aliases=table.texts("aliases"),
        max_message_size=table.count("max_message_size", None, most=LARGEST_SIZE),
        max_connections=table.count("max_connections", MAX_CONNECTIONS, most=_LARGEST_LONG),
        max_connections_per_user=table.count("max_connections_per_user", MAX_CONNECTIONS, most=_LARGEST_LONG),
        max_connections_per_host=table.count("max_connections_per_host", MAX_CONNECTIONS, most=_LARGEST_LONG),
        allow_unknown_user=allow_unknown_user,
        groups=groups,
    )


def read_group(table: Table) -> GroupSettings:
    """One group."""
    table.check_keys(GROUP_KEYS)
    frame = table.count("max_frame_size", 0, most=LARGEST_FRAME)
    if 0 < frame < LEAST_FRAME:
        table.wrong("max_frame_size", f"0, or {LEAST_FRAME} octets at least")
        frame = 0
    users = table.texts("users")
    if "" in users:
        table.faults.add(f"{table.where} users has one without a name")
    return GroupSettings(
        users=users,
        remote_hosts=_remote_hosts(table),
        max_message_size=table.count("max_message_size", None, most=LARGEST_SIZE),
        max_connections_per_user=table.count("max_connections_per_user", None, most=_LARGEST_LONG),
        max_connections_per_host=table.count("max_connections_per_host", None, most=_LARGEST_LONG),
        max_frame_size=frame,
        max_sessions=table.count("max_sessions", 0, most=MOST_SESSIONS),
        max_session_window=table.count("max_session_window", 0, most=_LARGEST_LONG),
        max_senders=table.count("max_senders", UNLIMITED, most=_LARGEST_LONG),
        max_receivers=table.count("max_receivers", UNLIMITED, most=_LARGEST_LONG),
        sources=_access(table, "source"),
        targets=_access(table, "target"),
        allow_anonymous_sender=table.flag("allow_anonymous_sender"),
        allow_dynamic_source=table.flag("allow_dynamic_source"),
        allow_user_id_proxy=table.flag("allow_user_id_proxy"),
        may_create=table.flag("may_create", True),
        may_delete=table.flag("may_delete", True),
        may_bind=table.flag("may_bind", True),
        may_freeze=table.flag("may_freeze", True),
        may_purge=table.flag("may_purge", True),
        may_manage=table.flag("may_manage", None),
    )


def _remote_hosts(table: Table) -> RemoteHosts:
    right = []
    for text in table.texts("remote_hosts"):
        with table.faults.caught(f"{table.where} remote_hosts"):
            if text != EVERYBODY:
                ranges_of(text)
            right.append(text)
    return RemoteHosts.read(right)


def _access(table: Table, role: str) -> Access:
    listed, pattern = f"{role}s", f"{role}_pattern"
    if listed in table and pattern in table:
        table.faults.add(f"{table.where}: {listed} and {pattern} are two forms of the same; say one of them")
    items, patterns = table.texts(listed), table.texts(pattern, or_one=True)
    for key, check, texts in ((listed, check_item, items), (pattern, check_pattern, patterns)):
        for text in texts:
            with table.faults.caught(f"{table.where} {key}"):
                check(text)
    return Access(patterns=patterns) if pattern in table else Access(items=items)
