"""``python -m tests.bench.probe URL``: a well-behaved client that measures, beside whatever others do to the broker.

It sends a message to a queue of its own and receives it, again and again, with a pause between. For each line that it
reads it prints what it has measured since the last one: how many turns, and the median, the 99th percentile and the
longest, in microseconds; a turn that failed counts by itself.
"""

from __future__ import annotations

import json
import select
import sys
import time

import jmsish

PAUSE = 0.002


def figures(times: list[float], failed: int) -> dict[str, int]:
    times.sort()
    at = [times[min(int(len(times) * share), len(times) - 1)] * 1e6 for share in (0.5, 0.99, 1)] if times else [0, 0, 0]
    return {"turns": len(times), "median": round(at[0]), "p99": round(at[1]), "longest": round(at[2]), "failed": failed}


def main(url: str) -> None:
    with jmsish.connect(url) as connection:
        session = connection.create_session()
        queue = session.create_queue("probe")
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        times: list[float] = []
        failed = 0
        print("ready", flush=True)
        while True:
            if select.select([sys.stdin], [], [], PAUSE)[0]:
                if not sys.stdin.readline():
                    return
                print(json.dumps(figures(times, failed)), flush=True)
                times, failed = [], 0
            began = time.perf_counter()
            producer.send("turn")
            failed += consumer.receive(timeout=30) is None
            times.append(time.perf_counter() - began)


if __name__ == "__main__":
    main(sys.argv[1])
