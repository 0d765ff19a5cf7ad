"""The driver of an asyncio client: the event loop owns the core, so there is no lock.

A procedure is stepped in place as long as what it waits for is there already (over `vm://` it mostly is), and only then
by a task.  A task that is cancelled in the middle of a procedure waits for the procedure's end and is cancelled then,
because half a commit helps nobody; only a receive, and a send that waits for credit, are cancelled at once.  They take
nothing with them: a message leaves the buffer in the very step in which the receiver gets it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from jmsish.drivers.callback_task import CallbackTask
from jmsish.drivers.core import COALESCE_OCTETS, COALESCE_SECONDS, ClientCore, Steps
from jmsish.drivers.passing import PassingTime
from jmsish.drivers.sockets import address_text
from jmsish.drivers.telling import tell_fault
from jmsish.drivers.transport import PipeEnd
from jmsish.drivers.wires import PipeWire, SocketWire, Wire, reach
from jmsish.engine.engine import Engine
from jmsish.errors import ConnectionLostError, JMSError, OperationTimeoutError
from jmsish.options import ConnectionTarget

T = TypeVar("T")

log = logging.getLogger("jmsish.client")

LONGEST_NAP = 1.0
"""Seconds between two looks at the clock: the finest deadline a core sets by itself is a second away (D12)."""

Connect = Callable[["LoopDriver", ConnectionTarget], Awaitable[Callable[[str], Engine]]]
"""Connects a driver to a broker, within its `connect_timeout`, has it join that wire, and says how to make the engine.

Raises `ConnectionLostError` that says why not.
"""


class LoopDriver(PassingTime):
    """Drives one client connection in the running event loop."""

    def __init__(self, core: ClientCore, connect: Connect | None = None) -> None:
        self.core = core
        self.time = monotonic
        self._connect = connect
        self._reconnecting: asyncio.Task[None] | None = None
        self.loop = asyncio.get_running_loop()
        self.wire: Wire | None = None
        self.callbacks = CallbackTask(self.loop)
        self._flushing = False
        self._last_read = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: list[Future[None]] = []
        self._timed: dict[Callable[[], None], float] = {}
        """Those who wait until a moment, where a clock may come to it by being moved."""
        self._stopped = False

    # -- connecting ------------------------------------------------------------------------------------------------

    def join_pipe(self, pipe: PipeEnd) -> None:
        self.join_wire(PipeWire(pipe, self))

    async def join_socket(self, host: str, port: int, *, timeout: float | None) -> None:
        """Connect by TCP, with nothing around.  Raises `ConnectionLostError` naming host, port and cause."""
        where = address_text(host, port)
        connecting = self.loop.create_connection(lambda: SocketWire(self, where), host, port)
        _, wire = await reach(connecting, where, timeout)
        self.join_wire(wire)

    def join_wire(self, wire: Wire) -> None:
        """Go on over a wire that is ready for AMQP."""
        self.wire = wire
        if self._reconnecting is None:  # else the core joins it first
            wire.joined()
            self.watch()

    # -- running the core ------------------------------------------------------------------------------------------

    def call(self, function: Callable[..., T], *args: Any) -> T:
        self.core.now = self.time()
        return function(*args)

    async def run(self, steps: Steps[T], cancellable: bool = False) -> T:
        """Run a procedure to its end; see the module's theory for what cancelling does."""
        try:
            self.core.now = self.time()
            future, deadline = steps.send(None)
            self.flush()
            while future.done():
                self.core.now = self.time()
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
                self.core.now = self.time()
                future, deadline = steps.throw(error) if error is not None else steps.send(result)
                self.flush()
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        finally:
            self.nudge()

    async def wait(self, future: Future[T], deadline: float | None) -> T:
        """The future's result.  Raises `OperationTimeoutError` when `deadline` passes first, and, of a connection that
        has ended for good, `ConnectionLostError`: no answer comes any more."""
        if not future.done():
            if self._stopped:
                peer = self.wire.peer if self.wire is not None else "the broker"
                text = f"connection to {peer} has ended"
                raise self.core.failure or ConnectionLostError(text, scope="connection")
            waiter = self.loop.create_future()

            def wake(_: Any = None) -> None:
                if not waiter.done():
                    waiter.set_result(None)

            future.add_done_callback(wake)
            until = self._by(deadline)
            timer = None if until is None else self.loop.call_later(max(until - self.time(), 0), wake)
            if until is not None and until is deadline and self._stepped is not None:
                self._timed[wake] = until
            try:
                await waiter
            finally:
                if timer is not None:
                    timer.cancel()
                    self._timed.pop(wake, None)
            if not future.done():
                raise OperationTimeoutError("no answer from the broker within the time allowed")
        return future.result()

    # -- bytes -----------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        self.core.now = self._last_read = self.time()
        try:
            self.core.receive(data)
        except BaseException as fault:  # what is half taken in is followed by nothing, and nobody may wait for it
            text = f"what the broker said could not be taken in: {fault!r}"
            self.core.fail(ConnectionLostError(text, scope="connection"))
            raise
        finally:
            self.nudge()
            if self.core.offline:
                self.see_to_loss()

    @property
    def is_stale(self) -> bool:
        """Whether the wire has not been listened to for a while; see `refresh`."""
        return self.time() - self._last_read > COALESCE_SECONDS

    async def refresh(self) -> None:
        """Before a message is handed over: hear what the wire says, so that no loss goes unnoticed for long.

        Three turns of the loop: to look at the socket, to read it, and to be told of its end.
        """
        if self.is_stale:
            self._last_read = self.time()
            for _ in range(3):
                await asyncio.sleep(0)

    def receive_eof(self, error: Exception | None) -> None:
        self.core.now = self.time()
        if error is not None and self.core.failure is None:
            peer = self.wire.peer if self.wire is not None else "the broker"
            self.core.lose(ConnectionLostError(f"connection to {peer} lost: {error}", scope="connection"))
        self.core.receive_eof()
        if self.core.offline:
            self.see_to_loss()
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
                    self.core.lose(error if isinstance(error, JMSError) else ConnectionLostError(str(error)))
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

    # -- connecting again ------------------------------------------------------------------------------------------

    def see_to_loss(self) -> None:
        """Have a connection that was lost made again, by a task."""
        if self._reconnecting is None and not self._stopped:
            self._reconnecting = self.loop.create_task(self._reconnect(), name="jmsish reconnect")

    async def _reconnect(self) -> None:
        """Until the connection stands again, or has failed.  What the old one had to say last is said, if it can be."""
        self.flush()
        self._retire()
        steps = self.core.reconnect()
        result: Any = None
        error: BaseException | None = None
        try:
            while True:
                self.core.now = self.time()
                future, deadline = steps.throw(error) if error is not None else steps.send(result)
                self.flush()
                result, error = None, None
                try:
                    if future is self.core.dialling:
                        await self._dial()
                    else:
                        result = await self.wait(future, deadline)
                except asyncio.CancelledError:
                    raise
                except Exception as raised:
                    error = raised
        except StopIteration:
            pass
        except Exception as fault:
            tell_fault(log, "a fault inside the client ends the connection")
            self.core.fail(ConnectionLostError(f"a fault inside the client: {fault!r}", scope="connection"))
        finally:
            self._reconnecting = None
            if self.core.failure is not None:
                self._retire()
            self.flush()
            self.watch()

    async def _dial(self) -> None:
        place = self.core.dialling.place
        assert self._connect is not None
        self._retire()
        make_engine = await self._connect(self, place)
        if self._stopped:  # a cancellation that came too late to prevent it (`asyncio.wait_for` up to Python 3.11)
            self._retire()
            raise asyncio.CancelledError
        self.core.now = self.time()
        self.core.join(place, make_engine)
        if self.wire is not None:
            self.wire.joined()

    def _retire(self) -> None:
        """The wire was lost."""
        wire, self.wire = self.wire, None
        if wire is not None:
            wire.retired = True
            wire.close()
            self.written()

    # -- time and callbacks ----------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Let the core see the clock, and come again at its deadline; see to a connection that is to be made again."""
        if self._stopped:
            return
        if self._timer is not None:
            self._timer.cancel()
        now = self.time()
        deadline = self.core.tick(now)
        self.nudge()
        if self.core.offline:
            self.see_to_loss()
        nap = LONGEST_NAP if deadline is None else min(max(deadline - now, 0.001), LONGEST_NAP)
        self._timer = self.loop.call_later(nap, self.watch)

    def time_passed(self) -> None:
        """Whoever waits looks at the time, and so does the core: in the loop, whichever thread moved the clock."""
        if self.loop is _running_loop():
            self._look_at_the_time()
        else:
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self._look_at_the_time)

    def _look_at_the_time(self) -> None:
        self._take_over()
        now = self.time()
        for wake, deadline in list(self._timed.items()):
            if deadline <= now:
                wake()
        self.watch()

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
        wire = self.wire
        if self._stopped or (wire is None and not self.core.offline) or self.core.failure is not None:
            return False
        try:
            self.loop.call_soon_threadsafe(self.stop)
        except RuntimeError:  # the loop is closed
            if wire is not None:
                wire.abandon()
        return True

    def stop(self) -> None:
        """Close the wire.  Silent when it was done before."""
        if not self._stopped:
            self._stopped = True
            self._unfollow()
            if self._timer is not None:
                self._timer.cancel()
            if self._reconnecting is not None:
                self._reconnecting.cancel()
            if self.wire is not None:
                self.wire.close()

    async def closed(self) -> None:
        """Wait until the loop has closed the wire: a broker of this program that is stopped next would wait for it."""
        if self.wire is not None:
            await self.wire.closed()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _ended(task: asyncio.Task[Any]) -> None:
    """Wait for the task's end, however often we are cancelled meanwhile."""
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
