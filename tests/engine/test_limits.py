"""Limits of what a receiver takes: links that are gone, messages too large, input cut anywhere."""

from __future__ import annotations

import tracemalloc

import pytest

from jmsish.engine import events
from jmsish.engine.engine import Engine
from tests.engine.pair import Pair, expect, kinds
from tests.engine.test_transfers import receiving
from tests.wire.frames import SENDER, read, write

# -- what comes for a link that is gone --------------------------------------------------------------------------------


def test_transfers_for_a_detached_link_are_dropped_and_the_window_stays_open() -> None:
    wire, link = receiving(incoming_window=8)
    other = wire.attach(role=SENDER, handle=1, name="other")
    other.flow(100)
    link.detach()
    wire.read()
    for number in range(50):
        more = number % 2 == 0
        frames = wire.send("transfer", payload=b"x" * 100, handle=0, delivery_id=number, delivery_tag=b"t", more=more)
        assert {frame.name for frame in frames} <= {"flow"}
    wire.send("transfer", payload=b"y", handle=1, delivery_id=50, delivery_tag=b"u")
    [(_, where, _)] = expect(wire.engine, events.DELIVERED)
    assert where is other and link.discarded == 5000 and wire.engine.error is None
    wire.send("detach", handle=0)
    assert kinds(wire.engine) == ["DETACHED"]


def test_more_than_the_discard_limit_closes() -> None:
    wire, link = receiving(discard_limit=1000)
    link.detach()
    wire.read()
    frames = []
    for number in range(20):
        frames += wire.send("transfer", payload=b"x" * 100, handle=0, delivery_id=number, delivery_tag=b"t")
    [close] = frames
    assert (close.name, close.condition) == ("close", "amqp:resource-limit-exceeded")


def test_a_partial_delivery_dies_with_its_link() -> None:
    wire, link = receiving()
    wire.send("transfer", payload=b"a", handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    wire.send("detach", handle=0, closed=True)
    assert kinds(wire.engine) == ["DETACHED"] and not link.session.incoming and link.current is None


# -- size limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "oversize"), [(999, False), (1000, False), (1001, True)])
@pytest.mark.parametrize("frames", [1, 2, 7])
@pytest.mark.parametrize("settled", [False, True])
def test_the_limit_of_a_message_is_exact(size: int, oversize: bool, frames: int, settled: bool) -> None:
    wire, link = receiving(max_message_size=1000)
    step = -(-size // frames)
    for number in range(frames):
        wire.send(
            "transfer", payload=b"x" * min(step, size - step * number), handle=0, delivery_id=0, delivery_tag=b"tttt",
            settled=settled, more=number < frames - 1,
        )  # fmt: skip
    expected = events.OVERSIZE if oversize else events.DELIVERED
    [(_, _, delivery)] = expect(wire.engine, expected)
    assert delivery.oversize == oversize and len(delivery.payload) == (0 if oversize else size)


def test_an_endless_message_is_told_at_once_and_kept_nowhere() -> None:
    wire, link = receiving(max_message_size=1 << 20, incoming_window=10)
    wire.send("transfer", payload=b"a", handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    chunk = write("transfer", 0, bytes(100_000), handle=0, more=True)
    tracemalloc.start()
    try:
        for _ in range(300):
            wire.raw(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20
    [(_, where, delivery)] = expect(wire.engine, events.OVERSIZE)
    assert where is link and not delivery.complete and link.session.incoming == {0: delivery}
    wire.send("transfer", handle=0)
    assert wire.events() == [(events.OVERSIZE_ENDED, link, delivery)] and delivery.complete
    wire.send("transfer", payload=b"next", handle=0, delivery_id=1, delivery_tag=b"u")
    assert kinds(wire.engine) == ["DELIVERED"]


def test_an_oversize_delivery_may_be_aborted() -> None:
    wire, link = receiving(max_message_size=10)
    wire.send("transfer", payload=b"x" * 11, handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    wire.send("transfer", handle=0, aborted=True)
    assert kinds(wire.engine) == ["OVERSIZE", "ABORTED"] and link.current is None


# -- input cut anywhere ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 2, 3, 7, 28, 29, 30, 64, 1000])
def test_input_cut_anywhere_gives_the_same_events(step: int) -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    link, _ = pair.link(session)
    for size in (0, 1, 28, 29, 100, 3000):
        link.send(b"x" * size)
        link.send(b"y" * size, tag=b"general")
    octets = pair.client.take_output()
    for begin in range(0, len(octets), step):
        pair.server.receive(octets[begin : begin + step])
    sizes = [len(event[2].payload) for event in pair.server.take_events()]
    assert sizes == [size for size in (0, 1, 28, 29, 100, 3000) for _ in range(2)]


def test_other_buffers_than_bytes_are_taken() -> None:
    engine = Engine(server=True, container_id="s")
    engine.receive(bytearray(b"AMQP\x00\x01\x00\x00"))
    engine.receive(memoryview(write("open", container_id="c")))
    assert kinds(engine) == ["OPENED"] and read(engine.take_output())[0].name == "header"
