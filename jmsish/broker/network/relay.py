"""Links that go through a router as they are, one here for each there (R10).

Theory of operation.  A session of the peer that uses link routes has one session on the way to its broker, and each
link in it one link there, so order, windows and transactions are what they would be without the router. Nothing is
decided here: attach, flow, transfers, dispositions and detach pass with all their fields, in the order in which they
came, and an attach or a detach is answered when the other side has answered. Credit is relayed as a number of messages
that may still come, drain and echo until the far end has answered them.

What ends on one side ends on the other: a link by its detach; a session, and so all that a broker holds for it, by its
end, without a word about single deliveries, because only the broker knows what a loss means there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jmsish.broker.network.egress import Egress
from jmsish.broker.network.ingress import STREAM_FROM
from jmsish.broker.network.relay_ends import RelayEnd, RelayIn, RelayOut
from jmsish.engine.conditions import EngineStateError, PeerLimitError
from jmsish.engine.endpoint import LOCAL_OPEN
from jmsish.engine.outcomes import AmqpError, Coordinator
from jmsish.types import Symbol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from jmsish.broker.network.connection import RouterConnection
    from jmsish.broker.network.linkroutes import LinkRoutes
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession

ROUTE: Final = Symbol("jmsish-route")
"""The property of an attach between routers that says which way a link goes: home of the route, origin, name."""


class Way:
    """How links of one peer get to one broker: the connection they take from here, once it is open."""

    __slots__ = ("connection", "container", "home", "origin", "routes", "sessions", "whence")

    def __init__(
        self, routes: LinkRoutes, whence: RouterConnection, home: str, origin: str, container: str
    ) -> None:
        self.routes = routes
        self.whence = whence
        """The client or the neighbour from which it comes."""
        self.home = home
        """The router and the connector at the end of it."""
        self.origin = origin
        """The connection at the beginning of it."""
        self.container = container
        """The container-id of who is at the beginning: the broker at the end is to know it."""
        self.connection: RouterConnection | None = None
        self.sessions: list[RelaySession] = []

    @property
    def is_hop(self) -> bool:
        """Whether it goes on over another router."""
        return self.connection is not None and self.connection.is_neighbour

    @property
    def is_busy(self) -> bool:
        """Whether something of it has not left yet that came before what comes now."""
        return any(session.is_busy for session in self.sessions)

    def opened(self, connection: RouterConnection) -> None:
        """The connection is open."""
        self.connection = connection
        for session in self.sessions[:]:
            session.open()

    def failed(self, error: AmqpError) -> None:
        """It could not be had, or is gone."""
        self.routes.forget(self)
        for session in self.sessions[:]:
            session.refuse(error)

    def leave(self, session: RelaySession) -> None:
        """A session has ended; the last one ends the way."""
        if session in self.sessions:
            self.sessions.remove(session)
        if not self.sessions:
            self.routes.forget(self)


class RelaySession:
    """A session of a peer, and the one it continues in."""

    __slots__ = ("far", "links", "near", "over", "way")

    def __init__(self, near: EngineSession, way: Way) -> None:
        self.near = near
        self.way = way
        self.far: EngineSession | None = None
        self.links: list[RelayLink] = []
        self.over = False
        way.sessions.append(self)
        self.open()

    def open(self) -> None:
        """The way is there: begin the session on it, and attach what waits."""
        connection = self.way.connection
        if self.over or connection is None:
            return
        try:
            self.far = connection.begin_session(self)
        except EngineStateError as error:
            self.refuse(AmqpError("amqp:resource-limit-exceeded", str(error)))
            return
        for link in self.links[:]:
            link.reach_out()

    @property
    def is_busy(self) -> bool:
        """Whether messages for the broker, other than those to its coordinator, have come and not left."""
        if self.far is not None and self.far.backlog:
            return True
        return any(
            end.amid is not None or bool(link.incoming and link.incoming.waiting)
            for link in self.links
            if not link.is_control
            for end in link.ends.values()
            if isinstance(end, RelayOut) and end.link is link.far
        )

    def refuse(self, error: AmqpError) -> None:
        """There is no way after all."""
        self.over = True
        self._give_up(error)

    def add(self, link: RelayLink) -> None:
        """One more link."""
        self.links.append(link)
        if self.far is not None:
            link.reach_out()

    def near_lost(self) -> None:
        """The peer has ended its session, or is gone: so is what continued it."""
        if self.over:
            return
        self.over = True
        for link in self.links:
            link.silence()
        self.links.clear()
        if self.far is not None and self.way.connection is not None:
            self.way.connection.end_session(self.far)
        self.way.leave(self)

    def far_lost(self, error: AmqpError) -> None:
        """What continued it has ended: its links are detached, and say why."""
        if self.over:
            return
        self.over = True
        self._give_up(error)

    def _give_up(self, error: AmqpError) -> None:
        for link in self.links[:]:
            link.gone(error)
        self.links.clear()
        self.way.leave(self)


class RelayLink:
    """A link that goes through: ``near`` is the peer's, ``far`` its continuation."""

    __slots__ = ("_is_awake", "far", "is_control", "name", "near", "over", "session")

    def __init__(self, session: RelaySession, near: Link, name: str, connection: RouterConnection) -> None:
        self.session = session
        self.near = near
        self.name = name
        self.far: Link | None = None
        self.over = False
        self.is_control = isinstance(near.remote_target, Coordinator)
        self._is_awake = False
        near.relays_echo = True
        self._end(connection, near)

    def _end(self, connection: RouterConnection, link: Link) -> RelayEnd:
        end = RelayOut(connection, link, self) if link.is_sender else RelayIn(connection, link, self)
        link.context = end
        return end

    @property
    def ends(self) -> dict[Link, RelayEnd]:
        """Its two ends, or the one that is there: each is its link's, and goes with it."""
        links = (self.near,) if self.far is None else (self.near, self.far)
        return {link: link.context for link in links if link.context is not None}

    def other(self, link: Link) -> Link | None:
        """The other side of it."""
        return self.far if link is self.near else self.near

    @property
    def incoming(self) -> RelayIn | None:
        """The side on which messages come."""
        link = self.far if self.near.is_sender else self.near
        end = None if link is None else link.context
        return end if isinstance(end, RelayIn) else None

    def wake(self) -> None:
        """Something may be able to move."""
        source = self.incoming
        if source is not None and not self._is_awake:
            self._is_awake = True
            source.wake()
            self._is_awake = False

    @property
    def is_served(self) -> bool:
        """Drains are the broker's."""
        return True

    def remove_receiver(self, egress: Egress) -> None:
        """Nothing is known here of who receives."""

    def reach_out(self) -> None:
        """Attach the continuation, with all that the peer's attach says."""
        session, near, way = self.session.far, self.near, self.session.way
        connection = way.connection
        assert session is not None and connection is not None
        properties: dict[Any, Any] | Mapping[Any, Any] | None = near.remote_properties
        name = self.name
        if way.is_hop:
            properties = {**(properties or {}), ROUTE: [way.home, way.origin, self.name, way.container]}
            name = f"{way.origin}:{self.name}"
        attach = session.receiver if near.is_sender else session.sender
        try:
            self.far = far = attach(
                name,
                source=near.remote_source,
                target=near.remote_target,
                snd_settle_mode=near.remote_snd_settle_mode,
                rcv_settle_mode=near.remote_rcv_settle_mode,
                properties=properties,
                offered_capabilities=near.remote_offered_capabilities,
                desired_capabilities=near.remote_desired_capabilities,
                max_message_size=near.remote_max_message_size,
            )
        except PeerLimitError as limit:
            self.gone(AmqpError(limit.condition, limit.description))
            return
        except EngineStateError as error:
            self.gone(AmqpError("amqp:resource-limit-exceeded", str(error)))
            return
        far.relays_echo = True
        far.stream_from = 0 if far.is_sender else STREAM_FROM
        session.context.append(self._end(connection, far))
        connection.touched()

    # --- what one side does

    def attached(self) -> None:
        """The far end has answered the attach."""
        near, far = self.near, self.far
        if far is None or self.over or not near.allows(LOCAL_OPEN):
            return
        if (far.remote_target if far.is_sender else far.remote_source) is None and not self._is_lookup:
            return  # a refusal: its detach, and why, is behind it
        near.snd_settle_mode, near.rcv_settle_mode = far.remote_snd_settle_mode, far.remote_rcv_settle_mode
        limits = [limit for limit in (far.remote_max_message_size, near.max_message_size) if limit]
        near.attach(
            source=far.remote_source,
            target=far.remote_target,
            offered_capabilities=far.remote_offered_capabilities,
            max_message_size=min(limits, default=0),
            properties=far.remote_properties,
        )
        for end in self.ends.values():
            if isinstance(end, RelayIn) or end.has_said:
                end.flowed()
        _touch(near)

    @property
    def _is_lookup(self) -> bool:
        return self.near.is_sender and self.near.remote_source is None

    def detached(self, link: Link, closed: bool, error: AmqpError | None) -> None:
        """One side has detached: so does the other; who detached first is answered when the other has."""
        other = self.other(link)
        if link.local_closed or other is None or self.over:
            self._part(link, closed, error)
            return
        if other.local_closed:
            link.detach(closed=closed)
            return
        if link is self.far and self.near.allows(LOCAL_OPEN):
            self.near.refuse(
                error or AmqpError("amqp:internal-error", "the broker detached the link without saying why")
            )
            link.detach(closed=closed)
        else:
            other.detach(closed=closed, error=error)
            if isinstance(other.context, RelayIn):
                other.context.miss(other.context.left_behind(ended_here=True))
        _touch(other)

    def _part(self, link: Link, closed: bool, error: AmqpError | None) -> None:
        """Both sides of one link are detached, so the other side, which waits for that, is answered."""
        other = self.other(link)
        self.over = True
        if not link.local_closed:
            link.detach(closed=closed)
        if other is not None and not other.local_closed:
            other.detach(closed=closed, error=error)
            _touch(other)
        if self in self.session.links:
            self.session.links.remove(self)

    def gone(self, error: AmqpError) -> None:
        """The far side is gone."""
        if self.over:
            return
        end = self.near.context
        left = end.left_behind(ended_here=True) if isinstance(end, RelayIn) else []
        self.silence()
        if self.near.allows(LOCAL_OPEN):
            self.near.refuse(error)
        else:
            self.near.detach(closed=True, error=error)
        if left:
            end.miss(left)
        _touch(self.near)

    def silence(self) -> None:
        """Nothing passes any more; what has left in part is taken back."""
        self.over = True
        for end in self.ends.values():
            end.silence()


def _touch(link: Link) -> None:
    """There is something to be said on it, if it is still there."""
    if link.context is not None:
        link.context.connection.touched()
