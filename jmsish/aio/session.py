"""Sessions for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from jmsish._facade import SessionFace, check_destination, check_prefetch, forbid_in_completion, selector_of
from jmsish.aio.closing import Closing
from jmsish.aio.consumer import MessageConsumer, QueueBrowser
from jmsish.aio.exclusive import Exclusive
from jmsish.aio.listeners import ListenerTask
from jmsish.aio.producer import MessageProducer
from jmsish.client.consumer import ClientConsumer
from jmsish.client.producer import ClientProducer
from jmsish.client.session import ClientSession
from jmsish.destination import Destination, TemporaryQueue, TemporaryTopic, Topic
from jmsish.engine.codec import ReceivedMessage
from jmsish.engine.delivery import Delivery
from jmsish.message import Message, message_from
from jmsish.modes import AcknowledgeMode

if TYPE_CHECKING:
    from jmsish.aio.connection import Connection


class _Acknowledger:
    """What a message knows of the session it came by."""

    __slots__ = ("_session", "_delivery")

    def __init__(self, session: Session, delivery: Delivery | None) -> None:
        self._session = session
        self._delivery = delivery

    async def acknowledge(self, message: Message) -> None:
        session = self._session
        async with session._exclusive:
            session._driver.call(session._core.ledger.acknowledge, self._delivery)
            session._driver.flush()


class Session(SessionFace, Closing):
    """A single-threaded context for sending and receiving (JMS 3.1, 6.2).

    Made by `Connection.create_session`.  A second thread that uses it at the same time gets a `ConcurrencyError`;
    `close` may be called by any.
    """

    def __init__(self, connection: Connection, core: ClientSession) -> None:
        self._connection = connection
        self._core = core
        self._driver = connection._driver
        self._exclusive = Exclusive()
        self._listeners: ListenerTask | None = None
        self._acknowledger = _Acknowledger(self, None)
        self._faces: dict[ClientConsumer, MessageConsumer] = {}

    # -- consumers and producers -----------------------------------------------------------------------------------

    async def create_consumer(
        self,
        destination: Destination,
        selector: str | None = None,
        *,
        no_local: bool = False,
        prefetch: int | None = None,
    ) -> MessageConsumer:
        """A consumer of `destination`.

        `prefetch` is how many messages may be sent ahead of `receive` (default: the connection's option).  Raises
        `InvalidDestinationError` when the destination cannot be consumed from.
        """
        core = await self._new_consumer(check_destination(destination), selector, no_local=no_local, prefetch=prefetch)
        consumer = self._faces[core] = MessageConsumer(self, core)
        return consumer

    async def create_browser(self, queue: Destination, selector: str | None = None) -> QueueBrowser:
        """A browser of `queue`: looks without taking."""
        self._core.check()
        return QueueBrowser(self, check_destination(queue), selector_of(selector))

    async def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """A producer that sends to `destination`, or, without one, to the destination given with each send."""
        if destination is not None:
            check_destination(destination)
        async with self._exclusive:
            core = ClientProducer(self._core, destination)
            await self._driver.run(core.attach())
        return MessageProducer(self, core)

    async def create_temporary_queue(self) -> TemporaryQueue:
        """A queue that only this connection consumes from, deleted with the connection or by its `delete()`."""
        async with self._exclusive:
            self._core.check()
            return await self._connection._create_temporary(topic=False)  # type: ignore[no-any-return]

    async def create_temporary_topic(self) -> TemporaryTopic:
        """A topic that only this connection consumes from, deleted with the connection or by its `delete()`."""
        async with self._exclusive:
            self._core.check()
            return await self._connection._create_temporary(topic=True)  # type: ignore[no-any-return]

    # -- work ------------------------------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Acknowledge all that was received and send all that was sent since the last commit or rollback, as one.

        Raises `TransactionRolledBackError` when the broker rolled back instead, `TransactionInDoubtError` when its
        answer was lost, `IllegalStateError` when the session is not transacted (JMS 3.1, 6.2.7).
        """
        forbid_in_completion(self._driver.callbacks.calling, "a commit")
        async with self._exclusive:
            await self._driver.run(self._core.commit())
            await self._driver.finish_callbacks()

    async def rollback(self) -> None:
        """Undo what was received and sent since the last commit or rollback.

        What was received comes again, marked as redelivered, before everything later; what was only prefetched goes
        back unmarked (JMS 3.1, 6.2.7).
        """
        forbid_in_completion(self._driver.callbacks.calling, "a rollback")
        async with self._exclusive:
            await self._driver.run(self._core.rollback())
            await self._driver.finish_callbacks()

    async def recover(self) -> None:
        """Have the messages that were received and not acknowledged delivered again, marked, from the first on.

        Raises `IllegalStateError` in a transacted session (JMS 3.1, 6.2.12).
        """
        async with self._exclusive:
            await self._driver.run(self._core.recover())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """Commit at the end of the block, roll back if it raises."""
        self._core.transaction()
        try:
            yield self
        except BaseException:
            if not self.is_closed:
                await self.rollback()
            raise
        await self.commit()

    async def close(self) -> None:
        """Close the session: roll back or give back what is open, and wake blocked receives, which return None.

        Waits for a running listener, and for a call in another thread, at most `close_timeout` seconds.  Raises
        `IllegalStateError` from a listener of its own.  Twice is silent.
        """
        if self._listeners is not None:
            self._listeners.forbid("closing a session")
        forbid_in_completion(self._driver.callbacks.calling, "closing a session")
        self._driver.call(self._core.begin_close)
        mine = await self._exclusive.wait(self._core.connection.options.close_timeout)
        try:
            await self._driver.run(self._core.close())
            await self._driver.finish_callbacks()
        finally:
            if mine:
                self._exclusive.leave()
            self._connection._sessions.discard(self)

    # -- for the other rooms of this face ---------------------------------------------------------------------------

    async def _new_consumer(
        self, destination: Destination, selector: str | None, *, no_local: bool = False, prefetch: int | None = None,
        browsing: bool = False,
    ) -> ClientConsumer:
        options = self._core.connection.options
        default = options.prefetch_for(topic=isinstance(destination, Topic), browser=browsing)
        core = ClientConsumer(
            self._core, destination, prefetch=check_prefetch(prefetch, default), browsing=browsing,
            selector=selector_of(selector), no_local=no_local,
        )
        async with self._exclusive:
            await self._driver.run(self._core.add_consumer(core))
        return core

    def _listen(self) -> None:
        if self._listeners is None:
            self._listeners = ListenerTask(self)

    def _follow_up(self) -> None:
        """Something was said that nobody waits for; inside a transaction it can wait for the commit."""
        if self._core.controller is None:
            self._driver.nudge()
        else:
            self._driver.linger()

    def _message(self, delivery: Delivery, destination: Destination) -> Message:
        received = delivery.context or ReceivedMessage(delivery.payload)
        message = message_from(received, destination, self._core.connection.prefixes)
        individual = self._core.mode is AcknowledgeMode.INDIVIDUAL
        message._owner = _Acknowledger(self, delivery) if individual else self._acknowledger
        return message


    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: Any) -> bool:
        return self is other
