"""Clients not written here do to our broker what transacted sessions are about."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import jmsish
from jmsish import EmbeddedBroker
from tests.interop import fetch
from tests.interop.conftest import need

PEERS = Path(__file__).parent / "peers"
Seen = dict[str, Any]

# A message is [body, delivery-count]. What an open receiver of the same link must not get is in "extra".
EXPECTED: dict[str, Seen] = {
    "outcomes": {
        "first": [["m1", 0], ["m2", 0], ["m3", 0], ["m4", 0]],
        "again": [["m2", 0], ["m3", 1]],
        "extra": [],
        "elsewhere": [["m4", 1]],
    },
    "commit": {
        "received": [["m1", 0], ["m2", 0]],
        "out_before": [],
        "out_after": [["a", 0], ["b", 0]],
        "left": [["m3", 0], ["m4", 0]],
    },
    "rollback": {
        "received": [["m1", 0], ["m2", 0]],
        "again": [["m1", 1], ["m2", 1], ["m3", 0], ["m4", 0], ["m5", 0]],
        "out": [],
        "left": [],
    },
    "large": {"equal": True},
    "recover": {"received": [["m1", 0], ["m2", 0]], "again": [["m1", 1], ["m2", 1], ["m3", 0]], "left": []},
    "browse": {
        "browsed": [["m1", 0], ["m2", 0], ["m3", 0]],
        "received": [["m1", 0], ["m2", 0], ["m3", 0]],
    },
    "request_reply": {"answered": [["answer to question", 0]], "correlated": True},
}
TRANSACTIONS = ["commit", "rollback"]


@dataclass
class Peer:
    """How a program is started, once what it needs is there."""

    name: str
    command: Callable[[], list[str]]
    scenarios: list[str] = field(default_factory=list)

    def run(self, url: str, scenario: str, queue: str) -> Seen:
        done = self.start(url, scenario, queue)
        assert done.returncode == 0, done.stderr[-3000:]
        seen: Seen = json.loads(done.stdout.splitlines()[-1])
        return seen

    def start(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self.command(), *arguments]
        environment = {**os.environ, "NODE_PATH": str(fetch.cache(fetch.RHEA) / "node_modules")}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)

    def __str__(self) -> str:
        return self.name


def _proton(script: str) -> list[str]:
    need(fetch.proton)
    return [sys.executable, str(PEERS / script)]


def _rhea() -> list[str]:
    need(fetch.rhea)
    return ["node", str(PEERS / "rhea_peer.js")]


def _qpid_jms() -> list[str]:
    classes = need(fetch.qpid_jms, PEERS / "JmsPeer.java")
    # The quick start of a short program, not the speed of a long one.
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", classes, "JmsPeer"]


ALL = [
    Peer("proton-blocking", lambda: _proton("proton_blocking.py"), ["outcomes", "large"]),
    Peer("proton-reactor", lambda: _proton("proton_reactor.py"), ["outcomes", "large", *TRANSACTIONS]),
    Peer("rhea", _rhea, ["outcomes", "large", *TRANSACTIONS]),
    Peer("qpid-jms", _qpid_jms, list(EXPECTED)),
]


@pytest.fixture
def queue() -> str:
    return f"interop.{uuid.uuid4().hex[:12]}"


@pytest.mark.interop
@pytest.mark.parametrize(
    ("peer", "scenario"), [pytest.param(peer, name, id=f"{peer}-{name}") for peer in ALL for name in peer.scenarios]
)
def test_peer_sees_what_it_should(peer: Peer, scenario: str, url: str, queue: str) -> None:
    assert peer.run(url, scenario, queue) == EXPECTED[scenario]


@pytest.mark.interop
def test_proton_rolls_back_unsettled_retirements(url: str, queue: str) -> None:
    """Proton's own way: retired unsettled and, after the discharge, released by the client.

    The rollback takes the deliveries back to where they were, with the client, and `released` does not count; a broker
    that counts the rollback itself says 1 (Artemis does). Order is the same either way.
    """
    seen = ALL[1].run(url, "rollback_unsettled", queue)
    assert [body for body, _ in seen["again"]] == ["m1", "m2", "m3", "m4", "m5"]
    assert [count for _, count in seen["again"]] in ([0, 0, 0, 0, 0], [1, 1, 0, 0, 0])
    assert seen["out"] == seen["left"] == []


@pytest.mark.interop
def test_qpid_jms_ends_a_session_with_work_undone(url: str, queue: str) -> None:
    """Everything is back in its order, what was received is marked.

    What the broker sent again between the rollback and the End counts once more, for the unread too: the default
    outcome that Qpid JMS asks for is modified(delivery-failed), and it says nothing else about them.
    """
    seen = ALL[-1].run(url, "drop", queue)
    assert seen["received"] == [["m1", 0]]
    assert [body for body, _ in seen["left"]] == ["m1", "m2", "m3"]
    assert [count for _, count in seen["left"]] in ([1, 0, 0], [2, 1, 1])


@pytest.mark.interop
@pytest.mark.parametrize("peer", ALL, ids=str)
def test_peer_sends_and_jmsish_receives(peer: Peer, url: str, queue: str) -> None:
    seen = peer.run(url, "send", queue)
    assert seen in ({"outcomes": ["accepted"] * 3}, {"sent": 3})
    with jmsish.connect(url) as connection:
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(queue))
        received = [consumer.receive(timeout=30) for _ in range(3)]
        assert [message.body for message in received if message] == ["m1", "m2", "m3"]
        assert [message.delivery_count for message in received if message] == [1, 1, 1]
        assert consumer.receive_no_wait() is None


@pytest.mark.interop
@pytest.mark.parametrize("peer", ALL, ids=str)
def test_jmsish_sends_and_peer_receives(peer: Peer, url: str, queue: str) -> None:
    with jmsish.connect(url) as connection:
        session = connection.create_session(transacted=True)
        producer = session.create_producer(session.create_queue(queue))
        for body in ("m1", "m2", "m3"):
            producer.send(body)
        session.commit()
    assert peer.run(url, "receive", queue) == {"received": [["m1", 0], ["m2", 0], ["m3", 0]]}


@pytest.mark.interop
@pytest.mark.parametrize("peer", ALL, ids=str)
def test_rejected_is_dead_lettered_and_nothing_stays_behind(peer: Peer, broker: EmbeddedBroker, queue: str) -> None:
    peer.run(broker.listen().url, "outcomes", queue)
    assert [message.body for message in broker.queue("DLQ").messages()] == ["m1"]
    assert broker.queue(queue).depth == 0
    assert not list(broker.transactions())


@pytest.fixture
def guarded() -> Iterator[str]:
    """Host and port of a broker that wants a password."""
    with EmbeddedBroker(config={"users": {"alice": {"password": "secret"}}}) as broker:
        listener = broker.listen()
        yield f"{listener.host}:{listener.port}"


@pytest.mark.interop
@pytest.mark.parametrize("peer", ALL, ids=str)
def test_credentials(peer: Peer, guarded: str, queue: str) -> None:
    assert peer.run(f"amqp://alice:secret@{guarded}", "send", queue)
    assert peer.start(f"amqp://alice:wrong@{guarded}", "send", queue).returncode != 0
    assert peer.start(f"amqp://{guarded}", "send", queue).returncode != 0
