"""Credit, drain and echo: the flow state of links (Part 2, 2.6.7)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine import events
from tests.engine.pair import SOURCE, TARGET, Pair, Wire, expect, kinds
from tests.wire.frames import RECEIVER, SENDER, write


def flow(handle: int = 0, **fields: Any) -> bytes:
    common: dict[str, Any] = {
        "next_incoming_id": 0, "incoming_window": 1000, "next_outgoing_id": 0, "outgoing_window": 1000, **fields,
    }  # fmt: skip
    return write("flow", handle=handle, **common)


def test_credit_is_what_the_receiver_says_less_what_is_on_its_way() -> None:
    wire = Wire().open()
    wire.begin()
    link = wire.attach(role=RECEIVER)
    wire.raw(flow(delivery_count=0, link_credit=5))
    assert link.credit == 5
    link.send(b"1")
    link.send(b"2")
    assert link.credit == 3 and link.delivery_count == 2
    wire.raw(flow(delivery_count=1, link_credit=5))
    assert link.credit == 4, "one of the two was seen"
    wire.raw(flow())
    assert link.credit == 4, "a flow without credit leaves it"
    wire.raw(flow(link_credit=2))
    assert link.credit == 0, "no delivery-count: it counts from our first"
    wire.raw(flow(delivery_count=2, link_credit=0xFFFFFFFF))
    assert link.credit == 0xFFFFFFFF
    link.send(b"3")
    assert link.credit == 0xFFFFFFFE and link.delivery_count == 3


def test_credit_lowered_below_what_was_sent_stops_the_sender() -> None:
    wire = Wire().open()
    wire.begin()
    link = wire.attach(role=RECEIVER)
    wire.raw(flow(delivery_count=0, link_credit=5))
    for _ in range(4):
        link.send(b"x")
    wire.raw(flow(delivery_count=1, link_credit=1))
    assert link.credit == -2
    with pytest.raises(ValueError, match="no credit"):
        link.send(b"x")
    wire.raw(flow(delivery_count=4, link_credit=2))
    assert link.credit == 2


def test_credit_taken_back_from_what_waits_for_the_window() -> None:
    wire = Wire().open()
    wire.begin(incoming_window=1)
    link = wire.attach(role=RECEIVER)
    other = wire.attach(role=RECEIVER, handle=1, name="other")
    wire.raw(flow(incoming_window=1, delivery_count=0, link_credit=5))
    wire.raw(flow(1, incoming_window=1, delivery_count=0, link_credit=5))
    for number in range(4):
        link.send(b"%d" % number)
    other.send(b"other")
    assert [frame.payload for frame in wire.read()] == [b"0"]
    assert link.credit == 1
    # It takes its credit back, and then opens the window: only what has credit goes, and the other link is not held up.
    wire.raw(flow(incoming_window=0, next_incoming_id=1, delivery_count=0, link_credit=2))
    assert link.credit == -2
    frames = wire.raw(write("flow", next_incoming_id=1, incoming_window=50, next_outgoing_id=0, outgoing_window=0))
    assert [frame.payload for frame in frames] == [b"1", b"other"]
    frames = wire.raw(flow(incoming_window=50, next_incoming_id=3, delivery_count=2, link_credit=10))
    assert [frame.payload for frame in frames] == [b"2", b"3"]
    assert link.credit == 8 and link.delivery_count == 4 and not link.queued


def test_what_was_held_for_want_of_credit_is_not_overtaken() -> None:
    """Found by two engines at random: the second message of a link waited for the window, the first for credit."""
    wire = Wire().open()
    wire.begin(incoming_window=0)
    link, other = (wire.attach(role=RECEIVER, handle=handle, name=f"link{handle}") for handle in range(2))
    wire.raw(flow(0, delivery_count=0, link_credit=2, incoming_window=0))
    wire.raw(flow(1, delivery_count=0, link_credit=1, incoming_window=0))
    link.send(b"first")
    other.send(b"between")
    link.send(b"second")
    wire.raw(flow(0, delivery_count=0, link_credit=0, incoming_window=0))
    sent = wire.raw(flow(1, delivery_count=0, link_credit=1, incoming_window=1))
    assert [frame.payload for frame in sent] == [b"between"]
    sent = wire.raw(flow(0, next_incoming_id=1, delivery_count=0, link_credit=2))
    assert [frame.payload for frame in sent] == [b"first", b"second"]


def test_credit_granted_before_the_attach_is_answered() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    link = session.receiver("r", source=SOURCE, target=TARGET)
    link.flow(7)
    pair.pump()
    assert pair.sent(">", "flow")[0].delivery_count is None
    attached, flowed = expect(pair.server, events.ATTACHED, events.FLOWED)
    other = attached[1]
    assert flowed == (events.FLOWED, other, None) and other.credit == 7
    other.attach()
    for _ in range(3):
        other.send(b"x")
    pair.pump()
    assert link.credit == 4 and other.credit == 4
    assert kinds(pair.client) == ["ATTACHED", "DELIVERED", "DELIVERED", "DELIVERED"]


def test_a_delivery_beyond_the_credit_detaches_the_link() -> None:
    wire = Wire().open()
    wire.begin()
    link = wire.attach(role=SENDER)
    link.flow(1)
    wire.read()
    assert wire.send("transfer", handle=0, delivery_id=0, delivery_tag=b"a") == []
    [detach] = wire.send("transfer", handle=0, delivery_id=1, delivery_tag=b"b")
    assert (detach.name, detach.condition) == ("detach", "amqp:link:transfer-limit-exceeded")
    _, (_, detached, closed, error) = expect(wire.engine, events.DELIVERED, events.DETACHED)
    assert detached is link and closed and error.condition == "amqp:link:transfer-limit-exceeded"
    assert wire.send("transfer", handle=0, delivery_id=2, delivery_tag=b"c") == []
    assert wire.send("detach", handle=0, closed=True) == [] and wire.events() == []


def test_drain_uses_up_the_credit() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    receiver, sender = pair.link(session, sender=False, credit=10)
    sender.send(b"1")
    receiver.flow(receiver.credit, drain=True)
    pair.pump()
    assert sender.drain and sender.credit == 9
    sender.send(b"2")
    sender.drained()
    sender.drained()
    pair.pump()
    assert (sender.credit, receiver.credit) == (0, 0)
    assert sender.delivery_count == receiver.delivery_count == 10
    [answer] = pair.sent("<", "flow")
    assert answer.drain and answer.link_credit == 0 and answer.delivery_count == 10
    assert kinds(pair.client) == ["DELIVERED", "DELIVERED", "FLOWED"]
    receiver.flow(3)
    pair.pump()
    assert sender.credit == 3 and not sender.drain
    sender.drained()
    pair.pump()
    assert sender.credit == 3


def test_drain_waits_for_what_is_queued() -> None:
    wire = Wire().open()
    wire.begin(incoming_window=1)
    link = wire.attach(role=RECEIVER)
    wire.raw(flow(incoming_window=1, delivery_count=0, link_credit=5))
    link.send(b"0")
    link.send(b"1")
    wire.read()
    wire.raw(flow(incoming_window=0, next_incoming_id=1, delivery_count=1, link_credit=4, drain=True))
    link.drained()
    assert wire.read() == []
    frames = wire.raw(write("flow", next_incoming_id=1, incoming_window=9, next_outgoing_id=0, outgoing_window=0))
    assert [frame.name for frame in frames] == ["transfer", "flow"]
    assert frames[1].delivery_count == 5 and frames[1].link_credit == 0 and frames[1].drain


def test_a_senders_flow_never_turns_the_count_back() -> None:
    wire = Wire().open()
    wire.begin()
    link = wire.attach(role=SENDER)
    link.flow(10)
    wire.read()
    for number in range(3):
        wire.send("transfer", handle=0, delivery_id=number, delivery_tag=b"%d" % number)
    wire.raw(flow(delivery_count=1, link_credit=9))
    assert (link.credit, link.delivery_count) == (7, 3)
    wire.raw(flow(delivery_count=5, available=44))
    assert (link.credit, link.delivery_count, link.available) == (5, 5, 44)
    wire.raw(flow(delivery_count=50))
    assert (link.credit, link.delivery_count) == (0, 50)


def test_echo_of_a_link_is_answered_with_its_state() -> None:
    wire = Wire().open()
    wire.begin()
    link = wire.attach(role=RECEIVER)
    link.available = 12
    [answer] = wire.raw(flow(delivery_count=0, link_credit=5, echo=True))
    assert (answer.handle, answer.link_credit, answer.delivery_count) == (0, 5, 0)
    assert answer.available == 12 and answer.echo is False
    expect(wire.engine, events.FLOWED)
    link = wire.attach(role=SENDER, handle=1, name="b")
    link.flow(7, echo=True)
    [asked] = wire.read()
    assert asked.echo is True and asked.link_credit == 7
    [answer] = wire.raw(flow(1, echo=True))
    assert (answer.link_credit, answer.delivery_count) == (7, 0)


def test_flow_properties_and_available_are_kept() -> None:
    """Part 4, 4.4.3: a transactional acquisition names its transaction in the properties of the flow."""
    pair = Pair().open()
    session, _ = pair.begin()
    receiver, sender = pair.link(session, sender=False)
    receiver.flow(5, properties={"txn-id": b"abc"})
    pair.pump()
    assert sender.flow_properties == {"txn-id": b"abc"}
    receiver.flow(5)
    pair.pump()
    assert sender.flow_properties is None


def test_credit_taken_back_may_have_been_used_already() -> None:
    """What the sender wrote before it heard of the lower credit is within its rights, and no more than that."""
    wire = Wire().open()
    wire.begin()
    link = wire.attach(role=SENDER, initial_delivery_count=0xFFFFFFFE)
    link.flow(5)
    link.flow(0)
    wire.read()
    for number in range(5):
        assert wire.send("transfer", handle=0, delivery_id=number, delivery_tag=b"t", settled=True) == []
    assert kinds(wire.engine) == ["DELIVERED"] * 5
    assert (link.credit, link.delivery_count) == (0, 3)
    link.flow(2)
    [flow_frame] = wire.read()
    assert (flow_frame.delivery_count, flow_frame.link_credit) == (3, 2)
    link.flow(1)
    wire.read()
    for number in range(5, 7):
        assert wire.send("transfer", handle=0, delivery_id=number, delivery_tag=b"t", settled=True) == []
    [detach] = wire.send("transfer", handle=0, delivery_id=7, delivery_tag=b"t", settled=True)
    assert detach.condition == "amqp:link:transfer-limit-exceeded"
