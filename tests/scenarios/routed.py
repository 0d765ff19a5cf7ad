"""The same faces at the edge of a network of four routers, with the broker behind its other end by a link route."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from jmsish import aio
from jmsish.testing import RouterNetwork

from .face import AioFace, Face, SyncFace

ROUTED = "orders"
"""The prefix of the addresses that lead to the broker."""


class Routed(Face):
    """The scenario's connections are at EA1, and its broker is behind INT.B."""

    def __init__(self, wire: str) -> None:
        super().__init__(wire)
        self._network: RouterNetwork | None = None

    @property
    def network(self) -> RouterNetwork:
        """The network, started when it is needed first."""
        if self._network is None:
            routes = {ROUTED: ("INT.B", super().url)}
            self._network = RouterNetwork("EA1-INT.A-INT.B-EB1", routes=routes, transport=self.wire)
            self._network.start()
        return self._network

    @property
    def url(self) -> str:
        return str(self.network["EA1"].url)

    async def round_trip(self, connection: aio.Connection) -> None:
        """A session alone goes no further than the edge: it takes a link to be answered by the broker."""
        session = await connection.create_session()
        producer = await session.create_producer(session.create_queue(f"{ROUTED}.barrier"))
        await producer.close()
        await session.close()

    async def _whole(self, scenario: Coroutine[Any, Any, None]) -> None:
        try:
            await super()._whole(scenario)
        finally:
            if self._network is not None:
                self._network.stop()


class RoutedSyncFace(Routed, SyncFace):
    """Blocking, over four routers."""


class RoutedAioFace(Routed, AioFace):
    """With asyncio, over four routers."""


ROUTED_FACES: dict[str, tuple[type[Face], str]] = {
    "sync-vm": (RoutedSyncFace, "vm"),
    "sync-tcp": (RoutedSyncFace, "tcp"),
    "aio-vm": (RoutedAioFace, "vm"),
    "aio-tcp": (RoutedAioFace, "tcp"),
}
