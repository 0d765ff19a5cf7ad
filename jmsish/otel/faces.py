"""What the watched producers, consumers and sessions of both faces share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import time_ns
from typing import Any, cast

from opentelemetry import trace

from jmsish._consuming import ConsumerFace
from jmsish._facade import ProducerFace
from jmsish.client.connection import ClientConnection
from jmsish.client.consumer import ClientConsumer
from jmsish.destination import Destination
from jmsish.message import Message, is_message
from jmsish.modes import DeliveryMode
from jmsish.otel import carrier
from jmsish.otel.telemetry import RECEIVE, SEND, SETTLE, Operation, Telemetry, links_to


def telemetry_of(connection: ClientConnection) -> Telemetry:
    """Who watches a connection that is watched."""
    return cast(Telemetry, connection.telemetry)


class TracedProducing(ProducerFace):
    """A producer whose messages say in which context they were sent."""

    def _begin(self, settings: dict[str, Any]) -> Operation | None:
        """The span of a send with these settings, which it changes; None where the send will be refused."""
        connection = self._core.session.connection
        target = settings.get("destination") or self._core.destination
        if not isinstance(target, Destination):
            return None
        telemetry = telemetry_of(connection)
        operation = telemetry.begin(SEND, SEND, connection, target)
        if telemetry.inject == "properties":
            with operation.current():
                settings["properties"] = {**(settings.get("properties") or {}), **carrier.current()}
        if callable(settings.get("on_completion")):
            settings["on_completion"] = completing(operation, settings["on_completion"])
        return operation

    def _make(
        self, body: Any, destination: Destination, wanted: tuple[Any, ...], keep: bool
    ) -> tuple[Message | None, bytes, DeliveryMode]:
        message, payload, mode = super()._make(body, destination, wanted, keep)
        return message, self._annotated(payload, body), mode

    def _make_head(
        self, given: Any, destination: Destination, wanted: tuple[Any, ...]
    ) -> tuple[Message, bytes, DeliveryMode]:
        message, head, mode = super()._make_head(given, destination, wanted)
        return message, self._annotated(head, given), mode

    def _annotated(self, payload: bytes, body: Any) -> bytes:
        span = trace.get_current_span()
        if not self.disable_message_id:
            span.set_attribute("messaging.message.id", f"{self._id_prefix}{self._core.numbered}")
        if is_message(body) and body.jms_correlation_id is not None:
            span.set_attribute("messaging.message.conversation_id", str(body.jms_correlation_id))
        if telemetry_of(self._core.session.connection).inject == "properties":
            return payload
        return carrier.annotate(payload)


def completing(operation: Operation, told: Callable[[Message, Any], Any]) -> Callable[[Message, Any], Any]:
    """A completion listener that ends the span of its send, and calls the application's in its context."""

    def completed(message: Message, error: Any) -> Any:
        operation.end(error)
        with trace.use_span(operation.span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
            return told(message, error)

    return completed


class TracedConsuming(ConsumerFace):
    """A consumer whose receives and listeners are spans."""

    _core: ClientConsumer
    _listener: Any
    _got: Message | None = None
    """What the receive that is under way has got."""

    @contextmanager
    def _receiving_span(self) -> Iterator[None]:
        """The span of one receive, begun when it is known what came: a call that brought nothing leaves none."""
        started = time_ns()
        self._got = None
        try:
            yield
        except BaseException as error:
            self._received(started, error)
            raise
        self._received(started, None)

    def _received(self, started: int, error: BaseException | None) -> None:
        message, self._got = self._got, None
        if message is None and error is None:
            return
        core = self._core
        connection = core.session.connection
        telemetry = telemetry_of(connection)
        links = [] if message is None else links_to(message)
        operation = telemetry.begin(RECEIVE, RECEIVE, connection, core.destination, links=links, start=started)
        name_subscription(operation, core)
        if message is not None:
            telemetry.consumed(operation, message)
        operation.end(error)

    @contextmanager
    def processing(self, message: Message) -> Iterator[None]:
        """The span of a listener that is called."""
        core = self._core
        connection = core.session.connection
        telemetry = telemetry_of(connection)
        with telemetry.processing(message, connection, core.destination) as operation:
            name_subscription(operation, core)
            telemetry.consumed(operation, message)
            yield


def name_subscription(operation: Operation, consumer: ClientConsumer) -> None:
    """The subscription that is read, where there is one."""
    if consumer.subscription is not None:
        operation.span.set_attribute("messaging.destination.subscription.name", consumer.subscription.name)


@contextmanager
def settling(connection: ClientConnection, name: str, message: Message | None = None) -> Iterator[None]:
    """A settlement, of one message or of what the session has in hand, as a span around the block."""
    telemetry = telemetry_of(connection)
    links = [] if message is None else links_to(message)
    destination = None if message is None else message.jms_destination
    operation = telemetry.begin(name, SETTLE, connection, destination, links=links)
    with operation.current():
        yield
    if name == "rollback":
        telemetry.rolled_back(operation)
    operation.end()
