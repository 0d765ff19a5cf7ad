"""The embedded broker as a program sees it: life, names, listeners, views, time."""

from __future__ import annotations

import gc
import socket
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
import trustme

from jmsish.embedded import EmbeddedBroker, QueueView
from jmsish.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    ResourceAllocationError,
    UnsupportedFeatureError,
)
from jmsish.message import MapMessage, TextMessage
from jmsish.sync import Connection, connect
from jmsish.testing import VirtualClock

PATIENCE = 30


def send(connection: Connection, queue: str, *bodies: object, **settings: object) -> None:
    session = connection.create_session()
    producer = session.create_producer(session.create_queue(queue))
    for body in bodies:
        producer.send(body, **settings)
    session.close()


def counts(view: QueueView) -> tuple[int, int, int]:
    return view.depth, view.available, view.acquired


# Life.


def test_a_block_is_a_life() -> None:
    with EmbeddedBroker() as broker:
        assert broker.is_running and broker.url == f"vm://{broker.name}"
        with connect(broker.url) as connection:
            send(connection, "orders", "first")
            assert broker.queue("orders").depth == 1
    assert not broker.is_running
    with pytest.raises(ConnectionLostError, match=f"vm://{broker.name}: no broker of that name"):
        connect(broker.url)


def test_start_and_stop_twice_are_silent() -> None:
    broker = EmbeddedBroker("twice")
    broker.stop()
    broker.start()
    broker.start()
    assert repr(broker) == "<EmbeddedBroker vm://twice running>"
    broker.stop()
    broker.stop()
    assert repr(broker) == "<EmbeddedBroker vm://twice not running>"


def test_before_the_start_there_is_nobody_to_connect_to() -> None:
    broker = EmbeddedBroker("not-yet")
    with pytest.raises(ConnectionLostError, match="vm://not-yet"):
        connect(broker.url)
    with pytest.raises(IllegalStateError, match="'not-yet' is not running"):
        broker.listen()
    broker.declare_queue("orders", max_delivery_attempts=5)
    with broker:
        assert broker.queue("orders").settings.max_delivery_attempts == 5


def test_a_second_life_begins_empty() -> None:
    broker = EmbeddedBroker(config={"queues": {"declared": {}}})
    with broker, connect(broker.url) as connection:
        send(connection, "orders", "gone after the stop")
    assert [message.body for message in broker.queue("orders").messages()] == ["gone after the stop"]
    with broker, connect(broker.url) as connection:
        assert [view.name for view in broker.queues()] == ["declared"]
        send(connection, "orders", "new")


def test_start_needs_no_thread() -> None:
    before = set(threading.enumerate())  # of which some may end meanwhile: those of connections of other tests
    with EmbeddedBroker():
        assert not set(threading.enumerate()) - before


def test_stop_ends_the_connections() -> None:
    failures: list[Exception] = []
    heard = threading.Event()
    with EmbeddedBroker() as broker:
        connection = connect(broker.url)
        connection.exception_listener = lambda error: (failures.append(error), heard.set())
        connection.create_session()
        broker.stop()
        assert heard.wait(PATIENCE)
    assert "the broker stops" in str(failures[0])
    connection.close()


def test_a_broker_that_is_dropped_without_a_stop_is_collected() -> None:
    broker = EmbeddedBroker("dropped")
    broker.start()
    gone = weakref.ref(broker._driver)
    del broker
    gc.collect()
    assert gone() is None
    with EmbeddedBroker("dropped"):
        pass


# Names.


def test_two_never_meet() -> None:
    with EmbeddedBroker() as one, EmbeddedBroker() as other:
        assert one.name != other.name
        with connect(one.url) as connection:
            send(connection, "orders", "to one")
        with pytest.raises(InvalidDestinationError):
            other.queue("orders")


def test_two_of_one_name() -> None:
    with EmbeddedBroker("same"):
        other = EmbeddedBroker("same")
        with pytest.raises(IllegalStateError, match="'same' runs in this process already"):
            other.start()
        assert not other.is_running
    with other:
        pass


def test_a_name_of_its_own_is_never_one_that_is_taken() -> None:
    number = int(EmbeddedBroker().name.removeprefix("broker-"))
    with EmbeddedBroker(f"broker-{number + 1}"):
        assert EmbeddedBroker().name == f"broker-{number + 2}"


@pytest.mark.parametrize("name", ["with space", "a/b", "münchen", "50%"])
def test_any_name_goes_into_a_url(name: str) -> None:
    with EmbeddedBroker(name) as broker:
        assert broker.url.isascii() and " " not in broker.url
        with connect(broker.url) as connection:
            send(connection, "orders", "here")


@pytest.mark.parametrize(("name", "error"), [("", ValueError), (7, TypeError)])
def test_what_is_no_name(name: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="name of a broker"):
        EmbeddedBroker(name)  # type: ignore[arg-type]


# What it is told.


def test_a_store_is_not_there_yet(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"messages\.db.*in memory only"):
        EmbeddedBroker(store=tmp_path / "messages.db")


def test_a_clock_is_a_callable() -> None:
    with pytest.raises(TypeError, match="clock must be a callable"):
        EmbeddedBroker(clock=12.0)  # type: ignore[arg-type]


class Awaited:
    async def __call__(self, mechanism: str, response: bytes | None) -> str | None:
        return "alice"


def test_an_authenticator_is_a_plain_function() -> None:
    """What a coroutine function answers is no name: everybody would hear a system error."""
    with pytest.raises(TypeError, match="authenticator must be a callable, not str"):
        EmbeddedBroker(authenticator="alice")  # type: ignore[arg-type]
    for awaited in (Awaited(), Awaited().__call__):
        with pytest.raises(TypeError, match="authenticator must be a plain function"):
            EmbeddedBroker(authenticator=awaited)  # type: ignore[arg-type]
    EmbeddedBroker(authenticator=lambda mechanism, response: None)


def test_the_configuration_is_checked_before_the_start() -> None:
    with pytest.raises(ValueError, match="did you mean 'queues'"):
        EmbeddedBroker(config={"queue": {}})


def test_a_configuration_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text('[queues.orders]\nmax_delivery_attempts = 5\n[[listeners]]\nhost = "127.0.0.1"\nport = 0\n')
    with EmbeddedBroker(config=file) as broker:
        assert broker.queue("orders").settings.max_delivery_attempts == 5
        (listener,) = broker.listeners
        assert listener.port > 0
        with connect(listener.url):
            assert len(broker.connections()) == 1


@pytest.mark.parametrize("content", [b"[queues", b"\xff\xfe"])
def test_a_file_that_is_no_configuration(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broker.toml"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"broker\.toml: "):
        EmbeddedBroker(config=file)
    with pytest.raises(FileNotFoundError):
        EmbeddedBroker(config=tmp_path / "nowhere.toml")


def test_a_listener_that_cannot_be_had_stops_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = EmbeddedBroker("unlucky", config={"listeners": [{"port": 0}, {"port": port}]})
        with pytest.raises(ResourceAllocationError, match=rf"127\.0\.0\.1:{port}"):
            broker.start()
    assert not broker.is_running and not broker.listeners
    with EmbeddedBroker("unlucky"):
        pass


# Listeners.


def test_memory_and_tcp_reach_the_same_queues() -> None:
    with EmbeddedBroker() as broker:
        listener = broker.listen()
        assert listener.host == "127.0.0.1" and listener.url == f"amqp://127.0.0.1:{listener.port}"
        with connect(broker.url) as near, connect(listener.url) as far:
            session = far.create_session()
            consumer = session.create_consumer(session.create_queue("orders"))
            send(near, "orders", *[str(number) for number in range(100)])
            assert [consumer.receive(PATIENCE).body for _ in range(100)] == [str(number) for number in range(100)]


def test_tls_with_verification() -> None:
    import ssl

    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    with EmbeddedBroker() as broker:
        listener = broker.listen(ssl_context=server)
        assert listener.url == f"amqps://127.0.0.1:{listener.port}"
        with connect(listener.url, ssl_context=client) as connection:
            send(connection, "orders", "secret")
        assert broker.queue("orders").depth == 1
        with pytest.raises(ConnectionLostError, match=rf"127\.0\.0\.1:{listener.port}: TLS: the certificate"):
            connect(listener.url)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"protocol": "wss"}, ValueError, "protocol must be one of amqp, ws, not 'wss'"),
        ({"origins": ["https://x"]}, ValueError, 'origins are for protocol="ws"'),
        ({"protocol": "ws", "origins": "https://x"}, TypeError, "origins must be a list of strings"),
        ({"protocol": "ws", "origins": [1]}, TypeError, "origins must be a list of strings"),
        ({"protocol": "ws", "origins": ["https://app.example/"]}, ValueError, "'https://app.example/' is no origin"),
    ],
)
def test_what_is_wrong_about_a_listener_over_websocket(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with EmbeddedBroker() as broker:
        with pytest.raises(error, match=said):
            broker.listen(**options)
        assert not broker.listeners


def test_listeners_of_the_configuration_may_be_websockets() -> None:
    with EmbeddedBroker(config={"listeners": [{"port": 0, "protocol": "ws"}]}) as broker:
        (listener,) = broker.listeners
        with connect(listener.url):
            assert len(broker.connections()) == 1


def test_without_wsproto_a_listener_over_websocket_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wsproto", None)
    with EmbeddedBroker() as broker, pytest.raises(ImportError, match=r"pip install 'jmsish\[ws\]'"):
        broker.listen(protocol="ws")


def test_listeners_are_those_that_are_open() -> None:
    with EmbeddedBroker() as broker:
        one, two = broker.listen(), broker.listen("localhost")
        assert broker.listeners == (one, two)
        one.close()
        assert broker.listeners == (two,)
    assert broker.listeners == ()


def test_stop_frees_the_port() -> None:
    with EmbeddedBroker() as broker:
        port = broker.listen().port
    with EmbeddedBroker() as broker:
        assert broker.listen(port=port).port == port


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"host": 7}, TypeError, "host"),
        ({"port": "5672"}, TypeError, "port"),
        ({"port": True}, TypeError, "port"),
        ({"port": 70000}, ValueError, "70000"),
        ({"ssl_context": "certificate.pem"}, TypeError, "SSLContext"),
        ({"role": "edge"}, ValueError, "edge"),
        ({"role": "abnormal"}, ValueError, "abnormal"),
    ],
)
def test_what_cannot_be_listened_on(arguments: dict[str, object], error: type[Exception], said: str) -> None:
    with EmbeddedBroker() as broker, pytest.raises(error, match=said):
        broker.listen(**arguments)  # type: ignore[arg-type]


def test_garbage_on_the_port_disturbs_nobody() -> None:
    with EmbeddedBroker() as broker:
        listener = broker.listen()
        with connect(listener.url) as connection:
            http, old, tls = b"GET / HTTP/1.1\r\n\r\n", b"AMQP\x00\x00\x09\x01", b"\x16\x03\x01\x00\xf4"
            for garbage in (http, old, tls, bytes(range(256))):
                with socket.create_connection((listener.host, listener.port), timeout=PATIENCE) as bad:
                    bad.sendall(garbage)
                    while bad.recv(4096):
                        pass
            send(connection, "orders", "undisturbed")
            assert broker.queue("orders").depth == 1


# Queues.


def test_a_view_is_live() -> None:
    with EmbeddedBroker() as broker, connect(broker.url) as connection:
        view = broker.declare_queue("orders", dead_letter="orders.dead")
        assert view.name == "orders" and view.settings.dead_letter == "orders.dead" and counts(view) == (0, 0, 0)
        send(connection, "orders", "one", "two", "three")
        assert counts(view) == (3, 3, 0) and view.octets > 0 and view.enqueued == 3
        session = connection.create_session(transacted=True)
        consumer = session.create_consumer(session.create_queue("orders"))
        assert consumer.receive(PATIENCE).body == "one"
        assert counts(view) == (3, 0, 3) and view.consumer_count == 1
        (transaction,) = broker.transactions()
        assert transaction.retirements in (0, 1)
        session.rollback()
        session.close()
        assert counts(view) == (3, 3, 0) and view.consumer_count == 0 and view.redelivered == 1
        assert view.purge() == 3 and view.depth == 0
        assert view.expired == view.dropped == view.dead_lettered == 0
        assert "orders" in repr(view) and not view.is_temporary
        broker.delete_queue("orders")
        assert view.is_deleted
        with pytest.raises(InvalidDestinationError, match="'orders'"):
            broker.queue("orders")
        with pytest.raises(InvalidDestinationError, match="'orders'"):
            broker.delete_queue("orders")


def test_messages_are_messages_in_queue_order() -> None:
    with EmbeddedBroker() as broker, connect(broker.url) as connection:
        send(connection, "orders", "late", priority=1)
        send(connection, "orders", {"sku": "kettle"}, priority=8)
        session = connection.create_session(transacted=True)
        browsed = list(broker.queue("orders").messages())
        assert [type(message) for message in browsed] == [MapMessage, TextMessage]
        assert browsed[0].body == {"sku": "kettle"} and browsed[0].jms_priority == 8
        assert browsed[1].text == "late" and browsed[1].jms_destination == session.create_queue("orders")
        consumer = session.create_consumer(session.create_queue("orders"), prefetch=1)
        assert consumer.receive(PATIENCE).body == {"sku": "kettle"}
        assert len(list(broker.queue("orders").messages(acquired=True))) == 2
        session.rollback()
        (again,) = [each for each in broker.queue("orders").messages(acquired=True) if isinstance(each, MapMessage)]
        assert again.jms_redelivered and again.delivery_count == 2


def test_settings_of_a_queue_are_checked() -> None:
    with EmbeddedBroker() as broker:
        with pytest.raises(ValueError, match="did you mean 'dead_letter'"):
            broker.declare_queue("orders", deadletter="x")
        assert broker.queues() == []


def test_connections_are_those_that_are_open() -> None:
    with EmbeddedBroker() as broker:
        assert broker.connections() == []
        with connect(broker.url, client_id="me") as connection:
            connection.create_session()
            (one,) = broker.connections()
            assert one.container_id == "me" and one.peer == broker.url and one.sessions == 1
        assert broker.connections() == []


def test_views_from_many_threads() -> None:
    failures: list[BaseException] = []
    with EmbeddedBroker() as broker:
        view = broker.declare_queue("orders")

        def watch() -> None:
            try:
                for _ in range(200):
                    depth, available, acquired = counts(view)
                    assert depth >= 0 and available >= 0 and acquired >= 0
                    list(view.messages())
            except BaseException as failure:
                failures.append(failure)
                raise

        watchers = [threading.Thread(target=watch) for _ in range(3)]
        with connect(broker.url) as connection:
            for watcher in watchers:
                watcher.start()
            send(connection, "orders", *["body"] * 200)
            for watcher in watchers:
                watcher.join(PATIENCE)
        assert view.depth == 200 and not failures


# Time.


def test_a_virtual_clock_makes_messages_expire() -> None:
    clock = VirtualClock()
    with EmbeddedBroker(clock=clock) as broker, connect(broker.url, clock=clock) as connection:
        send(connection, "orders", "short", time_to_live=30)
        send(connection, "orders", "long", time_to_live=90)
        view = broker.queue("orders")
        clock.advance(29)
        assert view.depth == 2
        clock.advance(2)
        assert [message.body for message in view.messages()] == ["long"]
        assert view.depth == 1 and view.expired == 1


def test_a_virtual_clock_redelivers_after_its_delay() -> None:
    clock = VirtualClock()
    with EmbeddedBroker(clock=clock) as broker, connect(broker.url) as connection:
        broker.declare_queue("orders", redelivery_delay=10)
        send(connection, "orders", "again")
        session = connection.create_session(transacted=True)
        consumer = session.create_consumer(session.create_queue("orders"))
        assert consumer.receive(PATIENCE).body == "again"
        session.rollback()
        assert consumer.receive_no_wait() is None
        clock.advance(10)
        assert consumer.receive(PATIENCE).jms_redelivered


def test_a_clock_only_goes_forward() -> None:
    clock = VirtualClock()
    before = clock()
    clock.advance(0)
    assert clock() == before
    clock.advance(1.5)
    assert clock() == before + 1.5
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="only goes forward"):
            clock.advance(wrong)
    assert repr(clock).startswith("<VirtualClock at 20")


def test_two_threads_move_a_clock_by_the_sum() -> None:
    clock = VirtualClock()
    before = clock()
    movers = [threading.Thread(target=lambda: [clock.advance(1) for _ in range(500)]) for _ in range(2)]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join(PATIENCE)
    assert clock() == pytest.approx(before + 1000)
