"""Part 4, 4.5: the types of transactions on the wire (T1-T6)."""

from __future__ import annotations

import pytest

from jmsish.broker.coordinator import CAPABILITIES
from jmsish.engine.outcomes import Declare, Declared
from jmsish.engine.values import encode
from jmsish.types import Symbol, ULong
from tests.wire.frames import composite
from tests.wire.part4.scene import (
    ACCEPTED,
    ROLLBACK,
    UNKNOWN_ID,
    Scene,
    Stage,
    condition_of,
    in_transaction,
    states,
)

AMQP_VALUE = b"\x00\x53\x77"
HEADER = b"\x00\x53\x70\xc0\x02\x01\x41"
PROPERTIES = b"\x00\x53\x73\xc0\x04\x01\xa1\x01x"
APPLICATION_PROPERTIES = b"\x00\x53\x74\xc1\x07\x02\xa1\x01k\xa1\x01v"
FOOTER = b"\x00\x53\x78\xc1\x01\x00"


def test_t001_a_txn_id_is_binary_of_at_most_32_octets(scene: Scene) -> None:
    control = scene.connect().controller()
    ids = [control.declare() for _ in range(100)]
    assert all(type(txn) is bytes and 16 <= len(txn) <= 32 for txn in ids), "unguessable, and within the limit"
    assert len(set(ids)) == 100


@pytest.mark.parametrize("length", [0, 33, 250])
def test_t001_a_longer_one_is_unknown_wherever_it_is_named(scene: Scene, length: int) -> None:
    stage = Stage(scene, "m1")
    bad = b"x" * length
    assert stage.control.commit(bad) == UNKNOWN_ID
    sender = stage.peer.sender()
    sender.send("m2", state=in_transaction(bad))
    assert condition_of(sender) == UNKNOWN_ID
    receiver, held = stage.taken()
    receiver.dispose(held, in_transaction(bad, ACCEPTED))
    assert condition_of(receiver) == UNKNOWN_ID
    assert stage.control.commit(stage.txn) is None, "nothing of that harmed the one that is live"


@pytest.mark.parametrize("symbolic", [False, True], ids=["numeric", "symbolic"])
@pytest.mark.parametrize("section", [ULong(0x77), Symbol("amqp:amqp-value:*")], ids=["section-code", "section-name"])
def test_t002_both_kinds_of_descriptors_in_the_one_amqp_value(scene: Scene, symbolic: bool, section: object) -> None:
    peer = scene.connect()
    control = peer.controller()
    head = b"\x00" + encode(section)
    declaring = scene.transfer(control, head + composite("declare", symbolic=symbolic).octets)
    ((settled, state),) = states(scene.frames(peer), declaring)
    assert settled and state.name == "declared"
    body = composite("discharge", symbolic=symbolic, txn_id=state.txn_id, fail=False).octets
    discharging = scene.transfer(control, head + body)
    ((settled, state),) = states(scene.frames(peer), discharging)
    assert settled and state.name == "accepted"


def test_t003_other_sections_of_a_control_message_are_ignored(scene: Scene) -> None:
    peer = scene.connect()
    body = AMQP_VALUE + composite("declare").octets
    payload = HEADER + PROPERTIES + APPLICATION_PROPERTIES + body + FOOTER
    number = scene.transfer(peer.controller(), payload)
    ((_, state),) = states(scene.frames(peer), number)
    assert state.name == "declared"


def test_t004_a_discharge_that_does_not_say_fail_commits(scene: Scene) -> None:
    stage = Stage(scene)
    stage.peer.sender().send("m1", state=in_transaction(stage.txn))
    number = scene.transfer(stage.control, AMQP_VALUE + composite("discharge", txn_id=stage.txn).octets)
    assert [state.name for _, state in states(scene.frames(stage.peer), number)] == ["accepted"]
    assert scene.bodies() == ["m1"]


def test_t005_the_resource_allocates_the_id(scene: Scene) -> None:
    """The prose of 4.5.2 says otherwise, and a declare has no field for it: declared (4.5.5) gives it."""
    one, two = scene.connect().controller(), scene.connect().controller()
    first, second = one.command(Declare()), two.command(Declare())
    assert isinstance(first[0], Declared) and isinstance(second[0], Declared)
    assert first[0].txn_id != second[0].txn_id


def test_t006_the_symbols_are_those_of_the_standard(scene: Scene) -> None:
    assert CAPABILITIES == ("amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn")
    assert (ROLLBACK, UNKNOWN_ID) == ("amqp:transaction:rollback", "amqp:transaction:unknown-id")
