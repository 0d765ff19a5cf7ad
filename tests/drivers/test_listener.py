"""Listeners: bad peers, slow ones, abrupt ends, stops; memory and TCP on one broker."""

from __future__ import annotations

import errno
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable

import pytest

from jmsish.drivers.listener import SocketReactor
from jmsish.drivers.outlet import SocketOutlet
from jmsish.drivers.sockets import connect_tcp
from jmsish.errors import IllegalStateError, ResourceAllocationError

from .calls import Threads
from .conftest import PATIENCE, Lines, Wire, server_context
from .toy import FULL


def raw(wire: Wire) -> socket.socket:
    """A client's bare socket, after the greeting."""
    client = socket.create_connection(("127.0.0.1", wire.port), timeout=PATIENCE)
    assert client.recv(100) == b"hello\n"
    return client


def until(wire: Wire, condition: Callable[[], bool]) -> None:
    """Wait, in turns of the I/O thread, until the broker has seen something."""
    with socket.create_connection(("127.0.0.1", wire.port), timeout=PATIENCE) as client:
        lines = client.makefile("rb")
        assert lines.readline() == b"hello\n"
        while not condition():
            client.sendall(b"echo turn\n")
            assert lines.readline() == b"turn\n"
        lines.close()


def rest(client: socket.socket) -> bytes:
    """All that comes until the end; a reset raises."""
    data = b""
    while part := client.recv(1 << 16):
        data += part
    client.close()
    return data


# Addresses.


def test_url_names_the_real_port(net: Wire) -> None:
    assert net.listener is not None and net.port > 0
    scheme = {"tcp": "amqp", "tls": "amqps", "wss": "amqpwss"}[net.kind]
    assert net.listener.url == f"{scheme}://127.0.0.1:{net.port}"
    assert net.listener.host == "127.0.0.1"
    assert net.listener.url in repr(net.listener)


def test_ipv6(tcp: Wire) -> None:
    try:
        listener = tcp.reactor.listen("::1", 0)
    except ResourceAllocationError as error:
        pytest.skip(f"no IPv6 here: {error}")
    assert listener.url == f"amqp://[::1]:{listener.port}"
    transport = connect_tcp("::1", listener.port, timeout=PATIENCE)
    assert transport.recv(PATIENCE) == b"hello\n" and transport.peer == f"[::1]:{listener.port}"
    assert tcp.broker.connections[0].peer.startswith("[::1]:")
    transport.close()


def test_a_name_and_several_listeners(tcp: Wire) -> None:
    listener = tcp.reactor.listen("localhost", 0)
    transport = connect_tcp("localhost", listener.port, timeout=PATIENCE)
    assert transport.recv(PATIENCE) == b"hello\n"
    assert tcp.connect().peer == f"127.0.0.1:{tcp.port}"
    transport.close()


def test_a_port_that_is_taken(tcp: Wire) -> None:
    with pytest.raises(ResourceAllocationError, match=rf"cannot listen on 127\.0\.0\.1:{tcp.port}: .*in use"):
        tcp.reactor.listen("127.0.0.1", tcp.port)


def test_a_host_that_is_not_ours(tcp: Wire) -> None:
    with pytest.raises(ResourceAllocationError, match="cannot listen on no.such.host.invalid:0"):
        tcp.reactor.listen("no.such.host.invalid", 0)


def test_a_closed_listener_frees_its_port_and_keeps_its_connections(tcp: Wire) -> None:
    transport = tcp.connect()
    assert tcp.listener is not None
    tcp.listener.close()
    tcp.listener.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", tcp.port), timeout=PATIENCE)
    transport.send(b"echo still here\n")
    assert transport.recv(PATIENCE) == b"still here\n"
    tcp.listener = tcp.reactor.listen("127.0.0.1", tcp.port)
    tcp.connect()


# Bad peers.


def test_garbage_gets_an_answer_and_disturbs_nobody(tcp: Wire) -> None:
    good, bad = tcp.connect(), raw(tcp)
    bad.sendall(os.urandom(100).replace(b"\n", b"") + b"\n" + b"more" * 1000)
    assert rest(bad) == b"wrong\nbye\n"
    good.send(b"echo well\n")
    assert good.recv(PATIENCE) == b"well\n"


def test_what_still_comes_does_not_eat_the_last_words(tcp: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket closed with input unread resets the connection, and the peer loses what it had not read yet."""
    monkeypatch.setattr("jmsish.drivers.outlet.LINGER", PATIENCE)  # however long it takes us
    bad = raw(tcp)
    bad.sendall(b"nonsense\n")
    until(tcp, lambda: tcp.broker.connections[0].closed)
    for _ in range(50):
        bad.sendall(b"x" * 10_000)
    assert rest(bad) == b"wrong\nbye\n"


def test_a_peer_that_does_not_close_is_closed(tcp: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsish.drivers.outlet.LINGER", 0.02)
    bad = raw(tcp)
    bad.sendall(b"nonsense\n")
    until(tcp, lambda: len(tcp.reactor._outlets) == 1)  # the one that looks
    bad.close()


def test_a_reset_is_an_end(tcp: Wire) -> None:
    client = raw(tcp)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    until(tcp, lambda: tcp.broker.connections[0].eof)
    until(tcp, lambda: len(tcp.reactor._outlets) == 1)


def test_an_end_of_input_gets_what_was_owed(tcp: Wire) -> None:
    client = raw(tcp)
    client.sendall(b"echo one\necho two\n")
    client.shutdown(socket.SHUT_WR)
    assert rest(client) == b"one\ntwo\n"


def test_a_reset_in_the_middle_of_output(tcp: Wire) -> None:
    client = raw(tcp)
    client.sendall(b"flood 30000 1000\n")
    assert client.recv(100)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    until(tcp, lambda: tcp.broker.connections[0].eof and len(tcp.reactor._outlets) == 1)
    flooded = tcp.driver.call(lambda: [each for each in tcp.driver._lanes if each.flood])  # type: ignore[attr-defined]
    assert not flooded


def test_a_fault_in_the_broker_does_not_end_the_io_thread(tcp: Wire, caplog: pytest.LogCaptureFixture) -> None:
    client = raw(tcp)
    with caplog.at_level(logging.ERROR, "jmsish.broker"):
        client.sendall(b"fault\n")
        assert rest(client) == b""
    assert "a fault inside the toy" in caplog.text
    tcp.connect()


def test_no_descriptors_left_is_a_pause(tcp: Wire, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    assert tcp.listener is not None
    monkeypatch.setattr("jmsish.drivers.listener._PAUSE", 0.01)
    real, failures = tcp.listener._socket, [OSError(errno.EMFILE, "Too many open files")] * 2

    class Scarce:
        def accept(self):
            if failures:
                raise failures.pop()
            return real.accept()

        def __getattr__(self, name):
            return getattr(real, name)

    monkeypatch.setattr(tcp.listener, "_socket", Scarce())
    with caplog.at_level(logging.WARNING, "jmsish.broker"):
        raw(tcp).close()
    assert not failures and "Too many open files" in caplog.text


# Slow peers.


def test_a_slow_reader_costs_a_bounded_amount_and_stops_nobody(net: Wire) -> None:
    slow, other, count = net.connect(), net.connect(), 30_000
    slow.send(b"flood %d 1000\n" % count)
    for _ in range(100):
        other.send(b"echo untroubled\n")
        assert other.recv(PATIENCE) == b"untroubled\n"
    connection = net.broker.connections[0]
    assert connection.flood and connection.largest_output <= 2 * FULL
    lines = Lines(slow)
    for number in range(count):
        assert int(lines.next()[:8]) == number


def test_many_slow_readers_at_once(tcp: Wire) -> None:
    count, clients = 8000, [tcp.connect() for _ in range(5)]
    got: list[int] = []

    def read(client) -> None:
        lines = Lines(client)
        client.send(b"flood %d 500\n" % count)
        got.append(sum(int(lines.next()[:8]) == number for number in range(count)))

    readers = [threading.Thread(target=read, args=(client,)) for client in clients]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(60)
    assert got == [count] * 5


def test_one_octet_at_a_time(tcp: Wire) -> None:
    client = raw(tcp)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for octet in b"echo slowly\nbye\n":
        client.send(bytes([octet]))
    assert rest(client) == b"slowly\nbye\n"


def test_timers_of_a_connection_over_tcp(net: Wire) -> None:
    transport = net.connect()
    transport.send(b"beat 0.01\n")
    lines = Lines(transport)
    assert [lines.next() for _ in range(3)] == [b"beat"] * 3


# Memory and TCP on one broker.


def test_memory_and_tcp_meet(net: Wire) -> None:
    far, near = net.connect("far"), net.driver.connect("vm://toy")
    assert near.recv(0) == b"hello\n"
    near.send(b"name near\n")
    for turn in range(200):
        near.send(b"say far %d\n" % turn)
        assert far.recv(PATIENCE) == b"%d\n" % turn
        far.send(b"say near %d\n" % turn)
        assert near.recv(PATIENCE) == b"%d\n" % turn
    near.close()


def test_a_stream_from_memory_to_tcp_and_back(net: Wire) -> None:
    far, near, count = net.connect("far"), net.driver.connect("vm://toy"), 5000
    near.send(b"name near\n")

    def relay() -> None:
        lines = Lines(far)
        for _ in range(count):
            far.send(b"say near " + lines.next() + b"\n")

    relaying = threading.Thread(target=relay)
    relaying.start()
    lines = Lines(near)
    assert lines.next() == b"hello"
    for turn in range(count):
        near.send(b"say far %d\n" % turn)
    for turn in range(count):
        assert lines.next() == b"%d" % turn
    relaying.join(PATIENCE)
    near.close()


# The end.


def test_stop_says_goodbye_to_everybody(net: Wire) -> None:
    transports = [net.connect() for _ in range(5)]
    said: list[bytes] = []
    readers = [
        threading.Thread(target=lambda end=end: said.append(end.recv(PATIENCE) + end.recv(PATIENCE)))
        for end in transports
    ]
    for reader in readers:
        reader.start()
    net.reactor.close_listeners()
    net.driver.stop()
    net.reactor.stop()
    for reader in readers:
        reader.join(PATIENCE)
    assert said == [b"bye\n"] * 5
    with pytest.raises(IllegalStateError, match="stopped"):
        net.reactor.listen("127.0.0.1", 0)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", net.port), timeout=PATIENCE)


def test_stop_does_not_wait_for_peers_that_do_not_care(tcp: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsish.drivers.listener._GRACE", 0.02)
    deaf = raw(tcp)
    deaf.sendall(b"flood 30000 1000\n")
    until(tcp, lambda: tcp.broker.connections[0].flood != [])
    tcp.stop()
    assert not tcp.reactor._outlets
    deaf.close()


def test_nothing_is_left_open() -> None:
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    threads = Threads()
    for kind in ("tcp", "tls"):
        wire = Wire(kind)
        for _ in range(5):
            wire.connect().send(b"echo unread\n")
        wire.stop()
        wire.stop()
    assert not threads.new()
    if before:
        assert len(os.listdir("/proc/self/fd")) <= len(before)


def test_a_reactor_that_never_listened_stops_too() -> None:
    wire = Wire("pipe")
    wire.stop()
    assert wire.reactor._thread is None


def test_a_broker_that_stopped_takes_nobody(tcp: Wire) -> None:
    tcp.driver.stop()
    client = socket.create_connection(("127.0.0.1", tcp.port), timeout=PATIENCE)
    try:
        assert client.recv(100) == b""
    except ConnectionResetError:
        pass
    client.close()


def test_outlet_and_reactor_say_what_they_are(tls: Wire) -> None:
    tls.connect()
    (outlet,) = tls.reactor._outlets
    assert isinstance(outlet, SocketOutlet) and repr(outlet).endswith(", TLS>")
    assert isinstance(tls.reactor, SocketReactor)


def test_listeners_of_both_kinds_side_by_side(tcp: Wire) -> None:
    listener = tcp.reactor.listen("127.0.0.1", 0, server_context())
    assert listener.url.startswith("amqps://") and tcp.listener is not None and tcp.listener.url.startswith("amqp://")


def test_what_was_not_read_while_a_rest_was_worked_off_does_not_eat_the_last_words(
    tcp: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who brings much is not read meanwhile; when the broker ends it amid that, it is read on, to its end."""
    monkeypatch.setattr("jmsish.drivers.outlet.LINGER", 3 * PATIENCE)
    monkeypatch.setattr(tcp.driver, "_slice", lambda: 0.0)
    monkeypatch.setattr("jmsish.drivers.serving.ROUND", 0.0)
    client = raw(tcp)
    client.sendall(b"echo x\n" * 2000 + b"bye\n" + b"echo y\n" * 30_000)
    for _ in range(200):
        client.sendall(b"echo y\n" * 10_000)
    client.shutdown(socket.SHUT_WR)
    assert rest(client).endswith(b"x\nbye\n")
