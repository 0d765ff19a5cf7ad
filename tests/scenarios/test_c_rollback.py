"""Scenarios C: rollback."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish
from jmsish.testing import VirtualClock

from .face import Face
from .steps import Stage, again, expect, numbered, send, stage, take_all


async def test_s024_rollback_marks_the_message(face: Face) -> None:
    """24: received, rolled back, received again, marked; closed without commit it is still there."""
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.session.rollback()
    await expect(consumer, "m1[R2]")
    await play.session.close()
    await play.queue.holds(1, acquired=0)


async def test_s025_three_in_a_row(face: Face) -> None:
    """25: the count is exact over rollbacks."""
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.session.rollback()
    await expect(consumer, "m1[R2]")
    await play.session.rollback()
    await expect(consumer, "m1[R3]")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s026_receive_some_roll_back_receive_all(face: Face) -> None:
    """26: the central order test: the rolled-back ones first and marked, the unread after them and unmarked."""
    play = await stage(face, "transacted", numbered(1, 5))
    consumer = await play.consumer()
    await play.queue.prefetched(5)
    await expect(consumer, "m1 m2")
    await play.session.rollback()
    await expect(consumer, "m1[R2] m2[R2] m3 m4 m5 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s027_buffered_after_a_rolled_back_one_is_not_marked(face: Face) -> None:
    """27: prefetch 1: B, never received, has neither flag nor count."""
    play = await stage(face, "transacted", "A B")
    consumer = await play.consumer(prefetch=1)
    await expect(consumer, "A")
    await play.queue.prefetched(2)
    await play.session.rollback()
    await expect(consumer, "A[R2] B none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s029_a_thousand_receives_rolled_back(face: Face) -> None:
    """29: a thousand rolled back come again in their order, each counted once."""
    story = numbered(0, 999)
    play = await stage(face, "transacted")
    producing = await play.connection.create_session(transacted=True)
    producer = await producing.create_producer(play.destination)
    for body in story.split():
        await producer.send(body)
    await producing.commit()
    consumer = await play.consumer()
    await expect(consumer, story)
    await play.session.rollback()
    await expect(consumer, again(story) + " none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s031_rollback_then_close_another_session_reads(face: Face) -> None:
    """31: exactly 2: the second prefetch, which nobody read, does not make it 3."""
    play = await stage(face, "transacted", "m1")
    await expect(await play.consumer(), "m1")
    await play.session.rollback()
    await play.queue.prefetched(1)
    await play.session.close()
    await play.queue.holds(1, acquired=0)
    other = await play.beside("auto", same_connection=True)
    await expect(await other.consumer(), "m1[R2] none")
    await play.queue.comes_to(0)


async def test_s032_closed_without_commit_to_a_waiting_session(face: Face) -> None:
    """32a: what a session held goes, at its close, to the waiting consumer of another, in order."""
    play = await stage(face, "transacted", "m1 m2")
    await expect(await play.consumer(), "m1 m2")
    other = await play.beside("transacted")
    waiting = await other.consumer()
    await play.session.close()
    await expect(waiting, "m1[R2] m2[R2] none")
    await other.session.commit()
    await play.queue.holds(0)


async def test_s032_rolled_back_then_closed_to_a_waiting_session(face: Face) -> None:
    """32b: the messages may bounce through the first session's buffer; their count stays 2."""
    play = await stage(face, "transacted", "m1 m2")
    await expect(await play.consumer(), "m1 m2")
    other = await play.beside("transacted")
    waiting = await other.consumer()
    await play.session.rollback()
    await play.session.close()
    # Which of the two consumers the first message went to is the broker's choice: only the set is fixed.
    assert sorted(await take_all(waiting)) == ["m1[R2]", "m2[R2]"]
    await other.session.commit()
    await play.queue.holds(0)


async def test_s033_two_consumers_two_queues(face: Face) -> None:
    """33: one rollback gives back over all queues of the session, and marks only what was received."""
    play = await stage(face, "transacted", "a1 a2", queue="a")
    await send(play.connection, "b", "b1 b2")
    first = await play.consumer()
    second = await play.session.create_consumer(play.session.create_queue("b"))
    for suffix in ("", "[R2]"):
        await expect(first, "a1" + suffix)
        await expect(second, "b1" + suffix)
        await (play.session.commit() if suffix else play.session.rollback())
    await expect(first, "a2 none")
    await expect(second, "b2 none")
    await play.session.commit()
    await face.sight("a").holds(0)
    await face.sight("b").holds(0)


async def interleaved(face: Face) -> tuple[Stage, Any, Any, str]:
    """Five of nine received by A and B in turns, the others unread in their buffers or on the queue; and what a
    rollback must make of it."""
    play = await stage(face, "transacted", numbered(1, 9))
    a, b = await play.consumer(), await play.consumer(prefetch=3)
    received = set()
    for consumer in (a, b, b, a, b):
        message: Any = await consumer.receive(timeout=30)
        received.add(message.body)
    assert len(received) == 5
    told = " ".join(f"{word}[R2]" if word in received else word for word in numbered(1, 9).split())
    return play, a, b, told + " none"


async def test_s034_interleaved_only_one_goes_on(face: Face) -> None:
    """34: after the rollback one consumer of the session gets all in order, counted if either had received it."""
    play, _, b, told = await interleaved(face)
    await play.session.rollback()
    await expect(b, told)
    await play.session.commit()
    await play.queue.holds(0)


async def test_s034_interleaved_a_third_reads(face: Face) -> None:
    """34: the same with both closed after the rollback and a third consumer."""
    play, a, b, told = await interleaved(face)
    await play.session.rollback()
    await a.close()
    await b.close()
    await expect(await play.consumer(), told)
    await play.session.commit()
    await play.queue.holds(0)


async def test_s034_interleaved_closed_before_the_rollback(face: Face) -> None:
    """34: the same with both closed before it: the buffers go back first, the received ones at the rollback."""
    play, a, b, told = await interleaved(face)
    await a.close()
    await b.close()
    await play.queue.holds(9, acquired=5)
    await play.session.rollback()
    await play.queue.holds(9, acquired=0)
    await expect(await play.consumer(), told)
    await play.session.commit()


async def test_s035_consumers_closed_before_the_rollback(face: Face) -> None:
    """35: several queues, all received, all consumers closed: after the rollback nothing is stuck as acquired."""
    story = numbered(1, 30)
    play = await stage(face, "transacted")
    queues = ["q1", "q2", "q3"]
    for name in queues:
        await send(play.connection, name, story)
        consumer = await play.session.create_consumer(play.session.create_queue(name))
        await expect(consumer, story)
        await consumer.close()
        await face.sight(name).holds(30, acquired=30)
    await play.session.rollback()
    for name in queues:
        await face.sight(name).holds(30, acquired=0)
    for name in queues:
        await expect(await play.session.create_consumer(play.session.create_queue(name)), again(story) + " none")
    await play.session.commit()


async def test_s037_commit_order_differs_from_send_order(face: Face) -> None:
    """37: put-back goes by the place in the queue, which the commit gave, not by message id or timestamp."""
    play = await stage(face, "transacted")
    sessions = [await play.connection.create_session(transacted=True) for _ in range(2)]
    late, early = [await session.create_producer(play.destination) for session in sessions]
    for number in (1, 3):
        await late.send(f"m{number + 1}")
        await early.send(f"m{number}")
        await sessions[1].commit()
        await sessions[0].commit()
    consumer = await play.consumer()
    await play.queue.prefetched(4)
    await expect(consumer, "m1 m2")
    await play.session.close()
    other = await play.beside("transacted")
    await expect(await other.consumer(), "m1[R2] m2[R2] m3 m4 none")
    await other.session.commit()
    await play.queue.holds(0)


async def test_s039_failed_commit_is_a_rollback(face: Face) -> None:
    """39: a commit that the broker refuses raises TransactionRolledBackError, and all is as after a rollback."""
    clock = VirtualClock()
    face.broker_with(clock=clock, config={"policy": {"transaction_timeout": 60}})
    play = await stage(face, "transacted", "j1 j2 j3 j4")
    consumer = await play.consumer()
    producer = await play.session.create_producer(play.session.create_queue("results"))
    await expect(consumer, "j1 j2")
    await producer.send("never")
    await face.barrier()
    clock.advance(61)
    with pytest.raises(jmsish.TransactionRolledBackError):
        await play.session.commit()
    await expect(consumer, "j1[R2] j2[R2] j3 j4 none")
    await play.session.commit()
    await play.queue.holds(0)
    await face.sight("results").holds(0)


async def test_s042_rolled_back_send_and_rolled_back_receive(face: Face) -> None:
    """42: a rolled-back send is never seen; a rolled-back receive returns."""
    story = numbered(1, 20)
    play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    consumer = await play.consumer()
    for body in story.split():
        await producer.send("x" + body)
    await play.session.rollback()
    await expect(consumer, "none")
    for body in story.split():
        await producer.send(body)
    await play.queue.holds(0)
    await play.session.commit()
    await play.queue.holds(20)
    await expect(consumer, story)
    await play.queue.holds(20, acquired=20)
    await play.session.rollback()
    await expect(consumer, again(story) + " none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s043_send_and_receive_in_one_transaction_rolled_back(face: Face) -> None:
    """43: the received message is back, the sent one never was."""
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    producer = await play.session.create_producer(play.destination)
    await expect(consumer, "m1")
    await producer.send("x")
    await play.session.rollback()
    await expect(consumer, "m1[R2] none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s043_send_and_receive_in_one_transaction_committed(face: Face) -> None:
    """43, with commit: the sent message comes after everything that was queued."""
    play = await stage(face, "transacted", "m1 m2")
    consumer = await play.consumer()
    producer = await play.session.create_producer(play.destination)
    await expect(consumer, "m1")
    await producer.send("x")
    await send(play.connection, "orders", "m3")
    await play.session.commit()
    await expect(consumer, "m2 m3 x none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s044_only_committed_messages_are_visible(face: Face) -> None:
    """44: m1, m2, m3 only; mX was rolled back between them."""
    play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    for body, committed in (("m1", True), ("mX", False), ("m2", True), ("m3", True)):
        await producer.send(body)
        await (play.session.commit() if committed else play.session.rollback())
    reader = await play.beside("auto")
    await expect(await reader.consumer(), "m1 m2 m3 none")
    await play.queue.comes_to(0)


async def test_s046_a_changed_body_does_not_leak(face: Face) -> None:
    """46: what the application does to its copy is not in what is delivered again, body and properties."""
    play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    await producer.send({"price": 10}, properties={"colour": "red"})
    await play.session.commit()
    consumer = await play.consumer()
    message: Any = await consumer.receive(timeout=30)
    assert message is not None
    message.clear_body()
    message.set_int("price", 99)
    message.clear_properties()
    message.properties["colour"] = "blue"
    await play.session.rollback()
    message = await consumer.receive(timeout=30)
    assert message is not None and message.jms_redelivered
    assert dict(message.body) == {"price": 10}
    assert message.properties["colour"] == "red"
    await play.session.commit()
    await play.queue.holds(0)


async def test_s049_count_over_rollbacks_and_a_session_close(face: Face) -> None:
    """49: closing the session counts as one more failed delivery, because the third was received."""
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    for word in ("m1", "m1[R2]"):
        await expect(consumer, word)
        await play.session.rollback()
    await expect(consumer, "m1[R3]")
    await play.session.close()
    other = await play.beside("transacted")
    await expect(await other.consumer(), "m1[R4] none")
    await other.session.commit()
    await play.queue.holds(0)


@pytest.mark.parametrize("mode", ["transacted", "client"])
async def test_s051_count_equals_receives(face: Face, mode: str) -> None:
    """51: each attempt is a connection that receives and simply closes: 1, 2, 3 exactly, up to the queue's maximum."""
    face.broker.declare_queue("orders", max_delivery_attempts=4, dead_letter="orders.dead")
    sender = await face.connect()
    await send(sender, "orders", "m1")
    for word in ("m1", "m1[R2]", "m1[R3]", "m1[R4]"):
        await face.sight("orders").holds(1, acquired=0)
        await face.sight("orders.dead").holds(0)
        play = await stage(face, mode)
        await expect(await play.consumer(), word)
        await play.connection.close()
    await face.sight("orders").holds(0)
    await face.sight("orders.dead").holds(1)
