"""The default outcome (Part 3, 3.5.3; D1-D9) where a transaction has to do with it, and outcomes by commit.

Outside of transactions, and at each way a link ends, it is the matter of tests/broker/test_default_outcome.py, from
which the names and values of the defaults are taken.
"""

from __future__ import annotations

import pytest

from jmsish.engine.outcomes import (
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    DeliveryState,
    Modified,
    Rejected,
)
from tests.broker.test_default_outcome import BY_OUTCOME, COUNTED, DEFAULTS, GONE
from tests.wire.part4.scene import ACCEPTED, Scene, Stage, in_transaction

EACH = pytest.mark.parametrize(("name", "default"), DEFAULTS, ids=[name for name, _ in DEFAULTS])
WAYS = pytest.mark.parametrize("way", ["rollback", "control link", "session", "connection", "timeout"])


def expected(name: str) -> list[str]:
    """By 3.4; where none was given the retirement counts as an attempt (W1)."""
    what = COUNTED if name == "absent" else BY_OUTCOME[name]
    return ["m2"] if what == GONE else [what, "m2"]


def end(stage: Stage, way: str) -> None:
    if way == "rollback":
        assert stage.control.roll_back(stage.txn) is None
    elif way == "control link":
        stage.control.detach()
    elif way == "session":
        stage.peer.session.end()
        stage.scene.run()
    elif way == "connection":
        stage.peer.cut()
    else:
        stage.scene.advance(11)


@WAYS
@EACH
def test_d1_a_settled_retirement_that_is_not_committed(way: str, name: str, default: DeliveryState | None) -> None:
    stage = Stage(Scene({"policy": {"transaction_timeout": 10}}), "m1", "m2")
    receiver, held = stage.taken(default_outcome=default)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    end(stage, way)
    assert stage.left() == expected(name)


@EACH
def test_d1_a_settled_retirement_without_an_outcome_commits_the_default(
    scene: Scene, name: str, default: DeliveryState | None
) -> None:
    stage = Stage(scene, "m1", "m2")
    receiver, held = stage.taken(default_outcome=default)
    receiver.dispose(held, in_transaction(stage.txn, None))
    assert stage.control.commit(stage.txn) is None
    assert stage.left() == (["m1", "m2"] if name == "absent" else expected(name)), "W6: as released without one"


@EACH
def test_d1_presettled_acquisition_commits_the_default(scene: Scene, name: str, default: DeliveryState | None) -> None:
    stage = Stage(scene, "m1", "m2")
    stage.acquired(default_outcome=default, snd_settle_mode=1)
    assert stage.control.commit(stage.txn) is None
    assert stage.left() == (["m2"] if name == "absent" else expected(name)), "seed 000: absent removes"


@EACH
def test_t087_presettled_acquisition_rolled_back_is_back_whatever_the_default(
    scene: Scene, name: str, default: DeliveryState | None
) -> None:
    stage = Stage(scene, "m1", "m2")
    stage.acquired(default_outcome=default, snd_settle_mode=1)
    assert stage.control.roll_back(stage.txn) is None
    assert stage.left() == ["m1", "m2"]


@EACH
def test_t088_an_acquisition_with_an_outcome_rolled_back_is_back_whatever_the_default(
    scene: Scene, name: str, default: DeliveryState | None
) -> None:
    stage = Stage(scene, "m1", "m2")
    receiver, held = stage.acquired(default_outcome=default)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    assert stage.control.roll_back(stage.txn) is None
    assert [body.partition("+")[0] for body in stage.left()] == ["m1", "m2"]


@EACH
def test_d4_unsettled_retirements_are_not_touched_by_it(scene: Scene, name: str, default: DeliveryState | None) -> None:
    stage = Stage(scene, "m1", "m2")
    receiver, held = stage.taken(default_outcome=default)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), False)
    assert stage.control.roll_back(stage.txn) is None
    assert scene.depth() == (1, 1)
    receiver.dispose(held, RELEASED)
    assert stage.left() == ["m1", "m2"]


def test_d1_undeliverable_here_keeps_it_from_this_link_and_from_no_other(scene: Scene) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.taken(default_outcome=MODIFIED_FAILED_UNDELIVERABLE)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    assert stage.control.roll_back(stage.txn) is None
    assert receiver.receive(5) == [] and stage.left() == ["m1+1"]


def test_d1_rolled_back_retirements_count_towards_the_limit(scene: Scene) -> None:
    """D5, D8: known to have been handed over, so attempts; the put-back that makes them the maximum dead-letters."""
    scene.broker.declare_queue("q", max_delivery_attempts=3)
    stage = Stage(scene, "m1")
    receiver = stage.peer.receiver(default_outcome=MODIFIED_FAILED)
    for attempt in range(3):
        receiver.flow(1)
        receiver.dispose(receiver.take(), in_transaction(stage.txn, ACCEPTED))
        assert stage.control.roll_back(stage.txn) is None
        stage.txn = stage.control.declare()
        assert scene.queue().depth == (1 if attempt < 2 else 0)
    assert scene.bodies("DLQ") == ["m1"]


def test_d8_a_browser_cannot_retire(scene: Scene) -> None:
    """Nothing was acquired, so its dispositions, in a transaction or not, change nothing."""
    stage = Stage(scene, "m1")
    browser = stage.peer.receiver(credit=1, distribution_mode="copy", default_outcome=ACCEPTED)
    browser.dispose(browser.take(), in_transaction(stage.txn, ACCEPTED))
    assert stage.control.commit(stage.txn) is None
    assert stage.left() == ["m1"]


OUTCOMES: dict[str, tuple[DeliveryState, list[str]]] = {
    "accepted": (ACCEPTED, []),
    "rejected": (Rejected(), []),
    "released": (RELEASED, ["m1"]),
    "modified": (Modified(), ["m1"]),
    "modified-failed": (MODIFIED_FAILED, ["m1+1"]),
    "modified-failed-undeliverable": (MODIFIED_FAILED_UNDELIVERABLE, ["m1+1"]),
}


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_t073_each_outcome_is_applied_by_the_commit_and_not_before(scene: Scene, name: str, settled: bool) -> None:
    """Real brokers ignore a released in a transaction and leave the message stuck, or lose it."""
    outcome, left = OUTCOMES[name]
    stage = Stage(scene, "m1")
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(stage.txn, outcome), settled)
    assert scene.depth() == (0, 1) and stage.left() == []
    assert stage.control.commit(stage.txn) is None
    assert stage.left() == left
    assert scene.depth() == (0, 0) or left
    assert ("DLQ" in [view.name for view in scene.broker.queues()]) is (name == "rejected")


@pytest.mark.parametrize("name", OUTCOMES)
def test_t074_and_none_of_it_by_a_rollback(scene: Scene, name: str) -> None:
    stage = Stage(scene, "m1")
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(stage.txn, OUTCOMES[name][0]), False)
    assert stage.control.roll_back(stage.txn) is None
    assert scene.depth() == (0, 1)
    receiver.dispose(held, RELEASED)
    assert stage.left() == ["m1"]
