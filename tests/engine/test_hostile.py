"""What one peer may cost: every cap and every time, at both ends, with hand-made frames."""

from __future__ import annotations

import tracemalloc
from struct import pack

import pytest

from jmsish.engine import events
from jmsish.engine.engine import Engine
from jmsish.engine.limits import Limits
from jmsish.engine.session import EngineSession
from jmsish.engine.values import DecodeError, decode, decode_plain
from tests.engine.pair import Wire, kinds
from tests.wire.frames import RECEIVER, SENDER, Frame, composite, read, write

LIMIT = "amqp:resource-limit-exceeded"
BOTH = pytest.mark.parametrize("server", [True, False], ids=["broker", "client"])


class Attacker:
    """Any peer of an engine in either role: frames in, frames out."""

    def __init__(self, server: bool, **limits: object) -> None:
        self.engine = Engine(server=server, container_id="ours", limits=Limits(**limits))  # type: ignore[arg-type]
        if not server:
            self.engine.open()
        self.engine.receive(b"AMQP\x00\x01\x00\x00")
        self.say("open", container_id="x", max_frame_size=100_000)
        if server:
            self.engine.open()
        self.hear()

    def say(self, frame: str, channel: int = 0, payload: bytes = b"", /, **fields: object) -> None:
        self.engine.receive(write(frame, channel, payload, **fields))

    def hear(self) -> list[str]:
        return [frame.name for frame in read(self.engine.take_output())]

    def close(self) -> tuple[str, str | None]:
        """The condition and the description of the close that we wrote."""
        [*_, last] = read(self.engine.take_output())
        assert last.name == "close" and self.engine.closed
        assert self.engine.error is not None
        return last.condition, self.engine.error.description

    def begin(self, channel: int = 0) -> None:
        self.say("begin", channel, next_outgoing_id=0, incoming_window=100, outgoing_window=100)
        for event in self.engine.take_events():
            if event[0] == events.BEGUN:
                event[1].accept_begin()
        self.hear()

    def attach(self, handle: int, channel: int = 0) -> None:
        self.say(
            "attach", channel, name=f"l{channel}.{handle}", handle=handle, role=RECEIVER,
            source=composite("source", address="q"), target=composite("target"),
        )  # fmt: skip


# Times.


@BOTH
def test_a_frame_that_was_begun_has_to_come_whole(server: bool) -> None:
    """Octet by octet, each in time for the idle time-out, does not hold a connection."""
    peer = Attacker(server, frame_timeout=10.0)
    peer.engine.receive(pack(">I", 1000))
    assert peer.engine.tick(100.0) == 110.0
    for number in range(9):
        peer.engine.receive(b"\x02")
        assert peer.engine.tick(101.0 + number) == 110.0
    peer.engine.tick(110.0)
    assert peer.close() == (LIMIT, "a frame was begun and did not come whole within 10 s")


@BOTH
def test_the_time_of_a_frame_begins_with_each_anew(server: bool) -> None:
    peer = Attacker(server, frame_timeout=10.0)
    empty = b"\x00\x00\x00\x08\x02\x00\x00\x00"
    peer.engine.receive(empty[:5])
    assert peer.engine.tick(0.0) == 10.0
    peer.engine.receive(empty[5:] + empty[:3])
    assert peer.engine.tick(9.0) == 19.0
    peer.engine.receive(empty[3:])
    assert peer.engine.tick(18.0) is None and peer.engine.tick(1000.0) is None and peer.engine.error is None


@BOTH
def test_a_frame_without_a_limit_of_time(server: bool) -> None:
    peer = Attacker(server, frame_timeout=None)
    peer.engine.receive(b"\x00")
    assert peer.engine.tick(0.0) is None and peer.engine.tick(1e9) is None


def test_who_does_not_open_is_late_whatever_it_has_begun() -> None:
    engine = Engine(server=True, container_id="ours", opening_timeout=10.0)
    for now, octets in enumerate((b"AMQP", b"\x00\x01\x00\x00", b"\x00\x00", b"\x01")):
        engine.receive(octets)
        assert engine.tick(float(now)) == 10.0
    engine.tick(10.0)
    assert engine.error is not None and "did not open the connection within 10 s" in str(engine.error)


@pytest.mark.parametrize(("milliseconds", "taken"), [(1, False), (99, False), (100, True), (0, True)])
@BOTH
def test_an_idle_time_out_that_keeps_us_busy_is_refused(server: bool, milliseconds: int, taken: bool) -> None:
    """Part 2, 2.4.5: close "using a close frame with an error explaining why"."""
    engine = Engine(server=server, container_id="ours")
    if not server:
        engine.open()
    engine.receive(b"AMQP\x00\x01\x00\x00" + write("open", container_id="x", idle_time_out=milliseconds))
    frames = read(engine.take_output())
    if taken:
        assert engine.error is None
    else:
        assert frames[-1].name == "close" and frames[-1].condition == "amqp:not-allowed"
        assert f"an idle-time-out of {milliseconds} ms, where 100 are the least" in str(engine.error)


# Numbers.


@BOTH
def test_links_have_a_cap_over_all_sessions(server: bool) -> None:
    """Those that were refused count until they are detached, or a flood of them would never end."""
    peer = Attacker(server, max_links=10)
    peer.begin(0)
    peer.begin(1)
    for handle in range(5):
        peer.attach(handle, 0)
        peer.attach(handle, 1)
    peer.say("detach", 1, handle=4, closed=True)
    peer.attach(7, 0)
    assert peer.engine.error is None
    for event in peer.engine.take_events():
        if event[0] == events.ATTACHED:
            event[1].refuse(None)
    peer.attach(8, 0)
    assert peer.close() == (LIMIT, "more than 10 links are attached")


@BOTH
def test_links_of_a_session_that_ended_count_no_more(server: bool) -> None:
    peer = Attacker(server, max_links=3)
    for _ in range(10):
        peer.begin()
        for handle in range(3):
            peer.attach(handle)
        peer.say("end")
        for event in peer.engine.take_events():
            if event[0] == events.ENDED:
                event[1].end()
        peer.hear()
    assert peer.engine.error is None and peer.engine.remote_link_count == 0


@BOTH
def test_a_flood_of_echoes_to_which_no_answer_is_taken(server: bool) -> None:
    """The output of a peer that asks and does not read is bounded."""
    peer = Attacker(server, max_answers=10_000)
    peer.begin()
    echo = write("flow", incoming_window=100, next_outgoing_id=0, outgoing_window=100, next_incoming_id=0, echo=True)
    for _ in range(2000):
        peer.engine.receive(echo)
        if peer.engine.error is not None:
            break
    assert peer.engine.out_size < 12_000
    assert peer.close() == (LIMIT, "the peer asked for more than 10000 octets of answers and took none")


@BOTH
def test_echoes_whose_answers_are_taken_may_be_many(server: bool) -> None:
    peer = Attacker(server, max_answers=1000)
    peer.begin()
    for _ in range(1000):
        peer.say("flow", incoming_window=9, next_outgoing_id=0, outgoing_window=9, next_incoming_id=0, echo=True)
        assert peer.hear() == ["flow"]


@BOTH
def test_a_hundred_thousand_empty_frames_cost_no_memory(server: bool) -> None:
    peer = Attacker(server)
    frames = b"\x00\x00\x00\x08\x02\x00\x00\x00" * 1000
    tracemalloc.start()
    try:
        for _ in range(100):
            peer.engine.receive(frames)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20 and peer.engine.error is None and kinds(peer.engine) == ["OPENED"]


def test_opens_one_after_the_other() -> None:
    """The second open of a pipelined row ends the connection, and what is behind it is not read."""
    engine = Engine(server=True, container_id="ours")
    engine.receive(b"AMQP\x00\x01\x00\x00" + write("open", container_id="x") * 1000)
    assert kinds(engine) == ["OPENED", "FAILED"] and str(engine.error) == "amqp:not-allowed: open a second time"


def test_more_sessions_than_the_channel_max() -> None:
    peer = Attacker(True)
    peer.say("begin", 4096, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    assert peer.close()[0] == "amqp:connection:framing-error"


def wide_range(settled: bool, state: str | None = None, first: int = 0, last: int = 0x7FFFFFFF) -> bytes:
    return write(
        "disposition", role=RECEIVER, first=first, last=last, settled=settled, state=state and composite(state)
    )


def sending(count: int) -> tuple[Wire, EngineSession]:
    """We have sent so many messages, and none of them is settled."""
    wire = Wire().open()
    session = wire.begin(incoming_window=1 << 20)
    wire.send("attach", name="r", handle=0, role=RECEIVER, source=composite("source", address="q"),
              target=composite("target"))  # fmt: skip
    [(_, link)] = [event for event in wire.events() if event[0] == events.ATTACHED]
    link.attach()
    wire.send("flow", handle=0, delivery_count=0, link_credit=count, next_incoming_id=0, incoming_window=1 << 20,
              next_outgoing_id=0, outgoing_window=1)  # fmt: skip
    for _ in range(count):
        link.send(b"\x00\x53\x77\x40")
    wire.read()
    return wire, session


def test_to_name_all_deliveries_again_and_again_ends_the_session() -> None:
    """Two dozen octets look at a hundred thousand deliveries, which are there as before."""
    wire, session = sending(5000)
    said: list[Frame] = []
    times = 0
    while not said:
        said, times = wire.raw(wide_range(False)), times + 1
    [end] = said
    assert 4 <= times < 10 and end.name == "end" and end.condition == LIMIT
    assert "without settling them" in end.description and wire.engine.error is None


def test_who_settles_may_name_all_there_are() -> None:
    """Cumulative, from the first one each time, as simple clients do: nothing of it is in vain."""
    wire, session = sending(3000)
    for last in range(3000):
        assert wire.raw(wide_range(True, "accepted", 0, last)) == []
    assert not session.outgoing


def test_a_range_of_all_numbers_there_are() -> None:
    wire, session = sending(10)
    wire.raw(wide_range(True, "accepted", 0, 0xFFFFFFFF))
    assert not session.outgoing


@pytest.mark.parametrize(("first", "last", "left"), [(3, 1 << 20, [0, 1, 2]), (1 << 30, 1 << 31, list(range(10)))])
def test_a_range_that_goes_on_behind_what_there_is(first: int, last: int, left: list[int]) -> None:
    wire, session = sending(10)
    wire.raw(wide_range(True, "accepted", first, last))
    assert list(session.outgoing) == left


def test_messages_that_are_begun_and_not_finished_are_bounded_together() -> None:
    """Each may be as large as its link lets it, and a connection has ten thousand links."""
    peer = Attacker(True, max_unfinished=100_000)
    peer.begin()
    part = b"\x00\x53\x75\xb0\x7f\xff\xff\xff" + bytes(992)
    for handle in range(200):
        peer.say("attach", name=f"s{handle}", handle=handle, role=SENDER, initial_delivery_count=0,
                 source=composite("source"), target=composite("target", address="q"))  # fmt: skip
        for event in peer.engine.take_events():
            if event[0] == events.ATTACHED:
                event[1].attach(source=None, target=None)
                event[1].flow(10)
        peer.hear()
        peer.say("transfer", 0, part, handle=handle, delivery_id=handle, delivery_tag=b"t", more=True)
        if peer.engine.error is not None:
            break
    assert 100 < handle < 115
    condition, text = peer.close()
    assert condition == LIMIT and text is not None and "messages are not whole" in text


def test_one_message_may_be_as_large_as_it_likes_and_finished_ones_count_no_more() -> None:
    peer = Attacker(True, max_unfinished=10_000)
    peer.begin()
    for handle in range(2):
        peer.say("attach", name=f"s{handle}", handle=handle, role=SENDER, initial_delivery_count=0,
                 source=composite("source"), target=composite("target", address="q"))  # fmt: skip
    for event in peer.engine.take_events():
        if event[0] == events.ATTACHED:
            event[1].attach(source=None, target=None)
            event[1].flow(1000)
    for number in range(100):
        peer.say("transfer", 0, bytes(5000), handle=0, delivery_id=0, delivery_tag=b"t", more=True)
        for last in (False, True):
            peer.say("transfer", 0, bytes(5000), handle=1, delivery_id=1 + number, delivery_tag=b"u", more=not last,
                     settled=True)  # fmt: skip
    assert peer.engine.error is None


# Sizes of values.


def bomb(count: int, elements: int, code: int) -> bytes:
    """A list of arrays whose elements take no octets."""
    one = b"\xe0" + bytes((2, elements, code))
    return b"\xd0" + pack(">II", 4 + count * len(one), count) + one * count


@pytest.mark.parametrize("code", [0x40, 0x41, 0x42, 0x43, 0x44, 0x45])
def test_an_array_of_elements_that_take_no_octets(code: int) -> None:
    for count in (17, 1 << 31, (1 << 32) - 1):
        wide = b"\xf0" + pack(">II", 5, count) + bytes((code,))
        for read_value in (decode, decode_plain):
            with pytest.raises(DecodeError, match=f"an array of {count} elements"):
                read_value(wide)
    assert len(decode_plain(b"\xe0" + bytes((2, 16, code)))[0]) == 16


@pytest.mark.parametrize("code", [0x40, 0x45])
def test_what_is_decoded_is_in_proportion_to_its_octets(code: int) -> None:
    octets = bomb(5_000, 16, code)
    tracemalloc.start()
    try:
        value, _ = decode_plain(octets)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(value) == 5_000 and peak < 300 * len(octets)


@pytest.mark.parametrize("code", [0x98, 0x94, 0x84, 0x72, 0x82, 0xC0, 0x00])
def test_a_large_map_has_keys_that_scatter(code: int) -> None:
    """The hash of a UUID is its number, so one could send thousands that all meet in one place of a dict."""
    width = {0x98: 16, 0x94: 16, 0x84: 8, 0x72: 4, 0x82: 8}.get(code, 2)
    pairs = b"".join(bytes((code,)) + number.to_bytes(width, "big") + b"\x40" for number in range(300))
    octets = b"\xd1" + pack(">II", 4 + len(pairs), 600) + pairs
    with pytest.raises(DecodeError, match=f"a map of 300 pairs with a key of the format code {code:#04x}"):
        decode(octets)


def test_large_maps_of_ordinary_keys_are_taken() -> None:
    for code, width in ((0xA1, 5), (0xA3, 5), (0xA0, 5), (0x80, 8), (0x71, 4), (0x83, 8)):
        pairs = b""
        for number in range(2000):
            key = b"%05d" % number if width == 5 else number.to_bytes(width, "big")
            pairs += bytes((code,)) + (b"\x05" if width == 5 else b"") + key + b"\x40"
        value, _ = decode_plain(b"\xd1" + pack(">II", 4 + len(pairs), 4000) + pairs)
        assert len(value) == 2000


def test_a_few_uuids_are_keys_as_others() -> None:
    pairs = b"".join(b"\x98" + number.to_bytes(16, "big") + b"\x40" for number in range(12))
    assert len(decode_plain(b"\xd1" + pack(">II", 4 + len(pairs), 24) + pairs)[0]) == 12


@pytest.mark.parametrize("wrap", [b"\xc0\xff\x01", b"\x00\x53\x01"])
def test_values_nested_too_deep(wrap: bytes) -> None:
    with pytest.raises(DecodeError, match="nested deeper than 64 levels"):
        decode(wrap * 100 + bytes(300))


@BOTH
def test_a_frame_of_nested_values_ends_the_connection_and_nothing_else(server: bool) -> None:
    """In the properties of an open, begin, attach: wherever a map of any content may stand."""
    peer = Attacker(server)
    nested = b"\x00\x53\x01" * 70 + b"\x40"
    octets = b"\x00\x53\x11\xd0" + pack(">II", 4 + len(nested), 1) + nested
    peer.engine.receive(pack(">IBBH", len(octets) + 8, 2, 0, 0) + octets)
    condition, text = peer.close()
    assert condition == "amqp:decode-error" and text is not None and "deeper than 64" in text


def test_ranges_of_dispositions_that_name_the_whole_space() -> None:
    """What is looked at is what there is, not what the frame names."""
    wire = Wire().open()
    wire.begin()
    for _ in range(200):
        wire.send("disposition", role=SENDER, first=0, last=0x7FFFFFFF, settled=False, state=composite("accepted"))
        wire.send("disposition", role=RECEIVER, first=5, last=0x7FFFFFFF, settled=True, state=composite("accepted"))
    assert wire.events() == [] and wire.engine.error is None
