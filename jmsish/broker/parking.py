"""Deliveries that wait for a frozen exchange: parked, unsettled, in the order in which they came over all links.

What is parked uses up the credit of its link, so that a freeze holds no more than its senders may send. Messages of one
link for one exchange never overtake one another: when the first of them waits further on its way (at an exchange that
is bound to the first, or its alternate), those after it wait behind it.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from jmsish.broker.gates import GateClosed, Waiter
from jmsish.engine.outcomes import AmqpError

if TYPE_CHECKING:
    from jmsish.broker.arrival import Arrival
    from jmsish.broker.freezes import Freezes
    from jmsish.broker.incoming import IncomingLink
    from jmsish.broker.transactions import Transaction
    from jmsish.engine.delivery import Delivery

_log = logging.getLogger("jmsish.broker")


class Parked(Waiter):
    """One delivery that waits."""

    __slots__ = ("_freezes", "_track", "arrival", "delivery", "entry", "link", "transaction")

    def __init__(
        self,
        link: IncomingLink,
        freezes: Freezes,
        delivery: Delivery,
        arrival: int | Arrival,
        entry: object,
        transaction: Transaction | None,
    ) -> None:
        super().__init__()
        self.link = link
        self._freezes = freezes
        self.delivery = delivery
        self.arrival = arrival
        self.entry = entry
        """The exchange that it was sent to."""
        self.transaction = transaction
        self._track: deque[Parked] = link.parked.setdefault(entry, deque())
        self._track.append(self)
        link.waiting += 1
        if transaction is not None:
            transaction.parked[self] = None

    def go(self) -> None:
        """Be routed, as if it had arrived now."""
        first = self._track[0]
        if first is not self and first.gate is not None:
            return self._freezes.wait(self, first.gate)
        link = self.link
        try:
            link.let_in(self)
        except GateClosed as closed:
            self._freezes.wait(self, closed.gate)
        except Exception:
            # Whose freeze has ended now is not to hear of it; whoever sent this is.
            _log.exception("a fault met a message that had waited for a frozen exchange")
            self.leave()
            link.detach(AmqpError("amqp:internal-error", "the message met a fault of the broker"))

    def leave(self) -> None:
        """It waits no more, and its transaction no more for it."""
        self.give_up()
        track = self._track
        if track and track[0] is self:
            track.popleft()
        elif self in track:
            track.remove(self)
        else:
            return
        link = self.link
        link.waiting -= 1
        if not track:
            del link.parked[self.entry]
        if self.transaction is not None:
            self.transaction.unparked(self)

    @property
    def outlives_its_link(self) -> bool:
        """Its sender was done with it, or has it in a transaction ("what it posted stays", T52)."""
        return self.delivery.remote_settled or self.transaction is not None

    def forget(self) -> None:
        """Its transaction is rolled back."""
        self.leave()
        self.link.excuse(self)

    def stop(self) -> None:
        """The broker stops: it was not taken."""
        self.leave()
        self.link.give_back(self)
