"""Freezing exchanges as threads and tasks see it: the properties of a freeze that can be shown from outside."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import jmsish
from jmsish import aio
from jmsish.freezing import Freeze
from jmsish.testing import VirtualClock
from tests.hurry import hurried

from .blocking import dressed
from .face import Face, SyncFace

TYPES = ["direct", "topic", "fanout", "headers"]


def block(face: Face, freeze: Freeze) -> Any:
    """A freeze for ``async with``: a blocking one in the thread that runs, else that of the task."""
    return dressed(freeze) if isinstance(face, SyncFace) else freeze


class Play:
    """The exchange x, bound to q1, and queues to bind it to instead."""

    def __init__(self, face: Face, type: str = "direct", **settings: Any) -> None:
        self.face = face
        self.broker = face.broker_with(**settings)
        for name in ("q1", "q2"):
            self.broker.declare_queue(name)
        self.x = self.broker.declare_exchange("x", type)
        self.arguments = {"x-match": "all"} if type == "headers" else None
        self.x.bind("q1", "k", self.arguments)

    def freeze(self, **options: Any) -> Any:
        return block(self.face, self.x.freeze(**options))

    def swap(self, frozen: Any, old: str = "q1", new: str = "q2") -> None:
        assert frozen.unbind(old, "k")
        assert frozen.bind(new, "k", self.arguments)

    def bodies(self, queue: str) -> list[Any]:
        return [message.body for message in self.broker.queue(queue).messages()]

    async def producer(self, address: str = "x/k", **options: Any) -> aio.MessageProducer:
        connection = await self.face.connect(**options)
        session = await connection.create_session()
        return await session.create_producer(session.create_queue(address))

    async def waits(self, count: int = 1) -> None:
        await self.face.eventually(lambda: self.x.waiting == count, lambda: f"{count} that wait: {self.x.waiting}")


async def holding(play: Play, held: Any, free: Any, **options: Any) -> None:
    """Hold the exchange until told to let it go."""
    async with play.freeze(**options):
        held.set()
        await waited(free)


class Sign:
    """An event that threads and tasks wait for in the same words."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._event: Any = threading.Event() if isinstance(face, SyncFace) else asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        if isinstance(self._face, SyncFace):
            assert self._event.wait(30)
        else:
            await asyncio.wait_for(self._event.wait(), 30)


async def waited(sign: Sign) -> None:
    await sign.wait()


@pytest.mark.parametrize("type", TYPES)
async def test_a1_a3_a_swap_under_publishers_loses_doubles_and_reorders_nothing(face: Face, type: str) -> None:
    play = Play(face, type)

    async def publish(name: str, producer: Any) -> None:
        for number in range(60):
            await producer.send(f"{name}:{number}")
            if number == 20:
                begun[name].set()

    begun = {name: Sign(face) for name in ("a", "b", "c")}
    producers = {name: await play.producer() for name in begun}
    tasks = [await face.spawn(publish(name, producer), name) for name, producer in producers.items()]
    for sign in begun.values():
        await sign.wait()
    async with play.freeze(timeout=20) as frozen:
        play.swap(frozen)
        assert [binding.queue for binding in frozen.bindings()] == ["q2"]
    for task in tasks:
        await task
    first, second = play.bodies("q1"), play.bodies("q2")
    for name in begun:
        mine = [[body for body in bodies if body.startswith(name)] for bodies in (first, second)]
        assert mine[0] + mine[1] == [f"{name}:{number}" for number in range(60)]
        assert len(mine[0]) >= 20


async def test_a4_an_exception_in_the_block_changes_nothing(face: Face) -> None:
    play = Play(face)
    with pytest.raises(ZeroDivisionError):
        async with play.freeze() as frozen:
            play.swap(frozen)
            raise ZeroDivisionError
    assert [binding.queue for binding in play.x.bindings()] == ["q1"] and not play.x.is_frozen


async def test_c2_freezes_one_after_the_other_let_publishers_through(face: Face) -> None:
    play = Play(face)
    producer = await play.producer()
    done = Sign(face)
    over = []

    async def publish() -> None:
        for number in range(20):
            await producer.send(f"m{number}")
        over.append(True)
        done.set()

    async def freeze_and_freeze() -> None:
        while not over:
            async with play.freeze():
                await face.yield_()

    freezers = [await face.spawn(freeze_and_freeze(), f"freezer {number}") for number in range(2)]
    task = await face.spawn(publish(), "publisher")
    await done.wait()
    await task
    for freezer in freezers:
        await freezer
    assert play.bodies("q1") == [f"m{number}" for number in range(20)]


async def test_d1_d2_f1_everything_else_goes_on(face: Face) -> None:
    play = Play(face)
    play.broker.declare_exchange("y", "fanout").bind("q2")
    connection = await face.connect()
    session = await connection.create_session()
    straight = await session.create_producer(session.create_queue("q1"))
    other = await session.create_producer(session.create_queue("y"))
    consumer = await session.create_consumer(session.create_queue("q1"))
    producer = await play.producer()
    async with play.freeze():
        task = await face.spawn(producer_sends(producer, "parked"), "publisher") if face.wire == "tcp" else None
        await straight.send("straight")
        await other.send("by y")
        received = await consumer.receive(30)
        assert received is not None and received.body == "straight"
    if task is not None:
        await task
    assert play.bodies("q2") == ["by y"]


async def producer_sends(producer: Any, *bodies: str) -> None:
    for body in bodies:
        await producer.send(body)


async def test_d3_a_new_subscription_waits_for_the_thaw(face: Face) -> None:
    play = Play(face, "topic")
    free, held = Sign(face), Sign(face)
    holder = await face.spawn(holding(play, held, free), "holder")
    await held.wait()
    connection = await face.connect()
    session = await connection.create_session()

    async def subscribe() -> Any:
        return await session.create_consumer(session.create_topic("x"))

    task = await face.spawn(subscribe(), "subscriber")
    await play.waits(1)
    assert len(play.x.bindings()) == 1
    free.set()
    await holder
    consumer = await task
    assert len(play.x.bindings()) == 2
    producer = await play.producer("x/anything")
    await producer.send("m")
    received = await consumer.receive(30)
    assert received is not None and received.body == "m"


async def test_d3_with_the_time_out_of_its_client_it_leaves_nothing(face: Face) -> None:
    play = Play(face, "topic")
    free, held = Sign(face), Sign(face)
    holder = await face.spawn(holding(play, held, free), "holder")
    await held.wait()
    connection = await face.connect()
    session = await connection.create_session()
    before = len(play.broker.queues())
    with hurried(connection, request_timeout=0.2), pytest.raises(jmsish.OperationTimeoutError):
        await session.create_consumer(session.create_topic("x"))
    await connection.close()
    free.set()
    await holder
    await face.eventually(lambda: not play.x.is_frozen, lambda: "an open exchange")
    assert len(play.broker.queues()) == before and len(play.x.bindings()) == 1


async def test_e1_e3_who_waits_too_long_is_told(face: Face) -> None:
    play = Play(face)
    free, held = Sign(face), Sign(face)
    holder = await face.spawn(holding(play, held, free), "holder")
    await held.wait()
    for timeout in (0, 0.05):
        with pytest.raises(jmsish.FreezeTimeoutError, match="'x'"):
            async with play.freeze(timeout=timeout):
                raise AssertionError("held twice")
    free.set()
    await holder
    async with play.freeze(timeout=0):
        pass
    assert not play.x.is_frozen


async def test_e1_a_change_by_others_waits_at_most_its_time_out(face: Face) -> None:
    play = Play(face)
    free, held = Sign(face), Sign(face)
    holder = await face.spawn(holding(play, held, free), "holder")
    await held.wait()
    # A call that does not await would stop the loop in which the holder runs: it says so instead.
    error = jmsish.FreezeTimeoutError if isinstance(face, SyncFace) else jmsish.IllegalStateError
    for change in (play.x.bind, play.x.unbind):
        with pytest.raises(error):
            change("q1", "k", timeout=0.05)
    with pytest.raises(error):
        play.x.rebind(add=[("q2", "k")], timeout=0.05)
    with pytest.raises(error):
        play.broker.delete_exchange("x", timeout=0.05)
    if isinstance(face, SyncFace):
        other = threading.Thread(target=lambda: play.x.bind("q2", "k"))
        other.start()
        await play.waits(1)
        free.set()
        other.join(30)
        await holder
        assert sorted(binding.queue for binding in play.x.bindings()) == ["q1", "q2"]
    else:
        other_task = asyncio.create_task(asyncio.to_thread(play.x.bind, "q2", "k"))
        await play.waits(1)
        free.set()
        assert await other_task is True
        await holder
    assert not play.x.is_frozen


async def test_e2_a_freeze_held_too_long_is_thawed(face: Face) -> None:
    clock = VirtualClock()
    play = Play(face, clock=clock)
    producer = await play.producer()
    with pytest.raises(jmsish.FreezeExpiredError, match="longer than 5 s"):
        async with play.freeze(max_hold=5) as frozen:
            play.swap(frozen)
            clock.advance(5)
            assert not play.x.is_frozen
            await producer.send("m")  # nothing is held here any more
            with pytest.raises(jmsish.FreezeExpiredError):
                frozen.bindings()
    assert play.bodies("q1") == ["m"]


async def test_e4_a_send_that_timed_out_is_routed_once(face: Face) -> None:
    play = Play(face)
    producer = await play.producer()
    free, held = Sign(face), Sign(face)
    holder = await face.spawn(holding(play, held, free), "holder")
    await held.wait()
    with hurried(face.connections[-1], send_timeout=0.2), pytest.raises(jmsish.OperationTimeoutError) as told:
        await producer.send("m1")
    assert told.value.outcome_unknown
    free.set()
    await holder
    await producer.send("m2")
    assert play.bodies("q1") == ["m1", "m2"]


@pytest.mark.parametrize("closing", ["producer", "session", "connection"])
async def test_e4_nobody_waits_for_a_send_that_timed_out(face: Face, closing: str) -> None:
    """Its sender was told all there is to tell: to close does not wait, and what is parked goes with its link."""
    play = Play(face)
    connection = await face.connect(send_timeout=0.2, close_timeout=None)
    session = await connection.create_session()
    producer = await session.create_producer(session.create_queue("x"))
    free, held = Sign(face), Sign(face)
    holder = await face.spawn(holding(play, held, free), "holder")
    await held.wait()
    with pytest.raises(jmsish.OperationTimeoutError):
        await producer.send("m1")
    await {"producer": producer, "session": session, "connection": connection}[closing].close()
    free.set()
    await holder
    await connection.close()
    assert play.bodies("q1") == []


async def test_f3_two_that_want_the_same_exchanges_do_not_wait_for_each_other(face: Face) -> None:
    play = Play(face)
    play.broker.declare_exchange("y", "fanout")

    async def both(*names: str) -> int:
        for _ in range(50):
            async with block(face, play.broker.freeze(*names, timeout=30)) as frozen:
                assert frozen.names == names
                await face.yield_()
        return 1

    tasks = [await face.spawn(both(*names), "/".join(names)) for names in (("x", "y"), ("y", "x"), ("x", "y"))]
    assert sum([await task for task in tasks]) == 3


async def test_f3_several_exchanges_change_together(face: Face) -> None:
    play = Play(face)
    y = play.broker.declare_exchange("y", "fanout")
    async with block(face, play.broker.freeze("y", "x")) as frozen:
        frozen.exchange("x").unbind("q1", "k")
        frozen.exchange("y").bind("q1")
        with pytest.raises(ValueError, match="several exchanges"):
            frozen.bindings()
        with pytest.raises(ValueError, match="not among"):
            frozen.exchange("amq.topic")
    assert play.x.bindings() == [] and [binding.queue for binding in y.bindings()] == ["q1"]


async def test_g1_nested(face: Face) -> None:
    play = Play(face)
    async with play.freeze() as outer:
        async with play.freeze() as inner:
            play.swap(inner)
        assert play.x.is_frozen and [binding.queue for binding in play.x.bindings()] == ["q1"]
        assert [binding.queue for binding in outer.bindings()] == ["q2"]
        with pytest.raises(KeyError):
            async with play.freeze() as failing:
                failing.unbind("q2", "k")
                raise KeyError
    assert [binding.queue for binding in play.x.bindings()] == ["q2"]


async def test_g2_a_live_change_by_the_holder_is_refused(face: Face) -> None:
    play = Play(face)
    async with play.freeze():
        for change in (lambda: play.x.bind("q2"), lambda: play.x.unbind("q1", "k"), lambda: play.x.rebind()):
            with pytest.raises(jmsish.FreezeReentryError, match="'x'"):
                change()
    assert play.x.bind("q2") is True


async def test_g3_publishing_to_the_frozen_exchange_from_inside(face: Face) -> None:
    play = Play(face)
    play.broker.declare_exchange("way", "fanout").bind_exchange("x", "")
    connection = await face.connect()
    session = await connection.create_session()
    producers = [
        await session.create_producer(session.create_queue("x/k")),
        await session.create_producer(session.create_topic("x/k")),
        await session.create_producer(session.create_queue("way")),
    ]
    anonymous = await session.create_producer(None)
    free = await session.create_producer(session.create_queue("q2"))
    # In memory whoever holds it is known; over a socket the message waits, as it does for all others.
    error = jmsish.FreezeReentryError if face.wire == "vm" else jmsish.OperationTimeoutError
    async with play.freeze():
        for producer in producers[:2]:
            with hurried(connection, send_timeout=0.2), pytest.raises(error):
                await producer.send("m")
        with hurried(connection, send_timeout=0.2), pytest.raises(error):
            await anonymous.send("m", destination=session.create_queue("x/k"))
        if face.wire == "vm":
            with pytest.raises(error, match="'x'"):
                await producers[2].send("m")
        await free.send("elsewhere")
    await producers[0].send("after")
    assert play.bodies("q1") == (["after"] if face.wire == "vm" else ["m", "m", "m", "after"])
    assert play.bodies("q2") == ["elsewhere"]


async def test_g4_a_holder_that_dies_holds_nothing(face: Face) -> None:
    play = Play(face)
    producer = await play.producer()

    async def enter_and_die() -> None:
        frozen = await play.freeze().__aenter__()
        play.swap(frozen)

    await (await face.spawn(enter_and_die(), "holder"))
    assert play.x.is_frozen
    if isinstance(face, SyncFace):
        for thread in threading.enumerate():
            if thread.name == "holder":
                thread.join(30)
    await producer.send("m")
    assert play.bodies("q1") == ["m"] and not play.x.is_frozen


async def test_g4_a_cancelled_task_or_a_thread_that_fails_leaves_no_trace(face: Face) -> None:
    play = Play(face)
    free, held = Sign(face), Sign(face)
    if isinstance(face, SyncFace):

        async def fail() -> None:
            async with play.freeze() as frozen:
                play.swap(frozen)
                raise SystemExit

        with pytest.raises(SystemExit):
            await (await face.spawn(fail(), "holder"))
        assert not play.x.is_frozen and [binding.queue for binding in play.x.bindings()] == ["q1"]
        return
    holder = asyncio.create_task(holding(play, held, free))
    await held.wait()
    waiting = asyncio.create_task(holding(play, Sign(face), free))
    await play.waits(1)
    waiting.cancel()  # while it enters
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert play.x.waiting == 0 and play.x.is_frozen
    holder.cancel()  # inside its block
    with pytest.raises(asyncio.CancelledError):
        await holder
    assert not play.x.is_frozen


async def test_h1_a_broker_that_stops_during_a_freeze(face: Face) -> None:
    play = Play(face)
    producer = await play.producer()
    outcome: list[BaseException] = []

    async def publish() -> None:
        try:
            await producer.send("m")
        except jmsish.JMSError as error:
            outcome.append(error)

    with pytest.raises(jmsish.FreezeExpiredError, match="stopped"):
        async with play.freeze():
            if face.wire == "tcp" or isinstance(face, SyncFace):
                task = await face.spawn(publish(), "publisher")
                await play.waits(1)
            else:
                task = None
            play.broker.stop()
            if task is not None:
                await task
    if task is not None:
        assert isinstance(outcome[0], (jmsish.SendRejectedError, jmsish.ConnectionLostError))
    assert play.bodies("q1") == []


async def test_h2_the_holder_may_delete_the_exchange(face: Face) -> None:
    play = Play(face)
    async with play.freeze():
        play.broker.delete_exchange("x")
    with pytest.raises(jmsish.InvalidDestinationError):
        play.broker.exchange("x")


async def test_h3_a_commit_waits_for_what_waits_and_not_for_what_came_before(face: Face) -> None:
    play = Play(face)
    connection = await face.connect()
    session = await connection.create_session(transacted=True)
    producer = await session.create_producer(session.create_queue("x/k"))
    await producer.send("before")
    await face.barrier()  # it has arrived: in a transaction messages leave together
    free, held = Sign(face), Sign(face)

    async def swapping() -> None:
        async with play.freeze() as frozen:
            play.swap(frozen)
            held.set()
            await waited(free)

    holder = await face.spawn(swapping(), "holder")
    await held.wait()
    await session.commit()
    assert play.bodies("q1") == ["before"]
    await producer.send("during")

    async def commit() -> None:
        await session.commit()

    task = await face.spawn(commit(), "committer")
    await play.waits(1)
    assert not task.done()
    free.set()
    await holder
    await task
    assert play.bodies("q1") == ["before"] and play.bodies("q2") == ["during"]


async def test_a_freeze_is_for_one_block(face: Face) -> None:
    play = Play(face)
    freeze = play.freeze()
    with pytest.raises(jmsish.IllegalStateError, match="before the block"):
        freeze.bindings()
    async with freeze:
        pass
    with pytest.raises(jmsish.IllegalStateError, match="one block"):
        async with freeze:
            pass
    with pytest.raises(jmsish.IllegalStateError):
        freeze.bind("q2")


async def test_wrong_arguments_of_a_freeze(face: Face) -> None:
    play = Play(face)
    for wrong in ({"timeout": -1}, {"max_hold": 0}, {"max_hold": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            play.x.freeze(**wrong)
    for strange in ({"timeout": "1"}, {"max_hold": True}):
        with pytest.raises(TypeError, match=next(iter(strange))):
            play.x.freeze(**strange)
    with pytest.raises(ValueError, match="at least one"):
        play.broker.freeze()
    with pytest.raises(jmsish.InvalidDestinationError, match="'nowhere'"):
        async with block(face, play.broker.freeze("x", "nowhere")):
            pass
    async with play.freeze() as frozen:
        with pytest.raises(jmsish.InvalidDestinationError):
            frozen.bind("nowhere")
        with pytest.raises(ValueError, match="qpid"):
            frozen.bind("q2", "k", {"qpid.exclusive": 1})
        with pytest.raises(jmsish.InvalidDestinationError):
            frozen.rebind(add=[("q2", "k"), ("nowhere", "k")])
        assert len(frozen.bindings()) == 1
    assert not play.x.is_frozen
