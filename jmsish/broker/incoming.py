"""Incoming links: what one sender posts: to a queue, to a topic, or to what each message names (anonymous relay)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from jmsish.broker.coordinator import allows_rejected
from jmsish.broker.exchanges import DISCARD, RELEASE, Exchange, Routed
from jmsish.broker.gates import GateClosed
from jmsish.broker.intake import address_of, subject_of
from jmsish.broker.link_policy import may_send
from jmsish.broker.parking import Parked
from jmsish.broker.patterns import LONGEST, is_endless
from jmsish.broker.queues import NOBODY, Arrival, Queue
from jmsish.broker.refusals import (
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    RESOURCE_DELETED,
    RESOURCE_LIMIT_EXCEEDED,
    UNAUTHORIZED_ACCESS,
    Refusal,
    Unroutable,
)
from jmsish.broker.router import Topic
from jmsish.broker.transactions import ROLLBACK, UNKNOWN_ID, Sink, Transaction
from jmsish.engine.outcomes import ACCEPTED, RELEASED, AmqpError, DeliveryState, Rejected, Source, TransactionalState

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link

CREDIT: Final = 1000
"""Granted to a sender, and topped up at half."""
SMALL_CREDIT: Final = 10
"""Where a queue counts octets and holds its senders back: what may still come when it is full. And to the
management node, which does each request at once: with no more can one peer keep all others waiting."""

DECODE_ERROR: Final = "amqp:decode-error"


class IncomingLink:
    """A link on which the broker receives messages."""

    __slots__ = (
        "_connection", "_fed", "_intake", "_link", "_recent", "_second", "_starving", "made", "over", "parked", "queue",
        "sink", "topic", "unroutable", "waiting",
    )  # fmt: skip

    def __init__(
        self, connection: ServerConnection, link: Link, queue: Queue | None, topic: Topic | None = None
    ) -> None:
        self._connection = connection
        self._link = link
        self._intake = connection.intake()
        self._second = link.rcv_settle_mode == 1
        self._fed = False
        self._recent: tuple[Queue, ...] = ()
        """Where the last message went, if its subject decided; on an anonymous link, see `_remember`."""
        self._starving: list[Queue] | None = None
        """Full queues that will tell when there is room."""
        self.queue = queue
        self.topic = topic
        """Without a queue; without either each message says where it goes (anonymous relay)."""
        self.made: Queue | Exchange | None = None
        """The queue or topic that was made for it, and goes with it."""
        self.over = False
        """Detached; what was still on its way is dropped."""
        self.parked: dict[object, deque[Parked]] = {}
        """What waits for a frozen exchange, by the exchange it was sent to, each in the order it came."""
        self.waiting = 0
        """How many of them there are."""
        self.unroutable: str | None = None
        """What is to become of its messages that go nowhere, whatever their exchange says."""
        self.sink: Sink | None = None
        """What takes its messages where that is neither queue nor topic."""
        if queue is not None:
            if queue.producers is NOBODY:
                queue.producers = {}
            queue.producers[self] = None
        if topic is not None:
            topic.exchange.join(self)

    # --- credit

    def top_up(self) -> None:
        """Grant credit, unless the queue is full and holds its senders back; it tells when it is not any more.

        Called once all input is worked off: the engine has counted what came, the queue has it.
        """
        self._fed = False
        if self._starving:
            self._stop_waiting()
        queue, link = self.queue, self._link
        most = self._connection.broker.config.caps.max_unsettled
        if 0 < most < len(link.session.incoming):
            text = f"a session has sent {len(link.session.incoming)} messages and not settled them, where {most} may be"
            link.session.fail(AmqpError(RESOURCE_LIMIT_EXCEEDED, text))
            return
        credit = CREDIT
        if queue is not None:
            queue = queue.inbox
            if queue.settings.overflow == "block":
                credit = self._room_in(queue)
        elif self.sink is None:
            inboxes = dict.fromkeys(each.inbox for each in self._fed_queues(self.topic))
            blocking = [each for each in inboxes if each.settings.overflow == "block"]
            credit = max(0, min(map(self._room_in, blocking), default=CREDIT) - self.waiting)
        else:
            credit = max(0, SMALL_CREDIT - self.waiting)
        # What was said before others filled the queue, or before it was known to be the one that messages go to, is
        # taken back: "the receiver MAY decrease the link-credit" (2.6.7).
        if link.credit > credit or (credit and link.credit * 2 <= credit):
            self._grant(credit)

    def _grant(self, credit: int) -> None:
        self._link.flow(credit)
        self._connection.broker.touch(self._connection)

    def _room_in(self, queue: Queue) -> int:
        """The credit that a queue allows which holds its senders back; for none at all it says when to ask again."""
        if queue.is_full:
            if queue.starved is None:
                queue.starved = []
            queue.starved.append(self)
            if self._starving is None:
                self._starving = []
            self._starving.append(queue)
            return 0
        settings = queue.settings
        credit = SMALL_CREDIT if settings.max_octets else CREDIT
        if settings.max_messages:
            credit = max(1, min(credit, settings.max_messages - queue.depth))
        return credit

    def _fed_queues(self, topic: Topic | None) -> Iterable[Queue]:
        """The queues that this link's messages go to: by its key, or else those that the last ones went to."""
        queues = None if topic is None or topic.key is None else topic.exchange.reach(topic.key)
        return [queue for queue in self._recent if not queue.deleted] if queues is None else queues

    # --- messages

    def posted(self, delivery: Delivery) -> None:
        """A whole message has arrived."""
        link = self._link
        try:
            if not delivery.payload or delivery.message_format:
                return self._refuse_format(delivery)
            arrival = self._intake.read(delivery.payload)
            queue = self.queue
            target: Sink
            if queue is None:
                target = self._find(delivery, arrival)
                if not isinstance(target, Routed):
                    self._check_room(target, delivery, arrival)
            else:
                target = queue
                if queue.limited or queue.deleted:
                    self._check_room(queue, delivery, arrival)
        except ValueError as error:
            self._refuse(delivery, AmqpError(DECODE_ERROR, f"the message cannot be read: {error}"))
            return
        except Refusal as refusal:
            self._refuse(delivery, refusal.error, released=isinstance(refusal, Unroutable) and refusal.released)
            return
        except GateClosed as closed:
            self._park(delivery, arrival, closed)
            return
        if delivery.remote_state is None:
            if isinstance(arrival, int):
                target.append(delivery.payload, arrival)
            else:
                target.add(arrival)
            if not delivery.remote_settled:
                second = self._second if delivery.rcv_settle_mode is None else delivery.rcv_settle_mode
                link.session.disposition(delivery, ACCEPTED, not second)
        else:
            self._post_with_state(target, arrival, delivery)
        if not self._fed:
            self._fed = True
            self._connection.fed.append(self)

    def _find(self, delivery: Delivery, arrival: int | Arrival) -> Sink:
        """Where a message goes on a link that has no queue of its own."""
        payload = delivery.payload
        if self.sink is not None:
            return self.sink
        if self.topic is not None:
            return self._route(self.topic, payload, arrival)
        address, kind = address_of(payload)
        if address is None:
            raise Refusal("amqp:precondition-failed", "a message on an anonymous link needs an address in 'to'")
        if not may_send(self._connection, address):
            raise Refusal(
                UNAUTHORIZED_ACCESS, f"messages may not be sent to {address!r}", {"delivery-tag": delivery.tag}
            )
        own = self._connection.own_node(address)
        if own is not None:
            return own.requests(self._connection)
        try:
            node = self._connection.broker.router.resolve(address, kind, self._connection.grant)
        except Refusal as refusal:
            error = refusal.error
            raise Refusal(error.condition, error.description or "", {"delivery-tag": delivery.tag}) from None
        if isinstance(node, Queue):
            if node.limited or self._recent:
                self._remember((node,))
            return node
        routed = self._route(node, payload, arrival)
        self._remember(routed.queues)
        return routed

    def _remember(self, queues: Iterable[Queue]) -> None:
        """On an anonymous link: the queues with limits that messages went to since credit was last granted."""
        limited = [queue for queue in queues if queue.limited]
        if self._recent and not self._fed:
            self._recent = ()
        if limited:
            self._recent = tuple(dict.fromkeys((*self._recent, *limited)))

    def _route(self, topic: Topic, payload: bytes, arrival: int | Arrival) -> Routed:
        exchange = topic.exchange
        if self.parked and exchange in self.parked:
            first = self.parked[exchange][0].gate
            if first is not None:  # else it is the first of them itself, whose turn has come
                raise GateClosed(first, exchange)
        history = None if isinstance(arrival, int) else arrival.history
        key = subject_of(payload) if topic.key is None else topic.key
        if is_endless(key):
            raise Refusal(PRECONDITION_FAILED, f"the key of the message has more than {LONGEST} words: {key[:40]!r}…")
        unroutable = self.unroutable or (topic.unroutable if topic.published else exchange.unroutable)
        routed = exchange.route(key, payload, 0 if history is None else history.count, self._connection, unroutable)
        if self.topic is not None:
            self._recent = routed.queues
        if not routed.queues and unroutable != DISCARD:
            what = f"nothing that is bound to {exchange.name!r} takes a message with the key {key!r}"
            raise Unroutable(what, released=unroutable == RELEASE)
        why = routed.refusal(1, len(payload))
        if why is not None:
            exchange.refuse()
            raise Refusal(RESOURCE_LIMIT_EXCEEDED, why)
        if not isinstance(arrival, int) and arrival.due:
            _check_time(routed.present)
        return routed

    def _check_room(self, queue: Sink, delivery: Delivery, arrival: int | Arrival) -> None:
        why = queue.refusal(1, len(delivery.payload))
        if why is not None:
            gone = isinstance(queue, Queue) and queue.deleted
            condition = RESOURCE_DELETED if gone else RESOURCE_LIMIT_EXCEEDED
            raise Refusal(condition, why)
        if isinstance(queue, Queue) and not isinstance(arrival, int) and arrival.due:
            _check_time((queue,))

    def _post_with_state(self, target: Sink, arrival: int | Arrival, delivery: Delivery) -> None:
        """A transfer that carries a state: one of a transaction, or nothing that changes anything."""
        state = delivery.remote_state
        if not isinstance(state, TransactionalState):
            self._refuse(delivery, AmqpError("amqp:invalid-field", "a message cannot be sent with this state"))
            return
        transaction = self._transaction_of(state, delivery)
        if transaction is not None:
            self._enlist(transaction, target, arrival, delivery)

    def _enlist(self, transaction: Transaction, target: Sink, arrival: int | Arrival, delivery: Delivery) -> None:
        transaction.posts.append((target, arrival, delivery.payload))
        if not isinstance(target, Queue):
            transaction.copies += max(0, len(target.present) - 1)
        self._connection.broker.worked(transaction)
        if not (delivery.remote_settled or self.over):
            self._answer_in(transaction, delivery, ACCEPTED)

    def _transaction_of(self, state: TransactionalState, delivery: Delivery) -> Transaction | None:
        """The transaction that a transfer names; an unknown one ends the link, its message dropped (T60)."""
        transaction = self._connection.transactions.get(state.txn_id)
        if transaction is None:
            self.detach(AmqpError(UNKNOWN_ID, "the transfer names a transaction that this connection does not have"))
            return None
        if delivery.mixed_states:
            # "all frames MUST be explicitly associated with the same transaction" (4.4.1).
            transaction.fail(ROLLBACK, "frames of one delivery named different transactions")
            self.detach(AmqpError("amqp:invalid-field", "frames of one delivery named different transactions"))
            return None
        return transaction

    def _answer(self, delivery: Delivery, state: DeliveryState) -> None:
        mode = delivery.rcv_settle_mode
        second = self._second if mode is None else mode == 1
        self._link.session.disposition(delivery, state, not second)

    def _answer_in(self, transaction: Transaction, delivery: Delivery, outcome: DeliveryState) -> None:
        """The outcome there will be if the transaction commits (T55); what stays unsettled hears of it again then."""
        self._answer(delivery, TransactionalState(transaction.id, outcome))
        if not delivery.settled:
            transaction.deliveries.append((delivery, outcome))

    def _refuse(
        self,
        delivery: Delivery,
        error: AmqpError,
        *,
        allowed: bool = True,
        released: bool = False,
        transaction: Transaction | None = None,
    ) -> None:
        """The message is not taken: rejected, or where the sender cannot hear that, the link ends with the error.

        A settled post that fails must not let its transaction commit (T57); an unsettled one is told so (T58).
        ``allowed`` says whether rejected may be the answer at all, ``released`` that released is to be, if it may.
        """
        state = delivery.remote_state
        if isinstance(state, TransactionalState) and transaction is None:
            transaction = self._transaction_of(state, delivery)
            if transaction is None:
                return
        source = self._link.remote_source
        released = released and _allows_released(source)
        if allowed and not delivery.remote_settled and (released or allows_rejected(source)):
            outcome = RELEASED if released else Rejected(error)
            if transaction is None:
                self._answer(delivery, outcome)
            else:
                self._answer_in(transaction, delivery, outcome)
            self.top_up()
            return
        if transaction is not None:
            transaction.fail(ROLLBACK, f"a message of the transaction was refused: {error}")
        if delivery.remote_settled and transaction is not None:
            self.top_up()
        else:
            self.detach(error)

    def _refuse_format(self, delivery: Delivery) -> None:
        """Octets that are no message at all, or one whose sections are not those of Part 3: the sender goes wrong."""
        what = f"the message-format {delivery.message_format}" if delivery.message_format else "a delivery of no octets"
        self._refuse(delivery, AmqpError(NOT_IMPLEMENTED, f"{what} is not implemented here"), allowed=False)

    def refuse_oversize(self, delivery: Delivery, error: AmqpError) -> None:
        """A message that is larger than the link takes: rejected, where the sender can hear that, and the link ends.

        In a transaction it is as with any message that is refused: one sent settled lets it no longer commit (T57), of
        another its sender is told, as of an outcome in the transaction (T58). One taken back is no part of it.
        """
        state = delivery.remote_state
        transaction = None
        if isinstance(state, TransactionalState) and not delivery.aborted:
            transaction = self._connection.transactions.get(state.txn_id)
        if not delivery.remote_settled and allows_rejected(self._link.remote_source):
            if transaction is None:
                self._answer(delivery, Rejected(error))
            else:
                self._answer_in(transaction, delivery, Rejected(error))
        elif transaction is not None:
            transaction.fail(ROLLBACK, f"a message of the transaction was refused: {error}")
        self.detach(error)

    # --- parked

    def _park(self, delivery: Delivery, arrival: int | Arrival, closed: GateClosed) -> None:
        """An exchange on the way is frozen: the message waits there, in the order in which all came."""
        state = delivery.remote_state
        transaction = None
        if state is not None:
            if not isinstance(state, TransactionalState):
                self._refuse(delivery, AmqpError("amqp:invalid-field", "a message cannot be sent with this state"))
                return
            transaction = self._transaction_of(state, delivery)
            if transaction is None:
                return
            self._connection.broker.worked(transaction)
        freezes = self._connection.broker.freezes
        freezes.wait(Parked(self, freezes, delivery, arrival, closed.entry, transaction), closed.gate)

    def let_in(self, parked: Parked) -> None:
        """What was parked is routed; GateClosed where it has to wait on."""
        delivery, arrival, transaction = parked.delivery, parked.arrival, parked.transaction
        try:
            target = self._find(delivery, arrival)
            self._check_room(target, delivery, arrival)
        except Refusal as refusal:
            self._refuse_parked(parked, refusal)
        else:
            if transaction is not None:
                self._enlist(transaction, target, arrival, delivery)
            else:
                if isinstance(arrival, int):
                    target.append(delivery.payload, arrival)
                else:
                    target.add(arrival)
                if not delivery.remote_settled:
                    self._answer(delivery, ACCEPTED)
        parked.leave()
        self._connection.broker.touch(self._connection)
        if not self.over:
            self.top_up()

    def _refuse_parked(self, parked: Parked, refusal: Refusal) -> None:
        transaction = parked.transaction
        if not self.over:
            released = isinstance(refusal, Unroutable) and refusal.released
            self._refuse(parked.delivery, refusal.error, released=released, transaction=transaction)
        elif transaction is not None:
            transaction.fail(ROLLBACK, f"a message of the transaction was refused: {refusal.error}")

    def excuse(self, parked: Parked) -> None:
        """A parked message was undone with its transaction: its outcome in it matters to nobody, but settles it."""
        assert parked.transaction is not None
        if not (self.over or parked.delivery.remote_settled):
            self._answer(parked.delivery, TransactionalState(parked.transaction.id, ACCEPTED))
            self._connection.broker.touch(self._connection)
        if not self.over:
            self.top_up()

    def give_back(self, parked: Parked) -> None:
        """A parked message is not taken, for the broker stops."""
        if not (self.over or parked.delivery.remote_settled or parked.transaction is not None):
            self._answer(parked.delivery, RELEASED)

    def is_amid(self, txn_id: bytes) -> bool:
        """Whether a message of this transaction has arrived in part."""
        delivery = None if self.over else self._link.current
        state = None if delivery is None else delivery.remote_state
        return isinstance(state, TransactionalState) and state.txn_id == txn_id

    # --- the end

    def detach(self, error: AmqpError) -> None:
        """End the link from here."""
        self._miss_unfinished()
        self._link.detach(closed=True, error=error)
        self._forget()

    def detached(self, closed: bool) -> None:
        """The sender detached; what it posted stays (T52)."""
        self._link.detach(closed=closed)
        self._forget()
        if closed and self.made is not None:
            self._connection.delete_temporary(self.made)

    def lost(self) -> None:
        """Session or connection are over."""
        if self._link.session.discarding:
            self._miss_unfinished()
        self._forget()

    def _miss_unfinished(self) -> None:
        """What has begun to arrive will not be whole here. One that is too large has an answer of its own."""
        link, half = self._link, self._link.current
        if half is not None and not (self.over or half.oversize):
            self._connection.missed(link.session, f"the link {link.name!r}", half.remote_state)

    def lost_queue(self) -> None:
        """The queue was deleted."""
        assert self.queue is not None
        self._lose(f"the queue {self.queue.name!r} was deleted")

    def lost_exchange(self) -> None:
        """The exchange was deleted."""
        assert self.topic is not None
        self._lose(f"the exchange {self.topic.exchange.name!r} was deleted")

    def _lose(self, description: str) -> None:
        if self._connection.ended:
            return  # it hears that the connection is closed, and of its temporary nodes nothing besides
        self.detach(AmqpError(RESOURCE_DELETED, description))
        self._connection.broker.touch(self._connection)

    def _forget(self) -> None:
        self.over = True
        for parked in [each for track in self.parked.values() for each in track if not each.outlives_its_link]:
            parked.leave()
        queue = self.queue
        if queue is not None:
            queue.producers.pop(self, None)
            if not queue.producers:
                queue.producers = NOBODY
            self._connection.broker.router.lifetimes.left(queue)
        self._stop_waiting()
        if self.topic is not None:
            self.topic.exchange.leave(self)

    def _stop_waiting(self) -> None:
        starving, self._starving = self._starving, None
        for queue in starving or ():
            if queue.starved and self in queue.starved:
                queue.starved.remove(self)


def _allows_released(source: object) -> bool:
    """Whether the sender's source can take the outcome released; one that lists no outcomes is taken to."""
    return not isinstance(source, Source) or source.outcomes is None or "amqp:released:list" in source.outcomes


def _check_time(queues: Iterable[Queue]) -> None:
    """Refusal where one of them takes no message that is for later."""
    for queue in queues:
        if not queue.inbox.settings.delayed_delivery:
            raise Refusal(PRECONDITION_FAILED, f"the queue {queue.name!r} takes no message that is for later")
