"""What the brokers of the lab do.

`python -m tests.interop.lab [BROKER …]` asks each broker every row, and writes the table into docs/brokers.md. With
names of brokers only these are asked, with `--only ROW` one row, again for more; the other cells stay as they were. The
run fails, and writes nothing, where jmsish is at fault: what a broker does otherwise is what the table tells.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import traceback
from pathlib import Path
from time import monotonic

from tests.interop import fetch
from tests.interop.lab.rows import ROWS
from tests.interop.lab.servers import SERVERS, Server

PAGE = Path(__file__).resolve().parents[3] / "docs/brokers.md"
BEGIN, END = "<!-- begin: table of tests/interop/lab -->", "<!-- end of the lab's table -->"
NOT_ASKED = "–"


def ask(kind: type[Server], rows: list[str], faults: list[str]) -> dict[str, str]:
    """The cells of one broker."""
    cells = {}
    with tempfile.TemporaryDirectory(prefix="jmsish-lab-", ignore_cleanup_errors=True) as folder:
        with kind(Path(folder)) as server:
            for name in rows:
                began = monotonic()
                try:
                    cells[name] = ROWS[name][1](server)
                except Exception as error:
                    traceback.print_exc()
                    print(f"  {kind.title} said last: {server.last_words()}")
                    faults.append(f"{kind.title}, {name}: {type(error).__name__}: {error}")
                    cells[name] = f"failed: {type(error).__name__}"
                print(f"  {name:14} {cells[name]} ({monotonic() - began:.0f} s)", flush=True)
    return cells


Cells = dict[str, dict[str, str]]
"""By broker, then by row."""


def table(seen: Cells) -> str:
    lines = [f"| what | {' | '.join(seen)} |", "|---" * (len(seen) + 1) + "|"]
    for name, (words, _) in ROWS.items():
        cells = (each.get(name, NOT_ASKED).replace("|", r"\|") for each in seen.values())
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def read(text: str) -> Cells:
    """The cells of a table that stands there."""
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.strip().splitlines() if line.startswith("|")]
    if len(lines) < 3:
        return {}
    names = {words: name for name, (words, _) in ROWS.items()}
    titles = [title.strip() for title in lines[0][1:]]
    rows = {names[line[0].strip()]: line[1:] for line in lines[2:] if line[0].strip() in names}
    return {
        title: {name: cells[number].strip().replace(r"\|", "|") for name, cells in rows.items()}
        for number, title in enumerate(titles)
    }


def write(seen: Cells) -> None:
    """Into the page, where what was not asked this time stays as it was."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    known, _, after = rest.partition(END)
    cells = read(known)
    whole = {kind.title: {**cells.get(kind.title, {}), **seen.get(kind.title, {})} for kind in SERVERS.values()}
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(whole)}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.lab", description=__doc__)
    parser.add_argument("brokers", nargs="*", metavar="BROKER", help=f"{', '.join(SERVERS)} (default: all)")
    parser.add_argument("--only", action="append", metavar="ROW", choices=list(ROWS), help=", ".join(ROWS))
    arguments = parser.parse_args()
    unknown = set(arguments.brokers) - set(SERVERS)
    if unknown:
        parser.error(f"no such broker: {', '.join(sorted(unknown))}; there are {', '.join(SERVERS)}")
    seen: Cells = {}
    faults: list[str] = []
    for name in arguments.brokers or SERVERS:
        kind = SERVERS[name]
        print(f"== {kind.title}", flush=True)
        kind.fetch()
        seen[kind.title] = ask(kind, arguments.only or list(ROWS), faults)
    if not faults:
        write(seen)
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except fetch.Missing as missing:
        sys.exit(str(missing))
