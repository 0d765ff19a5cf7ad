"""Waking a thread that waits for sockets: a pair of sockets, one to write a byte to, one to wait for."""

from __future__ import annotations

import socket

__all__ = ["Wakeup"]


class Wakeup:
    """Readable from :meth:`set` until :meth:`clear`: a file descriptor to wait for beside others."""

    __slots__ = ("_reader", "_writer")

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def fileno(self) -> int:
        return self._reader.fileno()

    @property
    def written(self) -> int:
        """The descriptor that is written to, for ``signal.set_wakeup_fd``."""
        return self._writer.fileno()

    def readable(self) -> None:
        """For a selector that calls what it finds: it was set."""
        self.clear()

    def writable(self) -> None:
        """Never waited for."""

    def set(self) -> None:
        try:
            self._writer.send(b"\0")
        except BlockingIOError:
            pass  # full of wake-ups that nobody has cleared yet: it is readable
        except OSError:
            pass  # closed: nobody waits any more

    def clear(self) -> None:
        try:
            while len(self._reader.recv(4096)) == 4096:
                pass
        except OSError:
            pass  # nothing there, or closed

    def close(self) -> None:
        self._reader.close()
        self._writer.close()
