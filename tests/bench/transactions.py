"""What transactions cost the broker: how long the discharge of a large one holds it, and what an idle one weighs.

The broker is asked by an engine in the same thread; its time alone counts. A discharge is one step, so the time it
takes is also the longest that other connections wait for it.
"""

from __future__ import annotations

import argparse
import gc
import time
from statistics import median
from typing import Any

from jmsish.broker.broker import Broker
from jmsish.engine.link import Link
from jmsish.engine.outcomes import (
    ACCEPTED,
    Coordinator,
    Declare,
    Discharge,
    TransactionalState,
    encode_control,
)
from jmsish.engine.termini import Source
from tests.bench import report
from tests.bench.depth import allocated
from tests.bench.inmemory import Peer, payload

SIZES = (100, 1_000, 10_000, 100_000)
IDLE = 10_000
"""Open transactions without work, of which one is weighed."""
COLUMNS = (("posts", False), ("posts", True), ("retirements", False), ("retirements", True))
HEADS = tuple(f"{'rollback' if fail else 'commit'}, {kind}" for kind, fail in COLUMNS)


class Controlled:
    """A peer with a control link to a broker of its own."""

    def __init__(self) -> None:
        # As many transactions of one connection as are wanted: what is measured is their cost, not the cap on it.
        self.broker = Broker("transactions", {"limits": {"max_transactions": 0}}, clock=time.time)
        self.peer = Peer(self.broker)
        self.octets = payload()
        self.control: Link = self.peer.session.sender("control", source=Source(), target=Coordinator())
        self.peer.pump()

    def declare(self) -> TransactionalState:
        before = {view.id for view in self.broker.transactions()}
        self.control.send(encode_control(Declare()))
        self.peer.pump()
        (txn_id,) = {view.id for view in self.broker.transactions()} - before
        return TransactionalState(txn_id, ACCEPTED)

    def discharge(self, state: TransactionalState, fail: bool) -> float:
        """The longest single step of the broker, in seconds of its thread, while it discharges."""
        self.control.send(encode_control(Discharge(state.txn_id, fail)))
        data = self.peer.engine.take_output()
        before = time.thread_time()
        self.peer.connection.receive(data)
        taken = time.thread_time() - before
        self.peer.pump()
        return taken

    def post(self, state: TransactionalState, count: int) -> None:
        link = self.peer.sender("posted")
        bare = TransactionalState(state.txn_id)
        while count:
            some = min(count, link.credit)
            for _ in range(some):
                link.send(self.octets, state=bare, settled=True)
            count -= some
            self.peer.pump()

    def retire(self, state: TransactionalState, count: int) -> None:
        sender = self.peer.sender("retired")
        self.peer.fill(sender, count, self.octets)
        receiver = self.peer.receiver("retired")
        self.peer.pump()
        while count:
            some = min(count, 1000)
            for delivery in self.peer.take(receiver, some):
                self.peer.session.disposition(delivery, state, True)
            self.peer.pump()
            count -= some


def measure(kind: str, size: int, fail: bool, rounds: int) -> float:
    """Median seconds of a discharge of so many posts or retirements."""
    figures = []
    for _ in range(rounds):
        here = Controlled()
        state = here.declare()
        (here.post if kind == "posts" else here.retire)(state, size)
        gc.collect()
        figures.append(here.discharge(state, fail))
    return median(figures)


def weigh(count: int) -> float:
    """Octets of memory for each open transaction in which nothing was done."""
    here = Controlled()

    def declare() -> None:
        done = 0
        while done < count:
            some = min(count - done, here.control.credit)
            for _ in range(some):
                here.control.send(encode_control(Declare()))
            here.peer.pump()
            done += some

    octets = allocated(declare)
    if len(here.broker.transactions()) != count:
        raise RuntimeError("not all of them were declared")
    return octets / count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, help="the largest transaction (default: 100,000)")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each, of which the median counts")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")


def run(options: argparse.Namespace) -> dict[str, Any]:
    limit = options.n or SIZES[-1]
    sizes = tuple(size for size in SIZES if size <= limit) or (limit,)
    print(f"{report.machine()}; milliseconds that one discharge holds the broker\n")
    figures, rows = {}, []
    for size in sizes:
        taken = [measure(kind, size, fail, options.rounds) * 1000 for kind, fail in COLUMNS]
        figures[str(size)] = dict(zip(HEADS, taken, strict=True))
        rows.append([f"{size:,}", *map(report.figure, taken)])
    print(report.table(["messages", *HEADS], rows))
    idle = weigh(min(IDLE, limit))
    print(f"\nan open transaction without work, of {min(IDLE, limit):,}: {idle:,.0f} octets")
    result = {"milliseconds": figures, "idle": idle}
    report.write_json(options.json, result)
    return result
