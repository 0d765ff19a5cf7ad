"""A toy broker behind each kind of wire."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from functools import cache
from time import time

import pytest
import trustme

from jmsish.drivers.listener import Listener, SocketReactor
from jmsish.drivers.serving import BrokerDriver
from jmsish.drivers.sockets import connect_tcp
from jmsish.drivers.transport import Transport
from jmsish.drivers.websocket import ClientWebSocket, ServerWebSocket

from .toy import ToyBroker

PATIENCE = 20


@cache
def authority() -> trustme.CA:
    return trustme.CA()


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert("localhost", "127.0.0.1", "::1").configure_cert(context)
    return context


def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority().configure_trust(context)
    return context


class Wire:
    """A running toy broker and a way to connect to it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.broker = ToyBroker(time)
        self.driver = BrokerDriver(self.broker, name="toy", clock=time)
        self.reactor = SocketReactor(self.driver)
        self.listener: Listener | None = None
        self._transports: list[Transport] = []
        if kind != "pipe":
            tls = server_context() if kind in ("tls", "wss") else None
            self.listener = self.reactor.listen("127.0.0.1", 0, tls, ServerWebSocket if kind in ("ws", "wss") else None)

    @property
    def port(self) -> int:
        assert self.listener is not None
        return self.listener.port

    def connect(self, name: str = "") -> Transport:
        if self.listener is None:
            transport: Transport = self.driver.connect("vm://toy")
        else:
            context = client_context() if self.kind in ("tls", "wss") else None
            websocket = ClientWebSocket(f"127.0.0.1:{self.port}", "/") if self.kind in ("ws", "wss") else None
            transport = connect_tcp("127.0.0.1", self.port, timeout=PATIENCE, ssl_context=context, websocket=websocket)
        self._transports.append(transport)
        assert transport.recv(PATIENCE) == b"hello\n"
        if name:
            transport.send(b"name %s\necho\n" % name.encode())
            assert transport.recv(PATIENCE) == b"\n"
        return transport

    def stop(self) -> None:
        for transport in self._transports:
            transport.close()
        self.reactor.close_listeners()
        self.driver.stop()
        self.reactor.stop()


class Lines:
    """Reads whole lines from a transport."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.rest = b""

    def next(self, timeout: float = PATIENCE) -> bytes:
        while b"\n" not in self.rest:
            data = self.transport.recv(timeout)
            if not data:
                raise EOFError(self.rest)
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line


@pytest.fixture(params=["pipe", "tcp", "tls", "ws", "wss"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    wire = Wire(request.param)
    yield wire
    wire.stop()


@pytest.fixture(params=["tcp", "tls", "wss"])
def net(request: pytest.FixtureRequest) -> Iterator[Wire]:
    wire = Wire(request.param)
    yield wire
    wire.stop()


@pytest.fixture
def tcp() -> Iterator[Wire]:
    wire = Wire("tcp")
    yield wire
    wire.stop()


@pytest.fixture
def tls() -> Iterator[Wire]:
    wire = Wire("tls")
    yield wire
    wire.stop()
