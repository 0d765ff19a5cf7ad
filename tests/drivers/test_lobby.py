"""Connections that have not opened: how many there may be, and who has to go. Then the same over sockets."""

from __future__ import annotations

import logging
import socket
import struct
from contextlib import ExitStack

import pytest

from jmsish import EmbeddedBroker, connect
from jmsish.drivers.descriptors import raise_limit
from jmsish.drivers.lobby import Lobby

from .conftest import PATIENCE


def filled(lobby: Lobby[str], *guests: str) -> None:
    for now, guest in enumerate(guests):
        lobby.enter(guest, guest[0], float(now))


def test_there_is_room() -> None:
    lobby: Lobby[str] = Lobby(3, 2)
    assert lobby.turned_away("a") is None
    filled(lobby, "a1", "b1")
    assert lobby.turned_away("a") is None and lobby.turned_away("c") is None and len(lobby) == 2


def test_one_too_many_of_a_host_is_the_newcomer() -> None:
    lobby: Lobby[str] = Lobby(10, 2)
    filled(lobby, "a1", "a2", "b1")
    assert lobby.turned_away("a") is False and lobby.turned_away("b") is None
    lobby.leave("a1")
    assert lobby.turned_away("a") is None and lobby.of_host("a") == 1


def test_when_all_places_are_taken_the_one_who_waits_longest_at_the_fullest_host_goes() -> None:
    lobby: Lobby[str] = Lobby(4, 3)
    filled(lobby, "c1", "a1", "a2", "b1")
    assert lobby.turned_away("d") == "a1"
    lobby.leave("a1")
    lobby.enter("d1", "d", 9.0)
    lobby.enter("b2", "b", 10.0)
    assert lobby.turned_away("e") == "b1"


@pytest.mark.parametrize(("most", "of_a_host"), [(0, 0), (0, 5), (5, 0)])
def test_zero_is_no_limit(most: int, of_a_host: int) -> None:
    lobby: Lobby[str] = Lobby(most, of_a_host)
    filled(lobby, *(f"a{number}" for number in range(5)))
    answer = lobby.turned_away("a")
    assert answer is (False if of_a_host else None) or answer == "a0"


def test_who_has_left_is_not_there() -> None:
    lobby: Lobby[str] = Lobby()
    filled(lobby, "a1")
    lobby.leave("a1")
    lobby.leave("a1")
    lobby.leave("nobody")
    assert len(lobby) == 0 and not lobby._hosts


def test_who_came_before_a_moment() -> None:
    lobby: Lobby[str] = Lobby()
    filled(lobby, "a0", "b1", "a2", "c3")
    assert list(lobby.came_before(2.0)) == ["a0", "b1", "a2"]
    assert list(lobby.came_before(-1.0)) == []


# Over sockets.


def is_closed(client: socket.socket) -> bool:
    """Whether the broker ends it, within the time a test has."""
    client.settimeout(PATIENCE)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_host_that_opens_nothing_gets_no_more_and_those_who_are_in_work_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "jmsish.broker")
    with EmbeddedBroker(config={"limits": {"max_opening_per_host": 3}}) as broker, ExitStack() as stack:
        listener = broker.listen()
        good = stack.enter_context(connect(listener.url))
        silent = [socket.create_connection((listener.host, listener.port)) for _ in range(5)]
        stack.callback(lambda: [client.close() for client in silent])
        assert is_closed(silent[3]) and is_closed(silent[4])
        with good.create_session() as session:
            session.create_producer(session.create_queue("q")).send("works")
        assert [r.getMessage() for r in caplog.records] == [
            "too many connections from 127.0.0.1 have not opened: another one is closed"
        ]
        silent[0].close()
        silent[1].close()
        stack.enter_context(connect_soon(listener.url))


def connect_soon(url: str) -> object:
    """A place becomes free when the broker has seen who left."""
    from jmsish.errors import ConnectionLostError

    while True:
        try:
            return connect(url)
        except ConnectionLostError:
            continue


def test_a_flood_makes_room_for_who_opens() -> None:
    with EmbeddedBroker(config={"limits": {"max_opening": 4}}) as broker, ExitStack() as stack:
        listener = broker.listen()
        silent = [socket.create_connection((listener.host, listener.port)) for _ in range(4)]
        stack.callback(lambda: [client.close() for client in silent])
        with connect(listener.url) as connection:
            assert is_closed(silent[0])
            assert len(broker.connections()) == 1
            with connection.create_session() as session:
                session.create_producer(session.create_queue("q")).send("works")


def test_a_peer_that_takes_nothing_is_given_up_and_the_others_run_on(caplog: pytest.LogCaptureFixture) -> None:
    """What it held goes back, and its memory is free."""
    with EmbeddedBroker(config={"limits": {"stall_timeout": 0.3}}) as broker:
        listener = broker.listen()
        with connect(broker.url) as near:
            session = near.create_session()
            producer = session.create_producer(session.create_queue("q"))
            for _ in range(100):
                producer.send(bytes(200_000))
            hog = socket.create_connection((listener.host, listener.port))
            hog.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            hog.sendall(_greedy())
            hog.settimeout(PATIENCE)
            while not any("it has taken nothing for 0.3 s" in record.getMessage() for record in caplog.records):
                producer.send("tick")
            while broker.queue("q").acquired:
                producer.send("tick")
            assert broker.queue("q").available == broker.queue("q").depth
            assert next(broker.queue("q").messages()).delivery_count == 2, "it held what came first"
            hog.close()


def _greedy() -> bytes:
    from tests.wire.frames import RECEIVER, composite, write

    return b"".join((
        b"AMQP\x00\x01\x00\x00",
        write("open", container_id="hog", max_frame_size=100_000),
        write("begin", 0, next_outgoing_id=0, incoming_window=100_000, outgoing_window=1),
        write("attach", 0, name="l", handle=0, role=RECEIVER, source=composite("source", address="q"),
              target=composite("target")),
        write("flow", 0, handle=0, delivery_count=0, link_credit=1000, next_incoming_id=0, incoming_window=100_000,
              next_outgoing_id=0, outgoing_window=1),
    ))  # fmt: skip


def test_who_resets_in_a_row_leaves_nothing_behind() -> None:
    with EmbeddedBroker() as broker:
        listener = broker.listen()
        for _ in range(200):
            client = socket.create_connection((listener.host, listener.port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        with connect(listener.url):
            reactor = broker._reactor
            assert reactor is not None
        while reactor._outlets or len(reactor._lobby) or broker._driver._lanes:
            pass


def test_the_limit_of_descriptors_is_raised_as_far_as_it_goes() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        assert raise_limit(300) == 300 and resource.getrlimit(resource.RLIMIT_NOFILE) == (300, hard)
        assert raise_limit(200) == 300
        if hard != resource.RLIM_INFINITY:
            assert raise_limit(hard + 1) == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
