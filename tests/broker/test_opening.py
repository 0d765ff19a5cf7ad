"""Connections: who gets in, what the broker says of itself, and how they end."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import AmqpError
from jmsish.engine.sasl import SaslClient
from tests.broker.world import World

SOLE = "sole-connection-for-container"
USERS = {"users": {"alice": {"password": "secret"}, "bob": {"password": "hidden"}}}


def test_m33_m34_the_broker_introduces_itself(world: World) -> None:
    remote = world.connect().engine.remote
    assert remote is not None
    assert set(remote.offered_capabilities) >= {SOLE, "ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS"}
    assert remote.properties is not None and remote.properties["product"] == "jmsish"
    assert set(remote.properties) == {"product", "version", "platform"}


@pytest.mark.parametrize(
    ("sasl", "identity"),
    [
        (SaslClient(), "anonymous"),
        (SaslClient(username="carol", password="whatever"), "carol"),
        (SaslClient(mechanisms=["ANONYMOUS"]), "anonymous"),
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
def test_without_users_everybody_gets_in(world: World, sasl: SaslClient, identity: str, trusted: bool) -> None:
    peer = world.connect(sasl=sasl, trusted=trusted)
    assert not peer.failed and world.broker.connections()[0].identity == identity


@pytest.mark.parametrize(
    ("sasl", "enters"),
    [
        (SaslClient(username="alice", password="secret"), True),
        (SaslClient(username="bob", password="hidden"), True),
        (SaslClient(username="alice", password="hidden"), False),
        (SaslClient(username="alice", password=""), False),
        (SaslClient(username="carol", password="\0"), False),
        (SaslClient(), False),
        (SaslClient(mechanisms=["ANONYMOUS"]), False),
    ],
)
def test_with_users_only_they_get_in(sasl: SaslClient, enters: bool) -> None:
    world = World(USERS)
    peer = world.connect(sasl=sasl, trusted=False)
    assert bool(peer.failed) is not enters
    assert len(world.broker.connections()) == enters
    if not enters:
        assert peer.failed[0].condition == "amqp:unauthorized-access"
        peer.cut()
        assert peer.connection.closed


def test_inside_the_process_nobody_is_asked() -> None:
    world = World(USERS)
    peer = world.connect(sasl=SaslClient(username="anybody", password="x"), trusted=True)
    assert not peer.failed and world.broker.connections()[0].identity == "anybody"


def _container(world: World, **options: Any) -> Any:
    return world.connect("same", **options)


@pytest.mark.parametrize(("first", "second"), [((), (SOLE,)), ((SOLE,), ()), ((SOLE,), (SOLE,))])
def test_m35_m36_a_sole_container_is_alone(world: World, first: tuple[str, ...], second: tuple[str, ...]) -> None:
    one = _container(world, desired_capabilities=first)
    two = _container(world, desired_capabilities=second)
    (error,) = two.closed
    assert isinstance(error, AmqpError) and error.condition == "amqp:invalid-field"
    assert error.info == {"invalid-field": "container-id"}
    assert two.engine.remote.properties["amqp:connection-establishment-failed"] is True
    assert not one.closed and len(world.broker.connections()) == 1
    one.close()
    assert not _container(world, desired_capabilities=second).closed


def test_containers_that_do_not_mind_may_come_twice(world: World) -> None:
    assert not _container(world).closed and not _container(world).closed


def test_m32_views_of_connections(world: World) -> None:
    """The container-id is what JMS calls the client id."""
    peer = world.connect("c1")
    peer.sender()
    peer.receiver()
    peer.receiver("other", session=peer.begin())
    peer.controller().declare()
    (view,) = world.broker.connections()
    assert (view.container_id, view.peer) == ("c1", "memory")
    assert (view.sessions, view.senders, view.receivers, view.transactions) == (2, 2, 2, 1)
    peer.close()
    assert world.broker.connections() == []


def test_the_stop_of_the_broker_says_so(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    peer.receiver(credit=1)
    world.broker.close()
    world.run()
    (error,) = peer.closed
    assert error is not None and error.condition == "amqp:connection:forced"
    assert peer.connection.closed
    assert world.depth() == (1, 0)


def test_everything_in_one_go(world: World) -> None:
    """Open, begin, attach, a settled transfer and close in one piece of input: all is done, in order."""
    peer = world.connect()
    peer.sender()
    late = world.connect("pipelined")
    assert not late.failed
    sender = late.sender()
    sender.send("m1", run=False, settled=True)
    late.engine.close()
    world.run()
    assert late.connection.closed and world.bodies() == ["m1"]


def test_garbage_ends_its_own_connection_only(world: World) -> None:
    victim = world.connect()
    victim.sender().send("m1")
    held = victim.receiver(credit=1)
    garbage = world.connect()
    garbage.connection.receive(b"\x00\x00\x00\x08\x02\x00\x00\x00garbage that is no frame at all")
    world.run()
    assert garbage.connection.closed
    assert len(world.broker.connections()) == 1
    held.accept(held.take())
    assert world.queue().depth == 0


def test_a_peer_that_goes_away_twice_is_gone_once(world: World) -> None:
    peer = world.connect()
    peer.close()
    peer.connection.receive_eof()
    peer.connection.receive_eof()
    assert peer.connection.closed and world.broker.connections() == []
