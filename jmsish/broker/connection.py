"""One connection of the broker: what its engine reports, done to queues and transactions.

Theory of operation.  :meth:`ServerConnection.receive` feeds the engine and works off its events in the order of the
frames. Nothing is dispatched meanwhile: queues are only marked, and the broker serves each marked queue once when all
input of all connections is in (:meth:`~jmsish.broker.broker.Broker.step`).

The context of a link is the object that answers for it: an :class:`~jmsish.broker.outgoing.OutgoingLink`, an
:class:`~jmsish.broker.incoming.IncomingLink` or a :class:`~jmsish.broker.coordinator.ControlLink`; of a session, the
list of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.attach import Terminal, answer
from jmsish.broker.consumers import ask
from jmsish.broker.coordinator import ControlLink
from jmsish.broker.dispositions import comes_back, disposed
from jmsish.broker.filters import Filters
from jmsish.broker.greeting import admit
from jmsish.broker.guests import Guest
from jmsish.broker.incoming import IncomingLink
from jmsish.broker.leases import Leases
from jmsish.broker.link_policy import intake_of
from jmsish.broker.names import MANAGEMENT
from jmsish.broker.order import Entry
from jmsish.broker.outgoing import OutgoingLink
from jmsish.broker.pending import Pending
from jmsish.broker.portions import GivingBack
from jmsish.broker.queues import Queue
from jmsish.broker.reading_on import ReadingOn
from jmsish.broker.subscriptions import Lookup
from jmsish.broker.temporaries import Temporaries
from jmsish.broker.transactions import ROLLBACK, Transaction
from jmsish.engine import events
from jmsish.engine.outcomes import AmqpError, TransactionalState
from jmsish.engine.oversize import limit_messages
from jmsish.engine.rest import take_rest

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker
    from jmsish.broker.management_links import ManagementNode
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.engine import Engine
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession

OUTPUT_LIMIT: Final = 1 << 15
"""A connection with so much output waiting is sent nothing more until some of it has been taken: in one step one has
a hundred small messages or two, a third of a millisecond of work, and then others may have their turn."""


class ServerConnection(Guest, Temporaries):
    """A connection inside the broker: bytes in, bytes out, deadline out."""

    broker: Broker
    control_kind: type[ControlLink] = ControlLink
    intake = intake_of
    """What reads the messages of a link."""

    def __init__(self, broker: Broker, engine: Engine, number: int, identity: str | None, peer: str) -> None:
        Temporaries.__init__(self, broker)
        Guest.__init__(self, engine, number, identity, peer)
        self.sole: int | None = None
        """It asked to be the only one of its container, and what is to be done about another one (see `greeting`)."""
        self.room = OUTPUT_LIMIT
        self.selecting = 0
        """What its links select by, in characters."""
        self.stalled: list[OutgoingLink] = []
        """Consumers that could take more, were there room for output or an open session window."""
        self.half_sent: list[tuple[OutgoingLink, Delivery, Entry]] = []
        """Pre-settled messages of which frames still wait for the window: gone only once they are sent."""
        self.hindered: list[ControlLink] = []
        """Control links that hold answers back until a message is taken back from the peer (T86)."""
        self.fed: list[IncomingLink] = []
        """Links that messages came on in this batch of input."""
        self.transactions: dict[bytes, Transaction] = {}
        self.answers: dict[str, Queue] = {}
        """By address, the queues of its links that receive from the management node."""
        self.leases = Leases()
        """Freezes that it asked for by request; they end with it."""
        self._sessions: list[EngineSession] = []
        self.reading_on: ReadingOn | None = None
        """While a disposition is worked off in portions, what does that."""
        self._awaited = 0

    def __repr__(self) -> str:
        return f"<ServerConnection {self.number} {self.container_id!r} {self.peer}>"

    # --- bytes and time

    def begin_waiting(self) -> None:
        """Something that it asked for is worked off in portions: it should not ask for more meanwhile."""
        self._awaited += 1
        self.is_busy = True

    def end_waiting(self) -> None:
        """That is done."""
        self._awaited -= 1
        self.is_busy = self._awaited > 0

    def receive_eof(self) -> None:
        if self.reading_on is not None:
            self.reading_on.is_cut_off = True
        else:
            super().receive_eof()

    def take_output(self) -> bytes:
        """Bytes for the peer. Taken, they make room: the next step may have more."""
        if self.engine.has_events:
            self.work()
        data = self.engine.take_output()
        self.room = OUTPUT_LIMIT
        if self.stalled or self.half_sent or self.hindered:
            self._resume()
        if self.engine.out_size:
            self.broker.touch(self)  # the next frames of a large message
        return data

    def still_sending(self) -> Iterable[Delivery]:
        return [delivery for _, delivery, _ in self.half_sent]

    def worked_off(self) -> None:
        if self.fed:
            fed, self.fed = self.fed, []
            for link in fed:
                if not link.over:
                    link.top_up()
        if self.stalled or self.half_sent or self.hindered:
            self._resume()

    def _resume(self) -> None:
        """Have consumers served that waited for room; let pre-settled messages go whose last frame is out."""
        stalled, self.stalled = self.stalled, []
        for consumer in stalled:
            if consumer.gone:
                continue
            if consumer.link.session.blocks(consumer.link) or consumer.is_full:
                self.stalled.append(consumer)
            else:
                ask(consumer)
        half_sent, self.half_sent = self.half_sent, []
        for consumer, delivery, entry in half_sent:
            if consumer.link.session.blocks(consumer.link) or consumer.link.held:
                self.half_sent.append((consumer, delivery, entry))
            elif delivery not in consumer.link.unsent:
                consumer.settle_sent(entry)
        if self.hindered and not self.is_aborting():
            hindered, self.hindered = self.hindered, []
            for control in hindered:
                control.resume()

    # --- events

    def _opened(self) -> None:
        admit(self)
        # Decided now for good: whatever is configured anew holds for connections to come.
        limit_messages(self.engine, self.grant.max_message_size, self._at_hand)

    def _closed(self, error: AmqpError | None) -> None:
        self.end("the connection was closed")
        self.engine.close()

    def _begun(self, session: EngineSession) -> None:
        session.context = []
        self.let_begin(session, self._sessions)

    def _ended(self, session: EngineSession, error: AmqpError | None) -> None:
        if session in self._sessions:
            self._sessions.remove(session)
            session.end()
            self._lose_session(session)

    def _attached(self, link: Link) -> None:
        if self.ended or link.session.silent:
            return  # a frame behind it in the same octets has ended what it belongs to
        link.context = terminal = answer(self, link)
        if terminal is not None:
            link.session.context.append(terminal)

    def refuse(self, link: Link, error: AmqpError) -> None:
        """Answer an attach that is not granted."""
        link.refuse(error)

    def read_filters(self, wished: Mapping[Any, Any] | None) -> Filters:
        """The filters of a source that are in force.  Refusal for one that cannot be."""
        return Filters.read(wished)

    def _detached(self, link: Link, closed: bool, error: AmqpError | None) -> None:
        terminal: Terminal | None = link.context
        if terminal is None:
            link.detach(closed=closed)
            return
        self._parting.detached(link)
        if terminal in link.session.context:
            link.session.context.remove(terminal)
        terminal.detached(closed)

    def _flowed(self, link: Link, properties: Mapping[Any, Any] | None) -> None:
        terminal = link.context
        if isinstance(terminal, OutgoingLink):
            if not terminal.gone:
                terminal.flowed(properties)
        elif isinstance(terminal, Lookup) and not terminal.over:
            terminal.flowed()
        elif isinstance(terminal, Pending):
            terminal.flowed(properties)

    def _delivered(self, link: Link, delivery: Delivery) -> None:
        terminal: IncomingLink | ControlLink | None = link.context
        if terminal is not None and not terminal.over:
            terminal.posted(delivery)
        else:
            link.session.forget(delivery)
            self.missed(link.session, f"the link {link.name!r}", delivery.remote_state)

    def _aborted(self, link: Link, delivery: Delivery) -> None:
        """It never was (2.7.5): no work in its transaction, no outcome; only its credit goes back (T101)."""
        if delivery.oversize:
            self._oversize.ended(self, link, delivery)
        elif isinstance(link.context, IncomingLink) and not link.context.over:
            link.context.top_up()

    def own_node(self, address: str | None) -> ManagementNode | None:
        """The node of the broker's own that has this address, behind which there is no queue."""
        return self.broker.management if address == MANAGEMENT else None

    def missed(self, session: EngineSession, where: str, state: Any) -> None:
        """A message, or an outcome, was dropped with a link or session that ended from here, and nobody hears of it.

        If it was part of a transaction, the others are not committed alone.
        """
        if not isinstance(state, TransactionalState):
            return
        transaction = self.transactions.get(state.txn_id)
        if transaction is not None:
            transaction.fail(ROLLBACK, f"a part of it was dropped with {where}, which was ended here")

    def _disposed(
        self, session: EngineSession, deliveries: list[Delivery], state: Any, settled: bool, sender_role: bool
    ) -> None:
        if self.engine.rest is not None:
            self._read_on_later(deliveries, comes_back(state, settled))
        # What a sender says of its own deliveries changes nothing here: they were decided when they came in.
        if not sender_role:
            disposed(self, session, deliveries, state, settled)

    def _read_on_later(self, deliveries: list[Delivery], come_back: bool) -> None:
        """These are not all that are disposed of."""
        if self.reading_on is None:
            self.reading_on = ReadingOn(self)
            self.begin_waiting()
            self.broker.portions.add(self.reading_on)
        if come_back:
            self.reading_on.halt(deliveries)

    def _failed(self, error: AmqpError) -> None:
        self.end()

    def _too_large(self, link: Link, delivery: Delivery) -> None:
        if link.context is None or link.context.over:
            self.missed(link.session, f"the link {link.name!r}", delivery.remote_state)
        self._oversize.begun(self, link, delivery)

    def census(self) -> tuple[int, int, int]:
        """How many sessions there are, links on which the peer sends, and links on which it receives."""
        terminals = [terminal for session in self._sessions for terminal in session.context]
        receivers = sum(isinstance(terminal, (OutgoingLink, Lookup, Pending)) for terminal in terminals)
        return len(self._sessions), len(terminals) - receivers, receivers

    def count_links(self, *, receivers: bool) -> int:
        """How many links there are on which the peer receives, or else sends; those to the coordinator do not count."""
        kinds = (OutgoingLink, Lookup) if receivers else (IncomingLink,)
        count = 0
        for session in self._sessions:
            for terminal in session.context:
                if isinstance(terminal, Pending):
                    count += not terminal.over and terminal.receives == receivers
                elif isinstance(terminal, kinds):
                    count += not (terminal.gone if isinstance(terminal, OutgoingLink) else terminal.over)
        return count

    def is_posting(self, txn_id: bytes) -> bool:
        """Whether a message of the transaction has begun to arrive and is not whole yet."""
        for session in self._sessions:
            for terminal in session.context:
                if isinstance(terminal, IncomingLink) and terminal.is_amid(txn_id):
                    return True
        return False

    def is_aborting(self) -> bool:
        """Whether the abort of a message, begun and given up, still waits for a session window (T86)."""
        return any(item.delivery.aborted for session in self._sessions for item in session.backlog)

    def flush_dispositions(self, but: EngineSession) -> None:
        """Write what was said in the other sessions before what will be said in this one.

        "The resource MUST determine the outcome of the delivery before committing the transaction, and this MUST be
        communicated to the controller before the acceptance of a successful discharge" (4.4.4.1, T48).
        """
        for session in self._sessions:
            if session is not but:
                session.flush_dispositions()

    # --- endings

    def _lose_session(self, session: EngineSession) -> None:
        """Links go, control links roll back what they declared, the default outcome decides the rest (W16)."""
        session.mute_links()  # what waits for the peer's window is unsent now, also where it closes in good order
        terminals: list[Terminal] = session.context
        for terminal in terminals:
            if isinstance(terminal, OutgoingLink):
                terminal.leave_queue()
                terminal.gone = True
                terminal.take_back_unsent()
            elif isinstance(terminal, ControlLink):
                terminal.lost("the session of the control link ended")
            else:
                terminal.lost()
        self._graces = [(due, link) for due, link in self._graces if link.link.session is not session]
        for consumer, _, entry in self.half_sent:
            if consumer.link.session is session:
                consumer.settle_sent(entry)
        self._give_up_all(list(session.outgoing.values()))
        session.outgoing.clear()
        session.incoming.clear()
        for terminal in terminals:
            if isinstance(terminal, OutgoingLink) and terminal.subscription is not None:
                terminal.subscription.detached(False)
            if not isinstance(terminal, ControlLink) and terminal.made is not None:
                self.delete_temporary(terminal.made)
        terminals.clear()
        self.broker.router.subscriptions.ended(session)
        self._parting.ended(session)

    def _give_up_all(self, deliveries: list[Delivery]) -> None:
        """The default outcome for each, by links that are let go of before the last of them had it."""
        links = ((link, link.context) for link in {delivery.link for delivery in deliveries})
        consumers = {link: consumer for link, consumer in links if isinstance(consumer, OutgoingLink)}
        self.broker.portions.begin(GivingBack(self.broker.settlement, deliveries, consumers))

    def end(self, reason: str = "the connection was lost") -> None:
        """The connection is over, by a close or by a loss: all sessions end, temporary queues go."""
        if self.ended:
            return
        if self.engine.rest is not None:
            for event in take_rest(self.engine):  # what it has said in one frame holds as a whole
                self._disposed(*event[1:])
        self.ended = True
        # Transactions first: what was retired in them is decided by their rollback, not by the loss (b.5, 9).
        for session in self._sessions:
            for terminal in session.context:
                if isinstance(terminal, ControlLink):
                    terminal.lost(reason)
        for session in self._sessions:
            self._lose_session(session)
        self._sessions.clear()
        self.broker.router.subscriptions.ended(self)
        self.broker.freezes.lost(self)
        self.orphan_temporaries()
        self.answers.clear()
        self.leases = Leases()
        self.stalled.clear()
        self.half_sent.clear()
        self.hindered.clear()
        self.broker.forget(self)

    def drop_rest(self) -> None:
        """What came in the same batch is not heard any more; what it would have settled is given up with the rest."""
        settlement = self.broker.settlement
        for event in self._at_hand:
            if event[0] == events.DISPOSED:
                for delivery in event[2]:
                    consumer = delivery.link.context
                    if isinstance(consumer, OutgoingLink):
                        consumer.give_up(settlement, delivery)
        super().drop_rest()


ACTS: Final[dict[int, Callable[..., None]]] = {
    events.OPENED: ServerConnection._opened,
    events.CLOSED: ServerConnection._closed,
    events.BEGUN: ServerConnection._begun,
    events.ENDED: ServerConnection._ended,
    events.ATTACHED: ServerConnection._attached,
    events.DETACHED: ServerConnection._detached,
    events.FLOWED: ServerConnection._flowed,
    events.DELIVERED: ServerConnection._delivered,
    events.ABORTED: ServerConnection._aborted,
    events.DISPOSED: ServerConnection._disposed,
    events.MISSED: ServerConnection.missed,
    events.FAILED: ServerConnection._failed,
    events.AUTHENTICATED: ServerConnection._authenticated,
    events.ASKED: lambda connection, question: connection.login.asked(question),
    events.JUDGED: lambda connection, verdict: connection.login.judged(verdict),
    events.OVERSIZE: ServerConnection._too_large,
    events.OVERSIZE_ENDED: ServerConnection._too_large_ended,
}
ServerConnection.acts = ACTS
