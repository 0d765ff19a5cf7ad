"""Random work on a connection that is cut at random frames, against what the application was told."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from jmsish.client.answers import Answer
from jmsish.client.producer import rejection
from jmsish.errors import ConnectionLostError, TransactionInDoubtError, TransactionRolledBackError
from jmsish.modes import AcknowledgeMode
from tests.client.cutting import TO_BROKER, TO_CLIENT, CuttingRig
from tests.client.rig import decode, encode
from tests.client.test_every_cut import bodies, left
from tests.effort import examples

SENT, UNKNOWN = "sent", "unknown"


class Reconnecting(RuleBasedStateMachine):
    """One session sends to q; another takes from q and sends to p, in transactions; the wire breaks when it likes."""

    @initialize()
    def begin(self) -> None:
        logging.disable(logging.CRITICAL)
        self.rig = CuttingRig()
        self.producer = self.rig.producer(self.rig.session())
        self.session = self.rig.session(AcknowledgeMode.TRANSACTED)
        self.consumer = self.rig.consumer(self.session)
        self.maker = self.rig.producer(self.session, "p")
        self.sent: dict[str, str] = {}
        self.taken: list[str] = []
        self.made: list[str] = []
        self.done: tuple[list[str], list[str]] = ([], [])
        self.doubts: list[tuple[list[str], list[str]]] = []

    @rule()
    def send(self) -> None:
        text = f"m{len(self.sent)}"
        answer: Any = Answer()
        if not self.producer.post(encode(text), answer):
            self.rig.run(self.producer.send(encode(text), answer))
        ended = self.rig.wait(answer)
        if isinstance(ended, BaseException):
            assert isinstance(ended, ConnectionLostError) and ended.outcome_unknown
            self.sent[text] = UNKNOWN
        else:
            assert rejection(ended) is None
            self.sent[text] = SENT

    @rule()
    def take(self) -> None:
        delivery = self.rig.run(self.consumer.receive(None, wait=False))
        if delivery is not None:
            self.taken.append(decode(delivery).partition("*")[0])

    @rule()
    def make(self) -> None:
        text = f"p{len(self.done[1]) + len(self.made) + 100 * len(self.doubts)}-{self.rig.moved[TO_BROKER]}"
        if not self.maker.post(encode(text), None):
            self.rig.run(self.maker.send(encode(text), None))
        self.made.append(text)

    @rule()
    def commit(self) -> None:
        ended = self.rig.outcome(self.session.commit())
        if ended is None:
            self.done[0].extend(self.taken)
            self.done[1].extend(self.made)
        elif isinstance(ended, TransactionInDoubtError):
            assert (ended.sent, ended.received) == (len(self.made), len(self.taken))
            self.doubts.append((self.taken, self.made))
        else:
            assert isinstance(ended, TransactionRolledBackError), ended
        self.taken, self.made = [], []

    @rule()
    def roll_back(self) -> None:
        assert self.rig.outcome(self.session.rollback()) is None
        self.taken, self.made = [], []

    @rule()
    def cut(self) -> None:
        self.rig.core.now += 5
        self.rig.cut()
        self.rig.pump()

    @rule(way=st.sampled_from((TO_BROKER, TO_CLIENT)), frames=st.integers(0, 12))
    def cut_soon(self, way: str, frames: int) -> None:
        self.rig.core.now += 5
        self.rig.cut_at = (way, self.rig.moved[way] + frames)

    def teardown(self) -> None:
        try:
            if hasattr(self, "rig"):
                self._check()
        finally:
            logging.disable(logging.NOTSET)

    def _check(self) -> None:
        """Every message that was said to be sent is there once, or was taken for good; a doubt was all or nothing."""
        rig = self.rig
        rig.cut_at = None
        rig.pump()
        assert rig.core.failure is None and not rig.core.offline
        rig.close()
        here, there = Counter(bodies(left(rig))), Counter(bodies(left(rig, "p")))
        taken, made = Counter(self.done[0]), Counter(self.done[1])
        for doubt_taken, doubt_made in self.doubts:
            was_done = there[doubt_made[0]] == 1 if doubt_made else here[doubt_taken[0]] == 0
            if was_done and not (doubt_taken and taken[doubt_taken[0]]):
                taken.update(doubt_taken)
                made.update(doubt_made)
        assert there == made
        for text, outcome in self.sent.items():
            count = here[text] + taken[text]
            assert count == 1 if outcome == SENT else count <= 1, (text, outcome, here, taken)
        assert not set(here) - set(self.sent)


Reconnecting.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestReconnecting = Reconnecting.TestCase
# A busy machine takes minutes for it, and JMSISH_HYPOTHESIS=explore on any.
pytestmark = pytest.mark.timeout(900)
