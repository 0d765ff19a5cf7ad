"""The coordinator on the wire: Part 4 as the main job needs it."""

from __future__ import annotations

import pytest

from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    RELEASED,
    AmqpError,
    Coordinator,
    Declare,
    Declared,
    Discharge,
    Modified,
    Rejected,
    TransactionalState,
)
from jmsish.engine.states import composite
from jmsish.engine.values import FALSE, NULL, TRUE, encode_binary, encode_uint
from jmsish.types import Symbol
from tests.broker.world import SETTLED, World, in_transaction

UNKNOWN = "amqp:transaction:unknown-id"
ROLLBACK = "amqp:transaction:rollback"


def test_the_coordinator_says_what_works(world: World) -> None:
    controller = world.connect().controller()
    target = controller.link.remote_target
    assert isinstance(target, Coordinator)
    assert set(target.capabilities) == {
        "amqp:local-transactions",
        "amqp:multi-txns-per-ssn",
        "amqp:multi-ssns-per-txn",
    }


def test_ids_are_not_used_twice_and_short_enough(world: World) -> None:
    controller = world.connect().controller()
    ids = []
    for _ in range(50):
        ids.append(controller.declare())
        controller.commit(ids[-1])
    assert len(set(ids)) == 50 and all(0 < len(txn) <= 32 for txn in ids)


def test_credit_never_runs_out(world: World) -> None:
    controller = world.connect().controller()
    for _ in range(1500):
        controller.commit(controller.declare())
    assert controller.link.credit >= 400


def test_posting_is_invisible_until_commit(world: World) -> None:
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    txn = controller.declare()
    watcher = world.connect().receiver(credit=10)
    answers = sender.send("m1", "m2", state=in_transaction(txn))
    assert answers == [[in_transaction(txn, ACCEPTED)]] * 2
    assert world.queue().depth == 0 and watcher.receive() == []
    (view,) = world.broker.transactions()
    assert (view.id, view.posts, view.retirements, view.connection) == (txn, 2, 0, "peer-0")
    assert controller.commit(txn) is None
    assert watcher.receive() == ["m1", "m2"]
    assert world.broker.transactions() == []


@pytest.mark.parametrize("settled", [False, True])
def test_a_rolled_back_post_never_was(world: World, settled: bool) -> None:
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    txn = controller.declare()
    sender.send("m1", state=in_transaction(txn), settled=settled)
    assert controller.roll_back(txn) is None
    assert world.queue().depth == 0


def test_posting_where_the_receiver_settles_second(world: World) -> None:
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender(rcv_settle_mode=1)
    txn = controller.declare()
    (answers,) = sender.send("m1", state=in_transaction(txn))
    assert answers == [in_transaction(txn, ACCEPTED)]
    assert len(peer.session.outgoing) == 1
    assert controller.commit(txn) is None
    assert answers == [in_transaction(txn, ACCEPTED), ACCEPTED]
    assert world.bodies() == ["m1"]


def test_retirement_settled(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1", "m2")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=2)
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    assert world.depth() == (0, 2)
    assert world.broker.transactions()[0].retirements == 2
    assert controller.commit(txn) is None
    assert world.queue().depth == 0


def test_retirement_unsettled_commit(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=1)
    (delivery,) = held = receiver.take()
    receiver.dispose(held, in_transaction(txn, ACCEPTED), settled=False)
    assert delivery.context == []
    assert controller.commit(txn) is None
    assert delivery.context == [ACCEPTED] and delivery.remote_settled
    assert world.queue().depth == 0


def test_retirement_unsettled_rollback_leaves_it_with_the_receiver(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    controller = peer.controller()
    receiver = peer.receiver(credit=1)
    held = receiver.take()
    for _ in range(2):
        txn = controller.declare()
        receiver.dispose(held, in_transaction(txn, ACCEPTED), settled=False)
        assert controller.roll_back(txn) is None
        assert world.depth() == (0, 1)
    receiver.dispose(held, RELEASED)
    assert receiver.receive(1) == ["m1"]


@pytest.mark.parametrize(
    ("outcome", "back"),
    [(RELEASED, ["m1"]), (MODIFIED_FAILED, ["m1+1"]), (Modified(), ["m1"]), (Rejected(), []), (None, ["m1"])],
)
def test_any_outcome_can_be_part_of_a_transaction(world: World, outcome: object, back: list[str]) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), TransactionalState(txn, outcome))  # type: ignore[arg-type]
    assert world.depth() == (0, 1)
    assert controller.commit(txn) is None
    assert peer.receiver().drain() == back
    assert ("DLQ" in [view.name for view in world.broker.queues()]) == (back == [])


def test_one_transaction_for_both_directions_and_two_sessions(world: World) -> None:
    peer = world.connect()
    peer.sender("orders").send("order")
    second = peer.begin()
    controller = peer.controller()
    receiver = peer.receiver("orders", credit=1, session=second)
    sender = peer.sender("results")
    for commit in (False, True):
        txn = controller.declare()
        receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
        sender.send("result", state=in_transaction(txn))
        if commit:
            assert controller.commit(txn) is None
        else:
            assert controller.roll_back(txn) is None
            receiver.flow(1)
    assert world.queue("orders").depth == 0
    assert world.bodies("results") == ["result"]


def test_several_transactions_side_by_side(world: World) -> None:
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    one, two, three = controller.declare(), controller.declare(), controller.declare()
    for txn, body in ((one, "1"), (two, "2"), (three, "3"), (one, "4")):
        sender.send(body, state=in_transaction(txn))
    assert controller.roll_back(two) is None
    assert controller.commit(three) is None
    assert controller.commit(one) is None
    assert world.bodies() == ["3", "1", "4"]


def test_a_declare_pipelined_behind_a_refused_discharge_is_answered(world: World) -> None:
    controller = world.connect().controller()
    refused = controller.command(Discharge(b"nonsense"), run=False)
    declared = controller.command(Declare())
    assert isinstance(refused[0], Rejected) and isinstance(declared[0], Declared)


@pytest.mark.parametrize("fail", [False, True])
def test_unknown_ids(world: World, fail: bool) -> None:
    """T43, T45, W7: made up, over, too long, another connection's."""
    controller = world.connect().controller()
    done = controller.declare()
    controller.commit(done)
    foreign = world.connect().controller().declare()
    discharge = controller.roll_back if fail else controller.commit
    for txn in (b"made up", done, b"x" * 40, foreign):
        assert discharge(txn) == UNKNOWN
    assert len(world.broker.transactions()) == 1


def test_unknown_id_without_rejected_ends_the_link(world: World) -> None:
    peer = world.connect()
    controller = peer.controller(outcomes=("amqp:accepted:list",))
    assert controller.commit(b"made up") == UNKNOWN
    assert controller.detached and not peer.ended


@pytest.mark.parametrize("way", ["close", "detach", "end", "cut"])
def test_loss_of_the_control_link_rolls_back(world: World, way: str) -> None:
    peer = world.connect()
    peer.sender().send("m1", "m2")
    session = peer.begin()
    controller = peer.controller(session=session)
    txn = controller.declare()
    receiver = peer.receiver(credit=1, default_outcome=MODIFIED_FAILED)
    held = receiver.take()
    receiver.dispose(held, in_transaction(txn, ACCEPTED))
    sender = peer.sender("results")
    sender.send("r", state=in_transaction(txn))
    if way == "cut":
        peer.cut()
    elif way == "end":
        session.end()
    else:
        controller.link.detach(closed=way == "close")
    world.run()
    assert world.broker.transactions() == []
    assert world.queue("results").depth == 0
    assert world.connect().receiver().drain() == ["m1+1", "m2"]


def test_closing_an_ordinary_link_rolls_nothing_back(world: World) -> None:
    """T52: what was posted stays posted, what was retired stays enlisted."""
    peer = world.connect()
    peer.sender().send("m1", "m2")
    controller = peer.controller()
    txn = controller.declare()
    receiver, sender = peer.receiver(credit=2), peer.sender("results")
    first, second = receiver.take()
    receiver.dispose([first], in_transaction(txn, ACCEPTED))
    receiver.dispose([second], in_transaction(txn, ACCEPTED), settled=False)
    sender.send("r", state=in_transaction(txn))
    receiver.detach()
    sender.detach()
    world.advance(0)
    world.advance(2)
    assert world.depth() == (0, 2)
    assert controller.commit(txn) is None
    assert world.queue().depth == 0
    assert world.bodies("results") == ["r"]


def test_a_closed_link_with_unsettled_work_gets_the_default_on_rollback(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=1, default_outcome=MODIFIED_FAILED)
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED), settled=False)
    receiver.detach()
    world.advance(0)
    world.advance(2)
    assert controller.roll_back(txn) is None
    assert peer.receiver().drain() == ["m1+1"]


def test_a_settled_post_that_fails_marks_the_transaction(world: World) -> None:
    """T57: commit is refused with transaction:rollback, and all is undone."""
    world.broker.declare_queue("full", max_messages=1)
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender("full")
    txn = controller.declare()
    sender.send("m0")
    sender.send("m1", state=in_transaction(txn), settled=True)
    peer.sender().send("other", state=in_transaction(txn))
    assert world.broker.transactions()[0].rollback_only
    assert controller.commit(txn) == ROLLBACK
    assert controller.commit(txn) == UNKNOWN
    assert world.queue().depth == 0 and world.bodies("full") == ["m0"]
    txn = controller.declare()
    sender.send("m1", state=in_transaction(txn), settled=True)
    assert controller.roll_back(txn) is None


@pytest.mark.parametrize("settled", [True, False])
def test_a_post_that_meets_our_detach_marks_the_transaction(world: World, settled: bool) -> None:
    """Its link is gone and it with it, without an answer: what was posted beside it is not committed alone."""
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender("gone")
    txn = controller.declare()
    peer.sender("other").send("m1", state=in_transaction(txn))
    world.broker.delete_queue("gone")
    sender.send("m2", state=in_transaction(txn), settled=settled)
    assert sender.detached and world.broker.transactions()[0].rollback_only
    assert controller.commit(txn) == ROLLBACK
    assert world.queue("other").depth == 0


def test_an_unsettled_post_that_fails_leaves_the_transaction_good(world: World) -> None:
    """T58."""
    world.broker.declare_queue("full", max_messages=1)
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender("full")
    txn = controller.declare()
    sender.send("m0")
    (answers,) = sender.send("m1", state=in_transaction(txn))
    assert isinstance(answers[0], TransactionalState)
    outcome = answers[0].outcome
    assert isinstance(outcome, Rejected) and outcome.error is not None
    assert outcome.error.condition == "amqp:resource-limit-exceeded"
    assert controller.commit(txn) is None


def test_what_became_impossible_meanwhile_refuses_the_commit_whole(world: World) -> None:
    """Commit checks everything that can fail first: room, and queues that are gone."""
    world.broker.declare_queue("full", max_messages=2)
    peer = world.connect()
    peer.sender().send("m1")
    controller, sender = peer.controller(), peer.sender("full")
    receiver = peer.receiver(credit=1)
    txn = controller.declare()
    sender.send("a", "b", state=in_transaction(txn))
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    peer.sender("other").send("c", state=in_transaction(txn))
    sender.send("x")
    assert controller.commit(txn) == ROLLBACK
    assert world.bodies("full") == ["x"] and world.queue("other").depth == 0
    assert receiver.receive(1) == ["m1+1"]


@pytest.mark.parametrize("what", ["post", "retirement"])
def test_a_deleted_queue_refuses_the_commit(world: World, what: str) -> None:
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    sender.send("m1")
    receiver = peer.receiver(credit=1)
    txn = controller.declare()
    if what == "post":
        sender.send("m2", state=in_transaction(txn))
    else:
        receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    world.broker.delete_queue("q")
    world.run()
    assert controller.commit(txn) == ROLLBACK


def test_posting_in_an_unknown_transaction_ends_the_link(world: World) -> None:
    """T60."""
    peer = world.connect()
    sender = peer.sender()
    sender.send("m1", state=in_transaction(b"made up"))
    assert sender.detached and sender.error is not None and sender.error.condition == UNKNOWN
    assert world.queue().depth == 0 and not peer.ended


@pytest.mark.parametrize("settled", [True, False])
def test_retiring_in_an_unknown_transaction(world: World, settled: bool) -> None:
    """T77: the link ends, the message is available again."""
    peer = world.connect()
    peer.sender().send("m1", "m2")
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), in_transaction(b"made up", ACCEPTED), settled=settled)
    assert receiver.detached and receiver.error is not None and receiver.error.condition == UNKNOWN
    assert peer.receiver().drain() == ["m1+1", "m2"]


def test_one_delivery_in_two_transactions_ends_the_control_link(world: World) -> None:
    """T72."""
    peer = world.connect()
    peer.sender().send("m1")
    one, two = peer.controller(), peer.controller()
    first, second = one.declare(), two.declare()
    receiver = peer.receiver(credit=1)
    held = receiver.take()
    receiver.dispose(held, in_transaction(first, ACCEPTED), settled=False)
    receiver.dispose(held, in_transaction(second, ACCEPTED), settled=False)
    assert two.detached and two.error is not None and two.error.condition == ROLLBACK
    assert not one.detached
    assert one.commit(first) is None
    assert world.queue().depth == 0


def test_a_plain_outcome_for_enlisted_work_is_never_both(world: World) -> None:
    """T78."""
    peer = world.connect()
    peer.sender().send("m1")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver(credit=1)
    held = receiver.take()
    receiver.dispose(held, in_transaction(txn, ACCEPTED), settled=False)
    receiver.dispose(held, RELEASED)
    assert controller.detached and controller.error is not None and controller.error.condition == ROLLBACK
    assert world.depth() == (1, 0)
    assert world.broker.transactions() == []


@pytest.mark.parametrize("fail", [False, True])
def test_discharge_amid_a_post_ends_the_control_link(world: World, fail: bool) -> None:
    """T46; a message that was aborted, or whose link is gone, does not count (T101, T103)."""
    peer = world.connect()
    session = peer.begin()
    controller, sender = peer.controller(), peer.sender(session=session)
    first, second = controller.declare(), controller.declare()
    sender.send("m1", state=in_transaction(second))
    handle = encode_uint(sender.link.handle)
    state = in_transaction(first).encoded
    begun = composite(0x14, handle, encode_uint(50), encode_binary(b"tag"), encode_uint(0), FALSE, TRUE, NULL, state)
    peer.engine.write(session.channel, begun + b"\x00\x53")
    assert controller.roll_back(first) == ROLLBACK if fail else controller.commit(first) == ROLLBACK
    assert controller.detached and world.broker.transactions() == []
    sender.detach()
    controller = peer.controller()
    assert controller.commit(controller.declare()) is None
    assert world.queue().depth == 0


def test_control_messages_must_not_be_settled(world: World) -> None:
    controller = world.connect().controller()
    controller.command(Declare(), settled=True)
    assert controller.detached and controller.error is not None


def test_a_message_that_is_no_command_ends_the_link(world: World) -> None:
    peer = world.connect()
    controller = peer.controller()
    controller.link.send(b"\x00\x53\x77\xa1\x02hi", context=[])
    world.run()
    assert controller.detached and controller.error is not None
    assert controller.error.condition == "amqp:decode-error"
    assert not peer.ended


def test_a_global_id_is_refused(world: World) -> None:
    controller = world.connect().controller()
    (answer,) = controller.command(Declare(global_id=b"xid"))
    assert isinstance(answer, Rejected) and isinstance(answer.error, AmqpError)
    assert answer.error.condition.startswith("amqp:transaction:")


def test_timeout_counts_from_the_first_work(world: World) -> None:
    world = World({"policy": {"transaction_timeout": 5}})
    peer = world.connect()
    peer.sender().send("m1")
    controller, sender = peer.controller(), peer.sender("results")
    receiver = peer.receiver(credit=1)
    unused, used = controller.declare(), controller.declare()
    world.advance(100)
    receiver.dispose(receiver.take(), in_transaction(used, ACCEPTED))
    sender.send("r", state=in_transaction(used))
    world.advance(4.9)
    assert world.depth() == (0, 1)
    world.advance(0.2)
    assert world.connect().receiver(distribution_mode="copy", snd_settle_mode=SETTLED).drain() == ["m1+1"]
    sender.send("late", state=in_transaction(used))
    assert controller.commit(used) == "amqp:transaction:timeout"
    assert controller.commit(unused) is None
    assert world.queue("results").depth == 0


@pytest.mark.parametrize("now", [0, 1, 100])
@pytest.mark.parametrize("key", ["transaction_timeout", "transaction_idle_timeout"])
def test_a_transaction_keeps_the_times_that_were_configured_when_it_began_to_work(
    key: str, now: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A change is for those that come: none is undone that was just at work, nor is the log told another time."""
    world = World({"policy": {key: 10}})
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender("results")
    txn, later = controller.declare(), controller.declare()
    sender.send("m1", state=in_transaction(txn))
    world.advance(5)
    world.broker.change_policy({key: now})
    sender.send("m2", state=in_transaction(txn))
    world.advance(4)
    sender.send("m3", state=in_transaction(txn))
    sender.send("m4", state=in_transaction(later))
    world.advance(0.5 if key == "transaction_timeout" else 9.5)
    assert not [record for record in caplog.records if txn.hex() in record.getMessage()]
    world.advance(1)
    assert controller.commit(txn) == "amqp:transaction:timeout"
    [told] = [record.getMessage() for record in caplog.records if txn.hex() in record.getMessage()]
    assert "more than 10 s" in told or "longer than 10 s" in told
    assert controller.commit(later) == ("amqp:transaction:timeout" if now == 1 else None)


class TestAcquisition:
    """4.4.3: credit that belongs to a transaction."""

    @staticmethod
    def _acquire(world: World, **options: object) -> tuple[object, object, bytes, list[object]]:
        peer = world.connect()
        peer.sender().send("m1", "m2")
        controller = peer.controller()
        txn = controller.declare()
        receiver = peer.receiver(**options)  # type: ignore[arg-type]
        receiver.flow(2, properties={Symbol("txn-id"): txn})
        held = receiver.take()
        assert [delivery.remote_state for delivery in held] == [in_transaction(txn)] * 2
        return controller, receiver, txn, held

    def test_commit_takes_what_was_accepted_and_leaves_the_rest_acquired(self, world: World) -> None:
        controller, receiver, txn, held = self._acquire(world)
        receiver.dispose(held[:1], in_transaction(txn, ACCEPTED))  # type: ignore[attr-defined]
        assert controller.commit(txn) is None  # type: ignore[attr-defined]
        assert world.depth() == (0, 1)
        receiver.dispose(held[1:], ACCEPTED)  # type: ignore[attr-defined]
        assert world.queue().depth == 0

    def test_rollback_releases_what_was_only_acquired(self, world: World) -> None:
        controller, receiver, txn, held = self._acquire(world)
        assert controller.roll_back(txn) is None  # type: ignore[attr-defined]
        assert world.depth() == (2, 0)
        assert all(delivery.remote_settled for delivery in held)  # type: ignore[attr-defined]
        assert receiver.drain() == ["m1", "m2"]  # type: ignore[attr-defined]

    def test_presettled(self, world: World) -> None:
        controller, receiver, txn, _ = self._acquire(world, snd_settle_mode=SETTLED)
        assert world.depth() == (0, 2)
        assert controller.commit(txn) is None  # type: ignore[attr-defined]
        assert world.queue().depth == 0

    def test_the_discharge_clears_the_link(self, world: World) -> None:
        controller, receiver, txn, held = self._acquire(world)
        receiver.dispose(held, in_transaction(txn, ACCEPTED))  # type: ignore[attr-defined]
        controller.commit(txn)  # type: ignore[attr-defined]
        world.connect().sender().send("m3")
        receiver.flow(1)  # type: ignore[attr-defined]
        (delivery,) = receiver.take()  # type: ignore[attr-defined]
        assert delivery.remote_state is None

    def test_an_unknown_transaction_ends_the_link(self, world: World) -> None:
        receiver = world.connect().receiver()
        receiver.flow(1, properties={Symbol("txn-id"): b"made up"})
        assert receiver.detached and receiver.error is not None and receiver.error.condition == UNKNOWN
