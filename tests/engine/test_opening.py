"""Protocol headers, open and close."""

from __future__ import annotations

import pytest

from jmsish.engine import events
from jmsish.engine.conditions import EngineStateError
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import AmqpError
from jmsish.engine.sasl import SaslClient
from jmsish.types import Symbol
from tests.engine.pair import Pair, Wire, expect, kinds
from tests.wire.frames import AMQP_HEADER, SASL_HEADER, Raw, composite, read, wrap, write

# -- without SASL ------------------------------------------------------------------------------------------------------


def test_a_client_writes_its_header_and_open_at_once() -> None:
    client = Engine(server=False, container_id="c", hostname="h")
    client.open()
    header, frame = read(client.take_output())
    assert header.octets == AMQP_HEADER
    assert (frame.name, frame.container_id, frame.hostname, frame.channel) == ("open", "c", "h", 0)


def test_what_both_opens_say_arrives() -> None:
    pair = Pair(
        client={"max_frame_size": 4096, "channel_max": 7, "desired_capabilities": ("a", "b"), "properties": {"p": 1}},
        server={"offered_capabilities": ("x",), "idle_timeout": 60.0},
    ).open()
    assert pair.server.remote is not None and pair.client.remote is not None
    remote = pair.server.remote
    assert (remote.container_id, remote.max_frame_size, remote.channel_max) == ("client", 4096, 7)
    assert remote.desired_capabilities == ("a", "b")
    assert remote.properties == {"p": 1}
    assert pair.client.remote.offered_capabilities == ("x",)
    assert pair.client.remote.idle_time_out == 30_000


def test_close_carries_its_error_and_both_ends_are_closed_after_the_answer() -> None:
    pair = Pair().open()
    pair.client.close(AmqpError("amqp:connection:forced", "so"))
    pair.pump()
    assert pair.server.take_events() == [(events.CLOSED, AmqpError("amqp:connection:forced", "so"))]
    assert not pair.server.closed and not pair.client.closed
    pair.server.close()
    pair.pump()
    assert pair.server.closed and pair.client.closed
    assert kinds(pair.client) == ["CLOSED"]


def test_verbs_after_close() -> None:
    pair = Pair().open()
    pair.client.close()
    pair.client.close()
    with pytest.raises(EngineStateError, match="closed"):
        pair.client.begin()


def test_a_session_needs_an_open_connection() -> None:
    with pytest.raises(EngineStateError, match="open"):
        Engine(server=False, container_id="c").begin()


def test_everything_pipelined_by_the_client_is_answered_in_order() -> None:
    """The close of the peer does not silence the answers to what came before it (Part 2, 2.4.6: CLOSE RCVD)."""
    wire = Wire()
    wire.engine.receive(
        AMQP_HEADER
        + write("open", container_id="c")
        + write("begin", 37, next_outgoing_id=0, incoming_window=0, outgoing_window=0)
        + write("attach", 37, name="l", handle=0, role=False, initial_delivery_count=0, target=composite("target"))
        + write("transfer", 37, b"foo", handle=0, delivery_id=0, delivery_tag=b"t", settled=True)
        + write("close")
    )
    _, begun, attached, delivered, _ = expect(
        wire.engine, events.OPENED, events.BEGUN, events.ATTACHED, events.DELIVERED, events.CLOSED
    )
    wire.engine.open()
    begun[1].accept_begin()
    attached[1].attach()
    attached[1].flow(10)
    wire.engine.close()
    answers = wire.read()
    assert [frame.name for frame in answers] == ["header", "open", "begin", "attach", "flow", "close"]
    assert answers[2].remote_channel == 37
    assert answers[4].delivery_count == 1, "the pipelined delivery counts"
    assert delivered[2].payload == b"foo" and delivered[2].settled
    assert wire.engine.closed


def test_the_end_of_the_stream_before_close_is_a_failure() -> None:
    pair = Pair().open()
    pair.client.receive_eof()
    [(_, error)] = expect(pair.client, events.FAILED)
    assert error.condition == "amqp:connection:forced"
    assert "closed the socket without an AMQP close" in error.description
    assert pair.client.error == error


def test_the_end_of_the_stream_after_close_is_not() -> None:
    pair = Pair().open()
    pair.server.close()
    pair.pump()
    pair.client.receive_eof()
    assert kinds(pair.client) == ["CLOSED"] and pair.client.error is None


def test_after_failure_verbs_say_why() -> None:
    pair = Pair().open()
    pair.client.receive_eof()
    with pytest.raises(EngineStateError, match="without an AMQP close"):
        pair.client.begin()


# -- wrong headers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("octets", "name"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP"),
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"POST / HTTP/1.1\r\n", "HTTP"),
        (b"AMQP\x00\x00\x09\x01", "AMQP 0-9-1"),
        (b"AMQP\x01\x01\x00\x0a", "AMQP 0-10"),
        (b"AMQP\x01\x01\x00\x09", "AMQP 0-9"),
        (b"AMQP\x00\x02\x00\x00", "version 2.0.0"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS"),
        (b"\x15\x03\x01\x00\x02\x02\x0a", "TLS"),
        (b"\x15\x03", "TLS"),
        (b"SSH-2.0-x", "no AMQP header"),
    ],
)
@pytest.mark.parametrize("server", [False, True])
def test_a_foreign_protocol_is_named(octets: bytes, name: str, server: bool) -> None:
    engine = Engine(server=server, container_id="c")
    engine.take_output()
    engine.receive(octets)
    [(_, error)] = expect(engine, events.FAILED)
    assert error.condition == "amqp:connection:framing-error"
    assert name in error.description and "protocol mismatch" in error.description
    answer = engine.take_output()
    # Part 2, 2.2: a server answers with the header it would have taken, then closes.
    assert answer == (AMQP_HEADER if server else b"")
    assert engine.closed


def test_a_foreign_header_cut_off_by_the_end_is_named() -> None:
    engine = Engine(server=True, container_id="c")
    engine.receive(b"\x16")
    engine.receive_eof()
    assert engine.error is not None and "TLS" in (engine.error.description or "")


def test_a_header_in_single_octets() -> None:
    engine = Engine(server=True, container_id="c")
    for octet in AMQP_HEADER:
        engine.receive(bytes((octet,)))
    assert engine.take_output() == AMQP_HEADER and engine.error is None


# -- open --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("octets", "condition"),
    [
        (write("open"), "amqp:decode-error"),
        (write("open", container_id=Raw(b"\x43")), "amqp:decode-error"),
        (write("open", 1, container_id="c"), "amqp:connection:framing-error"),
        (write("open", container_id="c", max_frame_size=511), "amqp:connection:framing-error"),
        (write("begin", next_outgoing_id=0, incoming_window=1, outgoing_window=1), "amqp:not-allowed"),
        (write("flow", incoming_window=1, next_outgoing_id=0, outgoing_window=1), "amqp:not-allowed"),
        (write("close"), "amqp:not-allowed"),
        (write("open", container_id="c" * 600), "amqp:connection:framing-error"),
        (wrap(b"", kind=1), "amqp:connection:framing-error"),
    ],
)
def test_a_bad_first_frame_is_answered_by_open_and_close(octets: bytes, condition: str) -> None:
    wire = Wire()
    wire.raw(AMQP_HEADER)
    opened, closed = wire.raw(octets)
    assert (opened.name, closed.name, closed.condition) == ("open", "close", condition)
    assert closed.description
    expect(wire.engine, events.FAILED)
    assert wire.engine.closed


def test_a_huge_size_is_refused_before_its_octets_come() -> None:
    wire = Wire()
    wire.raw(AMQP_HEADER)
    frames = wire.raw(b"\x7f\xff\xff\xff")
    assert frames[-1].condition == "amqp:connection:framing-error" and "512" in frames[-1].description


def test_a_second_open_closes() -> None:
    wire = Wire().open()
    [close] = wire.send("open", container_id="again")
    assert (close.name, close.condition) == ("close", "amqp:not-allowed")


def test_open_with_512_is_obeyed() -> None:
    wire = Wire().open(max_frame_size=512)
    wire.begin()
    link = wire.attach(role=True)
    wire.send("flow", next_incoming_id=0, incoming_window=100, next_outgoing_id=0, outgoing_window=1, handle=0,
              delivery_count=0, link_credit=10)  # fmt: skip
    link.send(b"x" * 2000)
    frames = wire.read()
    assert all(len(frame.octets) <= 512 for frame in frames)
    assert b"".join(frame.payload for frame in frames) == b"x" * 2000


def test_an_open_of_ours_that_is_too_long_is_refused_here() -> None:
    with pytest.raises(EngineStateError, match="frame-size-too-small"):
        Engine(server=False, container_id="c" * 600).open()
    with pytest.raises(ValueError, match="512"):
        Engine(server=False, container_id="c", max_frame_size=511)


def test_empty_frames_and_extended_headers_are_passed_over() -> None:
    wire = Wire()
    wire.raw(AMQP_HEADER)
    wire.raw(wrap(composite("open", container_id="c").octets, offset=4))
    wire.raw(wrap(b"", 5))
    assert kinds(wire.engine) == ["OPENED"]


def test_symbolic_descriptors_mean_the_same() -> None:
    wire = Wire()
    wire.raw(AMQP_HEADER)
    wire.send("open", container_id="c", symbolic=True)
    wire.engine.open()
    wire.send("begin", next_outgoing_id=0, incoming_window=5, outgoing_window=5, symbolic=True)
    assert kinds(wire.engine) == ["OPENED", "BEGUN"]


# -- edges of the verbs ------------------------------------------------------------------------------------------------


def test_closing_before_opening_opens_first() -> None:
    """Part 2, 2.4.3: a connection that is refused is opened and closed at once."""
    wire = Wire()
    wire.raw(AMQP_HEADER)
    wire.engine.close(AmqpError("amqp:connection:forced", "full"))
    opened, closed = wire.read()
    assert (opened.name, closed.condition) == ("open", "amqp:connection:forced")


def test_closing_before_the_handshake_is_over_writes_nothing_more() -> None:
    client = Engine(server=False, container_id="c", sasl=SaslClient())
    client.take_output()
    client.close()
    assert client.closed and client.take_output() == b""
    client.receive(SASL_HEADER)
    assert client.take_events() == []


def test_opening_twice_or_too_late() -> None:
    client = Engine(server=False, container_id="c")
    client.open()
    with pytest.raises(EngineStateError, match="open already"):
        client.open()
    failed = Engine(server=False, container_id="c")
    failed.receive(b"HTTP/1.1")
    with pytest.raises(EngineStateError, match="HTTP"):
        failed.open()
    failed.close()
    assert failed.take_output() == AMQP_HEADER and failed.closed


def test_output_size_says_what_waits() -> None:
    pair = Pair()
    assert pair.client.output_size == 8
    pair.open()
    session, _ = pair.begin()
    link, _ = pair.link(session)
    assert pair.client.output_size == 0
    link.send(b"x" * 1000)
    link.send(b"x" * 1000, tag=b"t")
    assert pair.client.output_size == len(pair.client.take_output())
    assert pair.client.output_size == 0 and pair.client.take_output() == b""


def test_the_end_of_the_stream_in_the_handshake() -> None:
    for octets in (b"", b"AMQ", AMQP_HEADER[:7]):
        client = Engine(server=False, container_id="c")
        client.receive(octets)
        client.receive_eof()
        client.receive_eof()
        [(_, error)] = expect(client, events.FAILED)
        assert error.condition == "amqp:connection:forced" and "handshake" in error.description


def test_the_end_of_the_stream_instead_of_an_answer_to_close() -> None:
    pair = Pair().open()
    pair.client.close()
    pair.client.take_output()
    pair.client.receive_eof()
    [(_, error)] = expect(pair.client, events.FAILED)
    assert "without answering our close" in error.description


def test_an_unusable_open_of_ours_does_not_get_in_the_way_of_a_failure() -> None:
    wire = Wire(properties={"long": "x" * 600})
    wire.raw(AMQP_HEADER)
    assert wire.raw(b"\x00\x00\x00\x01") == []
    expect(wire.engine, events.FAILED)
    assert wire.engine.closed


def test_an_open_that_announces_a_close_may_be_empty_else() -> None:
    """As Broker-J refuses a container id in use, or everybody while it starts: what counts is the reason behind it."""
    wire = Wire(server=False)
    wire.engine.open()
    wire.raw(AMQP_HEADER)
    wire.send("open", container_id="b", max_frame_size=0, channel_max=0)
    wire.send("close", error=composite("error", condition=Symbol("amqp:invalid-field"), description="in use"))
    _, (_, error) = expect(wire.engine, events.OPENED, events.CLOSED)
    assert error.condition == "amqp:invalid-field" and wire.engine.error is None
