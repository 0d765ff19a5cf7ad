"""Scenarios D: recover and the acknowledge modes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from jmsish.testing import VirtualClock

from .face import Face
from .steps import again, expect, numbered, seen, send, stage


async def test_s053_recover_some(face: Face) -> None:
    """53: the received ones again and marked, the unread after them and unmarked."""
    play = await stage(face, "client", numbered(1, 5))
    consumer = await play.consumer()
    await play.queue.prefetched(5)
    await expect(consumer, "m1 m2")
    await play.session.recover()
    messages = await expect(consumer, "m1[R2] m2[R2] m3 m4 m5 none")
    await messages[0].acknowledge()
    await play.queue.holds(0)


async def test_s054_only_the_unacknowledged_are_recovered(face: Face) -> None:
    """54: one acknowledge covers everything that the session had handed over, later ones included."""
    play = await stage(face, "client", numbered(1, 4))
    consumer = await play.consumer()
    messages = await expect(consumer, "m1 m2 m3")
    await messages[1].acknowledge()
    await expect(consumer, "m4")
    await play.session.recover()
    (fourth, _) = await expect(consumer, "m4[R2] none")
    await fourth.acknowledge()
    await play.queue.holds(0)


async def test_s055_one_acknowledge_covers_all_consumers(face: Face) -> None:
    """55: three consumers of one session have received thirty messages; acknowledging the last acknowledges all."""
    story = numbered(1, 30)
    play = await stage(face, "client", story)
    consumers = [await play.consumer(prefetch=5) for _ in range(3)]
    received: list[Any] = []
    while len(received) < 30:
        round_of = [await consumer.receive_no_wait() for consumer in consumers]
        received += [message for message in round_of if message is not None]
        assert any(round_of), f"stuck after {len(received)}"
    assert sorted(seen(message) for message in received) == sorted(story.split())
    await play.queue.holds(30, acquired=30)
    await received[-1].acknowledge()
    await play.queue.holds(0)


async def test_s056_but_not_what_the_application_has_not_seen(face: Face) -> None:
    """56: an acknowledge does not cover a message that lies unread in another consumer's buffer."""
    play = await stage(face, "client", "a1", queue="a")
    await send(play.connection, "b", "b1")
    first = await play.consumer()
    second = await play.session.create_consumer(play.session.create_queue("b"))
    await play.queue.prefetched(1)
    (message,) = await expect(second, "b1")
    await message.acknowledge()
    await face.sight("b").holds(0)
    await play.queue.holds(1)
    await play.session.recover()
    (message,) = await expect(first, "a1")
    await message.acknowledge()
    await play.queue.holds(0)


async def test_s057_partial_acknowledge_then_recover(face: Face) -> None:
    """57: of twenty, acknowledged at the eleventh, exactly the last nine come again, in order."""
    play = await stage(face, "client", numbered(1, 20))
    consumer = await play.consumer()
    eleven = await expect(consumer, numbered(1, 11))
    await eleven[-1].acknowledge()
    await expect(consumer, numbered(12, 20))
    await play.queue.holds(9)
    await play.session.recover()
    messages = await expect(consumer, again(numbered(12, 20)) + " none")
    await messages[0].acknowledge()
    await play.queue.holds(0)


async def test_s058_nothing_acknowledged_recover_all(face: Face) -> None:
    """58: all twenty again in order; they stay the queue's until the acknowledge."""
    story = numbered(1, 20)
    play = await stage(face, "client", story)
    consumer = await play.consumer()
    await expect(consumer, story)
    await play.session.recover()
    messages = await expect(consumer, again(story) + " none")
    await play.queue.holds(20, acquired=20)
    await messages[19].acknowledge()
    await play.queue.holds(0)


async def test_s059_order_over_recover_with_an_acknowledged_prefix(face: Face) -> None:
    """59: 0 acknowledged, 1 and 2 recovered, then 3."""
    play = await stage(face, "client", numbered(0, 3))
    consumer = await play.consumer()
    (zero,) = await expect(consumer, "m0")
    await zero.acknowledge()
    await expect(consumer, "m1 m2")
    await play.session.recover()
    messages = await expect(consumer, "m1[R2] m2[R2] m3 none")
    await messages[2].acknowledge()
    await play.queue.holds(0)


async def test_s061_recover_in_auto(face: Face) -> None:
    """61: what a returned receive handed over is acknowledged: recover does not bring it again."""
    play = await stage(face, "auto", "one two")
    consumer = await play.consumer()
    await play.queue.prefetched(2)
    await expect(consumer, "one")
    await play.session.recover()
    await expect(consumer, "two none")
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["auto", "dups_ok"])
async def test_s062_recover_inside_a_listener(face: Face, mode: str) -> None:
    """62: the message in the callback is not acknowledged yet when recover runs; those before it are."""
    play = await stage(face, mode, "1 2 3", start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(seen(message))
        if seen(message) == "2":
            await play.session.recover()

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(4) == "1 2 2[R2] 3".split()
    await play.connection.close()
    assert len(log.items) == 4
    assert play.queue.depth == 0


async def test_s063_recover_inside_a_client_listener(face: Face) -> None:
    """63: in CLIENT mode recover brings all that was not acknowledged, the one in the callback included."""
    play = await stage(face, "client", "1 2 3", start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(seen(message))
        if seen(message) == "2":
            await play.session.recover()
        if message.body == "3":
            await message.acknowledge()

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(5) == "1 2 1[R2] 2[R2] 3".split()
    await play.connection.close()
    assert len(log.items) == 5
    assert play.queue.depth == 0


@pytest.mark.parametrize(("mode", "least"), [("auto", (3, 2, 1, 1)), ("dups_ok", (3, 3, 3, 1))], ids=["s064", "s065"])
async def test_s064_s065_listener_with_counts(face: Face, mode: str, least: tuple[int, ...]) -> None:
    """64, 65: a message in the callback is still the queue's; recover at c brings c alone; in the end none is
    left (D16)."""
    clock = VirtualClock()  # which stands still, or DUPS_OK would acknowledge after a second (D12)
    play = await stage(face, mode, "a b c", start=False, clock=clock)
    log = face.log()
    depths: list[int] = []

    async def on_message(message: Any) -> None:
        depths.append(play.queue.depth)
        log.add(seen(message))
        if seen(message) == "c":
            await play.session.recover()

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(4) == "a b c c[R2]".split()
    await play.connection.close()
    assert len(log.items) == 4
    assert all(depth >= bound for depth, bound in zip(depths, least, strict=True)), depths
    assert play.queue.depth == 0


async def test_s067_transacted_listener_long_sequence(face: Face) -> None:
    """67: a b c (rollback), a b (commit), c (rollback), c (commit), with the depths between."""
    play = await stage(face, "transacted", "a b c", start=False)
    log = face.log()
    depths: list[int] = []

    async def on_message(message: Any) -> None:
        turn = len(log.items) + 1
        if turn in (3, 6):
            await play.session.rollback()
        elif turn in (5, 7):
            await play.session.commit()
            depths.append(play.queue.depth)
        log.add(seen(message))

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(7) == "a b c a[R2] b[R2] c[R2] c[R3]".split()
    assert depths == [1, 0]
    await play.connection.close()
    assert len(log.items) == 7


async def test_s068_dups_ok_recover_does_not_resend(face: Face) -> None:
    """68: recover flushes the lazy acknowledgements; nothing comes again, nothing is left."""
    story = numbered(1, 20)
    play = await stage(face, "dups_ok", story)
    consumer = await play.consumer()
    await expect(consumer, story)
    await play.session.recover()
    await expect(consumer, "none")
    await play.session.close()
    await play.queue.holds(0)


async def test_s069_dups_ok_batch_boundary(face: Face) -> None:
    """69: the tenth receive acknowledges the batch; the close acknowledges the rest, whatever its size."""
    play = await stage(face, "dups_ok", numbered(1, 19))
    consumer = await play.consumer()
    await expect(consumer, numbered(1, 10))
    await play.queue.comes_to(9)
    await expect(consumer, numbered(11, 19))
    await play.session.close()
    await play.queue.holds(0)


async def test_s070_every_message_acknowledged(face: Face) -> None:
    """70: CLIENT, every one acknowledged as received: recover brings none."""
    play = await stage(face, "client", numbered(1, 20))
    consumer = await play.consumer()
    for word in numbered(1, 20).split():
        (message,) = await expect(consumer, word)
        await message.acknowledge()
    await play.session.recover()
    await expect(consumer, "none")
    await play.queue.holds(0)


async def test_s070_individual(face: Face) -> None:
    """70: INDIVIDUAL: an acknowledge settles that one message; recover brings all others, in order."""
    story = numbered(1, 20)
    play = await stage(face, "individual", story)
    consumer = await play.consumer()
    messages = await expect(consumer, story)
    for message in messages[::2]:
        await message.acknowledge()
    await play.queue.holds(10)
    await play.session.recover()
    rest = await expect(consumer, again(" ".join(story.split()[1::2])) + " none")
    for message in rest[:-1]:
        await message.acknowledge()
    await play.queue.holds(0)


async def test_s071_individual_out_of_order_then_close(face: Face) -> None:
    """71: a random half acknowledged out of order, the session closed: a new session gets the other half, in order."""
    words = numbered(1, 20).split()
    play = await stage(face, "individual", " ".join(words))
    messages = await expect(await play.consumer(), " ".join(words))
    chosen = random.Random(71).sample(range(20), 10)
    for index in chosen:
        await messages[index].acknowledge()
    await play.session.close()
    await play.queue.holds(10, acquired=0)
    other = await play.beside("auto")
    left = " ".join(word for index, word in enumerate(words) if index not in chosen)
    await expect(await other.consumer(), again(left) + " none")
    await play.queue.comes_to(0)


async def test_s073_six_redeliveries_by_recover(face: Face) -> None:
    """73: received every time, marked from the second on, with the exact count."""
    play = await stage(face, "client", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    for count in range(2, 8):
        await play.session.recover()
        (message,) = await expect(consumer, f"m1[R{count}]")
    await play.queue.holds(1)
    await message.acknowledge()
    await play.queue.holds(0)


async def test_s074_strict_sequence_with_a_recover_at_every_message(face: Face) -> None:
    """74: a listener recovers each message ten times before it acknowledges it: no later one comes before that."""
    words, times = numbered(1, 20).split(), 10
    play = await stage(face, "client", " ".join(words), start=False)
    log = face.log()
    depths: list[int] = []

    async def on_message(message: Any) -> None:
        if message.delivery_count <= times:
            await play.session.recover()
        else:
            await message.acknowledge()
            depths.append(play.queue.depth)
        log.add(seen(message))

    (await play.consumer()).listener = on_message
    await play.connection.start()
    expected = [f"{word}[R{count}]" if count > 1 else word for word in words for count in range(1, times + 2)]
    assert await log.reach(len(expected)) == expected
    await play.connection.close()
    assert len(log.items) == len(expected)
    assert all(20 - index - 1 <= depth <= 20 - index for index, depth in enumerate(depths)), depths
    assert play.queue.depth == 0


async def test_s083_recovered_and_handed_over_again_comes_as_delivery_three(face: Face) -> None:
    """83: handed over, recovered, handed over again: delivered twice; put back now, it comes as delivery 3."""
    play = await stage(face, "client", "m1 m2")
    consumer = await play.consumer()
    await play.queue.prefetched(2)
    await expect(consumer, "m1")
    await play.session.recover()
    await expect(consumer, "m1[R2]")
    await consumer.close()
    await play.session.close()
    await play.queue.holds(2, acquired=0)
    other = await play.beside("auto")
    await expect(await other.consumer(), "m1[R3] m2 none")
    await play.queue.comes_to(0)
