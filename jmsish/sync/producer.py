"""Producers that block."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jmsish._facade import CompletionListener, Duration, ProducerFace, forbid_in_completion
from jmsish._streams import Parts, message_size, pieces_of, size_of_stream
from jmsish.client.producer import ClientProducer, rejection
from jmsish.client.sending import StreamedSend
from jmsish.destination import Destination
from jmsish.errors import JMSError, OperationTimeoutError
from jmsish.modes import DeliveryMode
from jmsish.sync.closing import Closing

if TYPE_CHECKING:
    from jmsish.sync.session import Session


class MessageProducer(ProducerFace, Closing):
    """Sends messages to a destination, or, without one, to any."""

    def __init__(self, session: Session, core: ClientProducer) -> None:
        super().__init__(core)
        self._session = session
        self._limited = core.session.connection.options.send_timeout is not None

    def send(
        self,
        message_or_body: Any = ...,
        *,
        destination: Destination | None = None,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: Duration | None = None,
        delivery_delay: Duration | None = None,
        properties: Mapping[str, Any] | None = None,
        on_completion: CompletionListener | None = None,
        stream: Any = None,
    ) -> None:
        """Send a message, or a body: str, bytes, dict, list or tuple, or None; with `stream`, a body piece by piece.

        A persistent message outside a transaction is sent when this returns: the broker has it.  With `on_completion`
        the call returns at once, and `on_completion(message, error_or_None)` is called in another thread when the
        broker has answered.  Durations are seconds.  `stream` is a file open for reading in binary mode, or an iterable
        of bytes; it is read as fast as the broker takes it, and becomes the body of a `BytesMessage`: of the one that
        is given beside it, for its headers and properties, or of a new one.  Raises `SendRejectedError` when the broker
        does not take the message, `OperationTimeoutError` after `send_timeout`, `ConnectionLostError` when the
        connection fails (both with `outcome_unknown` where the broker may have the message), and whatever the stream
        raises, with nothing sent (JMS 3.1, 7.2 and 7.3).  A message of more than `max_message_size` octets raises
        `SendRejectedError` at once, with both sizes; a stream whose size is not known does when it has given more.
        """
        session = self._session
        with session._exclusive:
            core, driver = self._core, session._driver
            core.check()
            target = core.destination
            if target is None or destination is not None:
                target = self._choose_destination(destination)
            wanted = (delivery_mode, priority, time_to_live, delivery_delay, properties)
            if not core.relayed:
                core = driver.run(core.target_for(target))
            if stream is not None:
                return self._send_stream(core, stream, message_or_body, target, wanted, on_completion)
            message, payload, mode = self._make(message_or_body, target, wanted, on_completion is not None)
            context = None
            if on_completion is not None or (mode is DeliveryMode.PERSISTENT and session._core.controller is None):
                context = self._context(message, mode, on_completion)
            posted = driver.step(core.post, payload, context)
            if not posted:
                driver.run(core.send(payload, context))
            if isinstance(context, Future):
                self._await_outcome(context)
            elif posted and not self._limited:
                session._follow_up()
            elif posted:
                self._follow_up(on_completion is not None)

    def _await_outcome(self, outcome: Future[Any]) -> None:
        """Wait until the broker has answered; raises what the answer means."""
        driver, connection = self._session._driver, self._core.session.connection
        try:
            refused = rejection(driver.wait(outcome, connection.send_deadline()))
        except BaseException as gone:
            driver.call(connection.give_up, outcome)
            if isinstance(gone, OperationTimeoutError):
                gone.outcome_unknown = True
            raise
        if refused is not None:
            raise refused

    def _follow_up(self, completes: bool) -> None:
        """As `Session._follow_up`, within `send_timeout`: the peer may not take what is written."""
        driver = self._session._driver
        deadline = self._core.session.connection.send_deadline()
        write = driver.nudge if self._session._core.controller is None else driver.linger
        try:
            write(deadline)
        except OperationTimeoutError as late:
            if not completes:  # else its completion tells
                late.outcome_unknown = True
                raise

    def _send_stream(
        self,
        core: ClientProducer,
        stream: Any,
        given: Any,
        target: Destination,
        wanted: tuple[Any, ...],
        on_completion: CompletionListener | None,
    ) -> None:
        driver = self._session._driver
        message, head, mode = self._make_head(given, target, wanted)
        context = self._context(message, mode, on_completion)
        sending = StreamedSend(core, context)
        size = size_of_stream(stream)
        if not driver.run(sending.begin(message_size(head, size))):
            return
        try:
            parts = Parts(head, size, sending.room)
            for piece in pieces_of(stream, parts.piece):
                full = parts.add(piece)
                sending.check_size(parts.octets)
                for part in full:
                    self._put(sending, part, last=False)
            self._put(sending, parts.end(), last=True)
        except BaseException:
            driver.call(sending.abort)
            with suppress(JMSError):
                driver.flush(driver.time())
            raise
        if isinstance(context, Future):
            self._await_outcome(context)

    def _put(self, sending: StreamedSend, part: bytes, last: bool) -> None:
        """Write a part: as long as session and socket do not take it, nothing more is read from the stream."""
        driver = self._session._driver
        if not driver.step(sending.put, part, last):
            driver.run(sending.wait())
        driver.flush(self._core.session.connection.send_deadline())

    def close(self) -> None:
        """Close the producer, once the outcome of everything it sent is known.  Twice is silent."""
        driver = self._session._driver
        forbid_in_completion(driver.callbacks.calling, "closing a producer", self._session._core)
        driver.run(self._core.close())
        driver.finish_callbacks(self._session._core.connection.options.close_timeout)
