"""`amqp:transaction:timeout` (4.5.8, T47): transactions open or idle for longer than the broker was told (D15)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.wire.part4.scene import ACCEPTED, TIMEOUT, UNKNOWN_ID, Scene, Stage, in_transaction

OPEN: dict[str, Any] = {"policy": {"transaction_timeout": 10}}
IDLE: dict[str, Any] = {"policy": {"transaction_idle_timeout": 10}}
BOTH = pytest.mark.parametrize("config", [OPEN, IDLE], ids=["open", "idle"])


def worked(config: dict[str, Any]) -> Stage:
    """A message taken and one posted."""
    stage = Stage(Scene(config), "m1")
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    stage.peer.sender("results").send("r", state=in_transaction(stage.txn))
    return stage


@BOTH
def test_t047_m101_too_late_is_rolled_back_at_once_and_the_commit_told_why(config: dict[str, Any]) -> None:
    stage = worked(config)
    scene = stage.scene
    scene.advance(9.9)
    assert scene.depth() == (0, 1)
    scene.advance(0.2)
    assert scene.depth() == (1, 0) and scene.queue("results").depth == 0
    assert stage.control.commit(stage.txn) == TIMEOUT
    assert stage.control.commit(stage.txn) == UNKNOWN_ID
    assert stage.left() == ["m1+1"]


@BOTH
def test_t047_work_after_it_is_undone_as_well(config: dict[str, Any]) -> None:
    stage = worked(config)
    stage.scene.advance(11)
    stage.peer.sender("results").send("late", state=in_transaction(stage.txn))
    assert stage.scene.broker.transactions()[0].rollback_only
    assert stage.control.commit(stage.txn) == TIMEOUT
    assert stage.scene.queue("results").depth == 0


@BOTH
def test_t047_a_rollback_is_accepted_all_the_same(config: dict[str, Any]) -> None:
    stage = worked(config)
    stage.scene.advance(11)
    assert stage.control.roll_back(stage.txn) is None


@BOTH
def test_t047_without_work_time_does_not_run(config: dict[str, Any]) -> None:
    stage = Stage(Scene(config))
    stage.scene.advance(1000)
    stage.peer.sender("results").send("r", state=in_transaction(stage.txn))
    stage.scene.advance(9)
    assert stage.control.commit(stage.txn) is None


@BOTH
def test_t047_what_was_discharged_in_time_is_left_alone(config: dict[str, Any]) -> None:
    stage = worked(config)
    assert stage.control.commit(stage.txn) is None
    stage.scene.advance(100)
    assert stage.scene.bodies("results") == ["r"] and not stage.control.detached


@pytest.mark.parametrize(("config", "late"), [(OPEN, True), (IDLE, False)], ids=["open", "idle"])
def test_t047_work_renews_patience_but_not_time(config: dict[str, Any], late: bool) -> None:
    stage = worked(config)
    for _ in range(5):
        stage.scene.advance(6)
        stage.peer.sender("results").send("r", state=in_transaction(stage.txn))
    assert (stage.control.commit(stage.txn) == TIMEOUT) is late


def test_t047_both_limits_whichever_comes_first() -> None:
    stage = worked({"policy": {"transaction_timeout": 20, "transaction_idle_timeout": 5}})
    for _ in range(4):
        stage.scene.advance(4)
        stage.peer.sender("results").send("r", state=in_transaction(stage.txn))
    assert not stage.scene.broker.transactions()[0].rollback_only
    stage.scene.advance(4.5)
    assert stage.scene.broker.transactions()[0].rollback_only


@BOTH
def test_t047_it_is_in_the_log(config: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    stage = worked(config)
    with caplog.at_level(logging.INFO, logger="jmsish.broker"):
        stage.scene.advance(11)
    (record,) = caplog.records
    assert "more than 10 s" in record.getMessage() or "longer than 10 s" in record.getMessage()


def test_a_transaction_that_can_only_be_rolled_back_times_out_too() -> None:
    stage = worked(OPEN)
    stage.scene.broker.declare_queue("full", max_messages=1)
    stage.peer.sender("full").send("x")
    stage.peer.sender("full").send("y", state=in_transaction(stage.txn), settled=True)
    stage.scene.advance(11)
    assert stage.scene.depth() == (1, 0)


def test_messages_under_way_to_be_acquired_are_back_too() -> None:
    stage = Stage(Scene(OPEN), "m1")
    receiver, _ = stage.acquired()
    stage.scene.advance(11)
    assert stage.scene.depth() == (1, 0)
    receiver.flow(1)
    (delivery,) = receiver.take()
    assert delivery.remote_state is None, "the link acquires outside of any transaction (T82)"


@pytest.mark.parametrize("key", ["transaction_timeout", "transaction_idle_timeout"])
@pytest.mark.parametrize("value", [-1, "5", True])
def test_the_limits_are_seconds(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=key):
        Scene({"policy": {key: value}})
