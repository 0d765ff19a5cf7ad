"""A very large message at an edge costs two routers next to nothing, whether its interior refuses it or takes it.

The whole gigabyte is sent by ``tests.stress.routers``: what costs nothing for so much does not for ten times as much.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT = 1 << 20
OCTETS = 100 << 20
BOUND = 8 << 20
"""Two windows of half a mebioctet, the buffers of sockets, and what an interpreter takes for its own heap."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


def grown(transport: str, limit: int, octets: int) -> tuple[int, int, str, str, int]:
    """By how much; and how many octets were sent, what was said of them, whether the connection was closed, and how
    many came through."""
    command = (sys.executable, "-m", "tests.network.memory", transport, str(limit), str(octets))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    octets_grown, sent, said, closed, arrived = done.stdout.split()
    return int(octets_grown), int(sent), said, closed, int(arrived)


@pytest.mark.parametrize("transport", ["vm", "tcp"])
def test_what_an_interior_refuses_costs_its_edge_nothing(transport: str) -> None:
    octets, sent, said, closed, arrived = grown(transport, LIMIT, OCTETS)
    assert said == "rejected" and closed == "False" and sent >= OCTETS
    assert arrived < 3 * LIMIT  # the copy on its way was aborted
    assert octets < BOUND, f"grew by {octets >> 10} kB over {sent >> 20} MB"


@pytest.mark.parametrize("transport", ["vm", "tcp"])
def test_what_goes_through_is_not_kept(transport: str) -> None:
    octets, sent, said, closed, arrived = grown(transport, 0, OCTETS)
    assert closed == "False" and arrived >= OCTETS
    assert octets < BOUND, f"grew by {octets >> 10} kB over {sent >> 20} MB"
