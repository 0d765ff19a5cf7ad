"""Over every transport, a connection that is over is free at once: nothing of it waits for the collector of garbage."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import weakref
from collections.abc import Callable

import pytest
import trustme

from jmsish.broker.connection import ServerConnection
from jmsish.drivers import outlet as outlets
from jmsish.embedded import EmbeddedBroker
from tests.bench.herd import CLOSE, opening, receiver, sender

PATIENCE = 20
LINKS = opening("c") + sender("q") + receiver("q", 1, 5)
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
)
TRANSPORTS = ["vm", "tcp", "tls", "ws", "wss"]


class Watched:
    """Counts connections and sockets of the broker as they are made and as they are freed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = self.freed = 0
        self._changed = threading.Condition()
        for kind in (ServerConnection, outlets.SocketOutlet):
            monkeypatch.setattr(kind, "__init__", self._watching(kind.__init__))

    def _watching(self, initialise: Callable[..., None]) -> Callable[..., None]:
        def watching(made: object, *arguments: object, **options: object) -> None:
            initialise(made, *arguments, **options)
            thing = made.engine if isinstance(made, ServerConnection) else made._pending  # type: ignore[attr-defined]
            with self._changed:
                self.made += 1
            weakref.finalize(thing, self._gone)

        return watching

    def _gone(self) -> None:
        with self._changed:
            self.freed += 1
            self._changed.notify_all()

    def all_freed(self, least: int) -> bool:
        """All that were made are gone, so many at least."""
        with self._changed:
            return self._changed.wait_for(lambda: self.freed == self.made >= least, PATIENCE)


@pytest.fixture
def watched(uncollected: None, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr(outlets, "LINGER", 0.05)
    return Watched(monkeypatch)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


class Client:
    """A socket, and what is around its octets."""

    def __init__(self, port: int, transport: str, context: ssl.SSLContext) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        if transport in ("tls", "wss"):
            self._socket = context.wrap_socket(self._socket, server_hostname="localhost")
        self._framed = transport in ("ws", "wss")
        if self._framed:
            self._socket.sendall(UPGRADE)
            assert b"101" in self._socket.recv(4096)

    def send(self, octets: bytes) -> None:
        if self._framed:  # a binary message of which the mask is zero
            octets = b"\x82\xfe" + struct.pack(">H", len(octets)) + bytes(4) + octets
        self._socket.sendall(octets)

    def hear(self) -> bytes:
        return self._socket.recv(1 << 16)

    def hear_out(self) -> None:
        while self.hear():
            pass

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        self._socket.close()


def closes(client: Client, broker: EmbeddedBroker) -> None:
    client.send(LINKS)
    client.send(CLOSE)
    client.hear_out()


def is_cut_off(client: Client, broker: EmbeddedBroker) -> None:
    client.send(LINKS)
    client.hear()


def resets(client: Client, broker: EmbeddedBroker) -> None:
    client.send(LINKS)
    client.hear()
    client.reset()


def leaves_at_once(client: Client, broker: EmbeddedBroker) -> None:
    pass


def speaks_something_else(client: Client, broker: EmbeddedBroker) -> None:
    client.send(b"GET / HTTP/1.1\r\n\r\n")
    client.hear_out()


def is_let_go(client: Client, broker: EmbeddedBroker) -> None:
    client.send(LINKS)
    client.hear()
    core = broker._broker
    broker._call(lambda: [each.close(None) for each in list(core._connections)])
    client.send(CLOSE)
    client.hear_out()


ENDS = [closes, is_cut_off, resets, leaves_at_once, speaks_something_else, is_let_go]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
@pytest.mark.parametrize("transport", TRANSPORTS[1:])
def test_a_socket_and_its_connection(
    watched: Watched, authority: trustme.CA, transport: str, end: Callable[[Client, EmbeddedBroker], None]
) -> None:
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(client)
    secured = server if transport in ("tls", "wss") else None
    with EmbeddedBroker() as broker:
        port = broker.listen(ssl_context=secured, protocol="ws" if transport in ("ws", "wss") else "amqp").port
        for _ in range(3):
            peer = Client(port, transport, client)
            end(peer, broker)
            peer.close()
        assert watched.all_freed(3)


def test_who_does_not_finish_the_handshake(watched: Watched, authority: trustme.CA) -> None:
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(server)
    with EmbeddedBroker(config={"limits": {"handshake_timeout": 0.2}}) as broker:
        port = broker.listen(ssl_context=server).port
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as silent:
            assert silent.recv(1) == b""
        assert watched.all_freed(1)


@pytest.mark.parametrize("said", [[], [LINKS], [LINKS, CLOSE], [b"AMQP\3\1\0\0"]])
def test_a_pipe_and_its_connection(watched: Watched, said: list[bytes]) -> None:
    with EmbeddedBroker() as broker:
        for _ in range(3):
            pipe = broker._driver.connect("me")
            for octets in said:
                pipe.send(octets)
            pipe.close()
            del pipe
        assert watched.all_freed(3)
