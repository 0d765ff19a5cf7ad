"""A router's step is a bounded piece of work, however many senders have messages that wait; each has its turn."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.network.node import MESSAGES_A_STEP
from tests.broker.world import Receiver, Sender, message
from tests.network.test_mobile import bodies
from tests.network.world import Network

SENDERS = 30
EACH = 100


@pytest.fixture
def crowded() -> tuple[Network, Any, list[Any]]:
    """Very many messages wait for one receiver, which now gives credit for all of them."""
    network = Network("INT.A")
    receiver = network.connect("INT.A", incoming_window=10_000).receiver("orders")
    senders = [network.connect("INT.A").sender("orders") for _ in range(SENDERS)]
    for number, sender in enumerate(senders):
        sender.send(*(f"{number}:{index}" for index in range(EACH)))
    receiver.flow(10_000, run=False)
    receiver.peer.speak()
    return network, receiver, senders


def left(network: Network) -> int:
    address = network["INT.A"].known_address("orders")
    assert address is not None
    return address.deliveries_out


def test_a_step_moves_so_many_and_the_rest_later(crowded: tuple[Network, Any, list[Any]]) -> None:
    network, receiver, _ = crowded
    node = network["INT.A"]
    steps = 0
    while left(network) < SENDERS * EACH:
        before = left(network)
        network.named.update(node.step())
        assert 0 < left(network) - before <= MESSAGES_A_STEP
        assert node.unfinished or left(network) == SENDERS * EACH
        steps += 1
    assert steps >= SENDERS * EACH // MESSAGES_A_STEP
    network.run()
    assert len(receiver.arrived) == SENDERS * EACH


def test_each_sender_has_its_turn(crowded: tuple[Network, Any, list[Any]]) -> None:
    network, receiver, _ = crowded
    network.named.update(network["INT.A"].step())
    receiver.peer.hear()
    came = [body.partition(":")[0] for body in bodies(receiver.arrived)]
    counts = [came.count(str(number)) for number in range(SENDERS)]
    assert min(counts) >= MESSAGES_A_STEP // SENDERS and max(counts) - min(counts) <= 1


def test_another_address_has_its_turn_between(crowded: tuple[Network, Any, list[Any]]) -> None:
    network, crowd, senders = crowded
    node = network["INT.A"]
    quick = Receiver(crowd.peer, crowd.peer.session, "quick", {})
    late = Sender(senders[0].peer, senders[0].link.session, "quick", {})
    for _ in range(4):
        crowd.peer.speak()
        late.peer.speak()
        network.named.update(node.step())
        crowd.peer.hear()
        late.peer.hear()
    assert node.unfinished and late.link.credit > 0
    late.transfer(message("now"))
    late.peer.speak()
    quick.link.flow(1)
    crowd.peer.speak()
    before = left(network)
    node.step()
    node.step()
    crowd.peer.hear()
    assert bodies(quick.arrived) == ["now"]
    assert left(network) <= before + 2 * MESSAGES_A_STEP
    assert node.unfinished


def test_a_drain_is_answered_when_all_that_can_move_has_moved(crowded: tuple[Network, Any, list[Any]]) -> None:
    network, receiver, _ = crowded
    receiver.flow(5000, drain=True)
    assert receiver.link.credit == 0 and len(receiver.arrived) == SENDERS * EACH


def test_what_waits_for_a_neighbour_is_looked_at_when_that_one_gives_credit() -> None:
    """Each sender has a link of its own to the neighbour, so what that one says concerns it alone."""
    network = Network("INT.A-INT.B")
    receiver = network.connect("INT.B").receiver("orders")
    senders = [network.connect("INT.A").sender("orders") for _ in range(5)]
    told = [answers for sender in senders for answers in sender.send(*"abc")]
    receiver.flow(100)
    receiver.accept(receiver.take())
    assert len(told) == 15 and all(told)


def test_after_an_interrupt_no_address_stays_unserved() -> None:
    """Ctrl-C over ``vm://`` comes in the middle of anything: here as those who wait had just been taken up."""
    network = Network("INT.A")
    receiver = network.connect("INT.A").receiver("orders")
    sender = network.connect("INT.A").sender("orders")
    sender.send("1", "2")
    node = network["INT.A"]
    receiver.flow(10, run=False)
    receiver.peer.speak()
    address = node._woken.popleft()
    address._ready.popleft() if address._ready else None
    node.interrupted()
    network.run()
    assert bodies(receiver.arrived) == ["1", "2"]
