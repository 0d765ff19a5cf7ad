"""Random transactions over connections, sessions and links that are lost at any frame, against a plain model.

What a peer says may wait and go out in one piece, frame by frame, or only in part before the wire breaks, in the middle
of a frame as well. What the broker should have made of it follows from the frames that arrived.
"""

from __future__ import annotations

import sys
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    Coordinator,
    Declare,
    Declared,
    DeliveryState,
    Discharge,
    Modified,
    Rejected,
    Source,
    Target,
    encode_control,
)
from jmsish.engine.values import encode_binary, encode_described, encode_map, encode_symbol
from jmsish.types import Described, Symbol, ULong
from tests.broker.world import ALL_OUTCOMES, World, in_transaction, message
from tests.property.txmodel import DEAD, HELD, LIMIT, POSTED, TIMEOUT, Control, Hold, Letter, Line, Model, Txn
from tests.property.txwire import LineEnd, TxWorld, Wire

OUTCOMES: list[DeliveryState | None] = [
    ACCEPTED, RELEASED, MODIFIED_FAILED, MODIFIED_FAILED_UNDELIVERABLE, Modified(), Rejected(), None,
]  # fmt: skip
DEFAULTS: list[DeliveryState | None] = [
    None, ACCEPTED, RELEASED, MODIFIED_FAILED, MODIFIED_FAILED_UNDELIVERABLE, Modified(), Rejected(),
]  # fmt: skip
HIGH = {Symbol("high"): Described(ULong(0x0000468C00000004), "JMSPriority > 4")}
LONG = encode_described(0x72, encode_map([encode_symbol("x-opt-long"), encode_binary(b"." * 1500)]))
picks = st.integers(0, 63)
now = st.sampled_from((True, True, False))


class Post:
    """A link on which a peer sends."""

    def __init__(self, wire: Wire, session: Any, queue: str) -> None:
        self.wire, self.session, self.queue = wire, session, queue
        self.attached = True
        """As the broker knows it."""
        self.error = None
        self.detached = False
        target = Target(address=queue)
        source = Source(address="here", outcomes=ALL_OUTCOMES)
        self.link = session.sender(f"post-{id(self)}", source=source, target=target, context=self)


class Desk:
    """A control link, and the transactions declared on it."""

    def __init__(self, wire: Wire, session: Any) -> None:
        self.wire, self.session = wire, session
        self.control = Control(session)
        self.error = None
        self.detached = False
        source = Source(address="here", outcomes=ALL_OUTCOMES)
        self.link = session.sender(f"desk-{id(self)}", source=source, target=Coordinator(), context=self)
        self.declared: list[tuple[Txn, list[Any]]] = []
        self.discharged: set[Txn] = set()


class Transactions(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        config = {
            "queues": {"q": {"max_delivery_attempts": LIMIT}, "p": {}, "DLQ": {}},
            "policy": {"transaction_timeout": TIMEOUT},
        }
        self.world = TxWorld(config, self.model)
        self.numbers = count()
        self.wires: list[Wire] = []
        self.posts: list[Post] = []
        self.desks: list[Desk] = []
        self.ends: list[LineEnd] = []

    # -- what there is to choose from, as the peers know it

    def _lives(self, end: Any) -> bool:
        return not (end.detached or end.link.mute or end.session.mute or end.wire.cut_off or not end.link.attached)

    def _choose(self, ends: list[Any], pick: int) -> Any:
        ends = [end for end in ends if self._lives(end)]
        return ends[pick % len(ends)] if ends else None

    def _ids(self, wire: Wire) -> dict[Txn, bytes]:
        """The transactions that a peer can name."""
        return {
            txn: answers[0].txn_id
            for desk in self.desks
            if desk.wire is wire and not desk.detached
            for txn, answers in desk.declared
            if answers and txn not in desk.discharged
        }

    def _txn(self, wire: Wire, pick: int) -> tuple[Txn, bytes] | tuple[None, None]:
        """One of them, or none: about as often as not."""
        if pick % 2 and not self._ids(wire) and not wire.paused:
            self.declare(pick, True, wire)
        ids = list(self._ids(wire).items())
        return ids[pick // 2 % len(ids)] if ids and pick % 2 else (None, None)

    def _go(self, wire: Wire, at_once: bool) -> None:
        wire.paused = not at_once
        self.world.run()

    # -- coming

    @initialize()
    def begin(self) -> None:
        for who in range(2):
            self._join()
            for queue in ("q", "q", "p"):
                self.send(who * 2 + (queue == "p"), 4, False, False, 0, True)
        self.attach(0, 0, "q", MODIFIED_FAILED, False, True)
        self.attach(1, 1, "q", None, False, True)

    def _join(self) -> None:
        wire = self.world.join(f"wire-{next(self.numbers)}")
        self.wires.append(wire)
        for session, queue in zip(wire.sessions, ("q", "p"), strict=True):
            self.posts.append(Post(wire, session, queue))
        wire.say(None)
        self._open_desk(wire, wire.sessions[0])
        self.world.run()

    def _open_desk(self, wire: Wire, session: Any) -> None:
        desk = Desk(wire, session)
        self.desks.append(desk)
        wire.say(lambda: self.model.controls.append(desk.control))

    @rule(who=picks, session=st.integers(0, 1), queue=st.sampled_from("qqp"), default=st.sampled_from(DEFAULTS),
          presettled=st.sampled_from((False, False, True)), picky=st.sampled_from((False, False, True)),
          at_once=now)  # fmt: skip
    def attach(
        self,
        who: int,
        session: int,
        queue: str,
        default: DeliveryState | None,
        presettled: bool,
        at_once: bool,
        picky: bool = False,
    ) -> None:
        wire = self.wires[who % len(self.wires)]
        if sum(self._lives(end) for end in self.ends) >= 5 or wire.sessions[session].mute:
            return
        wire.say(None)
        options = {"default_outcome": default, "snd_settle_mode": int(presettled), "filter": HIGH if picky else None}
        line = Line(next(self.numbers), queue, default, presettled, wire.sessions[session], picky)
        end = LineEnd(wire, line.session, queue, options)
        end.line, end.ids, end.wire = line, {}, wire
        self.ends.append(end)
        self.model.lines.append(line)

        def act() -> None:
            line.attached = True

        wire.say(act)
        self._go(wire, at_once)

    @rule(who=picks, session=st.integers(0, 1), at_once=now)
    def open_again(self, who: int, session: int, at_once: bool) -> None:
        """A peer, a session or links in the place of those that ended."""
        if len(self.wires) < 3:
            return self._join()
        wire = self.wires[who % len(self.wires)]
        wire.say(None)
        if wire.sessions[session].mute:
            wire.sessions[session] = wire.engine.begin()
        place = wire.sessions[session]
        if not any(self._lives(post) and post.session is place for post in self.posts):
            self.posts.append(Post(wire, place, "qp"[session]))
        wire.say(None)
        if sum(self._lives(desk) and desk.wire is wire for desk in self.desks) < 2:
            self._open_desk(wire, place)
        self._go(wire, at_once)

    # -- words

    @rule(who=picks, priority=st.sampled_from((4, 4, 9)), long=st.booleans(), settled=st.booleans(), txn=picks,
          at_once=now)  # fmt: skip
    def send(self, who: int, priority: int, long: bool, settled: bool, txn: int, at_once: bool) -> None:
        post = self._choose(self.posts, who)
        if post is None or post.link.credit <= 0 or len(self.model.letters) > 60:
            return
        wire: Wire = post.wire
        wire.say(None)
        which, txn_id = self._txn(wire, txn)
        letter = Letter(f"m{len(self.model.letters)}", post.queue, priority)
        self.model.letters.append(letter)
        payload = message(letter.body, priority=priority, annotations=LONG if long else b"")
        state = None if txn_id is None else in_transaction(txn_id)
        post.link.send(payload, state=state, settled=settled, context=[])

        def act() -> None:
            if not post.attached:
                return
            if which is None:
                self.model.arrive(letter)
            else:
                post.attached = self.model.post(letter, which)

        wire.say(act)
        self._go(wire, at_once)

    @rule(who=picks, credit=st.integers(0, 4), drain=st.booleans(), txn=picks, clear=st.booleans(), at_once=now)
    def flow(self, who: int, credit: int, drain: bool, txn: int, clear: bool, at_once: bool) -> None:
        end = self._choose(self.ends, who)
        if end is None:
            self.attach(who, who % 2, "q", DEFAULTS[who % len(DEFAULTS)], False, at_once)
            return
        end.wire.say(None)
        which, txn_id = self._txn(end.wire, txn)
        end.ids.update(self._ids(end.wire))
        properties = {Symbol("txn-id"): txn_id} if txn_id is not None else {Symbol("x"): 1} if clear else None
        limit = end.link.delivery_count + credit
        end.link.flow(credit, drain=drain, properties=properties)
        end.wire.say(lambda: self.model.flow(end.line, limit, drain, properties is not None, which))
        self._go(end.wire, at_once)

    @rule(who=picks, first=picks, number=st.integers(1, 3), outcome=st.sampled_from(OUTCOMES), settled=st.booleans(),
          txn=picks, at_once=now, backwards=st.booleans())  # fmt: skip
    def retire(
        self, who: int, first: int, number: int, outcome: DeliveryState | None, settled: bool, txn: int, at_once: bool,
        backwards: bool,
    ) -> None:  # fmt: skip
        held = self._held(who)
        if not held:
            self.flow(who, number + 1, False, txn, False, True)
            held = self._held(who)
        if not held:
            return
        wire: Wire = self._wire_of(held[0].line)
        wire.say(None)
        which, txn_id = self._txn(wire, txn)
        chosen = (held[first % len(held) :] + held)[: min(number, len(held))]
        state = outcome if txn_id is None else in_transaction(txn_id, outcome)
        for hold in chosen[::-1] if backwards else chosen:
            hold.line.session.disposition(hold.delivery, state, settled)  # type: ignore[attr-defined]
        wire.say_dispositions(chosen, settled, lambda named: self.model.dispose(named, outcome, which, settled))
        self._go(wire, at_once)

    def _wire_of(self, line: Line) -> Wire:
        return next(end for end in self.ends if end.line is line).wire

    def _held(self, pick: int) -> list[Hold]:
        """What one of the sessions can still speak of, to its knowledge."""
        heard: dict[Any, list[Hold]] = {}
        for end in self.ends:
            if not (end.wire.cut_off or end.session.mute):
                for hold in end.line.holds:
                    if not (hold.delivery.settled or hold.delivery.remote_settled):
                        heard.setdefault(end.session, []).append(hold)
        return list(heard.values())[pick % len(heard)] if heard else []

    @rule(who=picks, at_once=now)
    def declare(self, who: int, at_once: bool, wire: Wire | None = None) -> None:
        desk = self._choose([desk for desk in self.desks if wire in (None, desk.wire)], who)
        if desk is None or len(desk.declared) - len(desk.discharged) >= 3 or desk.link.credit <= 0:
            return
        desk.wire.say(None)
        txn, answers = Txn(desk.control), []  # type: ignore[var-annotated]
        desk.declared.append((txn, answers))
        desk.link.send(encode_control(Declare()), context=answers)

        def act() -> None:
            if not desk.control.over:
                txn.live = True
                desk.control.transactions.append(txn)

        desk.wire.say(act)
        self._go(desk.wire, at_once)

    @rule(who=picks, pick=picks, fail=st.booleans(), at_once=now)
    def discharge(self, who: int, pick: int, fail: bool, at_once: bool) -> None:
        desk = self._choose([desk for desk in self.desks if len(desk.declared) > len(desk.discharged)], who)
        if desk is None or desk.link.credit <= 0:
            return
        known = [(txn, found) for txn, found in desk.declared if txn not in desk.discharged and found]
        if not known:
            return
        desk.wire.say(None)
        txn, (declared,) = known[pick % len(known)]
        assert isinstance(declared, Declared)
        desk.discharged.add(txn)
        answers: list[Any] = []
        desk.link.send(encode_control(Discharge(declared.txn_id, fail)), context=answers)
        desk.wire.say(lambda: self._discharged(desk, txn, fail, answers))
        self._go(desk.wire, at_once)

    def _discharged(self, desk: Desk, txn: Txn, fail: bool, answers: list[Any]) -> None:
        if desk.control.over:
            return
        good = True
        if fail:
            self.model.roll_back(txn)
        else:
            good = self.model.commit(txn)
        desk.wire.answers.append((answers, ACCEPTED if good else "amqp:transaction:timeout"))

    # -- endings

    @rule(who=picks, closed=st.booleans(), at_once=now, frames=st.integers(0, 12), half=st.booleans(),
          what=st.sampled_from(("link", "link", "sender", "desk", "session", "kill", "kill", "close")),
          served=st.booleans())  # fmt: skip
    def lose(self, who: int, what: str, closed: bool, at_once: bool, frames: int, half: bool, served: bool) -> None:
        """One rule for all losses: there is little to see where nothing lasts."""
        if what == "link":
            self.detach(who, closed)
        elif what in ("sender", "desk"):
            self.detach_sender(who, closed, what == "desk", at_once)
        elif what == "session":
            self.end_session(who, frames % 2)
        else:
            self.kill(who, frames, half, served, closed, what == "close")

    # What ends a receiver does not wait: a peer is deaf to what comes for a link that it has detached, and so is the
    # model. Where the wire breaks before the broker was served nothing comes.

    def detach(self, who: int, closed: bool, wire: Wire | None = None) -> None:
        end = self._choose([end for end in self.ends if wire in (None, end.wire)], who)
        if end is not None:
            end.wire.say(None)
            end.link.detach(closed=closed)
            end.wire.say(lambda: self.model.detach(end.line, closed))
            if wire is None:
                self._go(end.wire, True)

    def detach_sender(self, who: int, closed: bool, control: bool, at_once: bool) -> None:
        end = self._choose(self.desks if control else self.posts, who)
        if end is None:
            return

        def act() -> None:
            if isinstance(end, Desk):
                if not end.control.over:
                    self.model.end_control(end.control)
            else:
                end.attached = False

        end.wire.say(None)
        end.detached = True
        end.link.detach(closed=closed)
        end.wire.say(act)
        self._go(end.wire, at_once)

    def end_session(self, who: int, session: int, dying: Wire | None = None) -> None:
        wire = dying or self.wires[who % len(self.wires)]
        ended: Any = wire.sessions[session]
        if ended.mute:
            return
        wire.say(None)
        ended.end()
        wire.say(lambda: self.model.end_sessions([ended]))
        if dying is None:
            self._go(wire, True)

    def kill(self, who: int, frames: int, half: bool, served: bool, link: bool, close: bool) -> None:
        """The first frames of all that a peer has to say arrive, then the wire breaks; or it closes, saying all."""
        wire = self.wires[who % len(self.wires)]
        wire.say(None)
        if close:
            wire.engine.close()
            wire.say(lambda: self._lose(wire))
            self._go(wire, True)
        else:
            if not served and link:
                self.detach(who, bool(frames % 2), wire)
            elif not served:
                self.end_session(who, frames % 2, wire)
            wire.let_through(min(frames, len(wire.outbox)), half)
            if served:
                self.world.serve()
            wire.cut_off = True
            wire.connection.receive_eof()
            self._lose(wire)
        wire.cut_off = True
        self.world.run()
        self.world.peers.remove(wire)
        self.wires.remove(wire)
        if len(self.wires) < 2:
            self._join()

    def _lose(self, wire: Wire) -> None:
        ends: list[Any] = [*self.ends, *self.desks]
        self.model.end_sessions([end.session for end in ends if end.wire is wire])

    @rule(who=picks, single=st.booleans())
    def catch_up(self, who: int, single: bool) -> None:
        """All that waited goes out, in one piece or frame by frame."""
        wire = self.wires[who % len(self.wires)]
        wire.single = single
        self._go(wire, True)
        wire.single = False

    @rule(seconds=st.sampled_from((0.0, 0.6, 1.0, 2.0, 5.0)))
    def time_passes(self, seconds: float) -> None:
        if self.world.monotonic < 1050:  # a peer that waits longer would be taken for dead
            self.world.advance(seconds)

    # -- what always holds

    @invariant()
    def all_is_where_it_should_be(self) -> None:
        for queue in ("q", "p"):
            waiting = [letter.body for letter in self.model.waiting(queue)]
            held = sum(letter.where == HELD and letter.queue == queue for letter in self.model.letters)
            view = self.world.queue(queue)
            assert self.world.bodies(queue) == waiting
            assert (view.depth, view.available, view.acquired) == (len(waiting) + held, len(waiting), held)
        dead = [letter.body for letter in self.model.letters if letter.where == DEAD]
        assert sorted(self.world.bodies("DLQ")) == sorted(dead)
        live = self.model.live_transactions()
        views = self.world.broker.transactions()
        assert len(views) == len(live) and sum(view.posts for view in views) == sum(len(txn.posts) for txn in live)
        self._what_peers_hear()

    def _what_peers_hear(self) -> None:
        for line in self.model.lines:
            if line.attached and line.count < line.limit:
                assert not any(line.may_have(letter) for letter in self.model.waiting(line.queue)), "not handed out"
        for wire in self.wires:
            assert not (wire.failed or wire.closed or any(error is not None for error in wire.ended)), wire.failed
            for answers, expected in wire.answers:
                (answer,) = answers
                said = answer.error.condition if isinstance(answer, Rejected) and answer.error else answer
                assert said == expected
            wire.answers.clear()

    def teardown(self) -> None:
        if not self.wires or sys.exc_info()[0] is not None:
            return  # a step failed already: that is the failure to show
        for wire in list(self.wires):
            wire.let_through(len(wire.outbox))
            wire.cut_off = True
            wire.connection.receive_eof()
            self._lose(wire)
            wire.answers.clear()
        self.world.run()
        self.all_is_where_it_should_be()
        assert all(letter.where not in (HELD, POSTED) for letter in self.model.letters)
        assert not self.world.broker.transactions() and not self.world.broker.connections()
        self._read_to_the_end()

    def _read_to_the_end(self) -> None:
        reader = World.connect(self.world)
        for queue in ("q", "p"):
            left = [(letter.body, letter.count) for letter in self.model.waiting(queue)]
            expected = [f"{body}+{times}" if times else body for body, times in left]
            assert reader.receiver(queue).drain() == expected


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(
    settings.default,
    stateful_step_count=50,
    suppress_health_check=list(HealthCheck),
)
# A busy machine takes minutes for it, and JMSISH_HYPOTHESIS=explore on any.
pytestmark = pytest.mark.timeout(900)
