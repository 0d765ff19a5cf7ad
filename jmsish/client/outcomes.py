"""What became of what a connection has sent: outcomes find those who want to know, in the order of the sends."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsish.client.answers import Answer
from jmsish.client.procedures import Procedure, fail, settle
from jmsish.client.producer import ClientProducer, Completion, rejection, unknown_outcome
from jmsish.errors import JMSError

if TYPE_CHECKING:
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession


class Outcomes:
    """The part of a connection that sees to them."""

    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]]
    failure: JMSError | None
    _settling: dict[Link, list[Future[None]]]

    def close_deadline(self) -> float | None:
        """Until when a close may wait."""
        raise NotImplementedError

    def report(self, error: JMSError) -> None:
        """Errors nobody waits for go to the exception listener."""
        raise NotImplementedError

    def resolve(self, delivery: Delivery, outcome: Any) -> None:
        """Tell whoever sent `delivery` how it ended; `outcome` may be the error that took the answer away."""
        context = delivery.context
        delivery.context = None
        if isinstance(context, Future):
            if isinstance(outcome, BaseException):
                fail(context, outcome)
            else:
                settle(context, outcome)
        else:
            error = outcome if isinstance(outcome, JMSError) else rejection(outcome)
            if context is not None:
                self.complete(delivery.link.context.pending, context, error)
            elif error is not None and self.failure is None:
                self.report(error)
        if self._settling:
            self._check_settled(delivery.link)

    def complete(self, pending: deque[Completion] | None, answered: Completion, error: JMSError | None) -> None:
        """Callbacks come in the order of the sends, also where the answers do not (jms rule 98)."""
        if not pending or pending[0] is not answered:
            answered.answer = error
            return
        self.calls.append((pending.popleft().tell, (error,)))
        while pending and pending[0].answer is not ...:
            self.calls.append((pending[0].tell, (pending[0].answer,)))
            pending.popleft()

    def completed(self, completion: Completion, error: JMSError | None) -> None:
        self.calls.append((completion.tell, (error,)))

    def outcomes_of(self, link: Link) -> Procedure[None]:
        """Wait until nothing sent on `link` is without its outcome, but for those that nobody waits for any more."""
        if _unanswered(link):
            waiting: Future[None] = Answer()
            self._settling.setdefault(link, []).append(waiting)
            try:
                yield waiting, self.close_deadline()
            finally:
                self._leave_settling(link, waiting)

    def _leave_settling(self, link: Link, waiting: Future[None]) -> None:
        """One close less waits for the outcomes on `link`: those of a producer and of its session may at once."""
        others = self._settling.get(link, [])
        if waiting in others:
            others.remove(waiting)
            if not others:
                del self._settling[link]

    def take_settling(self) -> list[Future[None]]:
        """Who waits in `outcomes_of`; they are the caller's to wake."""
        waiting = [each for those in self._settling.values() for each in those]
        self._settling.clear()
        return waiting

    def _check_settled(self, link: Link) -> None:
        if link in self._settling and not _unanswered(link):
            for waiting in self._settling.pop(link):
                settle(waiting)

    def give_up(self, outcome: Future[Any]) -> None:
        """Whoever waited for this outcome does not any more: it timed out, or was cancelled."""
        if isinstance(outcome, Answer):
            outcome.unheard = True
            for link in list(self._settling):
                self._check_settled(link)

    def _lose_outcomes(self, session: EngineSession, cause: JMSError) -> None:
        self.lose_unsent([item.delivery for item in session.backlog], cause)
        for link in list(session.links.values()):
            self.lose_unsent([*link.unsent, *(item.delivery for item in link.held)], cause)
        for delivery in list(session.outgoing.values()):
            if delivery.context is not None:
                self.resolve(delivery, unknown_outcome(cause))
        for link in [link for link in self._settling if link.session is session]:
            for waiting in self._settling.pop(link):
                fail(waiting, cause)

    def lose_unsent(self, deliveries: Iterable[Delivery], cause: JMSError) -> None:
        """What a link gave up before all of it was written: the broker has not got it, and never will."""
        for delivery in deliveries:
            if delivery.context is not None and isinstance(delivery.link.context, ClientProducer):
                self.resolve(delivery, cause)


def _unanswered(link: Link) -> bool:
    """Whether something sent on a link has no outcome, and somebody wants to know it."""
    return any(
        delivery.link is link and not getattr(delivery.context, "unheard", False)
        for delivery in link.session.outgoing.values()
    )
