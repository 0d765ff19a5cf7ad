"""Logging in and TLS, as an application sees them: each on the blocking and the asyncio face, over TCP and over TLS."""

from __future__ import annotations

import asyncio
import logging
import shutil
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme

import jmsish
from jmsish.broker import read_bearer, scram_key
from jmsish.broker.users_file import format_users, make_user
from jmsish.drivers import frame_trace
from jmsish.drivers.files import replace_file
from jmsish.drivers.tls_contexts import client_context

from .face import Face
from .steps import expect, send

tcp_only = pytest.mark.parametrize("face", ["sync-tcp", "aio-tcp"], indirect=True)
both_wires = pytest.mark.parametrize("wire", ["tcp", "tls"])
PATIENCE = 20
HUNTER = "hunter2"


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem, server.pem, client.pem with their keys inside, and another authority's certificate for the same host."""
    place = tmp_path_factory.mktemp("certificates")
    authority.cert_pem.write_to_path(place / "ca.pem")
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(place / "server.pem")
    alice = authority.issue_cert("alice@example.org", common_name="alice")
    alice.private_key_and_cert_chain_pem.write_to_path(place / "client.pem")
    other = trustme.CA()
    other.cert_pem.write_to_path(place / "other-ca.pem")
    other.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(place / "other.pem")
    return place


class Place:
    """Where to connect, over one of the wires."""

    def __init__(self, face: Face, wire: str, files: Path) -> None:
        self.face = face
        self.wire = wire
        self.files = files
        self.listener: Any = None

    def listen(self, **settings: Any) -> Place:
        if self.wire == "tls":
            settings = {"certificate": str(self.files / "server.pem"), **settings}
        self.listener = self.face.broker.listen(**settings)
        return self

    async def connect(self, **options: Any) -> Any:
        if self.wire == "tls":
            options.setdefault("tls_ca", str(self.files / "ca.pem"))
        scheme = "amqps" if self.wire == "tls" else "amqp"
        return await self.face.connect(f"{scheme}://localhost:{self.listener.port}", **options)

    async def refused(self, kind: type[Exception] = jmsish.JMSSecurityError, **options: Any) -> str:
        with pytest.raises(kind) as caught:
            await self.connect(**options)
        assert HUNTER not in str(caught.value) and HUNTER not in repr(caught.value)
        return str(caught.value)

    def identities(self) -> list[str | None]:
        return [view.identity for view in self.face.broker.connections()]


@pytest.fixture
def place(face: Face, wire: str, files: Path) -> Place:
    return Place(face, wire, files)


def judge(mechanism: str, response: bytes | None) -> str | None:
    bearer = read_bearer(mechanism, response)
    return bearer.user or "somebody" if bearer.token == "good" else None


# Tokens.


@tcp_only
@both_wires
@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "XOAUTH2"])
async def test_a_token_is_fetched_at_each_connect(face: Face, place: Place, mechanism: str) -> None:
    face.broker_with(authenticator=judge)
    place.listen()
    tokens = iter(["good", "good", HUNTER])
    options: dict[str, Any] = {"token": lambda: next(tokens), "sasl_mechanisms": (mechanism,)}
    await place.connect(username="alice", **options)
    await place.connect(**options)
    assert sorted(map(str, place.identities())) == ["alice", "somebody"]
    said = await place.refused(**options)
    assert mechanism in said and ("invalid_token" in said or "401" in said)


@pytest.mark.parametrize("face", ["aio-tcp"], indirect=True)
@both_wires
async def test_a_token_may_be_awaited(face: Face, place: Place) -> None:
    async def fetch() -> str:
        await asyncio.sleep(0)
        return "good"

    face.broker_with(authenticator=judge)
    await place.listen().connect(token=fetch)
    assert place.identities() == ["somebody"]


@pytest.mark.parametrize("face", ["sync-tcp"], indirect=True)
@both_wires
async def test_a_token_that_must_be_awaited_is_none_for_the_blocking_face(face: Face, place: Place) -> None:
    async def fetch() -> str:
        return HUNTER

    assert "jmsish.aio" in await place.listen().refused(TypeError, token=fetch)


@tcp_only
@both_wires
async def test_what_goes_wrong_with_a_token_is_told_without_it(face: Face, place: Place) -> None:
    face.broker_with(authenticator=judge)
    place.listen()

    def fails() -> str:
        raise LookupError(HUNTER)

    assert "LookupError" in await place.refused(token=fails)
    await place.refused(ValueError, token=lambda: f"{HUNTER} and more")
    await place.refused(TypeError, token=lambda: HUNTER.encode())
    await place.refused(TypeError, token=lambda: None)


async def test_in_memory_nobody_asks_for_a_token(face: Face) -> None:
    if face.wire == "vm":
        face.broker_with(authenticator=judge)
        await send(await face.connect(token=lambda: pytest.fail("asked")), "orders", "m1")


@tcp_only
@both_wires
async def test_a_slow_authenticator_holds_up_nobody(face: Face, place: Place) -> None:
    """Whoever is in works on, and others log in, while one login is thought about."""
    begun, go = threading.Event(), threading.Event()

    def slow(mechanism: str, response: bytes | None) -> str | None:
        if read_bearer(mechanism, response).token == "slow":
            begun.set()
            assert go.wait(PATIENCE)
        return "somebody"

    face.broker_with(authenticator=slow)
    place.listen()
    inside = await place.connect(token=lambda: "quick")
    waiting = await face.spawn(place.connect(token=lambda: "slow"))
    while not begun.is_set():
        await face.yield_()
        begun.wait(0.001)
    await send(inside, "orders", "m1")
    await place.connect(token=lambda: "quick")
    assert not waiting.done()
    go.set()
    await send(await waiting, "orders", "m2")


@tcp_only
@both_wires
async def test_an_authenticator_that_raises_lets_nobody_in(
    face: Face, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    def raises(mechanism: str, response: bytes | None) -> str | None:
        raise LookupError(f"no such token: {response!r}")

    face.broker_with(authenticator=raises)
    with caplog.at_level(logging.DEBUG):
        said = await place.listen().refused(jmsish.JMSError, token=lambda: HUNTER)
    assert "system error" in said and "LookupError" in caplog.text and HUNTER not in caplog.text


# Passwords.


@tcp_only
@both_wires
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_salted_key_logs_in_by_each_mechanism(face: Face, place: Place, mechanism: str) -> None:
    keys = {f"scram_sha_{bits}": scram_key(f"SCRAM-SHA-{bits}", "secret") for bits in (256, 512)}
    face.broker_with(config={"users": {"alice": keys}})
    place.listen()
    await place.connect(username="alice", password="secret", sasl_mechanisms=(mechanism,))
    await place.refused(username="alice", password=HUNTER, sasl_mechanisms=(mechanism,))


@tcp_only
async def test_no_password_is_sent_to_another_machine_without_tls(
    face: Face, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ends refuse: the client before it sends, the broker by not offering what would reveal it."""
    face.broker_with(authenticator=lambda mechanism, response: "somebody")
    place = Place(face, "tcp", files).listen()
    sent: list[bytes] = []
    monkeypatch.setattr("jmsish._credentials.is_loopback", lambda host: False)
    monkeypatch.setattr("jmsish.engine.mechanisms.PlainClient.start", lambda self: sent.append(b"!") or b"")
    for given in ({"username": "alice", "password": HUNTER}, {"token": lambda: HUNTER}):
        said = await place.refused(**given)
        assert "was not sent" in said and "allow_cleartext=True" in said and not sent
    for secret in ({"username": "name", "password": "key"}, {"token": lambda: HUNTER}):  # to be said at $cbs
        assert "cbs would send the password or token in the clear" in await place.refused(cbs=True, **secret)
    monkeypatch.setattr("jmsish.drivers.outlet.is_loopback", lambda host: False)
    assert "the server offers none" in await place.refused(token=lambda: HUNTER, allow_cleartext=True)
    monkeypatch.setattr("jmsish.drivers.outlet.is_loopback", lambda host: True)
    await place.connect(token=lambda: "good", allow_cleartext=True)


@tcp_only
@both_wires
async def test_the_file_of_users_is_read_again_when_it_changes(
    face: Face, place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "users.toml"
    replace_file(str(path), "")
    face.broker_with(config={"authentication": {"users_file": str(path)}})
    place.listen()
    alice = {"username": "alice", "password": "secret"}
    await place.refused(**alice)
    replace_file(str(path), format_users({"alice": make_user("alice", "secret", iterations=4096)}))
    inside = await place.connect(**alice)
    replace_file(str(path), "not = [toml")
    await place.connect(**alice)
    assert "the users stay as they were" in caplog.text
    replace_file(str(path), format_users({"bob": make_user("bob", "secret", iterations=4096)}))
    await place.refused(**alice)
    await send(inside, "orders", "m1")
    path.unlink()
    with pytest.raises(ValueError, match="users_file"):
        face.broker.reload()
    await place.connect(username="bob", password="secret")


# Certificates.


@tcp_only
async def test_a_certificate_logs_in(face: Face, files: Path) -> None:
    place = Place(face, "tls", files)
    place.listen(client_ca=str(files / "ca.pem"), require_client_certificate=True)
    await place.connect(tls_certificate=str(files / "client.pem"))
    context = client_context(ca=str(files / "ca.pem"), certificate=str(files / "client.pem"))
    await place.connect(ssl_context=context, tls_ca=None)
    assert place.identities() == ["alice", "alice"]
    # By TLS 1.3 the client may have said something before it hears that it is refused; it hears why all the same.
    said = await place.refused(jmsish.ConnectionLostError)
    assert "localhost" in said and "TLS: the peer did not accept the certificate: certificate required" in said
    context = client_context(ca=str(files / "ca.pem"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    said = await place.refused(jmsish.ConnectionLostError, ssl_context=context, tls_ca=None)
    assert "localhost" in said and "TLS: the peer ended it: handshake failure" in said


@tcp_only
async def test_who_gives_a_password_beside_a_certificate_logs_in_by_the_password(face: Face, files: Path) -> None:
    face.broker_with(config={"users": {"bob": {"password": "secret"}}})
    place = Place(face, "tls", files).listen(client_ca=str(files / "ca.pem"))
    certificate = str(files / "client.pem")
    await place.connect(tls_certificate=certificate, username="bob", password="secret")
    await place.connect(tls_certificate=certificate)
    assert sorted(map(str, place.identities())) == ["alice", "bob"]


@tcp_only
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tls_ca": "other-ca.pem"}, "certificate was not accepted: "),
        ({"tls_ca": None}, "certificate was not accepted: "),
        ({"tls_server_name": "other.example"}, "certificate was not accepted: Hostname mismatch"),
    ],
)
async def test_a_certificate_that_is_not_believed(face: Face, files: Path, options: dict[str, Any], said: str) -> None:
    """The error names host, stage and cause."""
    place = Place(face, "tls", files).listen()
    if options.get("tls_ca"):
        options = {"tls_ca": str(files / options["tls_ca"])}
    error = await place.refused(jmsish.ConnectionLostError, **options)
    assert f"cannot connect to localhost:{place.listener.port}: TLS: the {said}" in error


@tcp_only
@pytest.mark.parametrize("options", [{"tls_verify": False}, {"tls_verify_host": False}])
async def test_verification_can_be_taken_away_by_name(face: Face, files: Path, options: dict[str, Any]) -> None:
    place = Place(face, "tls", files).listen()
    await place.connect(tls_server_name="other.example", **options)


@tcp_only
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tls_ca": "none.pem"}, "tls_ca='.*none.pem': No such file"),
        ({"tls_certificate": "ca.pem"}, "tls_certificate='.*ca.pem': there is no certificate with its key"),
        ({"tls_key": "client.pem"}, "tls_key is the key of tls_certificate"),
        ({"tls_key_password": "client.pem"}, "tls_key_password opens the key of tls_certificate"),
    ],
)
async def test_files_that_are_no_good_are_named(face: Face, files: Path, options: dict[str, str], said: str) -> None:
    place = Place(face, "tls", files).listen()
    with pytest.raises(ValueError, match=said):
        await place.connect(**{name: str(files / value) for name, value in options.items()})
    context = client_context(ca=str(files / "ca.pem"))
    with pytest.raises(ValueError, match="tls_ca and ssl_context are both given"):
        await place.connect(ssl_context=context)


@tcp_only
@pytest.mark.parametrize("shape", ["{}", "failover:({})", "failover:({0},{0})"])
async def test_a_context_without_tls_is_an_error_and_not_passed_over(face: Face, files: Path, shape: str) -> None:
    """Who gives one means to be safe; in a list of brokers one with TLS is enough."""
    plain, safe = face.broker.listen(), Place(face, "tls", files).listen().listener
    context = client_context(ca=str(files / "ca.pem"))
    for url in (shape.format(plain.url), shape.format(face.broker.url)):
        with pytest.raises(ValueError, match=r"ssl_context is for TLS, which .* has not: amqps://"):
            await face.connect(url, ssl_context=context)
    with pytest.raises(TypeError, match=r"ssl_context must be an ssl\.SSLContext, not bool"):
        await face.connect(shape.format(f"amqps://localhost:{safe.port}"), ssl_context=True)
    await face.connect(f"failover:({plain.url},amqps://localhost:{safe.port})", ssl_context=context)


@tcp_only
async def test_a_new_certificate_is_shown_without_a_restart(
    face: Face, files: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shown = tmp_path / "server.pem"
    shutil.copy(files / "server.pem", shown)
    place = Place(face, "tls", files).listen(certificate=str(shown))
    inside = await place.connect()
    replace_file(str(shown), (files / "other.pem").read_text())
    await place.refused(jmsish.ConnectionLostError)
    await place.connect(tls_ca=str(files / "other-ca.pem"))
    replace_file(str(shown), "half a file")
    await place.connect(tls_ca=str(files / "other-ca.pem"))
    assert "the new one is no good" in caplog.text
    with pytest.raises(ValueError, match="certificate"):
        face.broker.reload()
    replace_file(str(shown), (files / "server.pem").read_text())
    face.broker.reload()
    await place.connect()
    await send(inside, "orders", "m1")
    session = await inside.create_session()
    await expect(await session.create_consumer(session.create_queue("orders")), "m1 none")


@tcp_only
async def test_both_ends_say_amqp_and_at_least_tls_1_2(
    face: Face, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ALPN and the name of the host, as a server that knows nothing of us sees them."""
    agreed: list[Any] = []
    place = Place(face, "tls", files).listen()
    context = ssl.create_default_context(cafile=str(files / "ca.pem"))
    context.set_alpn_protocols(["http/1.1", "amqp"])
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context.minimum_version = context.maximum_version = version
        await (await face.spawn(_look(context, place.listener.port, agreed)))
    assert agreed == ["amqp", "amqp"]
    ours = client_context()
    assert ours.minimum_version == ssl.TLSVersion.TLSv1_2 and ours.check_hostname
    assert ours.verify_mode == ssl.CERT_REQUIRED


async def _look(context: ssl.SSLContext, port: int, agreed: list[Any]) -> None:
    import socket

    with socket.create_connection(("localhost", port), timeout=PATIENCE) as plain:
        plain.settimeout(PATIENCE)
        with context.wrap_socket(plain, server_hostname="localhost") as secured:
            agreed.append(secured.selected_alpn_protocol())


# Listeners that other machines reach.


@pytest.mark.parametrize("face", ["sync-vm"], indirect=True)
@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
async def test_nothing_is_served_to_all_the_world_by_accident(face: Face, files: Path, host: str) -> None:
    """The error says what is missing, and by what name it is allowed."""
    both = r"refused.*nobody would be asked.*and all that is sent could be read.*allow_insecure"
    with pytest.raises(ValueError, match=both):
        face.broker.listen(host)
    server, authority = str(files / "server.pem"), str(files / "ca.pem")
    with pytest.raises(ValueError, match="nobody would be asked") as caught:
        face.broker.listen(host, certificate=server)
    assert "read on the way" not in str(caught.value)
    if host == "0.0.0.0":
        certified = {"certificate": server, "client_ca": authority}
        face.broker.listen(host, **certified, require_client_certificate=True)
        with pytest.raises(ValueError, match="nobody would be asked"):
            face.broker.listen(host, **certified)
        face.broker.listen(host, allow_insecure=True)


@pytest.mark.parametrize("face", ["sync-vm"], indirect=True)
async def test_users_alone_or_an_authenticator_alone_are_not_enough(face: Face, files: Path) -> None:
    face.broker_with(config={"users": {"alice": {"password": "secret"}}})
    with pytest.raises(ValueError, match="refused.*read on the way") as caught:
        face.broker.listen("0.0.0.0")
    assert "nobody would be asked" not in str(caught.value)
    face.broker.listen("0.0.0.0", certificate=str(files / "server.pem"))
    with jmsish.EmbeddedBroker(authenticator=judge) as other:
        other.listen("0.0.0.0", certificate=str(files / "server.pem"))


@pytest.mark.parametrize("face", ["sync-vm"], indirect=True)
async def test_a_listener_of_the_configuration_has_the_same_rule_and_files_beside_it(
    face: Face, files: Path, tmp_path: Path
) -> None:
    shutil.copy(files / "server.pem", tmp_path / "server.pem")
    config = tmp_path / "broker.toml"
    listener = '[[listeners]]\nhost = "0.0.0.0"\nport = 0\n'
    config.write_text(listener)
    with pytest.raises(ValueError, match="refused"):
        jmsish.EmbeddedBroker(config=config).start()
    replace_file(str(tmp_path / "users.toml"), format_users({"u": make_user("u", "p", iterations=4096)}))
    config.write_text(f'[authentication]\nusers_file = "users.toml"\n{listener}certificate = "server.pem"\n')
    with jmsish.EmbeddedBroker(config=config) as broker:
        assert broker.listeners[0].url.startswith("amqps://0.0.0.0:")
    config.write_text(f"{listener}allow_insecure = true\n")
    with jmsish.EmbeddedBroker(config=config) as broker:
        assert broker.listeners[0].url.startswith("amqp://0.0.0.0:")


@pytest.mark.parametrize("face", ["sync-vm"], indirect=True)
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"key": "x"}, "go with certificate"),
        ({"certificate": "none.pem"}, "No such file"),
        ({"certificate": "ca.pem"}, "no certificate with its key"),
        ({"certificate": "server.pem", "require_client_certificate": True}, "needs client_ca"),
        ({"certificate": "server.pem", "ssl_context": ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)}, "both given"),
    ],
)
async def test_what_is_wrong_with_the_tls_of_a_listener(
    face: Face, files: Path, settings: dict[str, Any], said: str
) -> None:
    named = {name: str(files / each) if isinstance(each, str) else each for name, each in settings.items()}
    with pytest.raises(ValueError, match=said):
        face.broker.listen(**named)


# Nothing secret, anywhere.


@tcp_only
@both_wires
@pytest.mark.parametrize("trace", ["frm", "raw"])
async def test_no_secret_is_in_any_log_trace_error_or_repr(
    face: Face,
    place: Place,
    trace: str,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Each way in, right and wrong, with everything logged and traced: then all of it is searched."""
    frame_trace.begin(trace)
    request.addfinalizer(frame_trace.end)
    config = {"users": {"alice": {"password": HUNTER}}}

    def judge_all(mechanism: str, response: bytes | None) -> str | None:
        return "somebody" if read_bearer(mechanism, response).token == HUNTER else None

    broker = face.broker_with(config=config, authenticator=judge_all)
    place.listen()
    shown: list[str] = [repr(broker), str(broker), repr(place.listener)]
    with caplog.at_level(logging.DEBUG):
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            options: dict[str, Any] = {"username": "alice", "sasl_mechanisms": (mechanism,)}
            connection = await place.connect(password=HUNTER, **options)
            shown += [repr(connection), repr(vars(connection._core)), repr(connection.metadata)]
            shown.append(await place.refused(password=f"{HUNTER}x", **options))
        for mechanism in ("OAUTHBEARER", "XOAUTH2"):
            options = {"sasl_mechanisms": (mechanism,)}
            await place.connect(token=lambda: HUNTER, **options)
            shown.append(await place.refused(token=lambda: f"{HUNTER}x", **options))
    factory = jmsish.ConnectionFactory("amqp://localhost", username="alice", password=HUNTER)
    frame_trace.flush()
    shown += [repr(factory), str(factory), caplog.text, *capfd.readouterr()]
    for text in shown:
        assert HUNTER not in text and HUNTER.encode().hex() not in text
    assert any("sasl-init" in text for text in shown), "the trace was on"
