"""Uplinks over TLS, by sockets: why one is not there is said by its connector, in the words of TLS."""

from __future__ import annotations

import logging
import queue
import ssl
from collections.abc import Iterator

import pytest
import trustme

from jmsish import EmbeddedBroker
from tests.network.clients import PATIENCE


class Warnings(logging.Handler):
    """Gives out what a router warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: queue.SimpleQueue[str] = queue.SimpleQueue()

    def emit(self, record: logging.LogRecord) -> None:
        self.said.put(record.getMessage())


@pytest.fixture
def warnings() -> Iterator[Warnings]:
    handler = Warnings()
    logging.getLogger("jmsish.broker").addHandler(handler)
    yield handler
    logging.getLogger("jmsish.broker").removeHandler(handler)


def certified() -> tuple[trustme.CA, ssl.SSLContext]:
    """An authority, and the TLS of a door with its certificate for 127.0.0.1."""
    authority, server = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    return authority, server


def trust(authority: trustme.CA, folder: object, monkeypatch: pytest.MonkeyPatch) -> None:
    authority.cert_pem.write_to_path(f"{folder}/ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", f"{folder}/ca.pem")


def routers() -> tuple[EmbeddedBroker, EmbeddedBroker]:
    """An interior and an edge that are not joined."""
    interior = EmbeddedBroker(config={"router": {"id": "INT.A", "mode": "interior"}})
    return interior, EmbeddedBroker(config={"router": {"id": "EA1", "mode": "edge"}})


@pytest.mark.parametrize(
    ("trusted", "host", "why"),
    [
        (False, "127.0.0.1", "TLS: the certificate was not accepted: "),
        (True, "localhost", "TLS: the certificate was not accepted: Hostname mismatch"),
    ],
)
def test_an_uplink_says_which_certificate_it_did_not_accept(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch, warnings: Warnings, trusted: bool, host: str, why: str
) -> None:
    authority, server = certified()
    if trusted:
        trust(authority, tmp_path, monkeypatch)
    interior, edge = routers()
    with interior, edge:
        door = interior.listen(role="edge", ssl_context=server)
        url = f"amqps://{host}:{door.port}"
        connector = edge.connector(url, role="edge")
        said = warnings.said.get(timeout=PATIENCE)
        assert said.startswith(f"the router 'EA1' is not connected to {url}: {host}:{door.port}: {why}")
        assert not connector.is_up and why in connector.error


def test_an_uplink_over_tls_is_there_for_the_name_in_the_certificate(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, server = certified()
    trust(authority, tmp_path, monkeypatch)
    interior, edge = routers()
    with interior, edge:
        door = interior.listen(role="edge", ssl_context=server)
        edge.connector(f"amqps://127.0.0.1:{door.port}", role="edge")
        edge.router.wait_for_routers("INT.A", "EA1", timeout=PATIENCE)


def test_a_door_without_tls_is_told_by_name(warnings: Warnings) -> None:
    interior, edge = routers()
    with interior, edge:
        door = interior.listen(role="edge")
        edge.connector(f"amqps://127.0.0.1:{door.port}", role="edge")
        said = warnings.said.get(timeout=PATIENCE)
        assert said.endswith(f"127.0.0.1:{door.port}: TLS: the peer speaks AMQP without TLS")
