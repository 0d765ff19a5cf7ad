"""What a queue costs as it gets deeper: put-back, acquire, browse start, selectors, groups, and memory.

The broker is asked by an engine in the same thread; its time alone counts. The queue keeps its depth: what was acquired
is put back, in order, from the end, and at random.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
import tracemalloc
from statistics import median
from typing import Any

from jmsish.broker.broker import Broker
from jmsish.engine.outcomes import MODIFIED_FAILED, RELEASED
from tests.bench import choosing, report
from tests.bench.inmemory import Peer, payload

DEPTHS = (1_000, 10_000, 100_000, 1_000_000)
ROUND = 100
"""Messages acquired and put back at a time."""
IDLE_QUEUES = 2_000
QUEUED = 20_000


class Deep:
    """A queue that is filled further and further, and what is asked of it at each depth."""

    def __init__(self, rounds: int) -> None:
        self.broker = Broker("depth", clock=time.time)
        self.peer = Peer(self.broker)
        self.rounds = rounds
        self.depth = 0
        self.sender = self.peer.sender("deep")
        self.octets = payload()
        self.chance = random.Random(1)

    def grow(self, depth: int) -> float:
        """Microseconds of the broker for each message sent."""
        added = depth - self.depth
        self.depth = depth
        _, seconds = self.peer.timed(self.peer.fill, self.sender, added, self.octets)
        return seconds / added * 1e6

    def ask(self) -> dict[str, float]:
        """Medians of microseconds a message (browse start: of microseconds a browser)."""
        receiver = self.peer.receiver("deep")
        self.peer.pump()
        figures: dict[str, list[float]] = {name: [] for name in ("acquire", "in order", "from the end", "at random")}
        for turn in range(self.rounds * 3):
            taken, seconds = self.peer.timed(self.peer.take, receiver, ROUND)
            figures["acquire"].append(seconds / ROUND * 1e6)
            way = ("in order", "from the end", "at random")[turn % 3]
            if way == "from the end":
                taken.reverse()
            elif way == "at random":
                self.chance.shuffle(taken)
            state = MODIFIED_FAILED if turn % 2 else RELEASED
            _, seconds = self.peer.timed(self.peer.settle, taken, state)
            figures[way].append(seconds / ROUND * 1e6)
        receiver.detach()
        self.peer.pump()
        figures["browse start"] = [self.browse() for _ in range(self.rounds)]
        return {name: median(values) for name, values in figures.items()}

    def browse(self) -> float:
        """From attach to the first message, the broker's part."""

        def first() -> None:
            browser = self.peer.receiver("deep", browsing=True)
            self.peer.take(browser, 1)
            browser.detach()

        _, seconds = self.peer.timed(first)
        self.peer.pump()
        return seconds * 1e6


def curve(depths: tuple[int, ...], rounds: int) -> list[dict[str, Any]]:
    deep = Deep(rounds)
    return [{"depth": depth, "send": deep.grow(depth), **deep.ask()} for depth in depths]


# -- memory ------------------------------------------------------------------------------------------------------------


def allocated(function: Any, *arguments: Any) -> int:
    """Octets that are still there after `function`, as Python's allocator counts them."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        function(*arguments)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def memory(queues: int = IDLE_QUEUES, messages: int = QUEUED) -> dict[str, float]:
    """Octets of a queue nobody uses, declared and used before, and of a message of 100 octets that waits."""
    broker = Broker("memory", clock=time.time)
    peer = Peer(broker)
    octets = payload()

    def declare() -> None:
        for number in range(queues):
            broker.declare_queue(f"idle.{number}")

    def use() -> None:
        for number in range(queues):
            sender = peer.sender(f"used.{number}")
            peer.fill(sender, 1, octets)
            sender.detach()
            receiver = peer.receiver(f"used.{number}")
            peer.settle(peer.take(receiver, 1))
            receiver.detach()
            peer.pump()

    sender = peer.sender("full")
    peer.fill(sender, 1, octets)
    figures = {"idle queue, declared": allocated(declare) / queues, "idle queue, used before": allocated(use) / queues}
    figures["queued message"] = allocated(peer.fill, sender, messages, octets) / messages
    figures["  of which the octets, as an object"] = float(sys.getsizeof(octets))
    return figures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, help="the greatest depth (default: 1,000,000)")
    parser.add_argument("--rounds", type=int, default=20, help="repetitions of each, of which the median counts")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")


def run(options: argparse.Namespace) -> dict[str, Any]:
    limit = options.n or DEPTHS[-1]
    depths = tuple(depth for depth in DEPTHS if depth <= limit) or (max(limit, ROUND),)
    print(f"{report.machine()}; microseconds of the broker a message\n")
    points = curve(depths, options.rounds)
    heads = ["depth", "send", "acquire", "put back in order", "from the end", "at random", "browse start"]
    print(report.table(heads, [[f"{p['depth']:,}", *map(report.figure, list(p.values())[1:])] for p in points]))
    print("\nA selector that wants one message in 1,000; messages of groups beside those of a busy consumer\n")
    choices = choosing.points(depths)
    rows = [[f"{point['depth']:,}", *map(report.figure, list(point.values())[1:])] for point in choices]
    print(report.table(list(choices[0]), rows))
    octets = memory(min(IDLE_QUEUES, limit), min(QUEUED, limit))
    print()
    print(report.table(["memory", "octets"], [[name, report.figure(value)] for name, value in octets.items()]))
    figures = {"curve": points, "choices": choices, "memory": octets}
    report.write_json(options.json, figures)
    return figures
