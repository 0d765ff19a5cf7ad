"""`tox -e house`: the measures of the house, to be compared with those of the houses it learned from."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.house.source import ROOT, Module, cycles, edges, modules, sleeps  # noqa: E402


def quantile(values: list[int], part: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def shape(title: str, every: list[Module]) -> None:
    functions = [
        (function.lines, f"{module.place}:{function.line} {function.name}")
        for module in every
        for function in module.facts.functions
    ]
    if not every or not functions:
        return
    lengths = [length for length, _ in functions]
    largest = max(every, key=lambda module: module.lines)
    total = sum(module.lines for module in every)
    print(f"{title}: {len(every)} files, {total:,} lines, {len(functions):,} functions")
    print(f"  largest file        {largest.lines:>5}  {largest.place}")
    for length, where in sorted(functions)[:-6:-1]:
        print(f"  longest functions   {length:>5}  {where}")
    print(f"  function length     median {statistics.median(lengths):g}, 90th percentile {quantile(lengths, 0.9)}")


def main() -> int:
    package, tests = modules(), modules(ROOT / "tests")
    shape("jmsish", package)
    shape("tests", tests)
    print("rooms: " + ", ".join(f"{room} {lines:,}" for room, lines in rooms(package).items()))
    found = cycles(edges(package))
    print(f"import cycles         {len(found)}" + "".join(f"\n  {' -> '.join(cycle)}" for cycle in found))
    sleeping = [f"{module.place}:{line}" for module in tests for line in sleeps(module)]
    print(f"sleeps in tests       {len(sleeping)}" + "".join(f"\n  {place}" for place in sleeping))
    return 1 if found else 0


def rooms(package: list[Module]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for module in package:
        sizes[module.room] = sizes.get(module.room, 0) + module.lines
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


if __name__ == "__main__":
    sys.exit(main())
