"""Maximum message size, frame by frame: DISPATCH-975, and the traps that peers have met (exchanges and policy, 3.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.wire.frames import AMQP_HEADER, RECEIVER, SENDER, composite, write
from tests.wire.protocol.steps import Client, Wire, control, in_transaction, memory_wire, message
from tests.wire.raw import error, like

LIMIT = 1000
EXCEEDED = error("amqp:link:message-size-exceeded", description="Message size exceeded")
FORCED = error("amqp:connection:forced", description="Message size exceeded")
REJECTED = like("rejected", error=EXCEEDED)
MODES = ["connection", "link"]

Configured = Callable[[dict[str, Any]], Wire]


def limited(configured: Configured, mode: str = "connection", limit: int = LIMIT) -> Wire:
    return configured({"policy": {"max_message_size": limit, "on_oversize": mode}})


def sized(size: int) -> bytes:
    return message("x" * (size - 8 if size >= 264 else size - 5))


def pieces(client: Client, payload: bytes, size: int, *, open_end: bool = False, **fields: Any) -> None:
    """A delivery in transfers of so many octets of payload each, all in one write."""
    number, client.sent = client.sent, client.sent + 1
    starts = range(0, len(payload), size)
    frames = []
    for start in starts:
        first = {"delivery_id": number, "delivery_tag": b"t%d" % number} if start == 0 else {}
        more = open_end or start + size < len(payload)
        usual = {"handle": 0, "more": more, **first}
        frames.append(write("transfer", client.channel, payload[start : start + size], **{**usual, **fields}))
    client.send(*frames)


def expect_refusal(client: Client, mode: str, *, number: int = 0, settled: bool = False, handle: int = 0) -> None:
    """Rejected, the link closed, and in connection mode the connection, in this order and with nothing between."""
    if not settled:
        client.expect("disposition", but=("flow",), role=RECEIVER, first=number, settled=True, state=REJECTED)
    client.expect("detach", but=("flow",), handle=handle, closed=True, error=EXCEEDED)
    if mode == "connection":
        client.expect("close", error=FORCED)
        client.say("close")
        client.expect_end()


# -- the order of the answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("frame", [2000, 400, 101, 7])
def test_rejected_then_the_link_then_the_connection(
    configured: Configured, frame: int, settled: bool, mode: str
) -> None:
    wire = limited(configured, mode)
    client = wire.client()
    assert client.sender(wire.queue).max_message_size == LIMIT
    pieces(client, sized(LIMIT), frame, settled=settled)
    if not settled:
        client.expect("disposition", but=("flow",), first=0, state="accepted")
    pieces(client, sized(LIMIT + 1), frame, settled=settled)
    expect_refusal(client, mode, number=1, settled=settled)
    assert len(wire.take()) == 1


@pytest.mark.parametrize("limit", [0, LIMIT])
def test_the_attach_has_the_field_where_there_is_a_limit(configured: Configured, limit: int) -> None:
    client = limited(configured, limit=limit).client()
    wanted = limit or None
    for handle, address in enumerate(("q", None, "$management")):
        assert client.sender(address, handle, name=f"s{handle}").fields.get("max_message_size") == wanted
    assert client.controller(5).fields.get("max_message_size") == wanted
    assert client.receiver("q", 6, name="r").fields.get("max_message_size") is None


def test_the_peer_s_field_in_the_attach_changes_nothing(configured: Configured) -> None:
    wire = limited(configured)
    client = wire.client()
    assert client.sender(wire.queue, max_message_size=1 << 40).max_message_size == LIMIT
    client.transfer(sized(LIMIT + 1))
    expect_refusal(client, "connection")


def test_the_answer_comes_at_the_transfer_that_passes_the_limit_and_not_at_the_last(configured: Configured) -> None:
    """dispatch reads to the end first, so an endless delivery is never answered (5.6)."""
    client = limited(configured).client()
    client.sender("q")
    pieces(client, bytes(LIMIT), 100, open_end=True)
    client.quiet()
    pieces_on(client, 1)
    expect_refusal(client, "connection")


def pieces_on(client: Client, size: int, **fields: Any) -> None:
    """One more transfer of the delivery that was begun."""
    client.say("transfer", client.channel, bytes(size), **{"handle": 0, "more": True, **fields})


def test_what_comes_after_the_close_is_dropped_until_the_peer_s_own(configured: Configured) -> None:
    """Frames of any kind, the rest of the delivery among them: nobody hears of them, nor of an error in them."""
    wire = limited(configured)
    client = wire.client()
    client.sender(wire.queue)
    pieces(client, bytes(LIMIT + 1), 500, open_end=True)
    client.expect("disposition", but=("flow",), state=REJECTED)
    client.expect("detach", error=EXCEEDED)
    client.expect("close", error=FORCED)
    pieces_on(client, 100_000)
    client.transfer("m", handle=0)
    client.say("begin", 9, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    client.say("end", client.channel)
    client.say("close")
    client.expect_end()
    assert wire.take() == []


def test_a_peer_that_does_not_close_has_a_second(configured: Configured) -> None:
    client = limited(configured).client()
    client.sender("q")
    client.transfer(sized(LIMIT + 1))
    client.expect("disposition", but=("flow",), state=REJECTED)
    client.expect("detach", error=EXCEEDED)
    client.expect("close", error=FORCED)
    client.line.advance(0)
    client.line.advance(0.9)
    client.quiet()
    client.line.advance(0.2)
    client.expect_end()


# -- aborts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_an_abort_below_the_limit_is_nothing(configured: Configured, mode: str) -> None:
    wire = limited(configured, mode)
    client = wire.client()
    client.sender(wire.queue)
    pieces(client, bytes(LIMIT), 300, open_end=True)
    client.say("transfer", client.channel, handle=0, aborted=True)
    client.quiet()
    client.transfer("next")
    client.expect("disposition", first=1, state="accepted")
    client.close()
    assert wire.take() == ["next"]


@pytest.mark.parametrize("mode", MODES)
def test_an_abort_beyond_the_limit_is_still_oversize(configured: Configured, mode: str) -> None:
    """All in one write. An aborted delivery is settled, so in link mode there is nothing left to be rejected."""
    wire = limited(configured, mode)
    client = wire.client()
    client.sender(wire.queue)
    first = {"delivery_id": 0, "delivery_tag": b"t"}
    client.send(write("transfer", 1, bytes(LIMIT + 1), handle=0, more=True, **first),
                write("transfer", 1, handle=0, aborted=True))  # fmt: skip
    if mode == "link":
        client.expect("detach", but=("flow",), handle=0, closed=True, error=EXCEEDED)
        client.quiet()
    else:
        said = client.expect("disposition", "detach", but=("flow",))
        if said.name == "disposition":
            client.expect("detach", error=EXCEEDED)
        client.expect("close", error=FORCED)
    assert wire.broker is not None and wire.broker.denials.max_message_size_denied == 1
    assert wire.take() == []


@pytest.mark.parametrize("ending", ["detach", "end", "close"])
def test_who_goes_right_after_a_message_too_large_is_refused_all_the_same(configured: Configured, ending: str) -> None:
    wire = limited(configured)
    client = wire.client()
    client.sender(wire.queue)
    fields: dict[str, Any] = {"handle": 0, "closed": True} if ending == "detach" else {}
    client.send(
        write("transfer", 1, bytes(LIMIT + 1), handle=0, delivery_id=0, delivery_tag=b"t"),
        write(ending, 0 if ending == "close" else 1, **fields),
    )
    client.expect("close", but=("flow", "disposition", "detach", "end"), error=FORCED)
    assert wire.broker is not None and wire.broker.denials.max_message_size_denied == 1


# -- link mode: discard to the end, and what if there is none ----------------------------------------------------------


def test_in_link_mode_the_rest_is_read_first_and_the_window_stays_open(configured: Configured) -> None:
    """The trap of proton: a partial delivery settled and detached, and the second sender of the session is stuck."""
    wire = limited(configured, "link")
    client = wire.client()
    client.sender(wire.queue)
    client.sender("other", 1, name="second")
    pieces(client, bytes(LIMIT + 1), 500, open_end=True)
    client.quiet()
    for _ in range(30):
        client.send(*[write("transfer", 1, bytes(10), handle=0, more=True)] * 100)
        while (flow := client.hear()) is not None:
            assert flow.name == "flow" and flow.incoming_window > 1000
    client.transfer("beside", 1)
    client.expect("disposition", but=("flow",), first=1, state="accepted")
    pieces_on(client, 1, more=False)
    client.expect("disposition", but=("flow",), first=0, settled=True, state=REJECTED)
    client.expect("detach", handle=0, closed=True, error=EXCEEDED)
    client.say("detach", 1, handle=0, closed=True)
    client.transfer("on", 1)
    client.expect("disposition", but=("flow",), state="accepted")
    client.close()
    assert wire.take() == [] and wire.take("other") == ["beside", "on"]


def test_in_link_mode_an_endless_delivery_is_answered_within_ten_seconds(configured: Configured) -> None:
    wire = limited(configured, "link")
    client = wire.client()
    client.sender(wire.queue)
    client.sender("other", 1, name="second")
    pieces(client, bytes(LIMIT + 1), 500, open_end=True)
    client.line.advance(0)
    client.line.advance(9.9)
    client.quiet()
    client.line.advance(0.2)
    client.expect("disposition", first=0, settled=True, state=REJECTED)
    client.expect("detach", handle=0, closed=True, error=EXCEEDED)
    for _ in range(30):
        client.send(*[write("transfer", 1, bytes(10), handle=0, more=True)] * 100)
        while (flow := client.hear()) is not None:
            assert flow.name == "flow" and flow.incoming_window > 1000
    client.transfer("beside", 1)
    client.expect("disposition", but=("flow",), first=1, state="accepted")
    client.say("detach", 1, handle=0, closed=True)
    client.sender(wire.queue)
    client.transfer("again")
    client.expect("disposition", but=("flow",), state="accepted")
    client.close()


@pytest.mark.parametrize("ending", ["detach", "end"])
def test_in_link_mode_a_link_that_goes_while_its_delivery_is_read_over_is_not_answered(
    configured: Configured, ending: str
) -> None:
    wire = limited(configured, "link")
    client = wire.client()
    client.sender(wire.queue)
    pieces(client, bytes(LIMIT + 1), 500, open_end=True)
    client.say(ending, 1, **({"handle": 0, "closed": True} if ending == "detach" else {}))
    client.expect(ending, but=("flow",), error=None)
    client.line.advance(0)
    client.line.advance(20)
    client.quiet()


@pytest.mark.parametrize("answered", [False, True])
def test_in_link_mode_more_than_64_mib_close_the_connection(answered: bool) -> None:
    """Whether the delivery was answered meanwhile or not: who never ends is not read for ever."""
    wire = memory_wire("q", config={"policy": {"max_message_size": LIMIT, "on_oversize": "link"}})
    client = wire.client()
    client.sender(wire.queue)
    pieces(client, bytes(LIMIT + 1), 500, open_end=True)
    if answered:
        client.line.advance(0)
        client.line.advance(11)
        client.expect("disposition", but=("flow",), first=0, state=REJECTED)
        client.expect("detach", error=EXCEEDED)
    frame = write("transfer", 1, bytes(100_000), handle=0, more=True)
    for _ in range((64 << 20) // 100_000):
        client.line.write(frame)
    while (flow := client.hear()) is not None:
        assert flow.name == "flow", flow
    client.line.write(frame)
    client.line.write(frame)
    if answered:
        client.expect("close", but=("flow",), error=error("amqp:resource-limit-exceeded"))
    else:
        client.expect("disposition", but=("flow",), first=0, state=REJECTED)
        client.expect("detach", error=EXCEEDED)
        client.expect("close", error=FORCED)


# -- everything in one write -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("frame", [2000, 400])
def test_what_is_pipelined_behind_the_open_is_measured_too(configured: Configured, frame: int, mode: str) -> None:
    """The limit is decided at the open; who sends before it was answered is no freer than who waits."""
    wire = limited(configured, mode)
    client = wire.peer()
    attach = {"name": "s", "handle": 0, "role": SENDER, "initial_delivery_count": 0,
              "source": composite("source"), "target": composite("target", address="q")}  # fmt: skip
    payload, parts = sized(LIMIT + 1), []
    for start in range(0, len(payload), frame):
        first = {"delivery_id": 1, "delivery_tag": b"t1"} if start == 0 else {}
        parts.append(write("transfer", 1, payload[start : start + frame], handle=0, **first,
                           more=start + frame < len(payload)))  # fmt: skip
    client.send(
        AMQP_HEADER,
        write("open", container_id="pipelined"),
        write("begin", 1, next_outgoing_id=0, incoming_window=100, outgoing_window=100),
        write("attach", 1, **attach),
        write("transfer", 1, sized(LIMIT), handle=0, delivery_id=0, delivery_tag=b"t0"),
        *parts,
    )
    client.expect("header")
    client.expect("open")
    client.expect("begin")
    assert client.expect("attach").max_message_size == LIMIT
    client.expect("disposition", but=("flow",), first=0, state="accepted")
    expect_refusal(client, mode, number=1)
    assert len(wire.take()) == 1


# -- transactions ------------------------------------------------------------------------------------------------------


def test_a_discharge_while_the_rest_is_read_over_is_one_amid_a_delivery(configured: Configured) -> None:
    """ "It is an error for the controller to attempt to discharge a transaction against which a partial delivery has
    been posted" (4.4.1): one that is too large is partial until its end."""
    wire = limited(configured, "link")
    client = wire.client()
    client.controller()
    txn = client.declare()
    client.sender(wire.queue, 1)
    pieces(client, bytes(LIMIT + 1), 500, open_end=True, handle=1, state=in_transaction(txn))
    client.transfer(control(composite("discharge", txn_id=txn)))
    client.expect("detach", but=("flow",), handle=0, error=error("amqp:transaction:rollback"))
    client.say("detach", 1, handle=0, closed=True)
    pieces_on(client, 1, handle=1, more=False)
    client.expect("disposition", but=("flow",), first=1, state=REJECTED)
    client.expect("detach", handle=1, error=EXCEEDED)


def test_after_the_answer_the_transaction_may_be_discharged(configured: Configured) -> None:
    wire = limited(configured, "link")
    client = wire.client()
    client.controller()
    txn = client.declare()
    client.sender(wire.queue, 1)
    client.transfer("good", 1, state=in_transaction(txn))
    client.expect("disposition", but=("flow",), first=1, state="transactional-state")
    pieces(client, bytes(LIMIT + 1), 500, open_end=True, handle=1, state=in_transaction(txn))
    client.line.advance(0)
    client.line.advance(11)
    client.expect("disposition", but=("flow",), first=2, state=like("transactional-state", outcome=REJECTED))
    client.expect("detach", handle=1, error=EXCEEDED)
    client.commit(txn)
    client.close()
    assert wire.take() == ["good"]
