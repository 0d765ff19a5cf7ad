"""Gates: one stands in front of every exchange, of whatever type, and says who passes and who waits (QPID-4616).

Theory of operation.  A message that is routed passes as a reader, whoever changes bindings as a writer. The broker has
one owner, so either is one step, and readers and writers never meet inside: an open gate is one attribute that is
looked at. What takes longer than a step is a freeze: from the step in which it is granted to the step in which it ends
the gate is HELD, and whoever comes waits, readers and writers in one line. When the hold is over the line is CALLED,
first come first served, up to the next freeze in it; who comes meanwhile goes to its end, so that nothing overtakes.
The one line is what keeps freezes that follow each other from starving publishers, and publishers from starving
freezes; who gives up leaves no trace in it.

This file knows neither messages nor exchanges nor time.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final, Protocol

OPEN, HELD, CALLED = range(3)
STATES: Final = ("open", "held", "called")

READER, WRITER, FREEZER, CALL_READER, CALL_WRITER, CALL_FREEZER, END_OF_LINE, THAW = range(8)
INPUTS: Final = ("reader", "writer", "freezer", "call reader", "call writer", "call freezer", "end of line", "thaw")
_CALLS: Final = {READER: CALL_READER, WRITER: CALL_WRITER, FREEZER: CALL_FREEZER}

PASS, WAIT, HOLD, CALL, REST = range(5)
ACTIONS: Final = ("pass", "wait", "hold", "call", "rest")

TABLE: Final[dict[tuple[int, int], tuple[int, int]]] = {
    (OPEN, READER): (OPEN, PASS),
    (OPEN, WRITER): (OPEN, PASS),
    (OPEN, FREEZER): (HELD, HOLD),
    (HELD, READER): (HELD, WAIT),
    (HELD, WRITER): (HELD, WAIT),
    (HELD, FREEZER): (HELD, WAIT),
    (HELD, THAW): (CALLED, CALL),
    (CALLED, READER): (CALLED, WAIT),
    (CALLED, WRITER): (CALLED, WAIT),
    (CALLED, FREEZER): (CALLED, WAIT),
    (CALLED, CALL_READER): (CALLED, PASS),
    (CALLED, CALL_WRITER): (CALLED, PASS),
    (CALLED, CALL_FREEZER): (HELD, HOLD),
    (CALLED, END_OF_LINE): (OPEN, REST),
}
"""What comes in which state: the state afterwards, and what is done. What is not here is a mistake of the caller."""


class GateClosed(Exception):
    """The gate of an exchange is closed: whoever came has to wait there, and nothing has been done."""

    def __init__(self, gate: Gate, entry: object) -> None:
        super().__init__(gate.name)
        self.gate = gate
        self.entry = entry
        """The exchange that was to be passed first, on whose way the gate stands."""


class Waiter:
    """Somebody who comes to a gate. Told to wait, it is called once, by :meth:`go`, unless it gave up."""

    __slots__ = ("gate", "passed")
    kind: ClassVar[int] = READER

    def __init__(self) -> None:
        self.gate: Gate | None = None
        """In whose line it stands."""
        self.passed: tuple[Gate, ...] = ()
        """Those that have called it."""

    def go(self) -> None:
        """Its turn has come."""
        raise NotImplementedError

    def stop(self) -> None:
        """The broker stops: it will not be called."""

    def give_up(self) -> None:
        """Leave the line. The place stays behind, and is passed over."""
        if self.gate is not None:
            self.gate.waiting -= 1
            self.gate = None


class Holder(Protocol):
    """What a gate knows of who holds it."""

    def target_gone(self, target: str) -> None:
        """A queue or exchange was deleted that may be bound here; its bindings go when the hold is over."""


class Gate:
    """The gate of one exchange."""

    __slots__ = ("closed", "hold", "line", "name", "state", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = OPEN
        self.closed = False
        """Whoever comes has to wait. The only thing that is looked at on behalf of each message."""
        self.hold: Holder | None = None
        """Who holds it."""
        self.line: deque[Waiter] = deque()
        self.waiting = 0
        """How many stand in the line."""

    def __repr__(self) -> str:
        return f"<Gate {self.name!r} {STATES[self.state]} waiting={self.waiting}>"

    def _advance(self, input: int) -> int:
        following = TABLE.get((self.state, input))
        if following is None:
            raise RuntimeError(f"{INPUTS[input]!r} cannot come to a gate that is {STATES[self.state]}")
        self.state, action = following
        self.closed = self.state != OPEN
        return action

    def come(self, waiter: Waiter) -> bool:
        """Whether it passes now. If not, it stands in the line from now on."""
        if self._advance(waiter.kind) != WAIT:
            return True
        waiter.gate = self
        self.waiting += 1
        self.line.append(waiter)
        return False

    def thaw(self) -> None:
        """The hold is over; :meth:`call` is to follow."""
        self._advance(THAW)
        self.hold = None

    def call(self, at_most: int) -> int:
        """Call those in the line up to the next freeze; how many were. The gate may stay closed: call again then."""
        called = 0
        line = self.line
        while self.state == CALLED and called < at_most:
            if not line:
                self._advance(END_OF_LINE)
                break
            waiter = line.popleft()
            if waiter.gate is not self:
                continue
            waiter.give_up()
            called += 1
            self._let_in(waiter)
        return called

    def _let_in(self, waiter: Waiter) -> None:
        self._advance(_CALLS[waiter.kind])
        # Its way may lead through this very gate, perhaps by another exchange, and it must not wait for itself; nor
        # for those who stood behind it at a gate before this one, or two long lines send each other on without end.
        if self not in waiter.passed:
            waiter.passed = (*waiter.passed, self)
        passed = waiter.passed
        for gate in passed:
            gate.closed = gate.state == HELD
        try:
            waiter.go()
        finally:
            for gate in passed:
                gate.closed = gate.state != OPEN

    def clear(self) -> list[Waiter]:
        """Nobody will be called any more; who stood in the line, in its order."""
        waiting = [waiter for waiter in self.line if waiter.gate is self]
        for waiter in waiting:
            waiter.give_up()
        self.line.clear()
        self.hold = None
        self.state, self.closed = OPEN, False
        return waiting
