"""The simplified API: JMSContext, JMSProducer and JMSConsumer, by the rules of JMS 3.1."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

import jmsish
from jmsish import AcknowledgeMode, aio

from .blocking import Blocking, dressed, undressed
from .face import Face, SyncFace
from .steps import expect, outcome, seen, send, when_free

AUTO, CLIENT, TRANSACTED = AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.TRANSACTED


async def opened(face: Face, mode: AcknowledgeMode = AUTO, **options: Any) -> Any:
    """A context; its connection counts as one of the scenario's."""
    if isinstance(face, SyncFace):
        return noted(face, Blocking(jmsish.create_context(face.url, mode, **options)))
    return noted(face, await aio.create_context(face.url, mode, **options))


async def from_factory(face: Face, mode: AcknowledgeMode = AUTO, **options: Any) -> Any:
    if isinstance(face, SyncFace):
        return noted(face, Blocking(jmsish.ConnectionFactory(face.url, **options).create_context(mode)))
    return noted(face, await aio.ConnectionFactory(face.url, **options).create_context(mode))


def noted(face: Face, context: Any) -> Any:
    connection = undressed(context)._connection
    face.connections.append(dressed(connection) if isinstance(face, SyncFace) else connection)
    return context


def connection_of(context: Any) -> Any:
    return undressed(context)._connection


def meanwhile(face: Face, context: Any, work: Any) -> list[Any]:
    """While the session of a context begins, `work(context)` is called by another thread or task; how that ended."""
    connection, ended, create = connection_of(context), [], connection_of(context).create_session
    raw = undressed(context)

    def in_thread(**arguments: Any) -> Any:
        second = threading.Thread(target=lambda: ended.append(raised_by(lambda: work(raw))))
        second.start()
        second.join()
        return create(**arguments)

    async def in_task(**arguments: Any) -> Any:
        ended.extend(await asyncio.gather(work(raw), return_exceptions=True))
        return await create(**arguments)

    connection.create_session = in_thread if isinstance(face, SyncFace) else in_task
    return ended


def raised_by(work: Any) -> Any:
    try:
        return work()
    except Exception as error:
        return error


# -- contexts ----------------------------------------------------------------------------------------------------------


async def test_a_context_sends_and_receives(face: Face) -> None:
    """A context alone is enough for a message there and back, with every creator of Connection and Session."""
    context = await opened(face)
    assert context.session_mode is AUTO and not context.transacted and not context.is_closed
    orders = context.create_queue("orders")
    assert context.create_topic("news") == jmsish.Topic("news")
    producer = await context.create_producer()
    await producer.send(orders, context.create_text_message("m1"))
    await producer.send(orders, "m2")
    browser = await context.create_browser(orders)
    assert [message.body async for message in browser] == ["m1", "m2"]
    consumer = await context.create_consumer(orders)
    await expect(consumer, "m1 m2 none")
    assert consumer.destination == orders and consumer.message_selector is None and consumer.selector is None
    made = [context.create_message(), context.create_bytes_message(b"x"), context.create_map_message({"a": 1})]
    made += [context.create_stream_message([1]), context.create_object_message(1.5)]
    assert [type(undressed(message)).__name__ for message in made] == [
        "Message", "BytesMessage", "MapMessage", "StreamMessage", "ObjectMessage",
    ]  # fmt: skip
    assert context.metadata.jms_version == "3.1"


async def test_temporary_destinations_of_a_context(face: Face) -> None:
    """A temporary queue of a context is its connection's, and goes with it."""
    context = await opened(face)
    replies = await context.create_temporary_queue()
    producer = await context.create_producer()
    await producer.send(replies, "m1")
    consumer = await context.create_consumer(replies)
    await expect(consumer, "m1")
    await consumer.close()
    await replies.delete()
    assert isinstance(await outcome(producer.send(replies, "m2")), jmsish.JMSError)


async def test_a_transacted_context(face: Face) -> None:
    """commit, rollback and transaction() are the session's."""
    context = await opened(face, TRANSACTED)
    assert context.transacted
    orders = context.create_queue("orders")
    producer = await context.create_producer()
    await producer.send(orders, "m1")
    await face.sight("orders").holds(0)
    await context.commit()
    consumer = await context.create_consumer(orders)
    await expect(consumer, "m1")
    await context.rollback()
    with pytest.raises(ZeroDivisionError):
        async with context.transaction():
            await expect(consumer, "m1[R2]")
            raise ZeroDivisionError
    async with context.transaction() as same:
        assert undressed(same) is undressed(context)
        await expect(consumer, "m1[R3]")
    await face.sight("orders").holds(0)


async def test_a_factory_makes_contexts_whose_client_id_can_be_set(face: Face) -> None:
    """A context of a factory has used nothing yet: its client id can be set until it does (JMS 3.1, 2.8)."""
    context = await from_factory(face)
    assert context.client_id is None
    context.client_id = "me"
    assert context.client_id == "me"
    await (await context.create_producer()).send(context.create_queue("orders"), "m1")
    with pytest.raises(jmsish.IllegalStateError):
        context.client_id = "you"
    preset = await from_factory(face, client_id="you")
    assert preset.client_id == "you"
    with pytest.raises(jmsish.IllegalStateError):
        preset.client_id = "me too"


async def test_create_context_refuses_what_it_cannot_open(face: Face) -> None:
    """A wrong mode is a ValueError, a client id in use InvalidClientIDError; nothing stays behind."""
    with pytest.raises(ValueError):
        await opened(face, 99)  # type: ignore[arg-type]
    await opened(face, client_id="me")
    assert isinstance(await outcome(opened(face, client_id="me")), jmsish.InvalidClientIDError)
    assert len(list(face.broker.connections())) == 1


async def test_rule_9_create_context_while_another_thread_uses_the_session(face: Face) -> None:
    """9: createContext does not touch the session, so anybody may call it, also while a receive waits there."""
    context = await opened(face)
    consumer = await context.create_consumer(context.create_queue("orders"))
    waiting = await face.spawn(consumer.receive(timeout=30))
    await face.comes_to_wait(consumer)
    other = await context.create_context(CLIENT)
    assert other.session_mode is CLIENT and connection_of(other) is connection_of(context)
    await (await other.create_producer()).send(other.create_queue("orders"), "m1")
    assert seen(await waiting) == "m1"


async def test_rule_10_a_second_listener_on_a_running_context(face: Face) -> None:
    """10: a consumer can be made, and given a listener, while another listener of the context runs; both then hear."""
    context = await opened(face)
    log = face.log()

    async def first(message: Any) -> None:
        log.add(f"first {message.body}")
        await log.until("making")
        await face.turns(2)
        log.add("first ends")

    async def second(message: Any) -> None:
        log.add(f"second {message.body}")

    (await context.create_consumer(context.create_queue("orders"))).message_listener = first
    sender = await face.connect()
    await send(sender, "orders", "m1")
    await log.until("first m1")

    async def making() -> None:
        log.add("making")
        consumer = await context.create_consumer(context.create_queue("others"))
        consumer.listener = second
        log.add("made")

    await (await face.spawn(making()))
    await send(sender, "others", "m2")
    assert await log.reach(5) == ["first m1", "making", "first ends", "made", "second m2"]
    await context.close()


async def test_rule_45_the_connection_closes_with_its_last_context(face: Face) -> None:
    """45: each close ends a session; the last one ends the connection, in whatever order they close."""
    first = await opened(face)
    second = await first.create_context(TRANSACTED)
    third = await second.create_context(CLIENT)
    connection = connection_of(first)
    orders = first.create_queue("orders")
    producer = await second.create_producer()
    await producer.send(orders, "lost")
    await first.close()
    assert first.is_closed and not connection.is_closed and not second.is_closed
    await second.close()
    assert not connection.is_closed
    await face.sight("orders").holds(0)
    await (await third.create_producer()).send(orders, "m1")
    await third.close()
    assert connection.is_closed and third.is_closed
    await third.close()
    await first.close()
    assert list(face.broker.connections()) == []


async def test_rule_45_contexts_closed_at_once(face: Face) -> None:
    """45: closed by as many threads at once, the connection is closed when the last of them returns."""
    for _ in range(10):
        first = await opened(face)
        family = [first, *[await first.create_context(TRANSACTED) for _ in range(4)]]
        closing = [await face.spawn(context.close(), name=f"closer {n}") for n, context in enumerate(family)]
        for each in closing:
            await each
        assert connection_of(first).is_closed and all(context.is_closed for context in family)
    assert list(face.broker.connections()) == []


async def test_rule_46_contexts_and_their_consumers_are_context_managers(face: Face) -> None:
    """46: a context closes at the end of its block, and so does a consumer of it."""
    context = await opened(face)
    async with context:
        async with await context.create_consumer(context.create_queue("orders")) as consumer:
            await expect(consumer, "none")
        assert isinstance(await outcome(consumer.receive_no_wait()), jmsish.IllegalStateError)
    assert context.is_closed and connection_of(context).is_closed


async def test_rule_30_a_closed_context_refuses_everything(face: Face) -> None:
    """30, of contexts: after close every call raises IllegalStateError, also of what was made before."""
    context = await opened(face)
    orders = context.create_queue("orders")
    producer = await context.create_producer()
    consumer = await context.create_consumer(orders)
    await producer.send(orders, "m1")
    (message,) = await expect(consumer, "m1")
    await context.close()
    waiting: list[Any] = [
        context.create_producer(), context.create_consumer(orders), context.create_browser(orders),
        context.create_temporary_queue(), context.create_temporary_topic(), context.create_context(AUTO),
        context.start(), context.stop(), context.commit(), context.rollback(), context.recover(),
        context.acknowledge(), producer.send(orders, "m2"), consumer.receive(), consumer.receive_no_wait(),
        message.acknowledge(),
    ]  # fmt: skip
    for call in waiting:
        assert isinstance(await outcome(call), jmsish.IllegalStateError)
    for plain in (context.create_queue, context.create_topic, context.create_text_message):
        with pytest.raises(jmsish.IllegalStateError):
            plain("x")
    with pytest.raises(jmsish.IllegalStateError):
        context.exception_listener = None
    assert message.body == "m1"


async def test_rule_36_a_listener_cannot_close_its_own_context(face: Face) -> None:
    """36: close of the context from a listener of its own raises IllegalStateError, and changes nothing."""
    context = await opened(face)
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(type(await outcome(context.close())).__name__)
        log.add(type(await outcome(context.stop())).__name__)
        log.add(message.body)

    (await context.create_consumer(context.create_queue("orders"))).listener = on_message
    await send(await face.connect(), "orders", "m1 m2")
    assert await log.reach(6) == ["IllegalStateError", "IllegalStateError", "m1"] + [
        "IllegalStateError", "IllegalStateError", "m2",
    ]  # fmt: skip
    assert not context.is_closed
    await context.close()


async def test_rule_44_a_completion_callback_cannot_close_its_context(face: Face) -> None:
    """44: a completion callback that closes its own context gets IllegalStateError; close from outside waits for it."""
    context = await opened(face)
    log = face.log()

    async def done(message: Any, error: Any) -> None:
        log.add(type(await outcome(context.close())).__name__)
        log.add(f"done {message.body} {error}")

    producer = (await context.create_producer()).set_async(in_place_of(face, done))
    await producer.send(context.create_queue("orders"), "m1")
    await context.close()
    assert log.items == ["IllegalStateError", "done m1 None"]
    await face.sight("orders").holds(1)


def in_place_of(face: Face, callback: Any) -> Any:
    """A completion callback as the face wants it: the blocking one takes no coroutine function."""
    if not isinstance(face, SyncFace):
        return callback

    def called(message: Any, error: Any) -> None:
        from .blocking import inline

        inline(callback(message, error))

    return called


async def test_rule_52_context_acknowledge(face: Face) -> None:
    """52: acknowledges all messages of the context's session, over all its consumers."""
    context = await opened(face, CLIENT)
    sender = await face.connect()
    await send(sender, "orders", "m1 m2")
    await send(sender, "others", "m3")
    await expect(await context.create_consumer(context.create_queue("orders")), "m1 m2")
    await expect(await context.create_consumer(context.create_queue("others")), "m3")
    await face.sight("orders").holds(2, acquired=2)
    await context.acknowledge()
    await face.sight("orders").holds(0)
    await face.sight("others").holds(0)


@pytest.mark.parametrize("mode", [AUTO, AcknowledgeMode.DUPS_OK, TRANSACTED, AcknowledgeMode.INDIVIDUAL])
async def test_rule_52_context_acknowledge_elsewhere_does_nothing(face: Face, mode: AcknowledgeMode) -> None:
    """52: in other modes than CLIENT it is a no-op."""
    context = await opened(face, mode)
    await send(await face.connect(), "orders", "m1")
    await expect(await context.create_consumer(context.create_queue("orders")), "m1")
    await context.acknowledge()
    if mode in (TRANSACTED, AcknowledgeMode.INDIVIDUAL):
        await face.sight("orders").holds(1)


async def test_rule_121_the_first_consumer_starts_the_connection(face: Face) -> None:
    """121: until the first consumer the connection is stopped; making one starts it."""
    context = await opened(face)
    connection = connection_of(context)
    orders = context.create_queue("orders")
    await (await context.create_producer()).send(orders, "m1")
    await context.create_browser(orders)
    assert not connection.is_started and context.auto_start
    consumer = await context.create_consumer(orders)
    assert connection.is_started
    await expect(consumer, "m1")
    await context.stop()
    assert not connection.is_started
    await context.start()
    assert connection.is_started


async def test_rule_121_without_auto_start_the_application_starts_it(face: Face) -> None:
    """121: with auto_start off nothing comes before start()."""
    context = await opened(face)
    context.auto_start = False
    orders = context.create_queue("orders")
    await (await context.create_producer()).send(orders, "m1")
    consumer = await context.create_consumer(orders)
    assert not connection_of(context).is_started
    await expect(consumer, "none")
    await context.start()
    await expect(consumer, "m1")


async def test_rule_201_one_family_of_errors(face: Face) -> None:
    """201: the simplified API raises the same classes as the classic one, all caught by JMSError."""
    context = await opened(face)
    consumer = await context.create_consumer(context.create_queue("orders"))
    for call, kind in [
        (context.commit(), jmsish.IllegalStateError),
        (context.rollback(), jmsish.IllegalStateError),
        ((await context.create_producer()).send(None, "m1"), jmsish.InvalidDestinationError),
    ]:
        error = await outcome(call)
        assert type(error) is kind and isinstance(error, jmsish.JMSError)
    await consumer.close()
    assert type(await outcome(consumer.receive())) is jmsish.IllegalStateError


# -- producers ---------------------------------------------------------------------------------------------------------


async def test_rule_103_setters_return_the_producer(face: Face) -> None:
    """103: every setter returns the producer, each value can be read back, and a JMSProducer has no close."""
    context = await opened(face)
    producer = undressed(await context.create_producer())
    reply_to = context.create_queue("replies")

    def callback(message: Any, error: Any) -> None:
        raise AssertionError("never sent")

    settings: dict[str, Any] = {
        "priority": 9, "time_to_live": 60.0, "delivery_mode": jmsish.DeliveryMode.NON_PERSISTENT,
        "delivery_delay": 1.5, "disable_message_id": True, "disable_message_timestamp": True, "jms_type": "order",
        "jms_correlation_id": "c1", "jms_reply_to": reply_to,
    }  # fmt: skip
    for name, value in settings.items():
        assert getattr(producer, f"set_{name}")(value) is producer
        assert getattr(producer, name) == value, name
    assert producer.set_async(callback) is producer and producer.async_ is callback
    assert producer.set_async(None).async_ is None
    assert producer.set_jms_correlation_id_as_bytes(b"\x01") is producer
    assert producer.jms_correlation_id_as_bytes == b"\x01"
    assert producer.set_property("colour", "red") is producer
    assert producer.clear_properties() is producer
    assert not hasattr(producer, "close")


async def test_rule_103_defaults_and_wrong_values(face: Face) -> None:
    """103: the defaults are those of JMS, and a wrong value is refused by the setter as by the property."""
    producer = undressed(await (await opened(face)).create_producer())
    assert (producer.delivery_mode, producer.priority, producer.time_to_live, producer.delivery_delay) == (
        jmsish.DeliveryMode.PERSISTENT, 4, 0, 0,
    )  # fmt: skip
    assert producer.jms_type is None and producer.jms_correlation_id is None and producer.jms_reply_to is None
    for setter, value in [("priority", 10), ("priority", -1), ("delivery_mode", 7), ("delivery_delay", -1)]:
        with pytest.raises(ValueError):
            getattr(producer, f"set_{setter}")(value)
    for setter, value in [("priority", "9"), ("jms_reply_to", "replies"), ("async", 5), ("time_to_live", "long")]:
        with pytest.raises((TypeError, jmsish.InvalidDestinationError)):
            getattr(producer, f"set_{setter}")(value)
    assert producer.priority == 4


async def test_rule_104_the_producer_overrides_the_message(face: Face) -> None:
    """104: properties and headers set on the producer go before those of the message, at each send."""
    context = await opened(face)
    orders, replies = context.create_queue("orders"), context.create_queue("replies")
    consumer = await context.create_consumer(orders)
    producer = await context.create_producer()
    producer.set_property("colour", "red").set_property("weight", jmsish.Short(7)).set_jms_type("of the producer")
    producer.set_jms_correlation_id("c1").set_jms_reply_to(replies).set_priority(7)
    message = context.create_text_message("m1")
    message.properties["colour"] = "blue"
    message.properties["own"] = True
    message.jms_type, message.jms_correlation_id = "of the message", "c0"
    message.jms_priority = 2
    assert undressed(await producer.send(orders, message)) is undressed(producer)
    got = await consumer.receive(timeout=30)
    assert dict(got.properties) | {"JMSXDeliveryCount": 1} == {
        "colour": "red", "weight": 7, "own": True, "JMSXDeliveryCount": 1,
    }  # fmt: skip
    assert got.get_short_property("weight") == 7
    assert (got.jms_type, got.jms_correlation_id, got.jms_reply_to) == ("of the producer", "c1", replies)
    assert got.jms_priority == 7 and message.jms_priority == 7
    # What was taken back is the message's own again; other producers of the context are not concerned.
    producer.set_jms_type(None).clear_properties().set_jms_correlation_id_as_bytes(b"\x01\x02")
    other = context.create_text_message("m2")
    other.jms_type = "of the message"
    await producer.send(orders, other)
    got = await consumer.receive(timeout=30)
    assert got.jms_type == "of the message" and "colour" not in got.properties
    assert got.jms_correlation_id_bytes == b"\x01\x02"
    await (await context.create_producer()).send(orders, "m3")
    got = await consumer.receive(timeout=30)
    assert (got.jms_priority, got.jms_type, got.jms_correlation_id, got.jms_reply_to) == (4, None, None, None)


async def test_rule_104_a_received_message_is_read_only(face: Face) -> None:
    """104: properties set on the producer cannot be put over those of a received message: MessageNotWriteableError."""
    context = await opened(face)
    orders = context.create_queue("orders")
    producer = await context.create_producer()
    await producer.send(orders, "m1")
    (message,) = await expect(await context.create_consumer(orders), "m1")
    producer.set_property("colour", "red").set_jms_type("t")
    assert isinstance(await outcome(producer.send(orders, message)), jmsish.MessageNotWriteableError)
    assert message.jms_type is None
    message.clear_properties()
    await producer.send(orders, message)
    await face.sight("orders").holds(1)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("text", "TextMessage"),
        (b"octets", "BytesMessage"),
        ({"a": 1}, "MapMessage"),
        ([1, "b"], "StreamMessage"),
        (3.25, "ObjectMessage"),
        (True, "ObjectMessage"),
        (None, "Message"),
    ],
)
@pytest.mark.parametrize("dressing", [False, True], ids=["plain", "with-a-property"])
async def test_rule_105_a_body_makes_its_message(face: Face, body: Any, kind: str, dressing: bool) -> None:
    """105: text, octets, a map, any other value, or none: the fitting message type."""
    context = await opened(face)
    orders = context.create_queue("orders")
    producer = await context.create_producer()
    if dressing:
        producer.set_property("colour", "red")
    await producer.send(orders, body)
    message = await (await context.create_consumer(orders)).receive(timeout=30)
    assert type(undressed(message)).__name__ == kind and message.body == body
    assert ("colour" in message.properties) is dressing


async def test_rule_105_what_amqp_has_no_type_for(face: Face) -> None:
    """105: a value that cannot travel is MessageFormatError, and the producer goes on."""
    context = await opened(face)
    producer = await context.create_producer()
    error = await outcome(producer.send(context.create_queue("orders"), object()))
    assert isinstance(error, jmsish.MessageFormatError)
    await producer.send(context.create_queue("orders"), "m1")
    await face.sight("orders").holds(1)


async def test_rule_106_names_of_properties(face: Face) -> None:
    """106: no name, an empty one, or one that is no identifier: ValueError; a value JMS has no property of:
    MessageFormatError."""
    producer = undressed(await (await opened(face)).create_producer())
    for name in (None, "", "1st", "NULL"):
        with pytest.raises(ValueError):
            producer.set_property(name, 1)
    with pytest.raises(jmsish.MessageFormatError):
        producer.set_property("list", [1])
    assert producer.property_names == frozenset()


async def test_properties_of_a_producer_read_by_type(face: Face) -> None:
    """A property set on a producer can be read by the conversion table, as on a message."""
    producer = undressed(await (await opened(face)).create_producer())
    producer.set_property("n", jmsish.Byte(5)).set_property("b", True).set_property("d", 1.5).set_property("s", "7")
    assert producer.get_byte_property("n") == producer.get_short_property("n") == producer.get_int_property("n") == 5
    assert producer.get_long_property("n") == 5 and producer.get_string_property("n") == "5"
    assert producer.get_boolean_property("b") and producer.get_double_property("d") == 1.5
    assert producer.get_float_property("s") == 7.0 and producer.get_object_property("s") == "7"
    with pytest.raises(jmsish.MessageFormatError):
        producer.get_int_property("b")
    assert producer.property_exists("n") and not producer.property_exists("other")
    assert producer.property_names == {"n", "b", "d", "s"}


async def test_asynchronous_sends_in_order(face: Face) -> None:
    """set_async: send returns at once, callbacks come in the order of the sends; None makes sends wait again."""
    context = await opened(face)
    orders = context.create_queue("orders")
    log = face.log()
    producer = await context.create_producer()
    producer.set_async(lambda message, error: log.add(f"{message.body} {error}"))
    for number in range(20):
        await producer.send(orders, f"m{number}")
    assert await log.reach(20) == [f"m{number} None" for number in range(20)]
    producer.set_async(None)
    await producer.send(orders, "last")
    await face.sight("orders").holds(21)
    assert len(log.items) == 20


async def test_settings_of_producers_do_not_mix(face: Face) -> None:
    """Two producers of one context send through one link, each with its own settings."""
    context = await opened(face)
    orders = context.create_queue("orders")
    urgent = (await context.create_producer()).set_priority(9).set_disable_message_id(True).set_time_to_live(60)
    plain = await context.create_producer()
    for producer in (plain, urgent, plain):
        await producer.send(orders, "m1")
    browser = await context.create_browser(orders)
    told = [(m.jms_priority, m.jms_message_id is None, m.jms_expiration > 0) async for m in browser]
    assert sorted(told) == [(4, False, False), (4, False, False), (9, True, True)]


# -- consumers ---------------------------------------------------------------------------------------------------------


async def test_a_consumer_of_a_context(face: Face) -> None:
    """receive_body, receive_body_no_wait, iteration, and a listener by both of its names."""
    context = await opened(face)
    orders = context.create_queue("orders")
    producer = await context.create_producer()
    for body in ("m1", b"m2", "m3", "m4"):
        await producer.send(orders, body)
    consumer = await context.create_consumer(orders)
    assert await consumer.receive_body(str, timeout=30) == "m1"
    assert await consumer.receive_body_no_wait(bytes) == b"m2"
    async for message in consumer:
        assert seen(message) == "m3"
        break
    log = face.log()

    async def on_message(message: Any) -> None:
        log.add(seen(message))

    consumer.message_listener = on_message
    plain = undressed(consumer)
    assert plain.listener is not None and plain.message_listener is plain.listener
    assert await log.reach(1) == ["m4"]
    consumer.listener = None
    assert consumer.message_listener is None
    assert await when_free(lambda: consumer.receive_body_no_wait(str), face) is None
    await consumer.close()


async def test_two_threads_in_one_context(face: Face) -> None:
    """2: a context is used by one thread at a time; the second is refused, by name of both."""
    context = await opened(face)
    consumer = await context.create_consumer(context.create_queue("orders"))
    producer = await context.create_producer()
    await producer.send(context.create_queue("others"), "m0")
    waiting = await face.spawn(outcome(consumer.receive(timeout=30)), name="the waiter")
    await face.comes_to_wait(consumer)
    error = await outcome(producer.send(context.create_queue("orders"), "m1"))
    assert isinstance(error, jmsish.ConcurrencyError)
    assert "the waiter" in str(error) and face.here() in str(error)
    await context.close()
    assert await waiting is None


def test_a_context_nobody_closed_is_told_of() -> None:
    """A context that is dropped without close() warns as a connection does."""
    with jmsish.EmbeddedBroker() as broker:
        context = jmsish.create_context(broker.url)
        assert "JMSContext AUTO" in repr(context)
        del context
        with pytest.warns(ResourceWarning, match="dropped without close"):
            gc.collect()


# -- subscriptions -----------------------------------------------------------------------------------------------------


async def test_subscriptions_of_a_context(face: Face) -> None:
    """A context makes consumers of all four kinds of subscription, starts by each, and unsubscribes."""
    makers = {
        "create_consumer": (), "create_durable_consumer": ("mine",), "create_shared_consumer": ("ours",),
        "create_shared_durable_consumer": ("kept",),
    }  # fmt: skip
    for number, (name, arguments) in enumerate(makers.items()):
        context = await opened(face, client_id=f"reader-{number}")
        news = context.create_topic("news")
        consumer = await getattr(context, name)(news, *arguments, selector="kind = 'sports'")
        assert connection_of(context).is_started and consumer.message_selector == "kind = 'sports'"
        producer = await context.create_producer()
        await producer.set_property("kind", "weather").send(news, "rain")
        await producer.set_property("kind", "sports").send(news, "a draw")
        message = await consumer.receive(timeout=30)
        assert message.body == "a draw"
        await consumer.close()
        if "durable" in name:
            await context.unsubscribe(*arguments)
            assert isinstance(await outcome(context.unsubscribe(*arguments)), jmsish.InvalidDestinationError)
        await context.close()


async def test_rule_127_a_context_without_client_id(face: Face) -> None:
    """127: an unshared durable subscription belongs to a client id; a context without one cannot have any."""
    context = await opened(face)
    news = context.create_topic("news")
    assert isinstance(await outcome(context.create_durable_consumer(news, "mine")), jmsish.IllegalStateError)
    assert not connection_of(context).is_started
    shared = await context.create_shared_durable_consumer(news, "kept")
    await shared.close()
    await context.unsubscribe("kept")


async def test_rule_42_a_durable_subscription_keeps_what_was_not_acknowledged(face: Face) -> None:
    """42: after the session ends it redelivers that, and gives what came meanwhile, to its next consumer."""
    context = await opened(face, CLIENT, client_id="reader")
    news = context.create_topic("news")
    consumer = await context.create_durable_consumer(news, "mine")
    producer = await context.create_producer()
    await producer.send(news, "m1")
    await expect(consumer, "m1")
    await context.close()
    await (await (publisher := await opened(face)).create_producer()).send(news, "m2")
    await publisher.close()
    context = await opened(face, CLIENT, client_id="reader")
    consumer = await context.create_durable_consumer(news, "mine")
    await expect(consumer, "m1[R2] m2")
    await context.acknowledge()
    await expect(consumer, "none")
    await consumer.close()
    await context.unsubscribe("mine")


async def test_the_first_use_by_two_at_once_begins_one_session(face: Face) -> None:
    """The second is refused, as it is in a session."""
    context = await from_factory(face)
    ended = meanwhile(face, context, lambda raw: raw.create_temporary_queue())
    await context.create_temporary_queue()
    assert [type(each) for each in ended] == [jmsish.ConcurrencyError]
    assert len(connection_of(context)._sessions) == 1
    await context.create_temporary_queue()


async def test_a_context_that_is_closed_while_its_session_begins_leaves_no_session(face: Face) -> None:
    """The connection stays, because another context uses it."""
    context = await from_factory(face)
    other = noted(face, await context.create_context(AUTO))
    ended = meanwhile(face, context, lambda raw: raw.close())
    with pytest.raises(jmsish.IllegalStateError):
        await context.create_temporary_queue()
    assert ended == [None] and context.is_closed and not other.is_closed
    assert len(connection_of(context)._sessions) == 1
