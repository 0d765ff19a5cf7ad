"""SCRAM, both ends: who gets in, who does not, and what neither of them learns."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import scramp

from jmsish.broker.authentication import Authentication, AuthenticationConfig
from jmsish.broker.users import User, Users, scram_key
from jmsish.engine import events
from jmsish.engine.conditions import Fault
from jmsish.engine.engine import Engine
from jmsish.engine.sasl import SaslClient, SaslServer, Verdict
from jmsish.engine.scram import (
    LONGEST_MESSAGE,
    LONGEST_TEXT,
    SCRAM_MECHANISMS,
    ScramKey,
    ScramServer,
    normalise,
)
from tests.engine.pair import Pair, Wire, expect
from tests.wire.frames import SASL_HEADER, Frame, read, write

BOTH = pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
SALT = bytes(range(16))


def keyed(mechanism: str, password: str, iterations: int = 4096) -> User:
    return User(None, {mechanism: ScramKey.parse(mechanism, scram_key(mechanism, password, iterations=iterations))})


def asked(users: dict[str, User]) -> SaslServer:
    """What a broker with these users asks of a connection, told without a broker around it."""
    server = Authentication(AuthenticationConfig(), users).offer(trusted=False)
    server.judged, server.prepare = False, None
    return server


def opened(users: dict[str, User], **client: Any) -> Pair:
    pair = Pair(client={"sasl": SaslClient(**client)}, server={"sasl": asked(users)})
    pair.client.open()
    pair.pump()
    return pair


def identity(pair: Pair) -> tuple[Any, ...]:
    heard = pair.server.take_events()
    while heard and heard[0][0] == events.ASKED:
        pair.server.decide(heard[0][1]())
        pair.pump()
        heard = pair.server.take_events()
    return next((event[1:] for event in heard if event[0] == events.AUTHENTICATED), ())


@BOTH
@pytest.mark.parametrize("name", ["u", "a=b,c", "Jürgen", "ⅸ"])
def test_a_password_is_proven_and_not_sent(mechanism: str, name: str) -> None:
    pair = opened({name: User("päss,=w")}, username=name, password="päss,=w", mechanisms=[mechanism])
    assert identity(pair) == (name, mechanism)
    assert not any("ss,=w" in repr(frame) for _, frame in pair.frames)
    [outcome] = pair.sent("<", "sasl-outcome")
    assert outcome.code == 0 and outcome.additional_data.startswith(b"v=")


@BOTH
def test_a_key_in_place_of_a_password(mechanism: str) -> None:
    users = {"u": keyed(mechanism, "secret", 5000)}
    assert identity(opened(users, username="u", password="secret")) == ("u", mechanism)
    assert identity(opened(users, username="u", password="secret", mechanisms=["PLAIN"])) == ("u", "PLAIN")
    for refused in ("Secret", "", "\x07"):
        for allowed in ([mechanism], ["PLAIN"]):
            pair = opened(users, username="u", password=refused, mechanisms=allowed)
            assert identity(pair) == () and expect(pair.client, events.FAILED)


def test_only_what_every_user_can_use_is_offered() -> None:
    both, less, more = User("x"), keyed("SCRAM-SHA-256", "x"), keyed("SCRAM-SHA-512", "x")
    assert Users({"a": both}).mechanisms == ("SCRAM-SHA-512", "SCRAM-SHA-256")
    assert Users({"a": both, "b": less}).mechanisms == ("SCRAM-SHA-256",)
    assert Users({"a": more, "b": less}).mechanisms == ()
    assert identity(opened({"a": more, "b": less}, username="b", password="x")) == ("b", "PLAIN")


def test_where_nobody_is_asked_scram_is_not_offered() -> None:
    """Any password is good there, and SCRAM could not prove it."""
    assert identity(opened({}, username="u", password="any")) == ("u", "PLAIN")


def test_characters_that_scram_forbids_go_another_way() -> None:
    pair = opened({"u": User("\U0001f642"), "v": User("x")}, username="u", password="\U0001f642")
    assert identity(pair) == ("u", "PLAIN")


@BOTH
@pytest.mark.parametrize("kind", [lambda mechanism: User("secret"), lambda mechanism: keyed(mechanism, "secret", 6000)])
def test_an_unknown_name_hears_what_a_wrong_password_hears(mechanism: str, kind: Any) -> None:
    users = {"alice": kind(mechanism)}
    broker = Authentication(AuthenticationConfig(), users)
    said = {name: talk(broker, mechanism, name, "wrong") for name in ("alice", "nobody")}
    assert [shape(frames) for frames in said["alice"]] == [shape(frames) for frames in said["nobody"]]
    assert talk(broker, mechanism, "nobody", "wrong")[1].challenge.split(b",")[1:] == fields(said["nobody"])[1:]
    others = talk(broker, mechanism, "somebody", "wrong")
    assert fields(others)[1] != fields(said["nobody"])[1], "a salt for each name"
    assert fields(said["alice"])[2] == fields(said["nobody"])[2], "as many iterations"


def talk(broker: Authentication, mechanism: str, name: str, password: str) -> list[Frame]:
    server = broker.offer(trusted=False)
    server.judged, server.prepare = False, None
    wire = Wire(sasl=server)
    frames = wire.raw(SASL_HEADER)[1:]
    client = scramp.ScramClient([mechanism], name, password)
    first = client.get_client_first().encode()
    [challenge] = wire.send("sasl-init", mechanism=mechanism, initial_response=first)
    client.set_server_first(challenge.challenge.decode())
    [outcome] = wire.send("sasl-response", response=client.get_client_final().encode())
    assert outcome.code == 1 and outcome.additional_data is None and wire.engine.closed
    assert password not in str(wire.engine.error) and name not in str(wire.engine.error)
    return [*frames, challenge, outcome]


def fields(frames: list[Frame]) -> list[bytes]:
    parts: list[bytes] = frames[1].challenge.split(b",")
    return parts


def shape(frame: Frame) -> tuple[str, list[int]]:
    challenge = frame.challenge if frame.name == "sasl-challenge" else b""
    return frame.name, [len(part) for part in challenge.split(b",")]


@pytest.mark.parametrize(
    "octets",
    [b"", b"n", b"n,,", b"n,,n=u", b"n,,n=u,r=", b"n,,n=u,r=\xff", b"p=tls-unique,,n=u,r=abc", b"n,a=v,n=u,r=abc",
     b"n,,n==2,r=abc", b"n,,m=x,n=u,r=abc", b"\0u\0secret", b"n,,n=,r=abc", b"x" * 9000],
    ids=lambda octets: repr(octets[:20]),
)  # fmt: skip
def test_a_first_message_that_is_none(octets: bytes) -> None:
    wire = Wire(sasl=asked({"u": User("secret")}))
    wire.raw(SASL_HEADER)
    [outcome] = wire.send("sasl-init", mechanism="SCRAM-SHA-256", initial_response=octets)
    assert outcome.code == 1 and wire.engine.closed


@pytest.mark.parametrize(
    "octets", [b"", b"c=biws", b"c=biws,r=abc,p=AAAA", b"c=?,r=%s,p=AAAA", b"c=biws,r=%s,p=AAAA", b"\xff"]
)
def test_a_final_message_that_is_none(octets: bytes) -> None:
    wire = Wire(sasl=asked({"u": User("secret")}))
    wire.raw(SASL_HEADER)
    [empty] = wire.send("sasl-init", mechanism="SCRAM-SHA-512")
    assert (empty.name, empty.challenge) == ("sasl-challenge", b"")
    [challenge] = wire.send("sasl-response", response=b"n,,n=u,r=abc")
    nonce = challenge.challenge.split(b",")[0].removeprefix(b"r=")
    [outcome] = wire.send("sasl-response", response=octets.replace(b"%s", nonce))
    assert outcome.code == 1 and wire.engine.closed


class Server:
    """A server made by hand, at which our client is."""

    def __init__(self, password: str = "secret") -> None:
        self.exchange = scramp.ScramMechanism("SCRAM-SHA-256").make_server(self.find)
        self.password = password
        self.client = Engine(server=False, container_id="c", sasl=SaslClient(username="u", password="secret"))
        self.client.receive(SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=["PLAIN", "SCRAM-SHA-256"]))
        init = read(self.client.take_output())[-1]
        assert init.mechanism == "SCRAM-SHA-256"
        self.exchange.set_client_first(init.initial_response.decode())

    def find(self, name: str) -> Any:
        return scramp.ScramMechanism("SCRAM-SHA-256").make_auth_info(self.password, salt=SALT)

    def challenge(self) -> None:
        self.client.receive(write("sasl-challenge", challenge=self.exchange.get_server_first().encode()))
        [response] = read(self.client.take_output())
        self.exchange.set_client_final(response.response.decode())

    def failure(self) -> str:
        assert self.client.error is not None and self.client.error.condition == "amqp:unauthorized-access"
        assert "secret" not in str(self.client.error)
        return str(self.client.error)


def test_the_servers_proof_may_come_as_a_challenge() -> None:
    server = Server()
    server.challenge()
    server.client.receive(write("sasl-challenge", challenge=server.exchange.get_server_final().encode()))
    [response] = read(server.client.take_output())
    assert (response.name, response.response) == ("sasl-response", b"")
    server.client.receive(write("sasl-outcome", code=0))
    assert [frame.name for frame in read(server.client.take_output())] == ["header"]


@pytest.mark.parametrize(
    ("additional", "said"),
    [(None, "not prove"), (b"", "not prove"), (b"v=AAAA", "does not hold"), (b"e=other-error", "does not hold")],
)
def test_a_server_that_does_not_prove_itself_is_left(additional: bytes | None, said: str) -> None:
    server = Server()
    server.challenge()
    server.client.receive(write("sasl-outcome", code=0, additional_data=additional))
    assert said in server.failure()


def test_a_server_that_says_yes_at_once_is_left() -> None:
    server = Server()
    server.client.receive(write("sasl-outcome", code=0, additional_data=b"v=AAAA"))
    assert "does not hold" in server.failure()


@pytest.mark.parametrize("octets", [b"", b"\xff", b"r=other,s=AAAA,i=4096", b"e=unknown-user", b"r=x,s=%%,i=1"])
def test_a_challenge_that_is_none(octets: bytes) -> None:
    server = Server()
    server.client.receive(write("sasl-challenge", challenge=octets))
    assert "SCRAM-SHA-256: the server's message" in server.failure()


def test_few_iterations_are_refused() -> None:
    """Else a false server could ask for a proof that is quickly searched."""
    server = Server()
    first = server.exchange.get_server_first().replace("i=4096", "i=1")
    server.client.receive(write("sasl-challenge", challenge=first.encode()))
    assert "does not hold" in server.failure()


def test_scram_is_taken_before_plain_unless_the_caller_says_otherwise() -> None:
    offered = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-256-PLUS"]
    assert SaslClient(username="u", password="p").choose(offered).name == "SCRAM-SHA-512"
    assert SaslClient(["PLAIN"], username="u", password="p").choose(offered).name == "PLAIN"
    with pytest.raises(Fault, match="SCRAM-SHA-512, SCRAM-SHA-256, PLAIN"):
        SaslClient(username="u", password="p").choose(["GSSAPI"])


@BOTH
def test_a_key_is_read_as_it_is_written(mechanism: str) -> None:
    key = ScramKey.derive(mechanism, "secret", salt=SALT, iterations=7000)
    assert ScramKey.parse(mechanism, key.text()) == key
    assert repr(key) == "ScramKey(iterations=7000)" == str(key)
    assert repr(User("secret", {mechanism: key})) == "User(certificate=None)"
    assert "secret" not in repr(SaslClient(username="u", password="secret").credentials)


GOOD = ScramKey.derive("SCRAM-SHA-256", "secret", salt=SALT).text().split(":")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "iterations:salt:stored-key:server-key"),
        (":".join(["x", *GOOD[1:]]), "number of iterations"),
        (":".join(["100", *GOOD[1:]]), "4096 to"),
        (":".join(["99999999", *GOOD[1:]]), "4096 to"),
        (":".join([GOOD[0], "AAAA", *GOOD[2:]]), "12 octets"),
        (":".join([*GOOD[:3], "?"]), "base64"),
        (":".join([*GOOD[:3], "AAAA"]), "32 octets"),
    ],
)
def test_a_key_that_is_none(text: str, said: str) -> None:
    with pytest.raises(ValueError) as raised:
        ScramKey.parse("SCRAM-SHA-256", text)
    assert said in str(raised.value)
    assert not any(part in str(raised.value) for part in GOOD[1:])


def test_the_library_is_imported_only_for_an_exchange() -> None:
    program = """
import sys, jmsish
with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url):
    assert not [name for name in sys.modules if name.startswith(("scramp", "asn1crypto"))]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


# What somebody who is nobody yet can have us compute.


LIGATURE = "\ufdfa"
"""Eighteen characters by SASLprep, each of which is looked at."""


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", f"\0{LIGATURE * 2500}\0{LIGATURE * 2500}"),
        ("PLAIN", "\0alice\0" + "p" * 15_000),
        ("SCRAM-SHA-256", f"n,,n={LIGATURE * 5000},r=abc"),
        ("SCRAM-SHA-512", "n,,n=" + "a" * 15_000 + ",r=abc"),
    ],
)
@pytest.mark.parametrize("user", [User("pässword"), keyed("SCRAM-SHA-256", "pässword")], ids=["password", "keys"])
def test_long_names_and_passwords_are_not_looked_at(
    mechanism: str, response: str, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One frame of 15 KB, before anybody has logged in, took a quarter of a second of everybody's time."""
    looked: list[str] = []
    prepare = scramp.core.saslprep
    monkeypatch.setattr(scramp.core, "saslprep", lambda text: looked.append(text) or prepare(text))
    wire = Wire(sasl=asked({"alice": user, "bob": keyed("SCRAM-SHA-512", "x")}))
    wire.raw(SASL_HEADER)
    wire.send("sasl-init", mechanism=mechanism, initial_response=response.encode())
    for event in wire.events():
        if event[0] == events.ASKED:
            wire.engine.decide(event[1]())
    wire.read()
    outcome = wire.frames[-1]
    assert outcome.name == "sasl-outcome" and outcome.fields["code"] == 1
    assert max(map(len, looked), default=0) <= LONGEST_TEXT


def test_what_is_too_long_for_saslprep() -> None:
    assert normalise("ä" * LONGEST_TEXT) == "ä" * LONGEST_TEXT and normalise("ä" * (LONGEST_TEXT + 1)) is None
    with pytest.raises(ValueError, match=f"where {LONGEST_TEXT} are the most"):
        ScramKey.derive("SCRAM-SHA-256", "p" * (LONGEST_TEXT + 1), salt=SALT)


def test_a_message_of_a_client_is_short() -> None:
    server = ScramServer("SCRAM-SHA-256", lambda mechanism, name: (KEY, None))
    assert isinstance(server.step(b"n,,n=a,r=" + b"b" * (LONGEST_MESSAGE - 9)), bytes)
    server = ScramServer("SCRAM-SHA-256", lambda mechanism, name: (KEY, None))
    assert server.step(b"n,,n=a,r=" + b"b" * (LONGEST_MESSAGE - 8)) == Verdict(None)


KEY = ScramKey.derive("SCRAM-SHA-256", "x", salt=SALT)
