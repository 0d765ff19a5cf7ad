"""The AMQP session for what belongs to a connection as a whole: temporary destinations, and unsubscribing (M41)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsish.client.answers import Answer
from jmsish.client.procedures import Procedure, fail, settle
from jmsish.engine.outcomes import AmqpError
from jmsish.errors import IllegalStateError, InvalidDestinationError, JMSError, error_for

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession


class OwnLink:
    """A link that carries no messages: that it is attached, or closed, is what it is for."""

    def __init__(
        self, session: OwnSession, link: Link, what: str, on_made: Callable[[OwnLink], object] | None = None
    ) -> None:
        self._session = session
        self.link = link
        self.what = what
        """What the link stands for, for error texts."""
        self.on_made = on_made
        """Told in the very step in which the link is attached."""
        self.attached: Future[None] = Answer()
        self.detached: Future[None] = Answer()
        link.context = self
        session.links.add(self)

    def on_attached(self) -> None:
        node = self.link.remote_target if self.link.is_sender else self.link.remote_source
        if node is not None:
            if self.on_made is not None:
                self.on_made(self)
            settle(self.attached)  # else the detach with the reason follows (M48, M66)

    def on_credit(self) -> None:
        """Nothing is sent on this link."""

    def on_detached(self, error: AmqpError | None) -> None:
        """The broker's detach, by itself or in answer to ours; that one may say why it does not do what was asked."""
        if self.link.attached:
            self.link.detach(closed=True)
        self._session.links.discard(self)
        condition = error.condition if error else None
        text = (error.description or condition) if error else "the broker detached the link"
        kind = InvalidDestinationError if error is None else JMSError
        cause = error_for(condition, f"{self.what}: {text}", scope="link", default=kind)
        fail(self.attached, cause)
        if error is None:
            settle(self.detached)
        else:
            fail(self.detached, cause)

    def until_attached(self) -> Procedure[None]:
        """Wait for the node.  Raises what the broker refuses it with.

        A link nobody waits for any more goes; what a sender was to make goes with it, what a receiver asked for stays.
        """
        try:
            yield self.attached, self._session.connection.request_deadline()
        except BaseException:
            if self.link.attached:
                self.link.detach(closed=self.link.is_sender)
            raise

    def close(self) -> Procedure[None]:
        """Close the link, and with it the node.  Raises what the broker answers the close with."""
        self.link.detach(closed=True)
        yield self.detached, self._session.connection.close_deadline()

    def fail(self, error: JMSError) -> None:
        fail(self.attached, error)
        fail(self.detached, error)

    def interrupted(self, broken: JMSError) -> None:
        """It went with a connection that is made again: what it stands for has to be asked for anew."""
        fail(self.attached, broken)
        fail(self.detached, broken)


class OwnSession:
    """Begins when it is first needed, and again when the broker has ended it."""

    def __init__(self, connection: ClientConnection, on_lost: Callable[[], None]) -> None:
        self.connection = connection
        self.begun: Future[None] = Answer()
        self.links: set[OwnLink] = set()
        self._on_lost = on_lost
        self._session: EngineSession | None = None

    def begin(self) -> EngineSession:
        """The AMQP session; what is said in it may leave together with its begin."""
        if self._session is None:
            self._session = self.connection.engine.begin()
            self._session.context = self
        return self._session

    def lose_transaction(self, error: JMSError) -> None:
        """There is none in this session."""

    def why_ended(self, error: AmqpError | None) -> JMSError:
        condition = error.condition if error else None
        text = (error.description or condition) if error else "no reason given"
        said = f"the broker ended the session of temporary destinations and subscriptions: {text}"
        return error_for(condition, said, scope="session")

    def on_ended(self, error: AmqpError | None) -> None:
        self._session = None
        self.fail(self.why_ended(error))

    def interrupted(self, broken: JMSError) -> None:
        """The connection is lost, and is made again; temporary destinations are known on, to be made again too."""
        self._session = None
        links, self.links = self.links, set()
        for link in links:
            link.interrupted(broken)

    def let_go(self) -> None:
        """The connection was closed, and all of this with it: who waits to delete something has what was wanted."""
        links, self.links = self.links, set()
        for link in links:
            settle(link.detached)
            link.fail(IllegalStateError("the connection is closed"))

    def fail(self, error: JMSError) -> None:
        links, self.links = self.links, set()
        for link in links:
            link.fail(error)
        self._on_lost()
