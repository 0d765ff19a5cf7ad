"""What waits for nobody leaves as it comes, and what waits has its turn before it."""

from __future__ import annotations

from tests.network.test_mobile import bodies
from tests.network.world import Network


def test_what_waits_for_credit_goes_before_what_comes_with_it() -> None:
    network = Network("INT.A-INT.B")
    receiver = network.connect("INT.B").receiver("orders", credit=1)
    sender = network.connect("INT.A").sender("orders")
    sender.send("1", "2", "3")
    receiver.flow(10)
    sender.send("4", "5")
    assert bodies(receiver.arrived) == ["1", "2", "3", "4", "5"]


def test_senders_take_turns_for_scarce_credit() -> None:
    network = Network("INT.A")
    receiver = network.connect("INT.A").receiver("orders", credit=0)
    for name in "ab":
        network.connect("INT.A").sender("orders").send(*(f"{name}{number}" for number in range(3)))
    receiver.flow(4)
    assert sorted(bodies(receiver.arrived)) == ["a0", "a1", "b0", "b1"]


def test_the_next_message_goes_where_it_is_nearest_by_then() -> None:
    network = Network("INT.A-INT.B, INT.A-INT.C-INT.D")
    far = network.connect("INT.D").receiver("orders", credit=10)
    sender = network.connect("INT.A").sender("orders")
    sender.send("1")
    near = network.connect("INT.B").receiver("orders", credit=10)
    sender.send("2")
    here = network.connect("INT.A").receiver("orders", credit=10)
    sender.send("3")
    here.detach()
    sender.send("4")
    near.peer.cut()
    sender.send("5")
    assert [bodies(each.arrived) for each in (far, near, here)] == [["1", "5"], ["2", "4"], ["3"]]
