"""Scenarios B: commit with prefetched or unacknowledged work."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import again, expect, numbered, outcome, send, stage


async def test_s013_commit_after_the_consumer_closed(face: Face) -> None:
    """13: acknowledgements belong to the session, not to the consumer."""
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await consumer.close()
    await play.queue.holds(1, acquired=1)
    await play.session.commit()
    await play.queue.holds(0)


async def test_s014_close_before_commit_leaves_the_second(face: Face) -> None:
    """14: close before commit leaves the second message for a new consumer, unmarked."""
    play = await stage(face, "transacted", "m1 m2")
    consumer = await play.consumer()
    await play.queue.prefetched(2)
    await expect(consumer, "m1")
    await consumer.close()
    await play.queue.holds(2, acquired=1)
    await play.session.commit()
    await play.queue.holds(1, acquired=0)
    await expect(await play.consumer(), "m2 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s015_uncommitted_receive_still_counts(face: Face) -> None:
    """15: a message received but not committed is still the queue's."""
    play = await stage(face, "transacted", "m1")
    await expect(await play.consumer(), "m1")
    await play.queue.holds(1, acquired=1)
    await play.session.commit()
    await play.queue.holds(0)


async def test_s016_commit_per_message_over_a_large_prefetch(face: Face) -> None:
    """16: one commit a message over a large buffer: all in order, none marked."""
    story = numbered(0, 199)
    play = await stage(face, "transacted", story)
    consumer = await play.consumer()
    await play.queue.prefetched(200)
    for word in story.split():
        await expect(consumer, word)
        await play.session.commit()
    await expect(consumer, "none")
    await play.queue.holds(0)


async def test_s017_listener_commits_every_ten(face: Face) -> None:
    """17: a transacted listener and a transacted producer, both committing every 10: no gap, no repeat, in order."""
    count = 300
    play = await stage(face, "transacted", start=False)
    consumer = await play.consumer()
    log = face.log()

    async def on_message(message: Any) -> None:
        if (len(log.items) + 1) % 10 == 0:
            await play.session.commit()
        log.add(message.body)

    consumer.listener = on_message
    await play.connection.start()
    session = await play.connection.create_session(transacted=True)
    producer = await session.create_producer(play.destination)
    for number in range(1, count + 1):
        await producer.send(f"m{number}")
        if number % 10 == 0:
            await session.commit()
    assert await log.reach(count) == numbered(1, count).split()
    await play.connection.close()
    assert len(log.items) == count
    assert play.queue.depth == 0


async def test_s018_more_than_the_prefetch_in_one_transaction(face: Face) -> None:
    """18: the window is refilled at hand-over, not at commit; what is in it is not for others."""
    play = await stage(face, "transacted", "m0 m1 m2 m3 m4")
    consumer = await play.consumer(prefetch=1)
    await expect(consumer, "m0 m1 m2")
    await play.queue.prefetched(4)
    observer = await play.beside("auto")
    await expect(await observer.consumer(), "m4 none")
    await play.session.commit()
    await expect(consumer, "m3 none")
    await play.session.commit()
    await play.queue.comes_to(0)


async def test_s019_prefetch_exhausted_rollback_go_on(face: Face) -> None:
    """19: prefetch 2, both rolled back, received again and committed; then the third, unmarked."""
    play = await stage(face, "transacted", "m0 m1 m2")
    consumer = await play.consumer(prefetch=2)
    await expect(consumer, "m0 m1")
    await play.session.rollback()
    await expect(consumer, "m0[R2] m1[R2]")
    await play.session.commit()
    await expect(consumer, "m2 none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s021_acknowledge_is_ignored_in_a_transaction(face: Face) -> None:
    """21: acknowledge in a transacted session has no effect and raises nothing."""
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    (message,) = await expect(consumer, "m1")
    await message.acknowledge()
    await play.queue.holds(1, acquired=1)
    await play.session.rollback()
    await expect(consumer, "m1[R2]")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s022_commit_and_rollback_without_work(face: Face) -> None:
    """22: commit and rollback without work succeed, again and again."""
    play = await stage(face, "transacted")
    for _ in range(3):
        await play.session.commit()
        await play.session.rollback()
    await send(play.connection, "orders", "m1")
    await expect(await play.consumer(), "m1")
    await play.session.commit()
    await play.queue.holds(0)


@pytest.mark.parametrize("mode", ["auto", "client", "dups_ok"])
async def test_s023_commit_and_rollback_want_a_transacted_session(face: Face, mode: str) -> None:
    """23: commit and rollback of a session that is not transacted are IllegalStateError."""
    play = await stage(face, mode)
    assert isinstance(await outcome(play.session.commit()), jmsish.IllegalStateError)
    assert isinstance(await outcome(play.session.rollback()), jmsish.IllegalStateError)
    await play.session.recover()


async def test_s023_recover_wants_a_session_without_transactions(face: Face) -> None:
    """23: recover of a transacted session is IllegalStateError, and touches nothing."""
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    assert isinstance(await outcome(play.session.recover()), jmsish.IllegalStateError)
    await play.session.commit()
    await play.queue.holds(0)


@pytest.mark.parametrize("closed", ["session", "connection"])
async def test_s023_after_close(face: Face, closed: str) -> None:
    """23: commit, rollback and recover after the close of session or connection are IllegalStateError."""
    play = await stage(face, "transacted", "m1")
    other = await play.connection.create_session()
    await expect(await play.consumer(), "m1")
    if closed == "session":
        await other.close()
        await play.session.close()
    else:
        await play.connection.close()
    for call in (play.session.commit(), play.session.rollback(), other.recover()):
        assert isinstance(await outcome(call), jmsish.IllegalStateError)
    await play.queue.holds(1, acquired=0)
    reader = await play.beside("auto")
    await expect(await reader.consumer(), again("m1"))
