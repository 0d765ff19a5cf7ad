"""AMQP over WebSocket: octets of AMQP on one side, frames of RFC 6455 on the other, no socket in between.

The binding is that of OASIS (AMQP WebSocket Binding 1.0): the subprotocol ``amqp``, binary messages, and the octets of
all messages, in order, are the octets of a connection; where a message ends means nothing. The library wsproto (extra
``ws``) does the handshake and the frames. No compression is offered or taken, so that no small message unpacks to a
large one, and a message is handed on as it comes in, so that a long one fills no memory.

As with TLS, one thread may read while another writes: a lock, a leaf, held for computing only.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

__all__ = ["ClientWebSocket", "ServerWebSocket", "WebSocketCodec", "WebSocketFailure"]

SUBPROTOCOL = "amqp"
"""The name of the binding (AMQP WebSocket Binding 1.0, 2.1)."""

OLD_SUBPROTOCOL = "AMQPWSB10"
"""Its name in an early draft, by which clients made for Service Bus ask. A server takes it too."""

_NORMAL, _GOING_AWAY, _UNSUPPORTED, _NO_STATUS = 1000, 1001, 1003, 1005  # RFC 6455, 7.4.1

_TEXT_LIMIT = 200
"""So many characters of an answer that is no WebSocket are shown in the error."""


_TLS_RECORDS = (b"\x16\x03", b"\x15\x03")
"""How a handshake and an alert begin (RFC 8446, 5.1)."""

_END_OF_HEAD = b"\r\n\r\n"
"""Of a request (RFC 9112, 2.1)."""

_ANSWER = b"HTTP"
"""How the answer to a client's handshake begins."""

_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\nhere is AMQP 1.0 over WebSocket: %b\n"


_EVENTS_AT_ONCE = 16
"""So many frames a server takes at a time, some tenths of a millisecond of work in the library: of the quarter of a
megabyte that one read brings, a frame may be six octets, and the others wait meanwhile."""


class WebSocketFailure(Exception):
    """The handshake or a frame failed; the text says why in one line."""


def printable(text: str) -> str:
    """What a peer has said, so that an error shows it on any terminal."""
    return "".join(mark if mark.isprintable() else "?" for mark in text)


def _library() -> Any:
    try:
        import wsproto
        import wsproto.connection
        import wsproto.events
        import wsproto.utilities
    except ImportError as error:
        raise ImportError("AMQP over WebSocket needs wsproto: pip install 'jmsish[ws]'") from error
    return wsproto


class WebSocketCodec:
    """The WebSocket of one connection.

    Feed :meth:`receive` with what came from the wire; write what :meth:`take` gives to it after every call.
    ``ImportError`` where wsproto is not installed.
    """

    at_once = 0
    """How many frames are taken by one call of :meth:`receive`; 0 for all that are there."""

    def __init__(self, client: bool) -> None:
        self._ws = _library()
        kind = self._ws.ConnectionType.CLIENT if client else self._ws.ConnectionType.SERVER
        self._connection = self._ws.WSConnection(kind)
        self._output: list[bytes] = []
        self._pong: bytes | None = None
        self._said_close = False
        self._lock = threading.Lock()
        self.established = False
        self.ended = False
        """The peer has closed: nothing more comes from it."""
        self.unread = False
        """There are more frames in what came: :meth:`receive` takes them when it is called again, with nothing new."""

    def start(self) -> None:
        """Begin the handshake (the client speaks first)."""

    def receive(self, data: bytes) -> bytes:
        """Take what came and give the octets of AMQP in it. Raises :class:`WebSocketFailure`."""
        if self.ended or not (data or self.unread):
            return b""
        parts: list[bytes] = []
        with self._lock:
            self.unread = False
            try:
                if data:  # to the library no octets are the end
                    self._connection.receive_data(data)
                for number, event in enumerate(self._connection.events(), 1):
                    self._take_event(event, parts)
                    if number == self.at_once:
                        self.unread = not self.ended
                        break
            except self._ws.utilities.RemoteProtocolError as error:
                self.ended = True
                self._answer_fault(error)
                raise WebSocketFailure(self._sentence(error, data)) from error
            except (ValueError, LookupError, RuntimeError) as error:
                # The library does not foresee everything that can come, such as headers that are not ASCII.
                self.ended = True
                raise WebSocketFailure(self._sentence(error, data)) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def send(self, data: bytes) -> None:
        """One binary message; it is in :meth:`take`. What the peer does not want to hear any more is dropped."""
        with self._lock:
            if not (self.ended or self._said_close):
                self._say(self._ws.events.BytesMessage(data=data))

    def take(self) -> bytes:
        """What is to be written to the wire."""
        with self._lock:
            if self._pong is not None:
                # RFC 6455, 5.5.3: of several pings only the last needs an answer, so a flood of them costs nothing.
                pong, self._pong = self._pong, None
                if not (self.ended or self._said_close):
                    self._say(self._ws.events.Pong(payload=pong))
            data = b"".join(self._output)
            self._output.clear()
        return data

    def close(self) -> None:
        """Say that nothing more comes (RFC 6455, 7.1.2); the peer's answer is not waited for."""
        with self._lock:
            if self.established and not (self.ended or self._said_close):
                self._close(_NORMAL, "")

    @property
    def has_output(self) -> bool:
        return bool(self._output) or self._pong is not None

    is_secure = False

    def peer_certificate(self) -> None:
        """None: only TLS has one."""

    # With the lock held.

    def _say(self, event: Any) -> None:
        self._output.append(bytes(self._connection.send(event)))

    def _close(self, code: int, reason: str) -> None:
        self._said_close = True
        self._say(self._ws.events.CloseConnection(code=code, reason=reason))

    def _take_event(self, event: Any, parts: list[bytes]) -> None:
        events = self._ws.events
        if isinstance(event, events.BytesMessage):
            parts.append(bytes(event.data))
        elif isinstance(event, events.Ping):
            self._pong = bytes(event.payload)
        elif isinstance(event, events.TextMessage):
            # The binding, 2.2: AMQP travels in binary messages; RFC 6455 has a code for data of the other type.
            self.ended = True
            if not self._said_close:
                self._close(_UNSUPPORTED, "AMQP is binary")
            raise WebSocketFailure("the peer sent text, where AMQP is binary")
        elif isinstance(event, events.CloseConnection):
            self._take_close(event, parts)
        else:
            self._take_handshake(event)

    def _take_close(self, event: Any, parts: list[bytes]) -> None:
        """Of a frame that breaks the protocol the library makes a close, too: with what is to be said about it."""
        state = self._ws.connection.ConnectionState
        is_ours = self._connection.state not in (state.REMOTE_CLOSING, state.CLOSED)
        self.ended = True
        if not self._said_close:
            self._said_close = True
            self._say(event.response())
        code = int(event.code)
        if code not in (_NORMAL, _GOING_AWAY, _NO_STATUS) and not parts:
            if is_ours:
                raise WebSocketFailure(f"the peer breaks the protocol: {event.reason}")
            reason = f": {printable(event.reason)}" if event.reason else ""
            raise WebSocketFailure(f"the peer closed with the code {code}{reason}")

    def _take_handshake(self, event: Any) -> None:
        """What the role makes of an event of the handshake; a pong asks for nothing."""

    def _answer_fault(self, error: Any) -> None:
        """RFC 6455, 7.1.7: a connection that fails is closed with the code of the fault, where there is one."""
        hint = error.event_hint
        if self.established and hint is not None and not self._said_close:
            self._said_close = True
            self._say(hint)

    def _sentence(self, error: Exception, data: bytes) -> str:
        if self.established:
            return str(error)
        if data.startswith(b"AMQP"):
            return "the peer speaks AMQP without WebSocket"
        if data[:2] in _TLS_RECORDS:
            return "the peer speaks TLS"
        return f"the handshake failed: {error}"


class ClientWebSocket(WebSocketCodec):
    """The client's end: asks for ``path`` at ``host``, as it is to stand in the header of that name."""

    def __init__(self, host: str, path: str) -> None:
        super().__init__(client=True)
        self._request = self._ws.events.Request(host=host, target=path, subprotocols=[SUBPROTOCOL])
        self._status = 0
        self._text = b""
        self._first = b""

    def start(self) -> None:
        with self._lock:
            self._say(self._request)

    def receive(self, data: bytes) -> bytes:
        if len(self._first) < len(_ANSWER) and not self.ended:
            self._first += data[: len(_ANSWER) - len(self._first)]
            if not _ANSWER.startswith(self._first):
                # Said at once: a header of AMQP has eight octets and no end of a line, which the library waits for.
                if len(self._first) < len(_ANSWER) and self._first not in _TLS_RECORDS:
                    return b""  # what it is shows with the next octets
                self.ended = True
                raise WebSocketFailure(self._sentence(Exception("the peer does not speak HTTP"), self._first))
        octets = super().receive(data)
        if self._status:
            self.ended = True
            raise WebSocketFailure(self._refusal())
        return octets

    def _take_handshake(self, event: Any) -> None:
        events = self._ws.events
        if isinstance(event, events.AcceptConnection):
            if event.subprotocol != SUBPROTOCOL:
                raise WebSocketFailure(
                    f"the server did not agree to the subprotocol {SUBPROTOCOL!r}: is this the path of an AMQP server?"
                )
            self.established = True
        elif isinstance(event, events.RejectConnection):
            self._status = event.status_code
            for name, value in event.headers:
                if name.lower() == b"location":
                    self._text = b"see " + value
        elif isinstance(event, events.RejectData) and len(self._text) < _TEXT_LIMIT:
            self._text += bytes(event.data)

    def _refusal(self) -> str:
        try:
            name = f" {HTTPStatus(self._status).phrase}"
        except ValueError:
            name = ""
        text = printable(" ".join(self._text.decode("utf-8", "replace").split())[:_TEXT_LIMIT])
        return f"the server answered HTTP {self._status}{name}" + (f": {text}" if text else "")

    def _sentence(self, error: Exception, data: bytes) -> str:
        said = super()._sentence(error, data)
        if not self.established and "subprotocol" in said:  # the library has met one that was not asked for
            return f"the server did not agree to the subprotocol {SUBPROTOCOL!r}: {error}"
        return said


def _leads_nowhere_else(host: str) -> bool:
    """Whether a host of a URL is an address, or this machine by the name that browsers ask nobody for."""
    if host == "localhost":
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class ServerWebSocket(WebSocketCodec):
    """The broker's end. Every path is good.

    ``origins`` are those whose pages may connect (``"*"`` for all): a browser says whose page it acts for, and without
    this check any page could use a broker that its reader's machine can reach (RFC 6455, 10.2). Programs say nothing.
    """

    def __init__(self, origins: Collection[str] = ()) -> None:
        super().__init__(client=False)
        self.at_once = _EVENTS_AT_ONCE
        self._origins = origins
        self._first = b""
        self._tail = b""

    def receive(self, data: bytes) -> bytes:
        if len(self._first) < 4 and not self.ended:
            self._first += data[: 4 - len(self._first)]
            if self._first == b"AMQP" or self._first[:2] == b"\x16\x03":
                # Who speaks first and is answered by nobody would wait: said at once, for the rest may never come.
                text = self._sentence(Exception(), self._first)
                with self._lock:
                    self.ended = True
                    self._output.append(_BAD_REQUEST % text.encode())
                raise WebSocketFailure(text)
        if self.established or self.ended:
            return super().receive(data)
        # What a client says before it has heard the answer the library would lose.
        seen = self._tail + data
        end = seen.find(_END_OF_HEAD)
        rest = seen[end + len(_END_OF_HEAD) :] if end >= 0 else b""
        self._tail = seen[1 - len(_END_OF_HEAD) :]
        octets = super().receive(data[: len(data) - len(rest)])
        return octets + super().receive(rest) if rest else octets

    def _take_handshake(self, event: Any) -> None:
        events = self._ws.events
        if not isinstance(event, events.Request):
            return
        origin = next((value for name, value in event.extra_headers if name.lower() == b"origin"), b"")
        if origin and not self._is_welcome(origin.decode("latin-1"), event.host):
            self._refuse(403, f"pages of {origin.decode('latin-1')} may not connect here")
        for name in (SUBPROTOCOL, OLD_SUBPROTOCOL):
            if name in event.subprotocols:
                self._say(events.AcceptConnection(subprotocol=name))
                self.established = True
                return
        self._refuse(400, f"here is AMQP 1.0 over WebSocket: the subprotocol {SUBPROTOCOL!r} was not asked for")

    def _is_welcome(self, origin: str, host: str) -> bool:
        if "*" in self._origins or origin in self._origins:
            return True
        try:
            page = urlsplit(origin)
            # Without TLS a name proves nothing: whose page it is can have its name lead to this machine afterwards,
            # and is then of the same site for the browser. An address cannot be led elsewhere.
            return page.netloc == host and (page.scheme == "https" or _leads_nowhere_else(page.hostname or ""))
        except ValueError:  # such as http://[
            return False

    def _refuse(self, status: int, text: str) -> None:
        self.ended = True
        self._answer(status, [], text)
        raise WebSocketFailure(text)

    def _answer(self, status: int, headers: list[tuple[bytes, bytes]], text: str) -> None:
        events, body = self._ws.events, text.encode() + b"\n"
        usual = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        self._say(events.RejectConnection(status_code=status, headers=[*headers, *usual], has_body=True))
        self._say(events.RejectData(data=body))

    def _answer_fault(self, error: Any) -> None:
        hint = error.event_hint
        if self.established or not isinstance(hint, self._ws.events.RejectConnection):
            super()._answer_fault(error)
            return
        try:
            self._answer(hint.status_code, list(hint.headers), f"here is AMQP 1.0 over WebSocket: {error}")
        except self._ws.utilities.LocalProtocolError:
            pass  # what came was no HTTP at all: nothing can be said to it
