"""What tests and tools see of a broker: reading what is true now, and the few things that may be done from outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from jmsish.broker.changes import Item
from jmsish.broker.exchanges import Binding, Exchange
from jmsish.broker.names import TEMPORARY
from jmsish.broker.octets import for_delivery
from jmsish.broker.policy import ExchangeSettings, QueueSettings
from jmsish.broker.queues import Queue

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.subscriptions import Subscription
    from jmsish.broker.transactions import Transaction


class QueueView:
    """A queue, live: each attribute says what holds at the moment it is read."""

    __slots__ = ("_queue",)

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __repr__(self) -> str:
        return f"<QueueView {self.name!r} depth={self.depth} available={self.available} acquired={self.acquired}>"

    @property
    def name(self) -> str:
        return self._queue.name

    @property
    def settings(self) -> QueueSettings:
        return self._queue.settings

    @property
    def is_temporary(self) -> bool:
        return self._queue.name.startswith(TEMPORARY)

    @property
    def is_deleted(self) -> bool:
        return self._queue.deleted

    @property
    def redirected_to(self) -> str | None:
        """The queue it is paired with, and which gets what is sent to this one."""
        return None if self._queue.peer is None else self._queue.peer.name

    @property
    def depth(self) -> int:
        """All messages the queue owns: available, acquired, delayed."""
        return self._queue.depth

    @property
    def available(self) -> int:
        """Messages that a consumer could have now."""
        return self._queue.available

    @property
    def acquired(self) -> int:
        """Messages that a consumer or a transaction holds."""
        return self._queue.acquired

    @property
    def octets(self) -> int:
        return self._queue.octets

    @property
    def consumer_count(self) -> int:
        return len(self._queue.consumers)

    @property
    def enqueued(self) -> int:
        """How many messages ever came in."""
        return self._queue.enqueued

    @property
    def dequeued(self) -> int:
        """How many were taken out for good: accepted, dead-lettered, purged."""
        return self._queue.dequeued

    @property
    def redelivered(self) -> int:
        """How often a message came back counted."""
        return self._queue.redelivered

    @property
    def dead_lettered(self) -> int:
        return self._queue.dead_lettered

    @property
    def expired(self) -> int:
        return self._queue.expired_count

    @property
    def dropped(self) -> int:
        """How many gave way to newer ones (overflow drop-head)."""
        return self._queue.dropped

    def payloads(self, acquired: bool = False) -> Iterator[bytes]:
        """The messages in queue order, in octets, as a consumer would get them: the available ones, or all."""
        now = self._queue.home.now()
        for payload, history in list(self._queue.places(acquired)):
            yield payload if history is None else for_delivery(payload, history.count, history.expires, now)

    def purge(self) -> int:
        """Remove what is available; what somebody holds stays. Returns how many went."""
        return self._queue.purge()


class ExchangeView:
    """An exchange, live."""

    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __repr__(self) -> str:
        return f"<ExchangeView {self.name!r} {self.type} bindings={self._exchange.table.size}>"

    @property
    def name(self) -> str:
        return self._exchange.name

    @property
    def type(self) -> str:
        return self._exchange.type

    @property
    def is_temporary(self) -> bool:
        return self._exchange.name.startswith(TEMPORARY)

    @property
    def is_deleted(self) -> bool:
        return self._exchange.deleted

    @property
    def received(self) -> int:
        """How many messages were ever sent to it."""
        return self._exchange.received

    @property
    def routed(self) -> int:
        """How many of them went to one queue or more."""
        return self._exchange.routed

    @property
    def dropped(self) -> int:
        """How many of them nobody wanted."""
        return self._exchange.dropped

    @property
    def rejected(self) -> int:
        """How many of them nobody wanted, which their senders were told."""
        return self._exchange.rejected

    @property
    def released(self) -> int:
        """How many of them nobody wanted, which their senders were given back."""
        return self._exchange.released

    @property
    def octets(self) -> int:
        """The size of all that was ever sent to it."""
        return self._exchange.octets

    @property
    def settings(self) -> ExchangeSettings:
        """The settings in force."""
        return self._exchange.settings

    @property
    def exchange(self) -> Exchange:
        """The exchange itself, for the broker's own use."""
        return self._exchange

    @property
    def is_frozen(self) -> bool:
        """Whether somebody holds it, or what waited for that is being routed."""
        return self._exchange.gate.closed

    @property
    def waiting(self) -> int:
        """How many messages and changes wait until it is not frozen any more."""
        return self._exchange.gate.waiting

    def bindings(self) -> list[Binding]:
        """The bindings in force, those of subscriptions included; in the nameless exchange, each queue's own."""
        exchange = self._exchange
        if exchange is exchange.home.nameless:
            return [Binding(exchange.name, name, name) for name in exchange.home.queues]
        return [bound.binding for bound in exchange.table]

    def matched(self, queue: str, key: str = "", *, kind: str = "queue") -> int:
        """How many messages a binding has wanted; ``InvalidDestinationError`` where there is none."""
        return self._exchange.bound(f"{kind}:{queue}", key).matched

    def bind(
        self, queue: str, key: str = "", arguments: Mapping[str, Any] | None = None, *, replace: bool = False
    ) -> bool:
        """Bind a queue; False where this binding is there already. See `Changes.bind` for what is refused."""
        return self._exchange.bind(self._exchange.home.queue(queue), key, None, arguments, replace=replace)

    def unbind(self, queue: str, key: str = "") -> bool:
        """Take a binding away; False where there was none."""
        return self._exchange.unbind(self._exchange.home.queue(queue), key)

    def bind_exchange(
        self, name: str, key: str = "", arguments: Mapping[str, Any] | None = None, *, replace: bool = False
    ) -> bool:
        """Bind another exchange, which is given what matches."""
        return self._exchange.bind(self._exchange.home.named(name), key, None, arguments, replace=replace)

    def unbind_exchange(self, name: str, key: str = "") -> bool:
        """Take the binding of another exchange away; False where there was none."""
        return self._exchange.unbind(self._exchange.home.named(name), key)

    def rebind(self, add: Iterable[Item] = (), remove: Iterable[Item] = ()) -> None:
        """Take bindings away and add others in one step."""
        self._exchange.rebind(add, remove)


@dataclass(frozen=True, slots=True, init=False)
class SubscriptionView:
    """A subscription as it was when asked for."""

    name: str
    client_id: str | None
    """None: it belongs to no client id, all may share it."""
    topic: str
    """An exchange, or a topic that is a key of ``amq.topic``, or else ``exchange/key``."""
    selector: str | None
    no_local: bool
    durable: bool
    shared: bool
    queue: str
    """The name of the queue that collects its messages."""
    depth: int
    consumers: int

    def __init__(self, subscription: Subscription) -> None:
        put = object.__setattr__
        for name in ("name", "client_id", "durable", "shared"):
            put(self, name, getattr(subscription, name))
        content, queue = subscription.content, subscription.queue
        put(self, "topic", content.topic)
        put(self, "selector", content.selector)
        put(self, "no_local", content.no_local)
        put(self, "queue", queue.name)
        put(self, "depth", queue.depth)
        put(self, "consumers", len(queue.consumers))


@dataclass(frozen=True, slots=True, init=False)
class TransactionView:
    """A transaction as it was when asked for."""

    id: bytes
    connection: str
    age: float
    posts: int
    retirements: int
    rollback_only: bool

    def __init__(self, transaction: Transaction, connection: ServerConnection, now: float) -> None:
        put = object.__setattr__
        put(self, "id", transaction.id)
        put(self, "connection", connection.container_id)
        put(self, "age", now - transaction.began if transaction.began else 0.0)
        put(self, "posts", len(transaction.posts))
        put(self, "retirements", sum(work.outcome is not None for work in transaction.work))
        put(self, "rollback_only", transaction.failure is not None)


class Seen(Protocol):
    """What is looked at of a connection, of a broker or of a router."""

    container_id: str
    peer: str
    identity: str | None
    transactions: dict[bytes, Transaction]

    def census(self) -> tuple[int, int, int]:
        """How many sessions there are, links on which the peer sends, and links on which it receives."""


@dataclass(frozen=True, slots=True, init=False)
class ConnectionView:
    """A connection as it was when asked for."""

    container_id: str
    peer: str
    identity: str | None
    sessions: int
    senders: int
    receivers: int
    transactions: int

    def __init__(self, connection: Seen) -> None:
        put = object.__setattr__
        put(self, "container_id", connection.container_id)
        put(self, "peer", connection.peer)
        put(self, "identity", connection.identity)
        sessions, senders, receivers = connection.census()
        put(self, "sessions", sessions)
        put(self, "senders", senders)
        put(self, "receivers", receivers)
        put(self, "transactions", len(connection.transactions))
