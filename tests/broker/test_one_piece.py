"""Words that reach the broker in one piece mean what they mean one by one: cases that the property tests found."""

from __future__ import annotations

import pytest

from jmsish.engine.outcomes import ACCEPTED, RELEASED, DeliveryState, Discharge, Rejected
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


@pytest.mark.parametrize("second", [ACCEPTED, RELEASED, Rejected(), None])
@pytest.mark.parametrize("settled", [False, True])
def test_a_second_outcome_for_a_rejected_message_is_too_late(
    world: World, second: DeliveryState | None, settled: bool
) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(credit=1)
    (held,) = receiver.take()
    receiver.session.disposition(held, Rejected(), False)
    receiver.session.disposition(held, second, settled)
    world.run()
    assert world.depth() == (0, 0) and world.bodies("DLQ") == ["m1"]


def test_a_second_word_on_a_copy_is_too_late(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    browser = peer.receiver(credit=1, distribution_mode="copy")
    (seen,) = browser.take()
    browser.session.disposition(seen, ACCEPTED, False)
    browser.session.disposition(seen, RELEASED, False)
    world.run()
    assert world.depth() == (1, 0) and seen.remote_settled


def test_a_rejection_committed_as_its_session_ends_dies_once(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    controller, session = peer.controller(), peer.begin()
    txn = controller.declare()
    receiver = peer.receiver(session=session, credit=1)
    receiver.dispose(receiver.take(), in_transaction(txn, Rejected()), settled=False)
    receiver.detach(closed=False)
    controller.command(Discharge(txn, False), run=False)
    session.end()
    world.run()
    assert world.depth() == (0, 0) and world.bodies("DLQ") == ["m1"]


def test_what_was_settled_by_then_names_no_unknown_transaction(world: World) -> None:
    """The plain outcome ends the control link (T78), and settles: the words behind it are about nothing any more."""
    peer = world.connect()
    peer.sender().send("m1", "m2")
    txn = peer.controller().declare()
    receiver = peer.receiver(credit=1)
    (held,) = receiver.take()
    receiver.dispose([held], in_transaction(txn, ACCEPTED), settled=False)
    receiver.session.disposition(held, ACCEPTED, False)
    receiver.session.disposition(held, in_transaction(txn, ACCEPTED), True)
    world.run()
    assert not receiver.detached and receiver.receive(1) == ["m2"]
