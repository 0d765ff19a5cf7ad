"""For relays between a client and a broker, to cut, mute and refuse by, and for peers made of bare sockets."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterable, Iterator

UP, DOWN = "up", "down"
"""From the client to the broker, and back."""


class Relay:
    """Relays any number of connections to a broker's port, octet for octet, until it is closed.

    It keeps every socket from the moment it has it: whoever connects while it is closed or cut leaves none behind.
    """

    def __init__(self, target: tuple[str, int] | None = None) -> None:
        self.target = target
        self._lock = threading.Lock()
        self._closed = False
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name=type(self).__name__, daemon=True).start()

    @property
    def url(self) -> str:
        return f"amqp://127.0.0.1:{self.port}"

    # -- what may differ

    def reach(self, near: socket.socket) -> socket.socket | None:
        """The other end for one that has connected; none, and it is cut off at once."""
        assert self.target is not None
        return onward(near, self.target)

    def relay(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        """Passes on what comes, to its end."""
        while octets := source.recv(65536):
            sink.sendall(octets)
        sink.shutdown(socket.SHUT_WR)

    # -- the wires

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._keeps(near):
                    self._join(near)

    def _join(self, near: socket.socket) -> None:
        far = None
        with contextlib.suppress(OSError):
            far = self.reach(near)
        if far is None:
            self._drop(near)
        elif self._keeps(far):
            for source, sink, way in ((near, far, UP), (far, near, DOWN)):
                threading.Thread(target=self._run, args=(source, sink, way), daemon=True).start()

    def _keeps(self, end: socket.socket) -> bool:
        with self._lock:
            if not self._closed:
                self._ends.append(end)
                return True
        end.close()
        return False

    def _drop(self, end: socket.socket) -> None:
        with self._lock:
            if end in self._ends:
                self._ends.remove(end)
        end.close()

    def _run(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        with contextlib.suppress(OSError):
            self.relay(source, sink, way)

    # -- the end

    def cut(self) -> None:
        """Resets all connections: what is on its way is lost, nobody says goodbye. Whoever comes next is taken."""
        with self._lock:
            ends, self._ends = self._ends, []
        reset(ends)

    def close(self) -> None:
        """Takes nobody any more, and cuts."""
        with self._lock:
            self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # which wakes who accepts; a close alone leaves it accepting
        self._listener.close()
        self.cut()


@contextlib.contextmanager
def vacant_port() -> Iterator[int]:
    """A port of this host at which nobody listens, and nobody else can while the block lasts: who connects is refused.

    A port that was merely free a moment ago is given to the next who wants any: to a test beside this one, or to the
    very socket that dials it, which then has itself for a peer.
    """
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def undelayed(end: socket.socket) -> socket.socket:
    """Has small pieces sent at once, as clients and brokers do: else each may wait 40 ms for the peer to acknowledge
    the one before (the algorithm of Nagle against the delayed acknowledgement)."""
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return end


def onward(near: socket.socket, target: tuple[str, int]) -> socket.socket:
    """The other end of what a relay passes on. Where there is none, the one that was accepted is closed: `OSError`."""
    try:
        undelayed(near)
        return undelayed(socket.create_connection(target))
    except OSError:
        near.close()
        raise


def reset(ends: Iterable[socket.socket]) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.shutdown(socket.SHUT_RDWR)
        end.close()
