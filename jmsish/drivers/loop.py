"""The driver of an asyncio client: the event loop owns the core, so there is no lock.

A procedure is stepped in place as long as what it waits for is there already (over `vm://` it mostly is), and only then
by a task.  A task that is cancelled in the middle of a procedure waits for the procedure's end and is cancelled then,
because half a commit helps nobody; only a receive, and a send that waits for credit, are cancelled at once.  They take
nothing with them: a message leaves the buffer in the very step in which the receiver gets it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from ssl import SSLContext, SSLError
from time import monotonic
from typing import Any, Protocol, TypeVar

from jmsish.drivers.callback_task import CallbackTask
from jmsish.drivers.core import COALESCE_OCTETS, COALESCE_SECONDS, ClientCore, Steps
from jmsish.drivers.tls import sentence
from jmsish.drivers.transport import PipeEnd
from jmsish.errors import ConnectionLostError, JMSError, OperationTimeoutError

T = TypeVar("T")

log = logging.getLogger("jmsish.client")

LONGEST_NAP = 1.0
"""Seconds between two looks at the clock: the finest deadline a core sets by itself is a second away (D12)."""


class Wire(Protocol):
    """What the driver writes to."""

    peer: str
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
            if data is None:
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

    def __init__(self, driver: LoopDriver, peer: str) -> None:
        self.peer = peer
        self.paused = False
        self._driver = driver
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
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
        self._driver.receive_eof(error)
        self._driver.written()

    def write(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionLostError(f"the connection to {self.peer} is closed")
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


class LoopDriver:
    """Drives one client connection in the running event loop."""

    def __init__(self, core: ClientCore) -> None:
        self.core = core
        self.loop = asyncio.get_running_loop()
        self.wire: Wire | None = None
        self.callbacks = CallbackTask(self.loop)
        self._flushing = False
        self._last_read = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: list[Future[None]] = []
        self._stopped = False

    # -- connecting ------------------------------------------------------------------------------------------------

    def join_pipe(self, pipe: PipeEnd) -> None:
        self.wire = PipeWire(pipe, self)
        self._watch()

    async def join_socket(
        self,
        host: str,
        port: int,
        *,
        timeout: float | None,
        ssl_context: SSLContext | None,
        server_hostname: str | None = None,
    ) -> None:
        """Connect by TCP, or TLS with a context.  Raises `ConnectionLostError` naming host, port and cause."""
        where = f"{host}:{port}"
        name = (server_hostname or host) if ssl_context is not None else None
        connecting = self.loop.create_connection(
            lambda: SocketWire(self, where), host, port, ssl=ssl_context, server_hostname=name
        )
        _, wire = await reach(connecting, where, timeout)
        self.join_wire(wire)

    def join_wire(self, wire: Wire) -> None:
        """Go on over a wire that is ready for AMQP."""
        self.wire = wire
        self._watch()

    # -- running the core ------------------------------------------------------------------------------------------

    def call(self, function: Callable[..., T], *args: Any) -> T:
        self.core.now = monotonic()
        return function(*args)

    async def run(self, steps: Steps[T], cancellable: bool = False) -> T:
        """Run a procedure to its end; see the module's theory for what cancelling does."""
        try:
            self.core.now = monotonic()
            future, deadline = steps.send(None)
            self.flush()
            while future.done():
                self.core.now = monotonic()
                error = future.exception()
                future, deadline = steps.throw(error) if error is not None else steps.send(future.result())
                self.flush()
        except StopIteration as stop:
            self.nudge()
            return stop.value  # type: ignore[no-any-return]
        except BaseException:
            self.nudge()
            raise
        rest = self._finish(steps, future, deadline)
        if cancellable:
            return await rest
        task = self.loop.create_task(rest)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as cancelled:
            await _ended(task)
            if not task.cancelled() and task.exception() is not None:
                log.warning("an operation that was cancelled failed: %s", task.exception())
            raise cancelled

    async def _finish(self, steps: Steps[T], future: Future[Any], deadline: float | None) -> T:
        try:
            while True:
                error: BaseException | None = None
                result: Any = None
                try:
                    result = await self.wait(future, deadline)
                except BaseException as raised:
                    error = raised
                self.core.now = monotonic()
                future, deadline = steps.throw(error) if error is not None else steps.send(result)
                self.flush()
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        finally:
            self.nudge()

    async def wait(self, future: Future[T], deadline: float | None) -> T:
        """The future's result.  Raises `OperationTimeoutError` when `deadline` passes first."""
        if not future.done():
            waiter = self.loop.create_future()

            def wake(_: Any = None) -> None:
                if not waiter.done():
                    waiter.set_result(None)

            future.add_done_callback(wake)
            timer = None if deadline is None else self.loop.call_later(max(deadline - monotonic(), 0), wake)
            try:
                await waiter
            finally:
                if timer is not None:
                    timer.cancel()
            if not future.done():
                raise OperationTimeoutError("no answer from the broker within the time allowed")
        return future.result()

    # -- bytes -----------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        self.core.now = self._last_read = monotonic()
        try:
            self.core.receive(data)
        except BaseException as fault:  # what is half taken in is followed by nothing, and nobody may wait for it
            text = f"what the broker said could not be taken in: {fault!r}"
            self.core.fail(ConnectionLostError(text, scope="connection"))
            raise
        finally:
            self.nudge()

    async def refresh(self) -> None:
        """Before a message is handed over: hear what the wire says, so that no loss goes unnoticed for long.

        Three turns of the loop: to look at the socket, to read it, and to be told of its end.
        """
        if monotonic() - self._last_read > COALESCE_SECONDS:
            self._last_read = monotonic()
            for _ in range(3):
                await asyncio.sleep(0)

    def receive_eof(self, error: Exception | None) -> None:
        self.core.now = monotonic()
        if error is not None and self.core.failure is None:
            peer = self.wire.peer if self.wire is not None else "the broker"
            self.core.fail(ConnectionLostError(f"connection to {peer} lost: {error}", scope="connection"))
        self.core.receive_eof()
        if self.core.calls:
            self.callbacks.take(self.core.calls)

    def flush(self) -> None:
        """Write what the core has to say, as far as the wire takes it."""
        while self.wire is not None and not self.wire.paused:
            data = self.core.take_output()
            if not data:
                break
            try:
                self.wire.write(data)
            except (JMSError, OSError) as error:
                if self.core.failure is None:
                    self.core.fail(error if isinstance(error, JMSError) else ConnectionLostError(str(error)))
                break
        if self.core.calls:
            self.callbacks.take(self.core.calls)

    def nudge(self) -> None:
        """Write soon: once for all that is said in this turn of the loop."""
        if self.core.output_size >= COALESCE_OCTETS:
            self.flush()
        elif not self._flushing and (self.core.output_size or self.core.calls):
            self._flushing = True
            self.loop.call_soon(self._flush_now)

    def linger(self) -> None:
        """Something was said that can wait for what follows: in a loop that is the end of this turn anyway."""
        self.nudge()

    @property
    def is_blocked(self) -> bool:
        """Whether the peer has to take octets before more are written."""
        return self.wire is not None and self.wire.paused

    async def room(self, deadline: float | None) -> None:
        """Wait until the wire takes octets again.  Raises `OperationTimeoutError` when `deadline` passes first."""
        while self.is_blocked:
            writer: Future[None] = Future()
            self._writers.append(writer)
            await self.wait(writer, deadline)

    def written(self) -> None:
        """The wire takes octets again, or has ended."""
        writers, self._writers = self._writers, []
        for writer in writers:
            writer.set_result(None)

    def _flush_now(self) -> None:
        self._flushing = False
        self.flush()

    # -- time and callbacks ----------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Let the core see the clock, and come again at its deadline."""
        if self._stopped:
            return
        now = monotonic()
        deadline = self.core.tick(now)
        self.nudge()
        nap = LONGEST_NAP if deadline is None else min(max(deadline - now, 0.001), LONGEST_NAP)
        self._timer = self.loop.call_later(nap, self._watch)

    async def finish_callbacks(self) -> None:
        """Wait until the callbacks for what has happened so far have returned."""
        if self.core.calls:
            self.callbacks.take(self.core.calls)
        await self.callbacks.finish()

    def cut(self) -> None:
        """Break the wire without a word to the peer, as a failing network would."""
        if self.wire is not None:
            self.wire.cut()

    def abandon(self) -> bool:
        """Nobody can use the connection any more: have the loop end it; whether it was still open.

        Called by a finalizer, in the middle of anything in any thread.
        """
        if self._stopped or self.wire is None or self.core.failure is not None:
            return False
        try:
            self.loop.call_soon_threadsafe(self.stop)
        except RuntimeError:
            self.wire.abandon()  # the loop is closed
        return True

    def stop(self) -> None:
        """Close the wire.  Silent when it was done before."""
        if not self._stopped:
            self._stopped = True
            if self._timer is not None:
                self._timer.cancel()
            if self.wire is not None:
                self.wire.close()


async def reach(connecting: Awaitable[T], where: str, timeout: float | None) -> T:
    """The end of connecting. Raises `ConnectionLostError` naming the place and the cause."""
    try:
        return await asyncio.wait_for(connecting, timeout)
    except asyncio.TimeoutError:
        text = f"connecting to {where} took longer than {timeout} s"
        raise ConnectionLostError(text, scope="connection") from None
    except SSLError as error:
        text = f"cannot connect to {where}: TLS: {sentence(error, b'')}"
        raise ConnectionLostError(text, scope="connection") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ConnectionLostError(f"cannot connect to {where}: {reason}", scope="connection") from error


async def _ended(task: asyncio.Task[Any]) -> None:
    """Wait for the task's end, however often we are cancelled meanwhile."""
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
