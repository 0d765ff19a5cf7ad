"""Numbers as tables."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def machine() -> str:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {os.cpu_count()} processors, load {load:.1f} at the start"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown that is a table for the eye too; all columns but the first stand to the right."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]

    def line(row: Sequence[str]) -> str:
        first, *rest = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]
        return f"| {' | '.join(cells)} |"

    lines = [line(row) for row in [heads, *rows]]
    rule = "|" + "|".join("-" * (width + 1) + (":" if i else "-") for i, width in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def figure(value: float) -> str:
    """Three digits that count, thousands apart."""
    if value >= 100:
        digits = max(0, len(f"{value:.0f}") - 3)
        return f"{round(value, -digits):,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(ratio: float) -> str:
    return f"{figure(ratio)}×"


def write_json(path: str | None, what: dict[str, Any]) -> None:
    if path is not None:
        Path(path).write_text(json.dumps(what, indent=1) + "\n")
