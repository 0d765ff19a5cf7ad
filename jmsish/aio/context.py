"""The simplified API for asyncio: a connection and a session in one object."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from jmsish._facade import Duration, check_destination
from jmsish._simplified import ContextFace, Family, JMSConsumerFace, JMSProducerFace
from jmsish.aio.closing import Closing
from jmsish.aio.consumer import MessageConsumer, QueueBrowser
from jmsish.aio.exclusive import Exclusive
from jmsish.aio.producer import MessageProducer
from jmsish.aio.session import Session
from jmsish.destination import Destination, TemporaryQueue, TemporaryTopic, Topic
from jmsish.errors import IllegalStateError
from jmsish.message import Message
from jmsish.modes import AcknowledgeMode

if TYPE_CHECKING:
    from jmsish.aio.connection import Connection


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

    async def create_context(self, session_mode: AcknowledgeMode) -> JMSContext:
        """Another context, with a session of its own on the same connection.

        The connection closes with the last of its contexts (JMS 3.1, 2.8.6).
        """
        self._check_open()
        made = JMSContext(self._connection, AcknowledgeMode(session_mode), self._family)
        return await made._opened()

    # -- consumers and producers -----------------------------------------------------------------------------------

    async def create_producer(self) -> JMSProducer:
        """A producer: settings for messages to any destination.  It needs no close."""
        self._check_open()
        return JMSProducer(self)

    async def create_consumer(
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
        return await self._consumer(
            lambda session: session.create_consumer(
                destination, selector, no_local=no_local, prefetch=prefetch, priority=priority
            )
        )

    async def create_durable_consumer(
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
        return await self._consumer(
            lambda session: session.create_durable_consumer(topic, name, selector, no_local=no_local, prefetch=prefetch)
        )

    async def create_shared_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, prefetch: int | None = None
    ) -> JMSConsumer:
        """A consumer of a shared subscription; starts the connection unless `auto_start` is false.

        See `Session.create_shared_consumer`.
        """
        return await self._consumer(
            lambda session: session.create_shared_consumer(topic, name, selector, prefetch=prefetch)
        )

    async def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, prefetch: int | None = None
    ) -> JMSConsumer:
        """A consumer of a shared durable subscription; starts the connection unless `auto_start` is false.

        See `Session.create_shared_durable_consumer`.
        """
        return await self._consumer(
            lambda session: session.create_shared_durable_consumer(topic, name, selector, prefetch=prefetch)
        )

    async def unsubscribe(self, name: str) -> None:
        """End a durable subscription, with all it has collected.

        See `Session.unsubscribe`.
        """
        session = await self._begun()
        await session.unsubscribe(name)

    async def create_browser(self, queue: Destination, selector: str | None = None) -> QueueBrowser:
        """A browser of `queue`: looks without taking."""
        session = await self._begun()
        return await session.create_browser(queue, selector)

    async def create_temporary_queue(self) -> TemporaryQueue:
        """A queue that only this connection consumes from, deleted with the connection or by its `delete()`."""
        session = await self._begun()
        return await session.create_temporary_queue()

    async def create_temporary_topic(self) -> TemporaryTopic:
        """A topic that only this connection consumes from, deleted with the connection or by its `delete()`."""
        session = await self._begun()
        return await session.create_temporary_topic()

    # -- work ------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start, or resume, the delivery of messages; only needed where `auto_start` is false, or after `stop`."""
        self._check_open()
        await self._connection.start()

    async def stop(self) -> None:
        """Hold back the delivery of messages to all contexts of the connection.

        Waits for running listeners.  Raises `IllegalStateError` from one.
        """
        self._check_open()
        await self._connection.stop()

    async def acknowledge(self) -> None:
        """Acknowledge all that the context received (CLIENT); in other modes nothing happens (JMS 3.1, 6.2.10)."""
        session = await self._begun()
        async with session._exclusive:
            session._driver.call(session._core.ledger.acknowledge, None)
            session._driver.flush()

    async def commit(self) -> None:
        """Acknowledge all that was received and send all that was sent since the last commit or rollback, as one.

        See `Session.commit`.
        """
        session = await self._begun()
        await session.commit()

    async def rollback(self) -> None:
        """Undo what was received and sent since the last commit or rollback.

        See `Session.rollback`.
        """
        session = await self._begun()
        await session.rollback()

    async def recover(self) -> None:
        """Have the messages that were received and not acknowledged delivered again, marked, from the first on.

        See `Session.recover`.
        """
        session = await self._begun()
        await session.recover()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[JMSContext]:
        """Commit at the end of the block, roll back if it raises."""
        session = await self._begun()
        async with session.transaction():
            yield self

    async def close(self) -> None:
        """Close the session of this context; the connection too when no other context uses it.

        Raises `IllegalStateError` from a listener or a completion callback of its own.  Twice is silent.
        """
        session = self._session
        try:
            if session is not None:
                await session.close()
        except IllegalStateError:
            raise
        except BaseException:
            await self._leave()
            raise
        await self._leave()
        if session is None and self._session is not None:  # begun by another task meanwhile
            await self._session.close()

    # -- for the other rooms of this face ---------------------------------------------------------------------------

    async def _begun(self) -> Session:
        """The session, which begins at its first use, so that a client id can be set before."""
        self._check_open()
        session = self._session
        if session is None:
            async with self._beginning:
                session = await self._connection.create_session(acknowledge_mode=self._mode)
                self._session = session
            if self._closed:
                await session.close()
                self._check_open()
        return session

    async def _opened(self) -> JMSContext:
        """This context, with its session; if there cannot be one, not a trace of it."""
        try:
            await self._begun()
        except BaseException:
            await self._leave()
            raise
        return self

    async def _leave(self) -> None:
        self._closed = True
        if self._family.leave(self):
            await self._connection.close()

    async def _consumer(self, create: Callable[[Session], Awaitable[MessageConsumer]]) -> JMSConsumer:
        session = await self._begun()
        # Rule 10: where a listener runs already, another one can be set all the same; it is waited for.
        options = self._connection._core.options
        mine = session._listeners is not None and await session._exclusive.wait(
            options.request_timeout, as_guest=True
        )
        try:
            consumer = await create(session)
        finally:
            if mine:
                session._exclusive.leave()
        if self.auto_start and not self._connection.is_started:
            await self._connection.start()
        return JMSConsumer(consumer)

    async def _anonymous(self) -> MessageProducer:
        """The producer that all of this context send through."""
        if self._producer is None:
            session = await self._begun()
            self._producer = await session.create_producer()
        return self._producer


class JMSProducer(JMSProducerFace):
    """Sends messages to any destination, with settings that can be chained; made by `JMSContext.create_producer`."""

    def __init__(self, context: JMSContext) -> None:
        super().__init__()
        self._context = context

    async def send(self, destination: Destination, message_or_body: Any) -> JMSProducer:
        """Send a message, or a body: str, bytes, dict, list or tuple, None, or any value that AMQP has a type for.

        What was set on this producer goes before what the message says.  See `MessageProducer.send` for what it waits
        for and raises.  Returns the producer.
        """
        check_destination(destination)
        session = await self._context._begun()
        async with session._exclusive:
            producer = await self._context._anonymous()
            self._configure(producer)
            await producer.send(self._made(message_or_body), destination=destination, on_completion=self._completion)
        return self

    def __repr__(self) -> str:
        return f"<JMSProducer of {self._context!r}>"


class JMSConsumer(JMSConsumerFace, Closing):
    """Receives the messages of a destination: by `receive`, by iteration, or by a listener; made by a `JMSContext`."""

    _consumer: MessageConsumer

    async def receive(self, timeout: Duration | None = None) -> Message | None:
        """The next message, or None: after `timeout` seconds (0 does not wait), or when the consumer is closed.

        See `MessageConsumer.receive`.
        """
        return await self._consumer.receive(timeout)

    async def receive_no_wait(self) -> Message | None:
        """The next message if there is one; the broker is asked before the answer is None."""
        return await self._consumer.receive_no_wait()

    async def receive_body(self, type: type[Any], timeout: Duration | None = None) -> Any:
        """The body of the next message as `type`, or None as `receive` does.

        See `MessageConsumer.receive_body`.
        """
        return await self._consumer.receive_body(type, timeout)

    async def receive_body_no_wait(self, type: type[Any]) -> Any:
        """The body of the next message as `type`, or None when there is no message now."""
        return await self._consumer.receive_body(type, 0)

    def __aiter__(self) -> AsyncIterator[Message]:
        """The messages as they come, until the consumer is closed."""
        return aiter(self._consumer)

    async def close(self) -> None:
        """Close the consumer; what it has not read goes back to the queue, unmarked and in its place.

        Waits for a running listener of this consumer, unless that listener itself closes it.  Twice is silent.
        """
        await self._consumer.close()
