"""Scenarios I, expiry and priority: in the buffer, at the broker, in the order of both; and searches that are long."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish
from jmsish.testing import VirtualClock

from .face import Face
from .steps import Stage, again, expect, numbered, outcome, stage, take_all


async def played(face: Face, mode: str = "auto", **options: Any) -> tuple[Stage, VirtualClock]:
    """A stage whose broker and client live by one clock that is moved by hand."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    return await stage(face, mode, clock=clock, **options), clock


async def send(play: Stage, story: str, **arguments: Any) -> None:
    producer = await play.session.create_producer(play.destination)
    for body in story.split():
        await producer.send(body, **arguments)
    await producer.close()


@pytest.mark.parametrize("mode", ["auto", "client", "transacted"])
async def test_s149_expired_while_prefetched(face: Face, mode: str) -> None:
    """149: an expired message is not handed over, the live one behind it is."""
    play, clock = await played(face, mode)
    await send(play, "m1", time_to_live=10)
    await send(play, "m2")
    if mode == "transacted":
        await play.session.commit()
    consumer = await play.consumer()
    await play.queue.prefetched(2)
    clock.advance(11)
    (message, _) = await expect(consumer, "m2 none")
    await play.settle(message) if mode != "auto" else None
    await play.queue.comes_to(0)


async def test_s150_a_bufferful_of_expired_messages(face: Face) -> None:
    """150: they give their credit back: the live ones behind them come."""
    play, clock = await played(face, prefetch=4)
    await send(play, numbered(1, 4), time_to_live=10)
    consumer = await play.consumer()
    await play.queue.prefetched(4)
    await send(play, numbered(5, 8))
    clock.advance(11)
    await expect(consumer, numbered(5, 8) + " none")
    await play.queue.comes_to(0, acquired=0)


async def test_s151_expired_with_zero_prefetch(face: Face) -> None:
    """151: the pull that would bring an expired message brings the next."""
    play, clock = await played(face, prefetch=0)
    await send(play, "m1", time_to_live=10)
    await send(play, "m2")
    consumer = await play.consumer()
    clock.advance(11)
    await expect(consumer, "m2 none")


async def test_expiry_at_the_broker_comes_at_its_time(face: Face) -> None:
    """Nobody consumes, and yet it goes when its time has come, not a moment before; to the expiry address."""
    play, clock = await played(face)
    face.broker.declare_queue("orders", expiry_address="late")
    await send(play, "m1", time_to_live=10)
    await send(play, "m2")
    clock.advance(9.999)
    await play.queue.holds(2)
    clock.advance(0.001)
    await play.queue.holds(1)
    assert face.sight("late").depth == 1
    late = await play.session.create_consumer(play.session.create_queue("late"))
    (message,) = await expect(late, "m1")
    assert message.annotations["x-opt-dead-letter-reason"] == "expired"


async def test_delayed_and_expiring(face: Face) -> None:
    """What expires before it is to be delivered is never seen, and goes at its time."""
    play, clock = await played(face)
    await send(play, "m1", time_to_live=10, delivery_delay=20)
    await send(play, "m2", time_to_live=30, delivery_delay=20)
    consumer = await play.consumer()
    clock.advance(19)
    await expect(consumer, "none")
    clock.advance(2)
    got = await take_all(consumer)
    # The time to live runs from the send; some count it from the end of the delay. Either way m2 lives, and is seen.
    assert got in (["m2"], ["m1", "m2"])
    clock.advance(100)
    await play.queue.comes_to(0)


async def test_s156_a_priority_for_each(face: Face) -> None:
    """156, run 1: ten priorities, the highest first."""
    play = await stage(face, "auto")
    for priority, body in enumerate("abcdefghij"):
        await play.send(body, priority=priority)
    await expect(await play.consumer(), "j i h g f e d c b a none")


@pytest.mark.parametrize("local", [True, False])
async def test_s157_local_priority(face: Face, local: bool) -> None:
    """157: the prefetch buffer is ordered by priority if that is wished."""
    play = await stage(face, "auto", local_priority=local)
    consumer = await play.consumer()
    for priority in range(10):
        await play.send(str(priority), priority=priority)
    await play.queue.prefetched(10)
    digits = "0123456789"
    await expect(consumer, " ".join(reversed(digits) if local else digits))


@pytest.mark.parametrize("local", [True, False])
async def test_s158_a_put_back_stays_in_its_own_level(face: Face, local: bool) -> None:
    """158, by D9: what comes back stands in front of its own priority, not of all."""
    play = await stage(face, "transacted", local_priority=local)
    await play.send("low1 low2", priority=1)
    consumer = await play.consumer()
    await expect(consumer, "low1")
    await play.send("high", priority=8)
    await play.session.rollback()
    await expect(consumer, "high " + again("low1") + " low2 none")
    await play.session.commit()


DEEP = 2500
"""More than the broker looks at in one go."""


async def deepened(play: Stage) -> None:
    filling = await play.beside("transacted", same_connection=True)
    producer = await filling.session.create_producer(play.destination)
    for number in range(DEEP):
        await producer.send("x", properties={"n": number})
    await filling.session.commit()


async def test_a_search_through_a_deep_queue(face: Face) -> None:
    """A selector that matches one message behind thousands: found by a receive that waits and by one that does not."""
    play = await stage(face, "auto")
    await deepened(play)
    for number in (DEEP - 1, DEEP - 2):
        consumer = await play.consumer(selector=f"n = {number}", prefetch=0)
        message = await (consumer.receive(timeout=30) if number % 2 else consumer.receive_no_wait())
        assert message is not None and message.properties["n"] == number
        assert await consumer.receive_no_wait() is None
        await consumer.close()
    browser = await play.session.create_browser(play.destination, f"n >= {DEEP - 5}")
    assert [message.properties["n"] async for message in browser] == [DEEP - 5, DEEP - 4, DEEP - 3]


async def test_others_are_served_during_a_search(face: Face) -> None:
    """A connection that searches a deep queue keeps nobody waiting: their messages pass meanwhile."""
    play = await stage(face, "auto")
    await deepened(play)
    searching = await play.consumer(selector="n = -1")
    other = await stage(face, "auto", "m1", queue="other")
    await expect(await other.consumer(), "m1 none")
    await expect(searching, "none")
    assert not isinstance(await outcome(searching.close()), jmsish.JMSError)
