"""Performs the demo's story with the asyncio face: producer and worker are two tasks of one loop."""

from __future__ import annotations

import asyncio
from typing import Any

import jmsish.aio
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
from jmsish.errors import JMSError
from jmsish.testing import cut


class AioStage:
    """One connection with one transacted session; `Open` after a cut makes a new one."""

    connection: jmsish.aio.Connection
    session: jmsish.aio.Session

    def __init__(self, run: Run) -> None:
        self.run = run
        self.consumers: dict[str, jmsish.aio.MessageConsumer] = {}
        self.producers: dict[str, jmsish.aio.MessageProducer] = {}
        self.is_open = False

    async def play(self, story: Story) -> None:
        """Perform the story to its end; what an action raises is raised in the story, where it may be expected."""
        try:
            action = next(story)
            while True:
                try:
                    answer = await self.perform(action)
                except JMSError as error:
                    action = story.throw(error)
                else:
                    action = story.send(answer)
        except StopIteration:
            pass
        finally:
            await self.close()

    async def close(self) -> None:
        if self.is_open:
            self.is_open = False
            await self.connection.close()

    async def perform(self, action: Action) -> Any:
        match action:
            case Receive(consumer):
                message = await self.consumers[consumer].receive(timeout=PATIENCE)
                return None if message is None else self.run.taken(message)
            case Send(queue, number, body):
                await (await self._producer(queue)).send(body, properties={NUMBER: number})
            case Commit():
                await self.session.commit()
            case Rollback():
                await self.session.rollback()
            case CloseConsumer(consumer):
                await self.consumers.pop(consumer).close()
            case OpenConsumer(consumer):
                self.consumers[consumer] = await self._consumer(self.run.queues.orders)
            case Open(names):
                await self._open(names)
            case Cut():
                cut(self.connection)
            case FirstVisible():
                return await self._first_visible()
            case Drain(queue, expected):
                return await self._drain(queue, expected)
        return None

    async def _open(self, names: tuple[str, ...]) -> None:
        await self.close()
        self.connection = await jmsish.aio.connect(self.run.url, **self.run.options)
        self.is_open = True
        self.session = await self.connection.create_session(transacted=True)
        self.producers.clear()
        self.consumers = {name: await self._consumer(self.run.queues.orders) for name in names}

    async def _consumer(self, queue: str) -> jmsish.aio.MessageConsumer:
        return await self.session.create_consumer(self.session.create_queue(queue))

    async def _producer(self, queue: str) -> jmsish.aio.MessageProducer:
        producer = self.producers.get(queue)
        if producer is None:
            producer = await self.session.create_producer(self.session.create_queue(queue))
            self.producers[queue] = producer
        return producer

    async def _first_visible(self) -> int | None:
        queue = self.session.create_queue(self.run.queues.orders)
        for _ in range(LOOKS):
            async with await self.session.create_browser(queue) as browser:
                async for message in browser:
                    return self.run.taken(message).number
            # What a killed connection held comes back when the broker notices, and no broker says when: look again.
            await asyncio.sleep(PATIENCE / LOOKS)
        return None

    async def _drain(self, queue: str, expected: int) -> list[Taken]:
        taken: list[Taken] = []
        async with await self._consumer(queue) as consumer:
            while True:
                waits = len(taken) < expected
                message = await (consumer.receive(timeout=PATIENCE * 4) if waits else consumer.receive_no_wait())
                if message is None:
                    break
                taken.append(self.run.taken(message))
                if len(taken) % 100 == 0:
                    await self.session.commit()
            await self.session.commit()
        return taken


class ReportingStage(AioStage):
    """The worker's stage: it says how far it is after each commit and rollback."""

    async def perform(self, action: Action) -> Any:
        answer = await super().perform(action)
        if isinstance(action, (Commit, Rollback)):
            self.run.report(self.run.ledger)
        return answer


async def perform(run: Run) -> None:
    """The whole demo: produce and work side by side, then collect what is left."""
    producer = asyncio.create_task(AioStage(run).play(run.producing()), name="demo-producer")

    def trouble() -> BaseException | None:
        return producer.exception() if producer.done() and not producer.cancelled() else None

    try:
        await ReportingStage(run).play(run.working(trouble))
        await asyncio.wait_for(producer, run.timeout)
    finally:
        producer.cancel()
        await asyncio.gather(producer, return_exceptions=True)
    await AioStage(run).play(run.collecting())
