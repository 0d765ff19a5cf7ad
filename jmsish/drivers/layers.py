"""What stands between a socket and the octets of AMQP: TLS, WebSocket, or both, one in the other.

A layer has no socket. What came from the wire goes into :meth:`Layer.receive`, which gives the octets of the layer
above; :meth:`Layer.send` takes those, and :meth:`Layer.take` gives what is to be written after every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from jmsish.drivers.tls import TlsCodec, TlsFailure
from jmsish.drivers.websocket import WebSocketCodec, WebSocketFailure

__all__ = ["LAYER_FAILURES", "Layer", "Stack", "kind_of", "layer_of", "name_of", "sentence_of", "step_of"]

LAYER_FAILURES = (TlsFailure, WebSocketFailure)


def sentence_of(failure: Exception) -> str:
    """What went wrong, and in which layer."""
    return f"{'TLS' if isinstance(failure, TlsFailure) else 'WebSocket'}: {failure}"


class Layer(Protocol):
    """Octets of the wire below, of AMQP above. Raises one of :data:`LAYER_FAILURES`."""

    @property
    def established(self) -> bool:
        """The handshake is done: octets of AMQP may pass."""

    @property
    def ended(self) -> bool:
        """The peer has said that nothing more comes, though its socket may be open."""

    @property
    def unread(self) -> bool:
        """There is more in what came than :meth:`receive` gave: it gives more when called with nothing new."""

    @property
    def has_output(self) -> bool: ...

    def start(self) -> None:
        """Begin the handshake; a server waits for what comes."""

    def receive(self, data: bytes) -> bytes: ...

    def send(self, data: bytes) -> None: ...

    def take(self) -> bytes: ...

    def close(self) -> None:
        """Say that nothing more comes; the peer's answer is not waited for."""

    @property
    def is_secure(self) -> bool:
        """Whether there is TLS in it."""

    def peer_certificate(self) -> Mapping[str, Any] | None:
        """What was verified of the peer's certificate, if it showed one."""


class Stack:
    """WebSocket inside of TLS."""

    def __init__(self, lower: TlsCodec, upper: WebSocketCodec) -> None:
        self._lower = lower
        self._upper = upper
        self._joined = False

    @property
    def is_joined(self) -> bool:
        """TLS is done, and what is spoken now is WebSocket."""
        return self._joined

    @property
    def established(self) -> bool:
        return self._upper.established

    @property
    def ended(self) -> bool:
        return self._upper.ended or (self._lower.ended and not self._upper.unread)

    @property
    def unread(self) -> bool:
        return self._upper.unread

    @property
    def has_output(self) -> bool:
        return self._upper.has_output or self._lower.has_output

    def start(self) -> None:
        self._lower.start()

    def receive(self, data: bytes) -> bytes:
        plain = self._lower.receive(data) if data else b""
        if not self._joined and self._lower.established:
            self._joined = True
            self._upper.start()
        return self._upper.receive(plain) if plain or self.unread else b""

    def send(self, data: bytes) -> None:
        self._upper.send(data)

    def take(self) -> bytes:
        if self._joined:
            data = self._upper.take()
            if data:
                self._lower.send(data)
        return self._lower.take()

    def close(self) -> None:
        if self._joined:
            self._upper.close()
            said = self._upper.take()
            if said:
                self._lower.send(said)
        self._lower.close()

    @property
    def is_secure(self) -> bool:
        return self._lower.is_secure

    def peer_certificate(self) -> Mapping[str, Any] | None:
        return self._lower.peer_certificate()


def layer_of(tls: TlsCodec | None, websocket: WebSocketCodec | None) -> Layer | None:
    """What there is of both, as one."""
    if tls is not None and websocket is not None:
        return Stack(tls, websocket)
    return websocket if tls is None else tls


def kind_of(layer: Layer) -> type[TlsFailure] | type[WebSocketFailure]:
    """The failure of a layer's handshake, as far as it has come, that is nobody's word."""
    if isinstance(layer, Stack):
        return WebSocketFailure if layer.is_joined else TlsFailure
    return TlsFailure if isinstance(layer, TlsCodec) else WebSocketFailure


def step_of(layer: Layer) -> str:
    """The handshake that is under way."""
    return "TLS" if kind_of(layer) is TlsFailure else "WebSocket"


def name_of(layer: Layer) -> str:
    """The layer as it stands in a repr."""
    if isinstance(layer, Stack):
        return "WebSocket over TLS"
    return "TLS" if isinstance(layer, TlsCodec) else "WebSocket"
