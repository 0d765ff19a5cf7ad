"""A TCP relay that can cut the wire in the middle of anything."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

from tests.relay import onward


class CuttingProxy:
    """Relays one connection to a broker's port, octet for octet, until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        threading.Thread(target=self._accept, name="cutting proxy", daemon=True).start()

    @property
    def url(self) -> str:
        return f"amqp://{self.host}:{self.port}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            near, _ = self._listener.accept()
            far = onward(near, self._target)
            self._ends += [near, far]
            threading.Thread(target=_relay, args=(near, far), daemon=True).start()
            _relay(far, near)

    def cut(self) -> None:
        """Resets both sides at once: what is on its way is lost, nobody says goodbye."""
        self._listener.close()
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def _relay(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while octets := source.recv(65536):
            target.sendall(octets)
        target.shutdown(socket.SHUT_WR)
