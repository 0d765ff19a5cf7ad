"""A peer that sends on without reading, and hears all the same why it was closed (W10): no reset takes it back."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from jmsish import EmbeddedBroker
from tests.wire.frames import AMQP_HEADER, SENDER, composite, read, write

LIMIT = 1000
MUCH = 8 << 20
PATIENCE = 30.0


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """It may take its time, on a busy machine more than the second that it has."""
    monkeypatch.setattr("jmsish.drivers.outlet.LINGER", PATIENCE)
    with EmbeddedBroker(config={"policy": {"max_message_size": LIMIT}}) as broker:
        listener = broker.listen()
        with socket.create_connection((listener.host, listener.port), timeout=PATIENCE) as peer:
            yield peer


@pytest.mark.parametrize("answers", [True, False])
def test_the_answer_is_there_after_megabytes_that_nobody_wanted(peer: socket.socket, answers: bool) -> None:
    """Whether the peer answers the close or just goes on to the end of the line."""
    frame = write("transfer", 0, bytes(100_000), handle=0, more=True)
    peer.sendall(
        AMQP_HEADER + write("open", container_id="c")
        + write("begin", 0, next_outgoing_id=0, incoming_window=100, outgoing_window=100)
        + write("attach", 0, name="s", handle=0, role=SENDER, initial_delivery_count=0,
                source=composite("source"), target=composite("target", address="q"))
        + write("transfer", 0, bytes(LIMIT + 1), handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    )  # fmt: skip
    for _ in range(MUCH // len(frame)):
        peer.sendall(frame)
    octets = b""
    while data := peer.recv(1 << 16):
        octets += data
        if answers and octets.count(b"amqp:connection:forced"):
            answers = False
            peer.sendall(write("close"))
    said = [each.name for each in read(octets) if each.name != "flow"]
    assert said == ["header", "open", "begin", "attach", "disposition", "detach", "close"]
