"""Subscriptions and temporary nodes that others than their owners meddle with: readers by name, tools, stolen links."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from jmsish.engine.outcomes import Source, Target
from tests.broker.pubsub import Named, attach, condition, durable, look_up, only, publisher, shared, shared_durable
from tests.broker.test_management import request
from tests.broker.world import Peer, World


def temporary(peer: Peer, name: str = "mine", *capabilities: str) -> Any:
    """The link with a temporary node of its own."""
    receiver = Named(peer, peer.session, name, {"source": Source(dynamic=True, capabilities=capabilities)})
    peer.world.run()
    receiver.flow(10)
    return receiver


@pytest.mark.parametrize("closed", [True, False])
def test_a_reader_by_name_does_not_keep_a_volatile_subscription_for_ever(world: World, closed: bool) -> None:
    """It goes with its last link; who still reads its queue by name reads to the end, and then it goes."""
    peer, stranger = world.connect(), world.connect()
    subscriber = shared(peer)
    reader = stranger.receiver(only(world).queue, credit=1)
    subscriber.detach(closed=closed)
    assert only(world).consumers == 1
    reader.detach()
    assert world.broker.subscriptions() == [] and world.broker.queues() == []


def test_a_reader_by_name_ends_no_durable_subscription(world: World) -> None:
    peer = world.connect("client")
    for make in (durable, shared_durable):
        make(peer, make.__name__).detach(closed=False)
    for view in world.broker.subscriptions():
        peer.receiver(view.queue, credit=1).detach(closed=True)
    assert len(world.broker.subscriptions()) == 2


@pytest.mark.parametrize("copy", [True, False])
def test_who_looks_in_meanwhile_does_not_lengthen_the_life_of_what_waits_for_its_reader(
    world: World, copy: bool
) -> None:
    peer = world.connect()
    options: dict[str, Any] = {"capabilities": ("topic",), "expiry_policy": "link-detach", "timeout": 10}
    attach(peer, "sub", address="news", **options).detach(closed=False)
    world.advance(6)
    peer.receiver(only(world).queue, distribution_mode="copy" if copy else None, credit=1).detach()
    world.advance(5)
    assert world.broker.subscriptions() == []


def test_a_stolen_question_does_not_unsubscribe(world: World) -> None:
    """The link is attached anew, in another session and to read: nobody closed the one that had asked."""
    peer = world.connect("client")
    durable(peer, credit=0).detach(closed=False)
    publisher(peer).send("m1")
    question, session = look_up(peer), peer.begin()
    peer.engine.link_names.clear()  # what keeps our own engine from doing it
    reader = durable(peer, session=session)
    assert condition(question) == "amqp:link:stolen" and reader.receive() == ["m1"]


@pytest.mark.parametrize("kind", ["temporary-queue", "temporary-topic"])
def test_a_temporary_node_that_was_deleted_is_not_given_again(world: World, kind: str) -> None:
    """A tool deleted it, its link heard so; the next link of that name gets another one, that works."""
    peer = world.connect()
    first = temporary(peer, "mine", kind)
    address = first.link.remote_source.address
    (world.broker.delete_queue if kind == "temporary-queue" else world.broker.delete_exchange)(address)
    world.broker.step()
    world.run()
    assert condition(first) == "amqp:resource-deleted"
    second = temporary(peer, "mine", kind)
    assert second.link.remote_source.address != address
    peer.sender(target=Target(address=second.link.remote_source.address, capabilities=(kind,))).send("m1")
    assert second.receive() == ["m1"]


def test_the_management_node_is_not_made_on_demand(world: World) -> None:
    """3.5.3: a dynamic source has no address."""
    peer = world.connect()
    assert condition(attach(peer, address="$management", dynamic=True)) == "amqp:invalid-field"
    assert condition(peer.sender(target=Target(address="$management", dynamic=True))) == "amqp:invalid-field"
    assert world.broker.queues() == []


def test_answers_find_their_queue_once_the_link_that_had_their_address_is_gone(world: World) -> None:
    """And nothing is kept of the links that took answers, nor of their connections."""
    peer = world.connect()
    world.broker.declare_queue("back")
    answers = attach(peer, "answers", address="$management", link={"target": Target(address="back")})
    sender = peer.sender("$management")
    sender.transfer(request("GET-TYPES", "org.amqp.management"))
    world.run()
    assert len(answers.take()) == 1 and world.depth("back") == (0, 0)
    answers.detach()
    sender.transfer(request("GET-TYPES", "org.amqp.management"))
    world.run()
    assert world.depth("back") == (1, 0)
    gone = weakref.ref(peer.connection)
    peer.close()
    world.peers.clear()
    world.broker.step()
    del peer, answers, sender
    gc.collect()
    assert gone() is None
