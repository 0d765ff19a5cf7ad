"""Policy as an application meets it: what it may not, it is told at once, and by which error."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.errors import ConnectionLostError, JMSError, JMSSecurityError, ResourceAllocationError, SendRejectedError

from .face import Face

OPEN = {"users": ["*"], "remote_hosts": ["*"], "sources": ["*"], "targets": ["*"]}
CONNECTION = "connection disallowed by local policy"
LINK = "link disallowed by local policy"


def policy(vhost: dict[str, Any] | None = None, **group: Any) -> dict[str, Any]:
    return {"vhosts": {"$default": {"groups": {"all": {**OPEN, **group}}, **(vhost or {})}}}


async def joe(face: Face, **options: Any) -> Any:
    return await face.connect(username="joe", password="x", **options)


async def joes_session(face: Face, **options: Any) -> Any:
    return await (await joe(face)).create_session(**options)


async def test_one_connection_too_many_of_a_virtual_host_is_told_so(face: Face) -> None:
    face.broker_with(config=policy({"max_connections": 1}))
    first = await joe(face)
    with pytest.raises(ResourceAllocationError, match=CONNECTION) as raised:
        await joe(face)
    assert (raised.value.condition, raised.value.scope) == ("amqp:resource-limit-exceeded", "connection")
    await first.close()
    await joe(face)
    assert face.broker.policy.denials.vhosts["$default"].connections_denied == 1


async def test_one_connection_too_many_of_the_broker_finds_the_door_closed(face: Face) -> None:
    face.broker_with(config={"policy": {"max_connections": 1}})
    await joe(face)
    with pytest.raises(ConnectionLostError):
        await joe(face)
    assert face.broker.policy.denials.connections_denied == 1


async def test_a_user_in_no_group_is_not_let_in(face: Face) -> None:
    face.broker_with(config=policy(users=["alice"]))
    with pytest.raises(JMSError, match=CONNECTION):
        await joe(face)
    assert face.broker.connections() == []


async def test_a_host_that_is_not_allowed_is_not_let_in(face: Face) -> None:
    """Who is inside the process is at home, at 127.0.0.1."""
    face.broker_with(config=policy(remote_hosts=["10.0.0.1-10.0.0.9"]))
    with pytest.raises(JMSError, match=CONNECTION):
        await joe(face)
    face.broker.policy.declare_group("$default", "all", remote_hosts=["localhost"])
    await joe(face)


async def test_the_virtual_host_is_chosen_by_the_connection(face: Face) -> None:
    face.broker_with(config={"vhosts": {"shop": {"aliases": ["*.shop"], "groups": {"all": OPEN}}}})
    await joe(face, vhost="shop")
    await joe(face, vhost="eu.shop")
    with pytest.raises(JMSError, match=CONNECTION):
        await joe(face, vhost="other")
    assert face.broker.policy.connected("shop") == ({"joe": 2}, {"127.0.0.1": 2})


async def test_where_nobody_may_send_or_receive_links_are_refused_and_the_session_goes_on(face: Face) -> None:
    face.broker_with(config=policy(sources=["${user}.*"], targets=["orders"]))
    session = await joes_session(face)
    for create, name in ((session.create_producer, "joe.in"), (session.create_consumer, "orders")):
        with pytest.raises(JMSSecurityError, match=LINK) as raised:
            await create(session.create_queue(name))
        assert (raised.value.condition, raised.value.scope) == ("amqp:unauthorized-access", "link")
    await (await session.create_producer(session.create_queue("orders"))).send("m1")
    await session.create_consumer(session.create_queue("joe.in"))
    denials = face.broker.policy.denials
    assert (denials.links_denied, denials.vhosts["$default"].senders_denied) == (2, 1)


async def test_links_are_counted_and_freed_when_they_are_closed(face: Face) -> None:
    face.broker_with(config=policy(max_senders=1, max_receivers=1))
    session = await joes_session(face, transacted=True)  # whose coordinator does not count
    queue = session.create_queue("q")
    producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
    for create in (session.create_producer, session.create_consumer):
        with pytest.raises(ResourceAllocationError, match=LINK):
            await create(queue)
    await producer.close()
    await consumer.close()
    producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
    await producer.send("m1")
    await session.commit()
    message = await consumer.receive(timeout=30)
    assert message is not None and message.body == "m1"
    await session.commit()


async def test_each_message_of_a_producer_without_a_destination_is_checked(face: Face) -> None:
    face.broker_with(config=policy(targets=["orders"], allow_anonymous_sender=True))
    session = await joes_session(face)
    producer = await session.create_producer(None)
    with pytest.raises(SendRejectedError) as raised:
        await producer.send("m1", destination=session.create_queue("others"))
    assert raised.value.condition == "amqp:unauthorized-access"
    await producer.send("m2", destination=session.create_queue("orders"))
    assert face.sight("orders").bodies == ["m2"]


async def test_without_a_right_to_it_there_is_no_producer_without_a_destination_and_no_temporary_queue(
    face: Face,
) -> None:
    face.broker_with(config=policy())
    session = await joes_session(face)
    with pytest.raises(JMSSecurityError, match=LINK):
        producer = await session.create_producer(None)
        await producer.send("m1", destination=session.create_queue("orders"))
    with pytest.raises(JMSSecurityError, match=LINK):
        await session.create_temporary_queue()


async def test_a_temporary_queue_may_be_used_by_who_made_it(face: Face) -> None:
    face.broker_with(config=policy(sources=[], targets=[], allow_dynamic_source=True))
    session = await joes_session(face)
    queue = await session.create_temporary_queue()
    consumer = await session.create_consumer(queue)
    await (await session.create_producer(queue)).send("m1")
    message = await consumer.receive(timeout=30)
    assert message is not None and message.body == "m1"


async def test_a_queue_that_may_not_be_created_has_to_be_there(face: Face) -> None:
    face.broker_with(config={**policy(may_create=False), "queues": {"there": {}}})
    session = await joes_session(face)
    await (await session.create_producer(session.create_queue("there"))).send("m1")
    with pytest.raises(JMSSecurityError, match="may_create"):
        await session.create_producer(session.create_queue("new"))


async def test_a_durable_subscription_is_made_by_who_may_create_and_bind(face: Face) -> None:
    face.broker_with(config=policy(may_bind=False))
    connection = await joe(face, client_id="desk")
    session = await connection.create_session()
    topic = session.create_topic("news")
    with pytest.raises(JMSSecurityError, match="may_bind"):
        await session.create_durable_consumer(topic, "mine")
    await session.create_consumer(topic)


async def test_topics_with_wildcards_are_for_those_who_may_have_all_of_them(face: Face) -> None:
    face.broker_with(config=policy(sources=["eu.*"]))
    session = await joes_session(face)
    await session.create_consumer(session.create_topic("eu.de.#"))
    for name in ("#", "eu.#", "*.de"):
        with pytest.raises(JMSSecurityError, match=LINK):
            await session.create_consumer(session.create_topic(name))


async def test_what_is_changed_holds_for_the_next_connection(face: Face) -> None:
    face.broker_with(config=policy())
    before = await joes_session(face)
    face.broker.policy.declare_group("$default", "all", targets=["orders"])
    after = await joes_session(face)
    await before.create_producer(before.create_queue("others"))
    with pytest.raises(JMSSecurityError, match=LINK):
        await after.create_producer(after.create_queue("others"))
    assert not face.broker.policy.grant("joe").may_send_to("others")


async def test_a_full_queue_refuses_what_it_cannot_take_from_every_producer(face: Face) -> None:
    face.broker.declare_queue("q", max_messages=1)
    face.broker.exchange("amq.fanout").bind("q")
    session = await joes_session(face)
    anonymous = await session.create_producer(None)
    await anonymous.send("m1", destination=session.create_queue("q"))
    for name in ("q", "amq.fanout"):
        with pytest.raises(SendRejectedError) as raised:
            await anonymous.send("m2", destination=session.create_queue(name))
        assert raised.value.condition == "amqp:resource-limit-exceeded"
    assert face.sight("q").bodies == ["m1"]


async def test_a_full_queue_that_blocks_holds_a_producer_without_a_destination_back(face: Face) -> None:
    face.broker.declare_queue("q", max_messages=2, overflow="block")
    session = await joes_session(face)
    producer = await session.create_producer(None)
    queue = session.create_queue("q")
    for body in ("m1", "m2"):
        await producer.send(body, destination=queue)
    other = await (await face.connect()).create_session()

    async def post() -> None:
        await producer.send("m3", destination=queue)

    task = await face.spawn(post())
    await face.turns(3)
    assert face.sight("q").depth == 2 and not task.done()
    consumer = await other.create_consumer(queue)
    message = await consumer.receive(timeout=30)
    assert message is not None and message.body == "m1"
    await task


@pytest.mark.parametrize("face", ["sync-vm", "aio-vm"], indirect=True)
async def test_over_vm_a_name_is_believed_without_a_password(face: Face) -> None:
    """The name that is given is the user, and nobody asks for a proof, also where there are users with passwords."""
    face.broker_with(config={"users": {"ann": {"password": "secret"}}, **policy(sources=["${user}.*"])})
    session = await (await face.connect(username="ann")).create_session()
    await session.create_consumer(session.create_queue("ann.orders"))
    with pytest.raises(JMSSecurityError, match=LINK):
        await session.create_consumer(session.create_queue("joe.orders"))
