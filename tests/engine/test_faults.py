"""Frames that are broken, and how far the damage goes."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine import events
from tests.engine.pair import Pair, Wire, expect, kinds
from tests.engine.test_transfers import receiving
from tests.wire.frames import SENDER, Raw, composite, wrap, write


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (b"\x00\x00\x00\x07\x02\x00\x00\x00", "7 octets"),
        (b"\x00\x00\x00\x08\x01\x00\x00\x00", "data offset of 1"),
        (b"\x00\x00\x00\x08\x03\x00\x00\x00", "data offset of 3"),
        (b"\x00\x00\x00\x08\x02\x01\x00\x00", "type 1"),
        (b"\x00\x00\x00\x08\x02\x09\x00\x00", "type 9"),
        (b"\xff\xff\xff\xff", "4294967295 octets"),
        (b"\x00\x10\x00\x01", "1048577 octets"),
        (b"HTTP/1.1", "octets"),
    ],
)
def test_a_broken_frame_header_closes(octets: bytes, said: str) -> None:
    wire = Wire().open()
    [close] = wire.raw(octets)
    assert (close.name, close.condition) == ("close", "amqp:connection:framing-error")
    assert said in close.description
    [(_, error)] = expect(wire.engine, events.FAILED)
    assert wire.engine.error == error and wire.engine.closed
    assert wire.raw(write("close")) == [] and wire.events() == []


@pytest.mark.parametrize(
    "body",
    [
        b"\x45",
        b"\xa1\x05hello",
        b"\x00",
        b"\x00\x53",
        b"\x00\x53\x13",
        b"\x00\x53\x13\xa1\x00",
        b"\x00\x53\x13\xc0",
        b"\x00\x53\x13\xc0\x05\x01",
        b"\x00\x53\x13\xc0\x02\x05\x40",
        b"\x00\x53\x13\xc0\x03\x01\x40\x40",
        b"\x00\x53\x13\xd0\xff\xff\xff\xff\x00\x00\x00\x01",
        b"\x00\x53\x13\xd0\x00\x00\x00\x05\xff\xff\xff\xff\x40",
        b"\x00\x53\x13\x45\x40",
        b"\x00\x53\x13\xc0\x0d\x0c" + b"\x40" * 12,
        b"\x00\x53\x14\xc0\x03\x01\x52",
        b"\x00\x53\x14\xc0\x05\x02\x43\xa0\x09\x00",
        b"\x00\x53\x15\xc0\x12\x05\x41\x70\0\0\0\0\x70\0\0\0\0\x41\x00\x53\x24",
        b"\x00\x53\x15\xc0\x11\x05\x41\x70\0\0\0\0\x70\0\0\0\0\x41\x00\x53\x24\x45\x40\x40",
        b"\x00\x53\x99\x45",
        b"\x00\xa3\x04oops\x45",
        b"\x00\x00\x53\x13\x45\x45",
        b"\x00\x40\x45",
        b"\x00\x53\x12\xc0\x04\x01\xa1\x01\xff",
        b"\x00\x53\x12" + b"\xc0\x03\x01" * 100,
    ],
)
def test_a_body_that_cannot_be_decoded_closes(body: bytes) -> None:
    wire = Wire().open()
    wire.begin()
    [close] = wire.raw(wrap(body))
    assert (close.name, close.condition) == ("close", "amqp:decode-error") and close.description
    expect(wire.engine, events.FAILED)


@pytest.mark.parametrize(
    ("name", "fields", "field"),
    [
        ("attach", {"name": Raw(b"\xa3\x01x")}, "name"),
        ("attach", {"name": 5, "role": Raw(b"\x43")}, "role"),
        ("attach", {"snd_settle_mode": 3}, "snd-settle-mode"),
        ("attach", {"rcv_settle_mode": 2}, "rcv-settle-mode"),
        ("attach", {"source": composite("source", address=Raw(b"\x43"))}, "address"),
        ("attach", {"source": composite("source", filter=Raw(b"\x45"))}, "filter"),
        ("attach", {"source": composite("source", outcomes=Raw(b"\xa1\x01x"))}, "outcomes"),
        ("attach", {"target": composite("target", durable=Raw(b"\xa1\x01x"))}, "durable"),
        ("attach", {"target": composite("target", capabilities=Raw(b"\x43"))}, "capabilities"),
        ("attach", {"properties": Raw(b"\x45")}, "properties"),
        ("attach", {"offered_capabilities": Raw(b"\x43")}, "offered-capabilities"),
        ("attach", {"source": composite("source", default_outcome=composite("modified", delivery_failed=Raw(b"\x43")))},
         "delivery-failed"),
        ("detach", {"error": 5}, "error"),
        ("detach", {"error": composite("error")}, "condition"),
        ("detach", {"error": composite("error", condition=Raw(b"\x43"))}, "condition"),
        ("end", {"error": composite("accepted")}, "error"),
        ("close", {"error": composite("error", condition="a:b", info=Raw(b"\x43"))}, "info"),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_type_is_named(name: str, fields: dict[str, Any], field: str) -> None:
    wire = Wire().open()
    wire.begin()
    if name == "attach":
        fields = {"name": "x", "handle": 0, "role": SENDER, "initial_delivery_count": 0, **fields}
    elif name == "detach":
        wire.attach(role=SENDER)
        fields = {"handle": 0, **fields}
    [close] = wire.send(name, **fields)
    assert (close.name, close.condition) == ("close", "amqp:decode-error")
    assert field in close.description and name in close.description


def test_frames_before_a_broken_one_count() -> None:
    wire, _ = receiving()
    good = write("transfer", 0, b"m", handle=0, delivery_id=0, delivery_tag=b"t")
    wire.raw(good + b"\x00\x00\x00\x01" + good)
    assert kinds(wire.engine) == ["DELIVERED", "FAILED"]


def test_verbs_after_failure_are_silent() -> None:
    """Their caller may still be at work on the events before the failure."""
    wire, link = receiving()
    wire.send("transfer", handle=0, delivery_id=0, delivery_tag=b"t")
    wire.raw(b"\x00\x00\x00\x01")
    delivered, _ = expect(wire.engine, events.DELIVERED, events.FAILED)
    link.session.disposition(delivered[2], None)
    link.flow(5)
    link.detach()
    link.session.end()
    wire.engine.close()
    assert wire.read() == [] and wire.engine.closed
    assert wire.engine.error is not None and wire.engine.error.condition == "amqp:connection:framing-error"


def test_a_failure_while_a_begin_and_an_attach_wait_for_their_answers() -> None:
    wire = Wire().open()
    octets = write("begin", next_outgoing_id=0, incoming_window=9, outgoing_window=9)
    octets += write("attach", name="x", handle=0, role=SENDER, initial_delivery_count=0)
    wire.raw(octets + b"\x00\x00\x00\x01")
    begun, attached, _ = expect(wire.engine, events.BEGUN, events.ATTACHED, events.FAILED)
    begun[1].accept_begin()
    attached[1].attach()
    attached[1].flow(5)
    assert wire.read() == []


def test_faults_of_a_session_and_a_link_that_are_not_answered_yet() -> None:
    """The answer comes first, then the end or detach that says what was wrong."""
    wire = Wire().open()
    begin = write("begin", next_outgoing_id=0, incoming_window=9, outgoing_window=9)
    attach = write("attach", name="x", handle=0, role=SENDER, initial_delivery_count=0)
    wire.raw(begin + attach + write("transfer", handle=7, delivery_id=0, delivery_tag=b"t"))
    begun, attached, _ = expect(wire.engine, events.BEGUN, events.ATTACHED, events.ENDED)
    begun[1].accept_begin()
    attached[1].attach()
    frames = wire.read()
    assert [frame.name for frame in frames] == ["begin", "end"]
    assert frames[1].condition == "amqp:session:unattached-handle"
    wire.send("end")

    wire.raw(begin + attach + write("transfer", handle=0, delivery_id=0, delivery_tag=b"t", resume=True))
    begun, attached, _ = expect(wire.engine, events.BEGUN, events.ATTACHED, events.DETACHED)
    begun[1].accept_begin()
    attached[1].attach()
    frames = wire.read()
    assert [frame.name for frame in frames] == ["begin", "attach", "detach"]
    assert frames[2].condition == "amqp:not-implemented"
    assert wire.send("detach", handle=0, closed=True) == [] and wire.events() == []


def test_after_our_close_only_the_peers_close_counts() -> None:
    wire, _ = receiving()
    wire.engine.close()
    assert [frame.name for frame in wire.read()] == ["close"]
    wire.send("transfer", handle=0, delivery_id=0, delivery_tag=b"t")
    wire.send("flow", 77)
    wire.send("begin", 3, next_outgoing_id=0, incoming_window=9, outgoing_window=9)
    assert wire.events() == [] and not wire.engine.closed
    wire.send("close")
    assert kinds(wire.engine) == ["CLOSED"] and wire.engine.closed


def test_engines_share_nothing() -> None:
    """A failure here is none elsewhere, and a long life leaves nothing behind."""
    pair, other = Pair().open(), Pair().open()
    pair.server.receive(b"\x00\x00\x00\x01")
    assert pair.server.error is not None
    for _ in range(50):
        session, far = other.begin()
        link, remote = other.link(session)
        link.send(b"m")
        link.detach()
        session.end()
        other.pump()
        other.server.take_events()
        remote.detach()
        far.end()
        other.pump()
        other.client.take_events()
    for engine in (other.client, other.server):
        assert not engine.sessions and not engine.remote_sessions and not engine.link_names and not engine.fast
    other.close()
