"""Part 4, 4.4.3 and 4.4.4.3: transactional acquisition (T80-T91)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import MODIFIED_FAILED, RELEASED
from jmsish.types import Symbol
from tests.wire.part4.partial import PartlySent
from tests.wire.part4.scene import (
    ACCEPTED,
    ROLLBACK,
    SYMBOL_TXN_ID,
    UNKNOWN_ID,
    Scene,
    Stage,
    condition_of,
    in_transaction,
)

PRESETTLED: dict[str, Any] = {"snd_settle_mode": 1}
FAIL = pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
SENT = pytest.mark.parametrize("options", [{}, PRESETTLED], ids=["unsettled", "presettled"])


def discharge(stage: Stage, fail: bool) -> None:
    assert (stage.control.roll_back if fail else stage.control.commit)(stage.txn) is None


@SENT
def test_t080_what_is_acquired_from_then_on_belongs_to_the_transaction(scene: Scene, options: dict[str, Any]) -> None:
    stage = Stage(scene, "m1", "m2", "m3")
    receiver = stage.peer.receiver(**options)
    receiver.flow(1)
    (before,) = receiver.take()
    receiver.flow(2, properties={SYMBOL_TXN_ID: stage.txn})
    after = receiver.take()
    assert before.remote_state is None
    assert [delivery.remote_state for delivery in after] == [in_transaction(stage.txn)] * 2, "T84"
    assert stage.control.roll_back(stage.txn) is None
    assert scene.depth() == (2, 0 if options else 1)


def test_t080_the_state_is_of_that_link_alone(scene: Scene) -> None:
    stage = Stage(scene, "m1", "m2")
    stage.acquired()
    other = stage.peer.receiver(credit=1)
    (delivery,) = other.take()
    assert delivery.remote_state is None


def test_t081_acquisition_is_supported(scene: Scene) -> None:
    """So no link is ended with not-implemented."""
    stage = Stage(scene, "m1")
    receiver, held = stage.acquired()
    assert held and not receiver.detached


@FAIL
def test_t082_the_discharge_clears_all_links_and_leaves_their_credit(scene: Scene, fail: bool) -> None:
    stage = Stage(scene)
    receivers = [stage.acquired(5)[0] for _ in range(3)]
    discharge(stage, fail)
    assert [receiver.link.credit for receiver in receivers] == [5] * 3
    scene.connect().sender().send("m1", "m2", "m3")
    states = [delivery.remote_state for receiver in receivers for delivery in receiver.take()]
    assert states == [None] * 3, "acquired outside of any transaction now"


@pytest.mark.parametrize("way", ["drain", "credit 0"])
def test_t083_a_controller_that_takes_its_credit_back_first(scene: Scene, way: str) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.acquired(5)
    if way == "drain":
        receiver.flow(5, drain=True)
    else:
        receiver.flow(0, echo=True)
        frame = scene.frames(stage.peer, "flow")[-1]
        assert frame.handle is not None and frame.link_credit == 0, "seen"
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    discharge(stage, False)
    scene.connect().sender().send("m2")
    assert receiver.take() == [] and scene.depth() == (1, 0)


@pytest.mark.parametrize("acquiring", [True, False], ids=["acquiring", "not"])
def test_t084_every_txn_id_from_the_resource_is_the_right_one(scene: Scene, acquiring: bool) -> None:
    """On transfers that of the acquisition, on dispositions that of the post, and none where there is none."""
    stage = Stage(scene, "m1")
    other = stage.control.declare()
    scene.frames(stage.peer)
    (stage.acquired if acquiring else stage.taken)()
    stage.peer.sender().send("m2", state=in_transaction(other))
    frames = scene.frames(stage.peer, "transfer", "disposition", "flow")
    (transfer,) = [frame for frame in frames if frame.name == "transfer"]
    assert (transfer.state.txn_id if acquiring else transfer.state) == (stage.txn if acquiring else None)
    assert [frame.state.txn_id for frame in frames if frame.name == "disposition"] == [other]
    assert all(frame.properties is None for frame in frames if frame.name == "flow")


def test_t085_an_outcome_in_another_transaction_ends_its_control_link(scene: Scene) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.acquired()
    second = stage.peer.controller()
    other = second.declare()
    receiver.dispose(held, in_transaction(other, ACCEPTED), settled=False)
    assert condition_of(second) == ROLLBACK and not stage.control.detached
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    discharge(stage, False)
    assert scene.queue().depth == 0


def test_t085_an_outcome_outside_of_it_ends_its_control_link(scene: Scene) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.acquired()
    receiver.dispose(held, ACCEPTED)
    assert condition_of(stage.control) == ROLLBACK
    assert stage.left() == ["m1"], "and the acquisition is undone, so there was nothing to accept"


def test_t086_a_rollback_aborts_the_rest_before_it_is_answered(scene: Scene) -> None:
    half = PartlySent(scene)
    assert half.discharge(fail=True) == [], "the answer waits"
    assert scene.depth() == (1, 0), "the message does not"
    aborted, answer = half.open_window()
    assert aborted.name == "transfer" and aborted.aborted
    assert answer.name == "disposition" and answer.settled and answer.state.name == "accepted"


def test_t086_a_rollback_of_a_presettled_one_too(scene: Scene) -> None:
    half = PartlySent(scene, **PRESETTLED)
    assert half.discharge(fail=True) == []
    assert [frame.name for frame in half.open_window()] == ["transfer", "disposition"]
    assert scene.depth() == (1, 0)


@SENT
def test_t086_after_a_commit_the_rest_is_sent(scene: Scene, options: dict[str, Any]) -> None:
    half = PartlySent(scene, **options)
    (answer,) = half.discharge(fail=False)
    assert answer.state.name == "accepted"
    rest = half.open_window()
    assert len(rest) > 4 and not rest[-1].more and not any(frame.aborted for frame in rest)
    assert all(frame.state.txn_id == half.txn for frame in rest), "T84: as its first frames"
    assert scene.depth() == ((0, 0) if options else (0, 1)), "gone, or the receiver's"


def test_t086_a_presettled_one_lost_with_its_link_after_the_commit_is_back(scene: Scene) -> None:
    """W2: a delivery lost in mid-transfer is always back, whatever was decided of it."""
    half = PartlySent(scene, **PRESETTLED)
    half.discharge(fail=False)
    half.detach_receiver()
    assert scene.depth() == (1, 0)


@SENT
@FAIL
def test_t086_one_lost_with_its_link_before_the_discharge_is_back(
    scene: Scene, options: dict[str, Any], fail: bool
) -> None:
    half = PartlySent(scene, **options)
    half.detach_receiver()
    assert scene.depth() == (1, 0)
    (answer,) = half.discharge(fail)
    assert answer.state.name == "accepted" and scene.depth() == (1, 0)


def test_t087_settled_by_the_resource(scene: Scene) -> None:
    for fail, left in ((True, ["m1", "m2"]), (False, [])):
        stage = Stage(Scene(), "m1", "m2")
        _, held = stage.acquired(2, **PRESETTLED)
        assert all(delivery.remote_settled for delivery in held)
        assert stage.scene.depth() == (0, 2)
        discharge(stage, fail)
        assert stage.left() == left


def test_t087_presettled_with_a_default_outcome_that_gives_back(scene: Scene) -> None:
    """The outcome that stands is the default one; to this link it comes again only when that asks again."""
    stage = Stage(scene, "m1")
    receiver, _ = stage.acquired(10, default_outcome=RELEASED, **PRESETTLED)
    discharge(stage, False)
    assert receiver.take() == [] and scene.depth() == (1, 0)
    assert stage.left() == ["m1"]


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
@FAIL
def test_t088_an_outcome_of_the_controller(scene: Scene, settled: bool, fail: bool) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.acquired()
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), settled)
    discharge(stage, fail)
    assert held[0].remote_settled or settled
    assert [body.partition("+")[0] for body in stage.left()] == (["m1"] if fail else [])


@pytest.mark.parametrize("outcome", [RELEASED, MODIFIED_FAILED], ids=["released", "modified"])
def test_t088_any_outcome(scene: Scene, outcome: object) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.acquired()
    receiver.dispose(held, in_transaction(stage.txn, outcome))  # type: ignore[arg-type]
    discharge(stage, False)
    assert stage.left() == (["m1"] if outcome is RELEASED else ["m1+1"])


def test_t089_no_outcome_and_a_commit_leaves_it_acquired_and_live(scene: Scene) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.acquired()
    discharge(stage, False)
    assert scene.depth() == (0, 1) and not held[0].remote_settled
    receiver.dispose(held, ACCEPTED)
    assert scene.queue().depth == 0


def test_t089_no_outcome_and_a_rollback_releases_it(scene: Scene) -> None:
    stage = Stage(scene, "m1")
    _, held = stage.acquired()
    discharge(stage, True)
    assert held[0].remote_settled and held[0].context == [RELEASED]
    assert stage.left() == ["m1"], "uncounted"


@pytest.mark.parametrize("txn", [b"made up", b"", "text", 7], ids=["made-up", "empty", "a-string", "a-number"])
def test_t090_an_unknown_transaction_ends_the_link(scene: Scene, txn: object) -> None:
    stage = Stage(scene, "m1")
    receiver = stage.peer.receiver()
    receiver.flow(1, properties={SYMBOL_TXN_ID: txn})
    assert condition_of(receiver) == UNKNOWN_ID and receiver.take() == []
    assert scene.depth() == (1, 0) and not stage.peer.ended


def test_t091_a_flow_without_properties_leaves_it_and_one_without_the_key_clears_it(scene: Scene) -> None:
    stage = Stage(scene, "m1", "m2", "m3")
    receiver = stage.peer.receiver()
    receiver.flow(1, properties={SYMBOL_TXN_ID: stage.txn})
    receiver.flow(1)
    first, second = receiver.take()
    assert first.remote_state == second.remote_state == in_transaction(stage.txn)
    receiver.flow(1, properties={Symbol("other"): 1})
    (third,) = receiver.take()
    assert third.remote_state is None


def test_t091_another_transaction_takes_its_place(scene: Scene) -> None:
    stage = Stage(scene, "m1", "m2")
    receiver, _ = stage.acquired()
    other = stage.control.declare()
    receiver.flow(1, properties={SYMBOL_TXN_ID: other})
    (delivery,) = receiver.take()
    assert delivery.remote_state == in_transaction(other)
    discharge(stage, True)
    assert scene.depth() == (1, 1)
