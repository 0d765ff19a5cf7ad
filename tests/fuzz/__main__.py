"""``python -m tests.fuzz``: the fuzzers, for longer than a test may take.

``conversations`` plays mutated conversations with a broker in memory, ``sockets`` some over TCP, ``brokers`` lets our
client meet mutated answers, ``parsers`` feeds octets to one parser after the other (``guided.py`` does so by atheris),
``replay`` does again what a find has written down. A find is told at once, made small, and written into ``--finds``;
the status is 1 then.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import traceback
from pathlib import Path
from time import monotonic, process_time

from tests.fuzz.arena import where
from tests.fuzz.blind import feed
from tests.fuzz.campaign import Campaign, Report, replayed
from tests.fuzz.hostile import meet
from tests.fuzz.parsers import TARGETS
from tests.fuzz.sockets import campaign
from tests.fuzz.transcript import load


def summary(report: Report, work: float, time: float) -> dict[str, object]:
    """The figures of a campaign."""
    times, alone = sorted(report.times), sorted(report.alone)

    def at(values: list[float], share: float) -> float:
        return round(values[min(int(len(values) * share), len(values) - 1)] * 1e6) if values else 0

    return {
        "conversations": report.conversations,
        "octets sent": report.octets,
        "seconds of work": round(work),
        "seconds": round(time),
        "conversations a second of work": round(report.conversations / work) if work else 0,
        "finds": dict(report.finds),
        "memory (conversations, octets, objects)": report.memory,
        "longest step (ms)": round(report.longest * 1000, 1),
        "client's turn, alone: median, 99 % (µs)": [at(alone, 0.5), at(alone, 0.99)],
        "client's turn, attacked: median, 99 %, longest (µs)": [at(times, 0.5), at(times, 0.99), at(times, 1)],
        "how conversations ended": dict(report.ended.most_common()),
    }


def conversations(arguments: argparse.Namespace) -> int:
    began, worked = monotonic(), process_time()
    campaign = Campaign(arguments.seed, arguments.finds)
    told = 0

    def tell(report: Report) -> None:
        nonlocal told
        if report.conversations >= told + 10_000:
            told = report.conversations
            save(report)

    def save(report: Report) -> dict[str, object]:
        figures = summary(report, process_time() - worked, monotonic() - began)
        if arguments.report is not None:
            arguments.report.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
        return figures

    report = campaign.run(arguments.number, tell)
    print(json.dumps(save(report), indent=1, ensure_ascii=False))
    return 1 if report.finds else 0


def parsers(arguments: argparse.Namespace) -> int:
    found = 0
    for name in arguments.targets or TARGETS:
        began = process_time()
        places = feed(name, arguments.number, arguments.seed, arguments.finds)
        print(f"{name}: {arguments.number} inputs, {process_time() - began:.1f} s, {len(places)} finds", flush=True)
        for place in places:
            print(f"  {place}")
        found += len(places)
    return 1 if found else 0


def brokers(arguments: argparse.Namespace) -> int:
    places: dict[str, int] = {}

    def found(number: int, error: BaseException) -> None:
        if where(error) not in places:
            print(f"FOUND in meeting {number} of seed {arguments.seed}: {where(error)}", flush=True)
            traceback.print_exception(error)
        places[where(error)] = number

    print(dict(meet(arguments.number, arguments.seed, found).most_common()))
    return 1 if places else 0


def sockets(arguments: argparse.Namespace) -> int:
    faults = campaign(arguments.number, arguments.seed)
    print(f"{arguments.number} conversations over TCP, {len(faults)} faults", *faults, sep="\n")
    return 1 if faults else 0


def replay(arguments: argparse.Namespace) -> int:
    found = 0
    for path in arguments.files:
        place = replayed(load(path))
        print(f"{path}: {place or 'nothing is found any more'}")
        found += place is not None
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser("conversations", help="mutated conversations with a broker in memory")
    command.add_argument("--number", type=int, default=100_000)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--report", type=Path, help="a file for the figures, written again and again")
    command.add_argument("--finds", type=Path, help="a folder for what was found")
    command.set_defaults(run=conversations)
    command = commands.add_parser("parsers", help="spoiled octets for each parser; for a guided search see guided.py")
    command.add_argument("targets", nargs="*", metavar="target", help=f"some of {', '.join(TARGETS)}; else all")
    command.add_argument("--number", type=int, default=20_000)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--finds", type=Path, help="a folder for what was found")
    command.set_defaults(run=parsers)
    for name, run, number in (("brokers", brokers, 10_000), ("sockets", sockets, 2_000)):
        text = "our client and changed answers" if run is brokers else "mutated conversations over TCP"
        command = commands.add_parser(name, help=text)
        command.add_argument("--number", type=int, default=number)
        command.add_argument("--seed", type=int, default=0)
        command.set_defaults(run=run)
    command = commands.add_parser("replay", help="what a find has written down")
    command.add_argument("files", type=Path, nargs="+")
    command.set_defaults(run=replay)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    return int(arguments.run(arguments))


if __name__ == "__main__":
    sys.exit(main())
