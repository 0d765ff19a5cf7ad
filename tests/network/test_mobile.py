"""Mobile addresses: reachable everywhere, closest and multicast, settled end to end (R3 to R9)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, RELEASED, AmqpError, Rejected, Target
from jmsish.engine.sections import offset_behind
from jmsish.engine.values import decode, encode_described, encode_list, encode_string
from tests.broker.world import message
from tests.network.world import Network

LINE = "EA1-INT.A-INT.B-EB1"
REJECTED = Rejected(AmqpError("test:no", "no"))
BIG = 100_000


@pytest.fixture
def line() -> Network:
    return Network(LINE)


def bodies(deliveries: list[Any]) -> list[str]:
    return [decode(delivery.payload, offset_behind(delivery.payload, 0x76))[0].value for delivery in deliveries]


def test_a_receiver_anywhere_makes_its_address_reachable_everywhere(line: Network) -> None:
    assert not any(node.reaches("orders") for node in line.nodes.values())
    receiver = line.connect("EB1").receiver("orders", credit=10)
    assert all(node.reaches("orders") for node in line.nodes.values())
    receiver.detach()
    assert not any(node.reaches("orders") for node in line.nodes.values())


def test_an_address_goes_with_the_last_of_its_receivers(line: Network) -> None:
    first = line.connect("EB1").receiver("orders")
    second = line.connect("INT.B").receiver("orders")
    first.detach()
    assert line["EA1"].reaches("orders")
    second.peer.cut()
    assert not line["EA1"].reaches("orders")


@pytest.mark.parametrize("receiving", ["EA1", "INT.A", "INT.B", "EB1"])
@pytest.mark.parametrize("sending", ["EA1", "INT.A", "INT.B", "EB1"])
@pytest.mark.parametrize("size", [10, BIG])
def test_from_everywhere_to_everywhere(line: Network, sending: str, receiving: str, size: int) -> None:
    receiver = line.connect(receiving).receiver("orders", credit=10)
    sender = line.connect(sending).sender("orders")
    told = sender.send("first", "x" * size, "last")
    assert bodies(receiver.arrived) == ["first", "x" * size, "last"]
    assert told == [[], [], []]  # nothing is settled before the receiver settles (R5)
    receiver.accept(receiver.take())
    assert told == [[ACCEPTED], [ACCEPTED], [ACCEPTED]]


@pytest.mark.parametrize("state", [ACCEPTED, REJECTED, RELEASED, MODIFIED_FAILED])
@pytest.mark.parametrize("size", [10, BIG])
def test_the_outcome_of_the_receiver_is_that_of_the_sender(line: Network, state: Any, size: int) -> None:
    receiver = line.connect("EB1").receiver("orders", credit=10)
    (told,) = line.connect("EA1").sender("orders").send("x" * size)
    receiver.dispose(receiver.take(), state)
    assert told == [state]


def test_without_a_receiver_a_sender_has_no_credit(line: Network) -> None:
    sender = line.connect("EA1").sender("orders")
    assert sender.link.credit == 0
    receiver = line.connect("EB1").receiver("orders")
    assert sender.link.credit == 250
    receiver.detach()
    assert sender.link.credit == 0


def test_a_sender_has_a_window_of_250(line: Network) -> None:
    receiver = line.connect("EB1").receiver("orders")
    sender = line.connect("EA1").sender("orders")
    sender.send(*map(str, range(250)))
    assert sender.link.credit == 0
    receiver.flow(200)
    assert bodies(receiver.arrived) == list(map(str, range(200)))
    receiver.accept(receiver.take())
    assert 125 <= sender.link.credit <= 200


def test_what_waits_is_released_when_the_route_goes(line: Network) -> None:
    receiver = line.connect("EB1").receiver("orders", credit=1)
    sender = line.connect("EA1").sender("orders")
    told = sender.send("a", "b", "c")
    receiver.detach()
    line.advance(2)
    assert told == [[MODIFIED_FAILED], [RELEASED], [RELEASED]]  # the first may have been seen


def test_a_large_message_on_its_way_when_its_receiver_goes_is_released(line: Network) -> None:
    receiver = line.connect("EB1", incoming_window=4).receiver("orders", credit=1)
    sender = line.connect("EA1").sender("orders")
    line.peers.remove(receiver.peer)  # it does not read, and its window closes
    (told,) = sender.send("x" * 3_000_000)
    receiver.peer.connection.receive_eof()
    line.run()
    assert told == [RELEASED]
    again = line.connect("EB1").receiver("orders", credit=5)
    (told,) = sender.send("small")
    again.accept(again.take())
    assert told == [ACCEPTED]


def test_pre_settled_stays_pre_settled(line: Network) -> None:
    receiver = line.connect("EB1").receiver("orders", credit=500)
    sender = line.connect("EA1").sender("orders")
    for _ in range(5):
        sender.send(*map(str, range(120)), settled=True)
    sender.send("x" * BIG, settled=True)
    arrived = receiver.take()
    assert [delivery.remote_settled for delivery in arrived] == [True] * 500
    receiver.flow(500)
    assert bodies(receiver.take()) == [*map(str, range(20, 120)), "x" * BIG]


def test_the_sender_settles_second(line: Network) -> None:
    peer = line.connect("EB1")
    receiver = peer.receiver("orders", rcv_settle_mode=1, credit=5)
    sender = line.connect("EA1").sender("orders", rcv_settle_mode=1)
    answers: list[Any] = []
    delivery = sender.link.send(message("a"), context=answers)
    line.run()
    (arrived,) = receiver.take()
    receiver.dispose([arrived], ACCEPTED, settled=False)
    assert answers == [ACCEPTED]
    assert not arrived.remote_settled
    sender.link.session.disposition(delivery, ACCEPTED, True)
    line.run()
    assert arrived.remote_settled
    assert not sender.link.session.outgoing and not receiver.session.incoming


def test_the_closest_gets_it(line: Network) -> None:
    near = line.connect("INT.A").receiver("orders", credit=10)
    far = line.connect("EB1").receiver("orders", credit=10)
    sender = line.connect("EA1").sender("orders")
    sender.send("a", "b")
    assert (bodies(near.take()), bodies(far.take())) == (["a", "b"], [])
    near.detach()
    sender.send("c")
    assert bodies(far.take()) == ["c"]


def test_those_equally_near_take_turns(line: Network) -> None:
    first = line.connect("EB1").receiver("orders", credit=10)
    second = line.connect("EB1").receiver("orders", credit=10)
    line.connect("EA1").sender("orders").send(*"abcd")
    assert sorted(map(len, (first.arrived, second.arrived))) == [2, 2]
    assert sorted(bodies(first.arrived) + bodies(second.arrived)) == list("abcd")


def test_two_edges_equally_far_take_turns() -> None:
    network = Network("EA1-INT.A, EA2-INT.A, EA3-INT.A")
    receivers = [network.connect(name).receiver("orders", credit=10) for name in ("EA2", "EA3")]
    network.connect("EA1").sender("orders").send(*"abcd")
    assert sorted(len(receiver.arrived) for receiver in receivers) == [2, 2]


def test_multicast_by_prefix_goes_to_everybody_once() -> None:
    network = Network(LINE, multicast=("news",))
    receivers = [network.connect(name).receiver("news.eu", credit=10) for name in network.nodes for _ in range(2)]
    (told,) = network.connect("EA1").sender("news.eu").send("hello")
    for receiver in receivers:
        assert bodies(receiver.arrived) == ["hello"]
        receiver.accept(receiver.take())
    assert told == [ACCEPTED]


def test_multicast_by_the_capability_topic(line: Network) -> None:
    receivers = [line.connect(name).receiver("t", credit=10, capabilities=("topic",)) for name in ("EB1", "INT.A")]
    sender = line.connect("EA1").sender("t", target=Target(address="t", capabilities=("topic",)))
    sender.send("hello", "x" * BIG)
    assert [bodies(receiver.arrived) for receiver in receivers] == [["hello", "x" * BIG]] * 2


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        ((ACCEPTED, REJECTED, RELEASED), ACCEPTED),
        ((MODIFIED_FAILED, REJECTED, RELEASED), REJECTED),
        ((MODIFIED_FAILED, RELEASED, RELEASED), MODIFIED_FAILED),
        ((RELEASED, RELEASED, RELEASED), RELEASED),
    ],
)
def test_what_several_receivers_say_comes_to_one_outcome(states: tuple[Any, ...], verdict: Any) -> None:
    network = Network(LINE, multicast=("news",))
    receivers = [network.connect(name).receiver("news", credit=10) for name in ("EA1", "INT.B", "EB1")]
    (told,) = network.connect("INT.A").sender("news").send("hello")
    for receiver, state in zip(receivers, states):  # noqa: B905
        assert told == []
        receiver.dispose(receiver.take(), state)
    assert told == [verdict]


def test_one_slow_receiver_of_many_does_not_hold_the_others_up_at_once() -> None:
    network = Network(LINE, multicast=("news",))
    slow = network.connect("EB1").receiver("news")
    quick = network.connect("EB1").receiver("news", credit=100)
    network.connect("EA1").sender("news").send(*map(str, range(50)), settled=True)
    assert len(quick.arrived) == 50
    slow.flow(100)
    assert bodies(slow.arrived) == list(map(str, range(50)))


def test_an_abort_reaches_who_has_begun_to_receive(line: Network) -> None:
    receiver = line.connect("EB1").receiver("orders", credit=10)
    sender = line.connect("EA1").sender("orders")
    sender.send("short")
    delivery = sender.link.send(message("x" * 2_000_000), context=[])
    line.peers[-1].speak()  # some of it
    line.named.update(line.nodes["EA1"].step())
    sender.link.abort(delivery)
    line.run()
    told = sender.send("after")
    assert bodies(receiver.arrived) == ["short", "after"]
    receiver.accept(receiver.take())
    assert told == [[ACCEPTED]]
    line.run()
    assert sender.link.credit >= 125


def test_a_sender_lost_in_the_middle_of_a_message_aborts_its_copies(line: Network) -> None:
    receiver = line.connect("EB1").receiver("orders", credit=10)
    sender = line.connect("EA1").sender("orders")
    sender.link.send(message("x" * 2_000_000), context=[])
    line.peers[-1].speak()
    line.named.update(line.nodes["EA1"].step())
    sender.peer.cut()
    assert receiver.arrived == []
    line.connect("EA1").sender("orders").send("after")
    assert bodies(receiver.arrived) == ["after"]


def test_messages_of_one_sender_stay_in_order_whatever_their_size(line: Network) -> None:
    receiver = line.connect("EB1").receiver("orders", credit=300)
    sender = line.connect("EA1").sender("orders")
    sent = [str(number) * (1 if number % 7 else 40_000) for number in range(100)]
    sender.send(*sent)
    assert bodies(receiver.arrived) == sent


def test_an_anonymous_sender_says_where_each_message_goes(line: Network) -> None:
    first = line.connect("EB1").receiver("a", credit=10)
    second = line.connect("INT.B").receiver("b", credit=10)
    sender = line.connect("EA1").sender(None)
    assert sender.link.credit == 250
    told = [sender.transfer(payload) for payload in (to("a", "1"), to("b", "2"), to("c", "3"), message("4"))]
    line.run()
    assert (bodies(first.take()), bodies(second.take())) == (["1"], ["2"])
    assert told[2] == [RELEASED]  # nobody is there
    assert told[3][0].error.condition == "amqp:precondition-failed"


def to(address: str, body: str) -> bytes:
    properties = encode_described(0x73, encode_list((b"\x40", b"\x40", encode_string(address))))
    return properties + message(body)


def test_a_dynamic_address_can_be_answered_from_everywhere(line: Network) -> None:
    receiver = line.connect("EB1").receiver(None, dynamic=True, credit=5)
    address = receiver.link.remote_source.address
    assert address and line["EA1"].reaches(address)
    line.connect("EA1").sender(address).send("reply")
    assert bodies(receiver.arrived) == ["reply"]


def test_a_drain_is_answered_when_all_that_is_there_was_sent(line: Network) -> None:
    receiver = line.connect("EB1").receiver("orders")
    line.connect("EA1").sender("orders").send("a", "b")
    receiver.flow(10, drain=True)
    assert bodies(receiver.arrived) == ["a", "b"]
    assert receiver.link.credit == 0


def test_a_receiver_that_goes_and_comes_again(line: Network) -> None:
    sender = line.connect("EA1").sender("orders")
    for number in range(5):
        receiver = line.connect("EB1").receiver("orders", credit=5)
        (told,) = sender.send(str(number))
        receiver.accept(receiver.take())
        assert told == [ACCEPTED]
        receiver.detach()
        line.advance(2)
    assert sender.link.credit == 0


def test_nothing_stays_when_all_are_gone(line: Network) -> None:
    receiver = line.connect("EB1").receiver("orders", credit=10)
    sender = line.connect("EA1").sender("orders")
    sender.send("a", "x" * BIG)
    receiver.accept(receiver.take())
    sender.detach()
    receiver.detach()
    line.advance(2)
    for node in line.nodes.values():
        assert not node._addresses
        for neighbour in node.neighbours:
            assert len(neighbour.sessions) == 2  # those of the two control links


def test_an_address_cannot_be_browsed(line: Network) -> None:
    browser = line.connect("EA1").receiver("orders", distribution_mode="copy")
    assert browser.error is not None and browser.error.condition == "amqp:not-implemented"
    assert not line["EA1"].reaches("orders")
