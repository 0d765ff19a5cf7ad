"""A session: what is given back, when, and what is done under a transaction.

Theory of operation.  Before anything is given back, the receivers concerned are drained, so that nothing later is
under way; credit is granted again only when all is given back.  Between the two, the ledger gives back in one pass
(`ledger.py`).  That is the whole of `cancel`, `recover` and `rollback`; what differs is only which deliveries were
handed over, and who tells the broker: a disposition, or the discharge of the transaction.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsish.client.answers import Answer
from jmsish.client.attaching import join
from jmsish.client.ending import close_session
from jmsish.client.ledger import ClientLedger
from jmsish.client.procedures import Procedure, fail, settle, silenced
from jmsish.client.transaction import TransactionController
from jmsish.client.waiting import Waiting, waits_in
from jmsish.engine.outcomes import AmqpError
from jmsish.errors import (
    IllegalStateError,
    JMSError,
    OperationTimeoutError,
    TransactionRolledBackError,
    error_for,
)
from jmsish.modes import AcknowledgeMode

if TYPE_CHECKING:
    from jmsish.client.arriving import ArrivingBody
    from jmsish.client.connection import ClientConnection
    from jmsish.client.consumer import ClientConsumer
    from jmsish.client.credit import CreditWindow
    from jmsish.client.producer import ClientProducer
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.session import EngineSession


class ClientSession(Waiting):
    """One JMS session over one AMQP session."""

    restoring = False
    """It is being made again, and was there before."""
    _told = False
    """Whether a call raises the failure of the session: then the exception listener is not told."""

    def __init__(self, connection: ClientConnection, mode: AcknowledgeMode, engine_session: EngineSession) -> None:
        self.connection = connection
        self.mode = mode
        self.engine_session = engine_session
        engine_session.context = self
        self.begun: Future[None] = Answer()
        self.ended: Future[None] = Answer()
        self.consumers: list[ClientConsumer] = []
        self._readers: dict[Hashable, list[ClientConsumer]] = {}
        """They once more, without browsers, by the queue or subscription that they read."""
        self._crowds: dict[Hashable, list[ClientConsumer]] = {}
        """Of these, what more than one reads."""
        self.unheard: dict[ClientConsumer, None] = {}
        """Those with a listener that something came for; some of it may have gone back."""
        self.involved: dict[ClientConsumer, None] = {}
        """Those that have taken something in the transaction that is open."""
        self.producers: list[ClientProducer] = []
        self.lingering: set[ClientConsumer] = set()
        """Closed consumers whose link is still attached for what they handed over."""
        self.leaving: dict[Future[None], ClientConsumer | ClientProducer] = {}
        """Who waits for the answer to a detach, of those that the lists above have forgotten."""
        self.ledger = ClientLedger(self)
        self.is_listening = False
        """Whether a listener receives: then nobody else does (JMS 3.1, 6.2.6)."""
        self.controller = TransactionController(self) if mode is AcknowledgeMode.TRANSACTED else None
        self.prompted: Future[None] | None = None
        self.ending: Future[None] = Answer()
        """Done as soon as the session begins to close or has failed."""
        self.closing = False
        self._leaves = False
        """It closes, and no listener runs for which anything is waited for."""
        self.closed = False
        self.reading: ArrivingBody | None = None
        """What was handed over before it had arrived whole, and is being read."""
        self.failure: JMSError | None = None

    @property
    def is_leaving(self) -> bool:
        return self._leaves

    # -- state -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise what forbids the use of this session."""
        if self.closed:
            raise IllegalStateError("the session is closed") from self.failure
        if self.failure is not None:
            raise self.failure

    def enroll(self, consumer: ClientConsumer) -> None:
        """A consumer is one of the session's from now on; a browser shares with nobody."""
        self.consumers.append(consumer)
        if not consumer.browsing:
            sharers = self._readers.setdefault(consumer.origin, [])
            sharers.append(consumer)
            if len(sharers) > 1:
                self._crowds[consumer.origin] = sharers

    def strike(self, consumer: ClientConsumer) -> None:
        """A consumer is none of the session's any more."""
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            if not consumer.browsing:
                sharers = self._readers[consumer.origin]
                sharers.remove(consumer)
                if len(sharers) == 1:
                    del self._crowds[consumer.origin]
                elif not sharers:
                    del self._readers[consumer.origin]

    def siblings(self, consumer: CreditWindow) -> list[ClientConsumer]:
        """The other open consumers of this session on the same queue, with which it shares; under "never" with none."""
        if consumer.browsing or self.connection.options.cancel_on_commit == "never":
            return []
        return [each for each in self._readers.get(consumer.origin, ()) if each is not consumer]

    def has_sibling(self, consumer: CreditWindow) -> bool:
        """Asked for each message: it does not look through the consumers."""
        if consumer.browsing or self.connection.options.cancel_on_commit == "never":
            return False
        return consumer.origin in self._crowds

    def forget(self, consumer: ClientConsumer) -> None:
        """A consumer closed: its siblings may be alone on their queue now, and take all the credit they want."""
        if consumer in self.consumers:
            self.strike(consumer)
            if consumer.listening:
                self.note_listeners()
            if consumer.unsettled or consumer.in_transaction:
                self.lingering.add(consumer)
            readers = self._readers.get(consumer.origin, ())
            if len(readers) == 1:
                readers[0].replenish()

    def end_reading(self) -> None:
        """The session goes on: what is being read and has not arrived whole is skipped."""
        if self.reading is not None:
            self.reading.supersede()

    def note_listeners(self) -> None:
        self.is_listening = any(consumer.listening for consumer in self.consumers)

    def prompt(self) -> None:
        """There may be something for a listener."""
        prompted, self.prompted = self.prompted, None
        settle(prompted)

    def fail(self, error: JMSError) -> None:
        self.failure = error
        if self.reading is not None:
            self.reading.fail(error)
        self.lose_transaction(error)
        for consumer in [*self.consumers, *self.lingering]:
            consumer.fail(error)
        for producer in self.producers:
            producer.fail(error)
        for party in list(self.leaving.values()):
            party.fail(error)
        self.ledger.forget()
        fail(self.begun, error)
        settle(self.ended)
        settle(self.ending)
        self.look_again()
        self.prompt()

    def lose_transaction(self, error: JMSError) -> None:
        """Before outcomes are lost and waiters woken: what it means to lose the answer to a commit is known there."""
        self._told = self._told or waits_in(self)
        if self.controller is not None:
            self.controller.lost(error, in_doubt=True)

    def why_ended(self, error: AmqpError | None) -> JMSError:
        condition = error.condition if error else None
        text = (error.description or condition) if error else "no reason given"
        return error_for(condition, f"the broker ended the session: {text}", scope="session")

    def on_ended(self, error: AmqpError | None) -> None:
        self.connection.sessions.discard(self)
        if self.closed:
            settle(self.ended)
            return
        failure = self.why_ended(error)
        self.fail(failure)
        if not self._told:
            self.connection.report(failure)

    # -- listeners -------------------------------------------------------------------------------------------------

    def listener_prompt(self) -> Future[None] | None:
        """A future that is done when there may be something for a listener; None when there never will be again."""
        if self.closing or self.failure is not None:
            return None
        if self.prompted is None:
            self.prompted = Answer()
        prompted = self.prompted
        if self.connection.started and self._ready_to_listen():
            self.prompt()
        return prompted

    @property
    def _has_transaction(self) -> bool:
        """A transacted session has none for a moment, after its connection was lost."""
        controller = self.controller
        return controller is None or controller.accepted is not None or controller.broken is not None

    def _ready_to_listen(self) -> list[ClientConsumer]:
        """The consumers whose listener has something to do; of those that have not, nothing is remembered."""
        ready = [c for c in self.unheard if c.listening and c.buffer and not c.closing]
        if len(ready) != len(self.unheard):
            self.unheard = dict.fromkeys(ready)
        return ready

    def next_for_listener(self) -> tuple[ClientConsumer, Delivery] | None:
        """The unread delivery that arrived first among the consumers with a listener, handed over."""
        if not self.connection.started or self.closing or self.failure is not None or not self._has_transaction:
            return None
        while True:
            ready = self._ready_to_listen()
            if not ready:
                return None
            self.end_reading()
            first = min(ready, key=lambda c: self.ledger.age(c.buffer[0]))
            delivery = first.take()
            if delivery is not None:
                self.ledger.hand_over(first, delivery, in_listener=True)
                return first, delivery

    def listener_failed(self) -> Procedure[int]:
        """AUTO and DUPS_OK: what the listener raised on comes again at once, counted (D6).

        Returns how many times in a row this message failed at this consumer; 0 in the modes where it just stays
        delivered (scenario 108).
        """
        if self.ledger.current is None:
            return 0
        consumer, delivery = self.ledger.current
        identity = self.connection.identity_of(delivery)
        consumer.failures_in_row = consumer.failures_in_row + 1 if consumer.failing_id == identity else 1
        consumer.failing_id = identity
        yield from self.recover()
        return consumer.failures_in_row

    # -- giving back -----------------------------------------------------------------------------------------------

    def drain(self, consumers: Iterable[ClientConsumer], deadline: float | None) -> Procedure[None]:
        """Wait until nothing is under way to `consumers`; they get no credit until `grant`."""
        for consumer, drained in [(c, c.start_drain()) for c in consumers]:
            yield from consumer.wait_drained(drained, deadline)

    def cancel(self, consumers: list[ClientConsumer], deadline: float | None) -> Procedure[None]:
        """Give back what `consumers` have not read, in order and uncounted."""
        try:
            yield from self.drain(consumers, deadline)
        finally:
            self.ledger.give_back(consumers)
            self.grant(consumers)

    def grant(self, consumers: Iterable[ClientConsumer]) -> None:
        """Credit again, where somebody is there to read (D2)."""
        for consumer in consumers:
            consumer.end_drain()
            consumer.replenish()

    # -- recover ----------------------------------------------------------------------------------------------------

    def recover(self) -> Procedure[None]:
        """Stop, give back what was handed over and not acknowledged, counted, and what was not read, uncounted (D3)."""
        self.check()
        if self.mode is AcknowledgeMode.TRANSACTED:
            raise IllegalStateError("a transacted session is recovered by rollback()")
        self.ledger.flush_lazy()
        handed_over = self.ledger.take_handed_over()
        if not handed_over:
            return
        consumers = self._on(dict.fromkeys(d.link.context.origin for d in handed_over))
        try:
            yield from self.drain(consumers, self.connection.request_deadline())
        finally:
            self.ledger.give_back(consumers, handed_over)
            self.grant(consumers)

    # -- transactions ----------------------------------------------------------------------------------------------

    def transaction(self) -> TransactionController:
        self.check()
        if self.controller is None:
            raise IllegalStateError("the session is not transacted: commit and rollback need transacted=True")
        return self.controller

    def ready_to_consume(self, deadline: float | None = None, party: Waiting | None = None) -> Procedure[None]:
        """A transacted hand-over needs a transaction to enlist in; it is waited for, not beyond the deadline."""
        self.check()
        controller = self.controller
        if controller is not None and controller.accepted is None and controller.broken is None:
            yield from controller.ready(deadline, party)

    def commit(self) -> Procedure[None]:
        """Discharge the transaction; see docs/transacted-session.md for the order of the steps.

        Raises `TransactionRolledBackError` when the broker did not commit, `TransactionInDoubtError` when its answer
        was lost, `IllegalStateError` when the session is not transacted or closed.
        """
        controller = self.transaction()
        origins = list(controller.retired)
        cancelled = self._cancelled_at_commit() if controller.broken is None else []
        try:
            yield from self.drain(cancelled, self.connection.request_deadline())
            self.check()
        except BaseException:
            self.ledger.give_back(cancelled)
            self.grant(cancelled)
            raise
        if controller.broken is not None:  # lost before, or while the drain was waited for
            yield from self._start_over()
        try:
            if controller.has_work:
                yield from self._discharge(controller)
        except TransactionRolledBackError:
            self._tell("rolled_back")
            yield from self._take_back(origins)
            raise
        finally:
            self._transaction_over()
            self.ledger.give_back(cancelled)
            self.grant(cancelled)

    def _discharge(self, controller: TransactionController) -> Procedure[None]:
        """Commit, unless the work may not have got to the broker whole: then it is rolled back."""
        spoiled = controller.spoiled
        yield from controller.discharge(failed=spoiled is not None)
        if spoiled is not None:
            raise TransactionRolledBackError(
                f"the transaction was rolled back: {spoiled}", scope="transaction"
            ) from spoiled
        self._tell("committed")

    def _cancelled_at_commit(self) -> list[ClientConsumer]:
        """D1: whose buffers to cancel; by default those that share their queue with another of the session."""
        policy = self.connection.options.cancel_on_commit
        if policy == "never":
            return []
        shared = self._readers if policy == "always" else self._crowds
        return [consumer for readers in shared.values() for consumer in readers]

    def rollback(self) -> Procedure[None]:
        """Give back what the transaction received, counted, and what was not read, uncounted; drop what it sent."""
        controller = self.transaction()
        controller.orphaned = False
        consumers = self._on(controller.retired)
        late: OperationTimeoutError | None = None
        if controller.has_work:
            try:
                yield from self.drain(consumers, self.connection.request_deadline())
            except OperationTimeoutError as error:
                late = error  # scenario 123: the discharge is sent all the same
            self.check()
        if controller.broken is not None:  # lost before, or while the drain was waited for: it is rolled back
            controller.broken = None
            yield from self._take_back(())
        elif controller.has_work:
            try:
                yield from controller.discharge(failed=True)
                self._tell("rolled_back")
            finally:
                self._transaction_over()
                self.ledger.give_back(consumers)
                self.grant(consumers)
        else:
            self.grant(consumers)
        if late is not None:
            raise late

    def _tell(self, event: str) -> None:
        if self.connection.trace is not None:
            self.connection.trace.discharged(self, event)

    def _on(self, origins: Iterable[Hashable]) -> list[ClientConsumer]:
        """Every consumer on these queues, not only those that took part (docs/transacted-session.md)."""
        return [consumer for origin in origins for consumer in self._readers.get(origin, ())]

    def _take_back(self, origins: Iterable[Hashable]) -> Procedure[None]:
        """The broker rolled back by itself: give back the unread, so that what it put back comes first again."""
        consumers = self._on(origins or self._readers)
        self._transaction_over()
        handed_over = self.ledger.take_handed_over()
        try:
            yield from self.drain(consumers, self.connection.request_deadline())
        finally:
            self.ledger.give_back(consumers, handed_over)
            self.grant(consumers)

    def _start_over(self) -> Procedure[None]:
        """The transaction was lost: take back, and raise why (scenario 126, 163)."""
        controller = self.controller
        assert controller is not None and controller.broken is not None
        cause, controller.broken = controller.broken, None
        yield from self._take_back(())
        raise TransactionRolledBackError(
            f"the transaction was lost before the commit: {cause}", scope="transaction", condition=cause.condition
        ) from cause

    def _transaction_over(self) -> None:
        self.end_reading()
        if self.controller is not None:
            self.controller.orphaned = False
        involved, self.involved = self.involved, {}
        for consumer in involved:
            consumer.in_transaction = False
            consumer.detach_when_settled()
        self.lingering = {c for c in self.lingering if c.unsettled}

    # -- consumers and life ----------------------------------------------------------------------------------------

    def add_consumer(self, consumer: ClientConsumer) -> Procedure[None]:
        """Attach a consumer or browser; see `attaching.join` for what is refused."""
        return join(consumer)

    def leave(self, party: ClientConsumer | ClientProducer, detached: Future[None]) -> Procedure[None]:
        """Wait until the broker has detached a link that closes; a loss meanwhile is known to it."""
        if self.ended.done():
            return  # the link went with the session
        self.leaving[detached] = party
        try:
            yield detached, self.connection.close_deadline()
        finally:
            self.leaving.pop(detached, None)

    def begin_close(self, listening: bool = False) -> None:
        """Nothing is handed over any more; blocked receives return nothing, and sends that wait for credit fail.

        With `listening` a listener runs, whose sends may wait on until it returns (jms rule 35).
        """
        self.closing = True
        self._leaves = not listening
        self.look_again()
        for consumer in self.consumers:
            consumer.begin_close()
        for producer in () if listening else self.producers:
            fail(producer.credited, IllegalStateError("the session was closed while the send waited for credit"))
        if self.reading is not None:
            self.reading.on_arrived()
        settle(self.ending)
        self.prompt()

    def close(self) -> Procedure[None]:
        """Close the session; on a lost connection silently."""
        return silenced(close_session(self), lambda: self.failure is not None)

    def until_ended(self) -> Procedure[None]:
        """Wait for the end of a session that is being closed, by whomever; once it is closed there is nothing to do."""
        if self.failure is None and self in self.connection.sessions:
            yield self.ended, self.connection.close_deadline()
