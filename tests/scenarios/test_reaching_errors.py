"""What stands in the way of a connection is told with host, port, stage and cause, and is one attempt that failed."""

from __future__ import annotations

import logging
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

import jmsish
from jmsish.broker import read_bearer
from jmsish.drivers.tls import TlsCodec
from jmsish.testing import cut
from tests.cli import servers

from .blocking import Blocking
from .face import Face
from .steps import outcome, send, unanswered

tcp_only = pytest.mark.parametrize("face", ["sync-tcp", "aio-tcp"], indirect=True)


@tcp_only
@pytest.mark.parametrize(
    ("scheme", "server", "told"),
    [
        ("amqp", servers.amqp_091, "speaks AMQP 0-9-1, not AMQP 1.0 (stage: SASL)"),
        ("amqp", servers.http, "speaks HTTP, not AMQP 1.0 (stage: SASL)"),
        ("amqp", servers.closing, "(stage: SASL)"),
        ("amqp", servers.silent, "did not answer within {} s (stage: SASL)"),
        ("amqps", servers.amqp_091, "TLS: the peer speaks AMQP without TLS"),
        ("amqps", servers.http, "TLS: the peer speaks HTTP without TLS"),
        ("amqps", servers.ssh, "TLS: the peer does not speak TLS"),
        ("amqps", servers.closing, "TLS: "),
        ("amqps", servers.silent, "TLS: no answer within {} s"),
        ("amqpws", servers.amqp_091, "WebSocket: the peer speaks AMQP without WebSocket"),
        ("amqpws", servers.ssh, "WebSocket: the handshake failed: the peer does not speak HTTP"),
        ("amqpws", servers.http, "WebSocket: the server answered HTTP 400 Bad Request"),
        ("amqpws", servers.closing, "WebSocket: "),
        ("amqpws", servers.silent, "WebSocket: no answer within {} s"),
        ("amqpwss", servers.ssh, "TLS: the peer does not speak TLS"),
    ],
)
async def test_another_server_is_told_with_its_stage(face: Face, scheme: str, server: Any, told: str) -> None:
    with servers.serving(server) as place:
        url = f"{scheme}://{place}"
        if server is servers.silent:
            error: Any = await unanswered(face, url, told)
        else:
            error = await outcome(face.connect(url, connect_timeout=10))
            assert told in str(error)
    assert isinstance(error, jmsish.ConnectionLostError) and place in str(error)


@pytest.fixture
def says_it_closes(tmp_path: Path) -> Iterator[str]:
    """A server that ends its TLS by the book after the first words, and waits until the peer ends the socket."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)

    def serve() -> None:
        client, _ = listener.accept()
        codec = TlsCodec(context, server_side=True)
        with suppress(OSError), client:
            heard = b""
            while not heard:
                heard = codec.receive(client.recv(4096))
                client.sendall(codec.take())
            codec.close()
            client.sendall(codec.take())
            while client.recv(4096):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"amqps://localhost:{listener.getsockname()[1]}?jms.tls_ca={tmp_path / 'ca.pem'}"


@tcp_only
async def test_a_peer_that_ends_its_tls_is_not_waited_for(face: Face, says_it_closes: str) -> None:
    """RFC 8446, 6.1: nothing comes behind a close_notify, though the socket is open."""
    error = await outcome(face.connect(says_it_closes, connect_timeout=10))
    assert "the peer closed the socket in the middle of the protocol handshake" in str(error)


async def mended(face: Face, connection: Any) -> None:
    """The wire breaks, and the connection stands again."""
    log = face.log()
    connection.event_listener = lambda event: log.add(type(event).__name__)
    cut(connection.raw if isinstance(connection, Blocking) else connection)
    await log.until("ConnectionRestored")


@pytest.fixture
def lets_in_and_is_silent() -> Iterator[str]:
    """A broker that takes whoever logs in, and says nothing after its header: no open."""

    def sasl(body: bytes) -> bytes:
        return struct.pack(">IBBH", 8 + len(body), 2, 1, 0) + body

    mechanisms = b"\x00\x53\x40\xc0\x0c\x01\xa3\x09ANONYMOUS"
    outcome_ok = b"\x00\x53\x44\xc0\x03\x01\x50\x00"

    def serve(client: socket.socket) -> None:
        try:
            client.recv(8)
            client.sendall(b"AMQP\x03\x01\x00\x00" + sasl(mechanisms))
            client.recv(4096)
            client.sendall(sasl(outcome_ok) + b"AMQP\x00\x01\x00\x00")
            while client.recv(4096):
                pass
        except OSError:
            pass
        client.close()

    def accept() -> None:
        try:
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
        except OSError:
            pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@tcp_only
@pytest.mark.parametrize("url", ["amqp://{}", "failover:(amqp://{})?failover.startupMaxReconnectAttempts=1"])
async def test_a_broker_that_never_opens_is_left_and_named(face: Face, lets_in_and_is_silent: str, url: str) -> None:
    told = f"{lets_in_and_is_silent} accepted the connection and did not answer within {{}} s (stage: open)"
    error = await unanswered(face, url.format(lets_in_and_is_silent), told)
    assert isinstance(error, jmsish.ConnectionLostError)


@tcp_only
async def test_a_refusal_at_the_open_names_that_stage(face: Face) -> None:
    face.broker_with(config={"vhosts": {"$default": {"max_connections": 0, "groups": {"all": {"users": ["*"]}}}}})
    error = await outcome(face.connect())
    assert isinstance(error, jmsish.ResourceAllocationError) and "(stage: open)" in str(error)
    assert str(face.listener.port) in str(error)


@tcp_only
@pytest.mark.parametrize("given", [None, "", 7, b"bytes", "a token", LookupError("secret")], ids=repr)
async def test_a_token_that_is_none_is_an_attempt_that_failed(
    face: Face, given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """After a loss it is asked for again: the callable may have a bad moment, and the connection outlives it."""
    caplog.set_level(logging.WARNING, "jmsish.client")

    def authenticate(mechanism: str, response: bytes | None) -> str | None:
        return "somebody" if read_bearer(mechanism, response).token == "good" else None

    answers: list[Any] = ["good", given, given]

    def token() -> Any:
        answer = answers.pop(0) if answers else "good"
        if isinstance(answer, Exception):
            raise answer
        return answer

    face.broker_with(authenticator=authenticate)
    connection = await face.connect(f"failover:({face.url})", token=token, reconnect_delay=0)
    await mended(face, connection)
    await send(connection, "orders", "m1")
    await face.sight("orders").comes_to(1)
    said = [record for record in caplog.records if record.name == "jmsish.client"]
    assert not [record for record in said if record.exc_info], "no fault inside the client"
    refused = [record.getMessage() for record in said if "is not reached" in record.getMessage()]
    assert len(refused) == 1 and "(stage: SASL)" in refused[0] and "secret" not in caplog.text


@tcp_only
async def test_a_file_that_is_away_for_a_moment_is_an_attempt_that_failed(face: Face, tmp_path: Path) -> None:
    """Certificates are replaced while programs run."""
    authority = trustme.CA()
    ca, server = tmp_path / "ca.pem", tmp_path / "server.pem"
    authority.cert_pem.write_to_path(ca)
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(server)
    listener = face.broker.listen(certificate=str(server))
    url = f"failover:(amqps://localhost:{listener.port})"
    log = face.log()
    connection = await face.connect(url, tls_ca=str(ca), reconnect_delay=0.01)
    told = logging.getLogger("jmsish.client")

    class Puts(logging.Filter):
        """The file is there again once somebody has missed it."""

        def filter(self, record: logging.LogRecord) -> bool:
            if "is not reached" in record.getMessage():
                log.add(record.getMessage())
                authority.cert_pem.write_to_path(ca)
            return True

    puts = Puts()
    told.addFilter(puts)
    try:
        ca.unlink()
        await mended(face, connection)
        await send(connection, "orders", "m1")
    finally:
        told.removeFilter(puts)
    assert len(log.items) == 1 and "tls_ca=" in log.items[0] and "(stage: TLS)" in log.items[0]


@tcp_only
async def test_a_file_that_was_never_there_is_a_wrong_argument(face: Face) -> None:
    with pytest.raises(ValueError, match="tls_ca='no-such-file.pem'"):
        await face.connect("failover:(amqps://localhost)", tls_ca="no-such-file.pem")


@pytest.mark.parametrize("face", ["aio-tcp"], indirect=True)
async def test_a_token_that_never_comes_is_not_waited_for(face: Face) -> None:
    import asyncio

    async def never() -> str:
        await asyncio.Event().wait()
        return ""

    error = await unanswered(face, face.url, "gave none within {} s", token=never)
    assert isinstance(error, jmsish.JMSSecurityError)
