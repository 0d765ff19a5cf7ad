"""A session: its two windows, its ledger of unsettled deliveries, and its links.

Theory of operation.  The windows of Part 2, 2.5.6 are kept as countdowns beside the id at which they end, like the
credit of a link: ``incoming_left`` of the frames the peer may send up to ``incoming_end``, ``remote_left`` of those
that we may send up to ``remote_end``. So a transfer changes one number, and the next-incoming-id and next-outgoing-id
are differences.

The incoming window opens anew when half of it is used, in the flow that leaves with the next output: until output has
been taken the peer cannot have seen it, so until then a frame beyond the old window is a violation.

Deliveries stay in ``incoming`` and ``outgoing`` until one of the ends has settled them, whatever becomes of their link
(W16); what is left when the session ends stays there for the owner to decide.

Dispositions with the same role, state and settled for consecutive ids gather in a range, which is written before any
other frame of the session and at the latest when output is taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any

from .conditions import FRAME_SIZE_TOO_SMALL, RESOURCE_LIMIT_EXCEEDED, EngineStateError, PeerLimitError
from .delivery import UNSENT, Delivery
from .endpoint import ENDED as ENDED_STATE
from .endpoint import LOCAL_CLOSE, LOCAL_OPEN, Endpoint
from .events import ENDED
from .link import Link
from .outgoing import Outgoing
from .performatives import encode_begin, encode_disposition, encode_end, encode_flow
from .serial import serial_difference
from .sharing import Share, pump
from .states import AmqpError, DeliveryState
from .termini import Terminus

if TYPE_CHECKING:
    from .engine import Engine

__all__ = ["HANDLE_MAX", "INCOMING_WINDOW", "EngineSession"]

_MASK = 0xFFFFFFFF

INCOMING_WINDOW = 2048
"""How many transfer frames the peer may send before it hears of a new window."""

OUTGOING_WINDOW = 0x7FFFFFFF
"""We send as soon as the peer lets us, so this says nothing; peers want to see a number."""

HANDLE_MAX = 0xFFFF
"""The largest handle that we take from the peer."""

# The disposition that we write nearly always; its state follows.
_pack_disposition = Struct(">IBBH4sBBBBIBIB").pack
_DISPOSITION_ROOM = 40

_NO_RANGE = -2  # No delivery has this id, not even one that is unsent.
_NO_STATE = AmqpError("amqp:internal-error")  # Stands for `None` where None means that no range is open.


class EngineSession(Endpoint):
    """A session of a connection; made by :meth:`Engine.begin`, or by the peer's begin."""

    __slots__ = (
        "awaiting",
        "backlog",
        "batch_first",
        "batch_is_receiver",
        "batch_next",
        "batch_settled",
        "batch_state",
        "channel",
        "context",
        "discarding",
        "engine",
        "fault",
        "first_incoming_id",
        "has_received",
        "held_back",
        "incoming",
        "incoming_end",
        "incoming_left",
        "incoming_window",
        "initial_outgoing_id",
        "links",
        "looked_in_vain",
        "low_mark",
        "mute",
        "next_delivery_id",
        "outgoing",
        "remote_channel",
        "remote_end",
        "remote_handle_max",
        "remote_left",
        "remote_links",
        "share",
        "unread",
        "wanted",
    )

    def __init__(self, engine: Engine, context: Any = None, next_outgoing_id: int = 0) -> None:
        super().__init__()
        self.engine = engine
        self.context = context
        self.channel = -1
        self.remote_channel = -1
        self.incoming: dict[int, Delivery] = {}
        self.outgoing: dict[int, Delivery] = {}
        # The id of the first delivery, from which the ids of later ones count: peers begin where they like.
        self.first_incoming_id = 0
        self.has_received = False
        self.links: dict[int, Link] = {}
        self.remote_links: dict[int, Link] = {}
        self.awaiting: dict[tuple[str, bool], list[Link]] = {}
        self.mute = False
        self.discarding = False
        self.fault: AmqpError | None = None
        self.incoming_window = engine.incoming_window
        self.incoming_left = self.incoming_window
        self.incoming_end = self.incoming_window
        self.low_mark = self.incoming_window // 2
        # Of deliveries read while they arrive (`streaming`): octets not read, who waits, whether no window is granted.
        self.unread = self.wanted = 0
        self.held_back = False
        self.share = Share() if engine.shares_windows else None
        self.remote_left = 0
        self.remote_end = self.initial_outgoing_id = next_outgoing_id
        self.remote_handle_max = _MASK
        self.next_delivery_id = next_outgoing_id
        self.looked_in_vain = 0  # By dispositions, at deliveries that are there as before (`ranges`).
        self.backlog: deque[Outgoing] = deque()
        # The open range of dispositions; no state at all means that there is none.
        self.batch_state: DeliveryState | AmqpError | None = None
        self.batch_first = 0
        self.batch_next = _NO_RANGE
        self.batch_settled = True
        self.batch_is_receiver = True

    def __repr__(self) -> str:
        return f"<EngineSession channel={self.channel} remote={self.remote_channel} state={self.state}>"

    @property
    def silent(self) -> bool:
        """Nothing further is written for the session: it has ended here, or the connection has closed."""
        return self.mute or self.engine.mute

    @property
    def next_incoming_id(self) -> int:
        """The id of the next transfer frame that the peer sends."""
        return (self.incoming_end - self.incoming_left) & _MASK

    @property
    def next_outgoing_id(self) -> int:
        """The id of the next transfer frame that we send."""
        return (self.remote_end - self.remote_left) & _MASK

    def set_remote_window(self, following: int, window: int) -> None:
        """Part 2, 2.5.6: the peer takes ``window`` frames from the id ``following`` on."""
        sent = self.next_outgoing_id
        self.remote_left = serial_difference(following, sent) + window
        self.remote_end = (sent + self.remote_left) & _MASK
        if self.share is not None:
            self.share.heard(following, window)

    def blocks(self, link: Link) -> bool:
        """Whether what is sent on a link now would wait behind something else than what was passed over (`sharing`)."""
        share, waiting = self.share, len(self.backlog)
        return waiting > 0 and (share is None or waiting > len(share.passed) or link in share.passed)

    # -- begin and end -------------------------------------------------------------------------------------------------

    def accept_begin(self) -> None:
        """Answer the peer's begin."""
        if self.mute or self.engine.mute:
            return
        try:
            self.open_local(self.remote_channel)
        except PeerLimitError as error:
            # It began more sessions than its own channel-max lets us answer, and there is no session to say so on.
            self.mute_all()
            self.engine.fail(error.condition, error.description)

    def open_local(self, answering: int | None = None) -> None:
        """Write our begin."""
        engine = self.engine
        if not engine.local_open:
            raise EngineStateError("a session needs an open connection")
        if not self.allows(LOCAL_OPEN):
            raise EngineStateError("the session has begun already")
        self.channel = engine.free_channel()
        self.advance(LOCAL_OPEN)
        engine.sessions[self.channel] = self
        body = encode_begin(answering, self.next_outgoing_id, self.incoming_left, OUTGOING_WINDOW, HANDLE_MAX)
        engine.write(self.channel, body)
        if self.low_mark < 0:
            engine.unflushed.append(self)
        if self.fault is not None:
            self._close_local(self.fault)

    def end(self, error: AmqpError | None = None) -> None:
        """End our side, once."""
        if self.allows(LOCAL_CLOSE) and not self.engine.mute:
            self._close_local(error)
        self.mute_all()

    def _close_local(self, error: AmqpError | None) -> None:
        self.write(encode_end(self.engine.fit(error)))
        self.mute_all()
        self.advance(LOCAL_CLOSE)
        self.engine.session_closed(self)

    def fail(self, error: AmqpError) -> None:
        """The engine ends the session for what the peer did; what still comes is dropped until the peer's end."""
        self.discarding = True
        if self.allows(LOCAL_CLOSE):
            self._close_local(error)
        else:
            self.mute_links()
        self.fault = error
        self.engine.report((ENDED, self, error))

    def mute_all(self) -> None:
        """Nothing further is written for the session or any link of it."""
        self.mute = True
        self.batch_state = None
        self.batch_next = _NO_RANGE
        self.mute_links()

    def mute_links(self) -> None:
        """Close the short ways of all links."""
        for link in (*self.links.values(), *self.remote_links.values()):
            link.silence()

    def silence_remote(self) -> None:
        """The peer's end has ended: of the links, nothing comes any more."""
        for link in self.remote_links.values():
            link.disarm()
            if link.current is not None:
                self.forget(link.current)
                link.current = None

    # -- links ---------------------------------------------------------------------------------------------------------

    def sender(
        self,
        name: str,
        *,
        source: Terminus | None,
        target: Terminus | None,
        snd_settle_mode: int = 2,
        rcv_settle_mode: int = 0,
        properties: Mapping[Any, Any] | None = None,
        offered_capabilities: Sequence[str] = (),
        desired_capabilities: Sequence[str] = (),
        max_message_size: int = 0,
        initial_delivery_count: int = 0,
        context: Any = None,
    ) -> Link:
        """Attach a link on which we send."""
        link = Link(self, name, True, context)
        link.source, link.target = source, target
        link.snd_settle_mode, link.rcv_settle_mode = snd_settle_mode, rcv_settle_mode
        link.properties, link.max_message_size = properties, max_message_size
        link.offered_capabilities, link.desired_capabilities = offered_capabilities, desired_capabilities
        return self._attach(link, initial_delivery_count)

    def receiver(
        self,
        name: str,
        *,
        source: Terminus | None,
        target: Terminus | None,
        snd_settle_mode: int = 2,
        rcv_settle_mode: int = 0,
        properties: Mapping[Any, Any] | None = None,
        offered_capabilities: Sequence[str] = (),
        desired_capabilities: Sequence[str] = (),
        max_message_size: int = 0,
        context: Any = None,
    ) -> Link:
        """Attach a link on which we receive."""
        link = Link(self, name, False, context)
        link.source, link.target = source, target
        link.snd_settle_mode, link.rcv_settle_mode = snd_settle_mode, rcv_settle_mode
        link.properties, link.max_message_size = properties, max_message_size
        link.offered_capabilities, link.desired_capabilities = offered_capabilities, desired_capabilities
        return self._attach(link, 0)

    def _attach(self, link: Link, initial_delivery_count: int) -> Link:
        if self.mute or self.engine.mute:
            raise EngineStateError(self.engine.why_mute("the session has ended"))
        key = (link.name, link.is_sender)
        other = self.engine.link_names.get(key)
        if other is not None and other.local_open:
            raise EngineStateError(f"a link {link.name!r} in the same direction is attached already")
        link.open_local(initial_delivery_count)
        self.engine.link_names[key] = link
        self.awaiting.setdefault(key, []).append(link)
        return link

    def take_awaiting(self, name: str, is_sender: bool) -> Link | None:
        """The oldest of our links of that name and direction whose attach the peer has not answered."""
        waiting = self.awaiting.get((name, is_sender))
        if not waiting:
            return None
        link = waiting.pop(0)
        if not waiting:
            del self.awaiting[name, is_sender]
        return link

    def free_handle(self) -> int:
        """The lowest handle not in use."""
        handle = len(self.links)
        if handle in self.links:
            handle = next(number for number in range(handle) if number not in self.links)
        if handle > self.remote_handle_max:
            raise PeerLimitError(
                RESOURCE_LIMIT_EXCEEDED, f"the peer allows {self.remote_handle_max + 1} links in a session"
            )
        return handle

    def link_closed(self, link: Link) -> None:
        """One end of the link is detached: its name is free, and its handle when both are."""
        names = self.engine.link_names
        key = (link.name, link.is_sender)
        if names.get(key) is link:
            del names[key]
        if link.state == ENDED_STATE and self.links.get(link.handle) is link:
            del self.links[link.handle]

    # -- writing -------------------------------------------------------------------------------------------------------

    def write(self, body: bytes) -> None:
        """Write a frame behind the dispositions given so far."""
        if self.batch_state is not None:
            self.flush_dispositions()
        self.engine.write(self.channel, body)

    def write_flow(self, *, echo: bool | None = None) -> None:
        """Write the state of the session."""
        if self.local_open and not self.mute:
            self.write(encode_flow(*self._windows(), echo=echo))

    def write_link_flow(
        self, link: Link, *, echo: bool | None = None, properties: Mapping[Any, Any] | None = None
    ) -> None:
        """Write the state of a link, and of the session with it."""
        if link.mute or self.mute or not link.local_open:
            return
        count: int | None = link.delivery_count
        credit, available = link.credit, None
        if link.is_sender:
            # What waits for the window has not been sent, as far as the peer is concerned.
            credit, available = max(credit + link.queued, 0), link.available
        elif not (link.remote_open or link.remote_closed):
            count = None  # Part 2, 2.7.4: only the sender's attach says where the count begins.
        state = (link.handle, count, credit, available, link.drain)
        body = encode_flow(*self._windows(), state, echo=echo, properties=properties)
        if properties:
            self.engine.check_size("flow", body)
        self.write(body)

    def _windows(self) -> tuple[int | None, int, int, int]:
        """The four session fields of a flow; to write them opens the incoming window wide."""
        known = self.remote_open or self.remote_closed
        following = self.next_incoming_id
        share, window = self.share, self.incoming_window
        if share is not None:
            share.told(self.held_back)
        if self.held_back:
            if share is None:
                return following if known else None, self.incoming_left, self.next_outgoing_id, OUTGOING_WINDOW
            window //= 2  # of large messages nothing comes within that; what may come already may still come
        if self.incoming_left < window or not self.held_back:
            self.incoming_left = window
            self.incoming_end = (following + window) & _MASK
        # Half of what was said: we may have room for more, of which the peer does not know any more.
        self.low_mark = self.incoming_left - (window - window // 2)
        return following if known else None, window, self.next_outgoing_id, OUTGOING_WINDOW

    # -- dispositions --------------------------------------------------------------------------------------------------

    def disposition(self, delivery: Delivery, state: DeliveryState | None, settled: bool = True) -> None:
        """Say what became of a delivery; as the receiver of an incoming one, as the sender of an outgoing one."""
        if delivery.settled or delivery.remote_settled:
            self._after_settlement(delivery, state, settled)
            return
        number = delivery.id
        if (
            number == self.batch_next
            and state is self.batch_state
            and settled is self.batch_settled
            and self.batch_is_receiver is not delivery.link.is_sender
        ):
            self.batch_next = (number + 1) & _MASK
        else:
            self._open_range(delivery, state, settled)
        delivery.state = state
        if settled:
            delivery.settled = True
            (self.outgoing if delivery.link.is_sender else self.incoming).pop(number, None)

    def _after_settlement(self, delivery: Delivery, state: DeliveryState | None, settled: bool) -> None:
        """The peer has settled the delivery: nothing is left to be said. To settle twice here is a mistake."""
        if delivery.settled and not delivery.remote_settled:
            raise EngineStateError(f"{delivery!r} is settled already")
        delivery.state = state
        delivery.settled = delivery.settled or settled
        self.forget(delivery)

    def _open_range(self, delivery: Delivery, state: DeliveryState | None, settled: bool) -> None:
        is_receiver = not delivery.link.is_sender
        number = delivery.id
        if number == UNSENT:
            if settled:
                self.abort(delivery)
            return
        if self.mute or self.engine.mute:
            return
        if state is not None and len(state.encoded) + _DISPOSITION_ROOM > self.engine.max_frame_out:
            raise EngineStateError(
                f"{FRAME_SIZE_TOO_SMALL}: a state of {len(state.encoded)} octets does not fit the peer's frames"
            )
        if self.batch_state is not None:
            same = (
                number == self.batch_next
                and settled == self.batch_settled
                and is_receiver == self.batch_is_receiver
                and state is not None
                and state.encoded == self.batch_state.encoded
            )
            if same:
                self.batch_next = (number + 1) & _MASK
                return
            self.flush_dispositions()
        self.batch_state = _NO_STATE if state is None else state
        self.batch_first = number
        self.batch_next = (number + 1) & _MASK
        self.batch_settled = settled
        self.batch_is_receiver = is_receiver
        self.engine.unflushed.append(self)

    def flush_dispositions(self) -> None:
        """Write the open range."""
        state, self.batch_state = self.batch_state, None
        if state is None:
            return
        first, last = self.batch_first, (self.batch_next - 1) & _MASK
        self.batch_next = _NO_RANGE
        engine = self.engine
        if state is _NO_STATE:
            engine.write(
                self.channel, encode_disposition(self.batch_is_receiver, first, last, self.batch_settled, None)
            )
            return
        said = state.encoded
        size = len(said)
        if size > 0xF0:
            body = encode_disposition(self.batch_is_receiver, first, last, self.batch_settled, said)
            engine.write(self.channel, body)
            return
        role, settled = 0x41 if self.batch_is_receiver else 0x42, 0x41 if self.batch_settled else 0x42
        octets = _pack_disposition(
            26 + size, 2, 0, self.channel, b"\x00\x53\x15\xc0", 13 + size, 5, role, 0x70, first, 0x70, last, settled
        )
        engine.out += (octets, said)
        engine.out_size += 26 + size

    def forget(self, delivery: Delivery) -> None:
        """Take a delivery out of the ledger without a word, as when a link is closed for good (W16)."""
        ledger = self.outgoing if delivery.link.is_sender else self.incoming
        if ledger.get(delivery.id) is delivery:
            del ledger[delivery.id]

    # -- outgoing transfers --------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Write what waits, as far as window and credit go."""
        pump(self)

    def abort(self, delivery: Delivery) -> None:
        """Give up an outgoing delivery of which frames are still to be written."""
        link = delivery.link
        for item in (*self.backlog, *link.held):
            if item.delivery is delivery:
                break
        else:
            if delivery in link.unsent:
                return
            raise EngineStateError(f"{delivery!r} is not on its way out")
        delivery.aborted = True
        if item.started:
            # An abort is a transfer like others: it waits for the window in the delivery's place.
            self.forget(delivery)
            self.pump()
        else:
            (self.backlog if item in self.backlog else link.held).remove(item)
            link.queued -= 1
            link.credit += 1
