"""Qpid Proton's client sends what is too large: what it hears, in which order, and that it is not stuck afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jmsish import EmbeddedBroker

pytestmark = pytest.mark.interop
proton: Any = pytest.importorskip("proton", reason="python-qpid-proton is not installed (extra `peers`)")
handlers: Any = pytest.importorskip("proton.handlers")
reactor: Any = pytest.importorskip("proton.reactor")

LIMIT = 100_000
EXCEEDED = "amqp:link:message-size-exceeded"
PATIENCE = 20
EXACTLY = LIMIT - 16
"""A text of so many octets is a message of the limit: proton adds a header and the head of the body (3.3)."""


class Sender(handlers.MessagingHandler):  # type: ignore[misc]  # proton is not typed
    """Two senders and a receiver in one session: one sends one message, the other small ones before and after."""

    def __init__(self, url: str, body: str, settled: bool) -> None:
        super().__init__()
        self.url = url
        self.body = body
        self.settled = settled
        self.seen: list[str] = []
        self.received: list[int] = []
        self.advertised: list[int] = []
        self.late: Any = None

    def on_start(self, event: Any) -> None:
        self.late = event.container.schedule(PATIENCE, self)
        self.connection = event.container.connect(self.url, reconnect=False)
        options = [reactor.AtMostOnce()] if self.settled else []
        self.first = event.container.create_sender(self.connection, "large", options=options)
        self.second = event.container.create_sender(self.connection, "small")
        event.container.create_receiver(self.connection, "small")

    def on_timer_task(self, event: Any) -> None:
        self.seen.append("late")
        self.connection.close()

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_sender:
            self.advertised.append(event.link.remote_max_message_size)

    def on_sendable(self, event: Any) -> None:
        if event.link == self.first and not self.seen:
            self.seen.append("sent")
            self.second.send(proton.Message("before"))
            self.first.send(proton.Message(self.body))
            self.second.send(proton.Message("behind"))

    def on_message(self, event: Any) -> None:
        self.received.append(event.message.body)
        self.finish(event)

    def finish(self, event: Any) -> None:
        """Everything that can come in link mode has come."""
        if self.received[-1:] == ["after"]:
            self.late.cancel()
            event.connection.close()

    def on_rejected(self, event: Any) -> None:
        self.seen.append(f"rejected {event.delivery.remote.condition.name}")

    def on_settled(self, event: Any) -> None:
        if event.link == self.first:
            self.seen.append("settled")

    def on_accepted(self, event: Any) -> None:
        if event.link == self.first:
            self.seen.append("accepted")
            self.after(event)

    def on_link_error(self, event: Any) -> None:
        condition = event.link.remote_condition
        self.seen.append(f"link {condition.name}: {condition.description}")
        event.link.close()
        self.after(event)

    def after(self, event: Any) -> None:
        if not event.connection.remote_condition:
            self.second.send(proton.Message("after"))

    def on_connection_remote_close(self, event: Any) -> None:
        """The raw event: proton's own handler makes nothing of amqp:connection:forced, but waits for the disconnect."""
        condition = event.connection.remote_condition
        if condition:
            self.seen.append(f"connection {condition.name}: {condition.description}")
        self.late.cancel()
        event.connection.close()

    def on_transport_error(self, event: Any) -> None:
        self.seen.append(f"transport {event.transport.condition}")
        self.late.cancel()


@pytest.fixture(params=["connection", "link"])
def broker(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedBroker, str, str]]:
    config = {"policy": {"max_message_size": LIMIT, "on_oversize": request.param}}
    with EmbeddedBroker(config=config) as broker:
        yield broker, broker.listen().url, request.param


def run(url: str, body: str, settled: bool = False) -> Sender:
    sender = Sender(url, body, settled)
    reactor.Container(sender).run()
    return sender


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("size", [EXACTLY + 1, 110_000, 1_000_000, 5_000_000])
def test_too_large(broker: tuple[EmbeddedBroker, str, str], size: int, settled: bool) -> None:
    broker_, url, mode = broker
    sender = run(url, "x" * size, settled)
    assert sender.advertised == [LIMIT, LIMIT]
    answers = ["sent"] if settled else ["sent", f"rejected {EXCEEDED}", "settled"]
    answers.append(f"link {EXCEEDED}: Message size exceeded")
    if mode == "connection":
        answers.append("connection amqp:connection:forced: Message size exceeded")
    seen = [each for each in sender.seen if not (settled and each == "settled")]
    assert seen == answers
    assert broker_.queue("large").depth == 0
    if mode == "link":
        assert sender.received == ["before", "behind", "after"] and broker_.queue("small").depth == 0


@pytest.mark.parametrize("size", [100, EXACTLY])
def test_not_too_large(broker: tuple[EmbeddedBroker, str, str], size: int) -> None:
    broker_, url, _ = broker
    sender = run(url, "x" * size)
    assert sender.seen == ["sent", "accepted", "settled"] and sender.received == ["before", "behind", "after"]
    assert broker_.queue("large").depth == 1
