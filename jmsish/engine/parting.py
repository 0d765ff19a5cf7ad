"""What is over is let go of: no ring of references keeps it until the collector of garbage comes by.

Theory of operation.  While it lives, what belongs together finds each other in both directions: a link its session and
the session its links, a link the terminal of its owner and the terminal its link. Each such pair is a ring, of which
reference counting frees nothing. So when an end has come one direction is given up: the one from the table to what is
in it, and from the link to the terminal. What somebody still holds of the rest stays as it is, and finds its way up.

The moment is the owner's, and it is the end of a batch: the events behind an end that were read together with it may
still name what has ended. A link that is detached may have deliveries besides, of which its receiver disposes later
(W16); it is looked after here until none is left, or its session is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .delivery import Delivery
    from .engine import Engine
    from .link import Link
    from .session import EngineSession

__all__ = ["Parting", "part_engine", "part_link", "part_session"]


def part_link(link: Link) -> None:
    """Both ends are detached, and nothing more is said of what the link carried."""
    link.context = link.current = None
    for delivery in link.unsent:
        delivery.context = None
    link.unsent.clear()


def part_session(session: EngineSession) -> None:
    """It has ended: what was not decided of its deliveries is not going to be, and no frame finds a link here."""
    session.engine.remote_link_count -= len(session.remote_links)
    for link in {*session.links.values(), *session.remote_links.values()}:
        part_link(link)
    for delivery in (*session.incoming.values(), *session.outgoing.values()):
        delivery.context = None
    for table in (session.links, session.remote_links, session.awaiting, session.incoming, session.outgoing):
        table.clear()
    session.backlog.clear()
    session.context = session.share = None


def part_engine(engine: Engine) -> None:
    """Nothing is read and nothing written any more. As long as that is not so, nothing is done."""
    if not (engine.deaf and engine.mute):
        return
    for session in {*engine.sessions.values(), *engine.remote_sessions.values()}:
        part_session(session)
    for table in (engine.sessions, engine.remote_sessions, engine.link_names, engine.unflushed, engine.throttled):
        table.clear()


class Parting:
    """What of one connection is over, until it is let go of."""

    __slots__ = ("_links", "_sessions", "_sweep_at")

    def __init__(self) -> None:
        self._links: list[Link] = []
        self._sessions: list[EngineSession] = []
        self._sweep_at = 1

    def __bool__(self) -> bool:
        return bool(self._links or self._sessions)

    def detached(self, link: Link) -> None:
        """Nothing more comes on a link; of what it has carried something may still be said."""
        self._links.append(link)

    def ended(self, session: EngineSession) -> None:
        """A session is over."""
        self._sessions.append(session)

    def batch_done(self, still_sending: Iterable[Delivery]) -> None:
        """No event is at hand that could name what is over, but deliveries may be; and these are still on their way."""
        for session in self._sessions:
            part_session(session)
        self._sessions.clear()
        if len(self._links) >= self._sweep_at:
            needed = {delivery.link for delivery in still_sending}
            needed.update(link for link in self._links if not link.local_closed)  # its owner will answer later
            self._sweep(needed)
            # Those that stay are looked at again when they have become half as many again, so that a link costs the
            # same however many there are.
            self._sweep_at = 1 + len(self._links) * 3 // 2

    def _sweep(self, needed: set[Link]) -> None:
        for session in {link.session for link in self._links}:
            needed.update(delivery.link for delivery in session.outgoing.values())
        for link in self._links:
            if link not in needed:
                part_link(link)
        self._links = [link for link in self._links if link in needed]

    def all_over(self, engine: Engine) -> None:
        """The connection has ended, and what it had was given back."""
        self.batch_done(())
        for link in self._links:
            part_link(link)
        self._links.clear()
        part_engine(engine)
