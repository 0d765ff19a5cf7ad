"""Gates: every state with every input, the one line, and those who leave it."""

from __future__ import annotations

import random
from itertools import product
from typing import ClassVar

import pytest

from jmsish.broker.gates import (
    ACTIONS,
    CALL,
    CALLED,
    FREEZER,
    HELD,
    HOLD,
    INPUTS,
    OPEN,
    PASS,
    READER,
    REST,
    STATES,
    TABLE,
    THAW,
    WAIT,
    WRITER,
    Gate,
    Waiter,
)

READERS, WRITERS, FREEZERS = "reader", "writer", "freezer"

EXPECTED = {
    ("open", "reader"): ("open", "pass"),
    ("open", "writer"): ("open", "pass"),
    ("open", "freezer"): ("held", "hold"),
    ("held", "reader"): ("held", "wait"),
    ("held", "writer"): ("held", "wait"),
    ("held", "freezer"): ("held", "wait"),
    ("held", "thaw"): ("called", "call"),
    ("called", "reader"): ("called", "wait"),
    ("called", "writer"): ("called", "wait"),
    ("called", "freezer"): ("called", "wait"),
    ("called", "call reader"): ("called", "pass"),
    ("called", "call writer"): ("called", "pass"),
    ("called", "call freezer"): ("held", "hold"),
    ("called", "end of line"): ("open", "rest"),
}


@pytest.mark.parametrize(("state", "input"), list(product(range(len(STATES)), range(len(INPUTS)))))
def test_every_state_with_every_input(state: int, input: int) -> None:
    gate = Gate("g")
    gate.state = state
    expected = EXPECTED.get((STATES[state], INPUTS[input]))
    if expected is None:
        with pytest.raises(RuntimeError, match=INPUTS[input]):
            gate._advance(input)
        assert gate.state == state
        return
    action = gate._advance(input)
    assert (STATES[gate.state], ACTIONS[action]) == expected
    assert gate.closed == (gate.state != OPEN)


def test_the_table_says_no_more_than_that() -> None:
    said = {(STATES[s], INPUTS[i]): (STATES[t], ACTIONS[a]) for (s, i), (t, a) in TABLE.items()}
    assert said == EXPECTED
    assert {a for _, a in TABLE.values()} == {PASS, WAIT, HOLD, CALL, REST}


class Reader(Waiter):
    """Writes down when its turn was, and whether it found the gate closed to itself."""

    kind: ClassVar[int] = READER

    def __init__(self, name: str, log: list[str]) -> None:
        super().__init__()
        self.name = name
        self.log = log
        self.at: Gate | None = None

    def go(self) -> None:
        self.log.append(self.name)
        assert self.at is None or self.at.closed is (self.kind == FREEZER)


class Writer(Reader):
    kind: ClassVar[int] = WRITER


class Freezer(Reader):
    kind: ClassVar[int] = FREEZER


class Rig:
    def __init__(self) -> None:
        self.gate = Gate("g")
        self.log: list[str] = []

    def come(self, kind: type[Reader], name: str) -> Reader:
        waiter = kind(name, self.log)
        waiter.at = self.gate
        if self.gate.come(waiter):
            waiter.go()
        return waiter

    def thaw(self, at_most: int = 100) -> int:
        self.gate.thaw()
        return self.gate.call(at_most)


def test_an_open_gate_lets_readers_and_writers_pass() -> None:
    rig = Rig()
    for kind, name in ((Reader, "r"), (Writer, "w"), (Reader, "s")):
        rig.come(kind, name)
    assert rig.log == ["r", "w", "s"]
    assert not rig.gate.closed


def test_the_line_is_called_in_order_up_to_the_next_freeze() -> None:
    rig = Rig()
    rig.come(Freezer, "f1")
    for kind, name in ((Reader, "r1"), (Writer, "w1"), (Freezer, "f2"), (Reader, "r2")):
        rig.come(kind, name)
    assert rig.log == ["f1"] and rig.gate.waiting == 4
    rig.thaw()
    assert rig.log == ["f1", "r1", "w1", "f2"] and rig.gate.state == HELD and rig.gate.waiting == 1
    rig.thaw()
    assert rig.log[-1] == "r2" and rig.gate.state == OPEN and not rig.gate.closed


def test_who_comes_while_the_line_is_called_goes_to_its_end() -> None:
    rig = Rig()
    rig.come(Freezer, "f")
    for number in range(5):
        rig.come(Reader, f"r{number}")
    assert rig.thaw(at_most=2) == 2
    assert rig.gate.state == CALLED and rig.gate.closed
    rig.come(Reader, "late")
    assert rig.gate.call(2) == 2
    assert rig.gate.call(100) == 2
    assert rig.log == ["f", "r0", "r1", "r2", "r3", "r4", "late"]
    assert rig.gate.state == OPEN


def test_a_line_called_to_its_last_needs_one_more_call_to_open() -> None:
    rig = Rig()
    rig.come(Freezer, "f")
    rig.come(Reader, "r")
    assert rig.thaw(at_most=1) == 1
    assert rig.gate.state == CALLED and rig.gate.call(1) == 0 and rig.gate.state == OPEN


def test_who_gave_up_is_not_called_and_keeps_nobody() -> None:
    rig = Rig()
    rig.come(Freezer, "f1")
    gone = rig.come(Freezer, "f2")
    rig.come(Reader, "r")
    gone.give_up()
    gone.give_up()  # twice is once
    assert rig.gate.waiting == 1
    rig.thaw()
    assert rig.log == ["f1", "r"] and not rig.gate.closed


def test_a_fault_of_one_does_not_leave_the_gate_ajar() -> None:
    class Broken(Reader):
        def go(self) -> None:
            raise ArithmeticError

    rig = Rig()
    rig.come(Freezer, "f")
    rig.come(Broken, "b")
    rig.come(Reader, "r")
    with pytest.raises(ArithmeticError):
        rig.thaw()
    assert rig.gate.closed and rig.gate.state == CALLED
    rig.gate.call(100)
    assert rig.log == ["f", "r"] and not rig.gate.closed


def test_a_thaw_needs_a_hold() -> None:
    with pytest.raises(RuntimeError, match="'thaw' cannot come to a gate that is open"):
        Gate("g").thaw()
    assert (OPEN, THAW) not in TABLE


def test_a_cleared_gate_is_open_and_names_those_who_waited() -> None:
    rig = Rig()
    rig.come(Freezer, "f")
    waiting = [rig.come(Reader, "r"), rig.come(Writer, "w")]
    rig.come(Reader, "gone").give_up()
    assert rig.gate.clear() == waiting
    assert not rig.gate.closed and rig.gate.waiting == 0 and rig.log == ["f"]


@pytest.mark.parametrize("seed", range(30))
def test_whatever_comes_the_line_is_first_come_first_served(seed: int) -> None:
    chance = random.Random(seed)
    rig = Rig()
    waiting: list[Reader] = []
    expected: list[str] = []
    for number in range(200):
        step = chance.random()
        if step < 0.7:
            kind = chance.choice([Reader, Reader, Writer, Freezer])
            waiter = rig.come(kind, str(number))
            (waiting if waiter.gate else expected).append(waiter if waiter.gate else waiter.name)  # type: ignore[arg-type]
        elif step < 0.8 and waiting:
            waiting.pop(chance.randrange(len(waiting))).give_up()
        elif rig.gate.state == HELD:
            called = rig.thaw(chance.choice([1, 3, 100]))
            expected += [waiter.name for waiter in waiting[:called]]
            del waiting[:called]
        elif rig.gate.state == CALLED:
            called = rig.gate.call(chance.choice([1, 3, 100]))
            expected += [waiter.name for waiter in waiting[:called]]
            del waiting[:called]
        assert rig.log == expected
        assert rig.gate.waiting == len(waiting)
        assert rig.gate.closed or not waiting
