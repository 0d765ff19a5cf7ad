"""The times of a connection: idle time-outs both ways (Part 2, 2.4.5), and what a peer has to open and for a frame.

Time comes in as an argument. Whether anything was read or written since the last tick is a flag, so that reading and
writing need no clock; a deadline is therefore late by at most the time between two ticks, and never early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .conditions import CONNECTION_FORCED, RESOURCE_LIMIT_EXCEEDED
from .frames import EMPTY_FRAME

if TYPE_CHECKING:
    from .engine import Engine

__all__ = ["Heartbeat", "pass_time"]

_LONGEST = (1 << 32) - 1
"""Milliseconds, a uint."""


class Heartbeat:
    """When to send an empty frame, and when to give up on the peer."""

    def __init__(self, timeout: float | None, opening: float | None = None, frame: float | None = None) -> None:
        self.timeout = timeout if timeout else None
        self.opening = opening
        self.frame = frame
        self._frame_by: float | None = None
        self._open_by: float | None = None
        self.read = False
        self.wrote = False
        self._give_up: float | None = None
        self._beat: float | None = None
        self._ticked = 0.0

    @property
    def advertised(self) -> int | None:
        """The idle-time-out of our open: "half its actual timeout", as the standard advises, in milliseconds; or the
        longest that an open can say (49 days)."""
        return None if self.timeout is None else max(int(min(self.timeout * 500, _LONGEST)), 1)

    def await_open(self, now: float) -> tuple[bool, float | None]:
        """Before anything is open: whether the peer took too long, and when to ask again."""
        if self.opening is None:
            return False, None
        if self._open_by is None:
            self._open_by = now + self.opening
        return now >= self._open_by, self._open_by

    def late(self) -> tuple[str, str]:
        """Condition and sentence for a peer that took too long."""
        return CONNECTION_FORCED, f"the peer did not open the connection within {self.opening:g} s"

    def begin_frame(self) -> None:
        """A frame was begun that has not come whole: its time runs from the next tick."""
        self._frame_by = None

    def await_frame(self, now: float, partial: bool) -> tuple[bool, float | None]:
        """Whether the rest of a frame took too long, and when to ask again."""
        if not partial or self.frame is None:
            self._frame_by = None
        elif self._frame_by is None:
            self._frame_by = now + self.frame
        return self._frame_by is not None and now >= self._frame_by, self._frame_by

    def overdue(self) -> tuple[str, str]:
        """Condition and sentence for a frame that was never finished."""
        return RESOURCE_LIMIT_EXCEEDED, f"a frame was begun and did not come whole within {self.frame:g} s"

    def tick(self, now: float, remote: int | None) -> tuple[bool, bool, float | None]:
        """Whether the peer has been silent too long, whether to send a frame now, and when to ask again."""
        if self.timeout is not None and (self.read or self._give_up is None):
            self._give_up = now + self.timeout
        self.read = False
        if self._give_up is not None and now >= self._give_up:
            return True, False, None
        beat = False
        if remote:
            interval = remote / 2000.0
            if self._beat is None:
                self._beat = now + interval
            elif self.wrote:
                # It was written at some time since the last tick: the earliest is what the peer is owed from.
                self._beat = self._ticked + interval
            if now >= self._beat:
                beat = True
                self._beat = now + interval
        self.wrote = False
        self._ticked = now
        deadlines = [moment for moment in (self._give_up, self._beat) if moment is not None]
        return False, beat, min(deadlines, default=None)

    def verdict(self) -> tuple[str, str]:
        """Condition and sentence for a peer that was silent too long."""
        return RESOURCE_LIMIT_EXCEEDED, f"local-idle-timeout expired: nothing came for {self.timeout:g} s"


def pass_time(engine: Engine, heartbeat: Heartbeat, now: float, partial: bool) -> float | None:
    """Send an empty frame or give up on the peer, where it is time; the next moment to ask, if any."""
    if not engine.local_open:
        late, deadline = heartbeat.await_open(now)
        if late:
            engine.fail(*heartbeat.late())
        return None if late else deadline
    if engine.rest is not None:
        heartbeat.read, partial = True, False  # it is not the peer that is silent: we do not listen
    remote = engine.remote.idle_time_out if engine.remote is not None else None
    expired, beat, deadline = heartbeat.tick(now, remote)
    overdue, frame_by = heartbeat.await_frame(now, partial)
    if expired or overdue:
        engine.fail(*(heartbeat.verdict() if expired else heartbeat.overdue()))
        return None
    if beat and not engine.out and not engine.unflushed:
        engine.out.append(EMPTY_FRAME)
        engine.out_size += len(EMPTY_FRAME)
    return min((moment for moment in (deadline, frame_by) if moment is not None), default=None)
