"""Producers for asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsish._facade import CompletionListener, Duration, ProducerFace, forbid_in_completion
from jmsish._streams import Parts, message_size, size_of_stream
from jmsish.aio.closing import Closing
from jmsish.aio.streams import awaited_pieces
from jmsish.client.producer import ClientProducer, rejection
from jmsish.client.sending import StreamedSend
from jmsish.destination import Destination
from jmsish.errors import OperationTimeoutError
from jmsish.modes import DeliveryMode

if TYPE_CHECKING:
    from jmsish.aio.session import Session


class MessageProducer(ProducerFace, Closing):
    """Sends messages to a destination, or, without one, to any."""

    def __init__(self, session: Session, core: ClientProducer) -> None:
        super().__init__(core)
        self._session = session

    async def send(
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
        if session._exclusive.is_looking:
            await session._exclusive.looked()
        with session._exclusive:
            core, driver = self._core, session._driver
            core.check()
            target = core.destination if destination is None else None
            target = target or self._choose_destination(destination)
            wanted = (delivery_mode, priority, time_to_live, delivery_delay, properties)
            if not core.relayed:
                core = await driver.run(core.target_for(target))
            if stream is not None:
                return await self._send_stream(core, stream, message_or_body, target, wanted, on_completion)
            message, payload, mode = self._make(message_or_body, target, wanted, on_completion is not None)
            if driver.wire is not None and driver.wire.paused:
                await self._room_for(core, payload)
            context = None
            if on_completion is not None or (mode is DeliveryMode.PERSISTENT and session._core.controller is None):
                context = self._context(message, mode, on_completion)
            driver.core.now = driver.time()
            if core.post(payload, context):
                session._follow_up()
            else:
                await driver.run(core.send(payload, context), cancellable=True)
            if isinstance(context, Future):
                await self._await_outcome(context)

    async def _room_for(self, core: ClientProducer, payload: bytes) -> None:
        """Wait until the wire takes more; not for the sake of what the broker would not take."""
        core.check_size(len(payload))
        await self._session._driver.room(core.session.connection.send_deadline())

    async def _await_outcome(self, outcome: Future[Any]) -> None:
        """Wait until the broker has answered; raises what the answer means."""
        driver, connection = self._session._driver, self._core.session.connection
        try:
            refused = rejection(await driver.wait(outcome, connection.send_deadline()))
        except BaseException as gone:
            driver.call(connection.give_up, outcome)
            if isinstance(gone, OperationTimeoutError):
                gone.outcome_unknown = True
            raise
        if refused is not None:
            raise refused

    async def _send_stream(
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
        if not await driver.run(sending.begin(message_size(head, size)), cancellable=True):
            return
        try:
            parts = Parts(head, size, sending.room)
            async for piece in awaited_pieces(stream, parts.piece):
                full = parts.add(piece)
                sending.check_size(parts.octets)
                for part in full:
                    await self._put(sending, part, last=False)
            await self._put(sending, parts.end(), last=True)
        except BaseException:
            driver.call(sending.abort)
            driver.nudge()
            raise
        if isinstance(context, Future):
            await self._await_outcome(context)

    async def _put(self, sending: StreamedSend, part: bytes, last: bool) -> None:
        """Write a part: as long as session and socket do not take it, nothing more is read from the stream."""
        driver = self._session._driver
        if not driver.call(sending.put, part, last):
            await driver.run(sending.wait(), cancellable=True)
        driver.flush()
        if driver.is_blocked:
            await driver.room(self._core.session.connection.send_deadline())

    async def close(self) -> None:
        """Close the producer, once the outcome of everything it sent is known.  Twice is silent."""
        driver = self._session._driver
        forbid_in_completion(driver.callbacks.calling, "closing a producer", self._session._core)
        await driver.run(self._core.close())
        await driver.finish_callbacks()
