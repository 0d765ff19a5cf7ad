"""Limits of a queue: reject, drop the oldest, hold the producers back."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, Rejected
from jmsish.engine.values import (
    NULL,
    encode_described,
    encode_long,
    encode_map,
    encode_string,
    encode_symbol,
)
from tests.broker.test_management import request
from tests.broker.world import World, message, properties


def test_reject(world: World) -> None:
    world.broker.declare_queue("q", max_messages=2)
    peer = world.connect()
    answers = peer.sender().send("m1", "m2", "m3")
    assert answers[:2] == [[ACCEPTED], [ACCEPTED]]
    ((outcome,),) = answers[2:]
    assert isinstance(outcome, Rejected) and outcome.error is not None
    assert outcome.error.condition == "amqp:resource-limit-exceeded"
    assert outcome.error.description == "the queue 'q' is full: 2 messages and 1 more, at most 2"
    receiver = peer.receiver(credit=1)
    receiver.accept(receiver.take())
    assert peer.sender().send("m3") == [[ACCEPTED]]
    assert world.bodies() == ["m2", "m3"]


def test_reject_by_octets(world: World) -> None:
    world.broker.declare_queue("q", max_octets=2 * len(message("m1")))
    answers = world.connect().sender().send("m1", "m2", "m3")
    assert [type(answer) for (answer,) in answers] == [type(ACCEPTED), type(ACCEPTED), Rejected]


def test_a_settled_message_that_finds_no_room_ends_the_link(world: World) -> None:
    world.broker.declare_queue("q", max_messages=1)
    sender = world.connect().sender()
    sender.send("m1", "m2", settled=True)
    assert sender.detached and sender.error is not None
    assert sender.error.condition == "amqp:resource-limit-exceeded"


def test_drop_head(world: World) -> None:
    world.broker.declare_queue("q", max_messages=2, overflow="drop-head")
    peer = world.connect()
    peer.sender().send("m1", "m2", "m3")
    assert world.bodies() == ["m2", "m3"] and world.queue().dropped == 1
    peer.receiver(credit=2)
    peer.sender().send("m4", "m5", ttl=1000)
    assert world.queue().acquired == 2 and world.queue().available == 0


def test_block_holds_the_producers_back(world: World) -> None:
    world.broker.declare_queue("q", max_messages=10, overflow="block")
    peer = world.connect()
    sender = peer.sender()
    assert sender.link.credit == 10
    sender.send(*map(str, range(10)))
    assert sender.link.credit == 0 and world.queue().depth == 10
    late = world.connect().sender()
    assert late.link.credit == 0
    receiver = peer.receiver(credit=3)
    receiver.accept(receiver.take())
    assert sender.link.credit > 0 and late.link.credit > 0
    late.detach()
    assert late.send is not None and not peer.ended


def test_block_by_octets(world: World) -> None:
    world.broker.declare_queue("q", max_octets=1, overflow="block")
    peer = world.connect()
    sender = peer.sender()
    assert 0 < sender.link.credit <= 10
    sender.send(*map(str, range(sender.link.credit)))
    assert sender.link.credit == 0
    world.queue().purge()
    world.run()
    assert sender.link.credit > 0


def test_purge_leaves_what_is_held(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", "m2", "m3")
    receiver = peer.receiver(credit=1)
    assert world.queue().purge() == 2
    assert world.depth() == (0, 1)
    receiver.accept(receiver.take())
    assert world.queue().depth == 0 and world.queue().octets == 0


def test_settings_declared_later_hold_from_then_on(world: World) -> None:
    world.connect().sender().send("m1", "m2")
    assert world.broker.declare_queue("q", max_messages=2).settings.max_messages == 2
    ((outcome,),) = world.connect().sender().send("m3")
    assert isinstance(outcome, Rejected)


def test_drop_head_drops_what_is_least_urgent_first(world: World) -> None:
    world.broker.declare_queue("q", max_messages=2, overflow="drop-head")
    sender = world.connect().sender()
    sender.send("old", "old2")
    sender.send("urgent", priority=9)
    assert world.bodies() == ["urgent", "old2"]
    sender.send("urgent2", priority=9)
    sender.send("trifle", priority=1)
    assert world.bodies() == ["urgent", "urgent2"] and world.queue().dropped == 3


def test_drop_head_counts_what_waits_for_its_time(world: World) -> None:
    """Delayed messages fill a queue as others do: the limit holds, and what comes now is not what goes."""
    world.broker.declare_queue("q", max_messages=3, overflow="drop-head")
    sender = world.connect().sender()
    delayed = [encode_described(0x72, encode_map([encode_symbol("x-opt-delivery-delay"), encode_long(ms)]))
               for ms in range(1000, 6000, 1000)]  # fmt: skip
    for number, delay in enumerate(delayed):
        sender.send(f"late{number}", annotations=delay)
    assert (world.queue().depth, world.queue().dropped, world.bodies()) == (3, 2, [])
    sender.send("now")
    assert (world.queue().depth, world.bodies()) == (3, ["now"])
    world.advance(6)
    assert world.bodies() == ["now", "late3", "late4"]
    assert world.queue().octets == sum(map(len, world.queue("q").payloads()))


def test_drop_head_drops_what_is_to_be_redelivered(world: World) -> None:
    world.broker.declare_queue("q", max_messages=1, overflow="drop-head", redelivery_delay=10)
    peer = world.connect()
    sender, receiver = peer.sender(), peer.receiver(credit=1)
    sender.send("m1", properties=properties(*[NULL] * 10, encode_string("group")))
    receiver.dispose(receiver.take(), MODIFIED_FAILED)
    sender.send("m2", properties=properties(*[NULL] * 10, encode_string("group")))
    assert (world.queue().depth, world.queue().dropped) == (1, 1)
    assert receiver.receive(1) == ["m2"] and world.depth() == (0, 1)
    world.advance(11)
    assert world.depth() == (0, 1)


@pytest.mark.parametrize("settings", [{"max_messages": 20, "overflow": "block"}, {}, {"overflow": "drop-head"}])
def test_producers_that_were_held_back_go_on_when_the_limit_is_raised(world: World, settings: dict[str, Any]) -> None:
    world.broker.declare_queue("q", max_messages=10, overflow="block")
    sender = world.connect().sender()
    sender.send(*map(str, range(10)))
    assert sender.link.credit == 0
    world.broker.declare_queue("q", **settings)
    world.run()
    assert sender.link.credit >= 10


def test_one_peer_floods_the_node_with_few_requests_at_a_time(world: World) -> None:
    sender = world.connect().sender("$management")
    assert sender.link.credit == 10
    for _ in range(25):
        sender.transfer(request("QUERY", "org.amqp.management"))
        world.run()
    assert 5 < sender.link.credit <= 10
