"""What OpenTelemetry sees of a message: the send, the receive that is linked to it, the work, the answer, the commit.

Needs `pip install 'jmsish[otel]' opentelemetry-sdk`; without them it says so and ends.

Run it:  python examples/10_opentelemetry.py [amqp://host]
"""

from __future__ import annotations

import sys
import uuid

import jmsish

try:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
except ImportError:
    print("opentelemetry-sdk is not installed: pip install 'jmsish[otel]' opentelemetry-sdk")
    sys.exit()

from jmsish import otel


def demonstrate(url: str, spans: InMemorySpanExporter) -> None:
    run = uuid.uuid4().hex[:8]
    with jmsish.connect(url) as connection, connection.create_session(transacted=True) as session:
        orders, invoices = session.create_queue(f"orders-{run}"), session.create_queue(f"invoices-{run}")
        session.create_producer(orders).send("a lamp")
        session.commit()
        message = session.create_consumer(orders).receive(timeout=10)
        assert message is not None, "no order came"
        with otel.process(message):  # what is done in here belongs to the order
            session.create_producer(invoices).send(f"invoice of {message.body}")
        session.commit()
    show(spans.get_finished_spans())


def show(spans: tuple[ReadableSpan, ...]) -> None:
    """Each span, whose child it is, and what it is linked to."""
    names = {span.context.span_id: span.name for span in spans if span.context is not None}
    for span in spans:
        parent = f", in {names[span.parent.span_id]!r}" if span.parent is not None else ""
        links = "".join(f", linked to {names[link.context.span_id]!r}" for link in span.links)
        print(f"  {span.kind.name.lower():9} {span.name}{parent}{links}")
    assert sum(bool(span.links) for span in spans) == 2, "receive and process are linked to the send"


def main() -> None:
    spans = InMemorySpanExporter()  # a program of yours has an exporter to its collector here
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider([InMemoryMetricReader()])
    otel.instrument(tracer_provider=tracers, meter_provider=meters)
    if len(sys.argv) > 1:
        demonstrate(sys.argv[1], spans)
    else:
        with jmsish.EmbeddedBroker() as broker:
            demonstrate(broker.url, spans)


if __name__ == "__main__":
    main()
