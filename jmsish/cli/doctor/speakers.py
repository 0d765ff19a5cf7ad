"""What speaks at a port, if it is not AMQP 1.0: told by what it says, or by what it answers to the words of others.

Many servers close without a word when they are greeted in the wrong language.  So each language is tried on a
connection of its own: whoever answers in it is known.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from jmsish.engine.frames import SASL_HEADER, name_foreign_protocol

ANSWER = 4096
"""Octets of an answer that are looked at."""

_TLS_ALERT_OR_HANDSHAKE = (0x15, 0x16)
_AMQP_091 = b"AMQP\x00\x00\x09\x01"
_MQTT_CONNECT = b"\x10\x13\x00\x04MQTT\x04\x02\x00\x05\x00\x07jmsish?"
_MQTT_CONNACK = b"\x20\x02"
_STOMP_CONNECT = b"CONNECT\naccept-version:1.2\nhost:localhost\n\n\x00"
_HTTP_REQUEST = b"GET / HTTP/1.0\r\n\r\n"

_BY_BANNER: tuple[tuple[bytes, str], ...] = (
    (rb"SSH-", "SSH"),
    (rb"HTTP/|<!DOCTYPE|<html", "HTTP"),
    (rb"CONNECTED\n|ERROR\n|ERROR\r\n|CONNECTED\r\n", "STOMP"),
    (rb"\x20\x02", "MQTT"),
    (rb"-ERR|\+PONG|\+OK", "Redis"),
    (rb"INFO \{", "NATS"),
    (rb"220[ -]", "SMTP"),
    (rb"....\x00?.{0,4}ActiveMQ", "OpenWire (ActiveMQ's own protocol)"),
)
"""What the first octets of an answer tell."""

ADVICE = {
    "AMQP 0-9-1": "this broker needs its AMQP 1.0 support: RabbitMQ before 4.0 the plugin rabbitmq_amqp1_0",
    "AMQP 0-10": "this broker needs AMQP 1.0 switched on at this port",
    "HTTP": "this is a web server, the console of the broker, or its WebSocket (amqpws://): AMQP is usually at 5672",
    "STOMP": "this is the STOMP port of the broker: AMQP is at another, usually 5672",
    "MQTT": "this is the MQTT port of the broker: AMQP is at another, usually 5672",
    "TLS": "use amqps:// in place of amqp://",
}


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who is at a port."""

    name: str
    """``"AMQP 1.0"``, or the name of another protocol; empty where nobody said anything."""
    octets: bytes = b""

    @property
    def advice(self) -> str:
        return ADVICE.get(self.name, "AMQP 1.0 is usually at port 5672, with TLS at 5671")


Open = Callable[[], socket.socket]
"""Makes a new connection, with the time-out that each stage has."""


def hear(connected: socket.socket, size: int = ANSWER) -> bytes:
    """What is said, up to `size` octets; nothing at the end of the line, or when the time is over."""
    said = b""
    try:
        while len(said) < size:
            more = connected.recv(size - len(said))
            if not more:
                break
            said += more
            if len(said) >= 8:  # noqa: PLR2004  # enough to know who it is
                break
    except OSError:
        pass
    return said


def name_of(octets: bytes) -> str:
    """Whose words these are; empty for none."""
    if octets.startswith((b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00", b"AMQP\x02\x01\x00\x00")):
        return "AMQP 1.0"
    for pattern, name in _BY_BANNER:
        if re.match(pattern, octets, re.DOTALL | re.IGNORECASE):
            return name
    return name_foreign_protocol(octets) if octets else ""


def ask(open_one: Open, words: bytes) -> bytes:
    """What is answered to these words, on a connection of their own."""
    try:
        with open_one() as connected:
            connected.sendall(words)
            return hear(connected)
    except OSError:
        return b""


def who_is_there(open_one: Open) -> Speaker:
    """Try one language after the other until somebody answers."""
    if speaks_tls(open_one):
        return Speaker("TLS")
    for words, wanted in (
        (SASL_HEADER, ""),
        (_AMQP_091, "AMQP 0-9-1"),
        (_STOMP_CONNECT, "STOMP"),
        (_MQTT_CONNECT, "MQTT"),
        (_HTTP_REQUEST, "HTTP"),
    ):
        octets = ask(open_one, words)
        # A method frame on channel 0 (connection.start) is the answer to the right header of AMQP 0-9-1.
        if wanted == "AMQP 0-9-1" and octets[:3] == b"\x01\x00\x00":
            return Speaker(wanted, octets)
        if octets:
            return Speaker(name_of(octets), octets)
    return Speaker("")


def speaks_tls(open_one: Open) -> bool:
    """Whether a TLS server answers; whether it is to be trusted is not asked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with open_one() as connected, context.wrap_socket(connected):
            return True
    except ssl.SSLError as error:
        # It answered with an alert: it wants more of us (a certificate, a newer version), in TLS.
        return "ALERT" in str(error).upper()
    except OSError:
        return False
