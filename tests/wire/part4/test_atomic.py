"""A discharge is one step: all of it or nothing, nobody sees half, order is that of the commits (issue 4, point 5)."""

from __future__ import annotations

import pytest

from jmsish.engine.outcomes import MODIFIED_FAILED, Discharge
from tests.wire.part4.scene import ACCEPTED, ROLLBACK, Scene, Stage, in_transaction, message, properties_to


def test_all_posts_and_retirements_of_a_commit_are_one_step(scene: Scene) -> None:
    """Watched between any two octets that the broker takes in: before it nothing, after it everything."""
    stage = Stage(scene, *[f"m{n}" for n in range(20)])
    receiver, held = stage.taken(20)
    senders = [stage.peer.sender(f"out-{n}") for n in range(5)]
    for n in range(20):
        receiver.dispose(held[n : n + 1], in_transaction(stage.txn, ACCEPTED))
        senders[n % 5].send(f"r{n}", state=in_transaction(stage.txn))
    stage.control.command(Discharge(stage.txn), run=False)
    seen = set()
    for octet in stage.peer.engine.take_output():
        stage.peer.connection.receive(bytes([octet]))
        scene.broker.step()
        seen.add((scene.queue().depth, *[scene.queue(f"out-{n}").depth for n in range(5)]))
    assert seen == {(20, 0, 0, 0, 0, 0), (0, 4, 4, 4, 4, 4)}


def test_consumers_are_served_after_all_of_it(scene: Scene) -> None:
    """A consumer with credit for one of two priorities posted gets the higher, though it was posted last."""
    stage = Stage(scene)
    watcher = scene.connect().receiver(credit=1)
    sender = stage.peer.sender()
    sender.send("low", priority=1, state=in_transaction(stage.txn))
    sender.send("high", priority=9, state=in_transaction(stage.txn))
    stage.control.commit(stage.txn)
    assert watcher.receive() == ["high"]


def test_the_order_is_that_of_the_commits(scene: Scene) -> None:
    stage = Stage(scene)
    second = stage.control.declare()
    sender = stage.peer.sender()
    for n in range(3):
        sender.send(f"a{n}", state=in_transaction(stage.txn))
        sender.send(f"b{n}", state=in_transaction(second))
    sender.send("plain")
    stage.control.commit(second)
    stage.control.commit(stage.txn)
    assert stage.left() == ["plain", "b0", "b1", "b2", "a0", "a1", "a2"]


def test_a_rollback_puts_back_in_the_order_of_the_queue(scene: Scene) -> None:
    stage = Stage(scene, *[f"m{n}" for n in range(6)])
    receiver, held = stage.taken(6, default_outcome=MODIFIED_FAILED)
    for delivery in (held[4], held[0], held[5], held[2], held[1], held[3]):
        receiver.dispose([delivery], in_transaction(stage.txn, ACCEPTED))
    watcher = scene.connect().receiver(credit=6)
    stage.control.roll_back(stage.txn)
    assert watcher.receive() == [f"m{n}+1" for n in range(6)]


CAUSES = ["queue gone", "full by messages", "full by octets", "refused before"]


@pytest.mark.parametrize("cause", CAUSES)
def test_everything_that_can_fail_is_checked_first(scene: Scene, cause: str) -> None:
    """The one that fails is the last posted, behind what would have succeeded; nothing of that is to be seen."""
    limits = {"full by messages": {"max_messages": 2}, "full by octets": {"max_octets": 40}}.get(cause, {})
    if cause == "refused before":
        limits = {"max_messages": 1}
    scene.broker.declare_queue("last", **limits)
    stage = Stage(scene, "m1")
    receiver, held = stage.taken(default_outcome=MODIFIED_FAILED)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    stage.peer.sender("good").send("g", state=in_transaction(stage.txn))
    if cause == "refused before":
        scene.connect().sender("last").send("x")
    stage.peer.sender("last").send("y", "z", state=in_transaction(stage.txn), settled=True)
    if cause == "queue gone":
        scene.broker.delete_queue("last")
    elif cause != "refused before":
        scene.connect().sender("last").send("a" * 10, "b" * 10)
    scene.run()
    watcher = scene.connect().receiver("good", credit=10)
    assert stage.control.commit(stage.txn) == ROLLBACK
    assert watcher.receive() == [] and scene.queue("good").enqueued == 0
    assert stage.left() == ["m1+1"]


def test_room_is_summed_over_the_posts_of_a_transaction(scene: Scene) -> None:
    """Each of three fits by itself, all of them do not."""
    scene.broker.declare_queue("q", max_messages=2)
    stage = Stage(scene)
    stage.peer.sender().send("a", "b", "c", state=in_transaction(stage.txn))
    assert stage.control.commit(stage.txn) == ROLLBACK
    assert scene.queue().depth == 0
    stage.txn = stage.control.declare()
    stage.peer.sender().send("a", "b", state=in_transaction(stage.txn))
    assert stage.control.commit(stage.txn) is None
    assert scene.bodies() == ["a", "b"]


def test_an_anonymous_link_posts_to_several_queues_in_one_transaction(scene: Scene) -> None:
    stage = Stage(scene)
    sender = stage.peer.sender(None)
    for name in ("a", "b", "c"):
        sender.transfer(properties_to(name) + message(name), state=in_transaction(stage.txn))
    scene.run()
    assert all(scene.queue(name).depth == 0 for name in "abc")
    stage.control.commit(stage.txn)
    assert [scene.bodies(name) for name in "abc"] == [["a"], ["b"], ["c"]]


def test_ttl_runs_and_delays_wait_from_the_commit_on(scene: Scene) -> None:
    """What arrives is what the commit makes visible: expired meanwhile, it is dropped like any other."""
    stage = Stage(scene)
    stage.peer.sender().send("short", ttl=1000, state=in_transaction(stage.txn))
    stage.peer.sender().send("long", ttl=60_000, state=in_transaction(stage.txn))
    scene.advance(5)
    stage.control.commit(stage.txn)
    scene.advance(0.1)
    assert stage.left() == ["long"]
