"""The engine alone: a message's whole cycle (sent, received, accepted, settled) in memory.

Our engine against proton's C functions called through cffi in the cheapest way, and against proton's Python classes;
alone, and beside one thread that computes in Python, to which every cffi call may lose the interpreter lock.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Protocol

from jmsish.engine import events
from jmsish.engine.engine import Engine
from jmsish.engine.link import Link
from jmsish.engine.outcomes import ACCEPTED
from jmsish.engine.termini import Source, Target
from tests.bench import report
from tests.bench.inmemory import payload

BATCH = 100
CREDIT = 1000


class Cycle(Protocol):
    name: str

    def batch(self) -> None:
        """Take `BATCH` messages through their cycle."""


class OurCycle:
    """Two engines of ours."""

    name = "jmsish.engine"

    def __init__(self) -> None:
        self.octets = payload()
        self.client = Engine(server=False, container_id="client")
        self.server = Engine(server=True, container_id="server")
        self.receiver: Link
        self.client.open()
        session = self.client.begin()
        self.sender = session.sender("link", source=Source(), target=Target(address="q"))
        for _ in range(4):
            self.move()
        assert self.sender.credit == CREDIT

    def move(self) -> None:
        self.server.receive(self.client.take_output())
        for event in self.server.take_events():
            if event[0] == events.OPENED:
                self.server.open()
            elif event[0] == events.BEGUN:
                event[1].accept_begin()
            elif event[0] == events.ATTACHED:
                self.receiver = event[1]
                event[1].attach()
                event[1].flow(CREDIT)
        self.client.receive(self.server.take_output())
        self.client.take_events()

    def batch(self) -> None:
        client, server, send, octets = self.client, self.server, self.sender.send, self.octets
        for _ in range(BATCH):
            send(octets)
        server.receive(client.take_output())
        disposition = self.receiver.session.disposition
        for event in server.take_events():
            disposition(event[2], ACCEPTED)
        self.receiver.flow(CREDIT)
        client.receive(server.take_output())
        client.take_events()


class ProtonClasses:
    """Proton's Python classes over its C functions, without its reactor and without encoding."""

    name = "proton, its Python classes"

    def __init__(self) -> None:
        from proton import Collector, Connection, Delivery, Event, Transport

        self.accepted, self.kinds = Delivery.ACCEPTED, Event
        self.ends = []
        for server in (False, True):
            connection, collector = Connection(), Collector()
            transport = Transport(Transport.SERVER if server else Transport.CLIENT)
            connection.collect(collector)
            transport.bind(connection)
            self.ends.append((connection, transport, collector))
        self.octets = payload()
        self.number = 0
        connection = self.ends[0][0]
        connection.open()
        session = connection.session()
        session.open()
        self.sender = session.sender("link")
        self.sender.open()
        for _ in range(6):
            self.move()
        assert self.sender.credit == CREDIT

    def move(self) -> None:
        client, server = self.ends
        self.carry(client[1], server[1])
        self.work(server[2])
        self.carry(server[1], client[1])
        self.work(client[2])

    @staticmethod
    def carry(source: Any, target: Any) -> None:
        while (size := source.pending()) > 0:
            some = min(size, target.capacity())
            target.push(source.peek(some))
            source.pop(some)

    def work(self, collector: Any) -> None:
        kinds = self.kinds
        while (event := collector.peek()) is not None:
            if event.type == kinds.DELIVERY:
                delivery = event.delivery
                if delivery.link.is_receiver:
                    delivery.link.recv(delivery.pending)
                    delivery.link.advance()
                    delivery.update(self.accepted)
                    delivery.settle()
                elif delivery.updated:
                    delivery.settle()
            elif event.type in (kinds.CONNECTION_REMOTE_OPEN, kinds.SESSION_REMOTE_OPEN, kinds.LINK_REMOTE_OPEN):
                event.context.open()
                if event.type == kinds.LINK_REMOTE_OPEN and event.context.is_receiver:
                    self.receiver = event.context
                    self.receiver.flow(CREDIT)
            collector.pop()

    def batch(self) -> None:
        sender = self.sender
        for _ in range(BATCH):
            self.number += 1
            sender.delivery(str(self.number))
            sender.stream(self.octets)
            sender.advance()
        self.receiver.flow(BATCH)
        self.move()


# -- measuring ---------------------------------------------------------------------------------------------------------


def alone(cycle: Cycle, count: int) -> tuple[float, float]:
    """CPU microseconds a message, and messages a second."""
    batches = max(1, count // BATCH)
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(batches):
        cycle.batch()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu / batches / BATCH * 1e6, batches * BATCH / wall


def beside(cycle: Cycle, seconds: float) -> float:
    """Messages a second beside one thread that computes."""
    stop = False

    def compute() -> None:
        number = 0
        while not stop:
            number += 1

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        done = 0
        begun = time.perf_counter()
        while (passed := time.perf_counter() - begun) < seconds:
            cycle.batch()
            done += BATCH
        return done / passed
    finally:
        stop = True
        thread.join()


def cycles() -> list[Callable[[], Cycle]]:
    found: list[Callable[[], Cycle]] = [OurCycle]
    if importlib.util.find_spec("cproton_ffi") is not None:
        from tests.bench.engine_cffi import ForeignCycle

        found += [ForeignCycle, ProtonClasses]
    else:
        print("without proton: it is not installed (pip install 'jmsish[peers]')")
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=50_000, help="messages of one repetition (default: 50,000)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions, of which the median counts (default: 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long beside the computing thread (default: 1)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")


def run(options: argparse.Namespace) -> dict[str, Any]:
    print(f"{report.machine()}; {len(payload())}-octet messages in batches of {BATCH}\n")
    running = [make() for make in cycles()]
    found: dict[str, list[tuple[float, float]]] = {cycle.name: [] for cycle in running}
    for _ in range(options.repeat):
        for cycle in running:
            found[cycle.name].append(alone(cycle, options.n))
    figures = {
        cycle.name: {
            "cpu_us": median(cpu for cpu, _ in found[cycle.name]),
            "rate": median(rate for _, rate in found[cycle.name]),
            "rate_beside": beside(cycle, options.seconds),
        }
        for cycle in running
    }
    heads = ["engine", "CPU µs a message", "messages a second", "beside a computing thread"]
    print(report.table(heads, [[name, *map(report.figure, each.values())] for name, each in figures.items()]))
    report.write_json(options.json, figures)
    return figures


if __name__ == "__main__":
    options = argparse.ArgumentParser(prog="python -m tests.bench.engine", description=__doc__)
    add_arguments(options)
    run(options.parse_args(sys.argv[1:]))
