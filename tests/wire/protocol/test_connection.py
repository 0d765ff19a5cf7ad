"""Protocol header, open and close (Part 2, 2.2 to 2.4, 2.7.1)."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from jmsish.types import Symbol, UInt, UShort
from tests.wire.frames import AMQP_HEADER, SASL_HEADER, Frame, composite, wrap, write
from tests.wire.protocol.steps import Client, Wire
from tests.wire.raw import error


def test_the_header_is_answered_with_the_same(wire: Wire) -> None:
    peer = wire.peer()
    peer.send(AMQP_HEADER)
    peer.expect("header", octets=AMQP_HEADER)
    peer.drop()


@pytest.mark.parametrize("header", [b"AMQP\x00\x00\x09\x01", b"AMQP\x00\x02\x00\x00", b"HTTP/1.1"], ids=repr)
def test_another_header_is_answered_with_ours_and_the_end(wire: Wire, header: bytes) -> None:
    peer = wire.peer()
    peer.send(header)
    answer = peer.expect("header")
    assert answer.octets in (AMQP_HEADER, SASL_HEADER)
    peer.expect_end()


def test_a_least_open(wire: Wire) -> None:
    peer = wire.peer()
    opened = peer.open()
    assert opened.container_id
    assert opened.max_frame_size is None or opened.max_frame_size >= 512
    peer.close()


def test_the_line_ends_after_the_closes(wire: Wire) -> None:
    peer = wire.peer()
    peer.open()
    peer.say("close")
    peer.expect("close", error=None)
    peer.expect_end()


def test_a_close_with_an_error_is_answered_without_one(wire: Wire) -> None:
    peer = wire.peer()
    peer.open()
    peer.say("close", error=composite("error", condition="amqp:internal-error", description="mine"))
    peer.expect("close", error=None)


def test_an_open_without_container_id(wire: Wire) -> None:
    """Mandatory (2.7.1)."""
    peer = wire.peer()
    peer.send(AMQP_HEADER, write("open"))
    peer.expect("header")
    peer.expect("close", but=("open",), error=error("amqp:decode-error", "amqp:invalid-field"))


def test_an_open_on_another_channel(wire: Wire) -> None:
    peer = wire.peer()
    peer.send(AMQP_HEADER, write("open", 1, container_id="c"))
    peer.expect("header")
    peer.expect("close", but=("open",), error=error("amqp:connection:framing-error"))


def test_an_open_twice(wire: Wire) -> None:
    peer = wire.peer()
    peer.open()
    peer.say("open", container_id="again")
    peer.expect("close", error=error())


@pytest.mark.parametrize("size", [0, 256, 511])
def test_a_max_frame_size_below_the_least(wire: Wire, size: int) -> None:
    wire.ours("2.7.1 leaves open what becomes of it")
    peer = wire.peer()
    peer.send(AMQP_HEADER, write("open", container_id="c", max_frame_size=size))
    peer.expect("header")
    peer.expect("close", but=("open",), error=error("amqp:connection:framing-error"))


def test_the_least_max_frame_size(wire: Wire) -> None:
    """Deliveries come in frames of 512 octets."""
    wire.put("x" * 2000)
    client = wire.client(max_frame_size=512)
    client.receiver(wire.queue, credit=1)
    whole, more = b"", True
    while more:
        frame = client.expect("transfer", but=("flow",))
        assert len(frame.octets) <= 512
        whole, more = whole + frame.payload, bool(frame.more)
    assert whole.endswith(b"x" * 2000)


def test_a_frame_beyond_our_own_max_frame_size(wire: Wire) -> None:
    client = wire.peer()
    limit = client.open().max_frame_size
    assert limit is not None
    client.send(struct.pack(">IBBH", limit + 1, 2, 0, 0))
    client.expect("close", error=error("amqp:connection:framing-error"))


@pytest.mark.parametrize("octets", [b"\x00\x00\x00\x07\x02\x00\x00\x00", b"\x00\x00\x00\x08\x01\x00\x00\x00"], ids=repr)
def test_a_malformed_frame_header(wire: Wire, octets: bytes) -> None:
    client = wire.peer()
    client.open()
    client.send(octets)
    client.expect("close", error=error("amqp:connection:framing-error"))


def test_a_frame_that_is_no_performative(wire: Wire) -> None:
    client = wire.peer()
    client.open()
    client.send(wrap(composite("accepted").octets))
    client.expect("close", error=error("amqp:decode-error", "amqp:connection:framing-error", "amqp:not-allowed"))


def test_empty_frames_are_borne(wire: Wire) -> None:
    client = wire.peer()
    client.open()
    client.send(wrap(b""), wrap(b"", channel=7))
    client.close()


def test_an_extended_header_is_skipped(wire: Wire) -> None:
    client = wire.peer()
    client.open()
    client.send(wrap(composite("close").octets, offset=4))
    client.expect("close", error=None)


def test_m43_heartbeats_come_as_asked_for(wire: Wire) -> None:
    peer = wire.peer()
    peer.open(idle_time_out=1000)
    peer.line.advance(0)
    peer.line.advance(0.9)
    frame = peer.hear()
    assert frame is not None and frame.name == "empty"
    peer.close()


@pytest.mark.parametrize("milliseconds", [100, 999, 1000])
def test_m42_a_short_idle_time_out_is_borne(wire: Wire, milliseconds: int) -> None:
    """Broker-J wants a second at the least; ours beats as often as it is asked to."""
    wire.ours("its clock can be set forward")
    peer = wire.peer()
    peer.open(idle_time_out=milliseconds)
    peer.line.advance(0)
    for _ in range(3):
        peer.quiet()
        peer.line.advance(milliseconds / 2000)
        frame = peer.hear()
        assert frame is not None and frame.name == "empty"
    peer.close()


def test_a_silent_peer_is_given_up(wire: Wire) -> None:
    wire.ours("its clock can be set forward")
    peer = wire.peer()
    timeout = peer.open().idle_time_out
    assert timeout
    peer.line.advance(0)
    peer.line.advance(timeout / 1000 * 2 + 1)
    peer.expect("close", error=error("amqp:resource-limit-exceeded", "amqp:connection:forced"))
    peer.expect_end()


def test_a_silent_peer_that_beats_is_kept(wire: Wire) -> None:
    wire.ours("its clock can be set forward")
    peer = wire.peer()
    timeout = peer.open().idle_time_out
    for _ in range(5):
        peer.line.advance(timeout / 1000 * 0.8)
        peer.send(wrap(b""))
    peer.close()


@pytest.mark.parametrize("said", [b"", AMQP_HEADER, SASL_HEADER, AMQP_HEADER + b"\x00\x00"], ids=repr)
def test_a_peer_that_never_opens_is_given_up(wire: Wire, said: bytes) -> None:
    """Whatever it began with; the time runs from the connection, and not from the last octet."""
    wire.ours("its clock can be set forward")
    peer = wire.peer()
    peer.send(said[:4])
    peer.line.advance(9.9)
    peer.send(said[4:])
    if said:
        peer.expect("header")
    if said == SASL_HEADER:
        peer.expect("sasl-mechanisms")
    peer.quiet()
    peer.line.advance(0.2)
    while (frame := peer.hear()) is not None:
        assert frame.name in ("header", "open", "close")
    assert peer.over


def test_any_hostname_is_served(wire: Wire) -> None:
    peer = wire.peer()
    peer.open(hostname="Class_method", properties={"product": "raw"}, desired_capabilities=[Symbol("ANONYMOUS-RELAY")])
    peer.close()


def test_one_container_only(wire: Wire) -> None:
    """sole-connection-for-container: the second is refused, which the properties of its open say first."""
    first = wire.peer()
    offered = first.open(container_id="sole", desired_capabilities=["sole-connection-for-container"])
    wire.needs("sole-connection-for-container" in (offered.offered_capabilities or ()), "sole-connection-for-container")
    second = wire.peer()
    refused = second.open(container_id="sole", desired_capabilities=["sole-connection-for-container"])
    assert refused.properties["amqp:connection-establishment-failed"] is True
    closed = second.expect("close", error=error("amqp:invalid-field"))
    assert closed.error.info == {"invalid-field": "container-id"}
    first.close()
    third = wire.peer()
    third.open(container_id="sole", desired_capabilities=["sole-connection-for-container"])
    third.close()


SOLE: dict[str, Any] = {"container_id": "sole", "desired_capabilities": ["sole-connection-for-container"]}
CLOSING = {**SOLE, "properties": {"sole-connection-enforcement-policy": UInt(1)}}
REFUSING = {**SOLE, "properties": {"sole-connection-enforcement-policy": UInt(0)}}
PLAIN = {"container_id": "sole"}


@pytest.mark.parametrize(
    ("first", "second"), [(CLOSING, CLOSING), (CLOSING, REFUSING), (CLOSING, PLAIN), (PLAIN, CLOSING)]
)
def test_one_container_only_and_the_older_goes(wire: Wire, first: dict[str, Any], second: dict[str, Any]) -> None:
    """What the older one asked for counts, else what the newer one asks for."""
    older = wire.peer()
    _policy_of(wire, older.open(**first), first)
    newer = wire.peer()
    _policy_of(wire, newer.open(**second), second)
    closed = older.expect("close", error=error("amqp:resource-locked"))
    assert closed.error.info == {"sole-connection-enforcement": True}
    newer.close()


@pytest.mark.parametrize(
    ("first", "second"), [(REFUSING, CLOSING), (SOLE, CLOSING), (REFUSING, PLAIN), (PLAIN, REFUSING), (PLAIN, SOLE)]
)
def test_one_container_only_and_the_newer_goes(wire: Wire, first: dict[str, Any], second: dict[str, Any]) -> None:
    older = wire.peer()
    offered = older.open(**first).offered_capabilities or ()
    wire.needs("sole-connection-for-container" in offered, "sole-connection-for-container")
    newer = wire.peer()
    assert newer.open(**second).properties["amqp:connection-establishment-failed"] is True
    newer.expect("close", error=error("amqp:invalid-field"))
    older.close()


def _policy_of(wire: Wire, opened: Frame, asked: dict[str, Any]) -> None:
    if asked is CLOSING:
        wire.needs((opened.properties or {}).get("sole-connection-enforcement-policy") == 1, "closing of the older")


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_begin_is_answered(wire: Wire) -> None:
    peer = wire.peer()
    peer.open()
    begun = peer.begin(channel=37, incoming_window=0, outgoing_window=0)
    assert None not in (begun.next_outgoing_id, begun.incoming_window, begun.outgoing_window)
    peer.say("end", 37)
    peer.expect("end", error=None)
    peer.close()


def test_a_begin_without_its_fields(wire: Wire) -> None:
    peer = wire.peer()
    peer.open()
    peer.say("begin", 1)
    peer.expect_refusal("amqp:decode-error", "amqp:invalid-field")


def test_a_begin_beyond_channel_max(wire: Wire) -> None:
    peer = wire.peer()
    limit = peer.open().channel_max
    if limit in (None, 65535):
        wire.needs(False, "channel-max")
    peer.say("begin", limit + 1, next_outgoing_id=0, incoming_window=0, outgoing_window=0)
    peer.expect("close", error=error("amqp:connection:framing-error"))


def test_a_begin_on_the_last_channel(wire: Wire) -> None:
    peer = wire.peer()
    limit = peer.open().channel_max
    peer.begin(channel=65535 if limit is None else limit)
    peer.close()


def test_a_begin_that_answers_nothing(wire: Wire) -> None:
    peer = wire.peer()
    peer.open()
    peer.say("begin", 1, remote_channel=UShort(5), next_outgoing_id=0, incoming_window=0, outgoing_window=0)
    peer.expect_refusal()


def test_a_frame_of_a_session_that_never_began(wire: Wire) -> None:
    peer = wire.peer()
    peer.open()
    peer.say("flow", 3, incoming_window=1, next_outgoing_id=0, outgoing_window=1)
    peer.expect("close", error=error())


def test_a_session_ends_with_its_links(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    client.say("end", client.channel)
    client.expect("end", error=None)
    client.begin()
    client.sender(wire.queue)
    client.close()


def test_channels_can_be_used_again(client: Client) -> None:
    for _ in range(3):
        client.say("end", client.channel)
        client.expect("end", error=None)
        client.begin(client.channel)
    client.close()
