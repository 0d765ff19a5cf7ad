"""Size limits at each door: the matrix of DISPATCH-975 (exchanges and policy, 3.7), its compounds and aborts."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.conditions import CONNECTION_FORCED, MESSAGE_SIZE_EXCEEDED
from jmsish.engine.outcomes import ACCEPTED, Rejected
from tests.broker.world import message
from tests.network.world import Network

LINE = "EA1-INT.A-INT.B-EB1"
LIMITS = {"EA1": 50_000, "INT.A": 100_000, "INT.B": 150_000, "EB1": 200_000}

BLOCKED = [
    ("40", "INT.A", "INT.A", 100_200), ("41", "INT.A", "INT.B", 100_200), ("42", "INT.A", "EA1", 100_200),
    ("43", "INT.A", "EB1", 100_200), ("44", "INT.B", "INT.A", 150_200), ("45", "INT.B", "INT.B", 150_200),
    ("46", "INT.B", "EA1", 150_200), ("47", "INT.B", "EB1", 150_200), ("48", "EA1", "INT.A", 50_200),
    ("49", "EA1", "INT.B", 50_200), ("4a", "EA1", "EA1", 50_200), ("4b", "EA1", "EB1", 50_200),
    ("4c", "EB1", "INT.A", 200_200), ("4d", "EB1", "INT.B", 200_200), ("4e", "EB1", "EA1", 200_200),
    ("4f", "EB1", "EB1", 200_200),
]  # fmt: skip
ALLOWED = [
    ("50", "INT.A", "INT.A", 99_800), ("51", "INT.A", "INT.B", 99_800), ("52", "INT.A", "EA1", 99_800),
    ("53", "INT.A", "EB1", 99_800), ("54", "INT.B", "INT.A", 149_800), ("55", "INT.B", "INT.B", 149_800),
    ("56", "INT.B", "EA1", 149_800), ("57", "INT.B", "EB1", 149_800), ("58", "EA1", "INT.A", 49_800),
    ("59", "EA1", "INT.B", 49_800), ("5a", "EA1", "EA1", 49_800), ("5b", "EA1", "EB1", 49_800),
    ("5c", "EB1", "INT.A", 149_800), ("5d", "EB1", "INT.B", 149_800), ("5e", "EB1", "EA1", 149_800),
    ("5f", "EB1", "EB1", 149_800),
]  # fmt: skip


def of_size(size: int) -> bytes:
    """A message of exactly so many octets."""
    return message("x" * (size - len(message("x" * 1000)) + 1000))


def sent(sender: Any, size: int, count: int = 10) -> list[list[Any]]:
    told = []
    for _ in range(count):
        if sender.peer.closed or sender.detached or not sender.link.credit:
            break
        told.append(sender.transfer(of_size(size)))
    sender.world.run()
    return told


def is_too_large(state: Any) -> bool:
    return isinstance(state, Rejected) and state.error is not None and state.error.condition == MESSAGE_SIZE_EXCEEDED


@pytest.mark.parametrize(("name", "sending", "receiving", "size"), BLOCKED, ids=lambda value: str(value))
def test_basic_blocked(name: str, sending: str, receiving: str, size: int) -> None:
    network = Network(LINE, limits=LIMITS)
    receiver = network.connect(receiving).receiver("orders", credit=20)
    sender = network.connect(sending).sender("orders")
    told = sent(sender, size)
    assert is_too_large(told[0][0])
    assert sender.error.condition == MESSAGE_SIZE_EXCEEDED
    (closed,) = sender.peer.closed
    assert (closed.condition, closed.description) == (CONNECTION_FORCED, "Message size exceeded")
    assert receiver.arrived == []
    assert network[sending].denials.max_message_size_denied == 1


@pytest.mark.parametrize(("name", "sending", "receiving", "size"), ALLOWED, ids=lambda value: str(value))
def test_basic_allowed(name: str, sending: str, receiving: str, size: int) -> None:
    network = Network(LINE, limits=LIMITS)
    receiver = network.connect(receiving).receiver("orders", credit=20)
    sender = network.connect(sending).sender("orders")
    told = sent(sender, size)
    assert len(receiver.arrived) == 10
    receiver.accept(receiver.take())
    assert told == [[ACCEPTED]] * 10
    assert not sender.peer.closed


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_exactly_the_limit_passes(over: int) -> None:
    network = Network(LINE, limits=LIMITS)
    receiver = network.connect("EB1").receiver("orders", credit=20)
    sender = network.connect("EA1").sender("orders")
    assert sender.link.remote_max_message_size == 50_000
    sent(sender, 50_000 + over, 1)
    assert len(receiver.arrived) == (over <= 0)
    assert bool(sender.peer.closed) is (over > 0)


def test_no_limit_is_not_announced() -> None:
    network = Network(LINE)
    assert network.connect("EA1").sender("orders").link.remote_max_message_size == 0


@pytest.mark.parametrize("receiving", ["INT.B", "EA1"])
def test_compound_60_61_an_uplink_is_checked_again(receiving: str) -> None:
    network = Network(LINE, limits=LIMITS)
    receiver = network.connect(receiving).receiver("orders", credit=20)
    sender = network.connect("EB1").sender("orders")
    uplink = network.wire("EB1", "INT.B")
    told = sent(sender, 199_800)
    assert sum(map(is_too_large, (answers[0] for answers in told if answers))) == 1
    assert all(told)  # all are settled
    assert receiver.arrived == []
    assert not sender.peer.closed
    assert uplink.near.ended and uplink.far.ended
    assert network["EB1"].denials.max_message_size_denied == 0
    assert network["INT.B"].denials.max_message_size_denied == 1
    network.advance(2)
    (answers,) = sent(sender, 1000, 1)
    receiver.accept(receiver.take())
    assert answers == [ACCEPTED]  # the edge has connected anew and learned its addresses


def test_compound_70_both_refuse() -> None:
    network = Network(LINE, limits=LIMITS)
    receiver = network.connect("INT.B").receiver("orders", credit=20)
    sender = network.connect("EB1").sender("orders")
    told = sent(sender, 200_200)
    assert is_too_large(told[0][0])
    assert len(sender.peer.closed) == 1
    assert receiver.arrived == []
    network.advance(2)
    assert network["EB1"].uplink is not None


def test_compound_80_multicast_stays_where_it_is_small_enough() -> None:
    network = Network(LINE, limits=LIMITS, multicast=("news",))
    receivers = {name: network.connect(name).receiver("news", credit=20) for name in network.nodes}
    sender = network.connect("EB1").sender("news")
    told = sent(sender, 199_800)
    for receiver in receivers.values():
        receiver.accept(receiver.arrived)
    assert {name: len(receiver.arrived) for name, receiver in receivers.items()} == {
        "EA1": 0, "INT.A": 0, "INT.B": 0, "EB1": 10,
    }  # fmt: skip
    assert told == [[ACCEPTED]] * 10
    assert not sender.peer.closed


@pytest.mark.parametrize(("name", "sending", "size"), [("81", "EA1", 50_200), ("82", "INT.A", 100_200)])
def test_compound_81_82_multicast_refused_at_the_door(name: str, sending: str, size: int) -> None:
    network = Network(LINE, limits=LIMITS, multicast=("news",))
    receivers = [network.connect(name).receiver("news", credit=20) for name in network.nodes]
    sender = network.connect(sending).sender("news")
    told = sent(sender, size)
    assert is_too_large(told[0][0])
    assert len(sender.peer.closed) == 1
    assert not any(receiver.arrived for receiver in receivers)


def test_from_an_interior_to_an_edge_nothing_is_checked() -> None:
    network = Network("EA1-INT.A", limits={"EA1": 1000})
    receiver = network.connect("EA1").receiver("orders", credit=20)
    sent(network.connect("INT.A").sender("orders"), 100_000, 1)
    assert len(receiver.arrived) == 1


def test_copies_under_way_are_aborted() -> None:
    network = Network(LINE, limits={"INT.A": 100_000})
    receiver = network.connect("EB1", incoming_window=2048).receiver("orders", credit=20)
    sender = network.connect("INT.A").sender("orders")
    sent(sender, 5000, 1)
    sender.transfer(of_size(100_001))
    octets = sender.peer.engine.take_output()
    for start in range(0, len(octets), 10_000):
        sender.peer.connection.receive(octets[start : start + 10_000])
        network.run()
    wire = network.wire("INT.B", "EB1")
    assert sum(len(data) for _, data in wire.carried) > 100_000  # it was on its way
    assert len(receiver.arrived) == 1
    sent(network.connect("INT.A").sender("orders"), 5000, 1)
    assert len(receiver.arrived) == 2


def test_a_pre_settled_message_is_refused_without_an_outcome() -> None:
    network = Network(LINE, limits=LIMITS)
    receiver = network.connect("EB1").receiver("orders", credit=20)
    sender = network.connect("EA1").sender("orders")
    answers = sender.transfer(of_size(60_000), settled=True)
    network.run()
    assert answers == [] and sender.error.condition == MESSAGE_SIZE_EXCEEDED
    assert len(sender.peer.closed) == 1 and receiver.arrived == []


def test_a_control_link_tells_more_than_a_limit_of_messages() -> None:
    network = Network("EA1-INT.A", limits={"EA1": 100, "INT.A": 100})
    peer = network.connect("EA1")
    for number in range(50):
        peer.receiver(f"a-long-address-of-its-own-{number}")
    assert all(network["INT.A"].reaches(f"a-long-address-of-its-own-{number}") for number in range(50))
    network.wire("EA1", "INT.A").cut()
    network.advance(2)
    assert all(network["INT.A"].reaches(f"a-long-address-of-its-own-{number}") for number in range(50))
