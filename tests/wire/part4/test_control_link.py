"""Part 4, 4.1 and 4.5.1: the control link and the capabilities of the coordinator (T10-T21)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import Coordinator, Declare, Discharge
from jmsish.engine.values import encode
from jmsish.types import Array, Symbol
from tests.wire.frames import SENDER, Raw, composite
from tests.wire.part4.scene import (
    ACCEPTED,
    UNKNOWN_ID,
    Declared,
    Scene,
    Stage,
    condition_of,
    in_transaction,
    message,
    rejected_with,
)

LOCAL = "amqp:local-transactions"
MULTI = "amqp:multi-txns-per-ssn"
SESSIONS = "amqp:multi-ssns-per-txn"
DISTRIBUTED = "amqp:distributed-transactions"


def test_t010_the_controller_is_the_sending_end(scene: Scene) -> None:
    peer = scene.connect()
    wrong = peer.receiver(None, target=Coordinator())
    assert wrong.detached, "nothing is to be had from a coordinator"
    assert isinstance(peer.controller().link.remote_target, Coordinator)


def test_t011_the_reply_says_what_works(scene: Scene) -> None:
    """Nothing is asked for here; the actual capabilities are said all the same."""
    target = scene.connect().controller().link.remote_target
    assert isinstance(target, Coordinator)
    assert set(target.capabilities) == {LOCAL, MULTI, SESSIONS}


@pytest.mark.parametrize("wish", [DISTRIBUTED, "amqp:promotable-transactions", "vendor:magic"])
def test_t012_who_asks_for_more_is_answered_and_may_judge_for_itself(scene: Scene, wish: str) -> None:
    peer = scene.connect()
    link = peer.session.sender("control", source=None, target=Coordinator((wish,)))
    scene.run()
    assert link.attached and wish not in link.remote_target.capabilities


WISHES: dict[str, Any] = {
    "null": None,
    "one": encode(Symbol(LOCAL)),
    "array": encode(Array([Symbol(LOCAL), Symbol(MULTI)], 0xA3)),
    "empty-array": encode(Array([], 0xA3)),
}


@pytest.mark.parametrize("wish", WISHES)
def test_t013_capabilities_are_one_symbol_an_array_or_null(scene: Scene, wish: str) -> None:
    peer = scene.connect()
    octets = WISHES[wish]
    coordinator = composite("coordinator", capabilities=None if octets is None else Raw(octets))
    fields: dict[str, Any] = {"name": "control", "handle": 7, "role": SENDER, "initial_delivery_count": 0}
    # The engine of the peer knows nothing of this link, so what comes back is looked at before it does.
    peer.engine.write(peer.session.channel, composite("attach", target=coordinator, **fields).octets)
    peer.speak()
    scene.broker.step()
    peer.connection.take_output()
    attach, flow = scene.frames(peer, "attach", "flow")
    assert attach.target.name == "coordinator" and flow.link_credit > 0


def test_t015_a_control_link_is_not_resumed(scene: Scene) -> None:
    """Detached and attached again, it is a new one: what it had declared is gone (T51)."""
    stage = Stage(scene)
    stage.control.detach(closed=False)
    assert stage.peer.controller().commit(stage.txn) == UNKNOWN_ID


def test_t015_a_resumption_is_refused(scene: Scene) -> None:
    """An unsettled map, even one that names a delivery, asks for what is not there."""
    peer = scene.connect()
    unsettled = Raw(encode({b"tag": None}))
    peer.engine.write(
        peer.session.channel,
        composite(
            "attach", name="control", handle=7, role=SENDER, initial_delivery_count=0, unsettled=unsettled,
            source=composite("source"), target=composite("coordinator"),
        ).octets,
    )  # fmt: skip
    peer.speak()
    scene.broker.step()
    peer.connection.take_output()
    attach, detach = scene.frames(peer, "attach", "detach")
    assert attach.target is None and detach.condition == "amqp:not-implemented"


def test_t015_a_control_link_attached_anew_takes_the_old_one_down(scene: Scene) -> None:
    """Part 2, 2.6.1: the link is stolen; its transactions go with it."""
    stage = Stage(scene)
    stage.peer.sender().send("m1", state=in_transaction(stage.txn))
    second = stage.peer.begin()
    fields: dict[str, Any] = {"handle": 9, "role": SENDER, "initial_delivery_count": 0}
    body = composite("attach", name=stage.control.link.name, target=composite("coordinator"), **fields)
    stage.peer.engine.write(second.channel, body.octets)
    stage.peer.speak()
    assert scene.broker.transactions() == []


def test_t016_control_messages_are_no_transactional_work(scene: Scene) -> None:
    stage = Stage(scene)
    stage.control.command(Declare(), state=in_transaction(stage.txn))
    assert condition_of(stage.control) == "amqp:not-allowed"


def test_t017_credit_is_there_at_once_and_topped_up(scene: Scene) -> None:
    peer = scene.connect()
    control = peer.controller()
    assert [frame.name for frame in scene.frames(peer, "attach", "flow")] == ["attach", "flow"], "in this order"
    for _ in range(1200):
        control.command(Discharge(control.declare()))
    assert control.link.credit >= 100 and not control.detached


def test_t018_a_transaction_spans_the_sessions_of_its_connection(scene: Scene) -> None:
    stage = Stage(scene, "m1")
    second, third = stage.peer.begin(), stage.peer.begin()
    stage.peer.sender("out", session=second).send("r", state=in_transaction(stage.txn))
    receiver, held = stage.taken(session=third)
    receiver.dispose(held, in_transaction(stage.txn, ACCEPTED))
    assert stage.control.commit(stage.txn) is None
    assert scene.bodies("out") == ["r"] and scene.queue().depth == 0


@pytest.mark.parametrize("work", ["post", "retire", "acquire", "discharge"])
def test_t018_but_never_another_connection(scene: Scene, work: str) -> None:
    stage = Stage(scene, "m1")
    other = scene.connect()
    if work == "post":
        end: Any = other.sender()
        end.send("m2", state=in_transaction(stage.txn))
    elif work == "retire":
        end = other.receiver(credit=1)
        end.dispose(end.take(), in_transaction(stage.txn, ACCEPTED))
    elif work == "acquire":
        end = other.receiver()
        end.flow(1, properties={Symbol("txn-id"): stage.txn})
    else:
        end = None
        assert other.controller().roll_back(stage.txn) == UNKNOWN_ID
    assert end is None or condition_of(end) == UNKNOWN_ID
    assert stage.control.commit(stage.txn) is None, "it lives on where it was declared"
    assert [body.partition("+")[0] for body in stage.left()] == ["m1"]


def test_t018_a_transaction_is_discharged_on_the_link_that_declared_it(scene: Scene) -> None:
    stage = Stage(scene)
    assert stage.peer.controller().commit(stage.txn) == UNKNOWN_ID
    assert stage.control.commit(stage.txn) is None


def test_t019_several_live_transactions_in_one_session(scene: Scene) -> None:
    stage = Stage(scene)
    sender = stage.peer.sender()
    others = [stage.control.declare() for _ in range(20)]
    for number, txn in enumerate(others):
        sender.send(f"m{number}", state=in_transaction(txn))
    for txn in others[::2]:
        assert stage.control.commit(txn) is None
    for txn in others[1::2]:
        assert stage.control.roll_back(txn) is None
    assert scene.bodies() == [f"m{number}" for number in range(0, 20, 2)]


def test_t020_a_declare_without_a_global_id_is_local(scene: Scene) -> None:
    (answer,) = scene.connect().controller().command(Declare())
    assert isinstance(answer, Declared)


@pytest.mark.parametrize("rejected", [True, False], ids=["rejected-allowed", "not-allowed"])
def test_t021_a_global_id_is_refused_with_a_transaction_error(scene: Scene, rejected: bool) -> None:
    peer = scene.connect()
    control = peer.controller(outcomes=None if rejected else ("amqp:accepted:list",))
    answers = control.command(Declare(global_id=b"xid"))
    condition = rejected_with(answers[0]) if rejected else condition_of(control)
    assert condition == UNKNOWN_ID
    assert scene.broker.transactions() == []


def test_message_of_a_control_link_is_not_stored(scene: Scene) -> None:
    """There is no queue behind a coordinator: what is no command ends the link and lies nowhere."""
    control = scene.connect().controller()
    scene.transfer(control, message("m1"))
    assert control.detached and scene.broker.queues() == []
