"""What every transport promises, over memory, TCP and TLS, by the same checks."""

from __future__ import annotations

import threading

import pytest

from jmsish.errors import ConnectionLostError

from .conftest import PATIENCE, Lines, Wire


def read_exactly(transport, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = transport.recv(PATIENCE)
        assert part
        data += part
    assert len(data) == size
    return data


def test_octets_go_and_come(wire: Wire) -> None:
    transport = wire.connect()
    assert transport.recv_nowait() is None
    transport.send(b"echo one\n")
    assert transport.recv(PATIENCE) == b"one\n"
    transport.send(b"echo two\n")
    assert transport.recv(None) == b"two\n"
    assert not transport.closed


def test_the_peer_has_a_name(wire: Wire) -> None:
    transport = wire.connect()
    assert transport.peer == ("vm://toy" if wire.kind == "pipe" else f"127.0.0.1:{wire.port}")
    assert transport.peer in repr(transport) and "open" in repr(transport)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_pieces_make_no_difference(wire: Wire, size: int) -> None:
    transport, said = wire.connect(), b"".join(b"echo %d\n" % number for number in range(100))
    for start in range(0, len(said), size):
        transport.send(said[start : start + size])
    expected = said.replace(b"echo ", b"")
    assert read_exactly(transport, len(expected)) == expected


def test_large_ones_in_both_directions(wire: Wire) -> None:
    transport = wire.connect()
    line = bytes(range(32, 127)) * 50_000
    writer = threading.Thread(target=transport.send, args=(b"echo " + line + b"\n",))
    writer.start()
    assert read_exactly(transport, len(line) + 1) == line + b"\n"
    writer.join(PATIENCE)


def test_a_timeout_loses_nothing(wire: Wire) -> None:
    transport = wire.connect()
    for timeout in (0, 0.01):
        with pytest.raises(TimeoutError):
            transport.recv(timeout)
    transport.send(b"echo after\n")
    assert transport.recv(PATIENCE) == b"after\n"


def test_a_reader_waits_while_another_thread_sends(wire: Wire) -> None:
    transport = wire.connect()
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(transport.recv(PATIENCE)))
    reader.start()
    transport.send(b"echo to the reader\n")
    reader.join(PATIENCE)
    assert got == [b"to the reader\n"]


def test_interrupt_brings_the_reader_out_and_no_more(wire: Wire) -> None:
    transport = wire.connect()
    out = threading.Event()

    def read() -> None:
        with pytest.raises(TimeoutError):
            transport.recv(None)
        out.set()

    reader = threading.Thread(target=read)
    reader.start()
    transport.interrupt()
    assert out.wait(PATIENCE)
    reader.join()
    transport.send(b"echo goes on\n")
    assert transport.recv(PATIENCE) == b"goes on\n"


def test_an_interrupt_that_came_too_early_counts_for_the_next_wait(wire: Wire) -> None:
    transport = wire.connect()
    transport.interrupt()
    transport.interrupt()
    with pytest.raises(TimeoutError):
        transport.recv(None)
    with pytest.raises(TimeoutError):
        transport.recv(0.01)


def test_close_brings_the_reader_out(wire: Wire) -> None:
    transport = wire.connect()
    got: list[bytes] = []
    waiting = threading.Event()

    def read() -> None:
        waiting.set()
        got.append(transport.recv(None))

    reader = threading.Thread(target=read)
    reader.start()
    assert waiting.wait(PATIENCE)
    transport.close()
    reader.join(PATIENCE)
    assert got == [b""] and transport.closed


def test_after_close(wire: Wire) -> None:
    transport = wire.connect()
    transport.send(b"echo unread\n")
    transport.close()
    transport.close()
    assert transport.closed and "closed" in repr(transport)
    assert transport.recv(0) == b"" and transport.recv(None) == b"" and transport.recv_nowait() == b""
    with pytest.raises(ConnectionLostError, match="is closed"):
        transport.send(b"echo more\n")
    transport.interrupt()


def test_the_broker_hears_of_a_close(wire: Wire) -> None:
    transport, watcher = wire.connect("mine"), wire.connect("watcher")
    transport.close()
    lines = Lines(watcher)
    while True:  # events, one round trip each, until the broker has seen it
        watcher.send(b"echo seen\n")
        assert lines.next() == b"seen"
        if wire.broker.connections[0].eof:
            break


def test_last_words_then_the_end(wire: Wire) -> None:
    transport = wire.connect()
    transport.send(b"nonsense\n")
    assert read_exactly(transport, 10) == b"wrong\nbye\n"
    assert transport.recv(PATIENCE) == b""
    assert transport.recv(0) == b"" and transport.recv_nowait() == b""
    assert not transport.closed


def test_sending_to_a_peer_that_has_gone_is_an_error_in_the_end(wire: Wire) -> None:
    transport = wire.connect()
    transport.send(b"bye\n")
    assert read_exactly(transport, 4) == b"bye\n"
    assert transport.recv(PATIENCE) == b""
    wire.stop()
    with pytest.raises(ConnectionLostError, match=transport.peer):
        for _ in range(1000):
            transport.send(b"echo anybody there\n")


def test_connections_do_not_mix(wire: Wire) -> None:
    transports = [wire.connect(f"n{number}") for number in range(10)]
    for number, transport in enumerate(transports):
        transport.send(b"say n%d from %d\n" % ((number + 1) % 10, number))
    for number, transport in enumerate(transports):
        assert Lines(transport).next() == b"from %d" % ((number - 1) % 10)


@pytest.mark.parametrize("count", [6])
def test_stress_each_to_each(wire: Wire, count: int) -> None:
    """Threads on connections of their own, each sending to all: every line arrives, in order from each sender."""
    rounds, failures = 100, []
    transports = [wire.connect(f"n{number}") for number in range(count)]

    def life(me: int) -> None:
        lines, seen = Lines(transports[me]), dict.fromkeys(range(count), -1)
        for turn in range(rounds):
            transports[me].send(b"".join(b"say n%d %d %d\n" % (to, me, turn) for to in range(count)))
            for _ in range(count):
                sender, number = map(int, lines.next().split())
                if number != seen[sender] + 1:
                    failures.append((me, sender, number))
                seen[sender] = number

    threads = [threading.Thread(target=life, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)
    assert wire.broker.lost == 0
