"""The broker alone, without a socket: what it takes for a message in, a message out, a transaction of ten and ten."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

from jmsish.broker.broker import Broker
from jmsish.engine.delivery import Delivery
from jmsish.engine.outcomes import ACCEPTED, Declare, Discharge, TransactionalState, encode_control
from jmsish.engine.termini import Coordinator, Source
from tests.bench import report
from tests.bench.clients.protocol import BATCH, PREFETCH
from tests.bench.clients.sampling import Sampler
from tests.bench.inmemory import Peer, payload

BURST = 200
"""Messages of one read, or acknowledged in one write."""


class Subject:
    """A broker, and a peer that asks it for the same again and again."""

    def __init__(self) -> None:
        self.peer = Peer(Broker("bench", clock=time.time))
        self.octets = payload()
        self.sender = self.peer.sender("in")
        self.results = self.peer.sender("out")
        coordinator = Coordinator(("amqp:local-transactions",))
        self.control = self.peer.session.sender("control", source=Source(), target=coordinator)
        self.peer.pump()

    def incoming(self, count: int) -> None:
        """Messages come in, in bursts, and are accepted."""
        for _ in range(count // BURST):
            self.peer.fill(self.sender, BURST, self.octets)

    def outgoing(self, count: int) -> None:
        """Messages go out as fast as credit allows, and are accepted in bursts."""
        receiver = self.peer.receiver("in")
        receiver.flow(PREFETCH)
        self.peer.pump()
        left = count
        while left:
            some = [self.peer.received.popleft()[1] for _ in range(min(BURST, left))]
            left -= len(some)
            for delivery in some:
                self.peer.session.disposition(delivery, ACCEPTED)
            receiver.flow(min(PREFETCH, left))
            self.peer.pump()
        receiver.detach()
        self.peer.pump()
        self.peer.received.clear()

    def transactions(self, count: int) -> None:
        """Ten in and ten out, committed, each next transaction declared with the discharge of the one before."""
        receiver = self.peer.receiver("in")
        receiver.flow(PREFETCH)
        self.peer.pump()
        identity = self.declared(self.control.send(encode_control(Declare())))
        for _ in range(count):
            state = TransactionalState(identity, ACCEPTED)
            for _ in range(BATCH):
                self.peer.session.disposition(self.peer.received.popleft()[1], state)
                self.results.send(self.octets, state=TransactionalState(identity), settled=True)
            receiver.flow(PREFETCH - len(self.peer.received))
            self.control.send(encode_control(Discharge(identity, False)))
            identity = self.declared(self.control.send(encode_control(Declare())))
        receiver.detach()
        self.peer.pump()
        self.peer.received.clear()

    def declared(self, delivery: Delivery) -> bytes:
        self.peer.pump()
        identity: bytes = delivery.remote_state.txn_id  # type: ignore[union-attr]
        return identity


WORKS: dict[str, tuple[Callable[[Subject, int], None], int]] = {
    # name: what is done, and how many messages must wait for one unit of it
    "message in": (Subject.incoming, 0),
    "message out": (Subject.outgoing, 1),
    "10 in + 10 out + commit": (Subject.transactions, BATCH),
}


def measure(name: str, count: int, sampler: Sampler | None = None) -> float:
    """Microseconds of CPU of the broker for one unit, on a fresh broker."""
    work, takes = WORKS[name]
    subject = Subject()
    if takes:
        subject.incoming(count * takes + PREFETCH + BURST)
    before = subject.peer.seconds
    if sampler is not None:
        sampler.enable()
    work(subject, count)
    if sampler is not None:
        sampler.disable()
    return (subject.peer.seconds - before) / count * 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=40_000, help="messages of one repetition (default: 40,000)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, of which the median counts (default: 3)")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")


def run(options: argparse.Namespace) -> dict[str, float]:
    print(f"{report.machine()}; CPU of the broker without sockets, {len(payload())}-octet messages\n")
    figures, profiles = {}, []
    for name, (_, takes) in WORKS.items():
        count = max(BURST, options.n // max(takes * 2, 1) // BURST * BURST)
        figures[name] = median(measure(name, count) for _ in range(options.repeat))
        if options.profile:
            sampler = Sampler(only="brokers_turn")
            profiles.append(f"\n### Profile: {name}\n" + sampler.summary(measure(name, count, sampler)))
    print(report.table(["unit", "µs"], [[name, report.figure(value)] for name, value in figures.items()]))
    print(*profiles, sep="\n")
    report.write_json(options.json, figures)
    return figures
