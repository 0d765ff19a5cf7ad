"""Scenarios J (162 to 167) and 45: a connection is lost, and made again, around transactions and other work.

On {sync, aio} x {in memory, TCP}.
"""

from __future__ import annotations

from typing import Any

import pytest

import jmsish
from jmsish import aio
from jmsish.events import (
    ConnectionInterrupted,
    ConnectionRestored,
    DeliveriesLost,
    TemporaryDestinationRenamed,
    TransactionLost,
)

from .blocking import PATIENCE, Blocking
from .face import Face
from .mending import Mending
from .steps import MODES, Stage, again, cut_behind_the_discharge, expect, outcome, send, take_all

ROLLED_BACK = jmsish.TransactionRolledBackError


async def stage(face: Face, mode: str, story: str = "", **options: Any) -> tuple[Mending, Stage]:
    mending = Mending(face)
    connection = await mending.connect(**options)
    if story:
        await send(connection, "orders", story)
    return mending, Stage(face, connection, await connection.create_session(**MODES[mode]), "orders")


# -- transactions ------------------------------------------------------------------------------------------------------


async def test_s162_no_work_before_the_loss(face: Face) -> None:
    """What is received after the loss is committed as if nothing had been."""
    mending, play = await stage(face, "transacted", "m1 m2")
    consumer = await play.consumer(prefetch=0)
    await mending.mend()
    await expect(consumer, "m1 m2 none")
    await play.session.commit()
    await play.queue.holds(0)
    assert not mending.of(TransactionLost)


async def test_s162_what_was_only_prefetched_is_no_work(face: Face) -> None:
    mending, play = await stage(face, "transacted", "m1 m2")
    consumer = await play.consumer()
    await play.queue.prefetched(2)
    await mending.mend()
    (lost,) = mending.of(DeliveriesLost)
    assert (lost.prefetched, lost.unacknowledged, lost.destinations) == (2, 0, (play.destination,))
    await play.session.commit()
    await expect(consumer, again("m1 m2") + " none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s163_received_lost_commit(face: Face) -> None:
    """The commit says that all was rolled back, and all is there, in its order and marked."""
    mending, play = await stage(face, "transacted", "m1 m2 m3")
    consumer = await play.consumer()
    await expect(consumer, "m1 m2")
    await play.queue.prefetched(3)
    await mending.mend()
    error = await outcome(play.session.commit())
    assert isinstance(error, ROLLED_BACK)
    await expect(consumer, again("m1 m2 m3") + " none")
    await play.session.commit()
    await play.queue.holds(0)
    (lost,) = mending.of(TransactionLost)
    assert lost.sent == 0 and isinstance(lost.cause, jmsish.ConnectionLostError)


async def test_s163_sent_lost_commit(face: Face) -> None:
    mending, play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    await producer.send("m1")
    await face.barrier()
    await mending.mend()
    assert isinstance(await outcome(play.session.commit()), ROLLED_BACK)
    await producer.send("m2")
    await play.session.commit()
    await expect(await play.consumer(), "m2 none")


async def test_s164_received_lost_received_more_commit(face: Face) -> None:
    """What is received after the loss belongs to the lost transaction too, until that ends."""
    mending, play = await stage(face, "transacted", "m1 m2 m3")
    consumer = await play.consumer(prefetch=1)
    await expect(consumer, "m1")
    await mending.mend()
    got = [await consumer.receive(timeout=PATIENCE) for _ in range(2)]
    assert [message.body for message in got if message] == ["m1", "m2"]
    assert isinstance(await outcome(play.session.commit()), ROLLED_BACK)
    await play.queue.holds(3)
    bodies = [message.split("[")[0] for message in await take_all(consumer)]
    assert bodies == ["m1", "m2", "m3"]
    await play.session.commit()


async def test_s165_received_lost_rollback(face: Face) -> None:
    mending, play = await stage(face, "transacted", "m1 m2")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.queue.prefetched(2)
    await mending.mend()
    await play.session.rollback()
    await expect(consumer, again("m1 m2") + " none")
    await play.session.commit()


async def test_s045_a_rollback_that_fails_can_be_repeated(face: Face) -> None:
    """The first is cut short by the loss, and is done by it; the second loses nothing either."""
    mending, play = await stage(face, "transacted", "m1 m2")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.queue.prefetched(2)
    mending.cut()
    await play.session.rollback()
    await play.session.rollback()
    await expect(consumer, again("m1 m2") + " none")
    await play.session.commit()
    await play.queue.holds(0)


async def test_s166_loss_between_discharge_and_its_answer(face: Face) -> None:
    """A commit whose answer is lost is in doubt, and says what helps to find out; the next transaction works."""
    mending, play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    producer = await play.session.create_producer(play.session.create_queue("made"))
    (message,) = await expect(consumer, "m1")
    made = play.session.create_text_message("x")
    await producer.send(made)
    error = await cut_behind_the_discharge(face, mending.cut, play.session.commit())
    assert isinstance(error, jmsish.TransactionInDoubtError)
    assert (error.sent, error.received) == (1, 1) and error.transaction_id
    assert (error.last_sent_id, error.last_received_id) == (made.jms_message_id, message.jms_message_id)
    await mending.restored()
    await expect(consumer, again("m1"))  # so it was not committed
    await play.session.commit()
    await play.queue.holds(0)
    await face.sight("made").holds(0)


async def test_s166_a_rollback_whose_answer_is_lost_is_none_the_less_one(face: Face) -> None:
    mending, play = await stage(face, "transacted", "m1")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    assert await cut_behind_the_discharge(face, mending.cut, play.session.rollback()) is None
    await expect(consumer, again("m1") + " none")
    await play.session.commit()


@pytest.mark.parametrize("what", ["sent", "nothing"])
async def test_s167_work_done_while_offline(face: Face, what: str) -> None:
    """A message sent in a transaction while the connection is away makes its commit fail; without work it succeeds."""
    mending, play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    async with mending.away():
        if what == "sent":
            await producer.send("m1")
    await mending.restored()
    error = await outcome(play.session.commit())
    assert isinstance(error, ROLLED_BACK) if what == "sent" else error is None
    await play.queue.holds(0)
    await producer.send("m2")
    await play.session.commit()
    await play.queue.holds(1)


@pytest.mark.parametrize("made", ["producer", "consumer", "session"])
async def test_what_waited_for_the_connection_works_in_no_transaction_that_was_lost(face: Face, made: str) -> None:
    """A call that needs the broker returns when all is there again: what is sent behind it is committed."""
    mending, play = await stage(face, "transacted")
    session = play.session
    producer = await session.create_producer(play.destination)
    mending.cut()
    await mending.log.until("ConnectionInterrupted")
    if made == "producer":
        producer = await session.create_producer(play.destination)
    elif made == "consumer":
        await session.create_consumer(session.create_queue("other"))
    else:
        await play.connection.create_session()
    await producer.send("m1")
    await session.commit()
    assert face.sight("orders").bodies == ["m1"]


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_s167_the_transaction_behind_the_lost_one_waits_for_the_connection(face: Face, ending: str) -> None:
    """One commit of an outage says that its work was undone; a loop of sends and commits does not spin till the end."""
    mending, play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    await producer.send("m1")
    async with mending.away():
        await producer.send("m2")
        error = await outcome(play.session.commit() if ending == "commit" else play.session.rollback())
        assert isinstance(error, ROLLED_BACK) if ending == "commit" else error is None
        sending = await face.spawn(producer.send("m3"))
    await sending
    await play.session.commit()
    assert face.sight("orders").bodies == ["m3"]


async def test_s167_it_waits_no_longer_than_send_timeout(face: Face) -> None:
    mending, play = await stage(face, "transacted", initial_reconnect_delay=30, send_timeout=0.2, close_timeout=0.2)
    producer = await play.session.create_producer(play.destination)
    mending.cut()
    await mending.log.until("ConnectionInterrupted")
    await producer.send("m1")
    assert isinstance(await outcome(play.session.commit()), ROLLED_BACK)
    assert isinstance(await outcome(producer.send("m2")), jmsish.OperationTimeoutError)
    assert await outcome(play.session.commit()) is None
    await play.connection.close()


async def test_m112_what_is_done_while_the_connection_is_away(face: Face) -> None:
    """Acknowledge, rollback and recover are done at once; a send and a new session wait for the next connection."""
    mending, play = await stage(face, "client", "m1")
    consumer = await play.consumer()
    (message,) = await expect(consumer, "m1")
    other = await play.connection.create_session()
    producer = await other.create_producer(other.create_queue("elsewhere"))
    async with mending.away():
        await message.acknowledge()
        await play.session.recover()
        sending = await face.spawn(producer.send("m2"))
    await sending
    await (await play.connection.create_session()).close()
    await expect(consumer, again("m1") + " none")
    await face.sight("elsewhere").holds(1)


async def test_a_send_that_waits_for_the_connection_does_so_for_send_timeout(face: Face) -> None:
    mending, play = await stage(face, "auto", initial_reconnect_delay=30, send_timeout=0.2, close_timeout=0.2)
    producer = await play.session.create_producer(play.destination)
    mending.cut()
    await mending.log.until("ConnectionInterrupted")
    error = await outcome(producer.send("m1"))
    assert isinstance(error, jmsish.OperationTimeoutError)
    await play.connection.close()


async def test_a_connection_that_is_away_is_started_and_stopped_at_once(face: Face) -> None:
    """Both are a matter of this end alone; what was started meanwhile delivers when the connection is back."""
    mending, play = await stage(face, "auto", "m1")
    await play.connection.stop()
    consumer = await play.consumer()
    async with mending.away():
        await play.connection.start()
        await play.connection.stop()
        await play.connection.start()
    message = await consumer.receive(timeout=PATIENCE)
    assert message is not None and message.body == "m1"


# -- receiving ---------------------------------------------------------------------------------------------------------


async def test_a_receive_waits_on_through_many_losses(face: Face) -> None:
    """It never ends silently, and never goes deaf."""
    mending, play = await stage(face, "auto")
    consumer = await play.consumer()
    for number in range(5):
        waiting = await face.spawn(consumer.receive())
        await mending.mend()
        await send(await face.connect(), "orders", f"m{number}")
        message = await waiting
        assert message is not None and message.body == f"m{number}"
        await play.queue.comes_to(0)


async def test_a_receive_with_a_timeout_ends_by_it(face: Face) -> None:
    mending, play = await stage(face, "transacted", initial_reconnect_delay=30, close_timeout=0.2)
    consumer = await play.consumer()
    mending.cut()
    await mending.log.until("ConnectionInterrupted")
    assert await consumer.receive(timeout=0.1) is None
    await play.connection.close()


@pytest.mark.parametrize("target", ["consumer", "session", "connection"])
@pytest.mark.parametrize("call", ["receive", "receive_no_wait"])
async def test_rule_33_a_close_ends_a_receive_while_the_connection_is_away(face: Face, call: str, target: str) -> None:
    """One that does not wait for messages waits for the connection, to ask; and in a transaction every one does."""
    mending, play = await stage(face, "transacted", initial_reconnect_delay=3600, max_reconnect_delay=3600)
    consumer = await play.consumer()
    mending.cut()
    await mending.log.until("ConnectionInterrupted")
    waiting = await face.spawn(getattr(consumer, call)())
    await face.eventually(lambda: play.connection._core.waiting_online > 0, lambda: "nobody waits for the connection")
    closing: Any = {"consumer": consumer, "session": play.session, "connection": play.connection}[target]
    await closing.close()
    assert await waiting is None
    await play.connection.close()


async def test_who_waits_for_a_connection_that_is_away_hears_of_its_close(face: Face) -> None:
    """A session that was being made is not there; whoever asked for it waited on, for as long as a request may take."""
    mending, play = await stage(face, "auto", initial_reconnect_delay=3600, max_reconnect_delay=3600)
    mending.cut()
    await mending.log.until("ConnectionInterrupted")
    waiting = await face.spawn(outcome(play.connection.create_session()))
    await face.eventually(lambda: play.connection._core.waiting_online > 0, lambda: "nobody waits for the connection")
    await play.connection.close()
    assert isinstance(await waiting, jmsish.IllegalStateError)


async def test_no_message_of_the_old_buffer_is_handed_over(face: Face) -> None:
    """M108: what lay unread at the client comes from the broker again, marked."""
    mending, play = await stage(face, "client", "m1 m2 m3")
    consumer = await play.consumer()
    (first,) = await expect(consumer, "m1")
    await play.queue.prefetched(3)
    await mending.mend()
    await first.acknowledge()
    messages = await expect(consumer, again("m1 m2 m3"))
    await first.acknowledge()
    await play.queue.holds(3)
    await messages[0].acknowledge()
    await play.queue.comes_to(0)


async def test_an_individual_acknowledgement_is_never_one_of_another_message(face: Face) -> None:
    """Deliveries are counted from the beginning on each connection."""
    mending, play = await stage(face, "individual", "m1 m2")
    consumer = await play.consumer(prefetch=1)
    old = await expect(consumer, "m1")
    await mending.mend()
    new = [await consumer.receive(timeout=PATIENCE) for _ in range(2)]
    for message in old:
        await message.acknowledge()
    await play.queue.holds(2)
    for message in new:
        assert message is not None
        await message.acknowledge()
    await play.queue.comes_to(0)


async def test_a_listener_goes_on(face: Face) -> None:
    mending, play = await stage(face, "auto")
    log = face.log()
    consumer = await play.consumer()

    async def on_message(message: Any) -> None:
        log.add(message.body)

    consumer.listener = on_message
    other = await face.connect()
    for number in range(3):
        await send(other, "orders", f"m{number}")
        await log.until(f"m{number}")
        await mending.mend()
    await send(other, "orders", "last")
    await log.until("last")
    assert [*dict.fromkeys(log.items)] == ["m0", "m1", "m2", "last"]


async def test_a_transacted_listener_goes_on(face: Face) -> None:
    mending, play = await stage(face, "transacted")
    log = face.log()
    consumer = await play.consumer()

    async def on_message(message: Any) -> None:
        await play.session.commit()
        log.add(message.body)

    consumer.listener = on_message
    other = await face.connect()
    for number in range(3):
        await send(other, "orders", f"m{number}")
        await log.until(f"m{number}")
        await mending.mend()
    await play.queue.comes_to(0)


# -- sending -----------------------------------------------------------------------------------------------------------


async def test_d11_a_send_in_flight_is_of_unknown_outcome(face: Face) -> None:
    mending, play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    core: Any = getattr(producer, "raw", producer)._core
    post = core.post

    def post_and_lose(payload: bytes, context: Any) -> bool:
        posted: bool = post(payload, context)
        core.session.connection.lose(jmsish.ConnectionLostError("the wire broke behind the message"))
        return posted

    core.post = post_and_lose
    error = await outcome(producer.send("m1"))
    core.post = post
    assert isinstance(error, jmsish.ConnectionLostError) and error.outcome_unknown
    await mending.restored()
    await producer.send("m2")
    assert face.sight("orders").bodies[-1] == "m2"


async def test_d11_a_send_in_flight_is_sent_again_where_that_is_wished(face: Face) -> None:
    mending, play = await stage(face, "auto", resend_in_flight=True)
    producer = await play.session.create_producer(play.destination)
    for number in range(20):
        if number % 5 == 2:
            mending.cut()
        await producer.send(f"m{number}")
    bodies = face.sight("orders").bodies
    assert list(dict.fromkeys(bodies)) == [f"m{number}" for number in range(20)]
    assert len(bodies) <= 24


# -- other things there were -------------------------------------------------------------------------------------------


async def test_m105_a_temporary_queue_has_another_name(face: Face) -> None:
    """The object goes on working: as a destination, and as reply-to; an event tells both names."""
    mending, play = await stage(face, "auto")
    mine = await play.session.create_temporary_queue()
    consumer = await play.session.create_consumer(mine)
    await mending.mend()
    (renamed,) = mending.of(TemporaryDestinationRenamed)
    assert (
        renamed.old.name == mine.name
        and renamed.new.name != mine.name
        and consumer.destination.name == renamed.new.name
    )
    asked = play.session.create_text_message("question")
    asked.jms_reply_to = mine
    await (await play.session.create_producer(play.destination)).send(asked)
    other = await (await face.connect()).create_session()
    (question,) = await expect(await other.create_consumer(play.destination), "question")
    assert question.jms_reply_to.name == renamed.new.name
    await (await other.create_producer(question.jms_reply_to)).send("answer")
    await expect(consumer, "answer")
    await (await play.session.create_producer(mine)).send("myself")
    await expect(consumer, "myself")
    await consumer.close()
    await mine.delete()


async def test_m107_all_kinds_of_parts_are_there_again(face: Face) -> None:
    """Consumers of queues, topics and subscriptions, producers with and without a destination, browsers."""
    mending, play = await stage(face, "auto", client_id="ann")
    session = play.session
    topic = session.create_topic("news")
    consumers = [
        await session.create_consumer(topic),
        await session.create_durable_consumer(topic, "dur"),
        await session.create_shared_consumer(topic, "sha"),
        await session.create_shared_durable_consumer(topic, "shadur"),
    ]
    producers = [await session.create_producer(topic), await session.create_producer()]
    for _ in range(2):
        await mending.mend()
    await producers[0].send("n1")
    await producers[1].send("n2", destination=topic)
    for consumer in consumers:
        await expect(consumer, "n1 n2 none")
    await send(play.connection, "orders", "m1 m2")
    browser = await session.create_browser(play.destination)
    shown = []
    async for message in browser:
        shown.append(message.body)
        if len(shown) == 1:
            await mending.mend()
    assert shown == ["m1", "m2"]
    for consumer in consumers:
        await consumer.close()
    await session.unsubscribe("dur")
    await session.unsubscribe("shadur")


async def test_m110_a_part_that_is_not_taken_back_ends_the_connection(face: Face) -> None:
    mending, play = await stage(face, "auto")
    consumer = await play.consumer()
    waiting = await face.spawn(outcome(consumer.receive()))
    await face.comes_to_wait(consumer)
    refuse_consumers(play)
    mending.cut()
    error = await waiting
    assert isinstance(error, jmsish.InvalidSelectorError)
    error = await outcome(play.connection.create_session())
    assert isinstance(error, jmsish.ConnectionLostError) and "did not take back the consumer of" in str(error)
    assert play.connection.is_closed


async def test_m110_or_itself_alone_where_that_is_wished(face: Face) -> None:
    mending, play = await stage(face, "auto", close_links_that_fail_on_reconnect=True)
    consumer = await play.consumer()
    producer = await play.session.create_producer(play.destination)
    told = face.log()
    play.connection.exception_listener = lambda error: told.add(type(error).__name__)
    refuse_consumers(play)
    await mending.mend()
    await told.reach(1)
    assert isinstance(await outcome(consumer.receive()), jmsish.JMSError)
    await producer.send("m1")
    assert not play.connection.is_closed and play.queue.bodies == ["m1"]


def refuse_consumers(play: Stage) -> None:
    """From now on the broker refuses every link that receives."""
    core: Any = getattr(play.connection, "raw", play.connection)._core
    for session in core.sessions:
        for consumer in session.consumers:
            consumer.selector = "this is no selector ("


async def test_events_tell_what_happened_in_its_order(face: Face) -> None:
    mending, play = await stage(face, "transacted", "m1 m2")
    await expect(await play.consumer(), "m1")
    await play.queue.prefetched(2)
    await mending.mend()
    assert [type(event) for event in mending.events] == [
        ConnectionInterrupted, TransactionLost, DeliveriesLost, ConnectionRestored,
    ]  # fmt: skip
    interrupted, _, lost, restored = mending.events
    assert interrupted.peer and isinstance(interrupted.cause, jmsish.ConnectionLostError)
    assert (lost.prefetched, restored.attempts) == (1, 1)
    with pytest.raises(TypeError):
        play.connection.event_listener = "no callable"  # type: ignore[assignment]


async def test_a_context_outlives_its_broker_too(face: Face) -> None:
    """The simplified API, over the classic one: the events are there as well."""
    mending = Mending(face)
    connect = jmsish.create_context if face.here() == "MainThread" else None
    if connect is None:
        context: Any = await aio.create_context(mending.url)
    else:
        context = Blocking(connect(mending.url))
    context.event_listener = mending._on_event
    consumer = context.create_consumer(context.create_queue("orders"))
    consumer = await consumer if hasattr(consumer, "__await__") else consumer
    mending.connection = context._connection
    await mending.mend()
    await send(await face.connect(), "orders", "m1")
    message = await consumer.receive(timeout=PATIENCE)
    assert message is not None and message.body == "m1" and mending.of(ConnectionRestored)
    await context.close()


async def test_a_broker_that_restarts(face: Face) -> None:
    """It stops and comes back under its name and port, empty; the application just goes on."""
    broker = face.broker_with(name="restarts") if face.wire == "vm" else face.broker_with()
    port = face.listener.port if face.wire == "tcp" else None
    url = f"failover:({face.url})"
    connection = await face.connect(url)
    session = await connection.create_session()
    queue = session.create_queue("orders")
    consumer, producer = await session.create_consumer(queue), await session.create_producer(queue)
    await producer.send("m1")
    await expect(consumer, "m1")
    for number in range(2):
        broker.stop()
        waiting = await face.spawn(outcome(producer.send(f"again{number}")))
        broker.start()
        if port is not None:
            broker.listen(port=port)
        error = await waiting
        if error is not None:
            assert isinstance(error, jmsish.ConnectionLostError) and error.outcome_unknown
            await producer.send(f"again{number}")
        message = await consumer.receive(timeout=PATIENCE)
        assert message is not None and message.body == f"again{number}"
