"""Clients of a real network, through the public API: what is sent, and what is heard of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Any

import jmsish
from jmsish.broker.network.reach import ADDRESS
from jmsish.testing import RouterNetwork

PATIENCE = 30.0
EXCEEDED = "amqp:link:message-size-exceeded"


class Client:
    """A connection to one router, a session on it, and what the connection has heard."""

    def __init__(self, url: str, **options: Any) -> None:
        self.connection = jmsish.connect(url, **options)
        self.session = self.connection.create_session()
        self.losses: list[Any] = []
        self._heard = Condition()
        self.connection.exception_listener = self._lost
        self.connection.start()

    def _lost(self, error: Any) -> None:
        with self._heard:
            self.losses.append(error)
            self._heard.notify_all()

    def forced(self) -> Any:
        """Why the connection was closed by its router, when it is; the closed link is told apart."""
        with self._heard:
            assert self._heard.wait_for(self._forced, PATIENCE), f"the connection is there still: {self.losses}"
            return self._forced()[0]

    def _forced(self) -> list[Any]:
        return [each for each in self.losses if each.condition == "amqp:connection:forced"]

    def destination(self, address: str) -> Any:
        return self.session.create_queue(address)

    def consumer(self, address: str) -> Any:
        return self.session.create_consumer(self.destination(address))

    def producer(self, address: str | None) -> Producer:
        return Producer(self, None if address is None else self.destination(address))

    def close(self) -> None:
        self.connection.close()


class Producer:
    """Sends without waiting, and collects what becomes of each message; it does not look at limits."""

    def __init__(self, client: Client, destination: Any) -> None:
        self.raw = client.session.create_producer(destination)
        self.limit = self.raw.max_message_size
        if destination is not None:
            self.raw._core.link.remote_max_message_size = 0
        self.outcomes: list[Any] = []
        self.sent = 0
        self._heard = Condition()

    def _completed(self, message: Any, error: Any) -> None:
        with self._heard:
            self.outcomes.append(error)
            self._heard.notify_all()

    def send(self, *bodies: str, **how: Any) -> None:
        """Send what can be sent; a lost connection ends it."""
        for body in bodies:
            try:
                self.raw.send(body, on_completion=self._completed, **how)
            except jmsish.JMSError as error:
                assert not isinstance(error, jmsish.OperationTimeoutError)
                self._completed(None, error)
            self.sent += 1

    def heard(self, count: int | None = None) -> list[Any]:
        """What became of all (or so many) that were sent: an error for each, None for accepted."""
        wanted = self.sent if count is None else count
        with self._heard:
            enough = self._heard.wait_for(lambda: len(self.outcomes) >= wanted, PATIENCE)
            assert enough, f"heard of {len(self.outcomes)} of {wanted}"
            return list(self.outcomes)


def too_large(outcomes: list[Any]) -> list[Any]:
    """Those that were rejected for their size."""
    return [each for each in outcomes if getattr(each, "condition", None) == EXCEEDED]


def received(consumer: Any, count: int) -> list[str]:
    """The bodies of so many messages, and that there is no other."""
    bodies = []
    for _ in range(count):
        message = consumer.receive(PATIENCE)
        assert message is not None, f"got {len(bodies)} of {count}"
        bodies.append(message.body)
    assert consumer.receive_no_wait() is None
    return bodies


def wait_until_all_know_of_all(network: RouterNetwork, address: str) -> None:
    """Until each router knows of receivers behind each of its neighbours: a router that has one of its own reaches the
    address before it has heard of others."""
    for router in network:
        count, reach = len(router.router.neighbours), router.router._node.reach

        def all_ways(reach: Any = reach, count: int = count) -> bool:
            return len(list(reach.ways(ADDRESS + address))) == count

        router.router._wait_until(all_ways, f"receivers of {address!r} behind all its neighbours", PATIENCE)


@contextmanager
def clients(network: RouterNetwork, *names: str) -> Iterator[list[Client]]:
    """One client at each of these routers, closed in the end."""
    made: list[Client] = []
    try:
        for name in names:
            made.append(Client(network[name].url))
        yield made
    finally:
        for client in made:
            client.close()
