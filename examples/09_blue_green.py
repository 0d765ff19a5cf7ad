"""A blue/green switch: consumers of a new version take over from those of the old one, in the middle of the traffic.

Four shops publish orders through one exchange without a pause. First the queue `blue` gets them all, then `green`, then
`blue` again: each switch is one request, REBIND, that takes the bindings of one queue away and adds those of the other
between two messages. So no order is lost or doubled, and each shop's orders lie in blue, then green, then blue, without
a gap and in their order. That is checked, and drawn.

Run it:  python examples/09_blue_green.py [amqp://host] [picture.svg]
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import jmsish

SHOPS = ["Aarhus", "Bergen", "Cardiff", "Dresden"]
ORDERS = 120
"""Of each shop."""
SWITCHES = ["green", "blue"]
COLOURS = {"blue": "#2a78d6", "green": "#1f9d55"}
STRIP = {"blue": "█", "green": "░"}


class Got(NamedTuple):
    """An order that came out of a queue."""

    queue: str
    shop: int
    number: int
    sent: float


class Site:
    """The broker's queues and exchange, made and changed by requests to its management node."""

    def __init__(self, session: jmsish.Session) -> None:
        self._session = session
        self._answers = session.create_temporary_queue()
        self._producer = session.create_producer(session.create_queue("$management"))
        self._consumer = session.create_consumer(self._answers)
        run = uuid.uuid4().hex[:8]
        self.exchange = f"orders-{run}"
        self.queues = {colour: f"orders-{colour}-{run}" for colour in COLOURS}

    def ask(self, operation: str, type: str, name: str, body: dict[str, Any] | None = None) -> None:
        request = self._session.create_object_message(body or {})
        request.properties.update(operation=operation, type=type, name=name)
        request.jms_reply_to = self._answers
        self._producer.send(request)
        answer = self._consumer.receive(timeout=10)
        assert answer is not None
        assert answer.properties["statusCode"] < 300, answer.properties["statusDescription"]

    def bindings(self, colour: str) -> list[dict[str, str]]:
        """A key for each shop."""
        return [{"queue": self.queues[colour], "key": shop} for shop in SHOPS]

    def switch(self, old: str, new: str) -> None:
        self.ask("REBIND", "exchange", self.exchange, {"remove": self.bindings(old), "add": self.bindings(new)})

    @contextmanager
    def built(self) -> Iterator[None]:
        self.ask("CREATE", "exchange", self.exchange, {"exchange_type": "direct"})
        for name in self.queues.values():
            self.ask("CREATE", "queue", name)
        self.ask("REBIND", "exchange", self.exchange, {"add": self.bindings("blue")})
        try:
            yield
        finally:
            self.ask("DELETE", "exchange", self.exchange)
            for name in self.queues.values():
                self.ask("DELETE", "queue", name)


def sell(url: str, site: Site, shop: int, sent: threading.Semaphore) -> None:
    with jmsish.connect(url) as connection:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue(f"{site.exchange}/{SHOPS[shop]}"))
        for number in range(ORDERS):
            producer.send({"shop": shop, "number": number, "sent": time.monotonic()})
            sent.release()
            time.sleep(0.002)  # the next customer


def serve(
    url: str, site: Site, colour: str, got: list[Got], enough: threading.Semaphore, over: threading.Event
) -> None:
    with jmsish.connect(url) as connection:
        consumer = connection.create_session().create_consumer(jmsish.Queue(site.queues[colour]))
        while not over.is_set():
            message = consumer.receive(timeout=0.1)
            if message is not None:
                body = message.body
                got.append(Got(colour, body["shop"], body["number"], body["sent"]))
                enough.release()


def check(got: list[Got]) -> None:
    """Every order once; each shop's in order; and blue, green, blue without coming back in between."""
    for shop in range(len(SHOPS)):
        mine = [each for each in got if each.shop == shop]
        assert sorted(each.number for each in mine) == list(range(ORDERS)), f"lost or doubled: {SHOPS[shop]}"
        for colour in COLOURS:
            numbers = [each.number for each in mine if each.queue == colour]
            assert numbers == sorted(numbers), f"out of order: {SHOPS[shop]} in {colour}"
        bands = [each.queue for each in sorted(mine, key=lambda each: each.number)]
        runs = [colour for colour, _ in groupby(bands)]
        way = iter(["blue", *SWITCHES])
        assert all(colour in way for colour in runs), f"not switched in one step: {runs}"


def strip(got: list[Got]) -> str:
    """A line for each shop: which queue got each of its orders."""
    lines = []
    for shop, name in enumerate(SHOPS):
        mine = {each.number: STRIP[each.queue] for each in got if each.shop == shop}
        lines.append(f"{name:>8} {''.join(mine[number] for number in range(0, ORDERS, 2))}")
    return "\n".join([*lines, f"{'':>8} order 1 to {ORDERS}:  {STRIP['blue']} blue  {STRIP['green']} green"])


def picture(got: list[Got]) -> str:
    """The same over time, as SVG: one mark for each order, at the moment it was sent."""
    first, last = min(each.sent for each in got), max(each.sent for each in got)
    scale = 600 / (last - first or 1)
    ink = 'font-family="sans-serif" font-size="13" fill="#444"'
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="720" height="230" viewBox="0 0 720 230">']
    parts.append('<rect width="720" height="230" fill="#fff"/>')
    for shop, name in enumerate(SHOPS):
        parts.append(f'<text x="8" y="{49 + 40 * shop}" {ink}>{name}</text>')
    for each in got:
        x, y = 90 + (each.sent - first) * scale, 30 + 40 * each.shop
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="2" height="28" fill="{COLOURS[each.queue]}"/>')
    parts.append(f'<text x="90" y="212" {ink}>0 ms</text>')
    parts.append(f'<text x="690" y="212" text-anchor="end" {ink}>{(last - first) * 1000:.0f} ms</text>')
    for at, (colour, fill) in enumerate(COLOURS.items()):
        x = 300 + 80 * at
        parts.append(f'<rect x="{x}" y="201" width="12" height="12" fill="{fill}"/>')
        parts.append(f'<text x="{x + 18}" y="212" {ink}>{colour}</text>')
    return "\n".join([*parts, "</svg>\n"])


def run(url: str, site: Site) -> list[Got]:
    """All the orders, in the order in which they came out of the queues."""
    got: list[Got] = []
    sent, enough, over = threading.Semaphore(0), threading.Semaphore(0), threading.Event()
    total = len(SHOPS) * ORDERS
    threads = [threading.Thread(target=serve, args=(url, site, each, got, enough, over)) for each in COLOURS]
    threads += [threading.Thread(target=sell, args=(url, site, shop, sent)) for shop in range(len(SHOPS))]
    for thread in threads:
        thread.start()
    try:
        old = "blue"
        for new in SWITCHES:
            for _ in range(total // 3):  # a third of the orders, and they do not stop coming
                assert sent.acquire(timeout=30)
            site.switch(old, new)
            old = new
        for _ in range(total):
            assert enough.acquire(timeout=30), "an order is lost"
    finally:
        over.set()
        for thread in threads:
            thread.join()
    return got


def demonstrate(url: str, file: Path) -> None:
    with jmsish.connect(url) as connection:
        site = Site(connection.create_session())
        with site.built():
            got = run(url, site)
    check(got)
    print(strip(got))
    counts = {colour: sum(each.queue == colour for each in got) for colour in COLOURS}
    print(f"{len(got)} orders, none lost, doubled or out of order: {counts}")
    file.write_text(picture(got), encoding="utf-8")
    print(f"over time: {file}")


def main() -> None:
    urls = [each for each in sys.argv[1:] if "://" in each]
    files = [Path(each) for each in sys.argv[1:] if "://" not in each]
    file = files[0] if files else Path(tempfile.mkdtemp(prefix="jmsish-")) / "blue_green.svg"
    if urls:
        demonstrate(urls[0], file)
    else:
        with jmsish.EmbeddedBroker() as broker:
            demonstrate(broker.url, file)


if __name__ == "__main__":
    main()
