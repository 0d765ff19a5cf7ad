"""The states of an endpoint: of a connection, a session or a link.

Theory of operation.  Each end of an endpoint is opened once and closed once (open/close, begin/end, attach/detach),
and the two ends do so independently. The state is therefore the pair of both ends, and the machine is the table below.
An input that is not in the row of the current state is not allowed: local ones are a mistake of the caller, remote ones
a mistake of the peer. The names follow Part 2, 2.4.6 and 2.5.5.

                      local_open     remote_open    local_close    remote_close
    UNMAPPED          OPEN_SENT      OPEN_RCVD      -              -
    OPEN_SENT         -              OPENED         OPEN_CLOSED    -
    OPEN_RCVD         OPENED         -              -              CLOSE_PIPED
    OPENED            -              -              CLOSE_SENT     CLOSE_RCVD
    OPEN_CLOSED       -              CLOSE_SENT     -              -
    CLOSE_PIPED       CLOSE_RCVD     -              -              -
    CLOSE_SENT        -              -              -              ENDED
    CLOSE_RCVD        -              -              ENDED          -
    ENDED             -              -              -              -

OPEN_CLOSED is an endpoint opened and closed before the peer answered; CLOSE_PIPED one that the peer opened and closed
before we answered, which we still may open and then close, so that each frame of the peer gets its answer.
"""

from __future__ import annotations

from .conditions import EngineStateError

__all__ = [
    "CLOSE_PIPED",
    "CLOSE_RCVD",
    "CLOSE_SENT",
    "ENDED",
    "Endpoint",
    "LOCAL_CLOSE",
    "LOCAL_OPEN",
    "OPENED",
    "REMOTELY_OPEN",
    "OPEN_CLOSED",
    "OPEN_RCVD",
    "OPEN_SENT",
    "REMOTE_CLOSE",
    "REMOTE_OPEN",
    "STATE_NAMES",
    "TABLE",
    "UNMAPPED",
]

UNMAPPED, OPEN_SENT, OPEN_RCVD, OPENED, OPEN_CLOSED, CLOSE_PIPED, CLOSE_SENT, CLOSE_RCVD, ENDED = range(9)

STATE_NAMES = (
    "UNMAPPED", "OPEN_SENT", "OPEN_RCVD", "OPENED", "OPEN_CLOSED", "CLOSE_PIPED", "CLOSE_SENT", "CLOSE_RCVD", "ENDED",
)  # fmt: skip

LOCAL_OPEN, REMOTE_OPEN, LOCAL_CLOSE, REMOTE_CLOSE = range(4)

TABLE: tuple[tuple[int | None, int | None, int | None, int | None], ...] = (
    # local_open  remote_open  local_close  remote_close
    (OPEN_SENT, OPEN_RCVD, None, None),  # UNMAPPED
    (None, OPENED, OPEN_CLOSED, None),  # OPEN_SENT
    (OPENED, None, None, CLOSE_PIPED),  # OPEN_RCVD
    (None, None, CLOSE_SENT, CLOSE_RCVD),  # OPENED
    (None, CLOSE_SENT, None, None),  # OPEN_CLOSED
    (CLOSE_RCVD, None, None, None),  # CLOSE_PIPED
    (None, None, None, ENDED),  # CLOSE_SENT
    (None, None, ENDED, None),  # CLOSE_RCVD
    (None, None, None, None),  # ENDED
)

_LOCALLY_OPEN = frozenset({OPEN_SENT, OPENED, CLOSE_RCVD})
REMOTELY_OPEN = frozenset({OPEN_RCVD, OPENED, CLOSE_SENT})
_LOCALLY_CLOSED = frozenset({OPEN_CLOSED, CLOSE_SENT, ENDED})
_REMOTELY_CLOSED = frozenset({CLOSE_PIPED, CLOSE_RCVD, ENDED})


class Endpoint:
    """A connection, a session or a link: the pair of its two ends."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = UNMAPPED

    def allows(self, step: int) -> bool:
        """Whether ``step`` has a place in the table."""
        return TABLE[self.state][step] is not None

    def advance(self, step: int) -> None:
        """Take ``step``; EngineStateError when the table has no place for it."""
        after = TABLE[self.state][step]
        if after is None:
            verb = ("open", "take a remote open", "close", "take a remote close")[step]
            raise EngineStateError(f"cannot {verb} in the state {STATE_NAMES[self.state]}")
        self.state = after

    @property
    def local_open(self) -> bool:
        """Whether this end is open: opened and not closed since."""
        return self.state in _LOCALLY_OPEN

    @property
    def remote_open(self) -> bool:
        """Whether the peer's end is open."""
        return self.state in REMOTELY_OPEN

    @property
    def local_closed(self) -> bool:
        """Whether this end was opened and closed."""
        return self.state in _LOCALLY_CLOSED

    @property
    def remote_closed(self) -> bool:
        """Whether the peer's end was opened and closed."""
        return self.state in _REMOTELY_CLOSED
