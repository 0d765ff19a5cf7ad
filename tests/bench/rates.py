"""Rates and CPU of clients that do the same work: `python -m tests.bench rates [--artemis] [--profile]`."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tests.bench import report
from tests.bench.programs import Client, Failed, artemis, java_client, our_broker, python_client
from tests.interop import fetch


@dataclass(frozen=True)
class Work:
    """One unit of it is a message, a transaction of ten in and ten out, or a question and its answer."""

    name: str
    title: str
    needed: float | None = None
    """How many times proton's rate it must be, over TCP."""
    takes: int = 0
    """Messages that must be in the queue for a unit."""
    leaves: tuple[str, int] | None = None
    """Messages that a unit leaves, and in which queue: the end of its name."""
    most: int = 100_000


WORKS = (
    Work("async_send", "asynchronous send", needed=5, leaves=("", 1)),
    Work("completion_send", "send with completion", leaves=("", 1)),
    Work("receive", "streaming receive", needed=8, takes=1),
    Work("sync_send", "sync persistent send", needed=3, leaves=("", 1)),
    Work("transacted", "10 in + 10 out + commit", needed=6, takes=10, leaves=(".out", 10), most=5_000),
    Work("transacted_examples", "the same by proton's examples", needed=6, takes=10, leaves=(".out", 10), most=5_000),
    Work("request_reply", "request and reply"),
)
SMALLEST = 100
WARM_UP = 10_000
LONG_ENOUGH = 0.15
"""Seconds after which a run says enough of the rate to size the next one by it."""


@dataclass
class Row:
    """What one client did of one work."""

    client: str
    work: Work
    rates: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    failure: str | None = None
    profile: str | None = None

    @property
    def rate(self) -> float:
        return median(self.rates) if self.rates else 0.0

    @property
    def cpu(self) -> float:
        return median(self.cpus) if self.cpus else 0.0

    def note(self, count: int, answer: dict[str, Any]) -> None:
        self.rates.append(count / answer["seconds"])
        self.cpus.append(answer["cpu"] / count * 1e6)
        self.profile = answer.get("profile", self.profile)

    def as_json(self) -> dict[str, Any]:
        return {
            "client": self.client, "work": self.work.name, "rate": self.rate, "cpu_us": self.cpu, "rates": self.rates,
            "failure": self.failure,
        }  # fmt: skip


class Arena:
    """Clients at one broker. What they need there is done by the stocker, whose time does not count."""

    def __init__(self, clients: list[Client], stocker: Client, options: argparse.Namespace) -> None:
        self.clients = clients
        self.stocker = stocker
        self.options = options
        self.counts: dict[tuple[str, str], int] = {}
        self.queues: dict[str, int] = {}

    def warm_up(self) -> None:
        """A broker in Java compiles while it works; the first client must not pay for that."""
        for work in ("async_send", "receive", "sync_send", "receive", "async_send", "receive"):
            self.stocker.do(work, self.options.n or WARM_UP, "bench.warm")

    def run(self) -> list[Row]:
        works = [work for work in WORKS if not self.options.only or work.name in self.options.only]
        rows = []
        for work in works:
            ours = [Row(client.name, work) for client in self.clients if can(client, work)]
            for _ in range(self.options.repeat):
                for row in ours:  # a b a b: what else the machine does hits all alike
                    self.repetition(row)
            rows += ours
        return rows

    def repetition(self, row: Row) -> None:
        if row.failure is not None:
            return
        client = next(client for client in self.clients if client.name == row.client)
        try:
            count = self.options.n or self.size(client, row.work)
            row.note(count, self.once(client, row.work, count))
        except Failed as failure:
            row.failure = str(failure)
            self.queues[row.work.name] = self.queues.get(row.work.name, 0) + 1  # what is left there disturbs nobody

    def size(self, client: Client, work: Work) -> int:
        """So many units that they take about `--seconds`: found by a first run, which warms the client up too."""
        key = (client.name, work.name)
        if key not in self.counts:
            count, seconds = SMALLEST // (work.takes or 1), 0.0
            # The Java machine compiles while it runs: it gets many times what it will be asked for.
            enough = 4 * self.options.seconds if client.name == "qpid-jms" else LONG_ENOUGH
            done = 0.0
            while done < enough:
                seconds = self.once(client, work, count)["seconds"]
                done += seconds
                if seconds < LONG_ENOUGH:
                    count *= 4
            self.counts[key] = max(min(int(count / seconds * self.options.seconds), work.most), 10)
        return self.counts[key]

    def once(self, client: Client, work: Work, count: int) -> dict[str, Any]:
        queue = f"bench.{work.name}.{self.queues.get(work.name, 0)}"
        stocker = client if client.name == "vm" else self.stocker
        if work.takes:
            stocker.do("fill", count * work.takes, queue)
        if work.name == "request_reply" and client.name != "vm":
            stocker.begin("respond", count, queue)
            try:
                answer = client.do(work.name, count, queue)
            except Failed:
                stocker.close()  # it waits for what does not come
                raise
            stocker.end()
        else:
            answer = client.do(work.name, count, queue)
            if work.leaves is not None:
                end, some = work.leaves
                stocker.do("empty", count * some, queue + end)
        return answer

    def close(self) -> None:
        for client in [*self.clients, self.stocker]:
            client.close()


def can(client: Client, work: Work) -> bool:
    return client.name != "stomp.py" or work.name == "sync_send"


# -- who takes part ----------------------------------------------------------------------------------------------------


def peers(url: str, options: argparse.Namespace) -> Iterator[Client]:
    """Our two faces, and proton where it is installed."""
    yield python_client("jmsish", "jmsish_sync", url, profiling=options.profile)
    yield python_client("jmsish.aio", "jmsish_aio", url, profiling=options.profile)
    if importlib.util.find_spec("proton") is not None:
        yield python_client("proton", "proton_python", url)


def others(url: str) -> Iterator[Client]:
    """What only another broker can be asked by, or what needs Java."""
    try:
        yield java_client(url)
    except fetch.Missing as missing:
        print(f"without qpid-jms: {missing}")
    if importlib.util.find_spec("stomp") is not None:
        yield python_client("stomp.py", "stomp_python", url)
    else:
        print("without stomp.py: it is not installed (pip install stomp.py)")


def compete(
    stack: ExitStack, clients: list[Client], url: str, options: argparse.Namespace, *, cold: bool = False
) -> list[Row]:
    if options.clients:
        clients = [client for client in clients if client.name in options.clients]
    arena = Arena(clients, python_client("stocker", "jmsish_sync", url), options)
    stack.callback(arena.close)
    if cold:
        arena.warm_up()
    return arena.run()


def measure(options: argparse.Namespace) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    with ExitStack() as stack:
        if "tcp" in options.at:
            url = stack.enter_context(our_broker(profiling=options.profile_broker))
            found["tcp"] = compete(stack, list(peers(url, options)), url, options)
    with ExitStack() as stack:
        if "vm" in options.at:
            client = python_client("vm", "jmsish_sync", "vm", profiling=options.profile)
            found["vm"] = compete(stack, [client], "vm", options)
    with ExitStack() as stack:
        if options.artemis:
            try:
                url = stack.enter_context(artemis())
            except fetch.Missing as missing:
                print(f"without Artemis: {missing}")
            else:
                found["artemis"] = compete(stack, [*peers(url, options), *others(url)], url, options, cold=True)
    return found


# -- how it is shown ---------------------------------------------------------------------------------------------------

TITLES = {
    "tcp": "Over TCP, at the bundled broker in its own process",
    "vm": "Over vm://, client and broker in one process (CPU is that of both)",
    "artemis": "Over TCP, at Apache Artemis without persistence",
}


def show(place: str, rows: list[Row]) -> None:
    clients = list(dict.fromkeys(row.client for row in rows))
    works = list(dict.fromkeys(row.work for row in rows))
    cells = {(row.client, row.work): row for row in rows}
    rival = next((name for name in (["qpid-jms"] if place == "artemis" else []) + ["proton"] if name in clients), None)
    heads = ["rate a second · CPU µs", *clients] + ([f"jmsish / {rival}", "CPU"] if rival else [])
    if place == "tcp" and rival:
        heads.append("needed")
    lines = []
    for work in works:
        line = [work.title, *(cell(cells.get((client, work))) for client in clients)]
        ours, theirs = cells.get(("jmsish", work)), cells.get((rival or "", work))
        if rival:
            ratio = 0.0
            if ours and theirs and ours.rates and theirs.rates:
                ratio = ours.rate / theirs.rate
                line += [report.times(ratio), report.times(theirs.cpu / ours.cpu)]
            else:
                line += ["", ""]
            if place == "tcp":
                line.append("" if work.needed is None else f"{work.needed:g}× {'✓' if ratio >= work.needed else '✗'}")
        lines.append(line)
    print(f"\n### {TITLES[place]}\n")
    print(report.table(heads, lines))
    for row in rows:
        if row.failure:
            print(f"{row.client}, {row.work.title}: {row.failure}")


def cell(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{report.figure(row.rate)} · {report.figure(row.cpu)}" if row.rates else "failed"


def show_profiles(found: dict[str, list[Row]]) -> None:
    for place, rows in found.items():
        for row in rows:
            if row.profile:
                print(f"\n### Profile: {row.client} at {place}, {row.work.title}\n{row.profile}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, help="units of each work (default: what takes about --seconds)")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long one repetition takes (default: 1)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, of which the median counts (default: 3)")
    parser.add_argument("--only", nargs="+", metavar="WORK", choices=[work.name for work in WORKS], help="these works")
    parser.add_argument("--clients", nargs="+", metavar="CLIENT", help="these clients")
    parser.add_argument("--at", nargs="*", default=["tcp", "vm"], choices=["tcp", "vm"], help="ways to our broker")
    parser.add_argument("--artemis", action="store_true", help="at Apache Artemis too, with qpid-jms and stomp.py")
    parser.add_argument("--profile", action="store_true", help="profile our clients (their rates then mean nothing)")
    parser.add_argument("--profile-broker", action="store_true", help="profile our broker over TCP")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")


def run(options: argparse.Namespace) -> dict[str, list[Row]]:
    machine = report.machine()
    print(f"{machine}; medians of {options.repeat}, 100-octet text")
    found = measure(options)
    for place, rows in found.items():
        show(place, rows)
    show_profiles(found)
    figures = {place: [row.as_json() for row in rows] for place, rows in found.items()}
    report.write_json(options.json, {"machine": machine, **figures})
    return found
