"""After a fork everything is the parent's: in the child no broker runs, nothing is said, and nothing is waited for."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

import jmsish
from jmsish.drivers.threaded import ThreadedDriver

from .drivers.conftest import PATIENCE, client_context, server_context

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

QUEUE = jmsish.Queue("q")
WIRES = ["vm", "tcp", "tls", "ws", "wss"]


def in_child(action: Callable[[], object] = lambda: None) -> None:
    """Fork; the child does it, without an error, and is gone soon."""
    child = os.fork()
    if not child:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    codes: list[int] = []
    waiting = threading.Thread(target=lambda: codes.append(os.waitpid(child, 0)[1]), daemon=True)
    waiting.start()
    waiting.join(PATIENCE)
    if waiting.is_alive():
        os.kill(child, signal.SIGKILL)
        raise AssertionError("the child stands still")
    assert codes == [0]


def connected(broker: jmsish.EmbeddedBroker, wire: str) -> jmsish.Connection:
    if wire == "vm":
        return jmsish.connect(broker.url)
    secure = wire in ("tls", "wss")
    listener = broker.listen(
        protocol="ws" if wire in ("ws", "wss") else "amqp", ssl_context=server_context() if secure else None
    )
    return jmsish.connect(listener.url, ssl_context=client_context()) if secure else jmsish.connect(listener.url)


def held_by_another(*locks: Any) -> ExitStack:
    """As if a thread had them that a child does not have; given back at the end of the block."""
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            held.set()
            over.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(PATIENCE)
    stack = ExitStack()
    stack.callback(thread.join)
    stack.callback(over.set)
    return stack


@pytest.mark.parametrize("wire", WIRES)
def test_a_fork_says_nothing_on_a_connection_of_the_parent(wire: str) -> None:
    with jmsish.EmbeddedBroker() as broker, connected(broker, wire) as connection:
        session = connection.create_session(transacted=True)
        producer, consumer = session.create_producer(QUEUE), session.create_consumer(QUEUE)
        producer.send("before")
        in_child(connection.close)
        producer.send("after")
        session.commit()
        assert [consumer.receive(timeout=PATIENCE).text for _ in range(2)] == ["before", "after"]
        session.commit()


@pytest.mark.parametrize("wire", WIRES)
def test_a_child_waits_for_no_lock_of_a_connection(wire: str) -> None:
    """Of the connection, of the layers around its octets, of the order in which they are written."""
    with jmsish.EmbeddedBroker() as broker, connected(broker, wire) as connection:
        driver: ThreadedDriver = connection._driver
        layer = getattr(driver.transport, "_layer", None)
        parts = (layer, getattr(layer, "_lower", None), getattr(layer, "_upper", None))
        leaves = [part._lock for part in parts if hasattr(part, "_lock")]
        leaves += [driver.transport._order] if hasattr(driver.transport, "_order") else []
        with held_by_another(driver.lock, *leaves):
            in_child(connection.close)


def test_a_child_does_not_run_the_broker_of_its_parent() -> None:
    """The end of its copy of a connection would give back what the parent still has, to whoever else receives."""
    with jmsish.EmbeddedBroker() as broker:
        listener = broker.listen()
        with jmsish.connect(broker.url) as mine, jmsish.connect(listener.url) as other:
            session = mine.create_session(transacted=True)
            producer, consumer = session.create_producer(QUEUE), session.create_consumer(QUEUE)
            producer.send("taken")
            session.commit()
            assert consumer.receive(timeout=PATIENCE).text == "taken"
            elsewhere = other.create_session().create_consumer(QUEUE)
            in_child()
            assert elsewhere.receive_no_wait() is None
            session.commit()
            assert elsewhere.receive_no_wait() is None


def test_in_a_child_the_broker_is_not_there_and_its_name_is_free() -> None:
    with jmsish.EmbeddedBroker("one") as broker:
        listener = broker.listen()

        def action() -> None:
            assert not broker.is_running and not broker.listeners
            with pytest.raises(jmsish.ConnectionLostError, match="no broker of that name"):
                jmsish.connect(broker.url)
            with pytest.raises(jmsish.IllegalStateError, match="belongs to the process that made it"):
                broker.queues()
            broker.stop()
            listener.close()
            for again in (jmsish.EmbeddedBroker("one"), broker):
                with again, jmsish.connect(again.listen().url) as connection:
                    session = connection.create_session()
                    session.create_producer(QUEUE).send("the child's")
                    assert session.create_consumer(QUEUE).receive(timeout=PATIENCE) is not None

        in_child(action)
        with jmsish.connect(listener.url) as connection:
            assert connection.create_session().create_consumer(QUEUE).receive_no_wait() is None


def test_a_child_waits_for_no_lock_of_a_broker() -> None:
    """Whoever held them when it was forked is not there to give them back."""
    with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url) as connection:
        broker.listen()
        driver = broker._driver
        locks = [broker._life, driver._lock, driver._alarm._changed, driver.errands._asking._changed]

        def action() -> None:
            connection.close()
            broker.stop()
            with broker, jmsish.connect(broker.url):
                pass

        with held_by_another(*locks):
            in_child(action)


def test_what_a_parent_closes_is_closed_though_a_child_lives_on() -> None:
    go_on, end = os.pipe()
    is_there, begun = os.pipe()
    broker = jmsish.EmbeddedBroker()
    broker.start()
    listener = broker.listen()
    peer = socket.create_connection((listener.host, listener.port), PATIENCE)
    peer.sendall(b"AMQP\x00\x01\x00\x00")
    assert peer.recv(8) == b"AMQP\x00\x01\x00\x00"  # it was accepted
    child = os.fork()
    if not child:
        os.close(end)
        os.write(begun, b"!")
        os.read(go_on, 1)
        os._exit(0)
    os.close(go_on)
    try:
        assert os.read(is_there, 1) == b"!"  # what it has of the parent's is closed there by now
        broker.stop()
        while peer.recv(1 << 16):
            pass
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((listener.host, listener.port), PATIENCE)
    finally:
        for descriptor in (end, is_there, begun):
            os.close(descriptor)
        os.waitpid(child, 0)
        peer.close()


@pytest.mark.parametrize("wire", ["vm", "tcp"])
def test_a_child_waits_for_no_listener_and_no_callback(wire: str) -> None:
    """That ran when it was forked, in threads that it does not have."""
    both, go_on = threading.Barrier(3), threading.Event()

    def run(*_: object) -> None:
        both.wait(PATIENCE)
        go_on.wait(PATIENCE)

    with jmsish.EmbeddedBroker() as broker, connected(broker, wire) as connection:
        session, sending = connection.create_session(), connection.create_session()
        consumer, producer = session.create_consumer(QUEUE), sending.create_producer(QUEUE)
        consumer.listener = run
        connection.start()
        producer.send("x", on_completion=run)
        both.wait(PATIENCE)
        try:
            for close in (consumer.close, producer.close, session.close, connection.close):
                in_child(close)
        finally:
            go_on.set()
