"""Deliveries of several transfers (Part 2, 2.6.14, 2.7.5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.frames import RECEIVER
from tests.wire.protocol.steps import Client, Wire, in_transaction, message
from tests.wire.raw import error, one_of

ACCEPTANCE: dict[str, Any] = {"role": RECEIVER, "settled": True, "state": "accepted"}


def cut(body: str, parts: int) -> list[bytes]:
    octets = message(body)
    step = len(octets) // parts
    return [octets[n * step : (n + 1) * step if n + 1 < parts else None] for n in range(parts)]


def piece(client: Client, payload: bytes, handle: int = 0, **fields: Any) -> None:
    client.say("transfer", client.channel, payload, handle=handle, **fields)


def test_two_pieces_are_one_delivery(client: Client, wire: Wire) -> None:
    first, second = cut("two pieces", 2)
    client.sender(wire.queue)
    piece(client, first, delivery_id=0, delivery_tag=b"t", more=True)
    client.quiet()
    piece(client, second, delivery_id=0, delivery_tag=b"t", more=False)
    client.expect("disposition", but=("flow",), first=0, last=one_of(None, 0), **ACCEPTANCE)
    client.close()
    assert wire.take() == ["two pieces"]


def test_later_pieces_may_be_empty(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    piece(client, message("m"), delivery_id=0, delivery_tag=b"t", more=True)
    piece(client, b"", delivery_id=0, delivery_tag=b"t", more=True)
    piece(client, b"", delivery_id=0, delivery_tag=b"t", more=False)
    client.expect("disposition", but=("flow",), first=0, last=one_of(None, 0), **ACCEPTANCE)
    client.close()
    assert wire.take() == ["m"]


def test_the_first_piece_may_be_empty(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    piece(client, b"", delivery_id=0, delivery_tag=b"t", more=True)
    piece(client, message("m"))
    client.expect("disposition", but=("flow",), first=0, last=one_of(None, 0), **ACCEPTANCE)
    client.close()
    assert wire.take() == ["m"]


def test_later_pieces_may_leave_out_id_and_tag(client: Client, wire: Wire) -> None:
    parts = cut("four pieces of a message", 4)
    client.sender(wire.queue)
    piece(client, parts[0], delivery_id=0, delivery_tag=b"t", more=True)
    piece(client, parts[1], delivery_id=0, more=True)
    piece(client, parts[2], delivery_tag=b"t", more=True)
    piece(client, parts[3])
    client.expect("disposition", but=("flow",), first=0, last=one_of(None, 0), **ACCEPTANCE)
    client.close()
    assert wire.take() == ["four pieces of a message"]


@pytest.mark.parametrize("more", [None, True])
def test_an_aborted_delivery_never_was(client: Client, wire: Wire, more: bool | None) -> None:
    client.sender(wire.queue)
    piece(client, cut("never", 2)[0], delivery_id=0, delivery_tag=b"t", more=True, settled=True)
    piece(client, b"", aborted=True, more=more)
    piece(client, message("after"), delivery_id=1, delivery_tag=b"u")
    client.expect("disposition", but=("flow",), first=1, last=one_of(None, 1), **ACCEPTANCE)
    client.close()
    assert wire.take() == ["after"]


def test_an_aborted_delivery_of_one_frame(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    piece(client, message("never"), delivery_id=0, delivery_tag=b"t", aborted=True)
    client.close()
    assert wire.take() == []


def test_an_unsettled_aborted_delivery_is_told_nothing(client: Client, wire: Wire) -> None:
    """2.7.5: "Aborted messages are implicitly settled"."""
    client.sender(wire.queue)
    piece(client, cut("never", 2)[0], delivery_id=0, delivery_tag=b"t", more=True)
    piece(client, b"", aborted=True)
    client.close()
    assert wire.take() == []


def test_an_aborted_delivery_in_a_transaction(client: Client, wire: Wire) -> None:
    client.controller(0)
    client.sender(wire.queue, 1)
    txn = client.declare()
    piece(client, cut("never", 2)[0], 1, delivery_id=1, delivery_tag=b"t", more=True, state=in_transaction(txn))
    piece(client, b"", 1, aborted=True)
    client.sent = 2
    client.commit(txn)
    client.close()
    assert wire.take() == []


def test_deliveries_of_two_links_may_be_interleaved(client: Client, wire: Wire) -> None:
    one, two = cut("message one", 2), cut("message two", 2)
    client.sender(wire.queue, 0, name="one")
    client.sender(wire.queue, 1, name="two")
    piece(client, one[0], 0, delivery_id=0, delivery_tag=b"t1", more=True)
    piece(client, two[0], 1, delivery_id=1, delivery_tag=b"t2", more=True)
    piece(client, one[1], 0, delivery_id=0, delivery_tag=b"t1")
    client.expect("disposition", but=("flow",), first=0, last=one_of(None, 0), **ACCEPTANCE)
    piece(client, two[1], 1, delivery_id=1, delivery_tag=b"t2")
    client.expect("disposition", but=("flow",), first=1, last=one_of(None, 1), **ACCEPTANCE)
    client.close()
    assert wire.take() == ["message one", "message two"]


def test_deliveries_of_one_link_may_not(client: Client, wire: Wire) -> None:
    """2.6.14: neither of them is put on the queue."""
    one, two = cut("message one", 2), cut("message two", 2)
    client.sender(wire.queue)
    piece(client, one[0], delivery_id=0, delivery_tag=b"t1", more=True, settled=True)
    piece(client, two[0], delivery_id=1, delivery_tag=b"t2", more=True, settled=True)
    piece(client, one[1], delivery_id=0, delivery_tag=b"t1")
    piece(client, two[1], delivery_id=1, delivery_tag=b"t2")
    client.expect_refusal()
    client.drop()
    assert wire.take() == []


def test_the_tag_may_not_change(client: Client, wire: Wire) -> None:
    first, second = cut("message", 2)
    client.sender(wire.queue)
    piece(client, first, delivery_id=0, delivery_tag=b"t1", more=True)
    piece(client, second, delivery_id=0, delivery_tag=b"t2")
    client.expect_refusal()
    assert wire.take() == []


def test_the_message_format_may_not_change(client: Client, wire: Wire) -> None:
    first, second = cut("message", 2)
    client.sender(wire.queue)
    piece(client, first, delivery_id=0, delivery_tag=b"t", more=True, message_format=0)
    piece(client, second, message_format=1)
    client.expect_refusal()
    assert wire.take() == []


def test_settled_may_be_said_with_the_last_piece(client: Client, wire: Wire) -> None:
    """2.7.5: "If the settled flag is set to true on any one of the transfers of a delivery, it is settled"."""
    first, second = cut("message", 2)
    client.sender(wire.queue)
    piece(client, first, delivery_id=0, delivery_tag=b"t", more=True)
    piece(client, second, settled=True)
    client.close()
    assert wire.take() == ["message"]


@pytest.mark.parametrize("ending", ["detach", "end", "close"])
def test_a_delivery_without_its_last_piece_never_was(client: Client, wire: Wire, ending: str) -> None:
    client.sender(wire.queue)
    piece(client, message("m"), delivery_id=0, delivery_tag=b"t", more=True, settled=True)
    fields: dict[str, Any] = {"handle": 0, "closed": True} if ending == "detach" else {}
    client.say(ending, 0 if ending == "close" else client.channel, **fields)
    client.expect(ending, error=None)
    client.drop()
    assert wire.take() == []


def test_a_link_takes_what_it_said_it_takes(client: Client, wire: Wire) -> None:
    """max-message-size: a delivery that is larger ends the link (2.7.3)."""
    attached = client.sender(wire.queue)
    limit = attached.max_message_size
    if not limit or limit > 200 << 20:
        return  # None is announced.
    client.transfer("x" * limit, settled=True)
    client.expect("detach", but=("flow",), error=error("amqp:link:message-size-exceeded"))


def test_a_receiver_gets_nothing_larger_than_it_takes(client: Client, wire: Wire) -> None:
    wire.ours("others send it all the same")
    wire.put("x" * 2000, "small")
    client.receiver(wire.queue, credit=5, max_message_size=1000)
    client.take(payload=message("small"))
    client.quiet()
    client.close()
