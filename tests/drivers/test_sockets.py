"""The blocking client's socket: failures that name host, port and cause; stalls; forks; descriptors."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from jmsish.drivers import sockets
from jmsish.drivers.sockets import SocketTransport, address_text, connect_tcp
from jmsish.errors import ConnectionLostError
from tests.relay import vacant_port

from .conftest import PATIENCE, Wire


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A listening socket whose owner never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def pair(silent: socket.socket) -> tuple[SocketTransport, socket.socket]:
    transport = connect_tcp("127.0.0.1", silent.getsockname()[1], timeout=PATIENCE)
    peer, _ = silent.accept()
    return transport, peer


# Connecting.


def test_refused_names_host_and_port() -> None:
    with vacant_port() as port:
        said = rf"^cannot connect to 127\.0\.0\.1:{port}: Connection refused \(stage: connect\)$"
        with pytest.raises(ConnectionLostError, match=said):
            connect_tcp("127.0.0.1", port, timeout=PATIENCE)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 70 + ".invalid"])
def test_an_unknown_host(host: str) -> None:
    with pytest.raises(ConnectionLostError, match=rf"^cannot connect to {host}:5672: .*(resolved|no name of a host)"):
        connect_tcp(host, 5672, timeout=PATIENCE)


def test_no_answer_within_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that swallows what is sent to it; the time is shared among its addresses."""
    lefts: list[float | None] = []

    class Swallowed(socket.socket):
        def settimeout(self, value: float | None) -> None:
            lefts.append(value)

        def connect(self, address: object) -> None:
            raise TimeoutError("timed out")

    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"192.0.2.{n}", 5672)) for n in (1, 2)]
    monkeypatch.setattr(sockets.socket, "getaddrinfo", lambda *_, **__: addresses)
    monkeypatch.setattr(sockets.socket, "socket", Swallowed)
    said = r"^cannot connect to swallowing:5672: no answer within 8 s \(stage: connect\)$"
    with pytest.raises(ConnectionLostError, match=said):
        connect_tcp("swallowing", 5672, timeout=8)
    assert [round(left or 0) for left in lefts] == [4, 8]


def test_the_time_is_over_before_the_last_address() -> None:
    with pytest.raises(ConnectionLostError, match="no answer within 0 s"):
        connect_tcp("127.0.0.1", 5672, timeout=0)


def test_the_next_address_of_a_host_is_tried(monkeypatch: pytest.MonkeyPatch, silent: socket.socket) -> None:
    good = silent.getsockname()[1]
    with vacant_port() as bad:
        addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in (bad, good)]
        monkeypatch.setattr(sockets.socket, "getaddrinfo", lambda *_, **__: addresses)
        transport = connect_tcp("two.example", 5672, timeout=PATIENCE)
    assert transport.peer == "two.example:5672"
    transport.close()


def test_addresses_as_in_a_url() -> None:
    assert address_text("broker.example", 5672) == "broker.example:5672"
    assert address_text("::1", 5671) == "[::1]:5671"


# Failing later.


def test_a_reset_is_an_error_that_names_the_peer(silent: socket.socket) -> None:
    transport, peer = pair(silent)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    with pytest.raises(ConnectionLostError, match=rf"^the connection to {transport.peer} failed: Connection reset"):
        transport.recv(PATIENCE)
    assert transport.recv(0) == b"" and "ended" in repr(transport)
    with pytest.raises(ConnectionLostError, match=transport.peer):
        transport.send(b"anybody there")
    transport.close()


def test_a_peer_that_takes_nothing_is_given_up(silent: socket.socket) -> None:
    transport, peer = pair(silent)
    transport.stall_timeout = 0.02
    with pytest.raises(ConnectionLostError, match=r"failed: the peer has taken nothing for 0\.02 s"):
        transport.send(bytes(64 << 20))
    transport.close()
    peer.close()


def test_close_brings_out_a_sender_that_waits(silent: socket.socket) -> None:
    transport, peer = pair(silent)
    started = threading.Event()
    failures: list[str] = []

    def send() -> None:
        started.set()
        with pytest.raises(ConnectionLostError) as caught:
            transport.send(bytes(64 << 20))
        failures.append(str(caught.value))

    sender = threading.Thread(target=send)
    sender.start()
    assert started.wait(PATIENCE) and peer.recv(1)
    transport.close()
    sender.join(PATIENCE)
    assert len(failures) == 1 and "closed" in failures[0] and transport.fileno() == -1
    peer.close()


def test_a_slow_peer_gets_everything_in_order(silent: socket.socket) -> None:
    transport, peer = pair(silent)
    said = b"".join(b"%08d" % number for number in range(1 << 20))
    sender = threading.Thread(target=lambda: (transport.send(said), transport.close()))
    sender.start()
    got = bytearray()
    while part := peer.recv(1 << 16):
        got += part
    sender.join(PATIENCE)
    assert got == said
    peer.close()


def test_the_descriptor_stays_while_a_thread_is_in_recv(silent: socket.socket) -> None:
    """Closed under it, its number could be another file's before the thread is out."""
    transport, peer = pair(silent)
    out: list[tuple[bytes, int]] = []
    reader = threading.Thread(target=lambda: out.append((transport.recv(None), transport.fileno())))
    reader.start()
    while not transport._reading:
        pass
    transport.close()
    reader.join(PATIENCE)
    assert out == [(b"", -1)]
    peer.close()


def test_a_wake_up_that_comes_after_its_flag_was_seen(silent: socket.socket) -> None:
    """It must not keep the next reader turning."""
    transport, peer = pair(silent)
    transport._wakeup.set()
    with pytest.raises(TimeoutError):
        transport.recv(0.01)
    assert transport._poll.poll(0) == []
    transport.close()
    peer.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_closes_leaves_the_connection_to_its_parent(tcp: Wire) -> None:
    transport = tcp.connect()
    child = os.fork()
    if not child:
        transport.close()
        os._exit(0 if transport.closed and transport.fileno() == -1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    transport.send(b"echo mine\n")
    assert transport.recv(PATIENCE) == b"mine\n"


def test_descriptors_are_not_handed_to_other_programs(tcp: Wire) -> None:
    transport = tcp.connect()
    assert isinstance(transport, SocketTransport)
    assert not os.get_inheritable(transport.fileno())
    assert tcp.listener is not None and not os.get_inheritable(tcp.listener.fileno())
