"""A message that is sent piece by piece, because nobody has to hold all of it at once."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from jmsish.client.answers import Answer
from jmsish.client.procedures import Procedure
from jmsish.client.producer import ClientProducer, Completion, rejection
from jmsish.engine.conditions import EngineStateError
from jmsish.engine.streaming import OutgoingStream
from jmsish.errors import ConnectionLostError, IllegalStateError, SendRejectedError

if TYPE_CHECKING:
    from jmsish.client.transaction import TransactionController


class StreamedSend:
    """One such message. What goes wrong before its last part leaves nothing at the broker: its delivery is aborted.

    Until the last part is given, nobody but this object hears of the delivery's outcome: whoever waits, or listens, for
    the outcome of the send does so only once the message is whole (jms rule 97).
    """

    def __init__(self, producer: ClientProducer, context: Future[Any] | Completion | None) -> None:
        self._producer = producer
        self._session = producer.session
        self._context = context
        self._early: Future[Any] = Answer()
        """An outcome that the broker gives before it has all."""
        self._size = 0
        self.stream: OutgoingStream | None = None

    def begin(self, size: int | None = None) -> Procedure[bool]:
        """Wait for a transaction, and for credit; False where the transaction is lost, and what is sent with it (M99).

        Raises `OperationTimeoutError` when no credit came within `send_timeout`, and at once `SendRejectedError` when
        `size`, the octets of the message where they are known, is over the broker's limit.
        """
        producer, session = self._producer, self._session
        deadline = session.connection.send_deadline()
        while True:
            self._check()
            self.check_size(size or 0)
            controller = session.controller
            if controller is not None:
                controller.sending()
            if controller is not None and controller.broken is not None:
                producer.told(self._context)
                return False
            if controller is not None and controller.posting is None:
                yield from controller.ready(deadline)
                continue
            link = producer.link
            if link is not None and link.credit > 0 and link.remote_attached:
                self._open(controller)
                return True
            producer.credited = Answer()
            yield producer.credited, deadline

    def _open(self, controller: TransactionController | None) -> None:
        link = self._producer.link
        assert link is not None
        state = None
        if controller is not None:
            controller.sent += 1
            state = controller.posting
        settled = controller is not None
        self.stream = OutgoingStream(link, state=state, settled=settled, context=self._early)

    @property
    def room(self) -> int:
        """How many octets a part may have."""
        assert self.stream is not None
        return self.stream.room

    def check_size(self, size: int) -> None:
        """Raises `SendRejectedError` when so many octets, all that are known of the message, are over the limit."""
        self._producer.check_size(size)

    def put(self, part: bytes, last: bool) -> bool:
        """Say a part; False when `wait` has to be run before the next.

        Raises what ended the producer, `SendRejectedError` when the broker does not want the message after all.
        """
        stream = self.stream
        assert stream is not None
        self._check()
        self._check_link(stream)
        if self._early.done():
            raise rejection(self._early.result()) or SendRejectedError("the broker settled half a message")
        self._size += len(part)
        self.check_size(self._size)
        if last:
            self._hand_over(stream)
        return stream.put(part, last)

    def _hand_over(self, stream: OutgoingStream) -> None:
        """The message is whole: its outcome is for whoever sends it."""
        if self._session.controller is None:
            stream.delivery.context = self._context
            if isinstance(self._context, Completion):
                self._producer.expect(self._context)
        else:
            self._producer.told(self._context)

    def wait(self) -> Procedure[None]:
        """Wait until the part that was put has left (at most `send_timeout` seconds)."""
        stream = self.stream
        assert stream is not None
        deadline = self._session.connection.send_deadline()
        while stream.waiting:
            credited: Future[None] = Answer()
            self._producer.credited = credited
            yield credited, deadline
            self._check()
            self._check_link(stream)

    def _check_link(self, stream: OutgoingStream) -> None:
        """What has been read from the application's stream cannot be read again, so it is not sent again."""
        if stream.delivery.link is not self._producer.link:
            raise ConnectionLostError("the connection was lost in the middle of the message, which is not sent",
                                      scope="connection")  # fmt: skip

    def _check(self) -> None:
        self._producer.check()
        if self._session.closing:
            raise IllegalStateError("the session was closed in the middle of a send")

    def abort(self) -> None:
        """Give the message up; after its last part nothing is left to be given up."""
        stream, self.stream = self.stream, None
        pending = self._producer.pending
        if pending and self._context in pending and stream is not None and stream.waiting:
            pending.remove(self._context)  # type: ignore[arg-type]  # it is in it
        if stream is None or self._session.failure is not None:
            return
        try:
            stream.abort()
        except EngineStateError:
            pass  # its link is gone, and the message with it
