"""Temporary queues and topics (JMS 3.1, 6.2.2), rule by rule; more of them is in `test_destinations.py`."""

from __future__ import annotations

from typing import Any

import pytest

import jmsish

from .blocking import undressed
from .face import Face
from .steps import expect, outcome, send
from .topics import Client, client, publish

SORTS = ("queue", "topic")


async def make(play: Client, sort: str) -> Any:
    session = play.session
    return await (session.create_temporary_queue() if sort == "queue" else session.create_temporary_topic())


def error(result: Any, *kinds: type[jmsish.JMSError]) -> bool:
    return isinstance(result, kinds or (jmsish.JMSError,))


GONE = (jmsish.InvalidDestinationError, jmsish.IllegalStateError)


@pytest.mark.parametrize("sort", SORTS)
async def test_rule_142_it_lives_as_long_as_its_connection(face: Face, sort: str) -> None:
    """Whichever session made it; with the connection it goes, and a send to it then is an error, not a new queue."""
    play, other = await client(face), await client(face)
    place = await make(play, sort)
    await play.session.close()
    play.session = await play.connection.create_session()
    consumer = await play.session.create_consumer(place)
    producer = await other.session.create_producer(place)
    await producer.send("m1")
    await expect(consumer, "m1 none")
    await play.close()
    await face.barrier()
    assert error(await outcome(producer.send("m2")))
    assert error(await outcome(other.session.create_producer(place)), *GONE)
    relay = await other.session.create_producer()
    assert error(await outcome(relay.send("m3", destination=place)))


@pytest.mark.parametrize("sort", SORTS)
async def test_rule_142_its_names_are_its_own(face: Face, sort: str) -> None:
    """No two alike; and the kind is kept."""
    play = await client(face)
    places = [await make(play, sort) for _ in range(5)]
    assert len({place.name for place in places}) == 5
    expected = jmsish.TemporaryQueue if sort == "queue" else jmsish.TemporaryTopic
    for place in places:
        assert isinstance(undressed(place), expected)
        assert place.is_temporary


@pytest.mark.parametrize("sort", SORTS)
async def test_rule_143_only_its_own_connection_consumes(face: Face, sort: str) -> None:
    """From any of its sessions; others get InvalidDestination."""
    play, other = await client(face), await client(face)
    place = await make(play, sort)
    second = await play.beside()
    await second.session.create_consumer(place)
    assert error(await outcome(other.session.create_consumer(place)), jmsish.InvalidDestinationError)
    if sort == "topic":
        assert error(await outcome(other.subscribe("shared", place)), jmsish.InvalidDestinationError)
    else:
        browser = await other.session.create_browser(place)
        with pytest.raises(jmsish.InvalidDestinationError):
            assert [message async for message in browser]


@pytest.mark.parametrize("sort", SORTS)
async def test_rule_144_anyone_may_send_to_it(face: Face, sort: str) -> None:
    """From another connection, in a transaction, by an anonymous producer."""
    play, other = await client(face), await client(face, None, "transacted")
    place = await make(play, sort)
    consumer = await play.session.create_consumer(place)
    await (await other.session.create_producer(place)).send("m1")
    await (await other.session.create_producer()).send("m2", destination=place)
    await expect(consumer, "none")
    await other.session.commit()
    await expect(consumer, "m1 m2 none")


@pytest.mark.parametrize("sort", SORTS)
async def test_rule_145_it_cannot_be_deleted_while_it_has_a_consumer(face: Face, sort: str) -> None:
    """In whichever session; once it is closed it can."""
    play = await client(face)
    place = await make(play, sort)
    second = await play.beside()
    consumers = [await play.session.create_consumer(place), await second.session.create_consumer(place)]
    for consumer in consumers:
        assert error(await outcome(place.delete()))
        await consumer.close()
    await place.delete()
    await place.delete()  # twice is silent


@pytest.mark.parametrize("sort", SORTS)
async def test_rule_146_after_delete_it_is_gone(face: Face, sort: str) -> None:
    """For who made it and for others: neither sent to nor consumed from."""
    play, other = await client(face), await client(face)
    place = await make(play, sort)
    open_one = await other.session.create_producer(place)
    await open_one.send("m1")
    await place.delete()
    await face.barrier()
    for each in (play, other):
        assert error(await outcome(each.session.create_consumer(place)), *GONE)
        assert error(await outcome(each.session.create_producer(place)), *GONE)
        anonymous = await each.session.create_producer()
        assert error(await outcome(anonymous.send("m2", destination=place)))
    assert error(await outcome(open_one.send("m3")))


@pytest.mark.parametrize("sort", SORTS)
async def test_rule_30_after_the_close_of_its_connection_it_cannot_be_deleted(face: Face, sort: str) -> None:
    """It went with the connection; that is said at once, and nobody waits for a broker that is not there."""
    play = await client(face)
    place = await make(play, sort)
    await play.close()
    with pytest.raises(jmsish.IllegalStateError, match="the connection is closed"):
        await place.delete()


@pytest.mark.parametrize("sort", SORTS)
async def test_rule_146_what_is_in_it_goes_too(face: Face, sort: str) -> None:
    """A deleted queue owns nothing any more; a new one begins empty."""
    play = await client(face)
    place = await make(play, sort)
    await (await play.session.create_producer(place)).send("m1")
    await place.delete()
    again = await make(play, sort)
    assert again.name != place.name
    await expect(await play.session.create_consumer(again), "none")


@pytest.mark.parametrize("sort", SORTS)
async def test_rule_147_a_reply_to_is_a_destination(face: Face, sort: str) -> None:
    """Received, of the same kind, usable to send to; not to consume from, nor to delete."""
    asking, serving = await client(face), await client(face)
    place = await make(asking, sort)
    replies = await asking.session.create_consumer(place)
    requests = asking.session.create_queue("requests")
    request: Any = asking.session.create_text_message("question")
    request.jms_reply_to = place
    await (await asking.session.create_producer(requests)).send(request)
    (got,) = await expect(await serving.session.create_consumer(requests), "question")
    reply_to = got.jms_reply_to
    assert undressed(reply_to) == undressed(place)
    await (await serving.session.create_producer()).send("answer", destination=reply_to)
    await expect(replies, "answer none")
    assert error(await outcome(serving.session.create_consumer(reply_to)), jmsish.InvalidDestinationError)
    with pytest.raises(jmsish.IllegalStateError):
        await reply_to.delete()


async def test_rule_147_its_own_reply_to_can_be_consumed_from(face: Face) -> None:
    """Whoever made it may do so by the value that came in a message."""
    play = await client(face)
    place = await play.session.create_temporary_queue()
    message: Any = play.session.create_text_message("m1")
    message.jms_reply_to = place
    queue = play.session.create_queue("orders")
    await (await play.session.create_producer(queue)).send(message)
    (got,) = await expect(await play.session.create_consumer(queue), "m1")
    consumer = await play.session.create_consumer(got.jms_reply_to)
    await send(play.connection, place.name, "m2")
    await expect(consumer, "m2 none")


async def test_a_temporary_topic_has_as_many_subscriptions_as_consumers(face: Face) -> None:
    """Each gets all; what is published to nobody is gone."""
    play, other = await client(face), await client(face)
    place = await play.session.create_temporary_topic()
    await publish(other.connection, place, "before")
    consumers = [await play.session.create_consumer(place) for _ in range(2)]
    await publish(other.connection, place, "m1 m2")
    for consumer in consumers:
        await expect(consumer, "m1 m2 none")


async def test_none_is_left_behind(face: Face) -> None:
    """A hundred connections' worth of temporary queues is gone with them."""
    play = await client(face)
    for _ in range(20):
        made = await client(face)
        queues = [await made.session.create_temporary_queue() for _ in range(3)]
        await (await play.session.create_producer(queues[0])).send("m1")
        await made.close()
        await face.barrier()
        for queue in queues:
            with pytest.raises(jmsish.InvalidDestinationError):
                face.broker.queue(queue.name)
