"""Time to live, expiry addresses, delayed delivery: by a clock that is moved by hand."""

from __future__ import annotations

import gc

import pytest

from jmsish.broker.queues import Queue
from jmsish.engine.codec import ReceivedMessage, split_header
from jmsish.engine.outcomes import MODIFIED_FAILED, RELEASED, Rejected
from jmsish.engine.values import (
    NULL,
    encode,
    encode_described,
    encode_long,
    encode_map,
    encode_symbol,
    encode_timestamp,
)
from tests.broker.pubsub import attach
from tests.broker.world import SETTLED, World, in_transaction, properties


def _expiring_at(world: World, seconds: float) -> bytes:
    return properties(*[NULL] * 8, encode_timestamp(round((world.clock.now + seconds) * 1000)))


def test_a_message_expires_by_its_ttl(world: World) -> None:
    peer = world.connect()
    peer.sender().send("short", ttl=1000)
    peer.sender().send("long", ttl=5000)
    peer.sender().send("ever")
    assert world.broker.tick(world.clock.now) == world.clock.now + 1
    world.advance(0.9)
    assert world.bodies() == ["short", "long", "ever"]
    world.advance(0.2)
    assert world.bodies() == ["long", "ever"]
    world.advance(5)
    assert world.bodies() == ["ever"]
    assert world.queue().expired == 2 and world.queue().depth == 1


def test_a_message_expires_by_its_absolute_time(world: World) -> None:
    sender = world.connect().sender()
    sender.send("m1", properties=_expiring_at(world, 2))
    sender.send("m2", properties=_expiring_at(world, -2))
    assert world.queue().depth == 2
    world.advance(1)
    assert world.bodies() == ["m1"]
    world.advance(2)
    assert world.queue().depth == 0


def test_no_ttl_means_none_even_where_the_property_is_zero(world: World) -> None:
    world.connect().sender().send("m1", properties=properties(*[NULL] * 8, encode_timestamp(0)))
    world.advance(10**6)
    assert world.bodies() == ["m1"]


def test_expiry_at_dispatch_without_a_tick(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", ttl=1000)
    peer.sender().send("m2")
    world.clock.now += 2
    assert peer.receiver().drain() == ["m2"]


def test_the_ttl_left_goes_along(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", ttl=10_000, priority=7, durable=True)
    world.advance(4)
    receiver = peer.receiver(credit=1)
    (delivery,) = receiver.take()
    header, _ = split_header(delivery.payload)
    assert header is not None and (header.ttl, header.priority, header.durable) == (6000, 7, True)
    receiver.dispose([delivery], MODIFIED_FAILED)
    world.advance(1)
    receiver.flow(1)
    header, _ = split_header(receiver.take()[0].payload)
    assert header is not None and (header.ttl, header.delivery_count) == (5000, 1)


def test_expired_messages_go_to_the_expiry_address(world: World) -> None:
    world.broker.declare_queue("q", expiry_address="late")
    peer = world.connect()
    peer.sender().send("m1", ttl=1000, priority=6)
    world.advance(2)
    receiver = peer.receiver("late", credit=1)
    (delivery,) = receiver.take()
    header, _ = split_header(delivery.payload)
    assert header is not None and (header.ttl, header.priority) == (None, 6)
    annotations = ReceivedMessage(delivery.payload).message_annotations()
    assert annotations is not None
    assert annotations["x-opt-dead-letter-reason"] == "expired"
    assert annotations["x-opt-dead-letter-from"] == "q"
    world.advance(10**6)
    receiver.dispose([delivery], RELEASED)
    assert world.bodies("late") == ["m1"]


def test_a_held_message_expires_only_when_it_comes_back(world: World) -> None:
    """What a transaction or a consumer holds does not vanish under its hands (T79)."""
    peer = world.connect()
    peer.sender().send("m1", ttl=1000)
    peer.sender().send("m2", ttl=1000)
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=2)
    receiver.dispose(receiver.take()[:1], in_transaction(txn, RELEASED))
    world.advance(5)
    assert world.depth() == (0, 2)
    controller.commit(txn)
    assert world.depth() == (0, 1)


def test_a_browser_does_not_see_what_has_expired(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", ttl=1000)
    world.advance(2)
    assert peer.receiver(distribution_mode="copy", snd_settle_mode=SETTLED).drain() == []


def test_transacted_messages_age_from_their_arrival(world: World) -> None:
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    txn = controller.declare()
    sender.send("m1", ttl=1000, state=in_transaction(txn))
    world.advance(2)
    controller.commit(txn)
    assert peer.receiver().drain() == []


@pytest.mark.parametrize("key", ["x-opt-delivery-time", "x-opt-delivery-delay"])
def test_m17_m18_delayed_delivery(world: World, key: str) -> None:
    peer = world.connect()
    sender = peer.sender()
    value = round(world.clock.now * 1000) + 5000 if key.endswith("time") else 5000
    delayed = encode_described(0x72, encode_map([encode_symbol(key), encode_long(value)]))
    sender.send("later", annotations=delayed)
    sender.send("now")
    assert world.queue().depth == 2 and world.bodies() == ["now"]
    receiver = peer.receiver(credit=10)
    assert receiver.receive() == ["now"]
    world.advance(4.9)
    assert receiver.receive() == []
    sender.send("before")
    world.advance(0.2)
    assert receiver.receive() == ["before", "later"]


def test_m18_the_time_wins_over_the_delay(world: World) -> None:
    at = round(world.clock.now * 1000) + 60_000
    both = [encode_symbol("x-opt-delivery-delay"), encode(5000), encode_symbol("x-opt-delivery-time"), encode_long(at)]
    world.connect().sender().send("m1", annotations=encode_described(0x72, encode_map(both)))
    world.advance(10)
    assert world.bodies() == []
    world.advance(60)
    assert world.bodies() == ["m1"]


@pytest.mark.parametrize("address", ["q", "amq.fanout"])
def test_a_queue_may_take_no_message_for_later(world: World, address: str) -> None:
    """By itself or where an exchange leads to it: refused as it comes, in a transaction too, which goes on."""
    world.broker.declare_queue("q", delayed_delivery=False)
    world.broker.exchange("amq.fanout").bind("q")
    peer = world.connect()
    sender, controller = peer.sender(address), peer.controller()
    delayed = encode_described(0x72, encode_map([encode_symbol("x-opt-delivery-delay"), encode(5000)]))
    ((outcome,),) = sender.send("m1", annotations=delayed)
    assert isinstance(outcome, Rejected) and outcome.error is not None
    assert outcome.error.condition == "amqp:precondition-failed" and "'q'" in str(outcome.error)
    txn = controller.declare()
    sender.send("m2", annotations=delayed, state=in_transaction(txn))
    sender.send("m3", state=in_transaction(txn))
    controller.commit(txn)
    assert world.bodies() == ["m3"] and world.queue().depth == 1


def test_delayed_messages_of_one_moment_keep_their_order(world: World) -> None:
    sender = world.connect().sender()
    delayed = encode_described(0x72, encode_map([encode_symbol("x-opt-delivery-delay"), encode(5000)]))
    sender.send(*"abcde", annotations=delayed)
    world.advance(6)
    assert world.bodies() == list("abcde")


def test_marks_of_consumed_messages_do_not_pile_up(world: World) -> None:
    peer = world.connect()
    sender, receiver = peer.sender(), peer.receiver()
    for _ in range(20):
        sender.send(*map(str, range(100)), ttl=86_400_000)
        receiver.flow(100)
        receiver.accept(receiver.take())
    assert world.queue().depth == 0
    queue = world.broker.router.queues["q"]
    assert queue.calendar is not None and len(queue.calendar) < 400


# --- what is waited for when nothing is left to wait for


def test_who_has_gone_is_not_waited_for(world: World) -> None:
    """Queues, subscriptions and transactions are let go as they end, however far off their times are."""
    peer = world.connect()
    for number in range(200):
        receiver = peer.receiver(dynamic=True, address=None)
        address = receiver.link.remote_source.address
        sender = peer.sender(address)
        sender.send("m1", ttl=86_400_000)
        sender.detach()
        receiver.detach()
        name = f"sub{number}"
        for closed in (False, True):
            attach(peer, name, address="news", capabilities=("topic",), timeout=86_400, credit=0).detach(closed=closed)
    gc.collect()
    assert [each for each in gc.get_objects() if isinstance(each, Queue) and each.home is world.broker] == []
    assert len(world.broker._timers) < 200
    world.advance(90_000)
    assert len(world.broker._timers) == 0 and not world.broker.subscriptions()


def test_the_limits_of_transactions_go_with_them() -> None:
    world = World({"policy": {"transaction_timeout": 3600, "transaction_idle_timeout": 3600}})
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    for _ in range(200):
        txn_id = controller.declare()
        sender.send("m1", state=in_transaction(txn_id))
        assert controller.commit(txn_id) is None
    assert len(world.broker._timers) < 200
    txn_id = controller.declare()
    sender.send("m2", state=in_transaction(txn_id))
    world.advance(3601)
    assert controller.commit(txn_id) == "amqp:transaction:timeout"
