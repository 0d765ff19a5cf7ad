"""Message groups: one consumer at a time, in order, and nothing later before what is earlier is settled."""

from __future__ import annotations

import pytest

from jmsish.broker import groups as module
from jmsish.broker.order import Entry
from jmsish.broker.queues import Arrival, History
from jmsish.engine.codec import AMQP_VALUE, ReceivedMessage, encode_message
from tests.broker.taking import OneQueue, Taker


@pytest.fixture
def place() -> OneQueue:
    return OneQueue()


def two(place: OneQueue, credit: int = 10, **options: object) -> tuple[Taker, Taker]:
    first = place.taker(credit, **options)
    second = place.taker(credit, **options)
    return first, second


def test_one_consumer_owns_a_group(place: OneQueue) -> None:
    first, second = two(place)
    place.send("a1", "a2", "a3", group="a")
    place.send("b1", "b2", group="b")
    place.send("m1", "m2")
    place.run()
    assert (first.bodies(), second.bodies()) == ("a1 a2 a3 m2", "b1 b2 m1")
    first.accept("a1", "a2", "a3")
    place.send("b3", group="b")
    place.send("a4", group="a")
    place.run()
    assert first.bodies() == "m2 a4" and second.bodies() == "b1 b2 m1 b3", "it owns it on when nothing is left of it"


def test_the_group_of_a_busy_consumer_waits(place: OneQueue) -> None:
    first, second = two(place, 1)
    place.send("a1", group="a")
    place.send("b1", group="b")
    place.run()
    place.send("a2", "a3", group="a")
    second.flow(10)
    place.run()
    assert second.bodies() == "b1", "it has credit, but the messages are not for it"
    first.flow(10)
    place.run()
    assert first.bodies() == "a1 a2 a3"


def test_messages_without_a_group_pass(place: OneQueue) -> None:
    first = place.taker(1)
    place.send("a1", "a2", group="a")
    place.send("m1")
    place.run()
    assert first.bodies() == "a1" and place.taker(5).bodies() == "m1"


def test_s160_a_closed_consumer(place: OneQueue) -> None:
    """160: what the closed one held comes to the next owner marked, before the later ones of the group."""
    first = place.taker(1)
    place.send("1", "2", group="ONE")
    place.send("3", group="TWO")
    place.send("4", group="ONE")
    place.run()
    second = place.taker(1)
    assert (first.bodies(), second.bodies()) == ("1", "3")
    first.leave()
    second.flow(10)
    place.run()
    assert second.bodies() == "3", "1 is unsettled yet: 2 and 4 wait"
    first.fail("1")
    place.run()
    assert second.bodies() == "3 1 2 4"
    assert [entry.past().count for entry in second.held] == [0, 1, 0, 0]


def test_rolled_back_messages_precede_later_ones(place: OneQueue) -> None:
    first = place.taker(3)
    second = place.taker()
    place.send(*"12345", group="a")
    place.run()
    second.flow(10)
    first.fail("3", "1", "2")
    place.run()
    assert second.bodies() == ""
    first.flow(10)
    place.run()
    assert first.bodies() == "1 2 3 4 5"


def test_ownership_passes_only_when_all_is_settled(place: OneQueue) -> None:
    first = place.taker(3)
    place.send(*"12345", group="a")
    place.run()
    second = place.taker(10)
    first.leave()
    first.release("2")
    first.accept("3")
    place.run()
    assert second.bodies() == ""
    first.accept("1")
    place.run()
    assert second.bodies() == "2 4 5"


def test_within_a_session_the_group_passes_at_once(place: OneQueue) -> None:
    """A session that closes a consumer with messages unacknowledged reads on with the next (testRedel7)."""
    session = object()
    first = place.taker(1, session=session)
    place.send(*"123", group="a")
    place.run()
    first.leave()
    other = place.taker(10)
    second = place.taker(1, session=session)
    assert (second.bodies(), other.bodies()) == ("2", "")
    second.leave()
    second.accept("2")
    place.run()
    assert other.bodies() == ""
    first.fail("1")
    place.run()
    assert other.bodies() == "1 3"


def test_a_negative_sequence_ends_the_group(place: OneQueue) -> None:
    first = place.taker(3)
    place.send("1", "2", group="a")
    place.send("3", group="a", last=True)
    place.send("4", group="a")
    place.run()
    second = place.taker(10)
    assert first.bodies() == "1 2 3" and second.bodies() == ""
    first.accept("1", "2")
    place.run()
    assert second.bodies() == ""
    first.accept("3")
    place.run()
    assert second.bodies() == "4"
    place.send("5", group="a")
    first.flow(10)
    place.run()
    assert second.bodies() == "4 5", "a new ownership"


def test_priority_counts_within_a_group(place: OneQueue) -> None:
    place.send("low", group="a")
    place.send("high", priority=9, group="a")
    place.send("none", priority=5)
    assert place.taker(5).bodies() == "high none low"


def test_s159_one_at_a_time() -> None:
    """159: an ordering group: with a window of one the second is not to be had before the first is settled."""
    place = OneQueue(group_window=1)
    taker = place.taker(10)
    place.send("m1", "m2", group="a")
    place.send("other")
    place.run()
    assert taker.bodies() == "m1 other"
    taker.fail("m1")
    place.run()
    assert taker.bodies() == "other m1"
    taker.accept("m1")
    place.run()
    assert taker.bodies() == "other m2"


def test_a_redelivery_delay_holds_the_group_and_nobody_else() -> None:
    """D10: later messages pass, except inside a group."""
    place = OneQueue(redelivery_delay=5.0)
    taker = place.taker(1)
    place.send("a1", "a2", group="a")
    place.send("m1", "m2")
    place.run()
    taker.fail("a1")
    taker.flow(10)
    place.run()
    assert taker.bodies() == "m1 m2"
    taker.fail("m1")
    place.home.advance(4)
    assert taker.bodies() == "m2"
    place.home.advance(1)
    assert taker.bodies() == "m2 a1 a2 m1"


def test_the_group_goes_on_when_what_was_delayed_expires() -> None:
    place = OneQueue(redelivery_delay=10.0)
    taker = place.taker(1)
    place.queue.add(Arrival(b"a1", 4, History(0, place.home.now() + 5), group=("a", False)))
    place.send("a2", group="a")
    place.run()
    taker.fail("a1")
    taker.flow(5)
    place.home.advance(4)
    assert taker.bodies() == ""
    place.home.advance(1)
    assert taker.bodies() == "a2" and place.home.gone == [b"a1"] and place.queue.expired_count == 1


def test_a_message_that_expires_does_not_hold_its_group(place: OneQueue) -> None:
    place.queue.add(Arrival(b"a1", 4, History(0, place.home.now() + 5), group=("a", False)))
    place.send("a2", group="a")
    place.home.advance(6)
    assert place.taker(5).bodies() == "a2"


def test_undeliverable_here_leaves_the_group(place: OneQueue) -> None:
    """The owner will not have it, so another may, and the group goes on."""
    first, second = place.taker(1), place.taker()
    place.send("a1", "a2", group="a")
    place.run()
    first.fail("a1", undeliverable=True)
    first.flow(5)
    second.flow(5)
    place.run()
    assert (first.bodies(), second.bodies()) == ("a2", "a1")


def test_groups_can_be_switched_off() -> None:
    place = OneQueue(message_groups=False)
    first, second = two(place)
    place.send("a1", "a2", "a3", group="a")
    place.run()
    assert (first.bodies(), second.bodies()) == ("a1 a3", "a2") and place.queue.groups is None


def test_a_property_may_name_the_group() -> None:
    """`group_key`: the group-id says nothing then, and a message without the property is in no group."""
    place = OneQueue(group_key="account")
    first, second = two(place)
    for body, properties in [
        ("a1", {"account": "a"}), ("b1", {"account": "b"}), ("a2", {"account": "a"}), ("m1", {"account": 7}), ("m2", {})
    ]:  # fmt: skip
        octets = encode_message(application_properties=properties, body=(AMQP_VALUE, body))
        place.queue.append(octets, 4)
    place.queue.add(Arrival(encode_message(body=(AMQP_VALUE, "m3")), 4, group=("a", False)))
    place.queue.append(b"no message at all", 4)
    place.run()
    assert [sorted(map(text_of, taker.held)) for taker in (first, second)] == [
        ["?", "a1", "a2", "m2"],
        ["b1", "m1", "m3"],
    ]
    assert place.queue.groups is not None and set(place.queue.groups.by_id) == {"a", "b"}


def text_of(entry: Entry) -> str:
    return "?" if entry.payload[0] else str(ReceivedMessage(entry.payload).body()[1])


def test_a_group_that_is_not_sticky_passes_when_nothing_of_it_is_held() -> None:
    place = OneQueue(sticky_groups=False)
    first, second = place.taker(1), place.taker(0)
    place.send("a1", "a2", group="a")
    place.run()
    second.flow(10)
    place.run()
    assert (first.bodies(), second.bodies()) == ("a1", "")
    first.accept("a1")
    place.run()
    assert (first.bodies(), second.bodies()) == ("", "a2")
    first.flow(10)
    place.send("a3", group="a")
    place.run()
    assert second.bodies() == "a2 a3", "now it is the second one's, as long as it holds something of it"


def test_browsers_see_messages_of_groups(place: OneQueue) -> None:
    place.send("m1")
    place.send("a1", "a2", group="a")
    place.send("m2")
    place.taker(2)
    assert place.taker(10, copies=True).shown == ["a2", "m2"]


def test_purge_and_drop_head_reach_messages_of_groups() -> None:
    place = OneQueue(overflow="drop-head", max_messages=2)
    place.send("a1", group="a")
    place.send("m1")
    place.send("a2", "a3", group="a")
    assert place.taker(10, copies=True).shown == ["a2", "a3"] and place.queue.dropped == 2
    assert place.queue.purge() == 2
    assert (place.queue.depth, place.queue.special) == (0, 0)
    place.send("a4", group="a")
    assert place.taker(5).bodies() == "a4"


def test_many_groups_and_many_messages_cost_no_search(place: OneQueue) -> None:
    """What waits for a busy consumer is not walked through for the others: by the number of places looked at."""
    busy = place.taker(1)
    place.send(*(f"a{number}" for number in range(5000)), group="a")
    place.run()
    looked = 0
    original = module.grouped_at

    def counting(*arguments: object) -> object:
        nonlocal looked
        looked += 1
        return original(*arguments)  # type: ignore[arg-type]

    module.grouped_at = counting  # type: ignore[assignment]
    try:
        other = place.taker()
        for number in range(100):
            place.send(f"b{number}", group=f"b{number % 10}")
            other.flow(1)
            place.run()
            other.accept(f"b{number}")
    finally:
        module.grouped_at = original
    assert looked < 1000 and busy.bodies() == "a0"


def test_idle_groups_are_forgotten_in_the_end(place: OneQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_IDLE", 100)
    taker = place.taker()
    for number in range(500):
        place.send(f"m{number}", group=f"g{number}")
        taker.flow(1)
        place.run()
        taker.accept(f"m{number}")
    assert place.queue.groups is not None
    assert len(place.queue.groups.by_id) == 100 and "g499" in place.queue.groups.by_id
    taker.leave()
    assert not place.queue.groups.by_id and not place.queue.groups.owned


def test_what_groups_note_stays_as_small_as_the_queue(place: OneQueue) -> None:
    red = place.taker(1000, selects=lambda payload, count: payload.startswith(b"red"))
    plain = place.taker()
    place.send("blue", group="a")
    for number in range(1000):
        place.send(f"red{number}", group="a")
        place.run()
        red.accept(f"red{number}")
    assert place.queue.groups is not None
    assert len(place.queue.groups.by_id["a"].pending) < 200
    assert sum(map(len, place.queue.groups._heads.values())) < 10
    assert plain.bodies() == ""


def test_a_selecting_consumer_owns_what_it_wants(place: OneQueue) -> None:
    """What it does not want does not hold up what it does."""
    red = place.taker(1, selects=lambda payload, count: payload.startswith(b"red"))
    place.send("blue1", "red1", "blue2", "red2", group="a")
    place.run()
    plain = place.taker(10)
    assert (red.bodies(), plain.bodies()) == ("red1", "")
    red.flow(10)
    place.run()
    assert red.bodies() == "red1 red2"
    red.leave()
    red.accept("red1", "red2")
    place.run()
    assert plain.bodies() == "blue1 blue2"


def test_a_selecting_consumer_gets_what_it_wanted_when_the_group_passes(place: OneQueue) -> None:
    first = place.taker(1)
    place.send("red1", "red2", "blue1", "red3", group="a")
    place.run()
    red = place.taker(10, selects=lambda payload, count: payload.startswith(b"red"))
    assert (first.bodies(), red.bodies()) == ("red1", "")
    first.leave()
    place.run()
    assert red.bodies() == ""
    first.release("red1")
    place.run()
    assert red.bodies() == "red1 red2 red3"


def test_a_selecting_consumer_with_a_window() -> None:
    place = OneQueue(group_window=1)
    red = place.taker(10, selects=lambda payload, count: payload.startswith(b"red"))
    place.send("red1", "blue", "red2", "red3", group="a")
    place.run()
    for number in (1, 2, 3):
        assert red.bodies() == f"red{number}"
        red.accept(f"red{number}")
        place.run()
    assert place.queue.available == 1


def test_a_drain_does_not_wait_for_the_groups_of_others(place: OneQueue) -> None:
    place.taker(1)
    place.send("a1", "a2", group="a")
    place.run()
    other = place.taker()
    other.flow(5, drain=True)
    place.run()
    assert (other.bodies(), other.answers) == ("", 1)


def test_the_next_one_wanted_is_found_when_the_first_expires_unseen(place: OneQueue) -> None:
    """The group is there for a selecting consumer again, but before it asks the first message it wants expires."""
    first = place.taker(1)
    place.send("m1", group="a")
    place.run()
    place.queue.add(Arrival(b"red1", 4, History(0, place.home.now() + 5), group=("a", False)))
    place.send("red2", group="a")
    red = place.taker(selects=lambda payload, count: payload.startswith(b"red"))
    red.flow(5, drain=True)
    place.run()
    first.leave()
    first.accept("m1")
    place.home.advance(6)
    red.flow(5)
    place.run()
    assert red.bodies() == "red2"


def test_nothing_is_kept_of_consumers_that_have_gone(place: OneQueue) -> None:
    sessions = [object() for _ in range(5)]
    place.send("stays", group="a")
    owner = place.taker(1)
    place.send(*(f"red{number}" for number in range(5)), group="a")
    for number, session in enumerate(sessions):
        red = place.taker(5, session=session, selects=lambda payload, count: payload.startswith(b"red"))
        plain = place.taker(1, session=session)
        place.send(f"m{number}", f"n{number}", group=f"g{number}")
        place.run()
        plain.leave()
        red.leave()
        plain.accept(f"m{number}")
        rest = place.taker(5)
        rest.accept(*rest.bodies().split())
        rest.leave()
    groups = place.queue.groups
    assert groups is not None and list(groups.owned) == [owner] and list(groups.by_id) == ["a"]
    assert groups.by_id["a"].skippers == [] and set(groups._heads) <= {owner, None}


def test_an_idle_group_that_its_owner_left_is_not_forgotten_twice(
    place: OneQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_IDLE", 2)
    for name in "abcdef":
        taker = place.taker(1)
        place.send(name, group=name)
        place.run()
        taker.accept(name)
        taker.leave()
    assert place.queue.groups is not None and not place.queue.groups.by_id


def test_a_group_with_messages_is_not_idle(place: OneQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was idle for long, and then it is not: its owner keeps it."""
    monkeypatch.setattr(module, "MOST_IDLE", 2)
    taker = place.taker(5)
    place.send("a1", group="a")
    place.run()
    taker.accept("a1")
    place.send("a2", group="a")
    for name in "bcd":
        place.send(name, group=name)
        place.run()
        taker.accept(name)
    other = place.taker(10)
    place.send("a3", group="a")
    place.run()
    assert (taker.bodies(), other.bodies()) == ("a2", "")


def test_what_a_selecting_consumer_had_to_leave_does_not_pile_up(place: OneQueue) -> None:
    """It waits, while the owner of the group is given hundreds of messages that it wants too."""
    owner = place.taker(1)
    red = place.taker(5, selects=lambda payload, count: payload.startswith(b"red"))
    place.send("a", group="a")
    place.run()
    assert owner.bodies() == "a"
    for number in range(500):
        place.send(f"red{number}", group="a")
        place.run()
        owner.flow(1)
        place.run()
        owner.accept(f"red{number}")
    assert red.search is not None and red.bodies() == ""
    assert sum(map(len, red.search._skipped.values())) < 200
