"""What an engine does with the frames of a connection: open, begin, end and close, and frames that belong nowhere.

Each function takes the decoded fields. A plain fault closes the connection, a :class:`SessionFault` the session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .conditions import FRAMING_ERROR, NOT_ALLOWED, Fault, SessionFault
from .endpoint import REMOTE_CLOSE, REMOTE_OPEN
from .events import BEGUN, CLOSED, ENDED, OPENED
from .frames import MIN_MAX_FRAME_SIZE
from .limits import SHORTEST_IDLE_TIME_OUT
from .performatives import BEGIN, CLOSE, END, OPEN, Begin, read_begin, read_error, read_open
from .session import EngineSession
from .sharing import agree

if TYPE_CHECKING:
    from .engine import Engine

__all__ = ["TAKERS", "refuse_stray"]

_MASK = 0xFFFFFFFF

LARGEST_FRAME = 1 << 20
"""We write no larger frames, whatever the peer could take: a large message shares the connection."""


def refuse_stray(engine: Engine, name: str, channel: int) -> None:
    """A frame of a session that is not there."""
    if engine.local_closed:
        return  # Part 2, 2.4.6: after our close the rest is read for the peer's close alone.
    if engine.remote is None:
        raise Fault(NOT_ALLOWED, f"{name} before open")
    raise Fault(NOT_ALLOWED, f"{name} on channel {channel}, where no session has begun")


def take_open(engine: Engine, channel: int, fields: list[Any]) -> None:
    """Part 2, 2.4.1: who the peer is, and what it can take."""
    if channel != 0:
        raise Fault(FRAMING_ERROR, f"open on channel {channel}, where it belongs on 0")
    if not engine.allows(REMOTE_OPEN):
        raise Fault(NOT_ALLOWED, "open a second time")
    remote = read_open(fields)
    if remote.max_frame_size < MIN_MAX_FRAME_SIZE and (remote.max_frame_size or engine.is_server):
        # A broker that refuses (Broker-J) leaves all in its open zero; what counts is the close behind it.
        raise Fault(FRAMING_ERROR, f"open.max-frame-size {remote.max_frame_size} is below {MIN_MAX_FRAME_SIZE}")
    if remote.idle_time_out and remote.idle_time_out < SHORTEST_IDLE_TIME_OUT:
        # Part 2, 2.4.5: who "can not, for any reason support a proposed idle timeout" closes "explaining why".
        text = f"an idle-time-out of {remote.idle_time_out} ms, where {SHORTEST_IDLE_TIME_OUT} are the least"
        raise Fault(NOT_ALLOWED, text)
    engine.advance(REMOTE_OPEN)
    engine.remote = remote
    engine.max_frame_out = max(min(remote.max_frame_size, LARGEST_FRAME), MIN_MAX_FRAME_SIZE)
    engine.frames_limit = engine.max_frame_size
    agree(engine)
    if not engine.local_closed:
        engine.report((OPENED,))


def take_begin(engine: Engine, channel: int, fields: list[Any]) -> None:
    """Part 2, 2.5.1: an answer to our begin, or a session the peer begins."""
    if engine.local_closed or engine.remote is None:
        refuse_stray(engine, "begin", channel)
        return
    begin = read_begin(fields)
    if channel > engine.channel_max:
        # Part 2, 2.7.1: "a peer that receives a channel number outside the supported range MUST close".
        raise Fault(FRAMING_ERROR, f"begin on channel {channel}, beyond the channel-max of {engine.channel_max}")
    other = engine.remote_sessions.get(channel)
    if other is not None:
        if other.discarding:
            return
        raise SessionFault(NOT_ALLOWED, f"begin on channel {channel}, where a session is under way")
    session = _session_for(engine, begin)
    session.advance(REMOTE_OPEN)
    session.remote_channel = channel
    session.remote_handle_max = begin.handle_max
    session.incoming_end = (begin.next_outgoing_id + session.incoming_left) & _MASK
    session.set_remote_window(session.initial_outgoing_id, begin.incoming_window)
    engine.remote_sessions[channel] = session
    if not session.local_closed:
        engine.report((BEGUN, session))


def _session_for(engine: Engine, begin: Begin) -> EngineSession:
    if begin.remote_channel is None:
        return EngineSession(engine)
    session = engine.sessions.get(begin.remote_channel)
    if session is None or not session.allows(REMOTE_OPEN):
        raise Fault(NOT_ALLOWED, f"begin answers channel {begin.remote_channel}, where no session waits for it")
    return session


def take_end(engine: Engine, channel: int, fields: list[Any]) -> None:
    """The peer ends a session; its ledger stays with it, for the owner to decide."""
    session = engine.remote_sessions.get(channel)
    if session is None or engine.local_closed:
        refuse_stray(engine, "end", channel)
        return
    error = read_error(fields)
    session.advance(REMOTE_CLOSE)
    del engine.remote_sessions[channel]
    engine.remote_link_count -= len(session.remote_links)
    session.silence_remote()
    engine.session_closed(session)
    if session.fault is None:
        engine.report((ENDED, session, error))


def take_close(engine: Engine, channel: int, fields: list[Any]) -> None:
    """The peer closes. Part 2, 2.4.6: we "can continue to write frames onto the connection" until our own close."""
    error = read_error(fields)
    if not engine.allows(REMOTE_CLOSE):
        raise Fault(NOT_ALLOWED, "close before open")
    engine.advance(REMOTE_CLOSE)
    engine.report((CLOSED, error))
    engine.stop_reading()


TAKERS: dict[int, Callable[[Engine, int, list[Any]], None]] = {
    OPEN: take_open,
    BEGIN: take_begin,
    END: take_end,
    CLOSE: take_close,
}
