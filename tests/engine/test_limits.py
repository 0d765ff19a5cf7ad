"""Limits of what a receiver takes: links that are gone, messages too large, input cut anywhere."""

from __future__ import annotations

import tracemalloc

import pytest

from jmsish.engine import events
from jmsish.engine.engine import Engine
from jmsish.engine.oversize import limit_messages
from jmsish.engine.streaming import IncomingStream
from tests.engine.pair import Pair, Wire, expect, kinds
from tests.engine.test_transfers import receiving
from tests.wire.frames import RECEIVER, SENDER, read, write

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


def test_a_limit_of_the_engine_holds_for_every_link_that_the_peer_makes_to_send() -> None:
    """From its attach on, also before it is answered; links that we make have their own."""
    wire = Wire().open()
    limit_messages(wire.engine, 1000, [])
    wire.begin()
    wire.send("attach", name="link", handle=0, role=SENDER, initial_delivery_count=0)
    wire.send("transfer", payload=b"x" * 1001, handle=0, delivery_id=0, delivery_tag=b"t")
    wire.send("attach", name="back", handle=1, role=RECEIVER)
    [(_, link), (kind, where, delivery), (_, back)] = wire.events()
    assert (kind, where) == (events.OVERSIZE, link) and delivery.complete and not delivery.payload
    link.attach()
    back.attach()
    assert [frame.fields.get("max_message_size") for frame in wire.read()] == [1000, None]
    own = link.session.receiver("own", source=None, target=None)
    assert own.max_message_size == 0


def test_what_was_read_before_the_limit_was_known_is_measured() -> None:
    """In the events that are not acted on yet, and of what has only begun to come."""
    wire, link = receiving()
    other = wire.attach(role=SENDER, handle=1, name="other")
    other.flow(10)
    for number, size in enumerate((10, 11)):
        wire.send("transfer", payload=b"x" * size, handle=0, delivery_id=number, delivery_tag=b"%d" % number)
    wire.send("transfer", payload=b"x" * 6, handle=1, delivery_id=2, delivery_tag=b"2", more=True)
    wire.send("transfer", payload=b"x" * 6, handle=1, more=True)
    for number, size in ((3, 10), (4, 11)):  # taken back again: that is too late for the second
        wire.send("transfer", payload=b"x" * size, handle=0, delivery_id=number, delivery_tag=b"a", more=True)
        wire.send("transfer", handle=0, aborted=True)
    wire.send("transfer", payload=b"x" * 6, handle=0, delivery_id=5, delivery_tag=b"5", more=True)
    pending = wire.events()
    limit_messages(wire.engine, 10, pending)
    assert [(events.NAMES[kind], where is link, delivery.id) for kind, where, delivery in pending] == [
        ("DELIVERED", True, 0), ("OVERSIZE", True, 1), ("ABORTED", True, 3), ("OVERSIZE", True, 4),
        ("OVERSIZE", False, 2),
    ]  # fmt: skip
    wire.send("transfer", payload=b"x" * 4, handle=0)
    wire.send("transfer", payload=b"x" * 5, handle=0, delivery_id=6, delivery_tag=b"6", more=True)
    wire.send("transfer", payload=b"x" * 6, handle=0)
    assert kinds(wire.engine) == ["DELIVERED", "OVERSIZE"]


def test_to_lift_the_limit_measures_nothing() -> None:
    wire, _ = receiving()
    wire.send("transfer", payload=b"x" * 100_000, handle=0, delivery_id=0, delivery_tag=b"t")
    pending = wire.events()
    limit_messages(wire.engine, 0, pending)
    assert [event[0] for event in pending] == [events.DELIVERED]


def test_that_nobody_has_to_wait_for_the_end_of_a_message_is_said_once() -> None:
    wire, link = receiving(max_message_size=10, discard_limit=1000)
    wire.send("transfer", payload=b"x" * 11, handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    assert kinds(wire.engine) == ["OVERSIZE"]
    for _ in range(20):
        wire.send("transfer", payload=b"x" * 100, handle=0, more=True)
    [(_, _, delivery)] = expect(wire.engine, events.OVERSIZE_ENDED)
    assert not delivery.complete
    wire.send("transfer", handle=0)
    assert kinds(wire.engine) == ["OVERSIZE_ENDED"] and delivery.complete


@pytest.mark.parametrize(("size", "count"), [(0, 5_000), (2, 5_000), (2, 499)])
def test_many_small_frames_cost_what_is_in_them(size: int, count: int) -> None:
    """Not an object each: a limit in octets would mean little else."""
    wire, link = receiving(max_message_size=1 << 20, incoming_window=1000)
    wire.send("transfer", payload=b"a", handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    frames = write("transfer", 0, b"x" * size, handle=0, more=True) * 499
    wire.raw(frames)
    tracemalloc.start()
    try:
        for _ in range(count // 499):
            wire.raw(frames)
            wire.frames.clear()
        current, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert current < 2 * size * count + 25_000 and peak < 2 * size * count + 150_000
    wire.send("transfer", payload=b"b", handle=0)
    [(_, _, delivery)] = expect(wire.engine, events.DELIVERED)
    assert delivery.payload == b"a" + b"x" * (size * 499 * (1 + count // 499)) + b"b"


@pytest.mark.parametrize("limit", [2**31, 2**32, 2**63 - 1, 2**64 - 1])
def test_limits_beyond_31_bits(limit: int) -> None:
    """They travel as a ulong, and let everything pass that is smaller."""
    wire, link = receiving(max_message_size=limit)
    assert wire.frames[-2].max_message_size == limit
    for more in (True, False):
        wire.send("transfer", payload=b"x" * 2000, handle=0, delivery_id=0, delivery_tag=b"tttt", more=more)
    wire.send("transfer", payload=b"x" * 2000, handle=0, delivery_id=1, delivery_tag=b"uuuu")
    assert [len(event[2].payload) for event in wire.events()] == [4000, 2000]


def test_a_delivery_that_is_read_while_it_arrives_has_the_limit_of_its_link() -> None:
    wire, link = receiving(max_message_size=1000)
    wire.send("transfer", payload=b"x" * 500, handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    delivery = link.current
    assert delivery is not None and delivery.parts is not None
    delivery.stream, delivery.parts = IncomingStream(delivery, delivery.parts), None
    wire.send("transfer", payload=b"x" * 500, handle=0, more=True)
    assert link.session.unread == 1000 and not wire.events()
    wire.send("transfer", payload=b"x", handle=0, more=True)
    assert kinds(wire.engine) == ["OVERSIZE"] and link.session.unread == 0 and delivery.stream.dropped


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
