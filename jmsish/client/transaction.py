"""The transaction controller of one transacted session (AMQP 1.0 Part 4).

Theory of operation.  A transacted session is always inside a transaction: the first is declared when the session is
made, each further one right behind the discharge of its predecessor, in the same write, so that a commit costs one
round trip.  A coordinator that grants less credit than two (Broker-J grants one) simply gets the declare later.

    NONE ──declare──► DECLARING ──declared──► DECLARED ──discharge──► DISCHARGING ──accepted/rejected──► NONE
                          │                       │                        │
                          └────── control link, session or connection lost ┴──► NONE, with `broken` set to the cause
                                                                                where there was work

`broken` makes the next commit raise, because the work of the lost transaction was rolled back (Part 4, 4.1: "If the
link is closed ... all of the non-discharged transactions are immediately rolled back").
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Hashable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsish.client.answers import Answer
from jmsish.client.links import OUTCOMES
from jmsish.client.procedures import Interrupted, Procedure, fail, settle
from jmsish.engine.codec import MESSAGE_ID, peek_properties
from jmsish.engine.conditions import MESSAGE_SIZE_EXCEEDED
from jmsish.engine.outcomes import (
    ACCEPTED,
    Accepted,
    AmqpError,
    Coordinator,
    Declare,
    Declared,
    Discharge,
    Rejected,
    Source,
    TransactionalState,
    encode_control,
)
from jmsish.errors import (
    ConnectionLostError,
    JMSError,
    JMSSecurityError,
    OperationTimeoutError,
    SendRejectedError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from jmsish.client.session import ClientSession
    from jmsish.client.waiting import Waiting
    from jmsish.engine.link import Link

NONE, DECLARING, DECLARED, DISCHARGING = range(4)

LOCAL_TRANSACTIONS = "amqp:local-transactions"

LARGEST_CONTROL = len(encode_control(Discharge(bytes(32), True)))
"""Octets of a discharge, with an id as long as any (Part 4, 4.5.8)."""

_log = logging.getLogger("jmsish.client")


class TransactionController:
    """Declares and discharges the transactions of one session, one after the other."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.state = NONE
        self.link: Link | None = None
        self.attached: Future[None] = Answer()
        self.declaring: Future[Any] | None = None
        self.discharging: Future[Any] | None = None
        self.committing = False
        """What is discharged is to be committed."""
        self.accepted: TransactionalState | None = None
        self.posting: TransactionalState | None = None
        self.retired: dict[Hashable, None] = {}
        """The queues and subscriptions that messages were taken from."""
        self.sent = self.received = 0
        self.last_sent = self.last_received = b""
        """The messages sent and received last in the transaction."""
        self._discharged: tuple[bytes, int, int, bytes, bytes] = (b"", 0, 0, b"", b"")
        """What is under discharge: its id and the four above."""
        self.broken: JMSError | None = None
        self.spoiled: JMSError | None = None
        """Why what was sent and received by a link in the transaction may not have got there."""
        self.orphaned = False
        """The connection was lost in a transaction that the application has not ended yet."""
        self._unsent: deque[tuple[bytes, Future[Any]]] = deque()

    @property
    def has_work(self) -> bool:
        return bool(self.sent or self.retired)

    # -- control link ----------------------------------------------------------------------------------------------

    def attach(self) -> Future[None]:
        """Attach the control link and declare the first transaction behind it; done when the link is granted."""
        connection = self.session.connection
        name = connection.unique_name("coordinator")
        if self.attached.done():
            self.attached = Answer()
        attached = self.attached
        self.link = self.session.engine_session.sender(
            name,
            source=Source(address=name, outcomes=OUTCOMES),
            target=Coordinator(capabilities=(LOCAL_TRANSACTIONS,)),
            context=self,
        )
        self.declare()
        return attached

    def declare(self) -> None:
        self.state = DECLARING
        self.declaring = self._control(Declare())

    def _control(self, command: Declare | Discharge) -> Future[Any]:
        answer: Future[Any] = Answer()
        self._unsent.append((encode_control(command), answer))
        self.on_credit()
        return answer

    def on_credit(self) -> None:
        """Send the control messages for which the coordinator has granted credit."""
        link = self.link
        while self._unsent and link is not None and link.credit > 0:
            payload, answer = self._unsent.popleft()
            link.send(payload, context=answer)

    # -- what happened ---------------------------------------------------------------------------------------------

    def on_attached(self) -> None:
        """The coordinator's capabilities are looked at by the controller, who detaches if they do not do (4.5.1)."""
        link = self.link
        if link is None or link.remote_target is None:
            return  # the detach with the reason follows
        target = link.remote_target
        capabilities = target.capabilities if isinstance(target, Coordinator) else ("none",)
        # Some brokers say nothing of what they can do, and can.
        if capabilities and LOCAL_TRANSACTIONS not in capabilities:
            link.context = None
            link.detach(closed=True)
            self.lost(UnsupportedFeatureError("the broker's coordinator has no local transactions", scope="link"))
            return
        if 0 < link.remote_max_message_size < LARGEST_CONTROL:
            limit = link.remote_max_message_size
            link.context = None
            link.detach(closed=True)
            self.lost(no_room(limit))
            return
        settle(self.attached)

    def on_detached(self, error: AmqpError | None) -> None:
        link = self.link
        if link is not None and link.attached:
            link.detach(closed=True)
        reason = f": {error.description or error.condition}" if error is not None else ""
        condition = error.condition if error is not None else None
        if link is not None and link.remote_target is None:
            self.lost(no_coordinator(reason, condition))
            return
        text = f"the broker closed the transaction coordinator link{reason}"
        rolled_back = condition is not None and condition.startswith("amqp:transaction:")
        cause = TransactionRolledBackError(text, scope="transaction", condition=condition)
        if self._is_discharging and not self.committing:
            settle(self.discharging, ACCEPTED)  # "all of the non-discharged transactions are ... rolled back" (4.1)
        self.lost(cause, in_doubt=not rolled_back)

    @property
    def _is_discharging(self) -> bool:
        """A discharge waits for its answer."""
        return self.discharging is not None and not self.discharging.done()

    def lost(self, cause: JMSError, in_doubt: bool = False) -> None:
        """The control link is gone: what it declared is rolled back, or unknown where a commit was under way."""
        if self._is_discharging and self.committing:
            if in_doubt:
                cause = self._doubt(f"the answer to the commit was lost: {cause}", cause)
            _log.warning("a commit did not succeed: %s", cause)
        fail(self.discharging, cause)
        fail(self.declaring, cause)
        fail(self.attached, cause)
        self._end_link(cause)

    def interrupted(self, cause: JMSError, broken: Interrupted) -> None:
        """The connection is lost and will be made again, with a new control link; `attach` follows then.

        A commit that had been said is in doubt, one that had not is undone with the rest.  A rollback is done.
        """
        if self._is_discharging and not self.committing:
            settle(self.discharging, ACCEPTED)
        elif self._is_discharging:
            error: JMSError
            if any(answer is self.discharging for _, answer in self._unsent):
                text = f"the connection was lost before the commit was said: {cause}"
                error = TransactionRolledBackError(text, scope="transaction", condition=cause.condition)
                error.__cause__ = cause
            else:
                error = self._doubt(f"the answer to the commit was lost: {cause}", cause)
            _log.warning("a commit did not succeed: %s", error)
            fail(self.discharging, error)
        fail(self.declaring, broken)
        if self.session.restoring:
            fail(self.attached, broken)
        self._end_link(cause)

    def _end_link(self, cause: JMSError) -> None:
        if self.has_work:
            _log.warning("a transaction was lost with %d messages sent in it: %s", self.sent, cause)
            self.broken = cause
        self._unsent.clear()
        self.link = None
        self._forget()

    def orphan(self) -> None:
        """A connection that stood is lost: the transaction that is open now ends with the application's next word."""
        self.orphaned = not self._is_discharging

    def sending(self) -> None:
        """A message sent while the connection is lost belongs to the transaction that was (scenario 167).

        Once the application has ended that one, what it sends belongs to the next, for which it waits.
        """
        if self.orphaned and self.broken is None and self.session.connection.offline:
            text = "a message was sent in the transaction while the connection was lost"
            self.broken = ConnectionLostError(text, scope="connection")

    def spoil(self, text: str) -> None:
        """The broker detached a link that may have work of the transaction under way: what had not arrived is lost.

        So the transaction may not be whole at the broker, and is not committed; one whose commit is under way is in
        doubt.
        """
        if self.spoiled is None and (self.has_work or (self._is_discharging and self.committing)):
            self.spoiled = JMSError(f"{text} in the middle of the transaction", scope="transaction")

    def _doubt(self, text: str, cause: JMSError | None) -> TransactionInDoubtError:
        """The error of a commit of which nobody here knows how it ended, with what helps to find out."""
        txn_id, sent, received, last_sent, last_received = self._discharged
        error = TransactionInDoubtError(
            text, scope="transaction", condition=None if cause is None else cause.condition,
            transaction_id=txn_id, sent=sent, received=received,
            last_sent_id=_message_id(last_sent), last_received_id=_message_id(last_received),
        )  # fmt: skip
        error.__cause__ = cause
        return error

    def _forget(self) -> None:
        self.state = NONE
        self.accepted = self.posting = self.spoiled = None
        self.retired = {}
        self.sent = self.received = 0
        self.last_sent = self.last_received = b""

    def _on_declared(self, outcome: Any) -> None:
        if not isinstance(outcome, Declared):
            self._forget()
            raise refused("declare a transaction", outcome)
        self.state = DECLARED
        self.orphaned = False
        self.posting = TransactionalState(outcome.txn_id)
        self.accepted = TransactionalState(outcome.txn_id, ACCEPTED)
        self.session.prompt()

    # -- procedures ------------------------------------------------------------------------------------------------

    def ready(self, deadline: float | None = None, party: Waiting | None = None) -> Procedure[None]:
        """Wait until a transaction is declared; attach and declare again where the last one was lost unused.

        At most `request_timeout` seconds, and not beyond `deadline`; for the session's sake, or that of `party`.
        """
        connection = self.session.connection
        while True:
            self.session.check()
            if self.broken is not None or self.state not in (NONE, DECLARING):
                return
            limit = connection.request_deadline()
            if deadline is not None:
                limit = deadline if limit is None else min(limit, deadline)
            if self.state == NONE:
                if connection.offline:
                    yield from connection.until_online(limit, party or self.session)
                    continue
                if self.link is None:
                    self.attach()
                else:
                    self.declare()
            declaring = self.declaring
            assert declaring is not None
            try:
                outcome = yield declaring, limit
            except Interrupted:
                continue
            if self.declaring is declaring and self.state == DECLARING:
                self._on_declared(outcome)

    def discharge(self, failed: bool) -> Procedure[None]:
        """Commit or roll back, and declare the next transaction in the same write.

        Raises `TransactionRolledBackError` when the coordinator rejects a commit.
        """
        assert self.posting is not None
        txn_id = self.posting.txn_id
        self._discharged = (txn_id, self.sent, self.received, self.last_sent, self.last_received)
        self._forget()
        self.state = DISCHARGING
        self.committing = not failed
        answer = self.discharging = self._control(Discharge(txn_id, failed))
        following = self.declaring = self._control(Declare())
        deadline = self.session.connection.request_deadline()
        try:
            outcome = yield answer, deadline
            spoiled, self.spoiled = self.spoiled, None
            if spoiled is not None and isinstance(outcome, Accepted):
                raise self._doubt(f"the commit may have been done without all that was in it: {spoiled}", spoiled)
        except OperationTimeoutError as error:
            self.state = DECLARING  # the declare behind it is still on its way
            if failed:
                raise
            text = f"the broker has not answered the commit: {error}"
            _log.warning("a commit is in doubt: %s", text)
            raise self._doubt(text, None) from None
        except BaseException:
            if self.state == DISCHARGING:  # interrupted: the declare behind it is on its way
                self.state = DECLARING
            raise
        finally:
            self.discharging = None
            self._discharged = (b"", 0, 0, b"", b"")
        if self.state == DISCHARGING:
            self.state = DECLARING
            yield from self._follow(following, deadline)
        if not isinstance(outcome, Accepted) and not failed:
            cause = rolled_back(outcome)
            _log.warning("a commit did not succeed: %s", cause)
            raise cause

    def _follow(self, following: Future[Any], deadline: float | None) -> Procedure[None]:
        """Take the declare's answer in. Whatever becomes of it, the discharge before it stands as it was answered."""
        try:
            declared = yield following, deadline
        except JMSError:
            return  # whoever works next declares again, or waits on, and hears why
        if self.state != DECLARING or self.declaring is not following:
            return
        if isinstance(declared, Declared):
            self._on_declared(declared)
        else:
            self.state = NONE

    def end(self) -> Procedure[None]:
        """Roll back what is open, for a session that closes (scenario 128)."""
        if self.state != DECLARED or self.posting is None:
            return
        txn_id = self.posting.txn_id
        self._forget()
        self.state = DISCHARGING
        self.committing = False
        answer = self.discharging = self._control(Discharge(txn_id, True))
        yield answer, self.session.connection.request_deadline()
        self.state = NONE


def _message_id(payload: bytes) -> str | None:
    """The id of a message as the application knows it, or None."""
    found = peek_properties(payload, MESSAGE_ID)[0] if payload else None
    return found if isinstance(found, str) else None


def no_room(limit: int) -> SendRejectedError:
    """What a transaction meets whose commit might be more than the broker takes of any message."""
    return SendRejectedError(
        f"the broker has no transactions for this session: a commit has up to {LARGEST_CONTROL} octets, "
        f"the broker takes {limit} at most",
        scope="link",
        condition=MESSAGE_SIZE_EXCEEDED,
        info={"message-size": LARGEST_CONTROL, "max-message-size": limit},
    )


def no_coordinator(reason: str, condition: str | None) -> JMSError:
    text = f"the broker has no transactions for this session{reason}"
    kind = JMSSecurityError if condition == "amqp:unauthorized-access" else UnsupportedFeatureError
    return kind(text, scope="link", condition=condition)


def refused(what: str, outcome: Any) -> JMSError:
    error = outcome.error if isinstance(outcome, Rejected) else None
    condition = error.condition if error else None
    reason = (error.description or error.condition) if error else repr(outcome)
    return JMSError(f"the broker refused to {what}: {reason}", scope="transaction", condition=condition)


def rolled_back(outcome: Any) -> TransactionRolledBackError:
    error = outcome.error if isinstance(outcome, Rejected) else None
    condition = error.condition if error else None
    description = error.description if error else None
    return TransactionRolledBackError(
        f"the broker rolled the transaction back: {description or condition or outcome!r}",
        scope="transaction",
        condition=condition,
        description=description,
    )
