"""Two engines, verbs in any order, octets carried in any pieces: in the end both ends agree and nothing is lost."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jmsish.engine import events
from jmsish.engine.delivery import Delivery
from jmsish.engine.engine import Engine
from jmsish.engine.link import Link
from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, RELEASED, TransactionalState
from tests.engine.pair import Pair

STATES = (ACCEPTED, RELEASED, MODIFIED_FAILED, TransactionalState(b"txn", ACCEPTED))


class Traffic:
    """Three links in each direction over two sessions with small windows and frames, and what went over them."""

    def __init__(self, chance: random.Random, window: int, frame_size: int, start: int) -> None:
        limits = {"incoming_window": window, "max_frame_size": frame_size}
        self.pair = Pair(client=limits, server=limits).open()
        self.chance = chance
        self.links: list[tuple[Link, Link]] = []
        self.ends: list[Any] = []
        for number in range(2):
            ours, theirs = self.pair.begin(next_outgoing_id=start)
            self.ends.append((ours, theirs))
            for name in ("a", "b", "c"):
                self.links.append(self.pair.link(ours, f"{name}{number}", credit=0))
                receiver, sender = self.pair.link(ours, f"{name}{number}", sender=False, credit=0)
                self.links.append((sender, receiver))
        self.wires = [[self.pair.client, self.pair.server, b""], [self.pair.server, self.pair.client, b""]]
        self.sent: dict[Link, list[bytes]] = {sender: [] for sender, _ in self.links}
        self.got: dict[Link, list[bytes]] = {receiver: [] for _, receiver in self.links}
        self.unsettled: list[Delivery] = []
        self.disposed: list[tuple[Delivery, Any]] = []
        self.said: dict[tuple[Link, int], Any] = {}

    def carry(self, everything: bool = False) -> None:
        """Move some octets, or all there are until both engines are silent."""
        while True:
            moved = False
            for wire in self.wires:
                source, sink, waiting = wire
                waiting += source.take_output()
                size = len(waiting) if everything else self.chance.randrange(len(waiting) + 1)
                moved = moved or size > 0
                sink.receive(waiting[:size])
                wire[2] = waiting[size:]
                self.note(sink)
            if not everything or not moved:
                return

    def note(self, engine: Engine) -> None:
        for event in engine.take_events():
            if event[0] == events.DELIVERED:
                _, link, delivery = event
                self.got[link].append(delivery.payload)
                if not delivery.settled:
                    self.unsettled.append(delivery)
            elif event[0] == events.DISPOSED:
                for delivery in event[2]:
                    self.disposed.append((delivery, event[3]))
            else:
                assert event[0] == events.FLOWED, event

    def step(self) -> None:
        chance = self.chance
        sender, receiver = chance.choice(self.links)
        action = chance.randrange(6)
        if action == 0:
            receiver.flow(chance.randrange(12), drain=chance.random() < 0.2, echo=chance.random() < 0.2)
        elif action in (1, 2):
            while sender.credit > 0 and chance.random() < 0.8:
                payload = b"%d:" % len(self.sent[sender]) + bytes(chance.choice([0, 3, 300, 900, 5000]))
                state = chance.choice([None, None, TransactionalState(b"post")])
                tag = chance.choice([None, None, b"tag"])
                sender.send(payload, settled=chance.random() < 0.3, state=state, tag=tag)
                self.sent[sender].append(payload)
        elif action == 3:
            sender.drained()
        elif action == 4:
            while self.unsettled and chance.random() < 0.9:
                delivery = self.unsettled.pop(0 if chance.random() < 0.7 else chance.randrange(len(self.unsettled)))
                state = chance.choice(STATES)
                self.said[delivery.link, delivery.id] = state
                delivery.link.session.disposition(delivery, state)
        else:
            self.carry()

    def finish(self) -> None:
        """Carry everything, settle everything, and compare both ends."""
        for _ in range(2):
            self.carry(everything=True)
            for sender, _ in self.links:
                sender.drained()
        self.carry(everything=True)
        for delivery in self.unsettled:
            self.said[delivery.link, delivery.id] = ACCEPTED
            delivery.link.session.disposition(delivery, ACCEPTED)
        self.carry(everything=True)
        for engine in (self.pair.client, self.pair.server):
            assert engine.error is None, engine.error
        for sender, receiver in self.links:
            waiting = len(sender.held)
            arrived = len(self.sent[sender]) - waiting
            assert self.got[receiver] == self.sent[sender][:arrived], "in order, none lost, none twice"
            assert sender.delivery_count == receiver.delivery_count
            assert max(sender.credit + waiting, 0) == receiver.credit
        twins = {receiver: sender for sender, receiver in self.links}
        told = {(delivery.link, delivery.id): state for delivery, state in self.disposed}
        assert told == {(twins[link], number): state for (link, number), state in self.said.items()}
        assert len(self.disposed) == len(self.said), "each once"
        for ours, theirs in self.ends:
            assert not ours.outgoing and not theirs.outgoing and not ours.incoming and not theirs.incoming
            for one, other in ((ours, theirs), (theirs, ours)):
                assert one.next_outgoing_id == other.next_incoming_id
                assert 0 <= one.remote_left <= other.incoming_left, "neither believes in a window that is not there"


@given(
    st.randoms(use_true_random=False),
    st.integers(1, 40),
    st.sampled_from([512, 700, 5000]),
    st.sampled_from([0, 0xFFFFFFF0]),
    st.integers(1, 150),
)
def test_both_ends_agree(chance: random.Random, window: int, frame_size: int, start: int, steps: int) -> None:
    traffic = Traffic(chance, window, frame_size, start)
    for _ in range(steps):
        traffic.step()
    traffic.finish()
