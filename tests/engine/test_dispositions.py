"""Dispositions: ranges out and in, settlement by either end, deliveries whose link is gone."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine import events
from jmsish.engine.conditions import EngineStateError
from jmsish.engine.delivery import Delivery
from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    RELEASED,
    AmqpError,
    Declared,
    DeliveryState,
    Modified,
    Received,
    Rejected,
    TransactionalState,
    UnknownState,
)
from jmsish.types import Described, Symbol, ULong
from tests.engine.pair import Pair, Wire, expect, kinds
from tests.engine.test_transfers import receiving, sending
from tests.wire.frames import RECEIVER, SENDER, Raw, composite, write


def deliver(wire: Wire, count: int, first: int = 0, handle: int = 0) -> list[Delivery]:
    """Deliveries from the peer."""
    for number in range(first, first + count):
        wire.send("transfer", payload=b"m", handle=handle, delivery_id=number, delivery_tag=b"%04d" % number)
    return [event[2] for event in wire.events() if event[0] == events.DELIVERED]


def said(wire: Wire) -> list[tuple[int, int, bool, str]]:
    frames = wire.read()
    assert {frame.name for frame in frames} <= {"disposition"}
    return [(frame.first, frame.last, frame.settled, frame.state and frame.state.name) for frame in frames]


# -- out ---------------------------------------------------------------------------------------------------------------


def test_consecutive_dispositions_make_one_range() -> None:
    wire, link = receiving()
    deliveries = deliver(wire, 5)
    for delivery in deliveries:
        link.session.disposition(delivery, ACCEPTED)
    assert not link.session.incoming and all(delivery.settled for delivery in deliveries)
    [frame] = wire.read()
    assert (frame.role, frame.first, frame.last, frame.settled) == (RECEIVER, 0, 4, True)
    assert frame.octets == write("disposition", role=RECEIVER, first=Raw(b"\x70\0\0\0\0"), last=Raw(b"\x70\0\0\0\4"),
                                 settled=True, state=composite("accepted"))  # fmt: skip


def test_a_change_of_state_settlement_or_order_ends_the_range() -> None:
    wire, link = receiving()
    d = deliver(wire, 9)
    session = link.session
    session.disposition(d[0], ACCEPTED)
    session.disposition(d[1], ACCEPTED)
    session.disposition(d[2], RELEASED)
    session.disposition(d[3], RELEASED, False)
    session.disposition(d[5], RELEASED, False)
    session.disposition(d[4], RELEASED, False)
    session.disposition(d[7], None)
    session.disposition(d[8], None)
    assert said(wire) == [
        (0, 1, True, "accepted"),
        (2, 2, True, "released"),
        (3, 3, False, "released"),
        (5, 5, False, "released"),
        (4, 4, False, "released"),
        (7, 7, True, None),
        (8, 8, True, None),
    ]
    assert list(session.incoming) == [3, 4, 5, 6]


def test_equal_states_that_are_different_objects_share_a_range() -> None:
    wire, link = receiving()
    for delivery in deliver(wire, 4):
        link.session.disposition(delivery, TransactionalState(b"t", ACCEPTED))
    assert said(wire) == [(0, 3, True, "transactional-state")]


def test_ranges_span_links_of_the_session() -> None:
    wire, link = receiving()
    second = wire.attach(role=SENDER, handle=1, name="second")
    second.flow(10)
    wire.read()
    found = deliver(wire, 2) + deliver(wire, 2, 2, handle=1) + deliver(wire, 1, 4)
    for delivery in found:
        link.session.disposition(delivery, ACCEPTED)
    assert said(wire) == [(0, 4, True, "accepted")]


def test_dispositions_leave_before_any_later_frame_of_the_session() -> None:
    wire, link = receiving()
    sender = wire.attach(role=RECEIVER, handle=1, name="out")
    wire.send("flow", next_incoming_id=0, incoming_window=99, next_outgoing_id=0, outgoing_window=0, handle=1,
              delivery_count=0, link_credit=9)  # fmt: skip
    d = deliver(wire, 4)
    session = link.session
    for delivery, act in zip(
        d,
        (lambda: sender.send(b"fast"), lambda: sender.send(b"general", tag=b"t"), lambda: link.flow(5), link.detach),
        strict=True,
    ):
        session.disposition(delivery, ACCEPTED)
        act()
    assert [frame.name for frame in wire.read()] == [
        "disposition", "transfer", "disposition", "transfer", "disposition", "flow", "disposition", "detach",
    ]  # fmt: skip


STATES: list[DeliveryState | None] = [
    ACCEPTED,
    RELEASED,
    Rejected(),
    Rejected(AmqpError("amqp:decode-error", "bad", {"key": [1, b"2", None]})),
    MODIFIED_FAILED,
    Modified(undeliverable_here=True),
    Modified(True, True, {"x-opt-reason": "so"}),
    Received(1, 1 << 40),
    Declared(b"\0" * 32),
    TransactionalState(b"id"),
    TransactionalState(b"id", Rejected(AmqpError("a:b", "é" * 100))),
    UnknownState(ULong(0x99), [1]),
    UnknownState(Symbol("com.example:state"), {"a": True}),
    None,
]


@pytest.mark.parametrize("state", STATES, ids=repr)
@pytest.mark.parametrize("settled", [False, True])
def test_every_state_travels(state: DeliveryState | None, settled: bool) -> None:
    pair = Pair().open()
    session, other = pair.begin()
    link, _ = pair.link(session)
    sent = link.send(b"m")
    pair.pump()
    [(_, _, delivery)] = expect(pair.server, events.DELIVERED)
    other.disposition(delivery, state, settled)
    pair.pump()
    assert pair.client.take_events() == [(events.DISPOSED, session, [sent], state, settled, False)]
    assert sent.remote_state == state and sent.remote_settled == settled and not sent.settled
    assert bool(session.outgoing) == bool(other.incoming) == (not settled)


def test_a_state_that_does_not_fit_the_peers_frames_is_refused_here() -> None:
    wire = Wire().open(max_frame_size=512)
    wire.begin()
    link = wire.attach(role=SENDER)
    link.flow(5)
    wire.read()
    [delivery] = deliver(wire, 1)
    with pytest.raises(EngineStateError, match="frame-size-too-small"):
        link.session.disposition(delivery, Rejected(AmqpError("a:b", "x" * 600)))
    assert not delivery.settled and link.session.incoming
    link.session.disposition(delivery, Rejected(AmqpError("a:b", "x" * 300)))
    assert said(wire) == [(0, 0, True, "rejected")]


def test_the_receiver_settles_second() -> None:
    pair = Pair().open()
    session, other = pair.begin()
    link, _ = pair.link(session, rcv_settle_mode=1)
    sent = link.send(b"m")
    pair.pump()
    [(_, _, delivery)] = expect(pair.server, events.DELIVERED)
    other.disposition(delivery, ACCEPTED, False)
    pair.pump()
    expect(pair.client, events.DISPOSED)
    assert sent.remote_state is ACCEPTED and not sent.remote_settled
    session.disposition(sent, ACCEPTED, True)
    pair.pump()
    assert pair.server.take_events() == [(events.DISPOSED, other, [delivery], ACCEPTED, True, True)]
    assert not session.outgoing and not other.incoming
    other.disposition(delivery, ACCEPTED, True)
    pair.pump()
    assert kinds(pair.client) == [], "the sender has settled: nothing is left to be said"


def test_settling_twice_is_a_mistake_and_settling_what_the_peer_settled_is_not() -> None:
    pair = Pair().open()
    session, other = pair.begin()
    link, _ = pair.link(session)
    one, two = link.send(b"1"), link.send(b"2", settled=True)
    pair.pump()
    first, second = (event[2] for event in pair.server.take_events())
    other.disposition(first, ACCEPTED)
    with pytest.raises(EngineStateError, match="settled already"):
        other.disposition(first, RELEASED)
    other.disposition(second, ACCEPTED)
    pair.pump()
    session.disposition(one, ACCEPTED)
    with pytest.raises(EngineStateError, match="settled already"):
        session.disposition(two, ACCEPTED)


# -- in ----------------------------------------------------------------------------------------------------------------


def disposition(first: int, last: int | None, **fields: Any) -> bytes:
    fields = {"role": RECEIVER, "settled": True, "state": composite("accepted"), **fields}
    return write("disposition", first=first, last=last, **fields)


def test_one_event_for_a_range_with_holes() -> None:
    wire, link = sending()
    sent = [link.send(b"%d" % number, settled=number % 3 == 0) for number in range(10)]
    wire.raw(disposition(2, 7))
    [(_, session, found, state, settled, role)] = expect(wire.engine, events.DISPOSED)
    assert found == [sent[2], sent[4], sent[5], sent[7]]
    assert state is ACCEPTED and settled and not role and session is link.session
    assert list(session.outgoing) == [1, 8]
    wire.raw(disposition(2, 7))
    assert wire.events() == [], "nothing of it is unsettled"


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, None, [0]),
        (3, 3, [3]),
        (0, 4, [0, 1, 2, 3, 4]),
        (0, 0x7FFFFFFF, [0, 1, 2, 3, 4]),
        (0, 0xFFFFFFFF, [0, 1, 2, 3, 4]),
        (2, 0xFFFFFFF0, [2, 3, 4]),
        (0xFFFFFFF0, 1, [0, 1]),
        (100, 200, []),
    ],
)
def test_ranges_of_any_size(first: int, last: int | None, expected: list[int]) -> None:
    """Whichever is smaller is walked: the range, or what is unsettled."""
    wire, link = sending()
    for _ in range(5):
        link.send(b"m")
    wire.raw(disposition(first, last))
    found = [delivery.id for event in wire.events() for delivery in event[2]]
    assert found == expected and wire.engine.error is None


def test_a_range_backwards_ends_the_session() -> None:
    wire, link = sending()
    for _ in range(5):
        link.send(b"m")
    wire.read()
    [end] = wire.raw(disposition(4, 2))
    assert (end.name, end.condition) == ("end", "amqp:invalid-field")
    assert len(link.session.outgoing) == 5


@pytest.mark.parametrize(
    "fields",
    [
        {"last": None},
        {"first": Raw(b"\x70\0\0\0\1"), "last": Raw(b"\x70\0\0\0\1")},
        {"first": Raw(b"\x70\0\0\0\1"), "last": Raw(b"\x70\0\0\0\1"), "batchable": True},
        {"first": Raw(b"\x70\0\0\0\1"), "last": Raw(b"\x70\0\0\0\1"), "settled": Raw(b"\x56\x01")},
        {"first": Raw(b"\x70\0\0\0\1"), "last": Raw(b"\x52\1")},
        {"state": composite("accepted", wide=True)},
        {"state": Raw(b"\x00\x80\0\0\0\0\0\0\0\x24\x45")},
        {"state": Raw(b"\x00\x53\x24\xc0\x01\x00")},
        {"state": Raw(b"\x00\x53\x24\xd0\0\0\0\4\0\0\0\0")},
        {"state": composite("accepted", symbolic=True)},
    ],
)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("symbolic", [False, True])
def test_any_layout_of_a_disposition_is_read_alike(fields: dict[str, Any], wide: bool, symbolic: bool) -> None:
    wire, link = sending()
    sent = [link.send(b"m") for _ in range(3)]
    fields = {"role": RECEIVER, "first": 1, "last": 1, "settled": True, "state": composite("accepted"), **fields}
    wire.raw(write("disposition", wide=wide, symbolic=symbolic, **fields))
    assert wire.events() == [(events.DISPOSED, link.session, [sent[1]], ACCEPTED, True, False)]


@pytest.mark.parametrize("missing", ["role", "first"])
def test_a_disposition_without_a_mandatory_field_closes(missing: str) -> None:
    wire, _ = sending()
    fields: dict[str, Any] = {"role": RECEIVER, "first": 0}
    del fields[missing]
    [close] = wire.send("disposition", **fields)
    assert close.condition == "amqp:decode-error" and f"disposition.{missing} is missing" in close.description


def test_settled_without_a_state() -> None:
    wire, link = sending()
    sent = link.send(b"m")
    wire.raw(disposition(0, 0, state=None))
    assert wire.events() == [(events.DISPOSED, link.session, [sent], None, True, False)]


def test_states_may_change_until_settled() -> None:
    wire, link = sending()
    sent = link.send(b"m")
    wire.raw(disposition(0, 0, settled=False, state=composite("received", section_number=1, section_offset=0)))
    assert sent.remote_state == Received(1, 0)
    wire.raw(disposition(0, 0, settled=None, state=Described(ULong(0x27), [True])))
    assert sent.remote_state == MODIFIED_FAILED and not sent.remote_settled
    wire.raw(disposition(0, 0))
    assert sent.remote_state is ACCEPTED and sent.remote_settled
    assert kinds(wire.engine) == ["DISPOSED"] * 3


def test_dispositions_reach_deliveries_of_a_detached_link() -> None:
    """W16: they stay with the session, also while a link of the same name is attached anew."""
    wire, link = sending()
    sent = link.send(b"m")
    wire.send("detach", handle=0, closed=True)
    link.detach()
    expect(wire.engine, events.DETACHED)
    again = wire.attach(role=RECEIVER, handle=0)
    assert again is not link
    wire.events()
    wire.raw(disposition(0, 0, state=composite("released")))
    assert wire.events() == [(events.DISPOSED, link.session, [sent], RELEASED, True, False)]


def test_deliveries_of_a_detached_link_can_still_be_settled_or_forgotten() -> None:
    wire, link = receiving()
    one, two = deliver(wire, 2)
    wire.send("detach", handle=0)
    link.detach()
    wire.read()
    link.session.disposition(one, RELEASED)
    link.session.forget(two)
    link.session.forget(two)
    assert not link.session.incoming
    assert said(wire) == [(0, 0, True, "released")]


def test_the_sender_settles_what_is_on_its_way() -> None:
    wire, link = receiving()
    wire.send("transfer", payload=b"a", handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    wire.raw(disposition(0, 0, role=SENDER))
    assert wire.events() == [], "it is reported when it is whole"
    wire.send("transfer", payload=b"b", handle=0)
    [(_, _, delivery)] = expect(wire.engine, events.DELIVERED)
    assert delivery.remote_settled and not link.session.incoming


def test_a_large_ledger_costs_no_more_for_a_small_range() -> None:
    wire, link = sending(credit=20_000, window=20_000)
    for _ in range(10_000):
        link.send(b"m")
    for number in range(0, 10_000, 2):
        wire.raw(disposition(number, number))
    for number in range(9_999, 0, -2):
        wire.raw(disposition(number, number + 1))
    assert not link.session.outgoing
    assert len(wire.events()) == 10_000
