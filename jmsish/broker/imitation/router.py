"""Addresses, nodes and outcomes of an imitated broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from jmsish.broker.exchanges import TOPIC
from jmsish.broker.grants import PERMISSIVE, Grant
from jmsish.broker.names import SUBSCRIPTION, TEMPORARY
from jmsish.broker.policy import DEFAULT_SETTINGS, QueueSettings
from jmsish.broker.refusals import INVALID_FIELD, NOT_FOUND, Refusal
from jmsish.broker.router import QUEUE, Router, Topic
from jmsish.broker.settlement import Settlement

if TYPE_CHECKING:
    from jmsish.broker.config import BrokerConfig
    from jmsish.broker.consumers import Consumer
    from jmsish.broker.imitation.table import Imitation
    from jmsish.broker.order import Entry
    from jmsish.broker.queues import Queue
    from jmsish.broker.subscriptions import Home
    from jmsish.engine.outcomes import DeliveryState


class ImitatingRouter(Router):
    """What addresses mean, and what a queue is for which nothing was declared."""

    def __init__(self, config: BrokerConfig, home: Home, imitation: Imitation) -> None:
        self._imitation = imitation
        self.reading = False
        """The address is that of a source."""
        super().__init__(replace(config, auto_create=config.auto_create and imitation.auto_create), home)

    def resolve(self, address: str, kind: str | None = None, grant: Grant = PERMISSIVE) -> Queue | Topic:
        imitation = self._imitation
        if imitation.addresses == "rabbitmq":
            return self._version_2(address)
        if imitation.addresses == "rabbitmq-3":
            return self._version_1(address, grant)
        if imitation.prefixes is not None:
            for prefix, of_kind in zip(imitation.prefixes, (QUEUE, TOPIC), strict=True):
                if address.startswith(prefix):
                    return super().resolve(address[len(prefix) :], of_kind, grant)
        if kind is None and imitation.topic_by_default and address not in self.queues:
            kind = TOPIC
        return super().resolve(address, kind, grant)

    def _version_2(self, address: str) -> Queue | Topic:
        """``/queues/:queue`` at both ends, ``/exchanges/:exchange`` and ``/exchanges/:exchange/:key`` at targets."""
        parts = address.split("/")
        if parts[0] == "" and len(parts) == 3 and parts[1] == "queues" and parts[2]:
            name = unquote(parts[2])
            queue = self.queues.get(name)
            if queue is not None:
                return queue
            if self.reading:
                raise Refusal(NOT_FOUND, f"no queue '{name}' in vhost '/'")
            return Topic(self.exchanges.nameless, name)
        if parts[0] == "" and len(parts) in (3, 4) and parts[1] == "exchanges" and parts[2] and not self.reading:
            return self._exchange(unquote(parts[2]), unquote(parts[3]) if len(parts) == 4 else "")
        raise Refusal(INVALID_FIELD, f"bad v2 address string: {address!r}")

    def _version_1(self, address: str, grant: Grant) -> Queue | Topic:
        """A name, ``/queue/:queue``, ``/amq/queue/:queue``, ``/topic/:key``, ``/exchange/:exchange/:key``."""
        parts = address.split("/")
        if len(parts) == 1:
            return super().resolve(unquote(address), QUEUE, grant)
        if parts[:2] == ["", "queue"] and len(parts) == 3:
            return super().resolve(unquote(parts[2]), QUEUE, grant)
        if parts[:3] == ["", "amq", "queue"] and len(parts) == 4:
            return super().resolve(unquote(parts[3]), QUEUE, grant)
        if parts[:2] == ["", "topic"] and len(parts) == 3:
            return Topic(self.exchanges.topic, unquote(parts[2]))
        if parts[:2] == ["", "exchange"] and len(parts) in (3, 4):
            return self._exchange(unquote(parts[2]), unquote(parts[3]) if len(parts) == 4 else "")
        raise Refusal(INVALID_FIELD, f"unknown_destination: {address!r}")

    def _exchange(self, name: str, key: str) -> Topic:
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise Refusal(NOT_FOUND, f"no exchange '{name}' in vhost '/'")
        return Topic(exchange, key)

    def _make(self, name: str, settings: QueueSettings, owner: object = None) -> Queue:
        if settings == DEFAULT_SETTINGS and owner is None and not name.startswith((TEMPORARY, SUBSCRIPTION)):
            settings = self._usual(name)
        return super()._make(name, settings, owner)

    def declare(self, name: str, settings: Mapping[str, Any]) -> Queue:
        """What is not said is as the imitated broker has it."""
        if isinstance(name, str) and name not in self.queues:
            settings = {**asdict(self._usual(name)), **settings}
        return super().declare(name, settings)

    def _usual(self, name: str) -> QueueSettings:
        usual = self._imitation.queue
        end = usual.dead_letter.removeprefix("{}")
        is_last = end != usual.dead_letter and name.endswith(end)
        return replace(usual, dead_letter="" if is_last else usual.dead_letter.format(name))


class LosingSettlement(Settlement):
    """Loses what was released in a transaction that was rolled back (Broker-J 9.2.1)."""

    __slots__ = ("doomed",)

    def __init__(self) -> None:
        super().__init__()
        self.doomed: set[Entry] = set()
        """Released in a transaction that is open."""

    def apply(self, consumer: Consumer, entry: Entry, outcome: DeliveryState) -> bool:
        self.doomed.discard(entry)
        return super().apply(consumer, entry, outcome)

    def apply_default(self, consumer: Consumer, entry: Entry, default: DeliveryState | None, *, seen: bool) -> None:
        if entry in self.doomed:
            self.doomed.discard(entry)
            consumer.queue.archive(entry)
        else:
            super().apply_default(consumer, entry, default, seen=seen)
