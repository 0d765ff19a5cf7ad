"""Metrics by the conventions for messaging systems, and some of our own, on the four faces."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish
from jmsish import AcknowledgeMode, Queue
from tests.otel.conftest import Kept
from tests.scenarios.face import Face
from tests.scenarios.mending import Mending

ORDERS = Queue("orders")


async def watched(face: Face, kept: Kept, **options: Any) -> Any:
    return await face.connect(tracing=kept.telemetry, **options)


async def test_messages_are_counted_by_destination(face: Face, kept: Kept) -> None:
    session = await (await watched(face, kept)).create_session()
    producer, other = await session.create_producer(ORDERS), await session.create_producer(Queue("other"))
    for body in ("one", "two"):
        await producer.send(body)
    await other.send("three")
    consumer = await session.create_consumer(ORDERS)
    await consumer.receive(30)
    sent = "messaging.client.sent.messages"
    assert kept.total(sent, messaging__destination__name="orders") == 2
    assert kept.total(sent, messaging__destination__name="other", messaging__system="jms") == 1
    assert kept.total("messaging.client.consumed.messages", messaging__operation__name="receive") == 1


async def test_durations_are_those_of_the_spans(face: Face, kept: Kept) -> None:
    session = await (await watched(face, kept)).create_session()
    await (await session.create_producer(ORDERS)).send("one")
    (point,) = kept.points("messaging.client.operation.duration")
    span = kept.span("send orders")
    assert span.end_time is not None and span.start_time is not None
    assert point.count == 1 and point.sum == pytest.approx((span.end_time - span.start_time) / 1e9)
    assert point.explicit_bounds[0] == 0.005


async def test_a_failure_is_counted_with_its_type(face: Face, kept: Kept) -> None:
    session = await (await watched(face, kept)).create_session()
    producer = await session.create_producer(ORDERS)
    await producer.close()
    with pytest.raises(jmsish.IllegalStateError):
        await producer.send("one")
    assert kept.total("messaging.client.sent.messages", error__type="IllegalStateError") == 1


async def test_the_processing_of_a_listener_is_measured_and_counted_once(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    session, others = await connection.create_session(), await connection.create_session()
    log = face.log()
    consumer = await session.create_consumer(ORDERS)

    async def listen(message: jmsish.Message) -> None:
        log.add(message.body)

    consumer.listener = listen
    await (await others.create_producer(ORDERS)).send("one")
    await log.reach(1)
    await session.close()
    (point,) = kept.points("messaging.process.duration")
    assert point.count == 1
    assert kept.total("messaging.client.consumed.messages") == 1


async def test_redelivered_messages_are_counted(face: Face, kept: Kept) -> None:
    session = await (await watched(face, kept)).create_session(transacted=True)
    await (await session.create_producer(ORDERS)).send("one")
    await session.commit()
    consumer = await session.create_consumer(ORDERS)
    for _ in range(3):
        await consumer.receive(30)
        await session.rollback()
    assert kept.total("jmsish.client.redelivered.messages", messaging__destination__name="orders") == 2
    assert kept.total("jmsish.client.rolled_back.transactions", jmsish__by="application") == 3


async def test_a_transaction_that_the_broker_rolls_back_is_counted(face: Face, kept: Kept) -> None:
    face.broker_with(config={"policy": {"max_transaction_size": 1}})
    session = await (await watched(face, kept)).create_session(transacted=True)
    producer = await session.create_producer(ORDERS)
    for body in ("one", "two"):
        await producer.send(body)
    with pytest.raises(jmsish.TransactionRolledBackError):
        await session.commit()
    assert kept.total("jmsish.client.rolled_back.transactions", jmsish__by="broker") == 1


async def test_what_is_in_doubt_is_counted(face: Face, kept: Kept) -> None:
    """By the errors that say so: the same for every way in which an answer can be lost."""
    connection = await watched(face, kept)
    telemetry, core = kept.telemetry, connection._core
    with pytest.raises(jmsish.TransactionInDoubtError):
        operation = telemetry.begin("commit", "settle", core)
        with operation.current():
            raise jmsish.TransactionInDoubtError("the answer was lost")
    with pytest.raises(jmsish.ConnectionLostError):
        operation = telemetry.begin("send", "send", core, ORDERS)
        with operation.current():
            lost = jmsish.ConnectionLostError("lost")
            lost.outcome_unknown = True
            raise lost
    assert kept.total("jmsish.client.in_doubt.operations", messaging__operation__name="commit") == 1
    assert kept.total("jmsish.client.in_doubt.operations", messaging__operation__name="send") == 1


async def test_what_a_lost_connection_cost_is_counted(face: Face, kept: Kept) -> None:
    """And that it is there again; the watched classes go on watching on the new connection."""
    mending = Mending(face)
    connection = await mending.connect(tracing=kept.telemetry)
    session = await connection.create_session(transacted=True)
    producer = await session.create_producer(ORDERS)
    for body in ("one", "two", "three"):
        await producer.send(body)
    await session.commit()
    consumer = await session.create_consumer(ORDERS)
    await consumer.receive(30)
    await face.sight("orders").prefetched(3)
    await mending.mend()
    assert kept.total("jmsish.client.reconnects") == 1
    assert kept.total("jmsish.client.lost.deliveries", jmsish__delivery="prefetched") == 2
    with pytest.raises(jmsish.TransactionRolledBackError):
        await session.commit()
    assert kept.total("jmsish.client.rolled_back.transactions", jmsish__by="broker") == 1
    assert (await consumer.receive(30)).body == "one"
    await session.commit()
    assert kept.total("jmsish.client.redelivered.messages") == 1
    assert len(kept.spans("receive orders")) == 2


async def test_prefetched_messages_are_observed(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept, prefetch=5)
    session = await connection.create_session()
    producer = await session.create_producer(ORDERS)
    for number in range(7):
        await producer.send(f"{number}")
    consumer = await session.create_consumer(ORDERS)
    await consumer.receive(30)
    await face.barrier()
    depth = "jmsish.client.prefetched.messages"
    await face.eventually(lambda: kept.total(depth) == 5, lambda: f"a depth of 5, not {kept.total(depth)}")
    (point,) = kept.points(depth)
    assert dict(point.attributes)["messaging.destination.name"] == "orders"
    await connection.close()
    assert kept.total(depth) == 0


async def test_acknowledge_modes_do_not_matter_to_what_is_counted(face: Face, kept: Kept) -> None:
    connection = await watched(face, kept)
    for mode in (AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK, AcknowledgeMode.CLIENT, AcknowledgeMode.INDIVIDUAL):
        session = await connection.create_session(acknowledge_mode=mode)
        await (await session.create_producer(ORDERS)).send("one")
        message = await (await session.create_consumer(ORDERS)).receive(30)
        await message.acknowledge()
        await session.close()
    assert kept.total("messaging.client.consumed.messages") == 4


async def test_what_was_not_acknowledged_when_the_connection_was_lost_is_counted(face: Face, kept: Kept) -> None:
    mending = Mending(face)
    connection = await mending.connect(tracing=kept.telemetry)
    session = await connection.create_session(acknowledge_mode=AcknowledgeMode.CLIENT)
    await (await session.create_producer(ORDERS)).send("one")
    await (await session.create_consumer(ORDERS)).receive(30)
    await mending.mend()
    assert kept.total("jmsish.client.lost.deliveries", jmsish__delivery="unacknowledged") == 1
