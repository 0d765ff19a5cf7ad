"""Outgoing links: messages of one queue to one receiver, and what its dispositions and its end do to them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from sys import maxsize
from typing import TYPE_CHECKING, Any

from jmsish.broker.consumers import Consumer, ask, enter, leave
from jmsish.broker.groups import Selects
from jmsish.broker.notes import most_unsettled
from jmsish.broker.octets import for_delivery, head_for_delivery
from jmsish.broker.order import ACQUIRED, Entry, History
from jmsish.broker.portions import GivingBack
from jmsish.broker.queues import Queue
from jmsish.broker.selectors import weight_of
from jmsish.broker.settlement import Settlement
from jmsish.broker.transactions import UNKNOWN_ID, Transaction, Work
from jmsish.engine.delivery import UNSENT
from jmsish.engine.outcomes import (
    RELEASED,
    Accepted,
    AmqpError,
    DeliveryState,
    Modified,
    Source,
    TransactionalState,
)

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.exchanges import Exchange
    from jmsish.broker.subscriptions import Subscription
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link

FRAME_ALLOWANCE = 64
"""What a transfer takes beside its payload, roughly."""
LARGE = 1 << 20
"""A message of more octets is in memory once, also while it is sent with another header than it came with."""


class OutgoingLink(Consumer):
    """A link on which the broker sends."""

    __slots__ = (
        "_largest",
        "_left",
        "_most_unsettled",
        "_selecting",
        "_since",
        "_returned",
        "_touched",
        "by_name",
        "connection",
        "default_outcome",
        "gone",
        "link",
        "made",
        "presettled",
        "subscription",
        "transaction",
    )

    def __init__(
        self,
        connection: ServerConnection,
        link: Link,
        queue: Queue,
        *,
        copies: bool,
        number: int,
        selects: Selects | None = None,
        priority: int = 0,
    ) -> None:
        self._largest = link.remote_max_message_size or maxsize
        """What the receiver takes at most, in octets."""
        wanted = _fitting(self._largest, selects)
        super().__init__(number, queue, copies=copies, selects=wanted, priority=priority)
        self.session = link.session
        self.connection = connection
        self._touched = connection.broker.touched
        self.link = link
        self.presettled = link.snd_settle_mode == 1
        source = link.remote_source
        self.default_outcome: DeliveryState | None = source.default_outcome if isinstance(source, Source) else None
        self.transaction: Transaction | None = None
        """What it acquires belongs to it (4.4.3)."""
        self.made: Queue | Exchange | None = None
        """The queue or topic that was made for it, and goes with it."""
        self.subscription: Subscription | None = None
        """Whose queue it reads, if it is one of a subscription."""
        self.by_name = False
        """It reads that queue by its name: the subscription does not end because it is closed."""
        self._most_unsettled = most_unsettled(self.default_outcome, connection.broker.config.caps.max_unsettled)
        self.gone = False
        """Link or session are over: nothing can be said to the receiver any more."""
        self._returned: list[Entry] | None = None
        self._selecting = 0
        self._since = link.session.next_delivery_id
        """No delivery of it is older."""
        self._left: list[Delivery] | None = None
        """What was unsettled when its receiver detached."""
        enter(self)

    def bear(self, size: int) -> None:
        """It selects by so much, which its connection answers for as long as it is there."""
        self._selecting = size
        self.connection.selecting += size
        self.weight = weight_of(size)

    # --- sending

    def can_take(self) -> bool:
        link = self.link
        if link.credit <= 0:
            return False
        session = link.session
        if (
            self.connection.room > 0
            and not (session.backlog and session.blocks(link))
            and len(session.outgoing) < self._most_unsettled
        ):
            return True
        self.connection.stalled.append(self)
        return False

    def lacks_room(self) -> bool:
        link = self.link
        return link.credit > 0 and (self.connection.room <= 0 or link.session.blocks(link))

    @property
    def is_full(self) -> bool:
        """The session has all the unsettled messages it may have: it settles some before it gets more.

        That is no want of room, which a drain would wait for: who settles only after the drain would wait for ever.
        """
        return len(self.link.session.outgoing) >= self._most_unsettled

    def deliver(self, entry: Entry) -> None:
        payload = entry.payload
        history = entry.history
        if history is not None:
            if len(payload) > LARGE:
                self._deliver_large(entry, payload, history)
                return
            payload = for_delivery(payload, history.count, history.expires, self.connection.broker.now())
        size = len(payload)
        if size > self._largest:
            entry.bar(self.id, self.queue.consumers)  # it is for others
            self.queue.put_back(entry)
            return
        connection = self.connection
        self._touched[connection] = None
        connection.room -= size + FRAME_ALLOWANCE
        if self.transaction is not None:
            self._deliver_in(self.transaction, payload, entry)
        elif not self.presettled:
            self.link.send(payload, context=entry)
        else:
            self.presettled_sent(self.link.send(payload, settled=True, context=entry), entry)

    def _deliver_large(self, entry: Entry, payload: bytes, history: History) -> None:
        """The same, with a header written anew in front of octets that are not copied for it."""
        head, start = head_for_delivery(payload, history.count, history.expires, self.connection.broker.now())
        size = len(head) + len(payload) - start
        if size > self._largest:
            entry.bar(self.id, self.queue.consumers)  # it is for others
            self.queue.put_back(entry)
            return
        self._touched[self.connection] = None
        self.connection.room -= size + FRAME_ALLOWANCE
        transaction = self.transaction
        state = None if transaction is None else TransactionalState(transaction.id)
        delivery = self.link.send_anew(head, payload, start, state=state, settled=self.presettled, context=entry)
        if transaction is not None:
            transaction.acquire(self, delivery, entry)
            self.connection.broker.worked(transaction)
        elif self.presettled:
            self.presettled_sent(delivery, entry)

    def show(self, payload: bytes, count: int, expires: float) -> bool:
        if count or expires:
            payload = for_delivery(payload, count, expires, self.connection.broker.now())
        if len(payload) > self._largest:
            return False
        self._touched[self.connection] = None
        self.connection.room -= len(payload) + FRAME_ALLOWANCE
        self.link.send(payload, settled=self.presettled)
        return True

    def presettled_sent(self, delivery: Delivery | None, entry: Entry) -> None:
        """A pre-settled message is sent, or its transaction committed: nothing stays acquired, once all frames left."""
        if delivery is not None and self.link.session.blocks(self.link):
            self.connection.half_sent.append((self, delivery, entry))
        else:
            self.settle_sent(entry)

    def settle_sent(self, entry: Entry) -> None:
        """A pre-settled message meets the default outcome as it leaves (3.5.3, W1): nothing stays acquired."""
        default = self.default_outcome
        if default is None or isinstance(default, Accepted):
            self.queue.archive(entry)
            return
        if entry.state != ACQUIRED:
            return
        # What goes back would come again at once, and again while credit lasts. It is kept from this link until the
        # receiver asks anew with a flow, or for good if it said undeliverable-here (W3); others may have it.
        entry.bar(self.id, self.queue.consumers)
        if not (isinstance(default, Modified) and default.undeliverable_here):
            if self._returned is None:
                self._returned = []
            self._returned.append(entry)
        settlement = self.connection.broker.settlement
        settlement.apply_default(self, entry, default, seen=True)

    def _deliver_in(self, transaction: Transaction, payload: bytes, entry: Entry) -> None:
        state = TransactionalState(transaction.id)
        delivery = self.link.send(payload, state=state, settled=self.presettled, context=entry)
        transaction.acquire(self, delivery, entry)
        self.connection.broker.worked(transaction)

    def drained(self) -> None:
        self._touched[self.connection] = None
        self.link.drained()

    # --- what the receiver says

    def flowed(self, properties: Mapping[Any, Any] | None) -> None:
        """Credit, drain or the transaction to acquire under has changed."""
        link = self.link
        if properties is not None and not self._take_transaction(properties):
            return
        if self._returned:
            returned, self._returned = self._returned, None
            self.queue.unbar(returned, self)
        if link.credit > 0 or link.drain:
            ask(self, drain=link.drain)

    def _take_transaction(self, properties: Mapping[Any, Any]) -> bool:
        """A flow with properties names the transaction of what is acquired from now on, or none (4.4.3, T80, T91)."""
        txn_id = properties.get("txn-id")
        transaction = self.connection.transactions.get(txn_id) if isinstance(txn_id, bytes) else None
        if txn_id is not None and transaction is None:
            self.detach(AmqpError(UNKNOWN_ID, "the flow names a transaction that this connection does not have"))
            return False
        if transaction is not self.transaction:
            if self.transaction is not None:
                self.transaction.acquirers.remove(self)
            self.transaction = transaction
            if transaction is not None:
                transaction.acquirers.append(self)
        return True

    def apply_settled_without_state(self, settlement: Settlement, entry: Entry) -> None:
        """Settled without an outcome: the default outcome where one was given, else as released (W6)."""
        if self.presettled and self.default_outcome is None:
            self.queue.archive(entry)
        elif self.default_outcome is not None:
            settlement.apply_default(self, entry, self.default_outcome, seen=True)
        else:
            self.queue.put_back(entry)

    def confirm(self, delivery: Delivery | None, outcome: DeliveryState) -> None:
        """Settle what the receiver has not: after a commit its state is the outcome applied (T61, T73)."""
        if delivery is not None and not delivery.remote_settled and not delivery.settled and not self.gone:
            self.link.session.disposition(delivery, outcome, settled=True)

    def withdraw(self, delivery: Delivery | None) -> None:
        """An acquisition was undone: the delivery is over (T89), and what of it is not sent yet never will be (T86)."""
        if delivery is not None and not self.gone and self._is_under_way(delivery):
            self.link.abort(delivery)
        else:
            self.confirm(delivery, RELEASED)

    def _is_under_way(self, delivery: Delivery) -> bool:
        """Whether frames of it wait for the window. A consumer is given nothing more while some do, so they are few."""
        return any(item.delivery is delivery for item in (*self.link.session.backlog, *self.link.held))

    # --- the end

    def detach(self, error: AmqpError) -> None:
        """End the link from here; what the receiver holds is put back as at any loss."""
        self.link.detach(closed=True, error=error)
        self.leave_queue()
        self.give_back()
        if self.subscription is not None:
            self.subscription.detached(False)

    def lost_queue(self) -> None:
        self.leave_queue()
        self.gone = True
        if self.connection.ended:
            return  # it hears that the connection is closed, and of its temporary nodes nothing besides
        subscription = self.subscription
        what = f"the queue {self.queue.name!r}"
        if subscription is not None and subscription.content.exchange.deleted:
            what = f"the exchange {subscription.content.exchange.name!r}"
        error = AmqpError("amqp:resource-deleted", f"{what} was deleted")
        self.link.detach(closed=True, error=error)
        self.connection.broker.touch(self.connection)

    def detached(self, closed: bool) -> None:
        """The receiver detached (W16): deliveries stay with the session; of a closed link, for a second at most."""
        # A link that the engine ended, because it was stolen, was not closed by its receiver: what it read stays.
        ends = closed and self.link.fault is None and not self.by_name
        refusal = self.subscription.refuses_close() if ends and self.subscription is not None else None
        self.leave_queue()
        self.link.detach(closed=closed, error=refusal)
        self.gone = True
        self.take_back_unsent()
        if self.subscription is not None:
            self.subscription.detached(ends)
        if closed:
            if self.made is not None:
                self.connection.delete_temporary(self.made)
            self._left = self._unsettled()
            if self._left:
                self.connection.grant_grace(self)

    def leave_queue(self) -> None:
        """Take no more messages, and acquire under no transaction."""
        leave(self)
        self.connection.selecting -= self._selecting
        self._selecting = 0
        self.connection.broker.router.lifetimes.left(self.queue)
        if self.transaction is not None:
            self.transaction.acquirers.remove(self)
            self.transaction = None

    def give_back(self) -> None:
        """The default outcome for all that is still unsettled on this link, and an end of these deliveries."""
        session = self.link.session
        mine = self._unsettled() if self._left is None else self._left
        self._left = []
        self.gone = True
        self.take_back_unsent()
        broker = self.connection.broker
        broker.portions.begin(GivingBack(broker.settlement, mine, {self.link: self}, session))

    def _unsettled(self) -> list[Delivery]:
        """Its deliveries that are unsettled. What its session had before it is not looked at: that may be much."""
        link, session = self.link, self.link.session
        sent = (session.next_delivery_id - self._since) & 0xFFFFFFFF
        mine = [delivery for delivery in islice(reversed(session.outgoing.values()), sent) if delivery.link is link]
        mine.reverse()
        return mine

    def take_back_unsent(self) -> None:
        """What was queued for the link, or lost in mid-transfer, is back whatever the default outcome (W2).

        Of what was lost in mid-transfer a part may have been read already: it counts as the default outcome says (D5).
        """
        for delivery in self.link.unsent:
            entry, default = delivery.context, self.default_outcome
            if not isinstance(entry, Entry) or entry.state != ACQUIRED:
                continue
            if delivery.id != UNSENT and isinstance(default, Modified):
                self.connection.broker.settlement.apply_default(self, entry, default, seen=False)
            else:
                self.queue.put_back(entry)

    def give_up(self, settlement: Settlement, delivery: Delivery) -> None:
        """Nothing more will be heard of a delivery; one that is part of a transaction stays with it (T52)."""
        entry = delivery.context
        if not isinstance(entry, Entry) or entry.state != ACQUIRED:
            return
        work = entry.work
        if isinstance(work, Work):
            work.settled = True
            work.delivery = None
        else:
            settlement.apply_default(self, entry, self.default_outcome, seen=False)


class AnswerLink(OutgoingLink):
    """A link by which the answers of a node of the broker's own come: their queue goes with it, however it goes."""

    __slots__ = ()

    def leave_queue(self) -> None:
        super().leave_queue()
        if not self.queue.deleted:
            self.connection.broker.router.delete(self.queue)


def _fitting(largest: int, selects: Selects | None) -> Selects | None:
    """What a receiver selects that takes messages of so many octets: a deep queue is looked through slice by slice.

    One that was given back may have a header of a few octets more than it came with: that is seen as it is delivered.
    """
    if largest == maxsize:
        return selects
    if selects is None:
        return lambda payload, count: len(payload) <= largest
    return lambda payload, count: len(payload) <= largest and selects(payload, count)
