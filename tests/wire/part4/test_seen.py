"""What is to be seen of live transactions from outside (issue 4, point 7)."""

from __future__ import annotations

import pytest

from tests.wire.part4.scene import ACCEPTED, Scene, Stage, in_transaction


def test_each_live_transaction_is_listed_with_what_it_holds(scene: Scene) -> None:
    stage = Stage(scene, "m1", "m2", "m3")
    receiver, held = stage.taken(2)
    scene.advance(5)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    stage.peer.sender("out").send("r", state=in_transaction(stage.txn))
    scene.advance(7)
    other = scene.connect("the other")
    idle = other.controller().declare()
    first, second = scene.broker.transactions()
    assert (first.id, first.connection, first.posts, first.retirements) == (stage.txn, "peer-0", 1, 2)
    assert first.age == pytest.approx(7), "from its first work, as the limits count (D15)"
    assert (second.id, second.connection, second.posts, second.retirements) == (idle, "the other", 0, 0)
    assert second.age == 0.0 and not first.rollback_only and not second.rollback_only


def test_what_is_only_acquired_is_no_retirement(scene: Scene) -> None:
    stage = Stage(scene, "m1", "m2")
    receiver, held = stage.acquired(2)
    assert scene.broker.transactions()[0].retirements == 0
    receiver.dispose(held[:1], in_transaction(stage.txn, ACCEPTED))
    assert scene.broker.transactions()[0].retirements == 1


def test_a_connection_says_how_many_it_has(scene: Scene) -> None:
    stage = Stage(scene)
    stage.control.declare()
    (view,) = scene.broker.connections()
    assert view.transactions == 2


@pytest.mark.parametrize("way", ["commit", "rollback", "loss"])
def test_a_transaction_that_is_over_is_not_listed(scene: Scene, way: str) -> None:
    stage = Stage(scene)
    if way == "loss":
        stage.peer.cut()
    else:
        (stage.control.commit if way == "commit" else stage.control.roll_back)(stage.txn)
    assert scene.broker.transactions() == []


def test_a_view_stays_as_it_was(scene: Scene) -> None:
    stage = Stage(scene)
    (view,) = scene.broker.transactions()
    stage.peer.sender().send("m1", state=in_transaction(stage.txn))
    assert view.posts == 0 and scene.broker.transactions()[0].posts == 1
