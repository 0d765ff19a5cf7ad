"""The opening of a connection: who may be there, and what the broker says of itself."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final

from jmsish.broker.network.doors import ID_PROPERTY
from jmsish.engine.frames import MIN_MAX_FRAME_SIZE
from jmsish.engine.outcomes import AmqpError
from jmsish.engine.sharing import SHARED_WINDOWS, agree
from jmsish.types import Symbol, UInt

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.grants import Grant
    from jmsish.engine.engine import Engine
    from jmsish.engine.performatives import Open

SOLE_CONNECTION: Final = "sole-connection-for-container"
CAPABILITIES: Final = (SOLE_CONNECTION, "ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS")
REFUSED_PROPERTY: Final = Symbol("amqp:connection-establishment-failed")
POLICY_PROPERTY: Final = Symbol("sole-connection-enforcement-policy")
REFUSE_NEW: Final = 0
CLOSE_EXISTING: Final = 1


def describe(version: str) -> dict[Symbol, str]:
    """The properties of the broker's open (M33)."""
    return {
        Symbol("product"): "jmsish",
        Symbol("version"): version,
        Symbol("platform"): f"Python {platform.python_version()}",
    }


def admit(connection: ServerConnection) -> None:
    """Answer the peer's open: policy has the first word, then those that want to be alone with their container-id."""
    engine, broker = connection.engine, connection.broker
    if engine.mute:
        return
    remote = engine.remote
    assert remote is not None
    connection.container_id = remote.container_id
    error = broker.admission.enter(connection, remote.hostname) or _alone(connection, remote)
    if error is not None:
        engine.properties = {**(engine.properties or {}), REFUSED_PROPERTY: True}
        engine.open()
        connection.close(error)
        return
    if ID_PROPERTY in (remote.properties or {}):
        engine.properties = {**(engine.properties or {}), SHARED_WINDOWS: True}
        agree(engine)
    broker.opened(connection)
    open_granted(connection.engine, connection.grant)


def _alone(connection: ServerConnection, remote: Open) -> AmqpError | None:
    """Of two connections of a container that wants one only, one has to go (M36): why it is this, or None."""
    engine = connection.engine
    if SOLE_CONNECTION in remote.desired_capabilities:
        asked = (remote.properties or {}).get(POLICY_PROPERTY)
        connection.sole = CLOSE_EXISTING if asked == CLOSE_EXISTING else REFUSE_NEW
        if asked is not None:
            engine.properties = {**(engine.properties or {}), POLICY_PROPERTY: UInt(connection.sole)}
    same = connection.broker.open_connections(remote.container_id)
    others = [other for other in same if other is not connection]
    if any(_stays(other, connection) for other in others):
        return AmqpError(
            "amqp:invalid-field",
            f"the container {remote.container_id!r} has a connection already",
            {Symbol("invalid-field"): Symbol("container-id")},
        )
    for other in others:
        if other.sole is not None or connection.sole is not None:
            other.close(
                AmqpError(
                    "amqp:resource-locked",
                    f"the container {remote.container_id!r} has connected anew",
                    {Symbol("sole-connection-enforcement"): True},
                )
            )
    return None


def open_granted(engine: Engine, grant: Grant) -> None:
    """Write our open, with the limits that were granted."""
    size = grant.max_frame_size or engine.max_frame_size
    if grant.max_session_window:
        # A window is counted in frames: with larger ones than it is wide, one frame would be more than was allowed.
        size = min(size, max(grant.max_session_window, MIN_MAX_FRAME_SIZE))
    engine.max_frame_size = engine.frames_limit = size
    own = engine.channel_max
    if grant.max_sessions:
        engine.channel_max = grant.max_sessions - 1
    engine.open()
    # Who goes beyond what was announced has that session ended, as policy says it, and not its connection.
    engine.channel_max = max(own, engine.channel_max)


def _stays(older: ServerConnection, newer: ServerConnection) -> bool:
    """Whether the older connection stands in the way of the newer: what the older asked for comes first.

    Nobody closes the connection of somebody else by taking its container-id.
    """
    policy = newer.sole if older.sole is None else older.sole
    return policy == REFUSE_NEW or (policy is not None and older.identity != newer.identity)
