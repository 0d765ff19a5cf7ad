"""Everything that reads octets or text from outside, each as a function of octets that may raise nothing.

A target takes any octets, gives them to its parser, and lets through only the error that the parser is to raise for
what it cannot read; what else comes out is a find. :data:`TARGETS` names them, with a few valid inputs to begin with.
Nothing here decides what is fed: `guided` (atheris) and `blind` do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jmsish.broker import Broker
from jmsish.broker.config import BrokerConfig
from jmsish.broker.intake import address_of, read, subject_of
from jmsish.broker.management import answer
from jmsish.broker.patterns import matcher
from jmsish.broker.slowing import Slowing
from jmsish.drivers.proxy import ProxyFailure, ProxyTunnel
from jmsish.drivers.websocket import ClientWebSocket, ServerWebSocket, WebSocketFailure
from jmsish.engine.codec import AMQP_VALUE, Header, ReceivedMessage, bare_offset, encode_message, split_header
from jmsish.engine.conditions import INTERNAL_ERROR, Fault
from jmsish.engine.decoding import DecodeError, decode, decode_plain
from jmsish.engine.engine import Engine
from jmsish.engine.mechanisms import Credentials
from jmsish.engine.oauth import read_bearer
from jmsish.engine.sasl import SaslClient
from jmsish.engine.scram import ScramKey, ScramServer, ScramSha256Client
from jmsish.engine.selecting import predicate
from jmsish.engine.values import encode
from jmsish.errors import InvalidSelectorError, JMSError
from jmsish.message.incoming import read_in
from jmsish.option_kinds import Proxy
from jmsish.options import parse_url
from jmsish.selector import Selector
from jmsish.types import Symbol
from tests.wire.frames import AMQP_HEADER, RECEIVER, SASL_HEADER, composite, write

try:
    import tomllib
except ImportError:
    import tomli as tomllib

HEADERS = (
    "jms_message_id", "jms_correlation_id", "jms_reply_to", "jms_destination",
    "jms_delivery_mode", "jms_redelivered", "jms_type", "jms_expiration", "jms_priority", "jms_timestamp",
    "jms_delivery_time", "delivery_count", "annotations", "content_type", "body",
)  # fmt: skip
NAMES = {"a": 1, "b": "x", "JMSPriority": 4}


@dataclass(frozen=True)
class Target:
    """A parser, and what it reads when all is well."""

    run: Callable[[bytes], Any]
    seeds: Sequence[bytes]


# --- octets


def values(data: bytes) -> None:
    """What is decoded can be encoded, and is the same then."""
    try:
        decode_plain(data)
    except DecodeError:
        pass
    try:
        value, _ = decode(data)
    except DecodeError:
        return
    octets = encode(value)
    again, end = decode(octets)
    assert end == len(octets) and encode(again) == octets


def message(data: bytes) -> None:
    """Every reader of a message: those of the broker, which read before anybody has looked, and the client's."""
    for reader in (split_header, bare_offset, address_of, subject_of, lambda octets: read(octets, 0.0)):
        try:
            reader(data)
        except DecodeError:
            pass
    for select in SELECTS:
        assert select(data, 0) in (True, False)
    try:
        received = ReceivedMessage(data)
        received.check()
    except DecodeError:
        return
    for part in (received.properties, received.application_properties, received.body):
        try:
            part()
        except DecodeError:
            pass


def engine(data: bytes) -> None:
    """The whole engine at either end: the error may be any but an internal one."""
    for server in (True, False):
        subject = Engine(server=server, container_id="e")
        if not server:
            subject.open()
        subject.receive(data)
        subject.take_events()
        subject.take_output()
        subject.receive_eof()
        assert subject.error is None or subject.error.condition != INTERNAL_ERROR, subject.error


def sasl_of_server(data: bytes) -> None:
    SASL_BROKER.slowing = Slowing()  # else, after a few failures, all further answers would be held back
    connection = SASL_BROKER.accept(trusted=False, peer="127.0.0.1:1")
    connection.receive(data)
    while SASL_BROKER.questions:
        asking, question = SASL_BROKER.questions.pop()
        asking.login.answered(question())
    SASL_BROKER.step()
    connection.take_output()
    error = connection.engine.error
    assert error is None or error.condition != INTERNAL_ERROR, error
    connection.receive_eof()


def sasl_of_client(data: bytes) -> None:
    for mechanisms in (None, ["PLAIN"], ["SCRAM-SHA-256"]):
        subject = Engine(server=False, container_id="e", sasl=SaslClient(mechanisms, "alice", "secret"))
        subject.open()
        subject.take_output()
        subject.receive(data)
        subject.take_output()
        subject.receive_eof()
        assert subject.error is None or subject.error.condition != INTERNAL_ERROR, subject.error


def scram(data: bytes) -> None:
    """Both ends, given the messages that stand in lines."""
    server = ScramServer("SCRAM-SHA-256", lambda mechanism, name: (KEY, "alice"))
    client = ScramSha256Client(Credentials("alice", "secret"))
    client.start()
    for line in data.split(b"\n")[:4]:
        answer = server.step(line)
        if not isinstance(answer, bytes):
            break
    try:
        for line in data.split(b"\n")[:3]:
            client.respond(line)
    except Fault:
        pass


def bearer(data: bytes) -> None:
    for mechanism in ("OAUTHBEARER", "XOAUTH2"):
        try:
            read_bearer(mechanism, data)
        except ValueError:
            pass


def websocket(data: bytes) -> None:
    """Both ends, with the octets cut in two, and once the handshake is done."""
    upgrade = (
        b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
    )
    for make, before in ((ServerWebSocket, b""), (ServerWebSocket, upgrade), (_client_websocket, b"")):
        subject = make()
        try:
            for octets in (before, data[: len(data) // 2], data[len(data) // 2 :]):
                subject.receive(octets)
                subject.take()
        except WebSocketFailure:
            subject.take()


def _client_websocket() -> ClientWebSocket:
    subject = ClientWebSocket("h", "/")
    subject.start()
    subject.take()
    return subject


def proxy(data: bytes) -> None:
    tunnel = ProxyTunnel(Proxy("h", 1), "broker:5672")
    try:
        for octets in (data[: len(data) // 2], data[len(data) // 2 :]):
            tunnel.receive(octets)
    except ProxyFailure:
        pass


def management(data: bytes) -> None:
    """The first octet chooses the operation, the rest is the body."""
    operations = ("CREATE", "UPDATE", "BIND", "REBIND", "FREEZE", "QUERY", "REDIRECT", "THAW", "DELETE")
    kinds = ("queue", "exchange", "binding", "topic", "subscription", "broker", None)
    chosen = data[0] if data else 0
    broker = Broker("management", {"queues": {"q": {}}, "exchanges": {"x": {"type": "direct"}}}, clock=lambda: 1.0)
    head = encode_message(
        properties=["m", None, None, None, "back"],
        application_properties={
            "operation": operations[chosen % len(operations)],
            **({"type": kind} if (kind := kinds[chosen // 16 % len(kinds)]) else {}),
            "name": "x" if chosen & 8 else "q",
        },
        body=(AMQP_VALUE, None),
    )
    answer(broker, head[:-1] + data[1:])
    broker.step()


# --- text


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def selector(data: bytes) -> None:
    try:
        found = Selector(text_of(data))
    except InvalidSelectorError:
        return
    assert found.select(NAMES.get) in (True, False)
    assert predicate(found)(SAMPLE, 0) in (True, False)


def pattern(data: bytes) -> None:
    wanted, _, key = text_of(data).partition("\n")
    try:
        assert matcher(wanted)(key) in (True, False)
    except ValueError:
        pass


def url(data: bytes) -> None:
    """An error shows nothing of a password."""
    text = text_of(data)
    try:
        for place in parse_url(text).alternatives:
            parse_url(place.url)
    except ValueError:
        pass


def configuration(data: bytes) -> None:
    try:
        mapping = tomllib.loads(text_of(data))
    except (ValueError, RecursionError):
        return
    try:
        config = BrokerConfig.from_mapping(mapping)
    except (ValueError, TypeError):
        return
    Broker("configured", config, clock=lambda: 1.0)


def incoming(data: bytes) -> None:
    """The client's message over octets. Once it is handed over, no header raises anything."""
    try:
        received = ReceivedMessage(data)
        received.check()
        found = read_in(received)
    except (JMSError, DecodeError):
        return
    for name in HEADERS:
        getattr(found, name)
    dict(found.properties)
    repr(found)


KEY = ScramKey.derive("SCRAM-SHA-256", "secret", salt=b"salt salt salt")
USERS = {"alice": {"password": "secret"}}
SASL_BROKER = Broker("sasl", {"users": USERS}, clock=lambda: 1.0)
SAMPLE = encode_message(
    header=Header(True, 4, 1000, False, 0), annotations={"x-opt-delivery-delay": 5, "x-opt-jms-dest": 1},
    properties=["id", b"user", "q", "k", "back", "c", Symbol("text/plain")],
    application_properties={"a": 1, "b": "x"}, body=(AMQP_VALUE, "text"),
)  # fmt: skip
SELECTS = [predicate(Selector(text)) for text in ("a > 3 OR b LIKE 'x%'", "JMSPriority = 4 AND JMSType IS NULL")]
CONVERSATION = (
    AMQP_HEADER + write("open", container_id="c")
    + write("begin", next_outgoing_id=0, incoming_window=5, outgoing_window=5)
    + write("attach", name="l", handle=0, role=RECEIVER, source=composite("source", address="q"))
    + write("flow", incoming_window=5, next_outgoing_id=0, outgoing_window=5, handle=0, delivery_count=0, link_credit=3)
    + write("close")
)  # fmt: skip
CONFIGURATION = b"""
[policy]
transaction_timeout = 5
max_message_size = 100
[users.alice]
password = "secret"
[queues.q]
max_messages = 3
overflow = "block"
[exchanges.x]
type = "topic"
[[bindings]]
exchange = "x"
queue = "q"
key = "a.*"
[[listeners]]
port = 0
"""
TARGETS: dict[str, Target] = {
    "values": Target(values, [
        encode({"a": [1, "x", None, {Symbol("s"): b"b"}]}),
        b"\xf0\x00\x00\x00\x05\x00\x00\x00\x01\x43",
    ]),
    "message": Target(message, [SAMPLE]),
    "incoming": Target(incoming, [SAMPLE]),
    "engine": Target(engine, [CONVERSATION]),
    "sasl-server": Target(sasl_of_server, [
        SASL_HEADER + write("sasl-init", mechanism="PLAIN", initial_response=b"\0alice\0secret") + CONVERSATION,
        SASL_HEADER + write("sasl-init", mechanism="SCRAM-SHA-256", initial_response=b"n,,n=alice,r=abc"),
    ]),
    "sasl-client": Target(sasl_of_client, [
        SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"]) + write("sasl-outcome", code=0),
        SASL_HEADER + write("sasl-mechanisms", sasl_server_mechanisms=["SCRAM-SHA-256"])
        + write("sasl-challenge", challenge=b"r=x,s=c2FsdA==,i=4096"),
    ]),
    "scram": Target(scram, [b"n,,n=alice,r=abc\nc=biws,r=abc,p=AAAA\n", b"r=abc,s=c2FsdA==,i=4096\nv=AAAA"]),
    "bearer": Target(bearer, [
        b"n,a=alice,\x01host=h\x01auth=Bearer t\x01\x01",
        b"user=alice\x01auth=Bearer t\x01\x01",
    ]),
    "websocket": Target(websocket, [
        b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Origin: http://h:80\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n\r\n",
        b"\x82\x85\x00\x00\x00\x00hello\x88\x80\x00\x00\x00\x00",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ]),
    "proxy": Target(proxy, [b"HTTP/1.1 200 OK\r\n\r\nAMQP", b"HTTP/1.0 407 No\r\nA: b\r\n\r\n"]),
    "management": Target(management, [
        bytes([number]) + encode(body) for number, body in enumerate((
            {"max_messages": 1}, {"durable": True}, {"queue": "q", "key": "k"}, {"add": [{"queue": "q"}]},
            {"exchanges": ["x"]}, {"attributeNames": []},
        ))
    ]),
    "selector": Target(selector, [
        b"a > 3 AND b LIKE 'x%' ESCAPE '!'",
        b"NOT (JMSPriority BETWEEN 1 AND 0x1F) OR c IS NULL",
    ]),
    "pattern": Target(pattern, [b"a.*.#\na.b.c"]),
    "url": Target(url, [b"failover:(amqp://u:p@h:1,amqps://i)?failover.maxReconnectAttempts=3", b"vm://n?jms.prefetch=3",
                        b"amqpwss://h/path?amqp.vhost=v"]),
    "configuration": Target(configuration, [CONFIGURATION]),
}  # fmt: skip

__all__ = ["TARGETS", "Target"]
