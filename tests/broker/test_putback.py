"""Put-back at the original place, on the wire: redelivery (a) K, 169-181, and the traps of (b.6) at the broker."""

from __future__ import annotations

import pytest

from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, RELEASED, DeliveryState, Modified
from tests.broker.world import World, in_transaction


def test_s169_one_range_disposition_for_several(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", "m2", "m3", "m4", "m5", "m6")
    a = peer.receiver(credit=5)
    held = a.take()
    # One flow is one batch: B waits with credit for 2 when the range comes, and m6 is taken first of all.
    b = world.connect().receiver(credit=1)
    assert b.receive() == ["m6"]
    b.flow(2)
    a.dispose(held[2:], RELEASED)
    assert b.receive() == ["m3", "m4"]
    peer.sender().send("m7")
    assert b.receive(2) == ["m5", "m7"]


@pytest.mark.parametrize("outcome", [RELEASED, MODIFIED_FAILED, None])
def test_s170_shuffled_releases(world: World, outcome: DeliveryState | None) -> None:
    peer = world.connect()
    peer.sender().send("m1", "m2", "m3", "m4", "m5")
    a = peer.receiver(credit=5)
    held = a.take()
    for number in (5, 2, 4, 1, 3):
        a.dispose([held[number - 1]], outcome)
    mark = "+1" if outcome is MODIFIED_FAILED else ""
    assert peer.receiver().drain() == [f"m{number}{mark}" for number in range(1, 6)]


def test_s171_two_links_released_one_after_the_other(world: World) -> None:
    peer = world.connect()
    a, b = peer.receiver(), peer.receiver()
    sender = peer.sender()
    sender.send("1", "2", "3", "4", "5", "6")
    for turn in range(6):
        (a, b)[turn % 2].flow(1)
    held_a, held_b = a.take(), b.take()
    assert [delivery.payload[-1:] for delivery in held_a] == [b"1", b"3", b"5"]
    b.dispose(held_b, RELEASED)
    a.dispose(held_a, RELEASED)
    assert peer.receiver().drain() == list("123456")


def test_s172_a_discharge_puts_back_as_one_step(world: World) -> None:
    peer, other = world.connect(), world.connect()
    peer.sender().send("1", "2", "3")
    controller = peer.controller()
    txn = controller.declare()
    a = peer.receiver(credit=3)
    a.dispose(a.take(), in_transaction(txn, ACCEPTED))
    b = other.receiver(credit=1)
    assert controller.roll_back(txn) is None
    assert b.receive() == ["1+1"]
    assert a.receive(2) == ["2+1", "3+1"]


def test_s173_put_back_behind_a_moved_cursor(world: World) -> None:
    """A consumer that has looked past message 2, barred for it then, gets it once it may."""
    peer = world.connect()
    peer.sender().send("1", "2", "3")
    a, b = peer.receiver(), peer.receiver()
    a.flow(3)
    held = a.take()
    a.dispose(held[2:], Modified(undeliverable_here=True))
    assert a.drain() == []
    a.dispose(held[1:2], Modified(undeliverable_here=True))
    assert a.drain() == []
    assert b.drain() == ["2", "3"]


def test_s174_new_arrivals_during_the_put_back(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    sender.send("m1", "m2")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=2)
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    sender.send("m3")
    controller.roll_back(txn)
    assert peer.receiver().drain() == ["m1+1", "m2+1", "m3"]


def test_s176_priority_and_put_back(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    sender.send("m1", "m2", "m3", priority=4)
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=3)
    held = receiver.take()
    receiver.dispose(held[:1], in_transaction(txn, ACCEPTED))
    sender.send("m4", priority=9)
    controller.roll_back(txn)
    receiver.dispose(held[1:], RELEASED)
    receiver.detach()
    assert peer.receiver().drain() == ["m4", "m1+1", "m2", "m3"]


def test_s177_expired_while_acquired(world: World) -> None:
    world.broker.declare_queue("q", expiry_address="late")
    peer = world.connect()
    peer.sender().send("m1", ttl=1000)
    receiver = peer.receiver(credit=1)
    held = receiver.take()
    world.advance(2)
    assert world.depth() == (0, 1)
    receiver.dispose(held, RELEASED)
    assert receiver.drain() == []
    assert world.queue().depth == 0 and world.queue().expired == 1
    assert world.bodies("late") == ["m1"]


def test_s180_clean_detach_after_dispositions(world: World) -> None:
    peer = world.connect()
    peer.sender().send("1", "2", "3", "4")
    receiver = peer.receiver(credit=4, default_outcome=MODIFIED_FAILED)
    held = receiver.take()
    receiver.session.disposition(held[2], RELEASED)
    receiver.session.disposition(held[3], RELEASED)
    receiver.session.disposition(held[0], MODIFIED_FAILED)
    receiver.session.disposition(held[1], MODIFIED_FAILED)
    receiver.detach()
    assert peer.receiver().drain() == ["1+1", "2+1", "3", "4"]


def test_s181_connection_drop_counts_for_all_and_never_dead_letters(world: World) -> None:
    world.broker.declare_queue("q", max_delivery_attempts=2)
    world.connect().sender().send("1", "2", "3", "4")
    for drops in range(4):
        peer = world.connect()
        receiver = peer.receiver(credit=4)
        mark = f"+{drops}" if drops else ""
        assert receiver.receive() == [f"{number}{mark}" for number in range(1, 5)]
        peer.cut()
    assert world.depth() == (4, 0)


def test_put_back_while_another_holds_credit_wakes_once_from_the_lowest(world: World) -> None:
    """Releases of two sessions and a rollback in one batch of input: who waits sees the lowest first."""
    peer = world.connect()
    peer.sender().send("1", "2", "3", "4")
    second = peer.begin()
    a, b = peer.receiver(credit=2), peer.receiver(credit=2, session=second)
    controller = peer.controller()
    txn = controller.declare()
    held_a, held_b = a.take(), b.take()
    waiting = world.connect().receiver(credit=4)
    for delivery in reversed(held_b):
        second.disposition(delivery, RELEASED)
    for delivery in held_a:
        peer.session.disposition(delivery, in_transaction(txn, ACCEPTED))
    controller.roll_back(txn)
    assert waiting.receive() == ["1+1", "2+1", "3", "4"]


def test_detach_without_close_keeps_deliveries_with_the_session(world: World) -> None:
    peer = world.connect()
    peer.sender().send("1", "2")
    session = peer.begin()
    receiver = peer.receiver(credit=2, session=session, default_outcome=MODIFIED_FAILED)
    held = receiver.take()
    receiver.detach(closed=False)
    world.advance(5)
    assert world.depth() == (0, 2)
    session.disposition(held[0], RELEASED)
    world.run()
    assert world.depth() == (1, 1)
    session.end()
    world.run()
    assert peer.receiver().drain() == ["1", "2+1"]


def test_closed_link_leaves_a_second_for_dispositions(world: World) -> None:
    """118: a client that closes the link first and releases afterwards."""
    peer = world.connect()
    peer.sender().send("1", "2", "3")
    receiver = peer.receiver(credit=3, default_outcome=MODIFIED_FAILED)
    held = receiver.take()
    receiver.detach()
    world.advance(0)
    assert world.depth() == (0, 3)
    receiver.session.disposition(held[0], RELEASED)
    receiver.session.disposition(held[1], ACCEPTED)
    world.run()
    assert world.depth() == (1, 1)
    world.advance(1.1)
    assert world.depth() == (2, 0)
    assert peer.receiver().drain() == ["1", "3+1"]
    receiver.session.disposition(held[2], ACCEPTED)
    world.run()
    assert world.queue().depth == 2


def test_session_end_applies_the_default_outcome_at_once(world: World) -> None:
    peer = world.connect()
    peer.sender().send("1", "2")
    session = peer.begin()
    peer.receiver(credit=1, session=session, default_outcome=RELEASED)
    peer.receiver(credit=1, session=session)
    session.end()
    world.run()
    assert peer.receiver().drain() == ["1", "2+1"]


def test_competing_consumers_are_served_in_turn(world: World) -> None:
    peers = [world.connect() for _ in range(3)]
    receivers = [peer.receiver(credit=10) for peer in peers]
    world.connect().sender().send(*"123456")
    assert [receiver.receive() for receiver in receivers] == [["1", "4"], ["2", "5"], ["3", "6"]]


def test_s156_priority_order(world: World) -> None:
    sender = world.connect().sender()
    for body, priority in zip("abcdefghij", (0, 1, 1, 3, 3, 5, 5, 7, 7, 9), strict=True):
        sender.send(body, priority=priority)
    assert world.connect().receiver().drain() == ["j", "h", "i", "f", "g", "d", "e", "b", "c", "a"]


def test_s155_what_is_prefetched_is_held(world: World) -> None:
    world.connect().sender().send(*"123456")
    world.connect().receiver(credit=3)
    assert world.connect().receiver().drain() == ["4", "5", "6"]


def test_commit_order_decides_not_send_order(world: World) -> None:
    one, two = world.connect(), world.connect()
    controller_one, controller_two = one.controller(), two.controller()
    txn_one, txn_two = controller_one.declare(), controller_two.declare()
    one.sender().send("first sent", state=in_transaction(txn_one))
    two.sender().send("second sent", state=in_transaction(txn_two))
    assert world.queue().depth == 0
    controller_two.commit(txn_two)
    controller_one.commit(txn_one)
    assert world.bodies() == ["second sent", "first sent"]
