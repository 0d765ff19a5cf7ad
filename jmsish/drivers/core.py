"""What a driver knows of the client it drives: bytes in, bytes out, a deadline, and calls to make outside."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from jmsish.engine.engine import Engine
from jmsish.errors import JMSError
from jmsish.options import ConnectionTarget

T = TypeVar("T")

Steps = Generator["tuple[Future[Any], float | None]", Any, T]
"""A procedure: yields what it waits for and until when (monotonic seconds), returns its result."""


class ClientCore(Protocol):
    """A sans-I/O client connection; every member is used by its owner only."""

    now: float
    shift: float
    """By how much ``now`` is ahead of monotonic time: as far as a test's clock was moved."""
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]]
    failure: JMSError | None
    exception_listener: Callable[[JMSError], Any] | None

    @property
    def offline(self) -> bool:
        """The connection is lost and is being made again: `reconnect` is to be run."""

    @property
    def dialling(self) -> Any:
        """A future that `reconnect` waits for, and that the driver makes come true: by a connection to its `place`."""

    @property
    def leaving(self) -> Any:
        """A future that `reconnect` waits for between two attempts: nothing is read meanwhile."""

    @property
    def output_size(self) -> int:
        """Octets waiting to be written."""

    def receive(self, data: bytes) -> None: ...

    def receive_eof(self) -> None: ...

    def take_output(self) -> bytes: ...

    def tick(self, now: float) -> float | None: ...

    def fail(self, error: JMSError) -> None: ...

    def lose(self, error: JMSError) -> None:
        """The wire is gone: the end, or the beginning of another connection."""

    def reconnect(self) -> Steps[None]: ...

    def join(self, place: ConnectionTarget, make_engine: Callable[[str], Engine]) -> None:
        """The wire leads to `place` from now on, where an engine speaks that is made for a container id, or none."""


COALESCE_OCTETS = 16384
"""Output beyond this is written at once: a write costs 5 µs, and 16 KiB spread it over some sixty small messages."""

LINGER_OCTETS = 1400
"""What is said in a transaction is written by the packet: an Ethernet frame carries 1,448 octets of TCP."""

COALESCE_SECONDS = 0.001
"""Output that nobody waits for is written at once unless something was written within this time: a lone
acknowledgement leaves immediately, a stream of them a thousand times a second."""
