"""The lobby: connections that were accepted and have not opened yet, about whose peers nothing is known.

Each costs a descriptor and some memory, for as long as its times allow, so their number is bounded: of one host, whose
next one is closed as soon as it is accepted, and in all. When all places are taken the newcomer gets that of the guest
who has waited longest among those of the host that has the most: who means it opens within milliseconds, so a flood
turns its own connections away, and whoever comes meanwhile has as long as the flood takes to fill the lobby once.

No clock and no socket: time is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["Lobby"]

G = TypeVar("G")

MOST = 4096
MOST_OF_A_HOST = 2048


class Lobby(Generic[G]):
    """Guests by their hosts; 0 for either number is no limit."""

    def __init__(self, most: int = MOST, most_of_a_host: int = MOST_OF_A_HOST) -> None:
        self._most = most
        self._most_of_a_host = most_of_a_host
        self._guests: dict[G, tuple[str, float]] = {}
        self._hosts: dict[str, dict[G, None]] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def __contains__(self, guest: object) -> bool:
        return guest in self._guests

    def of_host(self, host: str) -> int:
        """How many of its connections wait here."""
        return len(self._hosts.get(host, ()))

    def turned_away(self, host: str) -> G | None | bool:
        """Who has to go if a guest of ``host`` is to come in: somebody, ``None`` if nobody, ``False``: the newcomer."""
        if self._most_of_a_host and self.of_host(host) >= self._most_of_a_host:
            return False
        if not self._most or len(self._guests) < self._most:
            return None
        fullest = max(self._hosts.values(), key=len)
        return next(iter(fullest))

    def enter(self, guest: G, host: str, now: float) -> None:
        self._guests[guest] = host, now
        self._hosts.setdefault(host, {})[guest] = None

    def leave(self, guest: G) -> None:
        """It has opened, or is gone; twice is silent."""
        found = self._guests.pop(guest, None)
        if found is not None:
            of_host = self._hosts[found[0]]
            del of_host[guest]
            if not of_host:
                del self._hosts[found[0]]

    def came_before(self, moment: float) -> Iterator[G]:
        """Those who have been here since ``moment`` or longer, the first first."""
        for guest, (_, entered) in list(self._guests.items()):
            if entered > moment:
                return
            yield guest
