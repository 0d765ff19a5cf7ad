"""Each example runs as its reader would run it: in a process of its own, ending with status 0."""

from __future__ import annotations

import os
import subprocess
import sys
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
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, env=environment)


def plugin_arguments() -> list[str]:
    """Loads the plugin by hand where the product is not installed but only on the path."""
    installed = any(point.value == "jmsish.pytest_plugin" for point in entry_points(group="pytest11"))
    return [] if installed else ["-p", "jmsish.pytest_plugin"]


def test_the_examples_are_there() -> None:
    assert len(SCRIPTS) == 12


@pytest.mark.parametrize("script", SCRIPTS)
def test_example_in_memory(script: str) -> None:
    done = run("-W", "error", str(EXAMPLES / script))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() and not done.stderr


@pytest.mark.parametrize("script", SCRIPTS)
def test_example_over_tcp(script: str) -> None:
    with jmsish.EmbeddedBroker() as broker:
        done = run("-W", "error", str(EXAMPLES / script), broker.listen().url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() and not done.stderr


def test_the_example_of_a_test() -> None:
    done = run("-m", "pytest", "-q", *plugin_arguments(), str(EXAMPLES / "test_with_fixtures.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
