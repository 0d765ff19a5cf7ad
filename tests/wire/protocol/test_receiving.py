"""What a receiver gets from a queue, and what its outcomes do (Part 2, 2.6.12, 2.7.6; Part 3, 3.4)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.codec import split_header
from tests.wire.frames import RECEIVER, SENDER, composite
from tests.wire.protocol.steps import (
    ACCEPTED,
    ALL_OUTCOMES,
    REJECTED,
    RELEASED,
    Client,
    Wire,
    body_of,
    in_transaction,
)
from tests.wire.raw import one_of


def count_of(payload: bytes) -> int:
    header, _ = split_header(payload)
    return 0 if header is None else header.delivery_count


def test_a_delivery_is_whole(client: Client, wire: Wire) -> None:
    wire.put("m")
    client.receiver(wire.queue, credit=1)
    delivery = client.take(delivery_id=..., delivery_tag=..., message_format=one_of(None, 0), settled=False)
    assert 0 < len(delivery.delivery_tag) <= 32


def test_a_lost_line_gives_back_what_was_not_disposed_of(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2")
    client.receiver(wire.queue, credit=2)
    client.take()
    client.take()
    client.drop()
    assert wire.take() == ["m1", "m2"]


@pytest.mark.parametrize("ending", ["detach", "end", "close"])
def test_an_end_gives_back_what_was_not_disposed_of(client: Client, wire: Wire, ending: str) -> None:
    wire.put("m1", "m2")
    client.receiver(wire.queue, credit=2)
    client.dispose(client.take().delivery_id)
    client.take()
    fields: dict[str, Any] = {"handle": 0, "closed": True} if ending == "detach" else {}
    client.say(ending, 0 if ending == "close" else client.channel, **fields)
    client.expect(ending)
    client.drop()
    assert wire.take() == ["m2"]


def test_m92_receiver_settles_first(client: Client, wire: Wire) -> None:
    """One disposition, and no answer."""
    wire.put("m")
    client.receiver(wire.queue, credit=1, rcv_settle_mode=0)
    client.dispose(client.take().delivery_id)
    client.close()
    assert wire.take() == []


def test_m92_receiver_settles_second(client: Client, wire: Wire) -> None:
    """The outcome unsettled, the broker's settlement, then ours."""
    wire.put("m")
    attached = client.receiver(wire.queue, credit=1, rcv_settle_mode=1)
    wire.needs(attached.rcv_settle_mode == 1, "rcv-settle-mode second")
    number = client.take().delivery_id
    client.dispose(number, settled=False)
    client.expect("disposition", role=SENDER, first=number, settled=True, state=one_of(None, "accepted"))
    client.close()
    assert wire.take() == []


def test_receiver_settles_second_and_rejects(client: Client, wire: Wire) -> None:
    wire.put("m")
    attached = client.receiver(wire.queue, credit=1, rcv_settle_mode=1)
    wire.needs(attached.rcv_settle_mode == 1, "rcv-settle-mode second")
    number = client.take().delivery_id
    client.dispose(number, state=REJECTED, settled=False)
    client.expect("disposition", role=SENDER, first=number, settled=True, state=one_of(None, "rejected"))
    client.close()
    if not wire.foreign:  # Where the rejected go is a broker's own choice.
        assert wire.take() == []
        assert wire.take("DLQ") == ["m"]


def test_receiver_settles_second_without_a_state(client: Client, wire: Wire) -> None:
    """Settled without an outcome: available again (3.4.6, where no default outcome was said)."""
    wire.put("m")
    client.receiver(wire.queue, credit=1, rcv_settle_mode=1)
    client.dispose(client.take().delivery_id, state=None)
    client.detach()
    client.close()
    assert wire.take() == ["m"]


def test_unsettled_and_accepted_is_answered_in_any_mode(client: Client, wire: Wire) -> None:
    """Mode first only says that a receiver will settle by itself; one that does not is helped."""
    wire.put("m")
    client.receiver(wire.queue, credit=1, rcv_settle_mode=0)
    number = client.take().delivery_id
    client.dispose(number, settled=False)
    client.expect("disposition", role=SENDER, first=number, settled=True)
    client.close()


def test_sender_settles(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2")
    attached = client.receiver(wire.queue, credit=1, snd_settle_mode=1)
    wire.needs(attached.snd_settle_mode == 1, "snd-settle-mode settled")
    assert body_of(client.take(settled=True).payload) == "m1"
    client.close()
    assert wire.take() == ["m2"]


def test_a_range_of_outcomes(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2", "m3", "m4")
    client.receiver(wire.queue, credit=4)
    numbers = [client.take().delivery_id for _ in range(4)]
    client.dispose(numbers[0], numbers[-1])
    client.close()
    assert wire.take() == []


def test_a_range_that_names_more_than_there_is(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2")
    client.receiver(wire.queue, credit=1)
    client.take()
    client.dispose(0, 0xFFFF)
    client.close()
    assert wire.take() == ["m2"]


def test_an_outcome_for_what_was_never_sent(client: Client, wire: Wire) -> None:
    client.receiver(wire.queue, credit=1)
    client.dispose(17)
    client.close()


def test_ranges_in_and_out_of_a_transaction(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2", "m3", "m4")
    client.controller(0)
    client.receiver(wire.queue, 1, credit=4)
    numbers = [client.take().delivery_id for _ in range(4)]
    client.dispose(numbers[0], numbers[1])
    txn = client.declare()
    client.dispose(numbers[2], numbers[3], state=in_transaction(txn, ACCEPTED))
    client.commit(txn)
    client.close()
    assert wire.take() == []


def test_m91_released_comes_again_unmarked_and_in_its_place(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2")
    client.receiver(wire.queue, credit=1)
    client.dispose(client.take().delivery_id, state=RELEASED)
    client.flow(0, link_credit=2, delivery_count=1)
    again, other = client.take(), client.take()
    assert [body_of(again.payload), body_of(other.payload)] == ["m1", "m2"]
    assert count_of(again.payload) == 0


def test_m91_modified_with_a_failure_counts(client: Client, wire: Wire) -> None:
    wire.put("m1", "m2")
    attached = client.receiver(wire.queue, credit=1, outcomes=ALL_OUTCOMES)
    wire.needs("amqp:modified:list" in (attached.source.outcomes or ()), "outcome modified")
    client.dispose(client.take().delivery_id, state=composite("modified", delivery_failed=True))
    client.flow(0, link_credit=1, delivery_count=1)
    again = client.take()
    assert (body_of(again.payload), count_of(again.payload)) == ("m1", 1)


def test_m91_modified_and_undeliverable_here(client: Client, wire: Wire) -> None:
    """Not to this link again; for others it stays where it was, before the next."""
    wire.put("m1", "m2")
    attached = client.receiver(wire.queue, credit=1, outcomes=ALL_OUTCOMES)
    wire.needs("amqp:modified:list" in (attached.source.outcomes or ()), "outcome modified")
    state = composite("modified", delivery_failed=True, undeliverable_here=True)
    client.dispose(client.take().delivery_id, state=state)
    client.flow(0, link_credit=1, delivery_count=1)
    second = client.take()
    assert body_of(second.payload) == "m2"
    client.dispose(second.delivery_id, state=RELEASED)
    client.detach()
    client.close()
    assert wire.take() == ["m1", "m2"]


def test_a_state_that_is_no_outcome_changes_nothing(client: Client, wire: Wire) -> None:
    """`received` is said in between (3.4.1): the delivery stays unsettled, and what is said next holds."""
    wire.put("m")
    client.receiver(wire.queue, credit=1)
    number = client.take().delivery_id
    client.dispose(number, state=composite("received", section_number=0, section_offset=0), settled=False)
    client.quiet()
    client.dispose(number)
    client.close()
    assert wire.take() == []


def test_a_delivery_in_pieces_may_be_disposed_of_before_its_end(wire: Wire) -> None:
    """Own max-frame 512 and a window of one frame: the outcome comes while the rest waits."""
    wire.put("x" * 1200, "m2")
    client = wire.client(max_frame_size=512)
    client.receiver(wire.queue)
    client.flow(0, link_credit=1, delivery_count=0, incoming_window=1)
    first = client.expect("transfer", more=True)
    client.received += 1
    client.say(
        "disposition", client.channel, role=RECEIVER, first=first.delivery_id, settled=False,
        state=composite("received", section_number=0, section_offset=len(first.payload)),
    )  # fmt: skip
    pieces = [first.payload]
    more: bool | None = True
    while more:
        client.flow(incoming_window=1)
        frame = client.expect("transfer", but=("flow",))
        client.received += 1
        pieces.append(frame.payload)
        more = frame.more
    assert body_of(b"".join(pieces)) == "x" * 1200
    client.dispose(first.delivery_id)
    client.close()
    assert wire.take() == ["m2"]


@pytest.mark.parametrize("default", ["accepted", None])
def test_a_settled_delivery_is_gone(client: Client, wire: Wire, default: str | None) -> None:
    wire.put("m")
    outcome = composite(default) if default else None
    attached = client.receiver(wire.queue, credit=1, snd_settle_mode=1, default_outcome=outcome)
    wire.needs(attached.snd_settle_mode == 1, "snd-settle-mode settled")
    client.take(settled=True)
    client.drop()
    assert wire.take() == []


@pytest.mark.parametrize(("default", "count"), [("released", 0), ("modified", 0), ("failed", 1), ("rejected", 1)])
def test_a_settled_delivery_comes_back_by_the_default_outcome(wire: Wire, default: str, count: int) -> None:
    """Seed 000, QPID-8345: the default outcome decides for what is sent settled."""
    wire.ours("no other broker known does it")
    wire.put("m")
    client = wire.client()
    outcome = composite("modified", delivery_failed=True) if default == "failed" else composite(default)
    client.receiver(wire.queue, credit=1, snd_settle_mode=1, default_outcome=outcome)
    assert body_of(client.take(settled=True).payload) == "m"
    client.quiet()
    reader = wire.client()
    reader.receiver(wire.queue, credit=1)
    assert count_of(reader.take().payload) == count
