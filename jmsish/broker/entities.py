"""What there is to manage: for each type of entity its attributes, and how one is made, read, changed and deleted."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from jmsish.broker.policy import DEFAULT_SETTINGS, SETTING_NAMES, QueueSettings
from jmsish.broker.views import QueueView, SubscriptionView

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker
    from jmsish.broker.exchanges import Exchange
    from jmsish.broker.subscriptions import Subscription

Home = TypeVar("Home")

BAD_REQUEST, FORBIDDEN, NOT_FOUND, TIMED_OUT, CONFLICT, GONE = 400, 403, 404, 408, 409, 410


class Refused(Exception):
    """A request that is not granted, with the status that says how."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status


class Kind(Generic[Home]):
    """A type of entity, of a broker or of a router."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]]
    """Names that other brokers have for it; of their attributes, those without a meaning here are passed over."""
    operations: ClassVar[tuple[str, ...]]
    attributes: ClassVar[tuple[str, ...]]
    settings: ClassVar[Container[str]] = ()
    """The attributes that can be given, by our names and by those of others."""
    implied: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Attributes that one of the aliases says already."""
    rights: ClassVar[Mapping[str, str]] = {}
    """Where an operation needs another right than usual."""
    named_by_key: ClassVar[bool] = True
    """The application property ``key`` may say which one is meant."""
    is_single: ClassVar[bool] = False
    """There is one, and no need to name it."""

    def create(self, broker: Home, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Make one; its attributes. Refused where there is one of that name."""
        raise NotImplementedError

    def read(self, broker: Home, name: str) -> dict[str, Any]:
        """The attributes of one. Refused where there is none of that name."""
        raise NotImplementedError

    def update(self, broker: Home, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Change some attributes; all of them, as they are now."""
        raise NotImplementedError

    def leads(self, attributes: Mapping[str, Any]) -> Iterable[str]:
        """The addresses that messages are led to by these attributes."""
        return ()

    def delete(self, broker: Home, name: str) -> None:
        """Delete one with all it holds."""
        raise NotImplementedError

    def gated(self, broker: Home, name: str) -> Exchange | None:
        """The exchange at whose gate a deletion waits while it is frozen."""
        return None

    def purge(self, broker: Home, name: str) -> int:
        """Remove the messages that are available; how many went."""
        raise NotImplementedError

    def statistics(self, broker: Home) -> dict[str, Any]:
        """Figures by the names that Broker-J has for them."""
        raise NotImplementedError

    def entities(self, broker: Home) -> Iterable[Any]:
        """Each of them, in the order of their making."""
        raise NotImplementedError

    def describe(self, entity: Any) -> dict[str, Any]:
        """The attributes of one of them."""
        raise NotImplementedError


_COUNTERS: Final = (
    "depth", "available", "acquired", "octets", "consumer_count", "enqueued", "dequeued", "redelivered",
    "dead_lettered", "expired", "dropped",
)  # fmt: skip

_FOREIGN_SETTINGS: Final[dict[str, tuple[str, dict[Any, Any]]]] = {
    "maximumDeliveryAttempts": ("max_delivery_attempts", {}),
    "maximumQueueDepthMessages": ("max_messages", {}),
    "maximumQueueDepthBytes": ("max_octets", {}),
    "messageGroupKeyOverride": ("group_key", {"JMSXGroupID": ""}),
    "holdOnPublishEnabled": ("delayed_delivery", {}),
    "messageGroupType": ("sticky_groups", {"STANDARD": True, "SHARED_GROUPS": False, "NONE": True}),
    "overflowPolicy": ("overflow", {"REJECT": "reject", "RING": "drop-head", "PRODUCER_FLOW_CONTROL": "block"}),
}
"""What Broker-J calls a setting, and what it calls its values; its -1 is our 0, no limit."""


class QueueKind(Kind["Broker"]):
    """Queues, those of subscriptions and temporary ones included."""

    name = "queue"
    aliases = ("org.apache.qpid.Queue", "org.apache.qpid.StandardQueue", "org.apache.qpid.PriorityQueue")
    operations = ("CREATE", "READ", "UPDATE", "DELETE", "PURGE", "REDIRECT")
    attributes = ("name", "identity", "type", "temporary", "redirected_to", *SETTING_NAMES, *_COUNTERS)
    settings = frozenset({*SETTING_NAMES, *_FOREIGN_SETTINGS})

    def create(self, broker: Broker, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        if name in broker.router.queues:
            raise Refused(CONFLICT, f"there is a queue {name!r} already")
        broker.declare_queue(name, **_settings(attributes))
        return self.read(broker, name)

    def read(self, broker: Broker, name: str) -> dict[str, Any]:
        return self.describe(self._find(broker, name))

    def update(self, broker: Broker, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        view = self._find(broker, name)
        now = replace(view.settings, **_checked(_settings(attributes), name))
        broker.declare_queue(name, **asdict(now))
        return self.read(broker, name)

    def leads(self, attributes: Mapping[str, Any]) -> list[str]:
        found = (attributes.get(name) for name in ("dead_letter", "expiry_address"))
        return [address for address in found if isinstance(address, str) and address]

    def delete(self, broker: Broker, name: str) -> None:
        self._find(broker, name)
        broker.delete_queue(name)

    def purge(self, broker: Broker, name: str) -> int:
        return self._find(broker, name).purge()

    def entities(self, broker: Broker) -> Iterable[QueueView]:
        return broker.queues()

    def describe(self, entity: QueueView) -> dict[str, Any]:
        settings = entity.settings
        found: dict[str, Any] = {"name": entity.name, "identity": entity.name, "type": self.name}
        found["temporary"] = entity.is_temporary
        found["redirected_to"] = entity.redirected_to
        found.update((name, getattr(settings, name)) for name in SETTING_NAMES)
        found.update((name, getattr(entity, name)) for name in _COUNTERS)
        return found

    def _find(self, broker: Broker, name: str) -> QueueView:
        if name not in broker.router.queues:
            raise Refused(NOT_FOUND, f"there is no queue {name!r}")
        return broker.queue(name)


def _settings(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by our names; null stands for what a queue has where nothing is said."""
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        if key in _FOREIGN_SETTINGS:
            name, values = _FOREIGN_SETTINGS[key]
            found[name] = 0 if value == -1 else values.get(value, value) if isinstance(value, str) else value
        else:
            found[key] = value
    usual = {key: getattr(DEFAULT_SETTINGS, key, None) for key in found}
    return {key: usual[key] if value is None else plain(value, type(usual[key])) for key, value in found.items()}


def plain(value: Any, wanted: type) -> Any:
    """A value of the setting's own type: some clients send all as texts."""
    if isinstance(value, str):
        if wanted is bool:
            return {"true": True, "false": False}.get(value.lower(), value)
        if wanted is float:
            return _float_of(value)
        return int(value) if wanted is int and value.isascii() and value.isdigit() else value
    return int(value) if type(value) is not bool and isinstance(value, int) else value


def _float_of(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text  # which is refused, as what it is


def _checked(settings: dict[str, Any], name: str) -> dict[str, Any]:
    QueueSettings.from_mapping(settings, f"the queue {name!r}")
    return settings


class TopicKind(Kind["Broker"]):
    """Topics that have been declared: exchanges of the type topic."""

    name = "topic"
    aliases = ()
    operations = ("CREATE", "READ", "DELETE")
    attributes = ("name", "identity", "type", "temporary", "bindings", "received", "routed", "dropped")

    def create(self, broker: Broker, name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
        if broker.router.exchanges.get(name) is not None:
            raise Refused(CONFLICT, f"there is an exchange {name!r} already")
        if attributes:
            raise Refused(BAD_REQUEST, f"a topic has no setting {next(iter(attributes))!r}")
        broker.declare_exchange(name, self.name)
        return self.read(broker, name)

    def read(self, broker: Broker, name: str) -> dict[str, Any]:
        return self.describe(self._find(broker, name))

    def delete(self, broker: Broker, name: str) -> None:
        broker.delete_exchange(self._find(broker, name).name)

    def gated(self, broker: Broker, name: str) -> Exchange | None:
        return self._find(broker, name)

    def entities(self, broker: Broker) -> Iterable[Exchange]:
        return (exchange for exchange in broker.router.exchanges if exchange.type == self.name)

    def describe(self, entity: Exchange) -> dict[str, Any]:
        return {
            "name": entity.name,
            "identity": entity.name,
            "type": self.name,
            "temporary": entity.owner is not None,
            "bindings": entity.table.size,
            "received": entity.received,
            "routed": entity.routed,
            "dropped": entity.dropped,
        }

    def _find(self, broker: Broker, name: str) -> Exchange:
        exchange = broker.router.exchanges.get(name)
        if exchange is None or exchange.type != self.name:
            raise Refused(NOT_FOUND, f"there is no topic {name!r}")
        return exchange


class SubscriptionKind(Kind["Broker"]):
    """Subscriptions to topics. Each is made by who subscribes; it is named here by its queue, as names may repeat."""

    name = "subscription"
    aliases = ()
    operations = ("READ", "DELETE")
    attributes = (
        "name", "identity", "type", "client_id", "topic", "selector", "no_local", "durable", "shared", "depth",
        "consumers",
    )  # fmt: skip

    def read(self, broker: Broker, name: str) -> dict[str, Any]:
        return self.describe(self._find(broker, name))

    def delete(self, broker: Broker, name: str) -> None:
        broker.delete_queue(self._find(broker, name).queue.name)

    def entities(self, broker: Broker) -> Iterable[Subscription]:
        return broker.router.subscriptions

    def describe(self, entity: Subscription) -> dict[str, Any]:
        found = asdict(SubscriptionView(entity))
        found["identity"] = found.pop("queue")
        return {"type": self.name, **found}

    def _find(self, broker: Broker, name: str) -> Subscription:
        queue = broker.router.queues.get(name)
        subscription = None if queue is None else broker.router.subscriptions.of(queue)
        if subscription is None:
            raise Refused(NOT_FOUND, f"there is no subscription with the queue {name!r}")
        return subscription


class BrokerKind(Kind["Broker"]):
    """The broker itself: there is one, by whatever name it is asked for, as any hostname reaches it."""

    name = "broker"
    aliases = ("org.apache.qpid.Broker", "org.apache.qpid.VirtualHost")
    is_single = True
    operations = ("READ", "getStatistics")
    attributes = ("name", "identity", "type", "queues", "messages", "connections")

    def read(self, broker: Broker, name: str) -> dict[str, Any]:
        return self.describe(broker)

    def entities(self, broker: Broker) -> Iterable[Broker]:
        return (broker,)

    def describe(self, entity: Broker) -> dict[str, Any]:
        broker, queues = entity, entity.router.queues.values()
        return {
            "name": broker.name,
            "identity": broker.name,
            "type": self.name,
            "queues": len(queues),
            "messages": sum(queue.depth for queue in queues),
            "connections": len(broker.connections()),
        }

    def statistics(self, broker: Broker) -> dict[str, Any]:
        found = self.read(broker, broker.name)
        return {
            "queueCount": found["queues"],
            "totalDepthOfQueuesMessages": found["messages"],
            "connectionCount": found["connections"],
        }
