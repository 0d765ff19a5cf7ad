"""The task that calls a session's listeners, one message after the other."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsish._facade import PATIENCE, back_off
from jmsish.aio.exclusive import INSIDE
from jmsish.client.consumer import ClientConsumer
from jmsish.drivers.callback_task import is_cancelled
from jmsish.drivers.telling import tell_fault
from jmsish.engine.delivery import Delivery
from jmsish.errors import IllegalStateError, JMSError
from jmsish.message import Message

if TYPE_CHECKING:
    from jmsish.aio.session import Session

log = logging.getLogger("jmsish.client")


class ListenerTask:
    """Hands messages to the listeners of one session, in the order in which they arrived."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._busy = asyncio.Lock()
        self.consumer: ClientConsumer | None = None
        """Whose listener is running."""
        self._task = session._driver.loop.create_task(self._run(), name="jmsish listeners")

    @property
    def is_current(self) -> bool:
        """Whether the caller is a listener of this session."""
        return asyncio.current_task() is self._task

    @property
    def is_inside(self) -> bool:
        """Whether the caller is a listener of this session, or a task that one has begun and that works for it."""
        inside = INSIDE.get()
        return self.is_current or (inside is not None and inside is self._session._exclusive.lent)

    @property
    def runner(self) -> asyncio.Task[None]:
        """The task that calls the listeners."""
        return self._task

    async def wait_until_idle(self, timeout: float | None = None) -> None:
        """Wait for the listener that is running (JMS 3.1, 6.1.5: stop and close wait for it)."""
        if not self.is_current:
            try:
                await asyncio.wait_for(self._busy.acquire(), timeout)
            except asyncio.TimeoutError:
                return
            self._busy.release()

    def forbid(self, what: str) -> None:
        if self.is_current:
            raise IllegalStateError(f"{what} from a listener of its own would wait for itself")

    async def _run(self) -> None:
        session = self._session
        driver, core = session._driver, session._core
        while True:
            try:
                prompt: Future[None] | None = driver.call(core.listener_prompt)
                if prompt is None:
                    return
                if not prompt.done():  # nothing to do: the session is left to others
                    await driver.wait(prompt, None)
                    continue
                await session._exclusive.wait(looking=True)
                try:
                    async with self._busy:
                        failures = await self._deliver()
                finally:
                    session._exclusive.leave()
                pause = back_off(failures)
                if pause:
                    await self._pause(pause, failures)
            except JMSError as error:
                if core.closing or core.failure is not None:
                    log.debug("the listeners of a session end: %s", error)
                    return
                log.warning("the broker was late to answer what a failed listener asked of it: %s", error)

    async def _deliver(self) -> int:
        """Call one listener; how often its message has failed in a row."""
        driver, core = self._session._driver, self._session._core
        await driver.refresh()
        if core.controller is not None and core.controller.accepted is None:
            await driver.run(core.ready_to_consume())
        ready = driver.call(self._take)
        if ready is None:
            return 0
        consumer, delivery, listener = ready
        self._session._exclusive.end_look()
        try:
            await self._call(listener, self._session._message(delivery))
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            tell_fault(log, "a listener of %s awaited what was cancelled", consumer.destination)
            return await driver.run(core.listener_failed())
        except Exception:
            tell_fault(log, "a listener of %s failed", consumer.destination)
            return await driver.run(core.listener_failed())
        finally:
            self.consumer = None
        driver.call(core.ledger.listener_returned)
        driver.nudge()
        return 0

    async def _call(self, listener: Callable[[Message], Any], message: Message) -> None:
        """Call a listener; what it begins meanwhile may use the session as it does."""
        exclusive = self._session._exclusive
        exclusive.lent = object()
        begun = INSIDE.set(exclusive.lent)
        try:
            result = listener(message)
            if inspect.isawaitable(result):
                await result
        finally:
            exclusive.lent = None
            INSIDE.reset(begun)

    def _take(self) -> tuple[ClientConsumer, Delivery, Callable[[Message], Any]] | None:
        """The next message and the listener it is for, chosen in one step: whoever closes the consumer, or takes its
        listener away, either comes before it or waits for it."""
        ready = self._session._core.next_for_listener()
        if ready is None:
            return None
        self.consumer = ready[0]
        listener = self._session._faces[self.consumer]._listener
        assert listener is not None
        return (*ready, listener)

    async def _pause(self, seconds: float, failures: int) -> None:
        """Wait before the next try, or until the session closes."""
        if failures == PATIENCE + 1:
            log.warning("a message failed %d times in a row; its consumer backs off", failures)
        core, driver = self._session._core, self._session._driver
        try:
            await driver.wait(core.ending, core.connection.now + seconds)
        except JMSError:
            return
