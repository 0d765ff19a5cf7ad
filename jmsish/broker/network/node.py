"""A router: its connections, its addresses, what it can reach, and time; without a socket, a thread or a clock.

It is driven like a broker (`jmsish.broker.broker`): bytes go into a connection, :meth:`RouterNode.step` moves what can
move and names the connections that have bytes to take, :meth:`RouterNode.tick` lets time pass. What it wants dialled
stands in ``dials``.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from jmsish._version import VERSION
from jmsish.broker.admission import Admission
from jmsish.broker.authentication import Authentication
from jmsish.broker.denials import Denials
from jmsish.broker.greeting import REFUSED_PROPERTY, describe
from jmsish.broker.holdings import blocks_of
from jmsish.broker.link_policy import TOLD_EACH, is_told, shortened
from jmsish.broker.network.address import Address
from jmsish.broker.network.connection import RouterConnection
from jmsish.broker.network.connectors import Connector, Dial
from jmsish.broker.network.doors import CAPABILITIES, EDGE, INTER_ROUTER, NORMAL, introduce
from jmsish.broker.network.egress import Egress
from jmsish.broker.network.linkroutes import LinkRoutes, Through
from jmsish.broker.network.reach import ADDRESS, PREFIX, Reach, join_key
from jmsish.broker.remote_hosts import is_this_machine
from jmsish.broker.slowing import Slowing
from jmsish.broker.timers import Timed, Timers
from jmsish.broker.told import Told
from jmsish.broker.views import ConnectionView
from jmsish.engine.engine import Engine
from jmsish.engine.frame_trace import engine_kind
from jmsish.engine.outcomes import AmqpError
from jmsish.engine.sasl import SaslClient

if TYPE_CHECKING:
    from jmsish.broker.config import BrokerConfig
    from jmsish.engine.mechanisms import Question
    from jmsish.engine.oauth import AskToken

MAX_FRAME_SIZE = 1 << 14
"""An attach is one frame: a selector on its way to the broker of a link route may have so many octets."""
INCOMING_WINDOW = 1024
"""Frames of a session that may come before the peer hears of a new window, where it shares windows (`sharing`): routers
do, and the clients and brokers of this library. Of large messages that is 384 KiB (`SHARE`), which is what one on its
way through can make us hold while its receiver takes nothing."""
UNREAD_LIMIT = 1 << 16
"""Octets of large messages that have come and not gone on, from which on a session's window is not opened."""
HIGH_WATER = 1 << 18
"""Octets of a connection's output that nobody has taken off the wire, above which it is given no more."""
REFUSALS_KNOWN = 1000
"""Reasons for which neighbours were refused that are counted, the latest."""
MESSAGES_A_STEP = 200
"""Of what waited and can leave, so many leave in a step, some milliseconds of work: others have their turn between."""
CHANNEL_MAX = 65535
"""A link between routers has a session of its own (R4)."""

_log = logging.getLogger("jmsish.broker")


class RouterNode:
    """One router of a network."""

    queries = None
    """What it is asked is answered at once: it has neither queues nor bindings."""

    def __init__(
        self, name: str, config: BrokerConfig, *, clock: Callable[[], float], authenticator: AskToken | None = None
    ) -> None:
        self.name = name
        self.config = config
        self.router = config.router.id
        self.mode = config.router.mode
        self.now = clock
        if config.queues or config.exchanges or config.bindings:
            _log.warning("the router %r holds no queues and exchanges: those of its configuration are not made", name)
        self.reach: Reach[RouterConnection] = Reach(self.router)
        self.denials = Denials()
        self.told = Told()
        self.dials: list[Dial] = []
        """What is to be dialled now."""
        self.neighbours: dict[RouterConnection, None] = {}
        self.connectors: dict[str, Connector] = {}
        self.link_routes = LinkRoutes(self)
        self.authentication = Authentication(config.authentication, config.users, authenticator)
        self.slowing = Slowing()
        self.questions: list[tuple[RouterConnection, Question]] = []
        """What is to be asked with nothing held, and :meth:`Login.answered` told."""
        self.high_water = HIGH_WATER
        self.admission = Admission(config, self.denials)
        self._connections: dict[RouterConnection, None] = {}
        self._addresses: dict[str, Address] = {}
        self._woken: deque[Address] = deque()
        self._draining: list[Egress] = []
        self._touched: dict[RouterConnection, None] = {}
        self._timers = Timers()
        self._expected: list[tuple[Callable[[], bool], Future[None]]] = []
        self._numbers = count(1)
        self._engine_limits = config.caps.of_engine()
        self._refusals: dict[str, int] = {}  # why neighbours were refused, and how often; the latest at the end

    # --- driven by the driver

    def accept(
        self,
        *,
        trusted: bool,
        identity: str | None = None,
        peer: str = "",
        certificate: Mapping[str, Any] | None = None,
        exposed: bool = False,
        role: str | None = None,
    ) -> RouterConnection:
        """A new connection, by the door of ``role``; inside the process every role is let in that the peer names."""
        asked = self.authentication.offer(trusted=trusted, identity=identity, certificate=certificate, exposed=exposed)
        engine = self._engine(server=True, container_id=self.router, properties=describe(VERSION), sasl=asked)
        door = role or (None if trusted else NORMAL)
        connection = RouterConnection(self, engine, next(self._numbers), identity=identity, peer=peer, door=door)
        connection.is_trusted = trusted
        self.denials.connections_processed += 1
        if len(self._connections) >= self.config.max_connections:
            self.denials.connection_denied(None)
            connection.turn_away()
            return connection
        return self._add(connection)

    def connect_out(
        self, connector: Connector | Through, peer: str, *, container_id: str | None = None
    ) -> RouterConnection:
        """A connection that was dialled; its first octets are there to be taken."""
        url = urlsplit(connector.url)
        username, password = (None if part is None else unquote(part) for part in (url.username, url.password))
        capability = CAPABILITIES.get(connector.role)
        engine = self._engine(
            server=False,
            container_id=container_id or self.router,
            hostname=url.hostname,
            offered_capabilities=() if capability is None else (capability,),
            sasl=SaslClient(
                username=username,
                password=password,
                exposed=self._is_exposed(url.scheme, url.hostname),
                layered=url.scheme == "amqps",
            ),
            properties={},
        )
        connection = RouterConnection(self, engine, next(self._numbers), peer=peer, connector=connector)
        engine.open()
        self.touch(connection)
        return self._add(connection)

    def _is_exposed(self, scheme: str, host: str | None) -> bool:
        """Whether others could read the password on the way, and it was not said that they may."""
        return scheme == "amqp" and not (is_this_machine(host or "") or self.config.authentication.allow_cleartext)

    def _engine(self, *, properties: dict[Any, Any], **options: Any) -> Engine:
        caps = self.config.caps
        engine = engine_kind()(
            max_frame_size=min(MAX_FRAME_SIZE, caps.max_frame_size),
            channel_max=CHANNEL_MAX,
            idle_timeout=caps.idle_timeout or None,
            opening_timeout=caps.opening_timeout or None,
            limits=self._engine_limits,
            properties={**properties, **introduce(self.router, self.mode)},
            incoming_window=INCOMING_WINDOW,
            **options,
        )
        engine.unread_limit = UNREAD_LIMIT
        return engine

    def _add(self, connection: RouterConnection) -> RouterConnection:
        self._connections[connection] = None
        self.denials.connections_current += 1
        return connection

    def step(self) -> list[RouterConnection]:
        """Move what can move; the connections that have output."""
        left = MESSAGES_A_STEP
        while self._woken and left > 0:
            left -= self._woken.popleft().serve(left) + 1
        draining, self._draining = self._draining, []
        for egress in draining:
            if egress.address.is_served:
                egress.drained()
            else:
                self._draining.append(egress)
        for neighbour in list(self.neighbours):
            if neighbour.teller is not None:
                neighbour.teller.tell()
        if self._expected:
            self._look()
        touched, self._touched = self._touched, {}
        return [connection for connection in touched if connection.engine.output_size or connection.closed]

    @property
    def unfinished(self) -> bool:
        """There is more to do than was done in the last step."""
        return bool(self._woken)

    def interrupted(self) -> None:
        """The program was interrupted (Ctrl-C) in the middle of anything: nothing that was noted for later counts."""
        self._woken.clear()
        for address in list(self._addresses.values()):
            address.interrupted()

    def tick(self, now: float) -> float | None:
        """Let time pass, by the router's clock; when to come back."""
        return self._timers.ring(now)

    def close(self, reason: str = "the router stops") -> None:
        """End all connections with a word of farewell."""
        for connector in list(self.connectors.values()):
            connector.close()
        error = AmqpError("amqp:connection:forced", reason)
        for connection in list(self._connections):
            connection.close(error)

    # --- asked by faces

    def connector(self, name: str, url: str, role: str) -> Connector:
        """A connection to be had from now on."""
        if name in self.connectors:
            raise ValueError(f"there is a connector {name!r} already")
        connector = self.connectors[name] = Connector(self, name, url, role)
        connector.on_time(self.now())
        return connector

    def dial(self, wanted: Connector | Through) -> None:
        """Have something dialled."""
        self.dials.append(Dial(wanted, wanted.url))

    def take_dials(self) -> list[Dial]:
        """What is to be dialled now."""
        dials, self.dials = self.dials, []
        return dials

    def free_name(self) -> str:
        """A name for a connector that was given none."""
        return next(name for number in count(1) if (name := f"connector-{number}") not in self.connectors)

    def expect(self, is_so: Callable[[], bool]) -> Future[None]:
        """Done when something is so, which is looked at whenever something has happened."""
        done: Future[None] = Future()
        self._expected.append((is_so, done))
        return done

    def _look(self) -> None:
        """Tell those who wait for what is so now; who gave up is forgotten."""
        waiting = []
        for is_so, done in self._expected:
            if is_so():
                if done.set_running_or_notify_cancel():
                    done.set_result(None)
            elif not done.cancelled():
                waiting.append((is_so, done))
        self._expected = waiting

    def explained(self) -> int:
        """About how many blocks of memory its contents are made of."""
        return blocks_of(self._connections)

    def connections(self) -> list[ConnectionView]:
        """The open connections."""
        return [ConnectionView(each) for each in self.opened_connections()]

    def opened_connections(self) -> list[RouterConnection]:
        """The same, themselves."""
        return [each for each in self._connections if each.engine.local_open]

    def change_policy(self, settings: Mapping[str, Any]) -> None:
        """Change keys of ``[policy]``, for what comes from now on; ``ValueError`` names all that is wrong."""
        self.config = self.admission.config = replace(self.config, **self.admission.change(settings))

    def reaches(self, name: str) -> bool:
        """Whether a sender that attached here to this address now would get credit (R3)."""
        return self.reach.distance(ADDRESS + name) is not None

    # --- asked by the rooms of the router

    def address(self, name: str, *, is_multicast: bool = False) -> Address:
        """The address of that name."""
        address = self._addresses.get(name)
        if address is None:
            multicast = is_multicast or self.is_multicast(name)
            address = self._addresses[name] = Address(self, name, is_multicast=multicast)
        elif is_multicast:
            address.is_multicast = True
        return address

    def is_multicast(self, name: str) -> bool:
        """Whether the messages of an address go to everybody, by the configuration."""
        return any(name.startswith(prefix) for prefix in self.config.multicast)

    def known_address(self, name: str) -> Address | None:
        """The same, if somebody here uses it."""
        return self._addresses.get(name)

    def address_names(self) -> Iterable[str]:
        """The addresses that somebody here uses."""
        return self._addresses.keys()

    def new_address(self) -> str:
        """One that nobody else has."""
        return f"temp.{self.router}.{token_hex(12)}"

    def perhaps_unused(self, address: Address) -> None:
        """Nobody here receives from it or sends to it any more, perhaps."""
        if not address.receivers and not address.branches and self._addresses.get(address.name) is address:
            del self._addresses[address.name]

    @property
    def uplink(self) -> RouterConnection | None:
        """The connection of an edge to its interior router."""
        return next((each for each in self.neighbours if each.neighbour_role == EDGE and each.connector), None)

    def reach_changed(self, keys: Iterable[str], *, torn: bool = False) -> None:
        """What can be reached has changed."""
        for key in keys:
            if key[:1] == ADDRESS:
                address = self._addresses.get(key[1:])
                if address is not None:
                    address.reach_changed(torn=torn)
            elif key[:1] == PREFIX and self.reach.distance(key) is not None:
                self.link_routes.came(key)

    def admit(self, connection: RouterConnection, role: str) -> bool:
        """Whether policy lets a client in, or an edge below; routers of the interior trust each other.

        What it may do is decided here, for as long as it stays.
        """
        if role == INTER_ROUTER:
            return True
        remote = connection.engine.remote
        error = self.admission.enter(connection, None if remote is None else remote.hostname)
        if error is not None:
            connection.engine.properties = {**(connection.engine.properties or {}), REFUSED_PROPERTY: True}
            connection.engine.open()
            connection.close(error)
        return error is None

    def refused(self, connection: RouterConnection, text: str) -> None:
        """A neighbour was not let in, or is let go. One that dials again and again does not fill the disk: of the same
        reason the first ten have a line, then the 100th, the 1,000th…."""
        times = self._refusals.pop(text, 0) + 1
        if len(self._refusals) >= REFUSALS_KNOWN:
            del self._refusals[next(iter(self._refusals))]
        self._refusals[text] = times
        if not is_told(times):
            return
        more = f" ({times} times; further ones are told now and then)" if times >= TOLD_EACH else ""
        peer = connection.peer or "its peer"
        _log.warning("the router %r ends the connection with %s: %s%s", self.router, peer, text, more)

    def way_refused(self, connection: RouterConnection, address: str, error: AmqpError | None) -> None:
        """A neighbour takes no messages for an address that it has told, or no more."""
        text = "%r takes none of the messages of the router %r for %r for now: %s"
        why = "it ended the link" if error is None else error
        level = logging.INFO if error is None else logging.WARNING  # it may have said why in another way: a size
        _log.log(level, text, connection, self.router, shortened(address), shortened(str(why)))

    def came_up(self, connector: Connector) -> None:
        """A connector's peer has let us in: the link routes over it are open."""
        self.link_routes.announce(connector)
        _log.info("the router %r is connected to %s", self.router, connector.shown)

    def went_down(self, connector: Connector) -> None:
        """The connection of a connector that was up is lost."""
        self.link_routes.withdraw(connector)

    def log_down(self, connector: Connector, reason: str) -> None:
        _log.warning("the router %r is not connected to %s: %s", self.router, connector.shown, reason)

    def connector_closed(self, connector: Connector) -> None:
        if self.connectors.get(connector.name) is connector:
            del self.connectors[connector.name]

    def forget(self, connection: RouterConnection) -> None:
        """A connection has ended; what was learned over it goes with it (R3)."""
        if self._connections.pop(connection, connection) is None:
            self.denials.connections_current -= 1
        self.admission.leave(connection)
        if connection in self.neighbours:
            del self.neighbours[connection]
            if connection.neighbour is not None and connection.connector is None:
                self.reach.end(join_key(connection.neighbour_role, connection.neighbour.router, self.router))
            self.reach_changed(self.reach.farewell(connection), torn=True)

    def wake(self, address: Address) -> None:
        self._woken.append(address)

    def drains(self, egress: Egress) -> None:
        """A receiver wants to know what there is: it is told when all that can move has moved."""
        self._draining.append(egress)

    def touch(self, connection: RouterConnection) -> None:
        self._touched[connection] = None

    def remind(self, due: float, timed: Timed) -> None:
        self._timers.add(due, timed)

    def dismiss(self, timed: Timed) -> None:
        self._timers.dismiss(timed)
