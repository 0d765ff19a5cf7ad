"""Many connections, and bad ones: what the broker's memory is, and what a well-behaved client has to wait.

A broker in a process of its own; 5,000 connections that say nothing and 500 that send and receive; a consumer that
hardly reads, floods of attaches and of tiny frames, and connections opened and closed by the thousand. Meanwhile a
client in a third process sends and receives one message after the other and says how long that takes.

The load is not to take the client's processor: who floods writes octets made before, and all of this process has the
lowest priority. What is left of that is told: how long, of a turn, the client was ready to go on and had no processor.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import report
from tests.bench.herd import BODY, CLOSE, HEARTBEAT, HUGE, Herd, Member, opening, receiver, sender, transfer
from tests.bench.programs import Process
from tests.wire.frames import RECEIVER, composite, write

MEMORY = 1.5 * (1 << 30)
FACTOR = 3
"""The bounds of the issue: octets of the broker, and how many times its idle median a client may have to wait."""
HEAD = ["a well-behaved client beside", "MB before", "MB after", "broker's CPU", "turns", "median µs", "99 % µs",
        "longest µs", "for a processor, mean", "99 % without", "median to nobody else", "99 % without"]  # fmt: skip
EACH = 2.0
"""Messages a second that each busy connection sends and receives."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--idle", type=int, default=5000, help="connections that say nothing")
    parser.add_argument("--busy", type=int, default=500, help="connections that send and receive")
    parser.add_argument("--cycles", type=int, default=10_000, help="connections opened and closed")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each phase")


class Load:
    """The broker, the client beside, and what each phase came to."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.broker = Process([sys.executable, "-m", "jmsish", "broker", "--port", "0"])
        url = self.broker.answer().removeprefix("listening on ")
        host, _, port = url.removeprefix("amqp://").rpartition(":")
        self.herd = Herd(host, int(port))
        self.probe = Process([sys.executable, "-m", "tests.bench.probe", url])
        self.probe.answer()
        os.nice(19)  # after those two, who keep theirs
        self.rows: list[list[str]] = []
        self.alone: dict[str, int] = {}

    def resident(self) -> int:
        status = Path(f"/proc/{self.broker.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) * 1024

    def busy_for(self) -> float:
        """Seconds of CPU that the broker has taken."""
        fields = Path(f"/proc/{self.broker.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def measure(self, name: str, run: Callable[[], object]) -> None:
        """One phase, and its row."""
        self.ask()
        before, worked, began = self.resident(), self.busy_for(), time.monotonic()
        run()
        share = (self.busy_for() - worked) / (time.monotonic() - began)
        found = self.ask()
        after = self.resident()
        self.alone = self.alone or found
        self.rows.append([
            name, f"{before / 1e6:,.0f}", f"{after / 1e6:,.0f}", f"{share * 100:.0f} %", f"{found['turns']:,}",
            f"{found['median']:,}", f"{found['p99']:,}", f"{found['longest']:,}",
            f"{found['stood']:,}", f"{found['bare']:,}", *(self.times(found, each) for each in ("median", "bare")),
        ])  # fmt: skip

    def times(self, found: dict[str, int], which: str) -> str:
        """How many times what it is beside nobody, and whether that is within the aim."""
        times = found[which] / self.alone[which]
        return f"{times:.2f}× {report_mark(times <= FACTOR and not found['failed'])}"

    def ask(self) -> dict[str, int]:
        self.probe.tell("figures")
        return dict(json.loads(self.probe.answer()))

    # --- phases

    def quiet(self) -> None:
        self.herd.pump(self.seconds)

    def arrivals(self, number: int) -> None:
        for each in range(number):
            Member(self.herd, opening(f"idle-{each}"))
            if each % 100 == 99:
                self.herd.pump(0.05)
        self.herd.settle()

    def many_busy(self, number: int) -> None:
        members = []
        for each in range(number):
            queue = f"busy-{each}"
            members.append(Member(self.herd, opening(queue) + sender(queue) + receiver(queue, 1, HUGE)))
            if each % 50 == 49:
                self.herd.pump(0.05)
        turn = 0

        def work() -> float:
            nonlocal turn
            slots = 50
            for member in members[turn % slots :: slots]:
                member.say(transfer(member.sent))
                member.sent += 1
            turn += 1
            return 1 / (EACH * slots)

        self.herd.pump(self.seconds, work)

    def filling(self) -> None:
        """A queue is filled by one who sends as fast as it can."""
        filler = Member(self.herd, opening("filler") + sender("slow"))

        def work() -> float:
            for _ in range(20):
                if filler.unsent and not filler.say(b""):
                    break
                octets = b"".join(transfer(filler.sent + number, BODY * 10) for number in range(20))
                filler.sent += 20
                if not filler.say(octets):
                    break
            return 0.01

        self.herd.pump(self.seconds, work)
        filler.leave()

    def slow_consumer(self) -> None:
        """One who has credit for all of that queue and takes little by little."""
        member = Member(self.herd, opening("slow") + receiver("slow", 0, HUGE), reads=False)

        def work() -> float:
            member.read()
            return 0.1

        self.herd.pump(self.seconds, work)
        member.leave()

    def flood(self, first: bytes, octets: bytes) -> None:
        """One connection that says as much as the broker takes, the same again and again."""
        member = Member(self.herd, first)

        def work() -> float:
            while member.say(b"" if member.unsent else octets):
                pass
            return 0.001

        self.herd.pump(self.seconds, work)
        member.leave()

    def attaches(self) -> None:
        each = [
            write("attach", name=f"a{number}", handle=0, role=RECEIVER,
                  source=composite("source", address=f"flood-{number}"), target=composite("target"))
            + write("detach", handle=0, closed=True)
            for number in range(100)
        ]  # fmt: skip
        self.flood(opening("attaches"), b"".join(each))

    def tiny_frames(self) -> None:
        self.flood(opening("tiny"), HEARTBEAT * 1000)

    def cycles(self, number: int) -> None:
        """Connections that open and close; so many at a time."""
        done = 0
        while done < number:
            lot = [Member(self.herd, opening(f"cycle-{done + each}") + CLOSE) for each in range(5)]
            done += len(lot)
            while any(not member.gone for member in lot):
                self.herd.pump(0.01)


def report_mark(good: bool) -> str:
    return "✓" if good else "✗"


def run(options: argparse.Namespace) -> None:
    load = Load(options.seconds)
    load.measure("nobody else", load.quiet)
    load.measure(f"{options.idle:,} connections that come", lambda: load.arrivals(options.idle))
    load.measure("and are idle", load.quiet)
    load.measure(f"and {options.busy} busy ones", lambda: load.many_busy(options.busy))
    full = load.resident()
    load.measure("a queue that is filled", load.filling)
    load.measure("a slow consumer of it", load.slow_consumer)
    load.measure("a flood of attaches", load.attaches)
    load.measure("a flood of tiny frames", load.tiny_frames)
    half = max(options.cycles // 2, 1)
    load.measure(f"{half:,} connections opened and closed", lambda: load.cycles(half))
    load.measure(f"and {half:,} more", lambda: load.cycles(half))
    load.measure("all of them quiet again", load.quiet)
    print(report.machine(), end="\n\n")
    print(report.table(HEAD, load.rows))
    print(f"\nThe broker with all idle and busy connections: {full / 1e6:,.0f} MB {report_mark(full <= MEMORY)}"
          f" ({full / max(options.idle + options.busy, 1) / 1000:.1f} KB a connection, all told)")  # fmt: skip
    load.probe.process.kill()
    load.broker.process.terminate()
