"""Bindings swapped again and again under publishers, and every message counted: none lost, doubled or in a mixture.

Four publishers send through one exchange without a pause. Meanwhile its bindings are swapped between two sets of
queues, by `rebind` and by `freeze` in turn. A set has several queues, and each message must be in all queues of one
set, once, and in none of the other; the messages of a publisher must lie in every queue in their order, and between
two swaps nothing may have gone back to the set that was in force before.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from itertools import pairwise
from typing import Any

import jmsish
from tests.bench import report

PUBLISHERS = 4
SETS = (("blue.1", "blue.2", "blue.3"), ("green.1", "green.2"))
KEYS = ("a", "b")
AHEAD = 200
"""Messages of a publisher that may be there and not yet counted."""


class Soak:
    """One exchange, its publishers, and the books."""

    def __init__(self, broker: jmsish.EmbeddedBroker, url: str, type: str = "topic") -> None:
        self.broker = broker
        self.url = url
        for name in (*SETS[0], *SETS[1]):
            broker.declare_queue(name)
        self.exchange = broker.declare_exchange("soak", type)
        self.type = type
        self.exchange.rebind(add=self.bindings(0))
        self.sent = [0] * PUBLISHERS
        self.counted = [0] * PUBLISHERS
        self.seen: dict[str, list[list[int]]] = {name: [[] for _ in range(PUBLISHERS)] for name in (*SETS[0], *SETS[1])}
        self.errors: list[BaseException] = []
        self.ended = threading.Event()
        self.room = [threading.Semaphore(AHEAD) for _ in range(PUBLISHERS)]
        self.closed = 0
        """Nanoseconds of CPU that the thread that swaps has spent in swaps."""

    def bindings(self, side: int) -> list[tuple[Any, ...]]:
        arguments = {"x-match": "all"} if self.type == "headers" else None
        return [(name, key, arguments) for name in SETS[side] for key in KEYS]

    def publish(self, number: int) -> None:
        """Send, unless too much of it is not counted yet, until the end."""
        with jmsish.connect(self.url) as connection:
            session = connection.create_session()
            producers = [session.create_producer(session.create_queue(f"soak/{key}")) for key in KEYS]
            while not self.ended.is_set():
                if not self.room[number].acquire(timeout=0.2):
                    continue
                self.sent[number] += 1
                producers[self.sent[number] % len(KEYS)].send(f"{number}:{self.sent[number]}")

    def consume(self, name: str) -> None:
        """Note what comes out of a queue, until all that was sent is seen in one set or the other."""
        with jmsish.connect(self.url) as connection:
            consumer = connection.create_session().create_consumer(jmsish.Queue(name))
            while True:
                message = consumer.receive(timeout=0.1)
                if message is not None:
                    self._note(name, message.body)
                elif self.is_done and self.broker.queue(name).depth == 0:
                    return

    def _note(self, name: str, body: str) -> None:
        publisher, number = map(int, body.split(":"))
        self.seen[name][publisher].append(number)
        if name in (SETS[0][0], SETS[1][0]):
            self.room[publisher].release()

    @property
    def is_done(self) -> bool:
        return bool(self.errors) or (self.ended.is_set() and not any(each.is_alive() for each in self.publishers))

    def swap(self, turn: int) -> None:
        """The other set takes the place of the one in force."""
        remove, add = self.bindings(turn % 2), self.bindings(1 - turn % 2)
        start = time.thread_time_ns()
        if turn % 4 < 2:
            self.exchange.rebind(add=add, remove=[each[:2] for each in remove])
        else:
            with self.exchange.freeze(timeout=30) as frozen:
                for name, key, _ in remove:
                    frozen.unbind(name, key)
                for item in add:
                    frozen.bind(*item)
        self.closed += time.thread_time_ns() - start

    def run(self, swaps: int, between: int) -> None:
        """Swap so often, each time after some more messages; then count."""
        self.publishers = [self._thread(self.publish, number) for number in range(PUBLISHERS)]
        consumers = [self._thread(self.consume, name) for name in self.seen]
        for turn in range(swaps):
            before = self.exchange.received
            while self.exchange.received < before + between and not self.errors:
                time.sleep(0)
            self.swap(turn)
        self.ended.set()
        for thread in (*self.publishers, *consumers):
            thread.join(120)
            assert not thread.is_alive(), f"{thread.name} hangs"
        if self.errors:
            raise self.errors[0]
        self.count()

    def _thread(self, work: Any, *arguments: Any) -> threading.Thread:
        def guarded() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                self.errors.append(error)
                self.ended.set()

        thread = threading.Thread(target=guarded, name=f"{work.__name__} {arguments[0]}")
        thread.start()
        return thread

    def count(self) -> None:
        """AssertionError for a message that is lost, doubled, in a mixture, or out of its order."""
        for publisher in range(PUBLISHERS):
            of_set = []
            for names in SETS:
                rows = [self.seen[name][publisher] for name in names]
                assert all(row == rows[0] for row in rows), f"a mixture: {publisher} in {names}"
                assert all(one < other for one, other in pairwise(rows[0])), f"out of order or twice: {publisher}"
                of_set.append(rows[0])
            every = sorted(of_set[0] + of_set[1])
            assert every == list(range(1, self.sent[publisher] + 1)), f"lost or in both sets: {publisher}"

    @property
    def total(self) -> int:
        return sum(self.sent)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=10_000, help="swaps (default: 10,000)")
    parser.add_argument("--between", type=int, default=20, help="messages at least between two swaps (default: 20)")
    parser.add_argument("--at", choices=("vm", "tcp"), default="vm", help="how the publishers reach the broker")
    parser.add_argument("--type", choices=("direct", "topic", "fanout", "headers"), default="topic")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")


def run(options: argparse.Namespace) -> dict[str, Any]:
    print(report.machine(), "\n")
    with jmsish.EmbeddedBroker() as broker:
        soak = Soak(broker, broker.url if options.at == "vm" else broker.listen().url, options.type)
        start = time.perf_counter()
        soak.run(options.n, options.between)
        seconds = time.perf_counter() - start
    figures = {
        "swaps": options.n, "messages": soak.total, "seconds": seconds, "micros": soak.closed / options.n / 1000
    }  # fmt: skip
    print(
        f"{options.n:,} swaps of a {options.type} exchange under {PUBLISHERS} publishers at {options.at}, "
        f"{soak.total:,} messages, {seconds:.0f} s: none lost, doubled, in a mixture or out of order;\n"
        f"{figures['micros']:.0f} µs of CPU of a swap"
    )
    report.write_json(options.json, figures)
    return figures


if __name__ == "__main__":
    parsed = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=__doc__)
    add_arguments(parsed)
    run(parsed.parse_args(sys.argv[1:]))
