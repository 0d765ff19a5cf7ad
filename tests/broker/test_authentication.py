"""Who comes in, by what, and what nobody learns: the broker's side of SASL, without a socket, thread or clock."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from jmsish.broker import BrokerConfig, ConfigurationError, scram_key
from jmsish.broker.authentication import Authentication, AuthenticationConfig
from jmsish.broker.certificates import identity_of, subject_text
from jmsish.broker.slowing import FREE, LONGEST_DELAY, MOST_HELD
from jmsish.broker.users import User, Users
from jmsish.broker.users_file import make_user
from jmsish.engine.oauth import read_bearer
from jmsish.engine.sasl import SaslClient
from jmsish.engine.scram import normalise
from jmsish.errors import JMSSecurityError  # noqa: F401 - the name that a client meets, for who searches
from tests.broker.world import World

USERS = {"users": {"alice": {"password": "secret"}}}
CERTIFICATE = {
    "subject": ((("countryName", "DE"),), (("organizationName", "A, B"),), (("commonName", "alice"),)),
    "subjectAltName": (("DNS", "a.example"), ("email", "alice@example.org"), ("URI", "urn:alice"), ("email", "x@y")),
}


def token(mechanism: str, response: bytes | None) -> str | None:
    if mechanism == "PLAIN":
        return "by-plain" if response == b"\0bob\0word" else None
    return "by-token" if read_bearer(mechanism, response).token == "good" else None


def offered(
    users: dict[str, User] | None = None, ask: Any = None, config: dict[str, Any] | None = None, **given: Any
) -> list[str]:
    broker = Authentication(AuthenticationConfig(**(config or {})), users or {}, ask)
    return list(broker.offer(**{"trusted": False, **given}).mechanisms)


ALICE = {"alice": User("secret")}
SCRAM = ["SCRAM-SHA-512", "SCRAM-SHA-256"]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ["PLAIN", "ANONYMOUS"]),
        ({"exposed": True}, ["PLAIN", "ANONYMOUS"]),
        ({"certificate": CERTIFICATE}, ["EXTERNAL"]),
        ({"users": ALICE}, [*SCRAM, "PLAIN"]),
        ({"users": ALICE, "exposed": True}, SCRAM),
        ({"users": ALICE, "exposed": True, "config": {"allow_cleartext": True}}, [*SCRAM, "PLAIN"]),
        ({"users": ALICE, "certificate": CERTIFICATE}, ["EXTERNAL", *SCRAM, "PLAIN"]),
        ({"users": ALICE, "trusted": True}, ["PLAIN", "ANONYMOUS"]),
        ({"ask": token}, ["OAUTHBEARER", "XOAUTH2", "PLAIN"]),
        ({"ask": token, "exposed": True}, []),
        ({"users": ALICE, "ask": token}, [*SCRAM, "OAUTHBEARER", "XOAUTH2", "PLAIN"]),
        ({"users": ALICE, "ask": token, "exposed": True}, SCRAM),
        ({"users": ALICE, "config": {"mechanisms": ("PLAIN", "EXTERNAL", SCRAM[1])}}, ["PLAIN", SCRAM[1]]),
        ({"config": {"users_file": "f"}}, []),
        ({"users": {"alice": User(certificate="alice")}}, ["PLAIN"]),
    ],
)  # fmt: skip
def test_what_is_offered_to_whom(given: dict[str, Any], names: list[str]) -> None:
    """The table at the head of `broker/authentication.py`."""
    assert offered(**given) == names


def test_anonymous_is_off_as_soon_as_there_are_users() -> None:
    assert "ANONYMOUS" in offered()
    for given in ({"users": ALICE}, {"ask": token}, {"config": {"users_file": "f"}}):
        assert "ANONYMOUS" not in offered(**given)
        broker = Authentication(
            AuthenticationConfig(**given.get("config", {})), given.get("users", {}), given.get("ask")
        )
        assert not broker.offer(trusted=False).allow_no_sasl


def test_an_empty_file_of_users_lets_nobody_in() -> None:
    world = World({"authentication": {"users_file": "users.toml"}})
    assert world.connect(sasl=SaslClient(), trusted=False).failed
    assert world.connect(sasl=SaslClient(username="u", password="p"), trusted=False).failed
    world.broker.authentication.take_file({"u": User("p")})
    assert not world.connect(sasl=SaslClient(username="u", password="p"), trusted=False).failed


def test_users_of_the_file_come_and_go_and_those_of_the_configuration_stay() -> None:
    world = World(USERS)
    world.broker.authentication.take_file({"bob": User("word"), "alice": User("other")})
    for name, password, enters in (("bob", "word", True), ("alice", "secret", True), ("alice", "other", False)):
        peer = world.connect(sasl=SaslClient(username=name, password=password), trusted=False)
        assert bool(peer.failed) is not enters
    world.broker.authentication.take_file({})
    assert world.connect(sasl=SaslClient(username="bob", password="word"), trusted=False).failed


# The authenticator.


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "XOAUTH2"])
@pytest.mark.parametrize(("given", "enters"), [("good", True), ("bad", False)])
def test_a_token_is_judged_by_the_authenticator(mechanism: str, given: str, enters: bool) -> None:
    world = World(authenticator=token)
    peer = world.connect(sasl=SaslClient(token=given, mechanisms=[mechanism]), trusted=False)
    assert bool(peer.failed) is not enters
    assert [view.identity for view in world.broker.connections()] == ["by-token"] * enters


def test_without_users_the_authenticator_judges_plain_too() -> None:
    world = World(authenticator=token)
    assert not world.connect(sasl=SaslClient(username="bob", password="word"), trusted=False).failed
    assert world.connect(sasl=SaslClient(username="bob", password="wrong"), trusted=False).failed
    assert world.broker.connections()[0].identity == "by-plain"


@pytest.mark.parametrize("answer", [True, 7, "", b"alice", ["alice"], "a\0b", "a\nb", "a\x85b", "a\ud800"])
def test_what_is_no_name_is_a_fault_and_lets_nobody_in(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    world = World(authenticator=lambda mechanism, response: answer)
    with caplog.at_level(logging.WARNING, "jmsish.broker"):
        peer = world.connect(sasl=SaslClient(token="t0ken"), trusted=False)
    assert peer.failed[0].condition == "amqp:connection:forced", "no refusal: a system error"
    assert "the authenticator answered" in caplog.text and "t0ken" not in caplog.text


# Certificates.


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("common-name", "alice"),
        ("subject", "CN=alice,O=A\\, B,C=DE"),
        ("email", "alice@example.org"),
        ("dns", "a.example"),
        ("uri", "urn:alice"),
    ],
)
def test_a_name_is_taken_from_the_part_of_the_certificate_that_was_chosen(kind: str, name: str) -> None:
    assert identity_of(CERTIFICATE, kind) == name
    world = World({"authentication": {"certificate_identity": kind}, **USERS})
    accepted = {"certificate": CERTIFICATE}
    peer = world.connect(sasl=SaslClient(external=True), trusted=False, accepted=accepted)
    assert not peer.failed and world.broker.connections()[0].identity == name


@pytest.mark.parametrize("kind", ["common-name", "subject", "email", "dns", "uri"])
def test_a_certificate_without_a_name_is_nobody(kind: str) -> None:
    assert identity_of({"subject": (), "subjectAltName": ()}, kind) is None
    for name in ("a\0b", "a\nb", "\x1b[31mred", "a\x9bb"):
        alternatives = tuple((each, name) for each in ("DNS", "email", "URI"))
        assert identity_of({"subject": ((("commonName", name),),), "subjectAltName": alternatives}, kind) is None
    assert offered(certificate={"serialNumber": "1"}, config={"certificate_identity": kind}) == []


def test_no_name_has_orders_for_a_terminal_in_it() -> None:
    """Where every name is believed, too: a client made by hand says it, for ours does not."""
    ask = Authentication(AuthenticationConfig(), {}).offer(trusted=False).authenticate
    assert ask("PLAIN", "\x1b[31mred", "") is None and ask("PLAIN", "a\nb", "") is None
    assert (ask("PLAIN", "J\u00fcrgen", ""), ask("PLAIN", "", "")) == ("J\u00fcrgen", "anonymous")


def test_a_subject_is_written_as_rfc_4514_has_it() -> None:
    subject = ((("commonName", ' #a+b"c\\d;e<f>g '), ("userId", "u")), (("givenName", "#x"),))
    assert subject_text({"subject": subject}) == 'givenName=\\#x,CN=\\ #a\\+b\\"c\\\\d\\;e\\<f\\>g\\ +UID=u'


def test_of_several_common_names_the_most_specific_counts() -> None:
    subject = ((("commonName", "the company"),), (("commonName", "alice"),))
    assert identity_of({"subject": subject}, "common-name") == "alice"


def test_a_user_may_be_bound_to_a_certificate_which_then_is_the_only_one() -> None:
    users = {"users": {"alice": {"certificate": "CN=alice,O=A\\, B,C=DE"}, "bob": {"certificate": "alice"}}}
    by_subject = World({"authentication": {"certificate_identity": "subject"}, **users})
    accepted = {"certificate": CERTIFICATE}
    by_subject.connect(sasl=SaslClient(external=True), trusted=False, accepted=accepted)
    assert by_subject.broker.connections()[0].identity == "alice"
    by_name = World(users)
    by_name.connect(sasl=SaslClient(external=True), trusted=False, accepted=accepted)
    assert by_name.broker.connections()[0].identity == "bob", "not alice, who shows another one"
    alone = World({"users": {"alice": {"certificate": "somebody"}}})
    assert alone.connect(sasl=SaslClient(external=True), trusted=False, accepted=accepted).failed


def test_a_certificate_names_one_user_and_nobody_acts_as_another() -> None:
    world = World()
    accepted = {"certificate": CERTIFICATE}
    assert world.connect(sasl=SaslClient(username="root", external=True), trusted=False, accepted=accepted).failed
    assert world.connect(sasl=SaslClient(username="root", password="x"), trusted=False, accepted=accepted).failed
    assert world.connect(sasl=SaslClient(), trusted=False, accepted=accepted).failed
    assert not world.connect(sasl=SaslClient(username="alice", external=True), trusted=False, accepted=accepted).failed


# Names and passwords by SASLprep.


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(
    ("name", "typed", "password", "sent"),
    [
        ("Jürgen", "Ju\u0308rgen", "pässword", "pa\u0308ssword"),
        ("a,b=c", "a,b=c", "p,=w", "p,=w"),
        ("ⅸ", "ix", "word", "wo\u00adrd"),
        ("a\u00a0b", "a b", "p w", "p\u00a0w"),
    ],
)
def test_what_is_the_same_by_saslprep_is_the_same(
    mechanism: str, name: str, typed: str, password: str, sent: str
) -> None:
    world = World({"users": {name: {"password": password}}})
    world.connect(sasl=SaslClient(username=typed, password=sent, mechanisms=[mechanism]), trusted=False)
    assert [view.identity for view in world.broker.connections()] == [name]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("given", [("", ""), ("alice", ""), ("", "secret"), ("\0", "secret"), ("alice\0", "secret")])
def test_empty_is_nobody_and_no_password(mechanism: str, given: tuple[str, str]) -> None:
    world = World(USERS)
    sasl = SaslClient(username=given[0], password=given[1], mechanisms=[mechanism])
    assert world.connect(sasl=sasl, trusted=False).failed


# What is the same for an unknown name and a wrong password.

KEYED = {"users": {"alice": {"scram_sha_256": scram_key("SCRAM-SHA-256", "secret")}}}


@pytest.mark.parametrize("config", [USERS, KEYED], ids=["password", "key"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_an_unknown_name_and_a_wrong_password_hear_the_same_after_the_same_work(
    config: dict[str, Any], mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the time is measured, which says nothing on a busy machine, but how often what takes time is done."""
    from jmsish.broker import users

    work: list[str] = []
    derive, digest = users.ScramKey.derive, users.hmac.compare_digest
    monkeypatch.setattr(
        users.ScramKey, "derive", classmethod(lambda cls, *a, **k: work.append("derive") or derive(*a, **k))
    )
    monkeypatch.setattr(users.hmac, "compare_digest", lambda a, b: work.append("compare") or digest(a, b))
    heard = {}
    world = World(config)
    world.connect(sasl=SaslClient(username="alice", password="secret", mechanisms=[mechanism]), trusted=False)
    for name in ("alice", "nobody"):
        work.clear()
        peer = world.connect(sasl=SaslClient(username=name, password="wrong", mechanisms=[mechanism]), trusted=False)
        error = peer.failed[0]
        heard[name] = (error.condition, error.description.replace(name, "NAME"), list(work))
    assert heard["alice"] == heard["nobody"]


@pytest.mark.parametrize("user", [User("pässwörd"), make_user("jürgen", "pässwörd", iterations=4096)])
def test_what_saslprep_costs_is_the_same_for_an_unknown_name(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    from jmsish.broker import users

    known = Users({"jürgen": user})
    work: list[str] = []
    monkeypatch.setattr(users, "normalise", lambda text: work.append(text) or normalise(text))
    spent = {}
    for name in ("jürgen", "nöbody"):
        work.clear()
        known.check(name, "wröng")
        spent[name] = len(work)
    assert spent["jürgen"] == spent["nöbody"]


def test_a_secret_key_of_the_broker_makes_up_keys_that_say_nothing() -> None:
    one, two = (Authentication(AuthenticationConfig(), ALICE)._users for _ in range(2))
    assert one.find("SCRAM-SHA-256", "nobody") == one.find("SCRAM-SHA-256", "nobody")
    assert one.find("SCRAM-SHA-256", "nobody") != two.find("SCRAM-SHA-256", "nobody")
    assert one.find("SCRAM-SHA-256", "nobody")[1] is None


def salted(*names: str, iterations: int = 4096) -> dict[str, User]:
    return {name: make_user(name, "secret", iterations=iterations) for name in names}


def heard_by(broker: Authentication, *names: str) -> list[tuple[bytes, int]]:
    server = broker.offer(trusted=False)
    assert server.scram is not None
    keys = [server.scram("SCRAM-SHA-256", name)[0] for name in names]
    return [(key.salt, key.iterations) for key in keys]


def test_what_an_unknown_name_hears_stays_as_long_as_what_a_known_one_hears() -> None:
    """Else whoever asks before and after a new file, or a restart, learns who is a user: a salt in the file stays."""
    users, names = salted("alice", "bob") | salted("carl", iterations=5000), ("alice", "carl", "nobody", "somebody")
    broker = Authentication(AuthenticationConfig(users_file="f"), {})
    broker.take_file(users)
    before = heard_by(broker, *names)
    broker.take_file(users | salted("dora"))
    assert heard_by(broker, *names) == before
    broker.take_file(users | {"eve": User("a password in the clear")})
    assert heard_by(broker, *names) == before
    again = Authentication(AuthenticationConfig(users_file="f"), {})
    again.take_file(users)
    assert heard_by(again, *names) == before
    other = Authentication(AuthenticationConfig(users_file="f"), {})
    other.take_file(salted("alice", "bob"))
    assert heard_by(other, *names)[2:] != before[2:]


def test_what_a_name_costs_stays_the_same_too() -> None:
    """An unknown name is compared with the key of some user: with that of the same one, whoever asks again."""
    users = salted("a") | salted("b", iterations=5000) | salted("c", iterations=6000)
    first, second = Users(users), Users(users)
    for name in ("nobody", "somebody", "x", "y"):
        assert first._alike(name) is second._alike(name)


# Failed attempts.


def attempt(world: World, password: str, host: str = "10.0.0.1", name: str = "alice") -> Any:
    sasl = SaslClient(username=name, password=password, mechanisms=["PLAIN"])
    return world.connect(sasl=sasl, trusted=False, accepted={"peer": f"{host}:1234"})


def decided(peer: Any) -> bool:
    return bool(peer.failed) or peer.engine.negotiated


def test_failed_attempts_wait_longer_and_longer_and_others_do_not() -> None:
    world = World(USERS)
    for _ in range(FREE):
        assert attempt(world, "wrong").failed, "people mistype"
    for delay in (0.25, 0.5, 1.0, 2.0, LONGEST_DELAY, LONGEST_DELAY):
        peer = attempt(world, "wrong")
        assert not decided(peer)
        assert decided(attempt(world, "secret", host="10.0.0.2")), "another host is not slowed"
        world.advance(delay * 0.99)
        assert not decided(peer)
        world.advance(delay * 0.02)
        assert peer.failed


def test_a_yes_waits_like_a_no_and_wipes_the_slate() -> None:
    world = World(USERS)
    for _ in range(FREE):
        attempt(world, "wrong")
    right = attempt(world, "secret")
    assert not decided(right), "else who hears nothing at once could try the next"
    world.advance(0.26)
    assert decided(right) and not right.failed
    assert attempt(world, "wrong").failed and len(world.broker.slowing) == 1


def test_time_forgives() -> None:
    world = World(USERS)
    for _ in range(FREE + 2):
        attempt(world, "wrong")
        world.advance(5)
    world.advance(700)
    assert attempt(world, "wrong").failed


def test_so_many_answers_are_held_back_and_further_attempts_sent_away() -> None:
    world = World(USERS)
    for _ in range(FREE):
        attempt(world, "wrong")
    held = [attempt(world, "wrong") for _ in range(MOST_HELD)]
    assert not any(map(decided, held))
    sent_away = attempt(world, "secret")
    assert sent_away.failed[0].condition == "amqp:connection:forced"
    assert "passing" in sent_away.failed[0].description
    world.advance(LONGEST_DELAY + 0.1)
    assert all(peer.failed for peer in held)


def test_who_leaves_while_it_waits_is_gone() -> None:
    world = World(USERS)
    for _ in range(FREE):
        attempt(world, "wrong")
    peer = attempt(world, "wrong")
    peer.cut()
    world.advance(1)
    assert peer.connection.closed


def test_inside_the_process_nobody_waits() -> None:
    world = World(USERS)
    for _ in range(FREE + 1):
        attempt(world, "wrong")
    assert not world.connect(sasl=SaslClient(), trusted=True).failed


def test_who_fails_is_logged_by_host_and_not_by_what_was_typed(caplog: pytest.LogCaptureFixture) -> None:
    """People type a password where the name should be."""
    world = World(USERS)
    with caplog.at_level(logging.DEBUG):
        attempt(world, "p4ssw0rd", name="t1ppfehler")
    assert "10.0.0.1" in caplog.text
    assert "p4ssw0rd" not in caplog.text and "t1ppfehler" not in caplog.text


# The section of the configuration.


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"mechanisms": ["PLAN"]}, "did you mean 'PLAIN'"),
        ({"mechanisms": []}, "nobody could come in"),
        ({"mechanisms": "PLAIN"}, "a list of strings"),
        ({"allow_cleartext": "yes"}, "true or false"),
        ({"certificate_identity": "cn"}, "one of common-name, subject, email, dns, uri"),
        ({"users_file": 3}, "a string"),
        ({"user_file": "x"}, "did you mean 'users_file'"),
        ({"users_file": "x", "mechanisms": ["PLAIN", "ANONYMOUS"]}, "ANONYMOUS is off where there are users"),
    ],
)
def test_what_is_wrong_in_the_section_is_told(section: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=r"\[authentication\]") as caught:
        BrokerConfig.from_mapping({"authentication": section})
    assert said in str(caught.value)


SECRET = {"password": "hunter2"}


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ({"": SECRET}, "a user needs a name, not ''"),
        ({5: SECRET}, "a name must be a string, not 5"),
        ({"a\nb": SECRET}, "a user cannot be called 'a\\nb': no login can carry control characters"),
        ({"a": {"password": ""}}, "password in [users.a] is empty"),
        ({"a": {"certificate": ""}}, "certificate in [users.a] is empty"),
        ({"IX": SECRET, "\u2168": SECRET}, "[users.\u2168] is the same name to a login as 'IX', by SASLprep"),
        ({"\uff41": SECRET, "a": SECRET}, "[users.a] is the same name to a login as '\uff41', by SASLprep"),
        ({"a": {"certificate": "c"}, "b": {"certificate": "c"}}, "[users.b] has the certificate of 'a'"),
    ],
)
def test_users_that_would_be_nobody_or_somebody_else_are_told(users: dict[str, Any], said: str) -> None:
    """An empty password let in who gave none; of two that are one to a login, the first could not come in."""
    with pytest.raises(ConfigurationError) as caught:
        BrokerConfig.from_mapping({"users": users})
    assert said in str(caught.value) and "hunter2" not in str(caught.value)


def test_no_repr_of_a_configuration_shows_a_secret() -> None:
    config = BrokerConfig.from_mapping(
        {
            "users": {
                "alice": {"password": "hunter2"},
                "bob": {"scram_sha_256": scram_key("SCRAM-SHA-256", "hunter2")},
            },
            "listeners": [{"certificate": "c", "key_password": "hunter2"}],
        }
    )
    assert "hunter2" not in repr(config) and config.users["bob"].keys["SCRAM-SHA-256"].text() not in repr(config)
    with pytest.raises(ConfigurationError) as caught:
        BrokerConfig.from_mapping(
            {"users": {"alice": {"password": ["hunter2"], "scram_sha_512": "hunter2"}},
             "listeners": [{"certificate": "c", "key_password": ["hunter2"]}]}
        )  # fmt: skip
    assert "hunter2" not in str(caught.value)
