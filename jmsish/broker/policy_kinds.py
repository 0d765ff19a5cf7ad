"""The policy as there is to manage: what holds for the whole broker, its virtual hosts and their groups.

Their attributes are the keys of the configuration, read by what reads that, and the counters. A change holds for the
connections that are opened after it. To look at it needs what the node itself needs; to change it, that the group says
``may_manage = true``, for who may change a group may do anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final, Protocol

from jmsish.broker.asked import unpacked
from jmsish.broker.config import BrokerConfig
from jmsish.broker.config.limits import GLOBAL_KEYS
from jmsish.broker.config.vhosts import GROUP_KEYS, VHOST_KEYS
from jmsish.broker.denials import Denials, VhostDenials
from jmsish.broker.entities import BAD_REQUEST, CONFLICT, NOT_FOUND, Kind, Refused, plain
from jmsish.broker.policy import LARGEST_LONG
from jmsish.broker.vhosts import RIGHTS, GroupSettings, VhostSettings
from jmsish.types import ULong

if TYPE_CHECKING:
    from jmsish.broker.admission import Admission

_GLOBAL_COUNTERS: Final = tuple(each.name for each in fields(Denials) if each.name != "vhosts")
_COUNTERS: Final = tuple(each.name for each in fields(VhostDenials))
_ADMINISTERED: Final = dict.fromkeys(("CREATE", "UPDATE", "DELETE", "RESET"), "may_administer")
_OF_PARTS: Final = frozenset({
    "aliases", "groups", "users", "remote_hosts", "sources", "targets", "source_pattern", "target_pattern",
})  # fmt: skip
"""Attributes that are lists or maps; who has flat bodies only sends them as texts in JSON."""
_PATTERNS: Final = ("source_pattern", "target_pattern")
"""Of these a text that is no list is one by itself."""
_WANTED: Final[dict[str, type]] = {
    **dict.fromkeys((*VHOST_KEYS, *GROUP_KEYS), int),  # a limit that is unset has no value to be seen by
    **{
        key: type(getattr(usual, key))
        for usual in (BrokerConfig(), VhostSettings(), GroupSettings())
        for key in (*GLOBAL_KEYS, *VHOST_KEYS, *GROUP_KEYS)
        if getattr(usual, key, None) is not None
    },
    **dict.fromkeys(RIGHTS, bool),
}
"""Of each attribute the type that it has, where it is a text: some clients send all as texts."""


class Policed(Protocol):
    """A broker, or a router."""

    name: str
    admission: Admission
    denials: Denials

    def change_policy(self, settings: Mapping[str, Any]) -> None:
        """Change keys of ``[policy]``."""


class PolicyKind(Kind["Policed"]):
    """What holds for the whole broker: there is one, by whatever name, or none."""

    name = "policy"
    aliases = ()
    is_single = True
    operations = ("READ", "UPDATE", "RESET")
    attributes = ("name", "identity", "type", *GLOBAL_KEYS, *_GLOBAL_COUNTERS)
    settings = frozenset(GLOBAL_KEYS)
    rights = _ADMINISTERED

    def read(self, broker: Policed, name: str) -> dict[str, Any]:
        return self.describe(broker)

    def update(self, broker: Policed, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        broker.change_policy(_plain(attributes))
        return self.describe(broker)

    def entities(self, broker: Policed) -> Iterable[Policed]:
        return (broker,)

    def describe(self, entity: Policed) -> dict[str, Any]:
        named = {"name": entity.name, "identity": entity.name, "type": self.name}
        counters = {name: getattr(entity.denials, name) for name in _GLOBAL_COUNTERS}
        return {**named, **_told(entity.admission.described()), **counters}


class VhostKind(Kind["Policed"]):
    """Virtual hosts, with who is connected to each."""

    name = "vhost"
    aliases = ()
    operations = ("CREATE", "READ", "UPDATE", "DELETE")
    attributes = ("name", "identity", "type", *VHOST_KEYS, *_COUNTERS, "per_user", "per_host")
    settings = frozenset(VHOST_KEYS)
    rights = _ADMINISTERED

    def create(self, broker: Policed, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return self._put(broker, name, attributes, fresh=True)

    def update(self, broker: Policed, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return self._put(broker, name, attributes, fresh=False)

    def _put(self, broker: Policed, name: str, attributes: Mapping[str, Any], *, fresh: bool) -> dict[str, Any]:
        try:
            broker.admission.put_vhost(name, _plain(attributes), fresh=fresh)
        except LookupError as error:
            raise _refused(error, fresh) from None
        return self.describe((broker, name))

    def read(self, broker: Policed, name: str) -> dict[str, Any]:
        if name not in broker.admission.vhosts:
            raise Refused(NOT_FOUND, f"there is no virtual host {name!r}")
        return self.describe((broker, name))

    def delete(self, broker: Policed, name: str) -> None:
        try:
            broker.admission.delete_vhost(name)
        except LookupError as error:
            raise _refused(error, False) from None

    def entities(self, broker: Policed) -> Iterable[tuple[Policed, str]]:
        return ((broker, name) for name in broker.admission.vhosts)

    def describe(self, entity: tuple[Policed, str]) -> dict[str, Any]:
        broker, name = entity
        vhost, present = broker.admission.vhosts[name], broker.admission.present(name)
        return {
            "name": name,
            "identity": name,
            "type": self.name,
            **_told(vhost.described()),
            "groups": {key: _told(each.described()) for key, each in vhost.groups.items()},
            **asdict(broker.denials.vhost(name)),
            "per_user": dict(present.users),
            "per_host": dict(present.hosts),
        }


class GroupKind(Kind["Policed"]):
    """The groups of the virtual hosts, each called ``vhost/group``."""

    name = "group"
    aliases = ()
    operations = ("CREATE", "READ", "UPDATE", "DELETE")
    attributes = ("name", "identity", "type", "vhost", *GROUP_KEYS)
    settings = frozenset(GROUP_KEYS)
    rights = _ADMINISTERED

    def create(self, broker: Policed, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return self._put(broker, name, attributes, fresh=True)

    def update(self, broker: Policed, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return self._put(broker, name, attributes, fresh=False)

    def _put(self, broker: Policed, name: str, attributes: Mapping[str, Any], *, fresh: bool) -> dict[str, Any]:
        vhost, group = self._parts(broker, name)
        try:
            broker.admission.put_group(vhost, group, _plain(attributes), fresh=fresh)
        except LookupError as error:
            raise _refused(error, fresh) from None
        return self.describe((broker, vhost, group))

    def read(self, broker: Policed, name: str) -> dict[str, Any]:
        vhost, group = self._parts(broker, name)
        if group not in broker.admission.vhosts[vhost].groups:
            raise Refused(NOT_FOUND, f"there is no group {group!r} in the virtual host {vhost!r}")
        return self.describe((broker, vhost, group))

    def delete(self, broker: Policed, name: str) -> None:
        vhost, group = self._parts(broker, name)
        try:
            broker.admission.delete_group(vhost, group)
        except LookupError as error:
            raise _refused(error, False) from None

    def entities(self, broker: Policed) -> Iterable[tuple[Policed, str, str]]:
        vhosts = broker.admission.vhosts
        return ((broker, name, group) for name, vhost in vhosts.items() for group in vhost.groups)

    def describe(self, entity: tuple[Policed, str, str]) -> dict[str, Any]:
        broker, vhost, group = entity
        name = f"{vhost}/{group}"
        settings = broker.admission.vhosts[vhost].groups[group]
        return {"name": name, "identity": name, "type": self.name, "vhost": vhost, **_told(settings.described())}

    def _parts(self, broker: Policed, name: str) -> tuple[str, str]:
        """The virtual host and the group; of several slashes, that behind the name of a virtual host divides: where
        more than one does, the one behind which there is such a group, or else the last."""
        vhosts = broker.admission.vhosts
        places = [at for at, char in enumerate(name) if char == "/" and name[:at] in vhosts]
        there = [at for at in places if name[at + 1 :] in vhosts[name[:at]].groups]
        if places:
            at = (there or places)[-1]
            return name[:at], name[at + 1 :]
        if "/" not in name:
            raise Refused(BAD_REQUEST, f"a group is called by its virtual host and its name, vhost/group, not {name!r}")
        raise Refused(NOT_FOUND, f"there is no virtual host {name.partition('/')[0]!r}")


def _refused(error: LookupError, fresh: bool) -> Refused:
    return Refused(CONFLICT if fresh else NOT_FOUND, str(error.args[0]))


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as a configuration has them: of the kinds of numbers and texts of AMQP only the plain ones."""
    found = {key: unpacked(value, key) if _is_packed(key, value) else value for key, value in attributes.items()}
    values = {str(key): _plain_value(value) for key, value in found.items()}
    return {key: plain(value, _WANTED[key]) if key in _WANTED else value for key, value in values.items()}


def _is_packed(key: str, value: Any) -> bool:
    if key in _PATTERNS and isinstance(value, str):
        return value.lstrip().startswith("[")
    return key in _OF_PARTS


def _told(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they are told: a size may be larger than a long."""
    return {
        key: ULong(value) if isinstance(value, int) and value > LARGEST_LONG else value
        for key, value in settings.items()
    }


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key if not isinstance(key, str) else str(key): _plain_value(each) for key, each in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain_value(each) for each in value]
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
