"""Freezing exchanges, properties e to h: holders and their limits, several exchanges, nesting, ends, transactions."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.freezes import AT_A_TIME
from jmsish.engine.outcomes import RELEASED, Discharge, TransactionalState
from jmsish.errors import (
    FreezeExpiredError,
    FreezeReentryError,
    FreezeTimeoutError,
    IllegalStateError,
    InvalidDestinationError,
)
from tests.broker.frozen import ACCEPTED, Play, addressed
from tests.broker.pubsub import condition, durable
from tests.broker.world import Controller, in_transaction, message


def fanout(**settings: Any) -> Play:
    play = Play()
    play.exchange(type="fanout", **settings)
    play.queues("q")
    play.bind("x", "q", "")
    return play


def deny(freeze: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        freeze.granted.result(0)


# --- e: time


def test_e1_a_freeze_that_comes_too_late_changes_nothing() -> None:
    play = fanout()
    first = play.held()
    late = play.freeze(owner="late", timeout=2.5)
    (answer,) = play.publisher("x").send("m")
    play.advance(2.4)
    assert not late.granted.done()
    play.advance(0.1)
    deny(late, FreezeTimeoutError, r"2\.5 s; nothing was changed")
    assert not late.is_held and answer == []
    play.thaw(first)
    assert answer == [ACCEPTED] and play.all_open()


def test_e2_a_freeze_held_too_long_is_thawed_by_the_broker() -> None:
    play = fanout()
    play.queues("r")
    freeze = play.held(max_hold=5)
    play.swap(freeze, "q", "r", "")
    (answer,) = play.publisher("x").send("m")
    play.advance(4.9)
    assert answer == [] and freeze.is_held
    play.advance(0.1)
    assert answer == [ACCEPTED] and play.bodies("q") == ["m"] and play.bound() == [("q", "")]
    with pytest.raises(FreezeExpiredError, match="held longer than 5 s"):
        freeze.hold_of("x")
    with pytest.raises(FreezeExpiredError, match="nothing was changed"):
        play.freezes.release(freeze)
    assert play.all_open()


def test_e2_thirty_seconds_where_nothing_is_said() -> None:
    play = fanout()
    freeze = play.held()
    play.advance(29.9)
    assert freeze.is_held
    play.advance(0.1)
    assert not freeze.is_held


def test_e2_the_limit_of_an_ended_freeze_ends_no_other() -> None:
    play = fanout()
    play.thaw(play.held(max_hold=5))
    play.advance(3)
    second = play.held(max_hold=5)
    play.advance(4)
    assert second.is_held


def test_e3_a_timeout_of_zero_only_tries() -> None:
    play = fanout()
    first = play.held(timeout=0)
    second = play.freeze(owner="second", timeout=0)
    deny(second, FreezeTimeoutError, "0 s")
    play.thaw(first)
    play.thaw(play.held(owner="second", timeout=0))


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("end", ["stays", "detach", "session", "connection"])
def test_e4_a_parked_message_is_routed_once_or_not_at_all(end: str, settled: bool) -> None:
    """Its sender may stop waiting: as long as its link is there the message is routed at the thaw. Is the link gone, an
    unsettled message is dropped, for its sender was not told that it was taken; a settled one is routed."""
    play = fanout()
    freeze = play.held()
    sender = play.publisher("x")
    (answer,) = sender.send("m", settled=settled)
    if end == "detach":
        sender.detach()
    elif end == "session":
        sender.peer.session.end()
        play.run()
    elif end == "connection":
        sender.peer.cut()
    play.thaw(freeze)
    assert play.bodies("q") == (["m"] if settled or end == "stays" else [])
    assert answer == ([ACCEPTED] if end == "stays" and not settled else [])
    assert play.all_open() and play.gate().waiting == 0


def test_e4_what_its_sender_settled_while_it_waited_is_routed() -> None:
    play = fanout()
    freeze = play.held()
    sender = play.publisher("x")
    sender.send("m")
    (delivery,) = sender.peer.session.outgoing.values()
    sender.peer.session.disposition(delivery, None, True)
    play.run()
    sender.detach()
    play.thaw(freeze)
    assert play.bodies("q") == ["m"]


# --- f: others


def test_f1_other_exchanges_run_on_the_same_connection_and_session() -> None:
    play = fanout()
    play.exchange("y", "fanout")
    play.queues("r")
    play.bind("y", "r", "")
    peer = play.connect()
    frozen, free, anonymous = play.publisher("x", peer), play.publisher("y", peer), play.publisher(None, peer)
    freeze = play.held(max_hold=1000)
    (parked,) = frozen.send("m")
    assert free.send("m") == [[ACCEPTED]]
    relayed = [anonymous.transfer(addressed(f"to {name}", name)) for name in ("x", "y", "q")]
    play.run()
    assert relayed == [[], [ACCEPTED], [ACCEPTED]]  # of an anonymous link only what goes there waits
    assert play.bodies("r") == ["m", "to y"] and play.bodies("q") == ["to q"]
    for _ in range(8):  # two minutes: idle time-outs are met by heartbeats
        play.advance(15)
        peer.engine.tick(play.monotonic)
        play.run()
    assert not peer.closed and not peer.failed
    assert free.send("still") == [[ACCEPTED]] and parked == []
    play.thaw(freeze)
    assert parked == [ACCEPTED] and relayed[0] == [ACCEPTED]
    assert play.bodies("q") == ["to q", "m", "to x"]


@pytest.mark.parametrize("address", ["x", None])
def test_f1_credit_bounds_what_waits(address: str | None) -> None:
    play = fanout()
    freeze = play.held()
    sender = play.publisher(address)
    count = 0
    while sender.link.credit > 0:
        sender.transfer(addressed("m", "x"))
        count += 1
        if count % 100 == 0:
            play.run()
    play.run()
    assert count == 1000 and sender.link.credit == 0 and play.gate().waiting == 1000
    play.thaw(freeze)
    assert play.depth("q") == (1000, 0) and sender.link.credit >= 500


def test_f1_credit_comes_back_while_only_some_wait() -> None:
    play = fanout()
    sender = play.publisher(None)
    freeze = play.held()
    for number in range(3000):
        sender.transfer(addressed("m", "x" if number < 200 else "q"))
        play.run()
        assert 0 < sender.link.credit <= 1000 - play.gate().waiting
    play.thaw(freeze)
    assert play.depth("q") == (3000, 0)


def test_f2_freezes_of_different_exchanges_hold_together() -> None:
    play = fanout()
    play.exchange("y", "fanout")
    first, second = play.held("x", owner=1), play.held("y", owner=2)
    play.thaw(first)
    assert second.is_held and play.gate("y").closed and not play.gate("x").closed
    play.thaw(second)


def test_f3_several_exchanges_are_taken_in_the_order_of_their_names() -> None:
    play = Play()
    for name in ("a", "b", "c"):
        play.exchange(name, "fanout")
    one = play.held("b", owner=1)
    two, three = play.freeze("c", "a", "b", owner=2), play.freeze("b", "c", "a", owner=3)
    assert two.names == three.names == ("a", "b", "c")
    assert not play.gate("c").closed  # not taken before b
    play.thaw(one)
    assert two.granted.done() and not three.granted.done()
    play.thaw(two)
    assert three.granted.done()
    play.thaw(three)
    assert play.all_open()


def test_f3_several_exchanges_change_in_one_step() -> None:
    play = Play()
    play.queues("old", "new")
    for name in ("a", "b"):
        play.exchange(name, "fanout")
        play.bind(name, "old", "")
    freeze = play.held("b", "a")
    for name in ("a", "b"):
        play.swap(freeze, "old", "new", "", exchange=name)
        play.publisher(name).send(f"by {name}")
    with pytest.raises(ValueError, match="'c' is not among"):
        freeze.hold_of("c")
    play.thaw(freeze)
    assert play.bodies("old") == [] and sorted(play.bodies("new")) == ["by a", "by b"]


# --- g: nesting, re-entry, death


def test_g1_the_outermost_end_thaws() -> None:
    play = fanout()
    play.queues("r", "s")
    outer = play.held()
    play.stage(outer, "r", "")
    inner = play.held()
    assert inner.hold_of("x") is outer.hold_of("x") and outer.hold_of("x").depth == 2
    play.stage(inner, "s", "")
    play.thaw(inner)
    assert play.gate().closed and play.bound() == [("q", "")]
    assert outer.hold_of("x").depth == 1
    play.thaw(outer)
    assert play.bound() == [("q", ""), ("r", ""), ("s", "")]


def test_g1_an_inner_block_that_fails_loses_only_its_own() -> None:
    play = fanout()
    play.queues("r", "s")
    outer = play.held()
    play.stage(outer, "r", "")
    inner = play.held()
    play.stage(inner, "s", "")
    play.stage(inner, "r", "", remove=True)
    play.thaw(inner, commit=False)
    play.thaw(outer)
    assert play.bound() == [("q", ""), ("r", "")]


def test_g1_an_inner_freeze_may_take_more() -> None:
    play = fanout()
    play.exchange("y", "fanout")
    outer = play.held("x")
    inner = play.held("x", "y")
    play.stage(inner, "q", "", exchange="y")
    play.thaw(inner)
    assert play.bound("y") == [("q", "")] and not play.gate("y").closed and play.gate("x").closed
    play.thaw(outer)
    assert play.all_open()


def test_g1_the_limit_of_the_outer_one_ends_both() -> None:
    play = fanout()
    outer = play.held(max_hold=2)
    inner = play.held(max_hold=100)
    play.advance(2)
    assert play.all_open()
    for freeze in (inner, outer):
        with pytest.raises(FreezeExpiredError):
            play.freezes.release(freeze)


def test_g1_two_holders_that_want_what_the_other_has_are_told() -> None:
    play = fanout()
    play.exchange("y", "fanout")
    one, two = play.held("x", owner=1), play.held("y", owner=2)
    waiting = play.freeze("y", owner=1)
    with pytest.raises(FreezeReentryError, match="both would wait for ever"):
        play.freeze("x", owner=2)
    play.thaw(two)
    assert waiting.granted.done()
    play.thaw(waiting)
    play.thaw(one)
    assert play.all_open()


@pytest.mark.parametrize("commit", [True, False])
def test_g1_an_outer_freeze_that_ends_first_leaves_what_is_held_to_the_inner_one(commit: bool) -> None:
    """Blocks end from the inside; leases end as their holder likes."""
    play = fanout()
    play.queues("r", "s")
    outer = play.held(max_hold=5)
    play.stage(outer, "r", "")
    inner = play.held(max_hold=50)
    play.thaw(outer, commit=commit)
    play.let_time_pass(10)  # the limit of the outer one is no more
    assert play.gate().closed and inner.is_held and play.bound() == [("q", "")]
    play.stage(inner, "s", "")
    play.thaw(inner)
    assert play.bound() == [("q", ""), *([("r", "")] if commit else []), ("s", "")] and play.all_open()


def test_g2_who_holds_changes_bindings_by_the_freeze_and_not_beside_it() -> None:
    play = fanout()
    freeze = play.held()
    with pytest.raises(FreezeReentryError, match="'x'"):
        play.binds("q", "", owner="holder")
    other = play.binds("q", "", owner="other")
    assert not other.done()
    play.thaw(freeze)
    assert other.result() is False  # it was there


def test_g2_a_freeze_between_any_two_steps_of_a_route_is_granted_or_refused_and_never_hangs() -> None:
    """The broker has one owner: whoever asks, asks between two steps, or from inside one (see tests of the faces)."""
    play = fanout()
    sender = play.publisher("x")
    for number in range(40):
        sender.send(f"m{number}", run=False)
        data = sender.peer.engine.take_output()
        for at in range(0, len(data), 7):
            sender.peer.connection.receive(data[at : at + 7])
            freeze = play.held(timeout=0)
            play.freezes.release(freeze)
    play.run()
    assert play.depth("q") == (40, 0)


def test_g3_what_a_holder_publishes_itself_waits_and_the_face_is_told_where() -> None:
    play = fanout()
    play.exchange("to x", "topic")
    play.broker.exchange("to x").bind_exchange("x", "there")
    freeze = play.held()
    obstacle = play.freezes.obstacle
    plain = message("m")
    assert obstacle(freeze, "x", "queue", plain) == "x"
    assert obstacle(freeze, "x/k", "topic", plain) == "x"
    assert obstacle(freeze, "to x/there", "queue", plain) == "x"
    assert obstacle(freeze, "to x/elsewhere", "queue", plain) is None
    assert obstacle(freeze, "q", "queue", plain) is None
    assert obstacle(freeze, "some topic", "topic", plain) is None
    assert obstacle(freeze, "nobody", "queue", plain) is None
    assert len(play.broker.queues()) == 1 and play.broker.exchange("to x").received == 0


@pytest.mark.parametrize("staged", [False, True])
def test_g4_a_holder_that_is_gone_holds_nothing(staged: bool) -> None:
    play = fanout()
    play.queues("r")
    peer = play.connect()
    freeze = play.held(owner=peer.connection)
    inner = play.held(owner=peer.connection)
    if staged:
        play.swap(inner, "q", "r", "")
    (answer,) = play.publisher("x").send("m")
    peer.cut()
    assert answer == [ACCEPTED] and play.bodies("q") == ["m"] and play.bound() == [("q", "")]
    for each in (inner, freeze):
        with pytest.raises(FreezeExpiredError, match="its holder is gone"):
            play.freezes.release(each)
    assert play.all_open()


def test_g4_the_wish_of_one_that_is_gone_is_no_more() -> None:
    play = fanout()
    first = play.held()
    peer = play.connect()
    waiting = play.freeze(owner=peer.connection)
    peer.cut()
    deny(waiting, IllegalStateError, "gone")
    play.thaw(first)
    assert play.all_open()


@pytest.mark.parametrize("when", ["before", "after"])
def test_g4_a_dead_thread_is_noticed_while_somebody_waits(when: str) -> None:
    play = fanout()
    life = [True]
    freeze = play.held(alive=lambda: life[0], max_hold=1000)
    if when == "before":
        life[0] = False
        assert play.gate().closed  # nobody asks
    (answer,) = play.publisher("x").send("m")
    if when == "after":
        play.advance(10)
        assert answer == []
        life[0] = False
        play.advance(1)
    assert answer == [ACCEPTED] and play.all_open()
    with pytest.raises(FreezeExpiredError, match="has ended"):
        play.freezes.release(freeze)


# --- h: stop, deletion, transactions, statistics


def test_h1_a_broker_that_stops_gives_back_what_waits() -> None:
    play = fanout()
    freeze = play.held()
    sender = play.publisher("x")
    unsettled, settled = sender.send("m")[0], sender.send("n", settled=True)[0]
    waiting = play.freeze(owner="other")
    bound = play.binds("q", "")
    receiver = durable(play.connect("c"), topic="x")
    play.broker.close()
    play.run()
    assert unsettled == [RELEASED] and settled == [] and play.bodies("q") == []
    deny(waiting, IllegalStateError, "the broker stops")
    assert isinstance(bound.exception(), IllegalStateError)
    assert sender.peer.closed and not receiver.link.remote_attached
    with pytest.raises(FreezeExpiredError, match="the broker was stopped"):
        play.freezes.release(freeze)


def test_h1_a_broker_stops_while_a_freeze_has_taken_only_some_of_its_exchanges() -> None:
    play = Play()
    for name in ("a", "b"):
        play.exchange(name, "fanout")
    held, both = play.held("b"), play.freeze("a", "b", owner="both")
    inner = play.held("b")
    play.broker.close()
    play.run()
    deny(both, IllegalStateError, "the broker stops")
    for freeze in (inner, held):
        with pytest.raises(FreezeExpiredError, match="stopped"):
            play.freezes.release(freeze)
    play.freezes.lost("holder")
    assert play.all_open()


def test_h2_others_wait_to_delete_a_frozen_exchange() -> None:
    play = fanout()
    freeze = play.held()
    deleted = play.write(lambda: play.broker.delete_exchange("x"))
    impatient = play.write(lambda: play.broker.delete_exchange("x"), timeout=1)
    (answer,) = play.publisher("x").send("m")
    play.advance(1)
    with pytest.raises(FreezeTimeoutError):
        impatient.result(0)
    play.thaw(freeze)
    assert deleted.done() and answer == []  # it came later than the deletion: its link is gone
    with pytest.raises(InvalidDestinationError):
        play.broker.exchange("x")


def test_h2_its_holder_may_delete_it() -> None:
    play = fanout()
    play.exchange("y", "fanout")
    freeze = play.held("x", "y")
    sender, anonymous = play.publisher("x"), play.publisher(None)
    sender.send("m")
    relayed = anonymous.transfer(addressed("n", "x"))
    waiting = play.freeze(owner="other")
    play.run()
    play.stage(freeze, "q", "", exchange="y")
    play.broker.delete_exchange("x")
    play.run()
    assert condition(sender) == "amqp:resource-deleted"
    deny(waiting, InvalidDestinationError, "deleted")
    assert relayed == [ACCEPTED] and play.bodies("x") == ["n"]  # what the address means by now: a new queue
    play.thaw(freeze)
    assert play.bound("y") == [("q", "")] and play.all_open()


def test_h2_an_exchange_that_goes_with_its_last_user_stays_while_it_is_held_or_waited_for() -> None:
    play = fanout(auto_delete=True)
    freeze = play.held()
    sender = play.publisher("x")
    sender.send("m", settled=True)
    sender.detach()
    play.stage(freeze, "q", "", remove=True)
    play.thaw(freeze)
    with pytest.raises(InvalidDestinationError):
        play.broker.exchange("x")
    assert play.all_open()


def test_h2_an_exchange_without_users_is_not_unused_while_it_is_held() -> None:
    play = Play()
    play.exchange(type="fanout", auto_delete=True)
    play.queues("q")
    sender = play.publisher("x")
    freeze = play.held()
    sender.send("m", settled=True)
    sender.detach()
    play.stage(freeze, "q", "")
    play.thaw(freeze)
    assert play.bodies("q") == ["m"] and play.bound() == [("q", "")]


def test_a_thousand_freezes_leave_no_timers() -> None:
    play = fanout()
    for _ in range(1000):
        play.freezes.release(play.held(timeout=5))
    assert len(play.broker._timers) < 200


class Trader:
    """A peer with a sender to the exchange x and a control link."""

    def __init__(self, play: Play, *, settled: bool = True) -> None:
        self.play = play
        self.peer = play.connect()
        self.sender = play.publisher("x", self.peer)
        self.controller: Controller = self.peer.controller()
        self.txn = self.controller.declare()
        self.settled = settled

    def post(self, *bodies: str) -> list[Any]:
        return self.sender.send(*bodies, state=in_transaction(self.txn), settled=self.settled)

    def discharge(self, *, fail: bool = False) -> list[Any]:
        return self.controller.command(Discharge(self.txn, fail))


def test_h3_a_commit_during_a_freeze_does_not_route_again_and_does_not_block() -> None:
    play = fanout()
    play.queues("r")
    trader = Trader(play)
    trader.post("m1", "m2")
    freeze = play.held()
    play.swap(freeze, "q", "r", "")
    assert trader.discharge() == [ACCEPTED]
    assert play.bodies("q") == ["m1", "m2"]
    play.thaw(freeze)
    assert play.bodies("r") == []


@pytest.mark.parametrize("settled", [True, False])
def test_h3_a_commit_waits_for_the_messages_of_its_transaction_that_wait(settled: bool) -> None:
    play = fanout()
    play.queues("r")
    trader = Trader(play, settled=settled)
    trader.post("m1")
    freeze = play.held()
    play.swap(freeze, "q", "r", "")
    answers = trader.post("m2", "m3")
    committed = trader.discharge()
    assert committed == [] and answers == [[], []] and play.bodies("q") == []
    other = trader.controller.declare()  # the control link goes on
    assert play.publisher("q").send("straight") == [[ACCEPTED]]
    play.thaw(freeze)
    assert committed == [ACCEPTED]
    assert play.bodies("q") == ["straight", "m1"] and play.bodies("r") == ["m2", "m3"]
    if not settled:
        assert [type(state) for answer in answers for state in answer[:1]] == [TransactionalState] * 2
    assert other != trader.txn and play.all_open()


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("how", ["rollback", "control link", "connection", "timeout"])
def test_h3_a_rollback_waits_for_nothing(how: str, settled: bool) -> None:
    play = Play({"policy": {"transaction_timeout": 10}})
    play.exchange(type="fanout")
    play.queues("q")
    play.bind("x", "q", "")
    trader = Trader(play, settled=settled)
    freeze = play.held()
    answers = trader.post("m")
    if how == "rollback":
        assert trader.discharge(fail=True) == [ACCEPTED]
    elif how == "control link":
        trader.controller.detach()
    elif how == "connection":
        trader.peer.cut()
    else:
        play.advance(10)
    assert play.gate().waiting == 0
    if not settled and how != "connection":
        assert len(answers[0]) == 1 and not trader.sender.detached
    play.thaw(freeze)
    assert play.bodies("q") == [] and play.all_open()


@pytest.mark.parametrize("how", ["control link", "connection"])
def test_h3_a_commit_that_waits_is_rolled_back_with_its_control_link(how: str) -> None:
    play = fanout()
    trader = Trader(play)
    trader.post("m1")
    freeze = play.held()
    trader.post("m2")
    committed = trader.discharge()
    if how == "connection":
        trader.peer.cut()
    else:
        trader.controller.detach()
    play.thaw(freeze)
    assert committed == [] and play.bodies("q") == [] and play.all_open()


def test_h3_what_a_link_posted_in_a_transaction_stays_when_the_link_goes() -> None:
    play = fanout()
    trader = Trader(play, settled=False)
    freeze = play.held()
    trader.post("m")
    trader.sender.detach()
    committed = trader.discharge()
    play.thaw(freeze)
    assert committed == [ACCEPTED] and play.bodies("q") == ["m"]


def test_h3_a_message_that_nobody_takes_at_the_thaw_keeps_its_transaction_from_the_commit() -> None:
    play = Play()
    play.exchange()
    play.queues("q")
    play.bind("x", "q", "")
    trader = Trader(play)
    freeze = play.held()
    trader.post("m")
    committed = trader.discharge()
    play.stage(freeze, "q", "", remove=True)
    play.thaw(freeze)
    assert [type(state).__name__ for state in committed] == ["Rejected"]


def test_h4_counts_change_once_at_the_thaw() -> None:
    play = fanout()
    exchange = play.broker.router.exchanges.named("x")
    play.queues("r", "s")
    freeze = play.held()
    tables = {id(exchange.table): exchange.table}
    for queue in ("r", "s"):
        play.stage(freeze, queue, "")
        tables[id(exchange.table)] = exchange.table
    assert len(tables) == 1 and exchange.table.size == 1
    play.publisher("x").send("m1", "m2")
    assert play.broker.exchange("x").received == 0
    play.thaw(freeze)
    assert exchange.table.size == 3 and play.broker.exchange("x").received == 2
    assert play.broker.exchange("x").routed == 2
    assert [play.queue(name).enqueued for name in ("q", "r", "s")] == [2, 2, 2]


# --- the amount of it


def test_a_long_line_is_called_in_parts() -> None:
    play = fanout()
    freeze = play.held()
    straight, *senders = play.publisher("q"), *(play.publisher("x") for _ in range(3))
    for sender in senders:
        for number in range(1000):
            sender.transfer(message(f"m{number}"))
    play.run()
    play.freezes.release(freeze)
    assert play.depth("q")[0] == AT_A_TIME and play.broker.unfinished and play.gate().closed
    (late,) = straight.send("straight", run=False)
    following = play.freeze(owner="next")
    assert not following.granted.done()
    play.run()
    assert play.depth("q") == (3001, 0) and late == [ACCEPTED] and following.granted.done()


def test_names_are_checked() -> None:
    play = Play()
    with pytest.raises(ValueError, match="at least one exchange"):
        play.freezes.acquire((), 1)
    with pytest.raises(InvalidDestinationError, match="no exchange 'nowhere'"):
        play.freezes.acquire(("amq.topic", "nowhere"), 1)
    with pytest.raises(InvalidDestinationError):
        play.freezes.acquire(("",), 1)
    assert play.all_open()


def test_a_queue_that_was_to_be_bound_and_is_gone() -> None:
    play = fanout()
    play.queues("r", "s")
    freeze = play.held()
    play.swap(freeze, "q", "r", "")
    play.broker.delete_queue("r")
    with pytest.raises(InvalidDestinationError, match="the queue r was deleted meanwhile; nothing was changed"):
        play.freezes.release(freeze)
    assert play.bound() == [("q", "")] and play.all_open()
