"""Queue redirect: two queues are paired, what is sent to either goes into the other, and back at the end (QPID-4650).

The numbers are those of the cases of qpid-cpp's own test of it.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.broker.management import answer
from jmsish.engine.codec import ReceivedMessage
from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, RELEASED, AmqpError, Rejected
from jmsish.engine.values import encode, encode_described, encode_map, encode_string, encode_symbol
from jmsish.errors import IllegalStateError, InvalidDestinationError
from tests.broker.test_management import request
from tests.broker.world import Sender, World, in_transaction, message, properties


@pytest.fixture
def world() -> World:
    world = World()
    for name in ("a", "b", "c"):
        world.broker.declare_queue(name)
    return world


def both(world: World) -> tuple[list[str], list[str]]:
    return world.bodies("a"), world.bodies("b")


def names(world: World) -> list[str | None]:
    return [world.queue(name).redirected_to for name in "abc"]


# --- refusals


@pytest.mark.parametrize("pair", [("none", "b"), ("a", "none"), (None, "b"), ("a", 3)])
def test_010_020_unknown_queues_are_refused(world: World, pair: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidDestinationError, match="no queue"):
        world.broker.redirect(*pair)
    assert names(world) == [None] * 3


def test_030_a_queue_with_itself_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="to itself"):
        world.broker.redirect("a", "a")
    assert names(world) == [None] * 3


@pytest.mark.parametrize("is_source", [True, False])
def test_040_050_a_queue_that_goes_with_its_user_is_refused(world: World, is_source: bool) -> None:
    receiver = world.connect().receiver(None, dynamic=True)
    temporary = receiver.link.remote_source.address
    pair = (temporary, "b") if is_source else ("a", temporary)
    with pytest.raises(ValueError, match="only lasting queues"):
        world.broker.redirect(*pair)
    assert names(world) == [None] * 3


def test_nothing_to_end(world: World) -> None:
    with pytest.raises(IllegalStateError, match="'a' is not redirected"):
        world.broker.end_redirect("a")
    with pytest.raises(InvalidDestinationError):
        world.broker.end_redirect("none")


# --- a pair


def test_100_a_pair_is_made_and_ended(world: World) -> None:
    world.broker.redirect("a", "b")
    assert names(world) == ["b", "a", None]
    assert world.broker.end_redirect("a") == 0
    assert names(world) == [None] * 3
    world.broker.redirect("b", "a")
    world.broker.end_redirect("a")  # either of the two will do


def test_110_a_second_pair_is_refused(world: World) -> None:
    world.broker.redirect("a", "b")
    for pair in (("a", "c"), ("c", "a"), ("b", "c"), ("c", "b"), ("a", "b"), ("b", "a")):
        with pytest.raises(IllegalStateError, match="redirected already"):
            world.broker.redirect(*pair)
    assert names(world) == ["b", "a", None]


def test_120_140_each_gets_what_is_sent_to_the_other(world: World) -> None:
    peer = world.connect()
    to_a, to_b = peer.sender("a"), peer.sender("b")
    to_a.send("a1")
    world.broker.redirect("a", "b")
    to_a.send("a2", "a3")
    to_b.send("b1")
    assert both(world) == (["a1", "b1"], ["a2", "a3"])
    receiver = peer.receiver("b", credit=5)
    assert receiver.receive() == ["a2", "a3"]


def test_at_the_end_each_gets_its_own_back_in_order(world: World) -> None:
    peer = world.connect()
    to_a, to_b = peer.sender("a"), peer.sender("b")
    to_a.send("a1", "a2")
    to_b.send("b1")
    world.broker.redirect("a", "b")
    to_a.send("a3", "urgent", priority=9)
    to_a.send("a4", "a5")
    to_b.send("b2")
    assert world.broker.end_redirect("b") == 5
    assert both(world) == (["a3", "urgent", "a1", "a2", "a4", "a5"], ["b1", "b2"])
    to_a.send("a6")
    assert world.bodies("a")[-1] == "a6"


@pytest.mark.parametrize("deleted", ["a", "b"])
def test_150_deleting_either_ends_the_pair(world: World, deleted: str) -> None:
    peer = world.connect()
    senders = {name: peer.sender(name) for name in "ab"}
    world.broker.redirect("a", "b")
    for name in "ab":
        senders[name].send(f"{name}1", f"{name}2")
    world.broker.delete_queue(deleted)
    left = "b" if deleted == "a" else "a"
    assert world.queue(left).redirected_to is None
    assert world.bodies(left) == [f"{left}1", f"{left}2"]
    senders[left].send("after")
    assert world.bodies(left)[-1] == "after"
    assert senders[deleted].detached and not senders[left].detached


# --- whatever brings the messages


def test_bindings_lead_to_the_other(world: World) -> None:
    world.broker.declare_exchange("x", "fanout")
    view = world.broker.exchange("x")
    view.bind("a")
    sender = world.connect().sender("x")
    world.broker.redirect("a", "b")
    sender.send("m1")
    assert both(world) == ([], ["m1"])
    view.bind("b")
    sender.send("m2")
    assert both(world) == (["m2"], ["m1", "m2"])
    world.broker.end_redirect("a")
    assert both(world) == (["m1", "m2"], ["m2"])


@pytest.mark.parametrize("when", ["before", "within"])
def test_a_commit_follows_the_pair_that_is_in_force(world: World, when: str) -> None:
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender("a")
    if when == "before":
        world.broker.redirect("a", "b")
    txn_id = controller.declare()
    sender.send("m1", state=in_transaction(txn_id))
    if when == "within":
        world.broker.redirect("a", "b")
    assert both(world) == ([], [])
    assert controller.commit(txn_id) is None
    assert both(world) == ([], ["m1"])


def test_a_commit_after_the_end_goes_where_it_was_sent(world: World) -> None:
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender("a")
    world.broker.redirect("a", "b")
    txn_id = controller.declare()
    sender.send("m1", state=in_transaction(txn_id))
    world.broker.end_redirect("a")
    assert controller.commit(txn_id) is None
    assert both(world) == (["m1"], [])


def test_dead_letters_go_to_the_other(world: World) -> None:
    world.broker.declare_queue("q", dead_letter="a")
    world.broker.redirect("a", "b")
    peer = world.connect()
    peer.sender("q").send("m1")
    receiver = peer.receiver("q", credit=1)
    receiver.dispose(receiver.take(), Rejected(AmqpError("app:bad")))
    assert both(world) == ([], ["m1"])


def test_a_message_waits_for_its_time_where_it_was_sent(world: World) -> None:
    sender = world.connect().sender("a")
    world.broker.redirect("a", "b")
    sender.transfer(_delayed("m1", 5000))
    world.run()
    assert both(world) == ([], []) and world.queue("a").depth == 1
    world.advance(5)
    assert both(world) == ([], ["m1"])
    sender.transfer(_delayed("m2", 5000))
    world.run()
    world.broker.end_redirect("a")
    world.advance(5)
    assert both(world) == (["m1", "m2"], [])


def _delayed(body: str, milliseconds: int) -> bytes:
    delay = encode_map([encode_symbol("x-opt-delivery-delay"), encode(milliseconds)])
    return message(body, annotations=encode_described(0x72, delay))


# --- limits, attempts, expiry, groups


def test_the_limits_are_those_of_the_queue_it_goes_into(world: World) -> None:
    world.broker.declare_queue("b", max_messages=1)
    sender = world.connect().sender("a")
    world.broker.redirect("a", "b")
    ((first,), (second,)) = sender.send("m1", "m2")
    assert first == ACCEPTED and isinstance(second, Rejected)
    assert second.error is not None and "'b' is full" in (second.error.description or "")
    world.broker.end_redirect("a")
    sender.send("m3", "m4")
    assert both(world) == (["m1", "m3", "m4"], [])


def test_credit_is_that_of_the_queue_it_goes_into(world: World) -> None:
    world.broker.declare_queue("a", max_messages=1, overflow="block")
    sender = world.connect().sender("a")
    sender.send("m1")
    assert sender.link.credit == 0
    world.broker.redirect("a", "b")
    world.run()
    assert sender.link.credit > 100
    sender.send("m2", "m3")
    assert both(world) == (["m1"], ["m2", "m3"])


def test_attempts_and_expiry_come_along(world: World) -> None:
    peer = world.connect()
    sender = peer.sender("a")
    world.broker.redirect("a", "b")
    sender.send("m1", ttl=10_000)
    receiver = peer.receiver("b", credit=1)
    receiver.dispose(receiver.take(), MODIFIED_FAILED)
    receiver.detach()
    world.advance(6)
    assert world.broker.end_redirect("a") == 1
    assert peer.receiver("a", credit=1, distribution_mode="copy").receive() == ["m1+1"]
    world.advance(5)
    assert world.queue("a").expired == 1 and world.queue("b").expired == 0


def test_groups_come_along(world: World) -> None:
    peer = world.connect()
    sender = peer.sender("a")
    world.broker.redirect("a", "b")
    for number in range(4):
        group = properties(*[b"\x40"] * 10, encode_string("g"))
        sender.transfer(message(f"m{number}", properties=group))
    world.run()
    world.broker.end_redirect("a")
    one, other = peer.receiver("a", credit=1), peer.receiver("a", credit=5)
    assert one.receive() == ["m0"] and other.receive() == []
    assert one.receive(5) == ["m1", "m2", "m3"]


def test_what_somebody_holds_stays_where_it_is(world: World) -> None:
    peer = world.connect()
    sender = peer.sender("a")
    world.broker.redirect("a", "b")
    sender.send("m1", "m2", "m3")
    receiver = peer.receiver("b", credit=2)
    held = receiver.take()
    assert world.broker.end_redirect("a") == 1
    assert both(world) == (["m3"], [])
    receiver.dispose(held[:1], ACCEPTED)
    receiver.dispose(held[1:], RELEASED)
    assert both(world) == (["m3"], ["m2"]) and world.queue("b").depth == 1


def test_consumers_that_wait_are_served(world: World) -> None:
    peer = world.connect()
    sender, at_a, at_b = peer.sender("a"), peer.receiver("a", credit=9), peer.receiver("b", credit=1)
    world.broker.redirect("a", "b")
    sender.send("m1", "m2")
    assert (at_a.receive(), at_b.receive()) == ([], ["m1"])
    world.broker.end_redirect("a")
    world.run()
    assert at_a.receive() == ["m2"]


# --- by request


def test_by_request(world: World) -> None:
    def ask(**named: Any) -> tuple[int, Any]:
        octets = answer(world.broker, request("REDIRECT", "queue", reply_to="r", **named))[1]
        assert isinstance(octets, bytes)
        said = ReceivedMessage(octets)
        return int(said.application_properties()["statusCode"]), said.body()[1]

    assert ask(name="a", target="b") == (200, {"redirected_to": "b"})
    world.connect().sender("a").send("m1")
    assert ask(name="c", target="b")[0] == 409
    assert ask(name="none", target="b")[0] == ask(name="c", target="none")[0] == 404
    assert ask(name="c", target="c")[0] == 400
    assert ask(name="a") == (200, {"redirected_to": None, "moved": 1})
    assert ask(name="a")[0] == 409


# --- under traffic

STEPS = st.lists(st.sampled_from(["a", "b", "pair", "end", "take a", "take b", "back a", "back b"]), max_size=60)


@given(STEPS)
def test_nothing_is_lost_or_doubled_or_comes_out_of_order(steps: list[str]) -> None:
    """Whatever is sent, taken, paired and ended: each queue hands out each sender's messages in their order."""
    world = World()
    for name in "ab":
        world.broker.declare_queue(name)
    peer = world.connect()
    senders: dict[str, Sender] = {name: peer.sender(name) for name in "ab"}
    receivers = {name: peer.receiver(name) for name in "ab"}
    sent: dict[str, list[str]] = {"a": [], "b": []}
    got: list[str] = []
    for step in steps:
        paired = world.queue("a").redirected_to is not None
        if step in sent:
            sent[step].append(f"{step}{len(sent[step])}")
            senders[step].send(sent[step][-1])
        elif step == "pair" and not paired:
            world.broker.redirect("a", "b")
        elif step == "end" and paired:
            world.broker.end_redirect("b")
        elif step.startswith(("take", "back")):
            receiver = receivers[step[-1]]
            receiver.flow(1, drain=True)
            deliveries = receiver.take()
            receiver.dispose(deliveries, ACCEPTED if step.startswith("take") else RELEASED)
            if step.startswith("take"):
                got += [ReceivedMessage(each.payload).body()[1] for each in deliveries]
    if world.queue("a").redirected_to is not None:
        world.broker.end_redirect("a")
    for name in "ab":
        rest = world.bodies(name)
        assert rest == [body for body in sent[name] if body not in got]
        assert world.depth(name) == (len(rest), 0)
    assert len(got) == len(set(got))
