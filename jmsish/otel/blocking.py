"""The watched classes of `jmsish`: they do what their elders do, and tell."""

from __future__ import annotations

from typing import Any

from jmsish._facade import Duration
from jmsish.engine.delivery import Delivery
from jmsish.message import Message
from jmsish.otel.faces import TracedConsuming, TracedProducing, settling
from jmsish.otel.telemetry import Telemetry
from jmsish.sync.consumer import Listener, MessageConsumer
from jmsish.sync.producer import MessageProducer
from jmsish.sync.session import Acknowledger, Session


class TracedProducer(TracedProducing, MessageProducer):
    """A producer whose sends are spans."""

    def send(self, message_or_body: Any = ..., **settings: Any) -> None:
        """See `MessageProducer.send`."""
        operation = self._begin(settings)
        if operation is None:
            return super().send(message_or_body, **settings)
        with operation.current():
            super().send(message_or_body, **settings)
        if settings.get("on_completion") is None:
            operation.end()


class TracedListener:
    """What a watched consumer calls in place of the application's listener."""

    def __init__(self, consumer: TracedConsumer, inner: Listener) -> None:
        self._consumer = consumer
        self.inner = inner

    def __call__(self, message: Message) -> Any:
        with self._consumer.processing(message):
            return self.inner(message)


class TracedConsumer(TracedConsuming, MessageConsumer):
    """A consumer whose receives and listeners are spans."""

    def receive(self, timeout: Duration | None = None) -> Message | None:
        """See `MessageConsumer.receive`."""
        if timeout == 0:
            return self.receive_no_wait()
        with self._receiving_span():
            return super().receive(timeout)

    def receive_no_wait(self) -> Message | None:
        """See `MessageConsumer.receive_no_wait`."""
        with self._receiving_span():
            return super().receive_no_wait()

    def receive_body(self, type: type[Any], timeout: Duration | None = None) -> Any:
        """See `MessageConsumer.receive_body`."""
        with self._receiving_span():
            return super().receive_body(type, timeout)

    @property
    def listener(self) -> Listener | None:
        """See `MessageConsumer.listener`."""
        return self._listener.inner if isinstance(self._listener, TracedListener) else None

    @listener.setter
    def listener(self, listener: Listener | None) -> None:
        self._assign(TracedListener(self, listener) if callable(listener) else listener)

    def _message(self, delivery: Delivery) -> Message:
        self._got = super()._message(delivery)
        return self._got


class TracedAcknowledger(Acknowledger):
    """Whose acknowledgements are spans."""

    __slots__ = ()

    def acknowledge(self, message: Message) -> None:
        """See `Message.acknowledge`."""
        with settling(self._session._core.connection, "ack", message):
            super().acknowledge(message)


class TracedSession(Session):
    """A session whose producers and consumers are watched, and whose settlements are spans."""

    _producer_kind = TracedProducer
    _consumer_kind = TracedConsumer
    _acknowledger_kind = TracedAcknowledger

    def commit(self) -> None:
        """See `Session.commit`."""
        with settling(self._core.connection, "commit"):
            super().commit()

    def rollback(self) -> None:
        """See `Session.rollback`."""
        with settling(self._core.connection, "rollback"):
            super().rollback()

    def recover(self) -> None:
        """See `Session.recover`."""
        with settling(self._core.connection, "recover"):
            super().recover()


Telemetry.kinds[Session] = TracedSession
