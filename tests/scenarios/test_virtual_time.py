"""Time that a test moves: a day passes in no time, for clients of the same process and for those over TCP."""

from __future__ import annotations

from typing import Any

import jmsish
from jmsish.testing import VirtualClock

from .face import Face
from .steps import expect, outcome, stage

DAY = 24 * 3600


async def test_a_day_of_time_to_live(face: Face) -> None:
    """What lives for a day lies in the queue of a broker until the day is over, and not a second longer."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    await play.send("mayfly", time_to_live=DAY)
    await play.send("ever")
    clock.advance(DAY - 1)
    assert play.queue.bodies == ["mayfly", "ever"]
    clock.advance(2)
    assert play.queue.bodies == ["ever"]
    assert face.broker.queue("orders").expired == 1


async def test_a_day_of_time_to_live_in_a_prefetch_buffer(face: Face) -> None:
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    consumer = await play.consumer()
    await play.send("mayfly", time_to_live=DAY)
    await play.send("ever")
    await play.queue.prefetched(2)
    clock.advance(DAY + 1)
    await expect(consumer, "ever none")
    await play.queue.comes_to(0)


async def test_a_day_of_delivery_delay(face: Face) -> None:
    """Scheduled for tomorrow: seen by nobody until then, and in the order of the days it is due."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    consumer = await play.consumer()
    await play.send("later", delivery_delay=2 * DAY)
    await play.send("tomorrow", delivery_delay=DAY)
    await play.send("now")
    await expect(consumer, "now none")
    clock.advance(DAY - 1)
    await expect(consumer, "none")
    clock.advance(1)
    await expect(consumer, "tomorrow none")
    clock.advance(DAY)
    await expect(consumer, "later none")
    await play.queue.comes_to(0)


async def test_a_day_of_back_off(face: Face) -> None:
    """An hour, then three, then nine: half a day of failures, then it is a dead letter."""
    clock = VirtualClock()
    broker = face.broker_with(clock=clock)
    broker.declare_queue(
        "orders", redelivery_delay=3600, redelivery_multiplier=3, max_delivery_attempts=4, dead_letter="dead"
    )
    play = await stage(face, "transacted", "m1", clock=clock)
    consumer = await play.consumer()
    await expect(consumer, "m1")
    for delay, again in ((1, "m1[R2]"), (3, "m1[R3]"), (9, "m1[R4]")):
        await play.session.rollback()
        clock.advance(delay * 3600 - 1)
        await expect(consumer, "none")
        clock.advance(1)
        await expect(consumer, again)
    await play.session.rollback()
    await play.queue.comes_to(0)
    (dead,) = broker.queue("dead").messages()
    assert dead.annotations["x-opt-dead-letter-delivery-count"] == 4


async def test_a_day_of_transaction_timeouts(face: Face) -> None:
    """Work of a transaction that is open for a day is undone; the commit hears so."""
    clock = VirtualClock()
    face.broker_with(clock=clock, config={"policy": {"transaction_timeout": DAY}})
    play = await stage(face, "transacted", "m1", clock=clock)
    await expect(await play.consumer(), "m1")
    await face.barrier()  # the broker has heard that it was taken
    clock.advance(DAY + 1)
    try:
        await play.session.commit()
    except jmsish.TransactionRolledBackError:
        pass
    else:
        raise AssertionError("the transaction had timed out")
    other = await play.beside("auto", clock=clock)
    await play.session.close()
    await expect(await other.consumer(), "m1[R2] none")


async def test_a_day_of_an_idle_transaction(face: Face) -> None:
    """Idleness counts from the last work: each half day of work keeps it, a whole day without ends it."""
    clock = VirtualClock()
    face.broker_with(clock=clock, config={"policy": {"transaction_idle_timeout": DAY}})
    play = await stage(face, "transacted", clock=clock)
    producer = await play.session.create_producer(play.destination)
    for body in ("m1", "m2", "m3"):
        await producer.send(body)
        await face.barrier()
        clock.advance(DAY / 2)
    await play.session.commit()
    await play.queue.holds(3)
    await producer.send("m4")
    await face.barrier()
    clock.advance(DAY + 1)
    try:
        await play.session.commit()
    except jmsish.TransactionRolledBackError:
        pass
    else:
        raise AssertionError("the transaction had timed out")
    await play.queue.holds(3)


async def test_an_unread_subscription_keeps_and_expires_by_the_same_clock(face: Face) -> None:
    clock = VirtualClock()
    face.broker_with(clock=clock)
    connection = await face.connect(client_id="ann", clock=clock)
    session = await connection.create_session()
    topic = session.create_topic("news")
    await (await session.create_durable_consumer(topic, "daily")).close()
    producer = await session.create_producer(topic)
    await producer.send("today's", time_to_live=DAY)
    await producer.send("tomorrow's", delivery_delay=DAY, time_to_live=2 * DAY)
    clock.advance(DAY + 1)
    await expect(await session.create_durable_consumer(topic, "daily"), "tomorrow's none")


async def moved(face: Face, clock: VirtualClock, waiting: Any) -> Any:
    """What comes of something that waits for a day, with days going by until it has waited long enough."""
    while not waiting.done():
        clock.advance(DAY)
        await face.turns(1)
    return await waiting


async def test_a_day_of_waiting_for_a_message(face: Face) -> None:
    """A client with the clock waits by it, and the connection stands for days on which nothing is heard of the peer."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock, idle_timeout=30)
    consumer = await play.consumer()
    for receive in (consumer.receive, lambda timeout: consumer.receive_body(str, timeout)):
        assert await moved(face, clock, await face.spawn(receive(DAY))) is None
    await play.send("m1")
    await expect(consumer, "m1 none")


async def test_a_day_of_waiting_for_room(face: Face) -> None:
    """`send_timeout` is waited for by the same clock."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    face.broker.declare_queue("full", max_messages=1, overflow="block")
    play = await stage(face, "auto", clock=clock, send_timeout=DAY)
    blocked = await play.session.create_producer(play.session.create_queue("full"))
    await blocked.send("fits")
    waiting = await face.spawn(outcome(blocked.send("does not")))
    error = await moved(face, clock, waiting)
    assert isinstance(error, jmsish.OperationTimeoutError) and not error.outcome_unknown


async def test_d12_a_second_of_laziness(face: Face) -> None:
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "dups_ok", "m1", clock=clock)
    await expect(await play.consumer(), "m1")
    clock.advance(1)
    await play.queue.comes_to(0)


async def test_an_hour_of_back_off_of_a_listener(face: Face) -> None:
    """D6: from the fourth failure in a row the consumer pauses, longer each time, up to five seconds."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    consumer = await play.consumer()
    log = face.log()

    def listener(message: Any) -> None:
        log.add(message.body)
        if message.delivery_count < 40:
            raise ValueError("not yet")

    consumer.listener = listener
    await play.send("m1")
    while len(log.items) < 40:
        clock.advance(5)
        await face.turns(1)
    await play.queue.comes_to(0)


async def test_time_that_a_clock_brings_hurries_no_broker(face: Face) -> None:
    """An answer is waited for by real time, or each day would be the end of the requests that are on their way."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "transacted", clock=clock, request_timeout=30)
    producer = await play.session.create_producer(play.destination)

    async def work() -> None:
        for number in range(50):
            await producer.send(f"m{number}")
            await play.session.commit()

    await moved(face, clock, await face.spawn(work()))
    await play.queue.holds(50)
