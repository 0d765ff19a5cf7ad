"""TCP, TLS and WebSocket for the blocking client: a thread that sends and one that waits, straight on the socket.

The socket is blocking and used with ``MSG_DONTWAIT``; waiting is ``poll``, which looks at the socket and at a wake-up
beside it. Without a layer between socket and AMQP no lock is held over a system call. With one, what is taken from the
layer has to reach the wire in the order in which it was taken, and the thread that reads has something to say too (the
answer to a ping): it says it if nobody is writing, and who writes looks again afterwards.

Closing while another thread is in a system call: a descriptor that is closed there may be given to somebody else's file
at once, and the thread would read from that. So :meth:`SocketTransport.close` shuts the socket down, which brings the
thread out, and the last one out closes the descriptor.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
from contextlib import suppress
from time import monotonic

from jmsish.drivers.alertness import Alertness
from jmsish.drivers.layers import LAYER_FAILURES, Layer, kind_of, layer_of, name_of, sentence_of, step_of
from jmsish.drivers.proxy import ProxyFailure, ProxyTunnel
from jmsish.drivers.tls import TlsCodec, TlsFailure
from jmsish.drivers.transport import InputFirst, LayerLost, SendBlocked
from jmsish.drivers.wakeup import Wakeup
from jmsish.drivers.websocket import WebSocketCodec
from jmsish.errors import ConnectionLostError
from jmsish.options import Proxy

__all__ = ["SocketTransport", "address_text", "reason_of", "connect_tcp", "tls_of"]

_READ_SIZE = 1 << 18

#: A peer that takes nothing for so many seconds is given up.
STALL_TIMEOUT = 60.0


def address_text(host: str, port: int) -> str:
    """``host:port`` as it stands in a URL: an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def connect_tcp(
    host: str,
    port: int,
    *,
    timeout: float | None = None,
    ssl_context: ssl.SSLContext | None = None,
    server_hostname: str | None = None,
    websocket: WebSocketCodec | None = None,
    proxy: Proxy | None = None,
) -> SocketTransport:
    """Connect, through ``proxy``, with ``ssl_context`` by TLS, with ``websocket`` in that, within ``timeout`` seconds.

    Raises :class:`~jmsish.errors.ConnectionLostError` that names host and port, what was being done, and why it failed.
    """
    deadline = None if timeout is None else monotonic() + timeout
    peer = address_text(host, port)
    reached = address_text(proxy.host, proxy.port) if proxy is not None else peer
    try:
        connected = _connect(host, port, deadline) if proxy is None else _connect(proxy.host, proxy.port, deadline)
        transport = SocketTransport(connected, peer)
    except (OSError, UnicodeError) as error:
        where = peer if proxy is None else f"{peer} by the proxy {reached}"
        raise ConnectionLostError(f"cannot connect to {where}: {reason_of(error, timeout)}") from error
    layer: Layer | None = None
    try:
        if proxy is not None:
            transport.start_tunnel(ProxyTunnel(proxy, peer), deadline)
        layer = layer_of(tls_of(ssl_context, server_hostname or host, peer), websocket)
        if layer is not None:
            transport.start_layer(layer, deadline)
    except (OSError, ConnectionLostError) as error:
        transport.close()
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        step = f"the proxy {reached}" if layer is None else step_of(layer)
        raise ConnectionLostError(f"cannot connect to {peer}: {step}: {_reason(cause, timeout)}") from cause
    except BaseException:
        transport.close()
        raise
    return transport


def tls_of(context: ssl.SSLContext | None, server_hostname: str, peer: str) -> TlsCodec | None:
    """The TLS of a client, where there is any. Raises :class:`~jmsish.errors.ConnectionLostError` for no host name."""
    try:
        return None if context is None else TlsCodec(context, server_hostname=server_hostname)
    except (TlsFailure, ValueError) as failure:
        raise ConnectionLostError(f"cannot connect to {peer}: TLS: {failure}") from failure


def _connect(host: str, port: int, deadline: float | None) -> socket.socket:
    """A connected socket to the first address of the host that answers."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError | None = None
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        # What is left of the time is shared, so that one address that swallows packets does not use it all up.
        left = None if deadline is None else (deadline - monotonic()) / (len(addresses) - index)
        if left is not None and left <= 0:
            break
        found = socket.socket(family, kind, protocol)
        try:
            found.settimeout(left)
            found.connect(address)
            found.settimeout(None)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            found.close()
            failure = error
        else:
            return found
    raise failure or TimeoutError


def reason_of(error: BaseException, timeout: float | None = None, stage: str = " (stage: connect)") -> str:
    """Why connecting failed, in words, and at which stage."""
    if isinstance(error, socket.gaierror):
        return f"the name of the host cannot be resolved ({error.strerror}; stage: resolve)"
    if isinstance(error, UnicodeError):
        return "this is no name of a host (stage: resolve)"
    if isinstance(error, OSError) and error.errno and not isinstance(error, TimeoutError):
        return f"{os.strerror(error.errno)}{stage}"
    return f"{_reason(error, timeout)}{stage}"


def _reason(error: BaseException, timeout: float | None = None) -> str:
    if isinstance(error, TimeoutError) and timeout is not None:
        return f"no answer within {timeout:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


class SocketTransport:
    """A connected TCP socket, with TLS or WebSocket around the bytes after :meth:`start_layer`: a transport."""

    __slots__ = (
        "_buffer",
        "_alertness",
        "_closed",
        "_descriptor",
        "_early",
        "_ended",
        "_interrupted",
        "_layer",
        "_order",
        "_pid",
        "_poll",
        "_reading",
        "_socket",
        "_stalled",
        "_unsent",
        "_view",
        "_wakeup",
        "_writing",
        "peer",
        "stall_timeout",
        "taken",
    )

    def __init__(self, connected: socket.socket, peer: str, *, stall_timeout: float = STALL_TIMEOUT) -> None:
        self.peer = peer
        self.taken = False
        self.stall_timeout = stall_timeout
        self._socket = connected
        self._descriptor = connected.fileno()
        self._pid = os.getpid()
        self._wakeup = Wakeup()
        self._alertness = Alertness()
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)
        self._poll.register(self._wakeup, select.POLLIN)
        # One buffer for all reads: its pages are touched as far as there is something to read, no further.
        self._buffer = bytearray(_READ_SIZE)
        self._view = memoryview(self._buffer)
        self._layer: Layer | None = None
        self._order = threading.Lock()  # a leaf, with a layer only: who takes octets from it writes them
        self._early = b""  # came with the last octets of the handshake
        self._unsent: bytes | memoryview = b""  # what was left when a deadline passed
        self._stalled = 0.0  # since when the peer takes nothing, if it does not
        self._ended = False
        self._closed = False
        self._interrupted = False
        self._reading = False  # a thread is at the socket, to read ...
        self._writing = False  # ... to write: the descriptor must stay open

    @property
    def closed(self) -> bool:
        return self._closed

    def fileno(self) -> int:
        """The descriptor, for somebody who waits for it elsewhere (-1 when closed)."""
        return self._socket.fileno()

    # Sending.

    def send(self, data: bytes, deadline: float | None = None, listening: bool = False) -> None:
        self._writing = True
        try:
            if self._closed:
                raise ConnectionLostError(f"the connection to {self.peer} is closed")
            if self._layer is not None:
                self._send_through(self._layer, data, deadline, listening)
                return
            self._write(self._behind_unsent(data), deadline, listening)
        except LAYER_FAILURES as failure:
            text = f"the connection to {self.peer} failed: {sentence_of(failure)}"
            raise ConnectionLostError(text) from failure
        finally:
            self._writing = False
            if self._closed:
                self._release()

    def _behind_unsent(self, data: bytes) -> bytes | memoryview:
        """With what was left before in front of it."""
        left, self._unsent = self._unsent, b""
        if not left:
            return data
        return b"".join((left, data)) if data else left

    def _send_through(self, layer: Layer, data: bytes, deadline: float | None, listening: bool) -> None:
        if data:
            layer.send(data)
        while layer.has_output or self._unsent:
            with self._order:
                self._write(self._behind_unsent(layer.take()), deadline, listening)

    def _answer(self, layer: Layer) -> None:
        """What the layer itself has to say to what came, by the thread that reads, as far as the socket takes it."""
        while layer.has_output and self._order.acquire(False):
            try:
                self._unsent = self._behind_unsent(layer.take())
                with suppress(BlockingIOError):
                    self._unsent = self._unsent[self._socket.send(self._unsent, socket.MSG_DONTWAIT) :]
            except OSError:
                return  # reading will say so
            finally:
                self._order.release()

    def _write(self, data: bytes | memoryview, deadline: float | None = None, listening: bool = False) -> None:
        try:
            try:
                sent = self._socket.send(data, socket.MSG_DONTWAIT)
            except BlockingIOError:
                sent = 0
            if sent:
                self._stalled = 0.0
            if sent < len(data):
                self._write_slowly(memoryview(data)[sent:], deadline, listening)
        except OSError as error:
            if self._closed:
                raise ConnectionLostError(f"the connection to {self.peer} was closed while sending") from error
            raise ConnectionLostError(f"the connection to {self.peer} failed: {_reason(error)}") from error

    def _write_slowly(self, data: memoryview, deadline: float | None, listening: bool) -> None:
        """The peer, or the network, does not take it all at once: wait as long as it goes forward, to the deadline."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLOUT | (select.POLLIN if listening else 0))
        self._stalled = self._stalled or monotonic()
        while data:
            now = monotonic()
            stall = self._stalled + self.stall_timeout - now
            left = stall if deadline is None else min(stall, deadline - now)
            ready = waiting.poll(max(left, 0.0) * 1000)
            if not ready and left == stall:
                raise TimeoutError(f"the peer has taken nothing for {self.stall_timeout:g} s")
            if not ready or ready[0][1] == select.POLLIN:
                self._unsent = data
                raise InputFirst if ready else SendBlocked
            try:
                data = data[self._socket.send(data, socket.MSG_DONTWAIT) :]
                self._stalled = monotonic()
            except BlockingIOError:
                pass
        self._stalled = 0.0

    # Receiving.

    def recv(self, timeout: float | None = None) -> bytes:
        return self._recv(None if timeout is None else monotonic() + timeout)

    def _recv(self, deadline: float | None) -> bytes:
        self._reading = True
        self.taken = False
        try:
            while True:
                if self._early or self._ended or self._closed:
                    return self._rest()
                self._wait(deadline)
                data = self._read()
                if data is not None:
                    return data
        finally:
            self._reading = False
            if self._closed:
                self._release()

    def recv_nowait(self) -> bytes | None:
        self._reading = True
        self.taken = False
        try:
            if self._early or self._ended or self._closed:
                return self._rest()
            return self._read()
        finally:
            self._reading = False
            if self._closed:
                self._release()

    def _rest(self) -> bytes:
        data, self._early = self._early, b""
        return b"" if self._closed else data

    def _wait(self, deadline: float | None) -> None:
        """Until the socket has something, or somebody calls; waiting first and reading then is what a waiter needs:
        it has just asked for something that cannot be there yet."""
        ready = self._alertness.look(self._poll.poll)
        if not ready:
            ready = self._poll.poll(None if deadline is None else max(deadline - monotonic(), 0.0) * 1000)
        if not ready:
            raise TimeoutError(f"nothing from {self.peer} in time")
        if len(ready) > 1 or ready[0][0] != self._descriptor:
            self._wakeup.clear()
        if self._interrupted and not self._closed:
            self._interrupted = False
            raise TimeoutError("interrupted")

    def _read(self) -> bytes | None:
        try:
            self.taken = True
            size = self._socket.recv_into(self._view, _READ_SIZE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            self.taken = False
            return None
        except OSError as error:
            self._ended = True
            if self._closed:
                return b""
            raise ConnectionLostError(f"the connection to {self.peer} failed: {_reason(error)}") from error
        if not size:
            self._ended = True
            return b""
        data = bytes(self._view[:size])
        return data if self._layer is None else self._read_through(self._layer, data)

    def _read_through(self, layer: Layer, data: bytes) -> bytes | None:
        try:
            plain = layer.receive(data) or None
        except LAYER_FAILURES as failure:
            self._ended = True
            self._answer(layer)
            text = f"the connection to {self.peer} failed: {sentence_of(failure)}"
            raise LayerLost(text) from failure
        self.taken = plain is not None
        if layer.has_output:
            self._answer(layer)
        if layer.ended:
            self._ended = True
            return plain or b""
        return plain

    # Handshakes.

    def start_tunnel(self, tunnel: ProxyTunnel, deadline: float | None = None) -> None:
        """Have a proxy open the way; nothing else may use the transport meanwhile."""
        try:
            self._write(tunnel.request, deadline)
            while not tunnel.established:
                data = self._recv(deadline)
                if not data:
                    raise ProxyFailure("the proxy ended the connection during the handshake")
                self._early = tunnel.receive(data)
        except ProxyFailure as failure:
            raise ConnectionLostError(f"cannot connect to {self.peer}: {failure}") from failure

    def start_layer(self, layer: Layer, deadline: float | None = None) -> None:
        """Do the handshake; nothing else may use the transport meanwhile."""
        try:
            layer.start()
            while not layer.established:
                self._write(layer.take())
                data = self._recv(deadline)
                if not data:
                    raise kind_of(layer)("the peer ended the connection during the handshake")
                self._early = layer.receive(data)
            self._write(layer.take())
        except LAYER_FAILURES as failure:
            with suppress(ConnectionLostError, *LAYER_FAILURES):
                self._write(layer.take())  # what the peer is to hear of it
            raise ConnectionLostError(f"cannot connect to {self.peer}: {sentence_of(failure)}") from failure
        self._layer = layer

    # The end.

    def interrupt(self) -> None:
        self._interrupted = True
        self._wakeup.set()

    def close(self) -> None:
        if self._closed:
            return
        if os.getpid() != self._pid:
            self._let_go()
            return
        if self._layer is not None and not self._writing:
            self._say_close(self._layer)
        self._closed = True
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the peer was faster
        self._wakeup.set()
        self._release()

    def _let_go(self) -> None:
        """In a child made by fork the connection is still the parent's: the child closes its copies, and says nothing.

        A thread that was in a system call is not here, and may have left the layer locked.
        """
        self._closed = True
        self._socket.close()
        self._wakeup.close()

    def _say_close(self, layer: Layer) -> None:
        try:
            layer.close()
            self._socket.send(layer.take(), socket.MSG_DONTWAIT)
        except (OSError, *LAYER_FAILURES):
            pass  # a courtesy

    def _release(self) -> None:
        """The last one out closes the descriptors."""
        if not self._reading and not self._writing:
            self._socket.close()
            self._wakeup.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "ended" if self._ended else "open"
        return f"<SocketTransport to {self.peer}, {state}{', ' + name_of(self._layer) if self._layer else ''}>"
