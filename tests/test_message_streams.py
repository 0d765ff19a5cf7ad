"""Bodies that are read from beginning to end: the two modes, the position, and the octets that Java writes."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.destination import Queue
from jmsish.engine.codec import ReceivedMessage, encode_for_send
from jmsish.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
    NumberFormatError,
)
from jmsish.message import BytesMessage, Message, StreamMessage, message_from
from jmsish.types import Byte, Char, Float, Int, Long, Short


def through(message: Message) -> Any:
    """The message as its receiver sees it."""
    payload = encode_for_send(
        message, message_id="ID:1", timestamp=5, now=5, destination=Queue("q"), delivery_mode=2, priority=4, ttl=0
    )
    return message_from(ReceivedMessage(payload), Queue("q"))


# ---------------------------------------------------------------- streams


def test_a_stream_is_read_in_order_to_its_end() -> None:
    sent = StreamMessage(["a"])
    sent.write_int(5)
    sent.write_object(b"ab")
    message = through(sent)
    assert (message.read_string(), message.read_int(), message.read_object()) == ("a", 5, b"ab")
    with pytest.raises(MessageEOFError, match="all 3 values have been read"):
        message.read_object()
    message.reset()
    assert message.read_object() == "a" and message.body == ["a", 5, b"ab"]


def test_a_read_that_fails_leaves_the_position() -> None:
    message = StreamMessage(["x", None, 1.5])
    message.reset()
    with pytest.raises(NumberFormatError):
        message.read_int()
    assert message.read_string() == "x"
    with pytest.raises(TypeError):
        message.read_char()
    assert message.read_object() is None
    with pytest.raises(MessageFormatError):
        message.read_int()
    assert message.read_double() == 1.5


@pytest.mark.parametrize("make", [lambda: StreamMessage([1]), lambda: BytesMessage(b"\x01")])
def test_the_two_modes(make: Any) -> None:
    message = make()
    with pytest.raises(MessageNotReadableError, match=r"reset\(\)"):
        message.read_byte()
    message.write_byte(2)
    message.reset()
    with pytest.raises(MessageNotWriteableError, match=r"clear_body\(\)"):
        message.write_byte(3)
    message = through(message)
    with pytest.raises(MessageNotWriteableError):
        message.write_byte(3)
    message.clear_body()
    message.write_byte(4)
    with pytest.raises(MessageNotReadableError):
        message.read_byte()
    message.reset()
    assert message.read_byte() == 4


# ---------------------------------------------------------------- octets

FORMS = [
    ("boolean", True, "01"),
    ("byte", -2, "fe"),
    ("short", -2, "fffe"),
    ("char", "é", "00e9"),
    ("int", -2, "fffffffe"),
    ("long", -2, "fffffffffffffffe"),
    ("float", 1.5, "3fc00000"),
    ("double", 1.5, "3ff8000000000000"),
    ("utf", "aé", "000361c3a9"),
    ("utf", "\0", "0002c080"),
    ("utf", "\U0001f600", "0006eda0bdedb880"),
    ("utf", "", "0000"),
    ("bytes", b"ab", "6162"),
]


@pytest.mark.parametrize(("form", "value", "octets"), FORMS)
def test_octets_are_written_and_read_as_java_does(form: str, value: Any, octets: str) -> None:
    message = BytesMessage(b"\xff")
    getattr(message, f"write_{form}")(value)
    assert message.data.hex() == "ff" + octets
    message = through(message)
    assert message.body_length == 1 + len(octets) // 2
    assert message.read_unsigned_byte() == 255 and getattr(message, f"read_{form}")() == value
    assert message.read_bytes() == b""


def test_unsigned_reads() -> None:
    message = BytesMessage(b"\xff\xff\xfe")
    message.reset()
    assert (message.read_unsigned_byte(), message.read_unsigned_short()) == (255, 65534)


OBJECTS = [
    (True, "01"),
    (Byte(1), "01"),
    (Short(1), "0001"),
    (1, "00000001"),
    (Int(1), "00000001"),
    (Long(1), "0000000000000001"),
    (2**31, "0000000080000000"),
    (1.5, "3ff8000000000000"),
    (Float(1.5), "3fc00000"),
    (Char("a"), "0061"),
    ("a", "000161"),
    (b"a", "61"),
    (bytearray(b"a"), "61"),
]


@pytest.mark.parametrize(("value", "octets"), OBJECTS, ids=repr)
def test_write_object_takes_the_form_of_the_type(value: Any, octets: str) -> None:
    message = BytesMessage()
    message.write_object(value)
    assert message.data.hex() == octets


@pytest.mark.parametrize(
    ("value", "error"), [(None, TypeError), ([1], MessageFormatError), (object(), MessageFormatError)]
)
def test_write_object_refuses_others(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        BytesMessage().write_object(value)


def test_reads_past_the_end_leave_the_position() -> None:
    message = BytesMessage(b"\x00\x05ab")
    message.reset()
    for read in (message.read_long, message.read_utf, message.read_double):
        with pytest.raises(MessageEOFError):
            read()
    assert message.read_bytes(3) == b"\x00\x05a" and message.read_bytes(5) == b"b" and message.read_bytes(5) == b""
    with pytest.raises(ValueError, match="negative"):
        message.read_bytes(-1)


def test_text_that_is_not_in_modified_utf8() -> None:
    message = BytesMessage(b"\x00\x02\xc3\x28")
    message.reset()
    with pytest.raises(MessageFormatError, match="modified UTF-8"):
        message.read_utf()
    assert message.read_short() == 2


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda message: message.write_char("\U0001f600"), ValueError),
        (lambda message: message.write_utf("x" * 65536), ValueError),
        (lambda message: message.write_utf(5), TypeError),
        (lambda message: message.write_bytes("x"), TypeError),
        (lambda message: message.write_boolean(1), TypeError),
        (lambda message: message.body_length, MessageNotReadableError),
    ],
)
def test_wrong_writes(call: Any, error: type[Exception]) -> None:
    message = BytesMessage(b"ab")
    with pytest.raises(error):
        call(message)
    assert message.data == b"ab"


def test_get_body_begins_at_the_beginning_and_leaves_it_there() -> None:
    message = through(BytesMessage(b"ab"))
    message.read_byte()
    assert message.get_body(bytes) == b"ab" and message.read_bytes() == b"ab"
    new = BytesMessage(b"ab")
    assert new.data == b"ab" and new.body == b"ab"
    new.write_byte(1)
    assert new.get_body(bytes) == b"ab\x01"
    with pytest.raises(MessageNotWriteableError):
        new.write_byte(1)


def test_octets_given_in_are_copied() -> None:
    buffer = bytearray(b"ab")
    message = BytesMessage(buffer)
    buffer[0] = 0
    assert message.data == b"ab"
