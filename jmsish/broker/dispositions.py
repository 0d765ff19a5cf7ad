"""What a receiver says of its deliveries: one range of dispositions is one put-back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jmsish.broker.notes import too_many_notes
from jmsish.broker.order import ACQUIRED, Entry
from jmsish.broker.outgoing import OutgoingLink
from jmsish.broker.transactions import ROLLBACK, UNKNOWN_ID, Transaction, Work
from jmsish.engine.outcomes import (
    Accepted,
    AmqpError,
    DeliveryState,
    Modified,
    Rejected,
    Released,
    TransactionalState,
)

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.session import EngineSession


_TERMINAL = (Accepted, Released, Modified, Rejected)


def disposed(
    connection: ServerConnection,
    session: EngineSession,
    deliveries: list[Delivery],
    state: DeliveryState | None,
    settled: bool,
) -> None:
    """Apply a receiver's disposition to these outgoing deliveries, unsettled until now."""
    if settled and session.backlog and not isinstance(state, TransactionalState):
        _stop_sending(session, deliveries)
    if type(state) is Accepted and settled:
        _accept(connection, deliveries, state)
        return
    deliveries = [delivery for delivery in deliveries if not _is_over(delivery)]
    if not deliveries:
        return
    rest = session.engine.rest
    excess = too_many_notes(state, len(deliveries) if rest is None else len(deliveries) + len(rest))
    if excess is not None:
        _give_up(connection, deliveries)
        session.fail(excess)
        return
    if isinstance(state, TransactionalState):
        transaction = connection.transactions.get(state.txn_id)
        if transaction is None:
            _refuse_unknown(connection, deliveries, settled)
        else:
            _retire(connection, transaction, deliveries, state.outcome, settled)
    else:
        _apply(connection, session, deliveries, state, settled)


def comes_back(state: DeliveryState | None, settled: bool) -> bool:
    """Whether a message may come back to its queue, or become a dead letter, by what is said of it."""
    if isinstance(state, (Accepted, TransactionalState)):
        return False
    return settled or isinstance(state, _TERMINAL)


def _give_up(connection: ServerConnection, deliveries: list[Delivery]) -> None:
    """The session ends for what was said of them: they are not settled by it, and go as all go that it has."""
    for delivery in deliveries:
        consumer = delivery.link.context
        if isinstance(consumer, OutgoingLink):
            consumer.give_up(connection.broker.settlement, delivery)


def _stop_sending(session: EngineSession, deliveries: list[Delivery]) -> None:
    """Who settles a message before it is whole wants no more of it. (In a transaction it settles to begin with: D4.)"""
    under_way = [item.delivery for item in session.backlog]
    for delivery in deliveries:
        if delivery in under_way:
            session.abort(delivery)


def _is_over(delivery: Delivery) -> bool:
    """Decided or given up here already, perhaps by what was read together with the disposition: it comes too late."""
    entry = delivery.context
    if not isinstance(entry, Entry):
        return delivery.settled
    return entry.state != ACQUIRED or (isinstance(entry.work, Work) and entry.work.delivery is None)


def _accept(connection: ServerConnection, deliveries: list[Delivery], state: DeliveryState) -> None:
    """The usual case, kept short."""
    for delivery in deliveries:
        entry = delivery.context
        if entry is None:
            continue
        if entry.work is not None:
            if _is_over(delivery):
                continue
            _part_from_transaction(entry)
        delivery.link.context.queue.archive(entry)


def _apply(
    connection: ServerConnection,
    session: EngineSession,
    deliveries: list[Delivery],
    state: DeliveryState | None,
    settled: bool,
) -> None:
    settlement = connection.broker.settlement
    for delivery in deliveries:
        consumer, entry = delivery.link.context, delivery.context
        if not isinstance(entry, Entry):
            # A browser's copy: nothing was acquired, so nothing changes; it is settled if the receiver waits for it.
            if not settled and state is not None:
                session.disposition(delivery, state, settled=True)
            continue
        if isinstance(entry.work, Work):
            if not isinstance(state, _TERMINAL):
                # No outcome is given: what was said in the transaction stands (2.7.6), and cannot be changed any more.
                entry.work.settled = entry.work.settled or settled
                continue
            _part_from_transaction(entry)
        if entry.state != ACQUIRED:
            continue
        if state is not None and settlement.apply(consumer, entry, state):
            if not settled:
                session.disposition(delivery, state, settled=True)
        elif settled:
            consumer.apply_settled_without_state(settlement, entry)


def _part_from_transaction(entry: Entry) -> None:
    """A plain outcome for what is enlisted in a live transaction: both cannot hold (T78, treated as T72).

    The transaction is rolled back with its control link; then the outcome applies to what the rollback left.
    """
    work = entry.work
    if isinstance(work, Work):
        _end_control(work.transaction, "a delivery of the transaction was given an outcome outside of it")


def _end_control(transaction: Transaction, description: str) -> None:
    transaction.control.terminate(AmqpError(ROLLBACK, description))


def _retire(
    connection: ServerConnection,
    transaction: Transaction,
    deliveries: list[Delivery],
    outcome: DeliveryState | None,
    settled: bool,
) -> None:
    conflict = False
    for delivery in deliveries:
        consumer, entry = delivery.link.context, delivery.context
        if not isinstance(entry, Entry) or entry.state != ACQUIRED:
            continue
        work = entry.work
        if isinstance(work, Work) and work.transaction is not transaction:
            conflict = True
            work.settled = work.settled or settled
            continue
        transaction.retire(consumer, delivery, entry, outcome, settled)
    connection.broker.worked(transaction)
    if conflict:
        # "the delivery MUST NOT be associated with a different non discharged transaction than the outcome. If this
        # happens then the control link MUST be terminated" (4.4.2). What else the disposition named is undone with it.
        _end_control(transaction, "a delivery of another transaction was given an outcome in this one")


def _refuse_unknown(connection: ServerConnection, deliveries: list[Delivery], settled: bool) -> None:
    """An outcome in an unknown transaction: the message is available again, and the link ends saying why (T77)."""
    settlement = connection.broker.settlement
    links: dict[OutgoingLink, None] = {}
    for delivery in deliveries:
        consumer, entry = delivery.link.context, delivery.context
        if isinstance(entry, Entry) and entry.state == ACQUIRED and settled:
            if isinstance(entry.work, Work):
                entry.work.settled = True
            else:
                default = consumer.default_outcome
                settlement.apply_default(consumer, entry, None if isinstance(default, Accepted) else default, seen=True)
        if isinstance(consumer, OutgoingLink):
            links[consumer] = None
    error: Any = AmqpError(UNKNOWN_ID, "the disposition names a transaction that this connection does not have")
    for consumer in links:
        if consumer.gone:
            consumer.give_back()
        else:
            consumer.detach(error)
