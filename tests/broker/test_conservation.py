"""Random life of a queue on the wire, against a plain model: nothing lost, nothing doubled, all in order, all counted.

No receiver has standing credit between two rules (each flow drains), so what a flow brings is determined: the first
available messages, by (priority falling, sequence rising), that are not barred for the link.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    DeliveryState,
    Modified,
    Rejected,
)
from tests.broker.world import Controller, Peer, Receiver, Sender, World, body_of, count_of, in_transaction
from tests.effort import examples

MAXIMUM = 3
QUEUE, HELD, POSTED, GONE, DEAD = "queue", "held", "posted", "gone", "dead"
OUTCOMES: list[DeliveryState | None] = [
    ACCEPTED, RELEASED, MODIFIED_FAILED, MODIFIED_FAILED_UNDELIVERABLE, Modified(), Rejected(), None,
]  # fmt: skip
DEFAULTS: list[DeliveryState | None] = [None, ACCEPTED, RELEASED, MODIFIED_FAILED, Rejected()]


@dataclass
class Letter:
    """One message as the model knows it."""

    body: str
    priority: int
    where: str
    sequence: int = 0
    count: int = 0
    attempts: int = 0
    barred: set[int] = field(default_factory=set)

    @property
    def key(self) -> tuple[int, int]:
        return (-self.priority, self.sequence)


@dataclass
class Line:
    """A receiver, and what it holds."""

    receiver: Receiver
    client: Client
    default: DeliveryState | None
    number: int
    held: list[tuple[Any, Letter]] = field(default_factory=list)


@dataclass
class Client:
    """A connection with a sender, a control link and at most one transaction."""

    peer: Peer
    sender: Sender
    controller: Controller
    txn: bytes | None = None
    posts: list[Letter] = field(default_factory=list)
    work: list[tuple[Line, Letter, DeliveryState | None]] = field(default_factory=list)


class LifeOfAQueue(RuleBasedStateMachine):
    portion = 0

    def __init__(self) -> None:
        super().__init__()
        self.world = World({"queues": {"q": {"max_delivery_attempts": MAXIMUM}}}, portion=self.portion)
        self.letters: list[Letter] = []
        self.lines: list[Line] = []
        self.clients: list[Client] = []
        self.sequence = 0
        self.numbers = count()
        self.dead: list[Letter] = []
        for who in range(2):
            self._connect()
            self.attach(who, DEFAULTS[3 - who], True)
            self.send(who, 4, 4)

    def _connect(self) -> None:
        peer = self.world.connect()
        self.clients.append(Client(peer, peer.sender(), peer.controller()))

    # --- the model

    def _show(self, letter: Letter) -> None:
        letter.where = QUEUE
        letter.sequence = self.sequence
        self.sequence += 1

    def _fail(self, letter: Letter, attempt: bool, dead: list[Letter]) -> None:
        letter.count += 1
        letter.attempts += attempt
        if attempt and letter.attempts >= MAXIMUM:
            dead.append(letter)
        else:
            letter.where = QUEUE

    def _apply(self, line: Line, letter: Letter, outcome: DeliveryState | None, dead: list[Letter]) -> None:
        if outcome is None:
            if line.default is None:
                letter.where = QUEUE
            else:
                self._default(line, letter, True, dead)
        elif outcome == ACCEPTED:
            letter.where = GONE
        elif isinstance(outcome, Rejected):
            letter.count += 1
            dead.append(letter)
        elif isinstance(outcome, Modified):
            if outcome.undeliverable_here:
                letter.barred.add(line.number)
            if outcome.delivery_failed:
                self._fail(letter, True, dead)
            else:
                letter.where = QUEUE
        else:
            letter.where = QUEUE

    def _default(self, line: Line, letter: Letter, seen: bool, dead: list[Letter]) -> None:
        if line.default == ACCEPTED:
            letter.where = GONE
        elif line.default == RELEASED:
            letter.where = QUEUE
        else:
            self._fail(letter, seen, dead)

    def _bury(self, dead: list[Letter]) -> None:
        for letter in sorted(dead, key=lambda each: each.key):
            letter.where = DEAD
            self.dead.append(letter)

    def _roll_back(self, client: Client) -> None:
        dead: list[Letter] = []
        for letter in client.posts:
            letter.where = GONE
        for line, letter, _ in client.work:
            self._default(line, letter, True, dead)
        self._bury(dead)
        client.txn, client.posts, client.work = None, [], []

    def _lose(self, lines: list[Line]) -> None:
        dead: list[Letter] = []
        for line in lines:
            for _, letter in line.held:
                self._default(line, letter, False, dead)
            self.lines.remove(line)
        assert not dead

    # --- the rules

    clients_drawn = st.integers(0, 1)
    picks = st.integers(0, 1000)

    @rule(who=clients_drawn, priority=st.sampled_from((4, 4, 4, 9, 0)), number=st.integers(1, 6))
    def send(self, who: int, priority: int, number: int) -> None:
        for _ in range(number):
            letter = Letter(f"m{len(self.letters)}", priority, QUEUE)
            self.letters.append(letter)
            self._show(letter)
            assert self.clients[who].sender.send(letter.body, priority=priority) == [[ACCEPTED]]

    @rule(who=clients_drawn, priority=st.sampled_from((4, 9)), settled=st.booleans())
    def post(self, who: int, priority: int, settled: bool) -> None:
        client = self.clients[who]
        if client.txn is None:
            client.txn = client.controller.declare()
        letter = Letter(f"m{len(self.letters)}", priority, POSTED)
        self.letters.append(letter)
        client.posts.append(letter)
        client.sender.send(letter.body, priority=priority, state=in_transaction(client.txn), settled=settled)

    @precondition(lambda self: len(self.lines) < 3)
    @rule(who=clients_drawn, default=st.sampled_from(DEFAULTS), own_session=st.booleans())
    def attach(self, who: int, default: DeliveryState | None, own_session: bool) -> None:
        client = self.clients[who]
        session = client.peer.begin() if own_session else client.peer.session
        receiver = client.peer.receiver(session=session, default_outcome=default)
        self.lines.append(Line(receiver, client, default, next(self.numbers)))

    @rule(pick=picks, credit=st.integers(1, 5))
    def receive(self, pick: int, credit: int) -> None:
        if not self.lines:
            self.attach(pick % 2, DEFAULTS[pick % len(DEFAULTS)], True)
        line = self.lines[pick % len(self.lines)]
        line.receiver.flow(credit, drain=True)
        waiting = sorted((each for each in self.letters if each.where == QUEUE), key=lambda each: each.key)
        expected = [letter for letter in waiting if line.number not in letter.barred][:credit]
        arrived = line.receiver.take()
        assert [(body_of(each.payload), count_of(each.payload)) for each in arrived] == [
            (letter.body, letter.count) for letter in expected
        ]
        for delivery, letter in zip(arrived, expected, strict=True):
            letter.where = HELD
            line.held.append((delivery, letter))

    @rule(pick=picks, first=picks, number=st.integers(1, 4), outcome=st.sampled_from(OUTCOMES), shuffled=st.booleans())
    def dispose(self, pick: int, first: int, number: int, outcome: DeliveryState | None, shuffled: bool) -> None:
        self._hold_something(pick, number)
        line, chosen = self._choose(pick, first, number)
        if line is None:
            return
        if shuffled:
            chosen.reverse()
        line.receiver.dispose([delivery for delivery, _ in chosen], outcome)
        dead: list[Letter] = []
        for _, letter in chosen:
            self._apply(line, letter, outcome, dead)
        self._bury(dead)

    @rule(pick=picks, first=picks, number=st.integers(1, 4), outcome=st.sampled_from(OUTCOMES))
    def retire(self, pick: int, first: int, number: int, outcome: DeliveryState | None) -> None:
        self._hold_something(pick, number)
        line, chosen = self._choose(pick, first, number)
        if line is None:
            return
        client = line.client
        if client.txn is None:
            client.txn = client.controller.declare()
        line.receiver.dispose([delivery for delivery, _ in chosen], in_transaction(client.txn, outcome))
        client.work += [(line, letter, outcome) for _, letter in chosen]

    def _hold_something(self, pick: int, number: int) -> None:
        if not any(line.held for line in self.lines):
            self.receive(pick, number + 1)

    def _choose(self, pick: int, first: int, number: int) -> tuple[Line | None, list[tuple[Any, Letter]]]:
        lines = [line for line in self.lines if line.held]
        if not lines:
            return None, []
        line = lines[pick % len(lines)]
        first %= len(line.held)
        chosen = line.held[first : first + number]
        del line.held[first : first + number]
        return line, chosen

    @rule(who=clients_drawn)
    def commit(self, who: int) -> None:
        client = self.clients[who]
        if client.txn is None:
            return
        assert client.controller.commit(client.txn) is None
        dead: list[Letter] = []
        for line, letter, outcome in client.work:
            self._apply(line, letter, outcome, dead)
        for letter in client.posts:
            self._show(letter)
        self._bury(dead)
        client.txn, client.posts, client.work = None, [], []

    @rule(who=clients_drawn)
    def roll_back(self, who: int) -> None:
        client = self.clients[who]
        if client.txn is not None:
            assert client.controller.roll_back(client.txn) is None
            self._roll_back(client)

    @rule(who=clients_drawn, pick=picks, what=st.sampled_from(("link", "link", "session", "control", "close", "cut")))
    def lose(self, who: int, pick: int, what: str) -> None:
        """One rule for all losses: there is little to see where nothing lasts."""
        if what == "control":
            self._lose_control_link(who)
        elif what in ("close", "cut"):
            self._lose_connection(who, what == "cut")
        elif self.lines:
            (self._close_link if what == "link" else self._end_session)(self.lines[pick % len(self.lines)])

    def _lose_control_link(self, who: int) -> None:
        client = self.clients[who]
        client.controller.detach(closed=False)
        self._roll_back(client)
        client.controller = client.peer.controller()

    def _close_link(self, line: Line) -> None:
        line.receiver.detach()
        self.world.advance(0)
        self.world.advance(2)
        self._lose([line])

    def _end_session(self, line: Line) -> None:
        session = line.receiver.session
        if session is line.client.peer.session:
            return
        session.end()
        self.world.run()
        self._lose([line])

    def _lose_connection(self, who: int, cut: bool) -> None:
        client = self.clients[who]
        if cut:
            client.peer.cut()
        else:
            client.peer.close()
        self._roll_back(client)
        self._lose([line for line in self.lines if line.client is client])
        self.world.peers.remove(client.peer)
        peer = self.world.connect()
        self.clients[who] = Client(peer, peer.sender(), peer.controller())

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        waiting = sorted((letter for letter in self.letters if letter.where == QUEUE), key=lambda each: each.key)
        assert self.world.bodies() == [letter.body for letter in waiting]
        holding = [letter for letter in self.letters if letter.where == HELD]
        view = self.world.queue()
        assert (view.depth, view.available, view.acquired) == (len(waiting) + len(holding), len(waiting), len(holding))
        names = [each.name for each in self.world.broker.queues()]
        # Among the dead letters the priority counts as anywhere else.
        dead = [letter.body for letter in sorted(self.dead, key=lambda each: -each.priority)]
        assert (self.world.bodies("DLQ") if "DLQ" in names else []) == dead


LifeOfAQueue.TestCase.settings = settings(
    max_examples=examples(80), stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLifeOfAQueue = LifeOfAQueue.TestCase


class LifeInPortions(LifeOfAQueue):
    """The same, where no step does more than two messages of anything: it comes to the same."""

    portion = 2


LifeInPortions.TestCase.settings = settings(LifeOfAQueue.TestCase.settings, max_examples=examples(40))
TestLifeInPortions = LifeInPortions.TestCase
