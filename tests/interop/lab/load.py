"""Traffic that a broker is killed under, and the account of what became of each message.

A producer sends numbered messages in transactions of `BATCH`; a consumer takes them in transactions. Whatever fails,
they begin anew, on a new connection where the old one is gone. Each commit has one of three ends, and each promises
something:

* it succeeded: what was sent in it arrives, once; what was taken in it does not come again;
* it raised, or was never called: nothing that was sent in it arrives; what was taken comes again;
* it is in doubt: one of the two, and for the whole batch.

`Account.faults` holds the books against what arrived.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import jmsish

BATCH = 5
LIMITS = {"connect_timeout": 20, "request_timeout": 20, "close_timeout": 5, "send_timeout": 20}
BETWEEN_ATTEMPTS = 0.3
"""Seconds, so that a broker that starts is left some of the processor."""
PATIENCE = 60.0
"""Seconds to get back to a broker that was killed, or to hear from it."""


class Gone(Exception):
    """The broker did not come back."""


@dataclass
class Account:
    """What was promised, and what arrived."""

    sent: set[int] = field(default_factory=set)
    not_sent: set[int] = field(default_factory=set)
    sent_in_doubt: list[frozenset[int]] = field(default_factory=list)
    taken: Counter[int] = field(default_factory=Counter)
    taken_in_doubt: list[frozenset[int]] = field(default_factory=list)
    interruptions: Counter[str] = field(default_factory=Counter)
    """How often each kind of error was met."""
    failure: BaseException | None = None
    """What ended a worker that should have gone on."""

    def faults(self) -> list[str]:
        """Sentences about what was promised and did not hold; to be asked when the queue is empty."""
        doubtful = Counter(number for batch in self.taken_in_doubt for number in batch)
        arrived = set(self.taken) | set(doubtful)
        found = [f"{number} was sent, and did not arrive" for number in sorted(self.sent - arrived)]
        found += [f"{number} was never sent, and arrived" for number in sorted(self.not_sent & arrived)]
        # A batch in doubt may have been taken: then it is not to come again; but that cannot be told from outside.
        found += [f"{number} was taken {times} times" for number, times in self.taken.items() if times > 1]
        for batch in self.sent_in_doubt:
            if batch & arrived not in (frozenset(), batch):
                found.append(f"of a commit in doubt a part arrived: {sorted(batch & arrived)} of {sorted(batch)}")
        if self.failure is not None:
            found.append(f"a worker ended: {type(self.failure).__name__}: {self.failure}")
        return found

    def met(self, error: jmsish.JMSError) -> None:
        """Something failed; whoever met it pauses for a moment, as an application would."""
        self.interruptions[type(error).__name__] += 1
        threading.Event().wait(BETWEEN_ATTEMPTS)


class Load:
    """The two workers, each with a connection of its own."""

    def __init__(self, url: str, queue: str) -> None:
        self.account = Account()
        self._url = url
        self._queue = queue
        self._stopping = threading.Event()
        self._progress = threading.Condition()
        self._next = 0
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Load:
        for work in (self._produce, self._consume):
            thread = threading.Thread(target=self._guarded, args=(work,), name=work.__name__, daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE)
            assert not thread.is_alive(), f"{thread.name} hangs"

    def flows(self, messages: int) -> None:
        """Waits until so many messages more have been taken for good. Raises `Gone` where none come any more."""
        wanted = self._total() + messages
        with self._progress:
            ok = self._progress.wait_for(lambda: self._total() >= wanted or self.account.failure, 2 * PATIENCE)
        if not ok or self.account.failure is not None:
            raise Gone(f"{self._total()} messages of {wanted} came: {self.account.failure or 'silence'}")

    def _total(self) -> int:
        return sum(self.account.taken.values())

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            with self._progress:
                self.account.failure = error
                self._progress.notify_all()

    def _produce(self) -> None:
        worker = Worker(self._url, self._queue, self.account, sends=True)
        account = self.account
        while not self._stopping.is_set():
            batch = frozenset(range(self._next, self._next + BATCH))
            self._next += BATCH
            try:
                session = worker.session()
                for number in sorted(batch):
                    worker.producer.send(f"{number}")
                session.commit()
                account.sent |= batch
            except jmsish.TransactionInDoubtError as error:
                account.sent_in_doubt.append(batch)
                account.met(error)
            except jmsish.JMSError as error:
                account.not_sent |= batch
                account.met(error)
        worker.close()

    def _consume(self) -> None:
        """Until the producer has ended and the queue is empty."""
        worker = Worker(self._url, self._queue, self.account, sends=False)
        account = self.account
        while True:
            batch: set[int] = set()
            try:
                session = worker.session()
                last = self._stopping.is_set() and not self._threads[0].is_alive()
                while len(batch) < BATCH:
                    message = worker.consumer.receive(timeout=3 if last else 0.2)
                    if message is None:
                        break
                    batch.add(int(message.body))
                session.commit()
            except jmsish.TransactionInDoubtError as error:
                account.taken_in_doubt.append(frozenset(batch))
                account.met(error)
                continue
            except jmsish.JMSError as error:
                account.met(error)
                continue
            with self._progress:
                account.taken.update(batch)
                self._progress.notify_all()
            if last and not batch:
                break
        worker.close()


class Worker:
    """A transacted session that sends or receives, and is made anew when its connection is gone."""

    def __init__(self, url: str, queue: str, account: Account, *, sends: bool) -> None:
        self._url = url
        self._sends = sends
        self._pause = threading.Event()
        self._queue = queue
        self._account = account
        self._connection: Any = None
        self._session: Any = None
        self.producer: Any = None
        self.consumer: Any = None

    def session(self) -> jmsish.Session:
        """A session with a producer and a consumer, the same as long as it works."""
        deadline = monotonic() + PATIENCE
        while self._session is None or self._session.is_closed:
            try:
                self._open()
            except jmsish.JMSError as error:
                self.close()
                if monotonic() > deadline:
                    raise Gone(str(error)) from error
                self._pause.wait(BETWEEN_ATTEMPTS)
        session: jmsish.Session = self._session
        return session

    def _open(self) -> None:
        self.close()
        self._connection = jmsish.connect(self._url, **LIMITS)
        self._session = self._connection.create_session(transacted=True)
        queue = self._session.create_queue(self._queue)
        if self._sends:
            self.producer = self._session.create_producer(queue)
        else:
            self.consumer = self._session.create_consumer(queue, prefetch=10)

    def close(self) -> None:
        connection, self._connection, self._session = self._connection, None, None
        if connection is not None:
            try:
                connection.close()
            except jmsish.JMSError as error:
                self._account.met(error)
