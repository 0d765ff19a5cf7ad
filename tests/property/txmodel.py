"""What a broker with transactions should hold: a plain model, told what arrived and shown what was handed out.

Each message is in one place at a time. Everything that follows from the frames that arrived is computed here; which of
several waiting receivers gets which message is not determined, so there the model only checks that it was allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jmsish.engine.outcomes import ACCEPTED, RELEASED, DeliveryState, Modified, Rejected, Released

LIMIT = 3
"""Attempts, on the queue "q"; the queue "p" has no limit."""
TIMEOUT = 5.0
WAITING, HELD, POSTED, DYING, DEAD, GONE = "waiting", "held", "posted", "dying", "dead", "gone"


@dataclass(eq=False)
class Letter:
    """A message."""

    body: str
    queue: str
    priority: int
    where: str = GONE
    """Gone until it has arrived."""
    sequence: int = 0
    count: int = 0
    attempts: int = 0
    barred: set[int] = field(default_factory=set)
    """Lines that never get it again."""
    kept: set[int] = field(default_factory=set)
    """Pre-settled lines that gave it back, and get it once they ask again."""

    @property
    def key(self) -> tuple[int, int]:
        return (-self.priority, self.sequence)


@dataclass(eq=False)
class Control:
    """A control link."""

    session: object
    transactions: list[Txn] = field(default_factory=list)
    over: bool = False


@dataclass(eq=False)
class Txn:
    """A transaction, live until discharged or lost with its control link."""

    control: Control
    live: bool = False
    failed: bool = False
    began: float = 0.0
    posts: list[Letter] = field(default_factory=list)
    work: list[Hold] = field(default_factory=list)


@dataclass(eq=False)
class Line:
    """A link on which a peer receives."""

    number: int
    queue: str
    default: DeliveryState | None
    presettled: bool
    session: object
    picky: bool = False
    """Its selector wants high priorities only."""
    attached: bool = False
    txn: Txn | None = None
    count: int = 0
    limit: int = 0
    drain: bool = False
    grace: float | None = None
    """When the second after its close is over; infinite until the clock was looked at."""
    holds: list[Hold] = field(default_factory=list)

    def returns_uncounted(self) -> bool:
        """Whether a message that it is handed may be handed to another in the same step, as it was."""
        default = self.default
        counts = isinstance(default, Modified) and default.delivery_failed
        return self.presettled and self.txn is None and not counts and isinstance(default, (Modified, Released))

    def may_have(self, letter: Letter) -> bool:
        if self.picky and letter.priority <= 4:
            return False
        return letter.queue == self.queue and self.number not in letter.barred | letter.kept


@dataclass(eq=False)
class Hold:
    """A message in the hands of a line."""

    line: Line
    letter: Letter
    delivery: Any
    live: bool = True
    """The broker holds the message for it."""
    listening: bool = True
    """A disposition would still be heard."""
    txn: Txn | None = None
    outcome: DeliveryState | None = None
    settled: bool = False
    acquired: bool = False


class Model:
    def __init__(self) -> None:
        self.letters: list[Letter] = []
        self.lines: list[Line] = []
        self.controls: list[Control] = []
        self.now = 0.0
        self.ahead: set[Hold] = set()
        """Settled by words that were read in one piece with the present one: their fate is what those say."""
        self.heard: list[tuple[int, Line, Letter, Any]] = []
        """What was handed out in this step, with the delivery-count it came with."""
        self._sequence = 0
        self._returned: set[Letter] = set()
        self._taken: list[tuple[Line, tuple[int, int]]] = []

    # -- what is so

    def waiting(self, queue: str) -> list[Letter]:
        here = (letter for letter in self.letters if letter.where == WAITING and letter.queue == queue)
        return sorted(here, key=lambda letter: letter.key)

    def live_transactions(self) -> list[Txn]:
        return [txn for control in self.controls for txn in control.transactions if txn.live]

    # -- posting

    def arrive(self, letter: Letter) -> None:
        letter.where = WAITING
        letter.sequence = self._sequence
        self._sequence += 1

    def post(self, letter: Letter, txn: Txn) -> bool:
        """Whether the transaction was known."""
        if not txn.live:
            return False
        letter.where = POSTED
        txn.posts.append(letter)
        self._worked(txn)
        return True

    def _worked(self, txn: Txn) -> None:
        txn.began = txn.began or self.now

    # -- being handed out

    def _hand_out(self, count: int, line: Line, letter: Letter, delivery: Any) -> None:
        assert letter.count == count, f"{letter.body} came with the count {count}, not {letter.count}"
        assert letter.where == WAITING, f"{letter.body} was handed out when {letter.where}"
        assert line.attached and line.count < line.limit, f"{letter.body} was sent beyond credit"
        assert line.may_have(letter), f"{letter.body} is barred for line {line.number}"
        self._taken.append((line, letter.key))
        line.count += 1
        letter.where = HELD
        hold = Hold(line, letter, delivery)
        if line.txn is not None:
            hold.txn, hold.acquired = line.txn, True
            line.txn.work.append(hold)
            self._worked(line.txn)
        if line.presettled:
            hold.listening = False
            if hold.txn is None:
                self._presettled(hold)
        else:
            line.holds.append(hold)

    def _presettled(self, hold: Hold) -> None:
        if hold.line.default in (None, ACCEPTED):
            self._end(hold, GONE)
            return
        hold.letter.kept.add(hold.line.number)
        self._default(hold, hold.line.default, seen=True)
        self._returned.add(hold.letter)

    def end_round(self) -> None:
        """All that was handed out in this step of the broker is known: it was the first that could be."""
        for each in sorted(self.heard, key=lambda each: (each[0], not each[1].returns_uncounted())):
            self._hand_out(*each)
        self.heard.clear()
        for line, key in self._taken:
            for letter in self.waiting(line.queue):
                ok = key < letter.key or letter in self._returned or not line.may_have(letter)
                assert ok, f"{letter.body} was passed over"
        self._taken.clear()
        self._returned.clear()
        for line in self.lines:
            if line.drain:
                line.count, line.drain = max(line.count, line.limit), False
        self.bury()

    def bury(self) -> None:
        for letter in self.letters:
            if letter.where == DYING:
                letter.where = DEAD

    # -- outcomes

    def _end(self, hold: Hold, where: str) -> None:
        hold.live = False
        hold.txn, hold.acquired = None, False
        if hold.line.attached:
            hold.listening = False
        hold.letter.where = where

    def _fail(self, hold: Hold, attempt: bool) -> None:
        letter = hold.letter
        letter.count += 1
        letter.attempts += attempt
        dies = attempt and letter.queue == "q" and letter.attempts >= LIMIT
        self._end(hold, DYING if dies else WAITING)

    def _modify(self, hold: Hold, outcome: Modified, attempt: bool) -> None:
        if outcome.undeliverable_here:
            hold.letter.barred.add(hold.line.number)
        if outcome.delivery_failed:
            self._fail(hold, attempt)
        else:
            self._end(hold, WAITING)

    def _apply(self, hold: Hold, outcome: DeliveryState) -> None:
        if outcome == ACCEPTED:
            self._end(hold, GONE)
        elif isinstance(outcome, Modified):
            self._modify(hold, outcome, True)
        elif isinstance(outcome, Rejected):
            hold.letter.count += 1
            hold.letter.attempts += 1
            self._end(hold, DYING)
        else:
            self._end(hold, WAITING)

    def _default(self, hold: Hold, default: DeliveryState | None, *, seen: bool) -> None:
        if default == ACCEPTED:
            self._end(hold, GONE)
        elif default == RELEASED:
            self._end(hold, WAITING)
        elif isinstance(default, Modified):
            self._modify(hold, default, seen)
        else:
            self._fail(hold, seen)

    def _stateless(self, hold: Hold) -> None:
        """Settled without a state (W6)."""
        self._default(hold, RELEASED if hold.line.default is None else hold.line.default, seen=True)

    # -- dispositions

    def dispose(self, holds: list[Hold], outcome: DeliveryState | None, txn: Txn | None, settled: bool) -> None:
        heard = [hold for hold in holds if hold.listening and hold.live]
        self.ahead.difference_update(heard if settled else ())
        for hold in heard:
            hold.listening = not settled
        if not heard:
            return
        if txn is None:
            for hold in heard:
                self._dispose(hold, outcome, settled)
        elif txn.live:
            self._retire(heard, outcome, txn, settled)
        else:
            self._refuse(heard, settled)

    def _dispose(self, hold: Hold, outcome: DeliveryState | None, settled: bool) -> None:
        if hold.txn is not None:
            if outcome is None:
                hold.settled = hold.settled or settled
                return
            self.end_control(hold.txn.control)
        if not hold.live:
            return
        if outcome is not None:
            self._apply(hold, outcome)
            hold.listening = False
        elif settled:
            self._stateless(hold)

    def _retire(self, holds: list[Hold], outcome: DeliveryState | None, txn: Txn, settled: bool) -> None:
        conflict = False
        for hold in holds:
            if not hold.live:
                continue
            hold.settled = hold.settled or settled
            if hold.txn is None:
                hold.txn = txn
                txn.work.append(hold)
            if hold.txn is txn:
                hold.outcome = outcome
            else:
                conflict = True
        self._worked(txn)
        if conflict:
            self.end_control(txn.control)

    def _refuse(self, holds: list[Hold], settled: bool) -> None:
        for hold in holds:
            if hold.live and settled:
                if hold.txn is not None:
                    hold.settled = True
                else:
                    default = hold.line.default
                    self._default(hold, None if default == ACCEPTED else default, seen=True)
        for hold in holds:
            self.lose_line(hold.line)

    # -- discharges

    def commit(self, txn: Txn) -> bool:
        """Whether it could be."""
        if txn.failed:
            self.roll_back(txn)
            return False
        work, posts = self._discharge(txn)
        for hold in work:
            outcome, acquired, settled = hold.outcome, hold.acquired, hold.settled
            self._part(hold)
            if outcome is not None:
                self._apply(hold, outcome)
            elif acquired and hold.line.presettled:
                self._presettled(hold)
            elif settled:
                self._stateless(hold)
        for letter in posts:
            self.arrive(letter)
        return True

    def roll_back(self, txn: Txn) -> None:
        work, posts = self._discharge(txn)
        for letter in posts:
            letter.where = GONE
        for hold in work:
            outcome, acquired, settled = hold.outcome, hold.acquired, hold.settled
            self._part(hold)
            default = hold.line.default
            if acquired and outcome is None:
                self._end(hold, WAITING)
            elif acquired:
                self._default(hold, None if default == ACCEPTED else default, seen=True)
            elif settled:
                self._default(hold, default, seen=True)

    def _discharge(self, txn: Txn) -> tuple[list[Hold], list[Letter]]:
        txn.live = False
        for line in self.lines:
            if line.txn is txn:
                line.txn = None
        work, posts = txn.work, txn.posts
        txn.work, txn.posts = [], []
        return work, posts

    @staticmethod
    def _part(hold: Hold) -> None:
        hold.txn, hold.outcome, hold.acquired, hold.settled = None, None, False, False

    # -- flows

    def flow(self, line: Line, limit: int, drain: bool, named: bool, txn: Txn | None) -> None:
        """Credit up to a delivery-count; ``named`` says that the flow had properties."""
        if not line.attached:
            return
        if txn is not None and not txn.live:
            self.lose_line(line)
            return
        if named:
            line.txn = txn
        line.limit, line.drain = limit, drain
        for letter in self.letters:
            letter.kept.discard(line.number)

    # -- endings, and time

    def detach(self, line: Line, closed: bool) -> None:
        if not line.attached:
            return
        line.attached, line.txn = False, None
        if closed and any(hold.listening for hold in line.holds):
            line.grace = float("inf")

    def lose_line(self, line: Line) -> None:
        line.attached, line.txn, line.grace = False, None, None
        for hold in line.holds:
            if not hold.listening or hold in self.ahead:
                continue
            hold.listening = False
            if hold.txn is not None:
                hold.settled = True
            elif hold.live:
                self._default(hold, line.default, seen=False)

    def end_control(self, control: Control) -> None:
        control.over = True
        for txn in control.transactions:
            if txn.live:
                self.roll_back(txn)

    def end_sessions(self, sessions: list[object]) -> None:
        """One session, or all of a connection: transactions first."""
        for control in self.controls:
            if control.session in sessions and not control.over:
                self.end_control(control)
        for line in self.lines:
            if line.session in sessions:
                self.lose_line(line)

    def pass_graces(self, seconds: float) -> None:
        for line in self.lines:
            if line.grace is not None:
                line.grace = seconds + 1.0 if line.grace == float("inf") else line.grace
                if line.grace <= seconds:
                    self.lose_line(line)

    def pass_time(self, seconds: float) -> None:
        self.now = seconds
        for txn in self.live_transactions():
            if txn.began and not txn.failed and txn.began + TIMEOUT <= seconds:
                self.roll_back(txn)
                txn.live = txn.failed = True
