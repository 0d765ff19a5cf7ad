"""Random consumers with selectors, groups, priorities, delays and closes at one queue, against a plain model.

Each time the queue gives a message to a consumer, the model says which one that consumer had to get: the first, by
(priority falling, sequence rising), of those it may have. After each step nobody with credit may be left without a
message that it could have, nothing is lost or doubled, and every message is in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jmsish.broker import consumers
from jmsish.broker.order import Entry
from jmsish.broker.queues import Arrival, History
from tests.broker.taking import OneQueue, Taker

COLOURS = ["red", "blue"]
READY, HELD, DELAYED, GONE = "ready", "held", "delayed", "gone"
picks = st.integers(0, 1000)


@dataclass(eq=False)
class Letter:
    """One message as the model knows it."""

    body: str
    priority: int
    sequence: int
    group: str | None
    last: bool
    expires: float
    state: str = READY
    due: float = 0.0
    holder: Taker | None = None
    count: int = 0
    barred: set[int] = field(default_factory=set)

    @property
    def key(self) -> tuple[int, int]:
        return (-self.priority, self.sequence)

    @property
    def is_red(self) -> bool:
        return self.body.startswith("red")


class Owners:
    """Who owns which group, and whose session holds what of it."""

    def __init__(self) -> None:
        self.owner: dict[str, Taker] = {}
        self.session: dict[str, object] = {}


class Taking(RuleBasedStateMachine):
    @initialize(
        window=st.sampled_from([0, 0, 1, 2]),
        delay=st.sampled_from([0.0, 10.0]),
        patience=st.integers(1, 6),
        sticky=st.sampled_from([True, True, False]),
    )
    def begin(self, window: int, delay: float, patience: int, sticky: bool) -> None:
        self.window, self.delay, self.sticky = window, delay, sticky
        self.slices = mock.patch.object(consumers, "SLICE", patience)
        self.slices.start()
        self.place = OneQueue(group_window=window, redelivery_delay=delay, sticky_groups=sticky)
        self.letters: dict[str, Letter] = {}
        self.takers: list[Taker] = []
        self.owners = Owners()
        self.sessions = [object(), object()]
        self.sequence = 0
        self.left: list[tuple[Taker, Entry]] = []
        """What consumers that have left still hold."""
        for kind in ("", "red", ""):
            self.attach(kind, 0, None)
            self.flow(len(self.takers) - 1, 2, False)

    def teardown(self) -> None:
        if hasattr(self, "slices"):
            self.slices.stop()

    # --- the model

    @property
    def now(self) -> float:
        return self.place.home.now()

    def _wants(self, taker: Taker, letter: Letter) -> bool:
        return taker.selects is None or taker.selects(letter.body.encode(), letter.count)

    def _held(self, group: str) -> list[Letter]:
        return [each for each in self.letters.values() if each.group == group and each.state == HELD]

    def _admits(self, taker: Taker, group: str) -> bool:
        held = self._held(group)
        if any(each.group == group and each.state == DELAYED for each in self.letters.values()):
            return False
        if self.window and len(held) >= self.window:
            return False
        owner = self.owners.owner.get(group)
        if owner is not None:
            return owner is taker
        return not held or self.owners.session[group] is taker.session

    def _choice(self, taker: Taker) -> Letter | None:
        """What the consumer has to get next."""
        possible = [
            letter
            for letter in self.letters.values()
            if letter.state == READY
            and taker.id not in letter.barred
            and self._wants(taker, letter)
            and (letter.group is None or self._admits(taker, letter.group))
        ]
        return min(possible, key=lambda each: each.key, default=None)

    def _gets(self, taker: Taker, entry: Entry) -> None:
        letter = self.letters[entry.payload.decode()]
        assert letter.state == READY, f"{letter} was given"
        assert letter is self._choice(taker), f"{letter} was given instead of {self._choice(taker)}"
        assert (0 if entry.history is None else entry.history.count) == letter.count
        letter.state, letter.holder = HELD, taker
        if letter.group is not None:
            group = letter.group
            self.owners.session[group] = taker.session
            if group not in self.owners.owner:
                self.owners.owner[group] = taker
            if letter.last and self.owners.owner[group] is taker:
                del self.owners.owner[group]

    def _step(self) -> None:
        self.place.run()

    # --- the rules

    @rule(
        colour=st.sampled_from(COLOURS),
        priority=st.sampled_from([4, 4, 4, 9, 0]),
        group=st.sampled_from([None, None, "a", "a", "b"]),
        last=st.sampled_from([False] * 7 + [True]),
        life=st.sampled_from([0, 0, 0, 15]),
        number=st.integers(1, 4),
    )
    def send(self, colour: str, priority: int, group: str | None, last: bool, life: int, number: int) -> None:
        for _ in range(number):
            self.sequence += 1
            body = f"{colour}{self.sequence}"
            expires = self.now + life if life else 0.0
            last_of = last and group is not None
            self.letters[body] = Letter(body, priority, self.sequence, group, last_of, expires)
            history = History(0, expires) if expires else None
            if group is None and history is None:
                self.place.queue.append(body.encode(), priority)
            else:
                named = None if group is None else (group, last_of)
                self.place.queue.add(Arrival(body.encode(), priority, history, 0.0, named))
        self._step()

    @precondition(lambda self: len(self.takers) < 5)
    @rule(kind=st.sampled_from(["", "", "red", "blue", "again"]), priority=st.sampled_from([0, 0, 5]), session=picks)
    def attach(self, kind: str, priority: int, session: int | None) -> None:
        selects = None
        if kind == "again":
            selects = lambda payload, count: count > 0  # noqa: E731
        elif kind:
            selects = lambda payload, count: payload.startswith(kind.encode())  # noqa: E731
        mine = None if session is None or session % 3 == 0 else self.sessions[session % 2]
        taker = Taker(self.place.queue, session=mine, selects=selects, priority=priority)
        taker.given = self._gets
        self.takers.append(taker)

    @precondition(lambda self: self.takers)
    @rule(pick=picks, credit=st.integers(1, 4), drain=st.booleans())
    def flow(self, pick: int, credit: int, drain: bool) -> None:
        taker = self.takers[pick % len(self.takers)]
        answers = taker.answers
        taker.flow(credit, drain=drain)
        self._step()
        if drain:
            assert taker.answers == answers + 1

    def _holdings(self) -> list[tuple[Taker, Entry]]:
        return [(taker, entry) for taker in self.takers for entry in taker.held] + self.left

    @rule(pick=picks, number=st.integers(1, 3), how=st.sampled_from(["accept", "release", "fail", "fail", "bar"]))
    def settle(self, pick: int, number: int, how: str) -> None:
        """Some of what is held, neighbours or not, by one or by several: one put-back."""
        holdings = self._holdings()
        for turn in range(min(number, len(holdings))):
            taker, entry = holdings.pop((pick + turn * 7) % len(holdings))
            if (taker, entry) in self.left:
                self.left.remove((taker, entry))
                taker.held.append(entry)
            body = entry.payload.decode()
            group = self.letters[body].group
            self._settle(taker, body, how)
            if group is not None and not self.sticky and not self._held(group):
                self.owners.owner.pop(group, None)
        self._step()

    def _settle(self, taker: Taker, body: str, how: str) -> None:
        letter = self.letters[body]
        letter.holder = None
        if how == "accept":
            letter.state = GONE
            taker.accept(body)
            return
        letter.state = READY
        if how == "bar":
            letter.barred.add(taker.id)
            # It leaves its group: its owner may be the one that cannot have it.
        if how != "release":
            letter.count += 1
            if self.delay:
                letter.state, letter.due = DELAYED, self.now + self.delay
        if letter.expires and letter.expires <= self.now:
            letter.state = GONE
        if how == "release":
            taker.release(body)
        else:
            taker.fail(body, undeliverable=how == "bar")
        if letter.barred and letter.state == READY:
            letter.group = None

    @precondition(lambda self: len(self.takers) > 1)
    @rule(pick=picks)
    def leave(self, pick: int) -> None:
        taker = self.takers.pop(pick % len(self.takers))
        self.left += [(taker, entry) for entry in taker.held]
        taker.held = []
        for group, owner in list(self.owners.owner.items()):
            if owner is taker:
                del self.owners.owner[group]
        taker.leave()
        self._step()

    @rule(seconds=st.sampled_from([3, 11, 16]))
    def time_passes(self, seconds: int) -> None:
        now = self.now + seconds
        for letter in self.letters.values():
            if letter.state in (READY, DELAYED) and letter.expires and letter.expires <= now:
                letter.state = GONE
            elif letter.state == DELAYED and letter.due <= now:
                letter.state = READY
                if letter.barred:
                    letter.group = None
        self.place.home.advance(seconds)

    # --- what always holds

    @invariant()
    def everything_is_in_one_place(self) -> None:
        if not hasattr(self, "place"):
            return
        queue = self.place.queue
        ready = sorted((each for each in self.letters.values() if each.state == READY), key=lambda each: each.key)
        assert [payload.decode() for payload, _ in queue.places(False)] == [each.body for each in ready]
        held = [each.body for each in self.letters.values() if each.state == HELD]
        assert sorted(entry.payload.decode() for _, entry in self._holdings()) == sorted(held)
        waiting = sum(each.state == DELAYED for each in self.letters.values())
        assert (queue.available, queue.acquired) == (len(ready), len(held))
        assert queue.depth == len(ready) + len(held) + waiting
        special = sum(bool(each.group or each.barred) for each in ready)
        assert queue.special == special + sum(taker.search is not None for taker in self.takers)
        assert queue.wanting == sum(taker.in_turn for taker in self.takers)

    @invariant()
    def nobody_waits_for_what_is_there(self) -> None:
        for taker in getattr(self, "takers", ()):
            if taker.credit:
                assert self._choice(taker) is None, f"{self._choice(taker)} is there for {taker}"


TestTaking = Taking.TestCase
TestTaking.settings = settings(settings.default, stateful_step_count=40)
# A busy machine takes minutes for it, and JMSISH_HYPOTHESIS=explore on any.
pytestmark = pytest.mark.timeout(900)
