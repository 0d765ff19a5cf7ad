"""What an asyncio client writes to and hears from: a pipe into an embedded broker, or a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from ssl import SSLError
from typing import TYPE_CHECKING, Protocol, TypeVar

from jmsish.drivers.sockets import reason_of
from jmsish.drivers.tls import sentence
from jmsish.drivers.transport import PipeEnd
from jmsish.errors import ConnectionLostError

if TYPE_CHECKING:
    from jmsish.drivers.loop import LoopDriver

T = TypeVar("T")


class Wire(Protocol):
    """What the driver writes to."""

    peer: str
    retired: bool
    """It was lost, and another one has taken its place: what still comes of it is nobody's."""
    paused: bool
    """It has more to write than it should keep: nothing is given to it until it has written some."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...

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
        self._pipe.set_reader(None)
        self._pipe.close()

    def abandon(self) -> None:
        self.close()  # a pipe may be closed by anybody at any time

    def cut(self) -> None:
        self._pipe.close()
        self.read()


class SocketWire(asyncio.Protocol):
    """A TCP or TLS connection as asyncio gives it."""

    retired = False

    def __init__(self, driver: LoopDriver, peer: str) -> None:
        self.peer = peer
        self.paused = False
        self._driver = driver
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self.retired:
            return
        self._driver.receive(data)
        self._driver.flush()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._driver.flush()
        self._driver.written()

    def connection_lost(self, error: Exception | None) -> None:
        self.paused = False
        if not self.retired:
            if isinstance(error, SSLError):
                error = ConnectionLostError(f"TLS: {sentence(error, b'')}", scope="connection")
            self._driver.receive_eof(error)
        self._driver.written()

    def write(self, data: bytes) -> None:
        if self._transport is None:
            raise ConnectionLostError(f"the connection to {self.peer} is closed")
        if not self._transport.is_closing():  # else it is over, and `connection_lost` is about to say why
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abandon(self) -> None:
        """The transport closes its socket when it goes."""
        self._transport = None

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def reach(connecting: Awaitable[T], where: str, timeout: float | None) -> T:
    """The end of connecting. Raises `ConnectionLostError` naming the place and the cause."""
    try:
        return await asyncio.wait_for(connecting, timeout)
    except asyncio.TimeoutError:
        text = f"connecting to {where} took longer than {timeout} s (stage: connect)"
        raise ConnectionLostError(text, scope="connection") from None
    except SSLError as error:
        text = f"cannot connect to {where}: TLS: {sentence(error, b'')}"
        raise ConnectionLostError(text, scope="connection") from error
    except OSError as error:
        raise ConnectionLostError(f"cannot connect to {where}: {reason_of(error)}", scope="connection") from error
