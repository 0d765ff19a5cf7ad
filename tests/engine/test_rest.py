"""A disposition of very many deliveries is reported part by part, and nothing behind it before it is over."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine import events
from jmsish.engine.delivery import Delivery
from jmsish.engine.limits import Limits
from jmsish.engine.outcomes import ACCEPTED, RELEASED, AmqpError
from jmsish.engine.rest import go_on, take_rest
from jmsish.engine.session import EngineSession
from tests.engine.pair import Wire, expect, kinds
from tests.wire.frames import RECEIVER, SENDER, composite, write

THREE = Limits(most_disposed=3)


def sent(count: int = 10, **options: Any) -> tuple[Wire, EngineSession, list[Delivery]]:
    """An engine that reports three at a time, and what it has sent."""
    wire = Wire(limits=THREE, **options).open()
    session = wire.begin()
    link = wire.attach(role=RECEIVER)
    wire.send("flow", incoming_window=1000, next_outgoing_id=0, outgoing_window=1000, handle=0, delivery_count=0,
              link_credit=1000)  # fmt: skip
    wire.events()
    deliveries = [link.send(b"m%d" % number) for number in range(count)]
    wire.read()
    return wire, session, [delivery for delivery in deliveries if delivery is not None]


def disposed(wire: Wire) -> list[list[int]]:
    """The ids of each report."""
    return [[delivery.id for delivery in event[2]] for event in wire.events() if event[0] == events.DISPOSED]


def disposition(first: int, last: int, state: str = "accepted", settled: bool = True) -> bytes:
    return write("disposition", role=RECEIVER, first=first, last=last, settled=settled, state=composite(state))


@pytest.mark.parametrize("settled", [True, False])
def test_parts_of_a_range_are_reported_as_they_are_asked_for(settled: bool) -> None:
    wire, session, deliveries = sent()
    wire.raw(disposition(0, 9, settled=settled))
    found = disposed(wire)
    while wire.engine.rest is not None:
        assert not wire.engine.has_events
        go_on(wire.engine)
        found += disposed(wire)
    assert found == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert all(delivery.remote_state == ACCEPTED and delivery.remote_settled == settled for delivery in deliveries)
    assert len(session.outgoing) == (0 if settled else 10)


def test_so_many_are_reported_at_once() -> None:
    wire, _, _ = sent(3)
    wire.raw(disposition(0, 2))
    assert disposed(wire) == [[0, 1, 2]] and wire.engine.rest is None


def test_what_a_sender_settles_comes_in_parts_too() -> None:
    wire = Wire(limits=THREE).open()
    session = wire.begin()
    link = wire.attach(role=SENDER, rcv_settle_mode=1)
    link.flow(10)
    for number in range(5):
        wire.send("transfer", payload=b"m", handle=0, delivery_id=number, delivery_tag=b"%d" % number)
    wire.events()
    wire.send("disposition", role=SENDER, first=0, last=4, settled=True)
    assert disposed(wire) == [[0, 1, 2]] and len(session.incoming) == 2
    go_on(wire.engine)
    assert disposed(wire) == [[3, 4]] and not session.incoming


@pytest.mark.parametrize("cut", [0, 1, 8, 20])
def test_nothing_behind_it_is_read_before_it_is_over(cut: int) -> None:
    """In the same octets and in later ones, a frame in two pieces among them."""
    wire, session, _ = sent()
    behind = disposition(20, 20) + write("begin", 5, next_outgoing_id=0, incoming_window=9, outgoing_window=9)
    behind += write("end", 5)
    wire.raw(disposition(0, 4, "released") + behind[:cut])
    assert disposed(wire) == [[0, 1, 2]]
    wire.raw(behind[cut:])
    assert not wire.events() and wire.engine.rest is not None
    go_on(wire.engine)
    assert kinds(wire.engine) == ["DISPOSED"]
    go_on(wire.engine)
    assert kinds(wire.engine) == ["BEGUN", "ENDED"]
    assert wire.engine.rest is None and len(session.outgoing) == 5


def test_another_range_behind_it_is_read_to_its_first_part() -> None:
    wire, _, deliveries = sent()
    wire.raw(disposition(0, 4, "released") + disposition(5, 9) + write("close"))
    found = disposed(wire)
    for _ in range(2):
        go_on(wire.engine)
        found += disposed(wire)
    assert found == [[0, 1, 2], [3, 4], [5, 6, 7]]
    go_on(wire.engine)
    assert kinds(wire.engine) == ["DISPOSED"]
    go_on(wire.engine)
    assert kinds(wire.engine) == ["CLOSED"]
    assert [delivery.remote_state for delivery in deliveries] == [RELEASED] * 5 + [ACCEPTED] * 5


def test_one_that_was_decided_meanwhile_is_not_reported() -> None:
    wire, session, deliveries = sent()
    wire.raw(disposition(0, 9))
    session.forget(deliveries[4])
    found = disposed(wire)
    while wire.engine.rest is not None:
        go_on(wire.engine)
        found += disposed(wire)
    assert found == [[0, 1, 2], [3, 5], [6, 7, 8], [9]]


def test_a_session_that_fails_meanwhile_hears_no_more_of_it() -> None:
    wire, session, _ = sent()
    wire.raw(disposition(0, 9) + disposition(0, 9))
    session.fail(AmqpError("amqp:internal-error", "for a reason"))
    assert kinds(wire.engine) == ["DISPOSED", "ENDED"]
    while wire.engine.rest is not None:
        go_on(wire.engine)
    assert not wire.events() and len(session.outgoing) == 7


def test_who_does_not_go_on_takes_the_rest_at_once() -> None:
    wire, session, _ = sent()
    wire.raw(disposition(0, 9) + write("end"))
    expect(wire.engine, events.DISPOSED)
    [event] = take_rest(wire.engine)
    assert [delivery.id for delivery in event[2]] == [3, 4, 5, 6, 7, 8, 9] and not session.outgoing
    assert take_rest(wire.engine) == [] and not wire.events()
    go_on(wire.engine)
    expect(wire.engine, events.ENDED)


def test_a_peer_is_not_silent_while_nobody_listens() -> None:
    wire, _, _ = sent(idle_timeout=1.0)
    wire.engine.tick(100.0)
    wire.raw(disposition(0, 9) + write("end")[:5])
    for second in range(200):
        wire.engine.tick(101.0 + second)
    assert wire.engine.error is None
    while wire.engine.rest is not None:
        go_on(wire.engine)
    wire.engine.tick(400.0)
    wire.engine.tick(402.0)
    assert wire.engine.error is not None
