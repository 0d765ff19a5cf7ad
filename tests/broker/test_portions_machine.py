"""Long jobs between whose portions anything may happen: nobody loses a message, nobody has one that another has.

No rule carries what it began to its end: a step of the broker is a rule of its own. What is said of a message is noted
when it is said, so at each moment the broker may have done that or not, and in the end it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, RELEASED, DeliveryState, Rejected
from tests.broker.world import Peer, Receiver, World, body_of
from tests.effort import examples

OUTCOMES: list[DeliveryState] = [ACCEPTED, RELEASED, MODIFIED_FAILED, Rejected()]
QUEUES = ("q", "r")


@dataclass
class Line:
    """A receiver, what it has and has said nothing of, and its queue."""

    peer: Peer
    receiver: Receiver
    queue: str
    held: list[tuple[Any, str]] = field(default_factory=list)


class BetweenPortions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World({"queues": {name: {"dead_letter": f"dead-{name}"} for name in QUEUES}}, portion=2)
        self.sender = {name: self.world.connect().sender(name) for name in QUEUES}
        self.sent: dict[str, list[str]] = {name: [] for name in QUEUES}
        self.maybe_gone: set[str] = set()
        """Acknowledged."""
        self.maybe_dead: set[str] = set()
        self.holder: dict[str, Line] = {}
        """Who has a message, by what the receivers know."""
        self.lines: list[Line] = []
        self.ttl_over = 0.0
        for number in range(3):
            self.attach(number, number)

    picks = st.integers(0, 1000)

    # --- rules

    @rule(which=st.integers(0, 1), number=st.integers(1, 6), priority=st.sampled_from((4, 4, 9)))
    def send(self, which: int, number: int, priority: int) -> None:
        name = QUEUES[which]
        for _ in range(number):
            body = f"{name}{len(self.sent[name])}"
            self.sent[name].append(body)
            self.sender[name].send(body, run=False, priority=priority, settled=True)
        self.sender[name].peer.speak()

    @rule(pick=picks, which=picks)
    def attach(self, pick: int, which: int) -> None:
        if len(self.lines) >= 5:
            return
        if self.lines and pick % 2:
            peer = self.lines[pick % len(self.lines)].peer
            session = peer.engine.begin()
        else:
            peer = Peer(self.world, f"client-{pick}-{len(self.world.peers)}")
            self.world.peers.append(peer)
            session = peer.session
        name = QUEUES[which % 2]
        receiver = Receiver(peer, session, name, {"default_outcome": (RELEASED, MODIFIED_FAILED)[which % 2]})
        peer.speak()
        self.lines.append(Line(peer, receiver, name))

    @rule(pick=picks, credit=st.integers(1, 8))
    def flow(self, pick: int, credit: int) -> None:
        if self.lines:
            line = self.lines[pick % len(self.lines)]
            line.receiver.flow(credit, run=False)
            line.peer.speak()

    @rule(pick=picks, number=st.integers(1, 9), outcome=st.sampled_from(OUTCOMES), whole=st.booleans())
    def dispose(self, pick: int, number: int, outcome: DeliveryState, whole: bool) -> None:
        lines = [line for line in self.lines if line.held]
        if not lines:
            return
        line = lines[pick % len(lines)]
        chosen = line.held if whole else line.held[:number]
        line.held = line.held[len(chosen) :]
        for delivery, body in chosen:
            line.receiver.session.disposition(delivery, outcome, True)
            if outcome == ACCEPTED:
                self.maybe_gone.add(body)
            elif isinstance(outcome, Rejected):
                self.maybe_dead.add(body)
            del self.holder[body]
        line.peer.speak()

    @rule(pick=picks, how=st.sampled_from(("link", "session", "cut", "close", "forced")))
    def end(self, pick: int, how: str) -> None:
        if not self.lines:
            return
        line = self.lines[pick % len(self.lines)]
        same = [each for each in self.lines if each.peer is line.peer]
        if how in ("link", "session"):
            session = line.receiver.session
            (line.receiver.link.detach if how == "link" else session.end)()
            same = [line] if how == "link" else [each for each in same if each.receiver.session is session]
            line.peer.speak()
        elif how == "forced":
            line.peer.connection.close(None)
        else:
            line.peer.engine.close()
            line.peer.speak() if how == "close" else line.peer.connection.receive_eof()
        if how in ("cut", "forced"):
            line.peer.cut_off = True
        for each in same:
            self.lines.remove(each)
            for _, body in each.held:
                del self.holder[body]
            each.held = []

    @rule(number=st.integers(1, 3))
    def step(self, number: int) -> None:
        for _ in range(number):
            self.world.broker.step()
            self._hear()

    @rule(seconds=st.sampled_from((0.0, 0.5, 2.0)))
    def pass_time(self, seconds: float) -> None:
        """A closed link has a second, and then it gives back."""
        self.world.monotonic += seconds
        for peer in self.world.peers:
            peer.connection.tick(self.world.monotonic)

    @rule()
    def run_to_the_end(self) -> None:
        self._settle()
        alive = {body for name in QUEUES for body in self.world.bodies(name, acquired=True)}
        assert not alive & self.maybe_gone and not alive & self.maybe_dead
        assert alive == {body for name in QUEUES for body in self.sent[name]} - self.maybe_gone - self.maybe_dead
        held = [body for line in self.lines for _, body in line.held]
        assert sum(self.world.depth(name)[1] for name in QUEUES) == len(held) and len(set(held)) == len(held)

    # --- what holds

    def _hear(self) -> None:
        for peer in self.world.peers:
            peer.hear()
        for line in self.lines:
            for delivery in line.receiver.take():
                body = body_of(delivery.payload)
                assert body not in self.holder, f"{body} came to a second receiver"
                assert body not in self.maybe_gone | self.maybe_dead
                self.holder[body] = line
                line.held.append((delivery, body))

    def _settle(self) -> None:
        moved = True
        while moved or self.world.broker.unfinished:
            moved = sum(peer.speak() for peer in self.world.peers) > 0
            self.world.broker.step()
            self._hear()
        for seconds in (0.0, 2.0):
            self.pass_time(seconds)
        while self.world.broker.unfinished:
            self.world.broker.step()
            self._hear()
        self.world.run()
        self._hear()

    @invariant()
    def each_message_is_in_one_place(self) -> None:
        names = {view.name for view in self.world.broker.queues()}
        for name in QUEUES:
            view = self.world.queue(name)
            there = self.world.bodies(name, acquired=True)
            dead = self.world.bodies(f"dead-{name}") if f"dead-{name}" in names else []
            # What is to be buried stands in its queue until it is.
            assert view.depth == view.available + view.acquired == len(there)
            assert len(there) + len(dead) == len({*there, *dead})
            missing = set(self.sent[name][: view.enqueued]) - set(there) - set(dead)
            assert missing <= self.maybe_gone and set(dead) <= self.maybe_dead

    def teardown(self) -> None:
        self.run_to_the_end()
        self.world.broker.close()
        assert all(self.world.depth(name)[1] == 0 for name in QUEUES)


BetweenPortions.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestBetweenPortions = BetweenPortions.TestCase
