"""AMQP over WebSocket, plain and in TLS, straight and through a proxy: the same work as over TCP."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jmsish
from tests.relay import Relay, onward

from .face import Face
from .steps import outcome, send
from .test_connecting import contexts, refused

pytestmark = pytest.mark.parametrize("face", ["sync-tcp", "aio-tcp"], indirect=True)

Reach = tuple[str, dict[str, Any]]


def listen(face: Face, secure: bool, **options: Any) -> Reach:
    """A WebSocket listener of the scenario's broker: its URL, and what is needed to connect to it."""
    server, client = contexts() if secure else (None, None)
    listener = face.broker.listen(ssl_context=server, protocol="ws", **options)
    scheme = "amqpwss" if secure else "amqpws"
    assert listener.url == f"{scheme}://127.0.0.1:{listener.port}"
    return f"{scheme}://localhost:{listener.port}", {"ssl_context": client}


BOTH = pytest.mark.parametrize("secure", [False, True], ids=["ws", "wss"])


class Proxy(Relay):
    """An HTTP proxy that opens the ways it is asked for."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self.requests: list[bytes] = []
        self._answer = answer
        super().__init__()

    @property
    def url(self) -> str:
        return f"http://ann:s3cret@127.0.0.1:{self.port}"

    def reach(self, near: socket.socket) -> socket.socket | None:
        request = near.recv(4096)
        self.requests.append(request)
        if b" 200 " not in self._answer:
            near.sendall(self._answer)
            return None
        host, _, port = request.split()[1].decode().rpartition(":")
        far = onward(near, (host, int(port)))
        near.sendall(self._answer)
        return far


@pytest.fixture
def proxy() -> Iterator[Callable[..., Proxy]]:
    made: list[Proxy] = []

    def make(*answer: bytes) -> Proxy:
        made.append(Proxy(*answer))
        return made[-1]

    yield make
    for each in made:
        each.close()


async def work(face: Face, url: str, **options: Any) -> None:
    """Messages of all sizes, a transaction rolled back, a clean close."""
    connection = await face.connect(url, **options)
    session = await connection.create_session(transacted=True)
    queue = session.create_queue("orders")
    producer = await session.create_producer(queue)
    sizes = (1, 200, 70_000, 400_000)
    for size in sizes:
        await producer.send("x" * size)
    await session.commit()
    await connection.start()
    consumer = await session.create_consumer(queue)
    for _ in range(2):
        got = [await consumer.receive(timeout=30) for _ in sizes]
        assert [len(message.body) for message in got if message is not None] == list(sizes)
        await session.rollback()
    await connection.close()
    assert face.broker.queue("orders").depth == len(sizes)
    assert face.broker.connections() == []


@BOTH
async def test_the_same_work_as_over_tcp(face: Face, secure: bool) -> None:
    """Segments, windows, a transaction and a close, through WebSocket frames."""
    url, options = listen(face, secure)
    await work(face, url, **options)


@BOTH
@pytest.mark.parametrize("path", ["/", "/$servicebus/websocket", "/a/b?"])
async def test_every_path_is_good(face: Face, secure: bool, path: str) -> None:
    """The path that Service Bus wants is as good as any other, and ws:// and wss:// mean the same."""
    url, options = listen(face, secure)
    await send(await face.connect(url.removeprefix("amqp") + path, **options), "orders", "m1")


@BOTH
async def test_through_a_proxy(face: Face, secure: bool, proxy: Callable[..., Proxy]) -> None:
    """CONNECT, with the proxy's own credentials, then TLS to the broker and the WebSocket in it."""
    url, options = listen(face, secure)
    way = proxy()
    await work(face, url, proxy=way.url, **options)
    [request] = way.requests
    assert request.startswith(b"CONNECT localhost:") and b"Proxy-Authorization: Basic " in request


async def test_amqp_without_websocket_through_a_proxy(face: Face, proxy: Callable[..., Proxy]) -> None:
    """The option is for every connection by TCP, with TLS or without."""
    way = proxy()
    await work(face, face.listener.url, proxy=way.url)
    server, client = contexts()
    secure = face.broker.listen(ssl_context=server)
    await send(
        await face.connect(f"amqps://localhost:{secure.port}", ssl_context=client, proxy=way.url), "orders", "m1"
    )
    assert len(way.requests) == 2


async def test_a_proxy_that_refuses(face: Face, proxy: Callable[..., Proxy]) -> None:
    """Its status is told with its text, and its password is not."""
    url, options = listen(face, False)
    way = proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    text = str(await refused(face, url, proxy=way.url, **options))
    assert "localhost" in text and "the proxy answered HTTP 407 Proxy Authentication Required" in text
    assert "s3cret" not in text
    way.close()
    assert "127.0.0.1" in str(await refused(face, url, proxy="http://127.0.0.1:1", **options))


async def test_the_proxy_of_the_environment(
    face: Face, proxy: Callable[..., Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over WebSocket it is used, unless the option says none; this machine is reached without, and so is plain AMQP."""
    url, _ = listen(face, False)
    way = proxy()
    monkeypatch.setenv("http_proxy", way.url)
    monkeypatch.setattr("jmsish.drivers.proxy._is_loopback", lambda host: False)
    far = url.replace("localhost", "127.0.0.1")
    await send(await face.connect(far), "orders", "m1")
    assert len(way.requests) == 1
    await send(await face.connect(far, proxy=""), "orders", "m2")
    await send(await face.connect(url), "orders", "m3")
    await send(await face.connect(), "orders", "m4")
    assert len(way.requests) == 1


async def test_a_server_that_is_no_websocket(face: Face) -> None:
    """A port that speaks AMQP itself, asked for a WebSocket, and the other way round: both say what they met."""
    url = face.listener.url
    assert "WebSocket" in str(await refused(face, url.replace("amqp:", "amqpws:")))
    other, _ = listen(face, False)
    assert "HTTP" in str(await refused(face, other.replace("amqpws:", "amqp:")))


async def test_an_http_status_is_told_with_its_text(face: Face) -> None:
    """A web server in the place of the broker."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            peer, _ = listening.accept()
            peer.recv(4096)
            peer.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nno bus her")
            peer.close()

        thread = threading.Thread(target=serve)
        thread.start()
        text = str(await refused(face, f"amqpws://127.0.0.1:{listening.getsockname()[1]}/bus"))
        thread.join()
    assert text.endswith("WebSocket: the server answered HTTP 404 Not Found: no bus her")


async def test_a_certificate_that_is_not_trusted(face: Face) -> None:
    """TLS is checked below a WebSocket as everywhere."""
    url, _ = listen(face, True)
    text = str(await refused(face, url, ssl_context=ssl.create_default_context()))
    assert "localhost" in text and "TLS" in text


async def test_no_answer_in_time(face: Face) -> None:
    """A server that takes the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        text = str(await refused(face, f"amqpws://127.0.0.1:{mute.getsockname()[1]}", connect_timeout=0.2))
    assert "127.0.0.1" in text and "0.2 s" in text


async def test_the_broker_stops(face: Face) -> None:
    """The word of farewell comes through, then the end."""
    url, options = listen(face, False)
    connection = await face.connect(url, **options)
    session = await connection.create_session()
    consumer = await session.create_consumer(session.create_queue("orders"))
    await connection.start()
    face.broker.stop()
    result = await outcome(consumer.receive(timeout=30))
    assert isinstance(result, jmsish.JMSError) or result is None
    assert isinstance(await outcome(connection.create_session()), jmsish.JMSError)
