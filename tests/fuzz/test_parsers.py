"""A bounded piece of what ``python -m tests.fuzz parsers`` does, the same in every run; and what was found once."""

from __future__ import annotations

import pytest

from tests.fuzz.blind import corpus_of, feed, tried
from tests.fuzz.parsers import TARGETS

NUMBERS = {"websocket": 300, "url": 300, "management": 300}
"""Inputs of those that take long; of the others there are a thousand."""


@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_refuses_what_it_cannot_read(name: str) -> None:
    if name == "websocket":
        pytest.importorskip("wsproto")
    assert feed(name, NUMBERS.get(name, 1000)) == {}


@pytest.mark.parametrize("name", TARGETS)
def test_valid_input_is_read(name: str) -> None:
    if name == "websocket":
        pytest.importorskip("wsproto")
    assert [tried(TARGETS[name], octets) for octets in corpus_of(name)] == [None] * len(corpus_of(name))
