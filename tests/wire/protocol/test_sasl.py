"""SASL (Part 5, 5.3) at a broker that knows one user, guest, with the password guest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jmsish.types import UInt
from tests.wire.frames import AMQP_HEADER, SASL_HEADER, wrap, write
from tests.wire.protocol.steps import Client, Wire
from tests.wire.raw import error

OK, AUTH = 0, 1
GUEST = b"\0guest\0guest"
CLOSE_EXISTING = {"sole-connection-enforcement-policy": UInt(1)}
USERS = {"users": {"guest": {"password": "guest"}}}


@pytest.fixture
def guarded(configured: Callable[[dict[str, Any]], Wire]) -> Wire:
    return configured(USERS)


@pytest.fixture
def greeted(guarded: Wire) -> Client:
    """A client that was told the mechanisms."""
    peer = guarded.peer()
    peer.send(SASL_HEADER)
    peer.expect("header", octets=SASL_HEADER)
    offered = peer.expect("sasl-mechanisms").sasl_server_mechanisms
    assert "PLAIN" in offered and "ANONYMOUS" not in offered
    return peer


def init(mechanism: str, response: bytes | None = None) -> bytes:
    return write("sasl-init", mechanism=mechanism, initial_response=response)


def test_plain(greeted: Client) -> None:
    greeted.send(init("PLAIN", GUEST))
    greeted.expect("sasl-outcome", code=OK)
    greeted.open()
    greeted.close()


def test_plain_with_its_response_later(greeted: Client) -> None:
    """No initial response: an empty challenge asks for it."""
    greeted.send(init("PLAIN"))
    greeted.expect("sasl-challenge", challenge=b"")
    greeted.say("sasl-response", response=GUEST)
    greeted.expect("sasl-outcome", code=OK)
    greeted.open()
    greeted.close()


def test_everything_in_one_write(guarded: Wire) -> None:
    peer = guarded.peer()
    peer.send(SASL_HEADER, init("PLAIN", GUEST), AMQP_HEADER, write("open", container_id="eager"))
    peer.expect("header", octets=SASL_HEADER)
    peer.expect("sasl-mechanisms")
    peer.expect("sasl-outcome", code=OK)
    peer.expect("header", octets=AMQP_HEADER)
    peer.expect("open")
    peer.close()


@pytest.mark.parametrize(
    "response",
    [b"\0guest\0wrong", b"\0nobody\0guest", b"\0guest\0", b"guest", b"", b"other\0guest\0guest", b"\0gu\xff\0guest"],
    ids=repr,
)
def test_wrong_credentials(greeted: Client, response: bytes) -> None:
    greeted.send(init("PLAIN", response))
    greeted.expect("sasl-outcome", code=AUTH)
    greeted.expect_end()


def test_wrong_credentials_and_an_open_behind_them(guarded: Wire) -> None:
    """What was sent in advance is not looked at."""
    peer = guarded.peer()
    peer.send(SASL_HEADER, init("PLAIN", b"\0guest\0no"), AMQP_HEADER, write("open", container_id="eager"))
    peer.expect("header")
    peer.expect("sasl-mechanisms")
    peer.expect("sasl-outcome", code=AUTH)
    peer.expect_end()


@pytest.mark.parametrize("mechanism", ["ANONYMOUS", "EXTERNAL", "CRAM-MD5", "plain", ""])
def test_a_mechanism_that_was_not_offered(greeted: Client, mechanism: str) -> None:
    greeted.send(init(mechanism, GUEST))
    greeted.expect("sasl-outcome", code=AUTH)
    greeted.expect_end()


def test_no_sasl_where_it_is_demanded(guarded: Wire) -> None:
    """The header that would have been right, then the end."""
    peer = guarded.peer()
    peer.send(AMQP_HEADER)
    peer.expect("header", octets=SASL_HEADER)
    peer.expect_end()


def test_no_sasl_where_it_is_demanded_and_an_open_behind(guarded: Wire) -> None:
    peer = guarded.peer()
    peer.send(AMQP_HEADER, write("open", container_id="c"))
    peer.expect("header", octets=SASL_HEADER)
    peer.expect_end()


@pytest.mark.parametrize(
    "octets",
    [
        write("open", container_id="c"),
        AMQP_HEADER,
        write("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"]),
        write("sasl-challenge", challenge=b"x"),
        write("sasl-outcome", code=OK),
        write("sasl-response", response=GUEST),
        write("sasl-init"),
        wrap(b"", kind=1),
        wrap(b"", kind=0),
    ],
    ids=["open", "header", "mechanisms", "challenge", "outcome", "response", "no mechanism", "empty", "heartbeat"],
)
def test_anything_else_than_an_init(greeted: Client, octets: bytes) -> None:
    """The line ends; nothing is opened before who is there is known."""
    greeted.send(octets)
    frame = greeted.hear()
    assert frame is None or (frame.name == "sasl-outcome" and frame.code != OK)
    if frame is not None:
        greeted.expect_end()
    assert greeted.over


def test_a_frame_of_sasl_after_the_outcome(greeted: Client) -> None:
    greeted.send(init("PLAIN", GUEST))
    greeted.expect("sasl-outcome", code=OK)
    greeted.open()
    greeted.send(init("PLAIN", GUEST))
    greeted.expect("close", error=error("amqp:connection:framing-error"))


def test_anonymous_where_nobody_is_asked(configured: Callable[[dict[str, Any]], Wire]) -> None:
    peer = configured({}).peer()
    peer.send(SASL_HEADER)
    peer.expect("header", octets=SASL_HEADER)
    assert "ANONYMOUS" in peer.expect("sasl-mechanisms").sasl_server_mechanisms
    peer.send(init("ANONYMOUS"))
    peer.expect("sasl-outcome", code=OK)
    peer.open()
    peer.close()


def test_plain_where_nobody_is_asked(configured: Callable[[dict[str, Any]], Wire]) -> None:
    """A client that was given a name may use it."""
    peer = configured({}).peer()
    peer.send(SASL_HEADER, init("PLAIN", GUEST))
    peer.expect("header")
    peer.expect("sasl-mechanisms")
    peer.expect("sasl-outcome", code=OK)
    peer.open()
    peer.close()


@pytest.mark.parametrize("same", [True, False])
def test_nobody_closes_the_connection_of_somebody_else(
    configured: Callable[[dict[str, Any]], Wire], same: bool
) -> None:
    """One connection to a container, and the newer one shall stay: not where another user has taken the name."""
    wire = configured({"users": {"guest": {"password": "guest"}, "other": {"password": "guest"}}})
    older = authenticated(wire, GUEST)
    older.open(container_id="sole", desired_capabilities=["sole-connection-for-container"], properties=CLOSE_EXISTING)
    newer = authenticated(wire, GUEST if same else b"\0other\0guest")
    newer.open(container_id="sole", desired_capabilities=["sole-connection-for-container"], properties=CLOSE_EXISTING)
    if same:
        older.expect("close", error=error("amqp:resource-locked"))
        newer.close()
    else:
        newer.expect("close", error=error("amqp:invalid-field"))
        older.close()


def authenticated(wire: Wire, response: bytes) -> Client:
    peer = wire.peer()
    peer.send(SASL_HEADER, init("PLAIN", response))
    peer.expect("header")
    peer.expect("sasl-mechanisms")
    peer.expect("sasl-outcome", code=OK)
    return peer
