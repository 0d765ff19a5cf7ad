"""The order of what is given back, without socket, thread or clock (scenarios A to E; the faces run all of it)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.client.session import ClientSession
from jmsish.modes import AcknowledgeMode

from .rig import Rig

TRANSACTED, CLIENT, AUTO = AcknowledgeMode.TRANSACTED, AcknowledgeMode.CLIENT, AcknowledgeMode.AUTO


def stage(count: int, mode: AcknowledgeMode = TRANSACTED, **options: Any) -> tuple[Rig, ClientSession]:
    rig = Rig()
    rig.send(*[f"m{number}" for number in range(1, count + 1)])
    return rig, rig.session(rig.connect(**options), mode)


def take(rig: Rig, consumer: Any, count: int) -> list[str | None]:
    return [rig.receive(consumer) for _ in range(count)]


def depth(rig: Rig) -> int:
    return int(rig.broker.queue("q").depth)


@pytest.mark.parametrize("policy", ["auto", "always"])
def test_the_founding_example(policy: str) -> None:
    rig, session = stage(3, cancel_on_commit=policy)
    first = rig.consumer(session)
    assert take(rig, first, 1) == ["m1"]
    rig.run(session.commit())
    second = rig.consumer(session)
    assert take(rig, second, 3) == ["m2", "m3", None]
    rig.run(session.commit())
    assert rig.receive(first) is None and depth(rig) == 0


def test_rollback_gives_back_in_order_and_counts_only_what_was_received() -> None:
    rig, session = stage(5)
    consumer = rig.consumer(session)
    assert take(rig, consumer, 2) == ["m1", "m2"]
    rig.run(session.rollback())
    assert take(rig, consumer, 6) == ["m1*2", "m2*2", "m3", "m4", "m5", None]
    rig.run(session.commit())
    assert depth(rig) == 0


@pytest.mark.parametrize("closed", ["before", "after", "not"])
def test_rollback_and_a_consumer_that_closes(closed: str) -> None:
    rig, session = stage(3)
    consumer = rig.consumer(session)
    assert take(rig, consumer, 1) == ["m1"]
    if closed == "before":
        rig.run(consumer.close())
    rig.run(session.rollback())
    if closed == "after":
        rig.run(consumer.close())
    reader = consumer if closed == "not" else rig.consumer(session)
    assert take(rig, reader, 4) == ["m1*2", "m2", "m3", None]


@pytest.mark.parametrize("closed", [True, False])
def test_recover(closed: bool) -> None:
    rig, session = stage(3, CLIENT)
    consumer = rig.consumer(session)
    assert take(rig, consumer, 1) == ["m1"]
    if closed:
        rig.run(consumer.close())
    rig.run(session.recover())
    reader = rig.consumer(session) if closed else consumer
    assert take(rig, reader, 4) == ["m1*2", "m2", "m3", None]


def test_closing_a_consumer_is_no_recover() -> None:
    rig, session = stage(3, CLIENT)
    consumer = rig.consumer(session)
    assert take(rig, consumer, 1) == ["m1"]
    rig.run(consumer.close())
    assert take(rig, rig.consumer(session), 3) == ["m2", "m3", None]
    assert depth(rig) == 3


def test_two_consumers_of_one_session_share_a_queue() -> None:
    """Whoever asks gets the next one, whatever its sibling has prefetched; a rollback starts from the first."""
    rig = Rig()
    session = rig.session(rig.connect())
    first, second = rig.consumer(session), rig.consumer(session)
    rig.send("m1", "m2", "m3", "m4")
    assert [rig.receive(first), rig.receive(second), rig.receive(first)] == ["m1", "m2", "m3"]
    rig.run(session.rollback())
    assert take(rig, second, 5) == ["m1*2", "m2*2", "m3*2", "m4", None]


def test_a_consumer_alone_again_takes_its_whole_window() -> None:
    rig = Rig()
    session = rig.session(rig.connect(), AUTO)
    first, second = rig.consumer(session, prefetch=4), rig.consumer(session, prefetch=4)
    rig.send(*"abcdefgh")
    assert not first.buffer and not second.buffer, "with a sibling there, credit is on demand"
    rig.run(second.close())
    rig.pump()
    assert len(first.buffer) == 4


def test_the_window_on_demand_grows_while_it_is_read_empty_and_shrinks_when_it_is_not() -> None:
    rig = Rig()
    session = rig.session(rig.connect(), AUTO)
    first, second = rig.consumer(session, prefetch=100), rig.consumer(session, prefetch=100)
    rig.send(*[f"m{number}" for number in range(40)])
    assert take(rig, first, 15) == [f"m{number}" for number in range(15)]
    assert first.window >= 8
    assert take(rig, first, 1) == ["m15"]
    assert first.buffer, "some are read ahead now"
    assert rig.receive(second) == "m16"
    assert first.window == 1
    assert take(rig, first, 2) == ["m17", "m18"]


@pytest.mark.parametrize("end", ["session", "connection"])
def test_closing_gives_back_the_read_counted_and_the_unread_not(end: str) -> None:
    rig, session = stage(5)
    assert take(rig, rig.consumer(session), 2) == ["m1", "m2"]
    rig.run((session if end == "session" else session.connection).close())
    again = rig.session(rig.connect())
    assert take(rig, rig.consumer(again), 6) == ["m1*2", "m2*2", "m3", "m4", "m5", None]


def test_prefetch_is_really_held() -> None:
    rig, session = stage(6, AUTO)
    assert take(rig, rig.consumer(session, prefetch=3), 1) == ["m1"]
    assert rig.receive(rig.consumer(rig.session(rig.connect(), AUTO))) == "m5"


def test_without_prefetch_nothing_is_held() -> None:
    rig, session = stage(3)
    consumer = rig.consumer(session, prefetch=0)
    assert take(rig, consumer, 2) == ["m1", "m2"]
    assert rig.broker.queue("q").available == 1
    rig.run(session.rollback())
    assert take(rig, consumer, 4) == ["m1*2", "m2*2", "m3", None]
