"""What became of each message, as far as those know who sent and received it."""

from __future__ import annotations

import threading

Mine = tuple[set[str], set[str], int]
"""What was received and sent before a call that ends it, and which call that is."""


class Books:
    """What became of each message, by its text."""

    def __init__(self, by_itself: bool, strict: bool) -> None:
        self.lock = threading.Lock()
        self.by_itself = by_itself
        """What is received needs nothing more to be gone."""
        self.strict = strict
        """A call has returned exactly when it says so: with threads somebody may be between the two."""
        self.there: set[str] = set()
        """Must be on the queue."""
        self.gone: set[str] = set()
        """Must not be there any more, or never."""
        self.maybe: set[str] = set()
        self.blurred: set[str] = set()
        """May be or not, whatever comes."""
        self.held: set[str] = set()
        """Handed over, and waiting for the acknowledgement or the commit."""
        self.posted: set[str] = set()
        self.touched: set[str] = set()
        """Handed over at some time."""
        self.ending = 0
        """How often a call that ends what is held has begun or ended: what is received meanwhile, it ends or not."""
        self.active = 0
        self.faults: list[str] = []

    def is_unsure(self, began: int) -> bool:
        """Whether what began then was beside a call that ends what is held."""
        return began != self.ending or self.active > 0

    def got(self, text: str, began: int) -> None:
        with self.lock:
            if text in self.gone and text not in self.maybe | self.blurred:
                self.faults.append(f"{text} was received, and was gone before")
            self.touched.add(text)
            self.there.discard(text)
            if self.by_itself:
                self.gone.add(text)
            elif self.is_unsure(began):
                self.blurred.add(text)
            else:
                self.held.add(text)

    def sent(self, text: str, transacted: bool, began: int) -> None:
        with self.lock:
            if not transacted:
                self.there.add(text)
            elif self.is_unsure(began):
                self.blurred.add(text)
            else:
                self.posted.add(text)

    def end(self) -> Mine:
        """Whatever is held now is what a call ends that begins."""
        with self.lock:
            self.ending += 1
            self.active += 1
            mine = self.held, self.posted, self.ending
            self.held, self.posted = set(), set()
            self.maybe |= mine[0] | mine[1]
            return mine

    def ended(self, mine: Mine, outcome: bool | None) -> None:
        """Kept, or undone, or None where that is not known, as where another such call was beside it."""
        with self.lock:
            if outcome is None or self.ending != mine[2]:
                self.blurred |= mine[0] | mine[1]
            else:
                self.gone |= mine[not outcome]
                self.there |= mine[outcome]
            self._over(mine)

    def not_ended(self, mine: Mine) -> None:
        with self.lock:
            if self.ending != mine[2]:
                self.blurred |= mine[0] | mine[1]
            self.held |= mine[0]
            self.posted |= mine[1]
            self._over(mine)

    def _over(self, mine: Mine) -> None:
        self.maybe -= mine[0] | mine[1]
        self.ending += 1
        self.active -= 1
