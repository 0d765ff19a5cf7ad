"""Temporary destinations, anonymous producers, request and reply, and consumers that compete."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import expect, numbered, outcome, seen, send, stage, take_all


async def test_request_and_reply(face: Face) -> None:
    """A request names a temporary queue; whoever serves it answers there, over another connection."""
    client = await stage(face, "auto", queue="requests")
    server = await client.beside("transacted")
    replies = await client.session.create_temporary_queue()
    asking = await client.session.create_producer(client.destination)
    request: Any = client.session.create_text_message("what time is it?")
    request.jms_reply_to = replies
    await asking.send(request)

    got: Any = await (await server.consumer()).receive(timeout=30)
    assert got.body == "what time is it?"
    answering = await server.session.create_producer()
    answer = server.session.create_text_message("late")
    answer.jms_correlation_id = got.jms_message_id
    await answering.send(answer, destination=got.jms_reply_to)
    await server.session.commit()

    reply: Any = await (await client.session.create_consumer(replies)).receive(timeout=30)
    assert reply.body == "late"
    assert reply.jms_correlation_id == request.jms_message_id


async def test_temporary_queue_is_its_connection_s_own(face: Face) -> None:
    """Another connection may send to it, not receive from it; two temporary queues have two names."""
    play = await stage(face, "auto")
    other = await play.beside("auto")
    mine, second = await play.session.create_temporary_queue(), await play.session.create_temporary_queue()
    assert mine.name != second.name
    assert isinstance(await outcome(other.session.create_consumer(mine)), jmsish.InvalidDestinationError)
    await (await other.session.create_producer(mine)).send("m1")
    await expect(await play.session.create_consumer(mine), "m1 none")


async def test_temporary_queue_deleted(face: Face) -> None:
    """It cannot be deleted while somebody consumes from it; afterwards neither sent to nor consumed from."""
    play = await stage(face, "auto")
    queue = await play.session.create_temporary_queue()
    consumer = await play.session.create_consumer(queue)
    producer = await play.session.create_producer()
    await producer.send("m1", destination=queue)
    assert isinstance(await outcome(queue.delete()), jmsish.JMSError)
    await expect(consumer, "m1")
    await consumer.close()
    await queue.delete()
    gone = (jmsish.InvalidDestinationError, jmsish.IllegalStateError)
    assert isinstance(await outcome(producer.send("m2", destination=queue)), gone)
    assert isinstance(await outcome(play.session.create_consumer(queue)), gone)


async def test_temporary_queue_goes_with_its_connection(face: Face) -> None:
    """It lives as long as its connection, whichever session made it; its name is never a new queue."""
    play = await stage(face, "auto", cuttable=True)
    first, second = await face.connect(), play.connection
    for connection, ends in ((first, "close"), (second, "cut")):
        session = await connection.create_session()
        queue = await session.create_temporary_queue()
        await session.close()
        await send(connection, queue.name, "m1")
        assert face.broker.queue(queue.name).depth == 1
        if ends == "close":
            await connection.close()
        else:
            face.cut(connection)
        await face.sight(queue.name).comes_to(0)
        other = await (await face.connect()).create_session()
        result = await outcome(other.create_producer(other.create_queue(queue.name)))
        assert isinstance(result, jmsish.InvalidDestinationError), ends


async def test_anonymous_producer(face: Face) -> None:
    """A producer without a destination takes one with each send; one with a destination refuses another."""
    play = await stage(face, "transacted")
    anywhere = await play.session.create_producer()
    assert anywhere.destination is None
    for name in ("a", "b", "a"):
        await anywhere.send(f"for-{name}", destination=play.session.create_queue(name))
    await play.session.commit()
    assert [face.sight(name).depth for name in ("a", "b")] == [2, 1]
    assert isinstance(await outcome(anywhere.send("nowhere")), jmsish.JMSError)
    bound = await play.session.create_producer(play.destination)
    assert isinstance(await outcome(bound.send("m1", destination=play.session.create_queue("a"))), jmsish.JMSError)
    await anywhere.send("never", destination=play.session.create_queue("a"))
    await play.session.rollback()
    await face.sight("a").holds(2)


async def test_competing_consumers_are_served_fairly(face: Face) -> None:
    """Idle consumers with equal windows get equal shares; the messages of each come in order."""
    play = await stage(face, "client")
    rivals = [await play.beside("client") for _ in range(3)]
    consumers = [await rival.consumer(prefetch=10) for rival in rivals]
    await face.barrier()
    await play.send(numbered(1, 30))
    await play.queue.prefetched(30)
    shares = [await take_all(consumer) for consumer in consumers]
    assert [len(share) for share in shares] == [10, 10, 10]
    for share in shares:
        assert share == sorted(share, key=lambda word: int(word[1:]))


async def test_a_slow_consumer_holds_up_nobody(face: Face) -> None:
    """What does not fit the window of one that reads nothing goes to the one that reads."""
    play = await stage(face, "client", numbered(1, 50))
    await play.consumer(prefetch=5)
    await play.queue.prefetched(5)
    other = await play.beside("auto")
    await expect(await other.consumer(), numbered(6, 50) + " none")


async def test_browsers_and_consumers_side_by_side(face: Face) -> None:
    """A browser sees what is ready, in order, also while others consume; it ends by itself."""
    play = await stage(face, "client", numbered(1, 6))
    consumer = await play.consumer(prefetch=0)
    await expect(consumer, "m1 m2")
    browser = await play.session.create_browser(play.destination)
    assert [seen(message) async for message in browser] == numbered(3, 6).split()
    await play.session.recover()
    assert [seen(message) async for message in browser] == "m1[R2] m2[R2] m3 m4 m5 m6".split()
    await play.queue.holds(6, acquired=0)


@pytest.mark.parametrize("name", ["x" * 200_000, "half a \ud800"], ids=["longer-than-a-frame", "no-text"])
async def test_names_that_cannot_be_said_raise_and_leave_nothing(face: Face, name: str) -> None:
    """The session goes on, and knows nothing of the producers and consumers that never were."""
    play = await stage(face, "auto")
    for make in (
        lambda: play.session.create_producer(play.session.create_queue(name)),
        lambda: play.session.create_consumer(play.session.create_topic(name)),
        lambda: play.session.unsubscribe(name),
    ):
        with pytest.raises((jmsish.JMSError, ValueError)):
            await make()
    assert play.session._core.producers == [] and not play.session._core.consumers
    await play.send("m1")
    await expect(await play.consumer(), "m1")
