"""Messages of a client that knows nothing of JMS: we read them as Qpid JMS does, and lose no form of an id."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import jmsish
from jmsish import EmbeddedBroker
from jmsish.message import fields
from jmsish.message.headers import field as amqp_field
from tests.interop import fetch
from tests.interop.conftest import need
from tests.interop.matrix import show

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

PEER = Path(__file__).parent / "peers/MatrixPeer.java"
UNIQUE = UUID("12345678-1234-5678-1234-567812345678")
PATIENCE = 30.0


IDS: dict[str, tuple[Any, str]] = {
    "string-with-prefix": ("ID:7", "ID:7"),
    "string": ("7", "ID:AMQP_NO_PREFIX:7"),
    "string-that-looks-encoded": ("ID:AMQP_UUID:7", "ID:AMQP_STRING:ID:AMQP_UUID:7"),
    "uuid": (UNIQUE, f"ID:AMQP_UUID:{UNIQUE}"),
    "ulong": (2**64 - 1, f"ID:AMQP_ULONG:{2**64 - 1}"),
    "binary": (b"\x00\xff\x10", "ID:AMQP_BINARY:00FF10"),
}
"""Ids as they stand in a message, and how JMS writes them."""

# The body; whether it is in the section that fits it (data, sequence) or a value; its content type; what it is to JMS.
BODIES: dict[str, tuple[Any, bool, str | None, str]] = {
    "value-string": ("text", False, None, "TextMessage"),
    "nothing": (None, False, None, "BytesMessage"),  # Proton writes no section.
    "value-binary": (b"\x00\xff", False, None, "BytesMessage"),
    "value-boolean": (True, False, None, "ObjectMessage"),
    "value-list": (["a", True, None], False, None, "ObjectMessage"),
    "value-map": ({"a": "b", "c": True}, False, None, "ObjectMessage"),
    "sequence": (["a", True], True, None, "ObjectMessage"),
    "data": (b"\x00\xff", True, None, "BytesMessage"),
    "data-octets": (b"\x00\xff", True, "application/octet-stream", "BytesMessage"),
    "data-text": ("Grüße".encode(), True, "text/plain", "TextMessage"),
    "data-text-charset": ("Grüße".encode("utf-16-be"), True, "text/plain;charset=utf-16be", "TextMessage"),
    "data-json": (b'{"a": 1}', True, "application/json", "TextMessage"),
    "data-xml": (b"<a/>", True, "application/xml", "TextMessage"),
    "data-image": (b"\x00\xff", True, "image/png", "BytesMessage"),
}


@dataclass
class Seen:
    java: dict[str, Any] = field(default_factory=dict)
    here: dict[str, jmsish.Message] = field(default_factory=dict)
    answers: dict[str, jmsish.Message] = field(default_factory=dict)


def _messages() -> Iterator[Any]:
    from proton import Message, ulong

    for name, (identity, _) in IDS.items():
        marked = ulong(identity) if isinstance(identity, int) else identity
        yield Message("x", id=marked, properties={"case": f"id-{name}"})
    for name, (body, inferred, content_type, _) in BODIES.items():
        message = Message(body, inferred=inferred, id="ID:1", properties={"case": f"body-{name}"})
        if content_type is not None:
            message.content_type = content_type
        yield message


def _send(url: str, addresses: list[str]) -> None:
    from proton.utils import BlockingConnection

    from tests.interop.peers.proton_blocking import QueueNode

    connection = BlockingConnection(url, timeout=PATIENCE)
    for address in addresses:
        sender = connection.create_sender(address, options=QueueNode())
        for message in _messages():
            sender.send(message)
    connection.close()


def _read(session: jmsish.Session, queue: str, seen: dict[str, jmsish.Message]) -> None:
    consumer = session.create_consumer(session.create_queue(queue))
    for _ in range(len(IDS) + len(BODIES)):
        came = consumer.receive(timeout=PATIENCE)
        assert came is not None, f"only {list(seen)} came"
        seen[came.properties["case"]] = came


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    need(fetch.proton)
    classes = need(fetch.qpid_jms, PEER)
    seen = Seen()
    with EmbeddedBroker() as broker:
        url = broker.listen().url
        _send(url, ["there", "here"])
        with jmsish.connect(url) as connection:
            session = connection.create_session()
            session.create_producer(session.create_queue("there")).send("", properties={"case": "last"})
            command = ["java", "-XX:TieredStopAtLevel=1", "-cp", classes, "MatrixPeer", url, "there", "back"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=100)
            assert done.returncode == 0, done.stderr[-3000:]
            seen.java = {line["case"]: line for line in map(json.loads, done.stdout.splitlines())}
            _read(session, "here", seen.here)
            _read(session, "back", seen.answers)
            yield seen


@pytest.mark.parametrize("name", BODIES)
def test_a_body_without_annotation_is_what_it_is_in_java(seen: Seen, name: str) -> None:
    """M4 to M8: by the section, and the content type."""
    came = seen.java[f"body-{name}"]["came"]
    here = show(seen.here[f"body-{name}"])
    assert here["type"] == came["type"] == BODIES[name][3]
    assert here["body"] == came["body"]


@pytest.mark.parametrize("name", IDS)
def test_an_id_is_written_as_in_java(seen: Seen, name: str) -> None:
    """M19: each form of a message id has a text of its own."""
    identity, text = IDS[name]
    here = seen.here[f"id-{name}"]
    assert here.jms_message_id == seen.java[f"id-{name}"]["came"]["message_id"] == text
    assert amqp_field(here, fields.MESSAGE_ID) == identity


@pytest.mark.parametrize("name", IDS)
def test_an_id_survives_as_the_correlation_id_of_an_answer(seen: Seen, name: str) -> None:
    """M20: what Java writes as the correlation id of its answer is the id of the request again, in its own type."""
    identity, text = IDS[name]
    answer = seen.answers[f"id-{name}"]
    assert answer.jms_correlation_id in (text, identity)
    came = amqp_field(answer, fields.CORRELATION_ID)
    assert came == identity and isinstance(came, type(identity))
