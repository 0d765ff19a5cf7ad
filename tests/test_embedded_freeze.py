"""Freezing by the embedded broker, where threads, loops and the broker's own steps meet."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from typing import Any

import pytest

import jmsish
from jmsish import _holding, aio


def broker_with_x(**options: Any) -> jmsish.EmbeddedBroker:
    broker = jmsish.EmbeddedBroker(**options)
    broker.declare_queue("q")
    broker.declare_exchange("x", "fanout").bind("q")
    return broker


@pytest.mark.parametrize("what", ["freeze", "bind"])
def test_g2_asked_from_inside_a_route_it_raises_at_once(what: str) -> None:
    """The broker asks its clock as each message comes in: a clock that freezes would wait for the broker, and so for
    itself."""
    told: list[BaseException] = []
    asking = threading.Event()

    def clock() -> float:
        if asking.is_set():
            asking.clear()
            try:
                if what == "bind":
                    broker.exchange("x").bind("q", timeout=0)
                else:
                    exchange.freeze(timeout=0).__enter__()
            except jmsish.FreezeReentryError as error:
                told.append(error)
        return time.time()

    with broker_with_x(clock=clock) as broker:
        exchange = broker.exchange("x")
        bind = exchange.bind
        broker.exchange = lambda name: exchange  # type: ignore[method-assign]
        with jmsish.connect(broker.url) as connection, connection.create_session() as session:
            producer = session.create_producer(session.create_queue("x"))
            asking.set()
            producer.send("m")
        assert [type(error) for error in told] == [jmsish.FreezeReentryError]
        assert broker.queue("q").depth == 1 and bind("q") is False and not exchange.is_frozen


def test_threads_and_loops_freeze_the_same_exchange() -> None:
    """aiorwlock 503: a lock used from two loops stayed locked. Here the broker has it, and no loop."""
    held: list[str] = []
    with broker_with_x() as broker:
        exchange = broker.exchange("x")

        def in_thread(name: str) -> None:
            for _ in range(20):
                with exchange.freeze(timeout=30):
                    held.append(name)
                    assert held == [name]
                    held.clear()

        async def in_task(name: str) -> None:
            for _ in range(20):
                async with exchange.freeze(timeout=30):
                    held.append(name)
                    await asyncio.sleep(0)
                    assert held == [name]
                    held.clear()

        async def tasks(name: str) -> None:
            await asyncio.gather(*(in_task(f"{name}{number}") for number in range(3)))

        threads = [threading.Thread(target=in_thread, args=(f"thread {number}",)) for number in range(2)]
        loops = [threading.Thread(target=lambda n=n: asyncio.run(tasks(f"loop {n} "))) for n in range(2)]  # type: ignore[misc]
        for thread in threads + loops:
            thread.start()
        for thread in threads + loops:
            thread.join(60)
            assert not thread.is_alive()
        assert not exchange.is_frozen and exchange.waiting == 0


def test_a_freeze_belongs_to_the_thread_or_task_that_began_it() -> None:
    with broker_with_x() as broker:
        exchange = broker.exchange("x")
        freeze = exchange.freeze()
        freeze.__enter__()
        freeze.unbind("q")
        told: list[BaseException] = []

        def leave() -> None:
            try:
                freeze.__exit__(None, None, None)
            except jmsish.IllegalStateError as error:
                told.append(error)

        thread = threading.Thread(target=leave)
        thread.start()
        thread.join(30)
        assert len(told) == 1 and "where it began" in str(told[0])
        assert not exchange.is_frozen and len(exchange.bindings()) == 1


def test_g3_what_is_begun_inside_the_block_is_inside() -> None:
    """asyncio.wait_for runs its call in a task of its own, up to Python 3.11, and to_thread in a thread."""

    async def main() -> None:
        with broker_with_x() as broker:
            async with aio.connect(broker.url) as connection:
                session = await connection.create_session()
                producer = await session.create_producer(session.create_queue("x"))
                async with broker.exchange("x").freeze():
                    with pytest.raises(jmsish.FreezeReentryError):
                        await asyncio.wait_for(producer.send("m"), 30)
                    with pytest.raises(jmsish.FreezeReentryError):
                        await asyncio.create_task(producer.send("m"))
                    with jmsish.connect(broker.url) as blocking, blocking.create_session() as other:
                        sender = other.create_producer(other.create_queue("x"))
                        with pytest.raises(jmsish.FreezeReentryError):
                            await asyncio.to_thread(sender.send, "m")
                await producer.send("after")
                assert broker.queue("q").depth == 1

    asyncio.run(main())


def test_g3_what_is_begun_inside_the_block_changes_nothing_by_itself() -> None:
    """To wait there for the end of the block would be to wait for oneself; afterwards it may."""

    async def main() -> None:
        with broker_with_x() as broker:
            exchange = broker.exchange("x")

            async def nested() -> None:
                async with broker.freeze("amq.topic", "x"):
                    raise AssertionError("not reached")

            async with exchange.freeze() as frozen:
                for wait in (
                    lambda: asyncio.to_thread(exchange.unbind, "q"),
                    lambda: asyncio.to_thread(exchange.rebind, remove=exchange.bindings()),
                    lambda: asyncio.create_task(nested()),
                ):
                    with pytest.raises(jmsish.FreezeReentryError, match="'x'"):
                        await wait()
                assert await asyncio.to_thread(broker.exchange("amq.topic").bind, "q", "k")
                assert frozen.is_held
            assert await asyncio.to_thread(exchange.unbind, "q")

    asyncio.run(main())


def test_e4_nobody_waits_for_a_send_that_was_cancelled() -> None:
    async def main() -> None:
        with broker_with_x() as broker:
            connection = await aio.connect(broker.url, close_timeout=None)
            session = await connection.create_session()
            producer = await session.create_producer(session.create_queue("x"))
            sending = asyncio.create_task(producer.send("m1"))  # begun outside of the block: so it waits
            async with broker.exchange("x").freeze():
                while not broker.exchange("x").waiting:
                    await asyncio.sleep(0)
                sending.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await sending
                await connection.close()
            assert broker.queue("q").depth == 0

    asyncio.run(main())


def test_g3_streams_and_contexts_are_refused_too() -> None:
    with broker_with_x() as broker, jmsish.create_context(broker.url) as context:
        queue = context.create_queue("x")
        producer = context.create_producer()
        with broker.exchange("x").freeze():
            with pytest.raises(jmsish.FreezeReentryError):
                producer.send(queue, "m")
        producer.send(queue, "m")
        with jmsish.connect(broker.url) as connection, connection.create_session() as session:
            streaming = session.create_producer(queue)
            with broker.exchange("x").freeze(), pytest.raises(jmsish.FreezeReentryError):
                streaming.send(stream=[b"a", b"b"])
            streaming.send(stream=[b"a", b"b"])
        assert broker.queue("q").depth == 2


def test_another_broker_is_another_matter() -> None:
    with broker_with_x() as one, broker_with_x() as two:
        with jmsish.connect(two.url) as connection, connection.create_session() as session:
            producer = session.create_producer(session.create_queue("x"))
            with one.exchange("x").freeze():
                producer.send("m")
        assert two.queue("q").depth == 1


def test_a_holder_that_never_left_its_block_costs_others_nothing() -> None:
    with broker_with_x() as broker:
        before = set(_holding.ANY)  # what other tests have left
        thread = threading.Thread(target=broker.exchange("x").freeze().__enter__)
        thread.start()
        thread.join(30)
        assert len(set(_holding.ANY) - before) == 1
        with jmsish.connect(broker.url) as connection, connection.create_session() as session:
            producer = session.create_producer(session.create_queue("x"))
            producer.send("m")  # finds the holder dead
            producer.send("m")  # and forgets it
        assert not _holding.ANY and broker.queue("q").depth == 2


def test_what_is_over_is_let_go() -> None:
    with broker_with_x() as broker:
        freeze = broker.exchange("x").freeze()
        with freeze:
            freeze.bind("q", "other")
        watched = weakref.ref(freeze)
        del freeze
        gc.collect()
        assert watched() is None and _holding.HELD.get() == ()


def test_a_loop_is_not_stopped_by_a_blocking_freeze_or_change() -> None:
    async def main() -> None:
        with broker_with_x() as broker:
            exchange = broker.exchange("x")
            held, free = threading.Event(), threading.Event()

            def hold() -> None:
                with exchange.freeze():
                    held.set()
                    free.wait(30)

            thread = threading.Thread(target=hold)
            thread.start()
            assert held.wait(30)
            for blocking in (lambda: exchange.freeze().__enter__(), lambda: exchange.bind("q")):
                with pytest.raises(jmsish.IllegalStateError, match="would stop the event loop"):
                    blocking()
            assert exchange.waiting == 0  # and left no trace
            free.set()
            await asyncio.to_thread(thread.join, 30)
            with exchange.freeze() as frozen:  # at once, so it may
                assert len(frozen.bindings()) == 1

    asyncio.run(main())
