"""A link on which messages come into a router: from a client, or from a neighbour.

What comes waits, unsettled and in memory, for somebody who takes it: at most a window of it (R6), which is granted only
while there is a way (R8).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jmsish.broker.coordinator import allows_rejected
from jmsish.broker.names import MANAGEMENT
from jmsish.broker.network.crossing import Crossing
from jmsish.broker.network.egress import Egress
from jmsish.broker.network.passage import Passage
from jmsish.broker.network.screening import TO, asks_for_user, check_to, check_user, field_of, walk_of
from jmsish.broker.refusals import (
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    RESOURCE_LIMIT_EXCEEDED,
    UNAUTHORIZED_ACCESS,
    Refusal,
)
from jmsish.engine.conditions import EngineStateError
from jmsish.engine.outcomes import RELEASED, AmqpError, DeliveryState, Rejected
from jmsish.engine.streaming import IncomingStream

if TYPE_CHECKING:
    from jmsish.broker.network.address import Address
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link
    from jmsish.engine.section_walk import SectionWalk

WINDOW = 250
"""Messages of one link that are here, or on their way and not settled (R6)."""
STREAM_FROM = 1 << 14
"""Octets from which on a message goes out while it comes in."""
LINGER = 0.2
"""Seconds for which the credit that was granted stays where the way was lost with a connection: what the sender sends
by it is released, as what was under way is, and is no surprise to the next connection: one message that is too
large for an interior closes the uplink of its edge once, not once for each message behind it."""
REFUSED_FOR = 1.0
"""Seconds after which a neighbour that has refused a link is asked again, if its address is not told anew before."""
IDLE_BRANCHES = 64
"""So many addresses without a message under way an anonymous link keeps its onward links for."""
SHUT, OPEN, LINGERING = range(3)
"""What is done about the credit of a link: none is granted, or the window, or what was granted stays for a moment."""


class Branch:
    """The messages of one incoming link for one address, and the links they leave for neighbours on (R4)."""

    __slots__ = ("_refused", "address", "in_flight", "ingress", "is_ready", "nearest", "onward", "waiting")

    def __init__(self, ingress: Ingress, address: Address) -> None:
        self.ingress = ingress
        self.address = address
        self.waiting: deque[Passage] = deque()
        self.is_ready = False
        """Its address is about to look at what waits."""
        self.in_flight = 0
        self.onward: dict[RouterConnection, Egress] = {}
        self.nearest: list[Egress] | None = None
        """Those to the nearest, until the reach of the address changes."""
        self._refused: dict[RouterConnection, DeliveryState] = {}
        """Neighbours that have refused the link, or ended it: no way, for a while; and what messages hear of it."""
        address.branches[self] = None

    @property
    def origin(self) -> RouterConnection | None:
        """The neighbour these come from, to whom they are not sent back."""
        connection = self.ingress.connection
        return connection if connection.is_neighbour else None

    @property
    def is_reachable(self) -> bool:
        address = self.address
        if not self._refused:
            return address.is_reachable(self.origin)
        return bool(address.receivers) or any(True for _ in self.ways())

    def ways(self) -> Iterator[tuple[int, RouterConnection]]:
        """Over which neighbours its messages can go, and how far it is that way."""
        address = self.address
        for way in address.node.reach.ways(address.key, self.origin):
            if way[1] not in self._refused:
                yield way

    def arrived(self, delivery: Delivery) -> None:
        """A message has come, or the beginning of a large one; one that waits for nobody leaves at once."""
        address = self.address
        address.deliveries_in += 1
        self.in_flight += 1
        self.ingress.in_flight += 1
        if not self.waiting and delivery.complete:
            egress = address.way_at_once(self)
            if egress is not None:
                address.deliveries_out += 1
                egress.cross(self, delivery)
                return
        passage = Passage(self, delivery)
        if not self.is_reachable:
            passage.give_back(next(iter(self._refused.values()), RELEASED))
            return
        address.queue(self, passage)

    def link_to(self, neighbour: RouterConnection) -> Egress | None:
        """The link to a neighbour, made when it is needed first; None where it cannot be had."""
        egress = self.onward.get(neighbour)
        if egress is None or egress.gone:
            try:
                egress = neighbour.reach_out(self.address, self.ingress.link)
            except EngineStateError as error:
                self._refuse(neighbour, AmqpError(RESOURCE_LIMIT_EXCEEDED, str(error)))
                return None
            self.onward[neighbour] = egress
            egress.branch = self
        return egress

    def links(self, *, nearest: bool) -> list[Egress]:
        """The links to all neighbours over which it is reached, or to the nearest."""
        known = list(self.ways())
        shortest = min((hops for hops, _ in known), default=0)
        found = [self.link_to(neighbour) for hops, neighbour in known if hops == shortest or not nearest]
        return [egress for egress in found if egress is not None]

    def refused(self, egress: Egress, error: AmqpError | None) -> None:
        """A neighbour does not take them, and has said why; what has no other way comes back.

        It is asked again when its reach changes, or after a while: not with each message.
        """
        neighbour = egress.connection
        if self.onward.get(neighbour) is egress:
            del self.onward[neighbour]
        self._refuse(neighbour, error)

    def parted(self, egress: Egress) -> None:
        """A neighbour has ended a link after a while: the next message has another one."""
        if self.onward.get(egress.connection) is egress:
            del self.onward[egress.connection]
        self.nearest = None
        if self.waiting:
            self.address.wake_for(self)

    def _refuse(self, neighbour: RouterConnection, error: AmqpError | None) -> None:
        node = self.address.node
        self.nearest = None
        if neighbour in self._refused:
            return
        state = self._refused[neighbour] = RELEASED if error is None else Rejected(error)
        node.way_refused(neighbour, self.address.name, error)
        node.remind(node.now() + REFUSED_FOR, self)
        self._look_again(state, torn=error is None)

    def on_time(self, now: float) -> None:
        """Neighbours that have refused are asked again."""
        if self._refused:
            self._refused.clear()
            self._look_again(RELEASED, torn=False)

    def nearest_ways(self) -> list[Egress]:
        """The links to the neighbours over which it is nearest."""
        ways = self.nearest
        if ways is not None:
            for egress in ways:
                if egress.gone:
                    break
            else:
                return ways
        ways = self.links(nearest=True)
        self.nearest = ways
        return ways

    def reach_changed(self, *, torn: bool) -> None:
        """The way has come, has gone or is another one: what waits without one is given back (R6)."""
        self._refused.clear()
        ways = {neighbour for _, neighbour in self.ways()}
        self._look_again(RELEASED, torn=torn)
        for neighbour, egress in list(self.onward.items()):
            if neighbour not in ways:
                egress.withdraw()

    def _look_again(self, state: DeliveryState, *, torn: bool) -> None:
        """Where messages can go has changed."""
        self.nearest = None
        if not self.is_reachable:
            waiting, self.waiting = self.waiting, deque()
            for passage in waiting:
                passage.give_back(state)
        elif self.waiting:
            self.address.wake_for(self)
        self.ingress.reach_changed(torn=torn)

    def tell(self, delivery: Delivery, state: DeliveryState | None, settled: bool) -> None:
        """What the sender is to hear of a delivery."""
        ingress = self.ingress
        if not ingress.over:
            delivery.link.session.disposition(delivery, state, settled)
            connection = ingress.connection
            connection.node.touch(connection)

    def walk(self) -> SectionWalk | None:
        """What looks at the sections of a large one as they come."""
        return walk_of(self.ingress.connection)

    def disordered(self, delivery: Delivery, error: AmqpError) -> None:
        """They are not what the standard says: as one that is too large."""
        self.ingress.refuse_oversize(delivery, error)
        self.ingress.connection.touched()

    def took(self) -> None:
        """Some of a large one was taken."""
        self.ingress.connection.touched()

    def finished(self, passage: Passage) -> None:
        """Nothing more will be said of a message."""
        if not passage.copies and passage in self.waiting:
            self.waiting.remove(passage)
        self.crossed()

    def crossed(self) -> None:
        """The same of one that has crossed at once."""
        self.in_flight -= 1
        ingress = self.ingress
        ingress.finished()
        if ingress.over and not self.in_flight:
            self.close()

    def forsaken(self) -> None:
        """The sender is gone: what it has not sent whole never was, what it has not settled is not its any more."""
        for passage in list(self.waiting):
            if not passage.settled or not passage.delivery.complete:
                passage.abort()
        if not self.in_flight:
            self.close()

    def close(self) -> None:
        """No message of it is under way."""
        self.address.remove_branch(self)
        if self._refused:
            self.address.node.dismiss(self)
        self.nearest = None
        onward, self.onward = self.onward, {}
        for egress in onward.values():
            egress.close()
        self.ingress.closed(self)


class Ingress:
    """One such link. Without an address of its own, each message says where it goes (the anonymous relay)."""

    __slots__ = (
        "_asks", "_branches", "_credit", "_only", "_plain", "_window", "connection", "in_flight", "link", "over",
        "partial",
    )  # fmt: skip

    def __init__(self, connection: RouterConnection, link: Link, address: Address | None) -> None:
        self.connection = connection
        self.link = link
        self.in_flight = 0
        self.over = False
        self.partial: Passage | None = None
        """The large one that is coming in."""
        self._credit = SHUT
        self._window = 2 * WINDOW if connection.is_neighbour else WINDOW
        """A neighbour has no more under way than its own peer has, so with twice the credit it never lacks any."""
        self._only = None if address is None else Branch(self, address)
        """Where everything goes, on a link with an address."""
        self._asks = asks_for_user(connection)
        self._plain = None if self._asks else self._only
        """The same, where nothing is asked of a message."""
        self._branches: dict[str, Branch] = {} if self._only is None else {self._only.address.name: self._only}

    @property
    def is_anonymous(self) -> bool:
        return self._only is None

    def closed(self, branch: Branch) -> None:
        """It has no message of the link, and gets none any more."""
        if self.over:
            self._branches.pop(branch.address.name, None)
            self._only = self._plain = None

    # --- credit

    def reach_changed(self, *, torn: bool = False) -> None:
        """Grant the window while there is a way, and take it back when there is none (R8).

        That is where the way is ``torn``, by the loss of a connection, after a moment.
        """
        if self.over:
            return
        if self.is_anonymous or any(branch.is_reachable for branch in self._branches.values()):
            if self._credit != OPEN:
                self._credit = OPEN
                self._grant()
        elif torn and self._credit == OPEN:
            self._credit = LINGERING
            node = self.connection.node
            node.remind(node.now() + LINGER, self)
        elif self._credit == OPEN:
            self._withdraw()

    def on_time(self, now: float) -> None:
        """The moment is over."""
        if self._credit == LINGERING and not self.over:
            self._withdraw()

    def _withdraw(self) -> None:
        self._credit = SHUT
        self.link.flow(0)
        self.connection.touched()

    def finished(self) -> None:
        """One message less is under way."""
        self.in_flight -= 1
        link = self.link
        window = self._window
        if self._credit == OPEN and not self.over and window - self.in_flight - link.credit >= window // 2:
            self._grant()

    def _grant(self) -> None:
        self.link.flow(max(self._window - self.in_flight, 0))
        self.connection.touched()

    # --- messages

    def delivered(self, delivery: Delivery) -> None:
        """A message has come whole."""
        branch = self._plain
        if branch is not None and delivery.remote_state is None and not self.over:
            branch.arrived(delivery)
        else:
            self._take(delivery)

    def began(self, delivery: Delivery) -> None:
        """A large message is coming."""
        self._take(delivery)
        context = delivery.context
        self.partial = context if isinstance(context, Passage) and not context.finished else None

    def _take(self, delivery: Delivery) -> None:
        if self.over:
            return
        try:
            if delivery.remote_state is not None:
                what = "a transaction goes by link routes only: this address is none"
                raise Refusal(NOT_IMPLEMENTED, what)
            if self._asks:
                check_user(self.connection, delivery)
            branch = self._only or self._branch_of(delivery)
        except Refusal as refusal:
            self._refuse(delivery, refusal.error)
            return
        if branch is not None:
            branch.arrived(delivery)

    def _branch_of(self, delivery: Delivery) -> Branch | None:
        """Where a message goes that says so itself; None for one that is a request, and is done."""
        to = field_of(delivery, TO, "where the message goes")
        if not isinstance(to, str) or not to:
            raise Refusal(PRECONDITION_FAILED, "a message on a link without an address needs one in `to`")
        connection = self.connection
        if to == MANAGEMENT and not connection.is_neighbour:
            self._ask(delivery)
            return None
        if to not in self._branches:
            check_to(connection, to, delivery.tag)
        return self.branch_to(to)

    def _ask(self, delivery: Delivery) -> None:
        """A request to the management node, on a link that is not for it alone."""
        grant = self.connection.grant
        if not grant.may_ask_management(grant.targets):
            raise Refusal(UNAUTHORIZED_ACCESS, f"messages may not be sent to {MANAGEMENT!r}")
        if not delivery.complete:
            text = f"a request of more than {STREAM_FROM} octets needs a link of its own, to {MANAGEMENT!r}"
            raise Refusal(NOT_IMPLEMENTED, text)
        self.connection.ask(self, delivery)

    def branch_to(self, to: str) -> Branch:
        """What takes the messages for an address, on a link that has none of its own."""
        known = self._branches.get(to)
        if known is not None:
            return known
        idle = [branch for branch in self._branches.values() if not branch.in_flight]
        for branch in idle[: max(len(idle) - IDLE_BRANCHES, 0)]:
            del self._branches[branch.address.name]
            branch.close()
        branch = self._branches[to] = Branch(self, self.connection.node.address(to))
        return branch

    def _refuse(self, delivery: Delivery, error: AmqpError) -> None:
        """A message that cannot be taken: rejected, or where the sender cannot hear that, the link ends with the error.

        What still comes of a large one is dropped.
        """
        if not delivery.complete:
            drop(delivery)
        link = self.link
        if delivery.remote_settled or not allows_rejected(link.remote_source):
            link.detach(closed=True, error=error)
            self.lost()
        else:
            link.session.disposition(delivery, Rejected(error), True)
        self.connection.touched()
        self.in_flight += 1
        self.finished()

    def more_came(self, delivery: Delivery) -> None:
        """More of a large one, or its end."""
        passage = delivery.context
        if delivery.complete:
            self.partial = None
        if isinstance(passage, Passage) and not passage.finished:
            passage.move()

    def aborted(self, delivery: Delivery) -> None:
        """The sender gave a message up: whatever of it has left is taken back, and its credit is back."""
        self.partial = None
        passage = delivery.context
        if isinstance(passage, Passage):
            if not passage.finished:
                passage.abort()
        else:
            self.in_flight += 1
            self.finished()

    def settled(self, delivery: Delivery) -> None:
        """The sender has settled one, having heard what became of it."""
        passage = delivery.context
        if isinstance(passage, Crossing) or (isinstance(passage, Passage) and not passage.finished):
            passage.settle()

    # --- the end

    def refuse_oversize(self, delivery: Delivery, error: AmqpError) -> None:
        """A message is larger than allowed, or none: rejected, its copies aborted, and the link closed (W10)."""
        self.aborted(delivery)
        if not (delivery.remote_settled or delivery.settled):  # its copy may have been refused before
            delivery.link.session.disposition(delivery, Rejected(error), True)
        self.link.detach(closed=True, error=error)
        self.lost()

    def turn_out(self, error: AmqpError) -> None:
        """The link ends, for the address is another one now."""
        for branch in self._branches.values():
            waiting, branch.waiting = branch.waiting, deque()
            for passage in waiting:
                passage.give_back(RELEASED)
        self.link.detach(error=error)
        self.lost()
        self.connection.touched()

    def detached(self, closed: bool, error: AmqpError | None = None) -> None:
        """The sender sends no more on it."""
        self.link.detach(closed=closed)
        self.lost()

    def lost(self) -> None:
        """The sender is gone."""
        if self.over:
            return
        self.over = True
        self.connection.node.dismiss(self)
        partial, self.partial = self.partial, None
        if partial is not None and not partial.finished:
            partial.abort()
        for branch in list(self._branches.values()):
            branch.forsaken()


def drop(delivery: Delivery) -> None:
    """Forget what has come of a large one, and what will."""
    delivery.parts = None
    if delivery.stream is None:
        delivery.stream = IncomingStream(delivery, ())
    delivery.stream.drop()
