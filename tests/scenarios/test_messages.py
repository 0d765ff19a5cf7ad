"""Messages on their way from a producer to a consumer: types, bodies, headers, properties."""

from __future__ import annotations

import copy
import datetime
from typing import Any
from uuid import UUID

import pytest

import jmsish
from jmsish import DeliveryMode, Queue
from jmsish.engine.codec import AMQP_SEQUENCE, AMQP_VALUE, DATA
from jmsish.testing import VirtualClock
from jmsish.types import Byte, Char, Double, Float, Int, Long, Short, Symbol, Timestamp, UInt

from .face import Face
from .letters import bare, got, kind, leaves, sent, types
from .steps import stage

# --- types and bodies

BODIES: list[tuple[str, Any, int, Any]] = [
    ("message", None, 0, (0, None)),
    ("object", {"a": [1, {"b": None}]}, 1, (AMQP_VALUE, {"a": [1, {"b": None}]})),
    ("map", {"a": 1, "b": b"x"}, 2, (AMQP_VALUE, {"a": 1, "b": b"x"})),
    ("bytes", b"\x00\xff", 3, (DATA, b"\x00\xff")),
    ("stream", [1, "b", None], 4, (AMQP_SEQUENCE, [1, "b", None])),
    ("text", "grüße", 5, (AMQP_VALUE, "grüße")),
]
NAMES = {"message": "Message"}


@pytest.mark.parametrize(("name", "body", "number", "on_the_wire"), BODIES)
async def test_m01_m09_rule_177_each_type_arrives_as_itself(
    face: Face, name: str, body: Any, number: int, on_the_wire: Any
) -> None:
    """Also when it is sent on; the annotation says its type, and the section is the one that fits."""
    play = await stage(face, "auto")
    create = getattr(play.session, f"create_{name}_message" if name != "message" else "create_message")
    message = create() if name == "message" else create(body)
    (received,) = await sent(play, message)
    (again,) = await sent(play, received)
    for each in (received, again):
        assert kind(each) == NAMES.get(name, f"{name.capitalize()}Message") and each.body == body
    octets = await leaves(face, play, again)
    annotation = octets.message_annotations()["x-opt-jms-msg-type"]
    assert (type(annotation), annotation, octets.body()) == (Byte, number, on_the_wire)


@pytest.mark.parametrize("name", ["message", "object", "map", "bytes", "stream", "text"])
async def test_rule_177_an_empty_body_keeps_its_type(face: Face, name: str) -> None:
    """Nothing in it is no reason to be another type."""
    play = await stage(face, "auto")
    message = getattr(play.session, f"create_{name}_message" if name != "message" else "create_message")()
    (received,) = await sent(play, message)
    assert kind(received) == NAMES.get(name, f"{name.capitalize()}Message") and not received.body


WIDTHS: list[Any] = [
    True, Byte(-128), Short(-32768), 5, Int(-5), Long(5), 2**40, Float(1.1), 1.1, Double(0.1), "x", None, -(2**31),
]  # fmt: skip
ARRIVES: list[type] = [
    bool, Byte, Short, int, int, Long, Long, Float, float, float, str, type(None), int,
]  # fmt: skip


async def test_m28_rule_155_widths_survive(face: Face) -> None:
    """Of properties, and of values in maps, streams and objects: `Byte` to `Char`; a plain int takes what it needs."""
    play = await stage(face, "auto")
    named = {f"p{index}": value for index, value in enumerate(WIDTHS)}
    text = play.session.create_text_message("x")
    text.properties.update(named)
    extra = [Char("ß"), b"x"]
    bodies = [
        play.session.create_map_message({**named, "c": extra[0], "b": extra[1]}),
        play.session.create_stream_message(WIDTHS + extra),
        play.session.create_object_message(WIDTHS + extra),
    ]
    first, mapping, stream, value = await sent(play, text, *bodies)
    assert [first.properties[name] for name in named] == WIDTHS
    assert types(first.properties[name] for name in named) == ARRIVES
    for body in (list(mapping.body.values()), stream.body, value.body):
        assert body == WIDTHS + extra and types(body) == [*ARRIVES, Char, bytes]


async def test_rule_161_rule_169_conversions_of_what_came(face: Face) -> None:
    """What was written with one type is read as others, by the table, at the far end too."""
    play = await stage(face, "auto")
    message = play.session.create_map_message()
    message.set_byte("b", 7)
    message.set_string("s", "7")
    message.set_char("c", "7")
    message.set_short_property("b", 7)
    message.set_string_property("s", "7.5")
    (received,) = await sent(play, message)
    assert (received.get_long("b"), received.get_string("b"), received.get_int("s")) == (7, "7", 7)
    assert (received.get_string("c"), received.get_double("s"), received.get_boolean("s")) == ("7", 7.0, False)
    for read in (received.get_boolean, received.get_double, received.get_char):
        with pytest.raises(jmsish.MessageFormatError, match="item b is a byte and cannot be read as"):
            read("b")
    assert (received.get_int_property("b"), received.get_double_property("s")) == (7, 7.5)
    with pytest.raises(jmsish.MessageFormatError, match="property b is a short and cannot be read as byte"):
        received.get_byte_property("b")
    with pytest.raises(ValueError, match="is no int"):
        received.get_int_property("s")
    assert received.get_boolean_property("absent") is False and received.get_string_property("absent") is None


REFUSED: list[tuple[Any, str]] = [
    ([1], "list"), ({"a": 1}, "dict"), ((1,), "tuple"), ({1}, "set"), (object(), "object"),
    (datetime.date(2026, 1, 1), "date"), (UUID(int=1), "UUID"), (UInt(1), "UInt"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "name"), REFUSED, ids=[name for _, name in REFUSED])
async def test_rule_155_rule_175_arrays_and_nested_values_are_refused_by_name(
    face: Face, value: Any, name: str
) -> None:
    """AMQP would carry some of them; a JMS program could not read them. Nothing is sent, and the producer goes on."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    with pytest.raises(jmsish.MessageFormatError, match=f"^item orders cannot be .*, of type {name}: "):
        await producer.send({"ok": 1, "orders": value})
    with pytest.raises(jmsish.MessageFormatError, match=f"^property orders cannot be .*, of type {name}: "):
        await producer.send("x", properties={"orders": value})
    with pytest.raises(jmsish.MessageFormatError, match=f"^value 1 cannot be .*, of type {name}: "):
        await producer.send([0, value])
    (received,) = await sent(play, "next")
    assert received.body == "next"


async def test_an_object_carries_what_amqp_has_and_says_where_it_cannot(face: Face) -> None:
    """Lists, maps and all scalars of AMQP; what it has no type for is refused with its place."""
    play = await stage(face, "auto")
    value = {"ids": [UUID(int=1), UInt(5)], "when": Timestamp(5), "what": Symbol("s"), "deep": [[[{"a": b"x"}]]]}
    (received,) = await sent(play, play.session.create_object_message(value))
    assert received.body == value and types(received.body["ids"]) == [UUID, UInt]
    with pytest.raises(jmsish.MessageFormatError, match=r"^at \['lines'\]\[1\]\['tags'\]: a value of type set"):
        play.session.create_object_message({"lines": [{}, {"tags": {1}}]})


async def test_rule_165_rule_157_what_came_is_read_only(face: Face) -> None:
    """Until its body, or its properties, are cleared; the one leaves the other. What was changed is what is sent on."""
    play = await stage(face, "auto")
    message = play.session.create_text_message("x")
    message.properties["p"] = 1
    (received,) = await sent(play, message)
    with pytest.raises(jmsish.MessageNotWriteableError, match=r"clear_body\(\)"):
        received.text = "y"
    with pytest.raises(jmsish.MessageNotWriteableError, match=r"clear_properties\(\)"):
        received.properties["q"] = 2
    received.clear_body()
    received.text = "y"
    (again,) = await sent(play, received)
    assert again.body == "y" and again.properties["p"] == 1
    again.clear_properties()
    again.properties["q"] = 2
    (third,) = await sent(play, again)
    assert third.body == "y" and "p" not in third.properties and third.properties["q"] == 2


async def test_rule_119_rule_174_octets_and_streams_are_read_from_the_start(face: Face) -> None:
    """What was written is read in order, in parts too; past the end is an error of its own."""
    play = await stage(face, "auto")
    octets = play.session.create_bytes_message()
    octets.write_int(7)
    octets.write_utf("grüße")
    stream = play.session.create_stream_message()
    stream.write_bytes(b"abc")
    stream.write_double(1.5)
    first, second = await sent(play, octets, stream)
    assert (first.read_int(), first.read_utf()) == (7, "grüße")
    with pytest.raises(jmsish.MessageEOFError):
        first.read_byte()
    assert first.get_body(bytes) == octets.data and first.read_int() == 7
    buffer = bytearray(2)
    assert (second.read_bytes(buffer), second.read_bytes(buffer)) == (2, 1)
    assert second.read_double() == 1.5
    with pytest.raises(jmsish.MessageEOFError):
        second.read_object()
    with pytest.raises(jmsish.MessageFormatError):
        second.get_body(list)


# --- headers


async def test_rule_84_rule_148_headers_of_the_application_and_of_the_send(face: Face) -> None:
    """Three are the application's; all others are what the send used, on both sides."""
    play = await stage(face, "auto")
    message = play.session.create_text_message("x")
    message.jms_type, message.jms_correlation_id = "order", "c-1"
    message.jms_reply_to = play.session.create_topic("answers")
    message.jms_priority, message.jms_message_id, message.jms_timestamp = 1, "ID:mine", 5
    message.jms_expiration, message.jms_delivery_mode = 5, DeliveryMode.NON_PERSISTENT
    (received,) = await sent(play, message, priority=8, time_to_live=100)
    for name in ("destination", "delivery_mode", "priority", "message_id", "timestamp", "expiration", "delivery_time"):
        assert getattr(received, f"jms_{name}") == getattr(message, f"jms_{name}")
    assert (received.jms_type, received.jms_correlation_id, str(received.jms_reply_to)) == (
        "order", "c-1", "topic://answers",
    )  # fmt: skip
    assert (received.jms_priority, received.jms_delivery_mode) == (8, DeliveryMode.PERSISTENT)
    assert received.jms_expiration == received.jms_timestamp + 100_000
    assert received.jms_delivery_time == received.jms_timestamp and not received.jms_redelivered


async def test_rule_90_m17_a_delay_shows_on_both_sides(face: Face) -> None:
    """The delivery time is that of the send and the delay, and not before it the message comes."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    message = play.session.create_text_message("x")
    producer = await play.session.create_producer(play.destination)
    await producer.send(message, delivery_delay=10)
    consumer = await play.consumer()
    assert await consumer.receive_no_wait() is None
    clock.advance(11)
    received: Any = await consumer.receive(timeout=30)
    assert received.jms_delivery_time == message.jms_delivery_time == received.jms_timestamp + 10_000


async def test_rule_91_what_a_send_says_by_itself(face: Face) -> None:
    """Persistent, of priority 4, without end, due at once."""
    play = await stage(face, "auto")
    message = play.session.create_text_message("x")
    received, plain = await sent(play, message, "y")
    for each in (message, received, plain):
        assert (each.jms_delivery_mode, each.jms_priority, each.jms_expiration) == (DeliveryMode.PERSISTENT, 4, 0)
        assert each.jms_delivery_time == each.jms_timestamp > 0


async def test_rule_86_m21_ids_are_unique(face: Face) -> None:
    """They begin `ID:`, and no two of any producer are the same."""
    play = await stage(face, "auto")
    messages = await sent(play, "a", "b") + await sent(play, "c") + await sent(await play.beside(), "d")
    ids = [message.jms_message_id for message in messages]
    assert len(set(ids)) == 4 and all(each.startswith("ID:") and not each.startswith("ID:AMQP_") for each in ids)


async def test_rule_87_rule_88_ids_and_timestamps_can_be_done_without(face: Face) -> None:
    """A producer that was told to leaves them out, for itself only."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    producer.disable_message_id = producer.disable_message_timestamp = True
    message = play.session.create_text_message("x")
    await producer.send(message)
    await producer.send("y")
    other = await play.session.create_producer(play.destination)
    await other.send("z")
    first, second, third = await got(play, 3)
    for each in (message, first, second):
        assert each.jms_message_id is None and each.jms_timestamp == 0
    assert third.jms_message_id is not None and third.jms_timestamp > 0


@pytest.mark.parametrize("temporary", [False, True])
@pytest.mark.parametrize("of", ["queue", "topic"])
async def test_m23_rule_147_rule_150_an_answer_finds_its_way(face: Face, of: str, temporary: bool) -> None:
    """A reply-to keeps its kind, and can be sent to."""
    play = await stage(face, "auto")
    create = getattr(play.session, f"create_{'temporary_' if temporary else ''}{of}")
    place = await create() if temporary else create("answers")
    answers = await play.session.create_consumer(place)
    request = play.session.create_text_message("question")
    request.jms_reply_to = bare(place)
    (received,) = await sent(play, request)
    assert bare(received.jms_reply_to) == bare(place)
    assert received.jms_reply_to.is_topic is (of == "topic") and received.jms_reply_to.is_temporary is temporary
    answer = play.session.create_text_message("answer")
    answer.jms_correlation_id = received.jms_message_id
    producer = await play.session.create_producer(None)
    await producer.send(answer, destination=received.jms_reply_to)
    found: Any = await answers.receive(timeout=30)
    assert found.body == "answer" and found.jms_correlation_id == request.jms_message_id


async def test_m14_rule_163_the_count_is_a_property_too(face: Face) -> None:
    """JMSXDeliveryCount is 1 the first time, and one more at each delivery."""
    play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    for count in (1, 2, 3):
        message: Any = await consumer.receive(timeout=30)
        assert message.get_int_property("JMSXDeliveryCount") == count == message.properties["JMSXDeliveryCount"]
        assert message.jms_redelivered is (count > 1)
        await play.session.rollback()


async def test_m13_m22_rule_163_groups_and_users(face: Face) -> None:
    """Group and sequence arrive, the sequence with all its 32 bits; a user id that an application made up does not."""
    play = await stage(face, "auto")
    message = play.session.create_text_message("x")
    message.properties.update(JMSXGroupID="g", JMSXGroupSeq=-1, JMSXUserID="admin")
    (received,) = await sent(play, message)
    assert (received.properties["JMSXGroupID"], received.properties["JMSXGroupSeq"]) == ("g", -1)
    assert "JMSXUserID" not in received.properties and "JMSXUserID" not in message.properties
    octets = await leaves(face, play, received)
    assert (octets.property(1), octets.property(10), octets.property(11)) == (None, "g", 2**32 - 1)
    assert octets.application_properties() == {}


async def test_m22_the_user_id_is_what_the_connection_says(face: Face) -> None:
    """Where it is asked for, it is the name that logged in, whatever the application writes."""
    play = await stage(face, "auto", username="ann", password="-", populate_user_id=True)
    message = play.session.create_text_message("x")
    message.properties["JMSXUserID"] = "admin"
    received, plain = await sent(play, message, "y")
    for each in (message, received, plain):
        assert each.properties["JMSXUserID"] == "ann"


async def test_m25_prefixes_are_on_the_wire_alone(face: Face) -> None:
    """A broker that wants them gets them, also in answers; programs never see them. Temporary names have none."""
    play = await stage(face, "auto", queue_prefix="q.", topic_prefix="t.")
    temporary = await play.session.create_temporary_queue()
    request, other = play.session.create_text_message("x"), play.session.create_text_message("y")
    request.jms_reply_to, other.jms_reply_to = play.session.create_topic("answers"), bare(temporary)
    first, second = await sent(play, request, other)
    assert face.broker.queue("q.orders").enqueued == 2
    for message in (request, first, second):
        assert message.jms_destination == Queue("orders")
    assert str(first.jms_reply_to) == "topic://answers" and bare(second.jms_reply_to) == bare(temporary)
    octets = await leaves(face, play, first, queue="q.out")
    assert (octets.property(2), octets.property(4)) == ("q.out", "t.answers")


async def test_rule_31_messages_outlive_what_they_came_by(face: Face) -> None:
    """After the close of everything, all parts of a message can be read, those that were not looked at before too."""
    play = await stage(face, "auto")
    message = play.session.create_map_message({"a": 1})
    message.properties["p"] = 2
    received, text = await sent(play, message, "text")
    await play.session.close()
    await play.connection.close()
    assert received.body == {"a": 1} and received.properties["p"] == 2 and text.body == "text"
    assert received.jms_message_id == message.jms_message_id and received.jms_timestamp == message.jms_timestamp
    assert received.jms_destination == Queue("orders") and received.delivery_count == 1


@pytest.mark.parametrize("mode", ["client", "individual"])
async def test_what_waits_for_an_acknowledgement_keeps_no_body(face: Face, mode: str) -> None:
    """The session remembers the delivery; the message is the application's, to be forgotten when it forgets it."""
    play = await stage(face, mode, "m1 m2")
    consumer = await play.consumer()
    messages: list[Any] = [await consumer.receive(timeout=30) for _ in range(2)]
    kept = bare(play.session)._core.ledger.delivered.values()
    assert [delivery.context for delivery in kept] == [None, None]
    for message in messages:
        await message.acknowledge()
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["client", "individual", "transacted"])
async def test_rule_59_a_redelivery_is_the_original(face: Face, mode: str) -> None:
    """Whatever a consumer did to its copy; and whatever the sender did to the message after it was sent."""
    play = await stage(face, mode)
    producer = await play.session.create_producer(play.destination)
    message = play.session.create_map_message({"a": 1})
    message.properties["p"] = 1
    message.jms_type = "kind"
    await producer.send(message)
    message.set_int("a", 2)
    if mode == "transacted":
        await play.session.commit()
    consumer = await play.consumer()
    for count in (1, 2, 3):
        received: Any = await consumer.receive(timeout=30)
        assert (received.body, received.properties["p"], received.jms_type) == ({"a": 1}, 1, "kind")
        assert received.delivery_count == count
        received.body["a"] = 5
        received.clear_body()
        received.set_int("b", 1)
        received.clear_properties()
        received.properties["p"] = 9
        received.jms_type = "changed"
        await play.give_back()


# --- Python objects, and other implementations


async def test_a_pickle_comes_out_only_for_classes_that_are_named(face: Face) -> None:
    """It is octets to everybody who does not ask; who asks says what may be in it."""
    play = await stage(face, "auto")
    value = {"when": datetime.date(2026, 1, 2), "what": [1, {2}]}
    message = play.session.create_object_message()
    message.pickle(value)
    (received,) = await sent(play, message)
    assert isinstance(received.body, bytes) and received.content_type == "application/x-python-serialize"
    assert received.unpickle(allow=[datetime.date]) == value
    with pytest.raises(jmsish.MessageFormatError, match=r"asks for datetime\.date, which is not among"):
        received.unpickle(allow=[])


class Elsewhere:
    """A message as another library might have it."""

    jms_message_id = None
    jms_priority = 0

    def __init__(self, body: Any) -> None:
        self.body = body
        self.properties = {"p": Byte(1)}
        self.jms_correlation_id = "c"
        self.jms_reply_to = Queue("r")
        self.jms_type = "t"


@pytest.mark.parametrize("body", ["x", b"x", {"a": 1}, [1], 5, None], ids=repr)
async def test_rule_179_messages_of_other_implementations_are_sent(face: Face, body: Any) -> None:
    """As the message of ours that says the same; and they hear the headers they were sent with."""
    play = await stage(face, "auto")
    message = Elsewhere(body)
    (received,) = await sent(play, message, priority=7)
    assert received.body == body and received.properties["p"] == 1
    assert (received.jms_correlation_id, received.jms_reply_to, received.jms_type) == ("c", Queue("r"), "t")
    assert (message.jms_message_id, message.jms_priority) == (received.jms_message_id, 7)


async def test_rule_179_both_faces_have_the_same_messages(face: Face) -> None:
    """So a message of the one is sent by a session of the other; and a copy is a message like any."""
    for name in ("Message", "TextMessage", "BytesMessage", "MapMessage", "StreamMessage", "ObjectMessage"):
        assert getattr(jmsish, name) is getattr(jmsish.aio, name)
    with jmsish.connect(face.broker.url) as connection:
        message = connection.create_session().create_map_message({"a": 1})
    play = await stage(face, "auto")
    twin = copy.copy(message)
    twin["a"] = 2
    first, second = await sent(play, message, twin)
    assert (first.body, second.body) == ({"a": 1}, {"a": 2}) and first.jms_message_id != second.jms_message_id
