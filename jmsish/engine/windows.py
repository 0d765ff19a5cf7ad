"""The incoming window of a session that is to be narrower than its connection's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .session import EngineSession

_MASK = 0xFFFFFFFF


def narrow_window(session: EngineSession, frames: int) -> None:
    """Before our begin: take so many transfer frames at a time, one at least, and no more than before (2.5.6)."""
    frames = max(1, min(frames, session.incoming_window))
    session.incoming_end = (session.next_incoming_id + frames) & _MASK
    session.incoming_window = session.incoming_left = frames
    session.low_mark = frames // 2
