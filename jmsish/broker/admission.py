"""Who is let in, and what a connection may do: the policy of a broker.

Theory of operation.  The virtual hosts are one immutable set of settings, replaced as a whole. When a connection opens,
one function looks for its virtual host, its group, and whether there is room, in this order (section 4 of the facts):

    open.hostname ─► virtual host ─► group of the user ─► remote host ─► connections of vhost, user, host ─► Grant

Each step may deny. What was granted is fixed for the life of the connection: a change of the policy is for those who
come after it. What is counted here (who is connected where) belongs to the name of the virtual host, not to its
settings, so a change forgets nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.config import BrokerConfig, Faults, Table
from jmsish.broker.config.limits import GLOBAL_KEYS, read_global
from jmsish.broker.config.vhosts import read_group, read_vhost
from jmsish.broker.denials import Denials
from jmsish.broker.grants import Grant
from jmsish.broker.hostnames import Hostnames
from jmsish.broker.link_policy import shortened
from jmsish.broker.names import check_text
from jmsish.broker.policy import near_miss
from jmsish.broker.refusals import RESOURCE_LIMIT_EXCEEDED
from jmsish.broker.vhosts import DEFAULT, IMPLIED_GROUP, OPEN_VHOST, UNLIMITED, GroupSettings, VhostSettings
from jmsish.engine.outcomes import AmqpError

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.network.connection import RouterConnection

CONNECTION_DISALLOWED: Final = "connection disallowed by local policy"
_log = logging.getLogger("jmsish.broker")


class Denied(Exception):
    """A connection that is not let in; the text says why, to the log and to who asks in this process."""

    def __init__(self, reason: str, vhost: str | None = None) -> None:
        super().__init__(reason)
        self.vhost = vhost
        """The virtual host that denies it; None where there was none."""
        self.error = AmqpError(RESOURCE_LIMIT_EXCEEDED, CONNECTION_DISALLOWED)
        """What the peer is told: no more than that."""


class Present:
    """Who is connected to one virtual host now."""

    __slots__ = ("hosts", "users")

    def __init__(self) -> None:
        self.users: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """All connections."""
        return self.users.total()


class Admission:
    """The policy in force, and who is connected under it."""

    def __init__(self, config: BrokerConfig, denials: Denials) -> None:
        self.config = config
        """As it was told, and changed since, in the keys of the whole broker; not in what a broker is made of."""
        self.denials = denials
        self.vhosts: Mapping[str, VhostSettings] = {}
        self._hostnames = Hostnames({})
        self._present: dict[str, Present] = {}
        self._replace(config.vhosts or {config.default_vhost: OPEN_VHOST})

    def present(self, vhost: str) -> Present:
        """Who is connected to a virtual host."""
        return self._present.get(vhost) or Present()

    @property
    def default_vhost(self) -> str | None:
        """The virtual host of who names none that there is, which may be told by an alias; None: they are denied."""
        return self._hostnames.find(self.config.default_vhost)

    # --- decided

    def decide(self, user: str, host: str, hostname: str | None) -> Grant:
        """What a connection of this user, from this host, may do where it asks for this hostname; or Denied."""
        vhost = self._hostnames.find(hostname) or self.default_vhost
        if vhost is None:
            raise Denied(f"there is no virtual host {hostname!r}, and no default one")
        settings = self.vhosts[vhost]
        name = settings.group_of(user)
        if name is None:
            raise Denied(f"the user {user!r} is in no group of the virtual host {vhost!r}", vhost)
        group = settings.groups[name]
        if host not in group.remote_hosts:
            raise Denied(f"the group {name!r} of {vhost!r} has no remote host {host!r}", vhost)
        self._check_room(vhost, settings, group, user, host)
        return granted(self.config, vhost, settings, name, user)

    def _check_room(self, vhost: str, settings: VhostSettings, group: GroupSettings, user: str, host: str) -> None:
        present = self.present(vhost)
        per_user, per_host = group.max_connections_per_user, group.max_connections_per_host
        for what, there, most in (
            ("connections", present.total, settings.max_connections),
            (
                f"connections of the user {user!r}",
                present.users[user],
                settings.max_connections_per_user if per_user is None else per_user,
            ),
            (
                f"connections from the host {host!r}",
                present.hosts[host],
                settings.max_connections_per_host if per_host is None else per_host,
            ),
        ):
            if there >= most:
                raise Denied(f"the virtual host {vhost!r} has {there} {what}, and at most {most}", vhost)

    # --- those who come and go

    def enter(self, connection: ServerConnection | RouterConnection, hostname: str | None) -> AmqpError | None:
        """Decide about a connection that opens: it has its grant, or there is what to tell it."""
        denials = self.denials
        user, host = connection.identity or "anonymous", connection.host
        try:
            grant = self.decide(user, host, hostname)
        except Denied as denied:
            more = connection.broker.told.more("connection", connection.broker.now())
            if more is not None:
                _log.warning("the connection from %s is denied: %s%s", connection.peer, shortened(str(denied)), more)
            denials.connection_denied(denied.vhost)
            return denied.error
        connection.grant = grant
        connection.admitted = True
        present = self._present.setdefault(grant.vhost, Present())
        present.users[user] += 1
        present.hosts[host] += 1
        counters = denials.vhost(grant.vhost)
        counters.connections_approved += 1
        counters.connections_current += 1
        return None

    def leave(self, connection: ServerConnection | RouterConnection) -> None:
        """A connection is over."""
        if not connection.admitted:
            return
        connection.admitted = False
        grant, host = connection.grant, connection.host
        present = self._present[grant.vhost]
        for counter, key in ((present.users, grant.user), (present.hosts, host)):
            counter[key] -= 1
            if not counter[key]:
                del counter[key]
        self.denials.vhost(grant.vhost).connections_current -= 1
        if not present.total:
            del self._present[grant.vhost]
            if grant.vhost not in self.vhosts:
                self.denials.vhosts.pop(grant.vhost, None)

    # --- changed

    def put_vhost(self, name: str, settings: Mapping[str, Any], *, fresh: bool | None = None) -> None:
        """Make a virtual host, or give one that is there these settings beside its own (``groups`` as a whole).

        ``fresh`` says whether it has to be new. ``ValueError`` (:class:`ConfigurationError`) for what is wrong,
        ``LookupError`` where it is there already, or is not.
        """
        faults = Faults()
        with faults.caught():
            check_text(name, "a virtual host")
        faults.check()
        before = self._known(name, fresh)
        written = {} if before is None else {**before.described(), "groups": _written(before)}
        read = read_vhost(Table(_changed(written, settings), f"[vhosts.{name}]", faults))
        faults.found += Hostnames.faults({**self._names(), name: read.aliases})
        faults.check()
        self._replace({**self.vhosts, name: read})

    def delete_vhost(self, name: str) -> None:
        """Take a virtual host away; who is connected to it stays. ``LookupError`` where there is none."""
        self._known(name, False)
        self._replace({key: each for key, each in self.vhosts.items() if key != name})
        if name not in self._present:
            self.denials.vhosts.pop(name, None)

    def put_group(self, vhost: str, name: str, settings: Mapping[str, Any], *, fresh: bool | None = None) -> None:
        """Make a group of a virtual host, or give one that is there these settings beside its own."""
        groups = self.groups_of(vhost)
        if fresh is not None and fresh == (name in groups):
            raise LookupError(_there("group", name, fresh))
        written = {} if name not in groups else groups[name].described()
        for listed, pattern in (("sources", "source_pattern"), ("targets", "target_pattern")):
            for said, other in ((listed, pattern), (pattern, listed)):
                if settings.get(said) is not None and other not in settings:
                    written.pop(other, None)  # the other form of the same gives way
        faults = Faults()
        changed = _changed(written, settings)
        read_group(Table(changed, f"[vhosts.{vhost}.groups.{name}]", faults))
        faults.check()
        self.put_vhost(vhost, {"groups": {**_written(self.vhosts[vhost]), name: changed}})

    def delete_group(self, vhost: str, name: str) -> None:
        """Take a group away. ``LookupError`` where there is none.

        ``ValueError`` for that of unknown users where they are allowed: without it they would be in one that is
        implied, and may do more.
        """
        if name not in self.groups_of(vhost):
            raise LookupError(_there("group", name, False))
        if name == DEFAULT and self.vhosts[vhost].allow_unknown_user:
            text = f"unknown users are allowed in the virtual host {vhost!r} (allow_unknown_user), and are in the group"
            raise ValueError(f"{text} {DEFAULT!r}: without it they could do all but change the policy")
        groups = {key: each for key, each in _written(self.vhosts[vhost]).items() if key != name}
        self.put_vhost(vhost, {"groups": groups})

    def groups_of(self, vhost: str) -> Mapping[str, GroupSettings]:
        """The groups of a virtual host. ``LookupError`` where there is none."""
        known = self._known(vhost, False)
        assert known is not None
        return known.groups

    def change(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Change what holds for the whole broker; what was changed, by the fields of the configuration."""
        faults = Faults()
        table = Table(_changed(self.described(), settings), "[policy]", faults)
        table.check_keys(GLOBAL_KEYS)
        read = read_global(table)
        faults.check()
        return read

    def described(self) -> dict[str, Any]:
        """What holds for the whole broker and can be changed, as in the configuration."""
        return {name: getattr(self.config, name) for name in GLOBAL_KEYS}

    def _known(self, name: str, fresh: bool | None) -> VhostSettings | None:
        known = self.vhosts.get(name)
        if fresh is not None and fresh == (known is not None):
            hint = "" if fresh else f"; {near_miss(name, tuple(self.vhosts))}"
            raise LookupError(f"{_there('virtual host', name, fresh)}{hint}")
        return known

    def _names(self) -> dict[str, tuple[str, ...]]:
        return {name: each.aliases for name, each in self.vhosts.items()}

    def _replace(self, vhosts: Mapping[str, VhostSettings]) -> None:
        self._hostnames = Hostnames({name: each.aliases for name, each in vhosts.items()})
        self.vhosts = dict(vhosts)
        for name in vhosts:
            self.denials.vhost(name)


def granted(config: BrokerConfig, vhost: str, settings: VhostSettings, name: str, user: str) -> Grant:
    """What a user of a group may do. Of a limit that is unset, the next wider holds; zero lifts it."""
    group = settings.groups[name]
    sizes = (group.max_message_size, settings.max_message_size, config.max_message_size)
    return Grant(
        user=user,
        vhost=vhost,
        group=name,
        max_message_size=next(size for size in sizes if size is not None),
        on_oversize=config.on_oversize,
        max_frame_size=group.max_frame_size,
        max_sessions=group.max_sessions,
        max_session_window=group.max_session_window,
        max_senders=None if group.max_senders >= UNLIMITED else group.max_senders,
        max_receivers=None if group.max_receivers >= UNLIMITED else group.max_receivers,
        allow_anonymous_sender=group.allow_anonymous_sender,
        allow_dynamic_source=group.allow_dynamic_source,
        allow_user_id_proxy=group.allow_user_id_proxy,
        may_create=group.may_create,
        may_delete=group.may_delete,
        may_bind=group.may_bind,
        may_freeze=group.may_freeze,
        may_purge=group.may_purge,
        may_manage=group.may_manage is not False,
        may_administer=group.may_manage is True,
        sources=group.sources.decision(user),
        targets=group.targets.decision(user),
    )


def _changed(before: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings and what is changed of them; None takes one back to what holds where nothing is said."""
    return {name: value for name, value in {**before, **settings}.items() if value is not None}


def _written(settings: VhostSettings) -> dict[str, dict[str, Any]]:
    """The groups as in the configuration, but for one that is only implied."""
    return {name: each.described() for name, each in settings.groups.items() if each is not IMPLIED_GROUP}


def _there(what: str, name: str, is_there: bool) -> str:
    return f"there is a {what} {name!r} already" if is_there else f"there is no {what} {name!r}"
