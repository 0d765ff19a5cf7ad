"""Sending: what the provider sets, lifetimes, asynchronous completion, and what a failed send leaves behind."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

import jmsish
from jmsish import DeliveryMode
from jmsish.testing import VirtualClock

from .face import Face
from .steps import expect, numbered, outcome, seen, send, stage


async def test_headers_after_send_and_on_arrival(face: Face) -> None:
    """After send the message object holds the values that were used, and they arrive."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    producer.priority = 7
    message: Any = play.session.create_text_message("m1")
    before = int(time.time() * 1000)
    await producer.send(message, delivery_mode=DeliveryMode.NON_PERSISTENT, time_to_live=timedelta(minutes=1))
    after = int(time.time() * 1000) + 1
    got: Any = await (await play.consumer()).receive(timeout=30)
    for each in (message, got):
        assert each.jms_message_id.startswith("ID:")
        assert each.jms_destination == play.destination
        assert each.jms_delivery_mode == DeliveryMode.NON_PERSISTENT
        assert each.jms_priority == 7
        assert before <= each.jms_timestamp <= after
        assert each.jms_expiration == each.jms_timestamp + 60_000
    assert got.jms_message_id == message.jms_message_id


async def test_a_message_object_sent_twice(face: Face) -> None:
    """The object may be changed and sent again; the earlier send is not affected, and the ids differ."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    message: Any = play.session.create_text_message("m1")
    await producer.send(message)
    first = message.jms_message_id
    message.text = "m2"
    await producer.send(message)
    assert message.jms_message_id != first
    messages = await expect(await play.consumer(), "m1 m2 none")
    assert [each.jms_message_id for each in messages[:2]] == [first, message.jms_message_id]


async def test_received_and_sent_on(face: Face) -> None:
    """A received message can be sent on as it is: its count begins anew at its new place."""
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.session.rollback()
    (message, _) = await expect(consumer, "m1[R2] none")
    await (await play.session.create_producer(play.session.create_queue("next"))).send(message)
    await play.session.commit()
    await play.queue.holds(0)
    await expect(await play.session.create_consumer(play.session.create_queue("next")), "m1 none")


@pytest.mark.parametrize("prefetch", [0, 1000])
async def test_time_to_live(face: Face, prefetch: int) -> None:
    """An expired message is not delivered, whether it lies in the queue or in a buffer; one without end is."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    consumer = await play.consumer(prefetch=prefetch)
    await play.send("m1", time_to_live=10)
    await play.send("m2", time_to_live=100)
    await play.send("m3")
    clock.advance(50)
    await expect(consumer, "m2 m3 none")
    await play.queue.comes_to(0)


async def test_completion_of_asynchronous_sends(face: Face) -> None:
    """With `on_completion` the callbacks come in the order of the sends, each once, without an error."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    log = face.log()

    def done(message: Any, error: Any) -> None:
        log.add(message.body if error is None else repr(error))

    for body in numbered(1, 50).split():
        await producer.send(body, on_completion=done)
    assert await log.reach(50) == numbered(1, 50).split()
    await play.queue.holds(50)


async def test_close_waits_for_asynchronous_sends(face: Face) -> None:
    """Closing the session waits until unfinished sends are done, and their callbacks have returned."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    log = face.log()
    for body in numbered(1, 20).split():
        await producer.send(body, on_completion=lambda message, error: log.add(message.body))
    await play.session.close()
    assert log.items == numbered(1, 20).split()
    assert play.queue.depth == 20


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_asynchronous_sends_in_a_transaction(face: Face, ending: str) -> None:
    """Commit and rollback wait for them; they are seen, or not, as all sends of the transaction."""
    play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    log = face.log()
    for body in numbered(1, 20).split():
        await producer.send(body, on_completion=lambda message, error: log.add(message.body))
    await (play.session.commit() if ending == "commit" else play.session.rollback())
    assert log.items == numbered(1, 20).split()
    await play.queue.holds(20 if ending == "commit" else 0)


async def test_sends_of_all_kinds_keep_their_order(face: Face) -> None:
    """Synchronous, asynchronous and non-persistent sends of one producer arrive in the order of the calls."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    for number, body in enumerate(numbered(1, 60).split()):
        if number % 3 == 0:
            await producer.send(body)
        elif number % 3 == 1:
            await producer.send(body, on_completion=lambda message, error: None)
        else:
            await producer.send(body, delivery_mode=DeliveryMode.NON_PERSISTENT)
    await expect(await play.consumer(), numbered(1, 60) + " none")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"priority": 10}, ValueError),
        ({"priority": "high"}, TypeError),
        ({"delivery_mode": 3}, ValueError),
        ({"time_to_live": -1}, ValueError),
        ({"delivery_delay": -1}, ValueError),
    ],
)
async def test_wrong_arguments_send_nothing(face: Face, arguments: dict[str, Any], error: type[Exception]) -> None:
    """Wrong arguments are ValueError or TypeError, before anything is sent; the producer stays usable."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    with pytest.raises(error):
        await producer.send("m1", **arguments)
    await producer.send("m2")
    await expect(await play.consumer(), "m2 none")


async def test_large_messages_both_ways(face: Face) -> None:
    """A message of many frames, in a transaction, rolled back and received again: octet for octet."""
    body = bytes(range(256)) * 20_000
    play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    await producer.send(body)
    await producer.send("m2")
    await play.session.commit()
    consumer = await play.consumer()
    for count in (1, 2):
        message: Any = await consumer.receive(timeout=30)
        assert message.body == body and message.delivery_count == count
        if count == 1:
            await play.session.rollback()
    await expect(consumer, "m2 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_a_cut_in_the_middle_of_sends(face: Face) -> None:
    """The wire breaks while messages are sent: what was confirmed is there, in order, nothing twice."""
    play = await stage(face, "auto", cuttable=True)
    producer = await play.session.create_producer(play.destination)
    confirmed: list[str] = []
    log = face.log()

    async def sending() -> Any:
        for number in range(1, 100_000):
            result = await outcome(producer.send(f"m{number}"))
            if isinstance(result, jmsish.JMSError):
                return result
            confirmed.append(f"m{number}")
            log.add(f"m{number}")
            await face.yield_()
        return None

    task = await face.spawn(sending())
    await log.until("m20")
    face.cut(play.connection)
    error = await task
    assert isinstance(error, jmsish.ConnectionLostError)
    await face.turns(2)
    there = play.queue.bodies
    assert there[: len(confirmed)] == confirmed
    # A cut between two sends is known before the next one is sent, and its outcome with it.
    assert len(there) <= len(confirmed) + error.outcome_unknown


async def test_transacted_sends_never_show_before_the_commit(face: Face) -> None:
    """A consumer that waits sees nothing of an open transaction, and all of it, in order, after the commit."""
    play = await stage(face, "transacted")
    other = await play.beside("auto")
    consumer = await other.consumer()
    producer = await play.session.create_producer(play.destination)
    waiting = await face.spawn(consumer.receive(timeout=30))
    await face.comes_to_wait(consumer)
    for body in numbered(1, 5).split():
        await producer.send(body)
    await face.turns(3)
    assert not waiting.done()
    await play.queue.holds(0)
    await play.session.commit()
    first: Any = await waiting
    assert seen(first) == "m1"
    await expect(consumer, "m2 m3 m4 m5 none")
    await send(play.connection, "orders", "m6")
    await expect(consumer, "m6 none")
