"""From addresses to queues and topics: made on first use or declared, temporary, deleted; and where dead letters go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any, Final

from jmsish.broker.config import BrokerConfig
from jmsish.broker.deadletters import EXPIRED, dead_letter
from jmsish.broker.dynamic import Lifetimes, NodeWishes
from jmsish.broker.exchanges import DISCARD, TOPIC, Exchange, Exchanges
from jmsish.broker.freezes import Freezes
from jmsish.broker.grants import PERMISSIVE, Grant
from jmsish.broker.names import SUBSCRIPTION, TEMPORARY, check_queue_name
from jmsish.broker.order import ACQUIRED, Entry
from jmsish.broker.policy import DEFAULT_SETTINGS, QueueSettings
from jmsish.broker.queues import Queue
from jmsish.broker.refusals import NOT_FOUND, RESOURCE_LIMIT_EXCEEDED, UNAUTHORIZED_ACCESS, Refusal
from jmsish.broker.subscriptions import Home, Subscriptions
from jmsish.engine.outcomes import AmqpError
from jmsish.errors import ResourceAllocationError

QUEUE: Final = "queue"
KINDS: Final = {"queue": QUEUE, "temporary-queue": QUEUE, "topic": TOPIC, "temporary-topic": TOPIC}
"""Which kind of node a capability of a terminus asks for (M45)."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What an address means where it means no queue: an exchange, with a key or with all of them."""

    exchange: Exchange
    key: str | None = None
    """None: a sender's messages say it, each by its subject; a receiver gets them all."""
    published: bool = False
    """Asked for as a topic, by name: in JMS one publishes whether anybody subscribes or not."""

    @property
    def unroutable(self) -> str:
        """What becomes of a message that nothing is bound for: what the exchange was told, or else nothing."""
        return self.exchange.settings.unroutable or DISCARD


def kind_of(capabilities: Iterable[str]) -> str | None:
    """The kind of node that a terminus asks for; both are none, and leave it to the address."""
    kinds = {KINDS[name] for name in capabilities if name in KINDS}
    return kinds.pop() if len(kinds) == 1 else None


class Router:
    """All queues by name, and the exchanges and subscriptions that lead to them."""

    def __init__(self, config: BrokerConfig, home: Home) -> None:
        self.queues: dict[str, Queue] = {}
        self.exchanges = Exchanges(self.queues)
        self.freezes = Freezes(self.exchanges, home, self.exchange_of)
        self.subscriptions = Subscriptions(self, home)
        self.lifetimes = Lifetimes(home, self)
        self.config = config
        self._home = home
        for name, settings in config.queues.items():
            self._make(name, settings)
        config.declare_exchanges(self.exchanges)

    def resolve(self, address: str, kind: str | None = None, grant: Grant = PERMISSIVE) -> Queue | Topic:
        """What an address means (3.5.1: it names a node), a queue made now if it may be; Refusal where nothing.

        An existing queue of exactly that name, an exchange of that name, ``exchange/key`` where the exchange exists,
        else a queue made on first use. A topic is never a queue: if it is no exchange, it is a key of ``amq.topic``.
        """
        if kind != TOPIC:
            queue = self.queues.get(address)
            if queue is not None:
                return queue
        topic = self._topic(address)
        if topic is not None:
            return replace(topic, published=kind == TOPIC)
        if address.startswith(TEMPORARY):
            raise Refusal(NOT_FOUND, f"the temporary {kind or 'queue'} {address!r} is gone")
        if address.startswith(SUBSCRIPTION):
            raise Refusal(NOT_FOUND, f"the subscription with the queue {address!r} is gone")
        if kind == TOPIC:
            if self.config.auto_create:
                return Topic(self.exchanges.topic, address)
            raise Refusal(NOT_FOUND, f"there is no topic {address!r}: it needs an exchange of that name")
        if not self.config.auto_create:
            raise Refusal(NOT_FOUND, f"there is no queue {address!r}")
        if not grant.may_create:
            raise Refusal(UNAUTHORIZED_ACCESS, f"there is no queue {address!r}, and it may not be created (may_create)")
        self.check_room()
        return self._make(address, self._usual(address))

    def check_room(self) -> None:
        """There may be one queue more; Refusal where not. Queues for dead letters are made all the same."""
        most = self.config.max_queues
        if most and len(self.queues) >= most:
            raise Refusal(RESOURCE_LIMIT_EXCEEDED, f"there are {len(self.queues)} queues, and max_queues is {most}")

    def exchange_of(self, address: str, capability: str) -> tuple[Exchange, str | None] | None:
        """The exchange, and the key if it says one, that an address means; None for queues. Nothing is made."""
        kind = KINDS.get(capability)
        if kind != TOPIC and address in self.queues:
            return None
        topic = self._topic(address)
        if topic is not None:
            return topic.exchange, topic.key
        return (self.exchanges.topic, address) if kind == TOPIC else None

    def _topic(self, address: str) -> Topic | None:
        exchange = self.exchanges.get(address)
        if exchange is not None:
            return Topic(exchange)
        name, slash, key = address.partition("/")
        exchange = self.exchanges.get(name) if slash else None
        return None if exchange is None else Topic(exchange, key)

    def declare(self, name: str, settings: Mapping[str, Any]) -> Queue:
        """The queue of that name with these settings; one that is there takes them over from now on."""
        queue = self.queues.get(name) if isinstance(name, str) else None
        if queue is None:
            check_queue_name(name, "a queue")
        checked = QueueSettings.from_mapping(settings, f"the queue {name!r}")
        if queue is None:
            try:
                self.check_room()
            except Refusal as refusal:
                raise ResourceAllocationError(f"the queue {name!r} cannot be made: {refusal}") from None
            return self._make(name, checked)
        queue.change(checked)
        return queue

    def make_temporary(self, wishes: NodeWishes, owner: object) -> Queue | Exchange:
        """A queue or exchange with a name nobody used before; with an owner, only that connection receives from it."""
        name = f"{TEMPORARY}{token_hex(16)}"
        node: Queue | Exchange
        if wishes.topic:
            node = self.exchanges.make(name, wishes.type, wishes.exchange_settings, owner)
        else:
            self.check_room()
            node = self._make(name, wishes.queue_settings, owner)
        self.lifetimes.begin(node, wishes.lifetime)
        return node

    def make_unlisted(self, owner: object) -> Queue:
        """A queue that is none of those by name: not counted, not seen, and deleted by who asked for it."""
        return Queue(f"{TEMPORARY}{token_hex(16)}", DEFAULT_SETTINGS, self._home, owner)

    def make_reserved(self, name: str) -> Queue:
        """The queue of a subscription; who asks for it has looked whether there is room."""
        return self._make(name, DEFAULT_SETTINGS)

    def delete(self, queue: Queue) -> None:
        """Remove a queue with all it owns; its consumers and producers lose it."""
        if self.queues.get(queue.name) is queue:
            del self.queues[queue.name]
        queue.deleted = True
        self._home.dismiss(queue)
        self.exchanges.forget(queue)
        self.subscriptions.forget(queue)
        self.lifetimes.forget(queue)
        for consumer in list(queue.consumers.values()):
            consumer.lost_queue()
        for producer in list(queue.producers):
            producer.lost_queue()
        waiting, queue.starved = queue.starved, None
        for producer in waiting or ():
            producer.top_up()  # it sends to a topic, and for want of this queue it need not wait
        levels, queue.levels = queue.levels, []
        for level in levels:
            level.let_go()
        queue.calendar = queue.groups = None

    def delete_exchange(self, exchange: Exchange) -> None:
        """Remove an exchange and all that subscribes to it; its producers lose it."""
        queues = dict.fromkeys(bound.queue for bound in exchange.table if bound.queue is not None)
        self.exchanges.remove(exchange)
        self.freezes.deleted(exchange)
        for queue in queues:
            subscription = self.subscriptions.of(queue)
            if subscription is not None and subscription.content.exchange is exchange:
                self.delete(queue)

    def _usual(self, name: str) -> QueueSettings:
        """What a queue has that is made by its use: what the configuration says, also where it was deleted since."""
        return self.config.queues.get(name, DEFAULT_SETTINGS)

    def _make(self, name: str, settings: QueueSettings, owner: object = None) -> Queue:
        queue = self.queues[name] = Queue(name, settings, self._home, owner)
        return queue

    # --- dead letters

    def bury(self, queue: Queue, entry: Entry, reason: str, error: AmqpError | None) -> None:
        """Archive an entry in hand and put it into the dead-letter queue; what dies there is dropped (D13)."""
        entry.state = ACQUIRED
        queue.archive(entry)
        queue.dead_lettered += 1
        self._carry(queue, entry, queue.settings.dead_letter, reason, error)

    def carry_expired(self, queue: Queue, entry: Entry) -> None:
        """An expired message, archived already, goes to the expiry address, or nowhere."""
        self._carry(queue, entry, queue.settings.expiry_address, EXPIRED, None)

    def _carry(self, queue: Queue, entry: Entry, name: str, reason: str, error: AmqpError | None) -> None:
        if not name or name == queue.name or queue.deleted:
            return
        target = self.queues.get(name) or self._make(name, self._usual(name))
        subscription = self.subscriptions.of(queue)
        temporary = queue.name.startswith(TEMPORARY)
        kind = "subscription" if subscription is not None else "temporary-queue" if temporary else "queue"
        content = None if subscription is None else subscription.content
        target.add(dead_letter(queue, entry, reason, error, self._home.now(), kind, content))
