"""Ways of writing that peers have and the standard allows: in advance, in least fields, in other encodings."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.types import Symbol, UInt
from tests.wire.frames import AMQP_HEADER, RECEIVER, SENDER, Raw, composite, wrap, write
from tests.wire.protocol.steps import ACCEPTED, Client, Wire, body_of, message
from tests.wire.raw import one_of

NULL = b"\x40"


def described(code: int, *fields: bytes) -> bytes:
    """A list32 with a ulong of eight octets as its descriptor: the longest way to write it."""
    content = b"".join(fields)
    size = (len(content) + 4).to_bytes(4, "big") + len(fields).to_bytes(4, "big")
    return b"\x00\x80" + code.to_bytes(8, "big") + b"\xd0" + size + content


def uint(value: int) -> bytes:
    return b"\x70" + value.to_bytes(4, "big")


def text(value: str) -> bytes:
    return b"\xb1" + len(value).to_bytes(4, "big") + value.encode()


def boolean(value: bool) -> bytes:
    return b"\x56\x01" if value else b"\x56\x00"


OPENING: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 0, "outgoing_window": 0}


def attach(queue: Raw, **fields: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"name": "testLink", "handle": 0, "role": SENDER, "initial_delivery_count": 0}
    return {**usual, "source": composite("source"), "target": queue, **fields}


def test_all_in_one_write(wire: Wire) -> None:
    """Header, open, begin, attach, a settled transfer and the close, before anything was heard."""
    peer = wire.peer()
    peer.send(
        AMQP_HEADER,
        write("open", container_id="eager"),
        write("begin", 1, **OPENING),
        write("attach", 1, **attach(peer.terminus("target", wire.queue))),
        write("transfer", 1, message("m"), handle=0, delivery_id=0, delivery_tag=b"t", settled=True),
        write("close"),
    )
    for name in ("header", "open", "begin", "attach", "flow", "close"):
        peer.expect(name)
    peer.expect_end()
    assert wire.take() == ["m"]


def test_an_unsettled_transfer_before_there_is_credit(wire: Wire) -> None:
    peer = wire.peer()
    peer.send(
        AMQP_HEADER,
        write("open", container_id="eager"),
        write("begin", 1, **OPENING),
        write("attach", 1, **attach(peer.terminus("target", wire.queue))),
        write("transfer", 1, message("m"), handle=0, delivery_id=0, delivery_tag=b"t"),
    )
    for name in ("header", "open", "begin", "attach"):
        peer.expect(name)
    peer.expect("disposition", but=("flow",), role=RECEIVER, first=0, settled=True, state="accepted")
    assert wire.take() == ["m"]


def test_a_receiver_and_its_credit_in_one_write(wire: Wire) -> None:
    wire.put("m")
    peer = wire.peer()
    peer.send(
        AMQP_HEADER,
        write("open", container_id="eager"),
        write("begin", 1, **{**OPENING, "incoming_window": 10}),
        write("attach", 1, **attach(composite("target"), source=peer.terminus("source", wire.queue), role=RECEIVER)),
        write("flow", 1, handle=0, delivery_count=0, link_credit=1, **{**OPENING, "incoming_window": 10}),
    )
    for name in ("header", "open", "begin", "attach"):
        peer.expect(name)
    assert body_of(peer.take().payload) == "m"


def test_a_transaction_in_one_write(client: Client, wire: Wire) -> None:
    """Declare and a link for its work without a pause: the answers come in that order."""
    client.controller(0)
    client.send(
        write("transfer", 1, b"\x00\x53\x77" + composite("declare").octets, handle=0, delivery_id=0, delivery_tag=b"d"),
        write("attach", 1, **attach(client.terminus("target", wire.queue), handle=1)),
    )
    client.sent = 1
    txn = client.expect("disposition", state="declared").state.txn_id
    client.expect("attach")
    client.expect("flow")
    client.commit(txn)


def test_detach_end_and_close_in_one_write(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    client.send(write("detach", 1, handle=0, closed=True), write("end", 1), write("close"))
    for name in ("detach", "end", "close"):
        client.expect(name, error=None)
    client.expect_end()


def test_many_transfers_in_one_write(client: Client, wire: Wire) -> None:
    client.sender(wire.queue)
    client.send(
        *[
            write("transfer", 1, message(f"m{n}"), handle=0, delivery_id=n, delivery_tag=b"t%d" % n, settled=n != 9)
            for n in range(10)
        ]
    )
    client.expect("disposition", but=("flow",), first=9, last=one_of(None, 9), settled=True, state="accepted")
    assert wire.take() == [f"m{n}" for n in range(10)]


def test_least_transfers(client: Client, wire: Wire) -> None:
    """No message-format, no settled, no more."""
    client.sender(wire.queue)
    client.transfer("m", message_format=None)
    client.expect("disposition", settled=True, state="accepted")
    assert wire.take() == ["m"]


def test_symbolic_descriptors(wire: Wire) -> None:
    peer = wire.peer()
    target = composite("target", symbolic=True, address=wire.queue, capabilities="queue" if wire.foreign else None)
    source = composite("source", symbolic=True)
    peer.send(
        AMQP_HEADER,
        write("open", symbolic=True, container_id="words"),
        write("begin", 1, symbolic=True, **OPENING),
        write("attach", 1, symbolic=True, **attach(target, source=source)),
        write("transfer", 1, message("m"), symbolic=True, handle=0, delivery_id=0, delivery_tag=b"t"),
    )
    for name in ("header", "open", "begin", "attach"):
        peer.expect(name)
    peer.expect("disposition", but=("flow",), settled=True, state="accepted")
    assert wire.take() == ["m"]


def test_a_symbolic_outcome(client: Client, wire: Wire) -> None:
    wire.put("m")
    client.receiver(wire.queue, credit=1)
    number = client.take().delivery_id
    client.dispose(number, state=composite("accepted", symbolic=True))
    client.close()
    assert wire.take() == []


def test_a_symbolic_control_message(client: Client) -> None:
    client.controller()
    txn = client.command(composite("declare", symbolic=True)).state.txn_id
    assert client.command(composite("discharge", symbolic=True, txn_id=txn, fail=False)).state.name == "accepted"


def test_the_longest_encodings(wire: Wire) -> None:
    """Wide lists, wide integers, wide strings, booleans of two octets, nulls to the end."""
    peer = wire.peer()
    if wire.foreign:
        wire.needs(False, "queues without a capability")
    source = described(0x28, *[NULL] * 11)
    target = described(0x29, text(wire.queue), *[NULL] * 6)
    link = [text("l"), uint(0), boolean(False), b"\x50\x02", b"\x50\x00"]
    transfer = [uint(0), uint(0), b"\xb0\x00\x00\x00\x01t", uint(0), boolean(False), boolean(False)]
    peer.send(
        AMQP_HEADER,
        wrap(described(0x10, text("wide"), *[NULL] * 9)),
        wrap(described(0x11, NULL, uint(0), uint(5), uint(5), uint(7), NULL, NULL, NULL), 1),
        wrap(described(0x12, *link, source, target, NULL, NULL, uint(0)), 1),
        wrap(described(0x14, *transfer) + message("m"), 1),
    )
    for name in ("header", "open", "begin", "attach"):
        peer.expect(name)
    peer.expect("disposition", but=("flow",), settled=True, state="accepted")
    assert wire.take() == ["m"]


def test_an_empty_list_of_the_shortest_kind(client: Client, wire: Wire) -> None:
    """list0 for all that may be left out: end, close, accepted."""
    client.sender(wire.queue)
    client.send(wrap(b"\x00\x53\x17\x45", 1), wrap(b"\x00\x53\x18\x45"))
    client.expect("end", error=None)
    client.expect("close", error=None)


@pytest.mark.parametrize("start", [0, 1, 0x7FFFFFFF, 0xFFFFFFFE])
def test_ids_begin_anywhere_and_wrap(wire: Wire, start: int) -> None:
    """Serial numbers (2.8.10), of transfers, deliveries and credit."""
    peer = wire.peer()
    peer.open()
    peer.begin(next_outgoing_id=UInt(start), incoming_window=10)
    peer.sender(wire.queue, initial_delivery_count=UInt(start))
    for number in range(5):
        peer.transfer(f"m{number}", delivery_id=UInt((start + number) & 0xFFFFFFFF))
    told = 0
    while told < 5:
        frame = peer.expect("disposition", but=("flow",), state="accepted", settled=True)
        last = frame.first if frame.last is None else frame.last
        told += ((last - frame.first) & 0xFFFFFFFF) + 1
    assert wire.take() == [f"m{number}" for number in range(5)]


def test_deliveries_may_be_numbered_apart_from_transfers(client: Client, wire: Wire) -> None:
    """The delivery-id counts deliveries of the session, in its own numbers."""
    client.sender(wire.queue)
    for number in (100, 101, 102):
        client.transfer(f"m{number}", delivery_id=number, settled=True)
    client.close()
    assert wire.take() == ["m100", "m101", "m102"]


@pytest.mark.parametrize("tag", [b"", b"\x00", b"x" * 32], ids=["empty", "zero", "long"])
def test_tags(client: Client, wire: Wire, tag: bytes) -> None:
    client.sender(wire.queue)
    client.transfer("m", delivery_tag=tag)
    client.expect("disposition", state="accepted")


def test_properties_and_capabilities_that_nobody_knows(wire: Wire) -> None:
    peer = wire.peer()
    peer.open(properties={"x": [1, "two", {Symbol("three"): None}]}, offered_capabilities=["x", "y"])
    peer.begin(properties={"x": 1}, desired_capabilities="z")
    peer.sender(wire.queue, properties={"x": 1}, desired_capabilities=["DELAYED_DELIVERY", "x"])
    peer.transfer("m", batchable=True)
    peer.expect("disposition", state="accepted")
    peer.close()


def test_a_disposition_with_both_roles_of_time(client: Client, wire: Wire) -> None:
    """batchable, and `last` where one delivery is meant."""
    wire.put("m")
    client.receiver(wire.queue, credit=1)
    number = client.take().delivery_id
    client.say(
        "disposition", client.channel, role=RECEIVER, first=number, last=number, settled=True, state=ACCEPTED,
        batchable=True,
    )  # fmt: skip
    client.close()
    assert wire.take() == []


def test_a_second_connection_in_the_meantime(client: Client, wire: Wire) -> None:
    """One thing after another on two lines: neither waits for the other."""
    client.receiver(wire.queue, credit=1)
    other = wire.client()
    other.sender(wire.queue)
    other.transfer("m")
    assert body_of(client.take().payload) == "m"
    other.expect("disposition", state="accepted")
    other.close()
    client.close()
