"""A relay that falls silent, or stops to read, when it is told to: TCP stays up, and nobody answers any more."""

from __future__ import annotations

import socket
import threading

from tests.relay import Relay


class MutableProxy(Relay):
    """Relays connections to a broker's port; after `mute` it takes what the client says and passes nothing on."""

    def __init__(self, port: int) -> None:
        self._muted = threading.Event()
        self._reading = threading.Event()
        self._reading.set()
        super().__init__(("127.0.0.1", port))

    def mute(self) -> None:
        self._muted.set()

    def stall(self) -> None:
        """Read no more: what the client writes fills the buffers between, and then its writes are blocked."""
        self._reading.clear()

    def go_on(self) -> None:
        """Read again."""
        self._reading.set()

    def close(self) -> None:
        self._reading.set()
        super().close()

    def relay(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        while octets := source.recv(65536):
            if not self._muted.is_set():
                sink.sendall(octets)
            self._reading.wait()
