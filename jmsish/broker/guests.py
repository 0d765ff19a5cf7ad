"""What every connection has that somebody else has opened to us, to a broker or to a router.

Theory of operation.  Octets go into the engine, and its events are worked off in the order of the frames, by ``acts``;
an answer that the peer cannot take ends what it was for, which is reported while the others are worked off. A close
from here drops the rest of the events that are at hand, and waits a moment for the peer's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final

from jmsish.broker.grants import PERMISSIVE, Grant
from jmsish.broker.link_policy import SESSION_DISALLOWED, note_session_denied
from jmsish.broker.login import Login
from jmsish.broker.oversize import Oversize
from jmsish.broker.remote_hosts import host_of
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import AmqpError
from jmsish.engine.parting import Parting
from jmsish.engine.session import EngineSession
from jmsish.engine.windows import narrow_window

if TYPE_CHECKING:
    from jmsish.engine.delivery import Delivery

FAREWELL: Final = 1.0
"""Seconds in which the answer to our close is awaited. What comes meanwhile is read and dropped, for a socket that is
closed with unread input may take back what was written last (W10)."""
GRACE: Final = 1.0
"""Seconds in which dispositions still win over the default outcome after a link was closed (W16)."""


class Guest:
    """A connection inside: bytes in, bytes out, deadline out."""

    acts: ClassVar[Mapping[int, Callable[..., None]]]
    """What is done with each event of the engine."""
    broker: Any
    """Where it is."""
    is_busy = False
    """What comes now is only kept, behind what is worked off in portions: it should wait."""

    def __init__(self, engine: Engine, number: int, identity: str | None, peer: str) -> None:
        self.engine = engine
        self.number = number
        self.identity = identity
        self.peer = peer
        self.is_trusted = False
        """It is inside the process, where nobody guesses a password."""
        self.container_id = ""
        self.grant: Grant = PERMISSIVE
        """What it may do: decided at its open, and fixed for its life."""
        self.admitted = False
        """Policy has let it in, and counts it."""
        self.links_denied = self.sessions_denied = 0
        """Links and sessions that were refused it."""
        self.ended = False
        self._graces: list[tuple[float | None, Any]] = []
        """Links that their receivers have closed, until when what they hold may still be disposed of."""
        self._oversize = Oversize()
        self._parting = Parting()
        self._at_hand: list[tuple[Any, ...]] = []
        """Events that are worked off; a close from here drops the rest of them."""
        self._farewell: float | None = None
        """When the answer to our close is awaited no longer."""

    @property
    def login(self) -> Login:
        """Its login, for whoever has something to say about that."""
        return Login(self)

    @property
    def host(self) -> str:
        """From where it comes."""
        return host_of(self.peer)

    @property
    def closed(self) -> bool:
        """Nothing more will be read or written."""
        return self.engine.closed

    @property
    def is_open(self) -> bool:
        """Its peer has said who it is, and opened."""
        return self.engine.remote is not None

    @property
    def unsent(self) -> int:
        """Octets of output that were not taken."""
        return self.engine.out_size

    def touched(self) -> None:
        """There may be output."""
        self.broker.touch(self)

    # --- bytes and time

    def receive(self, data: bytes) -> None:
        """Bytes from the peer. What they bring about is dispatched by the next step."""
        self.engine.receive(data)
        self.work()

    def receive_eof(self) -> None:
        """The peer is gone; without a close before, all it held is given back as at a loss (D5)."""
        self.engine.receive_eof()
        self.work()
        self.end()

    def work(self) -> None:
        """Do what the engine has seen since."""
        self.broker.touch(self)
        events = self._at_hand = self.engine.take_events()
        acts = self.acts
        while events:
            for event in events:
                if len(event) == 3:  # nearly all: a message that has come
                    kind, one, other = event
                    acts[kind](self, one, other)
                else:
                    acts[event[0]](self, *event[1:])
            events.clear()
            # An answer that the peer cannot take ends what it was for.
            events = self._at_hand = self.engine.take_events()
        self.worked_off()
        if self._parting or self.ended:
            self._let_go()

    def _let_go(self) -> None:
        """What is over is not to wait for the collector of garbage."""
        if self.ended:
            self._parting.all_over(self.engine)
        else:
            self._parting.batch_done(self.still_sending())

    def still_sending(self) -> Iterable[Delivery]:
        """Deliveries that are in no ledger, and of which frames may have to leave."""
        return ()

    def worked_off(self) -> None:
        """The events are done: what follows from all of them together."""

    def tick(self, now: float) -> float | None:
        """Let time pass (monotonic seconds); when to come back."""
        deadline = self.engine.tick(now)
        self.work()
        if self._graces:
            deadline = _earlier(deadline, self._pass_graces(now))
        if self._oversize:
            deadline = _earlier(deadline, self._oversize.pass_time(self, now))
        if self._farewell is not None:
            deadline = _earlier(deadline, self._await_close(now))
        return deadline

    def grant_grace(self, link: Any) -> None:
        """The receiver closed a link with deliveries unsettled: it may still dispose of them for a moment (W16)."""
        self._graces.append((None, link))

    def _pass_graces(self, now: float) -> float | None:
        graces = [(now + GRACE if due is None else due, link) for due, link in self._graces]
        self._graces = [(due, link) for due, link in graces if due > now]
        for due, link in graces:
            if due <= now:
                link.give_back()
        return min((due for due, _ in self._graces if due is not None), default=None)

    # --- the end

    def end(self, reason: str = "the connection was lost") -> None:
        """The connection is over, by a close or by a loss."""
        raise NotImplementedError

    def turn_away(self) -> None:
        """There are too many: the end, before anything was said."""
        self.ended = True
        self.engine.close()

    def close(self, error: AmqpError | None) -> None:
        """Say goodbye from here."""
        self.end(self.farewell(error))
        self.engine.close(error)
        self.drop_rest()
        self._farewell = inf
        self.broker.touch(self)

    def farewell(self, error: AmqpError | None) -> str:
        """Why it is over, where we have closed it."""
        return "the connection was closed by the broker" if error is None else str(error)

    def drop_rest(self) -> None:
        """What came in the same batch is not heard any more."""
        self._at_hand.clear()

    def _await_close(self, now: float) -> float | None:
        """The peer has a moment to answer our close; when it is over, if it has not."""
        assert self._farewell is not None
        if self._farewell == inf:
            self._farewell = now + FAREWELL
        if self._farewell > now and not self.engine.closed:
            return self._farewell
        self._farewell = None
        self.engine.stop_reading()
        self._let_go()
        self.broker.touch(self)
        return None

    # --- events that mean the same to all

    def let_begin(self, session: EngineSession, there: list[EngineSession]) -> None:
        """A session that the peer begins: one too many is ended, any other is one of those that are there."""
        grant = self.grant
        if grant.max_sessions and len(there) >= grant.max_sessions:
            session.accept_begin()
            session.fail(SESSION_DISALLOWED)
            note_session_denied(self, len(there))
            return
        if grant.max_session_window:
            narrow_window(session, grant.max_session_window // self.engine.max_frame_size)
        there.append(session)
        session.accept_begin()

    def _authenticated(self, identity: str | None, mechanism: str) -> None:
        self.identity = identity

    def _too_large_ended(self, link: Any, delivery: Any) -> None:
        self._oversize.ended(self, link, delivery)


def _earlier(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else min(one, other)
