"""The drawing of lives: columns, lines, legend, pages, and what the collector keeps."""

from __future__ import annotations

import logging
import re

from jmsish.cli.demo.trace import LOGGER, TraceCollector, TraceEvent, columns, completed, draw, event_of


def lives(*steps: tuple[str, str] | tuple[str, str, int]) -> list[TraceEvent]:
    return [
        TraceEvent(time=index / 1000, event=step[0], message_id=step[1], count=step[2] if len(step) > 2 else 0)
        for index, step in enumerate(steps)
    ]


STORY = lives(
    ("sent", "m1"), ("sent", "m2"),
    ("prefetched", "m1", 1), ("prefetched", "m2", 1),
    ("handed_over", "m1", 1), ("enlisted", "m1", 1),
    ("rolled_back", "m1", 1), ("released", "m2"),
    ("prefetched", "m1", 2), ("prefetched", "m2", 1),
    ("handed_over", "m1", 2), ("enlisted", "m1", 2), ("committed", "m1", 2),
)  # fmt: skip


def test_events_of_one_stroke_share_a_column() -> None:
    assert columns(STORY) == [0, 0, 1, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9]
    assert columns(lives(("sent", "a"), ("sent", "a"))) == [0, 1]


def test_two_lives_with_a_rollback() -> None:
    picture = draw(STORY, {"m1": "order 1", "m2": "order 2"}, width=20).splitlines()
    assert picture[0].split() == ["0.0", "ms"]
    assert picture[1] == "order 1 │ s·p─1━e━X···p─2━e━C"
    assert picture[2] == "order 2 │ s·p───────r·p───────"
    legend = " ".join(picture[3:])
    assert "X rolled back, counted" in legend and "─── in a consumer's buffer" in legend


def test_plain_terminals_get_plain_signs() -> None:
    picture = draw(STORY, plain=True, width=20)
    assert picture.isascii()
    assert "m2 | s.p-------r.p-------" in picture


def test_a_short_story_is_drawn_at_a_wider_step() -> None:
    assert "m1 │ s··p──1━━e━━X·····p──2━━e━━C" in draw(STORY)


def test_colours_change_nothing_else() -> None:
    picture = draw(STORY, colour=True)
    assert "\x1b[31;1mX\x1b[0m" in picture
    assert re.sub(r"\x1b\[[0-9;]*m", "", picture) == draw(STORY)


def test_the_last_attempt_ends_as_a_dead_letter() -> None:
    told = completed(STORY, 1)
    assert [event.event for event in told if event.message_id == "m1"][4:6] == ["rolled_back", "dead_lettered"]
    assert completed(STORY, 2) == completed(STORY) == STORY


def test_a_cut_loses_all_that_was_held_and_is_an_attempt_for_what_was_in_hand() -> None:
    events = lives(
        ("prefetched", "m1"), ("prefetched", "m2"), ("prefetched", "m3"), ("released", "m3"), ("enlisted", "m1"),
        ("prefetched", "m1"), ("prefetched", "m3"),
    )  # fmt: skip
    told = [(event.event, event.message_id) for event in completed(events, 1)]
    assert told[5:] == [
        ("lost", "m1"), ("dead_lettered", "m1"), ("lost", "m2"), ("prefetched", "m1"), ("prefetched", "m3"),
    ]  # fmt: skip


def test_a_long_story_is_drawn_in_blocks() -> None:
    events = lives(*[("prefetched" if index % 2 else "released", "m1") for index in range(100)])
    picture = draw(events, width=45)
    assert picture.count("m1 │") == 3
    assert all(len(line) <= 45 for line in picture.splitlines() if "│" in line)


def test_an_event_nobody_knows_is_still_shown() -> None:
    assert "? archived" in draw(lives(("sent", "m1"), ("archived", "m1")))


def test_nothing_traced_is_said() -> None:
    assert draw([]) == "no events were traced"


def test_the_collector_keeps_the_first_messages_of_its_queue() -> None:
    collector = TraceCollector("orders", range(1, 2))
    logger = logging.getLogger(f"{LOGGER}.test")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(collector)
    try:
        logger.debug("", extra={"event": "sent", "queue": "queue://orders", "message_id": "m1"})
        logger.debug("", extra={"event": "sent", "queue": "results", "message_id": "m2"})
        logger.debug("", extra={"event": "sent", "queue": "orders", "message_id": "m3"})
        logger.debug(
            "", extra={"event": "handed_over", "queue": "orders", "message_id": "m1", "count": 2, "delivery_id": 5}
        )
        logger.debug("something else")
    finally:
        logger.removeHandler(collector)
    assert [(event.event, event.message_id) for event in collector.events] == [("sent", "m1"), ("handed_over", "m1")]
    assert collector.events[1].count == 2 and collector.events[1].delivery_id == 5


def test_the_collector_keeps_a_range() -> None:
    collector = TraceCollector("orders", range(2, 4))
    for number in range(1, 6):
        fields = {"event": "sent", "queue": "orders", "message_id": f"m{number}"}
        collector.emit(logging.makeLogRecord(fields))
    assert [event.message_id for event in collector.events] == ["m2", "m3"]


def test_other_records_are_no_events() -> None:
    assert event_of(logging.makeLogRecord({"msg": "hello"})) is None
