"""Bytes between two owners: what every transport can do, and the in-memory pipe of ``vm://``.

A transport carries octets and knows nothing of AMQP. The rules, the same for memory, TCP and TLS:

* one thread sends at a time, one thread receives at a time (they may be two); :meth:`Transport.close` and
  :meth:`Transport.interrupt` may be called by anyone at any time;
* what arrived before the end can still be read after it; then :meth:`Transport.recv` answers ``b""`` for ever;
* :meth:`Transport.send` on a transport that has ended raises :class:`~jmsish.errors.ConnectionLostError`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection
from time import monotonic
from typing import Protocol

from jmsish.drivers.telling import tell_fault
from jmsish.errors import ConnectionLostError

__all__ = ["InputFirst", "Nowhere", "Outlet", "PipeEnd", "SendBlocked", "Transport", "wake_all"]

_log = logging.getLogger("jmsish.drivers")

#: Above this many octets that nobody has read, the broker gives a connection no more.
HIGH_WATER = 1 << 20
#: At this many it goes on: far enough below that the two do not take turns at every read.
LOW_WATER = 1 << 18


class SendBlocked(Exception):
    """The peer did not take all octets by the deadline; those left go in front of what is sent next."""


class InputFirst(SendBlocked):
    """Nor yet, and there is something to be read, which it may wait for us to take."""


class LayerLost(ConnectionLostError):
    """What was read is not the end of the octets, but of the TLS or WebSocket around them, for this reason."""


class Transport(Protocol):
    """The client's end of a way to a broker."""

    @property
    def peer(self) -> str:
        """Whom the other end is called in errors and logs: ``host:port``, or ``vm://NAME``."""

    @property
    def closed(self) -> bool:
        """Whether this end was closed here."""

    @property
    def taken(self) -> bool:
        """Whether the last reading took octets off the wire: if it was interrupted then, they are lost."""

    def send(self, data: bytes, deadline: float | None = None, listening: bool = False) -> None:
        """Hand all of ``data`` over, in order; what the peer answers at once may be there when it returns.

        Raises :class:`SendBlocked` when the deadline (monotonic) passes first, and where the sender is the one to read,
        which is ``listening``, :class:`InputFirst` when it has to wait and there is something to read.
        """

    def recv(self, timeout: float | None = None) -> bytes:
        """Some octets, as many as there are; ``b""`` at the end.

        Raises ``TimeoutError`` after ``timeout`` seconds, and early after :meth:`interrupt`.
        """

    def recv_nowait(self) -> bytes | None:
        """What has arrived, ``None`` if nothing has, ``b""`` at the end."""

    def interrupt(self) -> None:
        """Make the :meth:`recv` that waits, or the next one that would, raise ``TimeoutError`` now."""

    def close(self) -> None:
        """End both directions; a thread in :meth:`recv` comes back with ``b""``. Twice is silent."""


class Outlet(Protocol):
    """Where the broker's driver puts the octets for one connection.

    ``delivered`` is written by the owner of the broker only, ``consumed`` by the reader only: their difference is the
    backlog, and neither needs a lock.
    """

    delivered: int
    consumed: int
    held: bool  #: the driver has stopped giving; who brings the backlog down to LOW_WATER resumes the connection

    def deliver(self, data: bytes) -> None:
        """Take octets, in order. The broker lock is held: no I/O, no waiting."""

    def end(self) -> None:
        """Nothing comes after this. The broker lock is held."""

    def wake(self) -> None:
        """Look after what was delivered: wake the reader, write to the socket. No lock is held."""


def wake_all(outlets: Collection[Outlet]) -> None:
    """Wake each of them, though the program is interrupted meanwhile, or a fault meets one."""
    try:
        for outlet in outlets:
            try:
                outlet.wake()
            except Exception:
                tell_fault(_log, "a fault met %s", outlet)
    except BaseException:
        for outlet in outlets:  # to be woken twice does no harm
            outlet.wake()
        raise


class Nowhere:
    """The transport of a client that has none: it has ended."""

    closed = True
    taken = False

    def __init__(self, peer: str) -> None:
        self.peer = peer

    def send(self, data: bytes, deadline: float | None = None, listening: bool = False) -> None:
        raise ConnectionLostError(f"there is no connection to {self.peer}")

    def recv(self, timeout: float | None = None) -> bytes:
        return b""

    def recv_nowait(self) -> bytes | None:
        return b""

    def interrupt(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """It is closed."""


class PipeEnd:
    """The client's end of a pipe into an embedded broker.

    ``send`` runs the broker in the calling thread when nobody else is running it, so an answer that needs nobody else
    is there when ``send`` returns: no thread switch. Threads cost 20 µs to wake, so a reader is woken only when it
    really waits.
    """

    __slots__ = (
        "_chunks",
        "_closed",
        "_ended",
        "_feed",
        "_interrupted",
        "_reader",
        "_signal",
        "_waiting",
        "consumed",
        "delivered",
        "held",
        "peer",
        "taken",
    )

    def __init__(self, peer: str, feed: Callable[[bytes | None], None] | None = None) -> None:
        self.peer = peer
        self.delivered = 0
        self.consumed = 0
        self.held = False
        self.taken = False
        self._feed = feed  # b"" is the end, None says that there is room again
        self._chunks: deque[bytes] = deque()
        self._ended = False  # by the broker
        self._closed = False  # by us
        self._interrupted = False
        self._reader: Callable[[], None] | None = None
        # A lock used as a signal: the one that waits takes it, the one that wakes releases it. A signal too many makes
        # one turn of the loop in recv, never a lost wake-up.
        self._signal = threading.Lock()
        self._signal.acquire()
        self._waiting = False

    def connect(self, feed: Callable[[bytes | None], None]) -> None:
        """Join the pipe to the driver that takes what is sent."""
        self._feed = feed

    @property
    def closed(self) -> bool:
        return self._closed

    # The client's face.

    def send(self, data: bytes, deadline: float | None = None, listening: bool = False) -> None:
        if self._closed:
            raise ConnectionLostError(f"the connection to {self.peer} is closed")
        if self._ended:
            raise ConnectionLostError(f"the connection to {self.peer} was ended by the broker")
        if data and self._feed is not None:
            self._feed(data)

    def recv_nowait(self) -> bytes | None:
        chunks = self._chunks
        self.taken = False
        if chunks and not self._closed:
            self.taken = True
            data = chunks.popleft()
            if chunks:
                data = self._all(data)
            self.consumed += len(data)
            # Looked at after consumed is written, as the driver looks at consumed after it has written held.
            if self.held and self.delivered - self.consumed <= LOW_WATER and self._feed is not None:
                self._feed(None)
            return data
        # Once more: the last octets are always there before the end is said.
        return b"" if self._closed or (self._ended and not chunks) else None

    def _all(self, first: bytes) -> bytes:
        chunks = self._chunks
        parts = [first]
        for _ in range(len(chunks)):
            parts.append(chunks.popleft())
        return b"".join(parts)

    def recv(self, timeout: float | None = None) -> bytes:
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            data = self.recv_nowait()
            if data is not None:
                return data
            if self._interrupted:
                self._interrupted = False
                raise TimeoutError("interrupted")
            self._wait(deadline)

    def _wait(self, deadline: float | None) -> None:
        """Until somebody wakes us, or the deadline."""
        self._waiting = True
        # Whoever put something in before it could see the flag did not wake us: look again.
        if self._chunks or self._ended or self._closed or self._interrupted:
            self._waiting = False
            return
        if deadline is None:
            woken = self._signal.acquire()
        else:
            woken = self._signal.acquire(timeout=min(max(deadline - monotonic(), 0.0), threading.TIMEOUT_MAX))
        self._waiting = False
        if not woken and not (self._chunks or self._ended or self._closed):
            raise TimeoutError(f"nothing from {self.peer} in time")

    def set_reader(self, callback: Callable[[], None] | None) -> None:
        """Call ``callback`` whenever octets, or the end, have arrived: in any thread, with no lock held.

        It must only signal (set a flag, ``call_soon_threadsafe``): the thread that calls it has other connections to
        see to. It is called also in a ``send`` of this very end, which the callback may tell by a flag of its own and
        skip, if the sender looks with ``recv_nowait`` after each ``send``. Called at once if something is there.
        """
        self._reader = callback
        if callback is not None and (self._chunks or self._ended):
            callback()

    def interrupt(self) -> None:
        self._interrupted = True
        self._release()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._ended and self._feed is not None:
            self._feed(b"")
        self._release()

    # The broker's face (Outlet).

    def deliver(self, data: bytes) -> None:
        self.delivered += len(data)
        self._chunks.append(data)

    def end(self) -> None:
        self._ended = True

    def wake(self) -> None:
        if self._waiting:
            self._release()
        reader = self._reader
        if reader is not None:
            try:
                reader()
            except Exception:
                tell_fault(_log, "the reader of %s failed", self.peer)

    def _release(self) -> None:
        try:
            self._signal.release()
        except RuntimeError:
            pass  # the signal is given already, and not yet taken

    def __repr__(self) -> str:
        state = "closed" if self._closed else "ended" if self._ended else "open"
        return f"<PipeEnd to {self.peer}, {state}, {self.delivered - self.consumed} octets unread>"
