"""Failures by host: what counts as one host, how long one waits, and how much is remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.broker.slowing import FREE, LONGEST_DELAY, MEMORY, MOST_HELD, MOST_HOSTS, Slowing, crowd_of


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("10.0.0.1:5672", "10.0.0.1"),
        ("[::1]:5672", "::/64"),
        ("[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2::/64"),
        ("[::ffff:10.0.0.1]:1", "10.0.0.1"),
        ("[fe80::1%eth0]:1", "fe80::/64"),
        ("memory", "memory"),
        ("", ""),
    ],
)
def test_what_is_one_host(peer: str, host: str) -> None:
    assert crowd_of(peer) == host


def test_memory_is_bounded_and_the_oldest_are_forgotten() -> None:
    slowing = Slowing()
    for number in range(MOST_HOSTS + 50):
        slowing.judged(str(number), False, 1.0)
    assert len(slowing) == MOST_HOSTS
    for _ in range(FREE + 1):
        slowing.judged("5", False, 1.0)
    assert len(slowing) == MOST_HOSTS


def test_who_never_failed_is_not_remembered() -> None:
    slowing = Slowing()
    assert slowing.judged("h", True, 5.0) == 5.0 and len(slowing) == 0


def test_a_success_is_forgotten_once_its_answer_is_out() -> None:
    slowing = Slowing()
    for _ in range(FREE):
        slowing.judged("h", False, 0.0)
    assert slowing.judged("h", True, 0.0) > 0 and len(slowing) == 1
    assert slowing.judged("h", True, 100.0) == 100.0 and len(slowing) == 0


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 2 * MEMORY)), max_size=60))
def test_no_answer_is_early_or_later_than_the_longest_delay(attempts: list[tuple[bool, float]]) -> None:
    slowing, now, failures = Slowing(), 0.0, 0
    for passed, pause in attempts:
        now += pause
        crowded = slowing.is_crowded("h", now)
        due = slowing.judged("h", passed, now)
        assert now <= due <= now + LONGEST_DELAY
        assert not (crowded and failures < MOST_HELD)
        failures += not passed
