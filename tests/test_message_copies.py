"""Copies of messages, messages in other processes, and Python objects in messages."""

from __future__ import annotations

import copy
import datetime
import enum
import os
import pickle
from dataclasses import dataclass, field
from typing import Any

import pytest

from jmsish.destination import Queue
from jmsish.engine.codec import AMQP_VALUE, DATA, ReceivedMessage, encode_for_send, encode_message
from jmsish.errors import MessageFormatError, MessageNotWriteableError
from jmsish.message import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage, message_from
from jmsish.message.pickling import unpickled
from jmsish.types import Byte, Symbol

PICKLE = "application/x-python-serialize"


def through(message: Message) -> Any:
    payload = encode_for_send(
        message, message_id="ID:1", timestamp=5, now=5, destination=Queue("q"), delivery_mode=2, priority=4, ttl=0
    )
    return message_from(ReceivedMessage(payload), Queue("q"))


# ---------------------------------------------------------------- copies

MAKERS = [
    lambda: TextMessage("x"),
    lambda: BytesMessage(b"ab"),
    lambda: MapMessage({"a": 1}),
    lambda: StreamMessage([1, b"x"]),
    lambda: ObjectMessage({"a": [1]}),
    Message,
]
COPIES = [copy.copy, copy.deepcopy, lambda message: pickle.loads(pickle.dumps(message))]


@pytest.mark.parametrize("received", [True, False])
@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("make", MAKERS)
def test_a_copy_shares_nothing(make: Any, copied: Any, received: bool) -> None:
    message = make()
    message.properties["p"] = 1
    message.jms_type = "t"
    message = through(message) if received else message
    twin = copied(message)
    assert type(twin) is type(message) and twin.body == message.body and twin.jms_type == "t"
    assert dict(twin.properties) == dict(message.properties)
    twin.clear_properties()
    twin.properties["q"] = 2
    twin.clear_body()
    assert message.properties["p"] == 1 and "q" not in message.properties and message.body == make().body


def test_a_copy_of_a_map_that_is_written_is_another_map() -> None:
    message = MapMessage({"a": 1})
    twin = copy.copy(message)
    twin["b"] = 2
    octets = BytesMessage()
    octets.write_int(1)
    other = copy.copy(octets)
    other.write_int(2)
    assert message.body == {"a": 1} and twin.body == {"a": 1, "b": 2} and len(octets.data) == 4


def test_a_copy_of_a_received_message_is_as_read_only_and_as_far_read() -> None:
    message = through(StreamMessage([1, 2]))
    assert message.read_int() == 1
    twin = copy.copy(message)
    assert twin.read_int() == 2 and message.read_int() == 2
    with pytest.raises(MessageNotWriteableError):
        twin.write_int(3)


def test_a_copy_reads_no_header_that_nobody_asked_for() -> None:
    payload = encode_message(annotations={"x-opt-delivery-time": "soon"}, body=(AMQP_VALUE, "x"))
    message = message_from(ReceivedMessage(payload))
    twins = [copied(message) for copied in COPIES]
    assert [twin.body for twin in twins] == ["x"] * 3
    with pytest.raises(MessageFormatError):
        _ = twins[0].jms_delivery_time


def test_who_acknowledges_does_not_go_to_another_process() -> None:
    class Owner:
        def __reduce__(self) -> Any:
            raise TypeError("a session stays where it is")

        def acknowledge(self, message: Message) -> str:
            return "done"

    message = TextMessage("x")
    message._owner = Owner()
    assert copy.copy(message).acknowledge() == "done"
    assert pickle.loads(pickle.dumps(message)).acknowledge() is None


def test_a_message_of_a_class_of_the_applications_is_copied_with_what_it_added() -> None:
    class Order(TextMessage):
        pass

    order = Order("x")
    order.number = 7  # type: ignore[attr-defined]
    assert copy.copy(order).number == 7  # type: ignore[attr-defined]


# ---------------------------------------------------------------- Python objects


@dataclass
class Line:
    article: str
    count: int = 1


@dataclass
class Order:
    number: int
    lines: list[Line] = field(default_factory=list)
    when: datetime.date | None = None


class Colour(enum.Enum):
    RED = 1


def pickled(value: Any) -> ObjectMessage:
    message = ObjectMessage()
    message.pickle(value)
    found: ObjectMessage = through(message)
    return found


ORDER = Order(7, [Line("tea", 2)], datetime.date(2026, 1, 2))


def test_a_pickle_is_octets_until_it_is_read_with_the_classes_it_may_hold() -> None:
    message = pickled(ORDER)
    assert isinstance(message.body, bytes) and message.content_type == PICKLE and type(message) is ObjectMessage
    assert message.unpickle(allow=[Order, Line, datetime.date]) == ORDER
    assert message.unpickle(allow={Order, Line, datetime.date}) == ORDER, "as often as one likes"
    assert through(message).unpickle(allow=(Order, Line, datetime.date)) == ORDER, "and after it was sent on"
    with pytest.raises(MessageFormatError, match="cannot be had as Order"):
        message.get_body(Order)


PLAIN = [None, True, 5, 2**100, 1.5, "x", b"x", [1, (2, {"a": {3}})], frozenset({1})]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_values_need_no_class(value: Any) -> None:
    assert pickled(value).unpickle(allow=()) == value


@pytest.mark.parametrize("value", [Colour.RED, [Colour.RED]], ids=repr)
def test_members_of_enumerations(value: Any) -> None:
    assert pickled(value).unpickle(allow=[Colour]) == value


def by_getattr(kind: type, name: str) -> bytes:
    """A pickle that calls ``getattr(kind, name)``, as Python 3.11.0 to 3.11.3 writes members of enumerations."""
    octets = b"\x80\x04cbuiltins\ngetattr\n" + pickle.dumps(kind, 0)[:-1] + pickle.dumps(name, 0)[:-1] + b"\x86R."
    assert pickle.loads(octets) == getattr(kind, name)
    return octets


def test_members_of_enumerations_as_some_versions_write_them() -> None:
    assert unpickled(by_getattr(Colour, "RED"), [Colour]) is Colour.RED


@pytest.mark.parametrize(("kind", "name", "allow"), [(Colour, "RED", []), (Order, "__init__", [Order]),
                                                     (Colour, "__doc__", [Colour])])  # fmt: skip
def test_no_attribute_of_anything_else_is_had(kind: type, name: str, allow: list[type]) -> None:
    with pytest.raises(MessageFormatError):
        unpickled(by_getattr(kind, name), allow)


@pytest.mark.parametrize("allow", [[], [Order], [Order, datetime.date], [Line]])
def test_a_class_that_is_not_allowed_is_refused_by_name(allow: list[type]) -> None:
    with pytest.raises(MessageFormatError, match=r"asks for .*(Order|Line), which is not among the classes allowed"):
        pickled(ORDER).unpickle(allow=allow)


class Trap:
    sprung = False

    def __reduce__(self) -> Any:
        return setattr, (Trap, "sprung", True)


class Shell:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


@pytest.mark.parametrize("value", [Trap(), Shell(), [Trap()], Trap])
@pytest.mark.parametrize("allow", [[], [Trap], [Shell]])
def test_a_function_is_never_called(value: Any, allow: list[type]) -> None:
    message = pickled(value)
    if value is Trap and Trap in allow:
        assert message.unpickle(allow=allow) is Trap
        return
    with pytest.raises(MessageFormatError, match="the pickle cannot be read: it asks for"):
        message.unpickle(allow=allow)
    assert not Trap.sprung


def test_nothing_reads_a_pickle_by_itself() -> None:
    message = pickled(Trap())
    for read in (lambda: message.body, lambda: message.object, lambda: message.get_body(bytes), lambda: repr(message)):
        read()
    copy.copy(message)
    through(message)
    assert not Trap.sprung


OTHERS = [
    (lambda: ObjectMessage(b"x"), "the body is no pickle"),
    (lambda: through(ObjectMessage({"a": 1})), "the body is no pickle"),
    (lambda: of_octets(b"\x80\x04", PICKLE), "the pickle cannot be read"),
    (lambda: of_octets(b"", PICKLE), "the pickle cannot be read"),
    (lambda: of_octets(b"\x80\x04I5\n.", "application/octet-stream"), "the body is no pickle"),
    (lambda: of_octets(b"\xac\xed", "application/x-java-serialized-object"), "the body is no pickle"),
]


def of_octets(octets: bytes, content_type: str) -> Any:
    payload = encode_message(
        annotations={"x-opt-jms-msg-type": Byte(1)},
        properties=[None] * 6 + [Symbol(content_type)],
        body=(DATA, octets),
    )
    return message_from(ReceivedMessage(payload))


@pytest.mark.parametrize(("make", "error"), OTHERS)
def test_what_is_no_pickle_is_not_read_as_one(make: Any, error: str) -> None:
    with pytest.raises(MessageFormatError, match=error):
        make().unpickle(allow=[])


@pytest.mark.parametrize("allow", [Order, "Order", ["Order"], 5, [os.system]])
def test_what_is_allowed_is_a_collection_of_classes(allow: Any) -> None:
    with pytest.raises(TypeError, match="allow"):
        pickled(5).unpickle(allow=allow)


def test_what_cannot_be_pickled_leaves_the_message_as_it_was() -> None:
    message = ObjectMessage("before")
    with pytest.raises(MessageFormatError, match="cannot be pickled"):
        message.pickle(lambda: None)
    assert message.body == "before" and through(message).body == "before"


def test_a_received_object_is_read_only_for_pickles_too_and_a_value_replaces_one() -> None:
    message = pickled(5)
    with pytest.raises(MessageNotWriteableError):
        message.pickle(6)
    message.clear_body()
    message.pickle(6)
    assert through(message).unpickle(allow=()) == 6
    message.body = "value"
    assert through(message).body == "value" and through(message).content_type is None
