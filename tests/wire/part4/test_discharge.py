"""Part 4, 4.3: discharge (T40-T48). T46 with aborted messages is in test_aborts, T47 in test_timeouts."""

from __future__ import annotations

import pytest

from jmsish.engine.outcomes import Declare, Discharge
from tests.wire.part4.scene import (
    ACCEPTED,
    ACCEPTED_ONLY,
    ROLLBACK,
    UNKNOWN_ID,
    Scene,
    Stage,
    condition_of,
    in_transaction,
    message,
    state_of,
)


def spoil(stage: Stage, way: str) -> None:
    """Make a commit of the stage's transaction impossible."""
    scene = stage.scene
    if way == "a settled post refused":
        scene.broker.declare_queue("full", max_messages=1)
        stage.peer.sender("full").send("x")
        stage.peer.sender("full").send("y", state=in_transaction(stage.txn), settled=True)
    elif way == "the queue posted to is gone":
        stage.peer.sender("gone").send("y", state=in_transaction(stage.txn))
        scene.broker.delete_queue("gone")
    else:
        receiver, held = stage.taken()
        receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
        scene.broker.delete_queue("q")
    scene.run()


SPOILT = ["a settled post refused", "the queue posted to is gone", "the queue taken from is gone"]


@pytest.mark.parametrize("way", ["untouched", *SPOILT])
def test_t040_a_rollback_always_succeeds(scene: Scene, way: str) -> None:
    stage = Stage(scene, "m1")
    if way != "untouched":
        spoil(stage, way)
    assert stage.control.roll_back(stage.txn) is None
    assert scene.broker.transactions() == []


@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
def test_t041_success_is_accepted(scene: Scene, fail: bool) -> None:
    stage = Stage(scene)
    assert stage.control.command(Discharge(stage.txn, fail)) == [ACCEPTED]


@pytest.mark.parametrize("way", SPOILT)
@pytest.mark.parametrize("rejected", [True, False], ids=["rejected-allowed", "not-allowed"])
def test_t042_t044_m101_what_cannot_be_committed_is_refused_and_undone(scene: Scene, way: str, rejected: bool) -> None:
    stage = Stage(scene, "m1", outcomes=None if rejected else ACCEPTED_ONLY)
    stage.peer.sender("other").send("o", state=in_transaction(stage.txn))
    spoil(stage, way)
    assert stage.control.commit(stage.txn) == ROLLBACK
    assert stage.control.detached is not rejected
    assert scene.queue("other").depth == 0
    if rejected:
        assert stage.control.commit(stage.txn) == UNKNOWN_ID, "the id is gone"


@pytest.mark.parametrize("rejected", [True, False], ids=["rejected-allowed", "not-allowed"])
@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
@pytest.mark.parametrize("which", ["made up", "discharged", "foreign", "over-long", "empty"])
def test_t043_m101_unknown_ids(scene: Scene, which: str, fail: bool, rejected: bool) -> None:
    stage = Stage(scene, outcomes=None if rejected else ACCEPTED_ONLY)
    done = stage.control.declare()
    stage.control.commit(done)
    foreign = scene.connect().controller().declare()
    ids = {"made up": b"made up", "discharged": done, "foreign": foreign, "over-long": b"x" * 33, "empty": b""}
    discharge = stage.control.roll_back if fail else stage.control.commit
    assert discharge(ids[which]) == UNKNOWN_ID
    assert stage.control.detached is not rejected
    assert foreign in [view.id for view in scene.broker.transactions()]


@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
@pytest.mark.parametrize("later", ["post", "retire", "commit", "rollback"])
def test_t045_after_its_discharge_an_id_is_dead(scene: Scene, fail: bool, later: str) -> None:
    stage = Stage(scene, "m1")
    stage.control.command(Discharge(stage.txn, fail))
    if later == "post":
        sender = stage.peer.sender()
        sender.send("m2", state=in_transaction(stage.txn))
        assert condition_of(sender) == UNKNOWN_ID
    elif later == "retire":
        receiver, held = stage.taken()
        receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
        assert condition_of(receiver) == UNKNOWN_ID
    else:
        assert stage.control.command(Discharge(stage.txn, later == "rollback")) != [ACCEPTED]
    assert [body.partition("+")[0] for body in stage.left()] == ["m1"]


@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
@pytest.mark.parametrize("same_session", [True, False], ids=["one-session", "two-sessions"])
def test_t046_a_discharge_amid_a_post_ends_the_control_link(scene: Scene, fail: bool, same_session: bool) -> None:
    stage = Stage(scene)
    session = stage.peer.session if same_session else stage.peer.begin()
    sender = stage.peer.sender(session=session)
    whole = message("m1")
    number = scene.transfer(sender, whole[:4], more=True, state=state_of(stage.txn, None))
    stage.control.command(Discharge(stage.txn, fail))
    assert condition_of(stage.control) == ROLLBACK
    scene.transfer(sender, whole[4:], number=number, state=state_of(stage.txn, None))
    assert condition_of(sender) == UNKNOWN_ID, "the rest names what is no more"
    assert scene.queue().depth == 0 and not stage.peer.ended


def test_t046_a_message_of_another_transaction_does_not_count(scene: Scene) -> None:
    stage = Stage(scene)
    other = stage.control.declare()
    sender = stage.peer.sender()
    whole = message("m1")
    number = scene.transfer(sender, whole[:4], more=True, state=state_of(other, None))
    assert stage.control.commit(stage.txn) is None
    scene.transfer(sender, whole[4:], number=number, state=state_of(other, None))
    assert stage.control.commit(other) is None
    assert scene.bodies() == ["m1"]


@pytest.mark.parametrize("second", [False, True], ids=["settles-first", "settles-second"])
@pytest.mark.parametrize("same_session", [True, False], ids=["one-session", "two-sessions"])
def test_t048_provisional_outcomes_come_before_the_answer(scene: Scene, second: bool, same_session: bool) -> None:
    """All in one write, and a declare's answer waiting in the control link's session."""
    stage = Stage(scene)
    session = stage.peer.session if same_session else stage.peer.begin()
    sender = stage.peer.sender(session=session, rcv_settle_mode=int(second))
    scene.frames(stage.peer)
    stage.control.command(Declare(), run=False)
    sender.send("m1", state=in_transaction(stage.txn), run=False)
    assert stage.control.command(Discharge(stage.txn)) == [ACCEPTED]
    frames = scene.frames(stage.peer, "disposition")
    said = [(frame.state.name, bool(frame.settled)) for frame in frames]
    assert said.index(("transactional-state", not second)) < said.index(("accepted", True)), said
    assert (("accepted", False) in said) is second, "and after it the state applied (T61)"


def test_t048_a_thousand_posts_and_their_discharge_in_one_write(scene: Scene) -> None:
    stage = Stage(scene)
    sender = stage.peer.sender(session=stage.peer.begin())
    answers = [sender.transfer(message(str(n)), state=in_transaction(stage.txn)) for n in range(1000)]
    assert stage.control.commit(stage.txn) is None
    assert all(answer == [in_transaction(stage.txn, ACCEPTED)] for answer in answers)
    names = [frame.state.name for frame in scene.frames(stage.peer, "disposition")]
    assert names[-1] == "accepted" and set(names[1:-1]) == {"transactional-state"}
    assert scene.bodies() == [str(n) for n in range(1000)]
