"""What a peer can have the log say as often as it likes is said so often, and then counted."""

from __future__ import annotations

import logging

import pytest

from jmsish.broker.told import MOST, WHILE, Told
from jmsish.engine.sasl import SaslClient
from tests.broker.world import World, in_transaction


def test_so_many_lines_in_a_while_and_the_next_one_says_how_many_had_none() -> None:
    told = Told()
    assert [told.more("login", 5.0) for _ in range(MOST + 7)] == [""] * MOST + [None] * 7
    assert told.more("login", 5.0 + WHILE - 1) is None
    assert told.more("login", 5.0 + WHILE) == " (8 more like this had no line)"
    assert told.more("login", 5.0 + WHILE) == ""


def test_each_kind_counts_by_itself() -> None:
    told = Told()
    for _ in range(MOST):
        told.more("login", 0.0)
    assert told.more("login", 0.0) is None and told.more("rollback", 0.0) == ""


def test_a_clock_that_is_set_back_silences_nothing() -> None:
    told = Told()
    for _ in range(MOST):
        told.more("login", 1000.0)
    assert told.more("login", 10.0) == ""


def lines(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in record.getMessage() for record in caplog.records)


def test_logins_that_are_refused_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "jmsish.broker")
    world = World({"users": {"alice": {"password": "secret"}}})
    for number in range(MOST + 50):
        wrong = SaslClient(("PLAIN",), username="alice", password="guess")
        world.connect(trusted=False, sasl=wrong, peer=f"10.0.{number // 250}.{number % 250}:5")
    assert lines(caplog, "a login from") == MOST
    world.advance(WHILE)
    world.connect(trusted=False, sasl=SaslClient(("PLAIN",), username="alice", password="guess"), peer="10.9.9.9:5")
    assert "(50 more like this had no line)" in caplog.records[-1].getMessage()


def test_connections_that_policy_denies_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "jmsish.broker")
    world = World({"vhosts": {"$default": {"max_connections": 0}}})
    for _ in range(MOST + 50):
        world.connect()
    assert lines(caplog, "is denied") == MOST


def test_work_that_is_undone_again_and_again_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "jmsish.broker")
    world = World()
    peer = world.connect()
    sender = peer.sender()
    for _ in range(MOST + 50):
        controller = peer.controller()
        sender.send("m", state=in_transaction(controller.declare()))
        controller.detach()
    assert lines(caplog, "is rolled back") == MOST
