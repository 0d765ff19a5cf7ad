"""Windows that large messages share with small ones, between peers that have agreed to it.

Theory of operation.  A session's window counts frames, whatever is in them. Where large messages are read while they
come in, it has to be narrow, or much is held of one that nobody reads; and narrow it makes small messages wait. Worse,
once it is held back for the sake of one that nobody reads, everything else in the session stands still with it.

So two engines whose opens both say :data:`SHARED_WINDOWS` keep a rule that any window of Part 2, 2.5.6 allows:

* Who sends has at most :data:`SHARE` frames of deliveries of several frames under way, those that the peer's last flow
  has not counted yet. What waits for that is passed over by what is sent on other links of the session.
* Who receives says a window as wide as ever after each half of such a share; or at most half as wide as ever while a
  large message that nobody reads is to be held back. Within half a window large messages wait, and the others pass.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from jmsish.types import Symbol

from .serial import serial_difference

if TYPE_CHECKING:
    from .engine import Engine
    from .link import Link
    from .outgoing import Outgoing
    from .session import EngineSession

__all__ = ["SHARE", "SHARED_WINDOWS", "Share", "agree", "pump"]

SHARED_WINDOWS: Final = Symbol("shared-windows")
"""The property of an open that says so: true."""

SHARE: Final = 24
"""Frames of large messages that a session has under way at most: 384 KiB of a router's, so that it holds under 1 MB
with what has come, what is made for the next (`HIGH_WATER`), and uncounted there."""


class Share:
    """What one session has of large messages under way, in both directions."""

    __slots__ = ("came", "is_narrow", "passed", "told_narrow", "under_way", "widest")

    def __init__(self) -> None:
        # Outgoing: the ids of frames that the peer has not counted; the widest window it ever said; the last was not.
        self.under_way: deque[int] = deque()
        self.widest = 0
        self.is_narrow = False
        self.passed: list[Link] = []
        """The links of what was passed over, at the front of the backlog, when something was last written."""
        # Incoming: frames of large ones since our last flow, and whether that held them back.
        self.came = 0
        self.told_narrow = False

    @property
    def is_used_up(self) -> bool:
        """Whether another frame of a large message has to wait."""
        return self.is_narrow or len(self.under_way) >= SHARE

    @property
    def wants_flow(self) -> bool:
        """Whether the peer is to hear of a window because of what came of large messages."""
        return self.told_narrow or self.came >= SHARE // 2

    def heard(self, following: int, window: int) -> None:
        """The peer has counted the frames before ``following``, and says a window."""
        under_way = self.under_way
        while under_way and serial_difference(following, under_way[0]) > 0:
            under_way.popleft()
        self.widest = max(self.widest, window)
        self.is_narrow = 2 * window <= self.widest

    def told(self, narrow: bool) -> None:
        """A flow was written."""
        self.came = 0
        self.told_narrow = narrow


def agree(engine: Engine) -> None:
    """Share the windows of all sessions from now on, where the opens of both say so; before any transfer."""
    remote = engine.remote
    if remote is None or not (engine.properties or {}).get(SHARED_WINDOWS):
        return
    if (remote.properties or {}).get(SHARED_WINDOWS) is not True:
        return
    engine.shares_windows = True
    for session in {*engine.sessions.values(), *engine.remote_sessions.values()}:
        if session.share is None:
            session.share = Share()
            session.share.widest = session.remote_left


def pump(session: EngineSession) -> None:
    """Write what waits, as far as window and credit go.

    What waits for its share of the window only is passed over, and so is what is behind it on its link.
    """
    backlog, share = session.backlog, session.share
    passed: list[Outgoing] = []
    blocked: set[Link] = set()
    while backlog and session.remote_left > 0 and not session.silent:
        item = backlog[0]
        link = item.delivery.link
        if link in blocked:
            passed.append(backlog.popleft())
        elif not item.started and link.credit + link.queued <= 0:
            link.held.append(backlog.popleft())  # the peer took credit back: it waits for new credit
        elif item.write(session):
            backlog.popleft()
            if link.awaiting_drain:
                link.drained()
        elif share is not None and share.is_used_up and session.remote_left > 0:
            blocked.add(link)
            passed.append(backlog.popleft())
        else:
            break
    if share is not None:
        backlog.extendleft(reversed(passed))
        share.passed = [item.delivery.link for item in passed]
