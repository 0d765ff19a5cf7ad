"""TCP and TLS in front of a broker: the listening sockets, and one I/O thread for all connections of a broker.

A turn of the thread: wait; read what is there from every socket that has something, holding no lock; then serve the
broker once for all of it (:meth:`BrokerDriver.pump`). Those who are coming in have their turn after that, a few of
them (:mod:`jmsish.drivers.door`). Output goes out as :mod:`jmsish.drivers.outlet` says.
"""

from __future__ import annotations

import errno
import heapq
import logging
import selectors
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from time import monotonic

from jmsish.drivers.alertness import Alertness
from jmsish.drivers.door import Door, Watched
from jmsish.drivers.forks import brokers
from jmsish.drivers.layers import layer_of
from jmsish.drivers.lobby import Lobby
from jmsish.drivers.outlet import CHUNK, HANDSHAKE_TIMEOUT, STALL_TIMEOUT, SocketOutlet
from jmsish.drivers.portions import Portions
from jmsish.drivers.serving import BrokerDriver
from jmsish.drivers.sockets import address_text
from jmsish.drivers.telling import began, tell_fault
from jmsish.drivers.tls import TlsCodec
from jmsish.drivers.turns import NEVER, SLICE
from jmsish.drivers.wakeup import Wakeup
from jmsish.drivers.websocket import WebSocketCodec
from jmsish.errors import IllegalStateError, ResourceAllocationError

__all__ = ["Listener", "SocketReactor"]

_log = logging.getLogger("jmsish.broker")

#: When so many sockets have something at once, the first are answered before the last are read: half a millisecond.
_LOT = 32

#: No descriptors left: nothing is accepted for so long, instead of being told so again at once.
_PAUSE = 0.2

#: After a line in the log about who comes, for so many seconds there is no other.
_QUIET = 10.0

#: A day: longer than this no selector waits at once.
_LONGEST_WAIT = 86400.0

#: At a stop the peers have so long to take our last words and to close.
_GRACE = 0.5


class Listener:
    """A listening socket of a broker: ``url``, ``host``, ``port``, ``role``, ``close()``.

    Closing it ends the listening; connections that were accepted stay.
    """

    def __init__(
        self,
        reactor: SocketReactor,
        listening: socket.socket,
        host: str,
        tls: ssl.SSLContext | Callable[[], ssl.SSLContext] | None,
        websocket: Callable[[], WebSocketCodec] | None = None,
        role: str | None = None,
    ):
        self.host = host
        self.port: int = listening.getsockname()[1]
        self._reactor = reactor
        self._socket = listening
        self._tls = tls
        self._websocket = websocket
        self._role = role
        self._closed = False

    @property
    def url(self) -> str:
        scheme = ("amqp" if self._websocket is None else "amqpws") + ("" if self._tls is None else "s")
        return f"{scheme}://{address_text(self.host, self.port)}"

    @property
    def role(self) -> str:
        """Who may come in: ``"normal"``, clients; at a router ``"inter-router"`` or ``"edge"``."""
        return self._role or "normal"

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Accept no more connections. Twice is silent."""
        if not self._closed:
            self._closed = True
            self._reactor.drop(self)

    def fileno(self) -> int:
        return self._socket.fileno()

    def readable(self) -> None:
        """Accept one who is waiting: by the I/O thread."""
        self._reactor.refresh()
        try:
            accepted, address = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if not self._closed:
                self._refuse(error)
            return
        peer = address_text(address[0], address[1])
        try:
            if self._reactor.has_place(address[0]):
                self._admit(accepted, address[0], peer)
            else:
                accepted.close()
        except Exception:  # it is that of one who comes, and others come
            tell_fault(_log, "%s cannot serve the connection from %s", self.url, peer)
            accepted.close()

    def writable(self) -> None:
        """Never waited for."""

    def _refuse(self, error: OSError) -> None:
        self._reactor.complain("%s cannot accept connections: %s", self.url, error.strerror)
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            self._reactor.pause(self, _PAUSE)

    def _admit(self, accepted: socket.socket, host: str, peer: str) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            context = self._tls() if callable(self._tls) else self._tls
            tls = None if context is None else TlsCodec(context, server_side=True)
            layer = layer_of(tls, None if self._websocket is None else self._websocket())
        except (OSError, ssl.SSLError) as error:
            self._reactor.complain("%s cannot serve the connection from %s: %s", self.url, peer, error)
            accepted.close()
            return
        self._reactor.admit(SocketOutlet(self._reactor, accepted, peer, layer, self._role), host)

    def close_socket(self) -> None:
        self._socket.close()

    def __repr__(self) -> str:
        return f"<Listener {self.url}{', closed' if self._closed else ''}>"


class SocketReactor:
    """The I/O thread of one broker. It is a daemon, started with the first listener."""

    def __init__(
        self,
        driver: BrokerDriver,
        refresh: Callable[[], None] | None = None,
        *,
        lobby: Lobby[SocketOutlet] | None = None,
        handshake_timeout: float | None = None,
        stall_timeout: float | None = None,
    ) -> None:
        """``refresh`` is called before connections are accepted: what may have changed is looked at there. Times are
        seconds; 0 for ever, ``None`` for the usual one."""
        self.driver = driver
        self._refresh = refresh
        self.handshake_timeout = HANDSHAKE_TIMEOUT if handshake_timeout is None else handshake_timeout
        self.stall_timeout = STALL_TIMEOUT if stall_timeout is None else stall_timeout
        self._lobby: Lobby[SocketOutlet] = Lobby() if lobby is None else lobby
        self._sweeping = False
        self._quiet_until = 0.0
        self.buffer = memoryview(bytearray(CHUNK))  # of the I/O thread, for every read
        self.portions = Portions(self.post)
        self._alertness = Alertness()
        self._door = Door()
        self._wakeup = Wakeup()
        self._woken = False
        self._posted: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._listeners: set[Listener] = set()
        self._outlets: set[SocketOutlet] = set()
        self._thread: threading.Thread | None = None
        self._ident = 0
        self._stop_at: float | None = None
        self._left_for: float | None = None  # when the driver wants to work off what was left
        driver.on_left = self._look_again
        driver.pressing = self._is_pressed
        brokers.add(self)

    # For any thread.

    def listen(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | Callable[[], ssl.SSLContext] | None = None,
        websocket: Callable[[], WebSocketCodec] | None = None,
        role: str | None = None,
    ) -> Listener:
        """Listen at the first address of ``host``; port 0 takes a free one.

        ``tls`` is a context, or gives one for each connection; ``websocket`` makes one for a client.
        """
        self._check()
        listener = Listener(self, _bind(host, port), host, tls, websocket, role)
        try:
            self.begin()
        except ResourceAllocationError:
            listener.close_socket()
            raise
        self.post(partial(self._add, listener))
        try:
            self._check()
        except IllegalStateError:
            listener.close()  # a stop came between: it may have closed what it knew, and not this
            raise
        return listener

    def _check(self) -> None:
        if self._stop_at is not None:
            raise IllegalStateError(f"the broker {self.driver.name!r} is stopped")

    def begin(self) -> None:
        """Serve sockets, if that has not begun."""
        if self._thread is None:
            name = f"jmsish-broker-{self.driver.name}-io"
            self._thread = began(_log, self._run, name)
            if self._thread is None:
                raise ResourceAllocationError(f"the thread {name!r} cannot begin")
            self.driver.keep_time_by(self._look_again)

    def post(self, action: Callable[[], None]) -> None:
        try:
            self._posted.append(action)
            # The thread itself looks into the deque before it waits.
            if not self._woken and not self.is_current():
                self._woken = True
                self._wakeup.set()
        except BaseException:
            self._wakeup.set()  # the program was interrupted: those who come after it see that it was woken
            raise

    def _look_again(self) -> None:
        if not self.is_current():
            self.post(_nothing)

    def _is_pressed(self) -> bool:
        """Whether a socket has something, or an action waits; asked by the I/O thread between two slices of work."""
        return bool(self._posted) or bool(self._door.select(0))

    def is_current(self) -> bool:
        return threading.get_ident() == self._ident

    def drop(self, listener: Listener) -> None:
        """Listen there no more; when this returns the port is free."""
        done = threading.Event()

        def drop() -> None:
            self._door.watch(listener, 0, at_the_door=False)
            listener.close_socket()
            self._listeners.discard(listener)
            done.set()

        self.post(drop)
        if self._thread is not None and self._thread is not threading.current_thread():
            while self._thread.is_alive() and not done.wait(1):
                pass
            if not done.is_set():
                listener.close_socket()  # the thread has ended, and does nothing more

    def close_listeners(self) -> None:
        """Accept nobody any more."""
        for listener in list(self._listeners):
            listener.close()

    def stop(self) -> None:
        """Let the peers take what was said to them, for a moment; then close everything."""
        self.close_listeners()
        self._stop_at = monotonic() + _GRACE
        thread = self._thread
        if thread is None:
            self._close_all()
        else:
            self.post(lambda: None)
            thread.join(5)

    def disown(self) -> None:
        """After a fork, in the child: its copies of the sockets are closed, so that the parent's close ends them.

        What a selector watches is a thing of both, so the child has its selectors forget nothing: it closes them.
        """
        self._thread, self._ident, self._stop_at = None, 0, 0.0
        self._door.close()
        self._wakeup.close()
        for listener in self._listeners:
            listener.close_socket()
        for outlet in self._outlets:
            outlet.disown()
        for kept in (self._listeners, self._outlets, self._posted, self._timers):
            kept.clear()

    # For the I/O thread.

    def refresh(self) -> None:
        """Somebody is about to come in."""
        if self._refresh is not None:
            try:
                self._refresh()
            except Exception:
                tell_fault(_log, "what may have changed could not be looked at")

    def _add(self, listener: Listener) -> None:
        self._listeners.add(listener)
        self._door.watch(listener, selectors.EVENT_READ, at_the_door=False)

    def has_place(self, host: str) -> bool:
        """Whether one more of ``host`` may come in; for its sake somebody else may have to go."""
        goes = self._lobby.turned_away(host)
        if isinstance(goes, SocketOutlet):
            self.complain("too many connections have not opened: that from %s makes room", goes.peer)
            goes.close()
        elif goes is False:
            self.complain("too many connections from %s have not opened: another one is closed", host)
        return goes is not False

    def complain(self, text: str, *arguments: object) -> None:
        """A line in the log about who comes, and for a while no other: whoever is to be kept out does not write it."""
        now = monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + _QUIET
            _log.warning(text, *arguments)

    def admit(self, outlet: SocketOutlet, host: str) -> None:
        """A connection was accepted."""
        self._lobby.enter(outlet, host, monotonic())
        if not self._sweeping:
            self._sweep()
        self.serve(outlet)

    def serve(self, outlet: SocketOutlet) -> None:
        """A connection that was accepted, or made."""
        self._outlets.add(outlet)
        try:
            outlet.start()
        except Exception as error:
            _log.warning("the broker does not take the connection from %s: %s", outlet.peer, error)
            outlet.close()

    def watch(self, outlet: SocketOutlet, *, reading: bool, writing: bool) -> None:
        events = (selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if writing else 0)
        self._door.watch(outlet, events, at_the_door=outlet in self._lobby)

    def _sweep(self) -> None:
        """Close those whose handshakes of TLS or WebSocket take too long; one timer for all of them."""
        self._sweeping = bool(self._lobby) and self.handshake_timeout > 0
        if not self._sweeping:
            return
        for guest in self._lobby.came_before(monotonic() - self.handshake_timeout):
            if guest.is_shaking_hands:
                guest.close()
        self.after(min(self.handshake_timeout / 4, 1.0), self._sweep)

    def opened(self, outlet: SocketOutlet) -> None:
        """Its peer has opened."""
        self._lobby.leave(outlet)
        self._door.let_in(outlet)

    def forget(self, outlet: SocketOutlet) -> None:
        """It is closed."""
        self._outlets.discard(outlet)
        self._lobby.leave(outlet)

    def pause(self, listener: Listener, seconds: float) -> None:
        """Accept nothing for a while."""
        self._door.watch(listener, 0, at_the_door=False)

        def resume() -> None:
            if listener in self._listeners:
                self._door.watch(listener, selectors.EVENT_READ, at_the_door=False)

        self.after(seconds, resume)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (monotonic() + seconds, next(self._numbers), action))

    def _run(self) -> None:
        self._ident = threading.get_ident()
        self._door.watch(self._wakeup, selectors.EVENT_READ, at_the_door=False)
        while self._stop_at is None or (self._outlets and monotonic() < self._stop_at):
            try:
                self._turn()
            except Exception:
                # Of a clock, or a handler of the log. What was not heard is heard again, and not at once for ever.
                self._left_for = _PAUSE
                tell_fault(_log, "a fault in the I/O thread of the broker %r", self.driver.name)
        self._close_all()

    def _turn(self) -> None:
        patience = self._patience()
        ready = self._alertness.look(self._door.select) if patience != 0 else []
        ready = ready or self._door.select(patience)
        somebody_comes = False
        for number, (key, mask) in enumerate(ready, 1):
            if key.data is self._door:
                somebody_comes = True
            else:
                self._hear(key.data, mask)
            if number % _LOT == 0:
                self.driver.pump_between()
        if somebody_comes:
            self._let_in()
        self._woken = False  # first: who posts after this wakes us again
        self._run_due()
        self._left_for = self.driver.work_off()

    def _hear(self, watched: Watched, mask: int) -> None:
        try:
            if mask & selectors.EVENT_READ:
                watched.readable()
            if mask & selectors.EVENT_WRITE:
                watched.writable()
        except Exception:
            tell_fault(_log, "a fault met %s", watched)
            watched.close()

    def _let_in(self) -> None:
        """Those at the door have a slice of time, one of them at least, after all who are in."""
        self.driver.pump_between()
        end = monotonic() + SLICE
        for watched, mask in self._door.waiting():
            self._hear(watched, mask)
            self.driver.pump_between()
            if monotonic() >= end:
                break

    def _run_due(self) -> None:
        for _ in range(len(self._posted)):
            self._act(self._posted.popleft())
        now = monotonic()
        while self._timers and self._timers[0][0] <= now:
            self._act(heapq.heappop(self._timers)[2])

    def _act(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception:
            tell_fault(_log, "a fault in the I/O thread of the broker %r", self.driver.name)

    def _patience(self) -> float:
        if self._posted:
            return 0.0
        if self._left_for is not None:
            return self._left_for
        ends = [self.driver.due, self._timers[0][0] if self._timers else NEVER]
        if self._stop_at is not None:
            ends.append(self._stop_at)
        return min(max(min(ends) - monotonic(), 0.0), _LONGEST_WAIT)

    def _close_all(self) -> None:
        while self._posted:
            self._act(self._posted.popleft())
        for listener in list(self._listeners):
            listener.close_socket()
        for outlet in list(self._outlets):
            outlet.close()
        self._door.close()
        self._wakeup.close()


def _bind(host: str, port: int) -> socket.socket:
    where = address_text(host, port)
    failure: Exception | None = None
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ResourceAllocationError(f"cannot listen on {where}: {error}") from error
    for family, kind, protocol, _, address in addresses:
        listening = socket.socket(family, kind, protocol)
        try:
            # Else the port of a broker just stopped is refused for a minute.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(1024)
            listening.setblocking(False)
            return listening
        except OSError as error:
            listening.close()
            failure = error
    raise ResourceAllocationError(f"cannot listen on {where}: {getattr(failure, 'strerror', failure)}") from failure


def _nothing() -> None:
    pass
