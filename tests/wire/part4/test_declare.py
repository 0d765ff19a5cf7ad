"""Part 4, 4.2: declare (T30-T36)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED, Coordinator, Declare, Discharge
from jmsish.engine.values import encode, encode_described, encode_list
from tests.wire.frames import composite
from tests.wire.part4.scene import (
    ACCEPTED_ONLY,
    UNKNOWN_ID,
    Declared,
    Scene,
    Stage,
    condition_of,
    in_transaction,
    rejected_with,
    states,
)

AMQP_VALUE = b"\x00\x53\x77"
DECLARE = AMQP_VALUE + composite("declare").octets


@pytest.mark.parametrize("command", [Declare(), Discharge(b"any")], ids=["declare", "discharge"])
def test_t030_a_settled_control_message_ends_the_link(scene: Scene, command: Declare | Discharge) -> None:
    """ "The transaction controller MUST NOT send the message settled"; the resource answers by detaching."""
    peer = scene.connect()
    control = peer.controller()
    control.command(command, settled=True)
    assert condition_of(control) == "amqp:not-allowed"
    assert scene.broker.transactions() == [] and not peer.ended


def test_t031_success_is_declared(scene: Scene) -> None:
    (answer,) = scene.connect().controller().command(Declare())
    assert isinstance(answer, Declared)
    assert [view.id for view in scene.broker.transactions()] == [answer.txn_id]


def test_t032_failure_is_rejected_where_the_source_takes_that(scene: Scene) -> None:
    control = scene.connect().controller()
    (answer,) = control.command(Declare(global_id=b"g"))
    assert rejected_with(answer) == UNKNOWN_ID and not control.detached


def test_t032_failure_detaches_where_it_does_not(scene: Scene) -> None:
    peer = scene.connect()
    control = peer.controller(outcomes=ACCEPTED_ONLY)
    assert control.command(Declare(global_id=b"g")) == []
    assert condition_of(control) == UNKNOWN_ID and not peer.ended


def test_t033_settled_by_the_resource_where_the_receiver_settles_first(scene: Scene) -> None:
    peer = scene.connect()
    control = peer.controller()
    number = scene.transfer(control, DECLARE)
    ((settled, state),) = states(scene.frames(peer), number)
    assert settled and state.name == "declared"
    number = scene.transfer(control, AMQP_VALUE + composite("discharge", txn_id=b"none").octets)
    ((settled, state),) = states(scene.frames(peer), number)
    assert settled and state.name == "rejected"


def test_t033_not_settled_where_it_settles_second(scene: Scene) -> None:
    """Part 2, 2.8.3: "the receiver will only settle after sending the disposition to the sender and receiving a
    disposition indicating settlement of the delivery from the sender"."""
    peer = scene.connect()
    link = peer.session.sender("control", source=None, target=Coordinator(), rcv_settle_mode=1, context=Listener())
    scene.run()
    answers: list[Any] = []
    delivery = link.send(DECLARE, context=answers)
    scene.run()
    (declared,) = answers
    assert isinstance(declared, Declared) and not delivery.remote_settled
    peer.session.disposition(delivery, declared, True)
    scene.run()
    (session,) = peer.connection._sessions
    assert not session.incoming, "settled by both"


class Listener:
    """A link's context that only has to be there."""

    detached = False
    error = None


def test_t034_a_control_transfer_needs_no_message_format(scene: Scene) -> None:
    peer = scene.connect()
    number = scene.transfer(peer.controller(), DECLARE, message_format=None)
    ((settled, state),) = states(scene.frames(peer), number)
    assert settled and state.name == "declared"


NO_COMMANDS: dict[str, bytes] = {
    "a string": AMQP_VALUE + encode("declare"),
    "a list": AMQP_VALUE + encode_list([]),
    "another described type": AMQP_VALUE + composite("accepted").octets,
    "an unknown described type": AMQP_VALUE + encode_described(0x99, encode_list([])),
    "a data section": b"\x00\x53\x75\xa0\x01x",
    "a sequence section": b"\x00\x53\x76" + encode_list([]),
    "two amqp-values": DECLARE + DECLARE,
    "no body": b"\x00\x53\x70\xc0\x02\x01\x41",
    "half a body": DECLARE[:-1],
    "nothing at all": b"",
    "a discharge without an id": AMQP_VALUE + composite("discharge").octets,
    "a discharge of a number": AMQP_VALUE + encode_described(0x32, encode_list([encode(7)])),
}


@pytest.mark.parametrize("what", NO_COMMANDS)
def test_t035_what_is_no_command_ends_the_link_and_no_more(scene: Scene, what: str) -> None:
    stage = Stage(scene)
    scene.transfer(stage.control, NO_COMMANDS[what])
    assert condition_of(stage.control) == "amqp:decode-error"
    assert not stage.peer.ended and not stage.peer.closed
    assert scene.broker.transactions() == [], "and what it had declared is rolled back (T50)"
    stage.peer.controller().declare()


def test_t036_commands_are_done_in_order_and_a_refusal_stops_none(scene: Scene) -> None:
    """As Qpid JMS pipelines: the next declare right behind each discharge."""
    stage = Stage(scene)
    post = stage.peer.sender()
    post.send("m1", state=in_transaction(stage.txn), run=False)
    good = stage.control.command(Discharge(stage.txn), run=False)
    bad = stage.control.command(Discharge(stage.txn), run=False)
    declared = stage.control.command(Declare())
    assert good == [ACCEPTED] and rejected_with(bad[0]) == UNKNOWN_ID
    assert isinstance(declared[0], Declared) and scene.bodies() == ["m1"]
