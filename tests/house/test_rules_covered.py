"""Every rule, fact and scenario has a test that is named after it; docs/rules.md says which have none, and why."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.house.source import ROOT, none

Reasons = dict[int, str]


def because(reason: str, *numbers: int) -> Reasons:
    return dict.fromkeys(numbers, reason)


DISTRIBUTED = "distributed transactions"
RESTART = "a store that survives"
UNUSED = "no such number"
FREEDOM = "a freedom of the provider"

RULES: Reasons = {**because(DISTRIBUTED, 73), **because(FREEDOM, 78, 80)}
"""Rules of Jakarta Messaging without a test."""

FACTS: Reasons = {}
"""Facts of the mapping without a test."""

SCENARIOS: Reasons = {
    **because(DISTRIBUTED, 38, 40, 41),
    **because(RESTART, 48),
    **because(UNUSED, 20, 28, 30, 36, 50, 52, 60, 66, 72, 75, 86, 93, 95, 109, 114, 147, 154, 168, 175, 178),
}
"""Scenarios of redelivery without a test."""

DEMANDS: Reasons = because(UNUSED, 7, 8, 9, *range(22, 30), 37, 38, 39, 49, *range(64, 70), *range(92, 100))
"""Demands of Part 4 without a test."""

KINDS = {
    "rule": (204, r"rule_(\d+(?:_(?:and_)?\d+)*)", RULES),
    "M": (114, r"m(\d{2,3})", FACTS),
    "scenario": (181, r"s(\d{3})", SCENARIOS),
    "T": (104, r"t(\d{3})", DEMANDS),
}
"""Of each kind: the last number, how a test is named after one, and those without a test."""


STRING = re.compile(r"(\"\"\"|''').*?\1", re.DOTALL)
TEST = re.compile(r"^(?: {4})?(?:async )?def (test_\w+)\(", re.MULTILINE)


@cache
def names() -> tuple[str, ...]:
    """The names of all tests, which are functions and methods at their usual place (to parse all takes seconds)."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    return tuple(name for text in texts for name in TEST.findall(STRING.sub("", text)))


def named(pattern: str) -> set[int]:
    """The numbers that tests are named after: `test_rule_063_064_…`, `test_rule_38_and_39_…`, `test_m57_m58_…`."""
    found = re.finditer(rf"(?<=_){pattern}(?=_|$)", "\n".join(names()), re.MULTILINE)
    return {int(number) for match in found for number in re.findall(r"\d+", match[1])}


@pytest.mark.parametrize("kind", KINDS)
def test_each_has_a_test_named_after_it(kind: str) -> None:
    last, pattern, exceptions = KINDS[kind]
    have = named(pattern)
    none(f"no test is named after {kind} {n}" for n in range(1, last + 1) if n not in have and n not in exceptions)


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_is_one(kind: str) -> None:
    """What has got a test is taken out of the exceptions, and of docs/rules.md; and no test names what there is not."""
    last, pattern, exceptions = KINDS[kind]
    have = named(pattern)
    none(f"{kind} {n} is an exception ({exceptions[n]}), and has a test" for n in sorted(have & set(exceptions)))
    none(f"a test is named after {kind} {n}, and the last is {last}" for n in sorted(have) if not 1 <= n <= last)


ROW = re.compile(r"^\| (rules|M|scenarios|T) ([\d, to]+) \| (.+) \|$", re.MULTILINE)


def told() -> dict[str, set[int]]:
    """What docs/rules.md says has no test: `| scenarios 45, 162 to 167 | why |`."""
    text = (ROOT / "docs/rules.md").read_text(encoding="utf-8").partition("## Without a test")[2]
    found: dict[str, set[int]] = {kind: set() for kind in KINDS}
    for kind, numbers, _ in ROW.findall(text):
        for part in numbers.split(", "):
            first, _, last = part.partition(" to ")
            found[kind.removesuffix("s")] |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_says_which_have_none(kind: str) -> None:
    assert told()[kind] == set(KINDS[kind][2])
