"""What can be reached from a router, and over which of its neighbours (R3).

Theory of operation.  The network is a tree, so whatever lies behind a neighbour is reached over that neighbour alone,
and what a neighbour is told is everything that does not lie behind it: what is here, and what the other neighbours have
told. Told are *keys* with the number of hops to the nearest place; a key is an address with a receiver, a prefix of
link routes, a connector that such lead to, the id of a router, or two routers that are neighbours, as its first letter
says. Only changes are told, after everything was told once.

In a tree there is exactly one way to a router. A router id that is told by two neighbours, or by one who is not meant
to know a second router of our own name, means a ring or a name used twice; :meth:`Reach.learn` finds it before anything
is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, Generic, TypeVar

ADDRESS: Final = "A"
PREFIX: Final = "L"
CONNECTOR: Final = "C"
ROUTER: Final = "R"
JOIN: Final = "J"
"""Two routers that are neighbours; he who was dialled answers for it. Nothing depends on these: they are for views."""

HOPS_LIMIT: Final = 1000
"""No network is so deep: what claims to be farther away is nonsense."""

BETWEEN: Final = "\n"
"""Between the parts of a key: no id of a router and no name of a connector has it."""

Neighbour = TypeVar("Neighbour")


def join_key(role: str, dialler: str, dialled: str) -> str:
    """The key of two routers that are neighbours."""
    return f"{JOIN}{role}{BETWEEN}{dialler}{BETWEEN}{dialled}"


class RingError(Exception):
    """A router can be reached over two neighbours, so the network is no tree any more, or two have the same id."""

    def __init__(self, router: str) -> None:
        super().__init__(router)
        self.router = router


class Reach(Generic[Neighbour]):
    """The keys that are here and that neighbours have told."""

    def __init__(self, router: str) -> None:
        self.router = router
        self._here: dict[str, int] = {ROUTER + router: 1}
        self._learned: dict[str, dict[Neighbour, int]] = {}
        self._told: dict[Neighbour, dict[str, int]] = {}
        self._news: dict[Neighbour, dict[str, None]] = {}
        self._counts: dict[Neighbour, int] = {}
        """How many keys each has told."""

    # --- what is here

    def begin(self, key: str) -> bool:
        """Somebody here answers for a key; whether that is the first."""
        count = self._here[key] = self._here.get(key, 0) + 1
        if count == 1:
            self._changed(key)
        return count == 1

    def end(self, key: str) -> bool:
        """Somebody here answers for it no more; whether that was the last."""
        count = self._here[key] - 1
        if count:
            self._here[key] = count
            return False
        del self._here[key]
        self._changed(key)
        return True

    def is_here(self, key: str) -> bool:
        """Whether somebody here answers for it."""
        return key in self._here

    # --- what neighbours tell

    def welcome(self, neighbour: Neighbour) -> None:
        """A neighbour that will be told everything."""
        self._told[neighbour] = {}
        keys = (*self._here, *self._learned)
        # Routers first: a ring is found before anything that is told over it is believed.
        self._news[neighbour] = dict.fromkeys(sorted(keys, key=lambda key: key[:1] != ROUTER))

    def learn(self, neighbour: Neighbour, add: Mapping[str, int], remove: Iterable[str]) -> list[str]:
        """What a neighbour tells: keys with their hops from there. The keys whose reach has changed here.

        RingError, and nothing is learned, where a router is named that is known from elsewhere, or is this one.
        """
        for key in add:
            if key[:1] == ROUTER and (
                key in self._here or any(other != neighbour for other in self._learned.get(key, ()))
            ):
                raise RingError(key[1:])
        changed = []
        for key in remove:
            if self._unlearn(neighbour, key):
                changed.append(key)
        for key, hops in add.items():
            known = self._learned.setdefault(key, {})
            if neighbour not in known:
                self._counts[neighbour] = self._counts.get(neighbour, 0) + 1
            if known.get(neighbour) != hops:
                known[neighbour] = hops
                changed.append(key)
        for key in changed:
            self._changed(key)
        return changed

    def farewell(self, neighbour: Neighbour) -> list[str]:
        """The neighbour is gone, and with it all that was learned over it. The keys whose reach has changed."""
        self._told.pop(neighbour, None)
        self._news.pop(neighbour, None)
        changed = [key for key in list(self._learned) if self._unlearn(neighbour, key)]
        self._counts.pop(neighbour, None)
        for key in changed:
            self._changed(key)
        return changed

    def _unlearn(self, neighbour: Neighbour, key: str) -> bool:
        known = self._learned.get(key)
        if known is None or known.pop(neighbour, None) is None:
            return False
        self._counts[neighbour] -= 1
        if not known:
            del self._learned[key]
        return True

    def count(self, neighbour: Neighbour) -> int:
        """How many keys a neighbour has told."""
        return self._counts.get(neighbour, 0)

    def _changed(self, key: str) -> None:
        for news in self._news.values():
            news[key] = None

    # --- what is asked

    def distance(self, key: str, but: Neighbour | None = None) -> int | None:
        """Hops to the nearest place, 0 for here; over ``but`` does not count. None: it cannot be reached."""
        if key in self._here:
            return 0
        return min((hops for hops, _ in self.ways(key, but)), default=None)

    def ways(self, key: str, but: Neighbour | None = None) -> Iterator[tuple[int, Neighbour]]:
        """Over which neighbours it is reached, and how far it is that way."""
        for neighbour, hops in self._learned.get(key, {}).items():
            if neighbour is not but:
                yield hops + 1, neighbour

    def keys(self, kind: str) -> dict[str, int]:
        """All that is reached of one kind, without the letter, and how far away the nearest is."""
        found = {}
        for key in (*self._here, *self._learned):
            if key[:1] == kind:
                distance = self.distance(key)
                assert distance is not None
                found[key[1:]] = distance
        return found

    def behind(self, neighbour: Neighbour, kind: str) -> dict[str, int]:
        """All of one kind that is reached over a neighbour, without the letter, and how far away it is."""
        return {
            key[1:]: known[neighbour] + 1
            for key, known in self._learned.items()
            if key[:1] == kind and neighbour in known
        }

    # --- what is told

    def take_news(self, neighbour: Neighbour, most: int) -> tuple[dict[str, int], list[str]]:
        """What a neighbour is to be told next, so many at most: keys with their hops, and keys that are gone."""
        told, waiting = self._told[neighbour], self._news[neighbour]
        news = list(islice(waiting, most))
        add: dict[str, int] = {}
        remove = []
        for key in news:
            del waiting[key]
            hops = self.distance(key, neighbour)
            if hops is not None:
                hops = min(hops, HOPS_LIMIT - 1)  # what a neighbour has told us the others are to believe
            if hops is None:
                if told.pop(key, None) is not None:
                    remove.append(key)
            elif told.get(key) != hops:
                told[key] = add[key] = hops
        return add, remove

    def has_news(self, neighbour: Neighbour) -> bool:
        """Whether something may have changed since the neighbour was told."""
        return bool(self._news.get(neighbour))
