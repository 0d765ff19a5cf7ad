"""What happened in a demo, order by order, and the checks that can only be made while it happens.

Pure. The rules it holds a broker to:

* One session works on the orders one after the other, so each delivery must be of the first order that is not
  done yet: what was rolled back comes again before anything later (positional put-back), and nothing overtakes.
* An order is delivered for the first time with count 1, and one more after each attempt that was given back. A
  message that only lay in a buffer gains nothing by any clean way back; after a cut connection it may have gained
  one, because the broker cannot know what had been read.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Ledger:
    """`broker_limit`: the broker itself dead-letters an order that was given back `max_attempts` times."""

    total: int
    max_attempts: int
    broker_limit: bool = True
    sent: int = 0
    head: int = 1
    deliveries: int = 0
    redelivered: int = 0
    rollbacks: int = 0
    processed: int = 0
    dead_lettered: int = 0
    consumers_closed: int = 0
    out_of_order: int = 0
    wrong_count: int = 0
    attempts: dict[int, int] = field(default_factory=dict)
    cut_at: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def connections_cut(self) -> int:
        return len(self.cut_at)

    @property
    def done(self) -> bool:
        return self.head > self.total

    def attempt_of(self, number: int) -> int:
        """Which attempt the delivery in hand is: 1 the first time."""
        return self.attempts.get(number, 0) + 1

    def handed_over(self, number: int, count: int, redelivered: bool) -> None:
        self.deliveries += 1
        given_back = self.attempts.get(number, 0)
        if given_back:
            self.redelivered += 1
        if number != self.head:
            self.out_of_order += 1
            self.note(f"order {number} came where order {self.head} was due{self._perhaps_why()}")
        perhaps_seen = sum(number > cut for cut in self.cut_at)
        if not given_back + 1 <= count <= given_back + 1 + perhaps_seen or redelivered != (count > 1):
            self.wrong_count += 1
            self.note(f"order {number} came with count {count}, redelivered {redelivered}, after {given_back} attempts")

    def _perhaps_why(self) -> str:
        tried = self.attempts.get(self.head, 0)
        if self.broker_limit or not tried:
            return ""
        return f", which was given back {tried} times: has this broker a limit of its own, below --max-attempts?"

    def given_back(self, number: int) -> None:
        """The attempt failed: rolled back by us, or by the broker when the connection went."""
        self.rollbacks += 1
        self.attempts[number] = self.attempts.get(number, 0) + 1
        if self.broker_limit and self.attempts[number] >= self.max_attempts:
            self.dead_lettered += 1
            self._finish(number)

    def connection_cut(self, number: int) -> None:
        """The connection went while this order was in hand; what was behind it in the buffers may have gained a
        count.
        """
        self.cut_at.append(number)
        self.given_back(number)

    def committed(self, number: int, *, dead: bool = False) -> None:
        if dead:
            self.dead_lettered += 1
        else:
            self.processed += 1
        self._finish(number)

    def _finish(self, number: int) -> None:
        # After a mishap the head must not run backwards, or one overtaking would be reported for every later order.
        self.head = max(self.head, number + 1)

    def note(self, text: str) -> None:
        """A remark for the end of the run; a broken broker must not fill the screen."""
        if len(self.notes) < 20:
            self.notes.append(text)
