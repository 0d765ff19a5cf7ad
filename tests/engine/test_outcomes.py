"""States, errors, termini and transaction controls as octets and back."""

from __future__ import annotations

import pytest

from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    AmqpError,
    Coordinator,
    Declare,
    DecodeError,
    Discharge,
    Modified,
    Received,
    Rejected,
    Source,
    Target,
    TransactionalState,
    UnknownState,
    decode_control,
    encode_control,
)
from jmsish.engine.states import decode_state
from jmsish.engine.termini import terminus_of
from jmsish.engine.values import decode, encode
from jmsish.types import Described, Symbol, UInt, ULong
from tests.wire.frames import Raw, composite


def test_the_octets_of_the_common_states() -> None:
    assert ACCEPTED.encoded == b"\x00\x53\x24\x45"
    assert RELEASED.encoded == b"\x00\x53\x26\x45"
    assert MODIFIED_FAILED.encoded == b"\x00\x53\x27\xc0\x02\x01\x41"
    assert MODIFIED_FAILED_UNDELIVERABLE.encoded == b"\x00\x53\x27\xc0\x03\x02\x41\x41"
    assert Modified(undeliverable_here=True).encoded == b"\x00\x53\x27\xc0\x03\x02\x40\x41"
    assert Rejected().encoded == b"\x00\x53\x25\x45"
    assert Received(1, 0).encoded == b"\x00\x53\x23\xc0\x04\x02\x52\x01\x44"


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_common_states_are_the_one_object(symbolic: bool, wide: bool) -> None:
    for name, fields, state in [
        ("accepted", {}, ACCEPTED),
        ("released", {}, RELEASED),
        ("modified", {"delivery_failed": True}, MODIFIED_FAILED),
        ("modified", {"delivery_failed": True, "undeliverable_here": True}, MODIFIED_FAILED_UNDELIVERABLE),
    ]:
        octets = composite(name, symbolic=symbolic, wide=wide, **fields).octets
        found, end = decode_state(b"xx" + octets + b"yy", 2)
        assert found is state and end == 2 + len(octets)


@pytest.mark.parametrize(
    "octets",
    [
        composite("rejected", error=5).octets,
        composite("rejected", error=composite("accepted")).octets,
        composite("received", section_number=1).octets,
        composite("transactional-state", txn_id=Raw(b"\xa1\x01x")).octets,
        composite("modified", delivery_failed=Raw(b"\x52\x01")).octets,
        composite("modified", message_annotations=Raw(b"\x45")).octets,
        encode(Described(ULong(0x24), "no list")),
        b"\x00\x53\x24\xc0\x05\x01",
    ],
)
def test_malformed_states(octets: bytes) -> None:
    with pytest.raises((DecodeError, IndexError)):
        decode_state(octets, 0)


def test_states_of_no_known_kind_travel_back_as_they_came() -> None:
    for value in (Described(ULong(1 << 40), [1, "x"]), Described(Symbol("a:b"), None), Described(ULong(0x28), [])):
        state, _ = decode_state(encode(value), 0)
        assert isinstance(state, UnknownState) and decode(state.encoded, 0)[0] == value


def test_values_are_frozen_and_compare() -> None:
    assert TransactionalState(b"a", ACCEPTED) == TransactionalState(b"a", ACCEPTED) != TransactionalState(b"b")
    assert hash(TransactionalState(b"a")) == hash(TransactionalState(b"a"))
    assert AmqpError("a:b") == AmqpError("a:b", None) != AmqpError("a:b", "")
    with pytest.raises(AttributeError):
        ACCEPTED.encoded = b""  # type: ignore[misc]
    assert str(AmqpError("a:b", "c")) == "a:b: c" and str(AmqpError("a:b")) == "a:b"


@pytest.mark.parametrize(
    "terminus",
    [
        Source(),
        Target(),
        Coordinator(),
        Coordinator(("amqp:local-transactions", "amqp:multi-txns-per-ssn")),
        Source(address="a", durable=1, expiry_policy="never", timeout=5, dynamic=True, distribution_mode="move"),
        Source(filter={"f": Described(ULong(1), "x")}, default_outcome=Modified(True, False, {"x-a": 1}), outcomes=()),
        Target(address="", capabilities=("queue",), dynamic_node_properties={"x": UInt(1)}),
    ],
    ids=repr,
)
def test_termini_round_trip(terminus: Source | Target | Coordinator) -> None:
    found = terminus_of(decode(terminus.encoded, 0)[0])
    if isinstance(terminus, Source) and terminus.outcomes == ():
        # An empty array of symbols travels as null: no outcomes are named either way.
        assert isinstance(found, Source) and found.outcomes is None and found.filter == terminus.filter
    else:
        assert found == terminus


@pytest.mark.parametrize("command", [Declare(), Declare(b"global"), Discharge(b"id"), Discharge(b"id", True)])
def test_controls_round_trip(command: Declare | Discharge) -> None:
    assert decode_control(encode_control(command)) == command


def test_controls_of_other_peers() -> None:
    """T2, T3, T4: symbolic descriptors, other sections, fail left out."""
    body = composite("discharge", symbolic=True, txn_id=b"id").octets
    header = encode(Described(ULong(0x70), [True]))
    properties = encode(Described(Symbol("amqp:properties:list"), ["id"]))
    symbolic = b"\x00" + encode(Symbol("amqp:amqp-value:*"))
    assert decode_control(header + properties + symbolic + body) == Discharge(b"id", False)
    assert decode_control(b"\x00\x80\0\0\0\0\0\0\0\x77" + composite("declare", wide=True).octets) == Declare()


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x00\x53\x77",
        b"\x00\x53\x77\x40",
        b"\x00\x53\x77\xa1\x02hi",
        b"\x00\x53\x75\xa0\x01x",
        b"\xa1\x02hi",
        b"\x00\x53\x99\x45",
        b"\x00\x53\x77" + composite("accepted").octets,
        b"\x00\x53\x77" + composite("discharge").octets,
        b"\x00\x53\x77" + composite("discharge", txn_id=b"x", fail=Raw(b"\x43")).octets,
        encode_control(Declare()) * 2,
        encode_control(Declare())[:-1],
    ],
)
def test_what_is_no_control(payload: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_control(payload)
