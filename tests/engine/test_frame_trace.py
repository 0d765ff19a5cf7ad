"""The frame trace, without any I/O: octets in, lines out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.engine.engine import Engine
from jmsish.engine.frame_trace import IN, OUT, FrameReader, TracedEngine, engine_kind, watch
from jmsish.engine.frames import AMQP_HEADER, EMPTY_FRAME, SASL_FRAME, frame
from jmsish.engine.outcomes import ACCEPTED, Modified, Source, Target, TransactionalState
from jmsish.engine.performatives import encode_attach, encode_close, encode_disposition, encode_flow, encode_open
from jmsish.engine.sasl import SaslClient
from jmsish.engine.states import AmqpError, composite
from jmsish.engine.values import encode_binary, encode_string, encode_symbol, encode_uint


def lines(octets: bytes) -> list[str]:
    return [str(line) for line in FrameReader().feed(octets)]


def attach(name: str, handle: int, target: str) -> bytes:
    return frame(
        3,
        encode_attach(
            name=name, handle=handle, is_receiver=False, snd_settle_mode=0, rcv_settle_mode=1,
            source=Source(address="here").encoded, target=Target(address=target, capabilities=("queue",)).encoded,
            unsettled=None, initial_delivery_count=0, max_message_size=0, offered_capabilities=(),
            desired_capabilities=("DELAYED_DELIVERY",), properties=None,
        ),
    )  # fmt: skip


def transfer(handle: int, payload: bytes) -> bytes:
    return frame(3, composite(0x14, encode_uint(handle), encode_uint(7), encode_binary(b"\x01\xff")) + payload)


def test_a_line_names_channel_performative_and_fields() -> None:
    opened = encode_open("me", hostname="h", max_frame_size=512, channel_max=7, idle_time_out=None,
                         offered_capabilities=(), desired_capabilities=("A", "B"),
                         properties={"product": 'a "word"'})  # fmt: skip
    assert lines(AMQP_HEADER + frame(0, opened) + EMPTY_FRAME) == [
        "header AMQP 1.0",
        'ch 0 open container-id="me" hostname="h" max-frame-size=512 channel-max=7 desired-capabilities=[A, B] '
        'properties={product: "a \\"word\\""}',
        "ch 0 empty",
    ]


def test_modes_roles_and_termini_are_words() -> None:
    assert lines(attach("l", 2, "q")) == [
        'ch 3 attach name="l" handle=2 role=sender snd-settle-mode=unsettled rcv-settle-mode=second '
        'source=source(address="here") target=target(address="q" capabilities=[queue]) initial-delivery-count=0 '
        "desired-capabilities=[DELAYED_DELIVERY]"
    ]


def test_states_are_shown_by_name() -> None:
    state = TransactionalState(b"\x0a", ACCEPTED)
    modified = Modified(True, False, {"x-opt-why": "late"})
    assert lines(frame(1, encode_disposition(True, 4, 5, True, state.encoded))) == [
        "ch 1 disposition role=receiver first=4 last=5 settled=true "
        "state=transactional-state(txn-id=0x0a outcome=accepted)"
    ]
    assert lines(frame(1, encode_disposition(True, 4, 4, True, modified.encoded)))[0].endswith(
        'state=modified(delivery-failed=true message-annotations={x-opt-why: "late"})'
    )
    assert lines(frame(0, encode_close(AmqpError("amqp:internal-error", "so")))) == [
        'ch 0 close error=error(condition=amqp:internal-error description="so")'
    ]


def test_of_a_message_only_the_size_is_shown() -> None:
    assert lines(transfer(0, b"\x00Sw\xa1\x04word")) == [
        "ch 3 transfer handle=0 delivery-id=7 delivery-tag=0x01ff payload=(9 octets)"
    ]


def test_control_messages_are_shown() -> None:
    discharge = b"\x00Sw" + composite(0x32, encode_binary(b"\x05"), b"\x41")
    assert lines(transfer(0, discharge))[0].endswith("octets, discharge(txn-id=0x05 fail=true))")


def test_a_flow_of_a_link() -> None:
    assert lines(frame(0, encode_flow(1, 2, 3, 4, (0, 9, 10, None, True)))) == [
        "ch 0 flow next-incoming-id=1 incoming-window=2 next-outgoing-id=3 outgoing-window=4 handle=0 "
        "delivery-count=9 link-credit=10 drain=true"
    ]


def test_sasl_secrets_are_not_shown() -> None:
    init = composite(0x41, encode_symbol("PLAIN"), encode_binary(b"\0user\0secret"), encode_string("h"))
    (line,) = FrameReader().feed(frame(0, init, SASL_FRAME))
    assert str(line) == 'sasl-init mechanism=PLAIN initial-response=(12 octets, not shown) hostname="h"'
    assert b"secret" not in line.octets
    for code in (0x42, 0x43):
        (line,) = FrameReader().feed(frame(0, composite(code, encode_binary(b"secret")), SASL_FRAME))
        assert "secret" not in str(line) and b"secret" not in line.octets


def test_tokens_sent_to_cbs_are_not_shown() -> None:
    octets = attach("tokens", 1, "$cbs") + attach("others", 0, "q") + transfer(1, b"SharedAccessSignature")
    reader = FrameReader()
    *_, told = reader.feed(octets)
    assert str(told).endswith("payload=(21 octets, not shown)") and b"Shared" not in told.octets
    (other,) = reader.feed(transfer(0, b"a message"))
    assert b"a message" in other.octets
    detach = frame(3, composite(0x16, encode_uint(1)))
    *_, after = reader.feed(detach + transfer(1, b"a message"))
    assert b"a message" in after.octets


def test_symbolic_descriptors_mean_the_same() -> None:
    accepted = b"\x00" + encode_symbol("amqp:accepted:list") + b"\x45"
    body = (
        b"\x00"
        + encode_symbol("amqp:disposition:list")
        + composite(0x15, b"\x41", b"\x43", b"\x43", b"\x41", accepted)[3:]
    )
    assert lines(frame(0, body)) == ["ch 0 disposition role=receiver first=0 last=0 settled=true state=accepted"]


@pytest.mark.parametrize("octets", [b"HTTP/1.1 400 Bad Request\r\n", b"\x15\x03\x03\x00\x02\x02\x28\x00"])
def test_what_is_no_amqp_is_named_once(octets: bytes) -> None:
    reader = FrameReader()
    (line,) = reader.feed(octets)
    assert str(line).startswith("unreadable:") and ("HTTP" in str(line) or "TLS" in str(line))
    assert list(reader.feed(octets)) == []


def test_a_frame_that_cannot_be_read_is_said_and_the_next_one_read() -> None:
    told = lines(frame(2, b"\x00\x53\x10\xc0\xff\x01") + EMPTY_FRAME)
    assert told[0].startswith("ch 2 unreadable: a frame of 14 octets") and told[1] == "ch 0 empty"


@given(st.binary(max_size=80))
def test_no_octets_make_it_raise(octets: bytes) -> None:
    list(FrameReader().feed(octets))
    list(FrameReader().feed(frame(0, octets)))


@given(st.lists(st.integers(0, 300), max_size=8))
def test_where_octets_are_cut_makes_no_difference(cuts: list[int]) -> None:
    octets = AMQP_HEADER + attach("l", 2, "q") + transfer(2, b"payload") + EMPTY_FRAME
    reader, told = FrameReader(), []
    places = sorted(min(cut, len(octets)) for cut in cuts)
    for start, end in zip([0, *places], [*places, len(octets)], strict=True):
        told += [str(line) for line in reader.feed(octets[start:end])]
    assert told == lines(octets)


def test_nobody_pays_who_does_not_watch() -> None:
    assert engine_kind() is Engine


def test_an_engine_shows_what_goes_in_and_out() -> None:
    seen: list[tuple[str, str, bytes]] = []
    watch(lambda name: lambda direction, octets: seen.append((name, direction, octets)))
    try:
        engine = engine_kind()(server=False, container_id="c", sasl=SaslClient())
    finally:
        watch(None)
    assert type(engine) is TracedEngine
    written = engine.take_output()
    engine.receive(b"AMQP")
    assert [(direction, octets) for _, direction, octets in seen] == [(OUT, written), (IN, b"AMQP")]
    assert seen[0][0].startswith("client-")
    assert engine.take_output() == b"" and len(seen) == 2
