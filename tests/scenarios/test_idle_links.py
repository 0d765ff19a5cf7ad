"""Links that the broker detaches for being idle, as Azure Service Bus does: at an imitated one, by a clock of the test.

On {sync, aio} x {in memory, TCP}, with a plain URL: only the links go, not the connection.
"""

from __future__ import annotations

import jmsish
from jmsish import aio
from jmsish.events import LinkReattached
from jmsish.testing import VirtualClock

from .blocking import PATIENCE
from .face import Face
from .steps import outcome

IDLE = 700
"""Seconds; more than the ten minutes after which links are detached, counted from the broker's next look at them."""

USED = 300
"""Seconds in which the broker looks at them, and after which none is detached: who was would come again at a time of
its own, and perhaps only after the clock has been moved on for the next time."""


async def at_service_bus(face: Face, clock: VirtualClock) -> aio.Connection:
    broker = face.broker_with(profile="servicebus", clock=clock)
    for name in ("orders", "bills"):
        broker.declare_queue(name)
    return await face.connect()


async def text_of(consumer: aio.MessageConsumer) -> str:
    message = await consumer.receive(timeout=PATIENCE)
    assert message is not None
    return str(message.body)


async def pass_idle(face: Face, connection: aio.Connection, clock: VirtualClock, links: int) -> None:
    """Time passes until so many links were detached and have come again."""
    log = face.log()
    connection.event_listener = lambda event: log.add(type(event).__name__)  # type: ignore[attr-defined]
    clock.advance(IDLE)
    while log.items.count(LinkReattached.__name__) < links:
        await log.reach(len(log.items) + 1)


async def test_links_that_were_idle_are_there_again(face: Face) -> None:
    """The client knows the imitation as what it imitates, and so needs no option; again and again, however fast."""
    clock = VirtualClock()
    connection = await at_service_bus(face, clock)
    session = await connection.create_session()
    consumer = await session.create_consumer(session.create_queue("orders"))
    producer = await session.create_producer(session.create_queue("orders"))
    for number in range(4):
        await pass_idle(face, connection, clock, 2)
        await producer.send(f"m{number}")
        assert await text_of(consumer) == f"m{number}"
        await face.sight("orders").comes_to(0)
        clock.advance(USED)  # the broker sees what went over the links, and begins to count anew


async def test_a_transaction_whose_links_were_detached_is_not_committed_in_part(face: Face) -> None:
    """What was on its way by them did not get to the broker, so the commit says that nothing was done."""
    clock = VirtualClock()
    connection = await at_service_bus(face, clock)
    session = await connection.create_session(transacted=True)
    consumer = await session.create_consumer(session.create_queue("orders"))
    producer = await session.create_producer(session.create_queue("bills"))
    other = await connection.create_session()
    await (await other.create_producer(other.create_queue("orders"))).send("m1")
    assert await text_of(consumer) == "m1"
    await producer.send("bill")
    await pass_idle(face, connection, clock, 2)
    assert isinstance(await outcome(session.commit()), jmsish.TransactionRolledBackError)
    await face.sight("bills").holds(0)
    assert await text_of(consumer) == "m1"
    await producer.send("bill")
    await session.commit()
    await face.sight("bills").holds(1)
    await face.sight("orders").holds(0)
