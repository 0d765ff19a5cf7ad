"""Two things at once in an asyncio connection, one of which waits for the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

import jmsish
from jmsish import aio
from jmsish.testing import cut

PATIENCE = 30.0


@pytest.fixture(params=["vm", "tcp"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with jmsish.EmbeddedBroker() as broker:
        yield broker.url if request.param == "vm" else f"amqp://127.0.0.1:{broker.listen().port}"


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, PATIENCE))


def test_rule_27_an_exception_listener_closes_the_connection_by_a_task_of_its_own(url: str) -> None:
    """With a time-out around it, or in a group: the close does not wait for the listener that waits for it."""

    async def scene() -> None:
        connection = await aio.connect(url)
        await connection.create_session()
        closed: asyncio.Future[jmsish.JMSError] = asyncio.get_running_loop().create_future()

        async def lost(error: jmsish.JMSError) -> None:
            await asyncio.gather(connection.close())
            closed.set_result(error)

        connection.exception_listener = lost
        cut(connection)
        assert isinstance(await closed, jmsish.ConnectionLostError)

    play(scene())


def test_rule_44_a_task_that_a_completion_waits_for_may_close(url: str) -> None:
    """It is no completion itself, so it is not refused, and it does not wait for the one that waits for it."""

    async def scene() -> None:
        async with aio.connect(url) as connection:
            session = await connection.create_session()
            producer = await session.create_producer(session.create_queue("orders"))
            closed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

            async def done(message: Any, error: Any) -> None:
                await asyncio.gather(producer.close())
                closed.set_result(error)

            await producer.send("m1", on_completion=done)
            assert await closed is None
            with pytest.raises(jmsish.IllegalStateError):
                await producer.send("m2")

    play(scene())


def test_who_waits_when_the_driver_stops_waits_no_longer(url: str) -> None:
    """Of the end of a socket the loop tells; of that of a pipe nobody did."""

    async def scene() -> None:
        connection = await aio.connect(url)
        session = await connection.create_session()
        waiting = asyncio.create_task(connection._driver.wait(session._core.ending, None))
        await asyncio.sleep(0)
        connection._driver.stop()
        await waiting

    play(scene())


def test_a_connection_that_is_made_while_its_driver_stops_is_closed_again(url: str) -> None:
    """`asyncio.wait_for` may swallow a cancellation that comes when what it waits for is done (up to Python 3.11)."""

    async def scene() -> None:
        connection = await aio.connect(f"failover:({url})?failover.initialReconnectDelay=0")
        driver = connection._driver
        reach = driver._connect
        assert reach is not None
        dialled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def made_all_the_same(*to: Any) -> Any:
            dialled.set_result(None)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.get_running_loop().create_future()
            return await reach(*to)

        driver._connect = made_all_the_same
        cut(connection)
        await dialled
        reconnecting = driver._reconnecting
        assert reconnecting is not None
        await connection.close()
        await asyncio.wait([reconnecting])
        assert reconnecting.cancelled() and driver.wire is None

    play(scene())
