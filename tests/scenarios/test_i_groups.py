"""Scenarios I, message groups and exclusive queues: one consumer at a time, in order, after whatever happens."""

from __future__ import annotations

from typing import Any

import pytest

from .face import Face
from .steps import Stage, again, expect, numbered, stage


async def send(play: Stage, story: str, group: str | None = None, **properties: Any) -> None:
    """Sends one message a word, in a group."""
    if group is not None:
        properties["JMSXGroupID"] = group
    producer = await play.session.create_producer(play.destination)
    for body in story.split():
        message = play.session.create_text_message(body)
        message.properties.update(properties)
        await producer.send(message)
    if play.session.transacted:
        await play.session.commit()


async def test_s159_ordering_group_in_a_transaction(face: Face) -> None:
    """159: with one message of the group at a time the second is not visible before the first is committed."""
    face.broker.declare_queue("orders", group_window=1)
    play = await stage(face, "transacted")
    await send(play, "m1 m2", "g")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.session.rollback()
    await expect(consumer, "m1[R2] none")
    await play.session.commit()
    await expect(consumer, "m2 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s159_ordering_group_with_client_acknowledge(face: Face) -> None:
    """159: one unacknowledged message of a group at a time; those of other groups are there."""
    face.broker.declare_queue("orders", group_window=1)
    play = await stage(face, "individual")
    await send(play, "a1 a2 a3", "a")
    await send(play, "b1", "b")
    consumer = await play.consumer()
    first, _, _ = await expect(consumer, "a1 b1 none")
    await first.acknowledge()
    second, _ = await expect(consumer, "a2 none")
    await second.acknowledge()
    await expect(consumer, "a3 none")


async def test_s159_a_consumer_that_closes(face: Face) -> None:
    """159: what its session still holds comes first when it is given back."""
    face.broker.declare_queue("orders", group_window=1)
    play = await stage(face, "client")
    await send(play, "m1 m2", "g")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await consumer.close()
    other = await play.beside("client")
    second = await other.consumer()
    await expect(second, "none")
    await play.session.close()
    (message,) = await expect(second, "m1[R2]")
    await message.acknowledge()
    await expect(second, "m2 none")


async def test_s160_groups_and_a_closed_consumer(face: Face) -> None:
    """160: the next owner gets what the closed one held, marked, and then the rest of the group in order."""
    play = await stage(face, "client")
    await send(play, "1 2", "ONE")
    await send(play, "3", "TWO")
    await send(play, "4", "ONE")
    consumer = await play.consumer(prefetch=1)
    await expect(consumer, "1")
    other = await play.beside("client")
    second = await other.consumer()
    await expect(second, "3 none")
    await consumer.close()
    await expect(second, "none")
    await play.session.close()
    await expect(second, "1[R2] 2 4 none")


@pytest.mark.parametrize("prefetch", [1000, 1, 0])
async def test_each_group_has_one_consumer(face: Face, prefetch: int) -> None:
    """JMSXGroupID: all of a group to one consumer, and none to the others."""
    play = await stage(face, "auto")
    consumers = [await (await play.beside("auto")).consumer(prefetch=prefetch) for _ in range(3)]
    for number in range(1, 13):
        await send(play, f"m{number}", f"g{number % 4}")
    got: list[list[str]] = [[], [], []]
    while any([await _one(consumer, into) for consumer, into in zip(consumers, got, strict=True)]):
        pass
    assert sorted(sum(got, []), key=lambda body: int(body[1:])) == numbered(1, 12).split()
    groups = [{int(body[1:]) % 4 for body in each} for each in got]
    assert sum(map(len, groups)) == 4, f"a group in two hands: {got}"
    assert all(each == sorted(each, key=lambda body: int(body[1:])) for each in got)


async def _one(consumer: Any, into: list[str]) -> bool:
    message = await consumer.receive_no_wait()
    if message is not None:
        into.append(message.body)
    return message is not None


async def test_rolled_back_order_is_kept_in_a_group(face: Face) -> None:
    play = await stage(face, "transacted")
    await send(play, numbered(1, 5), "g")
    consumer = await play.consumer()
    other = await (await play.beside("auto")).consumer()
    await expect(consumer, "m1 m2 m3")
    await play.session.rollback()
    await expect(other, "none")
    await expect(consumer, again("m1 m2 m3") + " m4 m5 none")
    await play.session.commit()


async def test_a_group_passes_on_when_its_owner_closes(face: Face) -> None:
    play = await stage(face, "auto")
    await send(play, "m1", "g")
    first = await play.consumer()
    await expect(first, "m1")
    second = await (await play.beside("auto")).consumer()
    await send(play, "m2", "g")
    await expect(second, "none")
    await first.close()
    await expect(second, "m2 none")


async def test_a_closed_consumer_owns_its_group_until_all_is_settled(face: Face) -> None:
    """11, with a group: closing is no recover: what the session holds of the group still comes before the rest."""
    play = await stage(face, "client")
    await send(play, "m1 m2 m3", "g")
    consumer = await play.consumer()
    (message,) = await expect(consumer, "m1")
    await consumer.close()
    second = await play.consumer()
    await expect(second, "none")
    await message.acknowledge()
    _, last = await expect(second, "m2 m3")
    await last.acknowledge()
    await play.queue.holds(0)


async def test_a_negative_sequence_ends_a_group(face: Face) -> None:
    """JMSXGroupSeq -1: who takes the next one of that name owns it anew."""
    play = await stage(face, "auto")
    first = await play.consumer()
    await send(play, "m1", "g")
    await expect(first, "m1")
    await send(play, "m2", "g", JMSXGroupSeq=-1)
    await expect(first, "m2")
    await play.queue.comes_to(0)
    second = await (await play.beside("auto")).consumer(priority=5)
    await send(play, "m3", "g")
    await expect(second, "m3 none")


async def test_a_selector_and_groups(face: Face) -> None:
    play = await stage(face, "auto")
    await send(play, "m1", "g", colour="blue")
    await send(play, "m2", "g", colour="red")
    red = await play.consumer(selector="colour = 'red' AND JMSXGroupID = 'g'")
    await expect(red, "m2 none")
    await red.close()
    await expect(await play.consumer(), "m1 none")


async def test_an_exclusive_queue(face: Face) -> None:
    """All go to the consumer that came first; the others stand by until it closes."""
    face.broker.declare_queue("orders", exclusive_consumer=True)
    play = await stage(face, "client")
    first = await play.consumer(prefetch=2)
    await send(play, numbered(1, 6))
    second = await (await play.beside("auto")).consumer()
    await expect(second, "none")
    await expect(first, "m1 m2 m3")
    await first.close()
    await expect(second, "none")
    await play.session.recover()
    await expect(second, again("m1 m2 m3") + " m4 m5 m6 none")


async def test_an_exclusive_queue_and_priority(face: Face) -> None:
    face.broker.declare_queue("orders", exclusive_consumer=True)
    play = await stage(face, "auto", "m1 m2")
    first = await play.consumer(prefetch=0)
    await expect(first, "m1")
    high = await (await play.beside("auto")).consumer(priority=1)
    await face.barrier()
    await expect(first, "none")
    await expect(high, "m2 none")
    await high.close()
    await play.send("m3")
    await expect(first, "m3 none")
