"""The wire of an asyncio client with something between socket and AMQP: a proxy's tunnel, TLS, a WebSocket.

The layers are those of the blocking client (`layers.py`), so both faces say the same of what is wrong with them.
"""

from __future__ import annotations

import asyncio
from ssl import SSLContext

from jmsish.drivers.layers import LAYER_FAILURES, Layer, layer_of, sentence_of, step_of
from jmsish.drivers.loop import LoopDriver
from jmsish.drivers.proxy import ProxyFailure, ProxyTunnel
from jmsish.drivers.sockets import address_text, tls_of
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

    Raises `ConnectionLostError` naming host, port, what was being done and the cause.
    """
    where = address_text(host, port)
    wire = LayeredWire(driver, where)
    try:
        layer = layer_of(tls_of(ssl_context, server_hostname or host, where), websocket)
        way = where if proxy is None else f"{where} by the proxy {address_text(proxy.host, proxy.port)}"
        await reach(_connect(wire, host, port, layer, proxy), way, timeout, lambda: wire.step)
    except BaseException:
        wire.cut()
        raise
    driver.join_wire(wire)


async def _connect(wire: LayeredWire, host: str, port: int, layer: Layer | None, proxy: Proxy | None) -> None:
    loop = asyncio.get_running_loop()
    if proxy is None:
        await loop.create_connection(lambda: wire, host, port)
    else:
        await loop.create_connection(lambda: wire, proxy.host, proxy.port)
        await wire.tunnel(ProxyTunnel(proxy, address_text(host, port)))
    if layer is not None:
        await wire.upgrade(layer)


class LayeredWire(SocketWire):
    """A connection whose octets pass a proxy's answer first, and the layers after it."""

    def __init__(self, driver: LoopDriver, peer: str) -> None:
        super().__init__(driver, peer)
        self._tunnel: ProxyTunnel | None = None
        self._layer: Layer | None = None
        self._shaken: asyncio.Future[None] | None = None

    @property
    def step(self) -> str:
        """The handshake that is under way; empty before the first."""
        if self._layer is not None:
            return step_of(self._layer)
        return "the proxy" if self._tunnel is not None else ""

    # -- the handshakes, one after the other -----------------------------------------------------------------------

    async def tunnel(self, tunnel: ProxyTunnel) -> None:
        self._tunnel = tunnel
        super().write(tunnel.request)
        await self._shake()
        self._tunnel = None

    async def upgrade(self, layer: Layer) -> None:
        self._layer = layer
        layer.start()
        self._speak(layer)
        await self._shake()

    async def _shake(self) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the peer ended the connection")
        self._shaken = asyncio.get_running_loop().create_future()
        await self._shaken

    def _conclude(self, failure: str | None, cause: Exception | None = None) -> None:
        """The handshake under way has ended, well or with a failure."""
        if self._shaken is None or self._shaken.done():
            return
        if failure is None:
            self._shaken.set_result(None)
        else:
            error = ConnectionLostError(f"cannot connect to {self.peer}: {failure}", scope="connection")
            error.__cause__ = cause
            self._shaken.set_exception(error)

    # -- octets ----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._tunnel is not None:
            try:
                data = self._tunnel.receive(data)
            except ProxyFailure as failure:
                self._conclude(str(failure), failure)
                return
            if self._tunnel.established:
                self._conclude(None)
        elif self._layer is not None:
            data = self._unwrap(self._layer, data)
        if data:
            super().data_received(data)

    def _unwrap(self, layer: Layer, data: bytes) -> bytes:
        was_established = layer.established
        octets = b""
        try:
            octets = layer.receive(data)
        except LAYER_FAILURES as failure:
            text = sentence_of(failure)
            if was_established:
                self._end(ConnectionLostError(text, scope="connection"))
            else:
                self._conclude(text, failure)
        if layer.established:
            self._conclude(None)
        self._speak(layer)
        if layer.ended and self._transport is not None:
            asyncio.get_running_loop().call_soon(self.close)
        return octets

    def connection_lost(self, error: Exception | None) -> None:
        if self._shaken is None or not self._shaken.done():
            why = "the peer ended the connection during the handshake"
            if error is not None:
                why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            self._conclude(f"{self.step}: {why}", error)
            return
        super().connection_lost(error)

    def _speak(self, layer: Layer) -> None:
        """What a layer has to say, by itself or for the driver."""
        if self._transport is not None and layer.has_output and not self._transport.is_closing():
            self._transport.write(layer.take())

    def write(self, data: bytes) -> None:
        layer = self._layer
        if layer is None:
            super().write(data)
            return
        try:
            layer.send(data)
        except LAYER_FAILURES as failure:
            text = f"the connection to {self.peer} failed: {sentence_of(failure)}"
            raise ConnectionLostError(text, scope="connection") from failure
        super().write(layer.take())

    def close(self) -> None:
        if self._layer is not None and self._transport is not None and not self._transport.is_closing():
            self._layer.close()
            self._speak(self._layer)
        super().close()
