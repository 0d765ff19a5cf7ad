"""Configurations of policy, and peers that meet them."""

from __future__ import annotations

from typing import Any

from jmsish.engine.sasl import SaslClient
from tests.broker.world import Peer, World

CONNECTION = ("amqp:resource-limit-exceeded", "connection disallowed by local policy")
SESSION = ("amqp:resource-limit-exceeded", "session disallowed by local policy")
TOO_MANY_LINKS = ("amqp:resource-limit-exceeded", "link disallowed by local policy")
LINK = ("amqp:unauthorized-access", "link disallowed by local policy")
OPEN = {
    "remote_hosts": ["*"],
    "sources": ["*"],
    "targets": ["*"],
    "allow_anonymous_sender": True,
    "allow_dynamic_source": True,
    "allow_user_id_proxy": True,
}


def group(**settings: Any) -> dict[str, Any]:
    """A group of everybody that may do all but what is said."""
    found = {"users": ["*"], **OPEN, **settings}
    for listed, pattern in (("sources", "source_pattern"), ("targets", "target_pattern")):
        if pattern in settings:
            del found[listed]
    return found


def config(vhost: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """One virtual host, with one group of everybody."""
    return {"vhosts": {"$default": {"groups": {"all": group(**settings)}, **(vhost or {})}}}


def world(vhost: dict[str, Any] | None = None, **settings: Any) -> World:
    return World(config(vhost, **settings))


def as_user(world: World, name: str = "joe", **options: Any) -> Peer:
    """A peer that is connected by this name."""
    return world.connect(sasl=SaslClient(username=name, password="x"), **options)


def told(error: Any) -> tuple[str, str | None]:
    """What an error says."""
    return error.condition, error.description


def is_let_in(peer: Peer) -> bool:
    """The connection is open; else it was refused as policy refuses."""
    if not peer.closed:
        return True
    (error,) = peer.closed
    assert told(error) == CONNECTION
    assert peer.engine.remote is not None and peer.engine.remote.properties is not None
    assert peer.engine.remote.properties["amqp:connection-establishment-failed"] is True
    return False
