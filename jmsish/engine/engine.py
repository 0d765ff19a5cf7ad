"""AMQP 1.0 for one connection, in either role: octets in, events out, octets out, a deadline out.

Theory of operation.  An :class:`Engine` has one owner at a time and never waits, reads a clock or touches a socket.
The owner feeds what came (:meth:`Engine.receive`), takes the events in the order of the frames, answers them with the
verbs of engine, sessions and links, writes what :meth:`Engine.take_output` gives, and calls :meth:`Engine.tick` at the
deadline of the tick before.

``receive`` is one loop over the octets. A transfer in the layout that our own senders write is recognized by one
dictionary look-up of the thirteen octets behind its size, which are the same for all transfers of a link; everything
else goes the general way through :mod:`~jmsish.engine.incoming`. Where the octets end within a frame, the rest waits
as a list of chunks, joined once the frame is whole, so that no octet is copied more than twice.

What the peer does wrong never raises out of ``receive``. It ends the link, the session or the connection, by the
condition the standard has for it and a sentence of what was wrong; the first cause that fails the whole engine stays
in ``error``. After that, and after our close, the verbs write nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from struct import error as StructError
from typing import Any

from . import control, incoming
from .conditions import (
    CONNECTION_FORCED,
    DECODE_ERROR,
    FRAME_SIZE_TOO_SMALL,
    INTERNAL_ERROR,
    RESOURCE_LIMIT_EXCEEDED,
    EngineStateError,
    Fault,
    LinkFault,
    PeerLimitError,
    SessionFault,
)
from .delivery import Delivery
from .endpoint import LOCAL_CLOSE, LOCAL_OPEN, Endpoint
from .events import DELIVERED, FAILED
from .frames import AMQP_FRAME, HEADER, MIN_MAX_FRAME_SIZE, check_frame, frame, read_descriptor
from .handshake import Handshake
from .heartbeat import Heartbeat, pass_time
from .limits import DEFAULT_LIMITS, Limits
from .link import FAST_LAYOUT_SIZE, Link
from .outgoing import resume
from .performatives import NAMES, Open, decode_list, encode_close, encode_open, performative_code
from .quick import take_quick
from .rest import Rest
from .sasl import SaslClient, SaslServer, Verdict
from .session import INCOMING_WINDOW, EngineSession
from .states import AmqpError
from .streaming import UNREAD_LIMIT
from .values import DecodeError

__all__ = ["Engine"]

_unpack_fast = Struct(">I13sIH4sH").unpack_from
_TRANSFER = b"\x00\x53\x14"  # The descriptor of a transfer, in any layout.
_unpack_header = HEADER.unpack_from
_unpack_size = Struct(">I").unpack_from

DISCARD_LIMIT = 64 << 20
"""How many octets may still come for a link that we have detached (W11)."""


class Engine(Endpoint):
    """One connection."""

    deaf = mute = False  # Nothing is read, or written. (Here: objects of thirty attributes of their own are large.)
    rest: Rest | None = None  # Of a disposition. Nothing is read until the owner has called `go_on` often enough.

    def __init__(
        self,
        *,
        server: bool,
        container_id: str,
        hostname: str | None = None,
        max_frame_size: int = 1 << 20,
        channel_max: int = 4095,
        idle_timeout: float | None = None,
        opening_timeout: float | None = None,
        offered_capabilities: Sequence[str] = (),
        desired_capabilities: Sequence[str] = (),
        properties: Mapping[Any, Any] | None = None,
        sasl: SaslClient | SaslServer | None = None,
        incoming_window: int = INCOMING_WINDOW,
        discard_limit: int = DISCARD_LIMIT,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__()
        if max_frame_size < MIN_MAX_FRAME_SIZE:
            raise ValueError(f"max_frame_size is at least {MIN_MAX_FRAME_SIZE}, not {max_frame_size}")
        self.container_id = container_id
        self.hostname = hostname
        self.max_frame_size = max_frame_size
        self.channel_max = channel_max
        self.offered_capabilities = offered_capabilities
        self.desired_capabilities = desired_capabilities
        self.properties = properties
        self.incoming_window = incoming_window
        self.discard_limit = discard_limit
        self.unread_limit = UNREAD_LIMIT
        self._handshake = Handshake(server, sasl, hostname)
        self.is_server = server
        self.limits = limits
        self._heartbeat = Heartbeat(idle_timeout, opening_timeout, limits.frame_timeout)
        self._init_state()

    def _init_state(self) -> None:
        self.max_message_size = 0  # On links that the peer makes to send: octets of a message (`oversize`); 0 for any.
        self.remote: Open | None = None
        self.error: AmqpError | None = None
        self.max_frame_out = self.frames_limit = MIN_MAX_FRAME_SIZE  # W13: until the peer's open.
        self.sessions: dict[int, EngineSession] = {}
        self.remote_sessions: dict[int, EngineSession] = {}
        self.link_names: dict[tuple[str, bool], Link] = {}
        self.fast: dict[bytes, Link] = {}
        self.out: list[bytes] = []
        self.out_size = self.remote_link_count = self.unweighed = 0
        self.unflushed: list[EngineSession] = []
        self.throttled: list[EngineSession] = []
        self._events: list[tuple[Any, ...]] = []
        self.report = self._events.append
        self._chunks: list[bytes] = []
        self._chunked = self._needed = self._answered = 0  # The last: octets of answers that were given and not taken.
        self.shares_windows = False

    # -- what the owner asks -------------------------------------------------------------------------------------------

    @property
    def output_size(self) -> int:
        """About how many octets :meth:`take_output` would give."""
        waiting = sum(map(len, self._handshake.output)) + 48 * len(self.unflushed)
        return waiting + (self.out_size if self._handshake.ready else 0)

    @property
    def negotiated(self) -> bool:
        """Whether frames may follow: the headers agree, and SASL, where there is any, went well."""
        return self._handshake.ready

    @property
    def closed(self) -> bool:
        """Nothing more will be read, and all that was to be written has been taken."""
        return self.deaf and self.mute and not self._handshake.output and not (self.out and self._handshake.ready)

    @property
    def has_events(self) -> bool:
        """Whether :meth:`take_events` would give some."""
        return bool(self._events)

    def take_events(self) -> list[tuple[Any, ...]]:
        """What happened since the last call; see :mod:`~jmsish.engine.events`."""
        events = self._events
        self._events = []
        self.report = self._events.append
        return events

    def take_output(self) -> bytes:
        """The octets to write now; empty when there are none."""
        if self.unflushed:
            self._flush()
        start = self._handshake.output
        if start:
            octets = b"".join(start)
            start.clear()
            if self._handshake.ready and self.out:
                return octets + self._take_frames()
            return octets
        if self.out and self._handshake.ready:
            return self._take_frames()
        return b""

    def _take_frames(self) -> bytes:
        octets = b"".join(self.out)
        self.out.clear()
        self.out_size = self._answered = 0
        self._heartbeat.wrote = True
        if self.throttled:
            resume(self)
        return octets

    def _flush(self) -> None:
        """Dispositions gathered, and session windows that are half used."""
        sessions, self.unflushed = self.unflushed, []
        for session in sessions:
            if session.batch_state is not None:
                session.flush_dispositions()
            if session.low_mark < 0 and not (session.held_back and session.share is None):
                session.write_flow()

    def tick(self, now: float) -> float | None:
        """Send an empty frame or give up on the peer, where it is time; the next moment to ask, if any."""
        return None if self.mute else pass_time(self, self._heartbeat, now, bool(self._chunks))

    def why_mute(self, otherwise: str) -> str:
        """The sentence that answers a verb which cannot be obeyed any more."""
        if self.error is not None:
            return f"the connection has failed: {self.error}"
        return "the connection is closed" if self.mute else otherwise

    # -- verbs ---------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Write our open. ``PeerLimitError`` where the names in it are too long."""
        if self.mute:
            if self.error is not None and not self.local_open:
                raise EngineStateError(self.why_mute("closed"))
            return
        if not self.allows(LOCAL_OPEN):
            raise EngineStateError("the connection is open already")
        self._write_open()

    def _write_open(self) -> None:
        body = encode_open(
            self.container_id,
            hostname=self.hostname,
            max_frame_size=self.max_frame_size,
            channel_max=self.channel_max,
            idle_time_out=self._heartbeat.advertised,
            offered_capabilities=self.offered_capabilities,
            desired_capabilities=self.desired_capabilities,
            properties=self.properties,
        )
        if len(body) + 8 > MIN_MAX_FRAME_SIZE:  # Part 2, 2.4.1: "prior to any explicit negotiation"
            raise PeerLimitError(FRAME_SIZE_TOO_SMALL, f"an open of {len(body) + 8} octets, where 512 are the most")
        self.advance(LOCAL_OPEN)
        self.write(0, body)

    def close(self, error: AmqpError | None = None) -> None:
        """Write our close, once; after it nothing else is written."""
        if self.mute:
            return
        if self.allows(LOCAL_OPEN):
            if not self._handshake.done:
                self._finish()
                return
            try:
                self._write_open()
            except PeerLimitError:  # it cannot be said at all
                self._finish()
                return
        self._write_close(error)

    def _write_close(self, error: AmqpError | None) -> None:
        if self.unflushed:
            self._flush()
        self.write(0, encode_close(self.fit(error)))
        self.advance(LOCAL_CLOSE)
        self._silence()

    def _silence(self) -> None:
        self.mute = True
        self.fast.clear()
        for session in {*self.sessions.values(), *self.remote_sessions.values()}:
            session.mute_all()

    def _finish(self) -> None:
        self._silence()
        self.stop_reading()

    def stop_reading(self) -> None:
        """Nothing further is read."""
        self.deaf = True
        self._chunks = []

    def begin(self, context: Any = None, *, next_outgoing_id: int = 0) -> EngineSession:
        """Begin a session."""
        if self.mute:
            raise EngineStateError(self.why_mute("closed"))
        session = EngineSession(self, context, next_outgoing_id)
        session.open_local()
        return session

    # -- for sessions and links ----------------------------------------------------------------------------------------

    def write(self, channel: int, body: bytes) -> None:
        """Write a frame without payload."""
        octets = frame(channel, body)
        self.out.append(octets)
        self.out_size += len(octets)

    def check_size(self, name: str, body: bytes) -> None:
        """Refuse to write what the peer could not read."""
        if len(body) + 8 > self.max_frame_out:
            held = "hold" if self.remote is not None else "may be taken to hold"
            text = f"the {name} takes {len(body) + 8} octets, and the peer's frames {held} {self.max_frame_out}"
            raise PeerLimitError(FRAME_SIZE_TOO_SMALL, text)

    def fit(self, error: AmqpError | None) -> AmqpError | None:
        """The error, cut where it would not fit a frame: one that is told in part beats one that breaks the peer."""
        return None if error is None else error.cut(self.max_frame_out - 40)

    def free_channel(self) -> int:
        """The lowest channel not in use."""
        channel = len(self.sessions)
        if channel in self.sessions:
            channel = next(number for number in range(channel) if number not in self.sessions)
        limit = self.channel_max if self.remote is None else min(self.channel_max, self.remote.channel_max)
        if channel > limit:
            raise PeerLimitError(RESOURCE_LIMIT_EXCEEDED, f"no channel is free: {limit + 1} sessions are the most")
        return channel

    def session_closed(self, session: EngineSession) -> None:
        """One end of the session has ended; when both have, its channel is free."""
        for link in (*session.links.values(), *session.remote_links.values()):
            key = (link.name, link.is_sender)
            if self.link_names.get(key) is link:
                del self.link_names[key]
        if session.local_closed and session.remote_closed and self.sessions.get(session.channel) is session:
            del self.sessions[session.channel]

    # -- reading -------------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take octets from the peer, cut anywhere. What is wrong with them is reported, never raised."""
        if self.deaf or not data:
            return
        self._heartbeat.read = True
        if type(data) is not bytes:
            data = bytes(data)
        going_on = bool(self._chunks)
        if going_on:
            self._chunks.append(data)
            self._chunked += len(data)
            if self._chunked < self._needed:
                return
            data = b"".join(self._chunks)
            self._chunks = []
        said = self.out_size
        try:
            pos = 0
            if not self._handshake.done:
                pos = self._advance_handshake(data)
            if self._handshake.done:
                pos = self._read_frames(data, pos)
        except Fault as fault:
            self.fail(fault.condition, fault.description)
            return
        except Exception as error:  # Nothing the peer sends may get out of here; that this happens is a bug of ours.
            self.fail(INTERNAL_ERROR, f"{type(error).__name__}: {error}")
            return
        if (pos < len(data) or self.rest is not None) and not self.deaf:
            if pos or not going_on:
                self._heartbeat.begin_frame()
            self._keep(data[pos:])
        self._answered += self.out_size - said
        if self._answered > self.limits.max_answers:
            self.fail(*self.limits.answers_refused())

    def _keep(self, rest: bytes) -> None:
        """A frame that has not come whole: its rest is waited for."""
        self._chunks.append(rest)
        self._chunked = len(rest)
        self._needed = len(rest) + 1 if self.rest is None else 1 << 62
        if self._handshake.done and len(rest) >= 4:
            self._needed = max(self._needed, _unpack_size(rest)[0])

    def _advance_handshake(self, data: bytes) -> int:
        try:
            return self._handshake.advance(data, 0)
        finally:
            self._events += self._handshake.take_events()

    def decide(self, answer: bytes | Verdict) -> None:
        """Go on with a SASL exchange that waits for its owner: see the events ``ASKED`` and ``JUDGED``."""
        if self.deaf:
            return  # It went while it was being thought about.
        try:
            self._handshake.decide(answer)
        except Fault as fault:
            self.fail(fault.condition, fault.description)
        self._events += self._handshake.take_events()
        self.read_on()

    def read_on(self) -> None:
        """Read what came while nothing was read."""
        octets, self._chunks = b"".join(self._chunks), []
        Engine.receive(self, octets)  # who watches (`frame_trace`) has seen them

    # hot: the first branch of the loop is what each message costs.
    def _read_frames(self, data: bytes, pos: int) -> int:
        """Read all whole frames from ``pos`` on, and give the offset of the first that is not."""
        end = len(data)
        fast = self.fast
        report = self.report
        while True:
            left = end - pos
            if left >= FAST_LAYOUT_SIZE:
                size, key, number, lead, tag, tail = _unpack_fast(data, pos)
                link = fast.get(key)
                if (
                    link is not None
                    and lead == 0xA004
                    and FAST_LAYOUT_SIZE <= size <= left
                    and size <= link.fast_limit
                    and (tail == 0x4342 or tail == 0x4341)
                ):
                    session = link.session
                    window = session.incoming_left - 1
                    credit = link.credit
                    ledger = session.incoming
                    if window > session.low_mark and credit > 0 and number not in ledger:
                        session.incoming_left = window
                        link.credit = credit - 1
                        stop = pos + size
                        payload = data[pos + FAST_LAYOUT_SIZE : stop]
                        if tail == 0x4342:
                            ledger[number] = delivery = Delivery(link, number, tag, payload, False, False)
                        else:
                            delivery = Delivery(link, number, tag, payload, True, True)
                        report((DELIVERED, link, delivery))
                        pos = stop
                        continue
            elif left < 8:
                # The size alone is enough to refuse a frame: what follows is never waited for (W13).
                if left >= 4:
                    check_frame(_unpack_size(data, pos)[0], 2, AMQP_FRAME, self.frames_limit, self.remote is not None)
                return pos
            size, offset, kind, channel = _unpack_header(data, pos)
            if size > self.frames_limit or size < 8 or offset != 2 or kind != AMQP_FRAME:
                check_frame(size, offset, kind, self.frames_limit, self.remote is not None)
            if size > left:
                return pos
            if size > 20 and offset == 2 and data[pos + 8 : pos + 11] == _TRANSFER:
                try:
                    if take_quick(self, channel, data, pos + 11, pos + size):
                        pos += size
                        continue
                except (IndexError, StructError):
                    pass  # Cut off in the middle of its fields: the general way says so.
            body = pos + offset * 4
            pos += size
            if body != pos:
                self._take_frame(channel, data, body, pos)
                if self.deaf or self.rest is not None:
                    return pos

    def _take_frame(self, channel: int, data: bytes, pos: int, end: int) -> None:
        descriptor: Any = None
        code = -1
        try:
            if data[pos] == 0 and data[pos + 1] == 0x53:
                descriptor = code = data[pos + 2]
                pos += 3
            else:
                descriptor, pos = read_descriptor(data, pos)
                code = performative_code(descriptor)
            taker = incoming.TAKERS.get(code)
            if taker is None:
                self._take_control(code, descriptor, channel, data, pos, end)
                return
            session = self.remote_sessions.get(channel)
            if session is None or self.mute:
                control.refuse_stray(self, NAMES[code], channel)
            elif not session.discarding and (not session.mute or code in incoming.TAKEN_AFTER_END):
                taker(session, data, pos, end)
            else:
                incoming.miss(session, code, data, pos, end)
        except LinkFault as fault:
            fault.link.fail(AmqpError(fault.condition, fault.description))
        except SessionFault as fault:
            self.remote_sessions[channel].fail(AmqpError(fault.condition, fault.description))
        except (DecodeError, IndexError, ValueError, StructError) as error:
            text = str(error) if isinstance(error, ValueError) else "the octets end inside a value"
            name = NAMES.get(code, "a frame")
            raise Fault(DECODE_ERROR, f"{name} on channel {channel} cannot be decoded: {text}") from None

    def _take_control(self, code: int, descriptor: Any, channel: int, data: bytes, pos: int, end: int) -> None:
        taker = control.TAKERS.get(code)
        if taker is None:
            raise Fault(DECODE_ERROR, f"a frame whose body is no performative, but {descriptor!r}")
        taker(self, channel, decode_list(data, pos, end, NAMES[code]))

    def receive_eof(self) -> None:
        """The peer will send nothing more."""
        if self.deaf:
            return
        if not self._handshake.done:
            self.fail(*self._handshake.cut_off(b"".join(self._chunks)))
            return
        missing = "answering our close" if self.local_closed else "an AMQP close"
        self.fail(CONNECTION_FORCED, f"the peer closed the socket without {missing}")

    def fail(self, condition: str, description: str) -> None:
        """The engine is done for: say why, once, to the peer where it listens, and to the owner."""
        if self.deaf:
            return
        error = AmqpError(condition, description)
        self.error = self.error or error
        if self._handshake.done and not self.mute:
            # Part 2, 2.4.3: even a connection that goes wrong at once is opened before it is closed.
            try:
                if self.allows(LOCAL_OPEN):
                    self._write_open()
                self._write_close(error)
            except EngineStateError:
                pass  # An open too large to be written: then the socket closes without a word.
        self._finish()
        self.report((FAILED, error))
