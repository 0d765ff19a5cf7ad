"""A relay that falls silent, or stops to read, when it is told to: TCP stays up, and nobody answers any more."""

from __future__ import annotations

import contextlib
import socket
import threading

from tests.relay import onward


class MutableProxy:
    """Relays connections to a broker's port; after `mute` it takes what the client says and passes nothing on."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._muted = threading.Event()
        self._reading = threading.Event()
        self._reading.set()
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"amqp://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, name="mutable proxy", daemon=True).start()

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
        for end in [self._listener, *self._ends]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = onward(near, ("127.0.0.1", self._target))
                self._ends += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._relay, args=(source, target), daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while octets := source.recv(65536):
                if not self._muted.is_set():
                    target.sendall(octets)
                self._reading.wait()
