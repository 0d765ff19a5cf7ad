"""Attach, detach, refusal, stealing, handles."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine import events
from jmsish.engine.conditions import EngineStateError
from jmsish.engine.outcomes import (
    MODIFIED_FAILED,
    AmqpError,
    Coordinator,
    Source,
    Target,
    UnknownState,
)
from jmsish.types import Described, Symbol, UInt, ULong
from tests.engine.pair import SOURCE, TARGET, Pair, Wire, expect, kinds
from tests.wire.frames import RECEIVER, SENDER, Raw, composite, write


def test_everything_an_attach_says_arrives() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    source = Source(
        address="queue",
        durable=2,
        expiry_policy="never",
        timeout=30,
        distribution_mode="copy",
        filter={"jms-selector": Described(ULong(0x468C00000004), "a = 1")},
        default_outcome=MODIFIED_FAILED,
        outcomes=("amqp:accepted:list", "amqp:modified:list"),
        capabilities=("queue",),
    )
    target = Target(address="t", dynamic=True, dynamic_node_properties={"lifetime-policy": Described(ULong(0x2B), [])})
    link = session.receiver(
        "l",
        source=source,
        target=target,
        snd_settle_mode=1,
        rcv_settle_mode=1,
        properties={"p": UInt(7)},
        offered_capabilities=("o",),
        desired_capabilities=("d", "e"),
        max_message_size=1 << 40,
    )
    pair.pump()
    [(_, other)] = expect(pair.server, events.ATTACHED)
    assert other.is_sender and not other.attached and other.remote_attached
    assert other.remote_source == source and other.remote_target == target
    assert (other.snd_settle_mode, other.rcv_settle_mode) == (1, 1), "the answer echoes what was asked"
    assert other.remote_properties == {"p": 7}
    assert other.remote_offered_capabilities == ("o",) and other.remote_desired_capabilities == ("d", "e")
    assert other.remote_max_message_size == 1 << 40
    other.snd_settle_mode = 0
    other.attach(offered_capabilities=("d",), max_message_size=1000, properties={"q": "r"})
    pair.pump()
    expect(pair.client, events.ATTACHED)
    assert link.remote_source == source and link.remote_target == target
    assert link.remote_snd_settle_mode == 0 and link.remote_rcv_settle_mode == 1
    assert link.remote_offered_capabilities == ("d",) and link.remote_max_message_size == 1000
    assert link.attached and link.remote_attached


def test_a_coordinator_and_unknown_termini() -> None:
    wire = Wire().open()
    wire.begin()
    link = wire.attach(role=SENDER, target=composite("coordinator", capabilities=["amqp:local-transactions"]))
    assert link.remote_target == Coordinator(("amqp:local-transactions",))
    link = wire.attach(role=SENDER, handle=1, name="b", target=Described(Symbol("com.example:odd"), [1]))
    assert link.remote_target is not None and "odd" in repr(link.remote_target)
    link = wire.attach(role=RECEIVER, handle=2, name="c", source=composite("source", symbolic=True, address="a"))
    assert link.remote_source == Source(address="a")


def test_default_outcomes_are_kept_whatever_they_are() -> None:
    """W4: the broker refuses them by kind, so it has to see them."""
    wire = Wire().open()
    wire.begin()
    odd = {
        "unknown": Described(ULong(0x9999), []),
        "source": composite("source"),
        "bare": 5,
        "accepted": composite("accepted", symbolic=True),
    }
    found: dict[str, Any] = {}
    for handle, (name, value) in enumerate(odd.items()):
        source = composite("source", address="q", default_outcome=value)
        link = wire.attach(role=RECEIVER, handle=handle, name=name, source=source)
        assert isinstance(link.remote_source, Source)
        found[name] = link.remote_source.default_outcome
    assert found["unknown"] == UnknownState(0x9999, [])
    assert found["source"].descriptor == 0x28 and found["bare"] == UnknownState(None, 5)
    assert found["accepted"].encoded == b"\x00\x53\x24\x45"


def test_refusing_a_link() -> None:
    """Part 2, 2.6.3: the attach without the terminus that does not come to be, then the detach that says why."""
    pair = Pair().open()
    session, _ = pair.begin()
    error = AmqpError("amqp:not-found", "no such queue")
    sender = session.sender("s", source=SOURCE, target=TARGET)
    receiver = session.receiver("r", source=SOURCE, target=TARGET)
    pair.pump()
    for _, link in expect(pair.server, events.ATTACHED, events.ATTACHED):
        link.refuse(error)
    pair.pump()
    found = expect(pair.client, events.ATTACHED, events.DETACHED, events.ATTACHED, events.DETACHED)
    assert found[1] == (events.DETACHED, sender, True, error)
    assert found[3] == (events.DETACHED, receiver, True, error)
    assert sender.remote_target is None and receiver.remote_source is None
    sender.detach()
    receiver.detach()
    pair.pump()
    assert kinds(pair.server) == ["DETACHED", "DETACHED"]


def test_detach_keeps_the_link_alive_for_the_peer_and_close_does_not() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    for closed in (False, True):
        link, other = pair.link(session)
        link.detach(closed=closed, error=None)
        link.detach()
        pair.pump()
        assert pair.server.take_events() == [(events.DETACHED, other, closed, None)]
        assert other.attached and not other.remote_attached
        other.detach(closed=closed)
        pair.pump()
        assert pair.client.take_events() == [(events.DETACHED, link, closed, None)]
        assert not session.links and not session.remote_links


def test_a_handle_is_used_again_after_both_detached() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    first, other = pair.link(session, "first")
    second, _ = pair.link(session, "second")
    assert (first.handle, second.handle) == (0, 1)
    first.detach()
    pair.pump()
    expect(pair.server, events.DETACHED)
    third, _ = pair.link(session, "third")
    assert third.handle == 2, "the peer has not detached yet"
    other.detach()
    pair.pump()
    expect(pair.client, events.DETACHED)
    fourth, far = pair.link(session, "fourth")
    assert fourth.handle == 0
    fourth.send(b"x")
    pair.pump()
    assert [event[1] for event in pair.server.take_events() if event[0] == events.DELIVERED] == [far]


def test_a_name_is_used_again_after_detach() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    for _ in range(3):
        link, other = pair.link(session, "same")
        link.detach()
        other_session = other.session
        pair.pump()
        other.detach()
        pair.pump()
        assert kinds(pair.client) == ["DETACHED"] and kinds(pair.server) == ["DETACHED"]
        assert not other_session.links


def test_the_same_name_in_both_directions() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    sender, _ = pair.link(session, "x")
    receiver, _ = pair.link(session, "x", sender=False)
    assert sender.attached and receiver.attached
    with pytest.raises(EngineStateError, match="attached already"):
        session.sender("x", source=SOURCE, target=TARGET)


def test_links_pipelined_by_one_name_are_answered_in_order() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    first = session.sender("x", source=SOURCE, target=TARGET)
    first.detach()
    second = session.sender("x", source=SOURCE, target=Target(address="second"))
    pair.pump()
    for event in pair.server.take_events():
        if event[0] == events.ATTACHED:
            event[1].attach()
        else:
            event[1].detach()
    pair.pump()
    assert second.remote_target == Target(address="second")
    assert pair.client.take_events() == [(events.DETACHED, first, True, None), (events.ATTACHED, second)]


def test_an_attach_on_a_handle_in_use_ends_the_session() -> None:
    wire = Wire().open()
    wire.begin()
    wire.attach(role=SENDER, name="a")
    [end] = wire.send("attach", name="b", handle=0, role=SENDER, initial_delivery_count=0)
    assert (end.name, end.condition) == ("end", "amqp:session:handle-in-use")


@pytest.mark.parametrize("name", ["flow", "transfer", "detach"])
def test_a_frame_on_a_handle_never_attached_ends_the_session(name: str) -> None:
    wire = Wire().open()
    wire.begin()
    other = wire.begin(1)
    fields: dict[str, Any] = {"handle": 3}
    if name == "flow":
        fields |= {"next_incoming_id": 0, "incoming_window": 1, "next_outgoing_id": 0, "outgoing_window": 0}
    [end] = wire.send(name, **fields)
    assert (end.name, end.condition) == ("end", "amqp:session:unattached-handle")
    assert "3" in end.description and other.local_open


def test_a_transfer_where_the_peer_receives_ends_the_session() -> None:
    wire = Wire().open()
    wire.begin()
    wire.attach(role=RECEIVER)
    [end] = wire.send("transfer", handle=0, delivery_id=0, delivery_tag=b"t")
    assert (end.name, end.condition) == ("end", "amqp:not-allowed")


@pytest.mark.parametrize("missing", ["name", "handle", "role"])
def test_an_attach_without_a_mandatory_field_closes(missing: str) -> None:
    wire = Wire().open()
    wire.begin()
    fields: dict[str, Any] = {"name": "x", "handle": 0, "role": RECEIVER}
    del fields[missing]
    [close] = wire.send("attach", **fields)
    assert (close.name, close.condition) == ("close", "amqp:decode-error")
    assert f"attach.{missing} is missing" in close.description


def test_a_senders_attach_without_an_initial_delivery_count_ends_the_session() -> None:
    wire = Wire().open()
    wire.begin()
    [end] = wire.send("attach", name="x", handle=0, role=SENDER)
    assert (end.name, end.condition) == ("end", "amqp:invalid-field")


def test_a_handle_beyond_our_limit_closes() -> None:
    wire = Wire().open()
    wire.begin()
    [close] = wire.send("attach", name="x", handle=1 << 20, role=RECEIVER)
    assert close.condition == "amqp:connection:framing-error"


def test_no_more_links_than_the_peer_allows() -> None:
    wire = Wire().open()
    wire.send("begin", next_outgoing_id=0, incoming_window=1, outgoing_window=1, handle_max=0)
    [(_, session)] = expect(wire.engine, events.BEGUN)
    session.accept_begin()
    session.sender("a", source=SOURCE, target=TARGET)
    with pytest.raises(EngineStateError, match="1 links"):
        session.sender("b", source=SOURCE, target=TARGET)


@pytest.mark.parametrize("same_session", [True, False])
def test_a_link_attached_anew_is_stolen(same_session: bool) -> None:
    wire = Wire().open()
    session = wire.begin()
    channel = 0
    if not same_session:
        wire.begin(1)
        channel = 1
    old = wire.attach(role=SENDER)
    frames = wire.send("attach", channel, name="link", handle=5, role=SENDER, initial_delivery_count=0)
    [detach] = frames
    assert (detach.name, detach.condition, detach.closed) == ("detach", "amqp:link:stolen", True)
    assert detach.channel == session.channel
    detached, attached = expect(wire.engine, events.DETACHED, events.ATTACHED)
    assert detached[1] is old and detached[3].condition == "amqp:link:stolen" and attached[1] is not old
    attached[1].attach()
    [attach] = wire.read()
    assert attach.name == "attach"
    # What still comes for the old one is dropped, and its detach is the answer to ours.
    assert wire.send("transfer", handle=0, delivery_id=0, delivery_tag=b"t") == []
    assert wire.send("detach", handle=0) == [] and wire.events() == []
    assert old.state != attached[1].state


def test_an_attach_too_large_for_the_peer_is_refused_here() -> None:
    wire = Wire().open(max_frame_size=512)
    session = wire.begin()
    with pytest.raises(EngineStateError, match=r"amqp:frame-size-too-small: the attach takes \d+ octets.*512"):
        session.sender("n" * 500, source=SOURCE, target=TARGET)
    assert wire.read() == [] and not session.links
    session.sender("n", source=SOURCE, target=TARGET)


def test_an_error_too_large_for_the_peer_is_cut() -> None:
    wire = Wire().open(max_frame_size=512)
    wire.begin()
    link = wire.attach(role=RECEIVER)
    link.detach(error=AmqpError("amqp:internal-error", "é" * 1000, {"more": "x" * 1000}))
    [detach] = wire.read()
    assert len(detach.octets) <= 512 and detach.condition == "amqp:internal-error"
    assert detach.description.startswith("é" * 100)


def test_a_link_refused_or_closed_by_the_peer_before_it_is_answered() -> None:
    wire = Wire().open()
    wire.begin()
    wire.raw(write("attach", name="x", handle=0, role=RECEIVER) + write("detach", handle=0, closed=True))
    attached, detached = expect(wire.engine, events.ATTACHED, events.DETACHED)
    attached[1].attach()
    detached[1].detach()
    assert [frame.name for frame in wire.read()] == ["attach", "detach"]
    assert not attached[1].session.links


def test_wrong_verbs_are_refused() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    sender, receiver = pair.link(session)
    with pytest.raises(EngineStateError, match="grants credit"):
        sender.flow(1)
    with pytest.raises(EngineStateError, match="cannot send"):
        receiver.send(b"")
    with pytest.raises(EngineStateError, match="attached already"):
        receiver.attach()
    with pytest.raises(ValueError, match="no credit"):
        for _ in range(101):
            sender.send(b"")
    sender.detach()
    with pytest.raises(EngineStateError, match="detached"):
        sender.send(b"")
    session.end()
    with pytest.raises(EngineStateError, match="ended"):
        session.sender("x", source=SOURCE, target=TARGET)


def test_a_send_on_a_link_the_peer_has_detached_is_told_as_unsent() -> None:
    pair = Pair().open()
    session, _ = pair.begin()
    link, other = pair.link(session)
    other.detach(error=AmqpError("amqp:internal-error"))
    pair.pump()
    delivery = link.send(b"late")
    assert link.unsent == [delivery] and delivery.id == -1
    pair.pump()
    assert kinds(pair.server) == []


def test_the_unsettled_map_is_kept_and_answered_empty() -> None:
    wire = Wire().open()
    wire.begin()
    link = wire.attach(role=SENDER, unsettled={b"tag": None}, incomplete_unsettled=True)
    assert link.remote_unsettled == {b"tag": None} and link.incomplete_unsettled
    [attach] = [frame for frame in wire.frames if frame.name == "attach"]
    assert attach.unsettled == {}
    link = wire.attach(role=SENDER, handle=1, name="b", source=Raw(b"\x40"))
    assert link.remote_unsettled is None and link.remote_source is None
