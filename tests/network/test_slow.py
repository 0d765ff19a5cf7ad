"""A slow receiver slows only its own senders: nothing else waits for it between the same two routers."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED
from jmsish.engine.sharing import SHARED_WINDOWS
from jmsish.engine.values import encode_described, encode_list, encode_string
from tests.broker.world import Receiver, Sender
from tests.network.test_mobile import bodies
from tests.network.world import Network

MANY = 1_000
"""Messages by which every window and every credit between two routers is used up several times."""
LARGE = "x" * 3_000_000
SHARES = {"properties": {SHARED_WINDOWS: True}}
LINE = "INT.A-INT.B"


def without_credit(network: Network) -> None:
    """It has taken none: its sender waits with all that it may have under way."""
    network.connect("INT.B").receiver("slow", credit=0)
    sender = network.connect("INT.A").sender("slow")
    sender.send(*(str(number) for number in range(sender.link.credit)))
    assert sender.link.credit == 0


def amid_a_message(network: Network) -> None:
    """It has begun to take a large one, and takes no more: its window is full, and so is every one on the way."""
    receiver = network.connect("INT.B", incoming_window=2).receiver("slow", credit=10)
    receiver.session.held_back = True
    sender = network.connect("INT.A").sender("slow")
    told = sender.send(LARGE)
    assert receiver.link.current is not None and told == [[]]
    assert sender.link.session.remote_left == 0


STALLS = [without_credit, amid_a_message]


def stream(sender: Sender, receiver: Receiver, count: int = MANY) -> None:
    """Send so many, and see each come and be accepted."""
    came: list[str] = []
    told: list[Any] = []
    while len(came) < count:
        some = min(sender.link.credit, 100, count - len(came))
        assert some, f"{len(came)} came, and no more may be sent"
        told += sender.send(*(str(len(came) + number) for number in range(some)))
        arrived = receiver.take()
        assert arrived, f"after {len(came)} nothing comes"
        came += bodies(arrived)
        receiver.accept(arrived)
        receiver.flow(200)
    assert came == [str(number) for number in range(count)]
    assert told == [[ACCEPTED]] * count


@pytest.mark.parametrize("stall", STALLS)
def test_a_stalled_receiver_holds_up_no_other_address(stall: Any) -> None:
    network = Network(LINE)
    stall(network)
    stream(network.connect("INT.A").sender("quick"), network.connect("INT.B").receiver("quick", credit=200))


def test_nor_another_sender_to_another_receiver_of_the_same_address() -> None:
    """The one that stands still has what it has; what comes then goes to who takes it."""
    network = Network(LINE)
    amid_a_message(network)
    stream(network.connect("INT.A").sender("slow"), network.connect("INT.B").receiver("slow", credit=200), 200)


@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("size", [10, 100_000])
def test_nor_what_comes_the_other_way(stall: Any, size: int) -> None:
    network = Network(LINE)
    stall(network)
    receiver = network.connect("INT.A").receiver("back", credit=10)
    told = network.connect("INT.B").sender("back").send("y" * size, "z")
    assert bodies(receiver.arrived) == ["y" * size, "z"]
    receiver.accept(receiver.take())
    assert told == [[ACCEPTED]] * 2


@pytest.mark.parametrize("stall", STALLS)
def test_nor_what_the_routers_tell_each_other(stall: Any) -> None:
    network = Network(LINE)
    stall(network)
    network.connect("INT.B").receiver("new", credit=1)
    assert network["INT.A"].reaches("new")


def test_a_session_shared_with_a_stalled_large_message_goes_on() -> None:
    """Of one client, that shares windows as those of this library do: one link stands still, the other does not."""
    network = Network("EA1-INT.A-INT.B-EB1")
    slow = network.connect("EB1", incoming_window=2).receiver("slow", credit=10)
    slow.session.held_back = True
    near = network.connect("EA1", **SHARES)
    far = network.connect("EB1")
    told = near.sender("slow").send(LARGE)
    stream(near.sender("quick"), far.receiver("quick", credit=200))
    slow.session.held_back = False
    slow.session.write_flow()
    network.run()
    slow.accept(slow.take())
    assert told == [[ACCEPTED]]


def test_an_anonymous_link_goes_on_beside_a_receiver_without_credit() -> None:
    """It has one credit for all its addresses, so what waits for one is what others cannot have; they have the rest."""
    network = Network(LINE)
    network.connect("INT.B").receiver("slow", credit=0)
    receiver = network.connect("INT.B").receiver("quick", credit=200)
    sender = network.connect("INT.A").sender(None)
    sender.send(*"abc", properties=to("slow"))
    for number in range(300):
        assert sender.send(str(number), properties=to("quick")) is not None
        receiver.accept(receiver.take())
        receiver.flow(200)
    assert sender.link.credit > 0


def to(address: str) -> bytes:
    """The properties of a message that says where it goes."""
    return encode_described(0x73, encode_list((b"\x40", b"\x40", encode_string(address))))


@pytest.mark.parametrize("reads", ["no credit", "amid"])
def test_over_a_link_route_a_stalled_receiver_holds_up_no_other_client(reads: str) -> None:
    """Each session of a client has one of its own between the routers."""
    network = Network(LINE, routes={"work.": ("INT.B", "store")})
    slow = network.connect("INT.A", incoming_window=2).receiver("work.slow", credit=0 if reads == "no credit" else 10)
    slow.session.held_back = True
    network.connect("INT.A").sender("work.slow").send(LARGE)
    assert (slow.link.current is not None) is (reads == "amid")
    client = network.connect("INT.A")
    stream(client.sender("work.quick"), client.receiver("work.quick", credit=200))


def test_over_a_link_route_a_stalled_large_message_holds_up_no_other_link_of_its_session() -> None:
    """Of a client that shares windows; they are shared all the way to the broker."""
    network = Network(LINE, routes={"work.": ("INT.B", "store")})
    client = network.connect("INT.A", **SHARES, incoming_window=64)
    client.engine.unread_limit = 1 << 16
    slow = client.receiver("work.slow", credit=10)
    slow.session.unread = 1 << 16  # as if it had come, and nobody had read it
    slow.session.held_back = True
    network.connect("INT.A").sender("work.slow").send(LARGE)
    assert slow.link.current is not None
    quick = client.receiver("work.quick", credit=200)
    stream(network.connect("INT.A").sender("work.quick"), quick)
    assert slow.link.current is not None
