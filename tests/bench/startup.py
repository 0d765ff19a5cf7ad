"""How long it takes to begin: import, and from a broker's start to the first message received in process."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from statistics import median
from typing import Any

from tests.bench import report
from tests.bench.programs import ROOT, environment

FIRST_MESSAGE = """
import json, sys, time
import jmsish

def first_message():
    before = time.perf_counter()
    with jmsish.EmbeddedBroker() as broker:
        started = time.perf_counter()
        with jmsish.connect(broker.url) as connection:
            session = connection.create_session()
            queue = session.create_queue("first")
            session.create_producer(queue).send("message")
            assert session.create_consumer(queue).receive(timeout=5).body == "message"
            received = time.perf_counter()
    return started - before, received - before

print(json.dumps([first_message() for _ in range(int(sys.argv[1]))]))
"""
TIMED_IMPORT = """
import time
before, cpu = time.perf_counter(), time.process_time()
import {module}
print(time.perf_counter() - before, time.process_time() - cpu)
"""
HEAVIEST = 12


def python(code: str, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment(), cwd=ROOT, timeout=120)


def first_messages(repeat: int) -> dict[str, float]:
    """Milliseconds: the first time in a fresh interpreter, and later times in the same one."""
    runs = [json.loads(python(FIRST_MESSAGE, "10").stdout) for _ in range(repeat)]
    later = [run for each in runs for run in each[1:]]
    return {
        "broker started, first time": median(each[0][0] for each in runs) * 1e3,
        "first message received, first time": median(each[0][1] for each in runs) * 1e3,
        "broker started, later": median(run[0] for run in later) * 1e3,
        "first message received, later": median(run[1] for run in later) * 1e3,
    }


def imports(repeat: int) -> dict[str, float]:
    """Milliseconds of `import`, byte code cached, by the clock and of CPU: these differ on a busy machine."""
    modules = ("jmsish", "jmsish.aio", "jmsish.pytest_plugin", "asyncio", "ssl")

    figures = {}
    for module in modules:
        outputs = [python(TIMED_IMPORT.format(module=module)).stdout.split() for _ in range(repeat)]
        figures[f"import {module}"] = median(float(wall) for wall, _ in outputs) * 1e3
        figures[f"import {module}, CPU"] = median(float(cpu) for _, cpu in outputs) * 1e3
    return figures


def heaviest() -> list[tuple[str, int]]:
    """The modules whose own code takes most of `import jmsish`, in microseconds."""
    lines = python("import jmsish", options=("-X", "importtime")).stderr.splitlines()
    found = [re.match(r"import time:\s*(\d+) \|\s*\d+ \|\s*(\S+)", line) for line in lines]
    costs = [(match.group(2), int(match.group(1))) for match in found if match is not None]
    return sorted(costs, key=lambda each: -each[1])[:HEAVIEST]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeat", type=int, default=7, help="fresh interpreters, of which the median counts")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")


def run(options: argparse.Namespace) -> dict[str, Any]:
    print(f"{report.machine()}; medians of {options.repeat} fresh interpreters\n")
    python("import jmsish")  # writes the byte code
    figures = {**imports(options.repeat), **first_messages(options.repeat)}
    needed = {"import jmsish": 150.0, "first message received, first time": 10.0}

    def mark(name: str, value: float) -> str:
        return f"< {needed[name]:g} {'✓' if value < needed[name] else '✗'}" if name in needed else ""

    rows = [[name, report.figure(value), mark(name, value)] for name, value in figures.items()]
    print(report.table(["what", "ms", "needed"], rows))
    modules = heaviest()
    print()
    print(report.table(["own code of", "µs"], [[name, f"{cost:,}"] for name, cost in modules]))
    everything = {**figures, "modules": dict(modules)}
    report.write_json(options.json, everything)
    return everything
