"""Large deliveries: sent piece by piece, read while they arrive, or held once while they come in.

Theory of operation.  A delivery that is sent piece by piece is an :class:`OutgoingStream`: its owner puts in one part
at a time, each of which becomes one frame. A part that meets a closed session window waits in the backlog, and the
event SENT says when it has left; the next part is put in after that, so no more than one is ever held here.

An incoming delivery that grows beyond ``link.stream_from`` is reported as PARTIAL; its owner may make it an
:class:`IncomingStream`, out of which it takes the parts as they come. Octets that came and were not taken count against
the session (``unread``). From :data:`UNREAD_LIMIT` on the session's window is not opened any more, unless somebody
waits for something (``wanted``): what it waits for may be behind what nobody reads. So a stream that nobody reads costs
the window and the limit, and nothing that is waited for is ever kept away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any

from .conditions import EngineStateError
from .delivery import UNSENT, Delivery
from .events import ARRIVED, SENT
from .outgoing import Outgoing

if TYPE_CHECKING:
    from .link import Link
    from .session import EngineSession
    from .states import DeliveryState

__all__ = ["STREAM_FRAME", "STREAM_WINDOW", "UNREAD_LIMIT", "IncomingStream", "OutgoingStream", "keep", "whole"]

UNREAD_LIMIT = 1 << 20
"""With so many octets of streams unread, a session lets nothing more come unless somebody waits for it."""

STREAM_FRAME = 1 << 15
STREAM_WINDOW = 128
"""Frame size and session window of a connection that reads while messages arrive: together the octets, 4 MiB, that may
still come once it holds the window back."""

_FRAME_ALLOWANCE = 64
"""What a transfer takes at most beside its payload, its state and its tag."""


class OutgoingStream(Outgoing):
    """A delivery of which the octets are given piece by piece; uses one credit of its link."""

    __slots__ = ("_given", "_last", "session", "waiting")

    def __init__(self, link: Link, *, state: DeliveryState | None, settled: bool, context: Any) -> None:
        session = self.session = link.session
        if link.mute or session.mute:
            raise EngineStateError(f"the link {link.name!r} is detached")
        if link.credit <= 0:
            raise ValueError(f"no credit on the link {link.name!r}")
        delivery = Delivery(link, UNSENT, None, b"", settled, False, context)
        delivery.state = state
        super().__init__(delivery)
        link.credit -= 1
        link.queued += 1
        self._given = b""
        self._last = False
        self.waiting = False
        """The last part that was put has not left."""

    @property
    def room(self) -> int:
        """How many octets one part, a frame, may have."""
        state = self.delivery.state
        said = 0 if state is None else len(state.encoded)
        return max(self.session.engine.max_frame_out - said - _FRAME_ALLOWANCE, 1)

    def put(self, part: bytes, last: bool) -> bool:
        """Give the next octets, at most ``room``; whether they have left. If not, SENT is reported when they have."""
        self._given = part
        self._last = last
        self.session.backlog.append(self)
        self.session.pump()
        self.waiting = self in self.session.backlog or self in self.delivery.link.held
        return not self.waiting

    def write(self, session: EngineSession) -> bool:
        if session.remote_left <= 0:
            return False
        aborted = self.delivery.aborted
        more = not (self._last or aborted)
        if session.share is not None and session.share.is_used_up and not aborted and (more or self.started):
            return False
        if not self.started:
            self.begin(session)
        self._emit(session, self._performative(more=more, aborted=aborted), self._given, more=more)
        self._given = b""
        if self.waiting:
            self.waiting = False
            session.engine.report((SENT, self.delivery.link, self.delivery))
        return True

    def abort(self) -> None:
        """Give the delivery up: the peer never gets it (Part 2, 2.6.14), unless its last part has left."""
        session, delivery = self.session, self.delivery
        link = delivery.link
        if delivery.aborted or link.mute or session.mute or (self._last and not self.waiting):
            return
        delivery.aborted = True
        delivery.context = None
        self._given = b""
        waits = self in session.backlog
        if self.started:
            session.forget(delivery)
            if not waits:
                session.backlog.append(self)
            session.pump()
            return
        if waits:
            session.backlog.remove(self)
        elif self in link.held:
            link.held.remove(self)
        link.queued -= 1
        link.credit += 1


class IncomingStream:
    """The octets of a delivery that is still arriving, to be taken as they come."""

    __slots__ = ("_awaited", "_delivery", "_parts", "_session", "_size", "dropped")

    def __init__(self, delivery: Delivery, parts: Iterable[bytes]) -> None:
        self._awaited = False
        self._delivery: Delivery | None = delivery
        self._session = delivery.link.session
        self._parts: deque[bytes] = deque()
        self._size = 0
        self.dropped = False
        """What still comes is of interest to nobody."""
        for part in parts:
            self.add(part)

    def add(self, part: bytes) -> None:
        if self.dropped or not part:
            return
        self._parts.append(part)
        self._weigh(len(part))
        if self._awaited and self._delivery is not None:
            self._awaited = False
            self._session.engine.report((ARRIVED, self._delivery.link, self._delivery))

    @property
    def is_empty(self) -> bool:
        """Whether all that came was taken."""
        return not self._parts

    def await_more(self) -> bool:
        """Whether there is something to be taken; if not, the next part that comes is reported as ARRIVED."""
        self._awaited = not self._parts
        return not self._awaited

    def take(self) -> bytes:
        """The octets that came first and were not taken yet; empty when there are none."""
        if not self._parts:
            return b""
        part = self._parts.popleft()
        self._weigh(-len(part))
        return part

    def drop(self) -> None:
        """Nobody reads on: the rest may come, and is forgotten."""
        self.dropped = True
        self._delivery = None  # nothing is reported of it any more, and it refers to this
        self._parts.clear()
        self._weigh(-self._size)

    def _weigh(self, size: int) -> None:
        self._size += size
        self._session.unread += size
        weigh(self._session)


def weigh(session: EngineSession) -> None:
    """Hold the window back, or let it open, by what is unread and who waits."""
    held_back = session.unread >= session.engine.unread_limit and not session.wanted
    if held_back is session.held_back:
        return
    session.held_back = held_back
    if not held_back and session.share is not None and session.share.wants_flow:
        session.low_mark = -1
    if not held_back and session.low_mark < 0:
        session.engine.unflushed.append(session)


def want(session: EngineSession, waits: bool) -> None:
    """Somebody waits for what the session brings, or has stopped to."""
    session.wanted += 1 if waits else -1
    weigh(session)


_GATHER = 1 << 20
"""A message beyond so many octets is held in one piece while it comes in."""

_PARTS = 64
"""And so is one of more frames: an object for each of many small ones would cost more than what is in them."""


def keep(delivery: Delivery, payload: bytes) -> None:
    """Another frame of a delivery that is handed on when it is whole."""
    if delivery.parts is None:
        delivery.parts = [payload]
        return
    if not payload:
        return
    delivery.parts.append(payload)
    if (delivery.size > _GATHER or len(delivery.parts) > _PARTS) and not delivery.link.stream_from:
        if delivery.gathered is None:
            delivery.gathered = BytesIO()
        delivery.gathered.writelines(delivery.parts)
        delivery.parts.clear()


def whole(delivery: Delivery) -> bytes:
    """The payload of a delivery that has come whole."""
    parts, gathered = delivery.parts or [], delivery.gathered
    delivery.parts = delivery.gathered = None
    if gathered is None:
        return parts[0] if len(parts) == 1 else b"".join(parts)
    gathered.writelines(parts)
    return gathered.getvalue()
