"""Every logger is in the table of docs/observability.md, and every one of that table is a logger."""

from __future__ import annotations

import re

from tests.house.source import ROOT, modules


def loggers() -> set[str]:
    """The names that the library's own loggers are got by (the command line looks at those of others)."""
    return {name for module in modules() if module.room != "cli" for name in module.facts.loggers}


def test_the_table_of_loggers_is_whole() -> None:
    page = (ROOT / "docs/observability.md").read_text(encoding="utf-8")
    table = page.partition("| logger |")[2].partition("\n\n")[0]
    assert loggers() == set(re.findall(r"^\| `(jmsish[.\w]*)`", table, re.MULTILINE))
