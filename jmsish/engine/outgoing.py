"""Transfers on their way out: segmenting by the peer's frame size, waiting for the session window.

Whatever is not one plain frame that may leave at once becomes an :class:`Outgoing`, which remembers how far it got.
A session's backlog is a FIFO of them over all its links, so deliveries keep the order in which they were sent.

Output that nobody has taken yet is bounded too: a large message is cut into frames as fast as they are taken, so that
it is not held a second time.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .delivery import Delivery
from .frames import HEADER
from .performatives import TRANSFER
from .states import composite
from .values import NULL, TRUE, encode_binary, encode_boolean, encode_uint

if TYPE_CHECKING:
    from .engine import Engine
    from .link import Link
    from .session import EngineSession

__all__ = ["OUTPUT_LIMIT", "Outgoing", "resume", "resume_held", "withdraw"]

_pack_header = HEADER.pack
_MASK = 0xFFFFFFFF

_FRAME_ALLOWANCE = 64
"""What a transfer takes at most beside its payload, its state and its tag."""

OUTPUT_LIMIT = 1 << 20
"""With so many octets of output waiting to be taken, no further frame of a large message is made."""


class Outgoing:
    """A delivery of which frames are still to be written."""

    __slots__ = ("_head", "_start", "delivery", "offset", "started")

    def __init__(self, delivery: Delivery, head: bytes = b"", start: int = 0) -> None:
        """What is sent is ``head``, and then the payload from ``start`` on."""
        self.delivery = delivery
        self.offset = 0
        self.started = False
        self._head = head
        self._start = start

    def write(self, session: EngineSession) -> bool:
        """Write frames as far as the window goes; whether the delivery is done.

        One that was aborted in between ends with the frame that takes it back (Part 2, 2.6.14).
        """
        engine = session.engine
        size = len(self._head) + len(self.delivery.payload) - self._start
        while session.remote_left > 0:
            if engine.out_size >= OUTPUT_LIMIT:
                if session not in engine.throttled:
                    engine.throttled.append(session)
                return False
            if self.delivery.aborted:
                self._emit(session, self._performative(more=False, aborted=True), b"", more=False)
                return True
            if session.share is not None and session.share.is_used_up and self._is_large(size):
                return False
            if self._write_frame(session, size):
                return True
        return False

    def _is_large(self, size: int) -> bool:
        """Whether it takes more than one frame; where that is close, that it does."""
        state = self.delivery.state
        said = len(self.delivery.tag) + (0 if state is None else len(state.encoded))
        return self.started or size + said + _FRAME_ALLOWANCE > self.delivery.link.session.engine.max_frame_out

    def _write_frame(self, session: EngineSession, size: int) -> bool:
        """Write the next frame; whether it is the last."""
        if not self.started:
            self.begin(session)
        # `more` takes one octet either way, so the room is the same for the last frame as for the others; that
        # there is room at all was seen to when the delivery was sent.
        performative = self._performative(more=True)
        room = session.engine.max_frame_out - 8 - len(performative)
        rest = size - self.offset
        last = rest <= room
        if last:
            performative = self._performative(more=False)
        part = self._part(min(room, rest))
        self.offset += len(part)
        self._emit(session, performative, part, more=not last)
        return last

    def _part(self, size: int) -> bytes:
        """The next so many octets; all of a payload is the payload itself."""
        head, payload = self._head, self.delivery.payload
        at = self.offset - len(head)
        if at >= 0:
            at += self._start
            return payload[at : at + size]
        part = head[at:][:size]
        return part + payload[self._start : self._start + size - len(part)]

    def begin(self, session: EngineSession) -> None:
        """The delivery gets its id with its first frame, so that ids are never skipped."""
        delivery = self.delivery
        number = session.next_delivery_id
        session.next_delivery_id = (number + 1) & _MASK
        delivery.id = number
        if not delivery.settled:
            session.outgoing[number] = delivery
        delivery.link.queued -= 1

    def _performative(self, more: bool, aborted: bool = False) -> bytes:
        delivery = self.delivery
        first = not self.started
        return composite(
            TRANSFER,
            encode_uint(delivery.link.handle),
            encode_uint(delivery.id),
            encode_binary(delivery.tag) if first else NULL,
            encode_uint(delivery.message_format) if first else NULL,
            encode_boolean(delivery.settled),
            encode_boolean(more),
            NULL,
            # Part 4, 4.4.1: every frame of the delivery carries the transaction.
            NULL if delivery.state is None else delivery.state.encoded,
            NULL,
            TRUE if aborted else NULL,
        )

    def _emit(self, session: EngineSession, performative: bytes, part: bytes, *, more: bool) -> None:
        if session.batch_state is not None:
            session.flush_dispositions()
        if session.share is not None and (more or self.started):
            session.share.under_way.append(session.next_outgoing_id)
        self.started = True
        session.remote_left -= 1
        size = 8 + len(performative) + len(part)
        engine = session.engine
        engine.out += (_pack_header(size, 2, 0, session.channel), performative, part)
        engine.out_size += size


def resume_held(link: Link) -> None:
    """The link has credit again: what was held goes before what was sent after it and waits for the window."""
    backlog, held = link.session.backlog, link.held
    waiting = enumerate(backlog)
    at = next((at for at, item in waiting if item.delivery.link is link and not item.started), len(backlog))
    for item in reversed(held):
        backlog.insert(at, item)
    held.clear()


def withdraw(link: Link) -> None:
    """The link is going: what of it still waits is given up."""
    session = link.session
    if not session.backlog and not link.held:
        return
    gone = [item for item in (*session.backlog, *link.held) if item.delivery.link is link]
    session.backlog = deque(item for item in session.backlog if item.delivery.link is not link)
    link.held.clear()
    link.queued = 0
    for item in gone:
        session.forget(item.delivery)
        link.unsent.append(item.delivery)


def resume(engine: Engine) -> None:
    """Output has been taken: what waited for that goes on, another session first than the last time."""
    sessions, engine.throttled = engine.throttled, []
    for session in (*sessions[1:], *sessions[:1]):
        session.pump()


def flush_dispositions(engine: Engine) -> None:
    """Write what was said of deliveries before what is said next, in whatever session."""
    for session in engine.unflushed:
        if session.batch_state is not None:
            session.flush_dispositions()
