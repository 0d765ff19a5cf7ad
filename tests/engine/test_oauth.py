"""OAUTHBEARER and XOAUTH2, both ends, octet by octet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jmsish.engine import events
from jmsish.engine.conditions import Fault
from jmsish.engine.engine import Engine
from jmsish.engine.mechanisms import Credentials
from jmsish.engine.oauth import OAuthBearerClient, XOAuth2Client, check_token, read_bearer
from jmsish.engine.sasl import SaslClient, SaslServer
from tests.engine.pair import Pair, Wire, expect
from tests.wire.frames import SASL_HEADER, read, write

BOTH = pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "XOAUTH2"])


def authenticator(mechanism: str, response: bytes | None) -> str | None:
    return "alice" if read_bearer(mechanism, response).token == "good" else None


def opened(mechanism: str, token: str) -> Pair:
    server = SaslServer([mechanism], lambda *_: None, token=authenticator)
    pair = Pair(client={"sasl": SaslClient(username="a=b,c", token=token, host="h", port=1)}, server={"sasl": server})
    pair.client.open()
    pair.pump()
    [(_, question)] = expect(pair.server, events.ASKED)
    pair.server.decide(question())
    pair.pump()
    return pair


@pytest.mark.parametrize(
    ("kind", "octets"),
    [
        (OAuthBearerClient, b"n,a=a=3Db=2Cc,\x01host=h\x01port=1\x01auth=Bearer tok\x01\x01"),
        (XOAuth2Client, b"user=a=b,c\x01auth=Bearer tok\x01\x01"),
    ],
)
def test_what_a_client_sends(kind: Callable[[Credentials], OAuthBearerClient], octets: bytes) -> None:
    """RFC 7628, 3.1; a comma in a name would end the header, an equals sign would begin an escape."""
    first = kind(Credentials("a=b,c", token="tok", host="h", port=1)).start()
    assert first == octets


def test_a_token_may_stand_alone() -> None:
    assert OAuthBearerClient(Credentials(token="tok")).start() == b"n,,\x01auth=Bearer tok\x01\x01"
    assert XOAuth2Client(Credentials(token="tok")).start() == b"user=\x01auth=Bearer tok\x01\x01"


@BOTH
def test_a_good_token_lets_in(mechanism: str) -> None:
    pair = opened(mechanism, "good")
    assert (events.AUTHENTICATED, "alice", mechanism) in pair.server.take_events()


@BOTH
def test_a_bad_token_is_told_in_json_and_then_refused(mechanism: str) -> None:
    """RFC 7628, 3.2.3: an error, a dummy response of the client, and the outcome."""
    pair = opened(mechanism, "bad-token")
    names = [(way, frame.name) for way, frame in pair.frames]
    assert names[-3:] == [("<", "sasl-challenge"), (">", "sasl-response"), ("<", "sasl-outcome")]
    [response] = pair.sent(">", "sasl-response")
    assert response.response == (b"\x01" if mechanism == "OAUTHBEARER" else b"")
    [(_, error)] = expect(pair.client, events.FAILED)
    assert error.condition == "amqp:unauthorized-access"
    assert ("invalid_token" if mechanism == "OAUTHBEARER" else "401") in error.description
    for said in (pair.client.error, pair.server.error):
        assert "bad-token" not in str(said)


@BOTH
def test_a_server_that_goes_on_after_its_no(mechanism: str) -> None:
    client = Engine(server=False, container_id="c", sasl=SaslClient(token="t", mechanisms=[mechanism]))
    client.receive(SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=[mechanism]))
    client.receive(write("sasl-challenge", challenge=b"{}") + write("sasl-challenge", challenge=b"{}"))
    assert "went on after it had refused" in str(client.error)


@pytest.mark.parametrize("challenge", [b"\xff", b"[]", b"not json", b'{"status": 7}', b'{"status": "\\n"}'])
def test_an_error_that_is_none_is_passed_over(challenge: bytes) -> None:
    client = Engine(server=False, container_id="c", sasl=SaslClient(token="t"))
    client.receive(SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=["OAUTHBEARER"]))
    client.receive(write("sasl-challenge", challenge=challenge) + write("sasl-outcome", code=1))
    assert str(client.error).endswith("the credentials were refused")


@BOTH
def test_a_server_that_asks_for_the_first_word(mechanism: str) -> None:
    client = Engine(server=False, container_id="c", sasl=SaslClient(token="t", mechanisms=[mechanism]))
    client.receive(SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=[mechanism]))
    client.take_output()
    client.receive(write("sasl-challenge", challenge=b""))
    [response] = read(client.take_output())
    assert b"auth=Bearer t\x01\x01" in response.response


@BOTH
def test_a_client_without_a_first_word_is_asked_for_it(mechanism: str) -> None:
    wire = Wire(sasl=SaslServer([mechanism], lambda *_: None, token=authenticator))
    wire.raw(SASL_HEADER)
    [challenge] = wire.send("sasl-init", mechanism=mechanism)
    assert (challenge.name, challenge.challenge) == ("sasl-challenge", b"")


@BOTH
@pytest.mark.parametrize(
    "response",
    [
        b"", b"\x01\x01", b"n,,\x01auth=Bearer \x01\x01", b"n,,\x01auth=Bearer x\x01", b"n,,\x01\x01",
        b"n,,\x01auth=Basic x\x01\x01", b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
        b"user=\xff\x01auth=Bearer x\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer x\x01\x01", b"n,a=x=Y,\x01auth=Bearer x\x01\x01",
        b"n,b,\x01auth=Bearer x\x01\x01",
        b"auth=Bearer x\x01\x01", b"n,,\x01novalue\x01auth=Bearer x\x01\x01", b"n,,\x01auth=Bearer a b\x01\x01",
    ],
)  # fmt: skip
def test_what_is_no_response_is_refused_and_nobody_is_asked(mechanism: str, response: bytes) -> None:
    wire = Wire(sasl=SaslServer([mechanism], lambda *_: None, token=authenticator))
    wire.raw(SASL_HEADER)
    [outcome] = wire.send("sasl-init", mechanism=mechanism, initial_response=response)
    assert (outcome.name, outcome.code) == ("sasl-outcome", 1) and wire.engine.closed


def test_what_is_read_of_a_response() -> None:
    bearer = read_bearer("OAUTHBEARER", b"n,a=a=3Db=2Cc,\x01host=h\x01AUTH=bearer tok\x01\x01")
    assert (bearer.user, bearer.token) == ("a=b,c", "tok")
    assert "tok" not in repr(bearer).replace("token=", "")
    assert read_bearer("XOAUTH2", b"user=\x01auth=Bearer tok\x01\x01") == ("", "tok")


@pytest.mark.parametrize("token", ["", "a b", "a\x01b", "ä", "a\n"])
def test_what_cannot_be_a_token(token: str) -> None:
    with pytest.raises(ValueError, match="characters that cannot") as caught:
        check_token(token)
    assert not token or token not in str(caught.value)
    with pytest.raises(TypeError, match="bytes"):
        check_token(b"token")


def test_a_token_goes_before_a_password_and_never_goes_in_as_nobody() -> None:
    both = SaslClient(username="u", password="p", token="t")
    assert both.choose(["PLAIN", "SCRAM-SHA-256", "XOAUTH2", "OAUTHBEARER"]).name == "OAUTHBEARER"
    assert both.choose(["PLAIN", "SCRAM-SHA-256"]).name == "SCRAM-SHA-256"
    with pytest.raises(Fault, match="OAUTHBEARER, XOAUTH2$"):
        SaslClient(token="t").choose(["ANONYMOUS"])
