"""Servers that are no AMQP 1.0 brokers, each on a port of its own."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_HEADER = b"AMQP\x00\x00\x09\x01"

Answer = Callable[[bytes], bytes | None]
"""What is answered to the first words of a client; None closes without a word, an empty answer keeps silent."""


@contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """`host:port` of a server that answers so, each client once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        clients: list[socket.socket] = []
        thread = threading.Thread(target=_accept, args=(listener, answer, tls, clients), daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(30)
        for client in clients:
            client.close()


def _accept(listener: socket.socket, answer: Answer, tls: ssl.SSLContext | None, clients: list[socket.socket]) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        clients.append(client)
        threading.Thread(target=_serve, args=(client, answer, tls), daemon=True).start()


def _serve(client: socket.socket, answer: Answer, tls: ssl.SSLContext | None) -> None:
    try:
        if tls is not None:
            client = tls.wrap_socket(client, server_side=True)
        said = client.recv(4096)
        answered = answer(said)
        if answered is None:
            client.close()
        elif answered:
            client.sendall(answered)
            client.close()
    except OSError:
        client.close()


def amqp_091(said: bytes) -> bytes | None:
    """RabbitMQ without its plugin: it names its protocol, and closes."""
    return (
        b"\x01\x00\x00\x00\x00\x01\xd6\x00\x0a\x00\x0a"
        if said[:8] == b"AMQP\x00\x00\x09\x01"
        else b"AMQP\x00\x00\x09\x01"
    )


def amqp_091_of_few_words(said: bytes) -> bytes | None:
    """One that closes on any header but its own."""
    return b"\x01\x00\x00\x00\x00\x01\xd6\x00\x0a\x00\x0a" if said[:8] == _HEADER else None


def amqp_010(said: bytes) -> bytes | None:
    return b"AMQP\x01\x01\x00\x0a"


def stomp(said: bytes) -> bytes | None:
    return b"CONNECTED\nversion:1.2\n\n\x00" if said.startswith(b"CONNECT\n") else None


def mqtt(said: bytes) -> bytes | None:
    return b"\x20\x02\x00\x00" if said[:1] == b"\x10" and b"MQTT" in said else None


def http(said: bytes) -> bytes | None:
    return b"HTTP/1.1 400 Bad Request\r\n\r\n"


def http_of_few_words(said: bytes) -> bytes | None:
    return b"HTTP/1.1 200 OK\r\n\r\n" if said.startswith(b"GET ") else None


def ssh(said: bytes) -> bytes | None:
    return b"SSH-2.0-OpenSSH_9.2\r\n"


def closing(said: bytes) -> bytes | None:
    return None


def silent(said: bytes) -> bytes | None:
    return b""
