"""TCP and TLS in front of a broker: the listening sockets, and one I/O thread for all connections of a broker.

A turn of the thread: wait; read what is there from every socket that has something, holding no lock; then serve the
broker once for all of it (:meth:`BrokerDriver.pump`). Output goes out as :mod:`jmsish.drivers.outlet` says.
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
from typing import Any

from jmsish.drivers.alertness import Alertness
from jmsish.drivers.layers import layer_of
from jmsish.drivers.outlet import CHUNK, SocketOutlet
from jmsish.drivers.serving import BrokerDriver
from jmsish.drivers.sockets import address_text
from jmsish.drivers.tls import TlsCodec
from jmsish.drivers.wakeup import Wakeup
from jmsish.drivers.websocket import WebSocketCodec
from jmsish.errors import IllegalStateError, ResourceAllocationError

__all__ = ["Listener", "SocketReactor"]

_log = logging.getLogger("jmsish.broker")

#: Connections are accepted in lots of so many, so that a flood of them does not stop those that are there.
_ACCEPTS = 64

#: No descriptors left: nothing is accepted for so long, instead of being told so again at once.
_PAUSE = 0.2

#: Several connections at a time make a crowd for so long.
_CROWD = 0.1

#: At a stop the peers have so long to take our last words and to close.
_GRACE = 0.5


class Listener:
    """A listening socket of a broker: ``url``, ``host``, ``port``, ``close()``.

    Closing it ends the listening; connections that were accepted stay.
    """

    def __init__(
        self,
        reactor: SocketReactor,
        listening: socket.socket,
        host: str,
        tls: ssl.SSLContext | Callable[[], ssl.SSLContext] | None,
        websocket: Callable[[], WebSocketCodec] | None = None,
    ):
        self.host = host
        self.port: int = listening.getsockname()[1]
        self._reactor = reactor
        self._socket = listening
        self._tls = tls
        self._websocket = websocket
        self._closed = False

    @property
    def url(self) -> str:
        scheme = ("amqp" if self._websocket is None else "amqpws") + ("" if self._tls is None else "s")
        return f"{scheme}://{address_text(self.host, self.port)}"

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
        """Accept who is waiting: by the I/O thread."""
        self._reactor.refresh()
        for _ in range(_ACCEPTS):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if not self._closed:
                    self._refuse(error)
                return
            self._admit(accepted, address_text(address[0], address[1]))

    def _refuse(self, error: OSError) -> None:
        _log.warning("%s cannot accept connections: %s", self.url, error.strerror)
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            self._reactor.pause(self, _PAUSE)

    def _admit(self, accepted: socket.socket, peer: str) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            context = self._tls() if callable(self._tls) else self._tls
            tls = None if context is None else TlsCodec(context, server_side=True)
            layer = layer_of(tls, None if self._websocket is None else self._websocket())
        except (OSError, ssl.SSLError) as error:
            _log.warning("%s cannot serve the connection from %s: %s", self.url, peer, error)
            accepted.close()
            return
        self._reactor.admit(SocketOutlet(self._reactor, accepted, peer, layer))

    def close_socket(self) -> None:
        self._socket.close()

    def __repr__(self) -> str:
        return f"<Listener {self.url}{', closed' if self._closed else ''}>"


class SocketReactor:
    """The I/O thread of one broker. It is a daemon, started with the first listener."""

    def __init__(self, driver: BrokerDriver, refresh: Callable[[], None] | None = None) -> None:
        """``refresh`` is called before connections are accepted: what may have changed is looked at there."""
        self.driver = driver
        self._refresh = refresh
        self.buffer = memoryview(bytearray(CHUNK))  # of the I/O thread, for every read
        self._alertness = Alertness()
        self._selector = selectors.DefaultSelector()
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
        self._crowded_until = 0.0

    # For any thread.

    def listen(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | Callable[[], ssl.SSLContext] | None = None,
        websocket: Callable[[], WebSocketCodec] | None = None,
    ) -> Listener:
        """Listen at the first address of ``host``; port 0 takes a free one.

        ``tls`` is a context, or gives one for each connection; ``websocket`` makes one for a client.
        """
        if self._stop_at is not None:
            raise IllegalStateError(f"the broker {self.driver.name!r} is stopped")
        listener = Listener(self, _bind(host, port), host, tls, websocket)
        self.post(partial(self._add, listener))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"jmsish-broker-{self.driver.name}-io", daemon=True)
            self._thread.start()
        return listener

    def post(self, action: Callable[[], None]) -> None:
        self._posted.append(action)
        # The thread itself looks into the deque before it waits.
        if not self._woken and not self.is_current():
            self._woken = True
            self._wakeup.set()

    def is_current(self) -> bool:
        return threading.get_ident() == self._ident

    def drop(self, listener: Listener) -> None:
        """Listen there no more; when this returns the port is free."""
        done = threading.Event()

        def drop() -> None:
            self._unwatch(listener)
            listener.close_socket()
            self._listeners.discard(listener)
            done.set()

        self.post(drop)
        if self._thread is not None and self._thread is not threading.current_thread():
            while self._thread.is_alive() and not done.wait(1):
                pass

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

    # For the I/O thread.

    def refresh(self) -> None:
        """Somebody is about to come in."""
        if self._refresh is not None:
            try:
                self._refresh()
            except Exception:
                _log.exception("what may have changed could not be looked at")

    def _add(self, listener: Listener) -> None:
        self._listeners.add(listener)
        self._selector.register(listener, selectors.EVENT_READ, listener)

    def admit(self, outlet: SocketOutlet) -> None:
        """A connection was accepted."""
        self._outlets.add(outlet)
        try:
            outlet.start()
        except Exception as error:
            _log.warning("the broker does not take the connection from %s: %s", outlet.peer, error)
            outlet.close()

    def is_crowded(self) -> bool:
        """Whether several connections have had something to do at a time of late: then none has long turns."""
        return self._crowded_until > monotonic()

    def watch(self, outlet: SocketOutlet, *, reading: bool, writing: bool) -> None:
        events = (selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if writing else 0)
        key = self._selector.get_map().get(outlet)
        if not events:
            self._unwatch(outlet)
        elif key is None:
            self._selector.register(outlet, events, outlet)
        elif key.events != events:
            self._selector.modify(outlet, events, outlet)

    def _unwatch(self, watched: Any) -> None:
        if watched.fileno() >= 0 and watched in self._selector.get_map():
            self._selector.unregister(watched)

    def forget(self, outlet: SocketOutlet) -> None:
        """It is closed."""
        self._outlets.discard(outlet)

    def pause(self, listener: Listener, seconds: float) -> None:
        """Accept nothing for a while."""
        self._unwatch(listener)

        def resume() -> None:
            if listener in self._listeners:
                self._selector.register(listener, selectors.EVENT_READ, listener)

        self.after(seconds, resume)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (monotonic() + seconds, next(self._numbers), action))

    def _run(self) -> None:
        self._ident = threading.get_ident()
        self._selector.register(self._wakeup, selectors.EVENT_READ, None)
        while self._stop_at is None or (self._outlets and monotonic() < self._stop_at):
            self._turn()
        self._close_all()

    def _turn(self) -> None:
        patience = self._patience()
        ready = self._alertness.look(self._selector.select) if patience != 0 else []
        ready = ready or self._selector.select(patience)
        if len(ready) > 1:
            self._crowded_until = monotonic() + _CROWD
        for key, mask in ready:
            if key.data is None:
                self._wakeup.clear()
                continue
            try:
                if mask & selectors.EVENT_READ:
                    key.data.readable()
                if mask & selectors.EVENT_WRITE:
                    key.data.writable()
            except Exception:
                _log.exception("a fault met %s", key.data)
                key.data.close()
        self._woken = False  # first: who posts after this wakes us again
        self._run_due()
        self.driver.pump()

    def _run_due(self) -> None:
        actions = [self._posted.popleft() for _ in range(len(self._posted))]
        now = monotonic()
        while self._timers and self._timers[0][0] <= now:
            actions.append(heapq.heappop(self._timers)[2])
        for action in actions:
            try:
                action()
            except Exception:
                _log.exception("a fault in the I/O thread of the broker %r", self.driver.name)

    def _patience(self) -> float | None:
        if self._posted:
            return 0
        ends = [self._timers[0][0]] if self._timers else []
        if self._stop_at is not None:
            ends.append(self._stop_at)
        return max(min(ends) - monotonic(), 0.0) if ends else None

    def _close_all(self) -> None:
        while self._posted:
            self._posted.popleft()()
        for listener in list(self._listeners):
            listener.close_socket()
        for outlet in list(self._outlets):
            outlet.close()
        self._selector.close()
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
