"""Words that reach the broker in one piece mean what they mean one by one: cases that the property tests found."""

from __future__ import annotations

from jmsish.types import Symbol
from tests.broker.world import World, in_transaction


def test_a_flow_that_follows_at_once_leaves_the_transaction(world: World) -> None:
    """T91: a flow without properties says nothing about the transaction to acquire under (4.4.3)."""
    peer = world.connect()
    peer.sender().send("m1")
    txn = peer.controller().declare()
    receiver = peer.receiver()
    receiver.flow(0, properties={Symbol("txn-id"): txn}, run=False)
    receiver.flow(1)
    assert [delivery.remote_state for delivery in receiver.take()] == [in_transaction(txn)]
