"""What virtual hosts and their groups were told: frozen settings, which say nothing of who is there now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from jmsish.broker.access import Access
from jmsish.broker.remote_hosts import RemoteHosts

DEFAULT: Final = "$default"
"""The virtual host of who names none that there is, and the group of who is in no other."""
EVERYBODY: Final = "*"
"""A user of a group: whoever is in no group by name."""
MAX_CONNECTIONS: Final = 65_535
UNLIMITED: Final = 2_147_483_647
"""Links: as good as no limit."""
RIGHTS: Final = ("may_create", "may_delete", "may_bind", "may_freeze", "may_purge", "may_manage")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """A group of users: from where they may come, how much they may have, and what they may do."""

    users: tuple[str, ...] = ()
    remote_hosts: RemoteHosts = RemoteHosts()
    max_message_size: int | None = None
    max_connections_per_user: int | None = None
    max_connections_per_host: int | None = None
    max_frame_size: int = 0
    max_sessions: int = 0
    max_session_window: int = 0
    max_senders: int = UNLIMITED
    max_receivers: int = UNLIMITED
    sources: Access = Access()
    targets: Access = Access()
    allow_anonymous_sender: bool = False
    allow_dynamic_source: bool = False
    allow_user_id_proxy: bool = False
    may_create: bool = True
    may_delete: bool = True
    may_bind: bool = True
    may_freeze: bool = True
    may_purge: bool = True
    may_manage: bool | None = None
    """None: where the lists of addresses have the management node in them."""

    def described(self) -> dict[str, Any]:
        """As in the configuration."""
        found: dict[str, Any] = {"users": list(self.users), "remote_hosts": list(self.remote_hosts.texts)}
        for name, access in (("source", self.sources), ("target", self.targets)):
            if access.patterns:
                found[f"{name}_pattern"] = list(access.patterns)
            else:
                found[f"{name}s"] = list(access.items)
        plain = (each for each in self.__slots__ if each not in ("users", "remote_hosts", "sources", "targets"))
        found.update((name, value) for name in plain if (value := getattr(self, name)) is not None)
        return found


OPEN_GROUP: Final = GroupSettings(
    remote_hosts=RemoteHosts.read(["*"]),
    sources=Access(("*",)),
    targets=Access(("*",)),
    allow_anonymous_sender=True,
    allow_dynamic_source=True,
    allow_user_id_proxy=True,
    may_manage=True,
)
"""Where nothing is restricted."""
IMPLIED_GROUP: Final = replace(OPEN_GROUP, may_manage=None)
"""Of unknown users, where they are allowed and there is no group for them: all is open but the policy itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VhostSettings:
    """A virtual host: by what it is called, how many may be there, and its groups."""

    aliases: tuple[str, ...] = ()
    max_message_size: int | None = None
    max_connections: int = MAX_CONNECTIONS
    max_connections_per_user: int = MAX_CONNECTIONS
    max_connections_per_host: int = MAX_CONNECTIONS
    allow_unknown_user: bool = False
    groups: Mapping[str, GroupSettings] = field(default_factory=dict)

    def group_of(self, user: str) -> str | None:
        """The group of a user: the one that names it, else the one for everybody, else ``$default`` if unknown users
        are allowed; None where it has none."""
        everybody = None
        for name, group in self.groups.items():
            if user in group.users and user != EVERYBODY:
                return name
            if EVERYBODY in group.users:
                everybody = name
        if everybody is None and self.allow_unknown_user:
            return DEFAULT
        return everybody

    def described(self) -> dict[str, Any]:
        """As in the configuration, without the groups."""
        found: dict[str, Any] = {"aliases": list(self.aliases)}
        plain = (each for each in self.__slots__ if each not in ("aliases", "groups"))
        found.update((name, value) for name in plain if (value := getattr(self, name)) is not None)
        return found


OPEN_VHOST: Final = VhostSettings(allow_unknown_user=True, groups={DEFAULT: OPEN_GROUP})
"""What holds where no virtual host is configured (W12)."""


def memberships(groups: Mapping[str, GroupSettings]) -> Iterator[tuple[str, str, str]]:
    """Users that are in two groups: user, first and second group."""
    known: dict[str, str] = {}
    for name, group in groups.items():
        for user in dict.fromkeys(group.users):
            if user in known:
                yield user, known[user], name
            known.setdefault(user, name)
