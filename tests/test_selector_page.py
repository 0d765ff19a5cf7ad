"""What docs/selectors.md says is so."""

from __future__ import annotations

import re

import pytest

from jmsish.broker.selectors import MOST_STRUCTURE
from jmsish.errors import InvalidSelectorError
from jmsish.selector import Selector
from jmsish.selector.like import PATTERN_LIMIT
from jmsish.selector.tokens import DEPTH_LIMIT, LENGTH_LIMIT
from tests.house.source import ROOT
from tests.house.test_pages import blocks, run

PAGE = ROOT / "docs/selectors.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = blocks(PAGE, "sql")[0].splitlines()


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_are_selectors(example: str) -> None:
    assert Selector(example).identifiers


def test_the_program_for_tests_runs() -> None:
    run(PAGE, ["import jmsish", blocks(PAGE)[1]])


def test_the_limits_are_those() -> None:
    found = [
        int(number.replace(",", ""))
        for number in re.findall(r"^\| ([0-9,]+) (?:characters|levels)", TEXT, re.MULTILINE)
    ]
    assert found == [LENGTH_LIMIT, DEPTH_LIMIT, MOST_STRUCTURE, PATTERN_LIMIT]


def test_the_error_is_that() -> None:
    shown = blocks(PAGE, "text")[0]
    with pytest.raises(InvalidSelectorError) as found:
        Selector("colour = AND weight > 10")
    assert shown == f"InvalidSelectorError: {found.value}\n"
