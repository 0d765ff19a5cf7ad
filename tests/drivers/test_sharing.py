# ruff: noqa: F811
"""What threads that share a connection cost each other, and what becomes of their messages."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

import jmsish
from tests.relay import onward
from tests.stress import threads as stress

from .calls import FAST, PATIENCE, begin, prompt, queue_of
from .reach import broker, url  # noqa: F401

# -- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", [False, True])
def test_an_idle_connection_sleeps(url: str, waiting: bool) -> None:
    """With and without a thread in a receive: a few looks at the clock each second, and next to no CPU."""
    connection = jmsish.connect(url)
    consumer = connection.create_session().create_consumer(jmsish.Queue("q"))
    receiving = begin(consumer.receive) if waiting else None
    naps: list[float] = []
    rest = connection._driver._rest
    connection._driver._rest = lambda: (naps.append(time.monotonic()), rest())[1]  # type: ignore[method-assign]
    consumer_of_time = threading.Event()
    consumer_of_time.wait(0.2)
    naps.clear()
    begun = time.monotonic()
    consumer_of_time.wait(1.0)
    assert len(naps) <= 8 * (time.monotonic() - begun)
    connection.close()
    assert receiving is None or receiving.result(PATIENCE) is None


def test_a_receive_that_waits_does_not_hold_up_the_sends_of_another_session(url: str) -> None:
    connection = jmsish.connect(url)
    waiting = begin(connection.create_session().create_consumer(jmsish.Queue("other")).receive)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    for number in range(300):
        producer.send(f"m{number}")
    connection.close()
    assert waiting.result(PATIENCE) is None


def test_the_standby_reader_reads_without_resting_as_long_as_there_is_something(url: str) -> None:
    """While nobody waits, large messages come as fast as they are sent: 10 ms between two reads would be seconds."""
    connection = jmsish.connect(url)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    for _ in range(100):
        producer.send(b"x" * 300_000)
    receiver = jmsish.connect(url)
    consumer = receiver.create_session().create_consumer(jmsish.Queue("q"))
    reads = []
    rest = receiver._driver._rest
    receiver._driver._rest = lambda: (reads.append(1), rest())[1]  # type: ignore[method-assign]
    begun = time.monotonic()
    while len(consumer._core.buffer) < 100:
        assert time.monotonic() - begun < PATIENCE
        threading.Event().wait(0.005)
    assert len(reads) < 20
    receiver.close()
    connection.close()


# -- everything at once -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize("at", ["vm", "tcp"])
@pytest.mark.parametrize("seed", [1, 2])
def test_threads_that_share_a_connection_lose_and_double_nothing(at: str, seed: int, lossy: bool) -> None:
    """A short run of `tests/stress/threads.py`."""
    assert begin(lambda: stress.play(at, seed, 6, 80, lossy)).result(3 * PATIENCE) == []


def test_a_peer_that_stops_reading_fails_the_send_in_time() -> None:
    with jmsish.EmbeddedBroker() as broker, socket.create_server(("127.0.0.1", 0)) as gate:
        listener = broker.listen()
        begin(lambda: half_relay(gate, listener.port), "half relay")
        connection = jmsish.connect(f"amqp://127.0.0.1:{gate.getsockname()[1]}", close_timeout=FAST)
        connection._driver.transport.stall_timeout = FAST  # type: ignore[attr-defined]
        session = connection.create_session()
        producer = session.create_producer(queue_of(session))
        waiting = begin(connection.create_session().create_consumer(jmsish.Queue("other")).receive)
        error = prompt(lambda: producer.send(b"x" * 50_000_000))
        assert isinstance(error, jmsish.ConnectionLostError) and "taken nothing" in str(error)
        assert isinstance(waiting.exception(PATIENCE), jmsish.ConnectionLostError)
        assert prompt(connection.close) is None


def half_relay(gate: socket.socket, port: int) -> None:
    """Relays until a large message begins, and then stands still."""
    near, _ = gate.accept()
    far = onward(near, ("127.0.0.1", port))

    def back() -> None:
        with contextlib.suppress(OSError):
            while octets := far.recv(65536):
                near.sendall(octets)

    begin(back, "half relay back")
    with contextlib.suppress(OSError):
        while len(octets := near.recv(65536)) < 30_000:
            if not octets:
                break
            far.sendall(octets)
        else:
            threading.Event().wait(PATIENCE)
    near.close()
    far.close()


def test_many_sessions_with_listeners_and_closes_from_other_threads(url: str) -> None:
    connection = jmsish.connect(url)
    seen: list[str] = []
    sessions = []
    enough = threading.Semaphore(0)
    for number in range(12):
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(f"q{number % 4}"))
        consumer.listener = lambda message: (seen.append(message.text), enough.release())[0]
        sessions.append((session, consumer))
    sender = connection.create_session()
    producer = sender.create_producer()
    for number in range(200):
        producer.send(f"m{number}", destination=sender.create_queue(f"q{number % 4}"))
        if number % 20 == 10:
            session, consumer = sessions.pop()
            begin((consumer if number % 40 == 10 else session).close).result(PATIENCE)
        if len(sessions) == 4:
            break
    for _ in range(number + 1):
        assert enough.acquire(timeout=PATIENCE)
    assert prompt(connection.close) is None
    assert sorted(seen) == sorted(f"m{i}" for i in range(number + 1))
