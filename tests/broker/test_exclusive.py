"""Exclusive queues and the priority of consumers: who is served, and who stands by."""

from __future__ import annotations

import pytest

from jmsish.broker.policy import QueueSettings
from tests.broker.taking import OneQueue


def test_consumers_of_higher_priority_are_served_first() -> None:
    place = OneQueue()
    low, high, middle = (place.taker(2, priority=number) for number in (-1, 7, 0))
    place.send(*"12345678")
    place.run()
    assert (high.bodies(), middle.bodies(), low.bodies()) == ("1 2", "3 4", "5 6")
    high.flow(1)
    low.flow(1)
    place.run()
    assert (high.bodies(), low.bodies()) == ("1 2 7", "5 6 8")


def test_equal_ones_take_turns() -> None:
    place = OneQueue()
    takers = [place.taker(10, priority=5) for _ in range(3)]
    place.taker(10)
    place.send(*"123456")
    place.run()
    assert [taker.bodies() for taker in takers] == ["1 4", "2 5", "3 6"]


def test_a_selector_leaves_the_rest_to_lower_priorities() -> None:
    place = OneQueue()
    red = place.taker(10, priority=5, selects=lambda payload, count: payload.startswith(b"red"))
    plain = place.taker(10)
    place.send("red1", "blue1", "red2")
    place.run()
    assert (red.bodies(), plain.bodies()) == ("red1 red2", "blue1")


@pytest.fixture
def place() -> OneQueue:
    return OneQueue(exclusive_consumer=True)


def test_the_first_that_came_has_all(place: OneQueue) -> None:
    first, second = place.taker(2), place.taker(10)
    place.send(*"123")
    place.run()
    assert (first.bodies(), second.bodies()) == ("1 2", "")
    first.accept("1", "2")
    first.flow(5)
    place.run()
    assert (first.bodies(), second.bodies()) == ("3", "")


def test_it_passes_on_close_to_the_next_that_came(place: OneQueue) -> None:
    first, second, third = (place.taker(2) for _ in range(3))
    first.leave()
    place.send(*"123")
    place.run()
    assert (second.bodies(), third.bodies()) == ("1 2", "")


def test_it_passes_when_all_is_settled(place: OneQueue) -> None:
    """What the one before holds precedes: the next gets nothing later meanwhile."""
    first, second = place.taker(3), place.taker(10)
    place.send(*"12345")
    place.run()
    first.leave()
    first.release("2")
    first.accept("3")
    place.run()
    assert second.bodies() == ""
    first.fail("1")
    place.run()
    assert second.bodies() == "1 2 4 5"


def test_it_passes_when_the_last_is_accepted(place: OneQueue) -> None:
    first, second = place.taker(1), place.taker(10)
    place.send(*"12")
    place.run()
    first.leave()
    place.run()
    first.accept("1")
    place.run()
    assert second.bodies() == "2"


def test_within_a_session_it_passes_at_once(place: OneQueue) -> None:
    session = object()
    first = place.taker(1, session=session)
    place.send(*"123")
    place.run()
    first.leave()
    assert place.taker(1, session=session).bodies() == "2"


def test_the_only_one_of_a_session_may_be_followed_by_another_later(place: OneQueue) -> None:
    """The queue remembers who held what, though nobody consumes from it for a while."""
    session = object()
    first = place.taker(1, session=session)
    place.send(*"123")
    place.run()
    first.leave()
    other = place.taker(10)
    assert other.bodies() == ""
    other.leave()
    assert place.taker(10, session=session).bodies() == "2 3"


def test_a_higher_priority_takes_over(place: OneQueue) -> None:
    first = place.taker(2)
    place.send(*"1234")
    place.run()
    high = place.taker(10, priority=3)
    assert (first.bodies(), high.bodies()) == ("1 2", "")
    first.flow(5)
    place.run()
    assert first.bodies() == "1 2", "it stands by"
    first.accept("1", "2")
    place.run()
    assert high.bodies() == "3 4"
    high.leave()
    high.accept("3", "4")
    place.send("5")
    place.run()
    assert first.bodies() == "5"


def test_a_drain_of_one_that_stands_by_is_answered(place: OneQueue) -> None:
    place.taker(0)
    place.send("1")
    second = place.taker()
    second.flow(5, drain=True)
    place.run()
    assert (second.bodies(), second.answers) == ("", 1)


def test_browsers_are_not_asked_to_stand_by(place: OneQueue) -> None:
    place.taker(0)
    place.send("1")
    assert place.taker(5, copies=True).shown == ["1"]


def test_a_queue_may_become_exclusive_and_cease_to_be() -> None:
    place = OneQueue()
    first, second = place.taker(10), place.taker(10)
    place.send(*"12")
    place.run()
    place.queue.change(QueueSettings(exclusive_consumer=True))
    place.send("3")
    place.run()
    assert (first.bodies(), second.bodies()) == ("1", "2"), "what was held before precedes"
    second.accept("2")
    first.accept("1")
    place.run()
    place.send("4")
    place.run()
    assert (first.bodies(), second.bodies()) == ("3 4", "")
    place.queue.change(QueueSettings())
    place.send(*"56")
    place.run()
    assert sorted((first.bodies(), second.bodies())) in (["3 4 5", "6"], ["3 4 6", "5"])


def test_a_queue_that_is_no_more_exclusive_waits_for_nobody(place: OneQueue) -> None:
    first, second = place.taker(1), place.taker(10)
    place.send(*"123")
    place.run()
    first.leave()
    place.run()
    assert second.bodies() == ""
    place.queue.change(QueueSettings())
    place.run()
    assert second.bodies() == "2 3"
