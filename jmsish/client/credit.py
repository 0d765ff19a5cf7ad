"""The credit of a consumer: how much the broker may send it ahead, and how that is taken back.

While a consumer is alone on its queue in its session, it keeps `prefetch` deliveries either under way or unread.  When
the session has another consumer on the same queue, credit is granted on demand only (D2): by a receive that found the
buffer empty, or by a listener; and the window starts at one, doubles each time the application has read it empty, and
falls back to one when unread messages had to be given back.  So the idle consumer never sits on messages that its
sibling is asked for, and the busy one loses little.

Credit is taken back by a drain: "send what you have, then forget the rest" (Part 2, 2.6.7).  Its answer is the one
way to know that nothing is under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsish.client.answers import Answer
from jmsish.client.procedures import Procedure, settle
from jmsish.engine.codec import split_header
from jmsish.engine.streaming import want
from jmsish.errors import OperationTimeoutError
from jmsish.profiles.profile import DRAIN

if TYPE_CHECKING:
    from jmsish.client.session import ClientSession
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link

DRAIN_PATIENCE = 0.25
"""Seconds until a drain is asked for again, doubling: far above a round trip, far below what a person notices."""

LATE_ANSWER = 0.01
"""Seconds in which a broker whose threads answer drains late has done so: far above its round trip.

Artemis has an answer still to a drain that was used up; where it meets the next drain, that brings nothing though there
are messages, and the one behind it may meet the next answer.  Credit without a drain has nothing to fear from them.
"""


def line_up(buffer: deque[Delivery], delivery: Delivery) -> None:
    """Into the buffer, behind all of its priority and above (scenario 157)."""
    priority, at = _priority_of(delivery), len(buffer)
    while at and _priority_of(buffer[at - 1]) < priority:
        at -= 1
    buffer.insert(at, delivery)


def _priority_of(delivery: Delivery) -> int:
    header = split_header(delivery.payload)[0]
    return 4 if header is None else header.priority


class CreditWindow:
    """The part of a consumer that asks for messages."""

    origin: Hashable
    """What it takes messages from: consumers with the same are siblings.  Each consumer of a topic has a queue of its
    own at the broker, unless a named subscription is what it reads."""

    def __init__(self, session: ClientSession, prefetch: int, browsing: bool) -> None:
        self.session = session
        self.prefetch = prefetch
        self.browsing = browsing
        self.link: Link | None = None
        self.buffer: deque[Delivery] = deque()
        self.drained: Future[None] | None = None
        """The answer to a drain: there from the question to `end_drain`, and no credit is granted as long as it is."""
        self.listening = False
        self.demand = False
        """A receive waits for what is not in the buffer."""
        self.window = 1
        self.closing = False
        self.used_up = False
        """The last drain brought as much as it had credit for, and that was its answer: the broker said no word."""
        self.renewed = False
        """Since it was last drained its link was lost: what is in the buffer came by another one."""

    def credit_wanted(self) -> int:
        """How many deliveries may be under way or unread just now."""
        if self.closing or self.drained is not None:
            return 0
        if self.browsing:
            return self.prefetch or 1
        if not self.session.connection.was_started:
            return 0
        if self.prefetch == 0:
            return 1 if self.demand or self.listening else 0
        if self.session.has_sibling(self):
            if self.demand or self.listening:
                return min(self.window, self.prefetch)
            return 0
        return self.prefetch

    def replenish(self) -> None:
        """Grant credit once a quarter of the window is free, so that a flow is a rare frame."""
        link = self.link
        if link is None or not link.remote_attached:
            return
        wanted = self.credit_wanted()
        missing = wanted - link.credit - len(self.buffer)
        if missing > 0 and missing >= wanted >> 2:
            link.flow(wanted - len(self.buffer))

    def start_drain(self) -> Future[None]:
        """Ask the broker to use or return the outstanding credit; answered at once when there is none.

        In either case no credit is granted until `end_drain`.
        """
        link = self.link
        if self.drained is not None:
            return self.drained
        self.renewed = False
        drained: Future[None] = Answer()
        self.drained = drained
        if link is None or not link.remote_attached or (link.credit == 0 and not self._is_amid()):
            settle(drained)
        else:
            self._ask_to_drain(link)
        return drained

    def _ask_to_drain(self, link: Link) -> None:
        """Where a drain would end the session (RabbitMQ 3) the credit is taken back, and an answer asked for."""
        link.credit_heard = None
        if self.session.connection.profile.has(DRAIN):
            link.flow(max(link.credit, 1), drain=True)
        else:
            link.flow(0, echo=True)

    def _is_amid(self) -> bool:
        """Whether half a delivery is here; one that is read while it arrives counts as whole."""
        current = self.link.current if self.link is not None else None
        return current is not None and current.stream is None

    def wait_drained(self, drained: Future[None], deadline: float | None) -> Procedure[None]:
        """Wait for the answer to a drain, asking again now and then until `deadline`.

        Artemis leaves a drain unanswered that follows a grant by less than a moment, and answers the next.
        """
        connection = self.session.connection
        patience = DRAIN_PATIENCE
        while not drained.done():
            until = connection.now + patience
            last = deadline is not None and until >= deadline
            engine_session = self.session.engine_session
            want(engine_session, True)
            try:
                yield drained, deadline if last else until
                return
            except OperationTimeoutError:
                link = self.link
                if last or link is None or drained is not self.drained:
                    raise
                self._ask_to_drain(link)
                patience *= 2
            finally:
                want(engine_session, False)

    def on_credit(self) -> None:
        """The broker moved our credit: a drain is answered once none is left and no delivery is half here.

        Some brokers (proton-j: Artemis) answer in mid-delivery, and send the rest of it only for new credit.  An answer
        nobody waits for any more (a receive that was cancelled) has taken credit away that is wanted.
        """
        link, drained = self.link, self.drained
        if drained is None:
            self.replenish()
            return
        if drained.done() or (link is not None and link.credit > 0):
            return
        if link is not None and link.credit_heard != 0 and not self.session.connection.profile.has(DRAIN):
            return  # our own word; what the broker sent before it heard of it may be under way
        if link is not None and self._is_amid():
            link.flow(1, drain=True)
            return
        self.used_up = link is not None and link.credit_heard is None
        settle(drained)

    def _drain(self) -> Procedure[None]:
        """Have the broker use or return our credit; one that does not answer in time gets credit again."""
        drained = self.start_drain()
        try:
            yield from self.wait_drained(drained, self.session.connection.request_deadline())
        finally:
            self.end_drain()

    def end_drain(self) -> None:
        """Credit may flow again, answered or not; whoever else waits for the answer waits no longer."""
        drained, self.drained = self.drained, None
        settle(drained)

    def unread(self) -> list[Delivery]:
        """Empty the buffer; what was in it is the caller's to release."""
        unread = list(self.buffer)
        self.buffer.clear()
        if unread:
            self.window = 1
        return unread

    def drop_unread(self) -> None:
        """The link is gone, and with it what nobody has read."""
        for delivery in self.unread():
            if delivery.stream is not None:
                delivery.stream.drop()
