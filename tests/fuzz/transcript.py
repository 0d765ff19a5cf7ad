"""What was done to a broker, step by step, so that it can be done again; and how little of it is enough.

A step is a tuple: ``("accept", number, trusted)``, ``("receive", number, octets)``, ``("take", number)``,
``("eof", number)``, ``("pass", seconds)``, ``("look",)`` for a turn of the well-behaved client, ``("sweep",)`` for the
whole inspection. As text it is one step a line, octets in hexadecimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Step = tuple[Any, ...]


def written(steps: Sequence[Step]) -> str:
    """The steps as text."""
    lines = []
    for step in steps:
        lines.append(" ".join(part.hex() if isinstance(part, bytes) else str(part) for part in step))
    return "\n".join(lines) + "\n"


def read(text: str) -> list[Step]:
    """The steps of a text; lines that begin with # are for the reader."""
    steps: list[Step] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        verb, *parts = line.split()
        if verb == "receive":
            steps.append((verb, int(parts[0]), bytes.fromhex(parts[1]) if len(parts) > 1 else b""))
        elif verb == "accept":
            steps.append((verb, int(parts[0]), parts[1] == "True"))
        elif verb == "pass":
            steps.append((verb, float(parts[0])))
        else:
            steps.append((verb, *map(int, parts)))
    return steps


def load(path: Path) -> list[Step]:
    return read(path.read_text())


def reduced(steps: list[Step], fails: Callable[[list[Step]], bool], tries: int = 2000) -> list[Step]:
    """Fewer steps that fail as well: parts are left out, large ones first."""
    if not fails(steps):
        return steps
    size = len(steps) // 2
    while size and tries > 0:
        at = 0
        while at < len(steps) and tries > 0:
            fewer = steps[:at] + steps[at + size :]
            tries -= 1
            if fails(fewer):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps
