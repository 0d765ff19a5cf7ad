"""A pool of asyncio workers: each has a transacted session of its own, and `session.transaction()` commits or rolls
back.

The work fails at times. A worker that fails rolls back and goes on; the job comes again, to whichever worker is
free, and its delivery count says how often it was tried. The pool ends when all jobs are done, by cancelling the
workers while they wait: a cancelled receive loses nothing.

Run it:  python examples/05_asyncio_worker.py [amqp://host]
"""

from __future__ import annotations

import asyncio
import sys
import uuid

import jmsish.aio

JOBS = 30
WORKERS = 3


class Flaky(Exception):
    """What a remote system does on a bad day."""


async def resize(job: str, attempt: int) -> str:
    await asyncio.sleep(0.001)  # the remote system at work
    if int(job.split()[-1]) % 5 == 0 and attempt < 2:
        raise Flaky(f"{job} failed at attempt {attempt}")
    return f"{job} done at attempt {attempt}"


async def worker(connection: jmsish.aio.Connection, run: str, done: asyncio.Semaphore) -> None:
    async with await connection.create_session(transacted=True) as session:
        jobs = await session.create_consumer(session.create_queue(f"{run}.jobs"))
        results = await session.create_producer(session.create_queue(f"{run}.results"))
        async for message in jobs:
            try:
                async with session.transaction():
                    await results.send(await resize(message.body, message.delivery_count))
            except Flaky as error:
                print(f"  rolled back: {error}")
            else:
                done.release()


async def demonstrate(url: str) -> None:
    run = f"pool-{uuid.uuid4().hex[:8]}"
    done = asyncio.Semaphore(0)
    async with jmsish.aio.connect(url, prefetch=2) as connection:
        session = await connection.create_session()
        producer = await session.create_producer(session.create_queue(f"{run}.jobs"))
        for number in range(1, JOBS + 1):
            await producer.send(f"job {number}")
        pool = [asyncio.create_task(worker(connection, run, done), name=f"worker {n}") for n in range(WORKERS)]
        for _ in range(JOBS):
            await asyncio.wait_for(done.acquire(), 10)
        for task in pool:
            task.cancel()
        await asyncio.gather(*pool, return_exceptions=True)
        lines = await results_of(session, f"{run}.results")
    numbers = sorted(int(line.split()[1]) for line in lines)
    assert numbers == list(range(1, JOBS + 1)), "each job has one result"
    assert sum(line.endswith("attempt 2") for line in lines) == JOBS // 5
    print(f"{len(lines)} results, {JOBS // 5} of them at the second attempt")


async def results_of(session: jmsish.aio.Session, queue: str) -> list[str]:
    lines = []
    async with await session.create_consumer(session.create_queue(queue)) as consumer:
        while (message := await consumer.receive(timeout=1)) is not None:
            lines.append(str(message.body))
    return lines


async def main() -> None:
    if len(sys.argv) > 1:
        await demonstrate(sys.argv[1])
    else:
        with jmsish.EmbeddedBroker() as broker:
            await demonstrate(broker.url)


if __name__ == "__main__":
    asyncio.run(main())
