"""What the programs have in common: lines in, lines of JSON out.

A program is started with the URL of a broker. A line `WORK N QUEUE` on standard input asks it to do N units of a work;
it answers `{"seconds": …, "cpu": …}`, wall time and CPU of this process for the part that counts. Making connections
and links does not count, except where a work says so. The end of standard input ends the program.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.bench.clients.sampling import Sampler

TEXT = "x" * 100
PREFETCH = 1000
BATCH = 10
PATIENCE = 30.0
"""Seconds that a program waits for a message or an answer before it fails."""

Work = Callable[[int, str], Any]


class Watch:
    """Times what happens between `start` and `stop`; with `profiling` it also says where the time went."""

    def __init__(self, profiling: bool = False) -> None:
        self.profile = Sampler() if profiling else None
        self.seconds = self.cpu = 0.0

    def start(self) -> None:
        if self.profile is not None:
            self.profile.enable()
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def stop(self) -> None:
        self.seconds, self.cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        if self.profile is not None:
            self.profile.disable()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def result(self, count: int) -> dict[str, Any]:
        answer: dict[str, Any] = {"seconds": self.seconds, "cpu": self.cpu}
        if self.profile is not None:
            answer["profile"] = self.profile.summary(self.cpu / max(count, 1) * 1e6)
        return answer


def serve(program: Any) -> None:
    """Do what the lines say. The methods of `program` are its works."""
    for line in sys.stdin:
        work, count, queue = line.split()
        program.watch = Watch(program.profiling)
        getattr(program, work)(int(count), queue)
        print(json.dumps(program.watch.result(int(count))), flush=True)


def arguments() -> tuple[str, bool]:
    """The URL, and whether to profile."""
    return sys.argv[1], "--profile" in sys.argv[2:]


def check(text: object) -> None:
    if text != TEXT:
        raise SystemExit(f"received {text!r}")
