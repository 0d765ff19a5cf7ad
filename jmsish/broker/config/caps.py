"""The section ``[limits]``: what one peer may cost, whoever it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from jmsish.broker.config.faults import Table
from jmsish.engine.frames import MIN_MAX_FRAME_SIZE
from jmsish.engine.limits import Limits

LARGEST_UINT: Final = (1 << 32) - 1
LARGEST_CHANNEL: Final = (1 << 16) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Caps and times of connections; 0 is no limit, but for the last three, which have to be something."""

    handshake_timeout: float = 15.0
    """Seconds for the handshakes of TLS and WebSocket."""
    opening_timeout: float = 10.0
    """Seconds from there to say who one is and to open; who says nothing holds a socket for no longer."""
    frame_timeout: float = 60.0
    """Seconds for a frame that was begun to come whole: the largest, at 2.2 KiB a second."""
    idle_timeout: float = 60.0
    """Seconds without a word after which a connection counts as lost; the peer is told half of it (Part 2, 2.4.5)."""
    stall_timeout: float = 60.0
    """Seconds in which a peer for which there is something takes nothing of it, until its connection ends."""
    max_opening: int = 4096
    """Connections that have not opened, at a time. One more, and the one that has waited longest of the host that has
    the most of them goes: those who mean it open within milliseconds."""
    max_opening_per_host: int = 2048
    """Of them from one host; one more is closed as soon as it is accepted."""
    max_links: int = 10_000
    """Links of a connection; one more is refused. Each costs the broker about 4 KiB."""
    max_unsettled: int = 100_000
    """Messages that a session has got and not settled; it gets no more until it settles some. Each costs 0.5 KiB
    beside its message. And messages that it has sent and not settled, where it is the one to (rcv-settle-mode second):
    more of them end the session."""
    max_unfinished: int = 1 << 28
    """Octets of the messages that a connection has begun and not finished, beside the largest of them."""
    max_transactions: int = 1_000
    """Transactions that a connection has declared and not discharged; a further declare is refused."""
    max_frame_size: int = 1 << 17
    """Octets of a frame that the peer may send. A frame is one turn of everybody's work, and a message has many."""
    max_sessions: int = 4096
    """Sessions of a connection: its channels, of which the broker says how many there are."""
    max_name_length: int = 8192
    """Octets of the name of a link, which is kept as long as the link; one with a longer name is refused. (A name of a
    container fits into an open of 512 octets.)"""

    def of_engine(self) -> Limits:
        """Those that hold below the broker. A link that was refused counts until it is detached."""
        links = 2 * self.max_links if self.max_links else LARGEST_UINT
        return Limits(
            frame_timeout=self.frame_timeout or None, max_links=links, max_unfinished=self.max_unfinished
        )


def read_limits(config: Table) -> Caps:
    """The section, key by key."""
    table = config.table_of("limits")
    times = ("handshake_timeout", "opening_timeout", "frame_timeout", "idle_timeout", "stall_timeout")
    counts = ("max_opening", "max_opening_per_host", "max_links", "max_unsettled", "max_unfinished",
              "max_transactions")  # fmt: skip
    table.check_keys((*times, *counts, "max_frame_size", "max_sessions", "max_name_length"))
    usual = Caps()
    found: dict[str, Any] = {name: table.seconds(name, getattr(usual, name)) for name in times}
    found |= {name: table.count(name, getattr(usual, name)) for name in counts}
    return Caps(
        **found,
        max_frame_size=table.count("max_frame_size", usual.max_frame_size, least=MIN_MAX_FRAME_SIZE, most=LARGEST_UINT),
        max_sessions=table.count("max_sessions", usual.max_sessions, least=1, most=LARGEST_CHANNEL + 1),
        max_name_length=table.count("max_name_length", usual.max_name_length, least=64),
    )
