"""Every logger is in the table of docs/observability.md, and every one of that table is a logger."""

from __future__ import annotations

import ast
import re

from tests.house.source import ROOT, modules


def loggers() -> set[str]:
    """The names that the library's own loggers are got by (the command line looks at those of others)."""
    return {
        call.args[0].value
        for module in modules()
        if module.room != "cli"
        for call in ast.walk(module.tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "getLogger"
        and isinstance(call.args[0], ast.Constant)
    }


def test_the_table_of_loggers_is_whole() -> None:
    page = (ROOT / "docs/observability.md").read_text(encoding="utf-8")
    table = page.partition("| logger |")[2].partition("\n\n")[0]
    assert loggers() == set(re.findall(r"^\| `(jmsish[.\w]*)`", table, re.MULTILINE))
