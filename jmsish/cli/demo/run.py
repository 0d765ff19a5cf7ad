"""What one run of the demo consists of, shared by the two stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jmsish.cli.demo.conservation import Conservation, Found, compare
from jmsish.cli.demo.ledger import Ledger
from jmsish.cli.demo.orders import Body, Order
from jmsish.cli.demo.plan import Plan
from jmsish.cli.demo.story import Queues, Taken, Worker, collect, produce
from jmsish.message import Message

NUMBER = "order_number"
PATIENCE = 0.5
"""Seconds that a stage waits for a message before it says that there is none."""
LOOKS = 10
"""How often it looks at the queue in that time, when it browses."""


@dataclass
class Run:
    """`options` are those of `connect`; `report` is called after each step of the worker and must be cheap."""

    url: str
    orders: tuple[Order, ...]
    plan: Plan
    ledger: Ledger
    queues: Queues
    options: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 10
    timeout: float = 30.0
    counts_bind: bool = True
    report: Callable[[Ledger], None] = lambda ledger: None
    found: dict[str, list[Found]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    labelled: range = range(0)

    def producing(self) -> Any:
        return produce(self.orders, self.queues.orders, self.batch, self.ledger)

    def working(self, trouble: Callable[[], BaseException | None]) -> Any:
        """`trouble` tells what stopped the producer, so that the worker does not wait for orders that never come."""

        def patient(empty: int) -> bool:
            error = trouble()
            if error is not None:
                raise error
            return empty * PATIENCE < self.timeout

        return Worker(self.plan, self.ledger, self.queues, patient).story()

    def collecting(self) -> Any:
        return collect(self.queues, self.ledger, self.found)

    def taken(self, message: Message) -> Taken:
        """A message as the story sees it; those to be drawn are remembered by their id."""
        number = int(message.properties.get(NUMBER, 0))
        if number in self.labelled and message.jms_message_id:
            self.labels[message.jms_message_id] = f"order {number}"
        return Taken(number, plain_body(message.body), message.delivery_count, message.jms_redelivered)

    def proof(self) -> Conservation:
        found = self.found
        return compare(
            self.orders,
            self.plan,
            self.ledger,
            found.get(self.queues.results, []),
            found.get(self.queues.dead, []),
            found.get(self.queues.orders, []),
            counts_bind=self.counts_bind,
        )


def plain_body(body: object) -> Body:
    """The body as the file had it: text, or a plain dict of plain values."""
    if isinstance(body, Mapping):
        return {str(name): plain_value(value) for name, value in body.items()}
    return body if isinstance(body, str) else "" if body is None else str(body)


def plain_value(value: object) -> object:
    """Numbers come back with the width they travelled in; a fingerprint is of the number alone."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value
