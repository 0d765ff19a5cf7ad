"""The broker: connections, queues, transactions and time, without a socket, a thread or a clock of its own.

One owner at a time calls it. Bytes go into a connection, :meth:`Broker.step` serves each queue that something happened
to and names the connections that have bytes to take, :meth:`Broker.tick` lets time pass::

    connection.receive(data)
    for each in broker.step():
        transport_of(each).write(each.take_output())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count, islice
from sys import maxsize
from typing import Any

from jmsish._version import VERSION
from jmsish.broker.admission import Admission
from jmsish.broker.authentication import Authentication
from jmsish.broker.choosing import SLICE
from jmsish.broker.config import BrokerConfig
from jmsish.broker.connection import ServerConnection
from jmsish.broker.consumers import ask_all, serve
from jmsish.broker.denials import Denials
from jmsish.broker.exchanges import NAMELESS, Exchange
from jmsish.broker.greeting import CAPABILITIES, describe
from jmsish.broker.holdings import blocks_of
from jmsish.broker.imitation import LOST, ImitatingConnection, ImitatingRouter, LosingSettlement, imitation_of
from jmsish.broker.management_links import ManagementNode
from jmsish.broker.order import Entry
from jmsish.broker.portions import Job, Portions
from jmsish.broker.querying import Queries
from jmsish.broker.queues import Queue
from jmsish.broker.reading_on import AT_ONCE
from jmsish.broker.redirects import Redirects
from jmsish.broker.router import Router
from jmsish.broker.settlement import Settlement
from jmsish.broker.slowing import Slowing
from jmsish.broker.timers import Timed, Timers
from jmsish.broker.told import Told
from jmsish.broker.transactions import Transaction
from jmsish.broker.views import ConnectionView, ExchangeView, QueueView, SubscriptionView, TransactionView
from jmsish.engine.frame_trace import engine_kind
from jmsish.engine.oauth import AskToken
from jmsish.engine.outcomes import AmqpError
from jmsish.engine.sasl import Question
from jmsish.errors import InvalidDestinationError

HIGH_WATER = 1 << 20
"""Octets of a connection's output that nobody has taken off the wire, above which it is given no more."""

SEARCHES_A_STEP = 4
"""Of queues in which consumers look for what they select, so many look on in one step; the others have their turn."""

BURIALS_A_STEP = 200
"""So many messages become dead letters in one step, in two milliseconds: of a rejected range the rest comes later."""


class Broker:
    """A whole broker as a state machine. ``clock`` gives seconds since the epoch and drives all that messages feel."""

    high_water = HIGH_WATER

    def __init__(
        self,
        name: str,
        config: Mapping[str, Any] | BrokerConfig | None = None,
        *,
        clock: Callable[[], float],
        authenticator: AskToken | None = None,
        profile: str | None = None,
    ) -> None:
        self.name = name
        self.imitation = imitation_of(profile)
        """Which other broker this one behaves as."""
        self.config = BrokerConfig.from_mapping(config)
        self.now = clock
        self.authentication = Authentication(self.config.authentication, self.config.users, authenticator)
        self.slowing = Slowing()
        self.questions: list[tuple[ServerConnection, Question]] = []
        """What is to be asked with nothing held, and :meth:`Login.answered` told."""
        self.dials: list[Any] = []
        self.denials = Denials()
        self.told = Told()
        self.admission = Admission(self.config, self.denials)
        imitation = self.imitation
        loses = imitation is not None and imitation.in_transaction == LOST
        self.settlement = LosingSettlement() if loses else Settlement()
        self.router = Router(self.config, self) if imitation is None else ImitatingRouter(self.config, self, imitation)
        self.freezes = self.router.freezes
        self._redirects = Redirects(self.router.queues)
        self.management = ManagementNode(self)
        self._connections: dict[ServerConnection, None] = {}
        self._containers: dict[str, list[ServerConnection]] = {}
        self._dirty: list[Queue] = []
        self._unfinished: dict[Queue, None] = {}
        self.touched: dict[ServerConnection, None] = {}
        """Connections that may have output."""
        self._timers = Timers()
        self._numbers = count(1)
        self.portions = Portions()
        self.queries = Queries(self.portions)
        self._engine_limits = replace(self.config.caps.of_engine(), most_disposed=AT_ONCE)

    # --- driven by the driver

    def accept(
        self,
        *,
        trusted: bool,
        identity: str | None = None,
        peer: str = "",
        certificate: Mapping[str, Any] | None = None,
        exposed: bool = False,
        role: str | None = None,
    ) -> ServerConnection:
        """A new connection; ``trusted`` is one inside the process, ``identity`` a name that needs no proof.

        ``certificate`` is what TLS has verified of the peer, and ``exposed`` says that others can read the wire. Doors
        of another ``role`` than that for clients are of a router only, and the configuration sees to that.
        """
        asked = self.authentication.offer(trusted=trusted, identity=identity, certificate=certificate, exposed=exposed)
        caps = self.config.caps
        engine = engine_kind()(
            server=True,
            container_id=f"jmsish-broker-{self.name}",
            opening_timeout=caps.opening_timeout or None,
            limits=self._engine_limits,
            sasl=asked,
            **(self._opening() if self.imitation is None else self.imitation.opening()),
        )
        kind = ServerConnection if self.imitation is None else ImitatingConnection
        connection = kind(self, engine, next(self._numbers), identity, peer)
        connection.is_trusted = trusted
        denials = self.denials
        denials.connections_processed += 1
        if len(self._connections) >= self.config.max_connections:
            denials.connection_denied(None)
            connection.turn_away()
            return connection
        denials.connections_current += 1
        self._connections[connection] = None
        return connection

    def _opening(self) -> dict[str, Any]:
        """What the open says of this broker, where it imitates no other."""
        caps = self.config.caps
        return {
            "max_frame_size": caps.max_frame_size,
            "channel_max": caps.max_sessions - 1,
            "idle_timeout": caps.idle_timeout or None,
            "offered_capabilities": CAPABILITIES,
            "properties": describe(VERSION),
        }

    def step(self) -> list[ServerConnection]:
        """Serve every queue that something happened to, once; the connections that have output."""
        now = self.now()
        self.portions.go_on()
        if self._unfinished:
            for queue in list(islice(self._unfinished, SEARCHES_A_STEP)):
                del self._unfinished[queue]
                queue.wake()
        if self.freezes.unfinished:
            self.freezes.call_on()
        left = self._bury(BURIALS_A_STEP)
        # A queue may be marked again while it is served, by a default outcome that puts back: it is served again.
        patience = SEARCHES_A_STEP * SLICE
        while self._dirty:
            patience = self._serve(now, patience)
            left = self._bury(left)
        busy = [connection for connection in self.touched if connection.engine.output_size or connection.closed]
        self.touched.clear()
        return busy

    def _serve(self, now: float, patience: int) -> int:
        """Each marked queue; how many messages may still be looked at in this step."""
        dirty, self._dirty = self._dirty, []
        left = iter(dirty)
        try:
            for queue in left:
                if not (queue.deleted or queue.halts):
                    given = min(SLICE, max(patience, 0))
                    serve(queue, now, given)
                    patience -= given - queue.patience
        except Exception:
            for queue in left:  # in the next step, as they are marked, and nobody marks them again
                self._dirty.append(queue)
            raise
        return patience

    def interrupted(self) -> None:
        """The program was interrupted (Ctrl-C) in the middle of anything: nothing that was noted for later counts."""
        for queue in list(self.router.queues.values()):
            ask_all(queue)

    @property
    def unfinished(self) -> bool:
        """There is more to do than was done in the last step, for the sake of all others: call it again soon."""
        return bool(self._unfinished or self.freezes.unfinished or self.portions or self.settlement.has_dead)

    def _bury(self, most: int) -> int:
        """Carry so many to the dead letters, at most; how many more there may be in this step."""
        dead = self.settlement.take_dead(most)
        for queue, entry, reason, error in dead:
            self.router.bury(queue, entry, reason, error)
        return most - len(dead)

    def tick(self, now: float) -> float | None:
        """Let time pass (by the broker's clock): expiry, delays, transaction timeouts. When to come back."""
        return self._timers.ring(now)

    def close(self, reason: str = "the broker stops") -> None:
        """End all connections with a word of farewell."""
        error = AmqpError("amqp:connection:forced", reason)
        self.freezes.stop()
        for connection in list(self._connections):
            connection.close(error)
        self.portions.finish()
        self._bury(maxsize)

    # --- asked by faces and tools

    def queue(self, name: str) -> QueueView:
        """A view of a queue that exists."""
        queue = self.router.queues.get(name)
        if queue is None:
            raise InvalidDestinationError(f"there is no queue {name!r}")
        return QueueView(queue)

    def queues(self) -> list[QueueView]:
        """Views of all queues, temporary ones included."""
        return [QueueView(queue) for queue in self.router.queues.values()]

    def declare_queue(self, name: str, **settings: Any) -> QueueView:
        """Make a queue, or give one that exists these settings from now on."""
        return QueueView(self.router.declare(name, settings))

    def delete_queue(self, name: str) -> None:
        """Delete a queue with all it owns; its consumers are detached."""
        queue = self.router.queues.get(name)
        if queue is None:
            raise InvalidDestinationError(f"there is no queue {name!r}")
        self._redirects.forget(queue)
        self.router.delete(queue)

    def redirect(self, source: str, target: str) -> None:
        """Pair two queues: what is sent to either goes into the other from now on (QPID-4650)."""
        self._redirects.begin(source, target)

    def end_redirect(self, source: str) -> int:
        """End the pair of a queue; how many messages went back to the queue they had been sent to."""
        return self._redirects.end(source)

    def exchange(self, name: str) -> ExchangeView:
        """A view of an exchange that exists."""
        return ExchangeView(self._exchange(name))

    def exchanges(self) -> list[ExchangeView]:
        """Views of all exchanges, temporary topics included."""
        return [ExchangeView(exchange) for exchange in self.router.exchanges]

    def declare_exchange(self, name: str, type: str, **settings: Any) -> ExchangeView:
        """Make an exchange, or find the one that is there and give it these settings from now on."""
        return ExchangeView(self.router.exchanges.declare(name, type, settings))

    def delete_exchange(self, name: str) -> None:
        """Delete an exchange with its bindings and subscriptions; its producers and subscribers are detached."""
        exchange = self._exchange(name)
        self.router.exchanges.check_deletable(exchange)
        self.router.delete_exchange(exchange)

    def _exchange(self, name: str) -> Exchange:
        exchanges = self.router.exchanges
        return exchanges.nameless if name == NAMELESS else exchanges.named(name)

    def change_policy(self, settings: Mapping[str, Any]) -> None:
        """Change keys of ``[policy]``, for what comes from now on; ``ValueError`` names all that is wrong."""
        config = replace(self.config, **self.admission.change(settings))
        self.config = self.admission.config = self.router.config = config

    def subscriptions(self) -> list[SubscriptionView]:
        """The subscriptions to topics, as they are at this moment."""
        return [SubscriptionView(subscription) for subscription in self.router.subscriptions]

    def transactions(self) -> list[TransactionView]:
        """The transactions that are declared and not discharged."""
        now = self.now()
        return [
            TransactionView(transaction, connection, now)
            for connection in self._connections
            for transaction in connection.transactions.values()
        ]

    def connections(self) -> list[ConnectionView]:
        """The open connections."""
        return [ConnectionView(connection) for connection in self.opened_connections()]

    def explained(self) -> int:
        """About how many blocks of memory its contents are made of."""
        return blocks_of(self._connections, self.router.queues.values())

    # --- asked by the rooms of the broker

    def wake(self, queue: Queue) -> None:
        self._dirty.append(queue)

    def resume(self, queue: Queue) -> None:
        self._unfinished[queue] = None

    def begin(self, job: Job) -> None:
        self.portions.begin(job)

    def schedule(self, due: float, queue: Queue) -> None:
        self._timers.add(due, queue)

    def expired(self, queue: Queue, entry: Entry) -> None:
        self.router.carry_expired(queue, entry)

    def remind(self, due: float, timed: Timed) -> None:
        """Call ``timed.on_time`` then."""
        self._timers.add(due, timed)

    def dismiss(self, timed: Timed) -> None:
        """It has gone, or come to an end: whatever it was to be called for."""
        self._timers.dismiss(timed)

    def touch(self, connection: ServerConnection) -> None:
        """The connection may have output."""
        self.touched[connection] = None

    def next_number(self) -> int:
        return next(self._numbers)

    def opened(self, connection: ServerConnection) -> None:
        self._containers.setdefault(connection.container_id, []).append(connection)

    def opened_connections(self) -> list[ServerConnection]:
        return [connection for each in self._containers.values() for connection in each]

    def open_connections(self, container_id: str) -> Iterable[ServerConnection]:
        return self._containers.get(container_id, ())

    def forget(self, connection: ServerConnection) -> None:
        """The connection has ended."""
        if connection in self._connections:
            del self._connections[connection]
            self.denials.connections_current -= 1
            self.admission.leave(connection)
        same = self._containers.get(connection.container_id)
        if same is not None and connection in same:
            same.remove(connection)
            if not same:
                del self._containers[connection.container_id]

    def worked(self, transaction: Transaction) -> None:
        """Something was done in a transaction: its time runs from the first (D15), its idleness from the last.

        Its times are those that are configured when it begins to work, whatever is changed later.
        """
        config = self.config
        if config.max_transaction_size and transaction.size > config.max_transaction_size:
            transaction.outgrow(config.max_transaction_size)
        if not transaction.began:
            transaction.began = self.now()
            times = ((config.transaction_timeout, _Timeout), (config.transaction_idle_timeout, _IdleTimeout))
            for seconds, kind in times:
                if seconds:
                    limit = kind(self, transaction, seconds)
                    self._timers.add(transaction.began + seconds, limit)
                    transaction.limits.append(limit)
        if transaction.limits:
            transaction.last = self.now()


class _Timeout:
    """The end of a transaction's time."""

    __slots__ = ("_broker", "_transaction", "seconds")

    def __init__(self, broker: Broker, transaction: Transaction, seconds: float) -> None:
        self._broker = broker
        self._transaction = transaction
        self.seconds = seconds

    def on_time(self, now: float) -> None:
        transaction = self._transaction
        if transaction.connection.transactions.get(transaction.id) is transaction:
            self._judge(transaction, now)

    def _judge(self, transaction: Transaction, now: float) -> None:
        self._time_out(transaction, f"it was open longer than {self.seconds:g} s")

    def _time_out(self, transaction: Transaction, description: str) -> None:
        transaction.time_out(self._broker.settlement, description)
        self._broker.touch(transaction.connection)


class _IdleTimeout(_Timeout):
    """The end of a transaction's patience: rings again where there was work meanwhile."""

    __slots__ = ()

    def _judge(self, transaction: Transaction, now: float) -> None:
        due = transaction.last + self.seconds
        if due > now:
            self._broker._timers.add(due, self)
        else:
            self._time_out(transaction, f"nothing was done in it for more than {self.seconds:g} s")
