"""Between what SASL found out about a peer and its being told: who decides, when it is said, what is noted of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from jmsish.broker.slowing import crowd_of
from jmsish.engine.mechanisms import REFUSED, TRY_LATER, Question, Verdict

if TYPE_CHECKING:
    from jmsish.engine.engine import Engine

_log = logging.getLogger("jmsish.broker")

CROWDED: Final = Verdict(None, code=TRY_LATER, reason="too many attempts from its host are waiting already")


class Guest(Protocol):
    """What is asked of the connection."""

    engine: Engine
    is_trusted: bool
    peer: str

    @property
    def broker(self) -> Any:
        """The broker, or the router: its clock, what it asks, and whom it slows down."""

    @property
    def closed(self) -> bool:
        """Nothing more is read or written."""

    def work(self) -> None:
        """Do what the engine has seen since."""


class Login:
    """The login of one connection, which does not keep this: whoever has something to say makes one."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Guest) -> None:
        self._connection = connection

    @property
    def crowd(self) -> str:
        """Whose attempts these are: those of a host; of nobody, inside the process."""
        connection = self._connection
        return "" if connection.is_trusted else crowd_of(connection.peer)

    def asked(self, question: Question) -> None:
        """The exchange waits for this: the driver asks it, with nothing held."""
        if self._is_crowded():
            self.judged(CROWDED)
        else:
            self._connection.broker.questions.append((self._connection, question))

    def answered(self, answer: bytes | Verdict) -> None:
        """What the question came to."""
        if isinstance(answer, Verdict):
            self.judged(answer)
        else:
            self._tell(answer)

    def judged(self, verdict: Verdict) -> None:
        """Say it, or have it said after a while where the host of the peer has failed before."""
        connection = self._connection
        if connection.closed:
            return
        broker = connection.broker
        due = now = broker.now()
        if self._is_crowded():
            verdict = CROWDED
        elif not connection.is_trusted and verdict.code == REFUSED:
            due = broker.slowing.judged(self.crowd, verdict.identity is not None, now)
        if verdict.identity is None:
            # The name that was tried is not told: people type passwords there.
            more = broker.told.more("login", now)
            if more is not None:
                _log.warning("a login from %s is refused: %s%s", connection.peer, verdict.reason, more)
        if due > now:
            broker.remind(due, _Held(self, verdict))
        else:
            self._tell(verdict)

    def _is_crowded(self) -> bool:
        connection = self._connection
        broker = connection.broker
        return not connection.is_trusted and broker.slowing.is_crowded(self.crowd, broker.now())

    def _tell(self, answer: bytes | Verdict) -> None:
        self._connection.engine.decide(answer)
        self._connection.work()


class _Held:
    """An answer that is held back."""

    __slots__ = ("_login", "_verdict")

    def __init__(self, login: Login, verdict: Verdict) -> None:
        self._login = login
        self._verdict = verdict

    def on_time(self, now: float) -> None:
        self._login._tell(self._verdict)
