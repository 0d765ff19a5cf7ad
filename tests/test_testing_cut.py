"""`jmsish.testing.cut`: what a program sees when its network fails."""

from __future__ import annotations

import asyncio

import pytest

import jmsish
from jmsish import aio
from jmsish.testing import cut


@pytest.mark.parametrize("wire", ["vm", "tcp"])
def test_a_cut_connection_fails_and_the_queue_has_its_messages_again(wire: str) -> None:
    with jmsish.EmbeddedBroker() as broker:
        url = broker.url if wire == "vm" else broker.listen().url
        connection = jmsish.connect(url)
        session = connection.create_session(transacted=True)
        queue = session.create_queue("q")
        session.create_producer(queue).send("m")
        session.commit()
        consumer = session.create_consumer(queue)
        assert consumer.receive(timeout=30) is not None
        cut(connection)
        with pytest.raises(jmsish.ConnectionLostError):
            consumer.receive(timeout=30)
        with jmsish.connect(url) as other:
            message = other.create_session().create_consumer(queue).receive(timeout=30)
            assert message is not None and message.jms_redelivered
        connection.close()


@pytest.mark.parametrize("wire", ["vm", "tcp"])
def test_the_same_in_asyncio(wire: str) -> None:
    async def play() -> None:
        with jmsish.EmbeddedBroker() as broker:
            connection = await aio.connect(broker.url if wire == "vm" else broker.listen().url)
            session = await connection.create_session()
            consumer = await session.create_consumer(session.create_queue("q"))
            waiting = asyncio.create_task(consumer.receive())
            await asyncio.sleep(0)
            cut(connection)
            with pytest.raises(jmsish.ConnectionLostError):
                await waiting
            await connection.close()

    asyncio.run(play())
