"""Each example runs as its reader would run it: in a process of its own, ending with status 0."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import jmsish

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("[0-9]*.py"))


def run(*command: str) -> subprocess.CompletedProcess[str]:
    # The tree under test is found also where the product is not installed.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = (sys.executable, *command)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, env=environment)


def in_memory(script: str) -> subprocess.CompletedProcess[str]:
    return run("-W", "error", str(EXAMPLES / script))


def over_tcp(script: str) -> subprocess.CompletedProcess[str]:
    with jmsish.EmbeddedBroker() as broker:
        return run("-W", "error", str(EXAMPLES / script), broker.listen().url)


Runs = dict[str, "Future[subprocess.CompletedProcess[str]]"]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """Those that tests are asked for, by the name of the test, three at a time: many wait seconds for more messages."""
    ways = {"test_example_in_memory": in_memory, "test_example_over_tcp": over_tcp}
    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    with ThreadPoolExecutor(3) as pool:
        yield {
            item.name: pool.submit(ways[item.originalname], item.callspec.params["script"])
            for item in tests
            if item.originalname in ways
        }


def ends_well(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() and not done.stderr


def plugin_arguments() -> list[str]:
    """Loads the plugin by hand where the product is not installed but only on the path."""
    installed = any(point.value == "jmsish.pytest_plugin" for point in entry_points(group="pytest11"))
    return [] if installed else ["-p", "jmsish.pytest_plugin"]


def test_the_examples_are_there() -> None:
    assert len(SCRIPTS) == 12


@pytest.mark.parametrize("script", SCRIPTS)
def test_example_in_memory(script: str, runs: Runs, request: pytest.FixtureRequest) -> None:
    ends_well(runs[request.node.name].result())


@pytest.mark.parametrize("script", SCRIPTS)
def test_example_over_tcp(script: str, runs: Runs, request: pytest.FixtureRequest) -> None:
    ends_well(runs[request.node.name].result())


def test_the_example_of_a_test() -> None:
    done = run("-m", "pytest", "-q", *plugin_arguments(), str(EXAMPLES / "test_with_fixtures.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
