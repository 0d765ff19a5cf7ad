"""The broker's side of one TCP connection: reads by the I/O thread, writes by whoever has something to say."""

from __future__ import annotations

import logging
import socket
import threading
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from jmsish.drivers.layers import LAYER_FAILURES, Layer, name_of, sentence_of
from jmsish.drivers.loopback import is_loopback
from jmsish.drivers.portions import Portions
from jmsish.drivers.serving import BrokerDriver
from jmsish.drivers.telling import tell_fault
from jmsish.drivers.transport import LOW_WATER
from jmsish.drivers.turns import AT_ONCE, Lane

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Reactor", "SocketOutlet"]

_log = logging.getLogger("jmsish.broker")

#: So much is read, and written, by one system call.
CHUNK = 1 << 18

#: A peer that has been told the end has so long to take it and to close; until then what it still sends is read and
#: dropped, because a socket closed with unread input sends a reset that may overtake our last words.
LINGER = 1.0

#: A thread other than the I/O thread writes to one connection so often at most, in seconds.
BURST = 0.0005

#: A client has so long for its handshakes of TLS and WebSocket, unless the reactor is told otherwise.
HANDSHAKE_TIMEOUT = 15.0

#: A peer that takes nothing of what there is for it is given up after so long, unless the reactor is told otherwise.
STALL_TIMEOUT = 60.0


class Reactor(Protocol):
    """What an outlet needs of the I/O thread; any thread may call :meth:`post` and :meth:`is_current`."""

    driver: BrokerDriver
    buffer: memoryview
    portions: Portions
    stall_timeout: float
    """Seconds; 0 for ever."""

    def post(self, action: Callable[[], None]) -> None:
        """Run ``action`` in the I/O thread, soon; called by any thread."""

    def is_current(self) -> bool:
        """Whether this is the I/O thread."""

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Run ``action`` in the I/O thread later."""

    def watch(self, outlet: SocketOutlet, *, reading: bool, writing: bool) -> None:
        """Wait for input, for room to write, or for neither."""

    def opened(self, outlet: SocketOutlet) -> None:
        """Its peer has opened."""

    def forget(self, outlet: SocketOutlet) -> None:
        """It is closed."""


class SocketOutlet:
    """An accepted socket, an :class:`~jmsish.drivers.transport.Outlet` of the broker's driver.

    Whoever stepped the broker writes, by the same rule as the inbox of the driver: put in, try the lock, look again
    after letting it go. So an answer leaves at once, whoever else has the interpreter. Only a thread of ``vm://`` that
    writes again and again leaves it to the I/O thread, which then writes for many messages (measured, a stream from
    memory to TCP: 10 µs a message with a write each, 4 this way; ping-pong: the same). And when the socket takes no
    more, the I/O thread waits for it.
    """

    __slots__ = (
        "_blocked",
        "_broken",
        "_choked",
        "_closed",
        "_ended",
        "_finished",
        "_input_over",
        "_is_guest",
        "_lane",
        "_layer",
        "_pending",
        "_posted",
        "_progress",
        "_reactor",
        "_role",
        "_socket",
        "_stalling",
        "_wire",
        "_writing",
        "_written",
        "consumed",
        "delivered",
        "held",
        "peer",
    )

    def __init__(
        self, reactor: Reactor, accepted: socket.socket, peer: str, layer: Layer | None, role: str | None = None
    ) -> None:
        self.delivered = 0
        self.consumed = 0
        self.held = False
        self.peer = peer
        self._reactor = reactor
        self._socket = accepted
        self._layer = layer
        self._role = role
        self._lane: Lane | None = None
        self._pending: deque[bytes] = deque()
        self._wire: bytes | memoryview = b""  # what the socket has not taken of the last write
        self._writing = threading.Lock()  # a leaf, held over a send that does not block
        self._blocked = False  # the socket takes no more: the I/O thread waits for it
        self._ended = False  # the broker has said its last word
        self._finished = False  # and the socket has taken it
        self._choked = False  # it has brought more than was worked off: nothing is read
        self._input_over = False  # the peer has said its last word
        self._broken = False  # the socket is of no use any more
        self._closed = False
        self._is_guest = True  # of the lobby: it has not opened
        self._stalling = False  # its progress is watched
        self._progress = 0
        self._written = 0.0  # when it was last written to at once
        self._posted = False  # the I/O thread is going to write

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def crowd(self) -> str:
        """Those who wait for their turn together: a host."""
        return self.peer.rpartition(":")[0]

    def start(self) -> None:
        """Begin: by the I/O thread, after the accept."""
        self._watch()
        if self._layer is None:
            self._open()

    def _open(self) -> None:
        layer = self._layer
        secure = layer is not None and layer.is_secure
        self._lane = self._reactor.driver.open(
            self,
            trusted=False,
            peer=self.peer,
            certificate=layer.peer_certificate() if layer is not None else None,
            exposed=not secure and not is_loopback(self.crowd),
            resume=self.resume,
            role=self._role,
        )

    @property
    def is_shaking_hands(self) -> bool:
        """TLS or WebSocket is not established: the broker does not know of it yet."""
        return self._lane is None

    # The broker's face (Outlet).

    def deliver(self, data: bytes) -> None:
        self.delivered += len(data)
        self._pending.append(data)
        if self._is_guest and self._lane is not None and self._lane.connection.is_open:
            self._is_guest = False
            self._reactor.post(lambda: self._reactor.opened(self))

    def end(self) -> None:
        self._ended = True

    def wake(self) -> None:
        now = monotonic()
        if now - self._written > BURST or self._ended or self._reactor.is_current():
            self._written = now
            self.flush()
        elif not self._posted:
            self._posted = True
            self._reactor.post(self._flush_posted)
        if self._ended:
            self._reactor.post(self._leave)

    def _flush_posted(self) -> None:
        self._posted = False  # first: what is delivered after this is posted again
        self.flush()

    # Writing, by any thread.

    def flush(self) -> None:
        """Write what there is, unless somebody else is at it, or the socket takes no more."""
        while self._has_output() and not self._blocked:
            taken: list[bool] = []  # in one step with the lock: an interrupt may come when a built-in has returned
            try:
                taken.extend(map(self._writing.acquire, AT_ONCE))
                if not taken[0]:
                    return
                if not self._closed:
                    self._write()
            finally:
                if taken and taken[0]:
                    self._writing.release()

    def _has_output(self) -> bool:
        if self._closed or self._broken:
            return False
        if self._pending or self._wire or (self._ended and not self._finished):
            return True
        return self._layer is not None and self._layer.has_output

    def _write(self) -> None:
        try:
            while True:
                ended = self._ended  # looked at first: nothing is delivered after it
                if not (self._wire or self._next()):
                    break
                sent = self._socket.send(self._wire)
                self._progress += sent
                self._wire = memoryview(self._wire)[sent:] if sent < len(self._wire) else b""
            if ended and not self._finished:
                self._finish()
        except BlockingIOError:
            self._blocked = True
            self._reactor.post(self._watch)
        except (OSError, *LAYER_FAILURES) as error:
            self._break(error)
        except BaseException as interrupt:
            self._break(interrupt)  # how much has left is not known, so nothing can follow it
            raise
        if self.held and self.delivered - self.consumed <= LOW_WATER and self._lane is not None:
            # Brought, not fed: who flushes looks after the inbox when it has flushed all there is to flush.
            self._reactor.driver.bring(self._lane, None)

    def _next(self) -> bool:
        """The next octets for the wire, as many as one write may take."""
        pending = self._pending
        parts: list[bytes] = []
        size = 0
        while pending and size < CHUNK:
            parts.append(pending.popleft())
            size += len(parts[-1])
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self.consumed += size
        if self._layer is not None:
            if data:
                self._layer.send(data)
            data = self._layer.take()
        self._wire = data
        return bool(data)

    def _finish(self) -> None:
        """All is said: tell the peer so, and leave the other direction open for what it still says."""
        self._finished = True
        if self._layer is not None:
            self._layer.close()
            try:
                self._socket.send(self._layer.take())
            except BlockingIOError:
                pass  # a courtesy
        self._socket.shutdown(socket.SHUT_WR)

    def _break(self, error: BaseException) -> None:
        """The socket has failed, in either direction: the broker hears of an end, the I/O thread closes."""
        if self._broken:
            return
        self._broken = True
        _log.debug("the connection from %s failed: %s", self.peer, str(error))
        self._pending.clear()
        if self._lane is not None:
            self._reactor.driver.bring(self._lane, b"")
        self._reactor.post(self.close)

    # The I/O thread's own.

    def _watch(self) -> None:
        if not self._closed:
            reading = not (self._input_over or self._choked or self._has_unread())
            self._reactor.watch(self, reading=reading, writing=self._blocked)
            if self._blocked and not self._stalling and self._reactor.stall_timeout:
                self._stalling = True
                self._await_progress()

    def _await_progress(self) -> None:
        progress = self._progress
        self._reactor.after(self._reactor.stall_timeout, lambda: self._look_at_progress(progress))

    def _look_at_progress(self, before: int) -> None:
        if self._closed or not self._blocked:
            self._stalling = False
        elif self._progress != before:
            self._await_progress()
        else:
            text = f"it has taken nothing for {self._reactor.stall_timeout:g} s"
            _log.warning("the connection from %s is given up: %s", self.peer, text)
            self._break(TimeoutError(text))

    def writable(self) -> None:
        self._blocked = False
        self.flush()
        self._watch()

    def resume(self) -> None:
        """What it has brought was worked off: by any thread, the broker lock held."""
        if self._choked:
            self._reactor.post(self._read_on)

    def _read_on(self) -> None:
        self._choked = False
        self._go_on()

    def _has_unread(self) -> bool:
        """Whether what was read last is still with the layer, in part: it comes before anything that is read now."""
        return self._layer is not None and self._layer.unread and not self._ended

    def _go_on(self) -> None:
        """Others had their turn meanwhile. A fault ends the connection, as one does that comes with new octets."""
        try:
            if not self._closed and self._has_unread():
                self.readable()
            self._watch()
        except Exception:
            tell_fault(_log, "a fault met %s", self)
            self.close()

    def readable(self) -> None:
        share = None if self._lane is None else self._lane.share  # None again, by another thread, once it has gone
        if share is not None and share.rest:
            # Said before looking again: who works it off first does that and then looks at the flag.
            self._choked = True
            if share.rest:
                self._watch()
                return
            self._choked = False
        if self._has_unread():
            self._bring(b"")
            return
        try:
            size = self._socket.recv_into(self._reactor.buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._break(error)
            return
        if not size:
            self._input_over = True
            self._end_of_input()
        elif not self._ended:
            self._bring(bytes(self._reactor.buffer[:size]))

    def _bring(self, data: bytes) -> None:
        if self._layer is not None:
            try:
                data = self._layer.receive(data)
                if self._layer.established and self._lane is None:
                    self._open()
            except LAYER_FAILURES as failure:
                self._layer_failed(failure)
                self._ended = True  # the alert that says what we did not like, and no more
                self._end_of_input()
                self.wake()
                return
            self.flush()
        if data and self._lane is not None:
            self._reactor.driver.bring(self._lane, data)
        if self._has_unread():
            self._watch()
            self._reactor.portions.ask(self._go_on)
        if self._layer is not None and self._layer.ended:
            self._reactor.watch(self, reading=False, writing=self._blocked)
            self._input_over = True
            self._end_of_input()

    def _layer_failed(self, failure: Exception) -> None:
        _log.info("the connection from %s failed: %s", self.peer, sentence_of(failure))

    def _end_of_input(self) -> None:
        """Nothing more comes from the peer; the broker may still have something to say."""
        self._watch()  # an end stays readable: waiting for it would come back at once, for ever
        if self._lane is not None:
            self._reactor.driver.bring(self._lane, b"")
        if self._lane is None or self._ended:
            self._leave()

    def _leave(self) -> None:
        """The broker has ended: close when the peer has, or after a while."""
        if self._choked:
            self._choked = False  # what still comes is read, and dropped: unread, it would take back our last words
            self._watch()
        if self._input_over and (self._finished or self._broken or self._lane is None):
            self.close()
        else:
            progress = self._progress
            self._reactor.after(LINGER, lambda: self._end_linger(progress))

    def _end_linger(self, progress: int) -> None:
        if not self._finished and self._progress != progress:
            self._leave()  # it still takes what we said
        else:
            self.close()

    def close(self) -> None:
        if self._closed:
            return
        self._reactor.watch(self, reading=False, writing=False)
        with self._writing:
            self._closed = True
            self._pending.clear()
            self.consumed = self.delivered
            self._socket.close()
        self._reactor.forget(self)
        if self._lane is not None:
            self._reactor.driver.bring(self._lane, b"")

    def disown(self) -> None:
        """In a child made by fork: the socket is closed here, and nothing is said on it."""
        self._closed = True
        self._pending.clear()
        self._socket.close()

    def __repr__(self) -> str:
        return f"<connection from {self.peer}{', ' + name_of(self._layer) if self._layer else ''}>"
