"""A broker at a long job, as it is driven: the rest is called for, others are heard, and the end is heard last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from jmsish.broker import Broker
from jmsish.drivers.serving import BrokerDriver
from jmsish.engine import events
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import ACCEPTED, RELEASED, DeliveryState, Source, Target
from jmsish.engine.sasl import SaslClient
from jmsish.testing import VirtualClock
from tests.broker.world import message

from .test_turns import Sink


class Peer:
    """A client over something that is like a socket, or inside the process."""

    def __init__(self, driver: BrokerDriver, *, inside: bool) -> None:
        self.driver = driver
        self.sink = Sink()
        self.engine = Engine(server=False, container_id="peer", sasl=SaslClient())
        self.lane = driver.open(self.sink, trusted=True, resume=None if inside else self.sink.resume)
        self.connection: Any = self.lane.connection
        self.engine.open()
        self.session = self.engine.begin()
        self.arrived: list[Any] = []

    def talk(self) -> None:
        while data := self.engine.take_output():
            self.driver.feed(self.lane, data)
            self.hear()

    def hear(self) -> None:
        octets, self.sink.octets = self.sink.octets, b""
        self.engine.receive(octets)
        self.arrived += [event[2] for event in self.engine.take_events() if event[0] == events.DELIVERED]


@pytest.fixture
def broker() -> Broker:
    broker = Broker("long", clock=lambda: 1000.0)
    broker.portions.size = 2
    broker._engine_limits = replace(broker._engine_limits, most_disposed=2)
    return broker


@pytest.fixture
def driver(broker: Broker) -> Iterator[BrokerDriver]:
    driver = BrokerDriver(broker, name="long", clock=lambda: 1000.0)
    driver.keep_time_by(lambda: None)  # nobody's thread works off what the test does not
    yield driver
    driver.stop()


def holding(driver: BrokerDriver, inside: bool) -> Peer:
    """A peer that has twenty messages."""
    peer = Peer(driver, inside=inside)
    sender = peer.session.sender("to", source=Source(address="here"), target=Target(address="q"))
    receiver = peer.session.receiver("from", source=Source(address="q"), target=Target(address="there"))
    peer.talk()
    for number in range(20):
        sender.send(message(f"m{number}"), settled=True)
    receiver.flow(20)
    peer.talk()
    assert len(peer.arrived) == 20
    return peer


def say(peer: Peer, state: DeliveryState) -> None:
    for delivery in peer.arrived:
        peer.session.disposition(delivery, state, True)
    peer.driver.feed(peer.lane, peer.engine.take_output())


def work_off(driver: BrokerDriver) -> None:
    while driver.work_off() is not None or driver.due == 0.0:
        pass


@pytest.mark.parametrize("inside", [True, False])
def test_the_rest_is_called_for(broker: Broker, driver: BrokerDriver, inside: bool) -> None:
    peer = holding(driver, inside)
    say(peer, RELEASED)
    queue = broker.queue("q")
    assert 0 < queue.available < 20 and peer.connection.is_busy and driver.due == 0.0
    work_off(driver)
    assert queue.available == 20 and not peer.connection.is_busy


@pytest.mark.parametrize("inside", [True, False])
def test_who_says_something_and_leaves_is_heard_to_the_end(broker: Broker, driver: BrokerDriver, inside: bool) -> None:
    """All is acknowledged, though the socket is closed right behind that; and then its end is known."""
    peer = holding(driver, inside)
    say(peer, ACCEPTED)
    driver.feed(peer.lane, b"")
    assert not peer.connection.ended and broker.queue("q").acquired
    work_off(driver)
    assert peer.connection.ended and broker.queue("q").depth == 0 and not broker.connections()
    assert peer.lane.gone and peer.sink.ended


@pytest.mark.parametrize("inside", [True, False])
def test_the_broker_stops_in_the_middle(broker: Broker, driver: BrokerDriver, inside: bool) -> None:
    peer = holding(driver, inside)
    say(peer, ACCEPTED)
    driver.stop()
    assert broker.queue("q").depth == 0 and peer.lane.gone and not broker.portions


def test_others_are_served_meanwhile(broker: Broker, driver: BrokerDriver) -> None:
    peer = holding(driver, False)
    other = Peer(driver, inside=False)
    sender = other.session.sender("to", source=Source(address="here"), target=Target(address="r"))
    receiver = other.session.receiver("from", source=Source(address="r"), target=Target(address="there"))
    receiver.flow(5)
    other.talk()
    say(peer, RELEASED)
    sender.send(message("between"), settled=True)
    other.talk()
    assert len(other.arrived) == 1 and peer.connection.is_busy
    work_off(driver)
    assert broker.queue("q").available == 20


def test_a_clock_that_is_moved_has_done_what_was_due_when_it_returns(broker: Broker) -> None:
    clock = VirtualClock()
    broker.now = clock
    driver = BrokerDriver(broker, name="moved", clock=clock)
    peer = Peer(driver, inside=True)
    sender = peer.session.sender("to", source=Source(address="here"), target=Target(address="q"))
    peer.talk()
    for number in range(20):
        sender.send(message(f"m{number}", ttl=1000), settled=True)
    peer.talk()
    assert broker.queue("q").depth == 20
    clock.advance(2)
    assert broker.queue("q").depth == 0 and broker.queue("q").expired == 20
    driver.stop()
