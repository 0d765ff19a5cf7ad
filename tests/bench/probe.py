"""``python -m tests.bench.probe URL``: a well-behaved client that measures, beside whatever others do to the broker.

It sends a message to a queue of its own and receives it, again and again, with a pause between. For each line that it
reads it prints what it has measured since the last one: how many turns, and the median, the 99th percentile and the
longest, in microseconds; a turn that failed counts by itself. In some turns the client is ready to go on and has no
processor, because the load has it: how long that was on average, and the 99th percentile without it, are told too.
"""

from __future__ import annotations

import json
import select
import sys
import time
from pathlib import Path

import jmsish

PAUSE = 0.002


STANDING = Path("/proc/thread-self/schedstat")
"""Of Linux: nanoseconds that this thread ran, and that it was ready to run and waited (the second word)."""


def stood() -> float:
    """Seconds that this thread has waited for a processor."""
    return int(STANDING.read_text().split()[1]) / 1e9 if STANDING.exists() else 0.0


def figures(times: list[float], standing: list[float], failed: int) -> dict[str, int]:
    """Of turns that took so many seconds, of which so many were spent waiting for a processor."""
    bare = sorted(time - stood for time, stood in zip(times, standing, strict=True))
    times = sorted(times)

    def at(share: float, of: list[float]) -> int:
        return round(of[min(int(len(of) * share), len(of) - 1)] * 1e6) if of else 0

    return {
        "turns": len(times), "median": at(0.5, times), "p99": at(0.99, times), "longest": at(1, times),
        "stood": round(sum(standing) / max(len(times), 1) * 1e6), "bare": at(0.99, bare), "failed": failed,
    }  # fmt: skip


def main(url: str) -> None:
    with jmsish.connect(url) as connection:
        session = connection.create_session()
        queue = session.create_queue("probe")
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        times: list[float] = []
        standing: list[float] = []
        failed = 0
        print("ready", flush=True)
        while True:
            if select.select([sys.stdin], [], [], PAUSE)[0]:
                if not sys.stdin.readline():
                    return
                print(json.dumps(figures(times, standing, failed)), flush=True)
                times, standing, failed = [], [], 0
            before, began = stood(), time.perf_counter()
            producer.send("turn")
            failed += consumer.receive(timeout=30) is None
            times.append(time.perf_counter() - began)
            standing.append(stood() - before)


if __name__ == "__main__":
    main(sys.argv[1])
