"""One message on its way through a router: from the link it comes on to the links it goes out on.

Theory of operation.  A message is not kept: what the receiver says of its copy is what the sender hears (R5), and until
then both deliveries are unsettled. A message that comes whole goes out whole. A large one goes out frame by frame as it
arrives, no part before every copy has taken the one before it, so that what is held of it is bounded by what the sender
may send before it hears of a new window. An end on either side in the middle of it ends the other: an abort (or the
loss) of what comes in aborts every copy that is not complete, and a copy that nobody takes to its end is told the
sender as soon as no other is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from jmsish.engine.conditions import DECODE_ERROR
from jmsish.engine.decoding import DecodeError
from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    RELEASED,
    Accepted,
    AmqpError,
    DeliveryState,
    Modified,
    Rejected,
    Released,
)
from jmsish.engine.streaming import STREAM_FRAME, IncomingStream, OutgoingStream

if TYPE_CHECKING:
    from jmsish.broker.network.egress import Egress
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.section_walk import SectionWalk
    from jmsish.engine.session import EngineSession

_NOTHING = memoryview(b"")

TERMINAL = (Accepted, Rejected, Modified, Released)
"""The outcomes, by their rank where several receivers have said something (R5)."""


class Sender(Protocol):
    """Who is told what becomes of a message."""

    def tell(self, delivery: Delivery, state: DeliveryState | None, settled: bool) -> None:
        """This is its state now."""

    def walk(self) -> SectionWalk | None:
        """What looks at the sections of a large one as they come; None where nobody asks."""

    def disordered(self, delivery: Delivery, error: AmqpError) -> None:
        """They are not what the standard says: it goes no further."""

    def took(self) -> None:
        """Some of a large one was taken: its session may have a window again."""

    def finished(self, passage: Passage) -> None:
        """Nothing more will be said of it."""

    def crossed(self) -> None:
        """The same of one that has crossed at once (`crossing`)."""


class Copy:
    """What one link gets of a message."""

    __slots__ = ("delivery", "egress", "over", "passage", "state", "stream")

    def __init__(self, passage: Passage, egress: Egress) -> None:
        self.passage = passage
        self.egress = egress
        self.delivery: Delivery | None = None
        self.stream: OutgoingStream | None = None
        self.state: DeliveryState | None = None
        self.over = False

    @property
    def is_complete(self) -> bool:
        """Whether the peer can have seen the whole of it."""
        delivery = self.delivery
        return (
            delivery is not None
            and delivery not in delivery.link.unsent
            and (self.stream is None or self.passage.has_left)
        )

    def disposed(self, state: DeliveryState | None, settled: bool) -> None:
        """The receiver has said something of it."""
        self.passage.disposed(self, state, settled)

    def lost(self) -> None:
        """The way of it is gone."""
        self.passage.lost(self)

    def forget(self) -> None:
        """Nothing is said of it any more."""
        self.passage.forget()


class Passage:
    """One message, and the copies of it."""

    __slots__ = ("_rest", "_walk", "copies", "delivery", "finished", "has_left", "incoming", "sender", "settled")

    def __init__(self, sender: Sender, delivery: Delivery) -> None:
        self.sender = sender
        self.delivery = delivery
        self.settled = delivery.remote_settled
        self.copies: Sequence[Copy] = ()
        self.finished = False
        self.has_left = False
        """The last part of a large one was given to all copies."""
        self.incoming: IncomingStream | None = None
        self._rest = _NOTHING
        self._walk: SectionWalk | None = None
        delivery.context = self
        if not delivery.complete:
            self._walk = sender.walk()
            parts, delivery.parts = delivery.parts or (), None
            self.incoming = delivery.stream = IncomingStream(delivery, parts)

    # --- on its way

    def start(self, egresses: Sequence[Egress]) -> None:
        """It goes out on these links."""
        self.copies = copies = [Copy(self, egress) for egress in egresses]
        for copy in copies:
            copy.egress.take(copy)
        if self.incoming is not None:
            self.move()

    def sent(self, copy: Copy) -> None:
        """A copy has left whole; one that is settled is over with that."""
        if self.settled:
            self._over(copy, ACCEPTED)

    def move(self) -> None:
        """Hand on what has come of a large one, as far as every copy takes it."""
        # One that is too large is measured before it is told, and so is one that was given up: no more of it goes on.
        while not (self.finished or self.has_left or self.delivery.oversize or self.delivery.aborted):
            copies = [copy for copy in self.copies if not copy.over]
            if not copies:
                return
            for copy in copies:
                if copy.stream is None or copy.stream.waiting:
                    return  # SENT is reported when it goes on
                if copy.egress.connection.is_full:
                    copy.egress.connection.stall(self.move)
                    return
            try:
                part = self._next_part(min(copy.stream.room for copy in copies if copy.stream is not None))
            except DecodeError as error:
                self.sender.disordered(self.delivery, AmqpError(DECODE_ERROR, f"the message cannot be read: {error}"))
                return
            if part is None:
                return
            for copy in copies:
                if copy.stream is not None:
                    copy.stream.put(part, self.has_left)
                    copy.egress.connection.touched()
            self.sender.took()
            self._all_left(copies)

    def _all_left(self, copies: Sequence[Copy]) -> None:
        if not self.has_left:
            return
        for copy in copies:
            copy.egress.left(copy)
            self.sent(copy)

    def _next_part(self, room: int) -> bytes | None:
        """The next octets, and whether they are the last; None while nothing has come."""
        incoming = self.incoming
        assert incoming is not None
        if not self._rest:
            taken = self._take(incoming)
            if self._walk is not None:
                self._walk.feed(taken)
            self._rest = memoryview(taken)
            if not self._rest and not self.delivery.complete:
                incoming.await_more()
                return None
        part, self._rest = self._rest[:room], self._rest[room:]
        self.has_left = self.delivery.complete and not self._rest and incoming.is_empty
        return bytes(part)

    def _take(self, incoming: IncomingStream) -> bytes:
        """What has come, of frames however small, as far as one frame onward is to hold it."""
        first = incoming.take()
        if incoming.is_empty:
            return first
        parts, size = [first], len(first)
        while size < STREAM_FRAME and not incoming.is_empty:
            parts.append(incoming.take())
            size += len(parts[-1])
        return b"".join(parts)

    # --- what receivers say

    def disposed(self, copy: Copy, state: DeliveryState | None, settled: bool) -> None:
        """A receiver has said something of its copy; of one that is over it has no meaning any more."""
        if copy.over:
            return
        copy.state = state
        if len(self.copies) == 1:
            self._relay(copy, state, settled)
        elif settled or isinstance(state, TERMINAL):
            if not settled and copy.delivery is not None:
                copy.delivery.link.session.disposition(copy.delivery, state, True)
                copy.egress.connection.touched()
            self._over(copy, state)

    def _relay(self, copy: Copy, state: DeliveryState | None, settled: bool) -> None:
        self.sender.tell(self.delivery, state, settled)
        if settled:
            copy.over = True
            if copy.stream is not None or copy.delivery is None:
                self._stop(copy)
            self._finish()

    def lost(self, copy: Copy, unseen: DeliveryState = RELEASED) -> None:
        """The way of a copy is gone (R7): nobody can have seen the whole of it, or somebody may have."""
        if copy.over:
            return
        said = isinstance(copy.state, TERMINAL)
        self._over(copy, copy.state if said else MODIFIED_FAILED if copy.is_complete else unseen)

    def _over(self, copy: Copy, state: DeliveryState | None) -> None:
        """Nothing more is said of a copy; when that holds for all, the sender is told what it comes to."""
        copy.state, copy.over = state, True
        self._stop(copy)
        if self.finished:
            return
        if not all(each.over for each in self.copies):
            if self.incoming is not None:
                self.move()  # the others may have waited for this one
            return
        if not self.settled:
            self.sender.tell(self.delivery, self._verdict(), True)
        self._finish()

    def _verdict(self) -> DeliveryState | None:
        """R5: accepted if anyone accepted, else rejected, else modified, else released."""
        for kind in TERMINAL:
            for copy in self.copies:
                if isinstance(copy.state, kind):
                    return copy.state
        return RELEASED

    # --- what the sender says

    def settle(self) -> None:
        """The sender has settled, having heard the outcome (where the receiver settles second)."""
        for copy in self.copies:
            delivery = copy.delivery
            if not copy.over and delivery is not None:
                copy.over = True
                delivery.link.session.disposition(delivery, delivery.remote_state, True)
                copy.egress.connection.touched()
        self._finish()

    def abort(self) -> None:
        """It never was, as far as it has not arrived whole: the sender gave it up or is gone, or it is too large."""
        for copy in self.copies:
            if not copy.over:
                copy.over = True
                self._stop(copy, whatever=True)
        self._finish()

    def give_back(self, state: DeliveryState) -> None:
        """It has not begun to leave, and will not: there is no way for it (any more)."""
        if not self.settled:
            self.sender.tell(self.delivery, state, True)
        self._finish()

    # --- the end

    def _stop(self, copy: Copy, *, whatever: bool = False) -> None:
        """Send nothing more of a copy that has not left whole."""
        if copy.stream is not None and not (self.has_left and not whatever):
            copy.stream.abort()
            copy.egress.connection.touched()
            copy.egress.left(copy)
        copy.egress.drop(copy)

    def _finish(self) -> None:
        if self.finished:
            return
        self.finished = True
        if self.incoming is not None:
            self.incoming.drop()
            self.sender.took()
        self.sender.finished(self)
        self._part()

    def forget(self) -> None:
        """Its session is gone: nobody is told anything of it any more."""
        if self.finished:
            return
        self.finished = True
        if self.incoming is not None:
            self.incoming.drop()
        self._part()

    def _part(self) -> None:
        """Nothing is said of them any more, so they need not wait for the collector of garbage to find the ring."""
        for copy in self.copies:
            copy.delivery = copy.stream = None
        self.copies = ()
        if self.delivery.complete:
            self.delivery.context = None
        del self.delivery  # of one that is not complete the rest still finds this, and that it is over


def forget_copies(session: EngineSession) -> None:
    """A session of a link route is gone, and with it what becomes of the messages that left on it."""
    for delivery in session.outgoing.values():
        copy = delivery.context
        if isinstance(copy, Copy):
            copy.forget()
