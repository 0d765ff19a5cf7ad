"""Large deliveries: bounded output, deliveries in parts, and windows that stay shut while nobody reads."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine import events
from jmsish.engine.conditions import EngineStateError
from jmsish.engine.delivery import Delivery
from jmsish.engine.link import Link
from jmsish.engine.outcomes import ACCEPTED, TransactionalState
from jmsish.engine.outgoing import OUTPUT_LIMIT
from jmsish.engine.streaming import UNREAD_LIMIT, IncomingStream, OutgoingStream, want
from tests.wire.frames import read

from .pair import Pair, expect, kinds

FRAME = 4096
WINDOW = 16
OCTETS = bytes(range(256)) * 20_000


def linked(*, credit: int = 10, **server: Any) -> tuple[Pair, Link, Link]:
    """A sending link at the client, its receiving end at a server with small frames and a small window."""
    pair = Pair(server={"max_frame_size": FRAME, "incoming_window": WINDOW, **server}).open()
    session, _ = pair.begin()
    sender, receiver = pair.link(session, credit=credit)
    return pair, sender, receiver


def stream(sender: Link, **arguments: Any) -> OutgoingStream:
    return OutgoingStream(sender, **{"state": None, "settled": False, "context": None, **arguments})


# -- output ---------------------------------------------------------------------------------------------------------


def test_output_that_is_not_taken_is_bounded() -> None:
    """A large message is cut as fast as its frames are taken, and comes whole."""
    pair, sender, _ = linked(incoming_window=2048)
    sender.send(OCTETS)
    sender.send(b"behind it")
    largest = 0
    came: list[Delivery] = []
    while octets := pair.client.take_output():
        largest = max(largest, len(octets))
        pair.server.receive(octets)
        came += [event[2] for event in pair.server.take_events() if event[0] == events.DELIVERED]
        pair.client.receive(pair.server.take_output())
    assert OUTPUT_LIMIT <= largest <= OUTPUT_LIMIT + FRAME
    assert [delivery.payload for delivery in came] == [OCTETS, b"behind it"]


def test_large_messages_of_two_sessions_take_turns() -> None:
    """None waits for the end of the other."""
    pair, sender, _ = linked(incoming_window=2048)
    second, _ = pair.link(pair.begin()[0], "second")
    for link in (sender, second):
        link.send(OCTETS)
    turns = []
    while octets := pair.client.take_output():
        turns.append({frame.channel for frame in read(octets)})
        pair.server.receive(octets)
        pair.client.receive(pair.server.take_output())
    assert turns[:3] == [{0}, {1}, {0}] and len(expect(pair.server, events.DELIVERED, events.DELIVERED)) == 2


def test_a_large_delivery_that_comes_in_is_one_piece_once() -> None:
    """Held in a buffer that becomes the payload; given up, it leaves nothing."""
    pair, sender, receiver = linked(incoming_window=2048)
    delivery = sender.send(OCTETS)
    for _ in range(3):
        pair.server.receive(pair.client.take_output())
    current = receiver.current
    assert current is not None and current.gathered is not None and not current.parts
    sender.abort(delivery)
    pair.pump()
    expect(pair.server, events.ABORTED)
    assert current.gathered is None and current.payload == b""
    sender.send(OCTETS)
    pair.pump()
    ((_, _, whole),) = expect(pair.server, events.DELIVERED)
    assert whole.payload == OCTETS


@pytest.mark.parametrize("head", [0, 1, FRAME - 1, FRAME, 3 * FRAME + 5])
@pytest.mark.parametrize("start", [0, 7])
def test_a_payload_behind_another_head(head: int, start: int) -> None:
    """Two pieces are sent as one, wherever the frames cut."""
    pair, sender, _ = linked(incoming_window=2048)
    front = bytes([255]) * head
    sender.send_anew(front, OCTETS, start, state=None, settled=False, context=None)
    sender.send_anew(front, b"short enough", start, state=None, settled=True, context=None)
    pair.pump()
    large, small = expect(pair.server, events.DELIVERED, events.DELIVERED)
    assert large[2].payload == front + OCTETS[start:] and small[2].payload == front + b"short enough"[start:]


# -- sent in parts ---------------------------------------------------------------------------------------------------


def test_parts_are_frames_of_one_delivery() -> None:
    """Each says whether more comes; the last ends it, empty or not."""
    pair, sender, _ = linked()
    out = stream(sender)
    assert sender.credit == 9 and out.room <= FRAME
    for part, last in ((b"one", False), (b"two", False), (b"", True)):
        assert out.put(part, last)
    pair.pump()
    ((_, _, delivery),) = expect(pair.server, events.DELIVERED)
    assert delivery.payload == b"onetwo" and delivery.id == out.delivery.id
    assert [frame.more for frame in pair.sent(">", "transfer")] == [True, True, False]
    delivery.link.session.disposition(delivery, ACCEPTED)
    pair.pump()
    assert out.delivery.remote_state == ACCEPTED and kinds(pair.client) == ["DISPOSED"]


def test_a_part_as_large_as_the_room_fits_a_frame_in_a_transaction_too() -> None:
    """What is said beside it has been counted."""
    pair, sender, _ = linked()
    out = stream(sender, state=TransactionalState(bytes(32)), settled=True)
    assert out.put(bytes(out.room), last=False) and out.put(bytes(out.room), last=True)
    pair.pump()
    assert all(len(frame.octets) <= FRAME for frame in pair.sent(">", "transfer"))
    ((_, _, delivery),) = expect(pair.server, events.DELIVERED)
    assert delivery.remote_settled and delivery.remote_state == TransactionalState(bytes(32))


def test_a_part_waits_for_the_window_and_says_when_it_has_left() -> None:
    """SENT comes for parts that waited, and only for these."""
    pair, sender, receiver = linked()
    receiver.session.held_back = True
    out = stream(sender)
    while out.put(bytes(100), last=False):
        pair.pump()
    assert out.waiting and kinds(pair.client) == []
    receiver.session.held_back = False
    receiver.session.write_flow()
    pair.pump()
    assert not out.waiting and kinds(pair.client) == ["SENT"]
    assert out.put(b"", last=True)
    pair.pump()
    ((_, _, delivery),) = expect(pair.server, events.DELIVERED)
    assert set(delivery.payload) == {0}


def test_a_stream_behind_a_message_that_waits_keeps_the_order() -> None:
    """Of the link: what was sent before it goes before it."""
    pair, sender, receiver = linked()
    receiver.session.held_back = True
    sender.send(bytes(FRAME * WINDOW * 2))
    out = stream(sender)
    assert not out.put(b"last", last=True)
    pair.pump()
    receiver.session.held_back = False
    receiver.session.write_flow()
    pair.pump()
    first, second = expect(pair.server, events.DELIVERED, events.DELIVERED)
    assert second[2].payload == b"last" and len(first[2].payload) == FRAME * WINDOW * 2


def test_aborted_before_it_began_it_never_was() -> None:
    """Its credit is there again."""
    pair, sender, _ = linked()
    out = stream(sender)
    out.abort()
    out.abort()
    pair.pump()
    assert sender.credit == 10 and pair.sent(">", "transfer") == []


@pytest.mark.parametrize("waits", [False, True])
def test_aborted_in_the_middle_it_is_taken_back(waits: bool) -> None:
    """By a frame that waits for the window like others (Part 2, 2.6.14); what follows is as if it had not been."""
    pair, sender, receiver = linked()
    receiver.session.held_back = waits
    out = stream(sender)
    assert out.put(b"a part", last=False)
    while waits and out.put(b"more", last=False):
        pair.pump()
    out.abort()
    pair.pump()
    receiver.session.held_back = False
    receiver.session.write_flow()
    pair.pump()
    expect(pair.server, events.ABORTED)
    sender.send(b"after it")
    pair.pump()
    ((_, _, delivery),) = expect(pair.server, events.DELIVERED)
    assert delivery.payload == b"after it" and receiver.session.incoming.keys() == {delivery.id}


def test_aborted_after_its_last_part_it_stays() -> None:
    """It is whole, and the peer's."""
    pair, sender, _ = linked()
    out = stream(sender)
    out.put(b"all", last=True)
    out.abort()
    pair.pump()
    ((_, _, delivery),) = expect(pair.server, events.DELIVERED)
    assert delivery.payload == b"all"


def test_a_stream_needs_credit_and_a_link() -> None:
    """As a message does."""
    pair, sender, _ = linked(credit=0)
    with pytest.raises(ValueError, match="no credit"):
        stream(sender)
    sender.detach()
    with pytest.raises(EngineStateError, match="detached"):
        stream(sender)
    pair.pump()


# -- read while it arrives -------------------------------------------------------------------------------------------


def test_a_delivery_is_announced_once_when_it_has_grown() -> None:
    """And not at all where it is small, or comes whole with what announces it."""
    pair, sender, receiver = linked()
    receiver.stream_from = FRAME * 2
    sender.send(bytes(FRAME))
    sender.send(bytes(FRAME * 5))
    pair.pump()
    assert kinds(pair.server) == ["DELIVERED", "PARTIAL", "DELIVERED"]


def test_nobody_reads_and_the_window_stays_shut() -> None:
    """No more comes than the limit and one window; a flow of the link does not open it either."""
    pair, sender, receiver, delivery, taken = whole_stream()
    session = receiver.session
    receiver.flow(10)
    pair.pump()
    assert session.held_back and UNREAD_LIMIT <= session.unread <= UNREAD_LIMIT + FRAME * WINDOW
    assert sender.session.remote_left == 0 and not delivery.complete


def whole_stream() -> tuple[Pair, Link, Link, Delivery, IncomingStream]:
    """A delivery larger than window and limit together, of which all has come that comes by itself."""
    pair, sender, receiver = linked()
    receiver.stream_from = FRAME // 2
    sender.send(OCTETS)
    parts: list[Delivery] = []
    for _ in range(10_000):
        up = pair.client.take_output()
        pair.server.receive(up)
        for event in pair.server.take_events():
            if event[0] == events.PARTIAL:
                parts.append(event[2])
                event[2].stream = IncomingStream(event[2], event[2].parts or ())
        down = pair.server.take_output()
        pair.client.receive(down)
        if not up and not down:
            break
    (delivery,) = parts
    assert delivery.stream is not None
    return pair, sender, receiver, delivery, delivery.stream


def test_reading_lets_more_come_to_the_end() -> None:
    """Octet for octet; the end is reported once, and the link takes the next delivery."""
    pair, sender, receiver, delivery, taken = whole_stream()
    read = bytearray()
    while not delivery.complete or receiver.session.unread:
        read += taken.take()
        pair.pump()
    assert bytes(read) == OCTETS and receiver.session.unread == 0 and not receiver.session.held_back
    assert kinds(pair.server) == ["ARRIVED"]
    sender.send(b"the next")
    pair.pump()
    assert kinds(pair.server) == ["DELIVERED"]


def test_who_waits_is_told_of_the_next_part() -> None:
    """Asked for when nothing is there; not asked for, it is not told."""
    pair, sender, receiver = linked()
    receiver.stream_from = 1
    out = stream(sender)
    out.put(b"one", last=False)
    pair.pump()
    ((_, _, delivery),) = expect(pair.server, events.PARTIAL)
    taken = delivery.stream = IncomingStream(delivery, delivery.parts or ())
    assert taken.await_more() and taken.take() == b"one" and taken.take() == b""
    assert not taken.await_more()
    out.put(b"two", last=False)
    out.put(b"three", last=False)
    pair.pump()
    assert kinds(pair.server) == ["ARRIVED"] and (taken.take(), taken.take()) == (b"two", b"three")


def test_who_waits_for_anything_opens_the_window() -> None:
    """What it waits for may be behind what nobody reads; when nobody waits any more it is shut again."""
    pair, _, receiver, delivery, _ = whole_stream()
    session = receiver.session
    want(session, True)
    assert not session.held_back
    pair.pump()
    assert delivery.complete and session.unread == len(OCTETS)
    want(session, False)
    assert session.held_back


def test_what_is_dropped_weighs_nothing() -> None:
    """The rest comes, and is forgotten."""
    pair, _, receiver, delivery, taken = whole_stream()
    taken.drop()
    pair.pump()
    assert delivery.complete and receiver.session.unread == 0 and taken.take() == b""


def test_settled_in_its_middle_it_still_ends() -> None:
    """A receiver may settle before the last frame; nothing of it is left in the ledger."""
    pair, _, receiver, delivery, taken = whole_stream()
    receiver.session.disposition(delivery, ACCEPTED)
    taken.drop()
    pair.pump()
    assert delivery.complete and receiver.current is None and not receiver.session.incoming
    assert kinds(pair.client)[-1] == "DISPOSED"


def test_taken_back_in_its_middle() -> None:
    """ABORTED, as for any delivery."""
    pair, sender, receiver = linked()
    receiver.stream_from = 1
    out = stream(sender)
    out.put(b"one", last=False)
    pair.pump()
    ((_, _, delivery),) = expect(pair.server, events.PARTIAL)
    delivery.stream = IncomingStream(delivery, delivery.parts or ())
    out.abort()
    pair.pump()
    assert kinds(pair.server) == ["ABORTED"] and delivery.aborted
