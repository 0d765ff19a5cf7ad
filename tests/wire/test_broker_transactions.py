"""Transactions as the broker bears them (scenarios G, 129 to 134, where another client or broker is described)."""

from __future__ import annotations

import pytest

from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, RELEASED
from tests.broker.world import World, in_transaction

UNKNOWN = "amqp:transaction:unknown-id"


@pytest.fixture
def world() -> World:
    return World()


def test_s118_releases_after_the_detach_are_heard(world: World) -> None:
    """Qpid JMS detaches first and releases what it has not read afterwards: nothing gains a count by it."""
    peer = world.connect()
    peer.sender().send("m1", "m2", "m3")
    receiver = peer.receiver(credit=3)
    deliveries = receiver.take()
    receiver.detach(closed=True)
    receiver.dispose(deliveries, RELEASED)
    assert peer.receiver().drain() == ["m1", "m2", "m3"]


def test_s119_m102_prefetched_messages_released_behind_the_rollback_are_in_order(world: World) -> None:
    """What Qpid JMS does: drain, discharge(fail), released for the unread, credit."""
    peer = world.connect()
    peer.sender().send("m1", "m2", "m3", "m4", "m5")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=5)
    deliveries = receiver.take()
    receiver.dispose(deliveries[:2], in_transaction(txn, ACCEPTED))
    receiver.flow(5, drain=True)
    assert controller.roll_back(txn) is None
    receiver.dispose(deliveries[2:], RELEASED)
    assert receiver.receive(credit=10) == ["m1+1", "m2+1", "m3", "m4", "m5"]


def test_s129_a_disposition_in_a_transaction_after_the_link_has_gone(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    sender.send("m1")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=1)
    (delivery,) = receiver.take()
    receiver.detach(closed=False)
    receiver.dispose([delivery], in_transaction(txn, ACCEPTED))
    assert controller.commit(txn) is None
    sender.send("m2")
    assert peer.receiver().drain() == ["m2"]


def test_s130_a_rolled_back_retirement_is_available_again(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=1, default_outcome=MODIFIED_FAILED)
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    assert world.depth() == (0, 1)
    assert controller.roll_back(txn) is None
    assert world.depth() == (1, 0)
    assert peer.receiver().drain() == ["m1+1"]


@pytest.mark.parametrize("rejected_allowed", [True, False])
def test_s131_an_unknown_id_in_a_discharge(world: World, rejected_allowed: bool) -> None:
    outcomes = ("amqp:accepted:list", "amqp:rejected:list") if rejected_allowed else ("amqp:accepted:list",)
    controller = world.connect().controller(outcomes=outcomes)
    assert controller.commit(b"made up") == UNKNOWN
    assert (controller.error is None) == rejected_allowed


def test_s131_an_unknown_id_in_a_transfer(world: World) -> None:
    peer = world.connect()
    peer.controller()
    sender = peer.sender()
    sender.send("m1", state=in_transaction(b"made up"))
    assert sender.error is not None and sender.error.condition == UNKNOWN
    assert world.queue().depth == 0


def test_s131_an_unknown_id_in_a_disposition(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    peer.controller()
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), in_transaction(b"made up", ACCEPTED))
    assert receiver.error is not None and receiver.error.condition == UNKNOWN
    assert world.queue().depth == 1


@pytest.mark.parametrize("settled", [True, False])
def test_s132_s133_one_transaction_over_several_sessions_rolled_back(world: World, settled: bool) -> None:
    """Settled accepts: 1 to 10 come again, in order.  Unsettled ones: they stay with their receivers until released."""
    peer = world.connect()
    peer.sender().send(*[f"m{n}" for n in range(1, 12)])
    controller = peer.controller()
    txn = controller.declare()
    receivers = [peer.receiver(session=peer.begin()) for _ in range(2)]
    held = []
    for number in range(10):
        receiver = receivers[number % 2]
        receiver.flow(1)
        (delivery,) = receiver.take()
        receiver.dispose([delivery], in_transaction(txn, ACCEPTED), settled=settled)
        held.append((receiver, delivery))
    assert controller.roll_back(txn) is None
    if settled:
        assert peer.receiver().drain() == [f"m{n}+1" for n in range(1, 11)] + ["m11"]
        return
    assert peer.receiver().drain() == ["m11"]
    for receiver, delivery in reversed(held):
        receiver.dispose([delivery], RELEASED)
    assert peer.receiver().drain() == [f"m{n}" for n in range(1, 11)]


def test_s134_a_connection_lost_in_a_transaction_gives_everything_back(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", "m2")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=2)
    receiver.dispose(receiver.take()[:1], in_transaction(txn, ACCEPTED))
    peer.sender("results").send("r", state=in_transaction(txn))
    peer.cut()
    assert [body.partition("+")[0] for body in world.connect().receiver().drain()] == ["m1", "m2"]
    assert world.queue("results").depth == 0
