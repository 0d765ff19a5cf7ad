"""A quick receiver beside one that is slow, stands still, or has stopped amid a large message.

The streams of both have senders of their own, and go through the same two routers over the one connection between them.
Alone and beside take turns, each for some seconds, so that what else the machine does meets both. The slow one has a
sender that sends whenever it is let; what it costs is counted with the CPU of the process, in which all of it is: so
CPU a message grows by what is done for the slow one, and the rate is what says whether the quick one waits.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import jmsish
from jmsish.testing import RouterNetwork
from tests.bench import report
from tests.bench.clients.protocol import PATIENCE, TEXT

PAUSE = 0.02
"""Seconds that the slow receiver takes for a message."""
PIECE = bytes(1 << 16)

Stall = Callable[[str, str, threading.Event], None]


def dawdling(near: str, far: str, over: threading.Event) -> None:
    """A receiver that takes one message each twentieth of a second."""
    with jmsish.connect(far, prefetch=10) as connection:
        consumer = connection.create_session().create_consumer(jmsish.Queue("slow"))
        pressing = threading.Thread(target=press, args=(near, over, "slow"))
        pressing.start()
        while consumer.receive(timeout=0.5) is not None or not over.is_set():
            over.wait(PAUSE)
        pressing.join(PATIENCE)


def standing(near: str, far: str, over: threading.Event) -> None:
    """A receiver that takes nothing more once it has its prefetch."""
    with jmsish.connect(far, prefetch=10) as connection:
        consumer = connection.create_session().create_consumer(jmsish.Queue("slow"))
        pressing = threading.Thread(target=press, args=(near, over, "slow"))
        pressing.start()
        over.wait()
        while consumer.receive(timeout=0.5) is not None:
            pass
        pressing.join(PATIENCE)


def amid(near: str, far: str, over: threading.Event) -> None:
    """A receiver that has begun to read a large message, and does not read on before the end."""
    with jmsish.connect(far, stream_threshold=1 << 20) as connection:
        consumer = connection.create_session().create_consumer(jmsish.Queue("slow"))
        giving = threading.Thread(target=give, args=(near,))
        giving.start()
        message = consumer.receive(timeout=PATIENCE)
        assert isinstance(message, jmsish.BytesMessage)
        with message.open() as body:
            body.read(1)
            over.wait()
            while body.read(len(PIECE)):
                pass
        giving.join(PATIENCE)


STALLS: dict[str, Stall] = {"a slow one": dawdling, "one that stands still": standing, "one amid a large message": amid}


def give(url: str) -> None:
    """Send sixteen mebioctets: more than all that is held on the way."""
    with jmsish.connect(url) as connection:
        producer = connection.create_session().create_producer(jmsish.Queue("slow"))
        producer.send(stream=(PIECE for _ in range(256)))


def press(url: str, over: threading.Event, queue: str) -> None:
    """Send as fast as the credit goes."""
    with jmsish.connect(url, send_timeout=0.2) as connection:
        producer = connection.create_session().create_producer(jmsish.Queue(queue))
        producer.delivery_mode = jmsish.DeliveryMode.NON_PERSISTENT
        while not over.is_set():
            try:
                producer.send(TEXT)
            except jmsish.OperationTimeoutError:
                pass


class Quick:
    """The quick stream, which goes on all the time; it is counted when that is wanted."""

    def __init__(self, far: str) -> None:
        self._connection = jmsish.connect(far)
        self._consumer = self._connection.create_session().create_consumer(jmsish.Queue("quick"))

    def count(self, seconds: float) -> tuple[float, float]:
        """Messages a second, and CPU of the whole process, in µs a message."""
        self._take()
        cpu, began, count = time.process_time(), time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            self._take()
            count += 1
        return count / (time.perf_counter() - began), (time.process_time() - cpu) / count * 1e6

    def _take(self) -> None:
        if self._consumer.receive(timeout=PATIENCE) is None:
            raise SystemExit(f"no message within {PATIENCE} seconds")

    def close(self) -> None:
        while self._consumer.receive(timeout=0.2) is not None:
            pass
        self._connection.close()


@contextmanager
def quick(near: str, far: str) -> Iterator[Quick]:
    over = threading.Event()
    stream = Quick(far)
    sending = threading.Thread(target=press, args=(near, over, "quick"))
    sending.start()
    try:
        yield stream
    finally:
        over.set()
        stream.close()
        sending.join(PATIENCE)


@contextmanager
def stalled(stall: Stall, near: str, far: str) -> Iterator[None]:
    over = threading.Event()
    slow = threading.Thread(target=stall, args=(near, far, over))
    slow.start()
    time.sleep(0.3)  # until it has all that it takes
    try:
        yield
    finally:
        over.set()
        slow.join(PATIENCE)


def measure(transport: str, stall: Stall, seconds: float, turns: int) -> dict[str, Any]:
    """In turns: alone, beside, alone, beside …; medians."""
    alone, beside = [], []
    with RouterNetwork("R1-R2", transport=transport) as network:
        near, far = network["R1"].url, network["R2"].url
        with quick(near, far) as stream:
            for _ in range(turns):
                alone.append(stream.count(seconds / turns))
                with stalled(stall, near, far):
                    beside.append(stream.count(seconds / turns))
    (rate, cpu), (rate_beside, cpu_beside) = (tuple(map(median, zip(*each, strict=True))) for each in (alone, beside))
    return {
        "transport": transport, "alone": rate, "beside": rate_beside, "of": rate_beside / rate,
        "cpu_us": cpu, "cpu_us_beside": cpu_beside,
    }  # fmt: skip


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    found = [
        {"stall": name, **measure(transport, stall, options.seconds, options.turns)}
        for transport in options.transports
        for name, stall in STALLS.items()
    ]
    rows = [
        [f"{each['transport']}, {each['stall']}", report.figure(each["alone"]), report.figure(each["beside"]),
         f"{each['of'] * 100:.0f} %", report.figure(each["cpu_us"]), report.figure(each["cpu_us_beside"])]
        for each in found
    ]  # fmt: skip
    print("\nA quick receiver over two routers, messages a second\n")
    print(report.table(["beside", "alone", "beside it", "of that", "CPU µs alone", "CPU µs beside"], rows))
    return found
