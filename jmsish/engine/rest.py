"""The rest of a disposition that names very many deliveries: they are reported some at a time, as the owner asks.

Theory of operation.  Some twenty octets may name all that a session has. A disposition over a range says what those
over its parts would say (Part 2, 2.7.6, knows of no other way to tell many outcomes), so beyond
:attr:`~jmsish.engine.limits.Limits.most_disposed` it is reported part by part: the first when it is read, another with
each call of :func:`go_on`. Before one of them has found no more, the frame is not over, and nothing is read of what
stands behind it: what comes meanwhile is kept, so that each frame of the connection still takes effect in its order.

Which deliveries it names is decided once, when it is read. One that has gone from the ledger before its part came was
decided otherwise, and is not reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import DISPOSED

if TYPE_CHECKING:
    from .delivery import Delivery
    from .engine import Engine
    from .session import EngineSession
    from .states import DeliveryState

__all__ = ["Rest", "go_on", "report_disposed"]


class Rest:
    """What of a disposition is not reported yet."""

    __slots__ = ("_deliveries", "_settled", "_state", "session")

    def __init__(
        self, session: EngineSession, deliveries: list[Delivery], state: DeliveryState | None, settled: bool
    ) -> None:
        self.session = session
        self._deliveries = deliveries[::-1]  # the next ones at the end, so that they are let go of as they are reported
        self._state = state
        self._settled = settled

    def __len__(self) -> int:
        """How many deliveries there are, at most."""
        return len(self._deliveries)

    def report(self, most: int) -> None:
        """Report so many more."""
        session, part = self.session, self._deliveries[: -most - 1 : -1]
        if not part:
            return
        del self._deliveries[-most:]
        ledger = session.outgoing if part[0].link.is_sender else session.incoming
        part = [delivery for delivery in part if ledger.get(delivery.id) is delivery]
        if part and not session.discarding:
            report_disposed(session, part, self._state, self._settled)


def report_disposed(
    session: EngineSession, deliveries: list[Delivery], state: DeliveryState | None, settled: bool
) -> None:
    """The peer has said this of these deliveries, all in the ledger of one direction."""
    is_ours = deliveries[0].link.is_sender
    ledger = session.outgoing if is_ours else session.incoming
    for delivery in deliveries:
        delivery.remote_state = state
        if settled:
            delivery.remote_settled = True
            del ledger[delivery.id]
    if not is_ours:
        # One in transit is reported when it is whole.
        deliveries = [delivery for delivery in deliveries if delivery.complete]
        if not deliveries:
            return
    session.engine.report((DISPOSED, session, deliveries, state, settled, not is_ours))


def go_on(engine: Engine) -> None:
    """Report some more of what is left (``engine.rest``); where nothing is left, read what has come behind it."""
    if engine.rest:
        engine.rest.report(engine.limits.most_disposed)
    else:
        engine.rest = None
        engine.read_on()


def take_rest(engine: Engine) -> list[tuple[Any, ...]]:
    """All that is left at once, as events: the owner will not go on. What stands behind it is still not read."""
    rest, before = engine.rest, engine.take_events()
    if rest:
        rest.report(len(rest))
    events = engine.take_events()
    for event in before:
        engine.report(event)
    return events
