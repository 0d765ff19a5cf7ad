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


def test_rule_167_a_stream_is_read_in_order_to_its_end() -> None:
    sent = StreamMessage(["a"])
    sent.write_int(5)
    sent.write_object(b"ab")
    message = through(sent)
    assert (message.read_string(), message.read_int(), message.read_object()) == ("a", 5, b"ab")
    with pytest.raises(MessageEOFError, match="all 3 values have been read"):
        message.read_object()
    message.reset()
    assert message.read_object() == "a" and message.body == ["a", 5, b"ab"]


def test_rule_168_rule_170_a_read_that_fails_leaves_the_position() -> None:
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
def test_rule_166_the_two_modes(make: Any) -> None:
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


PARTS = [
    (b"abcde", 2, [2, 2, 1], b"abcde"),
    (b"abcd", 2, [2, 2, -1], b"abcd"),
    (b"ab", 5, [2], b"ab"),
    (b"ab", 2, [2, -1], b"ab"),
    (b"", 5, [0], b""),
    (None, 5, [-1], b""),
]


@pytest.mark.parametrize(("octets", "size", "counts", "whole"), PARTS)
def test_rule_174_octets_in_a_stream_are_read_in_parts(
    octets: bytes | None, size: int, counts: list[int], whole: bytes
) -> None:
    message = through(StreamMessage([octets, "next"]))
    buffer, got = bytearray(size), b""
    for count in counts:
        assert message.read_bytes(buffer) == count
        got += buffer[: max(count, 0)]
    assert got == whole and message.read_string() == "next"
    message.reset()
    for count in counts:
        piece = message.read_bytes(size)
        assert piece is None if count < 0 else len(piece) == count
    assert message.read_string() == "next"


def test_rule_174_until_the_octets_are_read_nothing_else_can_be() -> None:
    message = through(StreamMessage([b"abcd", 5]))
    assert message.read_bytes(2) == b"ab"
    for read in (message.read_int, message.read_object, message.read_string):
        with pytest.raises(MessageFormatError, match="2 of the 4 octets of value 0 have been read"):
            read()
    assert message.read_bytes() == b"cd" and message.read_int() == 5
    with pytest.raises(MessageEOFError):
        message.read_bytes(2)
    message.reset()
    assert message.read_bytes(1) == b"a"
    message.reset()
    assert message.read_bytes() == b"abcd"
    message.clear_body()
    message.write_int(1)
    message.reset()
    assert message.read_int() == 1


def test_rule_168_rule_174_what_is_no_octets_is_not_read_in_parts() -> None:
    message = through(StreamMessage(["text"]))
    for into in (2, bytearray(2), None):
        with pytest.raises(MessageFormatError, match="cannot be read as bytes"):
            message.read_bytes(into)
    assert message.read_string() == "text"


def test_rule_173_octets_fill_a_buffer() -> None:
    message = through(BytesMessage(b"abcde"))
    buffer = bytearray(b"....")
    assert message.read_bytes(buffer) == 4 and buffer == b"abcd"
    assert message.read_bytes(memoryview(buffer)[1:]) == 1 and buffer == b"aecd"
    assert message.read_bytes(buffer) == -1 and buffer == b"aecd" and message.read_bytes(5) == b""
    message.reset()
    assert message.read_bytes(bytearray(5)) == 5 and message.read_bytes(bytearray(5)) == -1


@pytest.mark.parametrize("make", [lambda: StreamMessage([b"ab"]), lambda: BytesMessage(b"ab")])
@pytest.mark.parametrize(("into", "error"), [(-1, ValueError), (True, TypeError), ("x", TypeError), (b"ab", TypeError)])
def test_wrong_ways_to_read_octets(make: Any, into: Any, error: type[Exception]) -> None:
    message = through(make())
    with pytest.raises(error):
        message.read_bytes(into)
    assert message.read_bytes() == b"ab"


@pytest.mark.parametrize("make", [lambda: StreamMessage(), lambda: BytesMessage()])
def test_java_has_characters_of_16_bits(make: Any) -> None:
    message = make()
    message.write_char("\uffff")
    with pytest.raises(ValueError, match="16 bits of a Java character"):
        message.write_char("\U0001f600")
    message.reset()
    assert message.read_char() == "\uffff"


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


def test_rule_176_none_has_no_form_in_octets() -> None:
    message = BytesMessage()
    for write in (message.write_object, message.write_bytes, message.write_utf):
        with pytest.raises(TypeError):
            write(None)  # type: ignore[arg-type]
    assert message.data == b""


@pytest.mark.parametrize(
    ("value", "error"), [(None, TypeError), ([1], MessageFormatError), (object(), MessageFormatError)]
)
def test_rule_176_write_object_refuses_none_and_others(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        BytesMessage().write_object(value)


def test_rule_167_rule_168_reads_past_the_end_leave_the_position() -> None:
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


def test_rule_119_get_body_begins_at_the_beginning_and_leaves_it_there() -> None:
    message = through(BytesMessage(b"ab"))
    message.read_byte()
    assert message.get_body(bytes) == b"ab" and message.read_bytes() == b"ab"
    new = BytesMessage(b"ab")
    assert new.data == b"ab" and new.body == b"ab"
    new.write_byte(1)
    assert new.get_body(bytes) == b"ab\x01"
    with pytest.raises(MessageNotWriteableError):
        new.write_byte(1)


def test_rule_172_octets_given_in_are_copied() -> None:
    buffer = bytearray(b"ab")
    message = BytesMessage(buffer)
    buffer[0] = 0
    assert message.data == b"ab"
