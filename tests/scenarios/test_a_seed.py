"""Scenarios A: the founding document's example, and the family of testRedel 0 to 8."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish import aio

from .face import Face
from .steps import Stage, expect, seen, stage


async def test_seed_002_literal(face: Face) -> None:
    """Seed 002, its four steps word for word: m2 and m3 are received by the new consumer."""
    connection = await face.connect()
    session = await connection.create_session(transacted=True)
    queue = session.create_queue("orders")
    # 1. Send 3 messages m1, m2, m3 in a transacted session.
    producer = await session.create_producer(queue)
    for body in ("m1", "m2", "m3"):
        await producer.send(body)
    await session.commit()
    # 2. Receive m1 only in the same session using consumer1.
    consumer1 = await session.create_consumer(queue)
    message = await consumer1.receive(timeout=30)
    assert message is not None and seen(message) == "m1"
    # 3. Commit the session.
    await session.commit()
    # 4. Try and receive m2, m3 in the same session using new consumer2.
    consumer2 = await session.create_consumer(queue)
    await expect(consumer2, "m2 m3 none")
    await session.commit()
    await face.sight("orders").holds(0)


async def prefetched_in_first(
    face: Face, mode: str = "transacted", **options: Any
) -> tuple[Stage, aio.MessageConsumer]:
    """m1, m2, m3 at the client, in the buffer of consumer 1."""
    play = await stage(face, mode, "m1 m2 m3", **options)
    first = await play.consumer()
    await play.queue.prefetched(3)
    return play, first


async def test_s001_seed_example_consumer_open(face: Face) -> None:
    """1: after a commit a new consumer gets what lay unread in the buffer of the first, which stays open."""
    play, first = await prefetched_in_first(face)
    await expect(first, "m1")
    await play.session.commit()
    second = await play.consumer()
    await expect(second, "m2 m3 none")
    await play.session.commit()
    await play.queue.holds(0)
    await expect(first, "none")


async def test_s002_seed_example_first_consumer_goes_on(face: Face) -> None:
    """2: a cancel at commit does not lose, reorder or mark what consumer 1 reads next."""
    play, first = await prefetched_in_first(face)
    await expect(first, "m1")
    await play.session.commit()
    await expect(first, "m2 m3 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s003_seed_example_first_consumer_closed_after_commit(face: Face) -> None:
    """3: the same when consumer 1 closes after consumer 2 was created."""
    play, first = await prefetched_in_first(face)
    await expect(first, "m1")
    await play.session.commit()
    second = await play.consumer()
    await first.close()
    await expect(second, "m2 m3 none")
    await play.session.commit()
    await play.queue.holds(0)


@pytest.mark.parametrize("policy", ["auto", "always"])
async def test_s001_with_the_consumers_there_before(face: Face, policy: str) -> None:
    """1, with both consumers made before the first receive: commit cancels, whoever asks next gets the rest (D1,
    D2)."""
    play = await stage(face, "transacted", "m1 m2 m3", cancel_on_commit=policy)
    first, second = await play.consumer(), await play.consumer()
    await expect(second, "m1")
    await play.session.commit()
    await expect(first, "m2 m3 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s001_cancel_always(face: Face) -> None:
    """1, with `cancel_on_commit="always"`: the founding document literally, one consumer, another session waits."""
    play, first = await prefetched_in_first(face, cancel_on_commit="always")
    await expect(first, "m1")
    await play.session.commit()
    await expect(first, "m2")
    await play.session.commit()
    await first.close()
    await play.queue.holds(1, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), "m3 none")
    await play.queue.comes_to(0)


async def test_s001_cancel_never(face: Face) -> None:
    """1, with `cancel_on_commit="never"`: consumer 1 keeps its buffer, as JMS clients usually do."""
    play, first = await prefetched_in_first(face, cancel_on_commit="never")
    await expect(first, "m1")
    await play.session.commit()
    second = await play.consumer()
    await expect(second, "none")
    await expect(first, "m2 m3 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s004_redel0_close_new_consumer_then_commit(face: Face) -> None:
    """4 (testRedel0): a consumer closed and another made before the commit: b and c unmarked, a never again."""
    play = await stage(face, "transacted", "a b c")
    first = await play.consumer()
    await expect(first, "a")
    await first.close()
    second = await play.consumer()
    await play.session.commit()
    await expect(second, "b c none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s005_redel1_the_same_with_timed_receives(face: Face) -> None:
    """5 (testRedel1): the same, with the rest at the second consumer before the commit."""
    play, first = await prefetched_in_first(face)
    await expect(first, "m1")
    await first.close()
    second = await play.consumer()
    await play.queue.prefetched(3)
    await play.session.commit()
    await expect(second, "m2 m3")
    await play.session.commit()
    await expect(second, "none")
    await play.queue.holds(0)


async def test_s006_redel2_close_commit_then_new_consumer(face: Face) -> None:
    """6 (testRedel2): close, commit, and only then a new consumer."""
    play, first = await prefetched_in_first(face)
    await expect(first, "m1")
    await first.close()
    await play.queue.holds(3, acquired=1)
    await play.session.commit()
    await play.queue.holds(2, acquired=0)
    second = await play.consumer()
    await expect(second, "m2 m3 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s007_redel3_rollback_consumer_open(face: Face) -> None:
    """7 (testRedel3): after a rollback the buffered 2 and 3 come after the rolled-back 1, and unmarked."""
    play, first = await prefetched_in_first(face)
    await expect(first, "m1")
    await play.session.rollback()
    await expect(first, "m1[R2] m2 m3 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s008_redel4_rollback_consumer_closed(face: Face) -> None:
    """8 (testRedel4): two put-backs at two moments, the buffer at the close and 1 at the rollback, still in order."""
    play, first = await prefetched_in_first(face)
    await expect(first, "m1")
    await first.close()
    await play.queue.holds(3, acquired=1)
    await play.session.rollback()
    await play.queue.holds(3, acquired=0)
    await expect(await play.consumer(), "m1[R2] m2 m3 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s009_redel5_recover_consumer_open(face: Face) -> None:
    """9 (testRedel5): recover brings 1 again, marked, before the unmarked 2 and 3."""
    play, first = await prefetched_in_first(face, "client")
    await expect(first, "m1")
    await play.session.recover()
    messages = await expect(first, "m1[R2] m2 m3 none")
    await play.queue.holds(3)
    await messages[2].acknowledge()
    await play.queue.holds(0)


async def test_s010_redel6_recover_consumer_closed(face: Face) -> None:
    """10 (testRedel6): recover reaches a message whose consumer is closed, and hands it to another."""
    play, first = await prefetched_in_first(face, "client")
    await expect(first, "m1")
    await first.close()
    await play.session.recover()
    await play.queue.holds(3, acquired=0)
    messages = await expect(await play.consumer(), "m1[R2] m2 m3 none")
    await messages[2].acknowledge()
    await play.queue.holds(0)


async def test_s011_redel7_closing_a_consumer_is_not_a_recover(face: Face) -> None:
    """11 (testRedel7): the session still owns 1 after its consumer closed; all three can be acknowledged, one by
    one."""
    play, first = await prefetched_in_first(face, "client")
    one = await expect(first, "m1")
    await first.close()
    rest = await expect(await play.consumer(), "m2 m3 none")
    await play.queue.holds(3, acquired=3)
    for message in (one[0], rest[0], rest[1]):
        await message.acknowledge()
    await play.queue.holds(0)


async def test_s012_redel8_close_with_a_full_buffer(face: Face) -> None:
    """12 (testRedel8): a consumer closed without a receive gives all back, unmarked and in order."""
    play, first = await prefetched_in_first(face, "auto")
    await first.close()
    await play.queue.holds(3, acquired=0)
    await expect(await play.consumer(), "m1 m2 m3 none")
    await play.queue.comes_to(0)
