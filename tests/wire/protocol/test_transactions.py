"""Transactions as a controller of frames sees them (Part 4); each rule of that part: tests/wire/part4."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.frames import RECEIVER, SENDER, composite
from tests.wire.protocol.steps import (
    ACCEPTED,
    ACCEPTED_ONLY,
    WITH_REJECTED,
    Client,
    Wire,
    body_of,
    in_transaction,
)
from tests.wire.raw import error, like, one_of

UNKNOWN = "amqp:transaction:unknown-id"
MADE_UP = b"made up by a client"


def enlisted(txn: bytes, outcome: str | None = "accepted") -> Any:
    return like("transactional-state", txn_id=txn, outcome=outcome)


# -- declare and discharge ---------------------------------------------------------------------------------------------


def test_m93_what_the_coordinator_offers(client: Client, wire: Wire) -> None:
    attached = client.controller()
    assert attached.target.name == "coordinator"
    offered = {str(capability) for capability in attached.target.capabilities or ()}
    if not wire.foreign:
        assert offered == {"amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"}


def test_m94_declare_and_commit_nothing(client: Client) -> None:
    client.controller()
    txn = client.declare()
    assert txn
    client.commit(txn)
    client.close()


def test_m101_an_unknown_id_where_the_source_knows_rejected(client: Client) -> None:
    client.controller(outcomes=WITH_REJECTED)
    client.declare()
    outcome = client.discharge(MADE_UP)
    assert (outcome.name, outcome.condition) == ("rejected", UNKNOWN)
    client.close()


def test_an_unknown_id_where_it_knows_accepted_only(client: Client) -> None:
    client.controller(outcomes=ACCEPTED_ONLY)
    client.declare()
    answer = client.discharge(MADE_UP)
    assert (answer.name, answer.condition) == ("detach", UNKNOWN) and answer.closed
    client.close()


def test_a_transaction_is_discharged_once(client: Client) -> None:
    client.controller(outcomes=WITH_REJECTED)
    txn = client.declare()
    client.commit(txn)
    outcome = client.discharge(txn)
    assert (outcome.name, outcome.condition) == ("rejected", UNKNOWN)


def test_a_transaction_of_another_connection_is_unknown(client: Client, wire: Wire) -> None:
    client.controller(outcomes=WITH_REJECTED)
    txn = client.declare()
    other = wire.client()
    other.controller(outcomes=WITH_REJECTED)
    outcome = other.discharge(txn)
    assert (outcome.name, outcome.condition) == ("rejected", UNKNOWN)
    client.commit(txn)


def test_a_commit_after_the_receiver_has_gone(client: Client, wire: Wire) -> None:
    """Nothing is said of a delivery whose link is detached, before the answer and after it."""
    wire.put("m1", "m2")
    client.controller(0)
    txn = client.declare()
    client.receiver(wire.queue, 1, credit=1)
    number = client.take().delivery_id
    client.detach(1, closed=False)
    client.dispose(number, state=in_transaction(txn, ACCEPTED), settled=False)
    client.commit(txn)
    client.close()
    assert wire.take() == ["m2"]


@pytest.mark.parametrize("closed", [True, False])
def test_a_commit_after_the_sender_has_gone(client: Client, wire: Wire, closed: bool) -> None:
    client.controller(0)
    txn = client.declare()
    client.sender(wire.queue, 1)
    client.transfer("m", 1, state=in_transaction(txn))
    client.expect("disposition", role=RECEIVER, settled=True, state=enlisted(txn))
    client.detach(1, closed=closed)
    client.commit(txn)
    client.close()
    assert wire.take() == ["m"]


def test_a_commit_after_the_sender_has_gone_that_would_have_settled_second(client: Client, wire: Wire) -> None:
    client.controller(0)
    txn = client.declare()
    attached = client.sender(wire.queue, 1, rcv_settle_mode=1)
    wire.needs(attached.rcv_settle_mode == 1, "rcv-settle-mode second")
    client.transfer("m", 1, state=in_transaction(txn))
    client.expect("disposition", role=RECEIVER, settled=False, state=enlisted(txn))
    client.detach(1)
    client.commit(txn)
    client.close()
    assert wire.take() == ["m"]


# -- posting -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fail", [None, False, True])
def test_a_post(client: Client, wire: Wire, fail: bool | None) -> None:
    client.controller(0)
    txn = client.declare()
    client.sender(wire.queue, 1)
    number = client.transfer("m", 1, state=in_transaction(txn))
    client.expect("disposition", role=RECEIVER, first=number, settled=True, state=enlisted(txn))
    assert wire.take() == []
    assert client.discharge(txn, fail=fail).name == "accepted"
    client.close()
    assert wire.take() == ([] if fail else ["m"])


def test_a_post_that_is_settled_second(client: Client, wire: Wire) -> None:
    """The provisional outcome is there before the discharge and says `settled` as false, not as nothing."""
    client.controller(0)
    txn = client.declare()
    attached = client.sender(wire.queue, 1, rcv_settle_mode=1)
    wire.needs(attached.rcv_settle_mode == 1, "rcv-settle-mode second")
    number = client.transfer("m", 1, state=in_transaction(txn))
    told = client.expect("disposition", role=RECEIVER, first=number, state=enlisted(txn))
    assert told.settled is False
    client.say(
        "disposition", client.channel, role=SENDER, first=number, settled=True, state=in_transaction(txn, ACCEPTED)
    )
    client.commit(txn)
    client.close()
    assert wire.take() == ["m"]


def test_a_post_that_its_sender_never_settles(client: Client, wire: Wire) -> None:
    """The answer to the discharge is the next disposition; what becomes of the post is said behind it."""
    client.controller(0)
    txn = client.declare()
    attached = client.sender(wire.queue, 1, rcv_settle_mode=1)
    wire.needs(attached.rcv_settle_mode == 1, "rcv-settle-mode second")
    number = client.transfer("m", 1, state=in_transaction(txn))
    client.expect("disposition", first=number, settled=False, state=enlisted(txn))
    client.commit(txn)
    if not wire.foreign:
        client.expect("disposition", role=RECEIVER, first=number, settled=False, state="accepted")
    assert wire.take() == ["m"]


@pytest.mark.parametrize("settled", [True, False])
def test_a_post_in_an_unknown_transaction(client: Client, wire: Wire, settled: bool) -> None:
    client.controller(0)
    client.declare()
    client.sender(wire.queue, 1)
    client.transfer("m", 1, state=in_transaction(MADE_UP), settled=settled)
    client.expect_refusal(UNKNOWN)
    assert wire.take() == []


def test_posts_over_two_sessions(client: Client, wire: Wire) -> None:
    attached = client.controller(0)
    capabilities = attached.target.capabilities or ()
    wire.needs("amqp:multi-ssns-per-txn" in capabilities, "amqp:multi-ssns-per-txn")
    txn = client.declare()
    declared = client.sent
    client.sent = 0
    client.begin(2)
    client.sender(wire.queue, 0)
    client.transfer("m", 0, state=in_transaction(txn), settled=True)
    client.channel, client.sent = 1, declared
    client.commit(txn)
    assert wire.take() == ["m"]


@pytest.mark.parametrize("ending", ["detach", "end", "close", "drop"])
def test_a_control_link_that_goes_takes_its_work_back(client: Client, wire: Wire, ending: str) -> None:
    wire.put("m1")
    client.controller(0)
    txn = client.declare()
    client.receiver(wire.queue, 1, credit=1)
    client.dispose(client.take().delivery_id, state=in_transaction(txn, ACCEPTED))
    client.sender(wire.queue, 2, name="post")
    client.transfer("m2", 2, state=in_transaction(txn), settled=True)
    if ending == "drop":
        client.drop()
    else:
        fields: dict[str, Any] = {"handle": 0, "closed": True} if ending == "detach" else {}
        client.say(ending, 0 if ending == "close" else client.channel, **fields)
        client.expect(ending, error=None, but=("flow",))
        if ending == "detach":
            client.detach(1)
    assert wire.take() == ["m1"]


# -- retirement --------------------------------------------------------------------------------------------------------


def taken(client: Client, wire: Wire, **fields: Any) -> tuple[bytes, int]:
    wire.put("m")
    client.controller(0)
    txn = client.declare()
    client.receiver(wire.queue, 1, credit=1, **fields)
    delivery = client.take()
    assert body_of(delivery.payload) == "m"
    number: int = delivery.delivery_id
    return txn, number


@pytest.mark.parametrize("fail", [False, True])
def test_a_retirement(client: Client, wire: Wire, fail: bool) -> None:
    txn, number = taken(client, wire)
    client.dispose(number, state=in_transaction(txn, ACCEPTED))
    assert client.discharge(txn, fail=fail).name == "accepted"
    client.detach(1)
    assert wire.take() == (["m"] if fail else [])


def test_a_retirement_that_is_settled_second(client: Client, wire: Wire) -> None:
    """Unsettled outcome, discharge, then the broker settles with the outcome that holds."""
    txn, number = taken(client, wire, rcv_settle_mode=1)
    client.dispose(number, state=in_transaction(txn, ACCEPTED), settled=False)
    told = []
    answer = None
    command = client.transfer(_discharge(txn), 0)
    while answer is None or not told:
        frame = client.expect("disposition", but=("flow",))
        if frame.role == RECEIVER:
            assert frame.first == command and frame.state.name == "accepted"
            answer = frame
        else:
            told.append(frame)
    assert told[-1].first == number and told[-1].settled
    client.close()
    assert wire.take() == []


def _discharge(txn: bytes) -> bytes:
    return b"\x00\x53\x77" + composite("discharge", txn_id=txn, fail=False).octets


def test_a_retirement_in_an_unknown_transaction(client: Client, wire: Wire) -> None:
    _, number = taken(client, wire)
    client.dispose(number, state=in_transaction(MADE_UP, ACCEPTED))
    client.expect_refusal(UNKNOWN)
    assert wire.take() == ["m"]


# -- acquisition -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fail", [False, True])
def test_an_acquisition(client: Client, wire: Wire, fail: bool) -> None:
    """A flow that names the transaction: what is sent from now on belongs to it and says so."""
    wire.put("m")
    client.controller(0)
    txn = client.declare()
    client.receiver(wire.queue, 1)
    client.flow(1, link_credit=1, delivery_count=0, properties={"txn-id": txn})
    delivery = client.take()
    wire.needs(enlisted(txn, None)(delivery.state), "transactional acquisition")
    client.dispose(delivery.delivery_id, state=in_transaction(txn, ACCEPTED))
    assert client.discharge(txn, fail=fail).name == "accepted"
    client.detach(1)
    assert wire.take() == (["m"] if fail else [])


def test_an_acquisition_in_an_unknown_transaction(client: Client, wire: Wire) -> None:
    wire.put("m")
    client.receiver(wire.queue)
    client.flow(0, link_credit=1, delivery_count=0, properties={"txn-id": MADE_UP})
    client.expect_refusal(UNKNOWN)
    assert wire.take() == ["m"]


# -- time --------------------------------------------------------------------------------------------------------------


def test_a_post_and_a_reader_in_one_transaction_do_not_meet(client: Client, wire: Wire) -> None:
    """What is posted is invisible to everybody until the commit, its own session included."""
    client.controller(0)
    txn = client.declare()
    client.sender(wire.queue, 1)
    client.transfer("m", 1, state=in_transaction(txn), settled=True)
    client.receiver(wire.queue, 2, name="reader", credit=1)
    client.quiet()
    client.commit(txn)
    assert body_of(client.take().payload) == "m"


def test_a_controller_that_sends_settled(client: Client, wire: Wire) -> None:
    """4.2: "this message MUST NOT be sent settled"."""
    wire.ours("others answer it all the same, or not at all")
    client.controller()
    client.transfer(b"\x00\x53\x77" + composite("declare").octets, settled=True)
    client.expect("detach", closed=True, error=error("amqp:not-allowed"))


def test_a_controller_that_sends_what_is_no_command(client: Client, wire: Wire) -> None:
    wire.ours("others have other ways with it")
    client.controller()
    client.transfer("hello")
    client.expect("detach", closed=True, error=error("amqp:decode-error"))


def test_a_declare_with_a_global_id(client: Client, wire: Wire) -> None:
    client.controller(outcomes=WITH_REJECTED)
    answer = client.command(composite("declare", global_id=b"global"))
    if answer.name == "disposition":
        wire.needs(answer.state.name == "rejected", "refusal of global ids")
    assert one_of("rejected", None)(answer.fields.get("state"))
