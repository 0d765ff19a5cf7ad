"""Our client against Apache Artemis: scenarios 1 to 12 on both faces, and the demo.

What differs there by that broker's own choice is in docs/artemis.md.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.house.source import ROOT
from tests.interop.artemis_view import face_of
from tests.scenarios import test_a_seed
from tests.scenarios.face import Face

pytestmark = pytest.mark.interop

# The scenarios themselves, collected here a second time: in this folder `face` is a face whose broker is Artemis.
ONE_TO_TWELVE = re.compile(r"test_(seed_002|s0(0[1-9]|1[0-2])_)")
SCENARIOS = {name: value for name, value in vars(test_a_seed).items() if ONE_TO_TWELVE.match(name)}
globals().update(SCENARIOS)


@pytest.fixture(params=["sync", "aio"])
def face(request: pytest.FixtureRequest, artemis: str) -> Iterator[Face]:
    yield face_of(request.param, artemis)


def test_all_twelve_are_here() -> None:
    numbers = {name[6:9] for name in SCENARIOS if name.startswith("test_s0")}
    assert numbers == {f"{number:03}" for number in range(1, 13)}


def demo(url: str) -> tuple[dict[str, Any], str]:
    """The table of a run, and all that it printed."""
    command = [sys.executable, "-m", "jmsish", "demo", str(ROOT / "examples/data/orders.csv"), "--url", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=ROOT)
    table: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode == 0) == table["holds"]
    return table, done.stdout[-2000:] + done.stderr[-2000:]


def test_demo(artemis: str) -> None:
    """Nothing is lost, doubled or miscounted in any run. In about one of twenty Artemis is late to put back what was
    released before the credit for the next message (docs/artemis.md), and that run is out of order: not four in a row.
    """
    for _ in range(4):
        table, told = demo(artemis)
        assert table["lost"] == table["doubled"] == table["wrong_count"] == table["altered"] == 0, told
        assert table["sent"] == table["processed"] + table["dead_lettered"] > 0, told
        assert table["redelivered"] > 0, told
        if table["holds"]:
            return
    raise AssertionError(told)
