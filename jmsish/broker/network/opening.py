"""The opening of a connection of a router: who the peer is, whether it is let in, and what it is from then on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jmsish.broker.config.caps import LARGEST_UINT
from jmsish.broker.greeting import open_granted
from jmsish.broker.network.connectors import Connector
from jmsish.broker.network.control import Teller
from jmsish.broker.network.doors import CAPABILITIES, NORMAL, Hello, hello_of, refusal
from jmsish.broker.network.reach import ROUTER, join_key
from jmsish.engine.windows import narrow_window

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection

FOREIGN_WINDOW: Final = 40
"""Frames of a session that may come at a time from who does not share windows (`sharing`): as wide a one as others have
would let as much more be held of a large message."""


def opened(connection: RouterConnection) -> None:
    """The peer has sent its open."""
    engine, connector = connection.engine, connection.connector
    remote = engine.remote
    if remote is None or engine.mute:
        return
    connection.container_id = remote.container_id
    if not engine.shares_windows:
        engine.incoming_window = FOREIGN_WINDOW
        for session in engine.remote_sessions.values():
            narrow_window(session, FOREIGN_WINDOW)
    if connector is not None and connection.is_closing:
        return
    try:
        hello = hello_of(remote)
    except ValueError as error:
        connection.refuse(str(error), "amqp:invalid-field")
        return
    if connector is None and hello is not None:
        engine.offered_capabilities = (CAPABILITIES[hello.role],)
    why = _why_not(connection, hello)
    if why is not None:
        connection.refuse(why)
    elif connector is not None:
        _let_in(connection, hello)
        connector.opened()
    elif connection.node.admit(connection, NORMAL if hello is None else hello.role):
        if hello is None:
            engine.channel_max = connection.node.config.caps.max_sessions - 1
        else:
            # Its sessions and links are those of all clients behind it, who had their grants at its own door.
            connection.grant = replace(
                connection.grant, max_sessions=0, max_session_window=0, max_senders=None, max_receivers=None
            )
        open_granted(engine, connection.grant)
        _let_in(connection, hello)


def _why_not(connection: RouterConnection, hello: Hello | None) -> str | None:
    """Why the peer is not let in by its door; or None."""
    node, connector = connection.node, connection.connector
    role = connection.door if connector is None else connector.role
    if hello is None:
        if role in (None, NORMAL):
            return None
        return f"{connection.container_id!r} is no router" if connector else f"this is the door for {role!r} routers"
    text = refusal(
        hello,
        router=node.router,
        mode=node.mode,
        role=hello.role if role is None else role,
        dialled=connector is not None,
        has_uplink=node.uplink is not None,
    )
    if text is None and node.reach.distance(ROUTER + hello.router) is not None:
        return (
            f"the router {hello.router!r} is reached from {node.router!r} already: a second way would close a ring, "
            "and two routers of one id cannot be told apart"
        )
    return text


def _let_in(connection: RouterConnection, hello: Hello | None) -> None:
    """It is in; a router is a neighbour, and is told what there is."""
    if hello is None:
        return
    node, engine = connection.node, connection.engine
    connection.neighbour = hello
    # Those of all clients behind it, each of which has its limits at its own door: it is no flood of one peer.
    engine.limits = replace(engine.limits, max_links=LARGEST_UINT)
    node.reach.welcome(connection)
    node.neighbours[connection] = None
    node.reach_changed(node.reach.learn(connection, {ROUTER + hello.router: 0}, ()))
    if isinstance(connection.connector, Connector):
        connection.connector.router = hello.router
    else:
        node.reach.begin(join_key(hello.role, hello.router, node.router))
    session = engine.begin()
    session.context = []
    connection.sessions.append(session)
    connection.teller = Teller(connection, session)
    session.context.append(connection.teller)
