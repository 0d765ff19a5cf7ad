"""The driver of a blocking client: who waits, reads; who has something to say, writes.

Theory of operation.  One lock, `lock`, is the ownership of the connection's core; it is never held over I/O or user
code.  There is no I/O thread in the way of a message:

* A thread that has something to say runs the core under the lock, takes the output and writes it itself.  The flag
  `_sending` (written under the lock) lets one thread write at a time, which keeps the order of the octets; another one
  leaves its output in the core and returns, because the writer looks again after each write.
* A thread that waits for a future takes the flag `_reading` and reads the transport itself, feeds the core, and wakes
  those whose future came true by it.  Other waiting threads sleep on a lock of their own.  When the reader has what it
  wants, it wakes one of them to read on: one, never all.
* The standby reader (`_stand_by`, a daemon thread) reads when no application thread has read for `QUIET` seconds.  It
  keeps the heartbeats, hears of closes, and writes what nobody flushed.  It steps back when an application thread
  becomes active, because two active readers would fight for the interpreter lock.

Measured, with the structures that were not taken, in `docs/design.md`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from time import monotonic
from typing import Any, TypeVar

from jmsish.drivers.core import COALESCE_OCTETS, COALESCE_SECONDS, ClientCore, Steps
from jmsish.drivers.transport import Transport
from jmsish.errors import ConnectionLostError, JMSError, OperationTimeoutError

T = TypeVar("T")

log = logging.getLogger("jmsish.client")

QUIET = 0.010
"""Seconds without an application thread reading after which the standby reader reads (hot-path: structure H)."""


TICK = 0.5
"""Seconds between two looks of the core at the clock: half of the shortest deadline that it sets by itself (D12)."""


class ThreadedDriver:
    """Drives one client connection for any number of application threads."""

    def __init__(self, core: ClientCore, transport: Transport) -> None:
        self.core = core
        self.transport = transport
        self.lock = threading.Lock()
        self._sending = False
        self._reading = False
        self._read_for: Future[Any] | None = None
        self._standing_by = False  # the standby reader is blocked in recv
        self._last_read = monotonic()
        self._last_flush = 0.0
        self._tick_at = 0.0
        self._waiters: dict[threading.Lock, Future[Any]] = {}
        self._stopped = False
        self._pause = threading.Lock()
        self._pause.acquire()
        self._calls: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()
        self._caller: threading.Thread | None = None
        self._standby = threading.Thread(target=self._stand_by, name=f"jmsish standby {transport.peer}", daemon=True)

    def start(self) -> None:
        """Begin to read in the background."""
        self._standby.start()

    # -- what applications do --------------------------------------------------------------------------------------

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Run `function` as the owner of the core; what it has to say leaves when somebody flushes."""
        with self.lock:
            self.core.now = monotonic()
            try:
                return function(*args)
            finally:
                self._wake()

    def run(self, steps: Steps[T]) -> T:
        """Run a procedure to its end in this thread."""
        result: Any = None
        error: BaseException | None = None
        while True:
            with self.lock:
                self.core.now = monotonic()
                try:
                    future, deadline = steps.throw(error) if error is not None else steps.send(result)
                except StopIteration as stop:
                    break_with = stop.value
                    break
                except BaseException:
                    self._after_failure()
                    raise
                finally:
                    self._wake()
            try:
                result, error = self.wait(future, deadline), None
            except BaseException as raised:
                error = raised
        self.flush()
        return break_with  # type: ignore[no-any-return]

    def _after_failure(self) -> None:
        """What a failed procedure still had to say is left to the standby reader, which must not sleep over it."""
        self._last_read = 0.0
        if self._standing_by:
            self.transport.interrupt()

    def wait(self, future: Future[T], deadline: float | None) -> T:
        """The future's result.  Raises `OperationTimeoutError` when `deadline` passes first."""
        self.flush()
        lock = self.lock
        lock.acquire()
        try:
            while not future.done():
                now = monotonic()
                if deadline is not None and now >= deadline:
                    raise OperationTimeoutError("no answer from the broker within the time allowed")
                if self._reading:
                    self._wait_for_reader(future, deadline, now)
                else:
                    self._read(deadline, now, future)
                    self._last_read = monotonic()
        finally:
            successor = None if self._reading else next(iter(self._waiters), None)
            if successor is not None:
                release(successor)
            lock.release()
        return future.result()

    def _wait_for_reader(self, future: Future[Any], deadline: float | None, now: float) -> None:
        """Sleep until the reader woke us: our future is done, or it is our turn to read.  Lock held, and given back."""
        signal = threading.Lock()
        signal.acquire()
        self._waiters[signal] = future
        self.lock.release()
        try:
            signal.acquire(timeout=-1 if deadline is None else max(deadline - now, 0))
        finally:
            self.lock.acquire()
            del self._waiters[signal]

    def _read(self, deadline: float | None, now: float, future: Future[Any] | None = None) -> None:
        """Read once, for whoever waits for `future`, and feed the core.  Lock held at entry and exit, not between."""
        self._reading = True
        self._read_for = future
        try:
            if now >= self._tick_at:
                due = self.core.tick(now)
                self._tick_at = now + TICK if due is None else min(due, now + TICK)
            until = self._tick_at if deadline is None else min(self._tick_at, deadline)
            self.lock.release()
            try:
                self.flush()
                data = self._recv(max(until - now, 0))
            finally:
                self.lock.acquire()
        finally:
            self._reading = False
            self._read_for = None
        self._feed(data)

    def _recv(self, timeout: float | None) -> bytes | None:
        try:
            return self.transport.recv(timeout)
        except TimeoutError:
            return None
        except (ConnectionLostError, OSError):
            return b""

    def _feed(self, data: bytes | None) -> None:
        """Give the core what was read (None: nothing came; empty: the end) and wake those it concerns.  Lock held."""
        core = self.core
        core.now = monotonic()
        if data:
            core.receive(data)
        elif data is not None:
            core.receive_eof()
        self._wake()
        if core.calls:
            self._hand_out_calls()

    def _wake(self) -> None:
        """Wake the threads whose futures are done, the one that reads included.  Lock held."""
        for signal, future in self._waiters.items():
            if future.done():
                release(signal)
        if self._read_for is not None and self._read_for.done():
            self.transport.interrupt()

    # -- writing ---------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what the core has to say, unless another thread is writing: that one then writes ours too."""
        lock, core = self.lock, self.core
        while True:
            with lock:
                if self._sending:
                    return
                data = core.take_output()
                if core.calls:
                    self._hand_out_calls()
                if not data:
                    return
                self._sending = True
            try:
                self.transport.send(data)
            except (JMSError, OSError) as error:
                self._lost(error)
                return
            self._last_flush = monotonic()
            with lock:
                self._sending = False

    def nudge(self) -> None:
        """Something was said that nobody waits for: write it now, or soon if we write often anyway."""
        now = monotonic()
        if now - self._last_flush > COALESCE_SECONDS or self.core.output_size >= COALESCE_OCTETS:
            self.flush()
            self.poll()
        elif self._standing_by:
            self._last_read = now
            self.transport.interrupt()

    def linger(self) -> None:
        """Something was said that can wait for what follows (a commit): write it when it is much, else leave it.

        The standby reader writes what is left at the latest.
        """
        if self.core.output_size >= COALESCE_OCTETS:
            self.flush()
            self.poll()
        elif self._standing_by:
            self._last_read = monotonic()
            self.transport.interrupt()

    def refresh(self) -> None:
        """Before a message is handed over: hear what the wire says, so that no loss goes unnoticed for long."""
        if monotonic() - self._last_read > COALESCE_SECONDS:
            self.poll()

    def poll(self) -> None:
        """Take in what has arrived, without waiting."""
        with self.lock:
            if self._reading:
                return
            self._reading = True
        data = None
        try:
            data = self.transport.recv_nowait()
        except (ConnectionLostError, OSError):
            data = b""
        finally:
            with self.lock:
                self._reading = False
                self._last_read = monotonic()
                if data is not None:
                    self._feed(data)
                successor = next(iter(self._waiters), None)
                if successor is not None:
                    release(successor)
        if data:
            self.flush()

    def _lost(self, error: Exception) -> None:
        """A write failed: the reason may still be there to read (a close frame), else it is this failure."""
        last: bytes | None = None
        try:
            last = self.transport.recv_nowait()
        except (JMSError, OSError):
            last = None
        with self.lock:
            self._sending = False
            if last:
                self.core.receive(last)
            if self.core.failure is None:
                cause = error if isinstance(error, JMSError) else ConnectionLostError(
                    f"connection to {self.transport.peer} lost while writing: {error}", scope="connection"
                )
                self.core.fail(cause)
            self._feed(None)

    # -- user code -------------------------------------------------------------------------------------------------

    def _hand_out_calls(self) -> None:
        """Leave the application's callbacks to a thread of their own, in order.  Lock held."""
        calls = self.core.calls
        if self._caller is None:
            name = f"jmsish callbacks {self.transport.peer}"
            self._caller = threading.Thread(target=self._make_calls, name=name, daemon=True)
            self._caller.start()
        for call in calls:
            self._calls.put(call)
        calls.clear()

    def _make_calls(self) -> None:
        while True:
            call = self._calls.get()
            if call is None:
                return
            function, args = call
            try:
                function(*args)
            except Exception:
                log.exception("a callback of the application failed: %r", function)

    # -- standing by -----------------------------------------------------------------------------------------------

    def _stand_by(self) -> None:
        """The standby reader's life: to the close, or to the loss of the connection, which leaves nothing to read."""
        while not self._stopped and self.core.failure is None:
            self.lock.acquire()
            now = monotonic()
            quiet = not self._reading and now - self._last_read >= QUIET
            if not quiet:
                self.lock.release()
                if now - self._last_flush >= QUIET:
                    self.flush()
                self._pause.acquire(timeout=QUIET)
                continue
            self._standing_by = True
            try:
                self._read(None, now)
            finally:
                self._standing_by = False
                self._step_back()
                self.lock.release()
            self.flush()
        self.transport.close()

    def _step_back(self) -> None:
        """Once the standby reader has woken somebody, that thread reads on.  Lock held."""
        for signal, future in self._waiters.items():
            if not future.done():
                release(signal)
                break
        if self._waiters:
            self._last_read = monotonic()

    def stop(self) -> None:
        """Close the transport and end the threads.  Silent when it was done before."""
        with self.lock:
            if self._stopped:
                return
            self._stopped = True
        self.transport.close()
        release(self._pause)
        self._calls.put(None)
        if self._standby.is_alive() and threading.current_thread() is not self._standby:
            self._standby.join(timeout=1.0)


def release(signal: threading.Lock) -> None:
    """Release a lock used as a signal; a signal given twice is given once."""
    try:
        signal.release()
    except RuntimeError:
        pass
