"""The default outcome of a source (seed 000, W1-W6): every way a delivery ends without one of its own."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    AmqpError,
    Declared,
    DeliveryState,
    Modified,
    Received,
    Rejected,
    Source,
    TransactionalState,
    UnknownState,
)
from jmsish.engine.sections import delivery_count_of
from jmsish.types import Symbol, ULong
from tests.broker.world import SETTLED, Receiver, World, in_transaction

GONE = "gone"
BACK = "m1"
COUNTED = "m1+1"

DEFAULTS: list[tuple[str, DeliveryState | None]] = [
    ("absent", None),
    ("accepted", ACCEPTED),
    ("rejected", Rejected()),
    ("released", RELEASED),
    ("modified", Modified()),
    ("modified-failed", MODIFIED_FAILED),
    ("modified-failed-undeliverable", MODIFIED_FAILED_UNDELIVERABLE),
]
BY_OUTCOME = {
    "accepted": GONE,
    "rejected": COUNTED,
    "released": BACK,
    "modified": BACK,
    "modified-failed": COUNTED,
    "modified-failed-undeliverable": COUNTED,
}


def _expected(way: str, name: str) -> str:
    if name != "absent":
        return BY_OUTCOME[name]
    # Nothing given: pre-settled is gone (seed 000), settled without a state is as released (179), else counted (D5).
    return {"presettled": GONE, "settled without state": BACK}.get(way, COUNTED)


def _presettled(world: World, receiver: Receiver) -> None:
    receiver.flow(1)
    (delivery,) = receiver.take()
    assert delivery.remote_settled


def _settled_without_state(world: World, receiver: Receiver) -> None:
    receiver.flow(1)
    receiver.dispose(receiver.take(), None)


def _closed(world: World, receiver: Receiver) -> None:
    receiver.flow(1)
    receiver.detach()
    world.advance(0)
    world.advance(1.1)


def _detached_and_ended(world: World, receiver: Receiver) -> None:
    receiver.flow(1)
    receiver.detach(closed=False)
    receiver.session.end()
    world.run()


def _session_ended(world: World, receiver: Receiver) -> None:
    receiver.flow(1)
    receiver.session.end()
    world.run()


def _connection_closed(world: World, receiver: Receiver) -> None:
    receiver.flow(1)
    receiver.peer.close()


def _connection_cut(world: World, receiver: Receiver) -> None:
    receiver.flow(1)
    receiver.peer.cut()


def _rolled_back(world: World, receiver: Receiver) -> None:
    receiver.flow(1)
    controller = receiver.peer.controller()
    txn = controller.declare()
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    assert controller.roll_back(txn) is None


def _control_link_lost(world: World, receiver: Receiver) -> None:
    receiver.flow(1)
    controller = receiver.peer.controller()
    txn = controller.declare()
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    controller.detach(closed=False)


def _cut_in_transaction(world: World, receiver: Receiver) -> None:
    receiver.flow(1)
    txn = receiver.peer.controller().declare()
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    receiver.peer.cut()


WAYS: dict[str, Any] = {
    "presettled": _presettled,
    "settled without state": _settled_without_state,
    "closed link": _closed,
    "detached link, session ended": _detached_and_ended,
    "session ended": _session_ended,
    "connection closed": _connection_closed,
    "connection cut": _connection_cut,
    "rolled back": _rolled_back,
    "control link lost": _control_link_lost,
    "cut in a transaction": _cut_in_transaction,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "outcome"), DEFAULTS, ids=[name for name, _ in DEFAULTS])
def test_every_default_in_every_way(world: World, way: str, name: str, outcome: DeliveryState | None) -> None:
    world.connect().sender().send("m1", "m2")
    options: dict[str, Any] = {"snd_settle_mode": SETTLED} if way == "presettled" else {}
    peer = world.connect()
    receiver = peer.receiver(default_outcome=outcome, session=peer.begin(), **options)
    WAYS[way](world, receiver)
    expected = _expected(way, name)
    assert world.connect().receiver().drain() == (["m2"] if expected == GONE else [expected, "m2"])


@pytest.mark.parametrize(("name", "outcome"), DEFAULTS, ids=[name for name, _ in DEFAULTS])
def test_the_reply_names_the_default_in_force(world: World, name: str, outcome: DeliveryState | None) -> None:
    """W5: which is the one asked for."""
    receiver = world.connect().receiver(default_outcome=outcome)
    source = receiver.link.remote_source
    assert isinstance(source, Source)
    assert source.default_outcome == outcome
    assert source.outcomes is not None and "amqp:modified:list" in source.outcomes


INVALID: list[tuple[str, DeliveryState, str]] = [
    ("received", Received(0, 0), "amqp:invalid-field"),
    ("transactional-state", TransactionalState(b"x"), "amqp:invalid-field"),
    ("declared", Declared(b"x"), "amqp:not-implemented"),
    ("unknown-number", UnknownState(ULong(0x4711_0000_0001), []), "amqp:not-implemented"),
    ("unknown-symbol", UnknownState(Symbol("vendor:shelved:list"), []), "amqp:not-implemented"),
    ("a-source", UnknownState(ULong(0x28), []), "amqp:invalid-field"),
    ("an-error", UnknownState(ULong(0x1D), [Symbol("x")]), "amqp:invalid-field"),
    ("a-source-by-symbol", UnknownState(Symbol("amqp:source:list"), []), "amqp:invalid-field"),
    ("a-bare-value", UnknownState(None, "accepted"), "amqp:invalid-field"),
]


@pytest.mark.parametrize(("name", "outcome", "condition"), INVALID, ids=[name for name, _, _ in INVALID])
def test_refused_defaults(world: World, name: str, outcome: DeliveryState, condition: str) -> None:
    """W4: at the attach, link scope, and the error names the field."""
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(default_outcome=outcome)
    assert receiver.detached
    error = receiver.error
    assert isinstance(error, AmqpError)
    assert error.condition == condition
    assert error.description is not None and "default-outcome" in error.description
    assert error.info is not None and error.info["field"] == "default-outcome"
    assert receiver.link.remote_source is None
    assert not peer.ended and not peer.closed
    assert peer.receiver(credit=1).receive() == ["m1"]


def test_presettled_release_does_not_spin(world: World) -> None:
    """A link that asked to give everything back gets each message once a flow; others get it meanwhile."""
    peer = world.connect()
    peer.sender().send("m1", "m2")
    receiver = peer.receiver(credit=1000, default_outcome=RELEASED, snd_settle_mode=SETTLED)
    assert receiver.receive() == ["m1", "m2"]
    peer.sender().send("m3")
    assert receiver.receive() == ["m3"]
    assert receiver.receive(1000) == ["m1", "m2", "m3"]
    assert world.depth() == (3, 0)
    assert peer.receiver().drain() == ["m1", "m2", "m3"]


def test_presettled_and_undeliverable_here_does_not_come_again(world: World) -> None:
    """W3: the default outcome means what it says; a flow brings back only what was not refused for good."""
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(default_outcome=MODIFIED_FAILED_UNDELIVERABLE, snd_settle_mode=SETTLED)
    assert [receiver.receive(1) for _ in range(3)] == [["m1"], [], []]
    assert peer.receiver().drain() == ["m1+1"]


def test_presettled_failures_end_in_the_dead_letters(world: World) -> None:
    world.broker.declare_queue("q", max_delivery_attempts=3)
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(default_outcome=MODIFIED_FAILED, snd_settle_mode=SETTLED)
    assert [receiver.receive(1) for _ in range(4)] == [["m1"], ["m1+1"], ["m1+2"], []]
    assert world.bodies("DLQ") == ["m1"]


def test_presettled_and_lost_in_mid_transfer_is_back(world: World) -> None:
    """W2: "a delivery lost in mid-transfer is always back"."""
    peer = world.connect(max_frame_size=512, incoming_window=4)
    world.connect().sender().send("x" * 250, "m2")
    big = b"\x00\x53\x77\xb1\x00\x00\x40\x00" + b"y" * 0x4000
    sender = world.connect().sender("large")
    sender.transfer(big)
    world.run()
    receiver = peer.receiver("large", default_outcome=ACCEPTED, snd_settle_mode=SETTLED)
    receiver.link.flow(1)
    peer.speak()
    world.broker.step()
    peer.connection.take_output()
    assert world.depth("large") == (0, 1)
    peer.cut()
    assert world.depth("large") == (1, 0)


@pytest.mark.parametrize(("default", "count"), [(MODIFIED_FAILED, 1), (RELEASED, 0), (None, 0)])
def test_lost_in_mid_transfer_it_counts_as_the_default_outcome_says(world: World, default: Any, count: int) -> None:
    """D5: a part of it may have been read already, by a receiver that reads while it arrives."""
    big = b"\x00\x53\x77\xb1\x00\x00\x40\x00" + b"y" * 0x4000
    sender = world.connect().sender("large")
    sender.transfer(big)
    world.run()
    peer = world.connect(max_frame_size=512, incoming_window=4)
    receiver = peer.receiver("large", default_outcome=default)
    receiver.link.flow(1)
    peer.speak()
    world.broker.step()
    peer.connection.take_output()
    peer.cut()
    assert world.depth("large") == (1, 0)
    other = world.connect().receiver("large", default_outcome=default)
    other.flow(1)
    (delivery,) = other.take()
    assert delivery_count_of(delivery.payload) == count


def test_a_rolled_back_acquisition_is_back_even_if_the_default_is_accepted(world: World) -> None:
    """T87-T89 go before W2."""
    peer = world.connect()
    peer.sender().send("m1", "m2")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(default_outcome=ACCEPTED)
    receiver.flow(2, properties={Symbol("txn-id"): txn})
    held = receiver.take()
    assert [delivery.remote_state for delivery in held] == [in_transaction(txn)] * 2
    receiver.dispose(held[:1], in_transaction(txn, ACCEPTED))
    controller.roll_back(txn)
    assert world.depth() == (2, 0)
    assert peer.receiver().drain() == ["m1+1", "m2"]
