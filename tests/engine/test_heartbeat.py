"""Idle time-outs, with time as an argument."""

from __future__ import annotations

import pytest

from jmsish.engine import events
from jmsish.engine.outcomes import AmqpError
from tests.engine.pair import Pair, Wire, expect
from tests.wire.frames import read, wrap


def test_half_of_the_timeout_is_advertised() -> None:
    wire = Wire(idle_timeout=3.0).open()
    [opened] = [frame for frame in wire.frames if frame.name == "open"]
    assert opened.idle_time_out == 1500


@pytest.mark.parametrize("timeout", [8_589_934.592, 1e10, 1e300])
def test_a_timeout_longer_than_an_open_can_say_is_told_as_the_longest(timeout: float) -> None:
    wire = Wire(idle_timeout=timeout).open()
    [opened] = [frame for frame in wire.frames if frame.name == "open"]
    assert opened.idle_time_out == (1 << 32) - 1


def test_no_timeouts_no_deadline() -> None:
    wire = Wire().open()
    assert wire.engine.tick(100.0) is None


def test_m43_empty_frames_keep_the_peer_content() -> None:
    wire = Wire().open(idle_time_out=10_000)
    now = 1000.0
    deadline = wire.engine.tick(now)
    assert deadline == now + 5.0
    assert wire.engine.tick(now + 4.9) == now + 5.0 and wire.read() == []
    deadline = wire.engine.tick(now + 5.0)
    assert [frame.name for frame in wire.read()] == ["empty"] and deadline == now + 10.0
    # Something was written: it counts from the tick before, which is the earliest it can have been.
    wire.begin()
    assert wire.engine.tick(now + 8.0) == now + 10.0
    assert wire.engine.tick(now + 9.0) == now + 10.0
    wire.engine.tick(now + 10.0)
    assert [frame.name for frame in wire.read()] == ["empty"]


@pytest.mark.parametrize("pace", [0.1, 1.0, 2.4, 4.9])
def test_never_more_than_the_timeout_between_two_writes(pace: float) -> None:
    wire = Wire().open(idle_time_out=10_000)
    now, last = 0.0, 0.0
    due = wire.engine.tick(now)
    assert due is not None
    for step in range(400):
        now = min(now + pace, due)
        due = wire.engine.tick(now)
        assert due is not None
        if step % 7 == 0:
            wire.engine.sessions.clear()
        if wire.read():
            assert now - last <= 10.0
            last = now
    assert last > now - 10.0


def test_a_silent_peer_is_given_up_and_told_why() -> None:
    wire = Wire(idle_timeout=4.0).open()
    assert wire.engine.tick(50.0) == 54.0
    wire.raw(wrap(b""))
    assert wire.engine.tick(53.0) == 57.0
    assert wire.engine.tick(56.9) == 57.0 and wire.events() == []
    assert wire.engine.tick(57.0) is None
    [close] = wire.read()
    assert close.name == "close" and close.condition == "amqp:resource-limit-exceeded"
    [(_, error)] = expect(wire.engine, events.FAILED)
    assert "local-idle-timeout expired" in error.description
    assert wire.engine.closed and wire.engine.error == error


def test_two_engines_keep_each_other_alive() -> None:
    pair = Pair(client={"idle_timeout": 2.0}, server={"idle_timeout": 3.0}).open()
    now = 0.0
    for _ in range(100):
        due = [engine.tick(now) for engine in (pair.client, pair.server)]
        pair.pump()
        now = min(moment for moment in due if moment is not None)
    assert now > 20.0 and pair.client.error is None and pair.server.error is None


def test_no_heartbeats_after_close() -> None:
    wire = Wire(idle_timeout=2.0).open(idle_time_out=1000)
    wire.engine.tick(0.0)
    wire.engine.close(AmqpError("amqp:connection:forced"))
    assert wire.engine.tick(100.0) is None
    assert [frame.name for frame in read(wire.engine.take_output())] == ["close"]


def test_a_peer_that_does_not_open_in_time_is_given_up() -> None:
    wire = Wire(opening_timeout=10.0)
    assert wire.engine.tick(100.0) == 110.0
    assert wire.engine.tick(109.9) == 110.0
    assert wire.engine.tick(110.0) is None
    ((kind, error),) = wire.events()
    assert kind == events.FAILED and error.condition == "amqp:connection:forced"
    assert wire.engine.tick(120.0) is None


def test_a_peer_that_opened_in_time_has_no_more_of_it() -> None:
    wire = Wire(opening_timeout=10.0)
    assert wire.engine.tick(100.0) == 110.0
    wire.open()
    assert wire.engine.tick(200.0) is None
