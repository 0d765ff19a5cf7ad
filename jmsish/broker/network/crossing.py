"""A message that came whole and leaves at once on one link, which is what nearly all do.

It is a passage and its only copy in one object, and nothing of it is left when the outcome has passed: the two
deliveries and what joins them let go of each other, so that none of them waits for the collector of garbage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsish.broker.network.passage import TERMINAL, Copy
from jmsish.engine.outcomes import MODIFIED_FAILED, RELEASED, DeliveryState

if TYPE_CHECKING:
    from jmsish.broker.network.egress import Egress
    from jmsish.broker.network.passage import Sender
    from jmsish.engine.delivery import Delivery


class Crossing(Copy):
    """Such a message; ``source`` is the delivery it came as, ``delivery`` the one it left as."""

    __slots__ = ("sender", "source")

    def __init__(self, sender: Sender, source: Delivery, egress: Egress) -> None:
        self.sender = sender
        self.source: Delivery | None = source
        self.egress = egress
        self.delivery = self.stream = self.state = None
        self.over = False

    # hot: what the outcome of each small message costs.
    def disposed(self, state: DeliveryState | None, settled: bool) -> None:
        """R5: what the receiver says of it, the sender hears."""
        source = self.source
        if source is None:
            return
        sender = self.sender
        sender.tell(source, state, settled)
        if settled:
            source.context = self.source = self.delivery = None
            self.over = True
            sender.crossed()
        else:
            self.state = state

    def lost(self) -> None:
        """R7: nobody can have seen the whole of it, or somebody may have."""
        source = self.source
        if source is not None:
            said = isinstance(self.state, TERMINAL)
            state = self.state if said else MODIFIED_FAILED if self.is_complete else RELEASED
            if not source.remote_settled:
                self.sender.tell(source, state, True)
            self._finish(source)

    def forget(self) -> None:
        """Nothing is said of it any more."""
        if self.source is not None:
            self.source.context = self.source = self.delivery = None
            self.over = True

    def settle(self) -> None:
        """The sender has settled, having heard the outcome (where the receiver settles second)."""
        source, delivery = self.source, self.delivery
        if source is not None and delivery is not None:
            delivery.link.session.disposition(delivery, delivery.remote_state, True)
            self.egress.connection.touched()
            self._finish(source)

    def sent_settled(self) -> None:
        """It was settled when it came: with its leaving it is over."""
        if self.source is not None:
            self._finish(self.source)

    def _finish(self, source: Delivery) -> None:
        source.context = self.source = self.delivery = None
        self.over = True
        self.sender.crossed()
