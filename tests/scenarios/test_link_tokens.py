"""Tokens for links at the imitated Azure Service Bus (option `cbs`): over cuts, idle times and refusals."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import jmsish
from jmsish.testing import VirtualClock

from .face import Face
from .mending import Mending
from .steps import expect, outcome, send

KEY = {"cbs": True, "username": "root", "password": "secret-key"}


def web_token(expiry: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(expiry)}).encode()).decode().rstrip("=")
    return f"head.{claims}.signature"


def azure(face: Face, **settings: Any) -> None:
    face.broker_with(profile="servicebus", **settings).declare_queue("orders")


async def test_a_key_makes_the_token_of_each_link(face: Face) -> None:
    azure(face)
    connection = await face.connect(**KEY)
    await send(connection, "orders", "m1")
    session = await connection.create_session()
    await expect(await session.create_consumer(session.create_queue("orders")), "m1")


async def test_each_connection_brings_a_token_of_its_own(face: Face) -> None:
    """That of the connection before it may have run out while the broker was away."""
    azure(face)
    given: list[str] = []

    def token() -> str:
        given.append(f"token-{len(given)}")
        return given[-1]

    mending = Mending(face)
    connection = await mending.connect(cbs=True, token=token)
    session = await connection.create_session()
    consumer = await session.create_consumer(session.create_queue("orders"))
    await mending.mend()
    assert given == ["token-0", "token-1"]
    await send(connection, "orders", "m1")
    await expect(consumer, "m1")


async def test_a_token_that_has_run_out_is_refused_to_who_wants_the_link(face: Face) -> None:
    azure(face)
    connection = await face.connect(cbs=True, token=lambda: web_token(1000))
    session = await connection.create_session()
    error = await outcome(session.create_producer(session.create_queue("orders")))
    assert isinstance(error, jmsish.JMSSecurityError) and "takes no token of ours: ExpiredToken" in str(error)
    assert "signature" not in str(error)


async def test_what_is_made_while_the_connection_is_away_has_its_token_when_it_is_back(face: Face) -> None:
    azure(face)
    mending = Mending(face)
    connection = await mending.connect(**KEY, initial_reconnect_delay=0.1)
    session = await connection.create_session()
    queue = session.create_queue("orders")
    mending.cut()
    producer = await session.create_producer(queue)
    await producer.send("m1")
    await expect(await session.create_consumer(queue), "m1")


@pytest.mark.parametrize("face", ["sync-vm", "aio-vm"], indirect=True)
async def test_links_of_tokens_that_were_idle_are_attached_anew(face: Face) -> None:
    """The broker detaches them after ten minutes as all others; what it has taken before holds on."""
    clock = VirtualClock()
    azure(face, clock=clock)
    connection = await face.connect(**KEY, clock=clock)
    await send(connection, "orders", "m1")
    clock.advance(700)
    face.broker.declare_queue("others")
    await send(connection, "others", "m2")
    session = await connection.create_session()
    for name, body in (("orders", "m1"), ("others", "m2")):
        await expect(await session.create_consumer(session.create_queue(name)), body)
