"""Large messages that end in their middle, in what order their frames and their ends are seen."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.conditions import CONNECTION_FORCED, MESSAGE_SIZE_EXCEEDED
from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, RELEASED, Rejected
from tests.network.test_mobile import bodies
from tests.network.test_sizes import is_too_large, of_size
from tests.network.world import Network

LINE = "EA1-INT.A-INT.B-EB1"


def in_pieces(network: Network, sender: Any, *octets: int) -> None:
    """Bring what a sender has to say in pieces that end at these octets, and a last one with the rest."""
    data = sender.peer.engine.take_output()
    start = 0
    for end in (*octets, len(data)):
        sender.peer.connection.receive(data[start:end])
        network.run()
        start = end


@pytest.mark.parametrize("route", ["orders", "oversize"])
@pytest.mark.parametrize("cut", [20_000, 60_000, 90_000])
def test_what_came_before_the_octet_too_many_is_no_message(route: str, cut: int) -> None:
    """Its last frame comes in one batch with those before, and is the one that is too much."""
    network = Network("EA1-INT.A", limits={"EA1": 100_000}, routes={"oversize": ("EA1", "broker")})
    receiver = network.connect("EA1").receiver("orders", credit=20)
    sender = network.connect("EA1").sender(f"{route}.q" if route == "oversize" else route)
    told = sender.transfer(of_size(100_001))
    in_pieces(network, sender, cut)
    assert is_too_large(told[0]) and sender.error.condition == MESSAGE_SIZE_EXCEEDED
    (closed,) = sender.peer.closed
    assert closed.condition == CONNECTION_FORCED
    assert receiver.arrived == []
    if route == "oversize":
        assert network.brokers["broker"].queue("oversize.q").depth == 0


def test_a_message_released_before_it_turns_out_too_large_is_settled_once() -> None:
    network = Network("EB1-INT.B", limits={"INT.B": 50_000, "EB1": 100_000})
    receiver = network.connect("INT.B").receiver("orders", credit=20)
    sender = network.connect("EB1").sender("orders")
    told = sender.transfer(of_size(100_001))
    in_pieces(network, sender, 70_000)
    assert len(told) == 1 and isinstance(told[0], Rejected)  # by INT.B, whose limit is the smaller
    assert len(sender.peer.closed) == 1  # by EB1
    assert receiver.arrived == []


def test_a_copy_that_is_lost_does_not_hold_the_others_up() -> None:
    """The way to one of two receivers goes while it holds a large message back."""
    network = Network("EB1-INT.B", multicast=("news",))
    near = network.connect("EB1").receiver("news", credit=10)
    network.connect("INT.B").receiver("news", credit=10)
    sender = network.connect("EB1").sender("news")
    wire = network.wire("EB1", "INT.B")
    wire.carry = lambda named: bool(named.clear())  # type: ignore[method-assign] # nobody reads any more
    told = sender.transfer(b"\x00\x53\x77\xb1" + (3_000_000).to_bytes(4, "big") + b"x" * 3_000_000)
    sender.peer.speak()
    for _ in range(50):
        network._step()
        for peer in network.peers:
            peer.hear()
            peer.speak()
    assert near.arrived == []  # as slow as the slowest
    del wire.carry
    wire.cut()
    network.run()
    assert len(near.arrived) == 1
    near.accept(near.take())
    assert told == [ACCEPTED]


def test_an_abort_is_not_the_end_of_a_message() -> None:
    """The abort comes in one batch with the frames before it."""
    network = Network("EA1-INT.A")
    receiver = network.connect("INT.A").receiver("orders", credit=10)
    sender = network.connect("EA1").sender("orders")
    delivery = sender.link.send(b"\x00\x53\x77\xb1" + (2_000_000).to_bytes(4, "big") + b"x" * 2_000_000, context=[])
    head = sender.peer.engine.take_output()
    sender.link.abort(delivery)
    sender.peer.connection.receive(head[:30_000])
    network.run()
    sender.peer.connection.receive(head[30_000:] + sender.peer.engine.take_output())
    network.run()
    told = sender.send("after")
    assert bodies(receiver.arrived) == ["after"]
    receiver.accept(receiver.take())
    assert told == [[ACCEPTED]]


@pytest.mark.parametrize("closed", [True, False])
def test_what_a_detached_receiver_has_not_settled_is_decided_after_a_moment(closed: bool) -> None:
    """A router keeps nothing of a link that is detached, whether it is closed or may come again."""
    network = Network(LINE)
    receiver = network.connect("EB1").receiver("orders", credit=1)
    (told,) = network.connect("EA1").sender("orders").send("a")
    receiver.detach(closed)
    assert told == []
    network.advance(10)
    network.advance(10)
    assert told == [MODIFIED_FAILED]


def test_copies_that_wait_for_a_neighbour_are_given_back_with_its_route() -> None:
    """Multicast copies wait at the link, and not with their sender: they come back as well."""
    network = Network(LINE, multicast=("news",))
    receiver = network.connect("EB1").receiver("news")
    sender = network.connect("EA1").sender("news")
    told = sender.send(*map(str, range(200)))
    assert receiver.arrived == [] and told == [[]] * 200
    receiver.detach()
    assert told == [[RELEASED]] * 200


def test_a_copy_whose_credit_is_taken_back_before_it_left_is_released() -> None:
    """The link to the neighbour is being made when the route goes."""
    network = Network("EA1-INT.A")
    receiver = network.connect("INT.A").receiver("orders", credit=10)
    sender = network.connect("EA1").sender("orders")
    told = sender.transfer(of_size(1000))
    sender.peer.speak()
    network._step()  # the link is asked for, the message waits for it
    receiver.link.detach()
    receiver.peer.speak()
    network._step()
    network.run()
    network.advance(2)
    assert told == [RELEASED]


def test_a_large_settled_message_ends_with_the_receiver_that_does_not_take_it() -> None:
    network = Network("INT.A-INT.B")
    receiver = network.connect("INT.B", incoming_window=2).receiver("orders", credit=1)
    sender = network.connect("INT.A").sender("orders")
    network.peers.remove(receiver.peer)  # it does not read
    sender.transfer(b"\x00\x53\x77\xb1" + (2_000_000).to_bytes(4, "big") + b"x" * 2_000_000, settled=True)
    network.run()
    receiver.peer.cut()
    again = network.connect("INT.B").receiver("orders", credit=1)
    (told,) = sender.send("after")
    again.accept(again.take())
    assert told == [ACCEPTED]
    sender.detach()
    again.detach()
    network.advance(2)
    assert not any(node._addresses for node in network.nodes.values())
