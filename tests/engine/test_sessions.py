"""Begin, end, channels, and both windows of a session."""

from __future__ import annotations

import pytest

from jmsish.engine import events
from jmsish.engine.conditions import EngineStateError
from jmsish.engine.outcomes import ACCEPTED, AmqpError
from tests.engine.pair import Pair, Wire, expect, kinds
from tests.wire.frames import RECEIVER, SENDER, write


def transfer(number: int, handle: int = 0, channel: int = 0, payload: bytes = b"m", settled: bool = False) -> bytes:
    tag = number.to_bytes(4, "big")
    return write("transfer", channel, payload, handle=handle, delivery_id=number, delivery_tag=tag, settled=settled)


# -- begin and end -----------------------------------------------------------------------------------------------------


def test_begin_is_answered_on_the_peers_channel() -> None:
    wire = Wire().open()
    session = wire.begin(channel=9)
    [begin] = [frame for frame in wire.frames if frame.name == "begin"]
    assert (begin.channel, begin.remote_channel) == (0, 9)
    assert begin.incoming_window == 2048 and begin.next_outgoing_id == 0
    assert session.remote_channel == 9 and session.local_open and session.remote_open


def test_end_with_an_error_and_its_answer() -> None:
    pair = Pair().open()
    session, other = pair.begin()
    session.end(AmqpError("amqp:internal-error", "so", {"a": 1}))
    pair.pump()
    assert pair.server.take_events() == [(events.ENDED, other, AmqpError("amqp:internal-error", "so", {"a": 1}))]
    assert pair.client.take_events() == []
    other.end()
    pair.pump()
    assert pair.client.take_events() == [(events.ENDED, session, None)]
    assert not pair.client.sessions and not pair.server.sessions and not pair.server.remote_sessions


def test_a_channel_is_used_again_after_both_ends_ended() -> None:
    pair = Pair().open()
    for _ in range(3):
        session, other = pair.begin()
        assert session.channel == other.channel == 0
        session.end()
        pair.pump()
        other.end()
        pair.pump()
        assert kinds(pair.client) == ["ENDED"] and kinds(pair.server) == ["ENDED"]


def test_the_lowest_free_channel_is_taken() -> None:
    pair = Pair().open()
    sessions = [pair.begin() for _ in range(3)]
    sessions[1][0].end()
    pair.pump()
    sessions[1][1].end()
    pair.pump()
    expect(pair.server, events.ENDED)
    expect(pair.client, events.ENDED)
    assert pair.begin()[0].channel == 1
    assert pair.begin()[0].channel == 3


def test_no_more_sessions_than_the_peer_allows() -> None:
    pair = Pair(server={"channel_max": 1}).open()
    pair.client.begin()
    pair.client.begin()
    with pytest.raises(EngineStateError, match="2 sessions"):
        pair.client.begin()


def test_a_begin_beyond_our_channel_max_closes() -> None:
    wire = Wire(channel_max=3).open()
    [close] = wire.send("begin", 4, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    assert (close.name, close.condition) == ("close", "amqp:connection:framing-error")


def test_a_begin_on_a_channel_in_use_ends_that_session_alone() -> None:
    wire = Wire().open()
    first, second = wire.begin(0), wire.begin(1)
    [end] = wire.send("begin", 0, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    assert (end.name, end.condition, end.channel) == ("end", "amqp:not-allowed", first.channel)
    assert second.local_open and wire.engine.error is None


@pytest.mark.parametrize("name", ["end", "flow", "detach", "transfer", "disposition", "attach"])
def test_a_frame_where_no_session_is_closes(name: str) -> None:
    wire = Wire().open()
    [close] = wire.send(name, 5)
    assert (close.name, close.condition) == ("close", "amqp:not-allowed")
    assert name in close.description and "5" in close.description


def test_a_begin_that_answers_nothing_closes() -> None:
    wire = Wire().open()
    [close] = wire.send("begin", 0, remote_channel=7, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    assert close.condition == "amqp:not-allowed"


@pytest.mark.parametrize("missing", ["next_outgoing_id", "incoming_window", "outgoing_window"])
def test_a_begin_without_a_mandatory_field_closes(missing: str) -> None:
    wire = Wire().open()
    fields = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
    del fields[missing]
    [close] = wire.send("begin", **fields)
    assert close.condition == "amqp:decode-error" and missing.replace("_", "-") in close.description


def test_the_ledger_stays_with_an_ended_session() -> None:
    pair = Pair().open()
    session, other = pair.begin()
    link, remote = pair.link(session)
    link.send(b"a")
    link.send(b"b")
    pair.pump()
    session.end()
    pair.pump()
    other.end()
    pair.pump()
    assert list(session.outgoing) == [0, 1] and list(other.incoming) == [0, 1]


def test_dispositions_still_count_after_our_end() -> None:
    """Part 2, 2.5.5: END SENT reads on until the peer's end."""
    pair = Pair().open()
    session, other = pair.begin()
    link, _ = pair.link(session)
    delivery = link.send(b"a")
    pair.pump()
    [(_, _, received)] = expect(pair.server, events.DELIVERED)
    session.end()
    other.disposition(received, ACCEPTED)
    other.end()
    pair.pump()
    assert kinds(pair.client) == ["DISPOSED", "ENDED"]
    assert delivery.remote_state is ACCEPTED and not session.outgoing


def test_an_end_sent_by_the_engine_drops_everything_until_the_peers_end() -> None:
    wire = Wire().open()
    session = wire.begin()
    other = wire.begin(1)
    link = wire.attach(role=SENDER)
    link.flow(10)
    wire.read()
    [end] = wire.raw(transfer(0, handle=99))
    assert end.name == "end" and end.channel == session.channel
    [(_, ended, error)] = expect(wire.engine, events.ENDED)
    assert ended is session and error.condition == "amqp:session:unattached-handle"
    assert wire.raw(transfer(1) + write("flow") + write("attach", name="x") + write("disposition", role=True)) == []
    # The verbs are silent: their caller may be at work on events that came before.
    link.flow(5)
    link.detach()
    session.end()
    assert wire.read() == [] and wire.events() == []
    assert wire.send("end") == [] and wire.events() == []
    wire.begin(0)
    assert other.local_open


# -- the incoming window -----------------------------------------------------------------------------------------------


def test_the_incoming_window_opens_anew_before_it_closes() -> None:
    wire = Wire(incoming_window=8).open()
    session = wire.begin()
    link = wire.attach(role=SENDER)
    link.flow(1000)
    wire.read()
    frames = []
    for number in range(40):
        frames += wire.raw(transfer(number, settled=True))
    assert {frame.name for frame in frames} == {"flow"}
    assert all(frame.incoming_window == 8 and frame.handle is None for frame in frames)
    assert [frame.next_incoming_id for frame in frames][:3] == [4, 8, 12]
    assert session.next_incoming_id == 40 and wire.engine.error is None


def test_a_link_flow_opens_the_window_too() -> None:
    wire = Wire(incoming_window=8).open()
    wire.begin()
    link = wire.attach(role=SENDER)
    link.flow(10)
    wire.read()
    for number in range(3):
        wire.raw(transfer(number, settled=True))
    link.flow(10)
    [flow] = wire.read()
    assert (flow.next_incoming_id, flow.incoming_window, flow.delivery_count) == (3, 8, 3)
    assert [wire.raw(transfer(number, settled=True)) for number in range(3, 6)] == [[], [], []]


@pytest.mark.parametrize("wide", [False, True], ids=["fast layout", "general layout"])
def test_a_transfer_beyond_the_window_ends_the_session(wide: bool) -> None:
    wire = Wire(incoming_window=4).open()
    wire.begin()
    link = wire.attach(role=SENDER)
    link.flow(1000)
    wire.read()
    octets = b"".join(
        write("transfer", 0, b"m", handle=0, delivery_id=number, delivery_tag=b"abcd", settled=True, wide=wide)
        for number in range(5)
    )
    [end] = wire.raw(octets)
    assert (end.name, end.condition) == ("end", "amqp:session:window-violation")
    assert kinds(wire.engine) == ["DELIVERED"] * 4 + ["ENDED"]


def test_the_window_counts_before_the_handle_is_looked_at() -> None:
    wire = Wire(incoming_window=0).open()
    wire.begin()
    [end] = wire.raw(transfer(0, handle=42))
    assert end.condition == "amqp:session:window-violation"


def test_flow_echo_of_the_session_is_answered() -> None:
    wire = Wire().open()
    wire.begin()
    [flow] = wire.send("flow", next_incoming_id=0, incoming_window=1, next_outgoing_id=0, outgoing_window=0, echo=True)
    assert (flow.name, flow.handle, flow.echo) == ("flow", None, False)
    assert (flow.next_incoming_id, flow.incoming_window, flow.next_outgoing_id) == (0, 2048, 0)


@pytest.mark.parametrize("missing", ["incoming_window", "next_outgoing_id", "outgoing_window"])
def test_a_flow_without_a_mandatory_field_closes(missing: str) -> None:
    wire = Wire().open()
    wire.begin()
    fields = {"next_incoming_id": 0, "incoming_window": 1, "next_outgoing_id": 0, "outgoing_window": 0}
    del fields[missing]
    [close] = wire.send("flow", **fields)
    assert close.condition == "amqp:decode-error" and missing.replace("_", "-") in close.description


# -- the peer's window -------------------------------------------------------------------------------------------------


def flow(window: int, following: int | None = 0, **fields: int) -> bytes:
    return write("flow", next_incoming_id=following, incoming_window=window, next_outgoing_id=0, outgoing_window=0,
                 **fields)  # fmt: skip


def test_transfers_wait_for_the_peers_window_in_their_order() -> None:
    wire = Wire().open()
    session = wire.begin(incoming_window=2)
    links = [wire.attach(role=RECEIVER, handle=handle, name=f"l{handle}") for handle in (0, 1)]
    for handle in (0, 1):
        wire.raw(flow(2, handle=handle, delivery_count=0, link_credit=10))
    sent = [links[number % 2].send(b"%d" % number) for number in range(6)]
    assert [frame.payload for frame in wire.read()] == [b"0", b"1"]
    assert [delivery.id for delivery in sent] == [0, 1, -1, -1, -1, -1]
    assert session.outgoing == {0: sent[0], 1: sent[1]}
    assert [frame.payload for frame in wire.raw(flow(1, 2))] == [b"2"]
    assert [(frame.payload, frame.handle) for frame in wire.raw(flow(10, 3))] == [(b"3", 1), (b"4", 0), (b"5", 1)]
    assert [delivery.id for delivery in sent] == list(range(6))
    assert [link.credit for link in links] == [7, 7]


def test_the_window_counts_from_what_the_peer_has_seen() -> None:
    """Part 2, 2.5.6: remote-incoming-window := next-incoming-id + incoming-window - next-outgoing-id."""
    wire = Wire().open()
    session = wire.begin(incoming_window=3)
    link = wire.attach(role=RECEIVER)
    wire.raw(flow(3, handle=0, delivery_count=0, link_credit=100))
    for number in range(10):
        link.send(b"%d" % number)
    assert len(wire.read()) == 3
    # It has read one of the three, so two of its four places are taken.
    assert [frame.payload for frame in wire.raw(flow(4, 1))] == [b"3", b"4"]
    assert session.remote_left == 0
    assert wire.raw(flow(2, 1)) == [], "a window taken back below what is on its way"
    assert session.remote_left == -2
    assert len(wire.raw(flow(3, 5))) == 3
    assert [frame.payload for frame in wire.raw(flow(100, None))] == [b"8", b"9"], "no next-incoming-id: from the first"


def test_a_flow_ahead_of_what_was_sent_ends_the_session() -> None:
    wire = Wire().open()
    wire.begin()
    [end] = wire.raw(flow(10, 1))
    assert (end.name, end.condition) == ("end", "amqp:invalid-field")


def test_multi_frame_deliveries_stop_at_the_window_and_go_on() -> None:
    wire = Wire().open(max_frame_size=512)
    wire.begin(incoming_window=2)
    link = wire.attach(role=RECEIVER)
    wire.raw(flow(2, handle=0, delivery_count=0, link_credit=10))
    body = bytes(range(256)) * 8
    link.send(body)
    link.send(b"next")
    frames = wire.read()
    assert len(frames) == 2 and all(frame.more for frame in frames)
    while len(frames) < 20:
        more = wire.raw(flow(1, len(frames)))
        if not more:
            break
        frames += more
    assert b"".join(frame.payload for frame in frames[:-1]) == body
    assert frames[-1].payload == b"next" and frames[-1].delivery_id == 1
    assert {frame.delivery_id for frame in frames[:-1]} == {0}
    assert [bool(frame.more) for frame in frames] == [True] * (len(frames) - 2) + [False, False]


def test_ids_and_windows_wrap_around() -> None:
    start = 0xFFFFFFFD
    wire = Wire().open()
    session = wire.begin(next_outgoing_id=start)
    link = wire.attach(role=SENDER, initial_delivery_count=start)
    link.flow(20)
    [granted] = wire.read()
    assert (granted.delivery_count, granted.link_credit, granted.next_incoming_id) == (start, 20, start)
    for number in range(6):
        wire.raw(transfer((start + number) & 0xFFFFFFFF))
    deliveries = [event[2] for event in wire.events()]
    assert list(session.incoming) == [start, start + 1, start + 2, 0, 1, 2]
    assert session.next_incoming_id == 3 and link.delivery_count == 3 and link.credit == 14
    for delivery in deliveries:
        session.disposition(delivery, ACCEPTED)
    [said] = wire.read()
    assert (said.first, said.last) == (start, 2)


def test_the_first_delivery_says_where_the_ids_begin() -> None:
    """Transfer ids and delivery ids are two countings: some peers begin the one at 1 and the other at 0."""
    wire = Wire().open()
    session = wire.begin(next_outgoing_id=1)
    links = [wire.attach(role=SENDER, handle=handle, name=f"l{handle}") for handle in (0, 1)]
    for link in links:
        link.flow(20)
    wire.read()
    for number in (0xFFFFFFFF, 0, 1, 2):
        wire.raw(transfer(number, handle=number % 2))
    assert session.first_incoming_id == 0xFFFFFFFF
    assert kinds(wire.engine) == ["DELIVERED"] * 4 and session.next_incoming_id == 5


def test_outgoing_ids_wrap_around() -> None:
    start = 0xFFFFFFFE
    pair = Pair().open()
    session, other = pair.begin(next_outgoing_id=start)
    link, remote = pair.link(session, initial_delivery_count=start, credit=10)
    sent = [link.send(b"%d" % number) for number in range(5)]
    pair.pump()
    received = [event[2] for event in pair.server.take_events()]
    assert [delivery.id for delivery in received] == [start, start + 1, 0, 1, 2]
    for delivery in received:
        other.disposition(delivery, ACCEPTED)
    pair.pump()
    [(_, _, deliveries, state, settled, _)] = expect(pair.client, events.DISPOSED)
    assert deliveries == sent and state is ACCEPTED and settled
    assert not session.outgoing and not other.incoming
    assert (link.credit, link.delivery_count, remote.credit, remote.delivery_count) == (5, 3, 5, 3)
