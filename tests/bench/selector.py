"""A selector on messages that are octets, and on properties that are a dict, beside other evaluators of expressions.

No other Python package has the selectors of JMS. Two are compared that evaluate such an expression on a dict:
rule-engine, whose language is the nearest, and evalidate, the fastest, which compiles checked Python. Neither has
three-valued logic: with evalidate an absent property raises. For octets they need somebody to decode: proton's Python
classes, which is the usual way, or our own decoder of application properties.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

from jmsish import Selector, TextMessage
from jmsish.destination import Queue
from jmsish.engine.codec import ReceivedMessage, encode_for_send
from jmsish.engine.selecting import predicate
from tests.bench import report

TEXT = "colour = 'red' AND weight > 10"
PROPERTIES = {"region": "north", "colour": "red", "count": 5, "weight": 11, "fragile": True}
BATCH = 1000


class Way(NamedTuple):
    """One way to evaluate: from the octets of a message, and from a dict of its properties."""

    name: str
    octets: Callable[[], Any] | None
    properties: Callable[[], Any] | None


def payload() -> bytes:
    """A message with five properties, as a client sends it."""
    message = TextMessage("x" * 100)
    message.properties.update(PROPERTIES)
    return encode_for_send(
        message,
        message_id="ID:6f6a4c9e-5a0e-4b0e-9a57-0d9b2a3c1e5f:100001",
        timestamp=1_700_000_000_000,
        now=1_700_000_000_000,
        destination=Queue("q"),
        delivery_mode=2,
        priority=4,
        ttl=0,
    )


def ours(octets: bytes) -> Way:
    selector = Selector(TEXT)
    selects, select, get = predicate(selector), selector.select, PROPERTIES.get
    return Way("jmsish", lambda: selects(octets, 0), lambda: select(get))


def peers(octets: bytes) -> list[Way]:
    """The evaluators that are installed, each with each decoder."""
    found = []
    evaluators: list[tuple[str, Callable[[dict[str, Any]], Any]]] = []
    if importlib.util.find_spec("evalidate") is not None:
        from evalidate import Expr

        expression = Expr("colour == 'red' and weight > 10")
        evaluators.append(("evalidate", lambda properties: expression.eval(None, properties)))
    if importlib.util.find_spec("rule_engine") is not None:
        from rule_engine import Context, Rule

        rule = Rule("colour == 'red' and weight > 10", context=Context(default_value=None))
        evaluators.append(("rule-engine", rule.matches))
    for name, evaluate in evaluators:
        decode = proton_decoder(octets)
        if decode is not None:
            found.append(with_decoder(f"{name}, proton decodes", evaluate, decode, evaluate))
        found.append(with_decoder(f"{name}, jmsish decodes", evaluate, our_decoder(octets), None))
    return found


def with_decoder(
    name: str,
    evaluate: Callable[[dict[str, Any]], Any],
    decode: Callable[[], dict[str, Any]],
    alone: Callable[[dict[str, Any]], Any] | None,
) -> Way:
    return Way(name, lambda: evaluate(decode()), None if alone is None else lambda: alone(PROPERTIES))


def proton_decoder(octets: bytes) -> Callable[[], dict[str, Any]] | None:
    if importlib.util.find_spec("proton") is None:
        return None
    from proton import Message

    def decode() -> dict[str, Any]:
        message = Message()
        message.decode(octets)
        properties: dict[str, Any] = message.properties
        return properties

    return decode


def our_decoder(octets: bytes) -> Callable[[], dict[str, Any]]:
    return lambda: ReceivedMessage(octets).application_properties()


def rate(call: Callable[[], Any] | None, count: int) -> float:
    """Evaluations a second of CPU; the call itself, some 40 ns, is in it for all alike."""
    if call is None:
        return 0.0
    assert call(), "the message is one that is selected"
    cpu = time.process_time()
    for _ in range(count):
        call()
    return count / (time.process_time() - cpu)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=100_000, help="evaluations of one repetition (default: 100,000)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions, of which the median counts (default: 5)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE too")


def run(options: argparse.Namespace) -> dict[str, Any]:
    octets = payload()
    print(f"{report.machine()}; {TEXT!r} on a message of {len(octets)} octets with {len(PROPERTIES)} properties\n")
    ways = [ours(octets), *peers(octets)]
    if len(ways) == 1:
        print("without peers: none is installed (pip install 'jmsish[peers]')")
    # The slow ones get fewer, as long as they can be measured.
    counts = {way.name: options.n if way.name == "jmsish" else max(1, options.n // 10) for way in ways}
    found: dict[str, list[tuple[float, float]]] = {way.name: [] for way in ways}
    for _ in range(options.repeat):
        for way in ways:
            count = counts[way.name]
            found[way.name].append((rate(way.octets, count), rate(way.properties, count)))
    figures = {
        name: {"octets": median(first for first, _ in each), "properties": median(second for _, second in each)}
        for name, each in found.items()
    }
    best = figures["jmsish"]["octets"]
    rows = [
        [
            name,
            report.figure(each["octets"]),
            report.times(best / each["octets"]),
            report.figure(each["properties"]) if each["properties"] else "",
        ]
        for name, each in figures.items()
    ]
    print(report.table(["evaluator", "from octets, a second", "jmsish is", "from a dict, a second"], rows))
    report.write_json(options.json, figures)
    return figures


if __name__ == "__main__":
    options = argparse.ArgumentParser(prog="python -m tests.bench.selector", description=__doc__)
    add_arguments(options)
    run(options.parse_args(sys.argv[1:]))
