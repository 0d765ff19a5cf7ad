"""The simplified API that blocks: a connection and a session in one object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jmsish._facade import Duration, check_destination
from jmsish._simplified import ContextFace, Family, JMSConsumerFace, JMSProducerFace
from jmsish.destination import Destination, TemporaryQueue, TemporaryTopic, Topic
from jmsish.errors import IllegalStateError
from jmsish.message import Message
from jmsish.modes import AcknowledgeMode
from jmsish.sync.closing import Closing
from jmsish.sync.consumer import MessageConsumer, QueueBrowser
from jmsish.sync.exclusive import Exclusive
from jmsish.sync.producer import MessageProducer
from jmsish.sync.session import Session

if TYPE_CHECKING:
    from jmsish.sync.connection import Connection


class JMSContext(ContextFace, Closing):
    """A connection and a session in one (JMS 3.1, 2.8): made by `create_context`, a factory, or another context.

    Like a session it is used by one thread at a time; `close` and `create_context` may be called by any.
    """

    _connection: Connection

    def __init__(self, connection: Connection, mode: AcknowledgeMode, family: Family) -> None:
        super().__init__(connection, mode, family)
        self._session: Session | None = None
        self._beginning = Exclusive()
        self._producer: MessageProducer | None = None

    def create_context(self, session_mode: AcknowledgeMode) -> JMSContext:
        """Another context, with a session of its own on the same connection.

        The connection closes with the last of its contexts (JMS 3.1, 2.8.6).
        """
        self._check_open()
        made = JMSContext(self._connection, AcknowledgeMode(session_mode), self._family)
        return made._opened()

    # -- consumers and producers -----------------------------------------------------------------------------------

    def create_producer(self) -> JMSProducer:
        """A producer: settings for messages to any destination.  It needs no close."""
        self._check_open()
        return JMSProducer(self)

    def create_consumer(
        self,
        destination: Destination,
        selector: str | None = None,
        *,
        no_local: bool = False,
        prefetch: int | None = None,
        priority: int = 0,
    ) -> JMSConsumer:
        """A consumer of `destination`; starts the connection unless `auto_start` is false.

        See `Session.create_consumer`.
        """
        return self._consumer(
            lambda session: session.create_consumer(
                destination, selector, no_local=no_local, prefetch=prefetch, priority=priority
            )
        )

    def create_durable_consumer(
        self,
        topic: Topic,
        name: str,
        selector: str | None = None,
        *,
        no_local: bool = False,
        prefetch: int | None = None,
    ) -> JMSConsumer:
        """The consumer of an unshared durable subscription; starts the connection unless `auto_start` is false.

        See `Session.create_durable_consumer`.
        """
        return self._consumer(
            lambda session: session.create_durable_consumer(topic, name, selector, no_local=no_local, prefetch=prefetch)
        )

    def create_shared_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, prefetch: int | None = None
    ) -> JMSConsumer:
        """A consumer of a shared subscription; starts the connection unless `auto_start` is false.

        See `Session.create_shared_consumer`.
        """
        return self._consumer(lambda session: session.create_shared_consumer(topic, name, selector, prefetch=prefetch))

    def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, prefetch: int | None = None
    ) -> JMSConsumer:
        """A consumer of a shared durable subscription; starts the connection unless `auto_start` is false.

        See `Session.create_shared_durable_consumer`.
        """
        return self._consumer(
            lambda session: session.create_shared_durable_consumer(topic, name, selector, prefetch=prefetch)
        )

    def unsubscribe(self, name: str) -> None:
        """End a durable subscription, with all it has collected.

        See `Session.unsubscribe`.
        """
        self._begun().unsubscribe(name)

    def create_browser(self, queue: Destination, selector: str | None = None) -> QueueBrowser:
        """A browser of `queue`: looks without taking."""
        return self._begun().create_browser(queue, selector)

    def create_temporary_queue(self) -> TemporaryQueue:
        """A queue that only this connection consumes from, deleted with the connection or by its `delete()`."""
        return self._begun().create_temporary_queue()

    def create_temporary_topic(self) -> TemporaryTopic:
        """A topic that only this connection consumes from, deleted with the connection or by its `delete()`."""
        return self._begun().create_temporary_topic()

    # -- work ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start, or resume, the delivery of messages; only needed where `auto_start` is false, or after `stop`."""
        self._check_open()
        self._connection.start()

    def stop(self) -> None:
        """Hold back the delivery of messages to all contexts of the connection.

        Waits for running listeners.  Raises `IllegalStateError` from one.
        """
        self._check_open()
        self._connection.stop()

    def acknowledge(self) -> None:
        """Acknowledge all that the context received (CLIENT); in other modes nothing happens (JMS 3.1, 6.2.10)."""
        session = self._begun()
        with session._exclusive:
            session._driver.call(session._core.ledger.acknowledge, None)
            session._driver.flush()
            session._driver.poll()

    def commit(self) -> None:
        """Acknowledge all that was received and send all that was sent since the last commit or rollback, as one.

        See `Session.commit`.
        """
        self._begun().commit()

    def rollback(self) -> None:
        """Undo what was received and sent since the last commit or rollback.

        See `Session.rollback`.
        """
        self._begun().rollback()

    def recover(self) -> None:
        """Have the messages that were received and not acknowledged delivered again, marked, from the first on.

        See `Session.recover`.
        """
        self._begun().recover()

    @contextmanager
    def transaction(self) -> Iterator[JMSContext]:
        """Commit at the end of the block, roll back if it raises."""
        with self._begun().transaction():
            yield self

    def close(self) -> None:
        """Close the session of this context; the connection too when no other context uses it.

        Raises `IllegalStateError` from a listener or a completion callback of its own.  Twice is silent.
        """
        session = self._session
        try:
            if session is not None:
                session.close()
        except IllegalStateError:
            raise
        except BaseException:
            self._leave()
            raise
        self._leave()
        if session is None and self._session is not None:  # begun by another thread meanwhile
            self._session.close()

    # -- for the other rooms of this face ---------------------------------------------------------------------------

    def _begun(self) -> Session:
        """The session, which begins at its first use, so that a client id can be set before."""
        self._check_open()
        session = self._session
        if session is None:
            with self._beginning:
                session = self._session = self._session or self._connection.create_session(acknowledge_mode=self._mode)
            if self._closed:
                session.close()
                self._check_open()
        return session

    def _opened(self) -> JMSContext:
        """This context, with its session; if there cannot be one, not a trace of it."""
        try:
            self._begun()
        except BaseException:
            self._leave()
            raise
        return self

    def _leave(self) -> None:
        self._closed = True
        if self._family.leave(self):
            self._connection.close()

    def _consumer(self, create: Callable[[Session], MessageConsumer]) -> JMSConsumer:
        session = self._begun()
        # Rule 10: where a listener runs already, another one can be set all the same; it is waited for.
        options = self._connection._core.options
        mine = session._listeners is not None and session._exclusive.wait(options.request_timeout)
        try:
            consumer = create(session)
        finally:
            if mine:
                session._exclusive.leave()
        if self.auto_start and not self._connection.is_started:
            self._connection.start()
        return JMSConsumer(consumer)

    def _anonymous(self) -> MessageProducer:
        """The producer that all of this context send through."""
        if self._producer is None:
            self._producer = self._begun().create_producer()
        return self._producer


class JMSProducer(JMSProducerFace):
    """Sends messages to any destination, with settings that can be chained; made by `JMSContext.create_producer`."""

    def __init__(self, context: JMSContext) -> None:
        super().__init__()
        self._context = context

    def send(self, destination: Destination, message_or_body: Any) -> JMSProducer:
        """Send a message, or a body: str, bytes, dict, list or tuple, None, or any value that AMQP has a type for.

        What was set on this producer goes before what the message says.  See `MessageProducer.send` for what it waits
        for and raises.  Returns the producer.
        """
        check_destination(destination)
        with self._context._begun()._exclusive:
            producer = self._context._anonymous()
            self._configure(producer)
            producer.send(self._made(message_or_body), destination=destination, on_completion=self._completion)
        return self

    def __repr__(self) -> str:
        return f"<JMSProducer of {self._context!r}>"


class JMSConsumer(JMSConsumerFace, Closing):
    """Receives the messages of a destination: by `receive`, by iteration, or by a listener; made by a `JMSContext`."""

    _consumer: MessageConsumer

    def receive(self, timeout: Duration | None = None) -> Message | None:
        """The next message, or None: after `timeout` seconds (0 does not wait), or when the consumer is closed.

        See `MessageConsumer.receive`.
        """
        return self._consumer.receive(timeout)

    def receive_no_wait(self) -> Message | None:
        """The next message if there is one; the broker is asked before the answer is None."""
        return self._consumer.receive_no_wait()

    def receive_body(self, type: type[Any], timeout: Duration | None = None) -> Any:
        """The body of the next message as `type`, or None as `receive` does.

        See `MessageConsumer.receive_body`.
        """
        return self._consumer.receive_body(type, timeout)

    def receive_body_no_wait(self, type: type[Any]) -> Any:
        """The body of the next message as `type`, or None when there is no message now."""
        return self._consumer.receive_body(type, 0)

    def __iter__(self) -> Iterator[Message]:
        """The messages as they come, until the consumer is closed."""
        return iter(self._consumer)

    def close(self) -> None:
        """Close the consumer; what it has not read goes back to the queue, unmarked and in its place.

        Waits for a running listener of this consumer, unless that listener itself closes it.  Twice is silent.
        """
        self._consumer.close()
