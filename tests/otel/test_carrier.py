"""Where the trace context stands in a message, and in which forms it is understood."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace

import jmsish
from jmsish import Queue, otel
from jmsish.engine.codec import ReceivedMessage, encode_message
from jmsish.message import message_from
from tests.otel.conftest import Kept
from tests.scenarios.face import Face

TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
TEXT = f"00-{TRACE:032x}-{SPAN:016x}-01"
BINARY = b"\0\0" + TRACE.to_bytes(16, "big") + b"\1" + SPAN.to_bytes(8, "big") + b"\2\1"


def found(annotations: dict[str, Any] | None = None, properties: dict[str, Any] | None = None) -> trace.SpanContext:
    payload = encode_message(annotations=annotations, application_properties=properties, body=(0x77, "x"))
    message = message_from(ReceivedMessage(payload))
    return trace.get_current_span(otel.context_of(message)).get_span_context()


@pytest.mark.parametrize("name", ["x-opt-traceparent", "traceparent"])
@pytest.mark.parametrize("value", [TEXT, BINARY], ids=["text", "binary"])
def test_annotations_are_understood(name: str, value: object) -> None:
    context = found({name: value})
    assert (context.trace_id, context.span_id, context.is_remote) == (TRACE, SPAN, True)


def test_properties_are_understood() -> None:
    assert found(None, {"traceparent": TEXT, "tracestate": "vendor=1"}).trace_state.get("vendor") == "1"


def test_annotations_go_before_properties() -> None:
    other = f"00-{1:032x}-{2:016x}-01"
    assert found({"x-opt-traceparent": TEXT}, {"traceparent": other}).trace_id == TRACE


@pytest.mark.parametrize("value", ["nonsense", b"short", BINARY[:-1] + b"\1\1", 7, ""])
def test_what_is_no_context_is_none(value: object) -> None:
    assert not found({"x-opt-traceparent": value}).is_valid


def test_a_message_that_was_never_sent_has_none() -> None:
    assert not trace.get_current_span(otel.context_of(jmsish.TextMessage("x"))).get_span_context().is_valid


async def test_properties_carry_it_where_they_shall(face: Face, kept: Kept) -> None:
    """As OpenTelemetry's instrumentation of Java's JMS clients reads and writes it."""
    telemetry = otel.Telemetry(tracer_provider=kept.tracers, meter_provider=kept.meters, inject="properties")
    session = await (await face.connect(tracing=telemetry)).create_session()
    await (await session.create_producer(Queue("q"))).send("one", properties={"mine": 1})
    message = await (await session.create_consumer(Queue("q"))).receive(30)
    assert message.properties["mine"] == 1
    assert f"{kept.span('send q').context.span_id:016x}" in message.properties["traceparent"]
    assert "x-opt-traceparent" not in message._source.prefix.annotations
    assert kept.span("receive q").links[0].context.span_id == kept.span("send q").context.span_id


async def test_a_message_that_is_sent_on_carries_the_new_context(face: Face, kept: Kept) -> None:
    session = await (await face.connect(tracing=kept.telemetry)).create_session()
    await (await session.create_producer(Queue("a"))).send("one", properties={"mine": 1})
    message = await (await session.create_consumer(Queue("a"))).receive(30)
    await (await session.create_producer(Queue("b"))).send(message)
    await (await session.create_consumer(Queue("b"))).receive(30)
    (link,) = kept.span("receive b").links
    assert link.context.span_id == kept.span("send b").context.span_id


def test_another_place_is_refused() -> None:
    with pytest.raises(ValueError, match="inject is annotations or properties, not 'body'"):
        otel.Telemetry(inject="body")


def test_the_option_takes_a_telemetry_only() -> None:
    with pytest.raises(TypeError, match="tracing is a jmsish.otel.Telemetry, False or None, not True"):
        jmsish.connect("vm://nowhere", tracing=True)
    with pytest.raises(ValueError, match="cannot be given in a URL"):
        jmsish.connect("vm://nowhere?jms.tracing=yes")
