"""Outcomes, counts and limits on the wire: redelivery (a) H, 135-147."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.settlement import LARGEST_ANNOTATIONS
from jmsish.engine.codec import ReceivedMessage
from jmsish.engine.encoding import encode_described, encode_map, encode_string
from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    AmqpError,
    DeliveryState,
    Modified,
    Received,
    Rejected,
)
from jmsish.engine.performatives import encode_disposition
from jmsish.types import Symbol
from tests.broker.world import SETTLED, World, count_of, in_transaction, message


@pytest.mark.parametrize(
    ("outcome", "again"),
    [(RELEASED, "m1"), (MODIFIED_FAILED, "m1+1"), (Modified(), "m1"), (None, "m1")],
    ids=["s135-released", "s136-modified-failed", "s137-modified", "s179-settled-without-state"],
)
def test_s135_s136_s137_s179_m91_an_outcome_puts_back_with_its_count(
    world: World, outcome: DeliveryState | None, again: str
) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), outcome)
    assert world.depth() == (1, 0)
    assert receiver.receive(1) == [again]


def test_s138_m91_undeliverable_here_is_per_link(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", "m2")
    a = peer.receiver(credit=1)
    a.dispose(a.take(), Modified(undeliverable_here=True))
    assert a.receive(1) == ["m2"]
    assert a.drain() == []
    a.dispose(peer.session.incoming.copy().values(), RELEASED)
    b = peer.receiver(credit=2)
    assert b.receive() == ["m1", "m2"]


@pytest.mark.parametrize("settled", [False, True])
def test_links_that_come_and_go_leave_no_marks_on_what_they_would_not_have(world: World, settled: bool) -> None:
    """Undeliverable here is said of a link, and forgotten with it: receivers that come again and again would else fill
    the memory."""
    peer = world.connect()
    peer.sender().send("m1")
    patient = peer.receiver(credit=0)
    outcome = Modified(undeliverable_here=True)
    for _ in range(50):
        if settled:
            receiver = peer.receiver(credit=1, snd_settle_mode=SETTLED, default_outcome=outcome)
            assert len(receiver.take()) == 1
        else:
            receiver = peer.receiver(credit=1)
            receiver.dispose(receiver.take(), outcome)
        assert receiver.drain() == []
        receiver.detach()
    [(_, history)] = world.broker.router.queues["q"].places(False)
    assert history is not None and history.barred is not None and len(history.barred) <= 10
    assert patient.receive(1) == ["m1"]


def test_undeliverable_here_for_both_links_waits_for_a_third(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    a, b = peer.receiver(), peer.receiver()
    for receiver in (a, b):
        receiver.flow(1)
        receiver.dispose(receiver.take(), MODIFIED_FAILED_UNDELIVERABLE)
    assert a.drain() == b.drain() == []
    assert world.depth() == (1, 0)
    assert peer.receiver(credit=1).receive() == ["m1+2"]


def test_s139_m91_rejected_goes_to_the_dead_letters(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", priority=7)
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), Rejected(AmqpError("app:bad", "no such customer")))
    assert receiver.drain() == []
    assert world.queue().depth == 0
    (dead,) = (delivery.payload for delivery in _all(world, "DLQ"))
    annotations = ReceivedMessage(dead).message_annotations()
    assert annotations is not None
    assert annotations["x-opt-dead-letter-from"] == "q"
    assert annotations["x-opt-dead-letter-reason"] == "rejected"
    assert annotations["x-opt-dead-letter-error"] == "app:bad: no such customer"
    assert annotations["x-opt-dead-letter-delivery-count"] == 1
    assert annotations["x-opt-dead-letter-time"] == round(world.clock.now * 1000)
    assert world.queue().dead_lettered == 1


def _all(world: World, name: str) -> list[object]:
    receiver = world.connect().receiver(name, credit=100)
    return receiver.take()


def test_rejected_in_the_dead_letter_queue_is_dropped(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    for name in ("q", "DLQ"):
        receiver = peer.receiver(name, credit=1)
        receiver.dispose(receiver.take(), Rejected())
    assert world.queue("DLQ").depth == 0


def test_dead_letters_can_have_another_place_or_none(world: World) -> None:
    world.broker.declare_queue("a", dead_letter="a.dead")
    world.broker.declare_queue("b", dead_letter="")
    peer = world.connect()
    for name in ("a", "b"):
        peer.sender(name).send(name)
        receiver = peer.receiver(name, credit=1)
        receiver.dispose(receiver.take(), Rejected())
    assert world.bodies("a.dead") == ["a"]
    assert {view.name for view in world.broker.queues()} == {"a", "b", "a.dead"}


def test_s143_limit_exact_boundary_and_order(world: World) -> None:
    world.broker.declare_queue("q", max_delivery_attempts=10)
    peer = world.connect()
    bodies = [f"m{number}" for number in range(5)]
    peer.sender().send(*bodies)
    receiver = peer.receiver()
    for attempt in range(10):
        receiver.flow(5)
        deliveries = receiver.take()
        assert len(deliveries) == 5
        if attempt == 9:
            assert "DLQ" not in [view.name for view in world.broker.queues()]
        receiver.dispose(reversed(deliveries), MODIFIED_FAILED)
    assert receiver.drain() == []
    assert world.bodies("DLQ") == bodies


def test_s144_limit_mixed(world: World) -> None:
    world.broker.declare_queue("q", max_delivery_attempts=2)
    peer = world.connect()
    peer.sender().send(*"01234")
    receiver = peer.receiver()
    seen = []
    while True:
        receiver.flow(1)
        deliveries = receiver.take()
        if not deliveries:
            break
        body = deliveries[0].payload[-1:].decode()
        seen.append(body)
        receiver.dispose(deliveries, MODIFIED_FAILED if int(body) % 2 == 0 else ACCEPTED)
    assert seen == list("00122344")
    assert world.bodies("DLQ") == list("024")


def test_s145_browsing_does_not_count(world: World) -> None:
    world.broker.declare_queue("q", max_delivery_attempts=2)
    peer = world.connect()
    peer.sender().send("m1")
    for _ in range(4):
        browser = peer.receiver(distribution_mode="copy", snd_settle_mode=1)
        assert browser.drain() == ["m1"]
        browser.detach()
    assert world.depth() == (1, 0)
    assert peer.receiver(credit=1).receive() == ["m1"]


def test_s146_count_follows_acknowledged_and_rolled_back_passes_only(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    controller = peer.controller()
    receiver = peer.receiver()
    for _ in range(3):
        txn = controller.declare()
        receiver.flow(1)
        deliveries = receiver.take()
        assert controller.roll_back(txn) is None
        receiver.dispose(deliveries, RELEASED)
    for count in range(3):
        txn = controller.declare()
        receiver.flow(1)
        deliveries = receiver.take()
        assert deliveries[0].payload.count(b"m1") == 1
        assert world.bodies(acquired=True) == ["m1"]
        receiver.dispose(deliveries, in_transaction(txn, ACCEPTED))
        assert controller.roll_back(txn) is None
        assert world.connect().receiver(distribution_mode="copy", snd_settle_mode=1).drain() == [f"m1+{count + 1}"]


def test_the_count_the_message_came_with_goes_on(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", delivery_count=2)
    receiver = peer.receiver(credit=1)
    delivery = receiver.take()
    receiver.dispose(delivery, MODIFIED_FAILED)
    assert receiver.receive(1) == ["m1+3"]


def test_modified_merges_its_annotations(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), Modified(message_annotations={Symbol("x-opt-note"): "seen"}))
    receiver.flow(1)
    (delivery,) = receiver.take()
    annotations = ReceivedMessage(delivery.payload).message_annotations()
    assert annotations is not None and annotations["x-opt-note"] == "seen"
    assert world.queue().octets == len(delivery.payload)


def test_receivers_do_not_make_a_message_as_large_as_they_like(world: World) -> None:
    """What they add is left out where it would be too much; the outcome holds all the same."""
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver()
    for number in range(20):
        receiver.flow(1)
        more = Modified(delivery_failed=True, message_annotations={Symbol(f"x-opt-{number}"): "x" * 10_000})
        receiver.dispose(receiver.take(), more)
    receiver.flow(1)
    (delivery,) = receiver.take()
    annotations = ReceivedMessage(delivery.payload).message_annotations()
    assert sorted(annotations) == sorted(f"x-opt-{number}" for number in range(6))
    assert len(delivery.payload) < LARGEST_ANNOTATIONS and count_of(delivery.payload) == 20
    receiver.dispose([delivery], Modified(message_annotations={Symbol("x-opt-0"): "y"}))
    receiver.flow(1)
    (delivery,) = receiver.take()
    annotations = ReceivedMessage(delivery.payload).message_annotations()
    assert annotations["x-opt-0"] == "y" and len(annotations) == 6


@pytest.mark.parametrize("outcome", [Rejected(), Modified(True, False, {Symbol("x-opt-note"): 2})])
def test_annotations_of_names_that_are_no_symbols_stay(world: World, outcome: Any) -> None:
    """Some write the names as strings, against 3.2.10; in other letters than ASCII none can be a symbol."""
    peer = world.connect()
    strange = encode_described(0x72, encode_map([encode_string("größe"), encode_string("XL")]))
    peer.sender().transfer(message("m1", annotations=strange))
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), outcome)
    (payload,) = world.queue("DLQ" if isinstance(outcome, Rejected) else "q").payloads()
    annotations = ReceivedMessage(payload).message_annotations()
    assert annotations["größe"] == "XL" and (isinstance(outcome, Rejected) or annotations["x-opt-note"] == 2)


def test_a_state_that_is_no_outcome_changes_nothing_until_it_is_settled(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(credit=1)
    deliveries = receiver.take()
    receiver.dispose(deliveries, Received(0, 0), settled=False)
    assert world.depth() == (0, 1)
    receiver.dispose(deliveries, Received(0, 0))
    assert receiver.receive(1) == ["m1"]


def test_settling_second_is_answered_with_a_settlement(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", "m2")
    receiver = peer.receiver(credit=2, rcv_settle_mode=1)
    assert receiver.link.remote_rcv_settle_mode == 1
    first, second = receiver.take()
    receiver.dispose([first], ACCEPTED, settled=False)
    receiver.dispose([second], Rejected(), settled=False)
    assert first.context == [ACCEPTED] and second.context == [Rejected()]
    assert first.remote_settled and second.remote_settled
    assert world.queue().depth == 0 and world.bodies("DLQ") == ["m2"]
    assert not peer.session.incoming


def test_a_second_disposition_of_one_delivery_is_ignored(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(credit=2)
    (delivery,) = receiver.take()
    receiver.dispose([delivery], RELEASED)
    (again,) = receiver.take()
    assert again.id != delivery.id
    body = encode_disposition(True, delivery.id, delivery.id, True, ACCEPTED.encoded)
    peer.engine.write(peer.session.channel, body)
    world.run()
    assert world.depth() == (0, 1)


def test_redelivery_delay_lets_later_messages_pass(world: World) -> None:
    world.broker.declare_queue("q", redelivery_delay=10)
    peer = world.connect()
    peer.sender().send("m1", "m2")
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), MODIFIED_FAILED)
    assert receiver.receive(1) == ["m2"]
    assert world.queue().depth == 2 and world.queue().available == 0
    world.advance(9)
    assert receiver.receive(1) == []
    peer.sender().send("m3")
    assert receiver.receive() == ["m3"]
    world.advance(1)
    assert receiver.receive(1) == ["m1+1"]
