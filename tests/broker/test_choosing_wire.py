"""Selectors, groups, priorities of consumers and exclusive queues on the wire, with transactions and losses."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.broker import SEARCHES_A_STEP
from jmsish.broker.choosing import SLICE
from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, RELEASED
from jmsish.engine.values import NULL, encode_described, encode_int, encode_map, encode_string, encode_uint
from jmsish.types import Described, Symbol, ULong
from tests.broker.world import SETTLED, Peer, Receiver, Sender, World, in_transaction, message, properties


def numbered(body: str, number: int) -> bytes:
    """A message with an application property n."""
    section = encode_described(0x74, encode_map([encode_string("n"), encode_int(number)]))
    return message(body, properties=section)


def post(sender: Sender, *bodies: str, number: int = 0, group: str = "", **options: Any) -> None:
    for body in bodies:
        in_group = properties(*[NULL] * 10, encode_string(group))
        sender.transfer(message(body, properties=in_group) if group else numbered(body, number), **options)
    sender.world.run()


def selecting(peer: Peer, selector: str, **options: Any) -> Receiver:
    wanted = {Symbol("selector"): Described(ULong(0x0000468C00000004), selector)}
    return peer.receiver(filter=wanted, **options)


def test_a_selector_at_the_attach(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    post(sender, "a", "b", number=1)
    post(sender, "c", number=2)
    assert selecting(peer, "n = 2").drain() == ["c"]
    assert peer.receiver().drain() == ["a", "b"]


def test_a_drain_is_answered_after_a_long_search(world: World) -> None:
    """2.6.7: the credit is used up or given back once there is no more to be sent, and that takes some steps here."""
    peer = world.connect()
    sender = peer.sender()
    for start in range(0, 3 * SLICE, 500):
        post(sender, *map(str, range(start, start + 500)), number=1)
    post(sender, "found", number=2)
    receiver = selecting(peer, "n = 2")
    receiver.flow(10, drain=True, run=False)
    peer.speak()
    world.broker.step()
    peer.hear()
    assert receiver.link.credit == 10 and world.broker.unfinished
    other = peer.receiver("other")
    peer.sender("other").send("m1")
    assert other.receive(1) == ["m1"]
    world.run()
    assert receiver.link.credit == 0 and receiver.receive() == ["found"]


def test_a_search_ends_with_its_link(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    for start in range(0, 3 * SLICE, 500):
        post(sender, *map(str, range(start, start + 500)), number=1)
    receiver = selecting(peer, "n = 2")
    receiver.flow(10, drain=True, run=False)
    peer.speak()
    world.broker.step()
    receiver.detach()
    assert not world.broker.unfinished and world.queue().consumer_count == 0


def test_a_rollback_comes_back_to_who_selects_it(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    post(sender, "a1", number=1)
    post(sender, "b1", number=2)
    post(sender, "a2", number=1)
    receiver = selecting(peer, "n = 1", credit=2, default_outcome=MODIFIED_FAILED)
    controller = peer.controller()
    txn = controller.declare()
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    receiver.flow(5)
    assert receiver.receive() == []
    controller.roll_back(txn)
    assert receiver.receive() == ["a1+1", "a2+1"] and world.bodies() == ["b1"]


def test_acquired_in_a_transaction_with_a_selector(world: World) -> None:
    """4.4.3: what is acquired under a rolled-back transaction is back, and selected again."""
    peer = world.connect()
    post(peer.sender(), "a1", number=1)
    receiver = selecting(peer, "n = 1", default_outcome=MODIFIED_FAILED)
    controller = peer.controller()
    txn = controller.declare()
    receiver.flow(1, properties={Symbol("txn-id"): txn})
    assert len(receiver.take()) == 1
    controller.roll_back(txn)
    assert receiver.receive(1) == ["a1"]


def test_a_presettled_receiver_with_a_selector(world: World) -> None:
    peer = world.connect()
    post(peer.sender(), "a1", "a2", number=1)
    receiver = selecting(peer, "n = 1", snd_settle_mode=SETTLED, credit=5)
    assert receiver.receive() == ["a1", "a2"] and world.queue().depth == 0


def test_a_presettled_receiver_that_gives_back(world: World) -> None:
    """W3, with a selector: not again before it asks again, and then again."""
    peer = world.connect()
    post(peer.sender(), "a1", number=1)
    receiver = selecting(peer, "n = 1", snd_settle_mode=SETTLED, default_outcome=RELEASED, credit=5)
    assert receiver.receive() == ["a1"]
    assert receiver.receive(5) == ["a1"]


def test_priority_is_a_property_of_the_link(world: World) -> None:
    peer = world.connect()
    low = peer.receiver(credit=2)
    high = peer.receiver(credit=2, properties={Symbol("priority"): 5})
    peer.sender().send(*"1234")
    assert (high.receive(), low.receive()) == (["1", "2"], ["3", "4"])


def test_a_high_priority_without_room_lets_others_have_their_turn(world: World) -> None:
    """A connection that takes nothing is sent no more than a megabyte; then the next in rank is served."""
    slow, quick = world.connect(), world.connect()
    high = slow.receiver(credit=100, properties={Symbol("priority"): 5})
    low = quick.receiver(credit=100)
    slow.hear = lambda: False  # type: ignore[method-assign]
    quick.sender().send(*(f"{number:02}" + "x" * 200 for number in range(3)))
    before = slow.connection.room
    slow.connection.room = 0
    quick.sender().send("later")
    slow.connection.room = before
    assert low.receive() == ["later"] and not high.arrived


@pytest.mark.parametrize("how", ["detach", "end", "close", "cut"])
def test_a_group_passes_on_with_the_link_the_session_and_the_connection(world: World, how: str) -> None:
    """Whatever ends, the messages of the group are back before the next owner gets a later one."""
    owner, heir = world.connect(), world.connect()
    session = owner.begin()
    first = owner.receiver(session=session, credit=2)
    sender = heir.sender()
    post(sender, "a1", "a2", "a3", group="a")
    second = heir.receiver(credit=10)
    assert (first.receive(), second.receive()) == (["a1", "a2"], [])
    if how == "detach":
        first.detach()
        world.advance(0)
        assert second.receive() == [], "dispositions still win for a second (W16)"
        world.advance(2)
    elif how == "end":
        session.end()
        world.run()
    elif how == "close":
        owner.close()
    else:
        owner.cut()
    assert second.receive() == ["a1+1", "a2+1", "a3"]


def test_a_group_in_a_transaction(world: World) -> None:
    """What is retired in a transaction is in its hands until the discharge."""
    owner, heir = world.connect(), world.connect()
    post(heir.sender(), "a1", "a2", group="a")
    first = owner.receiver(credit=1)
    controller = owner.controller()
    txn = controller.declare()
    first.dispose(first.take(), in_transaction(txn, ACCEPTED))
    second = heir.receiver(credit=10)
    first.detach()
    world.advance(0)
    world.advance(2)
    assert second.receive() == []
    controller.commit(txn)
    assert second.receive() == ["a2"]


def test_groups_are_those_of_one_queue(world: World) -> None:
    """A topic's subscribers each have their own."""
    peer = world.connect()
    readers = [peer.receiver("prices", capabilities=("topic",), credit=10) for _ in range(2)]
    sender = peer.sender("amq.topic/prices")
    post(sender, "a1", "a2", group="a")
    assert [reader.receive() for reader in readers] == [["a1", "a2"]] * 2


def test_the_last_of_a_group_by_its_sequence(world: World) -> None:
    """-1 of JMSXGroupSeq is the largest uint in the field group-sequence."""
    peer = world.connect()
    first = peer.receiver(credit=1)
    sender = peer.sender()
    section = properties(*[NULL] * 10, encode_string("a"), encode_uint(0xFFFFFFFF))
    sender.transfer(message("a1", properties=section))
    world.run()
    second = world.connect().receiver(credit=10)
    first.accept(first.take())
    post(sender, "a2", group="a")
    assert second.receive() == ["a2"]


def test_an_empty_group_id_is_none(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    for body in "12":
        sender.transfer(message(body, properties=properties(*[NULL] * 10, encode_string(""))))
    world.run()
    assert world.broker.router.queues["q"].groups is None and world.depth() == (2, 0)


def test_an_exclusive_queue_passes_on_when_its_consumer_is_lost(world: World) -> None:
    world.broker.declare_queue("q", exclusive_consumer=True)
    owner, heir = world.connect(), world.connect()
    first, second = owner.receiver(credit=2), heir.receiver(credit=10)
    heir.sender().send(*"123")
    assert (first.receive(), second.receive()) == (["1", "2"], [])
    owner.cut()
    assert second.receive() == ["1+1", "2+1", "3"]


def test_many_searches_take_turns(world: World) -> None:
    """However many queues are searched, a step is short, and each search comes to its end."""
    peer = world.connect()
    readers = []
    for queue in range(10):
        sender = peer.sender(f"q{queue}")
        for start in range(0, 2 * SLICE, 500):
            post(sender, *map(str, range(start, start + 500)), number=1)
        post(sender, f"found{queue}", number=2)
        readers.append(selecting(peer, "n = 2", address=f"q{queue}"))
    for reader in readers:
        reader.flow(1, run=False)
    peer.speak()
    world.broker.step()
    steps = 0
    while world.broker.unfinished:
        world.broker.step()
        steps += 1
    world.run()
    assert [reader.receive() for reader in readers] == [[f"found{queue}"] for queue in range(10)]
    assert steps >= 2 * 10 / SEARCHES_A_STEP
