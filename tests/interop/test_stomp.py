"""stomp.py on one side of Artemis, jmsish on the other: texts and octets, both ways."""

from __future__ import annotations

import queue
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

import jmsish
from tests.interop import fetch
from tests.interop.conftest import need

pytestmark = pytest.mark.interop

PATIENCE = 20.0
TEXTS = {"plain": "order 7", "empty": "", "unicode": "Grüße, 世界, 🎉", "lines": "one\ntwo\n\n", "long": "ä" * 70_000}
OCTETS = {"empty": b"", "every": bytes(range(256)), "zeros": bytes(5), "long": bytes(range(256)) * 300}
QUEUE = {"destination-type": "ANYCAST"}
"""What tells Artemis that a queue is meant, and not a topic."""


class Peer:
    """stomp.py, connected to a broker."""

    def __init__(self, url: str, *, octets: bool) -> None:
        import stomp

        peer = self
        address = urlsplit(url)
        # Artemis takes a frame with a content-length for octets, and one without for a text.
        self.connection: Any = stomp.Connection12(
            [(address.hostname, address.port)], auto_content_length=octets, auto_decode=not octets
        )

        class Listener(stomp.ConnectionListener):  # type: ignore[misc]
            def on_message(self, frame: Any) -> None:
                peer.frames.put(frame)

        self.frames: queue.Queue[Any] = queue.Queue()
        self.connection.set_listener("", Listener())
        self.connection.connect(wait=True)

    def send(self, name: str, body: Any, **headers: str) -> None:
        receipt = uuid.uuid4().hex
        self.connection.send(name, body, headers={**QUEUE, **headers}, receipt=receipt)

    def receive(self, name: str) -> Any:
        self.connection.subscribe(name, id="1", headers={"subscription-type": "ANYCAST"})
        return self.frames.get(timeout=PATIENCE)

    def close(self) -> None:
        self.connection.disconnect()


@pytest.fixture
def name() -> str:
    return f"stomp.{uuid.uuid4().hex[:12]}"


@pytest.fixture
def texts(artemis: str) -> Iterator[Peer]:
    need(fetch.stomp)
    peer = Peer(artemis, octets=False)
    yield peer
    peer.close()


@pytest.fixture
def octets(artemis: str) -> Iterator[Peer]:
    need(fetch.stomp)
    peer = Peer(artemis, octets=True)
    yield peer
    peer.close()


@pytest.fixture
def session(artemis: str) -> Iterator[jmsish.Session]:
    with jmsish.connect(artemis) as connection:
        yield connection.create_session()


def received(session: jmsish.Session, name: str) -> jmsish.Message:
    message = session.create_consumer(session.create_queue(name)).receive(timeout=PATIENCE)
    assert message is not None
    return message


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_from_stomp(texts: Peer, session: jmsish.Session, name: str, case: str) -> None:
    texts.send(name, TEXTS[case], colour="red")
    message = received(session, name)
    assert type(message) is jmsish.TextMessage
    assert message.body == TEXTS[case]
    assert message.properties["colour"] == "red"


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_to_stomp(texts: Peer, session: jmsish.Session, name: str, case: str) -> None:
    session.create_producer(session.create_queue(name)).send(TEXTS[case], properties={"colour": "red"})
    frame = texts.receive(name)
    assert frame.body == TEXTS[case]
    assert frame.headers["colour"] == "red"


# Of an empty body stomp.py never writes the length, so it is a text to the broker.
@pytest.mark.parametrize("case", [case for case in OCTETS if case != "empty"])
def test_octets_from_stomp(octets: Peer, session: jmsish.Session, name: str, case: str) -> None:
    octets.send(name, OCTETS[case])
    message = received(session, name)
    assert type(message) is jmsish.BytesMessage
    assert message.body == OCTETS[case]


@pytest.mark.parametrize("case", OCTETS)
def test_octets_to_stomp(octets: Peer, session: jmsish.Session, name: str, case: str) -> None:
    session.create_producer(session.create_queue(name)).send(OCTETS[case])
    frame = octets.receive(name)
    assert (frame.body or b"") == OCTETS[case]
