"""AMQP over WebSocket: the codec without a socket, what goes wrong said in words on both sides."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
import wsproto
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from jmsish import EmbeddedBroker
from jmsish.drivers.layers import LAYER_FAILURES, Layer, Stack, layer_of, sentence_of
from jmsish.drivers.outlet import SocketOutlet
from jmsish.drivers.portions import Portions
from jmsish.drivers.sockets import connect_tcp
from jmsish.drivers.tls import TlsCodec
from jmsish.drivers.turns import Lane
from jmsish.drivers.websocket import ClientWebSocket, ServerWebSocket, WebSocketCodec, WebSocketFailure
from jmsish.errors import ConnectionLostError
from tests.wire.frames import AMQP_HEADER, SENDER, composite, read, write

from .conftest import PATIENCE, Wire, client_context, server_context


def pair() -> tuple[ServerWebSocket, ClientWebSocket]:
    return ServerWebSocket(), ClientWebSocket("broker:5672", "/amqp")


def shake(server: Layer, client: Layer) -> None:
    client.start()
    for _ in range(10):
        server.receive(client.take())
        client.receive(server.take())
    assert server.established and client.established


def joined() -> tuple[ServerWebSocket, ClientWebSocket]:
    server, client = pair()
    shake(server, client)
    return server, client


class Foreign:
    """The other end by wsproto itself, which says what a test wants."""

    def __init__(self, ours: WebSocketCodec) -> None:
        self.ours = ours
        client = isinstance(ours, ServerWebSocket)
        self.ws = wsproto.WSConnection(wsproto.ConnectionType.CLIENT if client else wsproto.ConnectionType.SERVER)
        if client:
            self.say(Request(host="h", target="/", subprotocols=["amqp"]))
        else:
            ours.start()
            self.hear()
            self.say(AcceptConnection(subprotocol="amqp"))
        self.hear()

    def say(self, event: object) -> bytes:
        return self.ours.receive(self.ws.send(event))  # type: ignore[arg-type]

    def hear(self) -> list[object]:
        self.ws.receive_data(self.ours.take())
        return list(self.ws.events())


BOTH = pytest.mark.parametrize("make", [ServerWebSocket, lambda: ClientWebSocket("h", "/")], ids=["server", "client"])


# Octets.


def test_octets_both_ways() -> None:
    server, client = joined()
    client.send(b"x" * 100_000)
    wire = client.take()
    assert b"xxxx" not in wire and not client.has_output  # masked, as a client has to (RFC 6455, 5.1)
    assert server.receive(wire[:50_000]) + server.receive(wire[50_000:]) == b"x" * 100_000
    server.send(b"answer")
    assert client.receive(server.take()) == b"answer"


@pytest.mark.parametrize("size", [1, 7])
def test_everything_in_pieces(size: int) -> None:
    server, client = pair()
    client.start()
    client_got = server_got = b""
    for turn in range(3):
        if turn == 2:
            client.send(b"hello")
            server.send(b"world" * 100)
        wire = client.take()
        for start in range(0, len(wire), size):
            server_got += server.receive(wire[start : start + size])
        wire = server.take()
        for start in range(0, len(wire), size):
            client_got += client.receive(wire[start : start + size])
    assert (server_got, client_got) == (b"hello", b"world" * 100)


@BOTH
def test_a_message_in_fragments_is_a_stream_of_octets(make: Callable[[], WebSocketCodec]) -> None:
    """Where a message begins and ends means nothing (the binding, 2.2), and a ping may stand between its frames."""
    foreign = Foreign(make())
    octets = foreign.say(BytesMessage(data=b"AM", message_finished=False))
    octets += foreign.say(Ping(payload=b"there?"))
    octets += foreign.say(BytesMessage(data=b"", message_finished=False))
    octets += foreign.say(BytesMessage(data=b"QP", message_finished=True))
    assert octets == b"AMQP"
    assert foreign.hear() == [Pong(payload=b"there?")]


@BOTH
def test_a_long_message_is_handed_on_as_it_comes(make: Callable[[], WebSocketCodec]) -> None:
    """A frame that says it has a gigabyte fills no memory: what has come of it is given at once."""
    ours = make()
    Foreign(ours)
    mask = b"\x00\x00\x00\x00" if isinstance(ours, ServerWebSocket) else b""
    head = b"\x82" + bytes([0x7F | (0x80 if mask else 0)]) + (1 << 30).to_bytes(8, "big") + mask
    assert ours.receive(head + b"a" * 10) == b"a" * 10
    assert ours.receive(b"b" * 10) == b"b" * 10


@BOTH
def test_of_a_flood_of_pings_only_the_last_is_answered(make: Callable[[], WebSocketCodec]) -> None:
    foreign = Foreign(make())
    for number in range(100):
        foreign.say(Ping(payload=b"%d" % number))
    assert foreign.hear() == [Pong(payload=b"99")]


@BOTH
def test_a_pong_nobody_asked_for_means_nothing(make: Callable[[], WebSocketCodec]) -> None:
    foreign = Foreign(make())
    assert foreign.say(Pong(payload=b"?")) == b"" and foreign.hear() == []


# The end.


@BOTH
def test_the_close_handshake_begun_here(make: Callable[[], WebSocketCodec]) -> None:
    foreign = Foreign(make())
    foreign.ours.send(b"last")
    foreign.ours.close()
    foreign.ours.close()
    foreign.ours.send(b"too late")
    [message, close] = foreign.hear()
    assert isinstance(message, BytesMessage) and bytes(message.data) == b"last"
    assert isinstance(close, CloseConnection) and close.code == 1000
    assert foreign.say(close.response()) == b"" and foreign.ours.ended


@BOTH
def test_the_close_handshake_begun_there(make: Callable[[], WebSocketCodec]) -> None:
    foreign = Foreign(make())
    assert foreign.say(CloseConnection(code=1001)) == b"" and foreign.ours.ended
    [answer] = foreign.hear()
    assert isinstance(answer, CloseConnection) and answer.code == 1001
    foreign.ours.send(b"to nobody")
    assert foreign.ours.take() == b"" and foreign.ours.receive(b"whatever") == b""


@BOTH
def test_a_close_with_a_code_that_is_not_normal_is_told(make: Callable[[], WebSocketCodec]) -> None:
    foreign = Foreign(make())
    with pytest.raises(WebSocketFailure, match=r"^the peer closed with the code 1008: no more$"):
        foreign.say(CloseConnection(code=1008, reason="no more"))
    assert foreign.ours.ended and len(foreign.hear()) == 1


@BOTH
def test_the_words_of_a_peer_are_shown_so_that_a_terminal_takes_no_orders_from_them(
    make: Callable[[], WebSocketCodec],
) -> None:
    foreign = Foreign(make())
    with pytest.raises(WebSocketFailure, match=r"code 1008: \?\[31mred$"):
        foreign.say(CloseConnection(code=1008, reason="\x1b[31mred"))


# What is wrong.


@BOTH
def test_text_is_refused(make: Callable[[], WebSocketCodec]) -> None:
    """AMQP is binary: RFC 6455 has 1003 for a peer that cannot take a type of data."""
    foreign = Foreign(make())
    with pytest.raises(WebSocketFailure, match="the peer sent text, where AMQP is binary"):
        foreign.say(TextMessage(data="hello"))
    [close] = foreign.hear()
    assert isinstance(close, CloseConnection) and close.code == 1003


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (b"\x82\x01x", "unmasked"),
        (b"\x83\x80\x00\x00\x00\x00", "opcode"),
        (b"\xc2\x80\x00\x00\x00\x00", "[Rr]eserved"),
        (b"\x09\x80\x00\x00\x00\x00", "fragment"),
        (b"\x89\xfe\x00\x7e\x00\x00\x00\x00", "125"),
        (b"\x80\x80\x00\x00\x00\x00", "CONTINUATION"),
        (b"\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "MSB"),
    ],
    ids=["unmasked", "opcode", "rsv-bit", "fragmented-ping", "long-ping", "lost-continuation", "length"],
)
def test_frames_that_break_the_protocol(frame: bytes, said: str) -> None:
    """Each ends the WebSocket with 1002, protocol error, and a sentence of what was wrong."""
    foreign = Foreign(ServerWebSocket())
    with pytest.raises(WebSocketFailure, match=f"^the peer breaks the protocol: .*{said}"):  # it has closed nothing
        foreign.ours.receive(frame)
    [close] = foreign.hear()
    assert isinstance(close, CloseConnection) and close.code == 1002
    assert foreign.ours.receive(b"more") == b""


def test_a_client_takes_no_masked_frame() -> None:
    foreign = Foreign(ClientWebSocket("h", "/"))
    with pytest.raises(WebSocketFailure, match="the peer breaks the protocol: .*masked"):
        foreign.ours.receive(b"\x82\x81\x00\x00\x00\x00x")


# The handshake at the broker.

UPGRADE = (
    b"GET /any/path?x=1 HTTP/1.1\r\nHost: broker:80\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)


def asked(request: bytes, server: ServerWebSocket | None = None) -> tuple[str, bytes]:
    """What a broker says to a request that it refuses: in its log, and to the peer."""
    server = server or ServerWebSocket()
    with pytest.raises(WebSocketFailure) as failure:
        server.receive(request)
    assert server.ended and not server.established
    return str(failure.value), server.take()


@pytest.mark.parametrize("name", [b"amqp", b"AMQPWSB10", b"mqtt, amqp"])
def test_the_subprotocol_is_amqp(name: bytes) -> None:
    server = ServerWebSocket()
    server.receive(UPGRADE + b"Sec-WebSocket-Protocol: " + name + b"\r\n\r\n")
    answer = server.take()
    assert server.established and answer.startswith(b"HTTP/1.1 101 ")
    assert name.rpartition(b" ")[2].lower() in answer.lower()
    assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in answer  # the example of RFC 6455, 1.3


@pytest.mark.parametrize("more", [b"", b"Sec-WebSocket-Protocol: mqtt\r\n"])
def test_without_the_subprotocol_nobody_comes_in(more: bytes) -> None:
    said, answer = asked(UPGRADE + more + b"\r\n")
    assert "the subprotocol 'amqp' was not asked for" in said
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.endswith(said.encode() + b"\n")


def test_compression_is_not_taken() -> None:
    """A small message must not unpack to a large one."""
    server = ServerWebSocket()
    server.receive(UPGRADE + b"Sec-WebSocket-Protocol: amqp\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
    assert server.established and b"xtensions" not in server.take()


@pytest.mark.parametrize(
    ("request_", "status", "said"),
    [
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "Upgrade"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 400, "GET"),
        (UPGRADE.replace(b"Version: 13", b"Version: 8") + b"\r\n", 426, "Version"),
        (UPGRADE.replace(b"Upgrade: websocket", b"Upgrade: h2c") + b"\r\n", 400, "Upgrade"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, 400, "Bad HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400, "the peer speaks TLS"),
        (b"AMQP\x00\x01\x00\x00\r\n\r\n", 400, "the peer speaks AMQP without WebSocket"),
    ],
    ids=["plain-get", "post", "version", "other-upgrade", "endless-header", "tls", "amqp"],
)
def test_requests_that_are_no_websocket(request_: bytes, status: int, said: str) -> None:
    sentence, answer = asked(request_)
    assert said in sentence
    assert answer.startswith(b"HTTP/1.1 %d " % status) and b"WebSocket" in answer


@pytest.mark.parametrize(
    ("origin", "origins", "welcome"),
    [
        (b"https://broker:80", (), True),
        (b"http://broker:80", (), False),
        (b"http://broker:80", ("http://broker:80",), True),
        (b"https://evil.example", (), False),
        (b"null", (), False),
        (b"https://app.example", ("https://app.example",), True),
        (b"https://evil.example", ("https://app.example",), False),
        (b"https://evil.example", ("*",), True),
    ],
)
def test_pages_of_other_sites_may_not_connect(origin: bytes, origins: tuple[str, ...], welcome: bool) -> None:
    """RFC 6455, 10.2: else any page could use a broker that its reader's machine can reach."""
    request = UPGRADE + b"Sec-WebSocket-Protocol: amqp\r\nOrigin: " + origin + b"\r\n\r\n"
    server = ServerWebSocket(origins)
    if welcome:
        server.receive(request)
        assert server.established
    else:
        said, answer = asked(request, server)
        assert said == f"pages of {origin.decode()} may not connect here" and b" 403 " in answer


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_what_a_client_says_before_it_has_heard_the_answer_is_not_lost(size: int) -> None:
    """It should wait (RFC 6455, 4.1), and waited for ever where it did not."""
    server = ServerWebSocket()
    octets = UPGRADE + b"Sec-WebSocket-Protocol: amqp\r\n\r\n" + b"\x82\x84\0\0\0\0AMQP"
    assert b"".join(server.receive(octets[at : at + size]) for at in range(0, len(octets), size)) == b"AMQP"
    assert server.established


@pytest.mark.parametrize(
    ("host", "origin", "welcome"),
    [
        (b"127.0.0.1:8080", b"http://127.0.0.1:8080", True),
        (b"[::1]:8080", b"http://[::1]:8080", True),
        (b"localhost:8080", b"http://localhost:8080", True),
        (b"10.0.0.7:8080", b"http://10.0.0.7:8080", True),
        (b"localhost:8080", b"http://localhost:9090", False),
        (b"evil.example:8080", b"http://evil.example:8080", False),
        (b"localhost.evil.example", b"http://localhost.evil.example", False),
        (b" ", b"null", False),
        (b"x", b"http://[", False),
    ],
)
def test_a_page_that_has_its_name_lead_here_may_not_connect(host: bytes, origin: bytes, welcome: bool) -> None:
    """By DNS rebinding its name is in Host and Origin alike; an address, or a name that TLS has proven, is a site."""
    request = UPGRADE.replace(b"Host: broker:80", b"Host: " + host) + b"Sec-WebSocket-Protocol: amqp\r\n"
    server = ServerWebSocket()
    request += b"Origin: " + origin + b"\r\n\r\n"
    if welcome:
        server.receive(request)
    else:
        assert b" 403 " in asked(request, server)[1]
    assert server.established == welcome


# The handshake at the client.


def answered(event: object, *more: object) -> str:
    client = ClientWebSocket("h", "/")
    client.start()
    ws = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
    ws.receive_data(client.take())
    list(ws.events())
    with pytest.raises(WebSocketFailure) as failure:
        client.receive(b"".join(ws.send(each) for each in (event, *more)))  # type: ignore[arg-type]
    assert not client.established
    return str(failure.value)


def test_a_client_asks_for_path_and_subprotocol() -> None:
    client = ClientWebSocket("bus.example", "/$servicebus/websocket")
    client.start()
    ws = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
    ws.receive_data(client.take())
    [request] = ws.events()
    assert isinstance(request, Request)
    assert (request.host, request.target) == ("bus.example", "/$servicebus/websocket")
    assert request.subprotocols == ["amqp"] and request.extensions == []


def test_a_server_that_does_not_agree_to_the_subprotocol() -> None:
    assert "did not agree to the subprotocol 'amqp'" in answered(AcceptConnection())
    client = ClientWebSocket("h", "/")
    client.start()
    ws = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
    ws.receive_data(client.take())
    list(ws.events())
    answer = ws.send(AcceptConnection(subprotocol="amqp")).replace(b": amqp", b": mqtt")
    with pytest.raises(WebSocketFailure, match="the server did not agree to the subprotocol 'amqp': .* mqtt"):
        client.receive(answer)


def test_an_http_status_is_told_with_its_text() -> None:
    answer = RejectConnection(status_code=404, headers=[(b"content-length", b"9")], has_body=True)
    assert answered(answer, RejectData(data=b"no\nbus \x1b!")) == ("the server answered HTTP 404 Not Found: no bus ?!")


def test_a_status_without_text_and_one_that_nobody_knows() -> None:
    assert answered(RejectConnection(status_code=503)) == "the server answered HTTP 503 Service Unavailable"
    assert answered(RejectConnection(status_code=599)) == "the server answered HTTP 599"


def test_a_redirect_says_where_to() -> None:
    answer = RejectConnection(status_code=301, headers=[(b"location", b"https://other.example/")])
    assert answered(answer) == ("the server answered HTTP 301 Moved Permanently: see https://other.example/")


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (b"AMQP\x03\x01\x00\x00", "the peer speaks AMQP without WebSocket"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "the peer speaks TLS"),
        (b"SSH-2.0-OpenSSH_9\r\n", "the handshake failed: the peer does not speak HTTP"),
        (b"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n", "accept"),
    ],
    ids=["amqp", "tls", "ssh", "wrong-key"],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_servers_that_are_no_websocket(octets: bytes, said: str, size: int) -> None:
    """Told by their first octets: they may say no more, and end no line."""
    client = ClientWebSocket("h", "/")
    client.start()
    with pytest.raises(WebSocketFailure, match=said):
        for start in range(0, len(octets), size):
            client.receive(octets[start : start + size])


# In TLS.


def test_a_websocket_in_tls() -> None:
    server = layer_of(TlsCodec(server_context(), server_side=True), ServerWebSocket())
    client = layer_of(TlsCodec(client_context(), server_hostname="localhost"), ClientWebSocket("localhost", "/"))
    assert isinstance(server, Stack) and isinstance(client, Stack)
    shake(server, client)
    client.send(b"a" * 50_000)
    assert client.has_output
    wire = client.take()
    assert server.receive(wire[:100]) + server.receive(wire[100:]) == b"a" * 50_000
    server.close()
    assert client.receive(server.take()) == b"" and client.ended and not server.ended
    assert server.receive(client.take()) == b"" and server.ended and server.peer_certificate() is None


def test_what_fails_says_in_which_layer() -> None:
    server = layer_of(TlsCodec(server_context(), server_side=True), ServerWebSocket())
    assert server is not None
    with pytest.raises(LAYER_FAILURES) as failure:
        server.receive(b"GET / HTTP/1.1\r\n\r\n")
    assert sentence_of(failure.value) == "TLS: the peer speaks HTTP without TLS"
    server.close()
    with pytest.raises(LAYER_FAILURES) as failure:
        ServerWebSocket().receive(b"GET / HTTP/1.1\r\n\r\n")
    assert sentence_of(failure.value).startswith("WebSocket: ")


# In turns.

FRAMES = 100
FLOOD = b"".join(b"\x82\x81\0\0\0\0" + bytes([number]) for number in range(FRAMES))
"""Each octet a frame of its own, as a client masks it."""


def portions(codec: Layer, octets: bytes) -> list[bytes]:
    """What comes of them, call by call."""
    found = [codec.receive(octets)]
    while codec.unread:
        found.append(codec.receive(b""))
    return found


def test_a_server_takes_so_many_frames_at_a_time() -> None:
    """A quarter of a megabyte of tiny frames is most of a second of work, in which everybody else would wait."""
    server, _ = joined()
    found = portions(server, FLOOD)
    assert b"".join(found) == bytes(range(FRAMES)) and {len(part) for part in found[:-1]} == {server.at_once}
    assert server.receive(FLOOD[:7]) == b"\0" and not server.unread


def test_pings_count_as_frames() -> None:
    foreign = Foreign(ServerWebSocket())
    pings = b"\x89\x80\0\0\0\0" * 50
    assert len(portions(foreign.ours, pings)) == 50 // foreign.ours.at_once + 1
    assert foreign.hear() == [Pong(payload=b"")]


def test_behind_a_close_there_is_nothing_to_be_taken() -> None:
    server, client = joined()
    client.send(b"last")
    client.close()
    found = portions(server, FLOOD[:70] + client.take() + FLOOD)
    assert b"".join(found) == bytes(range(10)) + b"last" and server.ended and not server.unread


def test_in_tls_it_is_the_same() -> None:
    server = layer_of(TlsCodec(server_context(), server_side=True), ServerWebSocket())
    client = layer_of(TlsCodec(client_context(), server_hostname="localhost"), ClientWebSocket("localhost", "/"))
    assert isinstance(server, Stack) and isinstance(client, Stack)
    shake(server, client)
    client._lower.send(FLOOD)
    found = portions(server, client.take())
    assert b"".join(found) == bytes(range(FRAMES)) and len(found) > 5


def test_a_client_takes_all_there_is() -> None:
    server, client = joined()
    for number in range(FRAMES):
        server.send(bytes([number]))
    assert client.receive(server.take()) == bytes(range(FRAMES)) and not client.unread


class Between:
    """An I/O thread that does what is posted when a test says so, and a broker that notes what it is brought."""

    stall_timeout = 0.0

    def __init__(self) -> None:
        self.driver = self
        self.buffer = memoryview(bytearray(1 << 18))
        self.posted: list[Callable[[], None]] = []
        self.watched: dict[SocketOutlet, bool] = {}
        self.brought: list[tuple[SocketOutlet, bytes]] = []
        self.portions = Portions(self.post)

    def open(self, outlet: SocketOutlet, **options: object) -> Lane:
        return Lane(SimpleNamespace(is_open=False), outlet, None)  # type: ignore[arg-type]

    def bring(self, lane: Lane, data: bytes | None) -> None:
        self.brought.append((lane.outlet, data or b""))  # type: ignore[arg-type]

    def is_current(self) -> bool:
        return True

    def post(self, action: Callable[[], None]) -> None:
        self.posted.append(action)

    def watch(self, outlet: SocketOutlet, *, reading: bool, writing: bool) -> None:
        self.watched[outlet] = reading


def flooded(thread: Between, stack: ExitStack) -> SocketOutlet:
    """A connection that has brought a hundred frames, of which the first portion was taken."""
    near, far = (stack.enter_context(end) for end in socket.socketpair())
    near.setblocking(False)
    server, client = pair()
    outlet = SocketOutlet(thread, near, "peer", server)  # type: ignore[arg-type]
    client.start()
    far.sendall(client.take())
    outlet.readable()
    far.sendall(FLOOD)
    outlet.readable()
    return outlet


def test_between_two_portions_the_io_thread_does_other_things() -> None:
    """What is left is posted, and the socket is not read while there is some."""
    thread = Between()
    with ExitStack() as stack:
        outlet = flooded(thread, stack)
        while thread.posted:
            assert thread.watched[outlet] is False
            thread.posted.pop(0)()
    octets = [data for _, data in thread.brought]
    assert b"".join(octets) == bytes(range(FRAMES)) and len(octets) > 5 and thread.watched[outlet] is True


def test_of_many_who_flood_one_has_a_portion_in_a_turn() -> None:
    thread = Between()
    with ExitStack() as stack:
        outlets = [flooded(thread, stack) for _ in range(3)]
        while thread.posted:
            assert len(thread.posted) == 1
            before = len(thread.brought)
            thread.posted.pop(0)()
            assert len(thread.brought) == before + 1
    assert [outlet for outlet, _ in thread.brought[3:9]] == outlets * 2
    for outlet in outlets:
        assert b"".join(data for each, data in thread.brought if each is outlet) == bytes(range(FRAMES))


def test_a_conversation_each_octet_of_which_is_a_frame() -> None:
    with EmbeddedBroker() as broker:
        listener = broker.listen(protocol="ws")
        client = ClientWebSocket("localhost", "/")
        client.start()
        with socket.create_connection((listener.host, listener.port), timeout=PATIENCE) as peer:
            peer.sendall(client.take())
            while not client.established:
                client.receive(peer.recv(1000))
            said = AMQP_HEADER + write("open", container_id="x") + write(
                "begin", next_outgoing_id=0, incoming_window=10, outgoing_window=10
            ) + write("attach", name="s", handle=0, role=SENDER, source=composite("source"), initial_delivery_count=0,
                      target=composite("target", address="q"))  # fmt: skip
            for number in range(20):
                said += write("transfer", 0, b"\x00\x53\x77\x40", handle=0, delivery_id=number, delivery_tag=b"t",
                              settled=True)  # fmt: skip
            said += write("close")
            for number in range(len(said)):
                client.send(said[number : number + 1])
            peer.sendall(client.take())
            octets = b""
            while part := peer.recv(1 << 16):
                octets += client.receive(part)
        assert read(octets)[-1].name == "close" and broker.queue("q").depth == 20


# Without the library.


def test_without_wsproto_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wsproto", None)
    with pytest.raises(ImportError, match=r"pip install 'jmsish\[ws\]'"):
        ClientWebSocket("h", "/")


# Over sockets.


def test_the_broker_answers_a_browser(caplog: pytest.LogCaptureFixture) -> None:
    """A refusal is written whole before the socket closes, and the log says who and why."""
    caplog.set_level(logging.INFO, "jmsish.broker")
    wire = Wire("ws")
    try:
        with socket.create_connection(("127.0.0.1", wire.port), timeout=PATIENCE) as browser:
            browser.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            answer = b""
            while data := browser.recv(4096):
                answer += data
        assert answer.startswith(b"HTTP/1.1 400 ") and b"AMQP 1.0 over WebSocket" in answer
        assert any("WebSocket: the handshake failed" in record.getMessage() for record in caplog.records)
        transport = wire.connect("a")
        assert repr(transport).endswith("open, WebSocket>")
    finally:
        wire.stop()


def test_a_plain_client_at_a_websocket_and_the_other_way_round() -> None:
    wire = Wire("tcp")
    try:
        with pytest.raises(ConnectionLostError, match=r"cannot connect to 127\.0\.0\.1:\d+: WebSocket: "):
            connect_tcp("127.0.0.1", wire.port, timeout=PATIENCE, websocket=ClientWebSocket("h", "/"))
    finally:
        wire.stop()


def test_a_server_that_hangs_up_in_the_handshake() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def connect() -> None:
            connect_tcp("127.0.0.1", port, timeout=PATIENCE, websocket=ClientWebSocket("h", "/"))

        def hang_up() -> None:
            peer, _ = listening.accept()
            peer.recv(4096)
            peer.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(ConnectionLostError, match="WebSocket: the peer ended the connection during the handshake"):
            connect()
        thread.join()


def test_the_answer_to_a_ping_is_written_by_the_thread_that_reads() -> None:
    """A client that only waits answers all the same: servers hang up on those that do not."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        heard: list[object] = []

        def serve() -> None:
            peer, _ = listening.accept()
            ws = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
            ws.receive_data(peer.recv(4096))
            list(ws.events())
            peer.sendall(ws.send(AcceptConnection(subprotocol="amqp")) + ws.send(Ping(payload=b"?")))
            ws.receive_data(peer.recv(4096))
            heard.extend(ws.events())
            peer.sendall(ws.send(BytesMessage(data=b"ok")) + ws.send(CloseConnection(code=1000)))
            ws.receive_data(peer.recv(4096))
            heard.extend(ws.events())
            peer.close()

        thread = threading.Thread(target=serve)
        thread.start()
        port = listening.getsockname()[1]
        transport = connect_tcp("127.0.0.1", port, timeout=PATIENCE, websocket=ClientWebSocket("h", "/"))
        assert transport.recv(PATIENCE) == b"ok"
        assert transport.recv(PATIENCE) == b""
        thread.join()
        transport.close()
        assert heard[0] == Pong(payload=b"?") and isinstance(heard[1], CloseConnection)
