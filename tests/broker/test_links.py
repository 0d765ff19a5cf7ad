"""Links of the broker: credit, drain, browsing, anonymous relay, temporary nodes, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    Rejected,
    Source,
    Target,
    TransactionalState,
    UnknownState,
)
from jmsish.engine.states import composite
from jmsish.engine.values import (
    FALSE,
    NULL,
    TRUE,
    encode,
    encode_binary,
    encode_described,
    encode_map,
    encode_string,
    encode_symbol,
    encode_uint,
)
from jmsish.types import Byte, Described, Symbol, ULong
from tests.broker.world import ALL_OUTCOMES, SETTLED, Receiver, Sender, World, in_transaction, message, properties


def test_a_queue_is_made_on_first_use_from_either_side(world: World) -> None:
    peer = world.connect()
    peer.receiver("from a receiver")
    peer.sender("from a sender")
    assert {view.name for view in world.broker.queues()} == {"from a receiver", "from a sender"}


def test_without_auto_create_an_unknown_address_is_not_found() -> None:
    world = World({"policy": {"auto_create": False}, "queues": {"q": {}}})
    peer = world.connect()
    assert not peer.sender("q").detached
    for end in (peer.sender("other"), peer.receiver("other")):
        assert end.detached and end.error is not None and end.error.condition == "amqp:not-found"
    anonymous = peer.sender(None)
    ((outcome,),) = _relay(anonymous, "other")
    assert isinstance(outcome, Rejected) and outcome.error is not None
    assert outcome.error.condition == "amqp:not-found"


def test_an_accepted_post_is_settled(world: World) -> None:
    (answers,) = world.connect().sender().send("m1")
    assert answers == [ACCEPTED]


def test_posting_settles_second_where_asked(world: World) -> None:
    peer = world.connect()
    sender = peer.sender(rcv_settle_mode=1)
    (answers,) = sender.send("m1")
    (delivery,) = peer.session.outgoing.values()
    assert answers == [ACCEPTED] and not delivery.remote_settled
    assert world.bodies() == ["m1"]
    peer.session.disposition(delivery, ACCEPTED, True)
    world.run()
    assert world.bodies() == ["m1"] and not peer.connection.engine.sessions[0].incoming


def test_senders_never_run_out_of_credit(world: World) -> None:
    sender = world.connect().sender()
    for number in range(3000):
        sender.send(str(number), run=number % 100 == 99)
    assert sender.link.credit >= 400
    assert world.queue().depth == 3000


@pytest.mark.parametrize("settled", [False, True])
def test_an_aborted_post_leaves_nothing(world: World, settled: bool) -> None:
    peer = world.connect()
    sender = peer.sender()
    handle = encode_uint(sender.link.handle)
    flag = TRUE if settled else FALSE
    first = composite(0x14, handle, encode_uint(0), encode_binary(b"tag"), encode_uint(0), flag, TRUE)
    abort = composite(0x14, handle, NULL, NULL, NULL, NULL, FALSE, NULL, NULL, NULL, TRUE)
    peer.engine.write(peer.session.channel, first + message("m1")[:5])
    peer.engine.write(peer.session.channel, abort)
    world.run()
    assert world.queue().depth == 0 and not peer.ended and not sender.detached


def test_what_came_before_the_detach_counts(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    sender.send("m1", run=False)
    sender.send("m2", run=False, settled=True)
    sender.detach()
    assert world.bodies() == ["m1", "m2"]


# --- credit and drain


def test_no_credit_no_message(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", "m2")
    receiver = peer.receiver()
    assert receiver.receive() == []
    assert world.depth() == (2, 0)
    assert receiver.receive(1) == ["m1"]
    receiver.flow(0)
    peer.sender().send("m3")
    assert receiver.receive() == []


def test_drain_is_answered_after_everything_available_was_sent(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    sender.send(*map(str, range(50)))
    receiver = peer.receiver()
    receiver.flow(1000, drain=True)
    assert receiver.link.credit == 0
    assert receiver.receive() == [str(number) for number in range(50)]
    sender.send("later")
    assert receiver.receive() == []


def test_drain_of_an_empty_queue(world: World) -> None:
    receiver = world.connect().receiver()
    receiver.flow(1, drain=True)
    assert receiver.link.credit == 0 and receiver.receive() == []


def test_drain_with_messages_barred_for_this_link(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", "m2")
    receiver = peer.receiver(credit=2)
    receiver.dispose(receiver.take(), MODIFIED_FAILED_UNDELIVERABLE)
    receiver.flow(5, drain=True)
    assert receiver.link.credit == 0 and receiver.receive() == []


def test_a_drained_consumer_does_not_hog(world: World) -> None:
    """153: a pull that timed out leaves no credit."""
    first, second = world.connect().receiver(), world.connect().receiver()
    first.flow(1)
    first.flow(1, drain=True)
    second.flow(1)
    world.connect().sender().send("m1")
    assert first.receive() == [] and second.receive() == ["m1"]


def test_output_is_bounded_and_goes_on_when_taken(world: World) -> None:
    sender = world.connect().sender()
    body = "x" * 200
    for _ in range(20):
        for number in range(500):
            sender.send(body + str(number), run=number == 499)
    peer = world.connect()
    receiver = peer.receiver()
    receiver.link.flow(100_000, drain=True)
    peer.speak()
    world.broker.step()
    held = world.queue().acquired
    assert 80 < held < 200
    assert peer.connection.engine.output_size < 40_000
    world.broker.step()
    assert world.queue().acquired == held
    world.run()
    assert world.depth() == (0, 10_000)
    assert receiver.link.credit == 0 and len(receiver.take()) == 10_000


def test_a_closed_session_window_holds_messages_in_the_queue(world: World) -> None:
    world.connect().sender().send(*map(str, range(100)))
    peer = world.connect(incoming_window=10)
    receiver = peer.receiver()
    receiver.link.flow(100)
    peer.speak()
    world.broker.step()
    assert world.queue().acquired <= 12
    world.run()
    assert receiver.receive() == [str(number) for number in range(100)]


def test_large_messages_pass_octet_for_octet(world: World) -> None:
    payload = encode_described(0x77, b"\xb1" + (3 << 20).to_bytes(4, "big") + b"z" * (3 << 20))
    peer = world.connect()
    peer.sender().transfer(payload)
    world.run()
    receiver = peer.receiver(credit=1)
    (delivery,) = receiver.take()
    assert delivery.payload == payload


# --- header on the way (W17, ttl)


@pytest.mark.parametrize("header", [{}, {"durable": True, "priority": 7}, {"priority": 4}])
def test_first_delivery_is_what_came_octet_for_octet(world: World, header: dict[str, Any]) -> None:
    payload = message("m1", **header)
    peer = world.connect()
    peer.sender().transfer(payload)
    receiver = peer.receiver(credit=1)
    deliveries = receiver.take()
    assert deliveries[0].payload == payload
    receiver.dispose(deliveries, RELEASED)
    receiver.flow(1)
    assert receiver.take()[0].payload == payload


# --- browsing


def test_a_browser_sees_what_is_available_and_takes_nothing(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    sender.send("a", "b", "c", "d")
    holder = peer.receiver(credit=2)
    holder.dispose(holder.take()[1:], RELEASED)
    txn_controller = peer.controller()
    txn = txn_controller.declare()
    sender.send("uncommitted", state=in_transaction(txn))
    browser = peer.receiver(distribution_mode="copy", snd_settle_mode=SETTLED)
    source = browser.link.remote_source
    assert isinstance(source, Source) and source.distribution_mode == "copy"
    assert browser.drain() == ["b", "c", "d"]
    assert browser.drain() == []
    assert world.depth() == (3, 1)


def test_a_browser_goes_by_priority_and_in_pieces(world: World) -> None:
    sender = world.connect().sender()
    for body, priority in (("1", 4), ("2", 4), ("9", 9), ("0", 0)):
        sender.send(body, priority=priority)
    browser = world.connect().receiver(distribution_mode="copy")
    assert browser.receive(1) == ["9"]
    assert browser.receive(2) == ["1", "2"]
    assert browser.drain() == ["0"]


def test_an_unsettled_browser_may_say_what_it_likes(world: World) -> None:
    peer = world.connect()
    peer.sender().send("a", "b")
    browser = peer.receiver(distribution_mode="copy")
    browser.flow(2)
    first, second = browser.take()
    browser.dispose([first], ACCEPTED)
    browser.dispose([second], Rejected(), settled=False)
    assert second.remote_settled
    browser.detach()
    assert world.depth() == (2, 0)


def test_a_browser_sees_what_is_barred_for_others(world: World) -> None:
    peer = world.connect()
    peer.sender().send("a", "b")
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), MODIFIED_FAILED_UNDELIVERABLE)
    assert peer.receiver(distribution_mode="copy", snd_settle_mode=SETTLED).drain() == ["a+1", "b"]


# --- anonymous relay


def _relay(sender: Sender, to: str | None, kind: int | None = None, **options: Any) -> list[list[Any]]:
    annotations = b""
    if kind is not None:
        annotations = encode_described(0x72, encode_map([encode_symbol("x-opt-jms-dest"), encode(Byte(kind))]))
    fields = properties(NULL, NULL, NULL if to is None else encode_string(to))
    return sender.send("m1", annotations=annotations, properties=fields, **options)


def test_the_relay_goes_where_each_message_says(world: World) -> None:
    sender = world.connect().sender(None)
    assert _relay(sender, "a") == [[ACCEPTED]]
    assert _relay(sender, "b", kind=0) == [[ACCEPTED]]
    assert world.bodies("a") == world.bodies("b") == ["m1"]


@pytest.mark.parametrize(("to", "kind", "condition"), [
    (None, None, "amqp:precondition-failed"),
    ("jmsish.temporary.gone", None, "amqp:not-found"),
])  # fmt: skip
def test_the_relay_rejects_what_has_no_place(world: World, to: str | None, kind: int | None, condition: str) -> None:
    sender = world.connect().sender(None)
    ((outcome,),) = _relay(sender, to, kind)
    assert isinstance(outcome, Rejected) and outcome.error is not None and outcome.error.condition == condition
    assert not sender.detached


def test_the_relay_detaches_where_nothing_can_be_rejected(world: World) -> None:
    peer = world.connect()
    sender = peer.sender(None)
    _relay(sender, "jmsish.temporary.gone", settled=True)
    assert sender.detached and sender.error is not None and sender.error.info is not None
    assert sender.error.condition == "amqp:not-found" and "delivery-tag" in sender.error.info
    picky = peer.sender(None, source=Source(outcomes=("amqp:accepted:list",)))
    _relay(picky, "jmsish.temporary.gone")
    assert picky.detached and picky.error is not None and picky.error.condition == "amqp:not-found"


def test_the_relay_in_a_transaction(world: World) -> None:
    peer = world.connect()
    sender, controller = peer.sender(None), peer.controller()
    txn = controller.declare()
    assert _relay(sender, "a", state=in_transaction(txn)) == [[in_transaction(txn, ACCEPTED)]]
    ((refused,),) = _relay(sender, "jmsish.temporary.gone", state=in_transaction(txn))
    assert isinstance(refused, TransactionalState) and isinstance(refused.outcome, Rejected)
    assert controller.commit(txn) is None
    assert world.bodies("a") == ["m1"]
    txn = controller.declare()
    _relay(sender, "jmsish.temporary.gone", state=in_transaction(txn), settled=True)
    assert controller.commit(txn) == "amqp:transaction:rollback"


@pytest.mark.parametrize("payload", [b"hello", b"\x00\x53\x70\xc0\xff", b"\x00\x53\x99\x40"])
def test_broken_messages_are_rejected(world: World, payload: bytes) -> None:
    sender = world.connect().sender()
    answers = sender.transfer(payload)
    world.run()
    (outcome,) = answers
    assert isinstance(outcome, Rejected) and outcome.error is not None
    assert outcome.error.condition in ("amqp:decode-error", "amqp:not-implemented")
    sender.send("m1")
    assert world.bodies() == ["m1"]


# --- temporary nodes


def _temporary_source(world: World) -> Receiver:
    receiver = world.connect().receiver(source=Source(dynamic=True, capabilities=("temporary-queue",)))
    source = receiver.link.remote_source
    assert isinstance(source, Source) and source.dynamic and source.address
    assert source.dynamic_node_properties == {Symbol("lifetime-policy"): Described(ULong(0x2B), [])}
    return receiver


def _temporary_target(world: World) -> tuple[Sender, str]:
    sender = world.connect().sender(target=Target(dynamic=True, capabilities=("temporary-queue",)))
    target = sender.link.remote_target
    assert isinstance(target, Target) and target.address
    return sender, target.address


def test_a_dynamic_source(world: World) -> None:
    receiver = _temporary_source(world)
    address = receiver.link.remote_source.address  # type: ignore[union-attr]
    receiver.flow(1)
    world.connect().sender(address).send("m1")
    assert receiver.receive() == ["m1"]
    receiver.detach()
    assert world.broker.queues() == []


def test_only_the_creating_connection_consumes(world: World) -> None:
    creator, address = _temporary_target(world)
    other = world.connect()
    assert not other.sender(address).detached
    for mode in ("move", "copy"):
        stranger = other.receiver(address, distribution_mode=mode)
        assert stranger.detached and stranger.error is not None
        assert stranger.error.condition == "amqp:resource-locked"
    other.sender(address).send("m1")
    assert creator.peer.receiver(address, credit=1).receive() == ["m1"]


@pytest.mark.parametrize("way", ["close", "connection", "cut"])
def test_a_temporary_queue_goes_with_its_creator(world: World, way: str) -> None:
    creator, address = _temporary_target(world)
    other = world.connect()
    user = other.sender(address)
    if way == "close":
        creator.detach()
    elif way == "connection":
        creator.peer.close()
    else:
        creator.peer.cut()
    assert world.broker.queues() == []
    assert user.detached and user.error is not None and user.error.condition == "amqp:resource-deleted"
    for end in (other.sender(address), other.receiver(address)):
        assert end.detached and end.error is not None and end.error.condition == "amqp:not-found"
    assert world.broker.queues() == []


def test_a_mere_detach_keeps_the_temporary_queue(world: World) -> None:
    creator, address = _temporary_target(world)
    creator.detach(closed=False)
    assert world.queue(address).is_temporary
    assert not creator.peer.receiver(address).detached
    # The same link, attached again and closed, takes it away.
    creator.peer.session.sender(creator.name(), source=Source(), target=Target(address=address), context=creator)
    world.run()
    assert world.queue(address).is_temporary
    creator.link = creator.peer.session.links[max(creator.peer.session.links)]
    creator.detach()
    assert world.broker.queues() == []


def test_a_message_too_large_for_a_receiver_is_for_others(world: World) -> None:
    peer = world.connect()
    peer.sender().send("x" * 200, "small")
    small = peer.receiver(credit=5, max_message_size=100)
    assert small.receive() == ["small"]
    assert peer.receiver().drain() == ["x" * 200]


def test_an_address_with_a_dynamic_wish_is_refused(world: World) -> None:
    receiver = world.connect().receiver(source=Source(address="mine", dynamic=True))
    assert receiver.detached and receiver.error is not None and receiver.error.condition == "amqp:invalid-field"


# --- refusals and ends


def test_null_termini_are_refused(world: World) -> None:
    peer = world.connect()
    nobody = peer.receiver(source=Source())
    assert nobody.error is not None and nobody.error.condition == "amqp:invalid-field"
    lookup = peer.session.receiver("sub|global", source=None, target=Target(), context=nobody)
    nobody.error = None
    world.run()
    assert nobody.error is not None and nobody.error.condition == "amqp:not-found"  # type: ignore[unreachable]
    assert lookup.remote_source is None
    nowhere = peer.sender(target=None)
    assert nowhere.error is not None and nowhere.error.condition == "amqp:invalid-field"


def test_an_unknown_terminus_is_refused(world: World) -> None:
    peer = world.connect()
    end = Sender(peer, peer.session, "q", {"target": UnknownState(ULong(0x99), [])})
    world.run()
    assert end.detached and end.error is not None and end.error.condition == "amqp:invalid-field"


def test_deleting_a_queue_detaches_its_consumers_and_producers(world: World) -> None:
    peer = world.connect()
    sender = peer.sender()
    sender.send("m1", "m2")
    receiver = peer.receiver(credit=1)
    held = receiver.take()
    world.broker.delete_queue("q")
    world.run()
    assert receiver.detached and receiver.error is not None
    assert receiver.error.condition == "amqp:resource-deleted"
    receiver.dispose(held, RELEASED)
    assert sender.detached and sender.error is not None
    assert sender.error.condition == "amqp:resource-deleted"
    assert peer.sender().send("m4") == [[ACCEPTED]]
    assert world.bodies() == ["m4"]


def test_a_session_error_leaves_other_sessions_alone(world: World) -> None:
    """W14: an unknown handle ends the session; its deliveries are put back, the rest goes on."""
    peer = world.connect()
    peer.sender().send("m1")
    session = peer.begin()
    peer.receiver(credit=1, session=session, default_outcome=RELEASED)
    receiver = peer.receiver()
    peer.engine.write(session.channel, b"\x00\x53\x13\xc0\x09\x05\x43\x52\x0a\x43\x52\x0a\x52\x63")
    world.run()
    assert len(peer.ended) == 1 and peer.ended[0] is not None and not peer.closed
    assert receiver.receive(1) == ["m1"]


def test_outcomes_offered(world: World) -> None:
    source = world.connect().receiver(outcomes=("amqp:accepted:list",)).link.remote_source
    assert isinstance(source, Source) and source.outcomes == ("amqp:accepted:list",)
    source = world.connect().receiver().link.remote_source
    assert isinstance(source, Source) and set(source.outcomes or ()) == set(ALL_OUTCOMES)
