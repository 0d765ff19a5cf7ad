"""TLS: what goes wrong is said in words, on both sides, and contained."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from jmsish.drivers import tls_contexts
from jmsish.drivers.sockets import connect_tcp
from jmsish.drivers.tls import TlsCodec, TlsFailure
from jmsish.errors import ConnectionLostError

from .conftest import PATIENCE, Wire, authority, client_context, server_context


def codecs(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[TlsCodec, TlsCodec]:
    return TlsCodec(server, server_side=True), TlsCodec(client, server_hostname="localhost")


def shake(server: TlsCodec, client: TlsCodec) -> None:
    client.start()
    while not (server.established and client.established):
        server.receive(client.take())
        client.receive(server.take())


# The codec: no socket.


def test_octets_through_tls() -> None:
    server, client = codecs(server_context(), client_context())
    shake(server, client)
    server.receive(client.take())
    client.send(b"x" * 100_000)
    assert client.has_output
    wire = client.take()
    assert b"xxxx" not in wire and not client.has_output
    assert server.receive(wire[:50_000]) + server.receive(wire[50_000:]) == b"x" * 100_000
    server.send(b"answer")
    assert client.receive(server.take()) == b"answer"
    client.close()
    assert server.receive(client.take()) == b""
    assert server.peer_certificate() is None


@pytest.mark.parametrize("size", [1, 7])
def test_a_handshake_in_pieces(size: int) -> None:
    server, client = codecs(server_context(), client_context())
    client.start()
    for _ in range(10):
        for source, target in ((client, server), (server, client)):
            wire = source.take()
            for start in range(0, len(wire), size):
                target.receive(wire[start : start + size])
    assert server.established and client.established


def test_a_name_that_is_whole_is_verified_without_its_dot() -> None:
    """RFC 6066, 3: SNI is without it, and so are certificates."""
    server = TlsCodec(server_context(), server_side=True)
    client = TlsCodec(client_context(), server_hostname="localhost.")
    shake(server, client)
    assert client.peer_certificate() is not None


def test_two_threads_at_one_codec() -> None:
    server, client = codecs(server_context(), client_context())
    shake(server, client)
    server.receive(client.take())
    ciphertext = []
    for _ in range(500):
        server.send(b"y" * 1000)
        ciphertext.append(server.take())
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.extend(client.receive(part) for part in ciphertext))
    reader.start()
    sent = b""
    for _ in range(500):
        client.send(b"z" * 1000)
        sent += client.take()
    reader.join(PATIENCE)
    assert b"".join(read) == b"y" * 500_000
    assert server.receive(sent) == b"z" * 500_000


def test_a_peer_that_says_it_closes_is_at_its_end() -> None:
    server, client = codecs(server_context(), client_context())
    shake(server, client)
    server.send(b"last")
    assert not client.ended
    server.close()
    assert client.receive(server.take()) == b"last" and client.ended
    assert client.receive(b"more, which is ignored") == b""
    client.send(b"our side is open")
    assert server.receive(client.take()) == b"our side is open" and not server.ended


def test_a_damaged_record() -> None:
    server, client = codecs(server_context(), client_context())
    shake(server, client)
    server.receive(client.take())
    client.send(b"data")
    wire = bytearray(client.take())
    wire[-1] ^= 1
    with pytest.raises(TlsFailure, match="bad record mac|decryption failed"):
        server.receive(bytes(wire))


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"AMQP\x00\x01\x00\x00", "the peer speaks AMQP without TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the peer speaks HTTP without TLS"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "the peer speaks HTTP without TLS"),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07", "the peer does not speak TLS"),
    ],
)
@pytest.mark.parametrize("server_side", [True, False])
def test_a_peer_without_tls(first: bytes, said: str, server_side: bool) -> None:
    server, client = codecs(server_context(), client_context())
    side = server if server_side else client
    if not server_side:
        client.start()
    with pytest.raises(TlsFailure, match=said):
        side.receive(first)


# The client.


def test_a_certificate_nobody_vouches_for(tls: Wire) -> None:
    said = rf"^cannot connect to 127\.0\.0\.1:{tls.port}: TLS: the certificate was not accepted: "
    with pytest.raises(ConnectionLostError, match=said):
        connect_tcp("127.0.0.1", tls.port, timeout=PATIENCE, ssl_context=ssl.create_default_context())
    tls.connect()


def test_a_certificate_for_another_host(tls: Wire) -> None:
    with pytest.raises(ConnectionLostError, match="the certificate was not accepted: Hostname mismatch.*other.example"):
        connect_tcp(
            "127.0.0.1", tls.port, timeout=PATIENCE, ssl_context=client_context(), server_hostname="other.example"
        )


def test_the_name_to_verify_may_be_another_than_the_one_to_dial(tls: Wire) -> None:
    transport = connect_tcp(
        "127.0.0.1", tls.port, timeout=PATIENCE, ssl_context=client_context(), server_hostname="localhost"
    )
    assert transport.recv(PATIENCE) == b"hello\n" and repr(transport).endswith("TLS>")
    transport.close()


def test_tls_to_a_plain_port(tcp: Wire) -> None:
    said = rf"^cannot connect to 127\.0\.0\.1:{tcp.port}: TLS: the peer does not speak TLS"
    with pytest.raises(ConnectionLostError, match=said):
        connect_tcp("127.0.0.1", tcp.port, timeout=PATIENCE, ssl_context=client_context())


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_a_handshake_that_is_not_answered_has_an_end(silent: socket.socket) -> None:
    port = silent.getsockname()[1]
    said = rf"^cannot connect to 127\.0\.0\.1:{port}: TLS: no answer within 0\.5 s$"
    with pytest.raises(ConnectionLostError, match=said):
        connect_tcp("127.0.0.1", port, timeout=0.5, ssl_context=client_context())


def test_a_peer_that_leaves_during_the_handshake(silent: socket.socket) -> None:
    def leave() -> None:
        peer, _ = silent.accept()
        peer.recv(10_000)
        peer.close()

    leaving = threading.Thread(target=leave)
    leaving.start()
    with pytest.raises(ConnectionLostError, match="ended the connection during the handshake"):
        connect_tcp("127.0.0.1", silent.getsockname()[1], timeout=PATIENCE, ssl_context=client_context())
    leaving.join()


# The broker.


def rest(client: socket.socket) -> bytes:
    data = b""
    while part := client.recv(1 << 16):
        data += part
    return data


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b"AMQP\x00\x01\x00\x00", "AMQP without TLS"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP without TLS"),
        (bytes(100), "does not speak TLS"),
    ],
)
def test_plain_octets_on_a_tls_port(tls: Wire, first: bytes, said: str, caplog: pytest.LogCaptureFixture) -> None:
    """The peer is told by a TLS alert, which our own client names; the log says what came; nobody else notices."""
    good = tls.connect()
    with (
        caplog.at_level(logging.INFO, "jmsish.broker"),
        socket.create_connection(("127.0.0.1", tls.port), timeout=PATIENCE) as client,
    ):
        client.sendall(first)
        answer = rest(client)
    assert answer[:1] in (b"\x15", b"")
    assert said in caplog.text and "127.0.0.1" in caplog.text
    good.send(b"echo well\n")
    assert good.recv(PATIENCE) == b"well\n"
    assert len(tls.broker.connections) == 1


def test_a_client_that_never_begins_is_given_up(tls: Wire) -> None:
    tls.reactor.handshake_timeout = 0.02
    with socket.create_connection(("127.0.0.1", tls.port), timeout=PATIENCE) as client:
        assert rest(client) == b""


def test_a_client_that_says_it_closes_is_at_its_end(tls: Wire) -> None:
    """It may keep its socket until it has heard the same of us, and would have kept its connection so long."""
    codec = TlsCodec(client_context(), server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", tls.port), timeout=PATIENCE) as client:
        codec.start()
        heard = b""
        while not heard:
            client.sendall(codec.take())
            heard = codec.receive(client.recv(4096))
        codec.close()
        client.sendall(codec.take())
        rest(client)


def test_a_client_that_leaves_during_the_handshake(tls: Wire) -> None:
    for first in (b"", b"\x16\x03\x01"):
        client = socket.create_connection(("127.0.0.1", tls.port), timeout=PATIENCE)
        client.sendall(first)
        client.shutdown(socket.SHUT_WR)
        assert rest(client) == b""
        client.close()
    tls.connect()


def test_a_damaged_record_ends_the_connection_and_the_broker_hears_of_it(tls: Wire) -> None:
    transport = tls.connect()
    transport._socket.send(b"\x17\x03\x03\x00\x20" + bytes(32))
    with pytest.raises(ConnectionLostError, match="TLS"):
        while transport.recv(PATIENCE):
            pass
    other = tls.connect()
    while not tls.broker.connections[0].eof:
        other.send(b"echo turn\n")
        assert other.recv(PATIENCE) == b"turn\n"


def test_the_broker_is_shown_what_is_in_a_client_certificate() -> None:
    server, client = server_context(), client_context()
    authority().configure_trust(server)
    server.verify_mode = ssl.CERT_REQUIRED
    authority().issue_cert("alice@example.org", common_name="alice").configure_cert(client)
    wire = Wire("pipe")
    listener = wire.reactor.listen("127.0.0.1", 0, server)
    transport = connect_tcp("127.0.0.1", listener.port, timeout=PATIENCE, ssl_context=client)
    assert transport.recv(PATIENCE) == b"hello\n"
    [connection] = wire.broker.connections
    assert connection.certificate is not None and not connection.exposed
    assert ("email", "alice@example.org") in connection.certificate["subjectAltName"]
    transport.close()
    wire.stop()


def test_a_client_without_the_certificate_asked_for() -> None:
    server = server_context()
    trustme.CA().configure_trust(server)
    server.verify_mode = ssl.CERT_REQUIRED
    wire = Wire("pipe")
    listener = wire.reactor.listen("127.0.0.1", 0, server)
    # By TLS 1.3 the client is through the handshake before the server has looked: the alert comes where data would.
    transport = connect_tcp("127.0.0.1", listener.port, timeout=PATIENCE, ssl_context=client_context())
    with pytest.raises(ConnectionLostError, match="TLS: .*certificate required"):
        transport.recv(PATIENCE)
    transport.close()
    assert not wire.broker.connections
    wire.stop()


@pytest.mark.parametrize("password", [None, "wrong", "opens-it"])
def test_a_key_that_is_encrypted_asks_no_terminal_and_says_what_is_wrong(tmp_path: Path, password: str | None) -> None:
    issued = authority().issue_cert("localhost")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked = key.private_bytes(encoding, form, serialization.BestAvailableEncryption(b"opens-it"))
    (tmp_path / "both.pem").write_bytes(locked + issued.cert_chain_pems[0].bytes())
    file = str(tmp_path / "both.pem")
    said = {None: "the key is encrypted, and there is no .*key_password", "wrong": "the password does not open the key"}
    for make in (
        lambda: tls_contexts.server_context(file, key_password=password),
        lambda: tls_contexts.client_context(certificate=file, key_password=password),
    ):
        if password == "opens-it":
            make()
            continue
        with pytest.raises(ValueError, match=f"certificate='.*both.pem': {said[password]}") as caught:
            make()
        assert "wrong" not in str(caught.value)


def test_a_client_does_not_shake_hands_again_and_again(tmp_path: Path) -> None:
    """OpenSSL before 3 would let one of TLS 1.2, and each time costs a server ten times what it costs the client."""
    file = tmp_path / "server.pem"
    authority().issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(file))
    context = tls_contexts.server_context(str(file))
    assert context.options & ssl.OP_NO_RENEGOTIATION and context.minimum_version == ssl.TLSVersion.TLSv1_2
