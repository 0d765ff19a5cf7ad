"""Settlement by discharge: 4.4.4 as a table, every cell of it a test.

A row is a delivery in one of the states it can be in when the discharge comes. Columns: before the discharge; after a
commit; after a rollback; after a commit that was refused; after the loss of the control link.
"""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import MODIFIED_FAILED, RELEASED
from tests.wire.part4.partial import PartlySent
from tests.wire.part4.scene import ACCEPTED, ROLLBACK, Scene, Stage, in_transaction

UNDONE = ("rollback", "refused", "control link lost")


def discharge(stage: Any, way: str) -> None:
    """Commit it, or undo it in one of three ways."""
    if way == "commit":
        assert stage.control.commit(stage.txn) is None
    elif way == "rollback":
        assert stage.control.roll_back(stage.txn) is None
    elif way == "refused":
        stage.scene.broker.declare_queue("spoilt", max_messages=1)
        stage.scene.connect().sender("spoilt").send("x")
        stage.peer.sender("spoilt").send("y", state=in_transaction(stage.txn), settled=True)
        assert stage.control.commit(stage.txn) == ROLLBACK
    else:
        stage.control.detach()


class Row:
    """One delivery in one state, and what must be true of it in each column."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.stage = Stage(scene)
        self.make()

    def make(self) -> None:
        raise NotImplementedError

    def check_before(self) -> None:
        raise NotImplementedError

    def check_commit(self) -> None:
        raise NotImplementedError

    def check_undone(self) -> None:
        raise NotImplementedError


# --- posted


class PostedSettled(Row):
    settled, second = True, False

    def make(self) -> None:
        self.sender = self.stage.peer.sender(rcv_settle_mode=int(self.second))
        self.scene.frames(self.stage.peer)
        (self.answers,) = self.sender.send("m1", state=in_transaction(self.stage.txn), settled=self.settled)
        self.provisional = in_transaction(self.stage.txn, ACCEPTED)

    def check_before(self) -> None:
        assert self.scene.frames(self.stage.peer, "disposition") == [], "nothing back"
        assert self.scene.queue().depth == 0, "not visible"

    def check_commit(self) -> None:
        assert self.scene.bodies() == ["m1"] and self.answers == []

    def check_undone(self) -> None:
        assert self.scene.queue().depth == 0 and self.answers == []


class PostedUnsettledResourceSettles(PostedSettled):
    settled = False

    def check_before(self) -> None:
        (frame,) = self.scene.frames(self.stage.peer, "disposition")
        assert frame.settled and self.answers == [self.provisional] and self.scene.queue().depth == 0
        assert self.stage.peer.session.outgoing == {}

    def check_commit(self) -> None:
        assert self.scene.bodies() == ["m1"] and self.answers == [self.provisional]

    def check_undone(self) -> None:
        assert self.scene.queue().depth == 0 and self.answers == [self.provisional], "a provisional outcome only"


class PostedUnsettledResourceDoesNotSettle(PostedSettled):
    settled, second = False, True

    def check_before(self) -> None:
        (frame,) = self.scene.frames(self.stage.peer, "disposition")
        assert frame.settled is False and self.answers == [self.provisional] and self.scene.queue().depth == 0

    def check_commit(self) -> None:
        assert self.scene.bodies() == ["m1"]
        assert self.answers == [self.provisional, ACCEPTED], "the state applied, then the handshake"
        self._settle()

    def check_undone(self) -> None:
        assert self.answers == [self.provisional], "no outcome attached"
        self._settle()
        assert self.scene.queue().depth == 0

    def _settle(self) -> None:
        (delivery,) = self.stage.peer.session.outgoing.values()
        self.stage.peer.session.disposition(delivery, delivery.remote_state, True)
        self.scene.run()
        assert all(not session.incoming for session in self.stage.peer.connection._sessions)


class PostedSettledAndRefused(Row):
    def make(self) -> None:
        self.scene.broker.declare_queue("full", max_messages=1)
        self.scene.connect().sender("full").send("m0")
        sender = self.stage.peer.sender("full")
        (self.answers,) = sender.send("m1", state=in_transaction(self.stage.txn), settled=True)
        self.stage.peer.sender().send("other", state=in_transaction(self.stage.txn))

    def check_before(self) -> None:
        assert self.scene.broker.transactions()[0].rollback_only and self.answers == []

    def check_undone(self) -> None:
        assert self.scene.bodies("full") == ["m0"] and self.scene.queue().depth == 0


# --- retired


class RetiredSettled(Row):
    settled = True

    def make(self) -> None:
        self.scene.connect().sender().send("m1")
        self.receiver, self.held = self.stage.taken(default_outcome=MODIFIED_FAILED)
        self.receiver.dispose(self.held, in_transaction(self.stage.txn, ACCEPTED), self.settled)

    def check_before(self) -> None:
        assert self.scene.depth() == (0, 1) and self.held[0].context == [], "held, invisible"

    def check_commit(self) -> None:
        assert self.scene.queue().depth == 0

    def check_undone(self) -> None:
        assert self.stage.left() == ["m1+1"], "the default outcome"


class RetiredUnsettledLinkGone(RetiredSettled):
    """The nearest there is to a resource that settles early, which this one never does by itself."""

    settled = False

    def make(self) -> None:
        super().make()
        self.receiver.detach()
        self.scene.advance(0)
        self.scene.advance(2)


class RetiredUnsettled(RetiredSettled):
    settled = False

    def check_commit(self) -> None:
        super().check_commit()
        assert self.held[0].remote_settled and self.held[0].context == [ACCEPTED]

    def check_undone(self) -> None:
        assert self.scene.depth() == (0, 1) and not self.held[0].remote_settled, "acquired, unsettled"
        self.receiver.dispose(self.held, RELEASED)
        assert self.stage.left() == ["m1"], "and disposed of anew"


# --- acquired


class AcquiredSettled(Row):
    options: dict[str, Any] = {"snd_settle_mode": 1}

    def make(self) -> None:
        self.scene.connect().sender().send("m1")
        self.receiver, self.held = self.stage.acquired(**self.options)

    def check_before(self) -> None:
        assert self.scene.depth() == (0, 1)
        assert self.held[0].remote_state == in_transaction(self.stage.txn)

    def check_commit(self) -> None:
        assert self.scene.queue().depth == 0

    def check_undone(self) -> None:
        assert self.stage.left() == ["m1"], "available, and uncounted"


class AcquiredNoOutcome(AcquiredSettled):
    options = {}

    def check_commit(self) -> None:
        assert self.scene.depth() == (0, 1) and not self.held[0].remote_settled, "acquired and live"
        self.receiver.accept(self.held)
        assert self.scene.queue().depth == 0

    def check_undone(self) -> None:
        assert self.held[0].remote_settled, "released"
        super().check_undone()


class AcquiredWithOutcome(AcquiredSettled):
    options = {"default_outcome": MODIFIED_FAILED}

    def make(self) -> None:
        super().make()
        self.receiver.dispose(self.held, in_transaction(self.stage.txn, ACCEPTED), False)

    def check_commit(self) -> None:
        assert self.scene.queue().depth == 0 and self.held[0].context == [ACCEPTED]

    def check_undone(self) -> None:
        assert self.held[0].remote_settled
        assert self.stage.left() == ["m1+1"], "outcome and acquisition undone; it had been seen"


class SentOutsideAndNotDisposedOf(Row):
    def make(self) -> None:
        self.scene.connect().sender().send("m1")
        self.receiver, self.held = self.stage.taken()

    def check_before(self) -> None:
        assert self.scene.depth() == (0, 1) and not self.held[0].remote_settled

    def check_commit(self) -> None:
        self.check_before()
        self.receiver.accept(self.held)
        assert self.scene.queue().depth == 0

    def check_undone(self) -> None:
        self.check_before()
        self.receiver.dispose(self.held, RELEASED)
        assert self.stage.left() == ["m1"]


ROWS: dict[str, type[Row]] = {
    "posted, controller settled": PostedSettled,
    "posted, controller settled, refused": PostedSettledAndRefused,
    "posted, resource settles": PostedUnsettledResourceSettles,
    "posted, resource does not settle": PostedUnsettledResourceDoesNotSettle,
    "retired, controller settled": RetiredSettled,
    "retired, controller not settled, resource has": RetiredUnsettledLinkGone,
    "retired, neither settled": RetiredUnsettled,
    "acquired, resource settled": AcquiredSettled,
    "acquired, outcome given": AcquiredWithOutcome,
    "acquired, no outcome": AcquiredNoOutcome,
    "sent outside, not disposed of": SentOutsideAndNotDisposedOf,
}


@pytest.mark.parametrize("row", ROWS)
def test_before_the_discharge(scene: Scene, row: str) -> None:
    ROWS[row](scene).check_before()


@pytest.mark.parametrize("row", [name for name in ROWS if "refused" not in name])
def test_commit(scene: Scene, row: str) -> None:
    here = ROWS[row](scene)
    discharge(here.stage, "commit")
    here.check_commit()


def test_commit_of_what_was_refused(scene: Scene) -> None:
    here = PostedSettledAndRefused(scene)
    assert here.stage.control.commit(here.stage.txn) == ROLLBACK
    here.check_undone()


@pytest.mark.parametrize("way", UNDONE)
@pytest.mark.parametrize("row", ROWS)
def test_undone(scene: Scene, row: str, way: str) -> None:
    here = ROWS[row](scene)
    discharge(here.stage, way)
    here.check_undone()


# --- acquired, partly sent: frames by hand, so apart


PARTLY = pytest.mark.parametrize("options", [{}, {"snd_settle_mode": 1}], ids=["unsettled", "presettled"])


@PARTLY
def test_partly_sent_before_the_discharge(scene: Scene, options: dict[str, Any]) -> None:
    half = PartlySent(scene, **options)
    assert scene.depth() == (0, 1) and half.before[0].state.txn_id == half.txn


@PARTLY
def test_partly_sent_commit(scene: Scene, options: dict[str, Any]) -> None:
    half = PartlySent(scene, **options)
    (answer,) = half.discharge(fail=False)
    assert answer.state.name == "accepted"
    assert half.open_window()[-1].more is False, "finished"
    assert scene.depth() == ((0, 0) if options else (0, 1))


@PARTLY
def test_partly_sent_rollback(scene: Scene, options: dict[str, Any]) -> None:
    half = PartlySent(scene, **options)
    assert half.discharge(fail=True) == []
    assert scene.depth() == (1, 0)
    aborted, answer = half.open_window()
    assert aborted.aborted and answer.state.name == "accepted", "abort first, then the answer"
