"""Whether a call waits for what has just gone wrong: then the call raises it, and the exception listener is not told.

The listener is for what no call could report (JMS 3.1, 6.1.7).  A close does not count as a call that waits: it is
silent about a loss.  Nor does an asynchronous send, whose completion hears of its own message only.  All this is looked
at before the fault is told to anybody.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsish.client.answers import Answer
from jmsish.client.procedures import Procedure, settle
from jmsish.errors import IllegalStateError, OperationTimeoutError

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection
    from jmsish.client.consumer import ClientConsumer
    from jmsish.client.producer import ClientProducer
    from jmsish.client.session import ClientSession


def someone_waits(connection: ClientConnection) -> bool:
    """Whether some call waits that the loss of the connection ends."""
    if not connection.authenticated.done() or (connection.opening and not connection.opened.done()):
        return True
    if any(not own.attached.done() or not own.link.attached for own in connection.own_session.links):
        return True
    return any(waits_in(session) for session in connection.sessions)


def waits_in(session: ClientSession) -> bool:
    """Whether some call waits that the end of the session ends."""
    if session.closing:
        return False
    if not session.begun.done() or any(waits_to_receive(consumer) for consumer in session.consumers):
        return True
    if any(awaits_link(producer) for producer in session.producers):
        return True
    return any(isinstance(delivery.context, Future) for delivery in session.engine_session.outgoing.values())


def waits_to_receive(consumer: ClientConsumer) -> bool:
    """Whether a receive, or what asks for a drain, waits for the consumer, or somebody for its link."""
    if consumer.closing:
        return False
    return not consumer.attached.done() or consumer.waiter is not None or consumer.drained is not None


def waits_to_send(producer: ClientProducer) -> bool:
    """Whether a send waits for credit, or for its outcome, or somebody for the link."""
    if awaits_link(producer):
        return True
    outgoing = producer.session.engine_session.outgoing.values()
    return any(delivery.link is producer.link and isinstance(delivery.context, Future) for delivery in outgoing)


def awaits_link(producer: ClientProducer) -> bool:
    """Whether somebody waits for the producer's link, or for credit on it."""
    credited = producer.credited
    if producer.link is not None and not producer.attached.done():
        return True
    return credited is not None and not credited.done()


class Waiting:
    """A session or a consumer, for whose sake a call waits for a connection that is offline."""

    _back: Future[None] | None = None

    @property
    def is_leaving(self) -> bool:
        """It closes: nothing is waited for any more."""
        raise NotImplementedError

    def until_back(self) -> Future[None]:
        """What the call waits for; raises `IllegalStateError` where it is closed."""
        if self.is_leaving:
            raise IllegalStateError("it was closed while its call waited for the connection")
        if self._back is None:
            self._back = Answer()
        return self._back

    def look_again(self) -> None:
        """The connection stands, or this is closed, or has failed: the call that waits looks what it is."""
        back, self._back = self._back, None
        settle(back)


def until_ready(consumer: ClientConsumer, deadline: float | None, wait: bool) -> Procedure[bool]:
    """Wait for what a receive needs: a transaction, and, for one that does not wait, a connection to ask.

    False when the deadline passed, or the consumer closes.  While the connection is lost a receive waits as long as it
    was told to.
    """
    connection = consumer.session.connection
    was_closing = consumer.closing
    while True:
        try:
            if not wait:
                yield from connection.until_online(party=consumer)
            yield from consumer.session.ready_to_consume(deadline if wait else None, consumer)
            return True
        except IllegalStateError:
            if was_closing or not consumer.closing:
                raise
            return False
        except OperationTimeoutError:
            if not wait:
                raise
            if deadline is not None and connection.now >= deadline:
                return False
            if not connection.offline:
                raise
