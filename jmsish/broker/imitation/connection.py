"""One connection of a broker that imitates another.

Theory of operation.  The table of what is done with each event of the engine is that of `ServerConnection`, with some
rows in front: an attach, a flow or a disposition is looked at first, and refused, changed or dropped where the
imitated broker would.  Everything else goes on as ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.attach import Terminal
from jmsish.broker.connection import ACTS, ServerConnection
from jmsish.broker.filters import Filters
from jmsish.broker.imitation.claims import CLAIMS, ClaimsNode
from jmsish.broker.imitation.coordinator import ImitatingCoordinator
from jmsish.broker.imitation.idleness import IdleWatch
from jmsish.broker.imitation.intake import ImitatingIntake
from jmsish.broker.imitation.router import ImitatingRouter, LosingSettlement
from jmsish.broker.imitation.table import LOST, STUCK, Imitation
from jmsish.broker.incoming import IncomingLink
from jmsish.broker.intake import Intake
from jmsish.broker.order import ACQUIRED, Entry
from jmsish.broker.outgoing import OutgoingLink
from jmsish.broker.transactions import Work
from jmsish.engine import events
from jmsish.engine.outcomes import (
    RELEASED,
    AmqpError,
    Coordinator,
    Modified,
    Rejected,
    Released,
    Source,
    Target,
    TransactionalState,
)

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker
    from jmsish.broker.management_links import ManagementNode
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession

FAILED: Final = Modified(delivery_failed=True)
PRESETTLED: Final = 1


class ImitatingConnection(ServerConnection):
    """A connection of an imitated broker."""

    control_kind = ImitatingCoordinator

    def __init__(self, broker: Broker, *terms: Any) -> None:
        super().__init__(broker, *terms)
        assert broker.imitation is not None
        self.imitation: Imitation = broker.imitation
        self._stuck: dict[OutgoingLink, list[Entry]] = {}
        """What a receiver gave another outcome than accepted in a transaction, and is ignored until its link ends."""

    # -- the open

    def _opened(self) -> None:
        if self.imitation.refuses_second_container:
            super()._opened()
            return
        assert self.engine.remote is not None
        self.engine.remote = replace(
            self.engine.remote,
            desired_capabilities=tuple(name for name in self.engine.remote.desired_capabilities if "sole" not in name),
        )
        super()._opened()

    # -- attaches

    def own_node(self, address: str | None) -> ManagementNode | None:
        if address == CLAIMS and self.imitation.takes_tokens:
            return ClaimsNode(self.broker)
        return super().own_node(address)

    def _attached(self, link: Link) -> None:
        if self.ended:
            return
        why = self._refusal(link)
        if why is not None:
            self.refuse(link, why)
            return
        self._adapt(link)
        router = self.broker.router
        assert isinstance(router, ImitatingRouter)
        router.reading = link.is_sender
        try:
            super()._attached(link)
        finally:
            router.reading = False
        self._adopt(link.context)
        if self.imitation.idle_detach and link.context is not None:
            IdleWatch(self.broker, link, self.imitation.idle_detach).begin()

    def _refusal(self, link: Link) -> AmqpError | None:
        imitation, target = self.imitation, link.remote_target
        if not link.is_sender and isinstance(target, Coordinator):
            return imitation.no_transactions
        terminus = link.remote_source if link.is_sender else target
        if isinstance(terminus, (Source, Target)) and terminus.dynamic:
            return imitation.no_dynamic_nodes
        if not link.is_sender and isinstance(target, Target) and target.address is None:
            return imitation.no_relay
        return None

    def _adapt(self, link: Link) -> None:
        """Take out of an attach what the broker does not see in it."""
        imitation = self.imitation
        link.remote_desired_capabilities = tuple(
            name for name in link.remote_desired_capabilities if name in imitation.link_capabilities
        )
        source = link.remote_source
        if not link.is_sender or not isinstance(source, Source):
            return
        if not imitation.shares:
            kept = tuple(name for name in source.capabilities if name not in ("shared", "global"))
            source = replace(source, capabilities=kept)
        if not imitation.browses and source.distribution_mode == "copy":
            source = replace(source, distribution_mode=None)
        if imitation.no_modified is not None and link.remote_snd_settle_mode != PRESETTLED:
            source = replace(source, default_outcome=RELEASED)
        link.remote_source = source

    def _adopt(self, terminal: Terminal | None) -> None:
        if isinstance(terminal, IncomingLink) and self.imitation.releases_unroutable and terminal.queue is None:
            terminal.unroutable = "release"

    def refuse(self, link: Link, error: AmqpError) -> None:
        if self.imitation.ends_sessions:
            self._end_session(link.session, error)
        else:
            super().refuse(link, error)

    def _end_session(self, session: EngineSession, error: AmqpError) -> None:
        """As some brokers answer what they do not like."""
        if session in self._sessions:
            self._sessions.remove(session)
            session.end(error)
            self._lose_session(session)

    def read_filters(self, wished: Mapping[Any, Any] | None) -> Filters:
        selectors = self.imitation.selectors
        if selectors:
            return super().read_filters(wished)
        return Filters(granted=dict(wished or {}) if selectors is None else {})

    def intake(self) -> Intake:
        if not self.grant.allow_user_id_proxy:
            return super().intake()  # whose message it is goes before what it asks
        return ImitatingIntake(self.broker.now, self.imitation)

    # -- flows and dispositions

    def _flowed(self, link: Link, properties: Mapping[Any, Any] | None) -> None:
        why = self.imitation.no_drain
        if why is not None and link.is_sender and link.drain:
            self._end_session(link.session, why)
        else:
            super()._flowed(link, properties)

    def _disposed(
        self, session: EngineSession, deliveries: list[Delivery], state: Any, settled: bool, sender_role: bool
    ) -> None:
        imitation = self.imitation
        if not sender_role:
            if isinstance(state, Modified) and imitation.no_modified is not None:
                for delivery in deliveries if settled else ():
                    self.broker.settlement.apply(delivery.link.context, delivery.context, RELEASED)
                self._end_session(session, imitation.no_modified)
                return
            if isinstance(state, TransactionalState) and isinstance(state.outcome, (Released, Modified, Rejected)):
                if not self._takes_in_transaction(deliveries, state, settled):
                    return
            state = self._meant(state)
        super()._disposed(session, deliveries, state, settled, sender_role)

    def _takes_in_transaction(self, deliveries: list[Delivery], state: TransactionalState, settled: bool) -> bool:
        """What becomes of an outcome other than accepted in a transaction, as far as it is not as the standard says."""
        way, settlement = self.imitation.in_transaction, self.broker.settlement
        if way == LOST and settled and isinstance(state.outcome, Released) and isinstance(settlement, LosingSettlement):
            settlement.doomed.update(delivery.context for delivery in deliveries)
        if way != STUCK:
            return True
        for delivery in deliveries if settled else ():
            self._stuck.setdefault(delivery.link.context, []).append(delivery.context)
        return False

    def _meant(self, state: Any) -> Any:
        imitation = self.imitation
        if isinstance(state, TransactionalState):
            meant = self._meant(state.outcome)
            return state if meant is state.outcome else replace(state, outcome=meant)
        if isinstance(state, Rejected) and imitation.rejected == "requeued":
            return FAILED
        if isinstance(state, Modified) and state.undeliverable_here and imitation.undeliverable_here_is_rejected:
            return Rejected(None)
        return state

    # -- endings

    def receive_eof(self) -> None:
        if not self.ended and not self.closed:
            for session in self._sessions:
                self._leave(session, None, self.imitation.counts_at_loss)
        super().receive_eof()

    def _closed(self, error: AmqpError | None) -> None:
        for session in self._sessions:
            self._leave(session, None, self.imitation.counts_at_end)
        super()._closed(error)

    def _ended(self, session: EngineSession, error: AmqpError | None) -> None:
        if session in self._sessions:
            self._leave(session, None, self.imitation.counts_at_end)
        super()._ended(session, error)

    def _leave(self, session: EngineSession, link: Link | None, counted: bool | None) -> None:
        """What is unsettled on a link, or on all, comes back, counted or not, and not as its default outcome says."""
        settlement = self.broker.settlement
        for delivery in list(session.outgoing.values()) if counted is not None else ():
            entry = delivery.context
            if (link is None or delivery.link is link) and isinstance(entry, Entry) and entry.state == ACQUIRED:
                if not isinstance(entry.work, Work):
                    default = FAILED if counted else RELEASED
                    settlement.apply_default(delivery.link.context, entry, default, seen=False)
                    session.forget(delivery)

    def _detached(self, link: Link, closed: bool, error: AmqpError | None) -> None:
        if isinstance(link.context, OutgoingLink):
            self._leave(link.session, link, self.imitation.counts_at_detach)
        super()._detached(link, closed, error)
        self._unstick([link.context])

    def _lose_session(self, session: EngineSession) -> None:
        super()._lose_session(session)
        self._unstick([consumer for consumer in self._stuck if consumer.link.session is session])

    def _unstick(self, consumers: list[Any]) -> None:
        settlement = self.broker.settlement
        for consumer in consumers:
            for entry in self._stuck.pop(consumer, ()):
                settlement.apply(consumer, entry, FAILED if self.imitation.counts_stuck else RELEASED)


ImitatingConnection.acts = {
    **ACTS,
    events.OPENED: ImitatingConnection._opened,
    events.ATTACHED: ImitatingConnection._attached,
    events.FLOWED: ImitatingConnection._flowed,
    events.DISPOSED: ImitatingConnection._disposed,
    events.DETACHED: ImitatingConnection._detached,
    events.ENDED: ImitatingConnection._ended,
    events.CLOSED: ImitatingConnection._closed,
}
