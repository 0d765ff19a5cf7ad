"""Part 2, 2.6.14 and 2.7.5, in a transaction: aborted and partial deliveries (T100-T104)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.frames import Raw
from tests.wire.part4.scene import (
    ROLLBACK,
    Scene,
    Stage,
    condition_of,
    in_transaction,
    message,
    state_of,
    states,
)

WHOLE = message("m1")


def begun(stage: Stage, **fields: Any) -> tuple[Any, int]:
    """A sender, and the number of a message of which the first frame is sent."""
    sender = stage.peer.sender()
    fields = {"state": state_of(stage.txn, None), **fields}
    return sender, stage.scene.transfer(sender, WHOLE[:4], more=True, **fields)


@pytest.mark.parametrize("more", [True, False, None], ids=["more", "no more", "not said"])
@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_t100_t101_an_aborted_message_never_was(scene: Scene, more: bool | None, settled: bool) -> None:
    """No work in the transaction, no mark on it, no outcome for it, and its credit comes back."""
    stage = Stage(scene)
    sender, number = begun(stage, settled=settled)
    credit = sender.link.credit
    scene.frames(stage.peer)
    scene.transfer(sender, WHOLE[4:], number=number, aborted=True, more=more)
    (view,) = scene.broker.transactions()
    assert view.posts == 0 and not view.rollback_only
    assert states(scene.frames(stage.peer), number) == []
    sender.send("m2", state=in_transaction(stage.txn))
    assert stage.control.commit(stage.txn) is None
    assert scene.bodies() == ["m2"] and sender.link.credit >= credit - 1


def test_t101_credit_never_runs_out_by_aborts(scene: Scene) -> None:
    stage = Stage(scene)
    sender = stage.peer.sender()
    for _ in range(1200):
        number = scene.transfer(sender, WHOLE[:4], more=True, state=state_of(stage.txn, None))
        scene.transfer(sender, b"", number=number, aborted=True)
    assert not sender.detached and not stage.peer.ended
    assert stage.control.commit(stage.txn) is None


@pytest.mark.parametrize("said", ["accepted", "released", "rejected"])
def test_t102_a_terminal_state_is_not_changed_by_what_follows(scene: Scene, said: str) -> None:
    """The poster's idea of the outcome, sent after it was determined, is none of its business."""
    stage = Stage(scene)
    sender = stage.peer.sender(rcv_settle_mode=1)
    number = scene.transfer(sender, WHOLE, state=state_of(stage.txn, None))
    state = state_of(stage.txn, said)
    scene.say(stage.peer, "disposition", role=False, first=number, last=number, settled=False, state=state)
    assert stage.control.commit(stage.txn) is None
    assert scene.bodies() == ["m1"]


@pytest.mark.parametrize("flags", [(True, None), (True, False), (False, True), (None, True)])
def test_t102_settled_once_is_settled(scene: Scene, flags: tuple[bool | None, bool | None]) -> None:
    """Part 2, 2.7.5: "the value of the settled flag ... MUST be interpreted as true if ... true in any" frame."""
    stage = Stage(scene)
    sender, number = begun(stage, settled=flags[0])
    scene.frames(stage.peer)
    scene.transfer(sender, WHOLE[4:], number=number, settled=flags[1], state=state_of(stage.txn, None))
    assert states(scene.frames(stage.peer), number) == [], "nobody waits for an outcome"
    assert stage.control.commit(stage.txn) is None
    assert scene.bodies() == ["m1"]


@pytest.mark.parametrize("how", ["close", "detach", "session"])
def test_t103_a_link_gone_in_mid_delivery_leaves_the_transaction_usable(scene: Scene, how: str) -> None:
    stage = Stage(scene)
    stage.peer.session = stage.peer.begin()
    sender, _ = begun(stage)
    if how == "session":
        sender.link.session.end()
        scene.run()
    else:
        sender.detach(closed=how == "close")
    (view,) = scene.broker.transactions()
    assert view.posts == 0 and not view.rollback_only
    stage.peer.session = stage.peer.begin()
    stage.peer.sender().send("m2", state=in_transaction(stage.txn))
    assert stage.control.commit(stage.txn) is None, "T46 does not apply"
    assert scene.bodies() == ["m2"]


MIXED = ["another", "none", "first none", "a plain outcome", "unknown"]


@pytest.mark.parametrize("how", MIXED)
@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_t104_frames_of_one_delivery_that_name_different_transactions(scene: Scene, how: str, settled: bool) -> None:
    """4.4.1: all frames of a delivery are in one transaction; the link ends, and nobody gets the message."""
    stage = Stage(scene)
    other = stage.control.declare()
    mine: Raw = state_of(stage.txn, None)
    later: Any = {
        "another": state_of(other, None), "none": None, "first none": mine, "unknown": state_of(b"made up", None),
        "a plain outcome": Raw(b"\x00\x53\x24\x45"),
    }[how]  # fmt: skip
    sender, number = begun(stage, settled=settled, state=None if how == "first none" else mine)
    scene.transfer(sender, WHOLE[4:], number=number, settled=settled, state=later)
    assert condition_of(sender) == "amqp:invalid-field" and not stage.peer.ended
    assert stage.control.commit(stage.txn) == ROLLBACK, "it must not commit without the message (4.4.4.1)"
    assert stage.control.commit(other) is None
    assert scene.queue().depth == 0
