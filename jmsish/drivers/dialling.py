"""Dials what a broker's core wants dialled, and tells it what came of it (R11)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Protocol
from urllib.parse import unquote, urlsplit

from jmsish.drivers import registry
from jmsish.drivers.layers import Layer, layer_of, sentence_of
from jmsish.drivers.listener import SocketReactor
from jmsish.drivers.outlet import HANDSHAKE_TIMEOUT, SocketOutlet
from jmsish.drivers.serving import BrokerDriver, ServerConnection
from jmsish.drivers.sockets import address_text
from jmsish.drivers.spans import connect_drivers
from jmsish.drivers.tls import TlsCodec
from jmsish.errors import ConnectionLostError, IllegalStateError

__all__ = ["Dialler"]

PORTS = {"amqp": 5672, "amqps": 5671}

#: A connection that is not there after so many seconds is tried again.
DIAL_TIMEOUT = 5.0


class Wanted(Protocol):
    """Who wants a connection."""

    def dialled(self, peer: str) -> ServerConnection | None:
        """There is a way for octets; None where it is not wanted any more."""

    def failed(self, reason: str) -> None:
        """It could not be dialled."""


class Dial(Protocol):
    """What is to be dialled."""

    @property
    def connector(self) -> Wanted:
        """Who wants it."""

    @property
    def url(self) -> str:
        """What to dial: amqp, amqps or vm."""


class DialledOutlet(SocketOutlet):
    """A socket that was connected from here."""

    __slots__ = ("_reason", "_wanted")

    def __init__(
        self, reactor: SocketReactor, connected: socket.socket, peer: str, layer: Layer | None, wanted: Wanted
    ) -> None:
        super().__init__(reactor, connected, peer, layer)
        self._wanted = wanted
        self._reason = " ended the connection before it began"

    def start(self) -> None:
        self._watch()
        if self._layer is None:
            self._open()
        else:
            self._layer.start()
            self.flush()
            self._reactor.after(HANDSHAKE_TIMEOUT, self._give_up)

    def _give_up(self) -> None:
        if self._lane is None:
            self._reason = f" did not finish the TLS handshake within {HANDSHAKE_TIMEOUT:g} s"
            self.close()

    def _layer_failed(self, failure: Exception) -> None:
        super()._layer_failed(failure)
        self._reason = f": {sentence_of(failure)}"

    def _open(self) -> None:
        self._lane = self._reactor.driver.adopt(self, lambda: self._wanted.dialled(self.peer), self.resume)
        if self._lane is None:
            self.close()

    def close(self) -> None:
        was_closed = self._closed
        super().close()
        if not was_closed and self._lane is None:
            self._reactor.driver.call(lambda: self._wanted.failed(f"{self.peer}{self._reason}"))


class Dialler:
    """Dials for one driver, by threads that hold nothing (:class:`~jmsish.drivers.asking.Asking`)."""

    def __init__(
        self, driver: BrokerDriver, reactor: Callable[[], SocketReactor], ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._driver = driver
        self._reactor = reactor
        self._ssl_context = ssl_context

    def dial(self, dial: Dial) -> None:
        """Dial one; what came of it is told the core."""
        try:
            self._connect(dial)
        except Exception as error:
            reason = str(error) or type(error).__name__
            self._driver.call(lambda: dial.connector.failed(reason))

    def _connect(self, dial: Dial) -> None:
        url = urlsplit(dial.url)
        if url.scheme == "vm":
            name = unquote(url.netloc.rpartition("@")[2])  # neither an error nor a view shows who we say we are
            connect_drivers(self._driver, lambda: dial.connector.dialled(f"vm://{name}"), registry.find(name))
            return
        host, port = url.hostname or "localhost", url.port or PORTS[url.scheme]
        peer = address_text(host, port)
        try:
            connected = socket.create_connection((host, port), DIAL_TIMEOUT)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConnectionLostError(f"cannot connect to {peer}: {reason}") from error
        try:
            self._admit(dial, connected, peer, host if url.scheme == "amqps" else None)
        except BaseException:
            connected.close()
            raise

    def _admit(self, dial: Dial, connected: socket.socket, peer: str, secured: str | None) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        layer = None
        if secured is not None:
            context = self._ssl_context or ssl.create_default_context()
            layer = layer_of(TlsCodec(context, server_hostname=secured), None)
        reactor = self._reactor()
        if reactor.driver is not self._driver:
            raise IllegalStateError(f"the broker {self._driver.name!r} was stopped, and started anew")
        outlet = DialledOutlet(reactor, connected, peer, layer, dial.connector)
        reactor.post(partial(reactor.serve, outlet))
