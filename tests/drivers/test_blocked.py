# ruff: noqa: F811
"""A peer that reads nothing: sends end by `send_timeout`, and nothing is torn when it reads on."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest

import jmsish
from jmsish import DeliveryMode, aio
from jmsish.drivers.sockets import SocketTransport, connect_tcp
from jmsish.drivers.transport import InputFirst, SendBlocked
from tests.relay import DOWN, UP, Relay

from .calls import PATIENCE, begin, prompt, queue_of
from .conftest import Wire
from .mute import MutableProxy
from .reach import broker, proxy  # noqa: F401

PIECE = bytes(64_000)
MANY = 900
"""Pieces: fewer than the broker grants credit for, and more than fit the buffers between."""


@pytest.fixture
def pair() -> Iterator[tuple[SocketTransport, socket.socket]]:
    """A transport, and the socket of a peer that reads when the test does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        transport = connect_tcp("127.0.0.1", listening.getsockname()[1], timeout=PATIENCE)
        peer, _ = listening.accept()
        yield transport, peer
        transport.close()
        peer.close()


def test_what_was_left_at_a_deadline_goes_in_front_of_the_next(pair: tuple[SocketTransport, socket.socket]) -> None:
    """Octets are neither lost nor moved, however often a deadline cuts in."""
    transport, peer = pair
    said = b"".join(b"%08d" % number for number in range(1 << 20))
    with pytest.raises(SendBlocked):
        transport.send(said, monotonic() + 0.01)
    with pytest.raises(SendBlocked):
        transport.send(b"behind it", monotonic())
    read = bytearray()

    def reading() -> None:
        while len(read) < len(said) + 12:
            read.extend(peer.recv(1 << 20))

    reader = threading.Thread(target=reading)
    reader.start()
    transport.send(b"end", None)
    reader.join(PATIENCE)
    assert bytes(read) == said + b"behind it" + b"end"


@pytest.mark.parametrize("is_first", [True, False])
def test_who_is_to_read_does_not_wait_to_write_while_there_is_something_to_read(
    pair: tuple[SocketTransport, socket.socket], is_first: bool
) -> None:
    """Whether it is there already or comes while it waits."""
    transport, peer = pair
    said = bytes(1 << 24)
    if is_first:
        peer.sendall(b"hello")
    else:
        with pytest.raises(SendBlocked):
            transport.send(said, monotonic())
        begin(lambda: peer.sendall(b"hello"))
    with pytest.raises(InputFirst):
        transport.send(said if is_first else b"", None, True)
    assert transport.recv(PATIENCE) == b"hello"
    with pytest.raises(SendBlocked):
        transport.send(b"", monotonic() + 0.01, True)
    read = begin(lambda: _read(peer, len(said)))
    transport.send(b"", None, True)
    assert read.result(PATIENCE) == said


def _read(peer: socket.socket, size: int) -> bytes:
    read = bytearray()
    while len(read) < size:
        read.extend(peer.recv(1 << 20))
    return bytes(read)


@pytest.mark.parametrize("kind", ["tcp", "tls", "ws", "wss"])
def test_who_is_to_read_loses_nothing_of_what_it_writes_and_reads_in_turns(kind: str) -> None:
    """The broker takes nothing of one who takes none of its output, so neither direction gets anywhere by itself."""
    wire, asked, lines = Wire(kind), 200_000, 600
    try:
        transport = wire.connect()
        transport.send(b"flood %d 10000\n" % lines)
        said, read = b"echo 1234567\n" * asked, bytearray()
        is_blocked = True
        while len(read) < lines * 10_000 + asked * 8:
            try:
                if is_blocked:
                    transport.send(said, monotonic() + PATIENCE, True)
                is_blocked = False
            except InputFirst:
                pass
            said = b""
            read += transport.recv(PATIENCE)
        assert read.count(b"1234567\n") == asked and read.count(b"x\n") == lines
    finally:
        wire.stop()


class Full(Relay):
    """After `stall` it takes nothing of the client until that has taken so many octets of the broker's."""

    def __init__(self, port: int, octets: int) -> None:
        self._goes = threading.Event()
        self._goes.set()
        self.left = octets
        super().__init__(("127.0.0.1", port))

    def stall(self) -> None:
        self._goes.clear()

    def relay(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        while octets := source.recv(65536):
            if way == UP:
                assert self._goes.wait(3 * PATIENCE)
            sink.sendall(octets)
            if way == DOWN:
                self.left -= len(octets)
                if self.left < 0:
                    self._goes.set()


def test_a_blocked_client_reads_though_nobody_waits(broker: jmsish.EmbeddedBroker) -> None:
    """The broker takes no more input from one who takes none of its output; each would wait for the other."""
    piece, count = bytes(200_000), 80
    relay = Full(broker.listen().port, count * len(piece))
    connection = jmsish.connect(relay.url, send_timeout=PATIENCE, prefetch=2 * count)
    session = connection.create_session()
    consumer = session.create_consumer(jmsish.Queue("in"))
    producer = connection.create_session().create_producer(jmsish.Queue("out"))
    with jmsish.connect(broker.url) as other:
        filling = other.create_session().create_producer(jmsish.Queue("in"))
        filling.send("the broker has credit for what follows")
        assert consumer.receive(timeout=PATIENCE) is not None
        producer.send("and so has the client")
        patient(connection, 0.1)
        relay.stall()
        with pytest.raises(jmsish.OperationTimeoutError):
            producer.send(bytes(24_000_000))
        for _ in range(count):
            filling.send(piece)
        taken = begin(lambda: relay._goes.wait(PATIENCE))
        assert taken.result(2 * PATIENCE)
    assert all(consumer.receive(timeout=PATIENCE) is not None for _ in range(count))
    patient(connection)
    producer.send("after it")
    assert broker.queue("out").depth == 3
    prompt(connection.close)
    relay.close()


def fill(producer: jmsish.MessageProducer, **arguments: Any) -> tuple[int, jmsish.OperationTimeoutError]:
    """Sends until a send ends by its timeout: how many went before it, and its error."""
    for sent in range(MANY):
        try:
            producer.send(PIECE, **arguments)
        except jmsish.OperationTimeoutError as error:
            return sent, error
    raise AssertionError("the buffers between took everything")


def patient(connection: Any, seconds: float = PATIENCE) -> None:
    """From now on a send has the time that it takes: it stands behind all that was held up."""
    core = connection._core
    core.options = replace(core.options, send_timeout=seconds)


def whole(broker: jmsish.EmbeddedBroker, count: int) -> None:
    """All messages came whole."""
    bodies = [message.body for message in broker.queue("q").messages()]
    assert len(bodies) == count and all(body == PIECE for body in bodies)


def test_a_blocked_write_ends_by_send_timeout(proxy: MutableProxy, broker: jmsish.EmbeddedBroker) -> None:
    """The message is in doubt, as a part of it has left; it arrives when the peer reads on, and so does the next."""
    connection = jmsish.connect(proxy.url, send_timeout=0.1)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    proxy.stall()
    result: Any = prompt(lambda: fill(producer, delivery_mode=DeliveryMode.NON_PERSISTENT))
    sent, error = result
    assert error.outcome_unknown
    proxy.go_on()
    patient(connection)
    producer.send(PIECE)
    whole(broker, sent + 2)
    prompt(connection.close)


def test_a_blocked_write_of_a_send_that_waits(proxy: MutableProxy, broker: jmsish.EmbeddedBroker) -> None:
    """The timeout is one: whether the write is blocked or the answer does not come."""
    connection = jmsish.connect(proxy.url, send_timeout=0.1)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    proxy.stall()
    result: Any = prompt(lambda: fill(producer))
    sent, error = result
    assert sent <= 1 and error.outcome_unknown  # the relay was in the middle of a read
    proxy.go_on()
    patient(connection)
    producer.send(PIECE)
    whole(broker, sent + 2)
    prompt(connection.close)


def test_an_answer_that_does_not_come(proxy: MutableProxy) -> None:
    """The message has left, and what became of it nobody knows."""
    connection = jmsish.connect(proxy.url, send_timeout=0.1, close_timeout=0.1)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    proxy.mute()
    for arguments in ({"message_or_body": "m1"}, {"stream": [PIECE]}):
        error = prompt(lambda: producer.send(**arguments))  # noqa: B023 - called at once
        assert isinstance(error, jmsish.OperationTimeoutError) and error.outcome_unknown
    prompt(connection.close)


def test_a_blocked_stream_leaves_nothing(proxy: MutableProxy, broker: jmsish.EmbeddedBroker) -> None:
    """It is not read on, and taken back when the peer reads again."""
    connection = jmsish.connect(proxy.url, send_timeout=0.1)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    given = []

    def pieces() -> Iterator[bytes]:
        for number in range(MANY):
            given.append(number)
            yield PIECE

    proxy.stall()
    error = prompt(lambda: producer.send(stream=pieces()))
    assert isinstance(error, jmsish.OperationTimeoutError) and not error.outcome_unknown and len(given) < MANY
    proxy.go_on()
    patient(connection)
    producer.send(PIECE)
    whole(broker, 1)
    prompt(connection.close)


def test_a_completion_tells_of_a_blocked_send(proxy: MutableProxy, broker: jmsish.EmbeddedBroker) -> None:
    """The call returns, though the peer does not read; what becomes of the message its callback says, once."""
    connection = jmsish.connect(proxy.url, send_timeout=0.005)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    proxy.stall()
    told: list[Any] = []
    for _ in range(150):
        producer.send(PIECE, on_completion=lambda message, error: told.append(error))
    proxy.go_on()
    prompt(session.close)
    assert told == [None] * 150
    whole(broker, 150)
    prompt(connection.close)


def test_a_blocked_write_in_the_loop(proxy: MutableProxy, broker: jmsish.EmbeddedBroker) -> None:
    """The loop goes on; sends end by `send_timeout`, before they put anything into a buffer."""

    async def scene() -> None:
        async with aio.connect(proxy.url, send_timeout=0.1) as connection:
            session = await connection.create_session()
            producer = await session.create_producer(session.create_queue("q"))
            proxy.stall()
            sent = 0
            with pytest.raises(jmsish.OperationTimeoutError) as caught:
                for sent in range(MANY):  # noqa: B007
                    await producer.send(PIECE, delivery_mode=DeliveryMode.NON_PERSISTENT)
            assert not caught.value.outcome_unknown
            with pytest.raises(jmsish.OperationTimeoutError):
                await producer.send(stream=[PIECE] * MANY)
            proxy.go_on()
            patient(connection)
            await connection._driver.room(monotonic() + PATIENCE)
            await producer.send(PIECE)
            whole(broker, sent + 1)

    asyncio.run(scene())
