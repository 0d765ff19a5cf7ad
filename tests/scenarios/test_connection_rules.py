"""Connections by rules 1 to 27 of JMS 3.1: threads, start and stop, client ids, metadata, the exception listener."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import jmsish
from jmsish import aio
from jmsish.drivers import loop

from .blocking import Blocking
from .face import Face, SyncFace
from .steps import Stage, expect, outcome, seen, send, stage


async def unused(face: Face, **options: Any) -> Any:
    """A connection of a factory: authenticated, stopped, and not used yet."""
    connection: Any
    if isinstance(face, SyncFace):
        connection = Blocking(jmsish.ConnectionFactory(face.url, **options).create_connection())
    else:
        connection = await aio.ConnectionFactory(face.url, **options).create_connection()
    face.connections.append(connection)
    return connection


async def idle(message: Any) -> None:
    """A listener that does nothing."""


# -- threads -----------------------------------------------------------------------------------------------------------


async def test_rule_1_connections_and_destinations_are_shared_by_threads(face: Face) -> None:
    """1: a connection and a destination may be used from several threads at once."""
    connection = await face.connect()
    orders = jmsish.Queue("orders")

    async def work(name: str) -> list[str]:
        session = await connection.create_session()
        producer = await session.create_producer(orders)
        consumer = await session.create_consumer(orders, prefetch=0)
        got = []
        for number in range(20):
            await producer.send(f"{name} {number}")
            message: Any = await consumer.receive(timeout=30)
            got.append(message.body)
        await session.close()
        return got

    workers = [await face.spawn(work(f"w{n}"), name=f"worker {n}") for n in range(4)]
    got = [body for worker in workers for body in await worker]
    assert sorted(got) == sorted(f"w{n} {number}" for n in range(4) for number in range(20))
    await face.sight("orders").comes_to(0)


@pytest.mark.parametrize("use", ["send", "receive", "create_producer", "create_consumer", "recover"])
async def test_rule_2_a_session_is_used_by_one_thread_at_a_time(face: Face, use: str) -> None:
    """2, 3: whoever comes second is refused, by name of both, and nothing breaks."""
    play = await stage(face, "auto")
    consumer, producer = await play.consumer(), await play.session.create_producer(play.destination)
    other = await play.session.create_consumer(play.session.create_queue("others"))
    waiting = await face.spawn(consumer.receive(timeout=30), name="the first")
    await face.comes_to_wait(consumer)
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "send": lambda: producer.send("m0"),
        "receive": lambda: other.receive(timeout=30),
        "create_producer": lambda: play.session.create_producer(play.destination),
        "create_consumer": lambda: play.session.create_consumer(play.destination),
        "recover": lambda: play.session.recover(),
    }
    error = await outcome(calls[use]())
    assert isinstance(error, jmsish.ConcurrencyError)
    assert "'the first'" in str(error) and repr(face.here()) in str(error)
    await send(await face.connect(), "orders", "m1")
    message = await waiting
    assert message is not None and seen(message) == "m1"
    await play.queue.comes_to(0)


async def test_rule_3_a_second_receive_of_one_session(face: Face) -> None:
    """3: a second thread that receives in a session is refused; the first gets its message, and so does the second
    later."""
    play = await stage(face, "client")
    consumer = await play.consumer()
    waiting = await face.spawn(consumer.receive(timeout=30), name="the first")
    await face.comes_to_wait(consumer)
    for call in (consumer.receive(timeout=30), consumer.receive_no_wait(), consumer.receive_body(str, timeout=30)):
        assert isinstance(await outcome(call), jmsish.ConcurrencyError)
    await send(await face.connect(), "orders", "m1 m2")
    first: Any = await waiting
    assert seen(first) == "m1"
    (second,) = await expect(consumer, "m2")
    await second.acknowledge()
    await play.queue.holds(0)


@pytest.mark.parametrize("target", ["consumer", "session", "connection"])
async def test_rule_4_close_may_come_from_another_thread(face: Face, target: str) -> None:
    """4: consumer, session and connection may be closed by another thread than the one that uses the session."""
    play = await stage(face, "auto")
    consumer = await play.consumer()
    waiting = await face.spawn(consumer.receive(timeout=30))
    await face.comes_to_wait(consumer)
    await {"consumer": consumer, "session": play.session, "connection": play.connection}[target].close()
    assert await waiting is None


@pytest.mark.parametrize("face", ["aio-vm", "aio-tcp"], indirect=True)
@pytest.mark.parametrize("target", ["consumer", "session", "connection"])
async def test_a_close_waits_for_a_receive_that_looks_at_the_wire_first(
    face: Face, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8.8: a receive that has begun returns None, also one that has not come to its wait yet; with asyncio it first
    gives the loop a few turns, in which a close came through to the end, and the receive raised."""
    play = await stage(face, "auto")
    consumer = await play.consumer()
    monkeypatch.setattr(loop, "COALESCE_SECONDS", -1.0)
    waiting = await face.spawn(consumer.receive(timeout=30))
    assert consumer._core.waiter is None
    await {"consumer": consumer, "session": play.session, "connection": play.connection}[target].close()
    assert await waiting is None
    with pytest.raises(jmsish.IllegalStateError, match="closed"):
        await consumer.receive(timeout=30)


async def test_rule_5_one_listener_of_a_session_at_a_time(face: Face) -> None:
    """5: over all its consumers, a session runs one listener at a time."""
    play = await stage(face, "auto", start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(f"in {message.body}")
        await face.turns(2)
        log.add(f"out {message.body}")

    for name in ("one", "two", "three"):
        (await play.session.create_consumer(play.session.create_queue(name))).listener = on_message
        await send(play.connection, name, f"{name}1 {name}2")
    await play.connection.start()
    items = await log.reach(12)
    assert all(a.replace("in ", "out ") == b for a, b in zip(items[::2], items[1::2], strict=True))
    assert sorted(items[::2]) == sorted(f"in {name}{n}" for name in ("one", "two", "three") for n in (1, 2))


async def test_rule_6_listeners_of_two_sessions_run_side_by_side(face: Face) -> None:
    """6: each of two listeners, of two sessions of one connection, waits until the other one runs."""
    play = await stage(face, "auto", "m1 m2", start=False)
    other = await play.beside("auto", same_connection=True)
    log = face.log()

    def meeting(me: str, you: str) -> Any:
        async def on_message(message: Any) -> None:
            log.add(me)
            await log.until(you)
            log.add(f"{me} met {you}")

        return on_message

    (await play.consumer(prefetch=1)).listener = meeting("one", "two")
    (await other.consumer(prefetch=1)).listener = meeting("two", "one")
    await play.connection.start()
    assert sorted(await log.reach(4)) == ["one", "one met two", "two", "two met one"]


async def test_rule_7_a_session_whose_listener_runs_is_the_listeners(face: Face) -> None:
    """7: using it from another thread is refused by name of both; close is not, and waits."""
    play = await stage(face, "auto", "m1")
    producer = await play.session.create_producer(play.session.create_queue("others"))
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add("in")
        await log.until("tried")
        await producer.send("from the listener")
        log.add("out")

    (await play.consumer()).listener = on_message
    await log.until("in")
    for call in (producer.send("x"), play.session.recover(), play.session.create_producer(play.destination)):
        error = await outcome(call)
        assert isinstance(error, jmsish.ConcurrencyError)
        assert "jmsish listeners" in str(error) and repr(face.here()) in str(error)
    log.add("tried")
    await play.session.close()
    assert log.items == ["in", "tried", "out"]
    assert face.sight("others").bodies == ["from the listener"]


async def test_rule_8_listeners_and_receives_do_not_mix(face: Face) -> None:
    """8: a session with a listener refuses receives, of every form and on every consumer."""
    play = await stage(face, "auto", "m1", start=False)
    first = await play.consumer()
    second = await play.session.create_consumer(play.session.create_queue("others"))
    first.listener = idle
    for consumer in (first, second):
        for call in (consumer.receive(timeout=30), consumer.receive_no_wait(), consumer.receive_body(str, timeout=30)):
            assert isinstance(await outcome(call), jmsish.IllegalStateError)
    first.listener = None
    await play.connection.start()
    await expect(first, "m1")


async def test_rule_8_no_listener_beside_a_waiting_receive(face: Face) -> None:
    """8, the other way round: a listener is not set while a receive waits, which goes on undisturbed."""
    play = await stage(face, "auto")
    first = await play.consumer()
    second = await play.session.create_consumer(play.session.create_queue("others"))
    waiting = await face.spawn(first.receive(timeout=30), name="the receiver")
    await face.comes_to_wait(first)
    for consumer in (first, second):
        with pytest.raises(jmsish.ConcurrencyError, match="the receiver"):
            consumer.listener = idle
        assert consumer.listener is None
    await send(await face.connect(), "orders", "m1")
    message = await waiting
    assert message is not None and seen(message) == "m1"


@pytest.mark.parametrize("face", ["aio-vm", "aio-tcp"], indirect=True)
@pytest.mark.parametrize("use", ["receive", "receive_no_wait", "send", "create_producer"])
async def test_rule_8_who_has_taken_the_listener_away_uses_the_session_at_once(
    face: Face, use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8: the task of the listeners may have begun to look for a message, which takes it some turns of the loop; there
    is none for it any more, and nobody is refused for that."""
    play = await stage(face, "auto", "m1", start=False)
    consumer, producer = await play.consumer(), await play.session.create_producer(play.destination)
    await play.primed(1)
    monkeypatch.setattr(loop, "COALESCE_SECONDS", -1.0)
    consumer.listener = idle
    await play.connection.start()
    while play.session._exclusive._owner is None:
        await face.yield_()
    consumer.listener = None
    if use == "send":
        await producer.send("m2")
    elif use == "create_producer":
        await play.session.create_producer(play.destination)
    if use == "receive_no_wait":
        message = await consumer.receive_no_wait()
    else:
        message = await consumer.receive(timeout=30)
    assert message is not None and seen(message) == "m1"


# -- start and stop ----------------------------------------------------------------------------------------------------


async def test_rule_12_a_new_connection_is_stopped(face: Face) -> None:
    """12: no message reaches a consumer, or a listener, before start."""
    await send(await face.connect(), "orders", "m1 m2")
    connection = await unused(face)
    assert not connection.is_started
    session = await connection.create_session()
    consumer = await session.create_consumer(session.create_queue("orders"))
    assert await consumer.receive_no_wait() is None and await consumer.receive(timeout=0.01) is None
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(seen(message))

    consumer.listener = on_message
    await face.turns(3)
    assert log.items == []
    await connection.start()
    assert connection.is_started
    assert await log.reach(2) == ["m1", "m2"]


async def test_rule_13_sending_works_on_a_stopped_connection(face: Face) -> None:
    """13: also synchronously, in a transaction, and by browsers that look at it."""
    connection = await unused(face)
    session = await connection.create_session(transacted=True)
    await (await session.create_producer(session.create_queue("orders"))).send("m1")
    await session.commit()
    plain = await connection.create_session()
    await (await plain.create_producer(plain.create_queue("orders"))).send("m2")
    browser = await plain.create_browser(plain.create_queue("orders"))
    assert [message.body async for message in browser] == ["m1", "m2"]
    assert not connection.is_started


async def test_rule_14_start_and_stop_twice(face: Face) -> None:
    """14: start on a started connection and stop on a stopped one do nothing."""
    play = await stage(face, "auto", "m1 m2", start=False)
    consumer = await play.consumer()
    await play.connection.stop()
    for _ in range(2):
        await play.connection.start()
    await expect(consumer, "m1")
    for _ in range(2):
        await play.connection.stop()
    await expect(consumer, "none")
    await play.connection.start()
    await expect(consumer, "m2 none")


async def test_rule_15_after_stop_no_receive_returns_a_message(face: Face) -> None:
    """15: a receive that waits while the connection is stopped gets what comes only after the start."""
    play = await stage(face, "auto")
    consumer = await play.consumer()
    waiting = await face.spawn(consumer.receive(timeout=30))
    await face.comes_to_wait(consumer)
    await play.connection.stop()
    await send(await face.connect(), "orders", "m1")
    await face.turns(3)
    assert not waiting.done()
    await play.connection.start()
    message = await waiting
    assert message is not None and seen(message) == "m1"


async def test_rule_15_after_stop_no_listener_runs(face: Face) -> None:
    """15: stop returns when the running listener has, and none is called until the start."""
    play = await stage(face, "auto", "m1 m2 m3", start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(f"in {message.body}")
        await face.turns(2)
        log.add(f"out {message.body}")

    (await play.consumer()).listener = on_message
    await play.connection.start()
    await log.until("in m1")
    await play.connection.stop()
    items = list(log.items)
    assert items[-1].startswith("out")
    await face.turns(3)
    assert log.items == items
    await play.connection.start()
    await log.until("out m3")


async def test_rule_16_the_time_of_a_receive_goes_on_while_stopped(face: Face) -> None:
    """16: a receive with a timeout ends at its time, with nothing, whether it began before or after the stop."""
    play = await stage(face, "auto")
    consumer = await play.consumer()
    waiting = await face.spawn(consumer.receive(timeout=0.2))
    await play.connection.stop()
    await send(await face.connect(), "orders", "m1")
    assert await waiting is None
    assert await consumer.receive(timeout=0.01) is None
    await play.connection.start()
    await expect(consumer, "m1")


async def test_rule_17_a_listener_that_runs_at_the_stop_has_the_connection(face: Face) -> None:
    """17: until it returns it sends, commits, makes a session and uses it."""
    play = await stage(face, "transacted", "m1", start=False)
    results = await play.session.create_producer(play.session.create_queue("results"))
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add("in")
        await log.until("stopping")
        await face.turns(2)
        await results.send("one")
        await play.session.commit()
        session = await play.connection.create_session()
        await (await session.create_producer(session.create_queue("results"))).send("two")
        await session.close()
        log.add("out")

    async def stopping() -> None:
        log.add("stopping")
        await play.connection.stop()
        log.add("stopped")

    (await play.consumer()).listener = on_message
    await play.connection.start()
    await log.until("in")
    await (await face.spawn(stopping()))
    assert log.items == ["in", "stopping", "out", "stopped"]
    await play.queue.holds(0)
    assert face.sight("results").bodies == ["one", "two"]


async def test_rule_18_stop_from_a_listener(face: Face) -> None:
    """18: raises IllegalStateError, and the connection stays started."""
    play = await stage(face, "auto", "m1 m2", start=False)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(f"{message.body} {type(await outcome(play.connection.stop())).__name__}")

    (await play.consumer()).listener = on_message
    await play.connection.start()
    assert await log.reach(2) == ["m1 IllegalStateError", "m2 IllegalStateError"]
    assert play.connection.is_started


# -- who is there ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("face", ["sync-tcp", "aio-tcp"], indirect=True)
async def test_rule_19_wrong_credentials(face: Face) -> None:
    """19: JMSSecurityError, from connect as from a factory."""
    face.broker_with(config={"users": {"alice": {"password": "secret"}}})
    for call in (
        face.connect(username="alice", password="wrong"),
        unused(face, username="eve", password="secret"),
        unused(face),
    ):
        assert isinstance(await outcome(call), jmsish.JMSSecurityError)
    assert list(face.broker.connections()) == []


@pytest.mark.parametrize("given", ["keyword", "url"])
async def test_rule_20_a_client_id_of_the_factory_stays(face: Face, given: str) -> None:
    """20: a client id that the factory gave cannot be changed: IllegalStateError, which names it."""
    if given == "keyword":
        connection = await unused(face, client_id="preset")
    else:
        connection = await made(face, f"{face.url}?jms.clientID=preset")
    assert connection.client_id == "preset"
    with pytest.raises(jmsish.IllegalStateError, match="preset"):
        connection.client_id = "other"
    assert connection.client_id == "preset"
    await connection.start()
    assert [one.container_id for one in face.broker.connections()] == ["preset"]


async def made(face: Face, url: str) -> Any:
    connection: Any
    if isinstance(face, SyncFace):
        connection = Blocking(jmsish.ConnectionFactory(url).create_connection())
    else:
        connection = await aio.ConnectionFactory(url).create_connection()
    face.connections.append(connection)
    return connection


async def test_rule_21_a_client_id_is_set_before_use(face: Face) -> None:
    """21: once, and before any other use of the connection; then it is the id that the broker knows."""
    connection = await unused(face)
    assert connection.client_id is None
    connection.client_id = "mine"
    with pytest.raises(jmsish.IllegalStateError, match="mine"):
        connection.client_id = "again"
    await connection.create_session()
    assert [one.container_id for one in face.broker.connections()] == ["mine"]


@pytest.mark.parametrize("use", ["start", "create_session", "connect"])
async def test_rule_21_a_client_id_after_use(face: Face, use: str) -> None:
    """21: after any use it raises IllegalStateError."""
    if use == "connect":
        connection: Any = await face.connect()
    else:
        connection = await unused(face)
        await getattr(connection, use)()
    with pytest.raises(jmsish.IllegalStateError, match="before"):
        connection.client_id = "late"
    assert connection.client_id is None
    await connection.close()
    with pytest.raises(jmsish.IllegalStateError, match="closed"):
        connection.client_id = "later"


async def test_rule_22_a_client_id_that_is_none(face: Face) -> None:
    """22: an empty one, and None, are InvalidClientIDError wherever they are given; the connection stays usable."""
    connection = await unused(face)
    for bad in ("", None):
        with pytest.raises(jmsish.InvalidClientIDError):
            connection.client_id = bad
    with pytest.raises(TypeError):
        connection.client_id = 7
    connection.client_id = "good"
    await connection.start()
    assert isinstance(await outcome(face.connect(client_id="")), jmsish.InvalidClientIDError)
    assert isinstance(await outcome(unused(face, client_id="")), jmsish.InvalidClientIDError)
    assert len(list(face.broker.connections())) == 1


async def test_rule_22_a_client_id_that_cannot_be_said(face: Face) -> None:
    """22: half a character, and more than AMQP's first frame holds, are InvalidClientIDError, whoever the broker is."""
    connection = await unused(face)
    with pytest.raises(jmsish.InvalidClientIDError):
        connection.client_id = "half\ud800"
    connection.client_id = "long" * 200
    for _ in range(2):
        assert isinstance(await outcome(connection.start()), jmsish.InvalidClientIDError)
    await connection.close()
    assert isinstance(await outcome(face.connect(client_id="long" * 200)), jmsish.InvalidClientIDError)
    await (await unused(face, client_id="long" * 200)).close()
    assert not face.broker.connections()
    await face.connect(client_id="x" * 250)


async def test_rule_23_two_connections_with_one_client_id(face: Face) -> None:
    """23: the second is refused with InvalidClientIDError, at its first use; the first goes on. Closed, it is free."""
    first = await face.connect(client_id="mine")
    assert isinstance(await outcome(face.connect(client_id="mine")), jmsish.InvalidClientIDError)
    late = await unused(face)
    late.client_id = "mine"
    assert isinstance(await outcome(late.start()), jmsish.InvalidClientIDError)
    await send(first, "orders", "m1")
    await first.close()
    await send(await face.connect(client_id="mine"), "orders", "m2")
    await face.sight("orders").holds(2)


async def test_rule_24_metadata(face: Face) -> None:
    """24: the version of JMS, the name and version of this library, the JMSX properties, and what the broker says."""
    metadata = (await face.connect()).metadata
    assert (metadata.jms_version, metadata.jms_major_version, metadata.jms_minor_version) == ("3.1", 3, 1)
    assert metadata.jms_provider_name == "jmsish" and metadata.provider_version == jmsish.__version__
    assert jmsish.__version__.startswith(f"{metadata.provider_major_version}.{metadata.provider_minor_version}.")
    assert {"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"} <= set(metadata.jmsx_property_names)
    message = jmsish.TextMessage("x")
    for name in set(metadata.jmsx_property_names) - {"JMSXDeliveryCount"}:
        message.properties[name] = 1 if name == "JMSXGroupSeq" else "x"
    assert "ANONYMOUS-RELAY" in metadata.remote_capabilities and metadata.remote_container_id


# -- the exception listener --------------------------------------------------------------------------------------------


async def listening(face: Face, **options: Any) -> tuple[Stage, Any]:
    """A stage whose exception listener writes into a log."""
    play = await stage(face, "auto", **options)
    log = face.log()
    play.connection.exception_listener = lambda error: log.add(type(error).__name__)
    return play, log


async def test_rule_11_the_exception_listener_is_called_by_one_thread_at_a_time(face: Face) -> None:
    """11: two faults at once are two calls, one after the other."""
    play = await stage(face, "auto")
    log = face.log()

    async def on_error(error: jmsish.JMSError) -> None:
        name = "one" if "one" in str(error) else "two"
        log.add(f"in {name}")
        await face.turns(2)
        log.add(f"out {name}")

    play.connection.exception_listener = on_error
    for name in ("one", "two"):
        await play.session.create_consumer(play.session.create_queue(name))
    for name in ("one", "two"):
        face.broker.delete_queue(name)
    items = await log.reach(4)
    assert [item.partition(" ")[0] for item in items] == ["in", "out", "in", "out"]
    assert items[0][3:] == items[1][4:] and {items[0], items[2]} == {"in one", "in two"}


async def test_rule_25_what_a_call_raises_is_not_told_again(face: Face) -> None:
    """25: refused consumers, producers and sends raise, and the exception listener hears nothing."""
    face.broker_with(config={"policy": {"auto_create": False}, "queues": {"orders": {}}})
    play, log = await listening(face)
    nowhere = play.session.create_queue("nowhere")
    anonymous = await play.session.create_producer()
    for call in (
        play.session.create_consumer(nowhere),
        play.session.create_producer(nowhere),
        anonymous.send("m1", destination=nowhere),
        play.session.commit(),
    ):
        assert isinstance(await outcome(call), jmsish.JMSError)
    await face.turns(3)
    await play.connection.close()
    assert log.items == []


async def test_rule_25_a_loss_that_a_receive_raises(face: Face) -> None:
    """25: where a receive waits, it raises the loss, and the exception listener hears nothing."""
    play, log = await listening(face, cuttable=True)
    consumer = await play.consumer()
    waiting = await face.spawn(outcome(consumer.receive(timeout=30)))
    await face.comes_to_wait(consumer)
    face.cut(play.connection)
    assert isinstance(await waiting, jmsish.ConnectionLostError)
    assert isinstance(await outcome(play.connection.create_session()), jmsish.ConnectionLostError)
    await face.turns(3)
    await play.connection.close()
    assert log.items == []


async def test_rule_25_a_loss_that_nobody_waits_for(face: Face) -> None:
    """25: on an idle connection the exception listener hears of the loss, once, whatever is called afterwards."""
    play, log = await listening(face, cuttable=True)
    await play.consumer()
    face.cut(play.connection)
    assert await log.reach(1) == ["ConnectionLostError"]
    assert isinstance(await outcome(play.connection.create_session()), jmsish.ConnectionLostError)
    await play.connection.close()
    await face.turns(2)
    assert log.items == ["ConnectionLostError"]


@pytest.mark.parametrize("waits", [True, False], ids=["a-receive-waits", "nobody-waits"])
async def test_rule_25_a_consumer_that_the_broker_takes_away(face: Face, waits: bool) -> None:
    """25: a deleted queue is told by the receive that waits on it, else to the exception listener."""
    play, log = await listening(face)
    consumer = await play.consumer()
    if waits:
        waiting = await face.spawn(outcome(consumer.receive(timeout=30)))
        await face.comes_to_wait(consumer)
    face.broker.delete_queue("orders")
    if waits:
        assert isinstance(await waiting, jmsish.InvalidDestinationError)
        await face.turns(3)
        assert log.items == []
    else:
        assert await log.reach(1) == ["InvalidDestinationError"]
        assert isinstance(await outcome(consumer.receive(timeout=30)), jmsish.InvalidDestinationError)
        assert len(log.items) == 1


async def test_rule_26_another_broker_is_tried_before_anything_is_told(face: Face) -> None:
    """26: of several brokers the first that can be reached is taken, and nothing is reported."""
    dead = "vm://nobody" if face.wire == "vm" else "amqp://127.0.0.1:1"
    connection = await face.connect(f"failover:({dead},{face.url})")
    await send(connection, "orders", "m1")
    await face.sight("orders").holds(1)


async def test_rule_27_the_exception_listener_may_use_the_api(face: Face) -> None:
    """27: calls on the lost connection fail there, and do not hang; it can be closed, and a new one be made."""
    play = await stage(face, "auto", cuttable=True)
    log = face.log()
    fresh = await face.connect()

    async def on_error(error: jmsish.JMSError) -> None:
        log.add(type(await outcome(play.connection.create_session())).__name__)
        await send(fresh, "orders", "m1")
        await play.session.close()
        await play.connection.close()
        log.add("closed")

    play.connection.exception_listener = on_error
    face.cut(play.connection)
    assert await log.reach(2) == ["ConnectionLostError", "closed"]
    await play.queue.holds(1)


async def test_rule_27_the_exception_listener_may_close_a_living_connection(face: Face) -> None:
    """27: a fault of one consumer, and the listener closes the whole: sessions, and a receive that waits elsewhere."""
    play = await stage(face, "auto")
    log = face.log()

    async def on_error(error: jmsish.JMSError) -> None:
        await play.connection.close()
        log.add(f"closed after {type(error).__name__}")

    play.connection.exception_listener = on_error
    await play.consumer()
    other = await play.connection.create_session()
    elsewhere = await other.create_consumer(other.create_queue("others"))
    waiting = await face.spawn(elsewhere.receive(timeout=30))
    await face.comes_to_wait(elsewhere)
    face.broker.delete_queue("orders")
    assert await waiting is None
    assert await log.reach(1) == ["closed after InvalidDestinationError"]
    assert play.connection.is_closed and play.session.is_closed


async def test_the_exception_listener_of_a_closed_connection(face: Face) -> None:
    """30: on a closed connection no listener can be set; what is no callable is refused."""
    connection = await face.connect()
    with pytest.raises(TypeError):
        connection.exception_listener = 5  # type: ignore[assignment]
    await connection.close()
    with pytest.raises(jmsish.IllegalStateError):
        connection.exception_listener = lambda error: None


async def test_a_mode_in_the_place_of_transacted_is_refused(face: Face) -> None:
    """`create_session(CLIENT)` of JMS 2.0 would count as transacted, and lose what is never committed."""
    connection = await face.connect()
    with pytest.raises(TypeError, match="transacted must be true or false, not a mode: say acknowledge_mode="):
        await connection.create_session(jmsish.AcknowledgeMode.CLIENT)
