"""Sessions for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from jmsish._consuming import check_destination, check_queue, new_consumer, selector_of
from jmsish._facade import SessionFace, forbid_in_completion
from jmsish.aio.closing import Closing
from jmsish.aio.consumer import MessageConsumer, QueueBrowser
from jmsish.aio.exclusive import Exclusive
from jmsish.aio.listeners import ListenerTask
from jmsish.aio.producer import MessageProducer
from jmsish.aio.streams import open_body
from jmsish.client.consumer import ClientConsumer
from jmsish.client.ledger import ClientLedger
from jmsish.client.producer import ClientProducer
from jmsish.client.session import ClientSession
from jmsish.client.subscriptions import Subscription
from jmsish.destination import Destination, TemporaryQueue, TemporaryTopic, Topic
from jmsish.engine.delivery import Delivery
from jmsish.message import BytesMessage, Message
from jmsish.modes import AcknowledgeMode

if TYPE_CHECKING:
    from jmsish.aio.connection import Connection


class Acknowledger:
    """What a message knows of the session it came by."""

    __slots__ = ("_session", "_delivery", "ledger")

    def __init__(self, session: Session, delivery: Delivery | None) -> None:
        self._session = session
        self._delivery = delivery
        self.ledger = session._core.ledger
        """In which it is: that of a connection which was lost acknowledges nothing."""

    async def acknowledge(self, message: Message) -> None:
        session = self._session
        async with session._exclusive:
            session._driver.call(self.ledger.acknowledge, self._delivery, message._ack_type)
            session._driver.flush()

    def open(self, message: BytesMessage) -> Any:
        return open_body(self._session, message)


class Session(SessionFace, Closing):
    """A single-threaded context for sending and receiving (JMS 3.1, 6.2).

    Made by `Connection.create_session`.  A second thread that uses it at the same time gets a `ConcurrencyError`;
    `close` may be called by any.
    """

    _producer_kind = MessageProducer
    _consumer_kind = MessageConsumer
    _acknowledger_kind = Acknowledger
    """Of other classes in a session that is watched (`client/telemetry.py`)."""

    def __init__(self, connection: Connection, core: ClientSession) -> None:
        self._connection = connection
        self._core = core
        self._driver = connection._driver
        self._exclusive = Exclusive()
        self._listeners: ListenerTask | None = None
        self._acknowledger = self._acknowledger_kind(self, None)
        self._faces: dict[ClientConsumer, MessageConsumer] = {}

    # -- consumers and producers -----------------------------------------------------------------------------------

    async def create_consumer(
        self,
        destination: Destination,
        selector: str | None = None,
        *,
        no_local: bool = False,
        prefetch: int | None = None,
        priority: int = 0,
    ) -> MessageConsumer:
        """A consumer of `destination`; of a topic, by a subscription that begins and ends with it.

        Messages that `selector` does not match stay on a queue for others.  With `no_local` a topic's consumer does not
        get what its own connection publishes.  `prefetch` is how many messages may be sent ahead of `receive` (default:
        the connection's option); `priority` is the consumer's at its queue: the highest with credit is served first.
        Raises `InvalidDestinationError` when the destination cannot be consumed from, `InvalidSelectorError` for a
        fault in the selector, `UnsupportedFeatureError` when the broker does not apply it (JMS 3.1, 8.2, 8.3.1).
        """
        return await self._consume(destination, selector, no_local=no_local, prefetch=prefetch, priority=priority)

    async def create_durable_consumer(
        self,
        topic: Topic,
        name: str,
        selector: str | None = None,
        *,
        no_local: bool = False,
        prefetch: int | None = None,
    ) -> MessageConsumer:
        """The consumer of an unshared durable subscription: made at the first call, kept until `unsubscribe`.

        It belongs to the client id of the connection; with another topic, selector or `no_local` it is made anew, and
        what it had collected is gone.  Raises `IllegalStateError` without a client id, while another consumer reads it,
        or while it is shared; see also `create_consumer` (JMS 3.1, 8.3.3).
        """
        subscription = Subscription(name, durable=True, shared=False)
        return await self._consume(topic, selector, no_local=no_local, prefetch=prefetch, subscription=subscription)

    async def create_shared_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, prefetch: int | None = None
    ) -> MessageConsumer:
        """A consumer of a shared subscription that lives as long as a consumer of it.

        Each message goes to one of them.  Connections with a client id share by that and the name, the others by the
        name alone.  Raises `IllegalStateError` while consumers of this connection read it from another topic or with
        another selector, `UnsupportedFeatureError` when the broker has no shared subscriptions; see also
        `create_consumer` (JMS 3.1, 8.3.2).
        """
        subscription = Subscription(name, durable=False, shared=True)
        return await self._consume(topic, selector, prefetch=prefetch, subscription=subscription)

    async def create_shared_durable_consumer(
        self, topic: Topic, name: str, selector: str | None = None, *, prefetch: int | None = None
    ) -> MessageConsumer:
        """A consumer of a shared durable subscription: made at the first call, kept until `unsubscribe`.

        Without consumers it collects; opened then with another topic or selector it is made anew.  Raises as
        `create_shared_consumer` does, and `IllegalStateError` where the name is one of an unshared durable subscription
        (JMS 3.1, 8.3.4).
        """
        subscription = Subscription(name, durable=True, shared=True)
        return await self._consume(topic, selector, prefetch=prefetch, subscription=subscription)

    async def unsubscribe(self, name: str) -> None:
        """End a durable subscription, with all it has collected.

        Raises `InvalidDestinationError` when there is none of this name, `IllegalStateError` or `JMSError` while a
        consumer reads it or has messages of it unacknowledged or in a transaction (JMS 3.1, 8.3.3).
        """
        async with self._exclusive:
            self._core.check()
            await self._driver.run(self._core.connection.subscriptions.unsubscribe(name))

    async def create_browser(self, queue: Destination, selector: str | None = None) -> QueueBrowser:
        """A browser of `queue`: looks at the messages that `selector` matches without taking them (JMS 3.1, 4.1.5).

        Raises `InvalidDestinationError` for a topic, `InvalidSelectorError` for a fault in the selector.
        """
        self._core.check()
        return QueueBrowser(self, check_queue(queue), selector_of(selector))

    async def create_producer(self, destination: Destination | None = None) -> MessageProducer:
        """A producer that sends to `destination`, or, without one, to the destination given with each send."""
        if destination is not None:
            check_destination(destination)
        async with self._exclusive:
            core = ClientProducer(self._core, destination)
            await self._driver.run(core.attach(), cancellable=True)
        return self._producer_kind(self, core)

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
        forbid_in_completion(self._driver.callbacks.calling, "a commit", self._core)
        async with self._exclusive:
            await self._driver.finish_callbacks()
            await self._driver.run(self._core.commit())

    async def rollback(self) -> None:
        """Undo what was received and sent since the last commit or rollback.

        What was received comes again, marked as redelivered, before everything later; what was only prefetched goes
        back unmarked (JMS 3.1, 6.2.7).
        """
        forbid_in_completion(self._driver.callbacks.calling, "a rollback", self._core)
        async with self._exclusive:
            await self._driver.finish_callbacks()
            await self._driver.run(self._core.rollback())

    async def recover(self) -> None:
        """Have the messages that were received and not acknowledged delivered again, marked, from the first on.

        Raises `IllegalStateError` in a transacted session (JMS 3.1, 6.2.12).
        """
        async with self._exclusive:
            await self._driver.run(self._core.recover())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """Commit at the end of the block, roll back if it raises.

        Raises `IllegalStateError` inside another such block of the session, whose work it would commit.
        """
        self._core.transaction()
        with self._one_block():
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
        forbid_in_completion(self._driver.callbacks.calling, "closing a session", self._core)
        self._driver.call(self._core.begin_close, self._runs_listener)
        mine = await self._exclusive.wait(self._core.connection.options.close_timeout)
        try:
            await self._driver.run(self._core.close())
            await self._driver.finish_callbacks()
        finally:
            if mine:
                self._exclusive.leave()
            self._connection._sessions.discard(self)

    # -- for the other rooms of this face ---------------------------------------------------------------------------

    async def _consume(self, destination: Destination, selector: str | None, **wishes: Any) -> MessageConsumer:
        core = await self._new_consumer(destination, selector, **wishes)
        consumer = self._faces[core] = self._consumer_kind(self, core)
        return consumer

    async def _new_consumer(self, destination: Destination, selector: str | None, **wishes: Any) -> ClientConsumer:
        core = new_consumer(self._core, destination, selector, **wishes)
        async with self._exclusive:
            await self._driver.run(self._core.add_consumer(core), cancellable=True)
        return core

    @property
    def _runs_listener(self) -> bool:
        """Whether a listener of this session is running."""
        return self._listeners is not None and self._listeners.consumer is not None

    def _check_free(self) -> None:
        """JMS 3.1, 6.2.6: no listener is set while a call waits in the session; one that runs is no hindrance."""
        self._exclusive.check(None if self._listeners is None else self._listeners.runner)

    def _listen(self) -> None:
        if self._listeners is None:
            self._listeners = ListenerTask(self)

    def _follow_up(self) -> None:
        """Something was said that nobody waits for; inside a transaction it can wait for the commit."""
        if self._core.controller is None:
            self._driver.nudge()
        else:
            self._driver.linger()

    def _message(self, delivery: Delivery) -> Message:
        message: Message = delivery.context
        delivery.context = None  # what is not acknowledged yet shall not keep the body of a message nobody holds
        core, acknowledger = self._core, self._acknowledger
        individual = core.mode is AcknowledgeMode.INDIVIDUAL
        if individual or acknowledger.ledger is not core.ledger:
            acknowledger = self._acknowledger = self._acknowledger_kind(self, delivery if individual else None)
        if delivery.link.session is not core.engine_session:  # it came by a connection that was lost just now
            acknowledger = self._acknowledger_kind(self, None)
            acknowledger.ledger = ClientLedger(core)
        message._owner = acknowledger
        return message

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: Any) -> bool:
        return self is other
