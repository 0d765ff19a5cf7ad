"""What an asyncio client writes to and hears from: a pipe into an embedded broker, or a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from jmsish.drivers.sockets import reason_of
from jmsish.drivers.transport import PipeEnd
from jmsish.errors import ConnectionLostError

if TYPE_CHECKING:
    from jmsish.drivers.loop import LoopDriver

T = TypeVar("T")

FAREWELL = 0.1
"""Seconds that a peer has to answer the end of TLS, and to take what we said last, before nobody waits for it."""


class Wire(Protocol):
    """What the driver writes to."""

    peer: str
    retired: bool
    """It was lost, and another one has taken its place: what still comes of it is nobody's."""
    paused: bool
    """It has more to write than it should keep: nothing is given to it until it has written some."""

    def joined(self) -> None:
        """The driver goes on over this wire from now on: tell it what the peer has said before."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    async def closed(self) -> None:
        """Wait until it is closed, or for a moment."""

    def abandon(self) -> None:
        """Close it without a loop: the loop is closed."""

    def cut(self) -> None: ...


class PipeWire:
    """An in-memory pipe, read in the loop."""

    paused = False
    retired = False

    def __init__(self, pipe: PipeEnd, driver: LoopDriver) -> None:
        self.peer = pipe.peer
        self._pipe = pipe
        self._driver = driver
        self._sending = False
        pipe.set_reader(self._signal)

    def _signal(self) -> None:
        """Octets have arrived; may be called in any thread, and in our own send, which looks by itself."""
        if not self._sending:
            try:
                self._driver.loop.call_soon_threadsafe(self.read)
            except RuntimeError:
                pass  # the loop is closed: nobody reads any more

    def joined(self) -> None:
        self.read()

    def write(self, data: bytes) -> None:
        self._sending = True
        try:
            self._pipe.send(data)
        finally:
            self._sending = False
        self.read()

    def read(self) -> None:
        while True:
            data = self._pipe.recv_nowait()
            if data is None or self.retired:
                return
            if not data:
                self._driver.receive_eof(None)
                return
            self._driver.receive(data)

    def close(self) -> None:
        self.abandon()
        if not self.retired:
            self._driver.receive_eof(None)  # as of a socket: nobody waits for what does not come any more

    async def closed(self) -> None:
        """It is, at once."""

    def abandon(self) -> None:
        self._pipe.set_reader(None)
        self._pipe.close()  # a pipe may be closed by anybody at any time

    def cut(self) -> None:
        self._pipe.close()
        self.read()


class SocketWire(asyncio.Protocol):
    """A TCP connection as asyncio gives it."""

    retired = False

    def __init__(self, driver: LoopDriver, peer: str) -> None:
        self.peer = peer
        self._early: list[bytes | Exception | None] = []  # octets, and behind them the end, for this reason
        self.paused = False
        self._driver = driver
        self._transport: asyncio.Transport | None = None
        self._lost: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._lost = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        if self.retired:
            return
        if self._driver.wire is not self:
            self._early.append(data)
            return
        self._driver.receive(data)
        self._driver.flush()

    def _end(self, error: Exception | None) -> None:
        """Nothing more comes."""
        if self._driver.wire is not self:
            self._early.append(error)
        elif not self.retired:
            self._driver.receive_eof(error)

    def joined(self) -> None:
        early, self._early = self._early, []
        for each in early:
            if isinstance(each, bytes):
                self._driver.receive(each)
            else:
                self._driver.receive_eof(each)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._driver.flush()
        self._driver.written()

    def connection_lost(self, error: Exception | None) -> None:
        self.paused = False
        if self._lost is not None:
            self._lost.set_result(None)
        self._end(error)
        self._driver.written()

    def write(self, data: bytes) -> None:
        if self._transport is None:
            raise ConnectionLostError(f"the connection to {self.peer} is closed")
        if not self._transport.is_closing():  # else it is over, and `connection_lost` is about to say why
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def closed(self) -> None:
        if self._transport is not None and self._lost is not None:
            await asyncio.wait([self._lost], timeout=FAREWELL)

    def abandon(self) -> None:
        """The transport closes its socket when it goes."""
        self._transport = None

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def reach(connecting: Awaitable[T], where: str, timeout: float | None, step: Callable[[], str] = str) -> T:
    """The end of connecting. Raises `ConnectionLostError` naming the place, how far it got (`step`), and the cause."""
    try:
        return await asyncio.wait_for(connecting, timeout)
    except (OSError, asyncio.TimeoutError, UnicodeError) as error:  # on Python 3.10 a time-out is no OSError
        cause = TimeoutError() if isinstance(error, asyncio.TimeoutError) else error
        doing = step()
        why = f"{doing}: {reason_of(cause, timeout, stage='')}" if doing else reason_of(cause, timeout)
        raise ConnectionLostError(f"cannot connect to {where}: {why}", scope="connection") from error
