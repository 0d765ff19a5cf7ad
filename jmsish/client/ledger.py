"""The ledger of a client session: what was handed over and is not settled, and how deliveries are given back.

What is done with a delivery at hand-over, by mode:

    AUTO         accepted, settled (from a listener: when it has returned)
    DUPS_OK      remembered in `lazy`; accepted ten at a time, at recover, at close, or after a second (D12)
    CLIENT       remembered in `delivered` until acknowledge, recover or close
    INDIVIDUAL   the same, but acknowledged one by one
    TRANSACTED   accepted under the transaction, settled at once (D4): its fate is the discharge's
    NONE         nothing: it came settled

Deliveries of all links of a session share one ascending delivery-id (Part 2, 2.6.12), so that order is the order of
arrival in the session.  Whatever goes back to the queue goes back in one ascending pass over all links (`give_back`):
unread deliveries as released, which leaves their count alone, handed-over ones as modified(delivery-failed), which
raises it by one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jmsish.client.arriving import arriving_message, begin_reading
from jmsish.client.links import OUTCOMES_OF_POLICY
from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    DecodeError,
    DeliveryState,
    Modified,
    Rejected,
)
from jmsish.errors import MessageFormatError
from jmsish.message import read_in
from jmsish.modes import AcknowledgeMode
from jmsish.profiles.profile import MODIFIED

if TYPE_CHECKING:
    from jmsish.client.consumer import ClientConsumer
    from jmsish.client.session import ClientSession
    from jmsish.engine.delivery import Delivery

_log = logging.getLogger("jmsish.client")

OUTCOMES_BY_NUMBER: tuple[DeliveryState, ...] = (
    ACCEPTED,
    Rejected(None),
    RELEASED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
)
"""What the property JMS_AMQP_ACK_TYPE can ask for (M27)."""

LAZY_BATCH = 10
"""DUPS_OK acknowledges in batches of ten (D12)."""

LAZY_SECONDS = 1.0
"""... and after a second without a further receive (D12)."""


def _without_modified(outcome: Modified) -> DeliveryState:
    """The nearest outcome at a broker that does not know modified: it does not count, but dead-letters."""
    return Rejected(None) if outcome.undeliverable_here else RELEASED


class ClientLedger:
    """The deliveries of one session between hand-over and settlement."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self._narrow = not session.connection.profile.has(MODIFIED)
        self.delivered: dict[int, Delivery] = {}
        self.lazy: list[Delivery] = []
        self.lazy_deadline: float | None = None
        self.current: tuple[ClientConsumer, Delivery] | None = None
        """What a listener is working on, in the modes that settle it when the listener returns."""

    def age(self, delivery: Delivery) -> int:
        """Delivery-ids compare by serial number arithmetic (Part 2, 2.8.10: RFC 1982)."""
        return (delivery.id - self.session.engine_session.first_incoming_id) & 0xFFFFFFFF

    @property
    def count(self) -> int:
        """How many deliveries are handed over and not acknowledged."""
        return len(self.delivered) + len(self.lazy) + (self.current is not None)

    # -- hand-over -------------------------------------------------------------------------------------------------

    def screen(self, consumer: ClientConsumer, delivery: Delivery) -> bool:
        """Whether a delivery may be handed over; an expired or over-delivered one is disposed of instead (M84, M85).

        A browser is not shown what has expired either, and what it passes over it leaves as it is.
        """
        connection = self.session.connection
        outcome: DeliveryState = MODIFIED_FAILED_UNDELIVERABLE
        try:
            if delivery.stream is None:
                received, expiry = consumer.reader.read(delivery.payload)
            else:
                received = arriving_message(consumer, delivery)
                expiry = received.check()
            header = received.prefix.header
            # M15: a time to live alone counts from the arrival
            arrival = connection.wall_milliseconds() if expiry or header.ttl else 0
            if not expiry or expiry > arrival:
                limit = connection.options.max_redeliveries
                if limit is None or consumer.browsing or header.delivery_count <= limit:
                    delivery.context = read_in(received, consumer.destination, connection.prefixes, arrival)
                    return True
                outcome = OUTCOMES_OF_POLICY[connection.options.redelivery_outcome]
        except (DecodeError, MessageFormatError) as fault:
            self._report_unreadable(consumer, delivery, fault)
        self.dispose(delivery, ACCEPTED if consumer.browsing else outcome)
        consumer.replenish()
        return False

    def _report_unreadable(self, consumer: ClientConsumer, delivery: Delivery, fault: Exception) -> None:
        """Never dropped, never looped: somebody else may understand it, we do not."""
        left = "passed over" if consumer.browsing or delivery.remote_settled else "given back, for others to read"
        error = MessageFormatError(f"a message on {consumer.destination} cannot be read and was {left}: {fault}")
        error.__cause__ = fault
        _log.warning("%s", error)
        self.session.connection.report(error)

    def hand_over(self, consumer: ClientConsumer, delivery: Delivery, in_listener: bool = False) -> None:
        """Record or settle, by mode, a delivery that goes to the application now; then refill the window."""
        stream = delivery.stream
        session = self.session
        mode = session.mode
        trace = session.connection.trace
        if trace is not None and not consumer.browsing:
            trace.delivery("handed_over", delivery, consumer.destination, consumer)
        if delivery.remote_settled:
            pass
        elif consumer.browsing or mode is AcknowledgeMode.NONE:
            self.dispose(delivery, ACCEPTED)
        elif mode is AcknowledgeMode.TRANSACTED:
            self._enlist(consumer, delivery)
        elif in_listener and (mode is AcknowledgeMode.AUTO or mode is AcknowledgeMode.DUPS_OK):
            consumer.unsettled += 1
            self.current = (consumer, delivery)
        elif stream is not None and (mode is AcknowledgeMode.AUTO or mode is AcknowledgeMode.DUPS_OK):
            consumer.unsettled += 1  # settled when it was read (`ArrivingBody`)
        elif mode is AcknowledgeMode.AUTO:
            session.engine_session.disposition(delivery, ACCEPTED, True)
        else:
            consumer.unsettled += 1
            if mode is AcknowledgeMode.DUPS_OK:
                self._acknowledge_lazily(delivery)
            else:
                self.delivered[delivery.id] = delivery
        if stream is not None:
            begin_reading(consumer, delivery, in_listener)
        consumer.replenish()

    def _enlist(self, consumer: ClientConsumer, delivery: Delivery) -> None:
        session = self.session
        controller = session.controller
        assert controller is not None
        if controller.broken is not None:
            # scenario 126: after the loss of the control link no disposition is sent; the commit will raise
            self.delivered[delivery.id] = delivery
            consumer.unsettled += 1
            return
        session.engine_session.disposition(delivery, controller.accepted, True)
        controller.received += 1
        controller.last_received = delivery.payload
        if session.connection.trace is not None:
            session.connection.trace.enlisted(session, delivery, consumer.destination)
        if not consumer.in_transaction:
            consumer.in_transaction = True
            session.involved[consumer] = None
            controller.retired[consumer.origin] = None

    def _acknowledge_lazily(self, delivery: Delivery) -> None:
        self.lazy.append(delivery)
        if len(self.lazy) >= LAZY_BATCH:
            self.flush_lazy()
        else:
            self.lazy_deadline = self.session.connection.now + LAZY_SECONDS

    # -- settlement ------------------------------------------------------------------------------------------------

    def dispose(self, delivery: Delivery, outcome: DeliveryState) -> None:
        if delivery.stream is not None:
            self._stop_reading(delivery)
        session = self.session.engine_session
        if not delivery.remote_settled and delivery.link.session is session:  # it is not of a connection that was lost
            if self._narrow and isinstance(outcome, Modified):
                outcome = _without_modified(outcome)
            session.disposition(delivery, outcome, True)

    def _stop_reading(self, delivery: Delivery) -> None:
        """What still comes of a settled delivery is dropped."""
        assert delivery.stream is not None
        reading = self.session.reading
        if reading is not None and reading.delivery is delivery:
            reading.acknowledges = False
            reading.supersede()
        delivery.stream.drop()

    def resolve(self, delivery: Delivery, outcome: DeliveryState) -> None:
        """Settle a delivery that was handed over; its consumer's link may go when it was the last."""
        consumer: ClientConsumer = delivery.link.context
        if delivery.link.session is not self.session.engine_session:
            return  # it went with the connection it came by, and the broker has it again
        self.dispose(delivery, outcome)
        consumer.unsettled -= 1
        if consumer.closed and not consumer.unsettled:
            consumer.detach_when_settled()
            self.session.lingering.discard(consumer)

    def flush_lazy(self) -> None:
        lazy, self.lazy, self.lazy_deadline = self.lazy, [], None
        for delivery in lazy:
            self.resolve(delivery, ACCEPTED)

    def acknowledge(self, delivery: Delivery | None, kind: int | None = None) -> None:
        """`Message.acknowledge`: all that the session handed over (CLIENT), or this one (INDIVIDUAL); else nothing.

        `kind` is the property JMS_AMQP_ACK_TYPE of the message: which outcome it is to be, 1 (accepted) to 5 (M27).
        """
        self.session.check()
        mode = self.session.mode
        outcome = OUTCOMES_BY_NUMBER[(kind or 1) - 1]
        if mode is AcknowledgeMode.CLIENT:
            delivered, self.delivered = self.delivered, {}
            for each in delivered.values():
                self.resolve(each, outcome)
        elif (
            mode is AcknowledgeMode.INDIVIDUAL and delivery is not None and self.delivered.get(delivery.id) is delivery
        ):
            del self.delivered[delivery.id]
            self.resolve(delivery, outcome)

    def listener_returned(self) -> None:
        """AUTO and DUPS_OK: what the listener worked on is acknowledged, unless it was recovered meanwhile (D7)."""
        current, self.current = self.current, None
        if current is not None and self.session.failure is None:
            consumer, delivery = current
            consumer.failing_id, consumer.failures_in_row = None, 0
            if self.session.mode is AcknowledgeMode.DUPS_OK and not consumer.closed:
                self._acknowledge_lazily(delivery)
            else:
                self.resolve(delivery, ACCEPTED)

    # -- giving back -----------------------------------------------------------------------------------------------

    def take_handed_over(self) -> list[Delivery]:
        """Empty the record of what was handed over and not acknowledged; it is the caller's to give back."""
        handed_over, self.delivered = list(self.delivered.values()), {}
        if self.current is not None:
            handed_over.append(self.current[1])
            self.current = None
        return handed_over

    def give_back(self, consumers: Iterable[ClientConsumer], handed_over: Iterable[Delivery] = ()) -> None:
        """Give back in one ascending pass: `handed_over` as failed, the consumers' unread deliveries as released."""
        failed = {d.id: d for d in handed_over}
        unread = [d for consumer in consumers if not consumer.renewed for d in consumer.unread()]
        trace = self.session.connection.trace
        for delivery in sorted([*failed.values(), *unread], key=self.age):
            if delivery.id in failed:
                self.resolve(delivery, MODIFIED_FAILED)
            else:
                self.dispose(delivery, RELEASED)
            if trace is not None:
                event = "modified" if delivery.id in failed else "released"
                trace.delivery(event, delivery, delivery.link.context.destination)

    def forget(self) -> None:
        """The session is gone, and its deliveries with it."""
        self.delivered.clear()
        self.lazy.clear()
        self.lazy_deadline = None
        self.current = None
