"""A lost connection is made again, with all that the application has on it.

Theory of operation.  `reconnect` is the procedure that the driver runs while the connection is offline: it waits as the
plan says (`reconnection.py`), has the driver dial, and lets `restore` make again what there was, in the order of M107:
temporary destinations, then of each session its transaction, its producers, its consumers.  All that can be said at
once is written at once, and the answers are waited for behind it.  A loss on the way is one more failed attempt.

What somebody was just making when the connection went is made with the rest, and its answer goes to whoever waits for
it; only what was there before is waited for here (`restoring`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsish.client.answers import Answer
from jmsish.client.cbs import address_of, authorised_again
from jmsish.client.client_ids import say_open
from jmsish.client.consumer import ClientConsumer
from jmsish.client.interruption import interrupt
from jmsish.client.ledger import ClientLedger
from jmsish.client.links import attach_consumer, attach_producer, attaching
from jmsish.client.procedures import Interrupted, Procedure, fail, settle
from jmsish.client.producer import ClientProducer
from jmsish.errors import ConnectionLostError, InvalidClientIDError, JMSError, OperationTimeoutError
from jmsish.events import ConnectionRestored

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection
    from jmsish.client.session import ClientSession
    from jmsish.options import ConnectionTarget

_log = logging.getLogger("jmsish.client")

Part = ClientProducer | ClientConsumer


class Dial(Answer[None]):
    """What the driver is asked for: connect to `place`, have the connection join it, and say so here."""

    def __init__(self, place: ConnectionTarget) -> None:
        super().__init__()
        self.place = place
        self.since: float | None = None
        """When the broker's time began: what the driver asks the application for before (a token) is not its delay."""


def reconnect(connection: ClientConnection) -> Procedure[None]:
    """Until the connection stands, or there is no hope, or it is closed."""
    plan = connection.reconnection
    assert plan is not None
    while connection.offline and not _is_over(connection):
        where = plan.next()
        if where is None:
            connection.fail(plan.verdict())
            return
        place, at = where
        yield from _pause(connection, at)
        if _is_over(connection):
            return
        plan.due()
        try:
            yield from _attempt(connection, place)
        except JMSError as error:
            if _is_over(connection):
                return
            if connection.broken is None:  # it was not the wire: whoever waits for what would come by it is told
                interrupt(connection, _reason(error))
            connection.engine.close()
            plan.failed(connection.now, _reason(error))
            continue
        attempts = plan.attempts + 1
        first = not plan.ever_stood
        plan.restored(connection.now)
        connection.come_back()
        if not first:
            connection.tell(ConnectionRestored(connection.peer, attempts))


def _is_over(connection: ClientConnection) -> bool:
    return connection.failure is not None or connection.closed


def _check(connection: ClientConnection) -> None:
    """Raise what has ended the attempt; a wait may be over by an answer that came just before."""
    if connection.broken is not None:
        raise connection.broken


def _reason(error: JMSError) -> JMSError:
    """Of a loss on the way, the loss; of a session or link that the broker has no room for yet, that."""
    if isinstance(error, Interrupted) and isinstance(error.__cause__, JMSError):
        return error.__cause__
    return error


def _pause(connection: ClientConnection, at: float) -> Procedure[None]:
    if at > connection.now:
        try:
            yield connection.leaving, at
        except OperationTimeoutError:
            pass


def _attempt(connection: ClientConnection, place: ConnectionTarget) -> Procedure[None]:
    """Resolve, connect, TLS (by the driver), SASL, open: within `connect_timeout`; then all that there was."""
    timeout = place.options.connect_timeout
    deadline = None if timeout is None else connection.now + timeout
    stage = "connect"
    dial = connection.dialling = Dial(place)
    try:
        yield dial, deadline
        connection.dialling = None
        if dial.since is not None and timeout is not None:
            deadline = dial.since + timeout
        stage = "SASL"
        yield connection.authenticated, deadline
        _check(connection)
        if not connection.opening:
            return
        stage = "open"
        say_open(connection.engine)
        yield connection.opened, deadline
        _check(connection)
    except OperationTimeoutError as late:
        text = f"{place.peer} accepted the connection and did not answer within {timeout:g} s (stage: {stage})"
        raise ConnectionLostError(text, scope="connection") from late
    finally:
        connection.dialling = None
    try:
        yield from restore(connection)
    except OperationTimeoutError as late:
        text = f"{place.peer} did not take back what was there before: {late}"
        raise ConnectionLostError(text, scope="connection") from late


def restore(connection: ClientConnection) -> Procedure[None]:
    """Make again all that the connection has (M107).  A part that the broker refuses ends itself, or the connection."""
    yield from connection.temporary.restore()
    _check(connection)
    yield from authorised_again(connection, [address_of(part) for part in _parts(connection)])
    _check(connection)
    awaited: list[tuple[ClientSession, Part | None, Future[None]]] = []
    for session in list(connection.sessions):
        if not session.closed:
            awaited += _begin_again(session)
    for session, part, future in awaited:
        try:
            yield future, connection.request_deadline()
            _check(connection)
        except (Interrupted, OperationTimeoutError):
            raise
        except JMSError as error:
            if not (session.closing or _is_leaving(part)):
                _refused(connection, session, part, error)
    for session in dict.fromkeys(session for session, part, _ in awaited if part is None):
        if session.controller is not None and not session.closing:
            yield from session.controller.ready()
            _check(connection)
    for session, part, _ in awaited:
        session.restoring = False
        if part is not None:
            part.restoring = False


def _parts(connection: ClientConnection) -> list[Part]:
    parts: list[Part] = []
    for session in connection.sessions:
        parts += [*session.producers, *session.consumers]
    return parts


def _is_leaving(part: Part | None) -> bool:
    return part is not None and (part.closed or (isinstance(part, ClientConsumer) and part.closing))


def _begin_again(session: ClientSession) -> Iterator[tuple[ClientSession, Part | None, Future[None]]]:
    """Say all of one session; what has to be waited for."""
    connection = session.connection
    session.engine_session = connection.engine.begin()
    session.engine_session.context = session
    session.ledger = ClientLedger(session)  # which goes by what the broker can do
    known = session.begun.done()
    if known:
        session.begun, session.restoring = Answer(), True
        yield session, None, session.begun
    if session.controller is not None:
        attached = session.controller.attach()
        if known:
            yield session, None, attached
    parts: list[Part] = [*session.producers, *session.consumers]
    for part in parts:
        if part.attached.done() or part.restoring:
            part.attached, part.restoring = Answer(), True
        future = part.attached
        if _attach_again(part) and part.restoring:
            yield session, part, future


def _attach_again(part: Part) -> bool:
    """Whether there is an answer to wait for."""
    try:
        if isinstance(part, ClientConsumer):
            with attaching(f"the consumer of {part.destination} not, though it was there before: nothing"):
                attach_consumer(part)
            return True
        connection = part.session.connection
        part.relayed = part.destination is not None or connection.offers("ANONYMOUS-RELAY")
        if not part.relayed:
            settle(part.attached)
            return False
        with attaching(f"the producer of {part.destination} not, though it was there before: nothing"):
            attach_producer(part, part.destination)
    except JMSError as error:
        fail(part.attached, error)
    return True


def _refused(connection: ClientConnection, session: ClientSession, part: Part | None, error: JMSError) -> None:
    """M110: what the broker does not take back closes alone where that is wished, else with the whole connection."""
    what = "a session" if part is None else repr_of(part)
    text = f"{connection.peer} did not take back {what} after the connection was lost: {error}"
    if error.condition == "amqp:resource-locked" or isinstance(error, InvalidClientIDError):
        # Held by our own connection, which the broker does not miss yet: it is tried again.
        raise ConnectionLostError(text, scope="connection", condition=error.condition) from error
    if part is not None and (connection.options.close_links_that_fail_on_reconnect or _is_temporary(part)):
        _log.warning("%s", text)
        if part.failure is None:
            part.fail(error)
        if isinstance(part, ClientConsumer):
            session.forget(part)
        elif part in session.producers:
            session.producers.remove(part)
        connection.report(error)
        return
    failure = ConnectionLostError(text, scope=error.scope, condition=error.condition, info=error.info)
    failure.__cause__ = error
    connection.fail(failure)
    raise failure


def _is_temporary(part: Part) -> bool:
    """What was there for a temporary destination of somebody, which went meanwhile, ends alone."""
    return part.destination is not None and part.destination.is_temporary


def repr_of(part: Part) -> str:
    """A consumer or producer, for error texts."""
    kind = "consumer" if isinstance(part, ClientConsumer) else "producer"
    return f"the {kind} of {part.destination or 'any destination'}"
