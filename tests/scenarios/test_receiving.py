"""Receiving by calls: bodies, iteration, acknowledge modes, priorities of consumers, expiry, names (JMS 3.1, 8)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import jmsish
from jmsish import AcknowledgeMode

from .face import Face
from .steps import Stage, again, expect, numbered, outcome, seen, send, stage, take_all

BY_ITSELF = ("auto", "dups_ok")
BY_CALL = ("client", "individual", "transacted")


async def sent(play: Stage, *bodies: Any) -> None:
    producer = await play.session.create_producer(play.destination)
    for body in bodies:
        await producer.send(body)
    if play.session.transacted:
        await play.session.commit()


async def body_error(consumer: Any, type: type) -> None:
    with pytest.raises(jmsish.MessageFormatError):
        await consumer.receive_body(type, timeout=30)


# --- one message, one consumer


async def test_rule_113_each_message_goes_to_one_consumer(face: Face) -> None:
    """Of a queue, however many read it."""
    play = await stage(face, "auto")
    consumers = [await (await play.beside("auto")).consumer(prefetch=3) for _ in range(4)]
    await play.send(numbered(1, 40))
    got: list[str] = []
    while len(got) < 40:
        for consumer in consumers:
            message = await consumer.receive_no_wait()
            got += [] if message is None else [seen(message)]
    assert sorted(got) == sorted(numbered(1, 40).split())
    await play.queue.comes_to(0)


# --- bodies


@pytest.mark.parametrize("mode", ["auto", "transacted"])
@pytest.mark.parametrize("wrong", ["str", None, list[int], str | bytes], ids=str)
async def test_what_is_no_type_of_a_body_is_refused_before_anything_is_received(
    face: Face, wrong: Any, mode: str
) -> None:
    play = await stage(face, mode, "m1")
    consumer = await play.consumer()
    with pytest.raises(TypeError, match="the type of a body is a class such as str"):
        await consumer.receive_body(wrong, timeout=5)
    message = await consumer.receive(timeout=5)
    assert message.body == "m1" and message.delivery_count == 1


@pytest.mark.parametrize("mode", [*BY_ITSELF, *BY_CALL])
async def test_rule_115_bodies(face: Face, mode: str) -> None:
    """Of text, octets, maps and objects, as the type asked for or one that it is."""
    play = await stage(face, mode)
    value = play.session.create_object_message([1, "two"])
    await sent(play, "text", b"octets", {"key": 1}, value, "last")
    consumer = await play.consumer()
    assert await consumer.receive_body(str) == "text"
    assert await consumer.receive_body(bytes, timeout=30) == b"octets"
    assert await consumer.receive_body(dict) == {"key": 1}
    assert await consumer.receive_body(list) == [1, "two"]
    assert await consumer.receive_body(object, timeout=0) == "last"
    assert await consumer.receive_body(str, timeout=0) is None


@pytest.mark.parametrize("mode", [*BY_ITSELF, *BY_CALL])
@pytest.mark.parametrize("body", ["a stream", "a plain message", "no text", "no object", "another type"])
async def test_rule_115_what_is_no_such_body(face: Face, mode: str, body: str) -> None:
    """Streams and plain messages have none, nor has a text that is not there; and a text is no number."""
    play = await stage(face, mode)
    session = play.session
    made = {
        "a stream": session.create_stream_message([1]),
        "a plain message": session.create_message(),
        "no text": session.create_text_message(None),
        "no object": session.create_object_message(None),
        "another type": session.create_text_message("1"),
    }
    await sent(play, made[body])
    await body_error(await play.consumer(), int)


@pytest.mark.parametrize("mode", [*BY_ITSELF, "none"])
@pytest.mark.parametrize("prefetch", [0, 1, 100])
async def test_rule_116_in_auto_the_message_comes_again_as_new(face: Face, mode: str, prefetch: int) -> None:
    """Before the later ones, without mark and without count, as often as it fails; then it is received once."""
    play = await stage(face, "auto", "m1 m2 m3")
    session = play.session
    if mode != "auto":
        modes = {"dups_ok": AcknowledgeMode.DUPS_OK, "none": AcknowledgeMode.NONE}
        session = await play.connection.create_session(acknowledge_mode=modes[mode])
    consumer = await session.create_consumer(play.destination, prefetch=prefetch)
    for _ in range(3):
        await body_error(consumer, dict)
    await expect(consumer, "m1")
    await body_error(consumer, bytes)
    assert await consumer.receive_body(str, timeout=30) == "m2"
    await expect(consumer, "m3 none")
    await session.close()
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", BY_ITSELF)
async def test_rule_116_it_is_not_acknowledged(face: Face, mode: str) -> None:
    """Closed after the failure, the consumer gives it back unmarked and in its place."""
    play = await stage(face, mode, "m1 m2")
    consumer = await play.consumer()
    await body_error(consumer, dict)
    await consumer.close()
    await play.queue.holds(2, acquired=0)
    await expect(await play.consumer(), "m1 m2 none")


@pytest.mark.parametrize("mode", BY_ITSELF)
async def test_rule_116_another_consumer_of_the_session_gets_it(face: Face, mode: str) -> None:
    """It counts as unread: a sibling that asks is given it."""
    play = await stage(face, mode, "m1 m2")
    first, second = await play.consumer(), await play.consumer()
    await body_error(first, dict)
    await expect(second, "m1 m2 none")


@pytest.mark.parametrize("mode", BY_CALL)
async def test_rule_117_else_it_counts_as_delivered(face: Face, mode: str) -> None:
    """The next receive gives the next one; recover or rollback brings it back, marked."""
    play = await stage(face, mode, "m1 m2")
    consumer = await play.consumer()
    await body_error(consumer, dict)
    await expect(consumer, "m2")
    await play.give_back()
    await expect(consumer, again("m1 m2") + " none")


async def test_rule_117_acknowledged_with_the_others(face: Face) -> None:
    """In CLIENT mode, by what is received after it."""
    play = await stage(face, "client", "m1 m2")
    consumer = await play.consumer()
    await body_error(consumer, dict)
    (message,) = await expect(consumer, "m2")
    await message.acknowledge()
    await play.queue.holds(0)


# --- iteration


async def test_iteration_gives_messages_as_they_come(face: Face) -> None:
    """And goes on where it was left."""
    play = await stage(face, "auto", numbered(1, 6))
    consumer = await play.consumer()
    for part in ("m1 m2", "m3 m4"):
        got = []
        async for message in consumer:
            got.append(seen(message))
            if len(got) == 2:
                break
        assert got == part.split()
    await expect(consumer, "m5 m6 none")


@pytest.mark.parametrize("what", ["consumer", "session", "connection"])
async def test_iteration_ends_when_the_consumer_is_closed(face: Face, what: str) -> None:
    """By another, while it waits for the next message."""
    play = await stage(face, "auto", "m1 m2")
    consumer = await play.consumer()
    log = face.log()

    async def read() -> list[str]:
        got = []
        async for message in consumer:
            got.append(seen(message))
            log.add(got[-1])
        return got

    reading = await face.spawn(read())
    await log.reach(2)
    await face.comes_to_wait(consumer)
    await {"consumer": consumer, "session": play.session, "connection": play.connection}[what].close()
    assert await reading == ["m1", "m2"]
    assert [message async for message in consumer] == []


async def test_iteration_of_a_failed_consumer_raises(face: Face) -> None:
    """A lost connection is no end of the messages."""
    play = await stage(face, "auto", "m1", cuttable=True)
    consumer = await play.consumer()
    with pytest.raises(jmsish.ConnectionLostError):
        async for message in consumer:
            assert seen(message) == "m1"
            face.cut(play.connection)


# --- acknowledge modes


async def test_individual_messages_are_acknowledged_one_by_one(face: Face) -> None:
    """In any order; the others come again."""
    play = await stage(face, "individual", numbered(1, 4))
    consumer = await play.consumer()
    messages = await expect(consumer, numbered(1, 4))
    await messages[2].acknowledge()
    await messages[0].acknowledge()
    await messages[0].acknowledge()  # twice is silent
    await play.queue.holds(2)
    await play.session.recover()
    await expect(consumer, again("m2 m4") + " none")


async def test_individual_over_several_consumers_and_after_their_close(face: Face) -> None:
    """The acknowledgement belongs to the message."""
    play = await stage(face, "individual", "m1 m2")
    first = await play.consumer(prefetch=1)
    (one,) = await expect(first, "m1")
    await first.close()
    (two,) = await expect(await play.consumer(), "m2")
    await two.acknowledge()
    await one.acknowledge()
    await play.queue.holds(0)


ACK_TYPES = {
    1: "",
    2: "",  # to the dead letters
    3: "m1 m2",
    4: again("m1 m2"),
    5: again("m1 m2"),
}


@pytest.mark.parametrize("kind", ACK_TYPES)
@pytest.mark.parametrize("mode", ["client", "individual"])
async def test_m27_how_a_message_is_acknowledged(face: Face, mode: str, kind: int) -> None:
    """JMS_AMQP_ACK_TYPE: accepted, rejected, released, modified (failed), modified (failed, undeliverable here)."""
    play = await stage(face, mode, "m1 m2")
    consumer = await play.consumer()
    messages = await expect(consumer, "m1 m2")
    for message in messages[:1] if mode == "client" else messages:
        message.set_int_property("JMS_AMQP_ACK_TYPE", kind)
        await message.acknowledge()
    if kind == 2:
        await face.sight("DLQ").holds(2)
    other = await play.beside("auto")
    await play.session.close()
    assert await take_all(await other.consumer()) == ACK_TYPES[kind].split()


async def test_none_acknowledges_nothing_and_keeps_nothing(face: Face) -> None:
    """What was sent to such a consumer is gone from the queue, read or not."""
    play = await stage(face, "auto", numbered(1, 4))
    session = await play.connection.create_session(acknowledge_mode=AcknowledgeMode.NONE)
    consumer = await session.create_consumer(play.destination, prefetch=2)
    (message,) = await expect(consumer, "m1")
    await message.acknowledge()  # means nothing
    await session.recover()
    await expect(consumer, "m2 m3 m4 none")
    await session.close()
    await play.queue.holds(0)


# --- consumers by priority


async def test_a_consumer_of_higher_priority_is_served_first(face: Face) -> None:
    """As long as it has credit; what it does not take goes to the others."""
    play = await stage(face, "client")
    low, high = await play.beside("client"), await play.beside("client")
    lower = await low.consumer(prefetch=10)
    higher = await high.consumer(prefetch=3, priority=5)
    await face.barrier()
    await play.send(numbered(1, 5))
    await play.queue.prefetched(5)
    await expect(higher, "m1 m2 m3")
    await expect(lower, "m4 m5 none")


async def test_the_priority_of_a_consumer_is_a_number(face: Face) -> None:
    """Of 32 bits, below zero too."""
    play = await stage(face, "auto", "m1")
    for priority in ("high", 1.5, True):
        with pytest.raises(TypeError):
            await play.consumer(priority=priority)
    with pytest.raises(ValueError):
        await play.consumer(priority=2**31)
    await expect(await play.consumer(priority=-(2**31)), "m1 none")


# --- expiry


async def test_m84_expired_in_the_buffer(face: Face) -> None:
    """109, 149: not handed over, and gone from the queue; what is behind it comes."""
    ahead = [0.0]
    play = await stage(face, "auto", clock=lambda: time.time() + ahead[0])
    producer = await play.session.create_producer(play.destination)
    for number in range(1, 6):
        await producer.send(f"m{number}", time_to_live=1000 if number % 2 else 0)
    consumer = await play.consumer()
    await play.queue.prefetched(5)
    ahead[0] = 1001
    await expect(consumer, "m2 m4 none")


# --- names


NAMES = [
    "ü", "с именем", "with blanks  in it", "a/b/c", "pipe|pipe", "what?", "50%", "#*.", "tab\there", "\U0001f34e",
    "q" * 400,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["queue", "topic"])
async def test_destinations_with_any_characters(face: Face, name: str, kind: str) -> None:
    """What was sent to a name comes from it, and says so."""
    play = await stage(face, "auto")
    session = play.session
    if kind == "topic" and name == "#*.":
        name = "x.y z"
    destination: Any = session.create_queue(name) if kind == "queue" else session.create_topic(name)
    consumer = await session.create_consumer(destination)
    await (await session.create_producer(destination)).send("m1")
    await (await session.create_producer()).send("m2", destination=destination)
    got = await expect(consumer, "m1 m2")
    await expect(consumer, "none")
    assert {message.jms_destination for message in got} == {destination}
    assert destination.name == name


async def test_what_is_no_name_of_a_destination(face: Face) -> None:
    """Empty or no text: a wrong argument, for queues and topics."""
    session: Any = (await stage(face, "auto")).session
    for create in (session.create_queue, session.create_topic):
        with pytest.raises(ValueError, match="empty"):
            create("")
        for name in (None, 1, b"q"):
            with pytest.raises(TypeError):
                create(name)


async def test_what_cannot_be_consumed_from(face: Face) -> None:
    """No destination at all."""
    session: Any = (await stage(face, "auto")).session
    for destination in (None, 1, object()):
        assert isinstance(await outcome(session.create_consumer(destination)), jmsish.InvalidDestinationError)
    with pytest.raises(TypeError):
        await session.create_consumer("orders")


async def test_a_receive_that_is_cancelled_takes_nothing(face: Face) -> None:
    """With asyncio, a `receive_body` too."""
    play = await stage(face, "auto")
    consumer = await play.consumer()
    if face.here() == "MainThread":
        assert await consumer.receive_body(str, timeout=0.01) is None
    else:
        with pytest.raises((asyncio.TimeoutError, TimeoutError)):
            await asyncio.wait_for(consumer.receive_body(str), 0.01)
    await send(play.connection, "orders", "m1")
    assert await consumer.receive_body(str, timeout=30) == "m1"
