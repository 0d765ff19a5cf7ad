"""What an exchange costs: routes a second by the number of bindings, and changes of bindings under traffic.

The broker's own objects are asked, in one thread, so it is CPU time. *Lookup* is from a key to the queues, *enqueue*
is lookup and the message in all of them. *Warm* are keys that came lately, *cold* are keys that the table does not
remember: in a topic exchange no key comes twice, in a direct one all is forgotten before each. (In a fanout exchange
keys do not matter: it looks its bindings up once.)

The matcher of paho-mqtt, the usual MQTT client of Python, is asked about the same patterns and keys in the same run:
``+`` for ``*``, ``/`` for ``.``, and ``#`` at the end only, where both mean the same by it.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, cycle, islice
from statistics import median
from typing import Any

from jmsish.broker.broker import Broker
from jmsish.broker.exchanges import DISCARD, Exchange
from tests.bench import report
from tests.bench.inmemory import payload

SIZES = (10, 1_000, 100_000)
QUEUES = 100
WARM_KEYS = 1_000
BOUND = 1_000
"""Bindings of the exchange whose bindings change."""
MOVED = 10
"""Bindings that one rebind, or one freeze, takes away, and as many it adds."""
OCTETS = payload()


class Play:
    """An exchange with so many bindings, spread over queues."""

    def __init__(self, type: str, size: int) -> None:
        self.broker = Broker("exchanges", clock=time.time)
        self.broker.declare_exchange("x", type)
        self.exchange: Exchange = self.broker.router.exchanges.named("x")
        self.queues = [self.broker.router.declare(f"q{i}", {}) for i in range(QUEUES)]
        self.size = size
        changes = self.exchange.changes()
        for number, pattern in enumerate(patterns(size) if type == "topic" else map(key_of, range(size))):
            changes.bind(self.queues[number % (10 if type == "fanout" else QUEUES)], pattern)
        changes.put_in_force()

    def route(self, keys: Sequence[str]) -> None:
        route = self.exchange.route
        for key in keys:
            route(key, OCTETS, 0, None, DISCARD)

    def enqueue(self, keys: Sequence[str]) -> None:
        route = self.exchange.route
        for key in keys:
            route(key, OCTETS, 0, None, DISCARD).append(OCTETS, 4)

    def route_cold(self, keys: Sequence[str]) -> None:
        route, forget = self.exchange.route, self.exchange.table.retire
        for key in keys:
            forget()
            route(key, OCTETS, 0, None, DISCARD)

    def enqueue_cold(self, keys: Sequence[str]) -> None:
        route, forget = self.exchange.route, self.exchange.table.retire
        for key in keys:
            forget()
            route(key, OCTETS, 0, None, DISCARD).append(OCTETS, 4)

    def empty(self) -> None:
        for queue in self.queues:
            queue.purge()


def key_of(number: int) -> str:
    return f"shop.{number}"


def patterns(size: int) -> Iterator[str]:
    """Patterns over plants, lines, machines and what they measure; one in three has a wildcard."""
    for i in range(size):
        plant, line, machine = i % 50, i // 50 % 40, i // 2000
        if i % 3:
            yield f"plant{plant}.line{line}.machine{machine}.temperature"
        elif i % 2:
            yield f"plant{plant}.*.machine{machine}.line{line}"
        else:
            yield f"plant{plant}.line{line}.machine{machine}.#"


def keys_for(type: str, size: int, chance: random.Random) -> Iterator[str]:
    """Keys without end; those of a topic exchange never come twice, for their last word."""
    if type != "topic":
        while True:
            yield key_of(chance.randrange(size))
    for number in count():
        i = chance.randrange(size)
        yield f"plant{i % 50}.line{i // 50 % 40}.machine{i // 2000}.sensor{number}"


def rate(call: Callable[[Sequence[str]], Any], keys: Sequence[str]) -> float:
    """Keys a second of CPU."""
    start = time.process_time()
    call(keys)
    return len(keys) / max(time.process_time() - start, 1e-6)


def routes(type: str, size: int, options: argparse.Namespace) -> dict[str, Any]:
    play = Play(type, size)
    source = keys_for(type, size, random.Random(size))
    few = list(islice(source, min(WARM_KEYS, size)))
    warm = list(islice(cycle(few), options.n))
    if type == "direct":
        play.route([key_of(number) for number in range(size)])  # the first message of a binding costs a little more
    found: dict[str, list[float]] = {name: [] for name in ("warm", "cold", "warm enqueue", "cold enqueue")}
    for _ in range(options.repeat):
        play.route(few)
        found["warm"].append(rate(play.route, warm))
        found["warm enqueue"].append(rate(play.enqueue, warm))
        play.empty()
        if type == "fanout":
            continue
        cold = list(islice(source, options.n // 4 or 1))
        found["cold"].append(rate(play.route if type == "topic" else play.route_cold, cold))
        cold = list(islice(source, options.n // 4 or 1))
        found["cold enqueue"].append(rate(play.enqueue if type == "topic" else play.enqueue_cold, cold))
        play.empty()
    return {"type": type, "bindings": size, **{name: median(values or [0.0]) for name, values in found.items()}}


def beside_paho(size: int, options: argparse.Namespace) -> dict[str, Any]:
    """Both matchers on the same patterns and the same keys, which are cold for ours."""
    from paho.mqtt.matcher import MQTTMatcher

    play, theirs = Play("topic", size), MQTTMatcher()
    for number, pattern in enumerate(patterns(size)):
        theirs[pattern.replace(".", "/").replace("*", "+")] = number
    source = keys_for("topic", size, random.Random(size))
    ours: list[float] = []
    other: list[float] = []
    for _ in range(options.repeat):
        keys = list(islice(source, options.n // 4 or 1))
        topics = [key.replace(".", "/") for key in keys]
        ours.append(rate(play.route, keys))
        other.append(rate(lambda topics: [list(theirs.iter_match(topic)) for topic in topics], topics))
    match = play.exchange.table.match
    for key in keys[:1000]:
        assert len(match(key, OCTETS).bounds) == len(list(theirs.iter_match(key.replace(".", "/")))), key
    return {"bindings": size, "jmsish": median(ours), "paho": median(other)}


# --- changes


def changes(type: str, options: argparse.Namespace) -> dict[str, Any]:
    """Microseconds of CPU of one change, in which nobody else is served; between them there is traffic."""
    play = Play(type, BOUND)
    view = play.broker.exchange("x")
    traffic = list(islice(keys_for(type, BOUND, random.Random(1)), 2_000))
    found: dict[str, list[float]] = {"bind": [], "unbind": [], "rebind": [], "freeze": []}
    old, new = ([(f"q{QUEUES - 1 - side}", f"moved.{i}") for i in range(MOVED)] for side in (0, 1))
    view.rebind(add=old)
    for _ in range(options.swaps):
        play.route(traffic)
        found["bind"].append(micros(lambda: view.bind("q0", "one.more")))
        play.route(traffic)
        found["unbind"].append(micros(lambda: view.unbind("q0", "one.more")))
        play.route(traffic)
        found["rebind"].append(micros(partial(view.rebind, add=new, remove=old)))
        old, new = new, old
        play.route(traffic)
        found["freeze"].append(freeze(play, old, new))
        old, new = new, old
    return {"type": type, **{name: {"median": median(each), "most": max(each)} for name, each in found.items()}}


def freeze(play: Play, old: list[tuple[str, str]], new: list[tuple[str, str]]) -> float:
    """All the CPU that is spent while the gate is closed."""
    freezes = play.broker.freezes

    def all_of_it() -> None:
        held = freezes.acquire(("x",), "holder")
        staged = held.hold_of("x").changes
        for item in old:
            staged.remove(item)
        for item in new:
            staged.add(item)
        freezes.release(held)

    return micros(all_of_it)


def micros(call: Callable[[], Any]) -> float:
    start = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - start) / 1000


# --- report


def shown(figure: float) -> str:
    return report.figure(figure) if figure else ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=200_000, help="messages of one repetition (default: 200,000)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions, of which the median counts (default: 5)")
    parser.add_argument("--swaps", type=int, default=500, help="changes of each kind (default: 500)")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the greatest number of bindings (100,000)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")


def run(options: argparse.Namespace) -> dict[str, Any]:
    print(f"{report.machine()}; messages of {len(OCTETS)} octets\n")
    sizes = [size for size in SIZES if size <= options.most]
    figures: dict[str, Any] = {}
    figures["routes"] = [routes(type, size, options) for type in ("direct", "fanout", "topic") for size in sizes]
    names = ("warm", "cold", "warm enqueue", "cold enqueue")
    rows = [
        [f"{each['type']}, {each['bindings']:,} bindings", *map(shown, (each[name] for name in names))]
        for each in figures["routes"]
    ]
    print(report.table(["routes a second", *names], rows), "\n")
    if importlib.util.find_spec("paho") is None:
        print("without paho: it is not installed (pip install 'jmsish[peers]')\n")
    else:
        figures["matchers"] = [beside_paho(size, options) for size in sizes]
        rows = [
            [
                f"{each['bindings']:,} patterns",
                report.figure(each["jmsish"]),
                report.figure(each["paho"]),
                report.times(each["jmsish"] / each["paho"]),
            ]
            for each in figures["matchers"]
        ]
        print(report.table(["cold keys a second", "jmsish", "paho-mqtt", "jmsish is"], rows), "\n")
    figures["changes"] = [changes(type, options) for type in ("direct", "fanout", "topic")]
    kinds = ("bind", "unbind", "rebind", "freeze")
    rows = [
        [f"{each['type']}, {BOUND:,} bindings", *(f"{each[k]['median']:.0f} ({each[k]['most']:.0f})" for k in kinds)]
        for each in figures["changes"]
    ]
    print(report.table(["µs of CPU, gate closed: median (most)", *kinds], rows))
    print(f"\n(A rebind and a freeze here take {MOVED} bindings away and add {MOVED}.)")
    report.write_json(options.json, figures)
    return figures


if __name__ == "__main__":
    parsed = argparse.ArgumentParser(prog="python -m tests.bench.exchanges", description=__doc__)
    add_arguments(parsed)
    run(parsed.parse_args(sys.argv[1:]))
