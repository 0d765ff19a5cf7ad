"""A connection is lost that will be made again: what is over by that, what is kept, and who is told.

Theory of operation.  The objects of the application stay; what they had at the broker is gone.  For each there is one
answer, given here in one step, before anybody else sees the loss:

    a message prefetched                dropped: it comes again, from the broker (M108)
    a delivery not acknowledged         forgotten: to acknowledge it has no effect (the session gets a new ledger)
    a transaction with work             broken: its commit will raise (scenarios 163, 164), its rollback will not (165)
    a commit whose answer is awaited    in doubt (166); a rollback is done, for a loss is one
    a drain, a detach, an end           done: nothing is under way any more
    a receive                           waits on
    a send not written yet              kept, and written when its link is there again
    a send in flight                    raises with `outcome_unknown`, or is kept where `resend_in_flight` says so (D11)
    something being made                goes on: it is made again with the rest (`restoring.py`)

No credit, no link and no buffer outlives this, so none of the short ways of sending and receiving needs to ask whether
the connection stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jmsish.client.ledger import ClientLedger
from jmsish.client.procedures import Interrupted, fail, settle
from jmsish.client.producer import ClientProducer, unknown_outcome
from jmsish.client.subscriptions import Subscriptions
from jmsish.events import ConnectionInterrupted, DeliveriesLost, TransactionLost

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection
    from jmsish.client.consumer import ClientConsumer
    from jmsish.client.session import ClientSession
    from jmsish.client.transaction import TransactionController
    from jmsish.engine.delivery import Delivery
    from jmsish.errors import JMSError
    from jmsish.events import ConnectionEvent


def interrupt(connection: ClientConnection, cause: JMSError) -> None:
    """Act on the loss of a connection, or of one that was just being made again."""
    stood = not connection.offline
    if stood:
        connection.go_offline(cause)
        for controller in [each.controller for each in connection.sessions if each.controller is not None]:
            controller.orphan()
    connection.engine.close()
    broken = Interrupted(str(cause), scope="connection", condition=cause.condition, info=cause.info)
    broken.__cause__ = cause
    connection.broken = broken
    told: list[ConnectionEvent] = []
    unconfirmed = 0
    for session in list(connection.sessions):
        unconfirmed += interrupt_session(session, cause, broken, told)
        if session.closed:
            connection.sessions.discard(session)
    for waiting in connection.take_settling():
        settle(waiting)
    connection.own_session.interrupted(broken)
    connection.subscriptions = Subscriptions(connection)
    for future in (connection.authenticated, connection.opened, connection.dialling):
        fail(future, broken)
    if stood:
        connection.tell(ConnectionInterrupted(connection.peer, cause, unconfirmed))
    for event in told:
        connection.tell(event)


def interrupt_session(session: ClientSession, cause: JMSError, broken: Interrupted, told: list[ConnectionEvent]) -> int:
    """What one session loses.  How many messages have left of which nobody will hear."""
    if session.reading is not None:
        session.reading.fail(cause)
    if session.controller is not None:
        told += _interrupt_transaction(session.controller, cause, broken)
    unconfirmed = _interrupt_sends(session, cause)
    _interrupt_deliveries(session, broken, told)
    for producer in session.producers:
        producer.link = producer.coming = producer.address = None
        if producer.restoring:
            fail(producer.attached, broken)
        credited, producer.credited = producer.credited, None
        settle(credited)
    for gone, party in session.leaving.items():
        party.link = None
        settle(gone)
    if session.restoring:
        fail(session.begun, broken)
    if session.closed:
        settle(session.ended)
    return unconfirmed


# -- transactions ------------------------------------------------------------------------------------------------------


def _interrupt_transaction(
    controller: TransactionController, cause: JMSError, broken: Interrupted
) -> list[ConnectionEvent]:
    had_work, sent = controller.has_work, controller.sent
    controller.interrupted(cause, broken)
    return [TransactionLost(sent, cause)] if had_work else []


# -- what was sent -----------------------------------------------------------------------------------------------------


def _interrupt_sends(session: ClientSession, cause: JMSError) -> int:
    """Keep what was not written, and what may be sent twice; of the rest tell those who wait that nobody knows."""
    connection = session.connection
    again = connection.options.resend_in_flight
    unconfirmed = 0
    unwritten = list(_unwritten(session))
    in_flight = [each for each in session.engine_session.outgoing.values() if each not in unwritten]
    for delivery in in_flight:
        if not isinstance(delivery.link.context, ClientProducer):
            continue  # what was said to the coordinator
        if delivery.context is None:
            unconfirmed += 1
        elif not (again and _keep(delivery)):
            connection.resolve(delivery, unknown_outcome(cause))
    for delivery in unwritten:
        if isinstance(delivery.link.context, ClientProducer) and session.controller is None and not _keep(delivery):
            connection.resolve(delivery, cause)
    return unconfirmed


def _unwritten(session: ClientSession) -> Iterator[Delivery]:
    """Deliveries of which the broker has nothing, or only a part, which counts as nothing (Part 2, 2.6.14)."""
    links = list(session.engine_session.links.values())
    for link in links:
        yield from link.unsent
    for item in session.engine_session.backlog:
        yield item.delivery
    for link in links:
        for item in link.held:
            yield item.delivery


def _keep(delivery: Delivery) -> bool:
    """Put a message aside for the link to come; false for one that came in pieces, which nobody has any more."""
    producer: ClientProducer = delivery.link.context
    if not delivery.payload or producer.closed:
        return False
    producer.kept.append((delivery.payload, delivery.context))
    delivery.context = None
    return True


# -- what was received -------------------------------------------------------------------------------------------------


def _interrupt_deliveries(session: ClientSession, broken: Interrupted, told: list[ConnectionEvent]) -> None:
    ledger = session.ledger
    consumers = [*session.consumers, *session.lingering]
    unacknowledged = ledger.count
    prefetched = sum(len(each.buffer) for each in session.consumers if not each.browsing)
    if unacknowledged or prefetched:
        owners = dict.fromkeys(each.destination for each in consumers if each.buffer or each.unsettled)
        told.append(DeliveriesLost(tuple(owners), prefetched, unacknowledged))
    ledger.forget()
    session.ledger = ClientLedger(session)
    session.lingering.clear()
    session.involved, session.unheard = {}, {}
    for consumer in consumers:
        interrupt_consumer(consumer, broken)
    session.prompt()


def interrupt_consumer(consumer: ClientConsumer, broken: Interrupted) -> None:
    """Its link is gone, and all that came or was to come by it."""
    consumer.drop_unread()
    consumer.link = consumer.address = None
    consumer.window = 1
    consumer.unsettled = 0
    consumer.in_transaction = False
    consumer.renewed = True
    if consumer.restoring:
        fail(consumer.attached, broken)
    consumer.end_drain()
    waiter, consumer.waiter = consumer.waiter, None
    settle(waiter)
