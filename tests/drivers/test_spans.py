"""Spans: two brokers of one process joined in memory."""

from __future__ import annotations

import threading

import pytest

from jmsish.drivers.serving import BrokerDriver
from jmsish.drivers.spans import connect_drivers

from .conftest import PATIENCE
from .toy import ToyBroker, ToyConnection


class Asker(ToyConnection):
    """Asks the other end for so many lines, and counts what comes."""

    def __init__(self, broker: ToyBroker, count: int, size: int) -> None:
        super().__init__(broker, True, None, "vm://far")
        self.left = count * size
        self.has_all = threading.Event()
        broker.connections.append(self)
        self.say(b"flood %d %d" % (count, size))

    def receive(self, data: bytes) -> None:
        self.left -= len(data.removeprefix(b"hello\n"))
        if not self.left:
            self.has_all.set()


@pytest.mark.parametrize("size", [10, 10_000])
def test_all_of_a_large_answer_comes(size: int) -> None:
    """One broker gives more in one go than a connection may hold, and waits until the other has taken it."""
    near_core = ToyBroker()
    near = BrokerDriver(near_core, name="near", clock=near_core.clock)
    far = BrokerDriver(ToyBroker(), name="far", clock=lambda: 0.0)
    asker = Asker(near_core, 3000, size)
    connect_drivers(near, lambda: asker, far)
    assert asker.has_all.wait(PATIENCE)
    near.stop()
    far.stop()
