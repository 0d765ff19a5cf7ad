"""Starts what is measured and what it is measured against: clients, our broker, Artemis; each in its own process."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.interop import brokers, fetch

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = "tests.bench.clients"
DEADLINE = 120.0
"""Seconds for one answer of a program, before it counts as stuck."""


class Failed(Exception):
    """A program ended, or does not answer; the text says what it said last."""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


class Process:
    """A process that is told things by lines and answers by lines."""

    def __init__(self, command: list[str]) -> None:
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment()
        )

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self.last_words()) from None

    def answer(self) -> str:
        output = self.process.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], DEADLINE)
        line = output.readline() if ready else ""
        if not line:
            self.process.kill()
            raise Failed(self.last_words() if ready else f"no answer in {DEADLINE:.0f} seconds; {self.last_words()}")
        return line.rstrip("\n")

    def rest(self) -> str:
        """A further line of an answer; it comes with the first."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def last_words(self) -> str:
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors if line.strip()]
        return lines[-1] if lines else "it said nothing"

    def finish(self) -> str:
        """End it gently; what it still had to say."""
        assert self.process.stdin is not None
        try:
            rest, _ = self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            rest, _ = self.process.communicate()
        self.errors.close()
        return rest


class Client:
    """A program that speaks `clients/protocol.py`, started again when it failed."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self.command = command
        self.process: Process | None = None

    def begin(self, work: str, count: int, queue: str) -> None:
        if self.process is None:
            self.process = Process(self.command)
        try:
            self.process.tell(f"{work} {count} {queue}")
        except Failed:
            self.close()
            raise

    def end(self) -> dict[str, Any]:
        assert self.process is not None
        try:
            answer: dict[str, Any] = json.loads(self.process.answer())
        except Failed:
            self.close()
            raise
        return answer

    def do(self, work: str, count: int, queue: str) -> dict[str, Any]:
        self.begin(work, count, queue)
        return self.end()

    def close(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.finish()


def python_client(name: str, module: str, url: str, *, profiling: bool = False) -> Client:
    options = ["--profile"] if profiling else []
    return Client(name, [sys.executable, "-m", f"{CLIENTS}.{module}", url, *options])


def java_client(url: str) -> Client:
    """Qpid JMS. Raises `fetch.Missing` where it cannot be had."""
    path = fetch.qpid_jms(Path(__file__).parent / "clients/JmsBench.java")
    return Client("qpid-jms", [fetch.program("java", "Qpid JMS"), "-cp", path, "JmsBench", url])


@contextmanager
def our_broker(
    *, profiling: bool = False, started: Callable[[Process], object] = lambda process: None
) -> Iterator[str]:
    """The bundled broker as a process, given to ``started``; its profile, if wanted, is printed at the end."""
    module = [f"{CLIENTS}.profiled_broker"] if profiling else ["jmsish", "broker", "--port", "0"]
    process = Process([sys.executable, "-m", *module])
    started(process)
    try:
        yield process.answer().removeprefix("listening on ")
    finally:
        if not profiling:
            process.process.terminate()
        rest = process.finish()
        if profiling:
            print(f"\n### The broker\n{rest}")


@contextmanager
def artemis() -> Iterator[str]:
    """Apache Artemis without persistence. Raises `fetch.Missing` where it cannot be had."""
    fetch.artemis()
    with tempfile.TemporaryDirectory() as folder, brokers.artemis(Path(folder)) as target:
        yield f"amqp://{target}"
