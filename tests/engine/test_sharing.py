"""Windows that large messages share: one that nobody reads holds up no small one, and costs no more than before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsish.engine import events
from jmsish.engine.delivery import Delivery
from jmsish.engine.engine import Engine
from jmsish.engine.link import Link
from jmsish.engine.sharing import SHARE, SHARED_WINDOWS
from jmsish.engine.streaming import IncomingStream, OutgoingStream, want

from .pair import Pair

FRAME = 1024
WINDOW = 128
UNREAD = 8 * FRAME
SHARES = {SHARED_WINDOWS: True}
LARGE = bytes(range(256)) * 4 * 200
"""Frames by the hundred: more than window, share and limit together."""


class Shared(Pair):
    """Two engines that share windows; the server reads large messages as they come, when it is told to."""

    def __init__(self, **server: Any) -> None:
        super().__init__({"properties": SHARES}, {"properties": SHARES, "max_frame_size": FRAME, **server})
        self.server.unread_limit = UNREAD
        self.open()
        self.session, self.far = self.begin()
        self.streams: list[Delivery] = []
        self.whole: list[Delivery] = []
        self.read = bytearray()

    def joined(self, name: str) -> tuple[Link, Link]:
        near, far = self.link(self.session, name, credit=100_000)
        far.stream_from = FRAME // 2
        return near, far

    def carry(self, *, reading: bool = False) -> None:
        """Carry octets until both are silent, and read what comes of large ones if that is wanted."""
        moved = True
        while moved:
            up = self.client.take_output()
            self.server.receive(up)
            self._look()
            moved = reading and self._read_some()
            down = self.server.take_output()
            self.client.receive(down)
            moved = bool(moved or up or down)

    def _look(self) -> None:
        for event in self.server.take_events():
            if event[0] == events.PARTIAL and not event[2].complete:
                self.streams.append(event[2])
                event[2].stream = IncomingStream(event[2], event[2].parts or ())
            elif event[0] == events.DELIVERED:
                self.whole.append(event[2])

    def _read_some(self) -> bool:
        some = b"".join(each.stream.take() for each in self.streams if each.stream is not None)
        self.read += some
        return bool(some)

    @property
    def under_way(self) -> int:
        """Frames of large ones that the server has not counted in a flow."""
        assert self.session.share is not None
        return len(self.session.share.under_way)


def shares(client: dict[str, Any], server: dict[str, Any]) -> tuple[bool, bool]:
    pair = Pair({"properties": client}, {"properties": server}).open()
    session, far = pair.begin()
    agreed = (pair.client.shares_windows, pair.server.shares_windows)
    assert agreed == (session.share is not None, far.share is not None)
    return agreed


@pytest.mark.parametrize("other", [{}, {SHARED_WINDOWS: False}, {SHARED_WINDOWS: 1}, {"product": "jmsish"}])
def test_windows_are_shared_where_both_say_so(other: dict[str, Any]) -> None:
    assert shares(SHARES, SHARES) == (True, True)
    assert True not in (shares(SHARES, other)[0], shares(other, SHARES)[1])


def test_a_session_begun_with_the_open_shares_too() -> None:
    client = Engine(server=False, container_id="client", properties=SHARES)
    server = Engine(server=True, container_id="server", properties=SHARES)
    client.open()
    session = client.begin()
    server.receive(client.take_output())
    server.open()
    ((_, far),) = [event for event in server.take_events() if event[0] == events.BEGUN]
    far.accept_begin()
    client.receive(server.take_output())
    assert session.share is not None and far.share is not None and session.share.widest == far.incoming_window


@pytest.mark.parametrize("window", [16, 2 * SHARE, 4 * SHARE, WINDOW, 1024, 2048])
def test_a_large_one_that_nobody_reads_holds_up_nobody(window: int) -> None:
    """Of it no more comes than its share; of others, windows and windows.

    Where the share is less than a quarter of the window, the receiver has room for more than it last said: what it said
    is what counts, or the peer has used that up and hears of no other.
    """
    pair = Shared(incoming_window=window)
    (large, _), (small, _) = pair.joined("large"), pair.joined("small")
    large.send(LARGE)
    pair.carry()
    (delivery,) = pair.streams
    assert pair.far.held_back
    came = delivery.size
    for number in range(5 * window):
        small.send(b"%d" % number)
        if number % 50 == 0:
            pair.carry()
    pair.carry()
    assert [each.payload for each in pair.whole] == [b"%d" % number for number in range(5 * window)]
    assert delivery.size <= UNREAD + 2 * SHARE * FRAME and delivery.size == came
    assert pair.server.error is None and not pair.far.fault


def test_read_it_goes_on_to_its_end() -> None:
    pair = Shared(incoming_window=WINDOW)
    large, _ = pair.joined("large")
    large.send(LARGE)
    pair.carry()
    assert not pair.streams[0].complete
    pair.carry(reading=True)
    assert pair.read == LARGE and pair.streams[0].complete and not pair.far.held_back


def test_small_ones_do_not_cost_the_share_and_a_large_one_is_not_starved() -> None:
    """It goes on beside a stream of small ones that would keep the window used."""
    pair = Shared(incoming_window=WINDOW)
    (large, _), (small, _) = pair.joined("large"), pair.joined("small")
    large.send(LARGE)
    for _ in range(len(LARGE) // FRAME // (SHARE // 2) + 2):
        for _ in range(WINDOW // 2):
            small.send(b"small")
        pair.server.receive(pair.client.take_output())
        pair._look()
        while pair._read_some():
            pass
        pair.client.receive(pair.server.take_output())
        if pair.streams[0].complete:
            break
    assert pair.streams[0].complete


def test_what_is_behind_a_large_one_on_its_link_stays_behind_it() -> None:
    pair = Shared(incoming_window=WINDOW)
    (large, _), (small, _) = pair.joined("large"), pair.joined("small")
    large.send(LARGE)
    large.send(b"behind it")
    small.send(b"beside it")
    assert pair.under_way == SHARE
    pair.carry()
    assert [each.payload for each in pair.whole] == [b"beside it"]
    pair.carry(reading=True)
    assert [each.payload for each in pair.whole] == [b"beside it", b"behind it"]


def test_what_is_given_up_while_it_waits_for_its_share_is_taken_back_at_once() -> None:
    pair = Shared(incoming_window=WINDOW)
    large, _ = pair.joined("large")
    out = OutgoingStream(large, state=None, settled=False, context=None)
    out.put(bytes(FRAME * 3 // 4), last=False)
    pair.carry()
    while out.put(bytes(100), last=False):
        pass
    assert pair.under_way == SHARE and out.waiting and pair.session.blocks(large)
    out.abort()
    assert not pair.session.backlog
    pair.carry()
    assert pair.streams[0].aborted


def test_parts_too_small_to_be_announced_are_counted_all_the_same() -> None:
    """Else the sender would wait for a flow that nothing brings about."""
    pair = Shared(incoming_window=WINDOW)
    near, far = pair.joined("large")
    far.stream_from = 0
    out = OutgoingStream(near, state=None, settled=False, context=None)
    for _ in range(10 * SHARE):
        out.put(b"x", last=False)
        pair.carry()
        assert not out.waiting
    out.put(b"", last=True)
    pair.carry()
    assert pair.whole[0].payload == b"x" * 10 * SHARE


def test_who_waits_for_anything_lets_it_come() -> None:
    pair = Shared(incoming_window=WINDOW)
    large, _ = pair.joined("large")
    large.send(LARGE)
    pair.carry()
    want(pair.far, True)
    pair.carry()
    assert pair.streams[0].complete
    want(pair.far, False)


def test_a_peer_that_does_not_share_is_sent_all_that_its_window_holds() -> None:
    pair = Pair(server={"max_frame_size": FRAME, "incoming_window": WINDOW}).open()
    session, _ = pair.begin()
    sender, _ = pair.link(session)
    sender.send(LARGE)
    assert session.share is None and session.remote_left == 0


@settings(max_examples=150, deadline=None)
@given(
    window=st.sampled_from([1, 2, 3, 40, 128, 1024]),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]), st.sampled_from([0, 10, 900, 5_000, 90_000]), st.booleans(), st.booleans()
        ),
        max_size=25,
    ),
)
def test_whatever_is_sent_and_read_everything_comes(window: int, steps: list[tuple[str, int, bool, bool]]) -> None:
    """In any order of sending, carrying and reading, by whatever window; of each link in order."""
    pair = Shared(incoming_window=window)
    links = {name: pair.joined(name) for name in "abc"}
    sent: dict[str, list[int]] = {name: [] for name in "abc"}
    for name, size, carries, reads in steps:
        links[name][0].send(bytes(size))
        sent[name].append(size)
        assert pair.under_way <= SHARE
        if carries:
            pair.carry(reading=reads)
    pair.carry(reading=True)
    assert pair.server.error is None and pair.far.fault is None
    assert not pair.session.backlog and all(each.complete for each in pair.streams)
    came = sorted(pair.whole + pair.streams, key=lambda each: each.id)
    for name, (_, far) in links.items():
        assert [max(each.size, len(each.payload)) for each in came if each.link is far] == sent[name]
