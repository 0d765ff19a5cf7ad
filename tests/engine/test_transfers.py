"""Deliveries: layouts, frames, interleaving, aborts, sizes; what is illegal in a transfer."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine import events
from jmsish.engine.conditions import EngineStateError
from jmsish.engine.link import Link
from jmsish.engine.outcomes import ACCEPTED, AmqpError, Rejected, TransactionalState
from tests.engine.pair import Pair, Wire, expect, kinds
from tests.wire.frames import RECEIVER, SENDER, Raw, composite, read, write

LONG = AmqpError("amqp:internal-error", "a description longer than the short way allows for, " * 5)


def receiving(credit: int = 100, **kwargs: Any) -> tuple[Wire, Link]:
    """A wire whose engine receives on handle 0."""
    max_message_size = kwargs.pop("max_message_size", 0)
    wire = Wire(**kwargs).open()
    wire.begin()
    wire.send("attach", name="link", handle=0, role=SENDER, initial_delivery_count=0)
    [(_, link)] = expect(wire.engine, events.ATTACHED)
    link.attach(max_message_size=max_message_size)
    link.flow(credit)
    wire.read()
    return wire, link


def sending(credit: int = 100, max_frame_size: int = 1 << 20, window: int = 1000) -> tuple[Wire, Link]:
    """A wire whose engine sends on handle 0."""
    wire = Wire().open(max_frame_size=max_frame_size)
    wire.begin(incoming_window=window)
    link = wire.attach(role=RECEIVER)
    wire.send("flow", next_incoming_id=0, incoming_window=window, next_outgoing_id=0, outgoing_window=0, handle=0,
              delivery_count=0, link_credit=credit)  # fmt: skip
    wire.events()
    return wire, link


# -- whole deliveries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("payload", [b"", b"x", b"x" * 245, b"x" * 70_000])
def test_a_plain_delivery(settled: bool, payload: bytes) -> None:
    pair = Pair().open()
    session, other = pair.begin()
    link, remote = pair.link(session)
    marker = object()
    delivery = link.send(payload, settled=settled, context=marker)
    assert delivery.context is marker and delivery.settled == settled
    pair.pump()
    [(_, where, received)] = expect(pair.server, events.DELIVERED)
    assert where is remote and received.payload == payload and received.complete
    assert received.remote_settled == received.settled == settled
    assert received.tag == delivery.tag == b"\0\0\0\0" and received.message_format == 0
    assert bool(session.outgoing) == bool(other.incoming) == (not settled)
    assert link.delivery_count == remote.delivery_count == 1


def test_tag_format_and_state_travel() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    link, _ = pair.link(session)
    state = TransactionalState(b"txn-1")
    link.send(b"m", tag=b"own tag", message_format=0x80013700, state=state)
    pair.pump()
    [(_, _, received)] = expect(pair.server, events.DELIVERED)
    assert (received.tag, received.message_format, received.remote_state) == (b"own tag", 0x80013700, state)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"message_format": 0, "settled": False, "more": False},
        {"message_format": 0, "settled": False, "more": False, "aborted": False, "batchable": True},
        {"message_format": Raw(b"\x70\0\0\0\0"), "settled": Raw(b"\x56\x00")},
        {"handle": Raw(b"\x70\0\0\0\0"), "delivery_id": Raw(b"\x70\0\0\0\0")},
        {"handle": Raw(b"\x52\0"), "delivery_id": Raw(b"\x52\0"), "message_format": Raw(b"\x52\0")},
        {"delivery_tag": Raw(b"\xb0\0\0\0\x04tag1")},
        {"rcv_settle_mode": 0},
    ],
)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("symbolic", [False, True])
def test_any_layout_of_a_transfer_is_read_alike(fields: dict[str, Any], wide: bool, symbolic: bool) -> None:
    """Peers choose other widths, leave trailing fields out or say them, and may name the descriptor."""
    wire, link = receiving()
    fields = {"handle": 0, "delivery_id": 0, "delivery_tag": b"tag1", **fields}
    wire.raw(write("transfer", 0, b"payload", wide=wide, symbolic=symbolic, **fields))
    [(_, _, delivery)] = expect(wire.engine, events.DELIVERED)
    assert (delivery.id, delivery.tag, delivery.payload) == (0, b"tag1", b"payload")
    assert not delivery.settled and link.credit == 99 and link.session.incoming == {0: delivery}


def test_the_layout_of_our_own_transfers_is_read_by_the_short_way() -> None:
    """What keeps the fast path fast: our sender writes exactly what our receiver recognizes."""
    wire, link = sending()
    link.send(b"payload")
    octets = wire.engine.take_output()
    other, receiver = receiving()
    other.raw(octets)
    assert octets[4:17] == receiver.fast_key and receiver.fast_key in other.engine.fast
    assert octets == write("transfer", 0, b"payload", handle=Raw(b"\x52\0"), delivery_id=Raw(b"\x70\0\0\0\0"),
                           delivery_tag=b"\0\0\0\0", message_format=0, settled=False)  # fmt: skip


def test_transfers_in_a_transaction_go_the_short_way_too() -> None:
    wire, link = sending()
    states = [TransactionalState(b"one"), TransactionalState(b"two"), TransactionalState(b"x" * 32, Rejected(LONG))]
    for number, state in enumerate(states):
        for settled in (False, True):
            link.send(b"payload", state=state, settled=settled)
            octets = wire.engine.take_output()
            [frame] = read(octets)
            assert frame.payload == b"payload" and frame.settled == settled
            assert frame.state.txn_id == state.txn_id and bool(frame.state.outcome) == (number == 2)
            receiver, other = receiving()
            receiver.raw(octets)
            [(_, _, delivery)] = expect(receiver.engine, events.DELIVERED)
            assert delivery.remote_state == state and delivery.payload == b"payload" and delivery.settled == settled
            assert bool(other.session.incoming) != settled


def test_the_general_way_and_the_quick_one_agree() -> None:
    """Each layout twice: the second time its tail is known."""
    wire, link = receiving(credit=1000)
    number = 0
    for tail in ({}, {"settled": True}, {"settled": False, "more": False}, {"more": True}, {"aborted": True},
                 {"state": composite("accepted")}, {"message_format": 7}, {"batchable": True}):  # fmt: skip
        for _ in range(2):
            wire.send("transfer", payload=b"m", handle=0, delivery_id=number, delivery_tag=b"t", **tail)
            if tail.get("more"):
                assert link.current is not None
                wire.send("transfer", payload=b"m", handle=0)
            [(kind, _, delivery)] = wire.events()
            assert (kind == events.ABORTED) == bool(tail.get("aborted")) and delivery.id == number
            assert delivery.settled == bool(tail.get("settled") or tail.get("aborted"))
            assert (delivery.remote_state is ACCEPTED) == ("state" in tail)
            assert delivery.message_format == tail.get("message_format", 0)
            number += 1
    assert link.credit == 1000 - number


def test_many_handles() -> None:
    """Handles beyond one octet have no short way."""
    pair = Pair().open()
    session, other = pair.begin()
    links = [pair.link(session, f"l{number}", credit=5)[0] for number in range(300)]
    for link in links:
        link.send(link.name.encode())
    pair.pump()
    received = [event[2] for event in pair.server.take_events()]
    assert [(delivery.link.name, delivery.payload) for delivery in received] == [
        (link.name, link.name.encode()) for link in links
    ]


# -- several frames ----------------------------------------------------------------------------------------------------


def test_a_large_message_is_cut_by_the_peers_frames_and_joined_again() -> None:
    pair = Pair(server={"max_frame_size": 600}).open()
    session, _ = pair.begin()
    link, remote = pair.link(session)
    body = bytes(range(256)) * 100
    state = TransactionalState(b"t" * 32, ACCEPTED)
    link.send(body, state=state, tag=b"x" * 32)
    link.send(b"small")
    pair.pump()
    frames = pair.sent(">", "transfer")
    assert max(len(frame.octets) for frame in frames) == 600
    assert all(frame.state is not None for frame in frames[:-1]), "Part 4, 4.4.1: every frame names the transaction"
    first, second = (event[2] for event in expect(pair.server, events.DELIVERED, events.DELIVERED))
    assert first.payload == body and first.remote_state == state and not first.mixed_states
    assert second.payload == b"small"
    assert (link.credit, remote.credit) == (98, 98)


def test_ids_tags_and_formats_may_be_left_out_of_further_frames() -> None:
    wire, link = receiving()
    wire.send("transfer", payload=b"a", handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    assert link.current is not None and not link.current.complete
    assert link.session.incoming == {0: link.current}
    wire.send("transfer", payload=b"b", handle=0, more=True)
    wire.send("transfer", payload=b"", handle=0, delivery_id=0, more=True)
    assert wire.events() == []
    wire.send("transfer", payload=b"c", handle=0, delivery_tag=b"t", message_format=0)
    [(_, _, delivery)] = expect(wire.engine, events.DELIVERED)
    assert delivery.payload == b"abc" and delivery.complete and link.current is None
    wire.send("transfer", payload=b"d", handle=0, delivery_id=1, delivery_tag=b"u")
    assert kinds(wire.engine) == ["DELIVERED"] and link.credit == 98


def test_settled_on_any_frame_settles_the_delivery() -> None:
    wire, link = receiving()
    wire.send("transfer", payload=b"a", handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    wire.send("transfer", payload=b"b", handle=0, settled=True, more=True)
    wire.send("transfer", payload=b"c", handle=0, settled=False)
    [(_, _, delivery)] = expect(wire.engine, events.DELIVERED)
    assert delivery.settled and delivery.remote_settled and not link.session.incoming


def test_states_that_differ_between_frames_are_told() -> None:
    wire, _ = receiving()
    one, two = (composite("transactional-state", txn_id=name) for name in (b"1", b"2"))
    wire.send("transfer", payload=b"a", handle=0, delivery_id=0, delivery_tag=b"t", state=one, more=True)
    wire.send("transfer", payload=b"b", handle=0, state=two)
    wire.send("transfer", payload=b"a", handle=0, delivery_id=1, delivery_tag=b"u", state=one, more=True)
    wire.send("transfer", payload=b"b", handle=0)
    wire.send("transfer", payload=b"a", handle=0, delivery_id=2, delivery_tag=b"v", state=one, more=True)
    wire.send("transfer", payload=b"b", handle=0, state=one)
    found = [event[2] for event in wire.events()]
    assert [delivery.mixed_states for delivery in found] == [True, True, False]


def test_deliveries_interleave_across_links() -> None:
    wire, first = receiving()
    second = wire.attach(role=SENDER, handle=1, name="second")
    second.flow(10)
    wire.read()
    wire.send("transfer", payload=b"a", handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    wire.send("transfer", payload=b"1", handle=1, delivery_id=1, delivery_tag=b"t", more=True)
    wire.send("transfer", payload=b"b", handle=0, more=True)
    wire.send("transfer", payload=b"2", handle=1)
    wire.send("transfer", payload=b"c", handle=0)
    found = [(event[1], event[2].payload) for event in expect(wire.engine, events.DELIVERED, events.DELIVERED)]
    assert found == [(second, b"12"), (first, b"abc")]
    assert list(first.session.incoming) == [0, 1], "in ascending order, whichever was whole first"


def test_sessions_do_not_mix() -> None:
    pair = Pair().open()
    links = [pair.link(pair.begin()[0], f"l{number}") for number in range(3)]
    for count in range(4):
        for link, _ in links:
            link.send(f"{link.name} {count}".encode())
    pair.pump()
    for event in pair.server.take_events():
        assert event[2].payload.decode().split()[0] == event[1].name == event[2].link.name


def test_a_hundred_megabytes_arrive_whole() -> None:
    """What is read is cut anywhere; a copy of the beginning for each piece would take minutes here."""
    pair = Pair(client={"max_frame_size": 1 << 16}, server={"max_frame_size": 1 << 16}).open()
    session, _ = pair.begin()
    link, _ = pair.link(session)
    body = bytes(100 << 20)
    link.send(body)
    while True:
        up = pair.client.take_output()
        for begin in range(0, len(up), 50_000):
            pair.server.receive(up[begin : begin + 50_000])
        down = pair.server.take_output()
        pair.client.receive(down)
        if not up and not down:
            break
    [(_, _, delivery)] = expect(pair.server, events.DELIVERED)
    assert delivery.payload == body


# -- aborts ------------------------------------------------------------------------------------------------------------


def test_an_aborted_delivery_is_dropped() -> None:
    wire, link = receiving()
    wire.send("transfer", payload=b"a", handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    wire.send("transfer", payload=b"b", handle=0, aborted=True, more=True)
    [(_, where, delivery)] = expect(wire.engine, events.ABORTED)
    assert where is link and delivery.aborted and delivery.settled and delivery.payload == b""
    assert not link.session.incoming and link.current is None and link.credit == 99
    wire.send("transfer", payload=b"c", handle=0, delivery_id=1, delivery_tag=b"t")
    [(_, _, delivery)] = expect(wire.engine, events.DELIVERED)
    assert delivery.payload == b"c"


def test_aborting_what_is_partly_sent() -> None:
    wire, link = sending(max_frame_size=512, window=2)
    delivery = link.send(b"x" * 5000)
    waiting = link.send(b"never begun")
    assert len(wire.read()) == 2 and link.credit == 98
    link.abort(waiting)
    assert link.credit == 99 and waiting.id == -1
    link.abort(delivery)
    assert wire.read() == [], "the abort is a transfer, and waits for the window like others"
    [frame] = wire.send("flow", next_incoming_id=2, incoming_window=5, next_outgoing_id=0, outgoing_window=0)
    assert frame.name == "transfer" and frame.aborted and frame.delivery_id == 0 and frame.payload == b""
    assert not link.session.outgoing and not link.session.backlog
    done = link.send(b"y")
    with pytest.raises(EngineStateError, match="not on its way"):
        link.abort(done)
    assert done.id == 1


def test_what_waits_when_the_link_goes_is_given_up() -> None:
    for by_peer in (False, True):
        wire, link = sending(max_frame_size=512, window=1)
        session = link.session
        half, waiting = link.send(b"x" * 2000), link.send(b"waiting")
        assert len(wire.read()) == 1
        if by_peer:
            wire.send("detach", handle=0, closed=True)
        else:
            link.detach()
        assert link.unsent == [half, waiting] and not session.outgoing and not session.backlog
        link.detach()
        assert [frame.name for frame in wire.read()] == ["detach"]


def test_settling_what_is_not_begun_withdraws_it() -> None:
    wire, link = sending(window=0)
    delivery = link.send(b"x")
    link.session.disposition(delivery, ACCEPTED)
    assert not link.session.backlog and link.credit == 100 and wire.read() == []


# -- what is illegal ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "name", "condition"),
    [
        ({"delivery_id": None}, "end", "amqp:invalid-field"),
        ({"delivery_tag": None}, "end", "amqp:invalid-field"),
        ({"delivery_tag": b"x" * 33}, "end", "amqp:invalid-field"),
        ({"handle": None}, "close", "amqp:decode-error"),
        ({"rcv_settle_mode": 1}, "detach", "amqp:invalid-field"),
        ({"resume": True}, "detach", "amqp:not-implemented"),
        ({"handle": Raw(b"\x41")}, "close", "amqp:decode-error"),
        ({"delivery_id": Raw(b"\x54\x00")}, "close", "amqp:decode-error"),
        ({"delivery_tag": Raw(b"\xa1\x01t")}, "close", "amqp:decode-error"),
        ({"settled": Raw(b"\x43")}, "close", "amqp:decode-error"),
        ({"state": 5}, "close", "amqp:decode-error"),
        ({"state": composite("rejected", error=5)}, "close", "amqp:decode-error"),
        ({"state": composite("transactional-state")}, "close", "amqp:decode-error"),
    ],
)
def test_a_bad_first_transfer(fields: dict[str, Any], name: str, condition: str) -> None:
    wire, link = receiving()
    other = wire.begin(1)
    fields = {"handle": 0, "delivery_id": 0, "delivery_tag": b"t", **fields}
    [answer] = wire.send("transfer", **fields)
    assert (answer.name, answer.condition) == (name, condition) and answer.description
    assert "DELIVERED" not in kinds(wire.engine)
    assert other.local_open == (name != "close") or wire.engine.error is not None


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"delivery_id": 1, "delivery_tag": b"u"}, "end"),
        ({"delivery_tag": b"u"}, "end"),
        ({"message_format": 1}, "detach"),
    ],
)
def test_a_further_frame_that_contradicts_the_first(fields: dict[str, Any], name: str) -> None:
    wire, _ = receiving()
    wire.send("transfer", payload=b"a", handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    [answer] = wire.send("transfer", handle=0, **fields)
    assert (answer.name, answer.condition) == (name, "amqp:invalid-field")
    assert "DELIVERED" not in kinds(wire.engine)


@pytest.mark.parametrize("wide", [False, True])
def test_a_delivery_id_in_use_ends_the_session(wide: bool) -> None:
    wire, _ = receiving()
    octets = write("transfer", 0, b"", handle=0, delivery_id=0, delivery_tag=b"tttt", wide=wide)
    assert wire.raw(octets) == []
    [end] = wire.raw(octets)
    assert (end.name, end.condition) == ("end", "amqp:invalid-field") and "0" in end.description


def test_a_delivery_id_may_come_again_once_it_is_settled() -> None:
    """Some clients count deliveries for each link; nothing is ambiguous while the first is settled."""
    wire, link = receiving()
    for number in range(3):
        wire.send("transfer", payload=b"%d" % number, handle=0, delivery_id=0, delivery_tag=b"t")
        [(_, _, delivery)] = expect(wire.engine, events.DELIVERED)
        link.session.disposition(delivery, ACCEPTED)
    assert wire.engine.error is None


def test_rcv_settle_mode_of_a_transfer_is_kept() -> None:
    wire = Wire().open()
    wire.begin()
    link = wire.attach(role=SENDER, rcv_settle_mode=1)
    link.flow(5)
    wire.send("transfer", handle=0, delivery_id=0, delivery_tag=b"t", rcv_settle_mode=1)
    wire.send("transfer", handle=0, delivery_id=1, delivery_tag=b"u", rcv_settle_mode=0)
    wire.send("transfer", handle=0, delivery_id=2, delivery_tag=b"v")
    found = [event[2].rcv_settle_mode for event in wire.events()]
    assert found == [1, 0, None]
