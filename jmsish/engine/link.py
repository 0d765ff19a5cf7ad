"""A link of a session: credit, drain, attach and detach, and the sending of messages.

Theory of operation.  Both roles keep their link state as two numbers, ``limit`` and ``credit``: the delivery-count at
which the credit ends, and what is left of it. The delivery-count is their difference, so that sending or receiving a
message changes one number only, and a drain, which advances the delivery-count to the end of the credit, is
``credit = 0`` (Part 2, 2.6.7). At a sender, deliveries that wait for the session window have used credit in the eyes
of its owner but not of the peer; ``queued`` counts them, and what is told the peer is corrected by it.

A link falls silent (``mute``) when frames from it would mean nothing any more: it was detached on either side, its
session ended, the engine failed. Its verbs then change the state here and write nothing, because their caller may still
be working through events that were reported together with the one that silenced it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any

from . import endpoint
from .conditions import FRAME_SIZE_TOO_SMALL, EngineStateError, PeerLimitError
from .delivery import UNSENT, Delivery
from .endpoint import LOCAL_CLOSE, LOCAL_OPEN, REMOTELY_OPEN, Endpoint
from .events import DETACHED
from .outgoing import Outgoing, withdraw
from .performatives import encode_attach, encode_detach
from .serial import serial_difference
from .states import AmqpError, DeliveryState
from .termini import Terminus
from .values import NULL

if TYPE_CHECKING:
    from .session import EngineSession

__all__ = ["FAST_LAYOUT_SIZE", "Link", "fast_key"]

_MASK = 0xFFFFFFFF

# The transfer frame that we write nearly always, and read fastest: size; 13 octets that are the same for all messages
# of a link (doff, type, channel, descriptor, list8 of five fields, handle, the code of the id); id; the tag, which is
# the id again; message-format 0 and settled.
_pack_fast = Struct(">I13sIHIH").pack
FAST_LAYOUT_SIZE = 29
_TAG4 = 0xA004
_UNSETTLED, _SETTLED = 0x4342, 0x4341

_STATE_LIMIT = 128
"""The longest state that travels the short way; room is left for it in the frame, whether it is there or not."""


def fast_key(channel: int, handle: int) -> bytes:
    """The 13 octets behind the size of a fast transfer frame; ``handle`` fits one octet."""
    return b"\x02\x00%c%c\x00\x53\x14\xc0\x10\x05\x52%c\x70" % (channel >> 8, channel & 0xFF, handle)


class Link(Endpoint):
    """One direction of messages between two termini."""

    __slots__ = (
        "available",
        "awaiting_drain",
        "context",
        "credit",
        "credit_heard",
        "current",
        "desired_capabilities",
        "discarded",
        "discarding",
        "drain",
        "echo_asked",
        "fast_key",
        "fast_limit",
        "fast_size",
        "fast_state",
        "fast_state_key",
        "fast_state_tail",
        "fault",
        "flow_properties",
        "granted",
        "handle",
        "held",
        "incomplete_unsettled",
        "initial_delivery_count",
        "is_sender",
        "limit",
        "max_message_size",
        "mute",
        "name",
        "offered_capabilities",
        "overtakes",
        "payload_limit",
        "properties",
        "queued",
        "rcv_settle_mode",
        "relays_echo",
        "remote_desired_capabilities",
        "remote_handle",
        "remote_max_message_size",
        "remote_offered_capabilities",
        "remote_properties",
        "remote_rcv_settle_mode",
        "remote_snd_settle_mode",
        "remote_source",
        "remote_target",
        "remote_unsettled",
        "session",
        "snd_settle_mode",
        "source",
        "stream_from",
        "target",
        "unsent",
    )

    def __init__(self, session: EngineSession, name: str, is_sender: bool, context: Any = None) -> None:
        super().__init__()
        self.session = session
        self.name = name
        self.is_sender = is_sender
        self.context = context
        self._init_remote()
        self.handle = -1
        self.remote_handle = -1
        self.credit = 0
        self.limit = 0
        self.initial_delivery_count = 0
        self.drain = False
        self.relays_echo = self.echo_asked = False  # the owner answers an echo; the last flow asked for one
        self.mute = False
        # Sender: whether its transfers may leave before dispositions that were said before them, so that these gather.
        self.overtakes = False
        # What the engine itself detached the link for, where the attach that must come first is not written yet.
        self.fault: AmqpError | None = None
        # Sender: frames waiting for the session window, and what was given up unsent when the link went.
        self.queued = 0
        self.held: deque[Outgoing] = deque()
        self.unsent: list[Delivery] = []
        self.awaiting_drain = False
        self.fast_size = -1
        self.fast_key = b""
        self.fast_state: DeliveryState | None = None
        self.fast_state_key = b""
        self.fast_state_tail = b""
        # Receiver: the delivery of which only some frames are read, and octets dropped after our detach.
        self.current: Delivery | None = None
        # The furthest delivery-count up to which credit was ever granted: what was taken back may have been used.
        self.granted = 0
        self.discarding = False
        self.discarded = 0
        # Receiver: a delivery that grows beyond so many octets is reported while it arrives; 0 for never.
        self.stream_from = 0
        self.fast_limit = 0
        self.payload_limit = -1

    def _init_remote(self) -> None:
        # What the peer's last flow said; of a sender's, the credit that it knew of.
        self.available: int | None = None
        self.credit_heard: int | None = None
        self.flow_properties: Mapping[Any, Any] | None = None
        self.source: Terminus | None = None
        self.target: Terminus | None = None
        self.snd_settle_mode = 2
        self.rcv_settle_mode = 0
        self.max_message_size = 0
        self.properties: Mapping[Any, Any] | None = None
        self.offered_capabilities: Sequence[str] = ()
        self.desired_capabilities: Sequence[str] = ()
        self.remote_source: Terminus | None = None
        self.remote_target: Terminus | None = None
        self.remote_snd_settle_mode = 2
        self.remote_rcv_settle_mode = 0
        self.remote_max_message_size = 0
        self.remote_properties: Mapping[Any, Any] | None = None
        self.remote_offered_capabilities: Sequence[str] = ()
        self.remote_desired_capabilities: Sequence[str] = ()
        self.remote_unsettled: Mapping[Any, Any] | None = None
        self.incomplete_unsettled = False

    def __repr__(self) -> str:
        role = "sender" if self.is_sender else "receiver"
        return f"<Link {self.name!r} {role} {endpoint.STATE_NAMES[self.state]} credit={self.credit}>"

    @property
    def attached(self) -> bool:
        """Whether this end is attached."""
        return self.local_open

    @property
    def remote_attached(self) -> bool:
        """Whether the peer's end is attached."""
        return self.state in REMOTELY_OPEN

    @property
    def delivery_count(self) -> int:
        """The delivery-count of the link state, as the peer is told it."""
        return (self.limit - self.credit - self.queued) & _MASK

    # -- attach and detach ---------------------------------------------------------------------------------------------

    def attach(
        self,
        *,
        source: Terminus | None = None,
        target: Terminus | None = None,
        offered_capabilities: Sequence[str] = (),
        max_message_size: int | None = None,
        properties: Mapping[Any, Any] | None = None,
    ) -> None:
        """Answer the peer's attach; a terminus not given is the one the peer asked for, a limit the engine's."""
        self.source = self.remote_source if source is None else source
        self.target = self.remote_target if target is None else target
        self.offered_capabilities = offered_capabilities
        if max_message_size is not None:
            self.max_message_size = max_message_size
        self.properties = properties
        self._answer()

    def refuse(self, error: AmqpError | None) -> None:
        """Part 2, 2.6.3: attach without the terminus that does not come to be, then detach saying why."""
        self.source = None if self.is_sender else self.remote_source
        self.target = self.remote_target if self.is_sender else None
        self._answer()
        self.detach(closed=True, error=error)

    def _answer(self) -> None:
        if self.session.silent:
            return
        if self.allows(LOCAL_OPEN):
            try:
                self.open_local()
            except PeerLimitError as error:
                self._answer_less(error)
            if self.fault is not None and self.local_open:
                self._close_local(True, self.fault)
        elif not self.mute:
            raise EngineStateError(f"the link {self.name!r} is attached already")

    def _answer_less(self, limit: PeerLimitError) -> None:
        """The answer is more than the peer takes: the link is refused for that, or where that is too much the session.

        The owner, who thinks it attached, hears that it is detached.
        """
        error = AmqpError(limit.condition, limit.description)
        self.source = self.target = None
        self.offered_capabilities, self.properties = (), None
        try:
            self.open_local()
        except PeerLimitError:
            self.session.fail(error)
            return
        if self.fault is None:
            self._close_local(True, error)
            self.fault = error
            self.session.engine.report((DETACHED, self, True, error))

    def open_local(self, initial_delivery_count: int = 0) -> None:
        """Write our attach."""
        session = self.session
        if not session.local_open:
            raise EngineStateError("a link needs a session that has begun and not ended")
        handle = session.free_handle()
        if self.is_sender:
            # Credit may have come in a flow pipelined behind the peer's attach: it stays, and counts from here.
            self.initial_delivery_count = initial_delivery_count
            self.limit = (initial_delivery_count + self.credit) & _MASK
        body = encode_attach(
            name=self.name,
            handle=handle,
            is_receiver=not self.is_sender,
            snd_settle_mode=self.snd_settle_mode,
            rcv_settle_mode=self.rcv_settle_mode,
            source=NULL if self.source is None else self.source.encoded,
            target=NULL if self.target is None else self.target.encoded,
            unsettled=None if self.remote_unsettled is None else {},
            initial_delivery_count=initial_delivery_count if self.is_sender else None,
            max_message_size=self.max_message_size,
            offered_capabilities=self.offered_capabilities,
            desired_capabilities=self.desired_capabilities,
            properties=self.properties,
        )
        session.engine.check_size("attach", body)
        self.advance(LOCAL_OPEN)
        self.handle = handle
        session.links[handle] = self
        session.write(body)
        self.arm()

    def arm(self) -> None:
        """Both ends are attached: open the short ways for transfers, as far as they apply."""
        if self.state != endpoint.OPENED or self.mute or self.session.mute:
            return
        engine, session = self.session.engine, self.session
        if self.is_sender:
            if self.handle < 0x100:
                self.fast_key = fast_key(session.channel, self.handle)
                self.fast_size = engine.max_frame_out - _STATE_LIMIT
        elif self.remote_handle < 0x100 and self.current is None and session.has_received and not self.discarding:
            self.payload_limit = self.max_message_size or engine.max_frame_size
            self.fast_limit = min(engine.max_frame_size, self.payload_limit + FAST_LAYOUT_SIZE)
            self.fast_key = fast_key(session.remote_channel, self.remote_handle)
            engine.fast[self.fast_key] = self

    def disarm(self) -> None:
        """Close the short ways."""
        self.fast_size = -1
        self.payload_limit = -1
        if not self.is_sender:
            self.session.engine.fast.pop(self.fast_key, None)

    def detach(self, *, closed: bool = True, error: AmqpError | None = None) -> None:
        """Detach our end, once; what was queued and not sent is given up and listed in ``unsent``."""
        if self.allows(LOCAL_CLOSE):
            self._close_local(closed, error)
        elif self.allows(LOCAL_OPEN) and self.state != endpoint.UNMAPPED and not self.session.silent:
            self.refuse(error)

    def _close_local(self, closed: bool, error: AmqpError | None) -> None:
        silent = self.session.silent
        self.advance(LOCAL_CLOSE)
        self.silence()
        self.discarding = True
        self.session.link_closed(self)
        if not silent:
            self.session.write(encode_detach(self.handle, closed, self.session.engine.fit(error)))

    def forget_current(self) -> None:
        """At a receiver that has detached: the end of the delivery in transit is not awaited any more."""
        if self.current is not None:
            self.session.forget(self.current)
            self.current = None

    def silence(self) -> None:
        """Nothing further is written for this link, but its detach."""
        self.mute = True
        self.disarm()
        if self.is_sender:
            withdraw(self)

    def fail(self, error: AmqpError) -> None:
        """The engine detaches the link for what the peer did, or because it was stolen."""
        self.discarding = True
        self.current = None
        if self.allows(LOCAL_CLOSE):
            self._close_local(True, error)
        else:
            self.fault = error
            self.silence()
            self.session.link_closed(self)
        self.session.engine.report((DETACHED, self, True, error))
        self.fault = error

    # -- credit --------------------------------------------------------------------------------------------------------

    def flow(
        self, credit: int, *, drain: bool = False, echo: bool = False, properties: Mapping[Any, Any] | None = None
    ) -> None:
        """At a receiver: the credit is ``credit`` from now on, whatever it was."""
        if self.is_sender:
            raise EngineStateError("only a receiver grants credit")
        if not self.attached and not (self.mute or self.session.silent):
            raise EngineStateError(f"the link {self.name!r} is not attached")
        self.limit = (self.delivery_count + credit) & _MASK
        if serial_difference(self.limit, self.granted) > 0:
            self.granted = self.limit
        self.credit = credit
        self.drain = drain
        self.session.write_link_flow(self, echo=True if echo else None, properties=properties)

    def drained(self) -> None:
        """At a sender, asked to drain: nothing more is there. All credit is used up, and the peer is told."""
        if not self.drain or self.mute:
            return
        if self.queued > len(self.held):
            self.awaiting_drain = True
            return
        self.awaiting_drain = False
        if self.credit > 0:
            self.credit = 0
        self.session.write_link_flow(self)
        self.drain = False

    # -- sending -------------------------------------------------------------------------------------------------------

    # hot: the first branch is what each message costs.
    def send(
        self,
        payload: bytes,
        *,
        state: DeliveryState | None = None,
        settled: bool = False,
        context: Any = None,
        tag: bytes | None = None,
        message_format: int = 0,
    ) -> Delivery:
        """Send a message, or queue it where the session window is closed. Uses one credit."""
        session = self.session
        size = len(payload) + FAST_LAYOUT_SIZE
        window = session.remote_left
        credit = self.credit
        if (
            size <= self.fast_size
            and window > 0
            and credit > 0
            and tag is None
            and message_format == 0
            and not session.backlog
            and (state is None or state is self.fast_state or self._learn_state(state))
        ):
            number = session.next_delivery_id
            session.next_delivery_id = (number + 1) & _MASK
            session.remote_left = window - 1
            self.credit = credit - 1
            if session.batch_state is not None and not self.overtakes:
                session.flush_dispositions()
            engine = session.engine
            delivery = Delivery(self, number, None, payload, settled, False, context)
            if state is None:
                tail = _SETTLED if settled else _UNSETTLED
                engine.out += (_pack_fast(size, self.fast_key, number, _TAG4, number, tail), payload)
            else:
                delivery.state = state
                tail = _SETTLED if settled else _UNSETTLED
                size += len(self.fast_state_tail)
                head = _pack_fast(size, self.fast_state_key, number, _TAG4, number, tail)
                engine.out += (head, self.fast_state_tail, payload)
            engine.out_size += size
            if not settled:
                session.outgoing[number] = delivery
            return delivery
        return self._send_any(payload, state, settled, context, tag, message_format)

    def send_anew(
        self, head: bytes, payload: bytes, start: int, *, state: DeliveryState | None, settled: bool, context: Any
    ) -> Delivery:
        """Send ``head``, and then the payload from ``start`` on, without making one of the two: for what is large."""
        return self._send_any(payload, state, settled, context, None, 0, head, start)

    def _learn_state(self, state: DeliveryState) -> bool:
        """Prepare the transfers of one transaction: three fields more than the plain ones, the state the last."""
        tail = b"\x42\x40" + state.encoded
        if len(tail) > _STATE_LIMIT:
            return False
        key = self.fast_key
        self.fast_state_key = b"%b%c%c%b" % (key[:8], key[8] + len(tail), key[9] + 3, key[10:])
        self.fast_state_tail = tail
        self.fast_state = state
        return True

    def _send_any(
        self,
        payload: bytes,
        state: DeliveryState | None,
        settled: bool,
        context: Any,
        tag: bytes | None,
        message_format: int,
        head: bytes = b"",
        start: int = 0,
    ) -> Delivery:
        if not self.is_sender:
            raise EngineStateError("a receiver cannot send")
        delivery = Delivery(self, UNSENT, tag, payload, settled, False, context)
        delivery.state = state
        if message_format:
            delivery.message_format = message_format
        if self.mute or self.session.silent:
            if self.local_closed and self.fault is None and not self.session.silent and not self.remote_closed:
                raise EngineStateError(f"the link {self.name!r} is detached")
            self.unsent.append(delivery)
            return delivery
        if (0 if state is None else len(state.encoded)) + len(delivery.tag) + 60 > self.session.engine.max_frame_out:
            raise EngineStateError(f"{FRAME_SIZE_TOO_SMALL}: state and tag do not fit the peer's frames")
        if self.credit <= 0:
            raise ValueError(f"no credit on the link {self.name!r}")
        self.credit -= 1
        self.queued += 1
        self.session.backlog.append(Outgoing(delivery, head, start))
        self.session.pump()
        return delivery

    def abort(self, delivery: Delivery) -> None:
        """Give up an outgoing delivery that is not wholly sent; one not begun gives its credit back."""
        self.session.abort(delivery)
