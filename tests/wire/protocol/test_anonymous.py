"""The anonymous terminus: a target without address, where each message says where it goes (capability ANONYMOUS-RELAY).

Known is the queue of the test; unknown is a temporary queue that is gone, which no broker makes anew on first use.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.frames import RECEIVER, Frame
from tests.wire.protocol.steps import ACCEPTED_ONLY, WITH_REJECTED, Client, Wire, in_transaction, message
from tests.wire.protocol.test_nodes import make
from tests.wire.raw import error, like

ROLLBACK = "amqp:transaction:rollback"
GONE = ("amqp:not-found", "amqp:not-allowed")


@pytest.fixture
def relay(wire: Wire) -> Client:
    peer = wire.peer()
    offered = peer.open().offered_capabilities
    wire.needs("ANONYMOUS-RELAY" in (offered or ()), "ANONYMOUS-RELAY")
    peer.begin()
    return peer


@pytest.fixture
def unknown(wire: Wire) -> str:
    client = wire.client()
    address = make(client)
    client.close()
    return address


def about(frame: Frame, number: int) -> None:
    """The error names the delivery by its tag."""
    assert frame.condition in GONE
    assert frame.fields["error"].fields["info"] == {"delivery-tag": b"tag-%d" % number}


@pytest.mark.parametrize("settled", [True, False])
def test_to_a_known_address(relay: Client, wire: Wire, settled: bool) -> None:
    relay.sender(None)
    relay.transfer(message("m", wire.queue), settled=settled)
    if not settled:
        relay.expect("disposition", settled=True, state="accepted")
    relay.close()
    assert wire.take() == ["m"]


def test_to_two_addresses(relay: Client, wire: Wire) -> None:
    relay.sender(None)
    relay.transfer(message("m1", wire.queue), settled=True)
    relay.transfer(message("m2", wire.queue + ".other"), settled=True)
    relay.close()
    assert wire.take() == ["m1"]
    assert wire.take(wire.queue + ".other") == ["m2"]


def test_settled_to_an_unknown_address(relay: Client, unknown: str) -> None:
    relay.sender(None, outcomes=WITH_REJECTED)
    number = relay.transfer(message("m", unknown), settled=True)
    about(relay.expect("detach", closed=True), number)


def test_unsettled_to_an_unknown_address(relay: Client, unknown: str) -> None:
    relay.sender(None, outcomes=WITH_REJECTED)
    number = relay.transfer(message("m", unknown))
    told = relay.expect("disposition", role=RECEIVER, first=number, settled=True, state="rejected")
    about(told.state, number)
    relay.close()


def test_unsettled_to_an_unknown_address_and_rejected_is_not_known(relay: Client, unknown: str) -> None:
    relay.sender(None, outcomes=ACCEPTED_ONLY)
    number = relay.transfer(message("m", unknown))
    about(relay.expect("detach", closed=True), number)


@pytest.mark.parametrize("settled", [True, False])
def test_to_no_address(relay: Client, wire: Wire, settled: bool) -> None:
    wire.ours("others have other conditions for it")
    relay.sender(None, outcomes=WITH_REJECTED)
    relay.transfer("m", settled=settled)
    if settled:
        relay.expect("detach", error=error("amqp:precondition-failed"))
    else:
        state = like("rejected", error=error("amqp:precondition-failed"))
        relay.expect("disposition", settled=True, state=state)


# -- in a transaction --------------------------------------------------------------------------------------------------


def begun(relay: Client, *, controller: list[str] = WITH_REJECTED, publisher: list[str] = WITH_REJECTED) -> bytes:
    relay.controller(0, outcomes=controller)
    relay.sender(None, 1, outcomes=publisher)
    return relay.declare()


@pytest.mark.parametrize("settled", [True, False])
def test_in_a_transaction_to_a_known_address(relay: Client, wire: Wire, settled: bool) -> None:
    txn = begun(relay)
    relay.transfer(message("m", wire.queue), 1, state=in_transaction(txn), settled=settled)
    if not settled:
        state = like("transactional-state", txn_id=txn, outcome="accepted")
        relay.expect("disposition", role=RECEIVER, settled=True, state=state)
    relay.commit(txn)
    relay.close()
    assert wire.take() == ["m"]


def test_in_a_transaction_unsettled_to_an_unknown_address(relay: Client, unknown: str) -> None:
    """The outcome says it, so the transaction need not fail."""
    txn = begun(relay)
    number = relay.transfer(message("m", unknown), 1, state=in_transaction(txn))
    told = relay.expect("disposition", role=RECEIVER, first=number, settled=True, state="transactional-state")
    assert told.state.txn_id == txn and told.state.outcome.name == "rejected"
    about(told.state.outcome, number)
    relay.commit(txn)


def test_in_a_transaction_to_an_unknown_address_and_rejected_is_not_known(relay: Client, unknown: str) -> None:
    txn = begun(relay, publisher=ACCEPTED_ONLY)
    number = relay.transfer(message("m", unknown), 1, state=in_transaction(txn))
    about(relay.expect("detach", handle=1, closed=True), number)
    refused(relay.discharge(txn))


def test_in_a_transaction_settled_to_an_unknown_address(relay: Client, wire: Wire, unknown: str) -> None:
    """4.4.4.1: a resource that cannot take a settled post must refuse the commit."""
    txn = begun(relay)
    relay.transfer(message("m1", wire.queue), 1, state=in_transaction(txn), settled=True)
    relay.transfer(message("m2", unknown), 1, state=in_transaction(txn), settled=True)
    refused(relay.discharge(txn))
    relay.close()
    assert wire.take() == []


def test_in_a_transaction_settled_and_the_controller_knows_no_rejected(relay: Client, unknown: str) -> None:
    txn = begun(relay, controller=ACCEPTED_ONLY)
    relay.transfer(message("m", unknown), 1, state=in_transaction(txn), settled=True)
    answer = relay.discharge(txn)
    assert (answer.name, answer.condition) == ("detach", ROLLBACK) and answer.handle == 0


def refused(outcome: Any) -> None:
    assert (outcome.name, outcome.condition) == ("rejected", ROLLBACK)
