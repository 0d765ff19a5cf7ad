"""A toy broker in memory that performs the demo's story: one queue order, positional put-back, a limit, and faults
on request.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from jmsish.cli.demo.orders import Body
from jmsish.cli.demo.story import (
    Action,
    CloseConsumer,
    Commit,
    Cut,
    Drain,
    FirstVisible,
    Open,
    OpenConsumer,
    Receive,
    Rollback,
    Send,
    Story,
    Taken,
)
from jmsish.errors import ConnectionLostError


@dataclass
class ToyMessage:
    number: int
    body: Body
    failures: int = 0
    attempts: int = 0  # a cut raises the count of what lay in a buffer, and is no attempt


@dataclass
class ToyBroker:
    """`limit` 0: the broker never dead-letters. `buffered` marks that many messages behind the head at a cut."""

    orders: str
    dead: str
    limit: int = 0
    buffered: int = 2
    queues: dict[str, list[ToyMessage]] = field(default_factory=lambda: defaultdict(list))

    def give_back(self, taken: list[ToyMessage]) -> None:
        for message in taken:
            message.failures += 1
            message.attempts += 1
            dead = self.limit and message.attempts >= self.limit
            self.queues[self.dead if dead else self.orders].append(message)
        self.queues[self.orders].sort(key=lambda message: message.number)


class ToyStage:
    """`vanish`: orders that a commit loses; `keep`: orders that a commit forgets to remove."""

    def __init__(self, broker: ToyBroker, *, vanish: tuple[int, ...] = (), keep: tuple[int, ...] = ()) -> None:
        self.broker = broker
        self.vanish = vanish
        self.keep = list(keep)
        self.done: list[Action] = []
        self.reset()

    def reset(self) -> None:
        self.taken: list[ToyMessage] = []
        self.sent: list[tuple[str, ToyMessage]] = []
        self.consumers: set[str] = set()
        self.is_cut = False

    def play(self, story: Story) -> None:
        try:
            action = next(story)
            while True:
                self.done.append(action)
                try:
                    answer = self.perform(action)
                except ConnectionLostError as error:
                    action = story.throw(error)
                else:
                    action = story.send(answer)
        except StopIteration:
            pass

    def perform(self, action: Action) -> Any:
        match action:
            case Open(names):
                self.reset()
                self.consumers = set(names)
            case OpenConsumer(name):
                self.consumers.add(name)
            case CloseConsumer(name):
                self.consumers.remove(name)
            case Send(queue, number, body):
                self.sent.append((queue, ToyMessage(number, body)))
            case Receive(name):
                assert name in self.consumers
                return self.receive()
            case Commit():
                self.commit()
            case Rollback():
                self.broker.give_back(self.taken)
                self.taken, self.sent = [], []
            case Cut():
                self.cut()
            case FirstVisible():
                waiting = self.broker.queues[self.broker.orders]
                return waiting[0].number if waiting else None
            case Drain(queue, _):
                return [Taken(message.number, message.body, 1, False) for message in self.broker.queues.pop(queue, [])]
        return None

    def receive(self) -> Taken | None:
        waiting = self.broker.queues[self.broker.orders]
        if not waiting:
            return None
        message = waiting.pop(0)
        self.taken.append(message)
        return Taken(message.number, message.body, message.failures + 1, message.failures > 0)

    def commit(self) -> None:
        if self.is_cut:
            raise ConnectionLostError("the connection was cut")
        for queue, message in self.sent:
            if message.number not in self.vanish:
                self.broker.queues[queue].append(message)
        for message in self.taken:
            if message.number in self.keep:
                self.keep.remove(message.number)
                self.broker.give_back([message])
        self.taken, self.sent = [], []

    def cut(self) -> None:
        self.is_cut = True
        for message in self.broker.queues[self.broker.orders][: self.broker.buffered]:
            message.failures += 1
        self.broker.give_back(self.taken)
        self.taken = []
