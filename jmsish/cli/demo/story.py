"""The demo's story, told without I/O: generators that yield what is to be done and are sent what came of it.

An `Action` is a plain value. `stage_threads` performs actions with the blocking face and `stage_aio` with the
asyncio one; the tests perform them on a toy queue in memory. What the performer raises is thrown into the story, so
an error appears where the action stands.

    each order:  receive with consumer A (next time B) ─┬─ it fails: rollback; it comes again, counted, before all
    others └─ else: send its result, commit; one transaction for both
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from jmsish.cli.demo.conservation import Found
from jmsish.cli.demo.ledger import Ledger
from jmsish.cli.demo.orders import Body, Order, digest
from jmsish.cli.demo.plan import Plan
from jmsish.errors import JMSError

CONSUMERS = ("A", "B")


@dataclass(frozen=True)
class Queues:
    """Names of one run; every run has its own, so a run starts clean on any broker."""

    orders: str
    results: str
    dead: str

    @classmethod
    def named(cls, run: str) -> Queues:
        return cls(f"{run}.orders", f"{run}.results", f"{run}.dead")


@dataclass(frozen=True)
class Taken:
    """A delivery as the story sees it."""

    number: int
    body: Body
    count: int
    redelivered: bool


@dataclass(frozen=True)
class Open:
    """Connect, with a transacted session and a consumer for each name."""

    consumers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Send:
    queue: str
    number: int
    body: Body


@dataclass(frozen=True)
class Receive:
    """The next delivery of this consumer, or None when none came within the stage's patience."""

    consumer: str


@dataclass(frozen=True)
class Commit:
    pass


@dataclass(frozen=True)
class Rollback:
    pass


@dataclass(frozen=True)
class CloseConsumer:
    consumer: str


@dataclass(frozen=True)
class OpenConsumer:
    consumer: str


@dataclass(frozen=True)
class Cut:
    """Break the connection under the session, as a network does: no farewell."""


@dataclass(frozen=True)
class FirstVisible:
    """Browse: the number of the first order that is available now, or None; waits a moment before it answers None."""


@dataclass(frozen=True)
class Drain:
    """Everything on a queue, in its order; waits for `expected` messages, then takes what else is there."""

    queue: str
    expected: int


Action = Open | Send | Receive | Commit | Rollback | CloseConsumer | OpenConsumer | Cut | FirstVisible | Drain
Story = Generator[Action, Any, None]


class StoryError(Exception):
    """The product did what it must not do; the message says what."""


def produce(orders: Sequence[Order], queue: str, batch: int, ledger: Ledger) -> Story:
    """Send the orders in transactions of `batch`."""
    yield Open()
    for start in range(0, len(orders), batch):
        chunk = orders[start : start + batch]
        for order in chunk:
            yield Send(queue, order.number, order.body)
        yield Commit()
        ledger.sent += len(chunk)


@dataclass
class Worker:
    """Two consumers of one transacted session; `patient` says whether to go on waiting after an empty receive."""

    plan: Plan
    ledger: Ledger
    queues: Queues
    patient: Callable[[int], bool]

    def story(self) -> Story:
        yield Open(CONSUMERS)
        turn = empty = 0
        while not self.ledger.done:
            name = CONSUMERS[turn % len(CONSUMERS)]
            taken = yield Receive(name)
            if taken is None:
                empty += 1
                if not self.patient(empty):
                    return
                continue
            empty = 0
            turn += 1
            yield from self.one_order(name, taken)

    def one_order(self, name: str, taken: Taken) -> Story:
        self.ledger.handed_over(taken.number, taken.count, taken.redelivered)
        fails = self.plan.fails(taken.number)
        gives_up = (
            fails and not self.ledger.broker_limit and self.ledger.attempt_of(taken.number) >= self.plan.max_attempts
        )
        if gives_up:
            yield Send(self.queues.dead, taken.number, taken.body)
        elif not fails:
            yield Send(self.queues.results, taken.number, self.result(name, taken))
        first_attempt = self.ledger.attempt_of(taken.number) == 1
        if first_attempt and taken.number == self.plan.cut_at:
            yield from self.cut(taken.number)
            return
        closing = first_attempt and taken.number == self.plan.close_at
        if closing:
            yield CloseConsumer(name)
            self.ledger.consumers_closed += 1
        if fails and not gives_up:
            yield Rollback()
            self.ledger.given_back(taken.number)
        else:
            yield Commit()
            self.ledger.committed(taken.number, dead=gives_up)
        if closing:
            yield OpenConsumer(name)

    def result(self, name: str, taken: Taken) -> dict[str, Any]:
        attempt = self.ledger.attempt_of(taken.number)
        return {"order": taken.number, "digest": digest(taken.body), "attempt": attempt, "consumer": name}

    def cut(self, number: int) -> Story:
        """An order is taken and its result sent when the connection goes: neither may count. The work goes on over
        a new one.
        """
        yield Cut()
        try:
            yield Commit()
        except JMSError:
            self.ledger.connection_cut(number)
        else:
            raise StoryError(f"the commit of order {number} went through although its connection was cut")
        yield Open()
        if not self.ledger.done:
            yield from self.await_head()
        for name in CONSUMERS:
            yield OpenConsumer(name)

    def await_head(self) -> Story:
        """Wait until the broker has noticed the loss: only then is the order that was in hand at the head of the
        queue again.
        """
        empty = 0
        while self.patient(empty):
            first = yield FirstVisible()
            if first == self.ledger.head:
                return
            empty += 1


def collect(queues: Queues, ledger: Ledger, found: dict[str, list[Found]]) -> Story:
    """What is left at the end, queue by queue, in the order of the queue."""
    yield Open()
    for queue, expected in (
        (queues.results, ledger.processed),
        (queues.dead, ledger.dead_lettered),
        (queues.orders, 0),
    ):
        messages = yield Drain(queue, expected)
        found[queue] = [as_found(taken) for taken in messages]


def as_found(taken: Taken) -> Found:
    """A result tells the fingerprint its worker made of the order; anything else is an order and is fingerprinted
    now.
    """
    body = taken.body
    if isinstance(body, dict) and set(body) == {"order", "digest", "attempt", "consumer"}:
        return Found(taken.number, str(body["digest"]))
    return Found(taken.number, digest(body))
