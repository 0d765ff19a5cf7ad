"""Every type of message, property, id and header goes from us to Qpid JMS and back, through our broker and Artemis.

One virtual machine does it all, once for each broker. What left here must be what Java saw, by value and by type, and
what left Java must be what came here.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import jmsish
from jmsish import EmbeddedBroker
from tests.interop import fetch
from tests.interop.conftest import need
from tests.interop.matrix import Case, Shown, cases, show

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

PEER = Path(__file__).parent / "peers/MatrixPeer.java"
EQUAL = {case.name: case for case in cases()}
SERIALISED = "serialised"
AGAIN = {SERIALISED: "serialised-again"}
"""What came back is sent there again, under another name."""
OUT, BACK = "matrix.out", "matrix.back"
CASES = {**EQUAL, SERIALISED: Case(SERIALISED, lambda session: session.create_object_message(["a", 1]))}
PATIENCE = 30.0


@dataclass
class Trip:
    """All messages, there and back: by case, as each side shows them."""

    sent: dict[str, Shown] = field(default_factory=dict)
    java: dict[str, Any] = field(default_factory=dict)
    back: dict[str, Shown] = field(default_factory=dict)


@pytest.fixture(scope="module", params=["bundled", "artemis"])
def trip(request: pytest.FixtureRequest) -> Iterator[Trip]:
    classes = need(fetch.qpid_jms, PEER)
    if request.param == "artemis":
        yield _travel(request.getfixturevalue("artemis"), classes)
        return
    with EmbeddedBroker() as broker:
        yield _travel(broker.listen().url, classes)


def _travel(url: str, classes: str) -> Trip:
    command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", classes, "MatrixPeer"]
    trip = Trip()
    # To a file: nobody reads what it says while it runs.
    with tempfile.TemporaryFile() as said:
        peer = subprocess.Popen([*command, url, OUT, BACK], stdout=said, stderr=subprocess.STDOUT)
        try:
            with jmsish.connect(url) as connection:
                _send_and_receive(connection, trip)
            peer.wait(60)
        finally:
            peer.kill()
            peer.wait()
        said.seek(0)
        lines = said.read().decode("ascii", "replace").splitlines()
    assert peer.returncode == 0, "\n".join(lines[-20:])[-3000:]
    trip.java = {line["case"]: line for line in map(json.loads, lines)}
    return trip


def _send_and_receive(connection: jmsish.Connection, trip: Trip) -> None:
    session = connection.create_session()
    producer = session.create_producer(session.create_queue(OUT))
    for case in CASES.values():
        message = case.message(session)
        producer.send(message, **case.options)
        trip.sent[case.name] = show(message)
    consumer = session.create_consumer(session.create_queue(BACK))
    while len(trip.back) < len(CASES) + len(AGAIN):
        came = consumer.receive(timeout=PATIENCE)
        if came is None:
            break
        name = came.properties["case"]
        trip.back[name] = show(came)
        if name in AGAIN:
            came.clear_properties()
            came.properties["case"] = AGAIN[name]
            producer.send(came)
    producer.send("", properties={"case": "last"})


@pytest.mark.parametrize("name", EQUAL)
def test_java_sees_what_was_sent(trip: Trip, name: str) -> None:
    assert trip.java[name]["came"] == trip.sent[name]


@pytest.mark.parametrize("name", EQUAL)
def test_what_java_sends_is_seen_here(trip: Trip, name: str) -> None:
    assert "error" not in trip.java[name], trip.java[name]["error"]
    assert trip.back[name] == trip.java[name]["sent"]


def test_a_serialised_object_stays_the_octets_it_came_as(trip: Trip) -> None:
    """What Java serialised is an ObjectMessage whose body nobody opens here; sent to Java again, it is what it was."""
    there, back, again = trip.java[SERIALISED], trip.back[SERIALISED], trip.java[AGAIN[SERIALISED]]
    assert there["came"] == trip.sent[SERIALISED]
    assert back["type"] == "ObjectMessage"
    kind, octets = back["body"]
    assert kind == "byte[]" and octets.startswith("aced0005")  # Java's own magic number, and version 5
    assert again["came"]["type"] == "ObjectMessage"
    assert again["came"]["body"] == there["sent"]["body"] == there["came"]["body"]
