"""The two ends of a link that goes through a router: that on which messages come, and that on which they leave."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from jmsish.broker.coordinator import allows_rejected
from jmsish.broker.network.crossing import Crossing
from jmsish.broker.network.egress import Egress
from jmsish.broker.network.ingress import STREAM_FROM, drop
from jmsish.broker.network.passage import Passage
from jmsish.broker.network.screening import asks_for_user, check_user, walk_of
from jmsish.broker.oversize import DESCRIPTION, LINK
from jmsish.broker.refusals import Refusal
from jmsish.engine.conditions import CONNECTION_FORCED
from jmsish.engine.outcomes import AmqpError, DeliveryState, Rejected, TransactionalState
from jmsish.engine.outgoing import flush_dispositions

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.broker.network.relay import RelayLink
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link
    from jmsish.engine.section_walk import SectionWalk


class RelayIn:
    """The side of a link on which messages come."""

    __slots__ = (
        "_asks", "_out", "connection", "link", "over", "owes_drain", "owes_echo", "partial", "relay", "waiting",
    )  # fmt: skip

    def __init__(self, connection: RouterConnection, link: Link, relay: RelayLink) -> None:
        self.connection = connection
        self.link = link
        self.relay = relay
        self._out: RelayOut | None = None
        self.over = False
        self.owes_echo = False
        self.owes_drain = False
        self.partial: Passage | None = None
        self.waiting: deque[Passage] = deque()
        link.stream_from = STREAM_FROM
        self._asks = asks_for_user(connection) and not relay.is_control

    @property
    def out(self) -> RelayOut | None:
        """The side on which they leave; None until that is there."""
        if self._out is None:
            other = self.relay.other(self.link)
            end = None if other is None else other.context
            self._out = end if isinstance(end, RelayOut) else None
        return self._out

    @property
    def is_near(self) -> bool:
        """Whether it is the side of who made the link."""
        return self.link is self.relay.near

    def attached(self) -> None:
        self.relay.attached()

    # --- flow

    def flowed(self) -> None:
        """The sender has said what it has: an echo that was asked for is answered, a drain is over."""
        out = self.out
        if out is None or self.over or not out.link.attached:
            return
        if out.link.drain and self.link.credit <= 0:
            self.owes_drain = True
        if self.link.echo_asked:
            self.link.echo_asked = False
            out.owes_echo = True
            out.link.session.write_link_flow(out.link, echo=True)
            out.connection.touched()
        self._answer()

    def _answer(self) -> None:
        """Say what is owed, behind what came before it."""
        out = self.out
        if out is None or self.waiting:
            return
        if self.owes_drain:
            self.owes_drain = False
            out.link.drained()
        elif self.owes_echo:
            out.link.session.write_link_flow(out.link, echo=False)
        self.owes_echo = False
        out.connection.touched()

    def grant(self, out: RelayOut) -> None:
        """The receiver has granted credit: so do we."""
        link, wanted = self.link, out.link
        if self.over or not link.attached:
            return
        if wanted.echo_asked:
            wanted.echo_asked = False
            self.owes_echo = True
        link.flow(
            max(wanted.credit - len(self.waiting), 0),
            drain=wanted.drain,
            echo=self.owes_echo,
            properties=wanted.flow_properties,
        )
        self.connection.touched()

    # --- messages

    def delivered(self, delivery: Delivery) -> None:
        """A message has come whole, or a large one is coming; one that waits for nothing leaves at once."""
        if self.over:
            return
        if self._asks:
            try:
                check_user(self.connection, delivery)
            except Refusal as refusal:
                self._refuse(delivery, refusal.error)
                return
        out = self._out or self.out
        if (
            out is not None
            and delivery.complete
            and not (self.waiting or self.relay.is_control)
            and out.link.local_open
            and out.can_take
        ):
            out.cross(self, delivery)
            if (self.owes_drain or self.owes_echo) and self.link.credit <= 0:
                self._answer()
            return
        self.waiting.append(Passage(self, delivery))
        self.relay.wake()

    def _refuse(self, delivery: Delivery, error: AmqpError) -> None:
        """A message that its broker is not to see, as its broker would refuse it.

        One sent settled is not missed by the transaction it was part of, unless that can never commit.
        """
        if not delivery.complete:
            drop(delivery)
        link, state = self.link, delivery.remote_state
        outcome = Rejected(error)
        said = TransactionalState(state.txn_id, outcome) if isinstance(state, TransactionalState) else outcome
        if delivery.remote_settled or not allows_rejected(link.remote_source):
            if said is outcome:
                left = self.left_behind(ended_here=True)
                self._end(error)
                self.miss(left)
            else:
                self.connection.close(error)
        else:
            link.session.disposition(delivery, said, True)
            out = self.out
            if out is not None:
                self.grant(out)  # its credit has not been used there
        self.connection.touched()

    def began(self, delivery: Delivery) -> None:
        """A large message is coming."""
        self.delivered(delivery)
        context = delivery.context
        self.partial = context if isinstance(context, Passage) and not context.finished else None

    def wake(self) -> None:
        """Let go on what can."""
        out = self.out
        if out is not None and not out.link.attached:
            return
        while self.waiting and out is not None and out.can_take:
            if self.relay.is_control:
                # What was done before a discharge leaves before it, in whatever session: posts as well as outcomes.
                if self.relay.session.way.is_busy:
                    out.connection.hold(self.relay.wake)
                    return
                flush_dispositions(out.connection.engine)
            self.waiting.popleft().start((out,))
            out.connection.touched()
        if not self.waiting and (self.owes_drain or self.owes_echo) and self.link.credit <= 0:
            self._answer()

    def more_came(self, delivery: Delivery) -> None:
        """More of a large one, or its end."""
        passage = delivery.context
        if delivery.complete:
            self.partial = None
        if isinstance(passage, Passage) and not passage.finished:
            passage.move()

    def aborted(self, delivery: Delivery) -> None:
        """The sender gave a message up."""
        self.partial = None
        passage = delivery.context
        if isinstance(passage, Passage) and not passage.finished:
            passage.abort()

    def settled(self, delivery: Delivery) -> None:
        """The sender has settled one, having heard the outcome."""
        passage = delivery.context
        if isinstance(passage, Crossing) or (isinstance(passage, Passage) and not passage.finished):
            passage.settle()

    def walk(self) -> SectionWalk | None:
        """What looks at the sections of a large one as they come."""
        return walk_of(self.connection) if self._asks else None

    def disordered(self, delivery: Delivery, error: AmqpError) -> None:
        """They are not what the standard says: rejected in its middle, and the link ends."""
        self._stop(delivery, error, error)

    def refuse_oversize(self, delivery: Delivery, error: AmqpError) -> None:
        """A message is larger than allowed here, whatever its broker would allow, or none."""
        closes = self.connection.grant.on_oversize != LINK
        self._stop(delivery, error, None if closes else AmqpError(CONNECTION_FORCED, DESCRIPTION))

    def _stop(self, delivery: Delivery, error: AmqpError, last: AmqpError | None) -> None:
        """A message goes no further and its link ends; where a transaction must not be committed then, say ``last``.

        None: the connection is closed in any case.
        """
        if isinstance(delivery.context, Passage):
            self.aborted(delivery)
        else:
            drop(delivery)
        session, state, outcome = self.link.session, delivery.remote_state, Rejected(error)
        in_transaction = isinstance(state, TransactionalState) and not delivery.aborted
        unheard = delivery.remote_settled or not allows_rejected(self.link.remote_source)
        if not (unheard or delivery.settled):  # its copy may have been refused before
            said = TransactionalState(state.txn_id, outcome) if isinstance(state, TransactionalState) else outcome
            session.disposition(delivery, said, True)
        left = [each for each in self.left_behind(ended_here=True) if each is not delivery]
        self._end(error)
        if last is not None:
            if in_transaction and unheard:
                self.connection.give_up(session, last)
            self.miss(left)

    def _end(self, error: AmqpError) -> None:
        """Here the link ends for what its sender did, and so it does on the other side."""
        self.link.detach(closed=True, error=error)
        other = self.relay.other(self.link)
        if other is not None:
            other.detach(closed=True)
        self.silence()

    # --- as a passage sees it

    def tell(self, delivery: Delivery, state: DeliveryState | None, settled: bool) -> None:
        """What the sender is to hear of a delivery."""
        relay, connection = self.relay, self.connection
        if relay.session.over:
            return
        if relay.is_control:
            flush_dispositions(connection.engine)  # T48: the outcomes of the posts come first
        delivery.link.session.disposition(delivery, state, settled)
        connection.node.touch(connection)

    def took(self) -> None:
        """Some of a large one was taken."""
        self.connection.touched()

    def finished(self, passage: Passage) -> None:
        """Nothing more will be said of a message."""
        if passage in self.waiting:
            self.waiting.remove(passage)

    def crossed(self) -> None:
        """The same of one that has crossed at once: nothing is counted here."""

    # --- the end

    def detached(self, closed: bool, error: AmqpError | None = None) -> None:
        left = self.left_behind(ended_here=False)
        self._abort_partial()
        self.relay.detached(self.link, closed, error)
        self.miss(left)

    def left_behind(self, *, ended_here: bool) -> list[Delivery]:
        """What will not leave if the link ends now.  What its own sender has not finished it takes back by that."""
        if not self.is_near or self.over:
            return []
        unfinished = self.link.current
        left = [passage.delivery for passage in self.waiting if passage.delivery is not unfinished]
        if ended_here and unfinished is not None and not unfinished.oversize:
            left.append(unfinished)
        return left

    def miss(self, deliveries: list[Delivery]) -> None:
        """The link has ended, and these had not left: a transaction cannot be whole without them."""
        for delivery in deliveries:
            self.connection.missed(self.link.session, f"the link {self.link.name!r}", delivery.remote_state)

    def silence(self) -> None:
        """Nothing more comes through here."""
        self.over = True
        self._abort_partial()
        waiting, self.waiting = self.waiting, deque()
        for passage in waiting:
            passage.forget()

    def _abort_partial(self) -> None:
        partial, self.partial = self.partial, None
        if partial is not None and not partial.finished:
            partial.abort()

    def lost(self) -> None:
        """The session is gone; its relay sees to the other side."""


class RelayOut(Egress):
    """The side of a link on which messages leave."""

    __slots__ = ("owes_echo", "relay")

    def __init__(self, connection: RouterConnection, link: Link, relay: RelayLink) -> None:
        super().__init__(connection, link, relay, is_local=False)
        self.relay = relay
        self.owes_echo = False

    def attached(self) -> None:
        self.relay.attached()

    @property
    def has_said(self) -> bool:
        """Whether the receiver has granted credit before the link was attached, or wants to know something.

        One that has not may want none: who asks for a subscription by the name of its link is refused for a flow.
        """
        link = self.link
        return link.credit > 0 or link.drain or link.echo_asked

    def flowed(self) -> None:
        """The receiver has granted credit, or wants to know something."""
        self.owes_echo = False
        source = self.relay.incoming
        if source is not None and not self.gone:
            source.wake()
            source.grant(self)

    def detached(self, closed: bool, error: AmqpError | None = None) -> None:
        self.relay.detached(self.link, closed, error)

    def silence(self) -> None:
        """Nothing more leaves here; what has left in part is taken back."""
        if self.amid is not None:
            self.amid.passage.abort()
        self.gone = True
        self.queue.clear()

    def lost(self) -> None:
        """The session is gone; its relay sees to the other side."""


RelayEnd = RelayIn | RelayOut
