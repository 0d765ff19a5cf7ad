"""Consumers with a selector: each message is looked at once, in slices, and again only when it came back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from jmsish.broker.choosing import SLICE
from jmsish.broker.queues import Arrival, History
from tests.broker.taking import OneQueue, Taker


class Wanted:
    """A selector that wants what begins so, and counts what it was asked."""

    def __init__(self, beginning: str) -> None:
        self.beginning = beginning.encode()
        self.asked: Counter[bytes] = Counter()

    def __call__(self, payload: bytes, count: int) -> bool:
        self.asked[payload] += 1
        return payload.startswith(self.beginning)


@pytest.fixture
def place() -> OneQueue:
    return OneQueue()


def test_it_takes_what_it_wants_and_leaves_the_rest_in_order(place: OneQueue) -> None:
    place.send("red1", "blue1", "red2", "blue2")
    red = place.taker(10, selects=Wanted("red"))
    assert red.bodies() == "red1 red2"
    other = place.taker(10)
    assert other.bodies() == "blue1 blue2"


def test_what_waits_is_looked_at_once(place: OneQueue) -> None:
    wanted = Wanted("red")
    place.send(*(f"blue{number}" for number in range(500)))
    red = place.taker(10, selects=wanted)
    for number in range(20):
        place.send(f"red{number}", f"blue{500 + number}")
        place.run()
        red.accept(f"red{number}")
        red.flow(10)
        place.run()
    assert len(wanted.asked) == 540 and set(wanted.asked.values()) == {1}


def test_higher_priorities_come_first_whenever_they_came(place: OneQueue) -> None:
    place.send("red1", "blue")
    red = place.taker(1, selects=Wanted("red"))
    place.send("red2")
    place.send("red3", priority=9)
    place.send("red4", priority=0)
    red.flow(3)
    place.run()
    assert red.bodies() == "red1 red3 red2 red4"


def test_s173_put_back_behind_a_moved_cursor(place: OneQueue) -> None:
    """What comes back is offered again to each that wants it, before anything later."""
    place.send("blue1", "red1", "blue2", "red2", "red3")
    holder = place.taker(4)
    wanted = Wanted("red")
    red = place.taker(10, selects=wanted)
    assert holder.bodies() == "blue1 red1 blue2 red2" and red.bodies() == "red3"
    red.release("red3")
    red.credit = 0
    holder.release("red2", "blue1", "red1")
    red.flow(2)
    place.run()
    assert red.bodies() == "red1 red2"
    assert wanted.asked[b"blue1"] == 1 and wanted.asked[b"blue2"] == 0


def test_what_comes_back_alone_is_looked_at_alone(place: OneQueue) -> None:
    wanted = Wanted("red")
    place.send("red", *(f"blue{number}" for number in range(300)))
    red = place.taker(2, selects=wanted)
    for _ in range(10):
        red.fail("red")
        red.flow(2)
        place.run()
        assert red.bodies() == "red"
    assert max(count for payload, count in wanted.asked.items() if payload != b"red") == 1


def test_a_selector_on_the_delivery_count_sees_what_failed(place: OneQueue) -> None:
    """JMSXDeliveryCount is another after each failure, so the message is looked at again."""
    place.send("m1", "m2")
    again = place.taker(10, selects=lambda payload, count: count > 0)
    first = place.taker(2)
    assert (first.bodies(), again.bodies()) == ("m1 m2", "")
    first.fail("m2")
    first.release("m1")
    place.run()
    assert again.bodies() == "m2"


def test_the_count_of_the_header_is_one_that_selectors_see(place: OneQueue) -> None:
    place.queue.add(Arrival(b"m1", 4, History(3)))
    assert place.taker(1, selects=lambda payload, count: count == 3).bodies() == "m1"


def test_undeliverable_here_is_never_shown_here_again(place: OneQueue) -> None:
    place.send("red1", "red2")
    red, other = place.taker(2, selects=Wanted("red")), place.taker(selects=Wanted("red"))
    red.fail("red1", undeliverable=True)
    red.flow(5)
    place.run()
    assert red.bodies() == "red2"
    other.flow(5)
    place.run()
    assert other.bodies() == "red1"


def test_a_drain_is_answered_once_all_was_looked_at(place: OneQueue) -> None:
    place.send(*(f"blue{number}" for number in range(3 * SLICE)), "red")
    red = place.taker(selects=Wanted("red"))
    red.flow(5, drain=True)
    place.home.step()
    assert red.answers == 0 and place.home.unfinished, "not yet: there may be more"
    place.run()
    assert (red.bodies(), red.answers) == ("red", 1)
    red.flow(5, drain=True)
    place.run()
    assert red.answers == 2


def test_no_step_looks_at_more_than_a_slice(place: OneQueue) -> None:
    wanted = Wanted("red")
    place.send(*(f"blue{number}" for number in range(10 * SLICE)))
    red = place.taker(selects=wanted)
    plain = place.taker()
    red.flow(1)
    looked = []
    for number in range(5):
        plain.flow(1)
        place.home.step()
        assert plain.bodies().endswith(f"blue{number}"), "others are served between"
        looked.append(sum(wanted.asked.values()))
    assert looked == [SLICE * (number + 1) for number in range(5)]


def test_many_that_search_take_turns(place: OneQueue) -> None:
    place.send(*(f"blue{number}" for number in range(2 * SLICE)), "red", "green")
    red, green = Wanted("red"), Wanted("green")
    takers = [place.taker(selects=red), place.taker(selects=green)]
    for taker in takers:
        taker.flow(1)
    place.home.step()
    place.home.step()
    assert red.asked and green.asked
    place.run()
    assert [taker.bodies() for taker in takers] == ["red", "green"]


def test_a_browser_with_a_selector(place: OneQueue) -> None:
    place.send("red1", "blue", "red2")
    browser = place.taker(10, copies=True, selects=Wanted("red"))
    assert browser.shown == ["red1", "red2"]
    place.send("blue2", "red3")
    place.run()
    assert browser.shown == ["red1", "red2", "red3"] and place.queue.available == 5


def test_a_browser_searches_in_slices_and_then_says_that_it_is_done(place: OneQueue) -> None:
    place.send(*(f"blue{number}" for number in range(2 * SLICE + 1)), "red")
    browser = place.taker(copies=True, selects=Wanted("red"))
    browser.flow(10, drain=True)
    place.home.step()
    assert (browser.shown, browser.answers) == ([], 0)
    place.run()
    assert (browser.shown, browser.answers) == (["red"], 1)


def test_of_consumers_with_and_without_a_selector_each_has_its_turn(place: OneQueue) -> None:
    red, plain = place.taker(10, selects=Wanted("red")), place.taker(10)
    place.send("red1", "red2", "red3", "red4")
    place.run()
    assert (red.bodies(), plain.bodies()) == ("red1 red3", "red2 red4")


def test_one_that_has_gone_is_asked_nothing(place: OneQueue) -> None:
    wanted = Wanted("red")
    red = place.taker(5, selects=wanted)
    red.leave()
    place.send("red")
    place.run()
    assert not wanted.asked and place.queue.special == 0 and place.queue.available == 1


def test_what_it_notes_stays_as_small_as_the_queue(place: OneQueue) -> None:
    """A selecting consumer without credit, while others take and give back: its notes do not pile up."""
    place.send(*(f"blue{number}" for number in range(10)))
    idle = place.taker(1, selects=Wanted("red"))
    place.send("red")
    place.run()
    assert idle.bodies() == "red"
    plain = place.taker()
    for number in range(100):
        place.send(f"m{number}")
        plain.flow(11)
        place.run()
        plain.accept(f"m{number}")
        plain.release(*plain.bodies().split())
    assert idle.search is not None
    assert len(idle.search._again) < 200


@pytest.mark.parametrize("selects", [None, Wanted("m")])
def test_what_expires_while_it_is_looked_for_is_not_given(
    place: OneQueue, selects: Callable[[bytes, int], bool]
) -> None:
    place.queue.add(Arrival(b"m1", 4, History(0, place.home.now() + 1)))
    place.send("m2")
    place.home.time += 2
    taker = place.taker(5, selects=selects)
    assert taker.bodies() == "m2" and place.home.gone == [b"m1"]


def test_those_that_wait_are_left_alone_when_nothing_is_there(place: OneQueue) -> None:
    """However many they are: what passes through one of them is no affair of the others."""
    tried: list[int] = []

    class Watched(Taker):
        def can_take(self) -> bool:
            tried.append(self.id)
            return super().can_take()

    takers = [Watched(place.queue, 1000, selects=selects) for selects in (Wanted("red"), *[None] * 100)]
    place.run()
    tried.clear()
    for number in range(50):
        place.send(f"m{number}")
        place.run()
    assert sum(len(taker.held) for taker in takers) == 50 and len(tried) < 300
