"""Apache Artemis dressed as the broker of a scenario: what it has in its queues, asked by its management messages.

A management message is a request to the address `activemq.management` that names a resource and an attribute; the
answer is a list in JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import jmsish
from tests.scenarios.face import AioFace, Face, Sight, SyncFace

MANAGEMENT = "activemq.management"


@dataclass(frozen=True)
class View:
    name: str
    depth: int
    acquired: int


class ArtemisBroker:
    """As much of an EmbeddedBroker as a scenario looks at. Its queues are emptied when the scenario stops it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.host, self.port = urlsplit(url).hostname, urlsplit(url).port
        self.connection = jmsish.connect(url)
        self.session = self.connection.create_session()
        self.producer = self.session.create_producer(self.session.create_queue(MANAGEMENT))
        self.answers = self.session.create_temporary_queue()
        self.consumer = self.session.create_consumer(self.answers)
        self.names: set[str] = set()

    def listen(self) -> ArtemisBroker:
        return self

    def queue(self, name: str) -> View:
        self.names.add(name)
        depth = self._ask(name, {"_AMQ_Attribute": "messageCount"})
        if depth is None:
            raise jmsish.InvalidDestinationError(f"Artemis has no queue {name!r}")
        return View(name, depth, self._ask(name, {"_AMQ_Attribute": "deliveringCount"}) or 0)

    def stop(self) -> None:
        try:
            for name in self.names | {"q", "orders"}:
                self._ask(name, {"_AMQ_OperationName": "removeAllMessages"}, body="[]")
        finally:
            self.connection.close()

    def _ask(self, queue: str, what: dict[str, str], body: str | None = None) -> int | None:
        request = self.session.create_text_message(body)
        request.jms_reply_to = self.answers
        request.properties.update({"_AMQ_ResourceName": f"queue.{queue}", **what})
        self.producer.send(request, time_to_live=30)
        answer = self.consumer.receive(timeout=10)
        assert answer is not None, "Artemis does not answer its management address"
        if not answer.properties["_AMQ_OperationSucceeded"]:
            return None
        (value,) = json.loads(answer.body)
        return int(value)


class LateSight(Sight):
    """It is asked by another connection, which may be answered before all is done that was said by the first."""

    async def holds(self, depth: int, *, acquired: int | None = None) -> None:
        await self.comes_to(depth, acquired=acquired)


def face_of(kind: str, url: str) -> Face:
    face: Any = {"sync": SyncFace, "aio": AioFace}[kind]("tcp", LateSight)
    face._broker = ArtemisBroker(url)
    return face  # type: ignore[no-any-return]
