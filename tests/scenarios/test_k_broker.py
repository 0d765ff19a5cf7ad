"""Scenarios K, as far as the API shows them, and some of I: what the broker does with what comes back."""

from __future__ import annotations

import pytest

from jmsish.testing import VirtualClock

from .face import Face
from .steps import expect, numbered, seen, send, stage, take_all


async def test_s172_a_discharge_puts_back_as_one_step(face: Face) -> None:
    """172: a waiting consumer with credit 1 gets the first of what a rollback puts back, never the second or third."""
    play = await stage(face, "transacted", "m1 m2 m3")
    consumer = await play.consumer()
    await expect(consumer, "m1 m2 m3")
    other = await play.beside("client")
    waiting = await other.consumer(prefetch=1)
    await face.barrier()
    await play.session.rollback()
    await expect(consumer, "m2[R2] m3[R2] none")
    await expect(waiting, "m1[R2]")
    await play.session.commit()
    await play.queue.holds(1)


async def test_s173_put_back_behind_a_moved_cursor(face: Face) -> None:
    """173: a consumer that has passed an acquired message is offered it again before anything later."""
    play = await stage(face, "transacted", numbered(1, 5))
    first = await play.consumer(prefetch=0)
    other = await play.beside("transacted")
    second = await other.consumer(prefetch=0)
    await expect(first, "m1 m2")
    await expect(second, "m3")
    await play.session.rollback()
    await first.close()
    await expect(second, "m1[R2] m2[R2] m4 m5 none")
    await other.session.commit()
    await play.queue.holds(0)


async def test_s174_new_arrivals_during_the_put_back(face: Face) -> None:
    """174: a message that arrived while the first two were out comes after them."""
    play = await stage(face, "transacted", "m1 m2")
    consumer = await play.consumer()
    await expect(consumer, "m1 m2")
    await play.send("m3")
    await play.session.rollback()
    await expect(consumer, "m1[R2] m2[R2] m3 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s176_priority_and_put_back(face: Face) -> None:
    """176: put back at its place inside its own priority level: the later, more urgent one comes first."""
    play = await stage(face, "transacted", "m1 m2 m3")
    consumer = await play.consumer()
    await play.queue.prefetched(3)
    await expect(consumer, "m1")
    await play.send("m4", priority=9)
    await play.session.rollback()
    await consumer.close()
    await expect(await play.consumer(), "m4 m1[R2] m2 m3 none")
    await play.session.commit()
    await play.queue.holds(0)


@pytest.mark.parametrize("mode", ["transacted", "client"])
async def test_s177_put_back_of_a_message_that_expired_meanwhile(face: Face, mode: str) -> None:
    """177: expired while acquired, received or unread: given back, it is not delivered again."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, mode, clock=clock)
    await play.send("m1 m2", time_to_live=30)
    await play.send("m3")
    consumer = await play.consumer()
    await play.queue.prefetched(3)
    await expect(consumer, "m1")
    clock.advance(31)
    await play.give_back()
    messages = await expect(consumer, "m3 none")
    await play.settle(messages[0])
    await play.queue.comes_to(0)


@pytest.mark.parametrize("target", ["consumer", "session", "connection"])
async def test_s180_clean_end_with_unsettled_deliveries(face: Face, target: str) -> None:
    """180: the client says which were seen before it detaches, ends or closes: nothing is left to guess."""
    play = await stage(face, "client", numbered(1, 4))
    consumer = await play.consumer()
    await play.queue.prefetched(4)
    await expect(consumer, "m1 m2")
    if target == "consumer":
        await consumer.close()
        await play.queue.holds(4, acquired=2)
    if target != "connection":
        await play.session.close()
    await play.connection.close()
    await play.queue.holds(4, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), "m1[R2] m2[R2] m3 m4 none")
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["client", "auto"])
async def test_s181_connection_drop_with_unsettled_deliveries(face: Face, mode: str) -> None:
    """181: the wire breaks: all in order, all marked, since any of them may have been seen (D5)."""
    play = await stage(face, mode, numbered(1, 4), cuttable=True)
    consumer = await play.consumer()
    await play.queue.prefetched(4)
    if mode == "client":
        await expect(consumer, "m1 m2")
    other = await play.beside("auto")
    face.cut(play.connection)
    await play.queue.comes_to(4, acquired=0)
    await expect(await other.consumer(), "m1[R2] m2[R2] m3[R2] m4[R2] none")
    await play.queue.comes_to(0)


async def test_s181_drop_in_a_transaction(face: Face) -> None:
    """134, 181: the wire breaks in a transaction: sends are gone, receives are back, marked, in order."""
    play = await stage(face, "transacted", numbered(1, 3), cuttable=True)
    consumer = await play.consumer()
    await play.queue.prefetched(3)
    await expect(consumer, "m1")
    producer = await play.session.create_producer(play.session.create_queue("results"))
    await producer.send("never")
    await face.barrier()
    other = await play.beside("auto")
    face.cut(play.connection)
    await play.queue.comes_to(3, acquired=0)
    await expect(await other.consumer(), "m1[R2] m2[R2] m3[R2] none")
    await face.sight("results").holds(0)
    assert not list(face.broker.transactions())


async def test_a_drop_alone_never_dead_letters(face: Face) -> None:
    """D5: counts go up at a drop, but the limit counts attempts that are known to have been handed over."""
    face.broker.declare_queue("orders", max_delivery_attempts=2, dead_letter="orders.dead")
    sender = await face.connect()
    await send(sender, "orders", "m1")
    for _ in range(4):
        play = await stage(face, "client", cuttable=True)
        await play.consumer()
        await play.queue.prefetched(1)
        face.cut(play.connection)
        await play.queue.comes_to(1, acquired=0)
    await face.sight("orders.dead").holds(0)
    play = await stage(face, "transacted")
    consumer = await play.consumer()
    message = await consumer.receive(timeout=30)
    assert message is not None and seen(message) == "m1[R5]"
    await play.session.commit()
    await play.queue.holds(0)


async def test_s152_zero_prefetch_two_consumers(face: Face) -> None:
    """152: with prefetch 0 each receive takes one message, for whoever asks."""
    play = await stage(face, "client", "m1 m2", prefetch=0)
    first, second = await play.consumer(), await play.consumer()
    await face.barrier()
    await play.queue.holds(2, acquired=0)
    await expect(first, "m1")
    (message,) = await expect(second, "m2")
    await message.acknowledge()
    await play.queue.holds(0)


async def test_s153_a_timed_out_pull_leaves_no_credit(face: Face) -> None:
    """153: a pull that timed out takes its credit back: the next message is for whoever asks."""
    play = await stage(face, "auto", prefetch=0)
    first, second = await play.consumer(), await play.consumer()
    assert await first.receive(timeout=0.01) is None
    await play.send("m1")
    await play.queue.holds(1, acquired=0)
    await expect(second, "m1")
    await play.queue.comes_to(0)


async def test_s155_prefetch_is_really_held(face: Face) -> None:
    """155: what is in a window is not for others."""
    play = await stage(face, "auto", numbered(0, 5))
    consumer = await play.consumer(prefetch=3)
    await expect(consumer, "m0")
    await play.queue.prefetched(3)
    other = await play.beside("auto")
    await expect(await other.consumer(), "m4 m5 none")
    await expect(consumer, "m1 m2 m3 none")


async def test_s156_priority_order(face: Face) -> None:
    """156: the highest priority first, equal ones in send order."""
    play = await stage(face, "auto")
    for body, priority in zip("abcdefghij", (1, 1, 1, 4, 4, 5, 5, 8, 7, 9), strict=True):
        await play.send(body, priority=priority)
    await expect(await play.consumer(), "j h i f g d e a b c none")


async def test_s161_browser_beside_a_transaction(face: Face) -> None:
    """161: a browser shows what is visible; it acquires and counts nothing."""
    play = await stage(face, "transacted", numbered(1, 5))
    producer = await play.session.create_producer(play.destination)
    for body in numbered(6, 10).split():
        await producer.send(body)
    browser = await play.session.create_browser(play.destination)
    assert [seen(message) async for message in browser] == numbered(1, 5).split()
    await browser.close()
    await play.queue.holds(5, acquired=0)
    await play.session.commit()
    await play.queue.holds(10, acquired=0)
    assert await take_all(await play.consumer()) == numbered(1, 10).split()
