"""The three facts of JMS that users get wrong, each over every way in which it could go wrong."""

from __future__ import annotations

from typing import Any

import pytest

from .face import Face
from .steps import Stage, expect, numbered, seen, send, stage, take_all

CLEAN_WAYS = [
    "consumer close",
    "session close",
    "connection close",
    "commit and a new consumer",
    "rollback",
    "rollback and close",
    "recover",
    "a new consumer",
    "stop and close",
]


async def give_back_unread(way: str, play: Stage, consumer: Any) -> Any:
    """One clean way for unread messages back to the queue; returns who reads next."""
    if way == "rollback" or way == "recover":
        await play.give_back()
        return consumer
    if way == "a new consumer":
        return await play.consumer()
    if way == "commit and a new consumer":
        await play.session.commit()
        return await play.consumer()
    if way == "rollback and close":
        await play.session.rollback()
        await consumer.close()
    elif way == "stop and close":
        await play.connection.stop()
        await play.connection.close()
    else:
        await {"consumer": consumer, "session": play.session, "connection": play.connection}[way.split()[0]].close()
    await play.queue.holds(4, acquired=0)
    return await (await play.beside("client")).consumer()


@pytest.mark.parametrize("way", CLEAN_WAYS)
async def test_unread_never_gains_a_count(face: Face, way: str) -> None:
    """An unread prefetched message comes unmarked after any clean way back, as often as it happens."""
    mode = "client" if way == "recover" else "transacted"
    play = await stage(face, mode, numbered(1, 4))
    for _ in range(2):
        reader = await play.consumer()
        await play.queue.prefetched(4)
        if way in ("session close", "connection close", "stop and close"):
            break
        await reader.close()
    consumer = await play.consumer() if way not in ("session close", "connection close", "stop and close") else reader
    await play.queue.prefetched(4)
    reader = await give_back_unread(way, play, consumer)
    await expect(reader, numbered(1, 4) + " none")


@pytest.mark.parametrize(
    "way",
    ["rollback", "session close", "connection close", "consumer close, rollback", "consumer close, session close"],
)
async def test_acknowledged_and_rolled_back_gains_exactly_one(face: Face, way: str) -> None:
    """A message acknowledged in a rolled-back transaction gains exactly one, whichever way the transaction ends."""
    await send(await face.connect(), "orders", "m1 m2")
    for count in range(1, 5):
        play = await stage(face, "transacted")
        consumer = await play.consumer()
        await play.queue.prefetched(2)
        await expect(consumer, "m1" if count == 1 else f"m1[R{count}]")
        for step in way.split(", "):
            if step == "rollback":
                await play.session.rollback()
            else:
                closing: dict[str, Any] = {"consumer": consumer, "session": play.session, "connection": play.connection}
                await closing[step.split()[0]].close()
        await play.connection.close()
        await play.queue.holds(2, acquired=0)
    reader = await (await stage(face, "auto")).consumer()
    await expect(reader, "m1[R5] m2 none")


@pytest.mark.parametrize("mode", ["transacted", "client"])
@pytest.mark.parametrize("competitor", ["idle", "reading"])
async def test_nothing_later_overtakes_what_was_put_back(face: Face, mode: str, competitor: str) -> None:
    """While messages go back, a competitor with credit gets them in order: none after a later one that it already
    has."""
    play = await stage(face, mode, numbered(1, 60))
    consumer = await play.consumer(prefetch=20)
    await expect(consumer, numbered(1, 10))
    await face.barrier()
    other = await play.beside("client")
    rival = await other.consumer(prefetch=1)
    got = [await rival.receive(timeout=30)] if competitor == "reading" else []
    await face.barrier()
    for _ in range(3):
        await play.give_back()
        mine: Any = await consumer.receive(timeout=30)
        assert mine is not None
    await play.session.close()
    while (message := await rival.receive_no_wait()) is not None:
        got.append(message)
    numbers = [int(message.body[1:]) for message in got if message is not None]
    # What the rival had in its window before the first put-back is ahead of it by right; all others come in order.
    early = 1 + (competitor == "reading")
    assert numbers[early:] == sorted(numbers[early:])
    assert sorted(numbers) == list(range(1, 61))
    await got[-1].acknowledge()  # type: ignore[union-attr]
    await play.queue.holds(0)


async def test_put_back_again_and_again_under_a_steady_flow(face: Face) -> None:
    """A consumer that rolls back every second batch, while a producer goes on: order and counts hold to the end."""
    play = await stage(face, "transacted")
    producing = await play.connection.create_session(transacted=True)
    producer = await producing.create_producer(play.destination)
    consumer = await play.consumer(prefetch=7)
    done: list[str] = []
    sent = 0
    for turn in range(40):
        for _ in range(5):
            sent += 1
            await producer.send(f"m{sent}")
        await producing.commit()
        batch: list[Any] = [await consumer.receive(timeout=30) for _ in range(5)]
        if turn % 2:
            await play.session.rollback()
        else:
            await play.session.commit()
            done += [seen(message) for message in batch]
    done += await take_all(consumer)
    await play.session.commit()
    assert [word.split("[")[0] for word in done] == numbered(1, sent).split()
    assert {word.split("[")[1] for word in done if "[" in word} == {"R2]"}
    await play.queue.holds(0)
