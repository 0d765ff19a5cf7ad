"""What a sender transfers to a queue, and what it is told (Part 2, 2.6.12, 2.7.5, 2.7.6; Part 3)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.values import encode_string
from tests.wire.frames import RECEIVER, SENDER, Frame, composite, write
from tests.wire.protocol.steps import ACCEPTED_ONLY, ALL_OUTCOMES, Client, Wire, in_transaction, message
from tests.wire.raw import error, one_of

ACCEPTANCE: dict[str, Any] = {"role": RECEIVER, "settled": True, "state": "accepted"}


def span(frame: Frame) -> range:
    return range(frame.first, (frame.first if frame.last is None else frame.last) + 1)


def test_a_transfer_without_handle(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    client.transfer("m", handle=None)  # type: ignore[arg-type]
    client.expect_refusal("amqp:decode-error", "amqp:invalid-field", "amqp:illegal-state")


def test_a_first_transfer_without_delivery_id(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    client.transfer("m", delivery_id=None)
    client.expect_refusal("amqp:decode-error", "amqp:invalid-field")


def test_a_first_transfer_without_delivery_tag(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    client.transfer("m", delivery_tag=None)
    client.expect_refusal("amqp:decode-error", "amqp:invalid-field")


def test_a_transfer_on_no_link(client: Client) -> None:
    client.transfer("m", handle=9)
    client.expect("end", error=error("amqp:session:unattached-handle"))


def test_a_transfer_against_the_direction(client: Client, wire: Wire) -> None:
    client.receiver(wire.queue, credit=1)
    client.transfer("m")
    client.expect_refusal()
    assert wire.take() == []


def test_an_unsettled_transfer_is_accepted_and_settled(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    number = client.transfer("m")
    assert span(client.expect("disposition", **ACCEPTANCE)) == range(number, number + 1)
    client.close()
    assert wire.take() == ["m"]


def test_a_settled_transfer_is_told_nothing(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    client.transfer("m", settled=True)
    client.close()
    assert wire.take() == ["m"]


@pytest.mark.parametrize("settled", [True, False])
def test_a_delivery_of_nothing(client: Client, wire: Wire, settled: bool) -> None:
    """No section at all is no message; nothing is put on the queue, and the link ends or the outcome says so."""
    client.sender(wire.queue, outcomes=ACCEPTED_ONLY)
    client.transfer(b"", settled=settled)
    client.expect_refusal("amqp:not-implemented", "amqp:decode-error")
    assert wire.take() == []


def test_one_tag_on_two_links(client: Client, wire: Wire) -> None:
    """Tags are unique on a link only (2.6.12)."""
    client.sender(wire.queue, 0, name="one")
    client.sender(wire.queue, 1, name="two")
    client.transfer("m1", 0, delivery_tag=b"same")
    client.transfer("m2", 1, delivery_tag=b"same")
    told = span(client.expect("disposition", **ACCEPTANCE))
    if len(told) == 1:
        client.expect("disposition", **ACCEPTANCE)
    client.close()
    assert wire.take() == ["m1", "m2"]


def test_a_tag_used_again_after_its_settlement(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    for body in ("m1", "m2"):
        client.transfer(body, delivery_tag=b"same")
        client.expect("disposition", **ACCEPTANCE)
    client.transfer("m3", delivery_tag=b"same", settled=True)
    client.transfer("m4", delivery_tag=b"same", settled=True)
    client.close()
    assert wire.take() == ["m1", "m2", "m3", "m4"]


def test_a_delivery_id_that_is_unsettled_already(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    client.send(_part(client, 7, b"t1", more=True))
    client.send(_part(client, 7, b"t2", handle=0))
    client.expect_refusal()
    assert wire.take() == []


def _part(client: Client, number: int, tag: bytes, *, handle: int = 0, more: bool = False) -> bytes:
    fields: dict[str, Any] = {"handle": handle, "delivery_id": number, "delivery_tag": tag, "more": more}
    return write("transfer", client.channel, message("m"), **fields)


def test_receiver_settles_first_said_with_the_transfer(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    client.transfer("m", rcv_settle_mode=0)
    client.expect("disposition", **ACCEPTANCE)
    client.close()
    assert wire.take() == ["m"]


def test_receiver_settles_second_where_the_link_says_first(client: Client, wire: Wire) -> None:
    """2.7.5: "if the negotiated link value is first, then it is illegal to set this field to second"."""
    client.sender(wire.queue, rcv_settle_mode=0)
    client.transfer("m", rcv_settle_mode=1)
    client.expect_refusal("amqp:invalid-field")
    assert wire.take() == []


def test_receiver_settles_second(client: Client, wire: Wire) -> None:
    """The outcome unsettled, then the sender settles: three steps, and nobody speaks a fourth time."""
    attached = client.sender(wire.queue, rcv_settle_mode=1)
    wire.needs(attached.rcv_settle_mode == 1, "rcv-settle-mode second")
    number = client.transfer("m")
    client.expect("disposition", role=RECEIVER, first=number, settled=False, state="accepted")
    client.say("disposition", client.channel, role=SENDER, first=number, settled=True, state=composite("accepted"))
    client.close()
    assert wire.take() == ["m"]


def test_receiver_settles_first_though_the_link_says_second(client: Client, wire: Wire) -> None:
    attached = client.sender(wire.queue, rcv_settle_mode=1)
    wire.needs(attached.rcv_settle_mode == 1, "rcv-settle-mode second")
    client.transfer("m", rcv_settle_mode=0)
    client.expect("disposition", **ACCEPTANCE)
    client.close()


def test_several_deliveries_are_told_of_in_order(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    for number in range(3):
        client.transfer(f"m{number}")
    told: list[int] = []
    while len(told) < 3:
        told += span(client.expect("disposition", **ACCEPTANCE))
    assert told == [0, 1, 2]
    client.close()
    assert wire.take() == ["m0", "m1", "m2"]


def test_the_source_of_a_sender_may_know_accepted_only(client: Client, wire: Wire) -> None:
    client.sender(wire.queue, outcomes=ACCEPTED_ONLY)
    client.transfer("m")
    client.expect("disposition", first=0, last=one_of(None, 0), settled=True, state="accepted")
    client.close()


@pytest.mark.parametrize("settled", [True, False])
def test_deliveries_in_and_out_of_a_transaction_on_one_link(client: Client, wire: Wire, settled: bool) -> None:
    """What is told is told in the order of the deliveries, whatever kind they are."""
    client.controller(0)
    client.sender(wire.queue, 1)
    txn = client.declare()
    client.transfer("m1", 1)
    client.transfer("m2", 1)
    client.transfer("m3", 1, state=in_transaction(txn), settled=settled)
    told: list[int] = []
    while len(told) < (2 if settled else 3):
        told += span(client.expect("disposition", but=("flow",), role=RECEIVER, settled=True, state=...))
    assert told == list(range(1, 3 if settled else 4))
    client.commit(txn)
    client.close()
    assert wire.take() == ["m1", "m2", "m3"]


def test_a_state_that_a_transfer_cannot_have(client: Client, wire: Wire) -> None:
    wire.ours("others take no notice of it")
    client.sender(wire.queue, outcomes=ALL_OUTCOMES)
    number = client.transfer("m", state=composite("released"))
    answer = client.expect("disposition", "detach", "end", "close")
    if answer.name == "disposition":
        assert answer.first == number and answer.state.name == "rejected"
    assert wire.take() == []


def test_a_delivery_to_be_resumed(client: Client, wire: Wire) -> None:
    """Nothing is known of it, and resuming is not offered."""
    client.sender(wire.queue)
    client.transfer("m", resume=True)
    client.expect_refusal()
    assert wire.take() == []


def test_more_than_the_credit(client: Client, wire: Wire) -> None:
    """transfer-limit-exceeded ends the link; the deliveries before it are kept."""
    wire.ours("it holds a sender to its credit")
    assert wire.broker is not None
    wire.broker.declare_queue(wire.queue, max_messages=2, overflow="block")
    client.attach_sender(wire.queue)
    client.expect("attach")
    credit = client.expect("flow").link_credit
    assert credit == 2
    for number in range(credit + 1):
        client.transfer(f"m{number}")
    client.expect("detach", but=("disposition", "flow"), error=error("amqp:link:transfer-limit-exceeded"))
    assert wire.take() == ["m0", "m1"]


# -- what the octets say -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        encode_string("bare"),
        b"\x00\x53\x70\xc0\x02\x01\x41" + encode_string("between") + message("m"),
        b"\x00\x53\x99\x45" + message("m"),
    ],
    ids=["a bare string", "a string between sections", "a section nobody knows"],
)
@pytest.mark.parametrize("settled", [True, False])
def test_octets_that_are_no_message(client: Client, wire: Wire, payload: bytes, settled: bool) -> None:
    """Nothing is put on the queue; a sender that can hear it is told, another loses its link."""
    client.sender(wire.queue, outcomes=ALL_OUTCOMES)
    client.transfer(payload, settled=settled)
    answer = client.expect("detach", "end", "close", "disposition", but=("flow",))
    if answer.name == "disposition":
        assert answer.state.name == "rejected" and answer.state.condition == "amqp:decode-error"
    assert wire.take() == []


@pytest.mark.parametrize("payload", [message("m")[:-1], message("m") + b"\x00\x53\x77"], ids=["cut off", "a cut rest"])
def test_a_body_is_not_looked_into(client: Client, wire: Wire, payload: bytes) -> None:
    """It is the receiver's, octet for octet; only what a queue goes by is read."""
    wire.ours("others read it, and refuse what they cannot")
    client.sender(wire.queue)
    client.transfer(payload)
    client.expect("disposition", **ACCEPTANCE)
    client.close()
    reader = wire.client()
    reader.receiver(wire.queue, credit=1)
    reader.take(payload=payload, message_format=one_of(None, 0))


@pytest.mark.parametrize("settled", [True, False])
def test_another_message_format(client: Client, wire: Wire, settled: bool) -> None:
    """The format says how to read the octets (2.7.5); here is only the one of Part 3."""
    wire.ours("others may have more, or take no notice")
    client.sender(wire.queue)
    client.transfer("m", message_format=0x80013700, settled=settled)
    client.expect("detach", closed=True, error=error("amqp:not-implemented"))
    assert wire.take() == []
