"""A connection that is made again: a wire that breaks as often as the scenario wants, and a broker that can be away."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Any

from jmsish import aio
from jmsish.testing import cut
from tests.relay import onward

from .blocking import Blocking
from .face import Face


class MendingProxy:
    """Relays connections to a broker's port, any number, one after the other; `cut` breaks those that are there."""

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.refusing = False
        """Whoever dials is cut off at once."""
        self.to_refuse = 0
        """So many connections more are taken, and ended once they have said something."""
        self.mute = False
        """What comes is taken, and not passed on."""
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"amqp://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, name="mending proxy", daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self.refusing or self._refuses(near):
                    near.close()
                    continue
                try:
                    far = onward(near, self.target)
                except OSError:
                    continue
                with self._lock:
                    self._ends += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._relay, args=(source, sink), daemon=True).start()

    def _refuses(self, near: socket.socket) -> bool:
        if not self.to_refuse:
            return False
        near.recv(8)
        self.to_refuse -= 1
        return True

    def _relay(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while octets := source.recv(65536):
                if not self.mute:
                    sink.sendall(octets)
            sink.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Resets all connections: what is on its way is lost, nobody says goodbye."""
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self.refusing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # which wakes who accepts
        self._listener.close()
        self.cut()


class Mending:
    """One connection of a scenario with a `failover:` URL, and the way to break it."""

    def __init__(self, face: Face) -> None:
        self.face = face
        self.log = face.log()
        self.events: list[Any] = []
        self.proxy = MendingProxy(face.listener.host, face.listener.port) if face.wire == "tcp" else None
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
