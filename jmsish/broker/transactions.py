"""A local transaction: what is posted and what is retired in it, done as one step or not at all (Part 4).

Commit first checks everything that can fail, then applies what cannot: first the retirements, then the posts, which
take their sequence numbers only now (redelivery b.5, 10).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from jmsish.broker.names import SUBSCRIPTION
from jmsish.broker.order import ACQUIRED, Entry
from jmsish.broker.queues import Arrival, Queue
from jmsish.broker.settlement import Settlement
from jmsish.engine.outcomes import Accepted, AmqpError, DeliveryState

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.coordinator import ControlLink
    from jmsish.broker.outgoing import OutgoingLink
    from jmsish.broker.parking import Parked
    from jmsish.broker.timers import Timed
    from jmsish.engine.delivery import Delivery

ROLLBACK = "amqp:transaction:rollback"
TIMEOUT = "amqp:transaction:timeout"
UNKNOWN_ID = "amqp:transaction:unknown-id"

_log = logging.getLogger("jmsish.broker")


class Stand(Protocol):
    """What takes messages in place of a queue: for several that a message is routed to, or the management node."""

    @property
    def present(self) -> tuple[Queue, ...]:
        """The queues it stands for."""

    def append(self, payload: bytes, priority: int) -> None:
        """A message without a past."""

    def add(self, arrival: Arrival) -> None:
        """A message with all that its header and annotations ask."""

    def refusal(self, messages: int, octets: int) -> str | None:
        """Why so much more cannot come in, or None."""


Sink = Queue | Stand
"""What takes messages."""
Post = tuple[Sink, int | Arrival, bytes]
"""A message that waits for the commit: where it goes (routed when it came), what it asks there, its octets."""


class Work:
    """A delivery taken part in a transaction: acquired under it, or given an outcome under it, or both."""

    __slots__ = ("acquired", "consumer", "delivery", "entry", "outcome", "settled", "transaction")

    def __init__(self, transaction: Transaction, consumer: OutgoingLink, delivery: Delivery, entry: Entry) -> None:
        self.transaction = transaction
        self.consumer = consumer
        self.delivery: Delivery | None = delivery
        """None once its link or session is gone."""
        self.entry = entry
        self.outcome: DeliveryState | None = None
        self.settled = delivery.settled
        """The peer cannot change its mind: one of the ends settled, or its link or session is gone."""
        self.acquired = False
        """Acquired under the transaction (4.4.3)."""


class Transaction:
    """One declared, not yet discharged transaction."""

    __slots__ = (
        "acquirers", "began", "connection", "control", "copies", "deliveries", "failure", "id", "last", "limits",
        "parked", "posts", "resume", "work",
    )  # fmt: skip

    def __init__(self, txn_id: bytes, connection: ServerConnection, control: ControlLink) -> None:
        self.id = txn_id
        self.connection = connection
        self.control = control
        self.began = 0.0
        """When the first work came in, 0 before (D15)."""
        self.last = 0.0
        """When the last work came in, where the broker has a limit to idleness."""
        self.limits: list[Timed] = []
        """What ends it when its time is over, where it has a limit."""
        self.posts: list[Post] = []
        self.copies = 0
        """What posts to topics are more than one: a commit puts a message into each queue it was routed to."""
        self.work: list[Work] = []
        self.acquirers: list[OutgoingLink] = []
        """Links whose credit belongs to it (4.4.3)."""
        self.deliveries: list[tuple[Delivery, DeliveryState]] = []
        """Posted deliveries that are not settled, and the state they are to show after the commit (T61)."""
        self.failure: AmqpError | None = None
        """Set once it can only be rolled back."""
        self.parked: dict[Parked, None] = {}
        """Messages posted in it that wait for a frozen exchange: a commit waits for them."""
        self.resume: Callable[[], None] | None = None
        """The commit that waits."""

    def fail(self, condition: str, description: str) -> None:
        """From now on it can only be rolled back; the first cause is kept."""
        if self.failure is None:
            self.failure = AmqpError(condition, description)

    @property
    def size(self) -> int:
        """How much a discharge has to do: posts, further copies of them, and retirements."""
        return len(self.posts) + self.copies + len(self.work)

    def outgrow(self, limit: int) -> None:
        """It has become too large: it can only be rolled back, and what it posted is dropped already."""
        self.fail(ROLLBACK, f"it has more than {limit:,} posts and retirements (policy.max_transaction_size)")
        self.posts.clear()
        self.copies = 0

    def retire(
        self, consumer: OutgoingLink, delivery: Delivery, entry: Entry, outcome: DeliveryState | None, settled: bool
    ) -> None:
        """Enlist the outcome of a delivery; without one the default outcome will apply (T76)."""
        work = entry.work
        if not isinstance(work, Work):
            work = Work(self, consumer, delivery, entry)
            entry.work = work
            self.work.append(work)
        work.outcome = outcome
        work.settled = work.settled or settled

    def acquire(self, consumer: OutgoingLink, delivery: Delivery, entry: Entry) -> None:
        """A message is acquired under the transaction as it is sent (4.4.3)."""
        work = Work(self, consumer, delivery, entry)
        work.acquired = True
        entry.work = work
        self.work.append(work)

    def refusal(self) -> AmqpError | None:
        """Why it cannot be committed, or None: everything that can fail is found here."""
        if self.failure is not None:
            return self.failure
        why = self._lack_of_room()
        if why:
            return AmqpError(ROLLBACK, why)
        for work in self.work:
            queue = work.consumer.queue
            # What was taken from a subscription that has ended since is gone with it, and that is what was wanted.
            if queue.deleted and not queue.name.startswith(SUBSCRIPTION):
                return AmqpError(ROLLBACK, f"the queue {queue.name!r} is gone")
        return None

    def _lack_of_room(self) -> str | None:
        sums: dict[Sink, list[int]] = {}
        for target, _, payload in self.posts:
            total = sums.setdefault(target, [0, 0])
            total[0] += 1
            total[1] += len(payload)
        # One queue may be the target of some posts, and one of several that others are routed to.
        of_queues: dict[Queue, list[int]] = {}
        for target, (messages, octets) in sums.items():
            for queue in (target,) if isinstance(target, Queue) else target.present:
                total = of_queues.setdefault(queue, [0, 0])
                total[0] += messages
                total[1] += octets
        return next(filter(None, (queue.refusal(*total) for queue, total in of_queues.items())), None)

    def commit(self, settlement: Settlement) -> None:
        """Apply all of it; nothing here can fail. Posted messages become visible last."""
        work, posts = self._end()
        for each in work:
            _commit(each, settlement)
        for queue, arrival, payload in posts:
            if isinstance(arrival, int):
                queue.append(payload, arrival)
            else:
                queue.add(arrival)

    def unparked(self, parked: Parked) -> None:
        """A message waits no more."""
        self.parked.pop(parked, None)
        resume = self.resume
        if resume is not None and not self.parked:
            self.resume = None
            resume()

    def roll_back(self, settlement: Settlement) -> None:
        """Undo all of it: what was posted never was, what was retired is as its settlement says (1.9)."""
        self.resume = None
        for parked in list(self.parked):
            parked.forget()
        work, _ = self._end()
        for each in work:
            _roll_back(each, settlement)

    def time_out(self, settlement: Settlement, description: str) -> None:
        """Too long open or idle: undone now, and never to be committed, though its id is known on."""
        self.fail(TIMEOUT, description)
        self.mourn(description)
        self.roll_back(settlement)

    def mourn(self, reason: str) -> None:
        """Say in the log that work is about to be undone which nobody asked to undo."""
        if not (self.posts or self.work):
            return
        broker = self.connection.broker
        more = broker.told.more("rollback", broker.now())
        if more is not None:
            _log.warning(
                "transaction %s of %r is rolled back: %s (%d posted, %d taken)%s",
                self.id.hex(), self.connection.container_id, reason, len(self.posts), len(self.work), more,
            )  # fmt: skip

    def _end(self) -> tuple[list[Work], list[Post]]:
        # "When a transaction is discharged, the txn-id of any link endpoints will be cleared"; not its credit (4.4.3).
        for link in self.acquirers:
            link.transaction = None
        self.acquirers.clear()
        for limit in self.limits:
            self.connection.broker.dismiss(limit)
        self.limits.clear()
        work, posts = self.work, self.posts
        self.work, self.posts = [], []
        return work, posts


def _commit(work: Work, settlement: Settlement) -> None:
    entry, consumer = work.entry, work.consumer
    entry.work = None
    if entry.state != ACQUIRED:
        return
    if work.outcome is not None and settlement.apply(consumer, entry, work.outcome):
        consumer.confirm(work.delivery, work.outcome)
    elif work.acquired and consumer.presettled and work.outcome is None:
        consumer.presettled_sent(work.delivery, entry)
    elif work.settled:
        consumer.apply_settled_without_state(settlement, entry)
    # Otherwise acquired and not disposed of, or only in part: it stays with the receiver (T89).


def _roll_back(work: Work, settlement: Settlement) -> None:
    entry, consumer = work.entry, work.consumer
    entry.work = None
    if entry.state != ACQUIRED:
        return
    if work.acquired:
        _undo_acquisition(work, settlement)
    elif work.settled:
        settlement.apply_default(consumer, entry, consumer.default_outcome, seen=True)
    # Otherwise unsettled: it is the receiver's again, as if it had said nothing (T74).


def _undo_acquisition(work: Work, settlement: Settlement) -> None:
    """Acquisition and outcome are both undone: the message is back (T87-T89), counted if an outcome was given."""
    entry, consumer = work.entry, work.consumer
    default = consumer.default_outcome
    if work.outcome is None:
        consumer.queue.put_back(entry)
    elif isinstance(default, Accepted):
        settlement.apply_default(consumer, entry, None, seen=True)
    else:
        settlement.apply_default(consumer, entry, default, seen=True)
    consumer.withdraw(work.delivery)
