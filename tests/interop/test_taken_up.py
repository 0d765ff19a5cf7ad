"""A durable subscription belongs to a client id and a name: made by one library, taken up and ended by another.

Ours and Qpid JMS in turn, at the bundled broker and at Artemis: both must name links and containers alike (M32, M62).
"""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import jmsish
from jmsish import EmbeddedBroker
from tests.interop import fetch
from tests.interop.conftest import need
from tests.interop.features import drain, once_free

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

PEER = Path(__file__).parent / "peers/SubscriberPeer.java"
KINDS = [("durable", "alice"), ("shared durable", "alice"), ("shared durable", None)]
RED = "colour = 'red'"


class Ours:
    """What the Java program does, done here."""

    def __init__(self, url: str) -> None:
        self.url = url

    def connect(self, client_id: str | None) -> jmsish.Connection:
        return once_free(lambda: jmsish.connect(self.url, client_id=client_id, request_timeout=10))

    def take(
        self, client_id: str | None, kind: str, topic: str, name: str, selector: str | None, count: int = 0
    ) -> list[str]:
        with self.connect(client_id) as connection, connection.create_session() as session:
            make = session.create_durable_consumer if kind == "durable" else session.create_shared_durable_consumer
            with make(session.create_topic(topic), name, selector) as consumer:
                return drain(consumer, count)

    def unsubscribe(self, client_id: str | None, name: str) -> None:
        with self.connect(client_id) as connection:
            connection.create_session().unsubscribe(name)

    def publish(self, client_id: str | None, topic: str, body: str, colour: str) -> None:
        with self.connect(client_id) as connection, connection.create_session() as session:
            session.create_producer(session.create_topic(topic)).send(body, properties={"colour": colour})


ERRORS = {"InvalidDestination": jmsish.InvalidDestinationError, "InvalidClientID": jmsish.InvalidClientIDError}


class Theirs:
    """The Java program, asked over its standard input."""

    def __init__(self, url: str) -> None:
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp"]
        command += [need(fetch.qpid_jms, PEER), "SubscriberPeer", url]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words: str | None) -> str:
        return once_free(lambda: self.answer(*words))

    def answer(self, *words: str | None) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\t".join("-" if word is None else word for word in words) + "\n")
        self.process.stdin.flush()
        answer, _, rest = self.process.stdout.readline().rstrip("\n").partition(" ")
        if answer != "ok":
            raise ERRORS.get(rest.partition("Exception")[0], jmsish.JMSError)(rest)
        return rest

    def take(
        self, client_id: str | None, kind: str, topic: str, name: str, selector: str | None, count: int = 0
    ) -> list[str]:
        got = self.ask("take", client_id, kind, topic, name, selector, str(count))
        return got.split(",") if got else []

    def unsubscribe(self, client_id: str | None, name: str) -> None:
        self.ask("unsubscribe", client_id, name)

    def publish(self, client_id: str | None, topic: str, body: str, colour: str) -> None:
        self.ask("publish", client_id, topic, body, colour)

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture(scope="module", params=["bundled", "artemis"])
def both(request: pytest.FixtureRequest) -> Iterator[tuple[Ours, Theirs]]:
    if request.param == "artemis":
        url = request.getfixturevalue("artemis")
        theirs = Theirs(url)
        yield Ours(url), theirs
        theirs.close()
        return
    with EmbeddedBroker() as broker:
        url = broker.listen().url
        theirs = Theirs(url)
        yield Ours(url), theirs
        theirs.close()


@pytest.mark.parametrize(("kind", "client_id"), KINDS)
@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_made_by_one_taken_up_and_ended_by_the_other(
    both: tuple[Ours, Theirs], maker: str, kind: str, client_id: str | None
) -> None:
    """It goes on with what it has collected; ended by one, it is gone for the other."""
    first, second = both if maker == "ours" else reversed(both)
    topic, name = f"handed.{uuid.uuid4().hex}", f"name-{uuid.uuid4().hex[:6]}"
    wishes = (client_id, kind, topic, name, RED)
    assert first.take(*wishes) == []
    for number, publisher in enumerate((first, second, first), 1):
        publisher.publish(None, topic, f"r{number}", "red")
        publisher.publish(None, topic, f"b{number}", "blue")
    assert second.take(*wishes, count=3) == ["r1", "r2", "r3"]
    second.publish(client_id, topic, "r4", "red")
    assert first.take(*wishes, count=1) == ["r4"]
    second.unsubscribe(client_id, name)
    for each in both:
        with pytest.raises(jmsish.InvalidDestinationError):
            each.unsubscribe(client_id, name)
    first.publish(None, topic, "r5", "red")
    assert second.take(*wishes) == []
    first.unsubscribe(client_id, name)


@pytest.mark.parametrize(("kind", "client_id"), KINDS)
@pytest.mark.parametrize("maker", ["ours", "theirs"])
def test_made_anew_by_the_other(both: tuple[Ours, Theirs], maker: str, kind: str, client_id: str | None) -> None:
    """With another selector, what the first one had collected is gone (jms rules 131, 132)."""
    first, second = both if maker == "ours" else reversed(both)
    topic, name = f"handed.{uuid.uuid4().hex}", f"name-{uuid.uuid4().hex[:6]}"
    first.take(client_id, kind, topic, name, RED)
    first.publish(None, topic, "r1", "red")
    assert second.take(client_id, kind, topic, name, None) == []
    first.publish(None, topic, "b2", "blue")
    assert first.take(client_id, kind, topic, name, None, 1) == ["b2"]
    second.unsubscribe(client_id, name)
