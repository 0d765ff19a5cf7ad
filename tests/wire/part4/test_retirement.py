"""Part 4, 4.4.2 and 4.4.4.2: transactional retirement (T70-T79)."""

from __future__ import annotations

import pytest

from jmsish.engine.outcomes import MODIFIED_FAILED, RELEASED, Received
from tests.wire.part4.scene import (
    ACCEPTED,
    ROLLBACK,
    UNKNOWN_ID,
    Scene,
    Stage,
    condition_of,
    in_transaction,
    state_of,
)

SETTLED = pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])


def texts(bodies: list[str]) -> list[str]:
    """Without their counts."""
    return [body.partition("+")[0] for body in bodies]


@SETTLED
def test_t070_an_outcome_is_enlisted_by_its_disposition(scene: Scene, settled: bool) -> None:
    stage = Stage(scene, "m1", "m2")
    receiver, held = stage.taken(2)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), settled)
    (view,) = scene.broker.transactions()
    assert view.retirements == 2 and scene.depth() == (0, 2)
    assert all(delivery.context == [] for delivery in held), "nothing comes back before the discharge"


def test_t071_the_delivery_may_have_been_sent_under_the_same_transaction_or_none(scene: Scene) -> None:
    stage = Stage(scene, "m1", "m2")
    acquiring, first = stage.acquired()
    receiver, second = stage.taken()
    acquiring.dispose(first, in_transaction(stage.txn, ACCEPTED))
    receiver.dispose(second, in_transaction(stage.txn, ACCEPTED))
    assert stage.control.commit(stage.txn) is None and scene.queue().depth == 0


@SETTLED
def test_t072_two_transactions_for_one_delivery_end_the_control_link_of_the_second(scene: Scene, settled: bool) -> None:
    stage = Stage(scene, "m1")
    second = stage.peer.controller()
    other = second.declare()
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), False)
    receiver.dispose(held, in_transaction(other, RELEASED), settled)
    assert condition_of(second) == ROLLBACK and not stage.control.detached
    assert stage.control.commit(stage.txn) is None
    assert scene.queue().depth == 0


@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
def test_t072_a_settled_range_over_both_loses_none_of_it(scene: Scene, fail: bool) -> None:
    """One delivery of the range is enlisted elsewhere; the others are rolled back with the link, not left acquired."""
    stage = Stage(scene, "m1", "m2", "m3")
    second = stage.peer.controller()
    other = second.declare()
    receiver, held = stage.taken(3, default_outcome=MODIFIED_FAILED)
    receiver.dispose(held[1:2], in_transaction(stage.txn, ACCEPTED), False)
    first, last = held[0].id, held[2].id
    scene.say(stage.peer, "disposition", role=True, first=first, last=last, settled=True, state=state_of(other))
    assert condition_of(second) == ROLLBACK and scene.depth() == (2, 1)
    assert (stage.control.roll_back if fail else stage.control.commit)(stage.txn) is None
    assert scene.depth() == ((3, 0) if fail else (2, 0))


def test_t073_a_commit_applies_the_outcome_and_settles(scene: Scene) -> None:
    stage = Stage(scene, "m1", "m2")
    receiver, held = stage.taken(2)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), False)
    assert stage.control.commit(stage.txn) is None
    assert all(delivery.remote_settled and delivery.context == [ACCEPTED] for delivery in held)
    assert scene.queue().depth == 0


@pytest.mark.parametrize("how", ["fail", "refused", "control link"])
@pytest.mark.parametrize("then", ["in another", "outside", "released"])
def test_t074_an_unsettled_delivery_is_as_it_was_and_can_be_disposed_of_again(
    scene: Scene, how: str, then: str
) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), False)
    undo(stage, how)
    assert scene.depth() == (0, 1) and not held[0].remote_settled, "live, and acquired"
    if then == "in another":
        control = stage.peer.controller()
        txn = control.declare()
        receiver.dispose(held, in_transaction(txn, ACCEPTED))
        assert control.commit(txn) is None
    else:
        receiver.dispose(held, ACCEPTED if then == "outside" else RELEASED)
    assert stage.left() == (["m1"] if then == "released" else [])


def undo(stage: Stage, how: str) -> None:
    """A transaction does not commit, for one of three reasons (4.4.4.2)."""
    if how == "fail":
        assert stage.control.roll_back(stage.txn) is None
    elif how == "refused":
        stage.scene.broker.declare_queue("full", max_messages=1)
        stage.peer.sender("full").send("x")
        stage.peer.sender("full").send("y", state=in_transaction(stage.txn), settled=True)
        assert stage.control.commit(stage.txn) == ROLLBACK
    else:
        stage.control.detach()


@pytest.mark.parametrize("how", ["fail", "refused", "control link"])
def test_t075_a_settled_one_gets_the_default_outcome(scene: Scene, how: str) -> None:
    for default, left in ((MODIFIED_FAILED, ["m1+1"]), (RELEASED, ["m1"]), (ACCEPTED, [])):
        stage = Stage(Scene(), "m1")
        receiver, held = stage.taken(default_outcome=default)
        receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
        undo(stage, how)
        assert stage.left() == left


@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
@pytest.mark.parametrize("outcome", [None, Received(0, 0)], ids=["none", "received"])
def test_t076_settled_without_an_outcome_it_is_the_default_either_way(
    scene: Scene, fail: bool, outcome: Received | None
) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.taken(default_outcome=MODIFIED_FAILED)
    receiver.dispose(held, in_transaction(stage.txn, outcome))
    assert (stage.control.roll_back if fail else stage.control.commit)(stage.txn) is None
    assert stage.left() == ["m1+1"]


@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
@pytest.mark.parametrize("outcome", [None, Received(0, 0)], ids=["none", "received"])
def test_t076_unsettled_without_an_outcome_it_stays_with_the_receiver(
    scene: Scene, fail: bool, outcome: Received | None
) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(stage.txn, outcome), False)
    assert (stage.control.roll_back if fail else stage.control.commit)(stage.txn) is None
    assert scene.depth() == (0, 1)
    receiver.accept(held)
    assert scene.queue().depth == 0


@SETTLED
def test_t077_an_unknown_transaction_ends_the_link_and_the_message_is_back(scene: Scene, settled: bool) -> None:
    stage = Stage(scene, "m1", "m2")
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(b"made up", ACCEPTED), settled)
    assert condition_of(receiver) == UNKNOWN_ID and not stage.peer.ended
    assert texts(stage.left()) == ["m1", "m2"]


@SETTLED
def test_t077_of_a_range_over_two_links_both_end(scene: Scene, settled: bool) -> None:
    stage = Stage(scene, "m1", "m2")
    (one, first), (two, second) = stage.taken(), stage.taken()
    one.dispose([*first, *second], in_transaction(b"made up", ACCEPTED), settled)
    assert condition_of(one) == condition_of(two) == UNKNOWN_ID
    assert texts(stage.left()) == ["m1", "m2"]


@SETTLED
@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
def test_t077_what_is_enlisted_elsewhere_stays_so(scene: Scene, settled: bool, fail: bool) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), False)
    receiver.dispose(held, in_transaction(b"made up", RELEASED), settled)
    assert condition_of(receiver) == UNKNOWN_ID
    assert (stage.control.roll_back if fail else stage.control.commit)(stage.txn) is None
    assert texts(stage.left()) == (["m1"] if fail else []), "never acquired for ever"


@pytest.mark.parametrize("outcome", [ACCEPTED, RELEASED, MODIFIED_FAILED], ids=["accepted", "released", "modified"])
@SETTLED
def test_t078_a_plain_outcome_for_what_is_enlisted_ends_the_control_link(
    scene: Scene, outcome: object, settled: bool
) -> None:
    """ "The delivery MUST NOT be associated with a different non-discharged transaction than the outcome"."""
    stage = Stage(scene, "m1")
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), False)
    receiver.dispose(held, outcome, settled)  # type: ignore[arg-type]
    assert condition_of(stage.control) == ROLLBACK and scene.broker.transactions() == []
    assert stage.left() == {ACCEPTED: [], RELEASED: ["m1"], MODIFIED_FAILED: ["m1+1"]}[outcome]  # type: ignore[index]


@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
def test_t078_to_settle_only_is_no_outcome(scene: Scene, fail: bool) -> None:
    """A disposition without a state leaves the one before it in force, and makes it final."""
    stage = Stage(scene, "m1")
    receiver, held = stage.taken(default_outcome=MODIFIED_FAILED)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), False)
    receiver.dispose(held, None)
    assert not stage.control.detached and scene.depth() == (0, 1)
    assert (stage.control.roll_back if fail else stage.control.commit)(stage.txn) is None
    assert stage.left() == (["m1+1"] if fail else [])


def test_t078_a_change_of_mind_within_the_transaction_counts(scene: Scene) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), False)
    receiver.dispose(held, in_transaction(stage.txn, RELEASED), False)
    assert stage.control.commit(stage.txn) is None
    assert stage.left() == ["m1"]


@pytest.mark.parametrize("what", ["receive", "browse", "purge", "expire"])
def test_t079_nobody_else_sees_or_takes_it_meanwhile(scene: Scene, what: str) -> None:
    peer = scene.connect()
    peer.sender().send("m1", ttl=5000)
    stage = Stage(scene)
    receiver, held = stage.taken(default_outcome=RELEASED)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    if what == "receive":
        assert stage.left() == []
    elif what == "browse":
        assert peer.receiver(distribution_mode="copy", snd_settle_mode=1).drain() == []
    elif what == "purge":
        assert scene.queue().purge() == 0
    else:
        scene.advance(10)
        assert scene.queue().expired == 0
    assert scene.depth() == (0, 1)
    assert stage.control.roll_back(stage.txn) is None
    assert stage.left() == ([] if what == "expire" else ["m1"]), "past its time it goes as it comes back"


def test_t079_a_deleted_queue_forbids_the_commit(scene: Scene) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    scene.broker.delete_queue("q")
    scene.run()
    assert condition_of(receiver) == "amqp:resource-deleted"
    assert stage.control.commit(stage.txn) == ROLLBACK
