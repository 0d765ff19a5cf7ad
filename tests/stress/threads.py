"""Threads that share one connection, each with sessions of its own, doing everything at random; then the count.

    python -m tests.stress.threads --at vm --seeds 1:50 [--threads 8] [--steps 150] [--cut]

A message is known by its text. What was committed, or sent and acknowledged, must be received exactly once or still be
there at the end; what was rolled back must not be anywhere. With `--cut` the connection is broken in the middle, every
call must come back, and messages whose outcome nobody knows are left out of the count. A run that does not end prints
the stacks of all threads.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import random
import threading
import time
import traceback
from collections import Counter
from typing import Any

import jmsish
from jmsish.testing import cut

QUEUES = ("q0", "q1", "q2")
HUNG = 60


class Books:
    """What must be found in the end."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sent: set[str] = set()
        self.maybe: set[str] = set()
        self.received: Counter[str] = Counter()
        self.maybe_received: set[str] = set()
        self.errors: list[BaseException] = []


class Player:
    """One thread: transacted or not, one producer and up to two consumers for each queue it likes."""

    def __init__(self, connection: jmsish.Connection, books: Books, seed: str, steps: int, lossy: bool) -> None:
        self.random = random.Random(seed)
        self.connection = connection
        self.books = books
        self.seed = seed
        self.steps = steps
        self.lossy = lossy
        self.number = 0
        self.thread = threading.Thread(target=self.run, name=f"player {seed}")

    def run(self) -> None:
        try:
            while self.steps > 0:
                self.session(self.random.random() < 0.6)
        except jmsish.JMSError as error:
            if not self.lossy:
                self.books.errors.append(error)
        except BaseException as error:
            self.books.errors.append(error)

    def session(self, transacted: bool) -> None:
        self.posted: list[str] = []
        self.taken: list[str] = []
        self.consumers: list[Any] = []
        self.transacted = transacted
        session = self.connection.create_session(transacted)
        self.producers = [session.create_producer(session.create_queue(name)) for name in QUEUES]
        done = threading.Semaphore(0)
        self.async_sent = 0
        self.completed = done
        try:
            for _ in range(self.random.randrange(5, 40)):
                self.steps -= 1
                self.step(session)
            if transacted and self.random.random() < 0.5:
                self.commit(session)
            for _ in range(self.async_sent):
                assert done.acquire(timeout=HUNG / 2), "a completion never came"
        finally:
            with contextlib.suppress(jmsish.JMSError) if self.lossy else contextlib.nullcontext():
                session.close()

    def step(self, session: Any) -> None:
        choice = self.random.random()
        if choice < 0.35:
            self.send()
        elif choice < 0.75:
            self.receive(session)
        elif choice < 0.82 and self.consumers:
            self.consumers.pop(self.random.randrange(len(self.consumers))).close()
        elif self.transacted and choice < 0.92:
            self.commit(session)
        elif self.transacted:
            session.rollback()
            self.posted, self.taken = [], []

    def send(self) -> None:
        self.number += 1
        text = f"{self.seed}-{self.number}"
        producer = self.random.choice(self.producers)
        if self.transacted:
            producer.send(text)
            self.posted.append(text)
            return
        with self.books.lock:
            self.books.maybe.add(text)
        if self.random.random() < 0.5:
            self.async_sent += 1
            producer.send(text, on_completion=lambda message, error: self.sent(text, error))
        else:
            producer.send(text)
            self.sent(text, None, False)

    def sent(self, text: str, error: Any, told: bool = True) -> None:
        with self.books.lock:
            if error is None:
                self.books.maybe.discard(text)
                self.books.sent.add(text)
            elif not self.lossy:
                self.books.errors.append(error)
        if told:
            self.completed.release()

    def receive(self, session: Any) -> None:
        if not self.consumers or (len(self.consumers) < 4 and self.random.random() < 0.2):
            queue = session.create_queue(self.random.choice(QUEUES))
            prefetch = self.random.choice([0, 1, 5, 100])
            self.consumers.append(session.create_consumer(queue, prefetch=prefetch))
        message = self.random.choice(self.consumers).receive(timeout=self.random.choice([0, 0.001, 0.005, 0.02]))
        if message is None:
            return
        if self.transacted:
            self.taken.append(message.text)
        else:
            with self.books.lock:
                self.books.received[message.text] += 1
                self.books.maybe_received.add(message.text)

    def commit(self, session: Any) -> None:
        with self.books.lock:
            self.books.maybe.update(self.posted)
            self.books.maybe_received.update(self.taken)
        session.commit()
        with self.books.lock:
            self.books.maybe.difference_update(self.posted)
            self.books.sent.update(self.posted)
            self.books.received.update(self.taken)
        self.posted, self.taken = [], []


def left(broker: jmsish.EmbeddedBroker) -> Counter[str]:
    there: Counter[str] = Counter()
    for view in broker.queues():
        if not view.is_temporary:
            there.update(message.get_body(str) for message in view.messages(acquired=True))
    return there


def audit(books: Books, there: Counter[str], lossy: bool) -> list[str]:
    found = there + books.received
    faults = ["".join(traceback.format_exception(error)) for error in books.errors]
    if not lossy:
        faults += [f"{text} lost" for text in books.sent if not found[text]]
        faults += [f"{text} is there and never was" for text in found if text not in books.sent]
        faults += [f"{text} {count} times" for text, count in found.items() if count != 1]
        return faults
    known = books.sent - books.maybe_received
    faults += [f"{text} lost" for text in known if not found[text]]
    faults += [f"{text} is there and never was" for text in found if text not in books.sent | books.maybe]
    faults += [f"{text} {count} times" for text, count in books.received.items() if count != 1]
    return faults


def play(at: str, seed: int, threads: int, steps: int, lossy: bool) -> list[str]:
    config = {"queues": {name: {"max_delivery_attempts": 0} for name in QUEUES}}
    with jmsish.EmbeddedBroker(config=config) as broker:
        url = broker.url if at == "vm" else f"amqp://127.0.0.1:{broker.listen().port}"
        connection = jmsish.connect(url)
        books = Books()
        players = [Player(connection, books, f"{seed}.{i}", steps, lossy) for i in range(threads)]
        for player in players:
            player.thread.start()
        if lossy:
            players[0].thread.join(random.Random(seed).random() * 0.5)
            cut(connection) if seed % 2 else broker.stop()
        for player in players:
            player.thread.join()
        connection.close()
        until = time.monotonic() + 5
        while any(view.acquired for view in broker.queues()) and time.monotonic() < until:
            threading.Event().wait(0.01)  # the broker hears of the end of a wire when it reads it
        return audit(books, left(broker), lossy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", choices=["vm", "tcp"], default="vm")
    parser.add_argument("--seeds", default="1:20")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--cut", action="store_true")
    given = parser.parse_args()
    first, last = map(int, given.seeds.split(":"))
    for seed in range(first, last):
        faulthandler.dump_traceback_later(HUNG, exit=True)
        begun = time.monotonic()
        faults = play(given.at, seed, given.threads, given.steps, given.cut)
        alive = [thread.name for thread in threading.enumerate() if thread.name.startswith("jmsish ")]
        files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        print(f"seed {seed}: {time.monotonic() - begun:.1f} s, {files} files, {len(alive)} threads {alive[:2]}")
        if faults:
            raise SystemExit("\n".join(faults[:20]))


if __name__ == "__main__":
    main()
