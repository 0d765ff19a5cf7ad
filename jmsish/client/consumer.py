"""A message consumer: a receiving link and the buffer of what it prefetched.

Theory of operation.  A delivery is PREFETCHED while it waits in `buffer`, and leaves it in one of two ways: handed over
to the application (the session then owns it), or given back to the queue as released, which leaves its count alone.
What it asks the broker for is in `credit.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsish.client.answers import Answer
from jmsish.client.arriving import begin_arrival
from jmsish.client.attaching import what_is_missing, why_detached
from jmsish.client.credit import LATE_ANSWER, CreditWindow, line_up
from jmsish.client.links import attach_consumer
from jmsish.client.procedures import Procedure, fail, settle, silenced
from jmsish.client.reattaching import Reattaching
from jmsish.client.waiting import Waiting, until_ready, waits_to_receive
from jmsish.engine.codec import Reader
from jmsish.engine.conditions import MESSAGE_SIZE_EXCEEDED
from jmsish.engine.outcomes import RELEASED, AmqpError
from jmsish.engine.streaming import want
from jmsish.errors import IllegalStateError, JMSError, OperationTimeoutError
from jmsish.events import DeliveriesLost, LinkReattached
from jmsish.modes import AcknowledgeMode

if TYPE_CHECKING:
    from jmsish.client.session import ClientSession
    from jmsish.client.subscriptions import Subscription
    from jmsish.destination import Destination
    from jmsish.engine.delivery import Delivery


Read = Callable[["Delivery"], object]
"""What has to be done with a delivery before it may be handed over; it raises where it cannot be done."""

UNREAD_ON_FAILURE = frozenset({AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK, AcknowledgeMode.NONE})
"""Where a body of the wrong type leaves its message unread."""


class ClientConsumer(CreditWindow, Reattaching, Waiting):
    """One consumer (or browser) of a session."""

    def __init__(
        self,
        session: ClientSession,
        destination: Destination,
        *,
        prefetch: int,
        browsing: bool = False,
        selector: str | None = None,
        no_local: bool = False,
        priority: int = 0,
        subscription: Subscription | None = None,
    ) -> None:
        super().__init__(session, prefetch, browsing)
        self.destination = destination = session.connection.temporary.current(destination)
        self.selector = selector
        self.no_local = no_local
        self.priority = priority
        """Among the consumers of a queue, at the broker: who is asked first."""
        self.subscription = subscription
        self.origin = subscription or (self if destination.is_topic else destination)
        self.reader = Reader()
        self.by_priority = session.connection.options.local_priority and not browsing
        """The buffer is ordered by priority, not by arrival."""
        self.attached: Future[None] = Answer()
        self.detached: Future[None] = Answer()
        self.restoring = False
        """Its link is being made again, and was there before."""
        self.shown: set[int] | None = set() if browsing and session.connection.reconnection is not None else None
        """What a browser has shown, so that it goes on behind that after a loss."""
        self.waiter: Future[None] | None = None
        self.unsettled = 0
        """Deliveries handed over and not yet settled: the link stays attached for them after a close."""
        self.in_transaction = False
        self.closed = False
        self.failure: JMSError | None = None
        self.failures_in_row = 0
        self.failing_id: bytes | None = None

    def rename(self, destination: Destination) -> None:
        """What it reads is called otherwise since the connection was lost."""
        if self.destination != destination:
            self.destination = destination
            self.origin = self.subscription or (self if destination.is_topic else destination)

    # -- deliveries ------------------------------------------------------------------------------------------------

    def on_partial(self, delivery: Delivery) -> None:
        """A large delivery has begun to arrive."""
        if begin_arrival(delivery):
            self.on_delivery(delivery)

    def on_arrived(self, delivery: Delivery) -> None:
        """More of a delivery that is read while it arrives, or its end."""
        reading = self.session.reading
        if reading is not None and reading.delivery is delivery:
            reading.on_arrived()
        if self.drained is not None:
            self.on_credit()

    def on_aborted(self, delivery: Delivery) -> None:
        """The broker gave up a delivery of which a part is here; who reads it hears of it."""
        reading = self.session.reading
        if delivery in self.buffer:
            self.buffer.remove(delivery)
        elif reading is not None and reading.delivery is delivery:
            reading.fail(JMSError("the broker took the message back while it was sending it", scope="delivery"))
        if delivery.stream is not None:
            delivery.stream.drop()
        if self.drained is not None:
            self.on_credit()

    def on_oversize(self, delivery: Delivery) -> None:
        """The broker sends more than it was told that this link takes: a link error (Part 2, 2.7.3).

        The message is not settled, so it stays the broker's; to reject it might bury it.
        """
        link, reading = self.link, self.session.reading
        if link is None or self.failure is not None:
            return
        text = f"a message of more than {link.max_message_size} octets, the option max_message_size"
        durable = self.subscription is not None and self.subscription.durable
        link.detach(closed=not durable, error=AmqpError(MESSAGE_SIZE_EXCEEDED, text))
        failure = JMSError(f"consumer of {self.destination}: the broker sent {text}", scope="link",
                           condition=MESSAGE_SIZE_EXCEEDED)  # fmt: skip
        if reading is not None and reading.delivery is delivery:
            reading.fail(failure)
        told = waits_to_receive(self)
        self.fail(failure)
        self.session.forget(self)
        if not (told or self.closing):
            self.session.connection.report(failure)

    def on_delivery(self, delivery: Delivery) -> None:
        if self.failure is not None:
            return  # it came behind what ended the link, and is the broker's still
        if self.closed and self.drained is None:
            self.session.ledger.dispose(delivery, RELEASED)
            return
        if self.buffer and self.by_priority:
            line_up(self.buffer, delivery)
        else:
            self.buffer.append(delivery)
        trace = self.session.connection.trace
        if trace is not None and not self.browsing:
            trace.delivery("prefetched", delivery, self.destination, self)
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            settle(waiter)
        if self.listening:
            self.session.unheard[self] = None
            self.session.prompt()
        if self.drained is not None:
            self.on_credit()

    def take(self) -> Delivery | None:
        """The next unread delivery that may be handed over; expired and over-delivered ones are disposed of here."""
        buffer = self.buffer
        while buffer:
            delivery = buffer.popleft()
            if self.session.ledger.screen(self, delivery):
                if not buffer:
                    self.window = min(self.window * 2, max(self.prefetch, 1))
                return delivery
        return None

    def receive_now(self) -> Delivery | None:
        """The fast way of `receive`: a delivery that needs no waiting, handed over; None where it has to be asked."""
        session = self.session
        if not self.buffer or not session.connection.started or self.failure is not None:
            return None
        if self.closing or session.reading is not None:
            return None
        controller = session.controller
        if (controller is not None and controller.accepted is None) or session.is_listening:
            return None
        return self._next()

    def _next(self, read: Read | None = None) -> Delivery | None:
        delivery = self.take()
        if delivery is not None:
            if read is not None:
                self._read(delivery, read)
            self.session.ledger.hand_over(self, delivery)
        return delivery

    def _read(self, delivery: Delivery, read: Read) -> None:
        """A body that cannot be read as wanted: what a session acknowledges by itself stays unread, unmarked and first
        (jms rule 116); in the other modes the message counts as delivered (jms rule 117)."""
        try:
            read(delivery)
        except BaseException:
            if self.session.mode in UNREAD_ON_FAILURE:
                self.buffer.appendleft(delivery)
            else:
                self.session.ledger.hand_over(self, delivery)
            raise

    def receive(
        self, deadline: float | None, wait: bool = True, read: Read | None = None
    ) -> Procedure[Delivery | None]:
        """Wait for the next delivery and hand it over, if `read` can be called with it.

        None when `deadline` passes, when the consumer closes, or, with `wait` false, when the broker has nothing.
        """
        connection = self.session.connection
        if not (yield from until_ready(self, deadline, wait)):
            return None
        self.check()
        self.session.end_reading()
        while True:
            if self.closing:
                return None
            if not (yield from until_ready(self, deadline, wait)):
                return None
            if connection.started:
                delivery = self._next(read)
                if delivery is not None:
                    return delivery
                yield from self._ask()
                if self.buffer or self.closing:
                    continue
                if not wait:
                    return (yield from self._pull(read))
            elif not wait:
                return None
            if not (yield from self._wait(deadline)):
                if connection.offline:
                    return None
                wait = False
            if self.failure is not None:
                raise self.failure

    def _wait(self, deadline: float | None) -> Procedure[bool]:
        """Wait until something may have come; false when the deadline passed."""
        waiter: Future[None] = Answer()
        self.waiter = waiter
        engine_session = self.session.engine_session
        want(engine_session, True)
        try:
            yield waiter, deadline
        except OperationTimeoutError:
            return False
        finally:
            want(engine_session, False)
            if self.waiter is waiter:
                self.waiter = None
            self.demand = False
        return True

    def _ask(self) -> Procedure[None]:
        """Make sure that the broker may send us something: take back what siblings have not read, grant credit."""
        hoarders = [c for c in self.session.siblings(self) if c.buffer and not c.listening]
        if hoarders:
            yield from self.session.cancel(hoarders, self.session.connection.request_deadline())
        self.demand = True
        self.replenish()

    def _pull(self, read: Read | None) -> Procedure[Delivery | None]:
        """Ask the broker, so that a message which is there is not missed and no credit stays behind.

        One question, and another as long as all that came was not to be handed over (expired: scenarios 150, 151).
        At Artemis an empty answer may be a late one (`LATE_ANSWER`): after a moment with credit it is asked again.
        """
        connection = self.session.connection
        try:
            while True:
                self.demand = True
                self.replenish()
                self.demand = False
                is_doubtful, self.used_up = self.used_up and connection.profile.answers_drains_late, False
                yield from self._drain()
                if self.renewed and not self.closing:
                    yield from connection.until_online(party=self)
                    self.renewed = False
                    continue
                if self.closing or not connection.started:
                    return None
                if not self.buffer:
                    if not is_doubtful:
                        return None
                    self.demand = True
                    self.replenish()
                    yield from self._wait(connection.now + LATE_ANSWER)
                    continue
                self.replenish()  # one flow, before the outcomes of what has expired and not amid them
                delivery = self._next(read)
                if delivery is not None:
                    return delivery
        finally:
            self.replenish()

    def browse(self) -> Procedure[Delivery | None]:
        """The next message to look at, or None; a stopped connection hides nothing from a browser.

        Raises what ended it before its end: who looks into a queue and is shown a part of it should know.
        """
        self.session.check()
        while not self.closed:
            self.check()
            delivery = self._next()
            if delivery is not None:
                if self._is_new(delivery):
                    return delivery
                continue
            try:
                yield from self.session.connection.until_online(party=self)
            except IllegalStateError:
                if not self.closing:
                    raise
                break
            self.replenish()
            yield from self._drain()
            if not (self.buffer or self.renewed or self.failure is not None):
                break
        return None

    def _is_new(self, delivery: Delivery) -> bool:
        """Whether a browser has not shown it before a loss; of each message it remembers a number."""
        if self.shown is None:
            return True
        number = hash(self.session.connection.identity_of(delivery))
        if number in self.shown:
            return False
        self.shown.add(number)
        return True

    def check(self) -> None:
        """Raise what forbids the use of this consumer."""
        if self.closed:
            raise IllegalStateError("the consumer is closed") from self.failure
        if self.failure is not None:
            raise self.failure

    # -- life ------------------------------------------------------------------------------------------------------

    def on_attached(self) -> None:
        link = self.link
        assert link is not None
        if link.remote_source is None:
            return  # Part 2, 2.6.3: the detach with the reason follows (M66)
        missing = what_is_missing(self)
        if missing is not None:
            self.abandon()
            fail(self.attached, missing)
            return
        settle(self.attached)
        if not self.browsing:
            link.stream_from = self.session.connection.options.stream_threshold or 0
        self.replenish()

    @property
    def is_leaving(self) -> bool:
        return self.closing

    @property
    def is_granted(self) -> bool:
        """Whether the broker has attached it, so that it may send."""
        link = self.link
        return link is not None and link.attached and link.remote_source is not None and not self.closing

    def abandon(self) -> None:
        """The consumer does not come to be: no credit is granted, and what of its link is there goes."""
        self.closing = self.closed = True
        self.detach()

    def quit(self) -> None:
        """Close without waiting for anything, as a browser can that has nothing to give back."""
        if not self.closed:
            self.session.forget(self)
            self.abandon()

    def on_detached(self, error: AmqpError | None) -> None:
        """The broker detached the link, by itself or in answer to our detach."""
        if self.link is not None and self.link.attached:
            self.link.detach(closed=True)
            if self.in_transaction and self.session.controller is not None:
                self.session.controller.spoil(f"the broker detached the consumer of {self.destination}")
        self._left()
        if not self.closing and self.failure is None and self.comes_again(error):
            self._attach_again()
            return
        if not self.closing and self.failure is None:
            failure = why_detached(self, error)
            told = waits_to_receive(self)
            self.fail(failure)
            self.session.forget(self)
            if not told:
                self.session.connection.report(failure)
        self.on_credit()
        self.drop_unread()
        settle(self.detached)

    def _attach_again(self) -> None:
        """The broker detached the link and will have it again."""
        connection, prefetched = self.session.connection, len(self.buffer)
        self.drop_unread()
        self.renewed = True
        settle(self.drained)  # by the new link, too, credit comes behind what is given back
        waiter, self.waiter = self.waiter, None
        settle(waiter)
        if self.attached.done():
            self.attached = Answer()
            connection.tell(LinkReattached(self.destination))
        if prefetched and not self.browsing:
            connection.tell(DeliveriesLost((self.destination,), prefetched, 0))
        attach_consumer(self)

    def _left(self) -> None:
        reading = self.session.reading
        if reading is not None and reading.consumer is self and not reading.delivery.complete:
            reading.fail(self.failure or IllegalStateError("the consumer ended while its message was read"))
        self.link = None
        self.session.connection.subscriptions.leave(self)

    def fail(self, error: JMSError) -> None:
        self.failure = error
        self._left()
        self.drop_unread()
        drained, self.drained = self.drained, None
        waiter, self.waiter = self.waiter, None
        for future in (self.attached, drained, waiter, self.detached):
            fail(future, error)
        self.look_again()
        self.session.prompt()

    def begin_close(self) -> None:
        """From now on nothing is handed over; a blocked receive returns nothing (scenario 99)."""
        self.closing = True
        self.look_again()
        waiter, self.waiter = self.waiter, None
        settle(waiter)

    def close(self) -> Procedure[None]:
        """Close the consumer; on a lost connection silently."""
        return silenced(self._close(), lambda: self.session.failure is not None)

    def _close(self) -> Procedure[None]:
        """Drain, release what was not read, detach; the detach waits for what is handed over and not settled."""
        self.begin_close()
        if self.closed:
            return
        self.closed = True
        try:
            if self.link is not None and self.failure is None:
                yield from self.session.cancel([self], self.session.connection.close_deadline())
        finally:
            self.session.forget(self)
            self.detach_when_settled()
        if self.link is not None and not self.link.attached and self.failure is None:
            yield from self.session.leave(self, self.detached)

    def detach_when_settled(self) -> None:
        """Detach a closed consumer's link unless deliveries or a transaction still need it.

        Amid its close it is needed too: that detaches when all that was not read has gone back.
        """
        link = self.link
        if link is None or not link.attached or not self.closed or self.drained is not None:
            return
        if not self.unsettled and not self.in_transaction:
            self.detach()

    def detach(self) -> None:
        """Detach; to close the link of a durable subscription would end the subscription (M67)."""
        link = self.link
        if link is not None and link.attached:
            link.detach(closed=self.subscription is None or not self.subscription.durable)
        self.session.connection.subscriptions.leave(self)

    def set_listening(self, listening: bool) -> None:
        self.listening = listening
        if listening:
            self.session.unheard[self] = None
        self.session.note_listeners()
        self.window = 1
        self.replenish()
        self.session.prompt()

    def __repr__(self) -> str:
        state: Any = "closed" if self.closed else "failed" if self.failure else "open"
        return f"<consumer of {self.destination} {state}, {len(self.buffer)} unread>"
