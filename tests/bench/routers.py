"""What a router costs: a stream of small messages over none to four, each hop's latency, what is held of a large one.

The routers of ``tcp`` and the clients are processes of their own, ``vm`` is all of it in one process. A rate is what
arrives, accepted from end to end; *direct* goes into a queue of a broker and out of it at the same time. Routers take
the place of that broker (*between clients*), or stand before it (*before a broker*): there the sender comes over all of
them by a link route, and the receiver is at the broker, so that each router is one more on the way, from the first on.

What the routers hold is what came in and has not gone out: unread octets, those of the engine's output, and those the
wire has not taken; and, of processes, by how much the most memory they ever had grew.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import jmsish
from jmsish.testing import RouterNetwork
from tests.bench import beside, report
from tests.bench.chain import PREFIX, chain
from tests.bench.clients.protocol import PATIENCE, TEXT
from tests.bench.programs import Client, python_client

HOLDS = 1_000_000
"""Octets of a large message that no router may hold."""
NEEDED = 0.5
PIECE = bytes(1 << 16)
TRANSPORTS = ("tcp", "vm")
PLACES = {"between": "between clients", "before": "before a broker"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=60_000, help="messages of a stream (default: 60,000)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, of which the best counts (default: 3)")
    parser.add_argument("--most", type=int, default=4, help="routers in a line at most (default: 4)")
    parser.add_argument("--megabytes", type=int, default=100, help="size of the large message (default: 100)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of a quick receiver beside a slow one, each time")
    parser.add_argument("--turns", type=int, default=5, help="of both, alone and beside (default: 5)")
    parser.add_argument("--transports", nargs="+", choices=TRANSPORTS, default=TRANSPORTS)
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")


# --- small ones


class Processes:
    """A stream over a line of routers, every router and both clients a process."""

    def __init__(self, stack: ExitStack, length: int, place: str) -> None:
        self.line = stack.enter_context(chain(length, brokered=place == "before"))
        self.sender, self.receiver = (self._client(stack, url) for url in (self.line.near, self.line.far))

    def _client(self, stack: ExitStack, url: str) -> Client:
        client = python_client("jmsish", "jmsish_sync", url)
        stack.callback(client.close)
        return client

    def run(self, work: str, count: int, queue: str) -> tuple[float, float]:
        """Seconds it took, and seconds of CPU of what is between the clients."""
        before = self.line.busy_for()
        self.receiver.begin("receive", count, queue)
        sent = self.sender.do(work, count, queue)
        received = self.receiver.end()
        return max(sent["seconds"], received["seconds"]), self.line.busy_for() - before


class Threads:
    """The same in one process, over ``vm://``: CPU is that of all of it."""

    def __init__(self, stack: ExitStack, length: int, place: str) -> None:
        if not length or place == "before":
            self.near = self.far = stack.enter_context(jmsish.EmbeddedBroker()).url
        if length:
            names = [f"R{number}" for number in range(1, length + 1)]
            routes = {PREFIX: (names[-1], self.far)} if place == "before" else {}
            network = stack.enter_context(RouterNetwork("-".join(names), routes=routes))
            self.near = network[names[0]].url
            self.far = self.far if place == "before" else network[names[-1]].url

    def run(self, work: str, count: int, queue: str) -> tuple[float, float]:
        receiving = threading.Thread(target=receive, args=(self.far, count, queue))
        cpu, wall = time.process_time(), time.perf_counter()
        receiving.start()
        send(self.near, count, queue, waits=work == "sync_send")
        receiving.join(PATIENCE)
        return time.perf_counter() - wall, time.process_time() - cpu


def receive(url: str, count: int, queue: str) -> None:
    with jmsish.connect(url) as connection:
        consumer = connection.create_session().create_consumer(jmsish.Queue(queue))
        for _ in range(count):
            if consumer.receive(timeout=PATIENCE) is None:
                raise SystemExit(f"no message within {PATIENCE} seconds")


def send(url: str, count: int, queue: str, *, waits: bool) -> None:
    with jmsish.connect(url) as connection:
        producer = connection.create_session().create_producer(jmsish.Queue(queue))
        if not waits:
            producer.delivery_mode = jmsish.DeliveryMode.NON_PERSISTENT
        for _ in range(count):
            producer.send(TEXT)
        producer.close()


KINDS: dict[str, type[Processes] | type[Threads]] = {"tcp": Processes, "vm": Threads}


def streams(transport: str, place: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each length of the line; their repetitions take turns."""
    with ExitStack() as stack:
        lines = [KINDS[transport](stack, length, place) for length in range(options.most + 1)]
        runs: list[list[tuple[float, float]]] = [[] for _ in lines]
        latencies: list[list[float]] = [[] for _ in lines]
        few = max(options.n // 30, 20)
        for line in lines:
            line.run("async_send", few, f"{PREFIX}warm")
        for turn in range(options.repeat):
            for length, line in enumerate(lines):
                runs[length].append(line.run("async_send", options.n, f"{PREFIX}stream-{turn}"))
                latencies[length].append(line.run("sync_send", few, f"{PREFIX}turns-{turn}")[0] / few)
    rows = []
    for length, found in enumerate(runs):
        seconds, cpu = min(seconds for seconds, _ in found), min(cpu for _, cpu in found)
        rows.append({
            "transport": transport, "place": place, "routers": length, "rate": options.n / seconds,
            "cpu_us": cpu / options.n * 1e6, "latency_us": min(latencies[length]) * 1e6,
        })  # fmt: skip
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    direct, before = rows[0]["rate"], None
    shown = []
    for row in rows:
        added = "" if before is None else report.figure(row["cpu_us"] - before["cpu_us"])
        waited = "" if before is None else report.figure(row["latency_us"] - before["latency_us"])
        ratio = row["rate"] / direct
        mark = f" {'✓' if ratio >= NEEDED else '✗'}" if row["routers"] == 1 else ""
        shown.append([
            f"{row['transport']}, {row['routers'] or 'direct'}", report.figure(row["rate"]),
            f"{ratio * 100:.0f} %{mark}",
            report.figure(row["cpu_us"]), added, report.figure(row["latency_us"]), waited,
        ])  # fmt: skip
        before = row
    heads = [
        "routers",
        "rate a second",
        "of direct",
        "CPU µs",
        "more than before",
        "one by one, µs",
        "more than before",
    ]
    return report.table(heads, shown)


# --- a large one


def carry(near: str, far: str, megabytes: int) -> float:
    """Seconds that one message of so many megabytes takes from piece to piece."""
    pieces = max(megabytes * 1_000_000 // len(PIECE), 1)
    failures: list[BaseException] = []

    def give() -> None:
        try:
            with jmsish.connect(near) as connection:
                producer = connection.create_session().create_producer(jmsish.Queue("large"))
                producer.send(stream=(PIECE for _ in range(pieces)))
        except BaseException as failure:
            failures.append(failure)

    began = time.perf_counter()
    with jmsish.connect(far, stream_threshold=1 << 20) as connection:
        consumer = connection.create_session().create_consumer(jmsish.Queue("large"))
        giving = threading.Thread(target=give)
        giving.start()
        message = consumer.receive(timeout=PATIENCE)
        if not isinstance(message, jmsish.BytesMessage):
            raise SystemExit(f"no large message came: {failures}")
        size = 0
        with message.open() as body:
            while part := body.read(len(PIECE)):
                size += len(part)
        if size != pieces * len(PIECE):
            raise SystemExit(f"{size} octets came")
    giving.join(PATIENCE)
    if failures:
        raise failures[0]
    return time.perf_counter() - began


def held(router: Any) -> int:
    """What a router holds at this moment: what came in and nobody took, and what goes out."""
    driver = router._driver

    def count() -> int:
        octets = 0
        for connection, lane in driver._lanes.items():
            engine = connection.engine
            octets += engine.out_size + lane.outlet.delivered - lane.outlet.consumed
            octets += sum(session.unread for session in engine.remote_sessions.values())
            octets += sum(len(part) for part in lane.share.rest) if lane.share is not None else 0
        return octets

    return int(driver.call(count))


@contextmanager
def watched(network: RouterNetwork) -> Iterator[dict[str, int]]:
    """The most that each router held, looked at again and again."""
    most = dict.fromkeys(network.routers, 0)
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.002):
            for name, router in network.routers.items():
                most[name] = max(most[name], held(router))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield most
    finally:
        over.set()
        looking.join()


def large(transport: str, options: argparse.Namespace) -> dict[str, Any]:
    names = [f"R{number}" for number in range(1, options.most + 1)]
    with RouterNetwork("-".join(names), transport=transport) as network, watched(network) as most:
        seconds = carry(network[names[0]].url, network[names[-1]].url, options.megabytes)
    return {"transport": transport, "seconds": seconds, "held": list(most.values())}


def large_over_processes(options: argparse.Namespace) -> dict[str, Any]:
    with chain(options.most) as line:
        carry(line.near, line.far, 2)
        before = line.peaks()
        seconds = carry(line.near, line.far, options.megabytes)
        grown = [now - then for then, now in zip(before, line.peaks(), strict=True)]
    return {"transport": "processes", "seconds": seconds, "held": grown}


def large_ones(options: argparse.Namespace) -> list[dict[str, Any]]:
    found = [large(transport, options) for transport in options.transports]
    if "tcp" in options.transports:
        found.append(large_over_processes(options))
    print(
        f"\nOne message of {options.megabytes} MB over {options.most} routers: most held by each router, KB\n"
    )
    rows = []
    for each in found:
        good = "✓" if max(each["held"]) < HOLDS else "✗"
        shown = " · ".join(f"{octets / 1000:,.0f}" for octets in each["held"])
        what = {"processes": "tcp, growth of processes"}.get(each["transport"], each["transport"])
        rows.append([what, f"{shown} {good}", report.figure(options.megabytes / each["seconds"])])
    print(report.table(["transport", "held", "MB a second"], rows))
    return found


def run(options: argparse.Namespace) -> dict[str, Any]:
    print(report.machine(), end="\n\n")
    rows = []
    for place, title in PLACES.items():
        print(f"Routers {title}\n")
        for transport in options.transports:
            found = streams(transport, place, options)
            print(table(found), end="\n\n")
            rows += found
    figures = {"streams": rows, "large": large_ones(options), "slow": beside.run(options)}
    report.write_json(options.json, figures)
    return figures
