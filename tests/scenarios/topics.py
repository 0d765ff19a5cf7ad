"""The steps of scenarios about topics: publishing, and the four kinds of subscription behind one call."""

from __future__ import annotations

from typing import Any

from jmsish import aio

from .face import Face
from .steps import MODES, expect

KINDS = ("plain", "shared", "durable", "shared durable")
NAMED = KINDS[1:]
LASTING = KINDS[2:]


async def publish(connection: aio.Connection, topic: Any, story: str, **arguments: Any) -> None:
    """Publishes one text message a word; all subscriptions have them when this returns."""
    session = await connection.create_session()
    destination = session.create_topic(topic) if isinstance(topic, str) else topic
    producer = await session.create_producer(destination)
    for body in story.split():
        await producer.send(body, **arguments)
    await session.close()


async def subscribe(
    session: aio.Session, kind: str = "plain", topic: Any = "news", name: str = "s", **wishes: Any
) -> aio.MessageConsumer:
    """A consumer of one of the four kinds."""
    destination = session.create_topic(topic) if isinstance(topic, str) else topic
    if kind == "plain":
        return await session.create_consumer(destination, **wishes)
    if kind == "shared":
        return await session.create_shared_consumer(destination, name, **wishes)
    if kind == "durable":
        return await session.create_durable_consumer(destination, name, **wishes)
    return await session.create_shared_durable_consumer(destination, name, **wishes)


class Client:
    """One connection with a session on it."""

    def __init__(self, face: Face, connection: aio.Connection, session: aio.Session) -> None:
        self.face = face
        self.connection = connection
        self.session = session

    async def subscribe(self, kind: str = "plain", topic: Any = "news", name: str = "s", **wishes: Any) -> Any:
        return await subscribe(self.session, kind, topic, name, **wishes)

    async def publish(self, story: str, topic: Any = "news", **arguments: Any) -> None:
        await publish(self.connection, topic, story, **arguments)

    async def beside(self, mode: str = "auto") -> Client:
        """Another session on the same connection."""
        return Client(self.face, self.connection, await self.connection.create_session(**MODES[mode]))

    async def close(self) -> None:
        await self.connection.close()


async def client(face: Face, client_id: str | None = None, mode: str = "auto", **options: Any) -> Client:
    """A client with a client id, or without."""
    connection = await face.connect(client_id=client_id, **options)
    return Client(face, connection, await connection.create_session(**MODES[mode]))


async def collected(face: Face, client_id: str | None, kind: str, story: str, **wishes: Any) -> None:
    """What a lasting subscription holds for who comes now: this, and nothing more."""
    reader = await client(face, client_id)
    await expect(await reader.subscribe(kind, **wishes), f"{story} none")
    await reader.close()
