"""No schedule of arrivals, timeouts, cancellations and closes loses or doubles a message."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jmsish
from jmsish import AcknowledgeMode, aio
from tests.effort import in_the_gate

from ..scenarios.steps import seen

timeouts = st.sampled_from([None, 0, 0.0, 0.0001, 0.001, 0.002])
# A busy machine takes minutes for it, and JMSISH_HYPOTHESIS=explore on any.
pytestmark = pytest.mark.timeout(900)

steps = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 3)),
    st.tuples(st.just("receive"), timeouts),
    st.tuples(st.just("cancel"), st.none()),
    st.tuples(st.just("turns"), st.integers(0, 4)),
    st.tuples(st.just("close"), st.booleans()),
)
MODES: dict[str, dict[str, Any]] = {
    "auto": {},
    "client": {"acknowledge_mode": AcknowledgeMode.CLIENT},
    "transacted": {"transacted": True},
}


class Reading:
    """One consumer of one task, which receives, is cancelled, closes and begins again."""

    def __init__(self, connection: aio.Connection, mode: str, prefetch: int) -> None:
        self.connection = connection
        self.mode = mode
        self.prefetch = prefetch
        self.got: list[str] = []
        self.task: asyncio.Task[Any] | None = None

    async def begin(self) -> None:
        self.session = await self.connection.create_session(**MODES[self.mode])
        self.queue = self.session.create_queue("orders")
        self.consumer = await self.session.create_consumer(self.queue, prefetch=self.prefetch)

    async def receive(self, timeout: float | None) -> None:
        if self.task is None or self.task.done():
            await self.harvest()
            self.task = asyncio.create_task(self.consumer.receive(timeout=timeout))

    async def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await self.harvest()

    async def harvest(self) -> None:
        """What the task has received, whichever way it ended, and what was handed over with it is settled."""
        if self.task is None:
            return
        try:
            message = await self.task
        except asyncio.CancelledError:
            message = None
        except jmsish.IllegalStateError:
            message = None  # its first step came after the close
        self.task = None
        if message is not None:
            self.got.append(seen(message))
            if self.mode == "client":
                await message.acknowledge()
            elif self.mode == "transacted":
                await self.session.commit()

    async def close(self, session_too: bool) -> None:
        """A close while somebody receives; then a new consumer, perhaps in a new session."""
        await self.consumer.close()
        await self.harvest()
        if session_too:
            await self.session.close()
            await self.begin()
        else:
            self.consumer = await self.session.create_consumer(self.queue, prefetch=self.prefetch)


async def a_schedule(wire: str, mode: str, prefetch: int, schedule: list[tuple[str, Any]]) -> None:
    broker = jmsish.EmbeddedBroker()
    broker.start()
    sent: list[str] = []
    try:
        url = broker.url if wire == "vm" else broker.listen().url
        async with aio.connect(url) as connection:
            producer = await (await connection.create_session()).create_producer(aio.Queue("orders"))
            reading = Reading(connection, mode, prefetch)
            await reading.begin()
            for step, argument in schedule:
                if step == "send":
                    for _ in range(argument):
                        sent.append(f"m{len(sent) + 1}")
                        await producer.send(sent[-1])
                elif step == "receive":
                    await reading.receive(argument)
                elif step == "cancel":
                    await reading.cancel()
                elif step == "close":
                    await reading.close(argument)
                else:
                    for _ in range(argument):
                        await asyncio.sleep(0)
            await reading.cancel()
            while len(reading.got) < len(sent):
                await reading.receive(5)
                assert reading.task is not None
                await asyncio.wait([reading.task])
                before = len(reading.got)
                await reading.harvest()
                assert len(reading.got) == before + 1, f"{sent} were sent, {reading.got} received"
            assert reading.got == sent, "in order, none marked: nobody ever gave back what he had seen"
            assert await reading.consumer.receive_no_wait() is None
        assert broker.queue("orders").depth == 0 if sent else True
    finally:
        broker.stop()


@pytest.mark.parametrize("wire", ["vm", "tcp"])
@settings(max_examples=in_the_gate(75))
@given(st.sampled_from(list(MODES)), st.sampled_from([0, 1, 2, 100]), st.lists(steps, min_size=5, max_size=30))
def test_one_task(wire: str, mode: str, prefetch: int, schedule: list[tuple[str, Any]]) -> None:
    """asyncio: receives with timeouts, cancelled and closed at any moment: every message exactly once, in order."""
    asyncio.run(a_schedule(wire, mode, prefetch, schedule))


@pytest.mark.parametrize("wire", ["vm", "tcp"])
@settings(max_examples=in_the_gate(75))
@given(
    st.lists(st.lists(timeouts.filter(lambda each: each is not None), max_size=12), min_size=1, max_size=3),
    st.sampled_from([0, 1, 2, 100]),
    st.lists(st.integers(1, 4), max_size=8),
)
def test_some_threads(wire: str, readers: list[list[float]], prefetch: int, batches: list[int]) -> None:
    """Threads: each reads its session with its own timeouts while messages arrive: every message exactly once."""
    with jmsish.EmbeddedBroker() as broker:
        url = broker.url if wire == "vm" else broker.listen().url
        with jmsish.connect(url) as connection:
            got: list[list[str]] = [[] for _ in readers]

            def read(patience: list[float], into: list[str]) -> None:
                with connection.create_session() as session:
                    consumer = session.create_consumer(session.create_queue("orders"), prefetch=prefetch)
                    for timeout in patience:
                        message = consumer.receive(timeout=timeout)
                        if message is not None:
                            into.append(seen(message))

            threads = [threading.Thread(target=read, args=pair) for pair in zip(readers, got, strict=True)]
            for thread in threads:
                thread.start()
            session = connection.create_session()
            queue = session.create_queue("orders")
            producer = session.create_producer(queue)
            total = 0
            for batch in batches:
                for _ in range(batch):
                    total += 1
                    producer.send(f"m{total}")
            for thread in threads:
                thread.join()
            rest: list[str] = []
            consumer = session.create_consumer(queue)
            while (message := consumer.receive_no_wait()) is not None:
                rest.append(seen(message))
    every = [body for each in (*got, rest) for body in each]
    assert sorted(every) == sorted(f"m{number}" for number in range(1, total + 1))
    assert rest == sorted(rest, key=lambda body: int(body[1:]))
