"""Protocol headers, SASL, open and close."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine import events
from jmsish.engine.conditions import EngineStateError, Fault
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import AmqpError
from jmsish.engine.sasl import SaslClient, SaslServer
from tests.engine.pair import Pair, Wire, expect, kinds
from tests.wire.frames import AMQP_HEADER, SASL_HEADER, Raw, composite, read, symbols, wrap, write


def users(mechanism: str, username: str | None, password: str | None) -> str | None:
    if mechanism == "ANONYMOUS":
        return "anonymous"
    if mechanism == "EXTERNAL":
        return "certified"
    return username if password == "secret" else None


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


# -- SASL --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "identity", "mechanism"),
    [
        ({}, "anonymous", "ANONYMOUS"),
        ({"username": "u", "password": "secret"}, "u", "PLAIN"),
        ({"username": "u", "password": "secret", "external": True}, "certified", "EXTERNAL"),
        ({"mechanisms": ["ANONYMOUS"], "username": "u", "password": "x"}, "anonymous", "ANONYMOUS"),
    ],
)
def test_the_strongest_mechanism_is_taken(client: dict[str, Any], identity: str, mechanism: str) -> None:
    pair = Pair(
        client={"sasl": SaslClient(**client)},
        server={"sasl": SaslServer(["ANONYMOUS", "PLAIN", "EXTERNAL"], users)},
    )
    pair.client.open()
    pair.pump()
    assert pair.server.take_events() == [(events.AUTHENTICATED, identity, mechanism), (events.OPENED,)]


def test_frames_wait_for_the_end_of_the_exchange() -> None:
    client = Engine(server=False, container_id="c", sasl=SaslClient())
    client.open()
    assert client.take_output() == SASL_HEADER
    client.receive(SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=["ANONYMOUS"]))
    [init] = read(client.take_output())
    assert (init.name, init.mechanism, init.initial_response) == ("sasl-init", "ANONYMOUS", b"anonymous")
    client.receive(write("sasl-outcome", code=0))
    assert [frame.name for frame in read(client.take_output())] == ["header", "open"]


def test_a_wrong_password_is_an_authentication_failure_at_both_ends() -> None:
    pair = Pair(
        client={"sasl": SaslClient(username="u", password="wrong")}, server={"sasl": SaslServer(["PLAIN"], users)}
    )
    pair.client.open()
    pair.pump()
    [(_, error)] = expect(pair.client, events.FAILED)
    assert error.condition == "amqp:unauthorized-access"
    assert "PLAIN" in error.description and "'u'" in error.description and "wrong" not in error.description
    [(_, error)] = expect(pair.server, events.FAILED)
    assert error.condition == "amqp:unauthorized-access"
    assert pair.client.closed and pair.server.closed
    assert [frame.name for _, frame in pair.frames][-1] == "sasl-outcome", "W15: nothing else is answered"


def test_no_common_mechanism_names_both_lists() -> None:
    pair = Pair(client={"sasl": SaslClient()}, server={"sasl": SaslServer(["PLAIN", "EXTERNAL"], users)})
    pair.pump()
    [(_, error)] = expect(pair.client, events.FAILED)
    assert error.condition == "amqp:unauthorized-access"
    assert "PLAIN, EXTERNAL" in error.description and "ANONYMOUS" in error.description


def test_a_user_name_is_never_dropped_silently() -> None:
    client = SaslClient(username="u", password="p")
    with pytest.raises(Fault, match="ANONYMOUS"):
        client.choose(["ANONYMOUS"])


def test_pipelined_frames_behind_the_exchange() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users))
    frames = wire.raw(
        SASL_HEADER
        + write("sasl-init", mechanism="PLAIN", initial_response=b"\0u\0secret")
        + AMQP_HEADER
        + write("open", container_id="c")
    )
    assert [frame.name for frame in frames] == ["header", "sasl-mechanisms", "sasl-outcome", "header"]
    assert [event[0] for event in wire.events()] == [events.AUTHENTICATED, events.OPENED]


def test_plain_without_an_initial_response_is_asked_for_it() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users))
    wire.raw(SASL_HEADER)
    [challenge] = wire.send("sasl-init", mechanism="PLAIN")
    assert (challenge.name, challenge.challenge) == ("sasl-challenge", b"")
    [outcome] = wire.send("sasl-response", response=b"\0u\0secret")
    assert outcome.code == 0


@pytest.mark.parametrize(
    "octets",
    [
        write("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"]),
        write("sasl-challenge", challenge=b""),
        write("sasl-outcome", code=0),
        write("sasl-response", response=b""),
        wrap(b"", kind=1),
        write("open", container_id="c"),
        write("sasl-init", initial_response=b""),
        wrap(b"\x00\x53\x41\xc0\x03\x01\xa3\x09PL", kind=1),
        wrap(b"\xa1\x01x", kind=1),
    ],
)
def test_a_broken_exchange_closes(octets: bytes) -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users))
    wire.raw(SASL_HEADER)
    assert wire.raw(octets) == []
    expect(wire.engine, events.FAILED)
    assert wire.engine.closed


def test_a_mechanism_not_offered_is_refused() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users))
    wire.raw(SASL_HEADER)
    [outcome] = wire.send("sasl-init", mechanism="CRAM-MD5")
    assert outcome.code == 1 and wire.engine.closed


def test_an_authenticator_that_raises_denies() -> None:
    def broken(mechanism: str, username: str | None, password: str | None) -> str | None:
        raise LookupError("directory down")

    wire = Wire(sasl=SaslServer(["PLAIN"], broken))
    wire.raw(SASL_HEADER)
    [outcome] = wire.send("sasl-init", mechanism="PLAIN", initial_response=b"\0u\0p")
    assert outcome.code == 2 and wire.engine.closed
    assert wire.engine.error is not None and "directory down" in (wire.engine.error.description or "")


def test_long_tokens_pass_and_huge_sasl_frames_do_not() -> None:
    tokens: list[bytes | None] = []

    def token(mechanism: str, response: bytes | None) -> str | None:
        tokens.append(response)
        return "somebody"

    wire = Wire(sasl=SaslServer(["XOAUTH2"], users, token=token))
    wire.raw(SASL_HEADER)
    [outcome] = wire.send("sasl-init", mechanism="XOAUTH2", initial_response=b"t" * 10_000)
    assert outcome.code == 0 and tokens == [b"t" * 10_000]

    wire = Wire(sasl=SaslServer(["PLAIN"], users))
    wire.raw(SASL_HEADER)
    wire.raw(b"\x00\x00\x40\x01\x02\x01\x00\x00")
    assert wire.engine.error is not None and "16385" in (wire.engine.error.description or "")


def test_a_server_that_wants_sasl_says_so_to_a_bare_client() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users))
    [header] = wire.raw(AMQP_HEADER)
    assert header.octets == SASL_HEADER and wire.engine.closed
    assert "SASL" in str(wire.engine.error)


def test_a_server_may_take_clients_without_sasl() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users, allow_no_sasl=True))
    [header] = wire.raw(AMQP_HEADER)
    assert header.octets == AMQP_HEADER and not wire.engine.closed
    wire.send("open", container_id="c")
    assert kinds(wire.engine) == ["OPENED"]


def test_a_server_without_sasl_refuses_it() -> None:
    wire = Wire()
    [header] = wire.raw(SASL_HEADER)
    assert header.octets == AMQP_HEADER and wire.engine.closed


@pytest.mark.parametrize(("header", "said"), [(AMQP_HEADER, "no SASL"), (b"AMQP\x00\x00\x09\x01", "AMQP 0-9-1")])
def test_a_client_that_wants_sasl_and_gets_none(header: bytes, said: str) -> None:
    client = Engine(server=False, container_id="c", sasl=SaslClient())
    client.receive(header)
    assert said in str(client.error)


def test_a_client_without_sasl_is_told_that_the_server_demands_it() -> None:
    client = Engine(server=False, container_id="c")
    client.receive(SASL_HEADER)
    assert client.error is not None and client.error.condition == "amqp:unauthorized-access"


def test_a_challenge_that_anonymous_cannot_expect_is_still_answered() -> None:
    client = Engine(server=False, container_id="c", sasl=SaslClient(username="u", password="p"))
    client.receive(SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=symbols("PLAIN")))
    client.take_output()
    client.receive(write("sasl-challenge", challenge=b""))
    [response] = read(client.take_output())
    assert response.response == b"\0u\0p"


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
