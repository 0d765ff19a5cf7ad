"""The four ways to run a scenario: {blocking, asyncio} x {in memory, TCP}, behind one set of names.

A scenario is a coroutine function that gets a `Face`. With asyncio it uses the objects of `jmsish.aio`; on the blocking
face it gets the objects of `jmsish`, dressed so that their waiting calls can be awaited (see `blocking`).
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import itertools
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Protocol, TypeVar, cast

import jmsish
from jmsish import aio
from tests.relay import Relay

from .blocking import PATIENCE, Blocking, Running, inline
from .cut import cut_in_memory
from .log import Log, LoopLog

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

AT_ONCE = 50
"""Round trips to the broker within which comes what does not wait for time to pass."""

MOMENT = 0.005

HUNG = 100
"""Seconds after which a scenario is given up, with the stacks of all threads: many times what any takes, and less than
what pytest is told to wait for a test."""


class Task(Awaitable[T_co], Protocol[T_co]):
    def done(self) -> bool: ...


class Face(ABC):
    """What a scenario may do besides using JMS: start its broker, connect, run two things at once, look into
    queues, cut."""

    def __init__(self, wire: str, look: Callable[[Face, str], Sight] | None = None) -> None:
        self.wire = wire
        self.look = look or Sight
        self.connections: list[aio.Connection] = []
        self._broker: jmsish.EmbeddedBroker | None = None
        self._listener: Any = None
        self._cut: list[aio.Connection] = []
        self._proxies: list[tuple[aio.Connection, Relay]] = []
        self.relays: list[Relay] = []
        """What else is closed when the scenario has ended."""
        self._sights: dict[str, Sight] = {}
        self._watcher: aio.Connection | None = None

    # -- differs between the faces

    @abstractmethod
    async def _connect(self, url: str, options: dict[str, Any]) -> aio.Connection: ...

    @abstractmethod
    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        """Runs a scenario from its first line to the end of its broker."""

    @abstractmethod
    def log(self) -> Log: ...

    @abstractmethod
    async def spawn(self, work: Coroutine[Any, Any, T], name: str = "second") -> Task[T]:
        """Starts something beside the scenario: in a thread or in a task of that name."""

    @abstractmethod
    async def yield_(self) -> None:
        """Lets others run, if they need that."""

    @abstractmethod
    async def pause(self) -> None:
        """Leaves the processor to others for a moment."""

    @abstractmethod
    def here(self) -> str:
        """The name of the thread or task that runs."""

    # -- the broker

    def broker_with(self, **settings: Any) -> jmsish.EmbeddedBroker:
        """Starts the broker of this scenario; without this call it is started with defaults by whoever needs it
        first."""
        assert self._broker is None, "the broker runs already"
        self._broker = jmsish.EmbeddedBroker(**settings)
        self._broker.start()
        return self._broker

    @property
    def broker(self) -> jmsish.EmbeddedBroker:
        return self._broker or self.broker_with()

    @property
    def url(self) -> str:
        if self.wire == "vm":
            return self.broker.url
        return str(self.listener.url)

    @property
    def listener(self) -> Any:
        self._listener = self._listener or self.broker.listen()
        return self._listener

    def sight(self, queue: str) -> Sight:
        """The broker's view of a queue, with the waiting that a test needs."""
        return self._sights.setdefault(queue, self.look(self, queue))

    # -- connections

    async def connect(self, url: str | None = None, *, cuttable: bool = False, **options: Any) -> aio.Connection:
        proxy = Relay((self.listener.host, self.listener.port)) if cuttable and self.wire == "tcp" else None
        connection = await self._connect(proxy.url if proxy else url or self.url, options)
        self.connections.append(connection)
        if proxy:
            self._proxies.append((connection, proxy))
        return connection

    def cut(self, connection: aio.Connection) -> None:
        """The wire of a connection breaks."""
        if connection in self.connections:
            self.connections.remove(connection)
        self._cut.append(connection)
        for owner, proxy in self._proxies:
            if owner is connection:
                proxy.close()
                return
        assert self.wire == "vm", "only a connection made with cuttable=True can be cut"
        cut_in_memory(connection.raw if isinstance(connection, Blocking) else connection)

    async def barrier(self) -> None:
        """After it the broker has done all that the scenario's connections said before, and they have seen its
        answers."""
        for connection in self.connections:
            if not connection.is_closed:
                await self.round_trip(connection)
                await self.yield_()

    async def round_trip(self, connection: aio.Connection) -> None:
        """A question to the broker, and its answer."""
        await round_trip(connection)

    async def turns(self, count: int) -> None:
        """Round trips on a connection that the scenario does not use: time passes, in events.

        By the scenario's own wire: a loop that never sleeps keeps the interpreter from the broker's I/O thread, for
        seconds (a thread that waits for the interpreter asks for it only after 5 ms in which nobody let it go, and a
        loop lets it go for a microsecond every turn).
        """
        if self._watcher is None:
            self._watcher = await self._connect(self.url, {})
        for _ in range(count):
            await self.round_trip(self._watcher)
            await self.yield_()

    async def eventually(self, condition: Callable[[], bool], what: Callable[[], str]) -> None:
        """Waits, by round trips to the broker, until a condition about the broker holds.

        What has not come by so many takes a time of its own (acknowledgements in DUPS_OK: a second), in which the
        round trips are fewer.
        """
        deadline = time.monotonic() + PATIENCE
        for turn in itertools.count():
            if condition():
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"never came: {what()}")
            if turn > AT_ONCE:
                await self.pause()
            await self.turns(1)

    async def comes_to_wait(self, *consumers: aio.MessageConsumer) -> None:
        """Waits until somebody waits for a message of each of these consumers.

        What was spawned has begun, and that is all that is known of it: a thread may not have run yet, and a task may
        give the loop some turns before it waits.
        """
        for consumer in consumers:
            core = getattr(consumer, "_consumer", consumer)._core  # that of a context is one around another
            await self.eventually(lambda core=core: core.waiter is not None, lambda: "nobody waits for a message")

    # -- the end

    async def _whole(self, scenario: Coroutine[Any, Any, None]) -> None:
        try:
            await scenario
            for connection in self.connections + self._cut:
                await connection.close()
            for sight in self._sights.values():
                await sight.frees_all()
            if self._watcher is not None:
                await self._watcher.close()
            for _ in range(3):
                await self.yield_()  # the loop closes its sockets a turn later, and the broker waits for that
        finally:
            for relay in [*self.relays, *(proxy for _, proxy in self._proxies)]:
                relay.close()
            if self._broker is not None:
                self._broker.stop()


class SyncFace(Face):
    async def _connect(self, url: str, options: dict[str, Any]) -> aio.Connection:
        return cast("aio.Connection", Blocking(jmsish.connect(url, **options)))

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        with given_up_when_hung():
            inline(self._whole(scenario))

    def log(self) -> Log:
        return Log()

    async def spawn(self, work: Coroutine[Any, Any, T], name: str = "second") -> Task[T]:
        return Running(work, name)

    async def yield_(self) -> None:
        """Threads run by themselves."""

    async def pause(self) -> None:
        threading.Event().wait(MOMENT)

    def here(self) -> str:
        return threading.current_thread().name


class AioFace(Face):
    async def _connect(self, url: str, options: dict[str, Any]) -> aio.Connection:
        return await aio.connect(url, **options)

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        with given_up_when_hung():
            asyncio.run(self._whole(scenario))

    def log(self) -> Log:
        return LoopLog()

    async def spawn(self, work: Coroutine[Any, Any, T], name: str = "second") -> Task[T]:
        task = asyncio.create_task(work, name=name)
        await self.yield_()
        return task

    async def yield_(self) -> None:
        """One turn of the loop: whoever is ready now has run to its next wait."""
        await asyncio.sleep(0)

    async def pause(self) -> None:
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=MOMENT)

    def here(self) -> str:
        task = asyncio.current_task()
        assert task is not None
        return task.get_name()


FACES: dict[str, tuple[type[Face], str]] = {
    "sync-vm": (SyncFace, "vm"),
    "sync-tcp": (SyncFace, "tcp"),
    "aio-vm": (AioFace, "vm"),
    "aio-tcp": (AioFace, "tcp"),
}


class Sight:
    """One queue as the broker sees it. Q in the scenarios is `depth`: ready and acquired."""

    def __init__(self, face: Face, name: str) -> None:
        self.face = face
        self.name = name

    def __repr__(self) -> str:
        return f"{self.name}: depth {self.depth}, acquired {self.acquired}"

    def _view(self) -> Any:
        with contextlib.suppress(jmsish.InvalidDestinationError):
            return self.face.broker.queue(self.name)
        return None

    @property
    def depth(self) -> int:
        view = self._view()
        return view.depth if view else 0

    @property
    def acquired(self) -> int:
        view = self._view()
        return view.acquired if view else 0

    @property
    def bodies(self) -> list[Any]:
        """All that the queue owns, in queue order."""
        view = self._view()
        return [message.body for message in view.messages(acquired=True)] if view else []

    async def holds(self, depth: int, *, acquired: int | None = None) -> None:
        """Now: after the broker has done everything that was said to it, and nothing more."""
        await self.face.barrier()
        assert self.depth == depth, f"expected depth {depth}, {self!r}"
        if acquired is not None:
            assert self.acquired == acquired, f"expected {acquired} acquired, {self!r}"

    async def comes_to(self, depth: int, *, acquired: int | None = None) -> None:
        """In the end: acknowledgements in AUTO and DUPS_OK may be late (D16), and so is what the broker does
        after a cut."""
        await self.face.eventually(
            lambda: self.depth == depth and acquired in (None, self.acquired),
            lambda: f"depth {depth}, acquired {acquired}; {self!r}",
        )

    async def prefetched(self, count: int) -> None:
        """Waits until this many messages are acquired, and at their clients."""
        await self.face.eventually(lambda: self.acquired == count, lambda: f"{count} prefetched; {self!r}")
        await self.face.barrier()

    async def frees_all(self) -> None:
        await self.face.eventually(lambda: self.acquired == 0, lambda: f"nothing stuck as acquired; {self!r}")


async def round_trip(connection: aio.Connection) -> None:
    session = await connection.create_session()
    await session.close()


@contextlib.contextmanager
def given_up_when_hung() -> Iterator[None]:
    """Fails the scenario, with all stacks, when it hangs."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(*_: object) -> None:
        faulthandler.dump_traceback(file=sys.__stderr__ or sys.stderr, all_threads=True)
        raise AssertionError(f"the scenario hung for {HUNG} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, HUNG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
