"""The proof: what lies on the results queue and the dead-letter queue at the end, compared with the file.

Pure. An order is conserved when exactly one trace of it is left: one result, or its message on the dead-letter queue.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from jmsish.cli.demo.ledger import Ledger
from jmsish.cli.demo.orders import Order
from jmsish.cli.demo.plan import Plan


@dataclass(frozen=True)
class Found:
    """A message found at the end: the number of its order and the fingerprint of that order's body."""

    number: int
    digest: str


@dataclass(frozen=True)
class Conservation:
    """The figures of the table; `holds` is the verdict."""

    sent: int
    processed: int
    dead_lettered: int
    redelivered: int
    lost: int
    doubled: int
    out_of_order: int
    wrong_count: int
    altered: int
    misjudged: int
    left_over: int
    rollbacks: int
    consumers_closed: int
    connections_cut: int
    total: int
    counts_bind: bool = True
    notes: tuple[str, ...] = field(default=())

    @property
    def holds(self) -> bool:
        faults = self.lost + self.doubled + self.out_of_order + self.altered + self.misjudged + self.left_over
        if self.counts_bind:
            faults += self.wrong_count
        return faults == 0 and self.sent == self.total == self.processed + self.dead_lettered

    def as_json(self, **more: object) -> str:
        names = ("sent", "processed", "dead_lettered", "redelivered", "lost", "doubled", "out_of_order", "wrong_count",
                 "altered", "left_over", "rollbacks", "consumers_closed", "connections_cut")  # fmt: skip
        return json.dumps({**{name: getattr(self, name) for name in names}, "holds": self.holds, **more})


def inversions(numbers: Sequence[int]) -> int:
    """How many stand behind a later one; a second copy of the same number is doubled, not out of order."""
    highest = 0
    wrong = 0
    for number in numbers:
        wrong += number < highest
        highest = max(highest, number)
    return wrong


def compare(
    orders: Sequence[Order],
    plan: Plan,
    ledger: Ledger,
    results: Sequence[Found],
    dead: Sequence[Found],
    left_over: Sequence[Found] = (),
    *,
    counts_bind: bool = True,
) -> Conservation:
    """Compare what was found with what was sent. `counts_bind`: wrong delivery counts are faults, not remarks."""
    known = {order.number: order.digest for order in orders}
    good_results = [found.number for found in results if known.get(found.number) == found.digest]
    good_dead = [found.number for found in dead if known.get(found.number) == found.digest]
    traces = Counter([*good_results, *good_dead, *(found.number for found in left_over)])
    sent = [order.number for order in orders[: ledger.sent]]
    return Conservation(
        sent=ledger.sent,
        processed=len(set(good_results)),
        dead_lettered=len(set(good_dead)),
        redelivered=ledger.redelivered,
        lost=sum(traces[number] == 0 for number in sent),
        doubled=sum(count - 1 for count in traces.values()),
        out_of_order=ledger.out_of_order + inversions(good_results) + inversions(good_dead),
        wrong_count=ledger.wrong_count,
        altered=len(results) + len(dead) - len(good_results) - len(good_dead),
        misjudged=_misjudged(plan, ledger, good_results, good_dead),
        left_over=len(left_over),
        rollbacks=ledger.rollbacks,
        consumers_closed=ledger.consumers_closed,
        connections_cut=ledger.connections_cut,
        total=len(orders),
        counts_bind=counts_bind,
        notes=tuple(ledger.notes),
    )


def _misjudged(plan: Plan, ledger: Ledger, results: Sequence[int], dead: Sequence[int]) -> int:
    """Failing orders that have a result, and dead-lettered ones that had attempts left."""
    saved = sum(plan.fails(number) for number in results)
    early = sum(not plan.fails(number) and ledger.attempts.get(number, 0) < plan.max_attempts for number in set(dead))
    return saved + early


def table_rows(proof: Conservation) -> list[tuple[str, str, str]]:
    """The table: what, how many, and what is right (empty where any figure is)."""
    check = {True: "ok", False: "WRONG"}
    whole = proof.sent == proof.processed + proof.dead_lettered
    rows = [
        ("sent", proof.sent, check[proof.sent == proof.total]),
        ("processed once", proof.processed, ""),
        ("dead-lettered", proof.dead_lettered, check[not proof.misjudged]),
        ("processed + dead-lettered", proof.processed + proof.dead_lettered, check[whole]),
        ("transactions rolled back", proof.rollbacks, ""),
        ("redeliveries", proof.redelivered, ""),
        ("consumers closed in mid-transaction", proof.consumers_closed, ""),
        ("connections cut in mid-transaction", proof.connections_cut, ""),
        ("lost", proof.lost, check[proof.lost == 0]),
        ("doubled", proof.doubled, check[proof.doubled == 0]),
        ("out of order", proof.out_of_order, check[proof.out_of_order == 0]),
        ("wrong delivery count", proof.wrong_count, _count_verdict(proof)),
    ]
    if proof.altered:
        rows.append(("altered on the way", proof.altered, "WRONG"))
    if proof.left_over:
        rows.append(("left on the queue", proof.left_over, "WRONG"))
    return [(name, f"{figure:,}", verdict) for name, figure, verdict in rows]


def _count_verdict(proof: Conservation) -> str:
    if proof.wrong_count == 0:
        return "ok"
    return "WRONG" if proof.counts_bind else "that broker's choice"


def plain_table(rows: Sequence[tuple[str, str, str]]) -> str:
    """The table in plain characters, for pipes, files and terminals without rich."""
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [f"| {row[0]:<{widths[0]}} | {row[1]:>{widths[1]}} | {row[2]:<{widths[2]}} |" for row in rows]
    return "\n".join([rule, *lines, rule])
