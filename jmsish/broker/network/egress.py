"""A link on which a router sends: to a receiver that attached it, or to a neighbour for one incoming link (R4)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from jmsish.broker.network.crossing import Crossing
from jmsish.broker.network.passage import Copy
from jmsish.engine.outcomes import RELEASED, AmqpError, DeliveryState, Rejected
from jmsish.engine.streaming import OutgoingStream

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.broker.network.ingress import Branch
    from jmsish.broker.network.passage import Sender
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link

FULL: Final = 1 << 17
"""Octets of output that wait to be taken, from which on nothing more is moved to a connection."""
QUEUE_LIMIT = 250
"""Copies of multicast messages that wait for one slow receiver; then their senders wait."""


class Origin(Protocol):
    """Where the messages of a link come from."""

    @property
    def is_served(self) -> bool:
        """Whether all that can move has moved."""

    def wake(self) -> None:
        """Something may be able to move."""

    def remove_receiver(self, egress: Egress) -> None:
        """A receiver is gone."""


class Egress:
    """One such link; ``is_local`` where a receiver attached it.

    Of a link the frames of one delivery follow each other (Part 2, 2.6.14), so while a large one leaves as it comes in,
    others wait.
    """

    __slots__ = ("address", "amid", "branch", "connection", "gone", "is_local", "link", "queue")

    def __init__(self, connection: RouterConnection, link: Link, address: Origin, *, is_local: bool) -> None:
        self.connection = connection
        self.link = link
        self.address = address
        self.is_local = is_local
        self.queue: deque[Copy] = deque()
        self.branch: Branch | None = None
        """Whose messages leave here, on a link to a neighbour that is made for them."""
        self.amid: Copy | None = None
        """The large one that is leaving."""
        self.gone = False

    # --- sending

    @property
    def can_take(self) -> bool:
        """Whether a message can leave now."""
        link = self.link
        if link.credit <= 0 or self.amid is not None or self.gone or self.queue:
            return False
        session = link.session
        if (session.backlog and session.blocks(link)) or self.connection.engine.out_size >= FULL:
            self.connection.stall(self._wake_senders)
            return False
        if len(session.outgoing) >= self.connection.most_unsettled:
            self.connection.hold(self._wake_senders)
            return False
        return True

    @property
    def can_queue(self) -> bool:
        """Whether a message can leave now or wait here."""
        return len(self.queue) < QUEUE_LIMIT

    def _has_room(self) -> bool:
        connection, session = self.connection, self.link.session
        if len(session.outgoing) >= connection.most_unsettled:
            connection.hold(self.address.wake)
            return False
        if connection.engine.out_size < FULL and not session.blocks(self.link):
            return True
        connection.stall(self.address.wake)
        return False

    def _wake_senders(self) -> None:
        """What is to leave here may be able to."""
        if self.branch is None:
            self.address.wake()
        else:
            self.branch.address.wake_for(self.branch)

    # hot: what each small message costs.
    def cross(self, sender: Sender, source: Delivery) -> None:
        """Send one that came whole, to here alone; :attr:`can_take` holds."""
        crossing = source.context = Crossing(sender, source, self)
        connection = self.connection
        connection.node.touch(connection)
        settled = source.remote_settled
        crossing.delivery = self.link.send(
            source.payload,
            state=source.remote_state,
            settled=settled,
            context=crossing,
            message_format=source.message_format,
        )
        if settled:
            crossing.sent_settled()

    def take(self, copy: Copy) -> None:
        """Send a copy, or let it wait for credit."""
        if self.queue or self.amid is not None or self.link.credit <= 0:
            self.queue.append(copy)
        elif len(self.link.session.outgoing) >= self.connection.most_unsettled:
            self.queue.append(copy)
            self.connection.hold(self.address.wake)
        else:
            self._send(copy)

    def flush(self) -> None:
        """Send what waited for credit."""
        while self.queue and self.link.credit > 0 and self.amid is None and not self.gone and self._has_room():
            self._send(self.queue.popleft())

    def _send(self, copy: Copy) -> None:
        passage, link = copy.passage, self.link
        source = passage.delivery
        self.connection.touched()
        if passage.incoming is None:
            copy.delivery = link.send(
                source.payload,
                state=source.remote_state,
                settled=passage.settled,
                context=copy,
                message_format=source.message_format,
            )
            passage.sent(copy)
        else:
            copy.stream = OutgoingStream(link, state=source.remote_state, settled=passage.settled, context=copy)
            copy.delivery = copy.stream.delivery
            self.amid = copy

    def left(self, copy: Copy) -> None:
        """The last part of a large one was given to the link, or nothing more of it will be: the next may leave."""
        if self.amid is copy:
            self.amid = None
            self.flush()
            self._wake_senders()

    def drop(self, copy: Copy) -> None:
        """A copy that is over does not wait any more."""
        if copy.delivery is None and copy in self.queue:
            self.queue.remove(copy)

    # --- what the peer does

    def attached(self) -> None:
        """The peer has answered."""

    def flowed(self) -> None:
        """It has credit, or wants to know what there is."""
        self.flush()
        self._wake_senders()
        if self.link.drain:
            self.connection.node.drains(self)

    def drained(self) -> None:
        """Everything that was there has been sent."""
        if not self.gone and not self.queue:
            self.link.drained()
            self.connection.touched()

    def sent(self, delivery: Delivery) -> None:
        """A part of a large one has left that had waited."""
        copy = delivery.context
        if isinstance(copy, Copy) and not copy.over:
            copy.passage.move()

    def detached(self, closed: bool, error: AmqpError | None = None) -> None:
        """The peer takes no more. What it has may still be disposed of for a while (W16), and not for ever: nothing is
        kept here of a link that is detached and not closed, either."""
        branch = self.branch
        if branch is None:
            self.leave()
            self.link.detach(closed=closed)
            self.connection.grant_grace(self)
            return
        # Without a target it was refused: nobody has seen anything, and the neighbour has said why.
        why = error if self.link.remote_target is None else None
        self.leave(RELEASED if why is None else Rejected(why))
        self.link.detach(closed=closed)
        self.give_back()
        self.connection.closed_link(self.link)
        if self.link.delivery_count != self.link.initial_delivery_count:
            branch.parted(self)  # each link takes a message at least, so this comes to an end
        else:
            branch.refused(self, why)

    def turn_out(self, error: AmqpError) -> None:
        """The link ends, for the address is another one now; what the receiver has it may still dispose of (W16)."""
        self.leave()
        self.link.detach(error=error)
        self.connection.grant_grace(self)
        self.connection.touched()

    def leave(self, unsent_state: DeliveryState = RELEASED) -> None:
        """Nothing more is sent here; what has not left comes back."""
        if self.gone:
            return
        self.gone = True
        if self.is_local:
            self.address.remove_receiver(self)
        unsent = {id(delivery) for delivery in self.link.unsent}
        for delivery in self.link.unsent:
            if isinstance(delivery.context, Copy):
                delivery.context.lost()
        for delivery in list(self.link.session.outgoing.values()):
            copy = delivery.context
            if delivery.link is self.link and isinstance(copy, Copy) and id(delivery) not in unsent:
                if not copy.is_complete:
                    copy.lost()
        if self.amid is not None:
            self.amid.lost()  # a settled one is in no list of the session
        queue, self.queue = self.queue, deque()
        for copy in queue:
            copy.passage.lost(copy, unsent_state)

    def withdraw(self) -> None:
        """There is no way there any more: what waits for credit, or for the window of its session, comes back (R6)."""
        link = self.link
        waiting = [item for item in (*link.session.backlog, *link.held) if item.delivery.link is link]
        for item in waiting:
            copy = item.delivery.context
            if item.started or not isinstance(copy, Copy):
                continue
            if copy.stream is None:
                link.abort(item.delivery)
            else:
                copy.stream.abort()
            copy.delivery = None  # nothing of it has left
            copy.lost()
        queue, self.queue = self.queue, deque()
        for copy in queue:
            copy.lost()

    def lost(self) -> None:
        """The session is gone: nothing more can be said of what it holds."""
        self.leave()
        self.give_back()
        if self.branch is not None and not self.connection.ended:
            self.branch.refused(self, None)  # the neighbour has ended the session

    def give_back(self) -> None:
        """What was sent and not disposed of is decided (R7)."""
        ledger = self.link.session.outgoing
        for number, delivery in list(ledger.items()):
            copy = delivery.context
            if delivery.link is self.link:
                del ledger[number]
                if isinstance(copy, Copy):
                    copy.lost()

    def close(self) -> None:
        """This router ends the link; for those that it has made itself."""
        self.leave()
        self.link.detach()
        self.give_back()
        self.connection.closed_link(self.link)
