"""What is too much for one step is done in portions: in order, each message in one place, others served between."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from jmsish.broker import broker as broker_module
from jmsish.broker.portions import LEAST
from jmsish.broker.reading_on import AT_ONCE
from jmsish.broker.settlement import Settlement
from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    RELEASED,
    AmqpError,
    DeliveryState,
    Modified,
    Received,
    Rejected,
)
from jmsish.engine.values import encode_described, encode_long, encode_map, encode_symbol
from jmsish.types import Symbol
from tests.broker.world import Peer, Receiver, World, in_transaction, message

TEN = [f"m{number}" for number in range(10)]


def holding(world: World, **options: Any) -> tuple[Peer, Receiver, list[Any]]:
    """Ten messages, and a receiver that has them all."""
    world.connect().sender().send(*TEN)
    peer = world.connect()
    receiver = peer.receiver(credit=10, **options)
    return peer, receiver, receiver.take()


def say(peer: Peer, receiver: Receiver, deliveries: list[Any], state: DeliveryState, settled: bool = True) -> None:
    """One disposition for all of them is read, and begun."""
    for delivery in deliveries:
        receiver.session.disposition(delivery, state, settled)
    peer.speak()


def at_time(body: str, due: int, priority: int) -> bytes:
    """A message that is to become visible then, in milliseconds."""
    notes = encode_map([encode_symbol("x-opt-delivery-time"), encode_long(due)])
    return message(body, priority=priority, annotations=encode_described(0x72, notes))


def steps(world: World) -> list[tuple[int, int]]:
    """What is there and what is held, after each step until there is nothing left to do."""
    seen = [world.depth()]
    while world.broker.unfinished:
        world.broker.step()
        seen.append(world.depth())
    return seen


@pytest.mark.parametrize("outcome", [RELEASED, MODIFIED_FAILED, Modified(undeliverable_here=True)])
def test_a_range_comes_back_in_portions_and_as_one(outcome: DeliveryState) -> None:
    world = World(portion=3)
    peer, receiver, held = holding(world)
    waiting = world.connect().receiver(credit=10)
    say(peer, receiver, held, outcome)
    assert world.depth() == (3, 7)
    seen = []
    while world.broker.unfinished:
        world.broker.step()
        for each in world.peers:
            each.hear()
        seen.append((world.depth(), len(waiting.arrived)))
    assert seen == [((6, 4), 0), ((9, 1), 0), ((0, 10), 10)]
    assert [text.partition("+")[0] for text in waiting.receive()] == TEN


def test_what_is_acknowledged_goes_in_portions() -> None:
    world = World(portion=4)
    peer, receiver, held = holding(world)
    say(peer, receiver, held, ACCEPTED)
    assert steps(world)[:3] == [(0, 6), (0, 2), (0, 0)]


def test_usual_numbers_are_worked_off_at_once() -> None:
    world = World()
    peer, receiver, held = holding(world)
    say(peer, receiver, held, RELEASED)
    assert world.depth() == (10, 0) and not world.broker.unfinished
    assert AT_ONCE >= 1000


def test_whatever_order_they_come_back_in_the_first_is_offered_first() -> None:
    """Their numbers rise as they were delivered, and the most urgent came last: it is in the last portion."""
    world = World(portion=2)
    sender = world.connect().sender()
    peer = world.connect()
    receiver = peer.receiver(credit=6)
    for priority in (4, 4, 5, 5, 9, 9):
        sender.send(f"p{priority}", priority=priority)
    waiting = world.connect().receiver(credit=6)
    say(peer, receiver, receiver.take(), RELEASED)
    world.run()
    assert waiting.receive() == ["p9", "p9", "p5", "p5", "p4", "p4"]


def test_the_dead_letters_of_a_range_are_in_the_order_of_their_queue() -> None:
    world = World(portion=2)
    peer, receiver, held = holding(world)
    receiver.dispose(held[:5], RELEASED)
    receiver.flow(5)
    say(peer, receiver, held[5:] + receiver.take(), Rejected(None))  # m5 to m9 first, by the numbers of the deliveries
    world.run()
    assert world.bodies("DLQ") == TEN


def test_what_comes_behind_a_range_takes_effect_behind_it() -> None:
    world = World(portion=2)
    peer, receiver, held = holding(world)
    sender = peer.sender("other")
    for delivery in held:
        receiver.session.disposition(delivery, RELEASED, True)
    sender.send("behind", run=False)
    receiver.flow(10, drain=True, run=False)
    peer.speak()
    while world.depth()[1]:
        assert world.queue("other").depth == 0
        world.broker.step()
    world.run()
    assert world.bodies("other") == ["behind"]
    assert receiver.receive() == TEN and receiver.link.credit == 0


def test_octets_that_come_meanwhile_are_kept_in_order() -> None:
    """Cut anywhere, and among them another range."""
    world = World(portion=2)
    peer, receiver, held = holding(world)
    sender = peer.sender("other")
    say(peer, receiver, held[:6], ACCEPTED)
    for delivery in held[6:]:
        receiver.session.disposition(delivery, RELEASED, True)
    answers = sender.send("a", "b", run=False)
    for octet in peer.engine.take_output():
        peer.connection.receive(bytes((octet,)))
    assert world.depth() == (0, 8) and world.queue("other").depth == 0
    world.run()
    assert world.bodies() == TEN[6:] and world.bodies("other") == ["a", "b"]
    assert answers == [[ACCEPTED], [ACCEPTED]]


def test_others_are_served_between_two_portions() -> None:
    world = World(portion=1)
    peer, receiver, held = holding(world)
    other = world.connect()
    sender, taker = other.sender("elsewhere"), other.receiver("elsewhere", credit=10)
    say(peer, receiver, held, RELEASED)
    for number in range(5):
        sender.send(f"e{number}", run=False)
        other.speak()
        world.broker.step()
        other.hear()
        assert len(taker.arrived) == number + 1 and world.depth()[1]
    assert world.broker.unfinished


def test_who_is_waited_for_is_busy_and_not_longer() -> None:
    world = World(portion=5)
    peer, receiver, held = holding(world)
    assert not peer.connection.is_busy
    say(peer, receiver, held, RELEASED)
    assert peer.connection.is_busy
    world.run()
    assert not peer.connection.is_busy


def test_a_receiver_that_waits_for_the_answer_gets_it_for_each() -> None:
    world = World(portion=3)
    peer, receiver, held = holding(world)
    say(peer, receiver, held, ACCEPTED, settled=False)
    world.run()
    assert [delivery.context for delivery in held] == [[ACCEPTED]] * 10
    assert world.queue().depth == 0


def test_a_retirement_in_portions_is_committed_as_a_whole() -> None:
    world = World(portion=3)
    peer, receiver, held = holding(world)
    controller = peer.controller()
    txn = controller.declare()
    for delivery in held:
        receiver.session.disposition(delivery, in_transaction(txn, ACCEPTED), True)
    assert controller.commit(txn) is None
    assert world.queue().depth == 0


# --- what ends in the middle


def close_it(world: World, peer: Peer) -> None:
    peer.connection.close(AmqpError("amqp:connection:forced", "for another's sake"))


def cut_it(world: World, peer: Peer) -> None:
    peer.cut_off = True
    peer.connection.receive_eof()


def stop_it(world: World, peer: Peer) -> None:
    world.broker.close()


ENDS = pytest.mark.parametrize("end", [close_it, cut_it, stop_it])


@ENDS
@pytest.mark.parametrize(("outcome", "left"), [(ACCEPTED, []), (RELEASED, TEN), (Rejected(None), [])])
def test_what_was_said_holds_though_the_connection_ends(
    end: Callable[[World, Peer], None], outcome: DeliveryState, left: list[str]
) -> None:
    world = World(portion=3)
    peer, receiver, held = holding(world, default_outcome=MODIFIED_FAILED)
    say(peer, receiver, held, outcome)
    world.broker.step()
    end(world, peer)
    world.run()
    assert world.bodies() == left and world.depth()[1] == 0
    assert not list(world.queue().payloads()) or receiver.peer is peer
    taken = world.connect().receiver().drain() if end is not stop_it else left
    assert taken == left  # and not counted by the loss
    assert (world.bodies("DLQ") if isinstance(outcome, Rejected) else TEN) == TEN
    assert peer.connection.ended and not peer.connection.is_busy and not world.broker.portions


@ENDS
def test_a_loss_gives_back_in_portions(end: Callable[[World, Peer], None]) -> None:
    world = World(portion=3)
    peer, _, _ = holding(world, default_outcome=MODIFIED_FAILED)
    waiting = world.connect().receiver(credit=10)
    end(world, peer)
    assert sum(world.depth()) == 10
    if end is stop_it:
        assert world.depth() == (10, 0)
        return
    assert world.depth() == (3, 7)
    world.run()
    assert waiting.receive() == [f"{body}+1" for body in TEN]


def test_a_session_that_ends_gives_back_in_portions_and_as_one() -> None:
    world = World(portion=3)
    peer = world.connect()
    world.connect().sender().send(*TEN)
    receiver = peer.receiver(session=peer.begin(), credit=10, default_outcome=RELEASED)
    other = peer.receiver(credit=10)
    receiver.session.end()
    peer.speak()
    assert steps(world) == [(3, 7), (6, 4), (9, 1), (0, 10)]
    world.run()
    assert other.receive() == TEN


def test_a_closed_link_gives_back_in_portions_what_is_not_disposed_of_meanwhile() -> None:
    """W16, and at most one outcome for each delivery."""
    world = World(portion=3)
    peer, receiver, held = holding(world, default_outcome=MODIFIED_FAILED)
    receiver.detach()
    world.monotonic += 1
    peer.connection.tick(world.monotonic)
    world.monotonic += 2
    peer.connection.tick(world.monotonic)
    assert world.depth() == (3, 7)
    say(peer, receiver, held[:2] + held[8:], ACCEPTED)
    world.run()
    assert world.connect().receiver().drain() == [f"{body}+1" for body in TEN[:8]]
    assert world.queue().dequeued == 2


def test_what_two_jobs_would_give_back_comes_back_once() -> None:
    world = World(portion=2)
    peer, receiver, _ = holding(world, default_outcome=MODIFIED_FAILED)
    receiver.detach()
    for _ in range(2):
        world.monotonic += 2
        peer.connection.tick(world.monotonic)
    assert world.depth() == (2, 8)
    peer.connection.receive_eof()
    world.run()
    assert world.depth() == (10, 0)
    assert world.connect().receiver().drain() == [f"{body}+1" for body in TEN]


def test_the_queue_is_deleted_in_the_middle() -> None:
    world = World(portion=2)
    peer, receiver, held = holding(world)
    queue = world.queue()
    say(peer, receiver, held, RELEASED)
    world.broker.delete_queue("q")
    world.connect().sender().send("new")
    world.run()
    assert queue.is_deleted and world.bodies() == ["new"]
    assert receiver.error is not None and receiver.error.condition == "amqp:resource-deleted"
    assert not peer.connection.is_busy and not peer.closed


def test_notes_are_weighed_for_the_whole_range() -> None:
    """Parts of it would each be little enough."""
    world = World(portion=2)
    world.connect().sender().send(*(f"{number}" for number in range(300)))
    peer = world.connect()
    receiver = peer.receiver(credit=300)
    notes = Modified(message_annotations={Symbol("x-opt-note"): "n" * 4000})
    say(peer, receiver, receiver.take(), notes)
    world.run()
    (error,) = peer.ended
    assert error is not None and error.condition == "amqp:resource-limit-exceeded"
    assert world.depth() == (300, 0) and not peer.connection.is_busy


def test_a_fault_in_the_middle_ends_the_connection_and_nobody_else_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(portion=2)
    peer, receiver, held = holding(world)
    waiting = world.connect().receiver(credit=10)
    say(peer, receiver, held, RELEASED)

    def fail(*_: object) -> bool:
        raise ZeroDivisionError

    with monkeypatch.context() as patch, caplog.at_level(logging.CRITICAL, "jmsish.broker"):
        patch.setattr(Settlement, "apply", fail)
        with pytest.raises(ZeroDivisionError):
            world.broker.step()
    world.run()
    assert peer.connection.ended and not peer.connection.is_busy and not world.broker.portions
    assert waiting.receive() == ["m0", "m1", *(f"{body}+1" for body in TEN[2:])]


# --- time


def test_what_expires_in_one_moment_goes_in_portions() -> None:
    world = World({"queues": {"q": {"expiry_address": "late"}}}, portion=30)
    world.connect().sender().send(*TEN, ttl=1000)
    world.clock.now += 2
    world.broker.step()
    world.broker.tick(world.clock.now)
    seen = [world.queue("late").depth]
    while world.broker.unfinished:
        world.broker.step()
        seen.append(world.queue("late").depth)
    assert seen == [3, 6, 9, 10]
    assert world.bodies("late") == TEN and world.queue().depth == 0


def test_what_becomes_visible_in_one_moment_does_so_in_portions_and_is_offered_as_one() -> None:
    world = World(portion=2)
    sender = world.connect().sender()
    due = int((world.clock.now + 1) * 1000)
    for number, priority in enumerate((0, 4, 4, 4, 9)):
        sender.send_octets(at_time(f"p{number}", due, priority=priority))
    waiting = world.connect().receiver(credit=10)
    world.clock.now += 2
    world.broker.step()
    world.broker.tick(world.clock.now)
    assert world.depth() == (2, 0) and world.queue().depth == 5
    world.run()
    assert waiting.receive() == ["p4", "p1", "p2", "p3", "p0"]


def test_many_queues_share_one_portion() -> None:
    world = World(portion=3)
    for number in range(6):
        world.connect().sender(f"q{number}").send("a", "b", ttl=1000)
    world.clock.now += 2
    world.broker.step()
    world.broker.tick(world.clock.now)
    left = [sum(world.queue(f"q{number}").depth for number in range(6))]
    while world.broker.unfinished:
        world.broker.step()
        left.append(sum(world.queue(f"q{number}").depth for number in range(6)))
    assert left[:4] == [9, 6, 3, 0]


def test_burials_are_few_in_a_step() -> None:
    assert broker_module.BURIALS_A_STEP <= 200


def test_a_range_in_an_unknown_transaction_comes_back_once() -> None:
    """Its link ends at the first of them (T77), which gives back all that the range is still to name."""
    world = World(portion=2)
    peer, receiver, held = holding(world, default_outcome=MODIFIED_FAILED)
    say(peer, receiver, held, in_transaction(b"nobody's", ACCEPTED))
    world.run()
    assert receiver.error is not None and receiver.error.condition == "amqp:transaction:unknown-id"
    assert world.depth() == (10, 0)
    assert world.connect().receiver().drain() == [f"{body}+1" for body in TEN]


@pytest.mark.parametrize("state", [ACCEPTED, Received(0, 0), None])
def test_who_gives_nothing_back_keeps_nobody_from_the_queue(state: DeliveryState | None) -> None:
    """A range that is named again and again and not settled would keep others from it for long."""
    world = World(portion=1)
    peer, receiver, held = holding(world)
    state = state or in_transaction(peer.controller().declare(), RELEASED)
    other = world.connect().receiver(credit=10)
    world.connect().sender().send("more", run=False)
    world.peers[-1].speak()
    say(peer, receiver, held, state, settled=False)
    world.broker.step()
    other.peer.hear()
    assert peer.connection.is_busy and len(other.arrived) == 1


def test_each_of_several_jobs_has_a_share_in_a_step() -> None:
    world = World(portion=4 * LEAST)
    done: list[str] = []

    class Endless:
        def __init__(self, name: str) -> None:
            self.name = name

        def go_on(self, most: int) -> int:
            done.extend([self.name] * most)
            return most if len(done) < 4000 else 0

    for name in "abcd":
        world.broker.portions.add(Endless(name))
    world.broker.step()
    assert [done.count(name) for name in "abcd"] == [LEAST] * 4
    world.broker.portions.finish()


def test_queues_are_halted_for_one_disposition_and_not_for_those_behind_it() -> None:
    world = World(portion=2)
    peer, receiver, held = holding(world)
    waiting = world.connect().receiver(credit=10)
    world.connect().sender("r").send(*TEN)
    another = peer.receiver("r", credit=10)
    for delivery in held:
        receiver.session.disposition(delivery, RELEASED, True)
    for delivery in another.take():
        another.session.disposition(delivery, MODIFIED_FAILED, True)
    peer.speak()
    while not waiting.arrived:
        world.broker.step()
        waiting.peer.hear()
    assert len(waiting.arrived) == 10 and world.depth("r") == (0, 10)
    world.run()
    assert world.depth("r") == (10, 0)
