"""A connection of the application outlives its engines: what it is while one is lost and the next is made."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from jmsish.client.answers import Answer
from jmsish.client.interruption import interrupt
from jmsish.client.outcomes import Outcomes
from jmsish.client.procedures import Interrupted, Procedure, settle
from jmsish.client.restoring import Dial, reconnect
from jmsish.engine.engine import Engine
from jmsish.errors import JMSError

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection
    from jmsish.client.reconnection import Reconnection
    from jmsish.client.waiting import Waiting
    from jmsish.engine.performatives import Open
    from jmsish.options import ConnectionOptions, ConnectionTarget


class Continuity(Outcomes):
    """The part of a connection that sees to it."""

    engine: Engine
    options: ConnectionOptions
    peer: str
    now: float
    closed: bool
    opening: bool
    authenticated: Future[None]
    opened: Future[None]
    online: Future[None]
    leaving: Future[None]
    reconnection: Reconnection | None = None
    """Where to connect again after a loss; None where a loss is the end."""
    client_id: str | None
    offline = False
    """Lost, and being made again."""
    dialling: Dial | None = None
    """What the driver is to connect to now."""
    remote: Open | None = None
    """What the broker said when it opened; of the last one, while there is none."""
    broken: Interrupted | None = None
    """What ended the attempt to connect that is under way."""
    waiting_online = 0
    """How many calls wait for the connection to stand again."""

    def fail(self, error: JMSError) -> None:
        """Keep the first cause and fail everything that waits with it."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise what forbids the use of this connection."""
        raise NotImplementedError

    def request_deadline(self) -> float | None:
        """Until when the broker may take over anything but a send."""
        raise NotImplementedError

    def lose(self, error: JMSError) -> None:
        """The connection is gone, and nobody here wanted that: it is made again where it may be, else it has failed."""
        self._name_stage(error)
        if self.reconnection is None or self.closed or self.failure is not None:
            self.fail(error)
        else:
            interrupt(self._whole, error)

    def _name_stage(self, error: JMSError) -> None:
        """What ends a connection before it is open says how far it had come."""
        if not self.opened.done() and "stage: " not in str(error):
            stage = "open" if self.authenticated.done() else "SASL"
            error.args = (f"{error} (stage: {stage})", *error.args[1:])

    def go_offline(self, cause: JMSError | None) -> None:
        """From now on the driver runs `reconnect`; without a cause it is for a first connection."""
        assert self.reconnection is not None
        self.offline = True
        self.online, self.leaving = Answer(), Answer()
        self.reconnection.lost(self.now, cause)

    def dial_first(self, opening: bool) -> None:
        """The first connection is made as a lost one is: by the plan.  With `opening` it counts once it is open."""
        self.opening = opening
        self.engine.close()
        self.engine.take_output()
        self.go_offline(None)

    def join(self, place: ConnectionTarget, make_engine: Callable[[str], Engine]) -> None:
        """The driver has reached `place`: a new engine speaks from now on.

        Of the same container where the application named it; else of another one, for the broker may not have missed
        the last one yet, and would not take two of one name.
        """
        self.engine = make_engine(self.client_id or "")
        self.peer = place.peer
        self.options = place.options
        self.authenticated, self.opened = Answer(), Answer()
        self.broken = None

    def reconnect(self) -> Procedure[None]:
        """What the driver runs while the connection is offline."""
        return reconnect(self._whole)

    def until_online(self, deadline: float | None = None, party: Waiting | None = None) -> Procedure[None]:
        """Wait for a connection that is offline, at most `request_timeout` seconds or to the deadline given.

        For whose sake: a session or consumer that closes meanwhile waits no longer, and `IllegalStateError` is raised.
        """
        while self.offline:
            back = self.online if party is None else party.until_back()
            self.waiting_online += 1
            try:
                yield back, self.request_deadline() if deadline is None else deadline
            finally:
                self.waiting_online -= 1
            self.check()

    def come_back(self) -> None:
        """The connection stands: whoever waited for that goes on."""
        self.offline = False
        settle(self.online)
        for session in self._whole.sessions:
            for party in (session, *session.consumers):
                party.look_again()

    @property
    def _whole(self) -> ClientConnection:
        return self  # type: ignore[return-value]  # it is the one heir
