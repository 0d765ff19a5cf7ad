"""The driver of a blocking client: who waits, reads; who has something to say, writes.

Theory of operation.  One lock, `lock`, is the ownership of the connection's core; it is never held over I/O or user
code.  There is no I/O thread in the way of a message:

* A thread that has something to say runs the core under the lock, takes the output and writes it itself.  The flag
  `_sending` (written under the lock) lets one thread write at a time, which keeps the order of the octets; another one
  leaves its output in the core and returns, because the writer looks again after each write.
* Whoever reads, and the standby reader, does not wait to write while there is something to read: the peer may wait for
  that (`InputFirst`).  What is left of the write goes before what is written next.
* A thread that waits for a future takes the mark `_reader` and reads the transport itself, feeds the core, and wakes
  those whose future came true by it.  Other waiting threads sleep on a lock of their own.  When the reader has what it
  wants, it wakes one of them to read on: one, never all.
* The standby reader (`_stand_by`, a daemon thread) reads when no application thread has read for `QUIET` seconds.  It
  keeps the heartbeats, hears of closes, and writes what nobody flushed.  It steps back when an application thread
  becomes active, because two active readers would fight for the interpreter lock.
* A connection that is lost and made again (`core.offline`) has no wire.  The standby reader dials, and is the one that
  reads until all is restored; the others sleep.  A thread that is still at the old wire finds that it is not the wire
  of the connection any more, and leaves what it read or wrote there alone.

Measured, with the structures that were not taken, in `docs/design.md`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import get_ident
from time import monotonic
from typing import Any, TypeVar

from jmsish.drivers.callbacks import CallbackThread
from jmsish.drivers.core import COALESCE_OCTETS, COALESCE_SECONDS, ClientCore, Steps
from jmsish.drivers.forks import living
from jmsish.drivers.standby import TICK, Connect, StandbyReader, Wait, packet_of, release
from jmsish.drivers.transport import InputFirst, LayerLost, SendBlocked, Transport
from jmsish.errors import ConnectionLostError, JMSError, OperationTimeoutError, ResourceAllocationError

T = TypeVar("T")


class ThreadedDriver(StandbyReader):
    """Drives one client connection for any number of application threads."""

    def __init__(self, core: ClientCore, transport: Transport, connect: Connect | None = None) -> None:
        self.core = core
        self.time = monotonic
        self.transport = transport
        self._connect = connect
        self.lock = threading.Lock()
        self._sending = False
        self._blocked = False  # the transport keeps octets that the peer did not take in time
        self._reader = 0  # the thread that reads
        self._read_for: Future[Any] | None = None
        self._standing_by = False  # the standby reader is blocked in recv
        self._napping = False  # the standby reader sleeps until an application thread has read
        self._wired = True  # there is a wire, though it may have been cut: no pause before an attempt to connect again
        self._waits = 0  # how many waits of application threads have ended
        self._last_read = self.time()
        self._last_flush = 0.0
        self._packet = packet_of(transport)
        self._tick_at = 0.0
        self._waiters: dict[threading.Lock, Future[Any]] = {}
        self._left: list[Callable[[], None]] = []  # what finalizers have left to be done
        self._broken: JMSError | None = None  # a write failed, for this reason: nothing more is written
        self._stopped = False
        self._pause = threading.Lock()
        self._pause.acquire()
        self.callbacks = CallbackThread(f"jmsish callbacks {transport.peer}")
        self._standby = threading.Thread(target=self._stand_by, name=f"jmsish standby {transport.peer}", daemon=True)

    def start(self) -> None:
        """Begin to read in the background.  `ResourceAllocationError` where the system has no thread for that."""
        living.add(self)
        try:
            self._standby.start()
        except RuntimeError as error:  # the system has none left
            self.stop()
            raise ResourceAllocationError(f"no thread for the connection to {self.transport.peer}: {error}") from error

    # -- what applications do --------------------------------------------------------------------------------------

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Run `function` as the owner of the core; what it has to say leaves when somebody flushes."""
        try:
            return self.step(function, *args)
        finally:
            with self.lock:
                self._wake()

    def step(self, function: Callable[..., T], *args: Any) -> T:
        """As `call`, for what makes nobody's future come true."""
        with self.lock:
            self.core.now = self.time()
            try:
                return function(*args)
            except Exception:
                raise
            except BaseException:
                self._interrupted()
                raise

    def run(self, steps: Steps[T], wait: Wait | None = None) -> T:
        """Run a procedure to its end in this thread."""
        wait = wait or self.wait
        result: Any = None
        error: BaseException | None = None
        while True:
            with self.lock:
                try:
                    self.core.now = self.time()
                    future, deadline = steps.throw(error) if error is not None else steps.send(result)
                except StopIteration as stop:
                    break_with = stop.value
                    break
                except BaseException as raised:
                    if raised is not error and not isinstance(raised, Exception):
                        self._interrupted()
                    self._after_failure()
                    raise
                finally:
                    self._wake()
            try:
                result, error = wait(future, deadline), None
            except BaseException as raised:
                error = raised
        self.flush()
        return break_with  # type: ignore[no-any-return]

    def _after_failure(self) -> None:
        """What a failed procedure still had to say is left to the standby reader, which must not sleep over it."""
        self._rouse()
        self._last_read = 0.0

    def _interrupted(self) -> None:
        """The program was interrupted (Ctrl-C) amid a step of the core, whose other half is not done.  Lock held."""
        self.core.fail(ConnectionLostError("the program was interrupted amid a step", scope="connection"))
        self._wake()

    def wait(self, future: Future[T], deadline: float | None) -> T:
        """The future's result.  Raises `OperationTimeoutError` when `deadline` passes first."""
        self.flush(deadline)
        try:
            while not future.done():
                now = self.time()
                until = deadline if self._stepped is None else self._by(deadline)
                if until is not None and now >= until:
                    raise OperationTimeoutError("no answer from the broker within the time allowed")
                if self._reader or (self.core.offline and self._is_away()):
                    self._wait_for_reader(future, until, now)
                elif self._read(until, now, future) == b"" and not (
                    future.done() or (self.core.offline and self._is_away())
                ):
                    # Nothing comes any more; the core, if it was interrupted amid its failure, may not have said so.
                    text = f"connection to {self.transport.peer} has ended"
                    raise self.core.failure or ConnectionLostError(text, scope="connection")
        finally:
            self._waits += 1
            if not self._reader and (self._waiters or self._napping):
                try:
                    self._pass_on()
                except BaseException:
                    self._pass_on()
                    raise
        return future.result()

    def _pass_on(self) -> None:
        """Wake one of those who wait, to read on; the standby reader where there is none.

        Called without the lock, after our own reading has ended: who found us reading is among the waiters by now.
        """
        for signal in list(self._waiters):
            release(signal)
            return
        if self._napping:
            self._rouse()

    def _wait_for_reader(self, future: Future[Any], deadline: float | None, now: float) -> None:
        """Sleep until the reader woke us: our future is done, or it is our turn to read."""
        signal = threading.Lock()
        signal.acquire()
        try:
            with self.lock:
                if not (self._reader or (self.core.offline and self._is_away())) or future.done():
                    return
                self._waiters[signal] = future
            signal.acquire(timeout=-1 if deadline is None else max(deadline - now, 0))
        finally:
            self._waiters.pop(signal, None)

    def _read(self, deadline: float | None, now: float, future: Future[Any] | None = None) -> bytes | None:
        """Read once, for whoever waits for `future`, and feed the core; nothing if somebody else reads by now.

        What ends a read is spelled out here, because an interrupt may come at the entry of every function.
        """
        me = get_ident()
        data: bytes | None = None
        transport = self.transport
        try:
            with self.lock:
                if self._reader or (future is not None and future.done()) or (self.core.offline and self._is_away()):
                    return None
                self._reader = me
                self._read_for = future
                transport = self.transport
                left = self._time_left(deadline, now)
            if left > 0:
                try:
                    self.flush(deadline, listening=True)
                except OperationTimeoutError:
                    pass  # whoever waits looks at the time
            data = self._recv(transport, 0 if self.core.offline and self._is_away() else left)
        finally:
            try:
                with self.lock:
                    if self._reader == me:
                        self._read_for = None
                        if transport is self.transport:
                            self._feed(data)
                        self._reader = 0
            except BaseException as raised:
                with self.lock:
                    if self._reader == me:
                        self._reader = 0
                        if data is not None or self.transport.taken:
                            self._spoiled(raised)
                raise
        return data

    def _time_left(self, deadline: float | None, now: float) -> float:
        """How long to read; lets the core look at the clock when it is time to.  Lock held."""
        if now >= self._tick_at:
            self._do_what_was_left()
            due = self.core.tick(now)
            self._tick_at = now + TICK if due is None else min(due, now + TICK)
        return max((self._tick_at if deadline is None else min(self._tick_at, deadline)) - now, 0)

    def _spoiled(self, raised: BaseException) -> None:
        """A fault of ours, or an interrupt, came while the core took in what was read: nothing can follow it."""
        text = f"what the broker said could not be taken in: {raised!r}"
        self.core.fail(ConnectionLostError(text, scope="connection"))
        self._wake()

    def _recv(self, transport: Transport, timeout: float) -> bytes | None:
        """What was read; None when nothing came, empty at the end, which a failed write is too."""
        try:
            if self._broken is None:
                return transport.recv(timeout) if timeout > 0 else transport.recv_nowait()
        except TimeoutError:
            if self._broken is None:
                return None
        except LayerLost as lost:
            self._broken = ConnectionLostError(str(lost), scope="connection")
            return b""
        except (ConnectionLostError, OSError):
            return b""
        try:
            return transport.recv_nowait() or b""
        except LayerLost as lost:
            self._broken = ConnectionLostError(str(lost), scope="connection")  # why no write could succeed
            return b""
        except (ConnectionLostError, OSError):
            return b""

    def _feed(self, data: bytes | None) -> None:
        """Give the core what was read (None: nothing came; empty: the end) and wake those it concerns.  Lock held."""
        core = self.core
        core.now = self.time()
        if get_ident() != self._standby.ident:  # who reads on at once, without a rest
            self._last_read = core.now
        if data:
            core.receive(data)
        elif data is None:
            if self.transport.taken:
                self._interrupted()  # with octets in the hand, which are lost now
        else:
            if self._broken is not None:
                core.lose(self._broken)
            core.receive_eof()
        if core.offline:
            self._rouse()
        self._wake()
        if core.calls:
            self.callbacks.take(core.calls)

    def _wake(self) -> None:
        """Wake the threads whose futures are done, the one that reads included.  Lock held."""
        if self._waiters:
            for signal, future in list(self._waiters.items()):
                if future.done():
                    release(signal)
        if self._read_for is not None and self._read_for.done():
            self.transport.interrupt()

    # -- writing ---------------------------------------------------------------------------------------------------

    def flush(self, deadline: float | None = None, listening: bool = False) -> None:
        """Write what the core has to say, unless another thread is writing: that one then writes ours too.

        ``listening`` is for a thread that is to read, and so does not wait to write while there is something to read:
        the peer may take nothing until it is rid of that.

        Raises `OperationTimeoutError` when the peer has not taken all of it at the deadline; who writes next goes on.
        """
        lock, core, transport = self.lock, self.core, self.transport
        mine = False
        try:
            while True:
                with lock:
                    if self._sending and not mine:
                        if core.calls:
                            self.callbacks.take(core.calls)
                        return
                    self._sending = mine = True
                    transport = self.transport
                    data = core.take_output()
                    if core.calls:
                        self.callbacks.take(core.calls)
                    if not (data or self._blocked):
                        self._sending = mine = False
                        return
                transport.send(data, self._real(deadline), listening)
                if transport is not self.transport:
                    mine = False
                    continue
                self._blocked = False
                self._last_flush = self.time()
        except SendBlocked as blocked:
            if transport is self.transport:
                self._blocked = True
                self._sending = False
            if isinstance(blocked, InputFirst):
                return
            raise OperationTimeoutError(f"{self.transport.peer} takes no more octets: not all is written") from None
        except BaseException as error:
            if not mine:
                raise
            if transport is self.transport:
                self._lost(error)
            if not isinstance(error, (JMSError, OSError)):
                raise

    def _lost(self, error: BaseException) -> None:
        """A write failed, or was interrupted: how much of it has left is not known, so nothing can follow it.

        The reason may still be there to read (a close frame), else it is this failure.
        """
        if isinstance(error, JMSError):
            self._broken = error
        else:
            text = f"connection to {self.transport.peer} lost while writing: {str(error) or type(error).__name__}"
            self._broken = ConnectionLostError(text, scope="connection")
        # `_sending` stays true: nobody writes any more.  Whoever reads, or else we, reads to the end.
        while self.core.failure is None and not self.core.offline and not self._reader:
            self.poll()
        if self._reader != get_ident():
            self.transport.interrupt()

    def nudge(self, deadline: float | None = None) -> None:
        """Something was said that nobody waits for: write it now, or soon if we write often anyway."""
        if self.time() - self._last_flush > COALESCE_SECONDS or self.core.output_size >= COALESCE_OCTETS:
            self.flush(deadline)
            self.poll()
        else:
            self._rouse()

    def linger(self, deadline: float | None = None) -> None:
        """Something was said that can wait for what follows (a commit): write it when it fills a packet.

        So the broker works on the first part of a transaction while the application makes the rest.  The standby reader
        writes what is left at the latest.
        """
        if self.core.output_size >= self._packet:
            self.flush(deadline)
        else:
            self._rouse()

    def refresh(self) -> None:
        """Before a message is handed over: hear what the wire says, so that no loss goes unnoticed for long."""
        if self.time() - self._last_read > COALESCE_SECONDS:
            self.poll()

    def poll(self) -> None:
        """Take in what has arrived, without waiting."""
        if self._reader:
            return
        now = self.time()
        try:
            data = self._read(now, now)
        finally:
            if not self._reader and (self._waiters or self._napping):
                self._pass_on()
        if data:
            self.flush()

    def time_passed(self) -> None:
        """Whoever waits looks at the time, and so does the core."""
        with self.lock:
            self._take_over()
            self._tick_at = 0.0
            for signal in list(self._waiters):
                release(signal)
            if self._reader:
                self.transport.interrupt()
        self.poll()
        with suppress(JMSError):
            self.flush(self.time())

    # -- user code -------------------------------------------------------------------------------------------------

    def finish_callbacks(self, timeout: float | None) -> None:
        """Wait until the callbacks for what has happened so far have returned."""
        with self.lock:
            if self.core.calls:
                self.callbacks.take(self.core.calls)
        self.callbacks.finish(timeout)

    def cut(self) -> None:
        """Break the wire without a word to the peer, as a failing network would."""
        self.transport.close()

    def abandon(self) -> bool:
        """Nobody can use the connection any more: have the standby reader end it; whether it was still open.

        Called by a finalizer, in the middle of anything in any thread: takes no lock, and waits for nothing.
        """
        if self._stopped or self.core.failure is not None:
            return False
        self._stopped = True
        self.callbacks.end()
        release(self._pause)
        self.transport.interrupt()
        return True

    def disown(self) -> None:
        """After a fork, in the child: the connection is the parent's, and so are the threads that held the lock."""
        self.lock = threading.Lock()
        self._stopped = True
        self._waiters.clear()
        self._reader = 0
        self._sending = True  # nothing is written any more
        self.core.exception_listener = None
        if self.core.failure is None:
            text = f"the connection to {self.transport.peer} belongs to the process that made it, not to its child"
            with suppress(Exception):  # a thread that is not here may have left the core in the middle of a step
                self.core.fail(ConnectionLostError(text, scope="connection"))
        self.core.calls.clear()
        self.transport.close()

    def leave(self, function: Callable[[], None]) -> None:
        """Have `function`, which waits for nothing, called by an owner of the core: now, if nobody owns it.

        For what a finalizer has to say, which is called in the middle of anything, under our lock too.
        """
        self._left.append(function)
        self._tick_at = 0.0
        if self.lock.acquire(False):
            try:
                self._do_what_was_left()
            finally:
                self.lock.release()
        self._rouse()

    def _do_what_was_left(self) -> None:
        while self._left:
            self.core.now = self.time()
            self._left.pop(0)()
            self._wake()

    def stop(self) -> None:
        """Close the transport and end the threads.  Silent when it was done before."""
        with self.lock:
            if self._stopped:
                return
            self._stopped = True
        self._unfollow()
        self.transport.close()
        release(self._pause)
        self.callbacks.end()
        if self._standby.is_alive() and threading.current_thread() is not self._standby:
            self._standby.join(timeout=1.0)
