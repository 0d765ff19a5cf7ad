"""Reaching a broker by `failover:`: hosts that are wrong, silent, or refuse; hosts that are learned; giving up."""

from __future__ import annotations

import logging
import socket
from typing import Any

import pytest

import jmsish
from jmsish import aio
from tests.relay import vacant_port

from .blocking import PATIENCE
from .face import Face
from .mending import Mending, MendingProxy
from .steps import expect, outcome, send, unanswered

USERS = {"users": {"alice": {"password": "secret"}}}
tcp_only = pytest.mark.parametrize("face", ["sync-tcp", "aio-tcp"], indirect=True)


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "jmsish.client"]


@tcp_only
async def test_a_list_with_one_wrong_entry_says_which(face: Face, caplog: pytest.LogCaptureFixture) -> None:
    """The others are used; the log names host, port and stage, once."""
    caplog.set_level(logging.WARNING, "jmsish.client")
    with vacant_port() as port:
        url = f"failover:(amqp://no-such-host.invalid:5672,amqp://127.0.0.1:{port},{face.url})"
        await send(await face.connect(url), "orders", "m1")
    said = logged(caplog)
    assert len(said) == 2
    assert "no-such-host.invalid:5672" in said[0] and "stage: resolve" in said[0]
    assert "refused" in said[1] and "stage: connect" in said[1]


@tcp_only
async def test_attempts_that_all_fail_are_told_broker_by_broker(face: Face) -> None:
    with vacant_port() as port:
        url = f"failover:(amqp://no-such-host.invalid,amqp://127.0.0.1:{port})"
        error = await outcome(face.connect(url, startup_max_reconnect_attempts=2, reconnect_delay=0))
    assert isinstance(error, jmsish.ConnectionLostError)
    assert "in 2 attempts" in str(error) and "no-such-host.invalid" in str(error) and str(port) in str(error)


async def test_one_broker_that_is_not_there_is_told_plainly(face: Face) -> None:
    with vacant_port() as port:
        away = "vm://nobody" if face.wire == "vm" else f"amqp://127.0.0.1:{port}"
        error = await outcome(face.connect(f"failover:({away})?failover.startupMaxReconnectAttempts=1"))
    assert isinstance(error, jmsish.ConnectionLostError) and str(error).startswith("cannot connect to")


@tcp_only
async def test_a_wrong_password_is_not_tried_for_ever(face: Face) -> None:
    """Once, at each broker: an account is locked by less."""
    broker = face.broker_with(config=USERS)
    tried: list[str] = []
    other = broker.listen()
    url = f"failover:({face.url},{other.url})"
    error = await outcome(face.connect(url, username="alice", password="wrong"))
    tried.append(str(error))
    assert isinstance(error, jmsish.JMSSecurityError)
    assert str(face.listener.port) in tried[0] and str(other.port) in tried[0] and "wrong" not in tried[0]


@tcp_only
async def test_a_password_that_one_broker_refuses_is_tried_at_the_next(face: Face) -> None:
    face.broker_with(config=USERS)
    with jmsish.EmbeddedBroker(config={"users": {"bob": {"password": "other"}}}) as strict:
        url = f"failover:({strict.listen().url},{face.url})"
        await send(await face.connect(url, username="alice", password="secret"), "orders", "m1")


@tcp_only
async def test_a_broker_that_accepts_and_never_answers_is_left(face: Face) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        url = f"failover:(amqp://127.0.0.1:{port},{face.url})"
        await send(await face.connect(url, connect_timeout=0.3), "orders", "m1")
        alone = f"failover:(amqp://127.0.0.1:{port})?failover.startupMaxReconnectAttempts=1"
        told = f"127.0.0.1:{port} accepted the connection and did not answer within {{}} s"
        error = await unanswered(face, alone, told)
    assert isinstance(error, jmsish.ConnectionLostError)


@tcp_only
async def test_a_broker_that_falls_silent_in_the_middle_is_found_and_left(face: Face) -> None:
    """While the application waits, and while it does nothing (a standby reads); by twice the idle time-out."""
    mending = Mending(face)
    proxy = mending.proxy
    assert proxy is not None
    connection = await face.connect(f"failover:({proxy.url},{face.url})", idle_timeout=1)
    connection.event_listener = mending._on_event  # type: ignore[attr-defined]
    session = await connection.create_session()
    consumer = await session.create_consumer(session.create_queue("orders"))
    proxy.mute = True
    await mending.log.until("ConnectionRestored")
    assert "idle-timeout" in str(mending.events[0].cause)
    await send(await face.connect(), "orders", "m1")
    await expect(consumer, "m1")
    proxy.close()


async def test_a_first_connection_waits_for_its_broker(face: Face) -> None:
    """Without a limit of attempts it comes when the broker does."""
    name = "comes-late"
    with vacant_port() as port:
        url = f"failover:(vm://{name})" if face.wire == "vm" else f"failover:(amqp://127.0.0.1:{port})"
        waiting = await face.spawn(face.connect(url))
        await face.yield_()
    broker = face.broker_with(name=name)
    if face.wire == "tcp":
        broker.listen(port=port)
    await send(await waiting, "orders", "m1")
    await face.sight("orders").comes_to(1)


async def test_a_connection_ends_when_its_attempts_are_used_up(face: Face) -> None:
    """All that waits hears why; the exception listener does too, where nobody waits."""
    mending = Mending(face)
    connection = await mending.connect(max_reconnect_attempts=2, reconnect_delay=0)
    log = face.log()
    connection.exception_listener = lambda error: log.add(str(error))
    session = await connection.create_session()
    consumer = await session.create_consumer(session.create_queue("orders"))
    waiting = await face.spawn(outcome(consumer.receive()))
    await face.comes_to_wait(consumer)
    face.broker.stop()
    if mending.proxy is not None:
        mending.proxy.close()
    error = await waiting
    assert isinstance(error, jmsish.ConnectionLostError)
    assert connection.is_closed and isinstance(await outcome(connection.create_session()), jmsish.ConnectionLostError)
    await connection.close()
    face.connections.remove(connection)


async def test_closing_while_the_connection_is_away(face: Face) -> None:
    """It is silent, and leaves no thread or task that dials on."""
    mending = Mending(face)
    connection = await mending.connect(initial_reconnect_delay=30)
    session = await connection.create_session()
    consumer = await session.create_consumer(session.create_queue("orders"))
    waiting = await face.spawn(outcome(consumer.receive()))
    await face.comes_to_wait(consumer)
    mending.cut()
    await mending.log.until("ConnectionInterrupted")
    await connection.close()
    assert await waiting is None
    with pytest.raises(jmsish.IllegalStateError):
        await connection.create_session()


@tcp_only
@pytest.mark.parametrize("action", ["REPLACE", "ADD", "IGNORE"])
async def test_m39_hosts_learned_from_the_open_of_a_broker(
    face: Face, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of its `failover-server-list` replaces or joins that of the URL."""
    with jmsish.EmbeddedBroker() as second:
        listed = {"network-host": "127.0.0.1", "port": second.listen().port}
        name_others(face.broker, listed, monkeypatch)
        proxy = MendingProxy(face.listener.host, face.listener.port)
        options: dict[str, Any] = {"amqp_open_server_list_action": action, "max_reconnect_attempts": 3}
        connection = await face.connect(f"failover:({proxy.url})", **options)
        log = face.log()
        connection.event_listener = lambda event: log.add(type(event).__name__)  # type: ignore[attr-defined]
        connection.exception_listener = lambda error: log.add("ended")
        await face.turns(1)
        proxy.close()
        await log.reach(2)
        if action == "IGNORE":
            assert log.items == ["ConnectionInterrupted", "ended"]
            return
        assert log.items == ["ConnectionInterrupted", "ConnectionRestored"]
        await send(connection, "orders", "m1")
        assert second.queue("orders").depth == 1
        await connection.close()


def name_others(broker: jmsish.EmbeddedBroker, listed: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker names other hosts in its opens."""
    from jmsish.engine.engine import Engine
    from jmsish.types import Symbol

    say = Engine._write_open

    def say_more(engine: Engine) -> None:
        if engine._handshake._is_server:
            entry = {Symbol(key): value for key, value in listed.items()}
            engine.properties = {**(engine.properties or {}), Symbol("failover-server-list"): [entry]}
        say(engine)

    monkeypatch.setattr(Engine, "_write_open", say_more)


@pytest.mark.parametrize("word", ["max_reconnect_attempts", "randomize"])
def test_the_options_are_for_failover_urls(word: str) -> None:
    for connect in (jmsish.connect, aio.connect):
        with pytest.raises(ValueError, match=rf"{word}.*failover:\(amqp://h\)"):
            connect("amqp://h", **{word: 1})


@tcp_only
async def test_a_broker_that_stops_takes_no_consumer_of_a_temporary_destination(face: Face) -> None:
    """It closes the connection, and does not detach what reads its temporary nodes before: all is there again."""
    broker, log = face.broker, face.log()
    connection = await face.connect(f"failover:({face.url})", reconnect_delay=0.01, max_reconnect_delay=0.05)
    connection.event_listener = lambda event: log.add(type(event).__name__)  # type: ignore[attr-defined]
    connection.exception_listener = lambda error: log.add(repr(error))  # type: ignore[assignment]
    session = await connection.create_session()
    made = [await session.create_temporary_queue(), await session.create_temporary_topic()]
    consumers = [await session.create_consumer(each) for each in made]
    producer = await session.create_producer(None)
    port = face.listener.port
    for times in (1, 2, 3):
        broker.stop()
        broker.start()
        broker.listen(port=port)
        while log.items.count("ConnectionRestored") < times:
            await log.reach(len(log.items) + 1)
        for destination, consumer in zip(made, consumers, strict=True):
            await producer.send("m", destination=destination)
            message = await consumer.receive(timeout=PATIENCE)
            assert message is not None and message.body == "m"
    assert not [item for item in log.items if "Error" in item]
