"""The client's side of one connection: routes the engine's events, opens and closes, keeps the first cause of failure.

Whoever owns the connection (see `drivers/`) feeds it bytes and the time and takes bytes from it.  What has to be done
outside the ownership, because it runs application code, is collected in `calls` for the driver to take.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsish.client.answers import Answer
from jmsish.client.client_ids import check_client_id, say_open
from jmsish.client.continuity import Continuity
from jmsish.client.own_session import OwnSession
from jmsish.client.peers import known_as
from jmsish.client.procedures import Interrupted, Procedure, fail, settle, silenced
from jmsish.client.producer import unknown_outcome
from jmsish.client.session import ClientSession
from jmsish.client.subscriptions import Subscriptions
from jmsish.client.temporary import TemporaryNodes
from jmsish.client.trace import trace_if_wanted
from jmsish.client.transaction import no_coordinator
from jmsish.client.waiting import someone_waits
from jmsish.destination import Prefixes
from jmsish.engine import events
from jmsish.engine.codec import split_header
from jmsish.engine.conditions import EngineStateError, PeerLimitError
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import AmqpError, TransactionalState
from jmsish.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidClientIDError,
    JMSError,
    JMSSecurityError,
    OperationTimeoutError,
    ResourceAllocationError,
    error_for,
)
from jmsish.modes import AcknowledgeMode
from jmsish.moments import RealMoment
from jmsish.profiles import UNKNOWN, Profile
from jmsish.profiles.profile import TRANSACTIONS

if TYPE_CHECKING:
    from jmsish.client.cbs import TokenNode
    from jmsish.client.telemetry import Telemetry
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession
    from jmsish.events import ConnectionEvent
    from jmsish.options import ConnectionOptions

ESTABLISHMENT_FAILED = "amqp:connection-establishment-failed"
"""An open property that says: a close with the reason follows (M35)."""

DESIRED = ("sole-connection-for-container", "DELAYED_DELIVERY", "ANONYMOUS-RELAY", "SHARED-SUBS")
"""M31."""


class ClientConnection(Continuity):
    """One connection of the application, over one engine after the other."""

    client_id: str | None = None
    """What the application, or its factory, calls this connection; None when nobody named it."""
    client_id_preset = False
    telemetry: Telemetry | None = None
    """Who watches this connection from outside."""
    _told = False
    """Whether a call raises the failure: then the exception listener is not told."""

    def __init__(self, engine: Engine, options: ConnectionOptions, clock: Callable[[], float], peer: str) -> None:
        self.engine = engine
        self.options = options
        self.clock = clock
        self.peer = peer
        """Whom we talk to, for error texts: host and port, or the broker's name."""
        self.now = 0.0
        """Monotonic seconds, set by the driver before each step."""
        self.shift = 0.0
        """By how much `now` is ahead of the time that the engine has, whose heartbeats are those of a real wire."""
        self.sessions: set[ClientSession] = set()
        self.temporary = TemporaryNodes(self)
        self.own_session = OwnSession(self, self.temporary.forget)
        self.subscriptions = Subscriptions(self)
        self.cbs: TokenNode | None = None
        self.user_id: str | None = None
        """What sent messages carry as JMSXUserID (M22), or None."""
        self.profile: Profile = UNKNOWN
        """What kind of broker it is, known when it has opened."""
        self.prefixes: Prefixes = ("", "")
        self.started = self.was_started = self.opening = self.closed = self._failed = False
        self.authenticated: Future[None] = Answer()
        """Done when frames may follow: the protocol is agreed upon and SASL, where there is any, went well."""
        self.opened: Future[None] = Answer()
        self.shut: Future[None] = Answer()
        self.online: Future[None] = Answer()
        """Done when a connection that is offline is so no more."""
        self.leaving: Future[None] = Answer()
        """Done when the application closes a connection that is offline."""
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.trace = trace_if_wanted(self.calls)
        self.exception_listener: Callable[[JMSError], Any] | None = None
        self.event_listener: Callable[[ConnectionEvent], Any] | None = None
        self.failure: JMSError | None = None
        self._at_hand: list[tuple[Any, ...]] = []
        """What is being acted on: where that is broken off, some outcomes in it are not told yet."""
        self._named = 0
        self._settling: dict[Link, list[Future[None]]] = {}

    # -- bytes and time --------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        self.engine.receive(data)
        self.process()

    def receive_eof(self) -> None:
        self.engine.receive_eof()
        self.process()

    def process(self) -> None:
        """Act on what the engine saw, in the order in which it came."""
        if not self.authenticated.done() and self.engine.negotiated:
            settle(self.authenticated)
        self._at_hand = self.engine.take_events()
        for event in self._at_hand:
            kind = event[0]
            if kind == events.DELIVERED:
                event[1].context.on_delivery(event[2])
            elif kind == events.DISPOSED:
                self._on_disposed(*event[1:])
            else:
                action = _RARE.get(kind)
                if action is not None:
                    action(self, *event[1:])
        self._at_hand = []

    def take_output(self) -> bytes:
        engine = self.engine
        if not engine.throttled:
            return engine.take_output()
        octets = engine.take_output()
        self.process()  # what waited for the output to be taken has left
        return octets

    @property
    def output_size(self) -> int:
        engine = self.engine
        return engine.out_size + 48 * len(engine.unflushed)  # a range of dispositions not yet a frame counts too

    def tick(self, now: float) -> float | None:
        """Let time pass; the moment of the next tick, or None."""
        self.now = now
        deadline = self.engine.tick(now - self.shift)
        if deadline is not None:
            deadline += self.shift
        if self.cbs is not None:
            deadline = self.cbs.tick(now, deadline)
        self.process()
        for session in self.sessions:
            lazy = session.ledger.lazy_deadline
            if lazy is not None:
                if lazy <= now:
                    session.ledger.flush_lazy()
                else:
                    deadline = lazy if deadline is None else min(deadline, lazy)
        return deadline

    def wall_milliseconds(self) -> int:
        return int(self.clock() * 1000)

    def request_deadline(self) -> float | None:
        return self._answer_by(self.options.request_timeout)

    def close_deadline(self) -> float | None:
        return self._answer_by(self.options.close_timeout)

    def send_deadline(self) -> float | None:
        return self._deadline(self.options.send_timeout)

    def _answer_by(self, seconds: float | None) -> float | None:
        """Until when a broker that lives may answer: that is a matter of the wire, which no clock of a test hurries."""
        if seconds is None or self.options.clock is None:
            return self._deadline(seconds)
        return RealMoment(self.now - self.shift + seconds)

    def _deadline(self, seconds: float | None) -> float | None:
        return None if seconds is None else self.now + seconds

    # -- events ----------------------------------------------------------------------------------------------------

    def _on_opened(self) -> None:
        remote = self.engine.remote
        assert remote is not None
        self.remote = remote
        properties = remote.properties or {}
        if self.reconnection is not None:
            self.reconnection.learned(properties)
        self.profile, self.prefixes = known_as(self.options, remote, self.engine.hostname)
        if not properties.get(ESTABLISHMENT_FAILED):
            settle(self.opened)

    def _on_closed(self, error: AmqpError | None) -> None:
        if self.closed:
            settle(self.shut)
            return
        self.engine.close()
        self.lose(self._closed_by_peer(error))

    def _closed_by_peer(self, error: AmqpError | None) -> JMSError:
        if error is None:
            return ConnectionLostError(f"{self.peer} closed the connection", scope="connection")
        text = f"{self.peer} closed the connection: {error.description or error.condition}"
        info = dict(error.info or {})
        if error.condition == "amqp:invalid-field" and str(info.get("invalid-field")) == "container-id":
            return InvalidClientIDError(text, scope="connection", condition=error.condition, info=info)
        return error_for(error.condition, text, scope="connection", info=info, default=ConnectionLostError)

    def _on_failed(self, error: AmqpError) -> None:
        if self.closed and self.shut.done():
            return
        text = f"connection to {self.peer} failed: {error.description or error.condition}"
        failure = error_for(error.condition, text, scope="connection", default=ConnectionLostError)
        if not isinstance(failure, JMSSecurityError):
            # However it is told (silence is amqp:resource-limit-exceeded): nobody closed it, it is lost.
            failure = ConnectionLostError(text, scope="connection", condition=error.condition)
        self.lose(failure)

    def _on_begun(self, session: EngineSession) -> None:
        if session.context is None:
            session.end(AmqpError("amqp:not-allowed", "a client does not serve sessions"))
        else:
            settle(session.context.begun)

    def _on_ended(self, session: EngineSession, error: AmqpError | None) -> None:
        if session.context is not None:
            session.context.lose_transaction(session.context.why_ended(error))
            self._lose_outcomes(session, ConnectionLostError("the broker ended the session", scope="session"))
            session.context.on_ended(error)

    def _on_attached(self, link: Link) -> None:
        if link.context is None:
            link.refuse(AmqpError("amqp:not-allowed", "a client does not serve links"))
        else:
            link.context.on_attached()

    def _on_detached(self, link: Link, closed: bool, error: AmqpError | None) -> None:
        if link.context is not None:
            link.context.on_detached(error)

    def _on_flowed(self, link: Link, properties: object) -> None:
        if link.context is not None:
            link.context.on_credit()

    def _on_aborted(self, link: Link, delivery: Delivery) -> None:
        link.context.on_aborted(delivery)

    def _on_oversize(self, link: Link, delivery: Delivery) -> None:
        link.context.on_oversize(delivery)

    def _on_partial(self, link: Link, delivery: Delivery) -> None:
        link.context.on_partial(delivery)

    def _on_arrived(self, link: Link, delivery: Delivery) -> None:
        link.context.on_arrived(delivery)

    def _on_sent(self, link: Link, delivery: Delivery) -> None:
        settle(link.context.credited)

    def _on_disposed(
        self, session: EngineSession, deliveries: list[Delivery], state: Any, settled: bool, sender_role: bool
    ) -> None:
        if sender_role:
            return  # the broker settles what we retired: nothing is left to say
        outcome = state.outcome if isinstance(state, TransactionalState) else state
        for delivery in deliveries:
            if delivery.settled:
                continue  # the answer came before, in the same octets, and more often than once is as good as once
            if not settled:
                if outcome is None:
                    continue
                session.disposition(delivery, outcome, True)
            self.resolve(delivery, outcome)

    # -- failure ---------------------------------------------------------------------------------------------------

    def fail(self, error: JMSError) -> None:
        """Keep the first cause and fail everything that waits with it; what an interrupt left undone, the next does."""
        if self._failed:
            return
        error = self.failure = self.failure or error
        self._told = self._told or someone_waits(self) or self.waiting_online > 0
        for session in list(self.sessions):
            session.lose_transaction(error)
            self._lose_outcomes(session.engine_session, error)
            session.fail(error)
        self.sessions.clear()
        for event in self._at_hand:
            for delivery in event[2] if event[0] == events.DISPOSED else ():
                if delivery.context is not None and delivery.link.is_sender:
                    self.resolve(delivery, unknown_outcome(error))
        for waiting in self.take_settling():
            fail(waiting, error)
        self.own_session.fail(error)
        for future in (self.authenticated, self.opened, self.online, self.dialling):
            fail(future, error)
        settle(self.shut)
        self.offline = False
        self._failed = True
        if not self._told:
            self.report(error)

    def unanswered(self, stage: str, late: OperationTimeoutError) -> ConnectionLostError:
        """A broker that takes connections and says nothing is left after `connect_timeout`."""
        within = f"within {self.options.connect_timeout:g} s (stage: {stage})"
        text = f"{self.peer} accepted the connection and did not answer {within}"
        error = ConnectionLostError(text, scope="connection")
        error.__cause__ = late
        return error

    def tell(self, event: ConnectionEvent) -> None:
        """Events go to the event listener, and to who watches."""
        if self.telemetry is not None:
            self.calls.append((self.telemetry.told, (self, event)))
        if self.event_listener is not None and not self.closed:
            self.calls.append((self.event_listener, (event,)))

    def report(self, error: JMSError) -> None:
        """Errors nobody waits for go to the exception listener."""
        if self.exception_listener is not None and not self.closed:
            self.calls.append((self.exception_listener, (error,)))

    def check(self) -> None:
        if self.closed:
            raise IllegalStateError("the connection is closed") from self.failure
        if self.failure is not None:
            raise self.failure

    # -- procedures ------------------------------------------------------------------------------------------------

    def open(self) -> Procedure[None]:
        """Send open once, and wait for the broker's; of a connection that is offline, for its return."""
        self.check()
        while not self.opened.done() or self.offline:
            if self.offline:
                self.opening = True
                yield from self.until_online()
                continue
            if not self.opening:
                say_open(self.engine)
                self.opening = True
            try:
                yield self.opened, self._deadline(self.options.connect_timeout)
            except Interrupted:
                continue
            except OperationTimeoutError as late:
                self._told = self.reconnection is None
                self.lose(self.unanswered("open", late))
        self.check()

    def ready_to_start(self) -> Procedure[None]:
        """Open; what was open before and is away can be started as it is, and delivers when it is back."""
        self.check()
        if not self.offline or self.remote is None:
            yield from self.open()

    def create_session(self, mode: AcknowledgeMode) -> Procedure[ClientSession]:
        """A session that has begun and, where it is transacted, has its first transaction.

        Raises `UnsupportedFeatureError` for a transacted one where the broker has no coordinator.
        """
        yield from self.open()
        if mode is AcknowledgeMode.TRANSACTED:
            self.profile.require(TRANSACTIONS)
        try:
            session = ClientSession(self, mode, self.engine.begin())
        except EngineStateError as error:
            kind = ResourceAllocationError if isinstance(error, PeerLimitError) else JMSError
            raise kind(f"no session can begin: {error}", scope="connection") from error
        self.sessions.add(session)
        try:
            attached = None if session.controller is None else session.controller.attach()
            yield session.begun, self.request_deadline()
            if session.controller is not None and attached is not None:
                yield attached, self.request_deadline()
                yield from session.controller.ready()
            yield from self.until_online()
        except BaseException as error:
            self.sessions.discard(session)
            session.closed = True
            session.engine_session.end()
            if session.controller is not None and isinstance(error, JMSError) and error.scope == "session":
                # Some brokers answer the control link with the end of the session.
                raise no_coordinator(f": {error}", error.condition) from None
            raise
        return session

    def start(self) -> None:
        """Let deliveries through; the first start also grants the first credit, so that nothing is taken before it."""
        self.check()
        self.started = self.was_started = True
        for session in self.sessions:
            for consumer in session.consumers:
                consumer.replenish()
                waiter, consumer.waiter = consumer.waiter, None
                settle(waiter)
            session.prompt()

    def stop(self) -> None:
        """Hold deliveries back; credit already granted stays (M79)."""
        self.check()
        self.started = False

    def close(self) -> Procedure[None]:
        """Close the connection; a lost one silently."""
        return silenced(self._close(), lambda: self.failure is not None)

    def _close(self) -> Procedure[None]:
        """Close every session, then the connection; what goes wrong on the way is no reason to stay."""
        if self.closed:
            return
        first: JMSError | None = None
        for session in list(self.sessions):
            try:
                yield from session.close()
            except JMSError as error:
                first = first or error
        self.closed = True
        settle(self.leaving)
        if self.offline:
            fail(self.online, IllegalStateError("the connection is closed"))
            self.engine.close()
        elif self.failure is None:
            self.engine.close()
            if self.opening or self.engine.local_closed:  # an open that cannot be written has no answer
                yield self.shut, self.close_deadline()
            self.own_session.let_go()
        elif first is not None and first is not self.failure:
            raise first

    def set_client_id(self, client_id: str) -> None:
        """JMS 3.1, 6.1.2: once, before anything else is done with the connection, unless the factory named it."""
        self.check()
        if self.opening:
            raise IllegalStateError("client_id can be set only before the connection is used")
        if self.client_id is not None:
            whose = "the factory of this connection gave it" if self.client_id_preset else "this connection has"
            raise IllegalStateError(f"client_id cannot be changed: {whose} the client id {self.client_id!r}")
        self.client_id = self.engine.container_id = check_client_id(client_id)

    @property
    def client_id_given(self) -> bool:
        return self.client_id is not None

    # -- small things ----------------------------------------------------------------------------------------------

    def offers(self, capability: str) -> bool:
        remote = self.remote
        return remote is not None and capability in remote.offered_capabilities

    def unique_name(self, kind: str) -> str:
        self._named += 1
        return f"jmsish:{self._named}:{kind}"

    def identity_of(self, delivery: Delivery) -> bytes:
        """The bare message, which no redelivery alters (Part 3, 3.2)."""
        return delivery.payload[split_header(delivery.payload)[1] :]


_RARE: dict[int, Callable[..., None]] = {
    events.OPENED: ClientConnection._on_opened,
    events.CLOSED: ClientConnection._on_closed,
    events.BEGUN: ClientConnection._on_begun,
    events.ENDED: ClientConnection._on_ended,
    events.ATTACHED: ClientConnection._on_attached,
    events.DETACHED: ClientConnection._on_detached,
    events.FLOWED: ClientConnection._on_flowed,
    events.ABORTED: ClientConnection._on_aborted,
    events.OVERSIZE: ClientConnection._on_oversize,
    events.PARTIAL: ClientConnection._on_partial,
    events.ARRIVED: ClientConnection._on_arrived,
    events.SENT: ClientConnection._on_sent,
    events.FAILED: ClientConnection._on_failed,
}
