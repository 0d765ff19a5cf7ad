"""Consumers and browsers for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from jmsish._consuming import BodyReader, ConsumerFace
from jmsish._facade import Duration, check_listener, timeout_of
from jmsish.aio.closing import Closing
from jmsish.client.consumer import ClientConsumer
from jmsish.destination import Destination
from jmsish.engine.delivery import Delivery
from jmsish.errors import IllegalStateError
from jmsish.message import Message

if TYPE_CHECKING:
    from jmsish.aio.session import Session

Listener = Callable[[Message], Any]


class MessageConsumer(ConsumerFace, Closing):
    """Receives the messages of a destination: by `receive`, by iteration, or by a listener."""

    def __init__(self, session: Session, core: ClientConsumer) -> None:
        self._session = session
        self._core = core
        self._listener: Listener | None = None
        self._receiving = asyncio.Lock()
        """Held by a receive that may have to wait: close waits until it has returned."""

    async def receive(self, timeout: Duration | None = None) -> Message | None:
        """The next message, or None: after `timeout` seconds (0 does not wait), or when the consumer is closed.

        Without a timeout it waits for ever.  Raises `IllegalStateError` on a closed consumer or one with a listener,
        and the cause when the connection fails (JMS 3.1, 8.6).
        """
        if timeout == 0:
            return await self.receive_no_wait()
        exclusive = self._session._exclusive
        if exclusive.is_looking:
            await exclusive.looked()
        with exclusive:
            delivery = None if self._session._driver.is_stale else self._receive_now()
            if delivery is None:
                async with self._receiving:  # before the first turn of the loop: a close from here on ends it with None
                    delivery = await self._receive_waiting(timeout)
        return None if delivery is None else self._message(delivery)

    def _receive_now(self) -> Delivery | None:
        driver = self._session._driver
        driver.core.now = driver.time()
        delivery = self._core.receive_now()
        if delivery is not None:
            self._session._follow_up()
        return delivery

    async def _receive_waiting(self, timeout: Duration | None) -> Delivery | None:
        driver = self._session._driver
        self._core.check()
        await driver.refresh()
        delivery = self._receive_now()
        if delivery is None:
            self._check_synchronous()
            seconds = timeout_of(timeout)
            deadline = None if seconds is None else driver.time() + seconds
            delivery = await driver.run(self._core.receive(deadline), cancellable=True)
        return delivery

    async def receive_no_wait(self) -> Message | None:
        """The next message if there is one; the broker is asked before the answer is None."""
        async with self._session._exclusive:
            self._check_synchronous()
            async with self._receiving:
                delivery = await self._session._driver.run(self._core.receive(None, wait=False), cancellable=True)
        return None if delivery is None else self._message(delivery)

    async def receive_body(self, type: type[Any], timeout: Duration | None = None) -> Any:
        """The body of the next message as `type`, or None as `receive` does.

        Raises `MessageFormatError` for a stream, for a message without a body, and for a body of another type.  In a
        session that acknowledges by itself such a message comes again before the later ones, as if it had not been
        asked for; in the others it counts as received (JMS 3.1, 8.6).
        """
        seconds = timeout_of(timeout)
        reading = BodyReader(type, self._message)
        async with self._session._exclusive:
            self._check_synchronous()
            deadline = None if not seconds else self._session._driver.time() + seconds
            steps = self._core.receive(deadline, seconds != 0, reading)
            async with self._receiving:
                await self._session._driver.run(steps, cancellable=True)
        return reading.body

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The messages as they come, until the consumer is closed."""
        while True:
            message = None
            try:
                if not self._core.closed:
                    message = await self.receive()
            except IllegalStateError:
                if not self._core.closed:  # else closed by another since it was looked at
                    raise
            if message is None:
                return
            yield message

    @property
    def listener(self) -> Listener | None:
        """The callable that gets each message in a thread of the session's; None to receive by calls."""
        return self._listener

    @listener.setter
    def listener(self, listener: Listener | None) -> None:
        self._assign(listener)

    def _assign(self, listener: Listener | None) -> None:
        check_listener(listener)
        self._core.check()
        self._session._check_free()
        self._session._driver.call(self._set_listener, listener)
        if listener is not None:
            self._session._listen()
        self._session._driver.flush()

    async def close(self) -> None:
        """Close the consumer; what it has not read goes back to the queue, unmarked and in its place.

        Waits for a running listener of this consumer, unless that listener itself closes it.  Twice is silent.
        """
        session = self._session
        session._driver.call(self._core.begin_close)
        listeners = session._listeners
        if listeners is not None and listeners.consumer is self._core and not listeners.is_inside:
            await listeners.wait_until_idle()
        await self._wait_for_receive()
        await session._driver.run(self._core.close())
        session._faces.pop(self._core, None)

    async def _wait_for_receive(self) -> None:
        """JMS 3.1, 8.8: until a receive in another task has returned, which it does at once."""
        if self._session._exclusive.is_others:
            async with self._receiving:
                pass

    def _set_listener(self, listener: Listener | None) -> None:
        self._listener = listener
        self._core.set_listening(listener is not None)

    def _message(self, delivery: Delivery) -> Message:
        return self._session._message(delivery)

    def _check_synchronous(self) -> None:
        if self._session._core.is_listening:
            raise IllegalStateError("a consumer of the session has a listener: receive by one of the two")


class QueueBrowser(Closing):
    """Looks at the messages of a queue without taking them; each iteration starts anew."""

    def __init__(self, session: Session, queue: Destination, selector: str | None) -> None:
        self._session = session
        self._queue = queue
        self._selector = selector
        self._open: list[ClientConsumer] = []
        self._closed = False

    @property
    def queue(self) -> Destination:
        """The queue."""
        return self._queue

    @property
    def selector(self) -> str | None:
        """The selector, or None."""
        return self._selector

    def __repr__(self) -> str:
        return f"<QueueBrowser of {self._queue}{' closed' * self._closed}>"

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The messages that are available now, in queue order."""
        if self._closed:
            raise IllegalStateError("the browser is closed")
        driver = self._session._driver
        core = await self._session._new_consumer(self._queue, self._selector, browsing=True)
        self._open.append(core)
        try:
            while not self._closed:
                async with self._session._exclusive:
                    delivery = await driver.run(core.browse())
                if delivery is None:
                    return
                yield self._session._message(delivery)
        finally:
            if core in self._open:
                self._open.remove(core)
                await driver.run(core.close())

    async def close(self) -> None:
        """Close the browser.  Twice is silent."""
        self._closed = True
        while self._open:
            await self._session._driver.run(self._open.pop().close())
