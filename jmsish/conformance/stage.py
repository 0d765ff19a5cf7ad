"""What a scenario plays on: connections, queues with names of their own, and short words for what is expected.

A script such as ``"m1*2 m2 none"`` says what consecutive receives give: the text of the message, behind ``*`` its
count of deliveries where it is not the first, and ``none`` where nothing may come.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from threading import Event
from typing import Any

import jmsish
from jmsish import AcknowledgeMode
from jmsish.errors import JMSError

QUIET = 0.25
"""Seconds in which nothing may come, where nothing is expected, unless another time is given: a broker may need a
moment to put a message back."""


class Difference(Exception):
    """The broker did otherwise than the scenario says."""


def seen(message: jmsish.Message | None) -> str:
    """A received message in the words of a script.  Its flag and its count must agree (JMS 3.1, 3.4.7)."""
    if message is None:
        return "none"
    count = message.delivery_count
    if message.jms_redelivered != (count > 1):
        raise Difference(
            f"{message.body!r} has the delivery count {count} and jms_redelivered {message.jms_redelivered}"
        )
    return f"{message.body}*{count}" if count > 1 else str(message.body)


class Stage:
    """The surroundings of one scenario; what it opened is closed, and what it left is taken away, at its end."""

    def __init__(
        self, url: str, options: dict[str, Any], queue: str | None, patience: float = 5.0, quiet: float = QUIET
    ) -> None:
        self._url = url
        self._options = options
        self._given = queue
        self.patience = patience
        """Seconds to wait for a message that must come."""
        self.quiet = quiet
        """Seconds to wait where none may come."""
        self._number = uuid.uuid4().hex[:12]
        self._names: list[str] = []
        self._connections: list[jmsish.Connection] = []
        self._subscriptions: list[tuple[str | None, str]] = []
        self._main: jmsish.Connection | None = None

    # -- what there is

    def connect(self, *, start: bool = True, **options: Any) -> jmsish.Connection:
        """One more connection."""
        connection = jmsish.connect(self._url, start=start, **{**self._options, **options})
        self._connections.append(connection)
        return connection

    @property
    def connection(self) -> jmsish.Connection:
        """The connection that most of a scenario needs."""
        if self._main is None:
            self._main = self.connect()
        return self._main

    def session(self, mode: AcknowledgeMode = AcknowledgeMode.AUTO) -> jmsish.Session:
        return self.connection.create_session(acknowledge_mode=mode)

    def transacted(self) -> jmsish.Session:
        return self.connection.create_session(transacted=True)

    def name(self, word: str = "q") -> str:
        """A name that nobody else has; of a queue, the one that was given to the check, where one was."""
        return f"jmsish.check.{self._number}.{word}"

    def queue(self, word: str = "q") -> jmsish.Queue:
        """A queue of this scenario."""
        if self._given is not None and word != "q":
            raise jmsish.UnsupportedFeatureError("needs a second queue, and only one was given (--queue)")
        name = self.name(word) if self._given is None else self._given
        if name not in self._names:
            self._names.append(name)
            if self._given is not None:
                self._empty(name)
        return jmsish.Queue(name)

    def topic(self, word: str = "t") -> jmsish.Topic:
        return jmsish.Topic(self.name(word))

    def subscription(self, client_id: str | None = None) -> str:
        """The name of a durable subscription, which is ended with the scenario; of the client id that holds it."""
        name = f"jmsish-check-{self._number}-{len(self._subscriptions)}"
        self._subscriptions.append((client_id, name))
        return name

    def client_id(self) -> str:
        return f"jmsish-check-{self._number}"

    # -- what is done again and again

    def send(self, bodies: str, destination: jmsish.Destination | None = None, **how: Any) -> None:
        """Send these texts, in a session of their own."""
        session = self.connection.create_session()
        producer = session.create_producer(destination or self.queue())
        for body in bodies.split():
            producer.send(body, **how)
        session.close()

    def expect(self, consumer: jmsish.MessageConsumer, script: str) -> list[jmsish.Message]:
        """Receive as the script says; the messages.  Raises `Difference` at the first that is another."""
        got: list[str] = []
        messages = []
        for word in script.split():
            message = consumer.receive(timeout=self.quiet if word == "none" else self.patience)
            got.append(seen(message))
            if got[-1] != word:
                raise Difference(f"expected {script!r}, got {' '.join(got)!r}")
            if message is not None:
                messages.append(message)
        return messages

    def holds(self, script: str, queue: jmsish.Queue | None = None) -> None:
        """What another connection finds on the queue, which is empty then; ``""`` for nothing."""
        session = self.connect().create_session()
        self.expect(session.create_consumer(queue or self.queue()), f"{script} none")
        session.close()

    def prefetched(self, consumer: jmsish.MessageConsumer, count: int) -> None:
        """Wait until so many messages lie unread at the client: that is what many scenarios are about."""
        core = consumer._core
        if not self._comes(lambda: len(core.buffer) >= count):
            raise Difference(f"{len(core.buffer)} of {count} messages were sent ahead")

    def waits(self, consumer: jmsish.MessageConsumer) -> None:
        """Wait until a thread waits for a message of this consumer; one that was started may not have run yet."""
        if not self._comes(lambda: consumer._core.waiter is not None):
            raise Difference("the receive does not wait")

    def _comes(self, condition: Callable[[], bool]) -> bool:
        pause = Event()
        waited = 0.0
        while not condition() and waited < self.patience:
            pause.wait(0.01)
            waited += 0.01
        return condition()

    # -- the end

    def leave(self) -> None:
        """Close what is open and take away what is left."""
        for connection in self._connections:
            _quietly(connection.close)
        self._connections.clear()
        for client_id, name in self._subscriptions:
            _quietly(self._unsubscribe, client_id, name)
        for name in self._names:
            _quietly(self._empty, name)

    def _unsubscribe(self, client_id: str | None, name: str) -> None:
        options = self._options if client_id is None else {**self._options, "client_id": client_id}
        with jmsish.connect(self._url, **options) as connection:
            connection.create_session().unsubscribe(name)

    def _empty(self, name: str) -> None:
        with jmsish.connect(self._url, **self._options) as connection:
            consumer = connection.create_session().create_consumer(jmsish.Queue(name))
            while consumer.receive(timeout=min(self.quiet, 0.05)) is not None:
                pass


def _quietly(action: Any, *arguments: Any) -> None:
    """What was left behind may be gone already, or the broker in no state to be asked."""
    try:
        action(*arguments)
    except JMSError:
        pass


def equal(got: object, wanted: object, what: str) -> None:
    """Raise `Difference` where two are not equal."""
    if got != wanted:
        raise Difference(f"{what}: expected {wanted!r}, got {got!r}")


def raises(kind: type[BaseException], action: Any, *arguments: Any, **options: Any) -> None:
    """Raise `Difference` where the action does not raise this."""
    try:
        action(*arguments, **options)
    except kind:
        return
    raise Difference(f"{getattr(action, '__name__', action)} raised nothing, where {kind.__name__} was expected")


def words(count: int, first: int = 1) -> str:
    """``"m1 m2 m3"``."""
    return " ".join(f"m{number}" for number in range(first, first + count))


def bodies(messages: Iterable[jmsish.Message]) -> list[Any]:
    return [message.body for message in messages]
