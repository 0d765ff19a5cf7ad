"""A broker and a peer in one thread, joined by nothing but bytes; what the broker takes is timed apart."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from jmsish.broker.broker import Broker
from jmsish.destination import Queue
from jmsish.engine import events
from jmsish.engine.codec import MessageTemplate
from jmsish.engine.delivery import Delivery
from jmsish.engine.engine import Engine
from jmsish.engine.link import Link
from jmsish.engine.outcomes import ACCEPTED
from jmsish.engine.termini import Source, Target
from jmsish.types import Described, Symbol, ULong

TEXT = "x" * 100
SELECTOR = 0x0000468C00000004
"""The descriptor of a selector in the filters of a source."""


def payload() -> bytes:
    """A message as a JMS client sends it, 100 octets of text."""
    template = MessageTemplate(Queue("q"), id_prefix="ID:6f6a4c9e-5a0e-4b0e-9a57-0d9b2a3c1e5f:")
    return template.encode_text(TEXT, 100_001, 1_700_000_000_000)


class Peer:
    """One connection with one session. Whatever it waits for comes by `pump`."""

    def __init__(self, broker: Broker, name: str = "bench") -> None:
        self.broker = broker
        self.connection = broker.accept(trusted=True, peer=name)
        self.engine = Engine(server=False, container_id=name)
        self.seconds = 0.0
        """CPU that the broker took."""
        self.longest = 0.0
        """The most that it took in one turn."""
        self.received: deque[tuple[Link, Delivery]] = deque()
        self.engine.open()
        self.session = self.engine.begin()
        self.pump()

    def pump(self) -> None:
        """Bytes to and fro until both are silent."""
        while True:
            data = self.engine.take_output()
            before = time.thread_time()
            answer = self.brokers_turn(data)
            spent = time.thread_time() - before
            self.seconds += spent
            self.longest = max(self.longest, spent)
            if answer:
                self.engine.receive(answer)
                self.work()
            elif not data and not self.broker.unfinished:
                return

    def brokers_turn(self, data: bytes) -> bytes:
        if data:
            self.connection.receive(data)
        self.broker.step()
        return self.connection.take_output()

    def work(self) -> None:
        for event in self.engine.take_events():
            if event[0] == events.DELIVERED:
                self.received.append((event[1], event[2]))
            elif event[0] in (events.FAILED, events.CLOSED):
                raise RuntimeError(f"the broker ended the connection: {event[1]}")
            elif event[0] == events.DETACHED and event[3] is not None:
                raise RuntimeError(f"the broker detached {event[1]}: {event[3]}")

    def sender(self, queue: str) -> Link:
        source, target = Source(), Target(address=queue, capabilities=("queue",))
        link = self.session.sender(f"to-{queue}-{time.perf_counter_ns()}", source=source, target=target)
        self.pump()
        return link

    def receiver(self, queue: str, *, browsing: bool = False, selector: str | None = None) -> Link:
        wanted = None if selector is None else {Symbol("selector"): Described(ULong(SELECTOR), selector)}
        mode = "copy" if browsing else None
        source = Source(address=queue, capabilities=("queue",), distribution_mode=mode, filter=wanted)
        name = f"from-{queue}-{time.perf_counter_ns()}"
        return self.session.receiver(name, source=source, target=Target())

    def fill(self, link: Link, count: int, octets: bytes) -> None:
        """Send so many messages and hear that they are accepted."""
        while count:
            some = min(count, link.credit)
            if not some:
                raise RuntimeError("the broker gives no credit")
            for _ in range(some):
                link.send(octets)
            count -= some
            self.pump()

    def take(self, link: Link, credit: int) -> list[Delivery]:
        """So many messages, acquired and unsettled."""
        link.flow(credit)
        self.pump()
        taken = [delivery for _, delivery in self.received]
        self.received.clear()
        if len(taken) != credit:
            raise RuntimeError(f"{len(taken)} of {credit} messages came")
        return taken

    def settle(self, deliveries: list[Delivery], state: Any = ACCEPTED) -> None:
        for delivery in deliveries:
            self.session.disposition(delivery, state)
        self.pump()

    def timed(self, function: Any, *arguments: Any) -> tuple[Any, float]:
        """What the function gives, and the seconds that the broker took for it."""
        before = self.seconds
        result = function(*arguments)
        return result, self.seconds - before
