"""From a host name to a broker that speaks AMQP 1.0, one stage after the other, each with a time-out of its own."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from errno import ECONNRESET, EPROTO
from time import perf_counter

from jmsish._facade import layers
from jmsish.cli.doctor.findings import OK, SKIPPED, Examination, Finding, Stop
from jmsish.cli.doctor.speakers import ADVICE, Speaker, name_of, who_is_there
from jmsish.drivers.proxy import ProxyFailure, ProxyTunnel
from jmsish.drivers.tls import sentence
from jmsish.drivers.websocket import WebSocketCodec, WebSocketFailure
from jmsish.engine.frames import SASL_FRAME, SASL_HEADER, read_descriptor
from jmsish.engine.performatives import decode_list
from jmsish.options import ConnectionTarget

PORTS = "AMQP 1.0 is usually at 5672, with TLS at 5671"
_MISMATCHES = (62, 63, 64)
_EXPIRED = 10
_UNKNOWN_ISSUER = (18, 19, 20, 21)
"""Codes of OpenSSL for certificates that nobody vouches for."""


class Approach:
    """One way to a broker."""

    def __init__(self, target: ConnectionTarget, context: ssl.SSLContext | None, patience: float) -> None:
        assert target.host is not None and target.port is not None
        self.target = target
        self.host, self.port = target.host, target.port
        self.place = f"{target.host}:{target.port}"
        self.context = context
        self.patience = patience
        self.websocket, self.proxy = layers(target)
        self.addresses: list[tuple[int, tuple[object, ...]]] = []

    def go(self, examination: Examination) -> None:
        """All stages.  Raises `Stop` with what failed, and what to try."""
        stages = [("resolve", self.resolve), ("connect", self.connect), ("TLS", self.secure), ("protocol", self.speak)]
        if self.websocket is not None:
            stages.insert(3, ("WebSocket", self.upgrade))
        for what, stage in stages:
            try:
                found = stage()
            except Stop as stop:
                examination.add(Finding(what, "failed", str(stop), stop.advice))
                raise
            examination.add(Finding(what, SKIPPED if found is None else OK, found or "not asked for"))

    def resolve(self) -> str:
        host, port = (self.host, self.port) if self.proxy is None else (self.proxy.host, self.proxy.port)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise Stop(
                f"the host {host!r}{'' if self.proxy is None else ' of the proxy'} is not known ({why})",
                "is the name spelled right, and known to the name server (or /etc/hosts) of this machine?",
            ) from None
        self.addresses = [(family, address) for family, _, _, _, address in found]
        told = ", ".join(dict.fromkeys(str(address[0]) for _, address in self.addresses))
        return told if self.proxy is None else f"{told}, of the proxy {host}:{port}"

    def open_one(self) -> socket.socket:
        """A new connection, by the proxy where there is one.  OSError where there is none to be had."""
        connected = self._open_socket()
        if self.proxy is not None:
            tunnel = ProxyTunnel(self.proxy, self.place)
            try:
                connected.sendall(tunnel.request)
                while not tunnel.established:
                    answer = connected.recv(4096)
                    if not answer:
                        raise ConnectionResetError(ECONNRESET, "the proxy ended the connection")
                    tunnel.receive(answer)
            except ProxyFailure as failure:
                connected.close()
                raise OSError(EPROTO, str(failure)) from failure
            except BaseException:
                connected.close()
                raise
        return connected

    def _open_socket(self) -> socket.socket:
        """To the first address that answers.  OSError of the last where none does."""
        last: OSError | None = None
        for family, address in self.addresses:
            connected = socket.socket(family, socket.SOCK_STREAM)
            connected.settimeout(self.patience)
            try:
                connected.connect(address)
                return connected
            except OSError as error:
                connected.close()
                last = error
        assert last is not None
        raise last

    def connect(self) -> str:
        began = perf_counter()
        try:
            with self.open_one() as connected:
                name = connected.getpeername()
        except ConnectionRefusedError:
            if self.proxy is not None:
                raise Stop(f"nobody listens at {self.proxy.host}:{self.proxy.port}, the proxy", "") from None
            raise Stop(f"nobody listens at {self.place}", f"is the broker running, and at this port? {PORTS}") from None
        except TimeoutError:
            raise Stop(
                f"no answer from {self.place} within {self.patience:g} s",
                "a firewall may drop what is sent there, or the machine is off",
            ) from None
        except OSError as error:
            raise Stop(f"{self.place} cannot be reached: {error.strerror or error}") from None
        return f"{name[0]} port {name[1]} in {(perf_counter() - began) * 1000:.1f} ms"

    # -- TLS

    @property
    def is_secure(self) -> bool:
        return self.target.scheme in ("amqps", "amqpwss")

    @property
    def _name(self) -> str:
        """The name that the certificate must be for."""
        return (self.target.options.tls_server_name or self.host).removesuffix(".")

    def secure(self) -> str | None:
        if not self.is_secure:
            return None
        assert self.context is not None
        name = self._name
        try:
            with self.open_one() as connected, self.context.wrap_socket(connected, server_hostname=name) as wrapped:
                cipher = wrapped.cipher()
                certificate = wrapped.getpeercert() or {}
                until = certificate.get("notAfter")
                verified = f"certificate until {until}" if until else "the certificate was not verified"
                return f"{wrapped.version()}, {cipher[0] if cipher else '?'}, {verified}"
        except ssl.SSLCertVerificationError as error:
            raise self._distrust(error, name) from None
        except TimeoutError:
            raise Stop(f"the TLS handshake was not finished within {self.patience:g} s", self._plain_advice()) from None
        except (ssl.SSLError, OSError) as error:
            why = sentence(error, b"") if isinstance(error, ssl.SSLError) else error.strerror or error
            raise Stop(f"the TLS handshake failed: {why}", self._plain_advice()) from None

    def _look_at_alert(self, error: Exception) -> None:
        """With TLS 1.3 a broker says behind the handshake that it wants a certificate of ours, or not that one."""
        if isinstance(error, ssl.SSLError) and "_ALERT_" in (error.reason or ""):
            ours = "is the certificate in --cert one that this broker takes?"
            none = "it may want a certificate of ours: --cert FILE, --key FILE"
            advice = ours if self.target.options.tls_certificate else none
            raise Stop(f"{self.place} ends TLS: {sentence(error, b'')}", advice) from None

    def _plain_advice(self) -> str:
        """What else is at the port."""
        speaker = who_is_there(self.open_one)
        if speaker.name == "AMQP 1.0":
            scheme = self.target.scheme
            return f"this port speaks AMQP 1.0 without TLS: use amqp:// in place of {scheme}://, or the port for TLS"
        if speaker.name == "TLS":
            return "the broker speaks TLS, but not with us: does it ask for a certificate of ours (--cert, --key)?"
        if speaker.name:
            return f"this port speaks {speaker.name}; {speaker.advice}"
        return f"nobody answers at this port in any language that is known here; {PORTS}"

    def _distrust(self, error: ssl.SSLCertVerificationError, name: str) -> Stop:
        if error.verify_code in _MISMATCHES:
            names = ", ".join(self._names()) or "other names"
            return Stop(
                f"the certificate is not for {name!r} but for {names}",
                "use a name that is in the certificate, or say which it is: --option tls_server_name=NAME",
            )
        if error.verify_code == _EXPIRED:
            return Stop("the certificate has expired", "the broker needs a new one; or is the clock here wrong?")
        if error.verify_code in _UNKNOWN_ISSUER:
            return Stop(
                f"nobody that is trusted here vouches for the certificate ({error.verify_message})",
                "name the certificate of its authority, or its own: --ca FILE",
            )
        return Stop(f"the certificate is not accepted: {error.verify_message}")

    def _names(self) -> list[str]:
        """The names in the certificate, which is good but for them."""
        assert self.context is not None
        checks, self.context.check_hostname = self.context.check_hostname, False
        try:
            with self.open_one() as connected, self.context.wrap_socket(connected) as wrapped:
                certificate = wrapped.getpeercert() or {}
        except OSError:
            return []
        finally:
            self.context.check_hostname = checks
        return [str(entry[1]) for entry in certificate.get("subjectAltName", ())]

    # -- WebSocket

    def upgrade(self) -> str:
        try:
            with self._wrapped() as connected:
                self._shake(connected)
        except WebSocketFailure as failure:
            raise Stop(f"{self.place}: {failure}", self._websocket_advice(str(failure))) from None
        except TimeoutError:
            text = f"{self.place} did not answer the handshake within {self.patience:g} s"
            raise Stop(text, self._websocket_advice("")) from None
        except OSError as error:
            self._look_at_alert(error)
            raise Stop(f"{self.place}: {error.strerror or error}", self._websocket_advice("")) from None
        return f"the subprotocol amqp at {self.target.path}"

    def _shake(self, connected: socket.socket) -> tuple[WebSocketCodec, bytes]:
        codec, _ = layers(self.target)
        assert codec is not None
        codec.start()
        connected.sendall(codec.take())
        early = b""
        while not codec.established:
            answer = connected.recv(4096)
            if not answer:
                raise WebSocketFailure("the peer ended the connection during the handshake")
            early += codec.receive(answer)
        return codec, early

    def _websocket_advice(self, failure: str) -> str:
        secure = self.is_secure
        if "HTTP 4" in failure or "subprotocol" in failure:
            return "is the path of the URL right? Azure Service Bus has /$servicebus/websocket"
        speaker = Speaker("TLS") if "speaks TLS" in failure else who_is_there(self._wrapped)
        if speaker.name == "AMQP 1.0":
            plain = "amqps" if secure else "amqp"
            return f"this port speaks AMQP 1.0 without WebSocket: use {plain}:// in place of {self.target.scheme}://"
        if speaker.name == "TLS" and not secure:
            return "use amqpwss:// in place of amqpws://"
        if speaker.name == "HTTP":
            return "this is a web server that does not speak WebSocket here: is it the port of the broker?"
        return f"this port speaks {speaker.name}; {speaker.advice}" if speaker.name else PORTS

    def _greeted(self, connected: socket.socket) -> bytes:
        """What is answered to the SASL header."""
        if self.websocket is None:
            connected.sendall(SASL_HEADER)
            return _whole_frame(lambda: connected.recv(4096))
        codec, early = self._shake(connected)
        codec.send(SASL_HEADER)
        connected.sendall(codec.take())

        def more() -> bytes:
            while (octets := connected.recv(4096)) and not codec.ended:
                if inside := codec.receive(octets):
                    return inside
            return b""

        return _whole_frame(more, early)

    # -- AMQP

    def speak(self) -> str:
        """Greet with the SASL header; what the broker answers, and by which mechanisms it lets in."""
        try:
            with self._wrapped() as connected:
                said = self._greeted(connected)
        except (OSError, WebSocketFailure) as error:
            self._look_at_alert(error)
            said = b""
        name = name_of(said)
        if name != "AMQP 1.0":
            raise self._wrong_speaker(name, said)
        mechanisms = _mechanisms_in(said)
        return f"AMQP 1.0, lets in by {', '.join(mechanisms)}" if mechanisms else "AMQP 1.0"

    def _wrapped(self) -> socket.socket:
        connected = self.open_one()
        if not self.is_secure:
            return connected
        assert self.context is not None
        return self.context.wrap_socket(connected, server_hostname=self._name)

    def _wrong_speaker(self, name: str, said: bytes) -> Stop:
        known = name or self.is_secure or self.websocket is not None
        speaker = Speaker(name, said) if known else who_is_there(self.open_one)
        if not speaker.name:
            return Stop(
                f"{self.place} took the connection and says nothing that is known here, or closes it",
                f"{PORTS}; a broker that is starting, or a proxy without its broker, does this too",
            )
        advice = ADVICE.get(speaker.name, PORTS)
        return Stop(f"{self.place} speaks {speaker.name}, not AMQP 1.0", advice)


def _whole_frame(hear: Callable[[], bytes], said: bytes = b"") -> bytes:
    """A header, and one frame behind it where it is AMQP."""
    while True:
        at = int.from_bytes(said[8:12], "big") if len(said) >= 12 else 4  # noqa: PLR2004
        if len(said) >= 8 and (not said.startswith(b"AMQP\x03\x01\x00\x00") or len(said) >= 8 + min(at, 4096)):  # noqa: PLR2004
            return said
        try:
            more = hear()
        except TimeoutError:
            return said
        if not more:
            return said
        said += more


def _mechanisms_in(said: bytes) -> list[str]:
    """The mechanisms of a sasl-mechanisms frame behind the header."""
    frame = said[8:]
    if len(frame) < 8 or frame[5] != SASL_FRAME:  # noqa: PLR2004
        return []
    try:
        _, at = read_descriptor(frame, frame[4] * 4)
        fields = decode_list(frame, at, int.from_bytes(frame[:4], "big"), "sasl-mechanisms")
    except (ValueError, IndexError):
        return []
    offered = fields[0] if fields else None
    return [str(offered)] if isinstance(offered, str) else [str(each) for each in offered or ()]
