"""The three overflows, by messages and by octets, on every kind of link that leads to a queue, and in transactions."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED, Rejected, Target
from jmsish.engine.values import NULL, encode_string
from tests.broker.world import Sender, World, in_transaction, message, properties

LIMIT = 3
KINDS = ("queue", "exchange/key", "exchange by subject", "topic", "fanout", "anonymous", "anonymous to exchange")


def payload(kind: str, body: str) -> bytes:
    address = {"anonymous": "q", "anonymous to exchange": "x/k"}.get(kind)
    return message(body, properties=properties(
        NULL, NULL, NULL if address is None else encode_string(address), encode_string("k")))  # fmt: skip


def sender_to(world: World, kind: str) -> Sender:
    """A link of that kind, all messages of which go to the queue `q`."""
    broker = world.broker
    broker.declare_exchange("x", "direct").bind("q", "k")
    broker.exchange("amq.topic").bind("q", "news")
    broker.exchange("amq.fanout").bind("q")
    address = {"queue": "q", "exchange/key": "x/k", "exchange by subject": "x", "topic": "news", "fanout": "amq.fanout"}
    capabilities = ("topic",) if kind == "topic" else ()
    target = Target(address=address.get(kind), capabilities=capabilities)
    return world.connect().sender(target=target)


def limits(kind: str, by: str, overflow: str) -> dict[str, Any]:
    size = len(payload(kind, "m0"))
    return {"overflow": overflow, **({"max_messages": LIMIT} if by == "messages" else {"max_octets": LIMIT * size})}


@pytest.fixture(params=["messages", "octets"])
def by(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("kind", KINDS)
def test_reject_says_so_and_takes_no_more(world: World, kind: str, by: str) -> None:
    world.broker.declare_queue("q", **limits(kind, by, "reject"))
    sender = sender_to(world, kind)
    answers = [sender.transfer(payload(kind, f"m{number}")) for number in range(LIMIT + 2)]
    world.run()
    assert answers[:LIMIT] == [[ACCEPTED]] * LIMIT and world.queue().depth == LIMIT and not sender.detached
    for (outcome,) in answers[LIMIT:]:
        assert isinstance(outcome, Rejected) and outcome.error is not None
        assert outcome.error.condition == "amqp:resource-limit-exceeded"


@pytest.mark.parametrize("kind", KINDS)
def test_drop_head_takes_all_and_keeps_the_newest(world: World, kind: str, by: str) -> None:
    world.broker.declare_queue("q", **limits(kind, by, "drop-head"))
    sender = sender_to(world, kind)
    answers = [sender.transfer(payload(kind, f"m{number}")) for number in range(LIMIT + 2)]
    world.run()
    assert answers == [[ACCEPTED]] * (LIMIT + 2) and world.queue().dropped == 2
    assert world.bodies() == ["m2", "m3", "m4"]


@pytest.mark.parametrize("kind", KINDS)
def test_block_takes_credit_away_until_there_is_room(world: World, kind: str, by: str) -> None:
    world.broker.declare_queue("q", **limits(kind, by, "block"))
    sender = sender_to(world, kind)
    sent = 0
    while sender.link.credit and sent < 50:
        assert sender.send_octets(payload(kind, f"m{sent}")) == [ACCEPTED]
        sent += 1
    assert sent == LIMIT == world.queue().depth
    receiver = world.connect().receiver(credit=1)
    receiver.accept(receiver.take())
    assert sender.link.credit > 0
    assert sender.send_octets(payload(kind, "more")) == [ACCEPTED]
    assert sender.link.credit == 0 and world.queue().depth == LIMIT
    world.queue().purge()
    world.run()
    assert sender.link.credit > 0


def test_an_anonymous_sender_is_held_back_by_each_full_queue_it_last_sent_to(world: World) -> None:
    """What was sent before is not remembered: a queue that is full holds back who sends there, nobody else."""
    world.broker.declare_queue("full", max_messages=1, overflow="block")
    world.broker.declare_queue("free")
    sender = world.connect().sender(None)

    def post(address: str, run: bool = True) -> None:
        sender.transfer(message("m", properties=properties(NULL, NULL, encode_string(address))))
        if run:
            world.run()

    post("free")
    assert sender.link.credit > 100
    post("full", run=False)
    post("free")
    assert sender.link.credit == 0
    world.broker.queue("full").purge()
    world.run()
    assert sender.link.credit == 1
    post("free")
    assert sender.link.credit > 100
    post("full")
    world.broker.delete_queue("full")
    world.run()
    assert sender.link.credit > 100 and not sender.detached


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("overflow", ["reject", "drop-head", "block"])
def test_in_a_transaction_the_limit_is_asked_at_the_commit(world: World, kind: str, overflow: str, by: str) -> None:
    """Reject: the transaction fails. Drop-head: the newest stay. Block: what is held back is the next message."""
    world.broker.declare_queue("q", **limits(kind, by, overflow))
    sender = sender_to(world, kind)
    controller = sender.peer.controller()
    txn = controller.declare()
    for number in range(LIMIT + 2):
        sender.transfer(payload(kind, f"m{number}"), state=in_transaction(txn))
        world.run()
    assert world.queue().depth == 0
    failed = controller.commit(txn)
    if overflow == "reject":
        assert failed == "amqp:transaction:rollback" and world.queue().depth == 0
    elif overflow == "drop-head":
        assert failed is None and world.bodies() == ["m2", "m3", "m4"]
    else:
        assert failed is None and world.queue().depth == LIMIT + 2
        assert sender.send_octets(payload(kind, "one")) == [ACCEPTED]
        assert sender.link.credit == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_rejected_in_a_transaction_is_told_at_once_where_the_queue_is_full(world: World, kind: str) -> None:
    world.broker.declare_queue("q", max_messages=1)
    sender = sender_to(world, kind)
    assert sender.send_octets(payload(kind, "m0")) == [ACCEPTED]
    controller = sender.peer.controller()
    txn = controller.declare()
    (state,) = sender.send_octets(payload(kind, "m1"), state=in_transaction(txn))
    assert isinstance(state.outcome, Rejected)
    assert controller.commit(txn) is None and world.bodies() == ["m0"]


@pytest.mark.parametrize("overflow", ["reject", "block"])
def test_one_full_queue_of_several_holds_the_others_back_too(world: World, overflow: str) -> None:
    """All or none, on an anonymous link as on one to the exchange."""
    world.broker.declare_queue("q", max_messages=1, overflow=overflow)
    world.broker.declare_queue("wide")
    sender = sender_to(world, "anonymous to exchange")
    world.broker.exchange("x").bind("wide", "k")
    assert sender.send_octets(payload("anonymous to exchange", "m0")) == [ACCEPTED]
    if overflow == "block":
        assert sender.link.credit == 0
    else:
        (outcome,) = sender.send_octets(payload("anonymous to exchange", "m1"))
        assert isinstance(outcome, Rejected)
    assert world.bodies() == world.bodies("wide") == ["m0"]
