"""The asyncio driver under the real client and broker: cancellation at every await, timeouts, loops that end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jmsish
from jmsish import aio
from jmsish.drivers.wires import SocketWire
from tests.hurry import give_up_after

from .mute import MutableProxy

PATIENCE = 30.0
FAST = 0.2
TURNS = range(31)
"""After how many turns of the loop a task is cancelled."""


@pytest.fixture
def broker() -> Iterator[jmsish.EmbeddedBroker]:
    with jmsish.EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(params=["vm", "tcp"])
def url(request: pytest.FixtureRequest, broker: jmsish.EmbeddedBroker) -> str:
    return broker.url if request.param == "vm" else f"amqp://127.0.0.1:{broker.listen().port}"


@pytest.fixture
def proxy(broker: jmsish.EmbeddedBroker) -> Iterator[MutableProxy]:
    proxy = MutableProxy(broker.listen().port)
    yield proxy
    proxy.close()


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, PATIENCE))


async def cancelled_after(turns: int, call: Awaitable[Any]) -> Any:
    """What a call returned, or None where it was cancelled before."""
    task = asyncio.ensure_future(call)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await task
    return None


async def drain(session: aio.Session, name: str = "q") -> list[str]:
    consumer = await session.create_consumer(session.create_queue(name))
    found = []
    while (message := await consumer.receive_no_wait()) is not None:
        found.append(message.get_body(str))
    await consumer.close()
    return found


@pytest.mark.parametrize("timeout", [None, 0, 0.001])
def test_a_receive_cancelled_at_any_turn_loses_and_doubles_nothing(url: str, timeout: float | None) -> None:
    async def scene() -> None:
        async with aio.connect(url) as connection:
            sender = await connection.create_session()
            producer = await sender.create_producer(sender.create_queue("q"))
            session = await connection.create_session()
            consumer = await session.create_consumer(session.create_queue("q"))
            got = []
            for turns in TURNS:
                sending = asyncio.ensure_future(producer.send(f"m{turns}"))
                message = await cancelled_after(turns, consumer.receive(timeout=timeout))
                await sending
                if message is not None:
                    got.append(message.get_body(str))
            await consumer.close()
            assert got + await drain(session) == [f"m{turns}" for turns in TURNS]

    play(scene())


def test_a_receive_after_a_cancelled_one_gets_what_comes(proxy: MutableProxy) -> None:
    """The cancelled one had asked for its credit back: the answer comes late, and the next one waits for a message."""

    async def scene() -> None:
        async with aio.connect(proxy.url) as connection:
            session = await connection.create_session()
            consumer = await session.create_consumer(session.create_queue("q"))
            for turns in range(6):
                assert await cancelled_after(turns, consumer.receive_no_wait()) is None
                waiting = asyncio.ensure_future(consumer.receive())
                sender = await connection.create_session()
                await (await sender.create_producer(sender.create_queue("q"))).send("m")
                assert (await waiting).get_body(str) == "m"

    play(scene())


@pytest.mark.parametrize("call", ["commit", "rollback"])
def test_a_discharge_cancelled_at_any_turn_is_done_or_not_begun(url: str, call: str) -> None:
    async def scene() -> None:
        async with aio.connect(url) as connection:
            for turns in TURNS:
                session = await connection.create_session(transacted=True)
                producer = await session.create_producer(session.create_queue("q"))
                await producer.send("a")
                await producer.send("b")
                await cancelled_after(turns, getattr(session, call)())
                await producer.send("c")
                await session.commit()
                await session.close()
                found = await drain(await connection.create_session())
                begun = turns > 0
                assert found == ((["a", "b"] if call == "commit" or not begun else []) + ["c"])

    play(scene())


def test_a_send_cancelled_at_any_turn_leaves_the_session_usable(url: str) -> None:
    async def scene() -> None:
        async with aio.connect(url) as connection:
            session = await connection.create_session()
            producer = await session.create_producer(session.create_queue("q"))
            for turns in TURNS:
                await cancelled_after(turns, producer.send(f"m{turns}"))
            await producer.send("last")
            found = await drain(session)
            assert found[-1] == "last" and len(found) == len(set(found)) >= len(TURNS)

    play(scene())


@pytest.mark.parametrize("what", ["consumer", "producer", "session", "connection"])
def test_a_close_cancelled_at_any_turn_can_be_repeated(url: str, broker: jmsish.EmbeddedBroker, what: str) -> None:
    async def scene() -> None:
        for turns in TURNS:
            connection = await aio.connect(url)
            session = await connection.create_session()
            producer = await session.create_producer(session.create_queue("q"))
            consumer = await session.create_consumer(session.create_queue("q"))
            parts: dict[str, Any] = {
                "consumer": consumer, "producer": producer, "session": session, "connection": connection
            }  # fmt: skip
            await producer.send(f"m{turns}")
            await cancelled_after(turns, parts[what].close())
            await parts[what].close()
            await connection.close()
        async with aio.connect(url) as connection:
            assert await drain(await connection.create_session()) == [f"m{turns}" for turns in TURNS]

    play(scene())


def test_a_close_returns_when_the_socket_is_closed(proxy: MutableProxy) -> None:
    """Who stops a broker in the same program right after it need not wait for the loop to close it."""

    async def scene() -> None:
        connection = await aio.connect(proxy.url)  # it passes on what the broker says, but not that it has closed
        wire: Any = connection._driver.wire
        held = wire._transport.get_extra_info("socket")
        assert held.fileno() >= 0
        await connection.close()
        assert held.fileno() == -1

    play(scene())


def test_a_close_cancelled_while_a_listener_runs_gives_the_unread_back_unmarked(url: str) -> None:
    """It is a close all the same, and not a cut, by which all would count as failed."""

    async def scene() -> None:
        connection = await aio.connect(url)
        session = await connection.create_session()
        queue = session.create_queue("q")
        producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
        for body in ("heard", "unread"):
            await producer.send(body)
        entered, leave = asyncio.Event(), asyncio.Event()

        async def listener(_: Any) -> None:
            entered.set()
            await leave.wait()

        consumer.listener = listener
        await entered.wait()
        assert await cancelled_after(5, connection.close()) is None and connection.is_closed
        leave.set()
        async with aio.connect(url) as other:
            there = await (await other.create_session()).create_consumer(queue)
            got = [await there.receive(timeout=30) for _ in range(2)]
            assert [(m.body, m.delivery_count) for m in got if m is not None] == [("heard", 2), ("unread", 1)]

    play(scene())


def test_a_consumer_cancelled_at_any_turn_holds_nothing(url: str, broker: jmsish.EmbeddedBroker) -> None:
    """Its maker has it, or nobody: no messages lie in a buffer that no one reads, and a subscription is free."""

    async def scene(turns: int) -> None:
        async with aio.connect(url, client_id=f"alice-{turns}") as connection:
            session = await connection.create_session()
            queue, topic = session.create_queue(f"q-{turns}"), session.create_topic(f"t-{turns}")
            await (await session.create_producer(queue)).send("m1")
            made = [
                await cancelled_after(turns, session.create_consumer(queue)),
                await cancelled_after(turns, session.create_durable_consumer(topic, "s")),
            ]
            for consumer in made:
                if consumer is not None:
                    await consumer.close()
            other = await (await connection.create_session()).create_consumer(queue)
            message = await other.receive(timeout=30)
            assert message is not None and not message.jms_redelivered
            await (await session.create_durable_consumer(topic, "s")).close()
            await session.unsubscribe("s")

    for turns in TURNS:
        play(scene(turns))


def test_a_session_and_a_producer_cancelled_at_any_turn_are_there_or_not(url: str) -> None:
    """Nobody could close what nobody was given: it would stay as long as the connection."""

    async def scene() -> None:
        async with aio.connect(url) as connection:
            session = await connection.create_session()
            queue = session.create_queue("q")
            given: list[Any] = []
            for turns in TURNS:
                given += [
                    await cancelled_after(turns, session.create_producer(queue)),
                    await cancelled_after(turns, connection.create_session()),
                    await cancelled_after(turns, connection.create_session(transacted=True)),
                ]
            for each in given:
                if each is not None:
                    await each.close()
            await session.create_producer(queue)
            core, engine = session._core, connection._core.engine
            assert len(connection._core.sessions) == 1 and len(engine.sessions) == 1
            assert len(core.producers) == 1 and len(core.engine_session.links) == 1

    play(scene())


def test_a_temporary_queue_cancelled_at_any_turn_is_there_or_not(url: str, broker: jmsish.EmbeddedBroker) -> None:
    """What nobody has a name for does not stay at the broker as long as the connection."""

    async def scene(turns: int) -> None:
        async with aio.connect(url) as connection:
            session = await connection.create_session()
            made = await cancelled_after(turns, session.create_temporary_queue())
            if made is not None:
                await made.delete()
            await (await connection.create_session()).close()  # all that was said has been done
            assert not [view.name for view in broker.queues() if view.is_temporary]

    for turns in TURNS:
        play(scene(turns))


def test_a_connect_cancelled_at_any_turn_leaves_no_connection(url: str, broker: jmsish.EmbeddedBroker) -> None:
    async def scene() -> None:
        for turns in TURNS:
            connection = await cancelled_after(turns, aio.connect(url))
            if connection is not None:
                await connection.close()
        while broker.connections():
            await asyncio.sleep(0)

    play(scene())


def test_a_send_that_waits_for_credit_is_cancelled_at_once(url: str) -> None:
    async def scene() -> None:
        async with aio.connect(url) as connection:
            session = await connection.create_session()
            producer = await session.create_producer(session.create_queue("q"))
            link = producer._core.link
            assert link is not None
            credit, link.credit = link.credit, 0
            await cancelled_after(3, producer.send("never"))
            link.credit = credit
            await producer.send("m1")
            assert await drain(session) == ["m1"]

    play(scene())


def test_an_operation_cancelled_twice_still_has_the_session_to_itself(
    broker: jmsish.EmbeddedBroker, proxy: MutableProxy
) -> None:
    async def scene() -> None:
        async with aio.connect(proxy.url) as connection:
            session = await connection.create_session(transacted=True)
            producer = await session.create_producer(session.create_queue("q"))
            await producer.send("m1")
            with busy(broker):
                task = asyncio.ensure_future(session.commit())
                for _ in range(3):
                    await asyncio.sleep(0)
                    task.cancel()
                with pytest.raises(jmsish.ConcurrencyError):
                    await session.commit()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await producer.send("m2")
            await session.commit()
            assert await drain(await connection.create_session()) == ["m1", "m2"]

    play(scene())


@contextlib.contextmanager
def busy(broker: jmsish.EmbeddedBroker) -> Iterator[None]:
    """The broker is busy with something else meanwhile."""
    entered, left = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: broker._call(lambda: (entered.set(), left.wait())), daemon=True)
    thread.start()
    entered.wait()
    try:
        yield
    finally:
        left.set()
        thread.join(PATIENCE)


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["send", "receive", "timeout", "no wait", "commit", "rollback"]), st.integers(0, 12)),
    max_size=25,
)


@given(steps=STEPS, prefetch=st.sampled_from([0, 1, 3, 100]), consumers=st.integers(1, 2), tcp=st.booleans())
def test_no_schedule_of_arrivals_timeouts_and_cancellations_loses_a_message(
    steps: list[Step], prefetch: int, consumers: int, tcp: bool
) -> None:
    """A transacted session; what it took and committed, and what is left, is what was sent, each once."""
    with jmsish.EmbeddedBroker(config={"queues": {"q": {"max_delivery_attempts": 0}}}) as broker:
        url = f"amqp://127.0.0.1:{broker.listen().port}" if tcp else broker.url
        play(_schedule(url, steps, prefetch, consumers))


async def _schedule(url: str, steps: list[Step], prefetch: int, consumers: int) -> None:
    async with aio.connect(url) as connection:
        sender = await connection.create_session()
        producer = await sender.create_producer(sender.create_queue("q"))
        session = await connection.create_session(transacted=True)
        queue = session.create_queue("q")
        readers = [await session.create_consumer(queue, prefetch=prefetch) for _ in range(consumers)]
        sent: list[str] = []
        taken: list[str] = []
        kept: list[str] = []
        for number, (what, turns) in enumerate(steps):
            reader = readers[number % consumers]
            call: Callable[[], Awaitable[Any]] | None = None
            if what == "send":
                sent.append(f"m{number}")
                await producer.send(sent[-1])
            elif what == "commit":
                await session.commit()
                kept, taken = kept + taken, []
            elif what == "rollback":
                await session.rollback()
                taken = []
            elif what == "no wait":
                call = reader.receive_no_wait
            else:
                call = (lambda r=reader: r.receive(timeout=0.001)) if what == "timeout" else reader.receive
            if call is not None:
                message = await cancelled_after(turns, call())
                if message is not None:
                    taken.append(message.get_body(str))
        await session.rollback()
        await session.close()
        assert sorted(kept + await drain(sender)) == sorted(sent)


# -- listeners --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Task.cancelling, which tells the two apart, came with 3.11")
def test_a_listener_that_awaits_something_cancelled_goes_on(url: str) -> None:
    async def scene() -> None:
        async with aio.connect(url) as connection:
            session = await connection.create_session()
            seen: list[tuple[str, int]] = []
            done = asyncio.Event()

            async def listen(message: Any) -> None:
                seen.append((message.get_body(str), message.delivery_count))
                if message.delivery_count == 1:
                    inner = asyncio.get_running_loop().create_future()
                    inner.cancel()
                    await inner
                done.set()

            consumer = await session.create_consumer(session.create_queue("q"))
            consumer.listener = listen
            sender = await connection.create_session()
            await (await sender.create_producer(sender.create_queue("q"))).send("m1")
            await done.wait()
            assert seen == [("m1", 1), ("m1", 2)]

    play(scene())


# -- silence and ends -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closing", ["consumer", "producer", "session", "connection"])
def test_a_close_that_is_never_answered_ends_by_close_timeout(proxy: MutableProxy, closing: str) -> None:
    async def scene() -> None:
        connection = await aio.connect(proxy.url, close_timeout=FAST)
        session = await connection.create_session()
        parts: dict[str, Any] = {
            "consumer": await session.create_consumer(session.create_queue("q")),
            "producer": await session.create_producer(session.create_queue("q")),
            "session": session,
            "connection": connection,
        }
        proxy.mute()
        with pytest.raises(jmsish.OperationTimeoutError):
            await parts[closing].close()
        with contextlib.suppress(jmsish.JMSError):
            await connection.close()

    play(scene())


def test_silence_of_the_broker_fails_the_waiting_call(proxy: MutableProxy) -> None:
    async def scene() -> None:
        connection = await aio.connect(proxy.url)
        session = await connection.create_session()
        consumer = await session.create_consumer(session.create_queue("q"))
        proxy.mute()
        give_up_after(connection, FAST)
        with pytest.raises(jmsish.ConnectionLostError):
            await consumer.receive()
        await connection.close()

    play(scene())


def test_a_fault_inside_the_client_is_heard_by_all_who_wait(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        connection = await aio.connect(url)
        session = await connection.create_session()
        consumer = await session.create_consumer(session.create_queue("other"))
        waiting = asyncio.ensure_future(consumer.receive())
        second = await connection.create_session()
        producer = await second.create_producer(second.create_queue("q"))

        def fault(*args: Any) -> None:
            raise RuntimeError("a fault inside the client")

        monkeypatch.setattr(connection._core, "_on_disposed", fault)
        for call in (producer.send("m1"), waiting):
            with pytest.raises((jmsish.ConnectionLostError, RuntimeError)):
                await call
        await connection.close()

    play(scene())


def test_a_connection_dropped_with_its_loop_ends_and_warns(broker: jmsish.EmbeddedBroker) -> None:
    async def scene() -> None:
        connection = await aio.connect(broker.url)
        await connection.create_session()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        play(scene())
        gc.collect()
    assert any(w.category is ResourceWarning and "without close" in str(w.message) for w in caught)
    assert not broker.connections()


def test_nothing_is_waited_for_on_a_connection_that_has_ended(url: str) -> None:
    """Whatever asks the broker after a close hears at once that there is none: no answer would come."""

    async def scene() -> None:
        connection = await aio.connect(url)
        await connection.close()
        with pytest.raises(jmsish.ConnectionLostError, match="has ended"):
            await connection._driver.wait(Future(), None)

    play(scene())


def heard_by(consumer: aio.MessageConsumer, listener: Callable[[Any], Awaitable[Any]]) -> asyncio.Future[Any]:
    """What a listener comes to with the first message that it gets."""
    heard = asyncio.get_running_loop().create_future()

    async def hear(message: Any) -> None:
        try:
            heard.set_result(await listener(message))
        except Exception as error:
            heard.set_exception(error)

    consumer.listener = hear
    return heard


def test_what_a_listener_begins_and_waits_for_uses_its_session(url: str) -> None:
    """`asyncio.wait_for` runs its call in a task of its own, up to Python 3.11: that one works for the listener."""

    async def scene() -> None:
        async with aio.connect(url) as connection:
            session = await connection.create_session(transacted=True)
            consumer = await session.create_consumer(session.create_queue("q"))
            replies = await session.create_producer(session.create_queue("replies"))

            async def listener(message: Any) -> None:
                await asyncio.create_task(replies.send("reply"))
                await asyncio.create_task(session.create_consumer(session.create_queue("another")))
                await asyncio.create_task(session.commit())
                await asyncio.create_task(consumer.close())

            heard = heard_by(consumer, listener)
            sender = await connection.create_session()
            await (await sender.create_producer(sender.create_queue("q"))).send("m1")
            await heard
            assert await drain(sender, "replies") == ["reply"] and not await drain(sender)

    play(scene())


def test_a_context_too_makes_a_consumer_in_a_task_of_its_listener(url: str) -> None:
    async def scene() -> None:
        async with aio.create_context(url) as context:
            consumer = await context.create_consumer(context.create_queue("q"))

            async def listener(message: Any) -> Any:
                return await asyncio.create_task(context.create_consumer(context.create_queue("another")))

            heard = heard_by(consumer, listener)  # type: ignore[arg-type]
            async with aio.create_context(url) as other:
                await (await other.create_producer()).send(other.create_queue("q"), "m1")
            assert (await heard).destination.name == "another"

    play(scene())


def test_what_a_peer_says_before_the_wire_is_joined_is_not_lost() -> None:
    """It may greet first, and may go at once: between the connect and the driver there are turns of the loop."""

    class Driver:
        wire: Any = None
        heard: list[Any] = []

        def receive(self, data: bytes) -> None:
            self.heard.append(data)

        def receive_eof(self, error: Exception | None) -> None:
            self.heard.append(error)

        def flush(self) -> None:
            pass

        written = flush

    driver: Any = Driver()
    wire = SocketWire(driver, "peer")
    wire.data_received(b"AMQP")
    wire.data_received(b"\x03\x01\x00\x00")
    wire.connection_lost(None)
    assert driver.heard == []
    driver.wire = wire
    wire.joined()
    assert driver.heard == [b"AMQP", b"\x03\x01\x00\x00", None]
    wire.joined()
    wire.data_received(b"more")
    assert driver.heard == [b"AMQP", b"\x03\x01\x00\x00", None, b"more"]
