"""A bounded piece of what ``python -m tests.fuzz conversations`` does, the same in every run; and what it has found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.campaign import Campaign, replayed
from tests.fuzz.transcript import load, read, reduced, written

CORPUS = Path(__file__).parent / "corpus" / "conversations"


@pytest.mark.parametrize("seed", range(3), ids=["oversize ends the link", "no limit", "oversize ends the connection"])
def test_mutated_conversations_do_no_harm(seed: int) -> None:
    report = Campaign(seed).run(300)
    assert not report.finds
    assert report.conversations >= 300 and len(report.ended) > 4, "they end in many ways"


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.txt")), ids=lambda path: path.stem)
def test_what_was_found_once_is_found_no_more(path: Path) -> None:
    assert [replayed(load(path), variant) for variant in range(3)] == [None] * 3


def test_steps_are_written_and_read() -> None:
    steps = [("accept", 1, True), ("receive", 1, b"AMQP"), ("receive", 1, b""), ("take", 1), ("pass", 0.5), ("look",),
             ("eof", 1), ("sweep",)]  # fmt: skip
    assert read("# a comment\n" + written(steps)) == steps


def test_steps_are_made_fewer_as_long_as_they_fail() -> None:
    steps = [("take", number) for number in range(100)]
    small = reduced(steps, lambda fewer: {("take", 7), ("take", 60)} <= set(fewer))
    assert small == [("take", 7), ("take", 60)]
