"""The rules would notice: the reader of imports, cycles, sizes and sleeps on a small tree of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.source import Module, cycles, edges, sleeps


@pytest.fixture
def tree(tmp_path: Path) -> dict[str, Module]:
    files = {
        "jmsish/__init__.py": "",
        "jmsish/a.py": "from jmsish.b import thing\n",
        "jmsish/b.py": "from .c import other as another\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from jmsish import a\n",
        "jmsish/c.py": "def late():\n    from . import a\n",
        "jmsish/d.py": "import asyncio, time\nasync def f():\n    await asyncio.sleep(0)\n    time.sleep(0.1)\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    every = [Module(path, tmp_path) for path in sorted(tmp_path.rglob("*.py"))]
    return {module.name: module for module in every}


def test_relative_absolute_and_late_imports_make_edges(tree: dict[str, Module]) -> None:
    graph = edges(list(tree.values()))
    assert {name: sorted(targets) for name, targets in graph.items()} == {
        "jmsish": [],
        "jmsish.a": ["jmsish.b"],
        "jmsish.b": ["jmsish.c"],
        "jmsish.c": ["jmsish.a"],
        "jmsish.d": [],
    }
    assert [item.late for item in tree["jmsish.c"].imports] == [True]


def test_a_cycle_is_found(tree: dict[str, Module]) -> None:
    assert cycles(edges(list(tree.values()))) == [["jmsish.a", "jmsish.b", "jmsish.c"]]


def test_what_is_only_for_the_type_checker_makes_no_cycle(tree: dict[str, Module]) -> None:
    del tree["jmsish.c"]
    assert cycles(edges(list(tree.values()))) == []


def test_a_sleep_is_found_and_a_yield_to_the_loop_is_none(tree: dict[str, Module]) -> None:
    assert list(sleeps(tree["jmsish.d"])) == [4]


def test_functions_are_measured(tree: dict[str, Module]) -> None:
    assert [(each.name, each.lines) for each in tree["jmsish.d"].facts.functions] == [("f", 3)]
