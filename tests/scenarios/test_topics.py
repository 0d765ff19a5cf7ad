"""Topic consumers and redelivery: the same promises as on queues, where each subscription is a queue of its own."""

from __future__ import annotations

import time
from typing import Any

import pytest

from .face import Face
from .steps import again, expect, numbered, seen, take_all
from .topics import KINDS, LASTING, client, collected


@pytest.mark.parametrize("kind", KINDS)
async def test_s047_rollback_on_a_topic_subscription(face: Face, kind: str) -> None:
    """47: received, rolled back, received again and marked."""
    play = await client(face, "alice", "transacted")
    consumer = await play.subscribe(kind)
    await play.publish("m1")
    await expect(consumer, "m1")
    await play.session.rollback()
    await expect(consumer, "m1[R2] none")
    await play.session.commit()
    await expect(consumer, "none")


@pytest.mark.parametrize("kind", KINDS)
async def test_s076_recover_affects_only_its_own_session(face: Face, kind: str) -> None:
    """76: two subscriptions in two sessions; what one acknowledged does not come because the other recovers."""
    play = await client(face, "alice", "client")
    other = await play.beside("client")
    first, second = await play.subscribe(kind, name="first"), await other.subscribe(kind, name="second")
    await play.publish("m1")
    (message,) = await expect(first, "m1")
    await message.acknowledge()
    await expect(second, "m1")
    await other.session.recover()
    await expect(second, "m1[R2] none")
    await expect(first, "none")
    await play.session.recover()
    await expect(first, "none")


@pytest.mark.parametrize("kind", LASTING)
@pytest.mark.parametrize("way", ["consumer", "session", "connection"])
async def test_s079_prefetched_and_never_read(face: Face, kind: str, way: str) -> None:
    """79: prefetched by a durable subscriber and not read: unmarked after it has come back."""
    play = await client(face, "alice")
    consumer = await play.subscribe(kind)
    await play.publish("m1")
    await face.barrier()
    await {"consumer": consumer, "session": play.session, "connection": play.connection}[way].close()
    await play.close()
    await collected(face, "alice", kind, "m1")


@pytest.mark.parametrize("kind", LASTING)
async def test_s088_close_a_durable_subscriber_with_unread_prefetch(face: Face, kind: str) -> None:
    """88: 5 prefetched, 2 consumed, closed: the other three are back, in order and unmarked."""
    play = await client(face, "alice")
    consumer = await play.subscribe(kind)
    await play.publish(numbered(1, 5))
    await face.barrier()
    await expect(consumer, "m1 m2")
    await consumer.close()
    await expect(await play.subscribe(kind), "m3 m4 m5 none")


@pytest.mark.parametrize("kind", LASTING)
async def test_s088_recovered_first(face: Face, kind: str) -> None:
    """88, the other variant: received, recovered, some received again, closed without an acknowledgement."""
    play = await client(face, "alice", "client")
    consumer = await play.subscribe(kind)
    await play.publish(numbered(1, 5))
    await expect(consumer, numbered(1, 3))
    await play.session.recover()
    await expect(consumer, "m1[R2]")
    await consumer.close()
    await play.session.close()
    await play.close()
    await collected(face, "alice", kind, "m1[R3] m2[R2] m3[R2] m4 m5")


async def test_s100_a_plain_subscription_forgets(face: Face) -> None:
    """100: received and not acknowledged, connection closed: a new subscriber gets nothing."""
    play = await client(face, "alice", "client")
    await expect_one(await play.subscribe(), play)
    await play.close()
    other = await client(face, "alice", "client")
    await expect(await other.subscribe(), "none")


async def expect_one(consumer: Any, play: Any) -> None:
    await play.publish("m1 m2")
    await expect(consumer, "m1")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["transacted", "client"])
async def test_given_back_in_order_before_what_is_unread(face: Face, kind: str, mode: str) -> None:
    """Seen ones first and marked, prefetched ones behind them and not."""
    play = await client(face, "alice", mode)
    consumer = await play.subscribe(kind)
    await play.publish(numbered(1, 5))
    for turn in (1, 2):
        await expect(consumer, "m1 m2" if turn == 1 else again("m1 m2", turn))
        await (play.session.rollback() if mode == "transacted" else play.session.recover())
    await expect(consumer, f"{again('m1 m2', 3)} m3 m4 m5 none")


@pytest.mark.parametrize("mode", ["transacted", "client"])
async def test_two_plain_consumers_of_one_topic_are_no_siblings(face: Face, mode: str) -> None:
    """Each has a queue of its own: both prefetch, and what one reads or gives back is not the other's affair."""
    play = await client(face, None, mode)
    first, second = await play.subscribe(), await play.subscribe()
    await play.publish(numbered(1, 4))
    await face.barrier()
    queues = [face.broker.queue(binding.queue) for binding in face.broker.exchange("amq.topic").bindings()]
    assert [queue.acquired for queue in queues] == [4, 4]
    await expect(first, "m1 m2")
    await expect(second, "m1")
    await (play.session.rollback() if mode == "transacted" else play.session.recover())
    await expect(first, f"{again('m1 m2')} m3 m4 none")
    await expect(second, f"{again('m1')} m2 m3 m4 none")


@pytest.mark.parametrize("kind", ["shared", "shared durable"])
@pytest.mark.parametrize("mode", ["transacted", "client"])
async def test_those_who_share_in_one_session_are_siblings(face: Face, kind: str, mode: str) -> None:
    """What the first has not read is there for the second; given back, all of it is there for either, in order."""
    play = await client(face, "alice", mode)
    first = await play.subscribe(kind)
    await play.publish(numbered(1, 4))
    await face.barrier()
    await expect(first, "m1")
    second = await play.subscribe(kind)
    await expect(second, "m2 m3 m4 none")
    await (play.session.rollback() if mode == "transacted" else play.session.recover())
    await expect(first, again(numbered(1, 4)) + " none")


@pytest.mark.parametrize("kind", KINDS)
async def test_commit_and_rollback_over_topics_and_queues(face: Face, kind: str) -> None:
    """One transaction takes from a topic and a queue, and sends to both."""
    play = await client(face, "alice", "transacted")
    session = play.session
    topic, queue = session.create_topic("news"), session.create_queue("orders")
    listening, taking = await play.subscribe(kind), await session.create_consumer(queue)
    sending = await session.create_producer()
    for destination in (topic, queue):
        await sending.send("m1", destination=destination)
    await expect(listening, "none")
    await session.commit()
    for count in ("m1", "m1[R2]"):
        await expect(listening, count)
        await expect(taking, count)
        for destination in (topic, queue):
            await sending.send("m2", destination=destination)
        if count == "m1":
            await session.rollback()
    await session.commit()
    await expect(listening, "m2 none")
    await expect(taking, "m2 none")


@pytest.mark.parametrize("kind", LASTING)
async def test_closed_in_a_transaction_and_opened_again(face: Face, kind: str) -> None:
    """A durable consumer closed with work in the transaction can be opened again in it; a rollback brings all back."""
    play = await client(face, "alice", "transacted")
    first = await play.subscribe(kind)
    await play.publish(numbered(1, 4))
    await expect(first, "m1 m2")
    await first.close()
    second = await play.subscribe(kind)
    await expect(second, "m3")
    await play.session.rollback()
    await expect(second, f"{again('m1 m2 m3')} m4 none")
    await play.session.commit()
    await second.close()
    await play.close()
    await collected(face, "alice", kind, "")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_listener_of_a_topic(face: Face, kind: str) -> None:
    """By a listener as by calls, in order."""
    play = await client(face, "alice")
    consumer = await play.subscribe(kind)
    log = face.log()

    async def listen(message: Any) -> None:
        log.add(seen(message))

    consumer.listener = listen
    await play.publish(numbered(1, 5))
    assert await log.reach(5) == numbered(1, 5).split()


@pytest.mark.parametrize("kind", KINDS)
async def test_expired_before_it_is_read(face: Face, kind: str) -> None:
    """M84: what has expired in the prefetch buffer is not handed over, on topics as on queues."""
    ahead = [0.0]
    play = await client(face, "alice", clock=lambda: time.time() + ahead[0])
    topic = await play.subscribe(kind)
    queue = play.session.create_queue("orders")
    consumer = await play.session.create_consumer(queue)
    sending = await play.session.create_producer()
    for destination in (play.session.create_topic("news"), queue):
        await sending.send("short", destination=destination, time_to_live=1000)
        await sending.send("long", destination=destination)
    await face.barrier()
    ahead[0] = 1001
    for each in (topic, consumer):
        assert await take_all(each) == ["long"]


async def test_many_topics_in_one_session(face: Face) -> None:
    """A consumer gets what is published to its topic, and to no other."""
    play = await client(face)
    consumers = {name: await play.subscribe(topic=name) for name in ("a", "a.b", "b", "A")}
    for name in consumers:
        await play.publish(f"to-{name}", name)
    for name, consumer in consumers.items():
        (message,) = await expect(consumer, f"to-{name}")
        assert message.jms_destination == play.session.create_topic(name)
        await expect(consumer, "none")
