"""AMQP over WebSocket with others: their clients at our broker, our clients at a server that is not ours."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator

import pytest

import jmsish
from jmsish import EmbeddedBroker, aio
from tests.interop import fetch
from tests.interop.test_peers import ALL, EXPECTED, PEERS, need, queue

__all__ = ["queue"]

RHEA = next(peer for peer in ALL if peer.name == "rhea")


@pytest.mark.interop
@pytest.mark.parametrize("scenario", ["outcomes", "large"])
def test_rhea_at_our_broker(scenario: str, queue: str) -> None:
    need(fetch.rhea_websocket)
    with EmbeddedBroker() as broker:
        assert RHEA.run(broker.listen(protocol="ws").url, scenario, queue) == EXPECTED[scenario]


@pytest.fixture
def server() -> Iterator[str]:
    need(fetch.rhea_websocket)
    environment = {**os.environ, "NODE_PATH": str(fetch.cache(fetch.RHEA) / "node_modules")}
    command = ["node", str(PEERS / "rhea_websocket_server.js")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        yield f"amqpws://127.0.0.1:{process.stdout.readline().strip()}/any/path"
        process.kill()


BODIES = ["m1", "x" * 300_000, "m3"]


@pytest.mark.interop
def test_our_client_at_a_server_of_others(server: str) -> None:
    with jmsish.connect(server) as connection, connection.create_session() as session:
        orders = session.create_queue("orders")
        producer = session.create_producer(orders)
        for body in BODIES:
            producer.send(body)
        consumer = session.create_consumer(orders)
        received = [consumer.receive(timeout=30) for _ in BODIES]
        assert [message.body for message in received if message] == BODIES


@pytest.mark.interop
def test_our_asyncio_client_at_a_server_of_others(server: str) -> None:
    async def talk() -> list[object]:
        async with aio.connect(server) as connection, await connection.create_session() as session:
            orders = session.create_queue("orders")
            producer = await session.create_producer(orders)
            for body in BODIES:
                await producer.send(body)
            consumer = await session.create_consumer(orders)
            received = [await consumer.receive(timeout=30) for _ in BODIES]
            return [message.body for message in received if message]

    assert asyncio.run(talk()) == BODIES
