"""A connection that is made again: a wire that breaks as often as the scenario wants, and a broker that can be away."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from jmsish import aio
from jmsish.client import restoring
from jmsish.testing import cut
from tests.relay import Relay

from .blocking import Blocking
from .face import Face


class MendingProxy(Relay):
    """Relays connections to a broker's port, any number, one after the other; `cut` breaks those that are there."""

    def __init__(self, host: str, port: int) -> None:
        self.refusing = False
        """Whoever dials is cut off at once."""
        self.to_refuse = 0
        """So many connections more are taken, and ended once they have said something."""
        self.mute = False
        """What comes is taken, and not passed on."""
        super().__init__((host, port))

    def reach(self, near: socket.socket) -> socket.socket | None:
        if self.refusing:
            return None
        if self.to_refuse:
            near.recv(8)
            self.to_refuse -= 1
            return None
        return super().reach(near)

    def relay(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        while octets := source.recv(65536):
            if not self.mute:
                sink.sendall(octets)
        sink.shutdown(socket.SHUT_WR)


class Mending:
    """One connection of a scenario with a `failover:` URL, and the way to break it."""

    def __init__(self, face: Face) -> None:
        self.face = face
        self.log = face.log()
        self.events: list[Any] = []
        self.proxy = MendingProxy(face.listener.host, face.listener.port) if face.wire == "tcp" else None
        if self.proxy is not None:
            face.relays.append(self.proxy)
        self.connection: aio.Connection

    @property
    def url(self) -> str:
        return f"failover:({self.proxy.url if self.proxy else self.face.url})"

    async def connect(self, **options: Any) -> aio.Connection:
        self.connection = await self.face.connect(self.url, **options)
        self.connection.event_listener = self._on_event  # type: ignore[attr-defined]
        return self.connection

    def _on_event(self, event: Any) -> None:
        self.events.append(event)
        self.log.add(type(event).__name__)

    def cut(self) -> None:
        if self.proxy is not None:
            self.proxy.cut()
        else:
            raw = self.connection
            cut(raw.raw if isinstance(raw, Blocking) else raw)

    @contextlib.asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Breaks the wire; the connection is away, and known to be, and comes back only after the block."""
        back: Future[None] = Future()

        def pause(*_: Any) -> Iterator[tuple[Future[None], None]]:
            yield back, None

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(restoring, "_pause", pause)
            self.cut()
            await self.log.until("ConnectionInterrupted")
            try:
                yield
                assert "ConnectionRestored" not in self.log.items
            finally:
                back.set_result(None)

    async def restored(self, times: int = 1) -> None:
        """Until the connection has come back so many times, in all."""
        while self.log.items.count("ConnectionRestored") < times:
            await self.log.reach(len(self.log.items) + 1)

    async def mend(self) -> None:
        """Breaks the wire, and waits until the connection is back."""
        times = self.log.items.count("ConnectionRestored")
        self.cut()
        await self.restored(times + 1)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]
