"""Messages for the tests of selectors: one with given headers and properties, made here and as its receiver has it."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.destination import Queue
from jmsish.engine.codec import Header, ReceivedMessage, encode_for_send, encode_message
from jmsish.engine.selecting import predicate
from jmsish.errors import InvalidSelectorError
from jmsish.message import Message, TextMessage, message_from
from jmsish.selector import Selector
from jmsish.types import Long

NOW = 1_700_000_000_000


def made(properties: dict[str, Any] | None = None, **headers: Any) -> Message:
    """A message of this program; ``headers`` are attributes of it, as ``jms_type``."""
    message = TextMessage("body")
    message.properties.update(properties or {})
    for name, value in headers.items():
        setattr(message, name, value)
    return message


def octets_of(message: Message, **terms: Any) -> bytes:
    """The message as it is sent."""
    given: dict[str, Any] = {
        "message_id": "ID:1", "timestamp": NOW, "now": NOW, "destination": Queue("q"), "delivery_mode": 2,
        "priority": 4, "ttl": 0,
    }  # fmt: skip
    return encode_for_send(message, **{**given, **terms})


def foreign_octets(
    properties: dict[str, Any] | None = None, fields: dict[int, Any] | None = None, header: Header | None = None
) -> bytes:
    """A message of another program: application properties of any type, fields of the properties by position."""
    positions = [(fields or {}).get(index) for index in range(13)] if fields else ()
    return encode_message(header=header, properties=positions, application_properties=properties)


def received(octets: bytes) -> Message:
    """The message as its receiver has it."""
    return message_from(ReceivedMessage(octets))


PROPERTIES: dict[str, Any] = {
    "colour": "red", "weight": 11, "price": 2.5, "yes": True, "no": False, "text": "5", "quoted": "it's",
    "empty": "", "big": Long.MAX, "small": Long.MIN, "zero": 0, "Weight": 99,
}  # fmt: skip


def selects(text: str, properties: dict[str, Any] | None = None) -> bool:
    """What the selector says of a message; the three ways to ask it must agree."""
    message = made(PROPERTIES if properties is None else properties)
    selector = Selector(text)
    octets = octets_of(message)
    answers = {
        selector.matches(message),
        selector.matches(received(octets)),
        predicate(selector)(octets, 0),
    }
    assert len(answers) == 1, text
    return answers.pop()


def unknown(condition: str, properties: dict[str, Any] | None = None) -> bool:
    """Whether a condition is neither true nor false."""
    return not selects(condition, properties) and not selects(f"NOT ({condition})", properties)


def refused(text: str, *parts: str) -> InvalidSelectorError:
    with pytest.raises(InvalidSelectorError) as found:
        Selector(text)
    for part in parts:
        assert part in str(found.value)
    return found.value
