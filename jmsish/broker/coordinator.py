"""The coordinator: control links, on which transactions are declared and discharged (Part 4)."""

from __future__ import annotations

from collections import deque
from secrets import token_bytes
from typing import TYPE_CHECKING, Final

from jmsish.broker.refusals import RESOURCE_LIMIT_EXCEEDED
from jmsish.broker.transactions import ROLLBACK, UNKNOWN_ID, Transaction
from jmsish.engine.outcomes import (
    ACCEPTED,
    AmqpError,
    Coordinator,
    Declare,
    Declared,
    DeliveryState,
    Discharge,
    Rejected,
    Source,
    decode_control,
)

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link

CAPABILITIES: Final = ("amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn")
_CREDIT: Final = 1000
_ID_LENGTH: Final = 16
SECOND: Final = 1
"""rcv-settle-mode: the resource settles only when the controller has (Part 2, 2.8.3)."""
REJECTED: Final = "amqp:rejected:list"


def allows_rejected(source: object) -> bool:
    """Whether the sender's source can take the outcome rejected; one that lists no outcomes is taken to."""
    return not isinstance(source, Source) or source.outcomes is None or REJECTED in source.outcomes


class ControlLink:
    """One link to the coordinator. Its transactions live as long as it does (4.1)."""

    __slots__ = ("_connection", "_held", "_link", "_owned", "_waiting", "capabilities", "credit", "over")

    def __init__(self, connection: ServerConnection, link: Link) -> None:
        self._connection = connection
        self._link = link
        self._owned: dict[bytes, Transaction] = {}
        self._held: deque[tuple[Delivery, DeliveryState]] = deque()
        """Answers that wait until a message acquired under a transaction is given up before the peer (T86)."""
        self._waiting: dict[Transaction, None] = {}
        """Those whose commit waits for messages that wait for a frozen exchange."""
        self.over = False
        """Detached; what was still on its way is dropped."""
        self.capabilities: tuple[str, ...] = CAPABILITIES
        self.credit = _CREDIT

    def attach(self) -> None:
        """Answer with what works here (T11), whatever was desired."""
        link = self._link
        link.rcv_settle_mode = link.remote_rcv_settle_mode
        link.attach(source=link.remote_source, target=Coordinator(self.capabilities))
        link.flow(self.credit)

    def posted(self, delivery: Delivery) -> None:
        """A control message: a declare or a discharge."""
        link = self._link
        if link.credit * 2 <= self.credit:
            link.flow(self.credit)
        if delivery.remote_settled:
            # "This message MUST NOT be sent settled"; where it is, the coordinator detaches (4.2, 4.3).
            return self._detach(AmqpError("amqp:not-allowed", "a control message must not be sent settled"))
        if delivery.remote_state is not None:
            return self._detach(AmqpError("amqp:not-allowed", "a control message cannot be part of a transaction"))
        try:
            command = decode_control(delivery.payload)
        except ValueError as error:
            return self._detach(AmqpError("amqp:decode-error", str(error)))
        if isinstance(command, Declare):
            self._declare(delivery, command)
        else:
            self._discharge(delivery, command)

    def _declare(self, delivery: Delivery, command: Declare) -> None:
        if command.global_id is not None:
            # Only a coordinator of distributed transactions takes one (4.5.2), and errors are transaction-errors (4.2).
            self._refuse(delivery, AmqpError(UNKNOWN_ID, "only local transactions: no global-id can be joined"))
            return
        most = self._connection.broker.config.caps.max_transactions
        if most and len(self._connection.transactions) >= most:
            text = f"{most} transactions are declared on this connection and not discharged, and at most so many"
            self._refuse(delivery, AmqpError(RESOURCE_LIMIT_EXCEEDED, text))
            return
        txn_id = token_bytes(_ID_LENGTH)
        transaction = Transaction(txn_id, self._connection, self)
        self._owned[txn_id] = self._connection.transactions[txn_id] = transaction
        self._answer(delivery, Declared(txn_id))

    def _discharge(self, delivery: Delivery, command: Discharge) -> None:
        transaction = self._owned.pop(command.txn_id, None)
        if transaction is None:
            self.unknown(delivery)
            return
        if self._connection.is_posting(command.txn_id):
            # "It is an error for the controller to attempt to discharge a transaction against which a partial
            # delivery has been posted. Should this happen, the control link MUST be terminated" (4.4.1).
            self._owned[command.txn_id] = transaction
            return self._detach(AmqpError(ROLLBACK, "discharged while a message of it was still on its way"))
        del self._connection.transactions[command.txn_id]
        if transaction.parked and not command.fail and transaction.failure is None:
            self._waiting[transaction] = None
            transaction.resume = lambda: self._discharge_now(delivery, command, transaction)
            return
        self._discharge_now(delivery, command, transaction)

    def unknown(self, delivery: Delivery) -> None:
        """Answer the discharge of a transaction that there is not (4.3)."""
        self._refuse(delivery, AmqpError(UNKNOWN_ID, "this control link has no such transaction"))

    def _discharge_now(self, delivery: Delivery, command: Discharge, transaction: Transaction) -> None:
        """No message of it waits for a frozen exchange any more."""
        self._waiting.pop(transaction, None)
        self._connection.broker.touch(self._connection)
        settlement = self._connection.broker.settlement
        refusal = None if command.fail else transaction.refusal()
        if refusal is not None:
            transaction.mourn(str(refusal))
        if command.fail or refusal is not None:
            transaction.roll_back(settlement)
        else:
            transaction.commit(settlement)
        if refusal is not None:
            return self._refuse(delivery, refusal)
        self._answer(delivery, ACCEPTED)
        if not command.fail:
            # What the poster has not settled yet is to show the outcome applied (4.4.4.1, T61). The answer comes first:
            # some controllers take the next disposition for it, whatever it is about.
            for posted, outcome in transaction.deliveries:
                if not posted.remote_settled and not posted.link.mute:
                    posted.link.session.disposition(posted, outcome, settled=False)

    def _answer(self, delivery: Delivery, outcome: DeliveryState) -> None:
        if self._held or self._connection.is_aborting():
            # "If the discharge indicates the failure of the transaction the resource MUST abort or complete sending the
            # remainder of the message before completing the discharge" (4.4.3).
            if not self._held:
                self._connection.hindered.append(self)
            self._held.append((delivery, outcome))
            return
        self._connection.flush_dispositions(self._link.session)
        mode = self._link.rcv_settle_mode if delivery.rcv_settle_mode is None else delivery.rcv_settle_mode
        self._link.session.disposition(delivery, outcome, settled=mode != SECOND)

    def resume(self) -> None:
        """Answer what waited, as far as nothing stands in the way any more."""
        held, self._held = self._held, deque()
        for delivery, outcome in held:
            if not self.over:
                self._answer(delivery, outcome)

    def _refuse(self, delivery: Delivery, error: AmqpError) -> None:
        """Rejected where the source takes that, else the link is detached with the error (T32, T42)."""
        if allows_rejected(self._link.remote_source):
            self._answer(delivery, Rejected(error))
        else:
            self._detach(error)

    def refuse_oversize(self, delivery: Delivery, error: AmqpError) -> None:
        """A control message that is larger than the link takes: Part 4 makes no exception of this link."""
        if not delivery.remote_settled and allows_rejected(self._link.remote_source):
            self._link.session.disposition(delivery, Rejected(error), settled=self._link.rcv_settle_mode != SECOND)
        self._detach(error)

    def _detach(self, error: AmqpError) -> None:
        self._link.detach(closed=True, error=error)
        self.lost(f"the control link was ended: {error}")

    def terminate(self, error: AmqpError) -> None:
        """Something was done that the coordinator must answer with the end of the control link (T46, T72)."""
        self._detach(error)

    def detached(self, closed: bool) -> None:
        """The peer detached: "all such transactions are immediately rolled back" (4.1)."""
        self._link.detach(closed=closed)
        self.lost("the control link was detached")

    def lost(self, reason: str) -> None:
        """The link is gone, by whatever way; the same holds for a mere detach: it cannot be resumed (T51)."""
        self.over = True
        owned, self._owned = self._owned, {}
        settlement = self._connection.broker.settlement
        for txn_id, transaction in owned.items():
            del self._connection.transactions[txn_id]
            transaction.mourn(reason)
            transaction.roll_back(settlement)
        waiting, self._waiting = self._waiting, {}
        for transaction in waiting:
            transaction.mourn(reason)
            transaction.roll_back(settlement)
