"""A message producer: a sending link, and what became of each message.

A delivery's `context` says who wants to know its outcome: a future (a send that waits), a completion (an asynchronous
send), or nobody; a refusal nobody waited for goes to the exception listener.  Inside a transaction messages are posted
settled: a resource that cannot take one must then refuse the commit (Part 4, 4.4.4.1), so a commit that succeeds has
taken them all, for one round trip.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsish.client.answers import Answer
from jmsish.client.cbs import address_of, authorised
from jmsish.client.links import attach_producer, attaching
from jmsish.client.procedures import Procedure, fail, settle, silenced
from jmsish.client.reattaching import Reattaching, elsewhere
from jmsish.client.waiting import waits_to_send
from jmsish.engine.conditions import MESSAGE_SIZE_EXCEEDED
from jmsish.engine.outcomes import Accepted, AmqpError, Modified, Rejected, Released
from jmsish.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    OperationTimeoutError,
    SendRejectedError,
    UnsupportedFeatureError,
    error_for,
)
from jmsish.events import LinkReattached
from jmsish.profiles.profile import DELAY

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import EllipsisType

    from jmsish.client.session import ClientSession
    from jmsish.destination import Destination
    from jmsish.engine.link import Link
    from jmsish.message import Message


class Completion:
    """Whom to tell, outside all locks, how an asynchronous send ended."""

    __slots__ = ("answer", "callback", "message", "session")

    def __init__(
        self, callback: Callable[[Message, JMSError | None], Any], message: Message, session: ClientSession
    ) -> None:
        self.callback = callback
        self.message = message
        self.session = session
        self.answer: JMSError | EllipsisType | None = ...
        """What the broker said, where it said it out of turn: None, or an error; ... as long as it has not."""

    def tell(self, error: JMSError | None) -> Any:
        return self.callback(self.message, error)


LINKS_KEPT = 16
"""So many links an anonymous producer keeps for its last destinations, at a broker without ANONYMOUS-RELAY (M49)."""


class ClientProducer(Reattaching):
    """One producer of a session; without a destination it is anonymous."""

    def __init__(self, session: ClientSession, destination: Destination | None) -> None:
        self.session = session
        self.destination = destination and session.connection.temporary.current(destination)
        self.link: Link | None = None
        self.attached: Future[None] = Answer()
        self.detached: Future[None] = Answer()
        self.credited: Future[None] | None = None
        self.relayed = True
        """Its own link takes what it sends; false of an anonymous one at a broker without ANONYMOUS-RELAY."""
        self.by_destination: dict[Destination, ClientProducer] = {}
        """Then: a link for each destination, the one last used at the end (M49)."""
        self.pending: deque[Completion] | None = None
        """Asynchronous sends in the order of their calls, which is that of their callbacks (jms rule 98)."""
        self.restoring = False
        """Its link is being made again, and was there before."""
        self.kept: deque[tuple[bytes, Future[Any] | Completion | None]] = deque()
        """What goes first once the link is there again: sends that a loss left unwritten, or unheard."""
        self.coming: Link | None = None
        """The link as long as it is only there for these."""
        self.numbered = 0
        """How many messages got their id by it: ids end with this number."""
        self.closed = False
        self.failure: JMSError | None = None

    # -- sending ---------------------------------------------------------------------------------------------------

    def post(self, payload: bytes, context: Future[Any] | Completion | None) -> bool:
        """Send now if nothing stands in the way; False when `send` has to wait for credit or a transaction first."""
        link = self.link
        session = self.session
        if link is None or self.closed:
            return False
        # First of all: what the broker will not take needs no credit and no transaction to be refused.
        limit = link.remote_max_message_size
        if limit and len(payload) > limit:
            raise too_large(len(payload), limit)
        if link.credit <= 0 or not link.remote_attached or session.failure is not None:
            return False
        trace = session.connection.trace
        if trace is not None:
            trace.message("sent", payload, self.destination)
        controller = session.controller
        if controller is None:
            link.send(payload, context=context)
            if type(context) is Completion:
                self.expect(context)
            return True
        if controller.posting is None:
            return False
        controller.sent += 1
        controller.last_sent = payload
        link.send(payload, state=controller.posting, settled=True)
        self.told(context)
        return True

    @property
    def max_message_size(self) -> int:
        """How many octets the broker takes in one message; 0 where it names no limit, or there is no link yet."""
        return 0 if self.link is None else self.link.remote_max_message_size

    def check_size(self, size: int) -> None:
        """Raises `SendRejectedError` for a message of so many octets, if that is more than the broker takes."""
        limit = self.max_message_size
        if limit and size > limit:
            raise too_large(size, limit)

    def expect(self, completion: Completion) -> None:
        """An outcome is to come by a callback."""
        if self.pending is None:
            self.pending = deque()
        self.pending.append(completion)

    def told(self, context: Future[Any] | Completion | None) -> None:
        """A posted message has no outcome of its own; its completion only says that it was sent."""
        if isinstance(context, Completion):
            self.session.connection.completed(context, None)
        elif context is not None:
            settle(context, None)

    def send(self, payload: bytes, context: Future[Any] | Completion | None) -> Procedure[None]:
        """Send, waiting for what it needs: a transaction, then credit (at most `send_timeout` seconds).

        Raises `OperationTimeoutError` when no credit came, `SendRejectedError` when the message is over the limit.
        """
        session = self.session
        deadline = session.connection.send_deadline()
        while True:
            self.check()
            controller = session.controller
            if controller is not None:
                controller.sending()
                if controller.broken is not None:
                    self.told(context)  # M99: what belongs to a lost transaction goes nowhere; its commit will raise
                    return
                if controller.posting is None:
                    yield from controller.ready(deadline)
                    continue
            if self.post(payload, context):
                return
            self.credited = Answer()
            try:
                yield self.credited, deadline
            except OperationTimeoutError as late:
                raise self._no_credit() from late

    def _no_credit(self) -> OperationTimeoutError:
        lacked = "connection" if self.link is None else "credit"
        whom = self.destination or "the anonymous producer"
        text = f"there was no {lacked} for {whom} within send_timeout; nothing was sent"
        return OperationTimeoutError(text, scope="link")

    def target_for(self, destination: Destination) -> Procedure[ClientProducer]:
        """The producer whose link takes a message for `destination` (itself, unless a relay is missing)."""
        if self.relayed:
            return self
        known = self.by_destination.pop(destination, None)
        if known is None or known.failure is not None:
            known = ClientProducer(self.session, destination)
            yield from known.attach()
        self.by_destination[destination] = known
        while len(self.by_destination) > LINKS_KEPT:
            oldest = next(iter(self.by_destination))
            yield from self.by_destination.pop(oldest).close()
        return known

    def check_delay(self, destination: Destination) -> None:
        """A delayed send is refused here when the broker would not hold it (M47)."""
        profile = self.session.connection.profile
        profile.require(DELAY)
        if profile.delay_annotation is not None:
            return
        link = self.link if self.relayed else self.by_destination[destination].link
        offered = link.remote_offered_capabilities if link is not None else ()
        target = getattr(link.remote_target, "capabilities", ()) if link is not None else ()
        if not (self.session.connection.offers("DELAYED_DELIVERY") or "DELAYED_DELIVERY" in (*offered, *target)):
            raise UnsupportedFeatureError("the broker does not offer delayed delivery: it would deliver at once")

    def check(self) -> None:
        if self.closed:
            raise IllegalStateError("the producer is closed") from self.failure
        if self.failure is not None:
            raise self.failure
        session = self.session
        if session.closed or session.failure is not None:
            session.check()

    # -- life ------------------------------------------------------------------------------------------------------

    def attach(self) -> Procedure[None]:
        """Attach the link; without a relay an anonymous producer needs none of its own."""
        self.session.check()
        yield from self.session.connection.until_online(party=self.session)
        yield from authorised(self.session.connection, address_of(self))
        self.session.check()
        if self.destination is not None:
            self.destination = self.session.connection.temporary.current(self.destination)
        self.session.producers.append(self)
        if self.destination is None and not self.session.connection.offers("ANONYMOUS-RELAY"):
            self.relayed = False
            return
        try:
            with attaching("no producer"):
                attach_producer(self, self.destination)
            yield self.attached, self.session.connection.request_deadline()
            # A send from now on is none of the time before.
            yield from self.session.connection.until_online(party=self.session)
        except BaseException:
            self.closed = True
            self.session.producers.remove(self)
            if self.link is not None and self.link.attached:
                self.link.detach(closed=True)
            raise

    def on_attached(self) -> None:
        link = self.link or self.coming
        assert link is not None
        if link.remote_target is not None:
            settle(self.attached)  # else the detach with the reason follows (M48)

    def on_credit(self) -> None:
        if self.coming is not None:
            self._send_kept(self.coming)
        if self.credited is not None and self.link is not None and self.link.credit > 0:
            credited, self.credited = self.credited, None
            settle(credited)

    def _send_kept(self, link: Link) -> None:
        """What a loss left goes first; then the link is there for all."""
        limit = link.remote_max_message_size
        while self.kept and link.credit > 0:
            payload, context = self.kept.popleft()
            if isinstance(context, Future) and context.done():
                continue  # whoever waited has given up
            if limit and len(payload) > limit:
                self._lose_kept(context, too_large(len(payload), limit))
            else:
                link.send(payload, context=context)
        if not self.kept:
            self.link, self.coming = link, None

    def give_up(self, context: Future[Any]) -> None:
        """Nobody waits for the outcome of this send any more: where it was not sent again yet, it is not."""
        self.kept = deque(each for each in self.kept if each[1] is not context)

    def on_detached(self, error: AmqpError | None) -> None:
        self.link = self.link or self.coming
        if self.link is not None and self.link.attached:
            if self.session.controller is not None and self.link.delivery_count:
                self.session.controller.spoil(f"the broker detached the producer of {self.destination or 'anything'}")
            self.link.detach(closed=True)
        if not self.closed and self.failure is None and self.comes_again(error):
            self._attach_again()
            return
        if not self.closed:
            failure = self._why_detached(error)
            told = waits_to_send(self)
            self._abandon(failure)
            self.fail(failure)
            if not told:
                self.session.connection.report(failure)
        self.link = self.coming = None
        settle(self.detached)

    def _attach_again(self) -> None:
        """The broker detached the link and will have it again; nobody will tell what became of a send in flight."""
        self._abandon(ConnectionLostError("the broker detached the link of the producer", scope="link"))
        self.link = self.coming = None
        credited, self.credited = self.credited, None
        settle(credited)
        if self.attached.done():
            self.attached = Answer()
            self.session.connection.tell(LinkReattached(self.destination))
        attach_producer(self, self.destination)

    def _why_detached(self, error: AmqpError | None) -> JMSError:
        what = f"producer of {self.destination or 'any destination'}: "
        if error is not None:
            text = what + (error.description or error.condition) + elsewhere(error)
            return error_for(error.condition, text, scope="link", info=error.info)
        if not self.attached.done():
            return InvalidDestinationError(what + "the broker has no such node", scope="link")  # M48
        return JMSError(what + "the broker detached the link", scope="link")

    def _abandon(self, error: JMSError) -> None:
        """Nobody will tell the outcome of what is still unsettled on this link."""
        connection = self.session.connection
        if self.link is not None:
            connection.lose_unsent(self.link.unsent, error)
        outgoing = self.session.engine_session.outgoing
        for delivery in [d for d in outgoing.values() if d.link is self.link]:
            connection.resolve(delivery, unknown_outcome(error))

    def fail(self, error: JMSError) -> None:
        self.failure = error
        self.lose_kept(error)
        for future in (self.attached, self.credited, self.detached):
            fail(future, error)

    def lose_kept(self, error: JMSError) -> None:
        """What was kept for the next link will not be sent."""
        kept, self.kept = self.kept, deque()
        for _, context in kept:
            self._lose_kept(context, unknown_outcome(error))

    def _lose_kept(self, context: Future[Any] | Completion | None, error: JMSError) -> None:
        if isinstance(context, Future):
            fail(context, error)
        elif context is not None:
            self.session.connection.complete(self.pending, context, error)

    def close(self) -> Procedure[None]:
        """Close the producer; on a lost connection silently."""
        return silenced(self._close(), lambda: self.session.failure is not None)

    def _close(self) -> Procedure[None]:
        """Detach, once every outcome somebody waits for has come."""
        if self.closed:
            return
        if self.session.closed:  # its link goes with the session, which waits for what was sent
            self.closed = True
            yield from self.session.until_ended()
            return
        if self.kept and self.failure is None:
            try:
                yield from self.session.connection.until_online(self.session.connection.close_deadline())
            except OperationTimeoutError:
                pass
        self.closed = True
        self.lose_kept(ConnectionLostError("the producer was closed before its link was there again", scope="link"))
        for child in self.by_destination.values():
            yield from child.close()
        if self in self.session.producers:
            self.session.producers.remove(self)
        link = self.link
        if link is not None and link.attached and self.failure is None:
            fail(self.credited, IllegalStateError("the producer was closed while the send waited for credit"))
            try:
                yield from self.session.connection.outcomes_of(link)
            finally:
                if link.attached and self.session.failure is None:
                    link.detach(closed=True)
            if self.link is not None:
                yield from self.session.leave(self, self.detached)


def too_large(size: int, limit: int) -> SendRejectedError:
    """What a message meets that the broker would not take: its octets, and those of the largest that it would."""
    return SendRejectedError(
        f"the message has {size} octets, the broker takes {limit} at most",
        scope="link",
        condition=MESSAGE_SIZE_EXCEEDED,
        info={"message-size": size, "max-message-size": limit},
    )


def unknown_outcome(cause: JMSError) -> JMSError:
    """The cause, as it concerns a message whose outcome was not heard (D11)."""
    error = type(cause)(str(cause), scope=cause.scope, condition=cause.condition, description=cause.description)
    error.outcome_unknown = True  # type: ignore[attr-defined]
    error.__cause__ = cause
    return error


def rejection(outcome: Any) -> JMSError | None:
    """What an outcome means for the sender (M50): None when the message was accepted."""
    if isinstance(outcome, Accepted):
        return None
    if isinstance(outcome, Rejected):
        error = outcome.error
        condition = error.condition if error else None
        text = (error.description or condition) if error else "no reason given"
        info = dict(error.info) if error and error.info else None
        if condition == "amqp:not-found":
            return error_for(condition, f"the broker has no such destination: {text}", scope="delivery", info=info)
        return SendRejectedError(
            f"the broker rejected the message: {text}",
            scope="delivery",
            condition=condition,
            description=error.description if error else None,
            info=info,
        )
    if isinstance(outcome, Released):
        return SendRejectedError("the broker released the message and did not take it; it may do so later",
                                 scope="delivery")  # fmt: skip
    if isinstance(outcome, Modified):
        failed = ", which counts as a failure" if outcome.delivery_failed else ""
        here = ", and it will not be taken here" if outcome.undeliverable_here else ""
        return SendRejectedError(f"the broker modified the message and did not take it{failed}{here}", scope="delivery")
    return SendRejectedError(f"the broker settled the message without an outcome ({outcome!r})", scope="delivery")
