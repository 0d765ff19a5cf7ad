"""TLS around bytes: ciphertext in and out on one side, plain octets on the other, no socket in between.

The standard library's ``ssl`` does the work, over memory. OpenSSL's object may not be read and written by two threads
at once, and ours are: a lock, a leaf that is held for computing only and never while waiting for a peer.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["TlsCodec", "TlsFailure"]


class TlsFailure(Exception):
    """The handshake or a record failed; the text says why in one line."""


class TlsCodec:
    """The TLS of one connection.

    Feed :meth:`receive` with what came from the socket; write what :meth:`take` gives to it after every call.
    """

    ended = False
    """The peer has said ``close_notify``: what comes behind it is to be ignored (RFC 8446, 6.1), and its socket may
    stay open until it has heard ours."""
    is_secure = True
    unread = False
    """Never: all that is complete is given at once."""

    def __init__(
        self, context: ssl.SSLContext, *, server_side: bool = False, server_hostname: str | None = None
    ) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        # The dot of a name that is whole is in no certificate, and SNI is without it (RFC 6066, 3).
        name = server_hostname.removesuffix(".") if server_hostname is not None else None
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side, name)
        self._lock = threading.Lock()
        self._first = True
        self.established = False

    def start(self) -> None:
        """Begin the handshake (the client speaks first)."""
        self.receive(b"")

    def receive(self, data: bytes) -> bytes:
        """Take ciphertext and give the plain octets that it completes. Raises :class:`TlsFailure`."""
        try:
            with self._lock:
                if data:
                    self._incoming.write(data)
                return self._read() if self.established or self._shake() else b""
        except ssl.SSLError as error:
            raise TlsFailure(sentence(error, data if self._first else b"")) from error
        finally:
            self._first = self._first and not data

    def _shake(self) -> bool:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.established = True
        return True

    def _read(self) -> bytes:
        parts = []
        while True:
            try:
                part = self._object.read(1 << 16)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                part = b""
            if not part:
                self.ended = True
                break
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def send(self, data: bytes) -> None:
        """Encrypt; the ciphertext is in :meth:`take`."""
        try:
            with self._lock:
                sent = self._object.write(data)
                while sent < len(data):
                    sent += self._object.write(memoryview(data)[sent:])
        except ssl.SSLError as error:
            raise TlsFailure(sentence(error, b"")) from error

    def close(self) -> None:
        """Say ``close_notify``; the peer's answer is not waited for."""
        with self._lock:
            try:
                self._object.unwrap()
            except (ssl.SSLError, ValueError):
                pass  # it wants the peer's answer, or the handshake was never done

    def take(self) -> bytes:
        """What is to be written to the socket."""
        with self._lock:
            return self._outgoing.read()

    @property
    def has_output(self) -> bool:
        return self._outgoing.pending > 0

    def peer_certificate(self) -> Mapping[str, Any] | None:
        """What the context has verified of the peer's certificate, if it showed one."""
        return self._object.getpeercert() or None


def sentence(error: ssl.SSLError, first: bytes) -> str:
    """What went wrong, in words: OpenSSL's own speak of versions when the peer does not speak TLS at all."""
    if first.startswith(b"AMQP"):
        return "the peer speaks AMQP without TLS"
    if first.startswith((b"HTTP/", b"GET ", b"POST ", b"PUT ", b"HEAD ", b"OPTIONS ", b"CONNECT ")):
        return "the peer speaks HTTP without TLS"
    if first and first[0] not in (0x14, 0x15, 0x16, 0x17):  # the content types of TLS records (RFC 8446, 5.1)
        return "the peer does not speak TLS"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate was not accepted: {error.verify_message}"
    _, alert, said = (error.reason or "").partition("_ALERT_")
    if alert:
        text = said.replace("_", " ").lower()
        return f"the peer {'did not accept the certificate' if said in _ABOUT_CERTIFICATES else 'ended it'}: {text}"
    return (error.reason or str(error)).replace("_", " ").lower()


_ABOUT_CERTIFICATES: Final = frozenset({
    "BAD_CERTIFICATE", "UNSUPPORTED_CERTIFICATE", "CERTIFICATE_REVOKED", "CERTIFICATE_EXPIRED", "CERTIFICATE_UNKNOWN",
    "UNKNOWN_CA", "CERTIFICATE_REQUIRED",
})  # fmt: skip
"""Alerts (RFC 8446, 6.2) by which a peer refuses the certificate that it was shown, or that there was none."""
