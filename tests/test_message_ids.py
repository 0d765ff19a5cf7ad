"""Ids: what JMS writes as text, AMQP has in four forms, and none is lost on the way there and back."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.destination import Queue
from jmsish.engine.codec import AMQP_VALUE, ReceivedMessage, encode_for_send, encode_message
from jmsish.errors import MessageFormatError
from jmsish.message import Message, TextMessage, message_from
from jmsish.message.ids import correlation_id_text, id_from_text, message_id_text
from jmsish.types import ULong


def through(message: Message) -> Message:
    """The message as its receiver sees it."""
    payload = encode_for_send(
        message, message_id="ID:1", timestamp=5, now=5, destination=Queue("q"), delivery_mode=2, priority=4, ttl=0
    )
    return message_from(ReceivedMessage(payload), Queue("q"))


def received(fields: dict[int, Any]) -> Message:
    positions = [fields.get(index) for index in range(13)]
    return message_from(ReceivedMessage(encode_message(properties=positions, body=(AMQP_VALUE, "x"))))


IDENTITY = UUID("12345678-1234-5678-1234-567812345678")

IDS = [
    ("ID:a", "ID:a", "ID:a"),
    ("ID:", "ID:", "ID:"),
    ("plain", "ID:AMQP_NO_PREFIX:plain", "plain"),
    ("", "ID:AMQP_NO_PREFIX:", ""),
    ("id:small", "ID:AMQP_NO_PREFIX:id:small", "id:small"),
    (IDENTITY, f"ID:AMQP_UUID:{IDENTITY}", f"ID:AMQP_UUID:{IDENTITY}"),
    (ULong(2**64 - 1), "ID:AMQP_ULONG:18446744073709551615", "ID:AMQP_ULONG:18446744073709551615"),
    (b"\xab\x00", "ID:AMQP_BINARY:AB00", "ID:AMQP_BINARY:AB00"),
    (b"", "ID:AMQP_BINARY:", "ID:AMQP_BINARY:"),
    ("ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x"),
    ("ID:AMQP_STRING:", "ID:AMQP_STRING:ID:AMQP_STRING:", "ID:AMQP_STRING:ID:AMQP_STRING:"),
    ("ID:AMQP_NO_PREFIX:x", "ID:AMQP_STRING:ID:AMQP_NO_PREFIX:x", "ID:AMQP_STRING:ID:AMQP_NO_PREFIX:x"),
    ("ID:AMQP_OTHER:x", "ID:AMQP_OTHER:x", "ID:AMQP_OTHER:x"),
]


@pytest.mark.parametrize(("wire", "message_id", "correlation_id"), IDS)
def test_m19_m20_ids_have_their_text_and_come_back(wire: Any, message_id: str, correlation_id: str) -> None:
    assert received({0: wire}).jms_message_id == message_id
    assert received({5: wire}).jms_correlation_id == correlation_id
    for text in (message_id, correlation_id):
        back = id_from_text(text)
        assert back == wire and type(back) is type(wire)


@given(
    st.text(st.characters(exclude_categories=["Cs"])) | st.uuids() | st.integers(0, 2**64 - 1).map(ULong) | st.binary()
)
def test_m19_m20_no_id_is_lost(wire: Any) -> None:
    for text in (message_id_text(wire), correlation_id_text(wire)):
        assert id_from_text(text) == wire and type(id_from_text(text)) is type(wire)


@pytest.mark.parametrize(
    "text",
    [
        "ID:AMQP_UUID:",
        "ID:AMQP_UUID:12345678123456781234567812345678",
        "ID:AMQP_UUID:{12345678-1234-5678-1234-567812345678}",
        "ID:AMQP_ULONG:",
        "ID:AMQP_ULONG:-1",
        "ID:AMQP_ULONG:18446744073709551616",
        "ID:AMQP_ULONG:1_0",
        "ID:AMQP_BINARY:A",
        "ID:AMQP_BINARY:XY",
    ],
)
def test_m19_an_encoded_id_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(MessageFormatError, match="does not hold the"):
        TextMessage("x").jms_correlation_id = text


@pytest.mark.parametrize("wire", [5, True, 1.5, [1]])
def test_an_id_of_another_type_is_refused(wire: Any) -> None:
    with pytest.raises(MessageFormatError, match="AMQP knows string, uuid, ulong and binary"):
        _ = received({5: [wire] if wire is not True else [wire]}).jms_correlation_id


@pytest.mark.parametrize(
    ("text", "wire"), [("mine", "mine"), ("ID:a", "ID:a"), ("ID:AMQP_UUID:" + str(IDENTITY), IDENTITY)]
)
def test_m20_correlation_ids_travel(text: str, wire: Any) -> None:
    message = TextMessage("x")
    message.jms_correlation_id = text
    again = through(message)
    assert again.jms_correlation_id == text and again._source is not None and again._source.property(5) == wire


def test_m20_binary_correlation_ids() -> None:
    message = TextMessage("x")
    message.jms_correlation_id_bytes = bytearray(b"\x01\x02")  # type: ignore[assignment]
    again = through(message)
    assert again.jms_correlation_id_bytes == b"\x01\x02" and again.jms_correlation_id == "ID:AMQP_BINARY:0102"
    message.jms_correlation_id = "text"
    with pytest.raises(MessageFormatError, match="not binary"):
        _ = message.jms_correlation_id_bytes
    message.jms_correlation_id_bytes = None
    assert message.jms_correlation_id is None and message.jms_correlation_id_bytes is None
