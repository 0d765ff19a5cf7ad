"""The section ``[limits]``: what one connection may cost the broker, and each refusal at the smallest scope."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.config import BrokerConfig, ConfigurationError
from jmsish.broker.config.caps import Caps
from jmsish.engine.outcomes import ACCEPTED, Declare, Rejected, Source, Target
from jmsish.engine.sasl import SaslClient
from tests.broker.world import End, World

LIMIT = "amqp:resource-limit-exceeded"


def world(**limits: Any) -> World:
    return World({"limits": limits})


# Reading the section.


def test_every_key_of_the_section() -> None:
    keys = {
        "handshake_timeout": 1.5, "opening_timeout": 2.5, "frame_timeout": 3.5, "idle_timeout": 4.5,
        "stall_timeout": 5.5,
        "max_opening": 6, "max_opening_per_host": 7, "max_links": 8, "max_unsettled": 9, "max_transactions": 10,
        "max_frame_size": 1024, "max_sessions": 12, "max_name_length": 99,
        "max_unfinished": 13,
    }  # fmt: skip
    caps = BrokerConfig.from_mapping({"limits": keys}).caps
    assert caps == Caps(**keys)
    assert set(keys) == set(Caps.__slots__)
    assert BrokerConfig.from_mapping({}).caps == Caps()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("max_frame_size", 511, "a whole number from 512 to 4294967295"),
        ("max_sessions", 0, "a whole number from 1 to 65536"),
        ("max_name_length", 5, "a whole number, 64 or more"),
        ("max_links", -1, "a whole number, 0 or more"),
        ("opening_timeout", "soon", "seconds, 0 or more"),
        ("stall_timeout", True, "seconds, 0 or more"),
        ("max_openings", 5, "did you mean 'max_opening'"),
    ],
)
def test_what_is_wrong_in_the_section(key: str, value: object, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        BrokerConfig.from_mapping({"limits": {key: value}})


# Times.


def test_who_does_not_open_in_time_is_turned_away() -> None:
    clock = world(opening_timeout=3)
    connection = clock.broker.accept(trusted=False)
    assert connection.tick(100.0) == 103.0
    connection.receive(b"AMQP\x03\x01\x00\x00")
    assert connection.tick(102.9) == 103.0 and not connection.closed
    connection.tick(103.0)
    connection.take_output()
    assert connection.closed and "within 3 s" in str(connection.engine.error)


def test_a_time_of_zero_is_no_limit() -> None:
    connection = world(opening_timeout=0, frame_timeout=0, idle_timeout=0).broker.accept(trusted=False)
    connection.receive(b"AMQP")
    assert connection.tick(100.0) is None and connection.tick(1e9) is None


def test_a_begun_frame_has_its_time() -> None:
    clock = world(frame_timeout=5, idle_timeout=0)
    peer = clock.connect()
    peer.connection.receive(b"\x00\x00\x10\x00\x02")
    clock.advance(0)
    clock.advance(5)
    [error] = peer.closed
    assert error is not None and error.condition == LIMIT and "did not come whole within 5 s" in str(error)


def test_the_idle_time_is_told_by_half() -> None:
    peer = world(idle_timeout=30).connect()
    assert peer.engine.remote is not None and peer.engine.remote.idle_time_out == 15_000


# Sizes.


def test_the_frame_size_and_the_number_of_sessions_are_told() -> None:
    peer = world(max_frame_size=4096, max_sessions=10).connect()
    remote = peer.engine.remote
    assert remote is not None and (remote.max_frame_size, remote.channel_max) == (4096, 9)


def test_a_link_too_many_is_refused_and_the_others_work() -> None:
    clock = world(max_links=2)
    peer = clock.connect()
    first, second = peer.sender("a"), peer.sender("b")
    third = peer.sender("c")
    assert third.detached and third.error is not None and third.error.condition == LIMIT
    assert "a connection has at most 2 links" in str(third.error) and not first.detached
    assert clock.broker.denials.links_denied == 1
    assert first.send("m") == [[ACCEPTED]]
    third.detach()
    second.detach()
    assert not peer.sender("d").detached and peer.closed == [] and peer.failed == []


def test_who_attaches_on_and_on_and_detaches_nothing_is_closed() -> None:
    """Twice as many as are allowed, the refused ones with them."""
    clock = world(max_links=5)
    peer = clock.connect()
    for _ in range(11):
        if not peer.closed:
            peer.sender("q")
    [error] = peer.closed
    assert error is not None and error.condition == LIMIT and "more than 10 links" in str(error)


def test_a_long_name_of_a_link() -> None:
    clock = world(max_name_length=64)
    peer = clock.connect()
    for name, said in (("n" * 64, None), ("ü" * 33, "66 octets, and at most 64")):
        peer.session.sender(name, source=Source(), target=Target(address="q"), context=(end := End(peer)))
        clock.run()
        assert end.detached is (said is not None)
        if said is not None:
            assert end.error is not None and end.error.condition == "amqp:invalid-field" and said in str(end.error)


def test_a_session_that_settles_nothing_gets_so_much_and_no_more() -> None:
    """It hears of the rest when it settles; a drain is answered, for who settles after it would wait for ever."""
    clock = world(max_unsettled=5)
    peer = clock.connect()
    peer.sender("q").send(*map(str, range(12)))
    receiver = peer.receiver("q", credit=1000)
    held = receiver.take()
    assert len(held) == 5 and clock.depth() == (7, 5)
    receiver.accept(held[:2])
    held = held[2:] + receiver.take()
    assert len(held) == 5 and clock.depth() == (5, 5)
    other = clock.connect().receiver("q", credit=3)
    assert len(other.take()) == 3
    receiver.link.flow(10, drain=True)
    clock.run()
    assert receiver.link.credit == 0 and receiver.take() == []
    receiver.accept(held)
    receiver.flow(1000)
    assert len(receiver.take()) == 2


def test_what_is_settled_on_its_way_is_not_counted() -> None:
    clock = world(max_unsettled=2)
    peer = clock.connect()
    peer.sender("q").send(*map(str, range(12)))
    receiver = peer.receiver("q", credit=100, snd_settle_mode=1)
    assert len(receiver.arrived) == 12


def test_a_transaction_too_many_is_not_declared() -> None:
    clock = world(max_transactions=2)
    peer = clock.connect()
    controller = peer.controller()
    one, two = controller.declare(), controller.declare()
    [refused] = controller.command(Declare())
    assert isinstance(refused, Rejected) and refused.error is not None and refused.error.condition == LIMIT
    assert controller.commit(one) is None
    assert controller.declare() not in (one, two)


# Before there is a name.


def test_a_flood_of_frames_before_sasl_is_done_is_not_read() -> None:
    """What is pipelined behind a refused exchange means nothing."""
    clock = World({"users": {"alice": {"password": "secret"}}})
    peer = clock.connect(trusted=False, sasl=SaslClient(username="alice", password="wrong"))
    assert peer.failed and not clock.broker.connections()


def test_an_open_larger_than_512_octets_is_no_open() -> None:
    connection = clock_connection()
    connection.receive(b"AMQP\x00\x01\x00\x00" + (4096).to_bytes(4, "big"))
    connection.take_output()
    assert connection.closed and "before open, where 512 are the most" in str(connection.engine.error)


def clock_connection() -> Any:
    return World().broker.accept(trusted=True)
