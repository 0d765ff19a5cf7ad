"""Routers are killed and revived at random while programs work in transactions at a broker behind them.

What was committed is at the broker, or was received, once; what was not is nowhere. A commit whose answer was lost may
have come to be, and then all of it.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from threading import Event, Semaphore, Thread

import pytest

import jmsish
from jmsish import EmbeddedBroker
from jmsish.testing import RouterNetwork
from tests.network.clients import PATIENCE
from tests.network.test_chaos import HEALS_WITHIN, LINE

TOGETHER = 3
"""Messages of one transaction."""


class Working(Thread):
    """Connects, works in a transacted session until that fails, and begins again, for as long as it is told to."""

    def __init__(self, network: RouterNetwork, at: str) -> None:
        super().__init__(name=f"{type(self).__name__} at {at}", daemon=True)
        self.network = network
        self.at = at
        self.stopped = Event()
        self.failure: BaseException | None = None
        self.sure: list[list[str]] = []
        """What was committed."""
        self.maybe: list[list[str]] = []
        """What may have been."""

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                with jmsish.connect(self.network[self.at].url, connect_timeout=2, close_timeout=2) as connection:
                    connection.start()
                    self.work(connection.create_session(transacted=True))
            except jmsish.JMSError:
                self.stopped.wait(0.01)
            except BaseException as error:
                self.failure = error
                return

    def work(self, session: jmsish.Session) -> None:
        raise NotImplementedError

    def commit(self, session: jmsish.Session, bodies: list[str]) -> None:
        try:
            session.commit()
        except jmsish.TransactionInDoubtError:
            self.maybe.append(bodies)
            raise
        self.sure.append(bodies)


class Sending(Working):
    """Sends a few messages in each transaction."""

    number = 0

    def work(self, session: jmsish.Session) -> None:
        producer = session.create_producer(session.create_queue("work.q"))
        while not self.stopped.is_set():
            self.number += 1
            bodies = [f"{self.at}-{self.number}-{index}" for index in range(TOGETHER)]
            for body in bodies:
                producer.send(body)
            self.commit(session, bodies)


class Receiving(Working):
    """Receives a few messages in each transaction."""

    def __init__(self, network: RouterNetwork, at: str, progress: Semaphore) -> None:
        super().__init__(network, at)
        self.progress = progress

    def work(self, session: jmsish.Session) -> None:
        consumer = session.create_consumer(session.create_queue("work.q"))
        while not self.stopped.is_set():
            bodies: list[str] = []
            while len(bodies) < TOGETHER and not self.stopped.is_set():
                message = consumer.receive(0.1)
                if message is not None:
                    bodies.append(message.body)
            self.commit(session, bodies)
            self.progress.release()


def play(transport: str, seed: int, kills: int, heals_within: float = HEALS_WITHIN) -> None:
    random, progress = Random(seed), Semaphore(0)
    with EmbeddedBroker() as broker:
        url = broker.url if transport == "vm" else broker.listen().url
        with RouterNetwork(LINE, transport=transport, routes={"work.": ("INT.B", url)}) as network:
            sending = [Sending(network, at) for at in ("EA1", "INT.A")]
            receiving = [Receiving(network, at, progress) for at in ("EB1", "INT.A")]
            for thread in (*sending, *receiving):
                thread.start()
            for _ in range(kills):
                for _ in range(random.randint(1, 20)):
                    assert progress.acquire(timeout=PATIENCE), "nothing comes through"
                name = random.choice(list(network.routers))
                network.kill(name)
                network.revive(name)
                network.wait(heals_within)
            for thread in (*sending, *receiving):
                thread.stopped.set()
            for thread in (*sending, *receiving):
                thread.join(PATIENCE)
                assert not thread.is_alive() and thread.failure is None, thread.failure
        with jmsish.connect(broker.url) as connection:
            session = connection.create_session()
            consumer = session.create_consumer(session.create_queue("work.q"))
            connection.start()
            left = []
            while (message := consumer.receive_no_wait()) is not None:
                left.append(message.body)
    check(sending, receiving, left)


def check(sending: list[Sending], receiving: list[Receiving], left: list[str]) -> None:
    sent = {body for thread in sending for bodies in thread.sure for body in bodies}
    sent_maybe = [bodies for thread in sending for bodies in thread.maybe]
    received = Counter(body for thread in receiving for bodies in thread.sure for body in bodies)
    received_maybe = {body for thread in receiving for bodies in thread.maybe for body in bodies}
    there = received + Counter(left)
    assert sent and received
    assert set(there.values()) == {1}, f"more than once: {[body for body, times in there.items() if times > 1][:5]}"
    lost = sent - set(there) - received_maybe
    assert not lost, f"{len(lost)} were committed, and are nowhere"
    odd = set(there) - sent - {body for bodies in sent_maybe for body in bodies}
    assert not odd, f"{len(odd)} were never committed, and are there"
    for bodies in sent_maybe:
        if not received_maybe & set(bodies):
            assert len({body in there for body in bodies}) == 1, f"committed in part: {bodies}"


@pytest.mark.parametrize("transport", ["vm", "tcp"])
def test_transactions_at_a_broker_behind_routers_that_die(transport: str) -> None:
    play(transport, seed=9, kills=5)
