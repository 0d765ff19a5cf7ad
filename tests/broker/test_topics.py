"""Topics: a message goes to every subscription that wants it, one copy each, all or none."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED, Source, Target
from tests.broker.world import Peer, Receiver, Sender, World


def subscriber(peer: Peer, topic: str = "news", **options: Any) -> Receiver:
    """A non-durable subscription, as a JMS client asks for one (M45, M55)."""
    source = Source(address=topic, expiry_policy="link-detach", capabilities=("topic",))
    return peer.receiver(source=source, credit=100, **options)


def publisher(peer: Peer, topic: str = "news", **options: Any) -> Sender:
    return peer.sender(target=Target(address=topic, capabilities=("topic",)), **options)


def test_each_subscriber_gets_each_message_once(world: World) -> None:
    peer = world.connect()
    first, second, other = subscriber(peer), subscriber(world.connect()), subscriber(peer, "weather")
    answers = publisher(peer).send("m1", "m2")
    assert answers == [[ACCEPTED], [ACCEPTED]]
    assert first.receive() == second.receive() == ["m1", "m2"]
    assert other.receive() == []


def test_what_nobody_subscribes_to_is_accepted_and_discarded(world: World) -> None:
    peer = world.connect()
    assert publisher(peer).send("m1") == [[ACCEPTED]]
    assert subscriber(peer).receive() == []
    assert world.broker.queues()[0].depth == 0
    exchange = world.broker.exchange("amq.topic")
    assert (exchange.received, exchange.routed, exchange.dropped) == (1, 0, 1)


def test_rule_123_a_non_durable_subscription_dies_with_its_consumer(world: World) -> None:
    peer = world.connect()
    receiver = subscriber(peer)
    (view,) = world.broker.subscriptions()
    assert (view.topic, view.durable, view.shared, view.consumers) == ("news", False, False, 1)
    receiver.detach()
    assert world.broker.subscriptions() == [] and world.broker.queues() == []
    assert world.broker.exchange("amq.topic").bindings() == []


@pytest.mark.parametrize("capability", ["topic", "temporary-topic"])
def test_m45_the_capability_of_a_topic_is_echoed(world: World, capability: str) -> None:
    peer = world.connect()
    dynamic = capability == "temporary-topic"
    address = None if dynamic else "news"
    receiver = peer.receiver(source=Source(address=address, dynamic=dynamic, capabilities=(capability,)))
    sender = peer.sender(target=Target(address=address, dynamic=dynamic, capabilities=(capability,)))
    for end, terminus in ((receiver, receiver.link.remote_source), (sender, sender.link.remote_target)):
        assert not end.detached and terminus.capabilities == (capability,)
        assert terminus.address == address or (dynamic and terminus.address.startswith("jmsish.temporary."))
