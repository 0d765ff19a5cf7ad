"""The asyncio face."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import jmsish
import jmsish.aio
from tests.bench.clients.protocol import BATCH, PATIENCE, TEXT, Watch, arguments, check, serve


class Program:
    def __init__(self, url: str, profiling: bool) -> None:
        self.url, self.profiling = url, profiling
        self.watch = Watch()

    def __getattr__(self, work: str) -> Any:
        return lambda count, queue: asyncio.run(self.run(getattr(self, work + "_work"), count, queue))

    async def run(self, work: Any, count: int, queue: str) -> None:
        async with jmsish.aio.connect(self.url) as connection:
            session = await connection.create_session(work.__name__.startswith("transacted"))
            steps: Coroutine[Any, Any, None] = work(session, session.create_queue(queue), count)
            await steps

    async def async_send_work(self, session: Any, queue: jmsish.Queue, count: int) -> None:
        producer = await session.create_producer(queue)
        producer.delivery_mode = jmsish.DeliveryMode.NON_PERSISTENT
        with self.watch:
            for _ in range(count):
                await producer.send(TEXT)
            await producer.close()

    async def completion_send_work(self, session: Any, queue: jmsish.Queue, count: int) -> None:
        producer = await session.create_producer(queue)
        outcomes: list[object] = []
        done = asyncio.Event()

        def completed(message: jmsish.Message, error: jmsish.JMSError | None) -> None:
            outcomes.append(error)
            if len(outcomes) == count:
                done.set()

        with self.watch:
            for _ in range(count):
                await producer.send(TEXT, on_completion=completed)
            await asyncio.wait_for(done.wait(), PATIENCE)
        if any(outcomes):
            raise SystemExit(f"refused: {next(filter(None, outcomes))}")

    async def receive_work(self, session: Any, queue: jmsish.Queue, count: int) -> None:
        with self.watch:
            consumer = await session.create_consumer(queue)
            for _ in range(count):
                check((await consumer.receive(timeout=PATIENCE)).body)
            await consumer.close()

    async def sync_send_work(self, session: Any, queue: jmsish.Queue, count: int) -> None:
        producer = await session.create_producer(queue)
        with self.watch:
            for _ in range(count):
                await producer.send(TEXT)

    async def transacted_work(self, session: Any, queue: jmsish.Queue, count: int) -> None:
        consumer = await session.create_consumer(queue)
        producer = await session.create_producer(session.create_queue(queue.name + ".out"))
        with self.watch:
            for _ in range(count):
                for _ in range(BATCH):
                    check((await consumer.receive(timeout=PATIENCE)).body)
                    await producer.send(TEXT)
                await session.commit()

    transacted_examples_work = transacted_work

    async def request_reply_work(self, session: Any, queue: jmsish.Queue, count: int) -> None:
        producer = await session.create_producer(queue)
        answers = await session.create_temporary_queue()
        consumer = await session.create_consumer(answers)
        with self.watch:
            for _ in range(count):
                request = session.create_text_message(TEXT)
                request.jms_reply_to = answers
                await producer.send(request)
                check((await consumer.receive(timeout=PATIENCE)).body)


if __name__ == "__main__":
    serve(Program(*arguments()))
