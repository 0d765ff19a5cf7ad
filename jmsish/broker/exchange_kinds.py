"""Exchanges and bindings as there is to manage them: their attributes, and how exchanges are made and changed.

What is done to bindings is in :mod:`jmsish.broker.rebinding`, as it may have to wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.asked import unpacked
from jmsish.broker.bindings import DIRECT, EXCHANGE, FANOUT, HEADERS, QUEUE, TOPIC, Binding, Bound
from jmsish.broker.entities import BAD_REQUEST, CONFLICT, NOT_FOUND, Kind, Refused, plain
from jmsish.broker.exchanges import DEFAULT_EXCHANGE_SETTINGS, Exchange
from jmsish.broker.policy import EXCHANGE_SETTING_NAMES
from jmsish.errors import InvalidDestinationError

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker

MARK: Final = "exchange://"
"""Before the name of an exchange where that of a queue may stand, too."""

_SLASHES: Final = 32
"""So many are looked at, at most, in the name of a queue."""
_TYPE: Final = "exchange_type"
_CHANGEABLE: Final = ("alternate", "unroutable")
_COUNTERS: Final = ("received", "routed", "dropped", "rejected", "released", "octets")
_OF_BROKER_J: Final = {
    "org.apache.qpid.DirectExchange": DIRECT, "org.apache.qpid.TopicExchange": TOPIC,
    "org.apache.qpid.FanoutExchange": FANOUT, "org.apache.qpid.HeadersExchange": HEADERS,
}  # fmt: skip
_LIFETIMES: Final = {"PERMANENT": False, "DELETE_ON_NO_LINKS": True, "DELETE_ON_NO_OUTBOUND_LINKS": True}
_FOREIGN_SETTINGS: Final = ("alternateBinding", "unroutableMessageBehaviour", "lifetimePolicy")


class ExchangeKind(Kind["Broker"]):
    """Exchanges of all types, topics among them."""

    name = "exchange"
    aliases = ("org.apache.qpid.Exchange", *_OF_BROKER_J)
    implied = {alias: {_TYPE: type} for alias, type in _OF_BROKER_J.items()}
    named_by_key = False
    operations = (
        "CREATE", "READ", "UPDATE", "DELETE", "BIND", "UNBIND", "REBIND", "FREEZE", "THAW", "CANCEL", "bind", "unbind",
    )  # fmt: skip
    attributes = (
        "name", "identity", "type", _TYPE, "temporary", *EXCHANGE_SETTING_NAMES, "bindings", *_COUNTERS, "frozen",
        "waiting",
    )  # fmt: skip
    settings = frozenset({"type", _TYPE, *EXCHANGE_SETTING_NAMES, *_FOREIGN_SETTINGS})

    def create(self, broker: Broker, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        if broker.router.exchanges.get(name) is not None:
            raise Refused(CONFLICT, f"there is an exchange {name!r} already")
        type, settings = self._understood(attributes)
        if type is None:
            raise Refused(BAD_REQUEST, f"{_TYPE} is missing: direct, topic, fanout or headers")
        try:
            broker.declare_exchange(name, type, **settings)
        except InvalidDestinationError as error:
            raise Refused(BAD_REQUEST, f"alternate: {error}") from None
        return self.read(broker, name)

    def read(self, broker: Broker, name: str) -> dict[str, Any]:
        return self.describe(self.find(broker, name))

    def update(self, broker: Broker, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        exchange = self.find(broker, name)
        type, settings = self._understood(attributes)
        if type is not None and type != exchange.type:
            raise Refused(BAD_REQUEST, f"the exchange {name!r} is of the type {exchange.type!r}, and stays so")
        for key, value in settings.items():
            if key in EXCHANGE_SETTING_NAMES and key not in _CHANGEABLE and getattr(exchange.settings, key) != value:
                changeable = " and ".join(_CHANGEABLE)
                raise Refused(BAD_REQUEST, f"{key} stays as it was when the exchange was made; {changeable} can change")
        try:
            broker.declare_exchange(name, exchange.type, **settings)
        except InvalidDestinationError as error:
            raise Refused(BAD_REQUEST, f"alternate: {error}") from None
        return self.read(broker, name)

    def leads(self, attributes: Mapping[str, Any]) -> list[str]:
        alternate = self._understood(attributes)[1].get("alternate")
        return [alternate] if isinstance(alternate, str) and alternate else []

    def delete(self, broker: Broker, name: str) -> None:
        exchange = self.find(broker, name)
        if exchange.alternate_of:
            users = ", ".join(repr(each.name) for each in exchange.alternate_of)
            raise Refused(CONFLICT, f"the exchange {name!r} is in use: it is the alternate of {users}")
        broker.delete_exchange(name)

    def gated(self, broker: Broker, name: str) -> Exchange | None:
        return self.find(broker, name)

    def entities(self, broker: Broker) -> Iterable[Exchange]:
        return broker.router.exchanges

    def describe(self, entity: Exchange) -> dict[str, Any]:
        found: dict[str, Any] = {"name": entity.name, "identity": entity.name, "type": self.name, _TYPE: entity.type}
        found["temporary"] = entity.owner is not None
        found.update((name, getattr(entity.settings, name)) for name in EXCHANGE_SETTING_NAMES)
        found["unroutable"] = entity.unroutable
        found["bindings"] = entity.table.size
        found.update((name, getattr(entity, name)) for name in _COUNTERS)
        return {**found, "frozen": entity.gate.hold is not None, "waiting": entity.gate.waiting}

    def find(self, broker: Broker, name: str) -> Exchange:
        """The exchange of a name."""
        exchange = broker.router.exchanges.get(name)
        if exchange is None:
            raise Refused(NOT_FOUND, f"there is no exchange {name!r}")
        return exchange

    def _understood(self, attributes: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """The type, if one is said, and the settings by our names."""
        settings: dict[str, Any] = {}
        types: set[Any] = set()
        for key, value in attributes.items():
            if key in ("type", _TYPE):
                if not (key == "type" and value in (self.name, *self.aliases)):
                    types.add(value if isinstance(value, str) else repr(value))
            elif key in _FOREIGN_SETTINGS:
                settings.update(_translated(key, value))
            elif value is None or (value == "" and key in _CHANGEABLE):
                settings[key] = getattr(DEFAULT_EXCHANGE_SETTINGS, key, None)
            else:
                settings[key] = plain(value, type_of(key))
        if len(types) > 1:
            raise Refused(BAD_REQUEST, f"the exchange can be of one type only, not {' and '.join(sorted(types))}")
        return (types.pop() if types else None), settings


def type_of(setting: str) -> type:
    """The type that a setting of an exchange has."""
    return type(getattr(DEFAULT_EXCHANGE_SETTINGS, setting, None))


def _translated(key: str, value: Any) -> dict[str, Any]:
    """A setting of an exchange as Broker-J calls it, and what it calls its values."""
    if key == "lifetimePolicy":
        return {"auto_delete": _LIFETIMES[value]} if isinstance(value, str) and value in _LIFETIMES else {}
    if key == "unroutableMessageBehaviour":
        return {"unroutable": value.lower() if isinstance(value, str) else value}
    target = unpacked(value, key) if value else None
    if target is not None and not isinstance(target, dict):
        raise Refused(BAD_REQUEST, f"alternateBinding must be a map with a destination, not {value!r}")
    return {"alternate": None if target is None else target.get("destination")}


class BindingKind(Kind["Broker"]):
    """Bindings, those of subscriptions included. One is known as ``exchange/queue/key``, or ``exchange/queue``."""

    name = "binding"
    aliases = ("org.apache.qpid.Binding",)
    named_by_key = False
    operations = ("CREATE", "READ", "UPDATE", "DELETE")
    rights = dict.fromkeys(("CREATE", "UPDATE", "DELETE"), "may_bind")
    attributes = ("name", "identity", "type", "exchange", "queue", "key", "kind", "arguments", "durable", "matched")

    def read(self, broker: Broker, name: str) -> dict[str, Any]:
        return self.describe(self.find(broker, name))

    def entities(self, broker: Broker) -> Iterable[tuple[Exchange, Bound]]:
        for exchange in broker.router.exchanges:
            exchange.table.count()
            for bound in exchange.table:
                yield exchange, bound

    def describe(self, entity: tuple[Exchange, Bound]) -> dict[str, Any]:
        exchange, bound = entity
        found = self.said(bound.binding)
        return {**found, "durable": exchange.is_durable(bound), "matched": bound.matched}

    def said(self, binding: Binding) -> dict[str, Any]:
        """What a binding says, whether it is in force or not."""
        identity = identity_of(binding)
        return {
            "name": identity,
            "identity": identity,
            "type": self.name,
            "exchange": binding.exchange,
            "queue": binding.queue,
            "key": binding.key,
            "kind": binding.kind,
            "arguments": None if binding.arguments is None else dict(binding.arguments),
        }

    def find(self, broker: Broker, name: str) -> tuple[Exchange, Bound]:
        """The binding of an identity."""
        exchange, places = places_of(broker, name)
        found = [bound for target, key in places if (bound := exchange.table.find(target, key)) is not None]
        if not found:
            raise Refused(NOT_FOUND, f"there is no binding {name!r}")
        if len(found) > 1:
            many = " and ".join(f"the {each.target!r} with the key {each.binding.key!r}" for each in found)
            raise Refused(CONFLICT, f"{name!r} may be the binding of {many}: say exchange, queue, key and kind")
        exchange.table.count()
        return exchange, found[0]


def identity_of(binding: Binding) -> str:
    """How a binding is called."""
    target = f"{MARK}{binding.queue}" if binding.kind == EXCHANGE else binding.queue
    return f"{binding.exchange}/{target}" + (f"/{binding.key}" if binding.key else "")


def places_of(broker: Broker, name: str) -> tuple[Exchange, list[tuple[str, str]]]:
    """The exchange of an identity, and what may be meant by the rest: targets by their identities, and keys.

    The names of queues, and keys, may have slashes, too.
    """
    first, slash, rest = name.partition("/")
    if not slash or not rest:
        raise Refused(BAD_REQUEST, f"a binding is called exchange/queue/key, or exchange/queue, not {name!r}")
    exchange = broker.router.exchanges.get(first)
    if exchange is None:
        raise Refused(NOT_FOUND, f"there is no exchange {first!r}")
    places = []
    slashes = [index for index, letter in enumerate(rest) if letter == "/"][:_SLASHES]
    for at in (*slashes, len(rest)):
        queue, key = rest[:at], exchange.normal(rest[at + 1 :])
        places.append((f"{QUEUE}:{queue}", key))
        if queue.startswith(MARK):
            places.append((f"{EXCHANGE}:{queue[len(MARK) :]}", key))
    return exchange, places
