"""Producers that block."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsish._facade import CompletionListener, Duration, ProducerFace, forbid_in_completion
from jmsish.client.producer import ClientProducer, Completion, rejection
from jmsish.destination import Destination
from jmsish.modes import DeliveryMode
from jmsish.sync.closing import Closing

if TYPE_CHECKING:
    from jmsish.sync.session import Session


class MessageProducer(ProducerFace, Closing):
    """Sends messages to a destination, or, without one, to any."""

    def __init__(self, session: Session, core: ClientProducer) -> None:
        super().__init__(core)
        self._session = session

    def send(
        self,
        message_or_body: Any,
        *,
        destination: Destination | None = None,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: Duration | None = None,
        delivery_delay: Duration | None = None,
        properties: Mapping[str, Any] | None = None,
        on_completion: CompletionListener | None = None,
    ) -> None:
        """Send a message, or a body: str, bytes, dict, list or tuple, or None.

        A persistent message outside a transaction is sent when this returns: the broker has it.  With `on_completion`
        the call returns at once, and `on_completion(message, error_or_None)` is called in another thread when the
        broker has answered.  Durations are seconds.  Raises `SendRejectedError` when the broker does not take the
        message, `OperationTimeoutError` after `send_timeout`, `ConnectionLostError` (with `outcome_unknown`) when the
        connection fails (JMS 3.1, 7.2 and 7.3).
        """
        session = self._session
        with session._exclusive:
            core, driver = self._core, session._driver
            core.check()
            target = self._choose_destination(destination)
            wanted = (delivery_mode, priority, time_to_live, delivery_delay, properties)
            message, payload, mode = self._make(message_or_body, target, wanted, on_completion is not None)
            if core.destination is None:
                core = driver.run(core.target_for(target))
            context: Future[Any] | Completion | None = None
            if on_completion is not None and message is not None:
                context = Completion(on_completion, message)
            elif mode is DeliveryMode.PERSISTENT and session._core.controller is None:
                context = Future()
            posted = driver.step(core.post, payload, context)
            if not posted:
                driver.run(core.send(payload, context))
            if isinstance(context, Future):
                refused = rejection(driver.wait(context, core.session.connection.send_deadline()))
                if refused is not None:
                    raise refused
            elif posted:
                session._follow_up()

    def close(self) -> None:
        """Close the producer, once the outcome of everything it sent is known.  Twice is silent."""
        driver = self._session._driver
        forbid_in_completion(driver.callbacks.calling, "closing a producer")
        driver.run(self._core.close())
        driver.finish_callbacks(self._session._core.connection.options.close_timeout)
