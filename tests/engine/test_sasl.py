"""The SASL exchange, both ends."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jmsish.engine import events
from jmsish.engine.conditions import Fault
from jmsish.engine.engine import Engine
from jmsish.engine.sasl import SaslClient, SaslServer, Verdict
from tests.engine.pair import Pair, Wire, expect, kinds
from tests.wire.frames import AMQP_HEADER, SASL_HEADER, read, symbols, wrap, write


def users(mechanism: str, username: str | None, password: str | None) -> str | None:
    if mechanism == "ANONYMOUS":
        return "anonymous"
    if mechanism == "EXTERNAL":
        return "certified"
    return username if password == "secret" else None


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
    assert "deciding raised LookupError" in str(wire.engine.error)
    assert "directory down" not in str(wire.engine.error), "it may quote what it was asked"


def test_long_tokens_pass_and_huge_sasl_frames_do_not() -> None:
    tokens: list[bytes | None] = []

    def token(mechanism: str, response: bytes | None) -> str | None:
        tokens.append(response)
        return "somebody"

    wire = Wire(sasl=SaslServer(["XOAUTH2"], users, token=token))
    wire.raw(SASL_HEADER)
    long = b"user=u\x01auth=Bearer " + b"t" * 10_000 + b"\x01\x01"
    assert wire.send("sasl-init", mechanism="XOAUTH2", initial_response=long) == []
    [(_, question)] = expect(wire.engine, events.ASKED)
    wire.engine.decide(question())
    [outcome] = wire.read()
    assert outcome.code == 0 and tokens == [long]

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


def test_sasl_credentials_that_are_no_credentials() -> None:
    for response in (b"", b"u\0secret", b"\0u\0secret\0x", b"other\0u\0secret"):
        wire = Wire(sasl=SaslServer(["PLAIN"], users))
        wire.raw(SASL_HEADER)
        [outcome] = wire.send("sasl-init", mechanism="PLAIN", initial_response=response)
        assert outcome.code == 1
    with pytest.raises(ValueError, match="NTLM"):
        SaslServer(["NTLM"], users)


def test_external_names_whom_it_acts_as() -> None:
    asked: list[tuple[str, str | None, str | None]] = []

    def decide(mechanism: str, username: str | None, password: str | None) -> str | None:
        asked.append((mechanism, username, password))
        return "certified"

    wire = Wire(sasl=SaslServer(["EXTERNAL"], decide))
    wire.raw(SASL_HEADER)
    [challenge] = wire.send("sasl-init", mechanism="EXTERNAL")
    assert challenge.name == "sasl-challenge"
    wire.send("sasl-response", response=b"somebody")
    assert asked == [("EXTERNAL", "somebody", None)]
    assert wire.events() == [(events.AUTHENTICATED, "certified", "EXTERNAL")]


@pytest.mark.parametrize(("code", "condition"), [(2, "forced"), (3, "forced"), (4, "forced"), (9, "forced")])
def test_system_errors_of_sasl_are_no_refusal(code: int, condition: str) -> None:
    client = Engine(server=False, container_id="c", sasl=SaslClient())
    client.receive(SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=["ANONYMOUS"]))
    client.receive(write("sasl-outcome", code=code))
    assert client.error is not None and client.error.condition == f"amqp:connection:{condition}"


# The order of choice, and what is not sent where others can read it.


def test_mechanisms_named_are_tried_in_their_order() -> None:
    offered = ["ANONYMOUS", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    named = SaslClient(mechanisms=["PLAIN", "SCRAM-SHA-512"], username="u", password="p")
    assert named.choose(offered).name == "PLAIN"
    assert SaslClient(username="u", password="p").choose(offered).name == "SCRAM-SHA-512"


def test_a_mechanism_nobody_knows_is_passed_over_and_none_known_is_an_error() -> None:
    client = SaslClient(mechanisms=["CRAM-MD5", "PLAIN"], username="u", password="p")
    assert client.choose(["CRAM-MD5", "PLAIN"]).name == "PLAIN"
    with pytest.raises(ValueError, match="no such SASL mechanism: CRAM-MD5; there are: EXTERNAL, "):
        SaslClient(mechanisms=["CRAM-MD5"])


@pytest.mark.parametrize(
    ("held", "offered"),
    [
        ({"username": "u", "password": "secret-word"}, ["PLAIN"]),
        ({"token": "secret-word"}, ["OAUTHBEARER", "XOAUTH2"]),
        ({"username": "u", "password": "secret-word"}, ["PLAIN", "ANONYMOUS"]),
    ],
)
def test_a_secret_is_not_sent_where_others_can_read_it(held: dict[str, Any], offered: list[str]) -> None:
    client = Engine(server=False, container_id="c", sasl=SaslClient(**held, exposed=True))
    client.receive(SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=offered))
    assert b"secret-word" not in client.take_output()
    assert client.error is not None and client.error.condition == "amqp:unauthorized-access"
    assert "was not sent" in str(client.error) and "allow_cleartext" in str(client.error)
    assert "secret-word" not in str(client.error)


def test_what_proves_without_sending_is_used_there_all_the_same() -> None:
    client = SaslClient(username="u", password="p", exposed=True)
    assert client.choose(["PLAIN", "SCRAM-SHA-256"]).name == "SCRAM-SHA-256"


# What takes its time, and what the owner tells when it likes.


def asked(wire: Wire) -> Any:
    wire.raw(SASL_HEADER)
    assert wire.send("sasl-init", mechanism="PLAIN", initial_response=b"\0u\0secret") == []
    [(kind, what)] = wire.events()
    return kind, what


def slow(mechanism: str, username: str | None, password: str | None) -> Any:
    return lambda: users(mechanism, username, password)


def test_a_question_is_asked_outside_and_its_answer_goes_on() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], slow))
    kind, question = asked(wire)
    assert kind == events.ASKED
    wire.engine.decide(question())
    [outcome] = wire.read()
    assert outcome.code == 0 and wire.events() == [(events.AUTHENTICATED, "u", "PLAIN")]


def test_what_was_sent_behind_a_question_waits_and_is_read_then() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], slow))
    _, question = asked(wire)
    assert wire.raw(AMQP_HEADER + write("open", container_id="c")) == [] and wire.events() == []
    wire.engine.decide(question())
    assert [frame.name for frame in wire.read()] == ["sasl-outcome", "header"]
    assert [event[0] for event in wire.events()] == [events.AUTHENTICATED, events.OPENED]


def test_who_sends_on_and_on_behind_a_question_is_closed() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], slow))
    _, question = asked(wire)
    for _ in range(20):
        wire.raw(bytes(10_000))
    assert wire.engine.closed and "sends on and on" in str(wire.engine.error)
    wire.engine.decide(question())
    assert wire.read() == []


def test_who_leaves_during_a_question_is_gone() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], slow))
    _, question = asked(wire)
    wire.engine.receive_eof()
    assert "while it was being authenticated" in str(wire.engine.error)
    wire.engine.decide(question())
    assert wire.read() == [] and expect(wire.engine, events.FAILED)


def test_a_verdict_is_told_when_its_owner_says_so() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users, judged=True))
    kind, verdict = asked(wire)
    assert (kind, verdict.identity) == (events.JUDGED, "u")
    wire.engine.decide(verdict)
    wire.engine.decide(verdict)
    [outcome] = wire.read()
    assert outcome.code == 0, "once"


@pytest.mark.parametrize("code", [1, 2, 4])
def test_a_no_has_a_code(code: int) -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users, judged=True))
    asked(wire)
    wire.engine.decide(Verdict(None, code=code, reason="why"))
    [outcome] = wire.read()
    assert outcome.code == code and wire.engine.closed and "why" in str(wire.engine.error)


# Peers that mean no good.


def test_a_second_init_closes() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users))
    wire.raw(SASL_HEADER)
    wire.send("sasl-init", mechanism="PLAIN")
    assert wire.send("sasl-init", mechanism="PLAIN", initial_response=b"\0u\0secret") == []
    assert wire.engine.closed and "SASL frame init where response was due" in str(wire.engine.error)


def test_an_exchange_without_an_end_is_ended_at_the_client() -> None:
    client = Engine(server=False, container_id="c", sasl=SaslClient(username="u", password="p"))
    client.receive(SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=symbols("PLAIN")))
    for _ in range(100):
        client.receive(write("sasl-challenge", challenge=b""))
    assert "does not end" in str(client.error)
    assert client.take_output().count(b"\0u\0p") < 20


def test_an_init_behind_a_good_end_is_no_header() -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users))
    wire.raw(SASL_HEADER)
    wire.send("sasl-init", mechanism="PLAIN", initial_response=b"\0u\0secret")
    wire.send("sasl-init", mechanism="PLAIN", initial_response=b"\0v\0secret")
    assert wire.engine.closed
    assert [event[0] for event in wire.events()] == [events.AUTHENTICATED, events.FAILED]


@pytest.mark.parametrize("response", [b"\0\xff\0secret", b"\0u\0\xff"])
def test_octets_that_are_no_text_are_no_credentials(response: bytes) -> None:
    wire = Wire(sasl=SaslServer(["PLAIN"], users))
    wire.raw(SASL_HEADER)
    [outcome] = wire.send("sasl-init", mechanism="PLAIN", initial_response=response)
    assert outcome.code == 1


@pytest.mark.parametrize(
    ("credentials", "missing"),
    [
        ({}, "no username was given"),
        ({"username": "alice"}, "no password was given"),
        ({"password": "x"}, "no username was given"),
        ({"token": "t"}, None),
    ],
)
def test_what_the_server_takes_and_was_not_given_is_said(credentials: dict[str, str], missing: str | None) -> None:
    with pytest.raises(Fault) as caught:
        SaslClient(**credentials).choose(("SCRAM-SHA-256",))
    said = str(caught.value.description)
    assert ("it takes a username and a password" in said) is (missing is not None) and (missing or "") in said


@pytest.mark.parametrize(("mechanism", "said"), [("ANONYMOUS", "'ANONYMOUS'"), ("X" * 9000, "'of a long name'")])
def test_a_mechanism_that_was_not_offered_is_a_failed_login_as_any(mechanism: str, said: str) -> None:
    """Its owner hears of it, who keeps the log and slows down who fails."""
    wire = Wire(sasl=SaslServer(["PLAIN"], users, judged=True))
    wire.raw(SASL_HEADER)
    assert wire.send("sasl-init", mechanism=mechanism, initial_response=b"") == []
    [(kind, verdict)] = wire.events()
    assert (kind, verdict.identity) == (events.JUDGED, None)
    assert verdict.reason == f"the mechanism {said} was not offered"
    wire.engine.decide(verdict)
    [outcome] = wire.read()
    assert outcome.code == 1 and wire.engine.closed


MECHANISMS = SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"])


@pytest.mark.parametrize(
    ("word", "layered", "heard", "said"),
    [
        ("p", False, b"", "the protocol handshake, as a port that expects TLS does$"),
        ("p", True, b"", "the protocol handshake$"),
        ("p", False, SASL_HEADER, "the SASL exchange$"),
        ("p", False, MECHANISMS[:20], "the SASL exchange$"),
        ("p", False, MECHANISMS, "the SASL exchange, upon our PLAIN$"),
        ("p" * 600, False, MECHANISMS, r"the SASL exchange, upon our PLAIN, which has 6\d\d octets: not every broker"),
        ("p", False, MECHANISMS + write("sasl-outcome", code=0), "the protocol handshake$"),
    ],
)
def test_where_the_peer_hung_up_is_told(word: str, layered: bool, heard: bytes, said: str) -> None:
    """Only before its first word, and without TLS around, it may be TLS that the peer waits for."""
    engine = Engine(server=False, container_id="c", sasl=SaslClient(None, "u", word, layered=layered))
    engine.receive(heard)
    engine.receive_eof()
    [(_, error)] = expect(engine, events.FAILED)
    assert re.search(f"the peer closed the socket in the middle of {said}", error.description)
    assert "pp" not in error.description
