"""A queue and its consumers by themselves, without a wire: who takes what is seen at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jmsish.broker.consumers import Consumer, ask, enter, leave, serve
from jmsish.broker.order import Entry
from jmsish.broker.policy import QueueSettings
from jmsish.broker.portions import Job
from jmsish.broker.queues import Arrival, Queue
from jmsish.broker.settlement import Settlement
from jmsish.broker.timers import Timers
from jmsish.engine.outcomes import MODIFIED_FAILED, MODIFIED_FAILED_UNDELIVERABLE


class Home:
    """What a queue asks of its broker, and no more."""

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self.woken: list[Queue] = []
        self.unfinished: list[Queue] = []
        self.gone: list[bytes] = []
        self.timers = Timers()
        self.settlement = Settlement()
        self.steps = 0

    def now(self) -> float:
        return self.time

    def wake(self, queue: Queue) -> None:
        self.woken.append(queue)

    def resume(self, queue: Queue) -> None:
        self.unfinished.append(queue)

    def begin(self, job: Job) -> None:
        while job.go_on(1):
            pass

    def schedule(self, due: float, queue: Queue) -> None:
        self.timers.add(due, queue)

    def expired(self, queue: Queue, entry: Entry) -> None:
        self.gone.append(entry.payload)

    def step(self) -> None:
        """Serve what was woken, as the broker does, once."""
        self.steps += 1
        unfinished, self.unfinished = self.unfinished, []
        for queue in unfinished:
            queue.wake()
        while self.woken:
            woken, self.woken = self.woken, []
            for queue in woken:
                serve(queue, self.time)

    def run(self) -> None:
        """Until nothing is left to do."""
        self.step()
        while self.unfinished:
            self.step()

    def advance(self, seconds: float) -> None:
        self.time += seconds
        self.timers.ring(self.time)
        self.run()


class Taker(Consumer):
    """A consumer that keeps what it is given."""

    def __init__(self, queue: Queue, credit: int = 0, *, session: object = None, **options: Any) -> None:
        super().__init__(id(self), queue, **options)
        if session is not None:
            self.session = session
        self.credit = credit
        self.held: list[Entry] = []
        self.shown: list[str] = []
        self.answers = 0
        self.given: Callable[[Taker, Entry], None] | None = None
        enter(self)
        if credit:
            ask(self)

    def can_take(self) -> bool:
        return self.credit > 0

    def lacks_room(self) -> bool:
        return False

    def deliver(self, entry: Entry) -> None:
        self.credit -= 1
        if self.given is not None:
            self.given(self, entry)
        self.held.append(entry)

    def show(self, payload: bytes, count: int, expires: float) -> bool:
        self.credit -= 1
        self.shown.append(payload.decode())
        return True

    def drained(self) -> None:
        self.answers += 1
        self.credit = 0

    # --- what a test says

    def flow(self, credit: int, *, drain: bool = False) -> None:
        self.credit = credit
        ask(self, drain=drain)

    def leave(self) -> None:
        leave(self)

    def bodies(self) -> str:
        """What it holds."""
        return " ".join(entry.payload.decode() for entry in self.held)

    def _pop(self, body: str) -> Entry:
        (entry,) = [entry for entry in self.held if entry.payload.decode() == body]
        self.held.remove(entry)
        return entry

    def accept(self, *bodies: str) -> None:
        for body in bodies:
            self.queue.archive(self._pop(body))

    def release(self, *bodies: str) -> None:
        for body in bodies:
            self.queue.put_back(self._pop(body))

    def fail(self, *bodies: str, undeliverable: bool = False) -> None:
        outcome = MODIFIED_FAILED_UNDELIVERABLE if undeliverable else MODIFIED_FAILED
        for body in bodies:
            assert self._home.settlement.apply(self, self._pop(body), outcome)

    @property
    def _home(self) -> Home:
        home = self.queue.home
        assert isinstance(home, Home)
        return home


class OneQueue:
    """A queue in its home."""

    def __init__(self, **settings: Any) -> None:
        self.home = Home()
        self.queue = Queue("q", QueueSettings(**settings), self.home)

    def taker(self, credit: int = 0, **options: Any) -> Taker:
        taker = Taker(self.queue, credit, **options)
        self.home.run()
        return taker

    def send(self, *bodies: str, priority: int = 4, group: str = "", last: bool = False) -> None:
        for body in bodies:
            if group:
                self.queue.add(Arrival(body.encode(), priority, group=(group, last)))
            else:
                self.queue.append(body.encode(), priority)

    def run(self) -> None:
        self.home.run()
