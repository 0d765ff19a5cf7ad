"""The thread that calls a session's listeners, one message after the other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsish._facade import PATIENCE, back_off
from jmsish.client.consumer import ClientConsumer
from jmsish.drivers.telling import tell_fault
from jmsish.engine.delivery import Delivery
from jmsish.errors import IllegalStateError, JMSError
from jmsish.message import Message

if TYPE_CHECKING:
    from jmsish.sync.session import Session

log = logging.getLogger("jmsish.client")


class ListenerThread:
    """Hands messages to the listeners of one session, in the order in which they arrived."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._busy = threading.Lock()
        self.consumer: ClientConsumer | None = None
        """Whose listener is running."""
        self._thread = threading.Thread(target=self._run, name="jmsish listeners", daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        """Whether the caller is a listener of this session."""
        return threading.current_thread() is self._thread

    @property
    def runner(self) -> int | None:
        """The thread that calls the listeners."""
        return self._thread.ident

    def wait_until_idle(self, timeout: float | None = None) -> None:
        """Wait for the listener that is running (JMS 3.1, 6.1.5: stop and close wait for it)."""
        if not self.is_current and self._thread.is_alive():  # it is not in a child made by fork
            limit = -1 if timeout is None else min(timeout, threading.TIMEOUT_MAX)
            if self._busy.acquire(timeout=limit):
                self._busy.release()

    def forbid(self, what: str) -> None:
        if self.is_current:
            raise IllegalStateError(f"{what} from a listener of its own would wait for itself")

    def _run(self) -> None:
        session = self._session
        driver, core = session._driver, session._core
        while True:
            try:
                prompt: Future[None] | None = driver.call(core.listener_prompt)
                if prompt is None:
                    return
                if not prompt.done():  # nothing to do: the session is left to others
                    driver.wait(prompt, None)
                    continue
                session._exclusive.wait(looking=True)
                with self._busy:
                    try:
                        failures = self._deliver()
                    finally:
                        session._exclusive.leave()
                pause = back_off(failures)
                if pause:
                    self._pause(pause, failures)
            except JMSError as error:
                if core.closing or core.failure is not None:
                    log.debug("the listeners of a session end: %s", error)
                    return
                log.warning("the broker was late to answer what a failed listener asked of it: %s", error)

    def _deliver(self) -> int:
        """Call one listener; how often its message has failed in a row."""
        driver, core = self._session._driver, self._session._core
        driver.refresh()
        if core.controller is not None and core.controller.accepted is None:
            driver.run(core.ready_to_consume())
        ready = driver.call(self._take)
        if ready is None:
            return 0
        consumer, delivery, listener = ready
        self._session._exclusive.is_looking = False
        try:
            listener(self._session._message(delivery))
        except BaseException:
            tell_fault(log, "a listener of %s failed", consumer.destination)
            return driver.run(core.listener_failed())
        finally:
            self.consumer = None
        driver.call(core.ledger.listener_returned)
        driver.nudge()
        return 0

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

    def _pause(self, seconds: float, failures: int) -> None:
        """Wait before the next try, or until the session closes."""
        if failures == PATIENCE + 1:
            log.warning("a message failed %d times in a row; its consumer backs off", failures)
        core, driver = self._session._core, self._session._driver
        try:
            driver.wait(core.ending, core.connection.now + seconds)
        except JMSError:
            return
