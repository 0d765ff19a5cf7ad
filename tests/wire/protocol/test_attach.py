"""Attach and detach, the stealing of links, links that come back (Part 2, 2.6, 2.7.3, 2.7.7)."""

from __future__ import annotations

import pytest

from jmsish.types import Described, ULong
from tests.wire.frames import RECEIVER, SENDER, composite
from tests.wire.protocol.steps import ALL_OUTCOMES, RELEASED, Client, Wire, body_of
from tests.wire.raw import error, like

HELD = composite("modified", delivery_failed=True)


def test_an_attach_without_its_fields(client: Client) -> None:
    client.say("attach", client.channel)
    client.expect_refusal("amqp:decode-error", "amqp:invalid-field")


def test_an_attach_as_sender(client: Client, wire: Wire) -> None:
    client.attach_sender(wire.queue)
    client.expect("attach", name="testLink", role=RECEIVER, source=..., target=like("target", address=wire.queue))
    client.expect("flow", link_credit=lambda credit: credit > 0)
    client.close()


def test_an_attach_as_receiver(client: Client, wire: Wire) -> None:
    client.attach_receiver(wire.queue)
    source = like("source", address=wire.queue)
    client.expect("attach", name="testLink", role=SENDER, source=source, target=..., initial_delivery_count=...)
    client.close()


def test_no_credit_no_message(client: Client, wire: Wire) -> None:
    wire.put("m")
    client.receiver(wire.queue)
    client.quiet()
    client.close()


def test_a_sender_without_initial_delivery_count(client: Client, wire: Wire) -> None:
    """2.7.3: "This MUST NOT be null if role is sender"."""
    client.attach_sender(wire.queue, initial_delivery_count=None)
    client.expect_refusal("amqp:invalid-field", "amqp:decode-error")


def test_a_sender_to_nowhere(client: Client) -> None:
    """A null target at an attach of a new link: answered, refused, and the handle is none any more (2.6.3)."""
    client.attach_sender("q", target=None)
    client.expect("attach", role=RECEIVER, target=None)
    client.expect("detach", closed=True, error=error("amqp:invalid-field"))
    client.say("detach", client.channel, handle=0, closed=True)
    client.flow(0, link_credit=1)
    client.expect("end", error=error("amqp:session:unattached-handle"))


def test_a_receiver_from_nowhere(client: Client) -> None:
    client.attach_receiver("q", source=None)
    client.expect("attach", role=SENDER, source=None)
    client.expect("detach", closed=True, error=error("amqp:invalid-field", "amqp:not-found"))
    client.say("detach", client.channel, handle=0, closed=True)
    client.flow(0, link_credit=1)
    client.expect("end", error=error("amqp:session:unattached-handle"))


def test_a_handle_in_use(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    client.attach_sender(wire.queue, name="other")
    client.expect("end", error=error("amqp:session:handle-in-use"))


def test_both_directions_of_one_name(client: Client, wire: Wire) -> None:
    """A name is one of a direction (2.6.1)."""
    client.sender(wire.queue, 0, name="same")
    client.receiver(wire.queue, 1, name="same")
    client.transfer("m", 0)
    client.expect("disposition", state="accepted")
    client.close()


@pytest.mark.parametrize("closed", [True, False])
def test_a_detach_is_answered_alike(client: Client, wire: Wire, closed: bool) -> None:
    client.sender(wire.queue)
    client.detach(closed=closed)
    client.sender(wire.queue)
    client.close()


def test_a_detach_of_no_link(client: Client) -> None:
    client.say("detach", client.channel, handle=4, closed=True)
    client.expect("end", error=error("amqp:session:unattached-handle"))


def test_handles_beyond_handle_max(wire: Wire) -> None:
    peer = wire.peer()
    peer.open()
    limit = peer.begin().handle_max
    if limit in (None, 0xFFFFFFFF):
        wire.needs(False, "handle-max")
    peer.attach_sender(wire.queue, limit + 1)
    peer.expect("close", error=error("amqp:connection:framing-error"))


def test_a_link_attached_again_on_its_session_is_stolen(client: Client, wire: Wire) -> None:
    wire.ours("2.6.1, which others do not keep")
    client.sender(wire.queue, 0)
    client.attach_sender(wire.queue, 1)
    client.expect("detach", handle=..., error=error("amqp:link:stolen"))
    client.expect("attach")
    client.expect("flow")
    client.say("detach", client.channel, handle=0, closed=True)
    client.transfer("m", 1)
    client.expect("disposition", state="accepted")
    client.close()


def test_a_link_attached_again_on_another_session_is_stolen(client: Client, wire: Wire) -> None:
    wire.ours("2.6.1, which others do not keep")
    client.sender(wire.queue)
    client.begin(2)
    client.attach_sender(wire.queue)
    assert client.expect("detach", error=error("amqp:link:stolen")).channel == 0
    client.expect("attach")
    client.expect("flow")
    client.close()


def test_the_same_name_on_another_connection_is_another_link(client: Client, wire: Wire) -> None:
    other = wire.client()
    client.sender(wire.queue)
    other.sender(wire.queue)
    client.transfer("m")
    client.expect("disposition", state="accepted")
    other.transfer("m")
    other.expect("disposition", state="accepted")
    client.close()
    other.close()


def test_a_receiver_comes_back_with_nothing_unsettled(client: Client, wire: Wire) -> None:
    """Detached and attached again with an empty map of what is unsettled: nothing is to be resumed (2.6.13)."""
    wire.put("m1", "m2")
    client.receiver(wire.queue, credit=1)
    first = client.take()
    client.dispose(first.delivery_id)
    client.detach(closed=False)
    client.attach_receiver(wire.queue, unsettled={})
    attached = client.expect("attach", role=SENDER)
    assert not attached.unsettled and not attached.incomplete_unsettled
    client.flow(0, link_credit=1, delivery_count=attached.initial_delivery_count)
    assert body_of(client.take().payload) == "m2"
    client.close()


def test_what_a_detached_receiver_had_is_disposed_of_later(client: Client, wire: Wire) -> None:
    """Deliveries are of the session, not of the link (2.6.3)."""
    wire.put("m1", "m2")
    client.receiver(wire.queue, credit=2)
    first, second = client.take(), client.take()
    client.detach(closed=False)
    client.dispose(second.delivery_id)
    client.dispose(first.delivery_id, state=RELEASED)
    client.close()
    assert wire.take() == ["m1"]


@pytest.mark.parametrize("outcomes", [None, ALL_OUTCOMES])
def test_the_source_in_force_is_echoed(client: Client, wire: Wire, outcomes: list[str] | None) -> None:
    attached = client.receiver(wire.queue, outcomes=outcomes, default_outcome=HELD)
    offered = {str(outcome) for outcome in attached.source.outcomes or ()}
    assert {"amqp:accepted:list", "amqp:released:list", "amqp:rejected:list"} <= offered
    wire.needs("amqp:modified:list" in offered, "outcome modified")
    assert like("modified", delivery_failed=True)(attached.source.default_outcome)
    client.close()


def test_a_default_outcome_that_is_none(client: Client, wire: Wire) -> None:
    wire.ours("others take what they do not look at")
    state = composite("received", section_number=0, section_offset=0)
    client.attach_receiver(wire.queue, default_outcome=state)
    client.expect("attach", source=None)
    refusal = client.expect("detach", closed=True, error=error("amqp:invalid-field"))
    assert "default-outcome" in refusal.description
    client.close()


def test_a_default_outcome_that_nobody_knows(client: Client, wire: Wire) -> None:
    wire.ours("others take what they do not look at")
    client.attach_receiver(wire.queue, default_outcome=Described(ULong(0x123_0000_0001), []))
    client.expect("attach", source=None)
    client.expect("detach", closed=True, error=error("amqp:not-implemented"))
    client.close()


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_settle_modes_are_echoed(client: Client, wire: Wire, mode: int) -> None:
    attached = client.receiver(wire.queue, snd_settle_mode=mode, rcv_settle_mode=1 if mode == 0 else 0)
    wire.needs(attached.snd_settle_mode in (mode, None if mode == 2 else mode), f"snd-settle-mode {mode}")
    wire.needs(attached.rcv_settle_mode == 1 or mode != 0, "rcv-settle-mode second")
    client.close()
