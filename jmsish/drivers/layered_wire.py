"""The wire of an asyncio client with something between socket and AMQP: a proxy's tunnel, TLS in it, a WebSocket.

What asyncio does itself it is let do: TLS is its own, below the octets that come here.
"""

from __future__ import annotations

import asyncio
from ssl import SSLContext
from typing import Any

from jmsish.drivers.layers import LAYER_FAILURES, sentence_of
from jmsish.drivers.loop import LoopDriver
from jmsish.drivers.proxy import ProxyFailure, ProxyTunnel
from jmsish.drivers.sockets import address_text
from jmsish.drivers.websocket import WebSocketCodec
from jmsish.drivers.wires import SocketWire, reach
from jmsish.errors import ConnectionLostError
from jmsish.options import Proxy

__all__ = ["LayeredWire", "join_layered"]


async def join_layered(
    driver: LoopDriver,
    host: str,
    port: int,
    *,
    timeout: float | None,
    ssl_context: SSLContext | None = None,
    server_hostname: str | None = None,
    websocket: WebSocketCodec | None = None,
    proxy: Proxy | None = None,
) -> None:
    """Connect by proxy, TLS and WebSocket, as far as they are given, in that order, and go on over what there is then.

    Raises `ConnectionLostError` naming host, port and cause.
    """
    where = address_text(host, port)
    wire = LayeredWire(driver, where)
    try:
        way = where if proxy is None else f"{where} by the proxy {address_text(proxy.host, proxy.port)}"
        await reach(_connect(wire, host, port, ssl_context, server_hostname or host, websocket, proxy), way, timeout)
    except BaseException:
        wire.cut()
        raise
    driver.join_wire(wire)


async def _connect(
    wire: LayeredWire,
    host: str,
    port: int,
    ssl_context: SSLContext | None,
    server_hostname: str,
    websocket: WebSocketCodec | None,
    proxy: Proxy | None,
) -> None:
    loop = asyncio.get_running_loop()
    name = server_hostname if ssl_context is not None else None
    if proxy is None:
        await loop.create_connection(lambda: wire, host, port, ssl=ssl_context, server_hostname=name)
    else:
        await loop.create_connection(lambda: wire, proxy.host, proxy.port)
        await wire.tunnel(ProxyTunnel(proxy, address_text(host, port)))
        if ssl_context is not None:
            await wire.secure(ssl_context, server_hostname)
    if websocket is not None:
        await wire.upgrade(websocket)


class LayeredWire(SocketWire):
    """A connection whose octets pass a proxy's answer first, and a WebSocket after it."""

    def __init__(self, driver: LoopDriver, peer: str) -> None:
        super().__init__(driver, peer)
        self._tunnel: ProxyTunnel | None = None
        self._websocket: WebSocketCodec | None = None
        self._shaken: asyncio.Future[None] | None = None

    # -- the handshakes, one after the other -----------------------------------------------------------------------

    async def tunnel(self, tunnel: ProxyTunnel) -> None:
        self._tunnel = tunnel
        super().write(tunnel.request)
        await self._shake()
        self._tunnel = None

    async def secure(self, context: SSLContext, host: str) -> None:
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(self._transport, self, context, server_hostname=host)
        self._transport = secured

    async def upgrade(self, websocket: WebSocketCodec) -> None:
        self._websocket = websocket
        websocket.start()
        super().write(websocket.take())
        await self._shake()

    async def _shake(self) -> None:
        self._shaken = asyncio.get_running_loop().create_future()
        await self._shaken

    def _conclude(self, failure: str | None) -> None:
        """The handshake under way has ended, well or with a failure."""
        if self._shaken is None or self._shaken.done():
            return
        if failure is None:
            self._shaken.set_result(None)
        else:
            text = f"cannot connect to {self.peer}: {failure}"
            self._shaken.set_exception(ConnectionLostError(text, scope="connection"))

    # -- octets ----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._tunnel is not None:
            try:
                data = self._tunnel.receive(data)
            except ProxyFailure as failure:
                self._conclude(str(failure))
                return
            if self._tunnel.established:
                self._conclude(None)
        elif self._websocket is not None:
            data = self._unwrap(self._websocket, data)
        if data:
            super().data_received(data)

    def _unwrap(self, websocket: WebSocketCodec, data: bytes) -> bytes:
        was_established = websocket.established
        try:
            octets = websocket.receive(data)
        except LAYER_FAILURES as failure:
            octets = b""
            text = sentence_of(failure)
            if was_established:
                self._driver.receive_eof(ConnectionLostError(text, scope="connection"))
            else:
                self._conclude(text)
        if websocket.established:
            self._conclude(None)
        self._speak(websocket)
        if websocket.ended and self._transport is not None:
            asyncio.get_running_loop().call_soon(self.close)
        return octets

    def connection_lost(self, error: Exception | None) -> None:
        if self._shaken is None or not self._shaken.done():
            where = "WebSocket: the peer" if self._websocket is not None else "the proxy"
            self._conclude(f"{where} ended the connection during the handshake")
            return
        super().connection_lost(error)

    def _speak(self, websocket: WebSocketCodec) -> None:
        """What the WebSocket has to say, by itself or for the driver."""
        if self._transport is not None and websocket.has_output:
            self._transport.write(websocket.take())

    def write(self, data: bytes) -> None:
        websocket: Any = self._websocket
        if websocket is None:
            super().write(data)
        else:
            websocket.send(data)
            super().write(websocket.take())

    def close(self) -> None:
        if self._websocket is not None and self._transport is not None and not self._transport.is_closing():
            self._websocket.close()
            self._speak(self._websocket)
        super().close()
