"""Temporary destinations and prefixes, frame by frame (M25, M41, M103, M104)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.client.consumer import ClientConsumer
from jmsish.client.producer import ClientProducer
from jmsish.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsish.engine.link import Link
from jmsish.engine.outcomes import AmqpError, Source, Target
from jmsish.errors import IllegalStateError, InvalidDestinationError, JMSError, ResourceAllocationError
from jmsish.modes import AcknowledgeMode
from jmsish.types import Described

from .peer import Peer


class Scene:
    """A client facing a peer that gives dynamic nodes names of its own."""

    def __init__(self, **options: Any) -> None:
        self.peer = Peer(**options)
        self.session = self.peer.session(AcknowledgeMode.AUTO)
        self.senders: list[Link] = []
        self.peer.answer_attach = self.grant

    def grant(self, link: Link) -> None:
        target = link.remote_target
        if isinstance(target, Target) and target.dynamic:
            self.senders.append(link)
            link.attach(target=Target(address=f"node-{len(self.senders)}", capabilities=target.capabilities))
        else:
            link.attach()

    def make(self, topic: bool = False) -> Destination:
        return self.peer.run(self.peer.core.temporary.create(topic))  # type: ignore[no-any-return]

    def consume(self, destination: Destination) -> ClientConsumer:
        consumer = ClientConsumer(self.session, destination, prefetch=1)
        self.peer.run(self.session.add_consumer(consumer))
        return consumer

    def sent(self, name: str) -> list[Any]:
        return [frame for frame in self.peer.frames if frame.name == name]


@pytest.mark.parametrize("topic", [False, True])
def test_m41_m103_a_temporary_destination_is_the_target_of_a_sender(topic: bool) -> None:
    """On the connection's own session: dynamic, gone with its link, of its kind; the peer's answer names it."""
    scene = Scene()
    made = scene.make(topic)
    assert made == (TemporaryTopic("node-1") if topic else TemporaryQueue("node-1"))
    (link,) = scene.senders
    target = link.remote_target
    assert isinstance(target, Target)
    kind = "temporary-topic" if topic else "temporary-queue"
    assert f"{kind}-creator" in link.name
    assert (target.address, target.dynamic, target.durable, target.expiry_policy) == (None, True, 0, "link-detach")
    assert target.capabilities == (kind,)
    policy = (target.dynamic_node_properties or {}).get("lifetime-policy")
    assert isinstance(policy, Described) and policy.descriptor == 0x2B
    scene.make(topic)
    assert len(scene.sent("begin")) == 2, "one session of the application, one that serves all of these"


def test_m103_what_the_broker_refuses_is_raised() -> None:
    """And the next one may be granted."""
    scene = Scene()
    scene.peer.answer_attach = lambda link: link.refuse(AmqpError("amqp:resource-limit-exceeded", "enough"))
    with pytest.raises(ResourceAllocationError, match="enough"):
        scene.make()
    scene.peer.answer_attach = scene.grant
    assert scene.make() == TemporaryQueue("node-1")


def test_m104_to_delete_is_to_close_that_link() -> None:
    """Once nobody of this connection consumes from it; a second time there is nothing to close."""
    scene = Scene()
    made = scene.make()
    consumer = scene.consume(made)
    with pytest.raises(IllegalStateError, match="1 consumer"):
        scene.peer.run(scene.peer.core.temporary.delete(made))
    assert not scene.sent("detach")
    scene.peer.run(consumer.close())
    for _ in range(2):
        scene.peer.run(scene.peer.core.temporary.delete(made))
    closed = [frame for frame in scene.sent("detach") if frame.channel == scene.sent("begin")[1].channel]
    assert [frame.closed for frame in closed] == [True]
    with pytest.raises(InvalidDestinationError):
        scene.consume(made)


def test_m104_the_error_on_the_close_is_raised() -> None:
    """Somebody else may use it."""
    scene = Scene()
    made = scene.make()
    scene.peer.answer_close = lambda link: AmqpError("amqp:resource-locked", "in use")
    with pytest.raises(JMSError, match="in use"):
        scene.peer.run(scene.peer.core.temporary.delete(made))


def test_a_temporary_destination_the_broker_takes_away() -> None:
    """Its link is detached: to delete it then means nothing, and the connection goes on."""
    scene = Scene()
    made = scene.make()
    scene.senders[0].detach(closed=True, error=AmqpError("amqp:resource-deleted", "by an administrator"))
    scene.peer.pump()
    scene.peer.run(scene.peer.core.temporary.delete(made))
    assert scene.make() == TemporaryQueue("node-2")


def test_the_broker_ends_the_session_that_made_it() -> None:
    """All that it made is gone, and nobody consumes from it any more; a new one is made in a new session."""
    scene = Scene()
    made = scene.make()
    scene.senders[0].session.end(AmqpError("amqp:internal-error", "oh"))
    scene.peer.pump()
    with pytest.raises(InvalidDestinationError):
        scene.consume(made)
    assert scene.make() == TemporaryQueue("node-2")
    assert len(scene.sent("begin")) == 3


def test_m25_prefixes_are_put_before_names_once() -> None:
    """Those of queues, those of topics; not before the names of temporary destinations, which the broker gave."""
    scene = Scene()
    scene.peer.core.prefixes = ("queue://", "topic://")
    made = [scene.make(), scene.make(topic=True)]
    expected = {
        Queue("q"): "queue://q",
        Topic("t"): "topic://t",
        Queue("queue://q"): "queue://q",
        Queue("topic://t"): "queue://topic://t",
        made[0]: "node-1",
        made[1]: "node-2",
    }
    for destination, address in expected.items():
        scene.consume(destination)
        source = scene.peer.links[-1].remote_source
        assert isinstance(source, Source) and source.address == address
        assert source.capabilities[0] == destination.capability
        producer = ClientProducer(scene.session, destination)
        scene.peer.run(producer.attach())
        assert producer.link is not None and isinstance(producer.link.remote_target, Target)
        assert producer.link.remote_target.address == address
        assert producer.link.remote_target.capabilities == (destination.capability,)
