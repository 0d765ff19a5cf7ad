"""A broker that starts takes connections before it can serve them: each is one more failed attempt, and no end."""

from __future__ import annotations

import pytest

from .face import Face
from .mending import Mending
from .steps import expect, send


@pytest.mark.parametrize("attempts", [1, 5])
async def test_a_wire_that_ends_in_the_handshake_is_a_failed_attempt(face: Face, attempts: int) -> None:
    """Also while the next attempt is waited for, with nothing to be read any more."""
    mending = Mending(face)
    if mending.proxy is None:
        pytest.skip("in memory there is no handshake to be cut")
    connection = await mending.connect()
    session = await connection.create_session()
    await send(connection, "orders", "m1")
    consumer = await session.create_consumer(session.create_queue("orders"), prefetch=0)
    mending.proxy.to_refuse = attempts
    mending.cut()
    await mending.restored()
    assert mending.proxy.to_refuse == 0
    assert not connection.is_closed
    await expect(consumer, "m1 none")
