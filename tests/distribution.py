"""How the tests are shared out among several processes (``-n auto --dist loadgroup``): file by file, long ones first.

Left to itself pytest-xdist hands out one test at a time: a process asks for each of sixteen thousand and waits for the
answer, and the longest may begin when all others have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling

LONG = (
    "tests/property/",
    "tests/bench/",
    "tests/test_examples.py",
    "tests/broker/test_let_go.py",
    "tests/cli/test_collector.py",
    "tests/test_let_go.py",
    "tests/test_message_size_memory.py",
    "tests/test_streaming_memory.py",
    "tests/network/test_link_route_machine.py",
    "tests/network/test_memory.py",
    "tests/scenarios/test_j_",
)
"""Where few tests take seconds each; all else begins in the order of how many tests there are in a file."""


class Places(list[str]):
    """The tests as a process knows them, by number."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._numbers = {name: number for number, name in enumerate(self)}

    def index(self, name: str, *_: Any) -> int:
        return self._numbers[name]


class FileByFile(LoadGroupScheduling):
    """One piece of work is a file, or a group of tests that belong together."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = True
        super().__init__(config, log)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Places(collection)

    def schedule(self) -> None:
        first = self.collection is None
        super().schedule()
        if first:
            for scope in [scope for scope in self.workqueue if scope.startswith(LONG)]:
                self.workqueue.move_to_end(scope, last=False)

    def _split_scope(self, nodeid: str) -> str:
        return str(super()._split_scope(nodeid)).partition("::")[0]

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        for done in [scope for scope, tests in workload.items() if all(tests.values())]:
            del workload[done]
        return int(super()._pending_of(workload))
