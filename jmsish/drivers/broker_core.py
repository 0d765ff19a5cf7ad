"""What a driver knows of the broker it drives: bytes in, bytes out, deadlines, and questions to ask outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any, Protocol, runtime_checkable

from jmsish.engine.sasl import Question, Verdict

__all__ = ["BrokerCore", "Login", "ServerConnection", "SteppedClock", "stepped"]


class ServerConnection(Protocol):
    """One connection inside the broker: bytes in, bytes out, deadline out."""

    @property
    def closed(self) -> bool:
        """Nothing more will be read or written."""

    @property
    def is_open(self) -> bool:
        """Its peer has said who it is, and opened."""

    @property
    def is_busy(self) -> bool:
        """What it brings is only kept, behind something that is worked off in portions: it should not bring more."""

    @property
    def unsent(self) -> int:
        """Octets of output that were not taken."""

    def receive(self, data: bytes) -> None: ...

    def receive_eof(self) -> None: ...

    def take_output(self) -> bytes: ...

    def tick(self, now: float) -> float | None: ...

    @property
    def login(self) -> Login: ...


class Login(Protocol):
    """Whom a question was asked for."""

    @property
    def crowd(self) -> str:
        """Those who wait for their turn together: a host."""

    def answered(self, answer: bytes | Verdict) -> None: ...


class BrokerCore(Protocol):
    """What the driver needs of a broker."""

    questions: list[tuple[Any, Question]]
    """Connections, and what is to be asked for them with no lock held."""

    dials: list[Any]
    """What is to be dialled, for the dialler that was given to the driver."""

    high_water: int
    """Octets that nobody has read of a connection, above which it is given no more."""

    def accept(
        self,
        *,
        trusted: bool,
        identity: str | None = None,
        peer: str = "",
        certificate: Mapping[str, Any] | None = None,
        exposed: bool = False,
        role: str | None = None,
    ) -> ServerConnection: ...

    def step(self) -> Sequence[ServerConnection]: ...

    @property
    def unfinished(self) -> bool:
        """A step left something for the next, so that others have their turn between."""

    def tick(self, now: float) -> float | None: ...

    def interrupted(self) -> None:
        """The program was interrupted in the middle of any of these, or of what was called as the owner."""

    def close(self) -> None: ...


@runtime_checkable
class SteppedClock(Protocol):
    """A clock that stands still until it is moved, and says so to those who asked (``jmsish.testing.VirtualClock``)."""

    def __call__(self) -> float: ...

    def subscribe(self, listener: Any) -> None: ...

    def unsubscribe(self, listener: Any) -> None: ...


def stepped(clock: Callable[[], float]) -> SteppedClock | None:
    """The clock, where it is one that is moved.

    A plain function, such as ``time.time``, is not asked whether it has the methods: that is a fifth of what the start
    of a broker costs.
    """
    if isinstance(clock, (BuiltinFunctionType, FunctionType)):
        return None
    return clock if isinstance(clock, SteppedClock) else None
