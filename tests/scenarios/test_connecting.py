"""Bad input at the door: wrong URLs, wrong options, wrong hosts, wrong credentials, wrong protocols."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jmsish
from jmsish.engine.sasl import SaslServer
from tests.relay import vacant_port

from .face import Face
from .steps import expect, outcome, send

PEM = Path(__file__).parent / "data" / "localhost.pem"


async def refused(face: Face, url: str, **options: Any) -> jmsish.JMSError:
    result = await outcome(face.connect(url, **options))
    assert isinstance(result, jmsish.JMSError), f"{url} was accepted"
    return result


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("amqpp://127.0.0.1", "amqp"),
        ("ampq://127.0.0.1", "amqp"),
        ("amqp://127.0.0.1?jms.prefech=10", "prefetch"),
        ("amqp://127.0.0.1?jms.cancel_on_comit=never", "cancel_on_commit"),
    ],
)
async def test_unknown_scheme_or_option_with_the_near_miss(face: Face, url: str, near: str) -> None:
    """An unknown scheme or option of a URL is a ValueError that says what was probably meant."""
    with pytest.raises(ValueError, match=near):
        await face.connect(url)


async def test_unknown_keyword_option_with_the_near_miss(face: Face) -> None:
    """The same for keywords, which mean the same as the options of a URL."""
    with pytest.raises(ValueError, match="prefetch"):
        await face.connect(prefech=10)
    with pytest.raises(ValueError, match="cancel_on_commit"):
        await face.connect(cancel_on_commit="sometimes")


async def test_unreachable_host_names_host_and_port(face: Face) -> None:
    """A port where nobody listens: an error that names host and port, quickly."""
    with vacant_port() as port:
        error = await refused(face, f"amqp://127.0.0.1:{port}")
    assert "127.0.0.1" in str(error) and str(port) in str(error)


async def test_unknown_host_is_named(face: Face) -> None:
    """A name that does not resolve is named in the error."""
    error = await refused(face, "amqp://no-such-host.invalid:5672")
    assert "no-such-host.invalid" in str(error)


async def test_unknown_embedded_broker_names_those_there_are(face: Face) -> None:
    """`vm://` with a name that no broker of this process has: the error names it, and those that run."""
    name = face.broker.url.removeprefix("vm://")
    error = await refused(face, "vm://nobody")
    assert "nobody" in str(error) and name in str(error)


USERS = {"users": {"alice": {"password": "secret"}}}


@pytest.mark.parametrize(
    "given", [{}, {"username": "alice", "password": "wrong"}, {"username": "eve", "password": "secret"}]
)
async def test_refused_credentials(face: Face, given: dict[str, Any]) -> None:
    """With users configured, TCP without or with wrong credentials is JMSSecurityError; in memory nobody is asked."""
    face.broker_with(config=USERS)
    if face.wire == "vm":
        await send(await face.connect(**given), "orders", "m1")
    else:
        assert isinstance(await refused(face, face.url, **given), jmsish.JMSSecurityError)
    right = await face.connect(username="alice", password="secret")
    await send(right, "orders", "m2")


async def test_a_password_is_proven_by_scram(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a socket the password does not travel, unless the caller wants PLAIN."""
    begun = []
    begin = SaslServer.begin
    monkeypatch.setattr(SaslServer, "begin", lambda self, name: begun.append(name) or begin(self, name))
    face.broker_with(config=USERS)
    await send(await face.connect(username="alice", password="secret"), "orders", "m1")
    others = ("SCRAM-SHA-256", "PLAIN") if face.wire == "tcp" else ("PLAIN",)  # In memory there is nobody to hide from.
    for name in others:
        await face.connect(username="alice", password="secret", sasl_mechanisms=(name,))
    assert begun == ["SCRAM-SHA-512" if face.wire == "tcp" else "PLAIN", *others]


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(PEM)
    return server, ssl.create_default_context(cafile=str(PEM))


tcp_only = pytest.mark.parametrize("face", ["sync-tcp", "aio-tcp"], indirect=True)
"""For what only a socket can do wrong."""


@tcp_only
async def test_tls(face: Face) -> None:
    """TLS with a certificate that the client verifies; the same work as without."""
    server, client = contexts()
    listener = face.broker.listen(ssl_context=server)
    assert listener.url.startswith("amqps://")
    connection = await face.connect(f"amqps://localhost:{listener.port}", ssl_context=client)
    await send(connection, "orders", "m1")
    session = await connection.create_session()
    await expect(await session.create_consumer(session.create_queue("orders")), "m1 none")


@tcp_only
async def test_tls_verifies_by_default(face: Face) -> None:
    """Without the authority's certificate the broker is not believed; the error says so."""
    server, _ = contexts()
    listener = face.broker.listen(ssl_context=server)
    error = await refused(face, f"amqps://localhost:{listener.port}")
    assert "certificate" in str(error).lower()


@tcp_only
async def test_tls_on_a_plain_port_and_the_reverse(face: Face) -> None:
    """TLS on a plain port, and plain on a TLS port: errors that name TLS; the broker serves others on."""
    server, client = contexts()
    secure = face.broker.listen(ssl_context=server)
    error = await refused(face, face.url.replace("amqp://", "amqps://"), ssl_context=client, connect_timeout=5)
    assert "TLS" in str(error)
    error = await refused(face, f"amqp://127.0.0.1:{secure.port}", connect_timeout=5)
    assert "TLS" in str(error)
    await send(await face.connect(), "orders", "m1")


@pytest.fixture
def answering(octets: bytes) -> Iterator[int]:
    """A server that answers whatever comes with these octets, and closes; the client has to close as well."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(octets)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    yield listener.getsockname()[1]
    listener.close()
    server.join(30)
    assert not server.is_alive(), "the client left its socket open"


@tcp_only
@pytest.mark.parametrize(
    ("octets", "name"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "HTTP"),
        (b"AMQP\x00\x00\x09\x01", "AMQP 0-9-1"),
        (b"AMQP\x01\x01\x00\x0a", "AMQP 0-10"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
    ],
    ids=["http", "amqp-0-9-1", "amqp-0-10", "tls"],
)
async def test_a_wrong_protocol_is_named(face: Face, answering: int, octets: bytes, name: str) -> None:
    """Another protocol on the socket is an error that names it."""
    error = await refused(face, f"amqp://127.0.0.1:{answering}", connect_timeout=5)
    assert name in str(error)


@tcp_only
@pytest.mark.parametrize(
    "octets",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(32),
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x00\x01\x00\x00\xff\xff\xff\xff\x02\x00\x00\x00",
        b"AMQP\x00\x01\x00\x00\x00\x00\x00\x04\x02\x00\x00\x00",
        b"AMQP\x00\x01\x00\x00\x00\x00\x00\x10\x02\x00\x00\x00\x00\x53\x10\xc0\x7f\x03\xa1",
        bytes(range(256)),
    ],
    ids=["http", "tls", "amqp-0-9-1", "huge-frame", "short-frame", "truncated-open", "noise"],
)
async def test_noise_at_the_broker_disturbs_nobody(face: Face, octets: bytes) -> None:
    """Octets that are no AMQP 1.0: the broker closes that socket, serves the others on, and its queues are
    unchanged."""
    connection = await face.connect()
    await send(connection, "orders", "m1")
    with socket.create_connection((face.listener.host, face.listener.port), timeout=10) as noisy:
        noisy.sendall(octets)
        noisy.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while noisy.recv(4096):
                pass
    await face.sight("orders").holds(1, acquired=0)
    session = await connection.create_session()
    await expect(await session.create_consumer(session.create_queue("orders")), "m1 none")
    await send(await face.connect(), "orders", "m2")


async def test_a_connection_that_is_refused_leaves_nothing_behind(face: Face) -> None:
    """After refusals of all kinds the broker knows no connection but the living ones."""
    with pytest.raises(ValueError):
        await face.connect("amqpp://127.0.0.1")
    await refused(face, "vm://nobody")
    await face.connect()
    assert len(list(face.broker.connections())) == 1
