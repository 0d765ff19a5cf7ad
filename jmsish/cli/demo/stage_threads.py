"""Performs the demo's story with the blocking face: the producer in a thread of its own, the worker in the caller's."""

from __future__ import annotations

import threading
import time
from typing import Any

import jmsish
from jmsish.cli.demo.run import LOOKS, NUMBER, PATIENCE, Run
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
from jmsish.testing import cut


class ThreadStage:
    """One connection with one transacted session; `Open` after a cut makes a new one."""

    connection: jmsish.Connection
    session: jmsish.Session

    def __init__(self, run: Run) -> None:
        self.run = run
        self.consumers: dict[str, jmsish.MessageConsumer] = {}
        self.producers: dict[str, jmsish.MessageProducer] = {}
        self.is_open = False

    def play(self, story: Story) -> None:
        """Perform the story to its end; what an action raises is raised in the story, where it may be expected."""
        try:
            action = next(story)
            while True:
                try:
                    answer = self.perform(action)
                except jmsish.JMSError as error:
                    action = story.throw(error)
                else:
                    action = story.send(answer)
        except StopIteration:
            pass
        finally:
            self.close()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.connection.close()

    def perform(self, action: Action) -> Any:
        match action:
            case Receive(consumer):
                message = self.consumers[consumer].receive(timeout=PATIENCE)
                return None if message is None else self.run.taken(message)
            case Send(queue, number, body):
                self._producer(queue).send(body, properties={NUMBER: number})
            case Commit():
                self.session.commit()
            case Rollback():
                self.session.rollback()
            case CloseConsumer(consumer):
                self.consumers.pop(consumer).close()
            case OpenConsumer(consumer):
                self.consumers[consumer] = self._consumer(self.run.queues.orders)
            case Open(names):
                self._open(names)
            case Cut():
                cut(self.connection)
            case FirstVisible():
                return self._first_visible()
            case Drain(queue, expected):
                return self._drain(queue, expected)
        return None

    def _open(self, names: tuple[str, ...]) -> None:
        self.close()
        self.connection = jmsish.connect(self.run.url, **self.run.options)
        self.is_open = True
        self.session = self.connection.create_session(transacted=True)
        self.producers.clear()
        self.consumers = {name: self._consumer(self.run.queues.orders) for name in names}

    def _consumer(self, queue: str) -> jmsish.MessageConsumer:
        return self.session.create_consumer(self.session.create_queue(queue))

    def _producer(self, queue: str) -> jmsish.MessageProducer:
        producer = self.producers.get(queue)
        if producer is None:
            producer = self.producers[queue] = self.session.create_producer(self.session.create_queue(queue))
        return producer

    def _first_visible(self) -> int | None:
        queue = self.session.create_queue(self.run.queues.orders)
        for _ in range(LOOKS):
            with self.session.create_browser(queue) as browser:
                for message in browser:
                    return self.run.taken(message).number
            # What a killed connection held comes back when the broker notices, and no broker says when: look again.
            time.sleep(PATIENCE / LOOKS)
        return None

    def _drain(self, queue: str, expected: int) -> list[Taken]:
        taken: list[Taken] = []
        with self._consumer(queue) as consumer:
            while True:
                message = (
                    consumer.receive(timeout=PATIENCE * 4) if len(taken) < expected else consumer.receive_no_wait()
                )
                if message is None:
                    break
                taken.append(self.run.taken(message))
                if len(taken) % 100 == 0:
                    self.session.commit()
            self.session.commit()
        return taken


class ReportingStage(ThreadStage):
    """The worker's stage: it says how far it is after each commit and rollback."""

    def perform(self, action: Action) -> Any:
        answer = super().perform(action)
        if isinstance(action, (Commit, Rollback)):
            self.run.report(self.run.ledger)
        return answer


class ProducerThread(threading.Thread):
    """Sends all orders; keeps what stopped it."""

    def __init__(self, run: Run) -> None:
        super().__init__(name="demo-producer", daemon=True)
        self.stage = ThreadStage(run)
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.stage.play(self.stage.run.producing())
        except BaseException as error:
            self.error = error


def perform(run: Run) -> None:
    """The whole demo: produce and work side by side, then collect what is left."""
    producer = ProducerThread(run)
    producer.start()
    ReportingStage(run).play(run.working(lambda: producer.error))
    producer.join(run.timeout)
    if producer.error is not None:
        raise producer.error
    ThreadStage(run).play(run.collecting())
