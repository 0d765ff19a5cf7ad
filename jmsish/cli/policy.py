"""`jmsish broker --check FILE`: whether a configuration is valid, and what a given user may do by it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from jmsish._listening import check_exposure, tls_of
from jmsish.broker import Broker, ConfigurationError
from jmsish.broker.admission import Denied
from jmsish.broker.grants import Grant
from jmsish.broker.patterns import ANY, ONE, words_of
from jmsish.broker.remote_hosts import INSIDE, host_said
from jmsish.broker.users_file import parse_users
from jmsish.broker.vhosts import DEFAULT, IMPLIED_GROUP, RIGHTS, GroupSettings, VhostSettings
from jmsish.cli.output import emit
from jmsish.cli.parsing import UsageError, note
from jmsish.engine.scram import SCRAM_MECHANISMS

OPEN = "open to all"
_RIGHTS = tuple(right for right in RIGHTS if right != "may_manage")  # which is told by what comes of it


def check(path: str, config: Mapping[str, Any], user: str | None, host: str | None, vhost: str | None) -> int:
    """Say that the configuration is valid, or what is wrong; then what the user may do, if one is asked for."""
    try:
        place_of_user = host_said(host or INSIDE)
    except ValueError as error:
        raise UsageError(f"--host: {error}") from None
    try:
        broker = Broker("check", config, clock=time.time)
    except ConfigurationError as error:
        for sentence in error.errors:
            note(f"{path}: {sentence}")
        return 1
    emit(f"{path}: valid")
    place = Path(path).parent
    users, unread = _users(broker, place)
    notes = (*_notes(broker), *_strangers(broker, users), *unread, *_shut(broker), *_hindrances(broker, place))
    for remark in notes:
        emit(f"note: {remark}")
    if user is None:
        return 0
    emit("")
    if users and user not in users:
        named = broker.config.authentication.users_file
        kept = f", nor one in {named!r}" if named else ""
        emit(f"note: there is no [users.{user}]{kept}: over a socket nobody logs in by this name and a password")
    for line in _told(broker, user, place_of_user, vhost):
        emit(line)
    return 0


def _users(broker: Broker, place: Path) -> tuple[set[str], list[str]]:
    """The names of those who can log in, the users of the file beside the configuration included; and why not those."""
    users = set(broker.config.users)
    named = broker.config.authentication.users_file
    if not named:
        return users, []
    try:
        found = parse_users((place / named).read_text(encoding="utf-8"))
        broker.authentication.take_file(found)
        return users | found.keys(), []
    except OSError as error:
        return users, [f"the broker would not start here: users_file {named!r}: {error.strerror or error}"]
    except ValueError as error:
        return users, [f"the broker would not start here: users_file {named!r}: {error}"]


def _shut(broker: Broker) -> Iterable[str]:
    """Where the mechanisms that are allowed leave nothing for the users that there are."""
    allowed = broker.config.authentication.mechanisms
    if allowed is None or not broker.authentication.is_required or set(allowed) - {*SCRAM_MECHANISMS, "PLAIN"}:
        return  # another way in may be there: a certificate, or the authenticator of a program
    if not broker.authentication.offer(trusted=False).mechanisms:
        yield "[authentication] mechanisms has none that all users can use: nobody can log in over a socket"


def _strangers(broker: Broker, users: set[str]) -> Iterable[str]:
    """Members of groups who are called nearly as somebody who can log in, and not quite."""
    for name, vhost in broker.config.vhosts.items():
        for group, settings in vhost.groups.items():
            for member in settings.users:
                close = () if member in users else get_close_matches(member, users, n=1, cutoff=0.75)
                for meant in close:
                    where = f"[vhosts.{name}.groups.{group}]"
                    yield f"{where} has a user {member!r} without a password: is {meant!r} meant?"


def _hindrances(broker: Broker, place: Path) -> Iterable[str]:
    """Why a listener would not be begun: its files, or that it would serve other machines without care."""
    for number, each in enumerate(broker.config.listeners, 1):
        paths = (None if path is None else str(place / path) for path in (each.certificate, each.key, each.client_ca))
        certificate, key, client_ca = paths
        demands = each.require_client_certificate
        try:
            tls = tls_of(None, certificate, key, each.key_password, client_ca, demands, each.protocol)
            if not each.allow_insecure:
                check_exposure(each.host, each.port, tls, asks=broker.authentication.is_required)
        except ValueError as error:
            yield f"the broker would not start here: [[listeners]] {number}: {error}"


def _notes(broker: Broker) -> Iterable[str]:
    """What is valid, and may not be what was meant."""
    config = broker.config
    if config.router.is_router:
        doors = ", ".join(dict.fromkeys(each.role for each in config.listeners)) or "normal"
        yield f"the router {config.router.id!r}, {config.router.mode}, with doors for {doors}"
        for section in ("queues", "exchanges"):
            if getattr(config, section):
                yield f"[{section}] is of no use: a router holds none, and link routes lead to brokers that do"
        if config.router.mode == "edge" and not any(each.role == "edge" for each in config.connectors):
            yield "no connector has the role edge: this edge has no uplink, until a program makes one"
    named = [connector.name for connector in config.connectors]
    for route in config.link_routes:
        if route.connector not in named:
            among = f"is not among {', '.join(named)}" if named else "is not there, nor is another one"
            yield f"the link route {route.prefix!r} goes to no connector yet: {route.connector!r} {among}"
    if not config.vhosts:
        yield f"no [vhosts]: the virtual host {next(iter(broker.admission.vhosts))!r} is implied, {OPEN}"
        return
    if broker.admission.default_vhost is None:
        yield f"no virtual host is called {config.default_vhost!r}: who asks for none that there is, is denied"
    for name, vhost in config.vhosts.items():
        yield from _notes_of(f"[vhosts.{name}", vhost)


def _notes_of(place: str, vhost: VhostSettings) -> Iterable[str]:
    """The same, of a virtual host and its groups."""
    if not vhost.groups:
        yield f"{place}] has no groups: nobody may connect to it"
    elif vhost.groups.get(DEFAULT) is IMPLIED_GROUP:
        yield f"{place}] allows unknown users and has no group {DEFAULT!r}: one is implied, {OPEN}"
    for group, settings in vhost.groups.items():
        where = f"{place}.groups.{group}]"
        if not settings.remote_hosts.texts:
            yield f"{where} has no remote_hosts: nobody may connect by it"
        for role, access in (("source", settings.sources), ("target", settings.targets)):
            for item in filter(_is_pattern, access.items):
                yield f"{where} {role}s has the name {item!r}, in which '#' is no wildcard: is {role}_pattern meant?"
            for pattern in access.patterns:
                for word in filter(_is_near_wildcard, _words(pattern)):
                    yield f"{where} {role}_pattern {pattern!r} has the word {word!r}: only a whole word is a wildcard"


def _words(text: str) -> list[str]:
    return words_of(text.replace("/", "."))


def _is_pattern(item: str) -> bool:
    return ANY in _words(item)


def _is_near_wildcard(word: str) -> bool:
    return len(word) > 1 and (ONE in word or ANY in word)


def _told(broker: Broker, user: str, host: str, vhost: str | None) -> list[str]:
    """The decision about one connection, by what decides about all of them."""
    try:
        grant = broker.admission.decide(user, host, vhost)
    except Denied as denied:
        return [f"{user} may not connect from {host}: {denied}"]
    settings = broker.admission.vhosts[grant.vhost]
    group = settings.groups[grant.group]
    rows = {**dict(_connections(settings, group)), **dict(_rows(grant, group))}
    width = max(map(len, rows))
    head = f"{user} may connect from {host}, in the group {grant.group} of the virtual host {grant.vhost}"
    return [head, *(f"  {name:<{width}}  {value}" for name, value in rows.items())]


def _connections(vhost: VhostSettings, group: GroupSettings) -> Iterable[tuple[str, str]]:
    yield "max_connections", f"{vhost.max_connections} of the virtual host"
    for name in ("max_connections_per_user", "max_connections_per_host"):
        own = getattr(group, name)
        yield name, str(getattr(vhost, name) if own is None else own)


def _rows(grant: Grant, group: GroupSettings) -> Iterable[tuple[str, str]]:
    sizes = f"{grant.max_message_size} octets, else the {grant.on_oversize} is closed"
    yield "max_message_size", sizes if grant.max_message_size else "no limit"
    for name in ("max_frame_size", "max_session_window"):
        yield name, f"{getattr(grant, name)} octets" if getattr(grant, name) else "as the listener has it"
    yield "max_sessions", str(grant.max_sessions) if grant.max_sessions else "as the listener has it"
    for name in ("max_senders", "max_receivers"):
        most = getattr(grant, name)
        yield name, "no limit" if most is None else "none" if most == 0 else str(most)
    for name, access in (("receives from", group.sources), ("sends to", group.targets)):
        yield name, ", ".join(access.patterns or access.items).replace("${user}", grant.user) or "nowhere"
    for name in ("allow_anonymous_sender", "allow_dynamic_source", "allow_user_id_proxy", *_RIGHTS):
        yield name, "yes" if getattr(grant, name) else "no"
    to, back = (grant.may_ask_management(each) for each in (grant.targets, grant.sources))
    yield "management node", "yes" if to and back else "requests only" if to else "no"
    yield "policy", "may change it" if grant.may_administer else "may not change it"
