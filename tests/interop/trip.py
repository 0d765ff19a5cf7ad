"""The journey of the matrix: one virtual machine with Qpid JMS receives every message and sends its own copy back."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jmsish
from tests.interop.matrix import Case, Shown, cases, show

PEER = Path(__file__).parent / "peers/MatrixPeer.java"
EQUAL = {case.name: case for case in cases()}
SERIALISED = "serialised"
AGAIN = {SERIALISED: "serialised-again"}
"""What came back is sent there again, under another name."""
OUT, BACK = "matrix.out", "matrix.back"
CASES = {**EQUAL, SERIALISED: Case(SERIALISED, lambda session: session.create_object_message(["a", 1]))}
PATIENCE = 30.0


class Ended(Exception):
    """The broker ended the connection at this case."""


@dataclass
class Trip:
    """All messages, there and back: by case, as each side shows them."""

    sent: dict[str, Shown] = field(default_factory=dict)
    java: dict[str, Any] = field(default_factory=dict)
    back: dict[str, Shown] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    """What the broker did not take."""


def travel(url: str, classes: str, prefix: str = "") -> Trip:
    """Through the broker at `url`; `prefix` is what stands before the names of queues for a client without profiles."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", classes, "MatrixPeer"]
    trip = Trip()
    # To a file: nobody reads what it says while it runs.
    with tempfile.TemporaryFile() as said:
        with jmsish.connect(url) as connection:
            session = connection.create_session()
            # The queues are there before the other side looks for them: not every broker makes them for everybody.
            producer = session.create_producer(session.create_queue(OUT))
            consumer = session.create_consumer(session.create_queue(BACK))
            called = [*command, url, prefix + OUT, prefix + BACK]
            peer = subprocess.Popen(called, stdout=said, stderr=subprocess.STDOUT)
            try:
                _send_and_receive(session, producer, consumer, trip)
                peer.wait(60)
            finally:
                peer.kill()
                peer.wait()
        said.seek(0)
        told = said.read().decode("ascii", "replace")
        # Whoever writes a prefix into the names of queues sees it in them too.
        lines = (told.replace(prefix, "") if prefix else told).splitlines()
    assert peer.returncode == 0, "\n".join(lines[-20:])[-3000:]
    trip.java = {line["case"]: line for line in map(json.loads, lines)}
    return trip


def _send_and_receive(
    session: jmsish.Session, producer: jmsish.MessageProducer, consumer: jmsish.MessageConsumer, trip: Trip
) -> None:
    for case in CASES.values():
        message = case.message(session)
        try:
            producer.send(message, **case.options)
        except jmsish.SendRejectedError:
            trip.refused.append(case.name)
            continue
        except jmsish.ConnectionLostError as lost:
            raise Ended(case.name) from lost
        trip.sent[case.name] = show(message)
    while len(trip.back) < len(trip.sent) + len(AGAIN):
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
