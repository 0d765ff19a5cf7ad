"""Consumers and browsers that block."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from jmsish._consuming import BodyReader, ConsumerFace
from jmsish._facade import Duration, check_listener, timeout_of
from jmsish.client.consumer import ClientConsumer
from jmsish.destination import Destination
from jmsish.engine.delivery import Delivery
from jmsish.errors import IllegalStateError
from jmsish.message import Message
from jmsish.sync.closing import Closing

if TYPE_CHECKING:
    from jmsish.sync.session import Session

Listener = Callable[[Message], Any]


class MessageConsumer(ConsumerFace, Closing):
    """Receives the messages of a destination: by `receive`, by iteration, or by a listener."""

    def __init__(self, session: Session, core: ClientConsumer) -> None:
        self._session = session
        self._core = core
        self._listener: Listener | None = None
        self._receiving = threading.Lock()
        """Held by a receive that may have to wait: close waits until it has returned."""

    def receive(self, timeout: Duration | None = None) -> Message | None:
        """The next message, or None: after `timeout` seconds (0 does not wait), or when the consumer is closed.

        Without a timeout it waits for ever.  Raises `IllegalStateError` on a closed consumer or one with a listener,
        and the cause when the connection fails (JMS 3.1, 8.6).
        """
        if timeout == 0:
            return self.receive_no_wait()
        with self._session._exclusive:
            driver = self._session._driver
            with self._receiving:
                driver.refresh()
                delivery = driver.step(self._core.receive_now)
                if delivery is not None:
                    self._session._follow_up()
                else:
                    self._check_synchronous()
                    seconds = timeout_of(timeout)
                    deadline = None if seconds is None else driver.time() + seconds
                    delivery = driver.run(self._core.receive(deadline))
        return None if delivery is None else self._message(delivery)

    def receive_no_wait(self) -> Message | None:
        """The next message if there is one; the broker is asked before the answer is None."""
        with self._session._exclusive:
            self._check_synchronous()
            with self._receiving:
                delivery = self._session._driver.run(self._core.receive(None, wait=False))
        return None if delivery is None else self._message(delivery)

    def receive_body(self, type: type[Any], timeout: Duration | None = None) -> Any:
        """The body of the next message as `type`, or None as `receive` does.

        Raises `MessageFormatError` for a stream, for a message without a body, and for a body of another type.  In a
        session that acknowledges by itself such a message comes again before the later ones, as if it had not been
        asked for; in the others it counts as received (JMS 3.1, 8.6).
        """
        seconds = timeout_of(timeout)
        reading = BodyReader(type, self._message)
        with self._session._exclusive:
            self._check_synchronous()
            deadline = None if not seconds else self._session._driver.time() + seconds
            steps = self._core.receive(deadline, seconds != 0, reading)
            with self._receiving:
                self._session._driver.run(steps)
        return reading.body

    def __iter__(self) -> Iterator[Message]:
        """The messages as they come, until the consumer is closed."""
        while True:
            message = None
            try:
                if not self._core.closed:
                    message = self.receive()
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

    def close(self) -> None:
        """Close the consumer; what it has not read goes back to the queue, unmarked and in its place.

        Waits for a running listener of this consumer, unless that listener itself closes it.  Twice is silent.
        """
        session = self._session
        session._driver.call(self._core.begin_close)
        listeners = session._listeners
        if listeners is not None and listeners.consumer is self._core:
            listeners.wait_until_idle()
        self._wait_for_receive()
        session._driver.run(self._core.close())
        session._faces.pop(self._core, None)

    def _wait_for_receive(self) -> None:
        """JMS 3.1, 8.8: until a receive in another thread has returned, which it does at once."""
        if self._session._exclusive.is_others:
            timeout = self._session._core.connection.options.close_timeout
            if self._receiving.acquire(timeout=-1 if timeout is None else min(timeout, threading.TIMEOUT_MAX)):
                self._receiving.release()

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

    def __iter__(self) -> Iterator[Message]:
        """The messages that are available now, in queue order."""
        if self._closed:
            raise IllegalStateError("the browser is closed")
        driver = self._session._driver
        core = self._session._new_consumer(self._queue, self._selector, browsing=True)
        self._open.append(core)
        try:
            while not self._closed:
                with self._session._exclusive:
                    delivery = driver.run(core.browse())
                if delivery is None:
                    return
                yield self._session._message(delivery)
        except GeneratorExit:  # perhaps by a finalizer, in the middle of anything: nothing can be waited for
            if core in self._open:
                self._open.remove(core)
                driver.leave(core.quit)
            raise
        finally:
            if core in self._open:
                self._open.remove(core)
                driver.run(core.close())

    def close(self) -> None:
        """Close the browser.  Twice is silent."""
        self._closed = True
        while self._open:
            self._session._driver.run(self._open.pop().close())
