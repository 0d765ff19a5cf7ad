"""What is known of one message and holds for the next: only where nothing differs but id, time and body."""

from __future__ import annotations

import itertools
import random

import pytest

from jmsish.broker.intake import Intake, read
from jmsish.destination import Queue, Topic
from jmsish.engine.codec import MessageTemplate, Reader, ReceivedMessage, encode_for_send
from jmsish.engine.decoding import DecodeError
from jmsish.engine.likeness import LEARNING, SHORT_TEXT, likeness_of
from jmsish.message import BytesMessage, Message, TextMessage

NOW = 1_700_000_000_000
PREFIX = "ID:6f6a4c9e-5a0e-4b0e-9a57-0d9b2a3c1e5f:"


def text(number: int, body: str = "text", **terms: object) -> bytes:
    return MessageTemplate(Queue("q"), id_prefix=PREFIX, **terms).encode_text(body, number, NOW + number)  # type: ignore[arg-type]


def whole(message: Message, number: int, **terms: object) -> bytes:
    wishes = {"destination": Queue("q"), "delivery_mode": 2, "priority": 4, "ttl": 0, "delivery_time": 0, **terms}
    return encode_for_send(  # type: ignore[call-arg]
        message,
        message_id=f"{PREFIX}{number}",
        timestamp=NOW + number,
        now=NOW,
        **wishes,  # type: ignore[arg-type]
    )


def found(received: ReceivedMessage) -> tuple[object, ...]:
    return (
        received.bare, received.prefix.header, received.prefix.annotations, received.text, received.body(),
        received.has_application_properties, received.application_properties(), received.properties(),
        received.body_offset(),
    )  # fmt: skip


def afresh(payload: bytes) -> object:
    """What a reader finds that has seen nothing before."""
    try:
        received = ReceivedMessage(payload)
        return received.check(), found(received)
    except DecodeError as fault:
        return fault.args


def by(reader: Reader, payload: bytes) -> object:
    try:
        received, expiry = reader.read(payload)
        return expiry, found(received)
    except DecodeError as fault:
        return fault.args


def with_property(number: int) -> bytes:
    message = TextMessage("text")
    message.properties["colour"] = "red"
    return whole(message, number)


def of_group(number: int) -> bytes:
    message = TextMessage("text")
    message.properties["JMSXGroupID"] = "g"
    return whole(message, number)


KINDS = {
    "short text": text,
    "long text": lambda number: text(number, "x" * 300),
    "empty text": lambda number: text(number, ""),
    "text beyond ascii": lambda number: text(number, "žluťoučký kůň"),
    "low priority": lambda number: text(number, priority=1),
    "expires": lambda number: text(number, ttl=1000),
    "without time": lambda number: text(number, stamped=False),
    "without id": lambda number: MessageTemplate(Queue("q"), id_prefix=None).encode_text("text", number, NOW),
    "bare of both": lambda number: MessageTemplate(Queue("q"), id_prefix=None, stamped=False).encode_text("t", 1, 1),
    "to a topic": lambda number: MessageTemplate(Topic("t"), id_prefix=PREFIX).encode_text("text", number, NOW),
    "octets": lambda number: whole(BytesMessage(bytes(range(256))), number),
    "nothing": lambda number: whole(Message(), number),
    "property": with_property,
    "group": of_group,
    "user": lambda number: text(number, jmsx_user_id="me"),
    "no properties": lambda number: b"\x00Sw\xa1\x01x",
    "empty properties": lambda number: b"\x00SsE\x00Sw\xa1\x01x",
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_message_of_a_kind_is_read_as_if_it_were_the_first(kind):
    reader, intake = Reader(), Intake(lambda: 0.0)
    for number in (100, 101, 102, 999, 1000, 1001):
        payload = KINDS[kind](number)
        assert by(reader, payload) == afresh(payload)
        assert repr_of(intake.read(payload)) == repr_of(read(payload, 0.0))


def repr_of(arrival: object) -> object:
    if isinstance(arrival, int):
        return arrival
    return tuple(getattr(arrival, name) for name in ("payload", "priority", "due", "group")), arrival.history is None  # type: ignore[attr-defined]


def test_messages_of_all_kinds_in_turn_are_read_as_if_each_were_the_first():
    reader, intake = Reader(), Intake(lambda: 0.0)
    for first, second in itertools.product(KINDS, KINDS):
        for number in range(100, 103):
            for kind in (first, first, second):
                payload = KINDS[kind](number)
                assert by(reader, payload) == afresh(payload)
                assert repr_of(intake.read(payload)) == repr_of(read(payload, 0.0))


@pytest.mark.parametrize("kind", KINDS)
def test_octets_that_are_broken_are_refused_after_whole_ones_of_the_same_kind(kind):
    """Each octet in turn is another, or the message ends there; what is found is what would be found afresh."""
    chance = random.Random(kind)
    whole_one, following = KINDS[kind](100), KINDS[kind](101)
    for at in range(min(len(following), 400)):
        for broken in (
            following[:at],
            following[:at] + bytes((chance.randrange(256),)) + following[at + 1 :],
            following[:at] + b"\xff" + following[at + 1 :],
            following[:at] + b"\x00" + following[at + 1 :],
            following[:at] + following[at + 1 :],
        ):
            reader = Reader()
            by(reader, whole_one)
            assert by(reader, broken) == afresh(broken)
            intake = Intake(lambda: 0.0)
            intake.read(whole_one)
            assert asked(intake.read, broken) == asked(lambda octets: read(octets, 0.0), broken)


def asked(reading, octets: bytes) -> object:
    try:
        return repr_of(reading(octets))
    except ValueError as fault:
        return type(fault)


def test_an_id_that_is_no_text_is_refused_after_one_that_is():
    reader = Reader()
    reader.read(text(100))
    broken = text(101).replace(b"ID:6f", b"ID:\xff\xff")
    with pytest.raises(DecodeError, match="utf-8"):
        reader.read(broken)


def test_an_id_beyond_ascii_is_read():
    reader = Reader()
    reader.read(text(100))
    payload = text(101).replace(b"ID:6f", "ID:ž".encode())
    assert by(reader, payload) == afresh(payload)


def test_what_expires_is_not_alike():
    """Each such message has an expiry time of its own."""
    payload = text(100, ttl=1000)
    assert likeness_of(payload, ReceivedMessage(payload).bare, None) is None


def test_a_likeness_says_where_the_body_is():
    payload = text(100)
    like = likeness_of(payload, ReceivedMessage(payload).bare, "known")
    assert like is not None
    assert like.is_short_text
    assert payload[like.end : like.end + 4] == SHORT_TEXT
    assert payload[like.id_at : like.id_end] == f"{PREFIX}100".encode()
    assert like.known == "known"


def test_learning_from_each_of_many_unlike_messages_is_not_tried(monkeypatch):
    learnt = []

    def likeness(payload, bare, known):
        learnt.append(payload)
        return likeness_of(payload, bare, known)

    monkeypatch.setattr("jmsish.engine.received.likeness_of", likeness)
    reader = Reader()
    for number in range(LEARNING * 10):
        reader.read(text(100, priority=number % 10))
    assert 1 <= len(learnt) <= 12
