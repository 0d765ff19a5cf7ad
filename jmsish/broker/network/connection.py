"""One connection of a router: to a client, or to a neighbour, whichever end dialled.

As in `jmsish.broker.connection`, what comes is worked off in the order of the frames, and nothing moves between links
before the router's step. The context of a link is the end of it on this side; of a session, the list of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import maxsize
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.guests import Guest
from jmsish.broker.link_policy import LinkDenied, note_denied
from jmsish.broker.network.attach import answer
from jmsish.broker.network.connectors import Connector
from jmsish.broker.network.control import Listener, Teller
from jmsish.broker.network.doors import EDGE, INTER_ROUTER, NORMAL, Hello, not_allowed
from jmsish.broker.network.egress import FULL, Egress
from jmsish.broker.network.ingress import Ingress
from jmsish.broker.network.linkroutes import Through
from jmsish.broker.network.management import ask
from jmsish.broker.network.opening import opened
from jmsish.broker.network.passage import Copy, Passage, forget_copies
from jmsish.broker.network.reach import RingError
from jmsish.broker.network.relay import RelaySession
from jmsish.broker.network.relay_ends import RelayIn
from jmsish.broker.network.updates import EDGE_KEYS_LIMIT, KEYS_LIMIT, edge_fault
from jmsish.broker.refusals import Refusal
from jmsish.engine import events
from jmsish.engine.conditions import CONNECTION_FORCED, RESOURCE_LIMIT_EXCEEDED, EngineStateError
from jmsish.engine.endpoint import LOCAL_CLOSE
from jmsish.engine.outcomes import AmqpError, Coordinator, Source, Target, TransactionalState
from jmsish.engine.oversize import limit_messages

if TYPE_CHECKING:
    from jmsish.broker.network.address import Address
    from jmsish.broker.network.management import Answers
    from jmsish.broker.network.node import RouterNode
    from jmsish.broker.network.updates import Update
    from jmsish.broker.transactions import Transaction
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.engine import Engine
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession

Terminal = Egress | Ingress | Listener | Teller | RelayIn
Dialled = Connector | Through
"""What has dialled a connection."""


class RouterConnection(Guest):
    """A connection inside the router: bytes in, bytes out, deadline out."""

    def __init__(
        self,
        node: RouterNode,
        engine: Engine,
        number: int,
        *,
        identity: str | None = None,
        peer: str = "",
        door: str | None = NORMAL,
        connector: Dialled | None = None,
    ) -> None:
        super().__init__(engine, number, identity, peer)
        self.node = self.broker = node
        self.door = door
        """The role of the listener it came in by; None where any will do."""
        self.connector = connector
        self.transactions: dict[bytes, Transaction] = {}
        """None: those of a client are at the broker of its link routes."""
        self.most_unsettled = maxsize
        """Deliveries that a session of a client may have unsettled, to it or from it; a neighbour has many clients."""
        self.neighbour: Hello | None = None
        self.teller: Teller | None = None
        self.listener: Listener | None = None
        """The control links of a neighbour: ours, and its own."""
        self.answers: dict[str, Answers] = {}
        """Its links that receive from the management node, by the address of their targets."""
        self.sessions: list[EngineSession] = []
        self._continued: dict[EngineSession, RelaySession] = {}
        """Sessions of ours that continue those of others."""
        self._held: dict[Callable[[], None], None] = {}
        self._stalled: dict[Callable[[], None], None] = {}
        self._links = 0

    def __repr__(self) -> str:
        what = f"router {self.neighbour.router!r}" if self.neighbour else f"client {self.container_id!r}"
        return f"<RouterConnection {self.number} {what} {self.peer}>"

    @property
    def is_neighbour(self) -> bool:
        """Whether the peer is a router of this network."""
        return self.neighbour is not None

    @property
    def is_broker(self) -> bool:
        """Whether the peer is a broker at the end of a link route."""
        return self.connector is not None and self.connector.role == NORMAL

    @property
    def max_message_size(self) -> int:
        """What is enforced here: what comes from clients and from an edge below is checked, nothing else (W10, 3.2)."""
        trusted = self.is_neighbour and (self.connector is not None or self.neighbour_role == INTER_ROUTER)
        return 0 if trusted else self.grant.max_message_size

    @property
    def neighbour_role(self) -> str:
        return NORMAL if self.neighbour is None else self.neighbour.role

    # --- bytes and time

    def take_output(self) -> bytes:
        """Bytes for the peer. Taken, they make room for more."""
        if self.engine.has_events:
            self.work()
        data = self.engine.take_output()
        if self._stalled:
            stalled, self._stalled = self._stalled, {}
            for resume in stalled:
                resume()
        if self.engine.out_size:
            self.touched()
        return data

    @property
    def is_full(self) -> bool:
        """So much waits to be taken that nothing more is to be moved here for now."""
        return self.engine.out_size >= FULL

    def stall(self, resume: Callable[[], None]) -> None:
        """Call ``resume`` when output has been taken."""
        self._stalled[resume] = None
        self.touched()

    def hold(self, resume: Callable[[], None]) -> None:
        """Call ``resume`` when the peer may have let more go."""
        self._held[resume] = None

    def worked_off(self) -> None:
        if self._held:
            held, self._held = self._held, {}
            for resume in held:
                resume()

    # --- the opening

    def _opened(self) -> None:
        opened(self)
        if self.connector is None and not self.is_neighbour:
            self.most_unsettled = self.node.config.caps.max_unsettled or maxsize
        limit_messages(self.engine, self.max_message_size, self._at_hand)

    @property
    def is_closing(self) -> bool:
        """The peer's close is at hand: it says why we are not let in."""
        return any(event[0] == events.CLOSED for event in self._at_hand)

    def refuse(self, text: str, condition: str = "amqp:not-allowed") -> None:
        """Let the peer go, with a word why."""
        error = AmqpError(condition, text) if condition != "amqp:not-allowed" else not_allowed(text)
        self.node.refused(self, text)
        self.close(error)

    def learn(self, update: Update) -> None:
        """What the neighbour tells."""
        hello = self.neighbour
        is_edge = hello is not None and hello.mode == EDGE
        fault = edge_fault(update, hello.router) if hello is not None and is_edge else None
        limit = EDGE_KEYS_LIMIT if is_edge else KEYS_LIMIT
        if fault is None and self.node.reach.count(self) + len(update.add) > limit:
            fault = f"more than {limit} addresses and routes were told, which is too many for one neighbour"
        if fault is not None:
            self.refuse(fault)
            return
        try:
            changed = self.node.reach.learn(self, update.add, update.remove)
        except RingError as ring:
            self.refuse(
                f"the router {ring.router!r} is known to {self.node.router!r} by another way: the network would have a "
                "ring, or two routers of one id"
            )
            return
        self.node.reach_changed(changed)

    def ask(self, ingress: Ingress, delivery: Delivery) -> None:
        """A request to the management node that came by a link for whatever messages say."""
        ask(ingress, delivery)

    def reach_out(self, address: Address, incoming: Link) -> Egress:
        """A link to the neighbour for the messages of one that comes in (R4), in a session of its own if it can be.

        EngineStateError where the neighbour takes none: its frames are too small, or its handles used up.
        """
        try:
            session = self.engine.begin()
            session.context = []
            self.sessions.append(session)
        except EngineStateError:
            assert self.teller is not None
            session = self.teller.link.session
        self._links += 1
        try:
            link = session.sender(
                f"{self.node.router}:{self.number}:{self._links}",
                source=Source(address=address.name),
                target=Target(address=address.name, capabilities=("topic",) if address.is_multicast else ()),
                rcv_settle_mode=incoming.rcv_settle_mode,
            )
        except EngineStateError:
            self._end_unused(session)
            raise
        egress = link.context = Egress(self, link, address, is_local=False)
        session.context.append(egress)
        self.touched()
        return egress

    def begin_session(self, relay: RelaySession) -> EngineSession:
        """A session that continues one of another connection."""
        session = self.engine.begin()
        session.context = []
        self.sessions.append(session)
        self._continued[session] = relay
        self.touched()
        return session

    def end_session(self, session: EngineSession) -> None:
        """What it continued has ended."""
        self._continued.pop(session, None)
        if session in self.sessions:
            self.sessions.remove(session)
            session.context.clear()
            forget_copies(session)
            session.end()
            self.touched()

    def closed_link(self, link: Link) -> None:
        """A link that was made by :meth:`reach_out` is not needed any more; its session goes with it."""
        session = link.session
        if session.context and link.context in session.context:
            session.context.remove(link.context)
        self._end_unused(session)
        self.touched()

    def _end_unused(self, session: EngineSession) -> None:
        if not session.context and session in self.sessions:
            self.sessions.remove(session)
            session.end()

    # --- events

    def _closed(self, error: AmqpError | None) -> None:
        self.end("the peer closed the connection" if error is None else str(error))
        self.engine.close()

    def _begun(self, session: EngineSession) -> None:
        if session.local_open or session.local_closed:
            return
        session.context = []
        self.let_begin(session, self.sessions)

    def _ended(self, session: EngineSession, error: AmqpError | None) -> None:
        if session in self.sessions:
            self.sessions.remove(session)
            session.end()
            self._lose_session(session, error)
        else:
            self._parting.ended(session)

    def _attached(self, link: Link) -> None:
        if self.ended:
            return
        terminal = link.context
        if terminal is not None:
            terminal.attached()
            return
        try:
            link.context = answer(self, link)
        except Refusal as refusal:
            if isinstance(refusal, LinkDenied):
                note_denied(self, link, refusal)
            link.refuse(refusal.error)
            return
        link.session.context.append(link.context)

    def _detached(self, link: Link, closed: bool, error: AmqpError | None) -> None:
        terminal: Terminal | None = link.context
        if terminal is None:
            link.detach(closed=closed)
            return
        self._parting.detached(link)
        if terminal in link.session.context:
            link.session.context.remove(terminal)
            terminal.detached(closed, error)

    def _flowed(self, link: Link, properties: Mapping[Any, Any] | None) -> None:
        terminal = link.context
        if isinstance(terminal, (Egress, Teller, RelayIn)):
            terminal.flowed()

    def _delivered(self, link: Link, delivery: Delivery) -> None:
        terminal: Ingress | Listener | RelayIn | None = link.context
        if terminal is not None and not terminal.over:
            if link.rcv_settle_mode == 1 and len(link.session.incoming) > self.most_unsettled:
                self._has_too_many(link.session)
                return
            terminal.delivered(delivery)
        else:
            self.missed(link.session, f"the link {link.name!r}", delivery.remote_state)

    def _has_too_many(self, session: EngineSession) -> None:
        count, most = len(session.incoming), self.most_unsettled
        text = f"a session has sent {count} messages and not settled them, where {most} may be"
        session.fail(AmqpError(RESOURCE_LIMIT_EXCEEDED, text))

    def missed(self, session: EngineSession, where: str, state: Any) -> None:
        """A message, or an outcome, was dropped here with a link or session that ended from here, or from the broker.

        If it was part of a transaction, its broker does not hear of that, and would commit the others alone.
        """
        if isinstance(state, TransactionalState) and self._comes_from_a_client(session):
            text = f"a part of a transaction was dropped with {where}, which was ended here"
            self.give_up(session, AmqpError(CONNECTION_FORCED, text))

    def _comes_from_a_client(self, session: EngineSession) -> bool:
        if not self.is_neighbour:
            return self.connector is None
        return any(isinstance(end, RelayIn) and end.is_near for end in session.context or ())

    def give_up(self, session: EngineSession, error: AmqpError) -> None:
        """What a client has in transactions is rolled back: its connection ends, or the session of a neighbour."""
        if not self.is_neighbour:
            self.close(error)
        elif session.allows(LOCAL_CLOSE):
            session.fail(error)

    def _partial(self, link: Link, delivery: Delivery) -> None:
        terminal = link.context
        # One that has come whole meanwhile is reported so, too.
        if isinstance(terminal, (Ingress, RelayIn)) and not terminal.over:
            if link.rcv_settle_mode == 1 and len(link.session.incoming) > self.most_unsettled:
                self._has_too_many(link.session)
            elif not delivery.complete:
                terminal.began(delivery)
        else:
            self.missed(link.session, f"the link {link.name!r}", delivery.remote_state)

    def _arrived(self, link: Link, delivery: Delivery) -> None:
        if isinstance(link.context, (Ingress, RelayIn)):
            link.context.more_came(delivery)

    def _sent(self, link: Link, delivery: Delivery) -> None:
        if isinstance(link.context, Egress):
            link.context.sent(delivery)

    def _aborted(self, link: Link, delivery: Delivery) -> None:
        if delivery.oversize:
            self._oversize.ended(self, link, delivery)
        elif isinstance(link.context, (Ingress, RelayIn)) and not link.context.over:
            link.context.aborted(delivery)

    def _disposed(
        self, session: EngineSession, deliveries: list[Delivery], state: Any, settled: bool, sender_role: bool
    ) -> None:
        if not sender_role:
            for delivery in deliveries:
                copy = delivery.context
                if isinstance(copy, Copy):
                    copy.disposed(state, settled)
        elif settled:
            for delivery in deliveries:
                terminal = delivery.link.context
                if isinstance(terminal, (Ingress, RelayIn)):
                    terminal.settled(delivery)

    def _failed(self, error: AmqpError) -> None:
        self.end(str(error))

    def _too_large(self, link: Link, delivery: Delivery) -> None:
        terminal = link.context
        if terminal is None or terminal.over:
            self.missed(link.session, f"the link {link.name!r}", delivery.remote_state)
        elif isinstance(terminal, Listener):
            terminal.too_large()
        elif isinstance(terminal, (Ingress, RelayIn)) and isinstance(delivery.context, Passage):
            terminal.aborted(delivery)  # at once, whenever it is answered: the copies under way are taken back
        self._oversize.begun(self, link, delivery)

    def census(self) -> tuple[int, int, int]:
        """How many sessions there are, links on which the peer sends, and links on which it receives."""
        links = [terminal.link for session in self.sessions for terminal in session.context]
        receivers = sum(link.is_sender for link in links)
        return len(self.sessions), len(links) - receivers, receivers

    def count_links(self, *, receivers: bool) -> int:
        """How many links there are on which the peer receives, or else sends; those to the coordinator do not count."""
        links = [terminal.link for session in self.sessions for terminal in session.context]
        kind = [link for link in links if link.is_sender is receivers]
        return sum(not isinstance(link.remote_target, Coordinator) for link in kind)

    # --- endings

    def _lose_session(self, session: EngineSession, error: AmqpError | None) -> None:
        self.node.link_routes.session_lost(session)
        relay = self._continued.pop(session, None)
        if relay is not None:
            relay.far_lost(error or AmqpError("amqp:session:ended", "the broker ended the session"))
        terminals: list[Terminal] = session.context
        for terminal in list(terminals):
            terminal.lost()
        terminals.clear()
        graces = [egress for _, egress in self._graces if egress.link.session is session]
        self._graces = [(due, egress) for due, egress in self._graces if egress.link.session is not session]
        for egress in graces:
            egress.give_back()
        forget_copies(session)
        self._parting.ended(session)

    def end(self, reason: str = "the connection was lost") -> None:
        """The connection is over: what was learned over it goes first, so that nothing is sent that way again."""
        if self.ended:
            return
        self.ended = True
        self.node.forget(self)
        sessions, self.sessions = self.sessions, []
        for session in sessions:
            self._lose_session(session, AmqpError("amqp:not-found", f"the way to the broker is lost: {reason}"))
        for table in (self._stalled, self._held, self.answers):
            table.clear()
        self.teller = self.listener = None
        if self.connector is not None:
            self.connector.lost(reason)

    def farewell(self, error: AmqpError | None) -> str:
        return "closed" if error is None else error.description or error.condition


_ACTS: Final[dict[int, Callable[..., None]]] = {
    events.OPENED: RouterConnection._opened,
    events.CLOSED: RouterConnection._closed,
    events.BEGUN: RouterConnection._begun,
    events.ENDED: RouterConnection._ended,
    events.ATTACHED: RouterConnection._attached,
    events.DETACHED: RouterConnection._detached,
    events.FLOWED: RouterConnection._flowed,
    events.DELIVERED: RouterConnection._delivered,
    events.ABORTED: RouterConnection._aborted,
    events.DISPOSED: RouterConnection._disposed,
    events.MISSED: RouterConnection.missed,
    events.FAILED: RouterConnection._failed,
    events.AUTHENTICATED: RouterConnection._authenticated,
    events.OVERSIZE: RouterConnection._too_large,
    events.OVERSIZE_ENDED: RouterConnection._too_large_ended,
    events.PARTIAL: RouterConnection._partial,
    events.ARRIVED: RouterConnection._arrived,
    events.SENT: RouterConnection._sent,
    events.ASKED: lambda connection, question: connection.login.asked(question),
    events.JUDGED: lambda connection, verdict: connection.login.judged(verdict),
}
RouterConnection.acts = _ACTS
