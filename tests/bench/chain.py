"""A line of routers, each in a process of its own, as a production network has them."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import jmsish
from jmsish.cli.management import node
from tests.bench.programs import DEADLINE, Failed, Process, our_broker

PREFIX = "work."
"""Of the addresses that lead to the broker."""
STORE = f'''[[connectors]]
name = "store"
url = "{{}}"
role = "normal"
[[link_routes]]
prefix = "{PREFIX}"
connector = "store"
'''
LISTENER = '[[listeners]]\nport = 0\nrole = "{}"\n'


@dataclass
class Chain:
    """Where to come in at its two ends, and its processes in the order of the line."""

    near: str
    far: str
    processes: list[Process]

    def busy_for(self) -> float:
        """Seconds of CPU that all of them have taken."""
        return sum(map(busy_for, self.processes))

    def peaks(self) -> list[int]:
        """The most memory that each has had, in octets."""
        return [resident(process, "VmHWM") for process in self.processes]


def door(line: str) -> str:
    """The URL in a line like ``listening on amqp://127.0.0.1:5673 for edge``."""
    return line.removeprefix("listening on ").partition(" ")[0]


def busy_for(process: Process) -> float:
    fields = Path(f"/proc/{process.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def resident(process: Process, what: str = "VmRSS") -> int:
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith(what))) * 1024


def wait_for_route(url: str) -> None:
    """Until the router there knows the link route."""
    end = time.monotonic() + DEADLINE
    with jmsish.connect(url) as connection, node(connection) as management:
        while not management.rows("link_route"):
            if time.monotonic() > end:
                raise Failed(f"{url} knows no link route")


@contextmanager
def chain(length: int, *, brokered: bool = False) -> Iterator[Chain]:
    """So many routers; without any, one broker: what the routers are compared with.

    ``brokered`` has the broker too, behind the last router, and ``far`` is the broker itself.
    """
    with ExitStack() as stack:
        broker: list[Process] = []
        url = "" if length and not brokered else stack.enter_context(our_broker(started=broker.append))
        if not length:
            yield Chain(url, url, broker)
            return
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        doors: list[tuple[str, str]] = []
        processes: list[Process] = []
        for number in range(length, 0, -1):  # the last first: each dials the one behind it
            uplink = f'[[connectors]]\nurl = "{doors[0][1]}"\nrole = "inter-router"\n' if doors else STORE.format(url)
            uplink = uplink if doors or brokered else ""
            config = folder / f"{number}.toml"
            router = f'[router]\nid = "R{number}"\nmode = "interior"\n'
            config.write_text(router + uplink + LISTENER.format("normal") + LISTENER.format("inter-router"))
            process = Process([sys.executable, "-m", "jmsish", "broker", "--config", str(config)])
            stack.callback(process.finish)
            stack.callback(process.process.terminate)
            doors.insert(0, (door(process.answer()), door(process.rest())))
            processes.insert(0, process)
        if brokered:
            wait_for_route(doors[0][0])
        yield Chain(doors[0][0], url or doors[-1][0], processes + broker)
