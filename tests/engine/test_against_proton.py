"""The engine against another one: Qpid Proton's, in memory, in both roles.

Proton lays out its frames differently (small ids, fields left out), so this is also a test of the general way to read
them, by frames that were not written here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jmsish.engine import events
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, AmqpError, Rejected, Source, Target
from jmsish.engine.sasl import SaslClient, SaslServer

pytestmark = pytest.mark.interop
proton: Any = pytest.importorskip("proton", reason="python-qpid-proton is not installed (extra `peers`)")


class Joined:
    """One of our engines and one of proton's, joined in memory."""

    def __init__(self, ours_is_server: bool, max_frame_size: int = 1 << 16, sasl: bool = False) -> None:
        ours: Any = None
        self.transport = proton.Transport(proton.Transport.CLIENT if ours_is_server else proton.Transport.SERVER)
        self.transport.max_frame_size = max_frame_size
        self.connection = proton.Connection()
        self.connection.container = "proton"
        self.connection.hostname = "h"
        self.collector = proton.Collector()
        self.connection.collect(self.collector)
        if sasl and ours_is_server:
            ours = SaslServer(["ANONYMOUS"], lambda mechanism, username, password: "anybody")
            self.transport.sasl().allowed_mechs("ANONYMOUS")
        elif sasl:
            ours = SaslClient()
            self.transport.sasl().allowed_mechs("ANONYMOUS")
        self.transport.bind(self.connection)
        self.engine = Engine(server=ours_is_server, container_id="ours", max_frame_size=max_frame_size, sasl=ours)

    def events(self) -> Iterator[Any]:
        """Proton's events so far."""
        while (event := self.collector.peek()) is not None:
            yield event
            self.collector.pop()

    def pump(self) -> None:
        for _ in range(100_000):
            moved = False
            octets = self.engine.take_output()
            moved = moved or bool(octets)
            while octets:
                room = self.transport.capacity()
                assert room > 0, "proton has closed its input"
                self.transport.push(octets[:room])
                octets = octets[room:]
            pending = self.transport.pending()
            if pending > 0:
                moved = True
                self.engine.receive(bytes(self.transport.peek(pending)))
                self.transport.pop(pending)
            if not moved:
                return
        raise AssertionError("never silent")

    def opened(self) -> Any:
        """Both connections open, and a session on each side that is the same."""
        self.connection.open()
        self.engine.open()
        session = self.connection.session()
        session.open()
        self.pump()
        ours = next(event[1] for event in self.engine.take_events() if event[0] == events.BEGUN)
        ours.accept_begin()
        self.pump()
        self.session = session
        return ours


@pytest.fixture(params=[True, False], ids=["we serve", "we connect"])
def joined(request: pytest.FixtureRequest) -> Iterator[Joined]:
    world = Joined(request.param)
    yield world
    assert world.engine.error is None
    world.engine.close()
    world.connection.close()
    world.pump()
    assert world.engine.closed and world.connection.remote_condition is None


@pytest.mark.parametrize("ours_is_server", [True, False])
def test_sasl_and_open(ours_is_server: bool) -> None:
    world = Joined(ours_is_server, sasl=True)
    world.connection.open()
    world.engine.open()
    world.pump()
    found = [event[0] for event in world.engine.take_events()]
    assert found == ([events.AUTHENTICATED] if ours_is_server else []) + [events.OPENED]
    assert world.engine.remote is not None and world.engine.remote.container_id == "proton"
    assert world.connection.remote_container == "ours"


def receiver_from_proton(world: Joined, ours: Any) -> tuple[Any, Any]:
    sender = world.session.sender("to-us")
    sender.target.address = "q"
    sender.open()
    world.pump()
    [(kind, link)] = world.engine.take_events()
    assert kind == events.ATTACHED and link.remote_target.address == "q"
    link.attach()
    link.flow(1000)
    world.pump()
    return sender, link


@pytest.mark.parametrize("size", [0, 10, 245, 300_000])
def test_receiving(joined: Joined, size: int) -> None:
    ours = joined.opened()
    sender, link = receiver_from_proton(joined, ours)
    deliveries = []
    for number in range(300):
        delivery = sender.delivery(f"tag-{number}")
        sender.stream(b"x" * size if number < 10 else b"%d" % number)
        sender.advance()
        deliveries.append(delivery)
    joined.pump()
    received = [event[2] for event in joined.engine.take_events()]
    assert len(received) == 300 and received[0].payload == b"x" * size and received[299].payload == b"299"
    assert [delivery.tag for delivery in received] == [b"tag-%d" % number for number in range(300)]
    for number, delivery in enumerate(received):
        outcome = (ACCEPTED, MODIFIED_FAILED, Rejected(AmqpError("a:b", "so")))[number // 100]
        ours.disposition(delivery, outcome)
    joined.pump()
    assert all(delivery.settled for delivery in deliveries)
    states = [deliveries[number].remote_state for number in (0, 100, 200)]
    assert states == [proton.Delivery.ACCEPTED, proton.Delivery.MODIFIED, proton.Delivery.REJECTED]
    assert deliveries[299].remote.condition.name == "a:b"
    assert link.credit == 700 and not ours.incoming


@pytest.mark.parametrize("size", [0, 10, 245, 300_000])
def test_sending(joined: Joined, size: int) -> None:
    ours = joined.opened()
    link = ours.sender("to-them", source=Source(address="q"), target=Target(address="q"))
    joined.pump()
    receiver = joined.session.connection.link_head(proton.Endpoint.REMOTE_ACTIVE)
    receiver.open()
    receiver.flow(400)
    joined.pump()
    joined.engine.take_events()
    sent = [link.send(b"y" * size if number < 10 else b"%d" % number) for number in range(300)]
    joined.pump()
    bodies = []
    for number in range(300):
        delivery = receiver.current
        assert not delivery.partial
        bodies.append(receiver.recv(1 << 20) or b"")
        receiver.advance()
        delivery.update(proton.Delivery.ACCEPTED if number < 200 else proton.Delivery.RELEASED)
        delivery.settle()
    assert bodies == [b"y" * size if number < 10 else b"%d" % number for number in range(300)]
    joined.pump()
    assert all(delivery.remote_settled for delivery in sent) and not ours.outgoing
    assert sent[0].remote_state is ACCEPTED and sent[299].remote_state is not ACCEPTED
    assert link.credit == 100


def test_drain_both_ways(joined: Joined) -> None:
    ours = joined.opened()
    sender, link = receiver_from_proton(joined, ours)
    link.flow(10, drain=True)
    joined.pump()
    sender.drained()
    joined.pump()
    assert link.credit == 0

    out = ours.sender("out", source=Source(address="q"), target=Target(address="q"))
    joined.pump()
    for remote in [joined.session.connection.link_head(proton.Endpoint.LOCAL_UNINIT)]:
        remote.open()
        remote.drain(7)
    joined.pump()
    assert out.credit == 7 and out.drain
    out.send(b"one")
    out.drained()
    joined.pump()
    assert remote.draining() is False and remote.credit == 1 and out.credit == 0


def test_detach_end_and_errors(joined: Joined) -> None:
    ours = joined.opened()
    sender, link = receiver_from_proton(joined, ours)
    link.detach(error=AmqpError("amqp:link:message-size-exceeded", "too large", {"limit": 5}))
    joined.pump()
    assert sender.remote_condition.name == "amqp:link:message-size-exceeded"
    sender.close()
    joined.pump()
    assert [event[0] for event in joined.engine.take_events()] == [events.DETACHED]
    joined.session.close()
    joined.pump()
    assert [event[0] for event in joined.engine.take_events()] == [events.ENDED]
    ours.end()
    joined.pump()
    assert not joined.engine.sessions


def test_many_small_messages_past_both_windows(joined: Joined) -> None:
    ours = joined.opened()
    sender, link = receiver_from_proton(joined, ours)
    total = 0
    for _ in range(12):
        sent = []
        for number in range(500):
            sent.append(sender.delivery(str(number)))
            sender.stream(b"m" * 100)
            sender.advance()
        joined.pump()
        for event in joined.engine.take_events():
            if event[0] == events.DELIVERED:
                total += 1
                ours.disposition(event[2], ACCEPTED)
        link.flow(1000)
        joined.pump()
        assert all(delivery.remote_state == proton.Delivery.ACCEPTED for delivery in sent)
        for delivery in sent:
            delivery.settle()
    assert total == 6000
