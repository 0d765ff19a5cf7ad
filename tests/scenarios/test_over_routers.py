"""Scenarios 1 to 12 through four routers: what holds at a broker holds at the edge of a network before it (R10)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .face import Face
from .routed import ROUTED_FACES, Routed
from .steps import expect, send, stage
from .test_a_seed import (
    test_s001_cancel_always,
    test_s001_cancel_never,
    test_s001_seed_example_consumer_open,
    test_s001_with_the_consumers_there_before,
    test_s002_seed_example_first_consumer_goes_on,
    test_s003_seed_example_first_consumer_closed_after_commit,
    test_s004_redel0_close_new_consumer_then_commit,
    test_s005_redel1_the_same_with_timed_receives,
    test_s006_redel2_close_commit_then_new_consumer,
    test_s007_redel3_rollback_consumer_open,
    test_s008_redel4_rollback_consumer_closed,
    test_s009_redel5_recover_consumer_open,
    test_s010_redel6_recover_consumer_closed,
    test_s011_redel7_closing_a_consumer_is_not_a_recover,
    test_s012_redel8_close_with_a_full_buffer,
    test_seed_002_literal,
)

__all__ = [
    "test_s001_cancel_always",
    "test_s001_cancel_never",
    "test_s001_seed_example_consumer_open",
    "test_s001_with_the_consumers_there_before",
    "test_s002_seed_example_first_consumer_goes_on",
    "test_s003_seed_example_first_consumer_closed_after_commit",
    "test_s004_redel0_close_new_consumer_then_commit",
    "test_s005_redel1_the_same_with_timed_receives",
    "test_s006_redel2_close_commit_then_new_consumer",
    "test_s007_redel3_rollback_consumer_open",
    "test_s008_redel4_rollback_consumer_closed",
    "test_s009_redel5_recover_consumer_open",
    "test_s010_redel6_recover_consumer_closed",
    "test_s011_redel7_closing_a_consumer_is_not_a_recover",
    "test_s012_redel8_close_with_a_full_buffer",
    "test_seed_002_literal",
]


@pytest.fixture(params=ROUTED_FACES)
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    """One of the four ways, each through four routers."""
    make, wire = ROUTED_FACES[request.param]
    yield make(wire)


async def test_the_connection_is_one_to_the_edge(face: Face) -> None:
    """The scenarios above really go over the routers: the client is at EA1, and EA1 is no neighbour of the broker."""
    play = await stage(face, "transacted", "m1")
    await expect(await play.consumer(), "m1")
    assert isinstance(face, Routed)
    at_edge = {view.container_id for view in face.network["EA1"].connections()} - {"INT.A"}
    assert len(at_edge) == 1
    assert {view.container_id for view in face.broker.connections()} == {"INT.B"} | at_edge
    await send(play.connection, "orders", "m2")
    await play.session.commit()
    await play.queue.holds(1)
