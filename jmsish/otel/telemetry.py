"""Spans and metrics of the connections that are watched, by OpenTelemetry's conventions for messaging systems.

Theory of operation.  A connection that is watched makes sessions of another class (`blocking.py`, `coroutines.py`),
whose sends, receives, listeners and settlements are `Operation`s: a span and a measurement that begin and end together.
What no call shows is counted where it happens: connections that came back (`told`), and what is prefetched,
which is asked for when somebody collects.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import time_ns
from typing import Any, ClassVar

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, TracerProvider

from jmsish._version import VERSION
from jmsish.client.connection import ClientConnection
from jmsish.destination import Destination
from jmsish.errors import JMSError, TransactionInDoubtError, TransactionRolledBackError
from jmsish.events import ConnectionEvent, ConnectionRestored, DeliveriesLost
from jmsish.message import Message
from jmsish.otel import carrier
from jmsish.otel.instruments import Instruments

INJECTIONS = ("annotations", "properties")

SYSTEMS = {
    "artemis": "activemq",
    "activemq": "activemq",
    "rabbitmq": "rabbitmq",
    "rabbitmq-3": "rabbitmq",
    "servicebus": "servicebus",
}
"""What the conventions call a broker, by the name of its profile; any other is `jms`."""

SEND, RECEIVE, PROCESS, SETTLE = "send", "receive", "process", "settle"
KINDS = {SEND: SpanKind.PRODUCER, RECEIVE: SpanKind.CLIENT, PROCESS: SpanKind.CONSUMER, SETTLE: SpanKind.CLIENT}
"""The kind of span by the type of operation."""


class Telemetry:
    """Makes spans and metrics of connections: of those that name it in their option `tracing`, or of all.

    Without providers the global ones of OpenTelemetry are used. `inject` says where in a message the trace context
    goes: `"annotations"`, or `"properties"` for consumers that look there only. Raises `ValueError` for another word.
    """

    kinds: ClassVar[dict[type[Any], type[Any]]] = {}
    """The watched class for each plain one; each face enters its own."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        inject: str = "annotations",
    ) -> None:
        if inject not in INJECTIONS:
            raise ValueError(f"inject is {' or '.join(INJECTIONS)}, not {inject!r}")
        self.inject = inject
        self.tracer = trace.get_tracer("jmsish", VERSION, tracer_provider)
        self.counts = Instruments(metrics.get_meter("jmsish", VERSION, meter_provider), self._depths)
        self._connections: dict[int, weakref.ref[ClientConnection]] = {}

    # -- what connections ask (client/telemetry.py) ----------------------------------------------------------------

    def watch(self, connection: ClientConnection) -> None:
        """A connection is made: what it prefetches is observed."""
        key = id(connection)
        self._connections[key] = weakref.ref(connection, lambda gone: self._connections.pop(key, None))

    def session_kind(self, plain: type[Any]) -> type[Any]:
        """The class of the sessions of a watched connection."""
        return self.kinds[plain]

    def told(self, connection: ClientConnection, event: ConnectionEvent) -> None:
        """Count a connection that was lost and is there again, and what its losses cost."""
        if isinstance(event, ConnectionRestored):
            self.counts.reconnects.add(1, place_of(connection))
        elif isinstance(event, DeliveriesLost):
            lost, place = self.counts.lost, place_of(connection)
            lost.add(event.prefetched, {**place, "jmsish.delivery": "prefetched"})
            lost.add(event.unacknowledged, {**place, "jmsish.delivery": "unacknowledged"})

    # -- operations ------------------------------------------------------------------------------------------------

    def begin(
        self,
        name: str,
        kind: str,
        connection: ClientConnection,
        destination: Destination | None = None,
        *,
        links: Sequence[Link] = (),
        start: int | None = None,
    ) -> Operation:
        """Begin an operation, now or at `start` (nanoseconds since the epoch)."""
        attributes: dict[str, Any] = {
            "messaging.operation.name": name, "messaging.operation.type": kind, **place_of(connection)
        }  # fmt: skip
        title = name
        if destination is not None:
            if destination.is_temporary:
                attributes["messaging.destination.temporary"] = True
                title = f"{name} (temporary)"
            else:
                attributes["messaging.destination.name"] = destination.name
                title = f"{name} {destination.name}"
        started = time_ns() if start is None else start
        span = self.tracer.start_span(
            title, kind=KINDS[kind], attributes={**attributes, **more_of(connection)}, links=links, start_time=started
        )
        if destination is not None and destination.is_temporary:
            span.set_attribute("messaging.destination.name", destination.name)
        return Operation(self, span, kind, attributes, started)

    @contextmanager
    def processing(
        self, message: Message, connection: ClientConnection, destination: Destination | None
    ) -> Iterator[Operation]:
        """The processing of a message that was received: a span that is current meanwhile and linked to the send."""
        operation = self.begin(PROCESS, PROCESS, connection, destination, links=links_to(message))
        describe(operation.span, message)
        with operation.current():
            yield operation
        operation.end()

    def consumed(self, operation: Operation, message: Message) -> None:
        """Count a message that was handed to the application."""
        describe(operation.span, message)
        self.counts.consumed.add(1, operation.attributes)
        if message.jms_redelivered:
            self.counts.redelivered.add(1, operation.attributes)

    def rolled_back(self, operation: Operation) -> None:
        """Count a transaction that the application rolled back."""
        self.counts.rolled_back.add(1, {**operation.attributes, "jmsish.by": "application"})

    def measure(self, operation: Operation, seconds: float, error: BaseException | None) -> None:
        """What an operation counts for when it ends."""
        counts, attributes = self.counts, operation.attributes
        if error is not None:
            attributes = {**attributes, "error.type": type(error).__name__}
        if operation.kind == PROCESS:
            counts.process_durations.record(seconds, attributes)
            return
        counts.durations.record(seconds, attributes)
        if operation.kind == SEND:
            counts.sent.add(1, attributes)
        if isinstance(error, TransactionRolledBackError):
            counts.rolled_back.add(1, {**attributes, "jmsish.by": "broker"})
        if isinstance(error, TransactionInDoubtError) or getattr(error, "outcome_unknown", False):
            counts.in_doubt.add(1, attributes)

    def _depths(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """What is prefetched, by connection and destination.

        Whoever collects is in a thread of theirs: a list is copied in one step before it is gone through.
        """
        for known in list(self._connections.values()):
            connection = known()
            if connection is None or connection.closed or connection.failure is not None:
                continue
            depths: dict[str, int] = {}
            for session in list(connection.sessions):
                for consumer in list(session.consumers):
                    name = "" if consumer.destination.is_temporary else consumer.destination.name
                    depths[name] = depths.get(name, 0) + len(consumer.buffer)
            place = place_of(connection)
            for name, depth in depths.items():
                where = {"messaging.destination.name": name} if name else {"messaging.destination.temporary": True}
                yield depth, {**place, **where}


class Operation:
    """A span and its measurement."""

    def __init__(
        self, telemetry: Telemetry, span: Span, kind: str, attributes: Mapping[str, Any], started: int
    ) -> None:
        self.span = span
        self.kind = kind
        self.attributes = attributes
        """Those that its measurements have: of a low cardinality."""
        self._telemetry = telemetry
        self._started = started

    def end(self, error: BaseException | None = None) -> None:
        """The operation has ended, with this error or well."""
        if error is not None:
            self.span.set_attribute("error.type", type(error).__name__)
            self.span.set_status(StatusCode.ERROR, str(error))
            if isinstance(error, JMSError) and error.condition:
                self.span.set_attribute("amqp.error.condition", error.condition)
        ended = time_ns()
        self.span.end(ended)
        self._telemetry.measure(self, (ended - self._started) / 1e9, error)

    @contextmanager
    def current(self) -> Iterator[None]:
        """The span is current in the block; an error in it ends the operation, else it goes on."""
        with trace.use_span(self.span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
            try:
                yield
            except BaseException as error:
                self.end(error)
                raise


def place_of(connection: ClientConnection) -> dict[str, Any]:
    """The broker, as the conventions describe it."""
    host, colon, port = connection.peer.rpartition(":")
    place: dict[str, Any] = {"messaging.system": SYSTEMS.get(connection.profile.name, "jms")}
    if colon and port.isdecimal():
        place["server.address"], place["server.port"] = host.strip("[]"), int(port)
    else:
        place["server.address"] = connection.peer
    return place


def more_of(connection: ClientConnection) -> dict[str, Any]:
    """What spans say of the connection and measurements do not."""
    return {
        "messaging.client.id": connection.engine.container_id,
        "network.protocol.name": "amqp",
        "network.protocol.version": "1.0.0",
    }


def describe(span: Span, message: Message) -> None:
    """What a span says of its message: never the body, never a property."""
    if not span.is_recording():
        return
    if message.jms_message_id is not None:
        span.set_attribute("messaging.message.id", message.jms_message_id)
    if message.jms_correlation_id is not None:
        span.set_attribute("messaging.message.conversation_id", message.jms_correlation_id)
    if message.delivery_count > 1:
        span.set_attribute("jmsish.delivery_count", message.delivery_count)


def links_to(message: Message) -> list[Link]:
    """The link to the span that sent a message, where it names one."""
    sent = trace.get_current_span(carrier.extract(message)).get_span_context()
    return [Link(sent)] if sent.is_valid else []


def context_of(message: Message) -> Context:
    """The trace context in which a message was sent, for spans of your own; an empty one where it names none."""
    return carrier.extract(message)
