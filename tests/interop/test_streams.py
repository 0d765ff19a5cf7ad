"""Bodies in pieces at Apache Artemis, on both faces; and what it makes of sends by all ways, and of delays."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest

import jmsish
from tests.interop.artemis_view import face_of
from tests.scenarios.face import Face
from tests.scenarios.steps import expect, stage
from tests.scenarios.test_streams import BODY, SMALL, begun, read_all

pytestmark = pytest.mark.interop


@pytest.fixture(params=["sync", "aio"])
def face(request: pytest.FixtureRequest, artemis: str) -> Iterator[Face]:
    yield face_of(request.param, artemis)


@pytest.mark.parametrize("mode", ["auto", "client", "transacted"])
async def test_a_file_goes_out_and_comes_in(face: Face, mode: str) -> None:
    """Whole, with what is behind it."""
    play = await stage(face, mode, stream_threshold=SMALL, queue=f"files-{mode}-{type(face).__name__}")
    producer = await play.session.create_producer(play.destination)
    await producer.send(stream=io.BytesIO(BODY), properties={"name": "clip"})
    await producer.send("m2")
    if mode == "transacted":
        await play.session.commit()
    consumer = await play.consumer()
    message: Any = await consumer.receive(timeout=30)
    assert message.properties["name"] == "clip" and await read_all(message.open()) == BODY
    await expect(consumer, "m2 none")
    if mode != "auto":
        await play.settle(message)


@pytest.mark.parametrize("mode", ["client", "transacted"])
async def test_given_back_in_mid_body_it_comes_again(face: Face, mode: str) -> None:
    """Counted and whole; that broker may have sent what is behind it already (docs/artemis.md)."""
    play, consumer, (_, body) = await begun(face, mode, queue=f"back-{mode}-{type(face).__name__}")
    await play.give_back()
    with pytest.raises(jmsish.IllegalStateError):
        await body.read(1)
    seen = set()
    for _ in range(2):
        message: Any = await consumer.receive(timeout=30)
        if isinstance(getattr(message, "raw", message), jmsish.BytesMessage):
            assert message.delivery_count == 2 and await read_all(message.open()) == BODY
            seen.add("large")
        else:
            seen.add(message.body)
    assert seen == {"large", "m2"}
    await expect(consumer, "none")
    await play.settle(message)


async def test_a_source_that_fails_leaves_nothing_there(face: Face) -> None:
    """The abort is understood."""
    play = await stage(face, "auto", queue=f"failing-{type(face).__name__}")
    producer = await play.session.create_producer(play.destination)

    def pieces() -> Iterator[bytes]:
        yield BODY
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        await producer.send(stream=pieces())
    await producer.send("m2")
    await expect(await play.consumer(), "m2 none")


async def test_sends_by_all_ways_arrive_in_order(face: Face) -> None:
    """Waiting, with completion, not persistent, by an anonymous producer."""
    play = await stage(face, "auto", queue=f"ways-{type(face).__name__}")
    producer = await play.session.create_producer(play.destination)
    anonymous = await play.session.create_producer()
    log = face.log()
    for number in range(0, 40, 4):
        await producer.send(f"m{number}")
        await producer.send(f"m{number + 1}", on_completion=lambda message, error: log.add(f"{message.body} {error}"))
        await producer.send(f"m{number + 2}", delivery_mode=jmsish.DeliveryMode.NON_PERSISTENT)
        await producer.send(f"m{number + 3}")
    await anonymous.send("m40", destination=play.destination)
    await expect(await play.consumer(), " ".join(f"m{number}" for number in range(41)) + " none")
    assert await log.reach(10) == [f"m{number} None" for number in range(1, 40, 4)]


async def test_a_delay_is_kept(face: Face) -> None:
    """It offers DELAYED_DELIVERY; what is due later comes later."""
    play = await stage(face, "auto", queue=f"later-{type(face).__name__}")
    producer = await play.session.create_producer(play.destination)
    await producer.send("late", delivery_delay=2.0)
    await producer.send("m1")
    consumer = await play.consumer()
    (first,) = await expect(consumer, "m1")
    (late,) = await expect(consumer, "late")
    assert late.jms_delivery_time == late.jms_timestamp + 2000 and first.jms_delivery_time == first.jms_timestamp
