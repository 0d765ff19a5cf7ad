"""Turns: how much of what one connection brings is worked off before the others have theirs.

One read brings up to a quarter of a megabyte. Of bulk messages that is a millisecond of work; of attaches, echoes or
tiny transfers it is a hundred. So what comes by a socket is worked off in slices of a fraction of one, and between
two slices of the one who floods, everybody else is heard. How many octets that is shows the work itself: each
connection has its pace, measured in time of this thread's processor, and only where so much comes at once that it
matters.

What is left waits here, and meanwhile nothing more is read from that socket: who sends faster than it is worked off is
slowed by TCP, and costs one read of memory. The same holds for who asks and takes no answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import thread_time

from jmsish.drivers.broker_core import ServerConnection
from jmsish.drivers.transport import LOW_WATER, Outlet

__all__ = ["ALONE", "AT_ONCE", "CHOKED", "COMPANY", "NEVER", "ROUND", "SLICE", "SMALL", "Behind", "Lane", "Share"]

NEVER = float("inf")

AT_ONCE = (False,)
"""For a lock that is to be taken without waiting, and noted in the same step."""

SLICE = 0.0001
"""Seconds of work on one connection without a look at the others, while others bring something: less than it takes to
serve one of them, so that beside a flood one waits twice to three times as long as beside nobody."""

ALONE = 0.0003
"""The same while nobody else has brought anything lately. (To look after each 0.1 ms costs a stream of small messages
five in a hundred of its processor time, after each 0.3 nothing that can be measured.)"""

ROUND = 0.004
"""Seconds of work on what was left, while nobody else brings anything: a batch for the dispatch behind it."""

COMPANY = 0.1
"""Seconds for which somebody counts as there who has brought something while there was a rest of others."""

SMALL = 512
"""So few octets are worked off at once and not measured: most that is said to be answered, and of attaches eight."""

CHOKED = 1 << 18
"""With so many octets of output that its peer does not take, a connection's input is not worked off."""

_LEAST = 128
"""A slice has at least so many octets."""

_UNKNOWN = 2e-7
"""Seconds an octet, until something was measured: between a small message and an attach."""

_FASTEST = 1e-10
"""Seconds an octet: so a slice has a megabyte at most."""


class Share:
    """What one connection has brought that is not worked off, and its pace."""

    __slots__ = ("_at", "pace", "rest", "resume")

    def __init__(self, resume: Callable[[], None]) -> None:
        self.rest: deque[bytes] = deque()
        """In order; ``b""`` is the end."""
        self.pace = _UNKNOWN
        self.resume = resume
        """Called when there is no rest any more: it may bring more."""
        self._at = 0

    def put(self, data: bytes) -> None:
        self.rest.append(data)

    def work(self, receive: Callable[[bytes], None], seconds: float = SLICE) -> None:
        """Have one slice of the rest worked off, of about so many seconds."""
        data = self.rest[0]
        end = self._at + max(int(seconds / self.pace), _LEAST)
        if end >= len(data):
            self.rest.popleft()
            part, self._at = data[self._at :] if self._at else data, 0
        else:
            part, self._at = data[self._at : end], end
        before = thread_time()
        receive(part)
        if len(part) >= _LEAST:
            self.learn(len(part), thread_time() - before)

    def learn(self, octets: int, seconds: float) -> None:
        """So many octets took so long: half of the pace is what it was before."""
        self.pace = max((self.pace + seconds / octets) / 2, _FASTEST)


class Lane:
    """One connection as the driver sees it: the broker's end of it, and where its output goes."""

    __slots__ = ("connection", "due", "ending", "gone", "outlet", "over", "share")

    def __init__(self, connection: ServerConnection, outlet: Outlet, share: Share | None) -> None:
        self.connection = connection
        self.outlet = outlet
        self.share = share  # None inside the process: what it brings is worked off at once
        self.due = NEVER  # of its own timers, by time.monotonic
        self.ending = False  # the peer has ended it, maybe behind a rest
        self.over = False  # and the broker knows
        self.gone = False  # nothing more is done for it

    @property
    def is_choked(self) -> bool:
        """Its peer takes no output, and there are many answers for it: it is asked nothing more until it does."""
        return self.outlet.held and self.connection.unsent > CHOKED and not self.ending

    @property
    def has_to_wait(self) -> bool:
        """What it brings is not worked off now."""
        return self.connection.is_busy or (self.outlet.held and self.is_choked)

    def holds(self) -> bool:
        """Whether to leave the output in the connection, whose backlog is high, until its reader resumes.

        The broker in turn dispatches no more to a connection that holds much output, so a slow reader costs a bounded
        amount of memory. A connection that is closed adds nothing more: its last words go out in any case.
        """
        if self.connection.closed:
            return False
        outlet = self.outlet
        # Said before looking again: the reader first reads and then looks at the flag, so one of the two sees.
        outlet.held = True
        if outlet.delivered - outlet.consumed > LOW_WATER:
            return True
        outlet.held = False
        return False


class Behind:
    """Lanes whose rest stands behind something that the broker works off in portions, or waits for its peer to read."""

    __slots__ = ("lanes",)

    def __init__(self) -> None:
        self.lanes: dict[Lane, None] = {}

    def keeps(self, lane: Lane) -> bool:
        """Whether its rest has to wait. A choked one comes again when its output was taken, and is not kept here."""
        if not lane.has_to_wait:
            return False
        if not lane.is_choked:
            self.lanes[lane] = None
        return True

    def over(self) -> list[Lane]:
        """Those that do not wait any more."""
        over = [lane for lane in self.lanes if lane.gone or not lane.connection.is_busy]
        for lane in over:
            del self.lanes[lane]
        return [lane for lane in over if not lane.gone]
