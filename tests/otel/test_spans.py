"""Spans by the conventions for messaging systems, on the four faces."""

from __future__ import annotations

import io
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

import jmsish
from jmsish import AcknowledgeMode, Queue, otel
from tests.otel.conftest import Kept
from tests.scenarios.blocking import undressed
from tests.scenarios.face import Face
from tests.scenarios.test_context import opened

ORDERS = Queue("orders")


async def watched(face: Face, kept: Kept, **options: Any) -> Any:
    return await face.connect(tracing=kept.telemetry, **options)


async def test_a_send_is_a_producer_span_with_the_attributes_of_the_conventions(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    await (await session.create_producer(ORDERS)).send("one")
    consumer = await session.create_consumer(ORDERS)
    message = await consumer.receive(30)
    span = kept.span("send orders")
    assert span.kind is SpanKind.PRODUCER and span.status.status_code is StatusCode.UNSET
    found = dict(span.attributes or {})
    assert found.pop("messaging.client.id") == connection._core.engine.container_id
    assert found.pop("messaging.message.id") == message.jms_message_id
    place = {"server.address": "127.0.0.1", "server.port": face.listener.port} if face.wire == "tcp" else {
        "server.address": face.broker.url
    }  # fmt: skip
    assert found == {
        "messaging.system": "jms",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "network.protocol.name": "amqp",
        "network.protocol.version": "1.0.0",
        **place,
    }


async def test_a_receive_is_linked_to_the_send_and_no_child_of_it(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    await (await session.create_producer(ORDERS)).send("one")
    message = await (await session.create_consumer(ORDERS)).receive(30)
    sent, received = kept.span("send orders"), kept.span("receive orders")
    assert received.kind is SpanKind.CLIENT and received.parent is None
    (link,) = received.links
    assert link.context.span_id == sent.context.span_id and link.context.trace_id == sent.context.trace_id
    assert received.attributes["messaging.operation.type"] == "receive"
    assert received.attributes["messaging.message.id"] == message.jms_message_id
    assert received.start_time < received.end_time


async def test_the_context_is_in_the_annotations_and_nowhere_an_application_sees(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    await (await session.create_producer(ORDERS)).send("one", properties={"mine": 1})
    message = await (await session.create_consumer(ORDERS)).receive(30)
    sent = kept.span("send orders").context
    assert dict(message.properties) == {"mine": 1, "JMSXDeliveryCount": 1} and message.body == "one"
    assert message._source.prefix.annotations["x-opt-traceparent"] == (
        f"00-{sent.trace_id:032x}-{sent.span_id:016x}-{sent.trace_flags:02x}"
    )
    assert trace.get_current_span(otel.context_of(message)).get_span_context().span_id == sent.span_id


async def test_a_send_is_a_child_of_the_span_that_is_current(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    producer = await session.create_producer(ORDERS)
    with kept.tracers.get_tracer("app").start_as_current_span("request") as request:
        await producer.send("one")
    assert kept.span("send orders").parent.span_id == request.get_span_context().span_id


async def test_tracestate_travels_too(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    producer = await session.create_producer(ORDERS)
    state = trace.TraceState([("vendor", "value")])
    context = trace.SpanContext(7, 9, False, trace.TraceFlags(1), state)
    with trace.use_span(trace.NonRecordingSpan(context)):
        await producer.send("one")
    await (await session.create_consumer(ORDERS)).receive(30)
    (link,) = kept.span("receive orders").links
    assert link.context.trace_state.get("vendor") == "value" and link.context.trace_id == 7


async def test_a_listener_is_a_process_span_current_while_it_runs(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session, others = await connection.create_session(), await connection.create_session()
    answers = await session.create_producer(Queue("answers"))
    consumer = await session.create_consumer(ORDERS)

    async def answer(message: jmsish.Message) -> None:
        await answers.send(f"{message.body} done")

    consumer.listener = answer
    await (await others.create_producer(ORDERS)).send("one")
    assert (await (await others.create_consumer(Queue("answers"))).receive(30)).body == "one done"
    await session.close()
    processed, answered = kept.span("process orders"), kept.span("send answers")
    assert processed.kind is SpanKind.CONSUMER and processed.parent is None
    assert [link.context.span_id for link in processed.links] == [kept.span("send orders").context.span_id]
    assert answered.parent.span_id == processed.context.span_id
    assert consumer.listener is not None and not type(consumer.listener).__name__.startswith("Traced")


async def test_a_listener_that_fails_is_an_error_of_its_span(face: Face, kept: Kept, caplog: Any) -> None:
    connection = await watched(face, kept)
    session, others = await connection.create_session(), await connection.create_session()
    consumer = await session.create_consumer(ORDERS)
    log = face.log()

    async def fail_once(message: jmsish.Message) -> None:
        log.add(message.delivery_count)
        if message.delivery_count == 1:
            raise RuntimeError("no")

    consumer.listener = fail_once
    await (await others.create_producer(ORDERS)).send("one")
    await log.reach(2)
    await session.close()
    first, second = kept.spans("process orders")
    assert first.status.status_code is StatusCode.ERROR and first.attributes["error.type"] == "RuntimeError"
    assert second.status.status_code is StatusCode.UNSET and second.attributes["jmsish.delivery_count"] == 2
    assert kept.total("jmsish.client.redelivered.messages") == 1


async def test_process_spans_what_is_done_with_a_received_message(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    producer = await session.create_producer(ORDERS)
    await producer.send("one")
    message = await (await session.create_consumer(ORDERS)).receive(30)
    with otel.process(message):
        await (await session.create_producer(Queue("answers"))).send("done")
    processed = kept.span("process orders")
    assert kept.span("send answers").parent.span_id == processed.context.span_id
    assert len(processed.links) == 1


async def test_process_of_a_message_nobody_watches_does_nothing(face: Face, kept: Kept) -> None:
    session = await (await face.connect()).create_session()
    await (await session.create_producer(ORDERS)).send("one")
    message = await (await session.create_consumer(ORDERS)).receive(30)
    with otel.process(message):
        assert not trace.get_current_span().get_span_context().is_valid
    with otel.process(jmsish.TextMessage("never sent")):
        pass
    assert kept.spans() == []


async def test_settlements_are_spans(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session(acknowledge_mode=AcknowledgeMode.INDIVIDUAL)
    await (await session.create_producer(ORDERS)).send("one")
    message = await (await session.create_consumer(ORDERS)).receive(30)
    await session.recover()
    await (await connection.create_session()).close()
    transacted = await connection.create_session(transacted=True)
    await transacted.commit()
    await transacted.rollback()
    for name in ("recover", "commit", "rollback"):
        span = kept.span(name)
        assert span.kind is SpanKind.CLIENT and span.attributes["messaging.operation.type"] == "settle"
    assert message.delivery_count == 1


async def test_an_acknowledgement_is_linked_to_the_send(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    for mode in (AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL):
        session = await connection.create_session(acknowledge_mode=mode)
        await (await session.create_producer(ORDERS)).send("one")
        message = await (await session.create_consumer(ORDERS)).receive(30)
        await message.acknowledge()
        await session.close()
    sends, acks = kept.spans("send orders"), kept.spans("ack orders")
    assert [ack.links[0].context.span_id for ack in acks] == [send.context.span_id for send in sends]


async def test_a_send_that_is_refused_is_an_error_of_its_span(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    producer = await session.create_producer(ORDERS)
    await producer.close()
    with pytest.raises(jmsish.IllegalStateError):
        await producer.send("one")
    span = kept.span("send orders")
    assert span.status.status_code is StatusCode.ERROR and span.attributes["error.type"] == "IllegalStateError"
    assert "closed" in (span.status.description or "")


async def test_a_wrong_call_leaves_no_span(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    anonymous = await session.create_producer()
    with pytest.raises(jmsish.IllegalStateError):
        await anonymous.send("one")
    with pytest.raises(TypeError):
        await anonymous.send("one", destination="orders")
    assert kept.spans() == []


async def test_a_receive_that_brings_nothing_leaves_no_span(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    consumer = await (await connection.create_session()).create_consumer(ORDERS)
    assert await consumer.receive(0) is None and await consumer.receive_no_wait() is None
    assert await consumer.receive_body(str, 0) is None
    assert kept.spans() == []


async def test_every_way_of_receiving_is_one_span(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    producer = await session.create_producer(ORDERS)
    for number in range(4):
        await producer.send(f"{number}")
    consumer = await session.create_consumer(ORDERS)
    assert (await consumer.receive(0)).body == "0"
    assert (await consumer.receive_no_wait()).body == "1"
    assert await consumer.receive_body(str, 5) == "2"
    assert (await consumer.receive(30)).body == "3"
    assert len(kept.spans("receive orders")) == 4


async def test_a_completion_ends_its_span_and_runs_in_its_context(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    producer = await session.create_producer(ORDERS)
    current: list[int] = []
    await producer.send("one", on_completion=lambda message, error: current.append(
        trace.get_current_span().get_span_context().span_id
    ))  # fmt: skip
    await producer.close()
    assert current == [kept.span("send orders").context.span_id]


async def test_a_stream_carries_the_context_too(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    await (await session.create_producer(ORDERS)).send(stream=io.BytesIO(b"x" * 300_000))
    message = await (await session.create_consumer(ORDERS)).receive(30)
    assert len(message.body) == 300_000
    assert kept.span("receive orders").links[0].context.span_id == kept.span("send orders").context.span_id


async def test_the_simplified_api_is_watched_as_well(face: Face, kept: Kept) -> None:
    context = await opened(face, AcknowledgeMode.AUTO, tracing=kept.telemetry)
    await (await context.create_producer()).send(ORDERS, "one")
    await (await context.create_consumer(ORDERS)).receive(30)
    assert kept.span("receive orders").links[0].context.span_id == kept.span("send orders").context.span_id


async def test_a_subscription_and_a_temporary_destination_are_named(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    news = jmsish.Topic("news")
    reader = await session.create_shared_consumer(news, "readers")
    await (await session.create_producer(news)).send("one")
    await reader.receive(30)
    assert kept.span("receive news").attributes["messaging.destination.subscription.name"] == "readers"
    answers = await session.create_temporary_queue()
    await (await session.create_producer(answers)).send("two")
    sent = kept.span("send (temporary)")
    assert sent.attributes["messaging.destination.temporary"] is True
    assert sent.attributes["messaging.destination.name"] == answers.name


async def test_no_body_no_property_and_no_password_is_in_a_span(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session = await connection.create_session()
    await (await session.create_producer(ORDERS)).send("a body", properties={"secret": "a property"})
    await (await session.create_consumer(ORDERS)).receive(30)
    told = " ".join(span.to_json() for span in kept.spans())
    assert "a body" not in told and "a property" not in told and "secret" not in told


async def test_instrument_watches_all_new_connections_and_tracing_false_excepts_one(face: Face, kept: Kept) -> None:
    otel.instrument(tracer_provider=kept.tracers, meter_provider=kept.meters)
    try:
        watched, excepted = await face.connect(), await face.connect(tracing=False)
    finally:
        otel.uninstrument()
    plain = await face.connect()
    for connection in (watched, excepted, plain):
        session = await connection.create_session()
        await (await session.create_producer(ORDERS)).send("one")
    assert len(kept.spans()) == 1


async def test_nobody_pays_who_is_not_watched(face: Face) -> None:
    """The classes are the plain ones: there is nothing in the way of a message that a watched one has."""
    connection = await face.connect()
    session = await connection.create_session()
    producer = await session.create_producer(ORDERS)
    kind = type(undressed(producer))
    assert "Traced" not in kind.__name__ and "otel" not in kind.__module__
