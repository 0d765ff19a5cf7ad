"""Part 4, 4.1: how long a transaction lives, and what ends it (T50-T53), told in the log (issue 4, points 4 and 7)."""

from __future__ import annotations

import logging

import pytest

from jmsish.engine.outcomes import MODIFIED_FAILED, Declare
from tests.wire.frames import composite
from tests.wire.part4.scene import (
    ACCEPTED,
    UNKNOWN_ID,
    Scene,
    Stage,
    condition_of,
    in_transaction,
)

ENDS = ["close", "detach", "detach with an error", "session end", "connection close", "socket loss", "broker stop"]


def bring_about(scene: Scene, stage: Stage, way: str) -> None:
    link = stage.control.link
    if way == "session end":
        link.session.end()
    elif way == "connection close":
        stage.peer.engine.close()
    elif way == "socket loss":
        stage.peer.cut()
    elif way == "broker stop":
        scene.broker.close()
    elif way == "detach with an error":
        error = composite("error", condition="amqp:internal-error")
        scene.say(stage.peer, "detach", session=link.session, handle=link.handle, closed=True, error=error)
    else:
        link.detach(closed=way == "close")
    scene.run()


class ManySessions(Stage):
    """Control link, consumer and producer in a session each; one message taken, one posted."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.peer = scene.connect()
        self.peer.sender().send("m1", "m2")
        self.control = self.peer.controller(session=self.peer.begin())
        self.txn = self.control.declare()
        self.consumer = self.peer.receiver(credit=1, session=self.peer.begin(), default_outcome=MODIFIED_FAILED)
        self.consumer.dispose(self.consumer.take(), in_transaction(self.txn, ACCEPTED))
        self.producer = self.peer.sender("results", session=self.peer.begin())
        self.producer.send("r", state=in_transaction(self.txn))


@pytest.mark.parametrize("way", ENDS)
def test_t050_t051_what_is_not_discharged_is_rolled_back_at_once(scene: Scene, way: str) -> None:
    """Work on other sessions of the connection too."""
    stage = ManySessions(scene)
    bring_about(scene, stage, way)
    assert scene.broker.transactions() == []
    assert scene.queue("results").depth == 0
    assert scene.depth() == (2, 0)
    assert scene.connect().receiver().drain() == ["m1+1", "m2"]


@pytest.mark.parametrize("way", ["close", "detach", "session end"])
def test_t050_further_work_under_the_id_fails(scene: Scene, way: str) -> None:
    stage = ManySessions(scene)
    bring_about(scene, stage, way)
    stage.producer.send("late", state=in_transaction(stage.txn))
    assert condition_of(stage.producer) == UNKNOWN_ID
    stage.consumer.flow(1)
    stage.consumer.dispose(stage.consumer.take(), in_transaction(stage.txn, ACCEPTED))
    assert condition_of(stage.consumer) == UNKNOWN_ID
    assert scene.queue("results").depth == 0 and scene.queue().depth == 2


def test_t050_all_of_its_transactions_and_none_of_another_link(scene: Scene) -> None:
    stage = Stage(scene)
    kept = stage.peer.controller()
    alive = kept.declare()
    mine = [stage.txn, stage.control.declare(), stage.control.declare()]
    sender = stage.peer.sender()
    for txn in (*mine, alive):
        sender.send("m", state=in_transaction(txn))
    stage.control.detach()
    assert [view.id for view in scene.broker.transactions()] == [alive]
    assert kept.commit(alive) is None and scene.bodies() == ["m"]


@pytest.mark.parametrize("way", ["close", "detach", "session end"])
@pytest.mark.parametrize("role", ["consumer", "producer"])
def test_t052_the_end_of_an_ordinary_link_rolls_nothing_back(scene: Scene, way: str, role: str) -> None:
    stage = ManySessions(scene)
    end = stage.consumer if role == "consumer" else stage.producer
    if way == "session end":
        end.link.session.end()
    else:
        end.link.detach(closed=way == "close")
    scene.run()
    scene.advance(0)
    scene.advance(2)
    assert [view.id for view in scene.broker.transactions()] == [stage.txn]
    assert stage.control.commit(stage.txn) is None
    assert scene.bodies("results") == ["r"] and scene.bodies() == ["m2"]


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_t052_a_disposition_after_the_detach_is_enlisted(scene: Scene, settled: bool) -> None:
    """Broker-J suite: dischargeSettledAfterReceiverDetach."""
    stage = Stage(scene, "m1", "m2")
    receiver, held = stage.taken()
    receiver.detach(closed=False)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED), settled)
    assert stage.control.commit(stage.txn) is None
    assert stage.left() == ["m2"]


@pytest.mark.parametrize("second", [False, True], ids=["settles-first", "settles-second"])
def test_t052_what_was_posted_before_the_detach_is_committed(scene: Scene, second: bool) -> None:
    """dischargeSettledAfterSenderDetach and dischargeUnsettledAfterSenderClose."""
    stage = Stage(scene)
    sender = stage.peer.sender(rcv_settle_mode=int(second))
    sender.send("m1", state=in_transaction(stage.txn))
    sender.detach()
    assert stage.control.commit(stage.txn) is None
    assert scene.bodies() == ["m1"] and not stage.peer.ended and not stage.peer.failed


@pytest.mark.parametrize("way", ENDS)
def test_a_rollback_nobody_asked_for_is_in_the_log(scene: Scene, way: str, caplog: pytest.LogCaptureFixture) -> None:
    stage = ManySessions(scene)
    with caplog.at_level(logging.INFO, logger="jmsish.broker"):
        bring_about(scene, stage, way)
    (record,) = [each for each in caplog.records if "rolled back" in each.getMessage()]
    text = record.getMessage()
    assert record.name == "jmsish.broker" and record.levelno == logging.WARNING
    assert stage.txn.hex() in text and "'peer-0'" in text and "1 posted, 1 taken" in text
    if way == "broker stop":
        assert "the broker stops" in text
        (error,) = stage.peer.closed
        assert error is not None and error.condition == "amqp:connection:forced", "and the peer is told as well"


@pytest.mark.parametrize("what", ["asked for", "without work"])
def test_other_rollbacks_are_not(scene: Scene, what: str, caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(scene) if what == "without work" else ManySessions(scene)
    with caplog.at_level(logging.INFO, logger="jmsish.broker"):
        if what == "asked for":
            stage.control.roll_back(stage.txn)
        else:
            stage.peer.cut()
    assert not caplog.records


def test_a_refused_commit_is_in_the_log(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    stage = ManySessions(scene)
    scene.broker.delete_queue("results")
    with caplog.at_level(logging.INFO, logger="jmsish.broker"):
        stage.control.commit(stage.txn)
    (record,) = caplog.records
    assert "the queue 'results' is gone" in record.getMessage()


def test_t053_the_end_from_here_rolls_back_too(scene: Scene) -> None:
    """The resource ends the link (here for a settled command), and with it all that was declared on it."""
    stage = ManySessions(scene)
    stage.control.command(Declare(), settled=True)
    assert stage.control.detached
    assert scene.connect().receiver().drain() == ["m1+1", "m2"]
