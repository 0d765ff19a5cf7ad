"""The end of a session: what goes back before it, and who waits no longer behind it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsish.client.procedures import Procedure, fail, settle
from jmsish.client.transaction import NONE
from jmsish.errors import ConnectionLostError, IllegalStateError

if TYPE_CHECKING:
    from jmsish.client.session import ClientSession


def close_session(session: ClientSession) -> Procedure[None]:
    """Give everything back, roll back what is open, end the AMQP session (docs/transacted-session.md)."""
    if session.closed:
        yield from session.until_ended()
        return
    session.begin_close()
    session.closed = True
    for producer in session.producers:
        producer.lose_kept(ConnectionLostError("the session was closed while its connection was lost"))
    if session.failure is None:
        try:
            yield from _give_all_back(session)
        finally:
            session.engine_session.end()
            for consumer in [*session.consumers, *session.lingering]:
                session.connection.subscriptions.leave(consumer)
        if session.engine_session.engine.mute:
            settle(session.ended)  # the connection is lost, and the session with it
        try:
            yield session.ended, session.connection.close_deadline()
        finally:
            _let_go(session)
    session.connection.sessions.discard(session)


def _give_all_back(session: ClientSession) -> Procedure[None]:
    for producer in list(session.producers):
        if producer.link is not None:
            yield from session.connection.outcomes_of(producer.link)
    session.end_reading()
    session.ledger.flush_lazy()
    consumers = [c for c in session.consumers if not c.browsing]
    try:
        yield from session.drain(consumers, session.connection.close_deadline())
        if session.controller is not None and session.controller.state != NONE:
            yield from session.controller.end()
    finally:
        handed_over = session.ledger.take_handed_over()
        if session.failure is None:
            session.ledger.give_back(consumers, handed_over)
        for consumer in session.consumers:
            consumer.closed = True


def _let_go(session: ClientSession) -> None:
    """Its links went with the session: another close waits for no answer of theirs, and nothing comes to be."""
    for detached in list(session.leaving):
        settle(detached)
    for consumer in [*session.consumers, *session.lingering]:
        settle(consumer.drained)
    coming: list[Future[None] | None] = [session.begun]
    coming += [part.attached for part in (*session.consumers, *session.producers)]
    if session.controller is not None:
        coming += [session.controller.attached, session.controller.declaring]
    for future in coming:
        fail(future, IllegalStateError("the session was closed"))
