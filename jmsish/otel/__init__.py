"""Traces and metrics by OpenTelemetry: ``jmsish.otel.instrument()``, with the extra ``jmsish[otel]``.

Spans and metrics follow OpenTelemetry's conventions for messaging systems; what each means here is told in
``docs/observability.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    import opentelemetry.trace  # noqa: F401
except ImportError as missing:
    raise ImportError("jmsish.otel needs OpenTelemetry: pip install 'jmsish[otel]'") from missing

from jmsish.client.telemetry import watch_all
from jmsish.message import Message
from jmsish.otel import blocking, coroutines  # noqa: F401  # each enters its classes
from jmsish.otel.telemetry import Telemetry, context_of

__all__ = ["Telemetry", "context_of", "instrument", "process", "uninstrument"]


def instrument(**settings: Any) -> Telemetry:
    """Watch all connections that are made from now on, but those with an option `tracing` of their own.

    The settings are those of `Telemetry`: `tracer_provider`, `meter_provider` and `inject`. A second call takes the
    place of the first.
    """
    telemetry = Telemetry(**settings)
    watch_all(telemetry)
    return telemetry


def uninstrument() -> None:
    """Watch no further connections; those that are watched stay so."""
    watch_all(None)


@contextmanager
def process(message: Message) -> Iterator[None]:
    """The processing of a message that was got by `receive`, as a span around the block.

    It is current in the block and linked to the span that sent the message; an exception in it is its error. A listener
    needs no such block: its call is one. With a message of a connection that is not watched nothing happens.
    """
    session = getattr(message._owner, "_session", None)
    connection = None if session is None else session._core.connection
    telemetry = None if connection is None else connection.telemetry
    if connection is None or not isinstance(telemetry, Telemetry):
        yield
        return
    with telemetry.processing(message, connection, message.jms_destination):
        yield
