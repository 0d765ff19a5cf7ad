"""Routers are killed and revived at random while messages are on their way: each message is accounted for."""

from __future__ import annotations

from random import Random
from threading import Event, Semaphore, Thread
from typing import Any

import pytest

import jmsish
from jmsish.testing import RouterNetwork
from tests.network.clients import PATIENCE

LINE = "EA1-INT.A-INT.B-EB1"
HEALS_WITHIN = PATIENCE
"""Seconds. (That it is two at most, by the clock of the network, says `test_doors`.)"""


class Sending(Thread):
    """Sends to one address as long as it is told to, by one connection after the other, and knows what became of it."""

    def __init__(self, network: RouterNetwork, at: str) -> None:
        super().__init__(name=f"sending at {at}", daemon=True)
        self.network = network
        self.at = at
        self.stopped = Event()
        self.outcomes: dict[str, list[Any]] = {}
        """By body: what was told of it, an error or None for accepted."""
        self.failure: BaseException | None = None

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                self.send_all()
            except jmsish.JMSError:
                self.stopped.wait(0.01)  # the router is down
            except BaseException as error:
                self.failure = error
                return

    def send_all(self) -> None:
        with jmsish.connect(self.network[self.at].url, connect_timeout=2, send_timeout=0.5) as connection:
            session = connection.create_session()
            producer = session.create_producer(session.create_queue("orders"))
            while not self.stopped.is_set():
                body = f"{self.at}-{len(self.outcomes)}" + "x" * (30_000 * (len(self.outcomes) % 5 == 0))
                told = self.outcomes[body] = []
                try:
                    producer.send(body, on_completion=lambda message, error, told=told: told.append(error))
                except jmsish.JMSError as error:
                    told.append(error)
                    raise
                self.stopped.wait(0.0005)


class Receiving(Thread):
    """Receives from that address, and accepts what it has received."""

    def __init__(self, network: RouterNetwork, at: str, progress: Semaphore) -> None:
        super().__init__(name=f"receiving at {at}", daemon=True)
        self.network = network
        self.at = at
        self.stopped = Event()
        self.received: list[str] = []
        self.progress = progress

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                self.receive_all()
            except jmsish.JMSError:
                self.stopped.wait(0.01)

    def receive_all(self) -> None:
        with jmsish.connect(self.network[self.at].url, connect_timeout=2, close_timeout=2) as connection:
            session = connection.create_session(acknowledge_mode=jmsish.AcknowledgeMode.INDIVIDUAL)
            consumer = session.create_consumer(session.create_queue("orders"))
            connection.start()
            while not self.stopped.is_set():
                message = consumer.receive(0.1)
                if message is not None:
                    self.received.append(message.body)  # before it is accepted: accepted means received
                    self.progress.release()
                    message.acknowledge()


def play(transport: str, seed: int, kills: int, heals_within: float = HEALS_WITHIN) -> None:
    """So many routers die, and after each the network is whole again, as soon as the machine allows."""
    random, progress = Random(seed), Semaphore(0)
    with RouterNetwork(LINE, transport=transport) as network:
        sending = [Sending(network, at) for at in ("EA1", "INT.B")]
        receiving = [Receiving(network, at, progress) for at in ("EB1", "INT.A")]
        for thread in (*receiving, *sending):
            thread.start()
        for _ in range(kills):
            for _ in range(random.randint(1, 60)):
                assert progress.acquire(timeout=PATIENCE), "nothing comes through"
            name = random.choice(list(network.routers))
            network.kill(name)
            network.revive(name)
            network.wait(heals_within)
        for thread in sending:
            thread.stopped.set()
        for thread in sending:
            thread.join(PATIENCE)
            assert not thread.is_alive() and thread.failure is None, thread.failure
        for thread in receiving:
            thread.stopped.set()
        for thread in receiving:
            thread.join(PATIENCE)
            assert not thread.is_alive()
    check(sending, receiving)


def check(sending: list[Sending], receiving: list[Receiving]) -> None:
    received = {body for thread in receiving for body in thread.received}
    outcomes = {body: told for thread in sending for body, told in thread.outcomes.items()}
    assert received <= set(outcomes)
    accepted = {body for body, told in outcomes.items() if None in told}
    assert accepted, "nothing came through at all"
    lost = accepted - received
    assert not lost, f"{len(lost)} were accepted, and nobody received them"
    odd = {body[:20]: told for body, told in outcomes.items() if len(told) != 1}
    assert not odd, f"not heard of once: {odd}"


@pytest.mark.parametrize("transport", ["vm", "tcp"])
def test_routers_that_die_at_random_lose_nothing_silently(transport: str) -> None:
    play(transport, seed=9, kills=6)
