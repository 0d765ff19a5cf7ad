"""Whatever comes in: no exception comes out, nothing is called an internal error, and cuts make no difference."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jmsish.engine import events
from jmsish.engine.conditions import EngineStateError
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import ACCEPTED
from jmsish.engine.sasl import SaslServer
from tests.wire.frames import AMQP_HEADER, RECEIVER, SASL_HEADER, SENDER, Raw, composite, wrap, write

OPENING = AMQP_HEADER + write("open", container_id="c")
BEGIN = write("begin", next_outgoing_id=0, incoming_window=100, outgoing_window=100)

small = st.integers(0, 5)
ids = st.one_of(small, st.sampled_from([0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF]))
maybe = st.one_of(st.none(), st.booleans())
states = st.sampled_from(
    [None, composite("accepted"), composite("rejected"), composite("transactional-state", txn_id=b"t"), Raw(b"\x43")]
)
handles = st.integers(0, 2)


def frames(name: str, /, **fields: Any) -> st.SearchStrategy[bytes]:
    payload = st.binary(max_size=40) if name == "transfer" else st.just(b"")
    channel = st.sampled_from([0, 0, 0, 1])
    strategies = {key: st.one_of(st.none(), value) if key != "name" else value for key, value in fields.items()}
    return st.builds(
        lambda channel, payload, wide, values: write(name, channel, payload, wide=wide, **values),
        channel,
        payload,
        st.booleans(),
        st.fixed_dictionaries(strategies),
    )


ANY_FRAME = st.one_of(
    frames("begin", next_outgoing_id=ids, incoming_window=small, outgoing_window=small, remote_channel=small),
    frames("attach", name=st.sampled_from(["a", "b"]), handle=handles, role=st.booleans(), initial_delivery_count=ids,
           snd_settle_mode=small, rcv_settle_mode=small, max_message_size=small),
    frames("flow", next_incoming_id=ids, incoming_window=ids, next_outgoing_id=ids, outgoing_window=ids,
           handle=handles, delivery_count=ids, link_credit=ids, drain=maybe, echo=maybe),
    frames("transfer", handle=handles, delivery_id=ids, delivery_tag=st.binary(max_size=4), settled=maybe, more=maybe,
           aborted=maybe, state=states, message_format=small),
    frames("disposition", role=maybe, first=ids, last=ids, settled=maybe, state=states),
    frames("detach", handle=handles, closed=maybe),
    frames("end"),
    st.binary(max_size=12).map(lambda body: wrap(body)),
)  # fmt: skip

SANE_FRAME = st.one_of(
    st.builds(
        lambda number, body, more: write("transfer", 0, body, handle=0, delivery_id=number, delivery_tag=b"tttt",
                                         settled=True, more=more),
        st.integers(0, 3), st.binary(max_size=60), st.booleans(),
    ),
    st.builds(
        lambda window, credit: write("flow", next_incoming_id=0, incoming_window=window, next_outgoing_id=0,
                                     outgoing_window=0, handle=1, delivery_count=0, link_credit=credit, echo=True),
        st.integers(0, 50), st.integers(0, 50),
    ),
    st.builds(lambda first, last: write("disposition", role=RECEIVER, first=first, last=last, settled=True,
                                        state=composite("accepted")), small, small),
    st.just(wrap(b"")),
)  # fmt: skip


def answer(engine: Engine) -> list[str]:
    """What an owner would do with the events, and their names; every verb is tried."""
    seen = []
    for event in engine.take_events():
        kind = event[0]
        seen.append(events.NAMES[kind])
        try:
            if kind == events.OPENED:
                engine.open()
            elif kind == events.BEGUN:
                event[1].accept_begin()
            elif kind == events.ATTACHED:
                event[1].attach(max_message_size=100)
                if not event[1].is_sender:
                    event[1].flow(20)
            elif kind == events.FLOWED and event[1].is_sender:
                for _ in range(min(event[1].credit, 30)):  # what waits for the window is in no ledger yet
                    event[1].send(b"m" * 600)
                event[1].drained()
            elif kind in (events.DELIVERED, events.OVERSIZE):
                event[1].session.disposition(event[2], ACCEPTED)
            elif kind == events.DETACHED:
                event[1].detach()
            elif kind == events.ENDED:
                event[1].end()
            elif kind == events.CLOSED:
                engine.close()
        except EngineStateError:
            pass
    return seen


def fed(octets: bytes, cuts: list[int], **kwargs: Any) -> tuple[Engine, list[str], bytes]:
    """An engine that was given the octets in pieces, the events, and what it wrote."""
    engine = Engine(server=True, container_id="s", **kwargs)
    seen: list[str] = []
    written = b""
    bounds = [0, *sorted({cut % (len(octets) + 1) for cut in cuts}), len(octets)]
    for begin, end in zip(bounds, bounds[1:], strict=False):
        engine.receive(octets[begin:end])
        seen += answer(engine)
        written += engine.take_output()
    engine.receive_eof()
    seen += answer(engine)
    return engine, seen, written + engine.take_output()


def assert_sound(engine: Engine) -> None:
    error = engine.error
    assert error is not None and error.condition != "amqp:internal-error", error
    assert engine.closed


cuts = st.lists(st.integers(0, 10_000), max_size=8)


@given(st.binary(max_size=200), cuts)
def test_random_octets(octets: bytes, cuts: list[int]) -> None:
    assert_sound(fed(octets, cuts)[0])
    assert_sound(fed(octets, cuts, sasl=SaslServer(["PLAIN", "ANONYMOUS"], lambda m, u, p: u))[0])


@given(st.binary(max_size=200), cuts)
def test_random_octets_behind_an_opening(octets: bytes, cuts: list[int]) -> None:
    assert_sound(fed(OPENING + BEGIN + octets, cuts)[0])
    assert_sound(fed(SASL_HEADER + octets, cuts, sasl=SaslServer(["PLAIN", "ANONYMOUS"], lambda m, u, p: u))[0])


@given(st.lists(ANY_FRAME, max_size=25), cuts)
def test_random_frames(found: list[bytes], cuts: list[int]) -> None:
    attach = write("attach", name="a", handle=0, role=SENDER, initial_delivery_count=0)
    attach += write("attach", name="a", handle=1, role=RECEIVER)
    assert_sound(fed(OPENING + BEGIN + attach + b"".join(found), cuts)[0])


@given(st.lists(ANY_FRAME, max_size=8), st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=6))
def test_changed_octets(found: list[bytes], changes: list[tuple[int, int]]) -> None:
    octets = bytearray(OPENING + BEGIN + b"".join(found))
    for place, value in changes:
        octets[place % len(octets)] = value
    assert_sound(fed(bytes(octets), [])[0])


@given(st.lists(SANE_FRAME, max_size=30), cuts)
def test_cuts_make_no_difference(found: list[bytes], cuts: list[int]) -> None:
    octets = OPENING + BEGIN + write("attach", name="in", handle=0, role=SENDER, initial_delivery_count=0)
    octets += write("attach", name="out", handle=1, role=RECEIVER)
    # The opening in one piece: what comes before our answers to it is judged more leniently.
    start = len(octets)
    octets += b"".join(found)
    frames_of = [start]
    for one in found:
        frames_of.append(frames_of[-1] + len(one))
    _, whole, written = fed(octets, frames_of)
    _, seen, again = fed(octets, [*frames_of, *(start + cut % (len(octets) - start + 1) for cut in cuts)])
    assert seen == whole
    assert again == written
