"""Part 4, 4.4.1 and 4.4.4.1: transactional posting (T54-T63)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import RELEASED, Discharge, Rejected, Source, TransactionalState
from jmsish.engine.values import encode_string
from tests.broker.world import properties
from tests.wire.frames import composite
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
    rejected_with,
    state_of,
    states,
)

NULL = b"\x40"
FULL = "amqp:resource-limit-exceeded"


def sources(rejected: bool) -> dict[str, Any]:
    return {"source": Source(address="here", outcomes=None if rejected else ACCEPTED_ONLY)}


def full_queue(scene: Scene) -> None:
    scene.broker.declare_queue("full", max_messages=1)
    scene.connect().sender("full").send("m0")


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_t054_each_frame_names_the_transaction(scene: Scene, parts: int, settled: bool) -> None:
    stage = Stage(scene)
    sender = stage.peer.sender()
    whole = message("m" * 40)
    step = len(whole) // parts + 1
    pieces = [whole[at : at + step] for at in range(0, len(whole), step)]
    number = None
    for at, piece in enumerate(pieces):
        fields: dict[str, Any] = {"more": at + 1 < len(pieces), "settled": settled, "state": state_of(stage.txn, None)}
        number = scene.transfer(sender, piece, number=number, **fields)
    assert scene.broker.transactions()[0].posts == 1 and scene.queue().depth == 0
    assert stage.control.commit(stage.txn) is None
    assert scene.bodies() == ["m" * 40]


def test_t055_an_unsettled_post_gets_its_outcome_in_the_same_transaction(scene: Scene) -> None:
    stage = Stage(scene)
    other = stage.control.declare()
    sender = stage.peer.sender()
    for txn in (stage.txn, other):
        (answers,) = sender.send("m", state=in_transaction(txn))
        assert answers == [in_transaction(txn, ACCEPTED)]


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_t056_visible_only_after_the_commit(scene: Scene, settled: bool) -> None:
    stage = Stage(scene)
    watcher = scene.connect().receiver(credit=10)
    browser = scene.connect().receiver(distribution_mode="copy", snd_settle_mode=1)
    stage.peer.sender().send("m1", "m2", state=in_transaction(stage.txn), settled=settled)
    assert watcher.receive() == [] and browser.drain() == [] and scene.queue().depth == 0
    stage.control.commit(stage.txn)
    assert watcher.receive() == ["m1", "m2"]


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_t056_never_after_a_rollback(scene: Scene, settled: bool) -> None:
    stage = Stage(scene)
    watcher = scene.connect().receiver(credit=10)
    stage.peer.sender().send("m1", state=in_transaction(stage.txn), settled=settled)
    stage.control.roll_back(stage.txn)
    scene.advance(10)
    assert watcher.receive() == [] and scene.queue().depth == 0 and scene.queue().enqueued == 0


REFUSED = ["full", "unroutable", "deleted", "unreadable", "empty"]


def post_what_is_refused(stage: Stage, why: str, **options: Any) -> tuple[Any, list[Any]]:
    """A sender, and the answers to a message that the broker will not take."""
    scene, state = stage.scene, in_transaction(stage.txn)
    rejected = options.pop("rejected", True)
    settled = options.pop("settled", False)
    if why == "full":
        full_queue(scene)
    payload = {"unreadable": b"\x00\x53\x70\xc0\x09\x05", "empty": b""}.get(why, message("m1"))
    if why == "unroutable":
        payload = properties(NULL, NULL, encode_string("jmsish.temporary.gone")) + payload
    address = {"full": "full", "unroutable": None}.get(why, "target")
    sender = stage.peer.sender(address, **sources(rejected))
    if why == "deleted":
        scene.broker.queue("target")._queue.deleted = True
    answers = sender.transfer(payload, state=state, settled=settled)
    scene.run()
    return sender, answers


@pytest.mark.parametrize("why", REFUSED)
@pytest.mark.parametrize("rejected", [True, False], ids=["rejected-allowed", "not-allowed"])
def test_t057_a_settled_post_that_is_refused_forbids_the_commit(scene: Scene, why: str, rejected: bool) -> None:
    """ "If the resource is unable to process the delivery it MUST NOT allow the successful discharge"."""
    stage = Stage(scene, outcomes=None if rejected else ACCEPTED_ONLY)
    stage.peer.sender("other").send("o", state=in_transaction(stage.txn))
    post_what_is_refused(stage, why, settled=True)
    assert scene.broker.transactions()[0].rollback_only
    assert stage.control.commit(stage.txn) == ROLLBACK
    assert stage.control.detached is not rejected
    assert scene.queue("other").depth == 0


@pytest.mark.parametrize("why", [why for why in REFUSED if why != "empty"])
def test_t058_an_unsettled_post_that_is_refused_is_told_so_and_harms_nothing(scene: Scene, why: str) -> None:
    stage = Stage(scene)
    stage.peer.sender("other").send("o", state=in_transaction(stage.txn))
    sender, (answer,) = post_what_is_refused(stage, why)
    assert isinstance(answer, TransactionalState) and answer.txn_id == stage.txn
    assert isinstance(answer.outcome, Rejected) and rejected_with(answer)
    assert not sender.detached
    assert stage.control.commit(stage.txn) is None
    assert scene.bodies("other") == ["o"]


@pytest.mark.parametrize("why", REFUSED)
def test_t058_where_the_source_takes_no_rejected_the_link_ends(scene: Scene, why: str) -> None:
    stage = Stage(scene)
    sender, answers = post_what_is_refused(stage, why, rejected=False)
    assert answers == [] and sender.detached and not stage.control.detached
    assert stage.control.commit(stage.txn) == ROLLBACK


@pytest.mark.parametrize("what", ["full", "deleted"])
def test_t059_a_provisional_outcome_that_cannot_be_kept_forbids_the_commit(scene: Scene, what: str) -> None:
    stage = Stage(scene)
    scene.broker.declare_queue("q", max_messages=2)
    (answers,) = stage.peer.sender().send("m1", state=in_transaction(stage.txn))
    assert answers == [in_transaction(stage.txn, ACCEPTED)]
    if what == "full":
        scene.connect().sender().send("x", "y")
    else:
        scene.broker.delete_queue("q")
        scene.run()
    assert stage.control.commit(stage.txn) == ROLLBACK
    if what == "full":
        assert scene.bodies() == ["x", "y"]


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
@pytest.mark.parametrize("frames", [1, 2])
def test_t060_an_unknown_transaction_ends_the_link_and_drops_the_message(
    scene: Scene, settled: bool, frames: int
) -> None:
    stage = Stage(scene)
    sender = stage.peer.sender()
    whole, state = message("m1"), state_of(b"made up", None)
    cut = len(whole) if frames == 1 else 5
    number = scene.transfer(sender, whole[:cut], more=frames > 1, settled=settled, state=state)
    if frames > 1:
        scene.transfer(sender, whole[cut:], number=number, settled=settled, state=state)
    assert condition_of(sender) == UNKNOWN_ID and not stage.peer.ended
    assert scene.queue().depth == 0
    assert stage.control.commit(stage.txn) is None


def test_t060_what_was_under_way_behind_it_is_dropped_and_its_transaction_with_it(scene: Scene) -> None:
    stage = Stage(scene)
    sender = stage.peer.sender()
    sender.send("m1", state=in_transaction(b"made up"), run=False)
    sender.send("m2", state=in_transaction(stage.txn), run=False)
    sender.send("m3")
    assert condition_of(sender) == UNKNOWN_ID and scene.queue().depth == 0
    assert stage.control.commit(stage.txn) == ROLLBACK
    assert scene.queue().depth == 0


@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
def test_t061_unsettled_posts_show_the_outcome_applied_or_none(scene: Scene, fail: bool) -> None:
    stage = Stage(scene)
    sender = stage.peer.sender(rcv_settle_mode=1)
    (answers,) = sender.send("m1", state=in_transaction(stage.txn))
    stage.control.command(Discharge(stage.txn, fail))
    provisional = in_transaction(stage.txn, ACCEPTED)
    assert answers == ([provisional] if fail else [provisional, ACCEPTED])
    (delivery,) = stage.peer.session.outgoing.values()
    assert not delivery.remote_settled, "it is the controller's to settle first"
    stage.peer.session.disposition(delivery, ACCEPTED, True)
    scene.run()
    assert scene.depth() == ((0 if fail else 1), 0) and not stage.peer.ended


def test_t061_a_refused_one_shows_that_it_was(scene: Scene) -> None:
    full_queue(scene)
    stage = Stage(scene)
    sender = stage.peer.sender("full", rcv_settle_mode=1)
    (answers,) = sender.send("m1", state=in_transaction(stage.txn))
    assert stage.control.commit(stage.txn) is None
    provisional, applied = answers
    assert isinstance(provisional, TransactionalState) and applied == provisional.outcome
    assert rejected_with(applied) == FULL


def test_t061_settled_before_the_discharge_it_hears_no_more(scene: Scene) -> None:
    stage = Stage(scene)
    sender = stage.peer.sender(rcv_settle_mode=1)
    sender.send("m1", state=in_transaction(stage.txn))
    (delivery,) = stage.peer.session.outgoing.values()
    stage.peer.session.disposition(delivery, in_transaction(stage.txn, ACCEPTED), True)
    scene.run()
    scene.frames(stage.peer)
    stage.control.commit(stage.txn)
    (answer,) = scene.frames(stage.peer, "disposition")
    assert answer.settled and answer.state.name == "accepted"
    assert scene.bodies() == ["m1"]


@pytest.mark.parametrize("how", ["session end", "detach"])
def test_t061_nothing_is_said_to_a_session_or_link_that_is_gone(scene: Scene, how: str) -> None:
    stage = Stage(scene)
    sender = stage.peer.sender(session=stage.peer.begin(), rcv_settle_mode=1)
    sender.send("m1", state=in_transaction(stage.txn))
    if how == "detach":
        sender.detach()
    else:
        sender.link.session.end()
        scene.run()
    assert stage.control.commit(stage.txn) is None
    assert scene.bodies() == ["m1"] and not stage.peer.failed and not stage.peer.closed


MODES = [(0, None, True), (1, None, False), (1, 0, True)]


@pytest.mark.parametrize(("link", "transfer", "settled"), MODES, ids=["first", "second", "first-on-the-transfer"])
@pytest.mark.parametrize("refused", [False, True], ids=["accepted", "rejected"])
def test_t062_the_settle_mode_of_the_receiver_says_who_settles_first(
    scene: Scene, link: int, transfer: int | None, settled: bool, refused: bool
) -> None:
    if refused:
        full_queue(scene)
    stage = Stage(scene)
    sender = stage.peer.sender("full" if refused else "q", rcv_settle_mode=link)
    fields = {} if transfer is None else {"rcv_settle_mode": transfer}
    scene.frames(stage.peer)
    number = scene.transfer(sender, message("m1"), state=state_of(stage.txn, None), **fields)
    (frame,) = scene.frames(stage.peer, "disposition")
    assert frame.first == number and frame.role is True
    assert frame.fields["settled"] is settled, "said in so many words, not left out"
    assert frame.state.name == "transactional-state"
    assert frame.state.outcome.name == ("rejected" if refused else "accepted")


@pytest.mark.parametrize("default", ["accepted", "released"])
def test_t063_the_outcome_is_said_even_where_it_is_the_default(scene: Scene, default: str) -> None:
    stage = Stage(scene)
    outcome = ACCEPTED if default == "accepted" else RELEASED
    sender = stage.peer.sender(source=Source(address="here", default_outcome=outcome))
    (answers,) = sender.send("m1", state=in_transaction(stage.txn))
    assert answers == [in_transaction(stage.txn, ACCEPTED)]


@pytest.mark.parametrize("name", ["accepted", "received"])
def test_a_state_that_is_no_transaction_cannot_be_posted_with(scene: Scene, name: str) -> None:
    fields: dict[str, Any] = {"section_number": 0, "section_offset": 0} if name == "received" else {}
    peer = scene.connect()
    sender = peer.sender()
    number = scene.transfer(sender, message("m1"), state=composite(name, **fields))
    ((_, state),) = states(scene.frames(peer), number)
    assert state.name == "rejected" and scene.queue().depth == 0
