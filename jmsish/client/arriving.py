"""A body that is read while it arrives: between the engine's stream of octets and the application's file object.

Theory of operation.  Where the option `stream_threshold` is set, a BytesMessage of more octets is handed over as soon
as its headers are there. Its body is then read out of the engine (`ArrivingBody.take`), which in turn keeps the
session's window shut while much is unread; so neither end of a large message has to fit the memory of this process.

A session has one body that is being read. It is over when its end was read or it was closed, when the session hands
over its next message, and when the message is acknowledged, given back or lost; what still comes of it is then dropped.
In the modes in which the session acknowledges by itself that is the moment of the acknowledgement: a connection that is
lost in the middle of a body brings the message again.
"""

from __future__ import annotations

from concurrent.futures import Future
from struct import error as struct_error
from struct import unpack_from
from typing import TYPE_CHECKING, Any

from jmsish.client.answers import Answer
from jmsish.client.procedures import Procedure, settle
from jmsish.engine.codec import ReceivedMessage
from jmsish.engine.outcomes import ACCEPTED, DecodeError
from jmsish.engine.sections import FOOTER, section_at
from jmsish.engine.streaming import IncomingStream, want
from jmsish.errors import IllegalStateError, JMSError, MessageFormatError
from jmsish.message.fields import CONTENT_TYPE, DATA, MESSAGE_TYPE, OCTET_STREAM
from jmsish.modes import AcknowledgeMode

if TYPE_CHECKING:
    from jmsish.client.consumer import ClientConsumer
    from jmsish.engine.delivery import Delivery

BYTES_MESSAGE = 3
_SHORT, _LONG = 0xA0, 0xB0
"""The constructors of binary (Part 1, 1.6.19)."""
_LONGEST_HEAD = 16
"""A section of data begins with so many octets at most, as anybody writes it."""


class ArrivingMessage(ReceivedMessage):
    """What is there of a message whose body still arrives: all that stands before the body."""

    __slots__ = ("arriving",)

    def __init__(self, payload: bytes, arriving: ArrivingBody) -> None:
        super().__init__(payload)
        self.arriving = arriving

    def body_section(self) -> int:
        return DATA

    def body(self) -> tuple[int, Any]:
        raise IllegalStateError("the body of this message is still arriving: message.open() reads it")

    def body_octets(self) -> bytes:
        self.body()
        return b""

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Half a message is not pickled."""
        self.body()
        return super().__reduce__()


def begin_arrival(delivery: Delivery) -> bool:
    """Make a delivery that is partly here one that is read while it arrives, if it is a BytesMessage."""
    if delivery.complete or delivery.parts is None:
        return False
    octets = b"".join(delivery.parts)
    try:
        received = ReceivedMessage(octets)
        at = received.body_offset()
        if section_at(octets, at)[0] != DATA:
            return False
        kind = received.prefix.annotations.get(MESSAGE_TYPE)
        content = received.property(CONTENT_TYPE)
    except (DecodeError, IndexError, struct_error):
        return False  # even the headers are larger than a frame, or broken: it is looked at when it is whole
    if kind != BYTES_MESSAGE and (kind is not None or content not in (None, OCTET_STREAM)):
        return False
    delivery.parts = None
    delivery.payload = octets[:at]
    delivery.stream = IncomingStream(delivery, (octets[at:],))
    return True


def arriving_message(consumer: ClientConsumer, delivery: Delivery) -> ArrivingMessage:
    """The view of what has arrived before the body."""
    return ArrivingMessage(delivery.payload, ArrivingBody(consumer, delivery))


def begin_reading(consumer: ClientConsumer, delivery: Delivery, in_listener: bool) -> None:
    """The message is handed over: what the session was reading is over, and this is what it reads now."""
    session = consumer.session
    session.end_reading()
    reading: ArrivingBody = delivery.context._source.arriving
    by_itself = session.mode is AcknowledgeMode.AUTO or session.mode is AcknowledgeMode.DUPS_OK
    reading.acknowledges = by_itself and not in_listener and not delivery.remote_settled
    session.reading = reading


class ArrivingBody:
    """The octets of a body, in the order of their arrival."""

    def __init__(self, consumer: ClientConsumer, delivery: Delivery) -> None:
        assert delivery.stream is not None
        self.consumer = consumer
        self.delivery = delivery
        self.acknowledges = False
        """The end of the reading is the acknowledgement."""
        self.opened = False
        self._stream = delivery.stream
        self._rest = memoryview(b"")
        self._left = 0  # of the section of data that is being read
        self._ended = False
        self._over: JMSError | None = None
        self._waiter: Future[None] | None = None

    def open(self) -> None:
        """It is read once, by one reader."""
        if self.opened:
            raise IllegalStateError("the body of this message was opened before: it can be read once")
        self.opened = True

    def take(self, size: int) -> bytes | None:
        """At most `size` octets, empty at the end of the body; None when more has to arrive first.

        Raises `IllegalStateError` when the session has gone on to something else, and why the body was lost.
        """
        if self._ended:
            return b""
        if self._over is not None:
            raise self._over
        while True:
            if not self._left:
                if not self._next_section():
                    return b"" if self._ended else None
                continue
            if not self._rest:
                self._rest = memoryview(self._stream.take())
            if not self._rest:
                if self.delivery.complete:
                    raise MessageFormatError("the message ends inside its body")
                return None
            piece = bytes(self._rest[: min(size, self._left)])
            self._rest = self._rest[len(piece) :]
            self._left -= len(piece)
            return piece

    def _next_section(self) -> bool:
        """Read the beginning of the next section of data; false when the body ends, or more has to arrive."""
        head = bytes(self._rest)
        while len(head) < _LONGEST_HEAD and (more := self._stream.take()):
            head += more
        self._rest = memoryview(head)
        if not head and self.delivery.complete:
            self._end()
            return False
        try:
            code, at = section_at(head, 0)
            if code == FOOTER:
                self._end()
                return False
            if code != DATA or head[at] not in (_SHORT, _LONG):
                raise MessageFormatError(f"section {code:#x} inside a body of data")
            self._left = head[at + 1] if head[at] == _SHORT else unpack_from(">I", head, at + 1)[0]
        except (DecodeError, IndexError, struct_error):
            if self.delivery.complete or len(head) >= _LONGEST_HEAD:
                raise MessageFormatError("the message ends inside its body") from None
            return False
        self._rest = self._rest[at + (2 if head[at] == _SHORT else 5) :]
        return True

    def _end(self) -> None:
        self._ended = True
        self.leave()

    def wait(self) -> Procedure[None]:
        """Wait until more has arrived, or it is over."""
        if self._over is not None or self.delivery.complete or self._stream.await_more():
            return
        session = self.consumer.session
        if session.closing:
            raise IllegalStateError("the session was closed while the body was read")
        waiter = self._waiter = Answer()
        want(session.engine_session, True)
        try:
            yield waiter, session.connection.request_deadline()
        finally:
            want(session.engine_session, False)

    def on_arrived(self) -> None:
        """Who waits looks again."""
        settle(self._waiter)

    # -- the end ---------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """The application is done with it, at its end or before."""
        self._finish(IllegalStateError("the body was closed"))

    def supersede(self) -> None:
        """The session goes on to something else."""
        self._finish(IllegalStateError("the body can be read until the session goes on: to its next message, a commit,"
                                       " a rollback, a close"))  # fmt: skip

    def fail(self, error: JMSError) -> None:
        """What has not come of it never will."""
        self.acknowledges = False
        self._finish(error)

    def _finish(self, why: JMSError) -> None:
        if self._over is not None:
            return
        self._over = why
        self._stream.drop()
        settle(self._waiter)
        session = self.consumer.session
        if session.reading is self:
            session.reading = None
        if self.acknowledges and session.failure is None:
            session.ledger.resolve(self.delivery, ACCEPTED)
