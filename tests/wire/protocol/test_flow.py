"""Flow control and the ways of receiving that are made of it (Part 2, 2.5.6, 2.6.7 to 2.6.11, 2.7.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.frames import SENDER, write
from tests.wire.protocol.steps import Client, Wire, body_of, message
from tests.wire.raw import error


def test_a_flow_without_its_fields(client: Client) -> None:
    client.say("flow", client.channel)
    client.expect_refusal("amqp:decode-error", "amqp:invalid-field")


def test_a_session_flow_is_echoed(client: Client) -> None:
    client.flow(echo=True)
    client.expect("flow", handle=None, echo=False, next_incoming_id=0)
    client.close()


def test_a_link_flow_is_echoed(client: Client, wire: Wire) -> None:
    attached = client.receiver(wire.queue)
    client.flow(0, echo=True, link_credit=1, delivery_count=0, available=10)
    client.expect("flow", handle=attached.handle, echo=False, link_credit=1)
    client.close()


def test_a_flow_for_no_link(client: Client) -> None:
    client.flow(0x7FFFFFFF, echo=True, link_credit=1)
    client.expect("end", error=error("amqp:session:unattached-handle"))


def test_a_flow_that_saw_more_than_was_sent(client: Client) -> None:
    client.flow(next_incoming_id=5)
    client.expect_refusal("amqp:invalid-field", "amqp:session:window-violation")


def test_a_session_flow_whose_next_outgoing_id_is_behind(client: Client, wire: Wire) -> None:
    """It would have the window counted anew from a transfer that came already."""
    wire.ours("others take no notice of it, but for Broker-J")
    client.sender(wire.queue)
    client.transfer("m")
    client.flow(next_outgoing_id=0)
    client.expect("end", but=("disposition", "flow"), error=error("amqp:session:window-violation"))


def test_a_link_flow_whose_next_outgoing_id_is_behind(client: Client, wire: Wire) -> None:
    """A habit of peers that count their transfers badly: their credit is meant, and taken."""
    wire.put("m1")
    client.controller(0)
    client.declare()
    client.receiver(wire.queue, 1)
    client.flow(1, link_credit=1, delivery_count=0, next_outgoing_id=0)
    assert body_of(client.take().payload) == "m1"


def test_get_one(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2")
    client.receiver(wire.queue, credit=1)
    delivery = client.take()
    assert body_of(delivery.payload) == "m1"
    client.dispose(delivery.delivery_id)
    client.close()
    assert wire.take() == ["m2"]


def test_get_one_that_comes_later(client: Client, wire: Wire) -> None:
    client.receiver(wire.queue, credit=1)
    client.quiet()
    wire.put("m")
    assert body_of(client.take().payload) == "m"


def test_a_drain_of_an_empty_queue(client: Client, wire: Wire) -> None:
    attached = client.receiver(wire.queue)
    client.flow(0, link_credit=5, delivery_count=0, drain=True)
    client.expect("flow", handle=attached.handle, drain=True, link_credit=0, delivery_count=5)
    client.close()


def test_a_drain_without_credit_is_answered_at_once(client: Client, wire: Wire) -> None:
    """Nothing is to be drained; who waits for an answer gets it by the echo."""
    attached = client.receiver(wire.queue)
    client.flow(0, link_credit=0, delivery_count=0, drain=True, echo=True)
    client.expect("flow", handle=attached.handle, link_credit=0, delivery_count=0)


def test_a_drain_of_a_queue_that_has_less(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2")
    attached = client.receiver(wire.queue)
    client.flow(0, link_credit=10, delivery_count=0, drain=True)
    assert [body_of(client.take().payload) for _ in range(2)] == ["m1", "m2"]
    client.expect("flow", handle=attached.handle, drain=True, link_credit=0, delivery_count=10)


def test_get_with_a_timeout_and_nothing_there(client: Client, wire: Wire) -> None:
    attached = client.receiver(wire.queue)
    client.flow(0, link_credit=1, delivery_count=0, echo=True)
    client.expect("flow", handle=attached.handle, link_credit=1)
    client.flow(0, link_credit=1, delivery_count=0, drain=True)
    client.expect("flow", handle=attached.handle, drain=True, link_credit=0)
    client.close()


def test_get_with_a_timeout_and_a_message_in_time(client: Client, wire: Wire) -> None:
    attached = client.receiver(wire.queue, credit=1)
    wire.put("m1")
    delivery = client.take()
    client.flow(0, link_credit=1, delivery_count=1, drain=True)
    client.expect("flow", handle=attached.handle, drain=True, link_credit=0)
    client.dispose(delivery.delivery_id)
    client.close()
    assert wire.take() == []


def test_credit_counts_from_the_delivery_count(client: Client, wire: Wire) -> None:
    """One and then one more, of three (2.6.9): the third stays where it is."""
    wire.put("m1", "m2", "m3")
    client.receiver(wire.queue, credit=1)
    assert body_of(client.take().payload) == "m1"
    client.quiet()
    client.flow(0, link_credit=1, delivery_count=1)
    assert body_of(client.take().payload) == "m2"
    client.quiet()
    client.dispose(0, 1)
    client.close()
    assert wire.take() == ["m3"]


def test_credit_said_before_the_last_delivery_was_seen(client: Client, wire: Wire) -> None:
    """link-credit_snd := delivery-count_rcv + link-credit_rcv - delivery-count_snd: nothing is granted twice."""
    wire.put("m1", "m2", "m3")
    client.receiver(wire.queue, credit=1)
    client.take()
    client.flow(0, link_credit=2, delivery_count=0)
    assert body_of(client.take().payload) == "m2"
    client.quiet()


def test_credit_taken_back_stops_the_link(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2")
    attached = client.receiver(wire.queue, credit=1)
    client.dispose(client.take().delivery_id)
    client.flow(0, link_credit=5, delivery_count=1)
    client.take()
    client.flow(0, link_credit=0, delivery_count=2, echo=True)
    client.expect("flow", handle=attached.handle, link_credit=0)
    wire.put("m3")
    client.quiet()
    client.dispose(1)
    client.close()
    assert wire.take() == ["m3"]


def test_a_closed_session_window_holds_transfers_back(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2")
    client.receiver(wire.queue)
    client.flow(0, link_credit=2, delivery_count=0, incoming_window=1)
    assert body_of(client.take().payload) == "m1"
    client.quiet()
    client.flow(incoming_window=1)
    assert body_of(client.take().payload) == "m2"


def test_a_flow_before_the_first_attach(wire: Wire) -> None:
    """The begin with a window of 0, opened by a flow of the session, then a link that begins with credit."""
    wire.put("m")
    peer = wire.peer()
    peer.open()
    peer.begin(incoming_window=0, outgoing_window=0)
    peer.flow(incoming_window=1, next_incoming_id=None)
    peer.receiver(wire.queue, credit=1)
    assert body_of(peer.take().payload) == "m"


@pytest.mark.parametrize("frames", [2, 3])
def test_transfers_beyond_the_incoming_window(wire: Wire, frames: int) -> None:
    """2.5.6: a transfer beyond the window ends the session. All in one write, before a window can be opened again."""
    wire.ours("it is known to open its window only when it has read what came")
    client = wire.client()
    client.say("end", 1)
    client.expect("end")
    window = client.begin().incoming_window
    client.sender(wire.queue)
    octets = b"".join(_frame(client, number) for number in range(window + frames))
    client.line.write(octets)
    answer = client.expect("end", "flow", but=("disposition",))
    if answer.name == "flow":
        return  # Octet by octet, the window is opened on the way.
    assert answer.condition == "amqp:session:window-violation"


def _frame(client: Client, number: int) -> bytes:
    fields: dict[str, Any] = {"handle": 0, "delivery_id": 0, "delivery_tag": b"t", "more": True}
    payload = message("m") if number == 0 else b""
    return write("transfer", client.channel, payload, **fields)


def test_a_browser_takes_nothing(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2")
    client.attach_receiver(wire.queue, distribution_mode="copy")
    attached = client.expect("attach", role=SENDER)
    wire.needs(attached.source.distribution_mode == "copy", "distribution-mode copy")
    client.flow(0, link_credit=2, delivery_count=0)
    for expected in ("m1", "m2"):
        delivery = client.take()
        assert body_of(delivery.payload) == expected
        client.dispose(delivery.delivery_id)
    client.close()
    assert wire.take() == ["m1", "m2"]
