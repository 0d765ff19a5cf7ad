"""What large and many transactions may cost; times are the bench's affair."""

from __future__ import annotations

import pytest

from tests.bench.transactions import weigh
from tests.broker.world import World, in_transaction

ROLLBACK = "amqp:transaction:rollback"


def test_an_open_transaction_without_work_is_under_two_kilobytes() -> None:
    assert weigh(2_000) < 2_000


def test_a_transaction_that_grows_too_large_can_only_be_rolled_back() -> None:
    """The one step of a discharge stays short for the others, and what is held stays bounded."""
    world = World({"policy": {"max_transaction_size": 10}})
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    for size, answer in ((10, None), (11, ROLLBACK)):
        txn = controller.declare()
        sender.send(*["m"] * size, state=in_transaction(txn), settled=True)
        assert controller.commit(txn) == answer
    assert world.queue().depth == 10
    with pytest.raises(ValueError, match="max_transaction_size"):
        World({"policy": {"max_transaction_size": -1}})
