"""The door: connections that were accepted and have not opened have their turns one by one.

The handshakes of one cost some 0.3 ms, with TLS 1 or 2: hundreds that come at once would hold up everybody who is in
for as long as that takes together. So those at the door are watched by a selector of their own, which the selector of
the I/O thread sees as one thing that is readable; and when that thread has heard all who are in (and the listening
sockets, of each of which it accepts one), it hears a few of them. Of one host they are called in the order in which
they were found to have something, each once before it is called again; so nobody at the door is passed over either.
And the hosts take turns: whoever comes from another one than a thousand others does not wait for them.

A selector that cannot be watched by another one (that of Windows) has no door: who is there counts as one who is in.
"""

from __future__ import annotations

import selectors
from collections.abc import Iterator
from typing import Protocol

__all__ = ["Door", "Guest", "Watched"]

_LOOK = 64
"""After so many turns it is looked again who has something: that may be somebody of another host. (With two thousand
at the door a look takes a millisecond.)"""


class Watched(Protocol):
    """A socket of the I/O thread."""

    def fileno(self) -> int: ...

    def readable(self) -> None:
        """It has input, an end, or somebody to be accepted."""

    def writable(self) -> None:
        """It takes output again."""

    def close(self) -> None:
        """A fault has met it."""


class Guest(Watched, Protocol):
    """One who may be at the door."""

    @property
    def crowd(self) -> str:
        """Those who wait for their turn together: a host."""


class Door:
    """Which sockets are watched, inside and at the door. Used by the I/O thread alone."""

    def __init__(self) -> None:
        self._inside = selectors.DefaultSelector()
        self._outside = selectors.DefaultSelector()
        self._waiting: dict[str, dict[Guest, int]] = {}  # whose turn is next comes first
        self._turns = 0  # since it was looked who has something
        if hasattr(self._outside, "fileno"):
            self._inside.register(self._outside, selectors.EVENT_READ, self)
        else:
            self._outside.close()
            self._outside = self._inside

    def select(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Who is in and has something, for so many seconds at most; the door itself where somebody waits at it."""
        return self._inside.select(timeout)

    def waiting(self) -> Iterator[tuple[Watched, int]]:
        """Those at the door who have something, with what they have; who is taken from here has had its turn."""
        waiting = self._waiting
        if not waiting or self._turns >= _LOOK:
            self._look()
        while waiting:
            crowd = next(iter(waiting))
            guests = waiting.pop(crowd)
            guest = next(iter(guests))
            mask = guests.pop(guest)
            if guests:
                waiting[crowd] = guests
            if self._home(guest) is self._outside:  # neither gone nor in since
                self._turns += 1
                yield guest, mask

    def _look(self) -> None:
        self._turns = 0
        for key, mask in self._outside.select(0):
            self._waiting.setdefault(key.data.crowd, {}).setdefault(key.data, mask)

    def watch(self, watched: Watched, events: int, *, at_the_door: bool) -> None:
        """Watch for these events, 0 for none; where it is watched already it stays inside or at the door."""
        home = self._home(watched)
        if home is None:
            if events:
                (self._outside if at_the_door else self._inside).register(watched, events, watched)
        elif not events:
            home.unregister(watched)
        elif home.get_key(watched).events != events:
            home.modify(watched, events, watched)

    def let_in(self, watched: Watched) -> None:
        """It counts as one of those inside from now on."""
        if self._home(watched) is self._outside and self._outside is not self._inside:
            events = self._outside.unregister(watched).events
            self._inside.register(watched, events, watched)

    def _home(self, watched: Watched) -> selectors.BaseSelector | None:
        """The selector that watches it."""
        if watched.fileno() >= 0:
            for selector in (self._inside, self._outside):
                if watched in selector.get_map():
                    return selector
        return None

    def close(self) -> None:
        self._outside.close()
        self._inside.close()
