"""Closing by rules 28 to 46 of JMS 3.1: what it ends, what it waits for, what stays, and from where it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jmsish

from .blocking import inline
from .face import AioFace, Face, SyncFace
from .steps import MODES, Stage, expect, outcome, seen, send, stage


def callback_for(face: Face, callback: Any) -> Any:
    """A completion callback as the face wants it: the blocking one takes plain callables."""
    return callback if isinstance(face, AioFace) else lambda *arguments: inline(callback(*arguments))


async def test_rule_28_a_connection_closes_all_that_it_has(face: Face) -> None:
    """28: its sessions, and their producers, consumers and browsers; the broker has nothing left of it."""
    connection = await face.connect()
    others = await face.connect()
    uses: list[Callable[[], Any]] = []
    for mode in MODES:
        session = await connection.create_session(**MODES[mode])
        queue = session.create_queue(mode)
        producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
        browser = await session.create_browser(queue)
        uses += [
            lambda producer=producer: producer.send("x"),
            lambda consumer=consumer: consumer.receive_no_wait(),
            lambda browser=browser: first_of(browser),
            lambda session=session: session.create_producer(None),
        ]
    await connection.close()
    for use in uses:
        assert isinstance(await outcome(use()), jmsish.IllegalStateError)
    await send(others, "auto", "m1")
    assert face.broker.queue("auto").consumer_count == 0
    assert len(list(face.broker.connections())) == 1


async def first_of(browser: Any) -> Any:
    async for message in browser:
        return message
    return None


@pytest.mark.parametrize("lost", [False, True], ids=["in-order", "after-a-loss"])
async def test_rule_29_close_twice_is_silent(face: Face, lost: bool) -> None:
    """29: for every kind of object, in whatever order, and on a lost connection too."""
    play = await stage(face, "client", "m1", cuttable=True)
    things: list[Any] = [
        await play.consumer(), await play.session.create_producer(play.destination),
        await play.session.create_browser(play.destination), play.session, play.connection,
    ]  # fmt: skip
    if lost:
        face.cut(play.connection)
    for thing in [*things, *reversed(things), *things]:
        await thing.close()


@pytest.mark.parametrize("parent", ["session", "connection"])
@pytest.mark.parametrize("mode", ["auto", "transacted"])
async def test_rule_29_what_was_closed_with_its_parent_closes_silently(face: Face, mode: str, parent: str) -> None:
    """29: as in a `finally` that closes in another order; and at once, for there is nothing to wait for."""
    play = await stage(face, mode, "m1", close_timeout=None)
    session, place = play.session, play.destination
    relay, producer, idle = [await session.create_producer(where) for where in (None, place, place)]
    consumer, browser = await play.consumer(), await session.create_browser(place)
    await producer.send("m2", on_completion=lambda message, error: None)
    await relay.send("m3", destination=place)
    await expect(consumer, "m1")
    await {"session": session, "connection": play.connection}[parent].close()
    for thing in (producer, relay, idle, consumer, browser, session, play.connection, producer):
        await thing.close()
    for use in (session.commit, session.rollback, lambda: producer.send("m4")):
        assert isinstance(await outcome(use()), jmsish.IllegalStateError)


async def test_rule_30_after_close_everything_is_illegal(face: Face) -> None:
    """30: what makes values raises too, and so do setters; what only tells of the closed object does not."""
    play = await stage(face, "auto", "m1")
    consumer = await play.consumer()
    temporary = await play.session.create_temporary_queue()
    await play.session.close()
    session = play.session
    for make in (
        lambda: session.create_queue("x"), lambda: session.create_topic("x"), session.create_message,
        session.create_text_message, session.create_bytes_message, session.create_map_message,
        session.create_stream_message, session.create_object_message,
    ):  # fmt: skip
        with pytest.raises(jmsish.IllegalStateError):
            make()
    with pytest.raises(jmsish.IllegalStateError):
        consumer.listener = lambda message: None
    for call in (session.unsubscribe("x"), session.create_temporary_topic(), session.recover(), session.rollback()):
        assert isinstance(await outcome(call), jmsish.IllegalStateError)
    with pytest.raises(jmsish.IllegalStateError):
        async with session.transaction():
            raise AssertionError("not reached")
    assert session.is_closed and session.acknowledge_mode is jmsish.AcknowledgeMode.AUTO and not session.transacted
    await temporary.delete()
    await play.connection.close()
    with pytest.raises(jmsish.IllegalStateError):
        play.connection.client_id = "x"
    assert isinstance(await outcome(play.connection.create_session()), jmsish.IllegalStateError)
    assert play.connection.is_closed and not play.connection.is_started


@pytest.mark.parametrize("closing", ["producer", "session", "connection"])
async def test_rule_30_a_closed_producer_takes_no_settings(face: Face, closing: str) -> None:
    """30: its setters raise whatever of its parents was closed; what it was told before can still be read."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    producer.priority = 7
    await {"producer": producer, "session": play.session, "connection": play.connection}[closing].close()
    for name, value in {
        "priority": 3, "time_to_live": 1, "delivery_delay": 1, "delivery_mode": jmsish.DeliveryMode.NON_PERSISTENT,
        "disable_message_id": True, "disable_message_timestamp": True,
    }.items():  # fmt: skip
        with pytest.raises(jmsish.IllegalStateError):
            setattr(producer, name, value)
    assert producer.priority == 7 and not producer.time_to_live and not producer.disable_message_id


async def test_rule_30_closed_after_a_loss(face: Face) -> None:
    """30: a lost connection says why it was lost; closed, it says that it is closed, with the loss as the cause."""
    play = await stage(face, "auto", cuttable=True)
    face.cut(play.connection)
    error = await outcome(play.connection.create_session())
    assert isinstance(error, jmsish.ConnectionLostError)
    await play.connection.close()
    error = await outcome(play.connection.create_session())
    assert isinstance(error, jmsish.IllegalStateError) and isinstance(error.__cause__, jmsish.ConnectionLostError)


async def test_rule_31_messages_stay_readable_after_close(face: Face) -> None:
    """31: received and made ones, body, headers and properties, whenever they are first looked at."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    for body in ("text", b"octets", {"a": 1, "b": "c"}, [1, "two"]):
        await producer.send(body, properties={"colour": "red"})
    consumer = await play.consumer()
    received: list[Any] = [await consumer.receive(timeout=30) for _ in range(4)]
    made = play.session.create_map_message({"x": 1})
    await play.connection.close()
    assert [message.body for message in received] == ["text", b"octets", {"a": 1, "b": "c"}, [1, "two"]]
    assert all(message.properties["colour"] == "red" and message.jms_message_id for message in received)
    assert all(message.jms_destination == play.destination for message in received)
    made.set_int("y", 2)
    assert made.body == {"x": 1, "y": 2}


@pytest.mark.parametrize("target", ["session", "connection"])
@pytest.mark.parametrize("mode", ["auto", "client", "individual", "transacted", "dups_ok"])
async def test_rule_32_acknowledge_after_close(face: Face, mode: str, target: str) -> None:
    """32: acknowledge on a message of a closed session raises IllegalStateError, in every mode."""
    play = await stage(face, mode, "m1")
    (message,) = await expect(await play.consumer(), "m1")
    await (play.session if target == "session" else play.connection).close()
    assert isinstance(await outcome(message.acknowledge()), jmsish.IllegalStateError)


def target_of(play: Stage, consumer: Any, target: str) -> Any:
    return {"consumer": consumer, "session": play.session, "connection": play.connection}[target]


@pytest.mark.parametrize("how", ["receive", "receive_body", "iteration"])
@pytest.mark.parametrize("target", ["consumer", "session", "connection"])
async def test_rule_33_and_34_a_blocked_receive_returns_before_close_does(face: Face, target: str, how: str) -> None:
    """33, 34: whatever form it has, it returns None (an iteration ends), and close waits until it has."""
    play = await stage(face, "auto")
    consumer = await play.consumer()

    async def receiving() -> Any:
        if how == "iteration":
            return [message async for message in consumer] or None
        return await (consumer.receive() if how == "receive" else consumer.receive_body(str))

    waiting = await face.spawn(receiving())
    await face.comes_to_wait(consumer)
    await target_of(play, consumer, target).close()
    if isinstance(face, AioFace) and how != "iteration":
        assert waiting.done(), "close waited for it"
    assert await waiting is None


@pytest.mark.parametrize("target", ["consumer", "session", "connection"])
async def test_rule_34_and_35_a_running_listener_has_everything_until_it_returns(face: Face, target: str) -> None:
    """34, 35: while close waits, the listener sends, by this session and others, and makes a session and uses it."""
    play = await stage(face, "auto", "m1", start=False)
    results = play.session.create_queue("results")
    sessions = [await play.connection.create_session() for _ in range(5)]
    play = await play.beside("auto", same_connection=True)
    sessions.append(play.session)
    producers = [await session.create_producer(results) for session in sessions]
    consumer = await play.consumer()
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add("in")
        await log.until("closing")
        await face.turns(3)
        for number, producer in enumerate(producers):
            await producer.send(f"r{number}")
        session = await play.connection.create_session(transacted=True)
        await (await session.create_producer(results)).send("r6")
        await session.commit()
        await message.acknowledge()
        log.add("out")

    async def closing() -> None:
        log.add("closing")
        await target_of(play, consumer, target).close()
        log.add("closed")

    consumer.listener = on_message
    await play.connection.start()
    await log.until("in")
    await (await face.spawn(closing()))
    assert log.items == ["in", "closing", "out", "closed"]
    assert face.sight("results").bodies == [f"r{number}" for number in range(7)]
    await play.connection.close()
    await play.queue.comes_to(0)


@pytest.mark.parametrize("target", ["session", "connection"])
async def test_rule_35_a_listener_that_waits_for_credit_goes_on(face: Face, target: str) -> None:
    """35: a send of a running listener that waits for room is not given up because somebody closes."""
    face.broker_with().declare_queue("small", max_messages=1, overflow="block")
    play = await stage(face, "auto", "m1", start=False)
    producer = await play.session.create_producer(play.session.create_queue("small"))
    await producer.send("r0")
    consumer = await play.consumer()
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add("in")
        error = await outcome(producer.send("r1"))
        log.add(f"sent {error}")

    async def closing() -> None:
        await target_of(play, consumer, target).close()
        log.add("closed")

    consumer.listener = on_message
    await play.connection.start()
    await log.until("in")
    await face.turns(2)
    closer = await face.spawn(closing())
    await face.turns(3)
    assert log.items == ["in"]
    other = await play.beside("auto")
    small = await other.session.create_consumer(other.session.create_queue("small"))
    await expect(small, "r0 r1")
    await closer
    assert log.items == ["in", "sent None", "closed"]
    await play.queue.holds(0)


@pytest.mark.parametrize("target", ["session", "connection"])
async def test_rule_36_close_from_a_listener_of_its_own(face: Face, target: str) -> None:
    """36: raises IllegalStateError; under AUTO the message is acknowledged all the same when the listener returns."""
    play = await stage(face, "auto", "m1", start=False)
    consumer = await play.consumer()
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(type(await outcome(target_of(play, consumer, target).close())).__name__)

    consumer.listener = on_message
    await play.connection.start()
    assert await log.reach(1) == ["IllegalStateError"]
    await play.queue.comes_to(0)
    assert not play.session.is_closed
    await send(play.connection, "orders", "m2")
    assert await log.reach(2) == ["IllegalStateError"] * 2


async def test_rule_36_a_listener_closes_another_session(face: Face) -> None:
    """36: a listener may close a session that is not its own, also of the same connection."""
    play = await stage(face, "auto", "m1", start=False)
    other = await play.connection.create_session()
    log = face.log()

    async def on_message(message: Any) -> None:
        await other.close()
        log.add("closed")

    (await play.consumer()).listener = on_message
    await play.connection.start()
    await log.reach(1)
    assert other.is_closed
    await play.queue.comes_to(0)


async def test_rule_37_a_listener_closes_its_own_consumer(face: Face) -> None:
    """37: allowed; the listener finishes normally, with its session, and what comes later is left on the queue."""
    play = await stage(face, "auto", "m1 m2", start=False)
    results = await play.session.create_producer(play.session.create_queue("results"))
    consumer = await play.consumer()
    await play.primed(2)
    log = face.log()

    async def on_message(message: Any) -> None:
        await consumer.close()
        await results.send(message.body)
        log.add("out")

    consumer.listener = on_message
    await play.connection.start()
    await log.reach(1)
    await play.queue.comes_to(1, acquired=0)
    assert log.items == ["out"]
    assert face.sight("results").bodies == ["m1"]


@pytest.mark.parametrize("ending", ["acknowledge", "commit", "rollback", "recover"])
async def test_rule_38_and_39_consumer_close_leaves_what_was_delivered(face: Face, ending: str) -> None:
    """38, 39: it acknowledges nothing and ends no transaction; what was delivered can still go either way."""
    play = await stage(face, "client" if ending in ("acknowledge", "recover") else "transacted", "m1 m2 m3")
    consumer = await play.consumer()
    messages = await expect(consumer, "m1 m2")
    await consumer.close()
    await play.queue.holds(3, acquired=2)
    if ending == "acknowledge":
        await messages[0].acknowledge()
    else:
        await getattr(play.session, ending)()
    if ending in ("acknowledge", "commit"):
        await play.queue.holds(1, acquired=0)
        await expect(await play.consumer(), "m3 none")
    else:
        await play.queue.holds(3, acquired=0)
        await expect(await play.consumer(), "m1[R2] m2[R2] m3 none")


@pytest.mark.parametrize("target", ["session", "connection"])
async def test_rule_40_close_rolls_back(face: Face, target: str) -> None:
    """40: what the open transaction received is on the queue again, and what it sent is nowhere."""
    play = await stage(face, "transacted", "m1")
    await expect(await play.consumer(), "m1")
    await (await play.session.create_producer(play.session.create_queue("results"))).send("r1")
    await target_of(play, None, target).close()
    await play.queue.holds(1, acquired=0)
    await face.sight("results").holds(0)
    await expect(await (await play.beside("auto")).consumer(), "m1[R2] none")


@pytest.mark.parametrize("target", ["session", "connection"])
async def test_rule_41_close_of_a_client_session_acknowledges_nothing(face: Face, target: str) -> None:
    """41: what was not acknowledged is delivered again later; what was, is not."""
    play = await stage(face, "client", "m1 m2 m3")
    consumer = await play.consumer()
    (message,) = await expect(consumer, "m1")
    await message.acknowledge()
    await expect(consumer, "m2")
    await target_of(play, None, target).close()
    await expect(await (await play.beside("auto")).consumer(), "m2[R2] m3 none")


async def test_rule_42_a_queue_keeps_what_was_not_acknowledged(face: Face) -> None:
    """42: it is redelivered to whoever comes next, session after session, each time counted."""
    play = await stage(face, "client", "m1")
    await expect(await play.consumer(), "m1")
    for count in (2, 3):
        await play.session.close()
        play = await play.beside("client")
        await expect(await play.consumer(), f"m1[R{count}]")


@pytest.mark.parametrize("target", ["producer", "session", "connection"])
async def test_rule_43_close_waits_for_asynchronous_sends(face: Face, target: str) -> None:
    """43: when close returns, each send is done and its callback has returned."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    log = face.log()

    async def done(message: Any, error: Any) -> None:
        await face.turns(1)
        log.add(f"{message.body} {error}")

    for number in range(5):
        await producer.send(f"m{number}", on_completion=callback_for(face, done))
    await (producer if target == "producer" else target_of(play, None, target)).close()
    assert log.items == [f"m{number} None" for number in range(5)]
    await play.queue.holds(5)


@pytest.mark.parametrize("target", ["producer", "session", "connection"])
async def test_rule_44_close_from_a_completion_callback(face: Face, target: str) -> None:
    """44: closing its own producer, session or connection there is IllegalStateError, and changes nothing."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    log = face.log()

    async def done(message: Any, error: Any) -> None:
        closed: Any = producer if target == "producer" else target_of(play, None, target)
        log.add(type(await outcome(closed.close())).__name__)

    await producer.send("m1", on_completion=callback_for(face, done))
    assert await log.reach(1) == ["IllegalStateError"]
    await producer.send("m2")
    await play.queue.holds(2)


async def test_rule_46_everything_that_closes_is_a_context_manager(face: Face) -> None:
    """46: also where the block raises; contexts have a test of their own."""
    connection = await face.connect()
    with pytest.raises(ZeroDivisionError):
        async with connection, await connection.create_session() as session:
            queue = session.create_queue("orders")
            async with await session.create_producer(queue) as producer:
                await producer.send("m1")
            async with await session.create_browser(queue) as browser:
                assert seen(await first_of(browser)) == "m1"
            async with await session.create_consumer(queue) as consumer:
                await expect(consumer, "m1")
            raise ZeroDivisionError
    assert session.is_closed and connection.is_closed
    for use in (lambda: producer.send("x"), lambda: consumer.receive_no_wait(), lambda: first_of(browser)):
        assert isinstance(await outcome(use()), jmsish.IllegalStateError)


def test_the_two_faces_of_a_callback() -> None:
    """What this file gives to a blocking producer is no coroutine function."""

    async def done(message: Any, error: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        callback_for(SyncFace("vm"), done)(None, None)
