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
from jmsish.client.procedures import Procedure, fail, settle
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
    JMSError,
    JMSSecurityError,
    OperationTimeoutError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from jmsish.client.session import ClientSession
    from jmsish.engine.link import Link

NONE, DECLARING, DECLARED, DISCHARGING = range(4)

LOCAL_TRANSACTIONS = "amqp:local-transactions"

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
        self.sent = 0
        self.broken: JMSError | None = None
        self._unsent: deque[tuple[bytes, Future[Any]]] = deque()

    @property
    def has_work(self) -> bool:
        return bool(self.sent or self.retired)

    # -- control link ----------------------------------------------------------------------------------------------

    def attach(self) -> Future[None]:
        """Attach the control link and declare the first transaction behind it; done when the link is granted."""
        connection = self.session.connection
        name = connection.unique_name("coordinator")
        attached = self.attached = Answer()
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
                why, text = cause, f"the answer to the commit was lost: {cause}"
                cause = TransactionInDoubtError(text, scope="transaction", condition=why.condition)
                cause.__cause__ = why
            _log.warning("a commit did not succeed: %s", cause)
        fail(self.discharging, cause)
        if self.has_work:
            _log.warning("a transaction was lost with %d messages sent in it: %s", self.sent, cause)
            self.broken = cause
        fail(self.declaring, cause)
        fail(self.attached, cause)
        self._unsent.clear()
        self.link = None
        self._forget()

    def _forget(self) -> None:
        self.state = NONE
        self.accepted = self.posting = None
        self.retired = {}
        self.sent = 0

    def _on_declared(self, outcome: Any) -> None:
        if not isinstance(outcome, Declared):
            self._forget()
            raise refused("declare a transaction", outcome)
        self.state = DECLARED
        self.posting = TransactionalState(outcome.txn_id)
        self.accepted = TransactionalState(outcome.txn_id, ACCEPTED)

    # -- procedures ------------------------------------------------------------------------------------------------

    def ready(self) -> Procedure[None]:
        """Wait until a transaction is declared; attach and declare again where the last one was lost unused."""
        self.session.check()
        if self.state == NONE:
            if self.link is None:
                self.attach()
            else:
                self.declare()
        if self.state == DECLARING:
            declaring = self.declaring
            assert declaring is not None
            outcome = yield declaring, self.session.connection.request_deadline()
            if self.declaring is declaring and self.state == DECLARING:
                self._on_declared(outcome)

    def discharge(self, failed: bool) -> Procedure[None]:
        """Commit or roll back, and declare the next transaction in the same write.

        Raises `TransactionRolledBackError` when the coordinator rejects a commit.
        """
        assert self.posting is not None
        txn_id = self.posting.txn_id
        self._forget()
        self.state = DISCHARGING
        self.committing = not failed
        answer = self.discharging = self._control(Discharge(txn_id, failed))
        following = self.declaring = self._control(Declare())
        deadline = self.session.connection.request_deadline()
        try:
            outcome = yield answer, deadline
        except OperationTimeoutError as error:
            self.state = DECLARING  # the declare behind it is still on its way
            if failed:
                raise
            text = f"the broker has not answered the commit: {error}"
            _log.warning("a commit is in doubt: %s", text)
            raise TransactionInDoubtError(text, scope="transaction") from None
        except BaseException:
            if self.state == DISCHARGING:  # interrupted: the declare behind it is on its way
                self.state = DECLARING
            raise
        finally:
            self.discharging = None
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
