"""The tables for those who come from Java: complete on their side, true on ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jmsish
from tests.house.source import ROOT

PAGE = (ROOT / "docs/from-java.md").read_text(encoding="utf-8")
TABLES = PAGE.partition("## Every interface and method")[2]
PRESENT, _, ABSENT = TABLES.partition("## What is not there")


def of_java() -> dict[str, list[str]]:
    """The interfaces and classes of package jakarta.jms, each with its methods and constants."""
    lines = Path(__file__).with_name("jakarta-jms-3.1.txt").read_text(encoding="utf-8").splitlines()
    return {words[0]: words[1:] for words in (line.split() for line in lines if not line.startswith("#"))}


def sections() -> dict[str, list[list[str]]]:
    """The rows of each table, by its heading."""
    found = {}
    for part in PRESENT.split("\n### ")[1:]:
        heading, _, body = part.partition("\n")
        rows = [re.split(r"\s*\|\s*", line)[1:-1] for line in body.splitlines() if line.startswith("| `")]
        found[heading] = rows
    return found


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


SECTIONS = sections()
ABSENT_NAMES = {name for line in ABSENT.splitlines() if line.startswith("| `") for name in quoted(line.split(" | ")[0])}


@pytest.mark.parametrize("name", sorted(of_java()))
def test_every_interface_and_method_of_jakarta_is_in_a_table(name: str) -> None:
    methods = set(of_java()[name])
    if name in ABSENT_NAMES:
        return
    if name.endswith("Exception"):
        named = {quote for row in SECTIONS["Exceptions"] for quote in quoted(row[0])}
        assert {name} | methods <= named
        return
    (heading,) = [heading for heading in SECTIONS if name in heading.split(", ")]
    named = {quote.removeprefix(f"{name}.") for row in SECTIONS[heading] for quote in quoted(row[0])}
    assert methods <= named, f"{name}: {sorted(methods - named)} in no table"


@pytest.mark.parametrize("name", sorted({n for rows in SECTIONS.values() for row in rows for n in quoted(row[1])}))
def test_every_name_of_jmsish_in_a_table_is_there(name: str) -> None:
    owner, _, member = name.partition(".")
    thing = getattr(jmsish, owner)
    if member:
        # What an error tells is there on an error only.
        assert hasattr(thing("x") if thing is jmsish.JMSError else thing, member)


def test_no_row_says_nothing() -> None:
    rows = [row for table in SECTIONS.values() for row in table]
    assert len(rows) > 150
    assert [row[0] for row in rows if row[1] == "–" and not row[2]] == []
