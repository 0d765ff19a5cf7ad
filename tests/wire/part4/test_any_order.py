"""Transactions over several sessions, links and connections in any order, with losses: nothing lost, nothing doubled.

A plain account is kept of what must be in the queue in the end. What is expected of each step is little; what is
expected of all of them together is everything: no message that was not committed, each one that nobody took, and
nothing held by anybody who is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from jmsish.engine.outcomes import MODIFIED_FAILED, RELEASED
from tests.broker.world import Controller, Peer, body_of
from tests.wire.part4.scene import ACCEPTED, SYMBOL_TXN_ID, Scene, in_transaction, message, state_of


@dataclass
class Held:
    """A delivery somebody has, and the transaction it is part of."""

    receiver: Any
    delivery: Any
    txn: Txn | None = None
    settled: bool = False
    outcome: Any = None
    acquired: bool = False


@dataclass(eq=False)
class Txn:
    """An open transaction as the account knows it."""

    control: Controller
    id: bytes
    posts: list[str] = field(default_factory=list)
    work: list[Held] = field(default_factory=list)


class Account:
    """Peers that do something by chance, and what must come of it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.scene = Scene()
        self.alive = {f"m{n}" for n in range(20)}
        self.scene.connect().sender().send(*[f"m{n}" for n in range(20)])
        self.txns: list[Txn] = []
        self.held: list[Held] = []
        self.number = 0
        self.peers = [self.scene.connect() for _ in range(3)]
        self.sessions = {peer: [peer.begin(), peer.begin()] for peer in self.peers}

    def step(self) -> None:
        weights = {
            self.declare: 3, self.post: 5, self.post_half: 1, self.take: 6, self.acquire: 3, self.retire: 6,
            self.accept: 2, self.discharge: 4, self.lose_link: 1, self.lose_control: 1, self.lose_session: 1,
            self.lose_peer: 1,
        }  # fmt: skip
        (act,) = self.chance.choices(list(weights), list(weights.values()))
        act()

    def _peer(self) -> tuple[Peer, Any]:
        peer = self.chance.choice(self.peers)
        return peer, self.chance.choice(self.sessions[peer])

    def _txn(self) -> Txn:
        if not self.txns:
            self.declare()
        return self.chance.choice(self.txns)

    def declare(self) -> None:
        peer, session = self._peer()
        control = peer.controller(session=session)
        self.txns.append(Txn(control, control.declare()))

    def post(self) -> None:
        txn = self._txn()
        sender = txn.control.peer.sender(session=self.chance.choice(self.sessions[txn.control.peer]))
        self.number += 1
        sender.send(f"p{self.number}", state=in_transaction(txn.id), settled=self.chance.random() < 0.5)
        txn.posts.append(f"p{self.number}")

    def post_half(self) -> None:
        """Begun and aborted, or begun and lost with its link."""
        txn = self._txn()
        sender = txn.control.peer.sender(session=self.chance.choice(self.sessions[txn.control.peer]))
        number = self.scene.transfer(sender, message("half")[:4], more=True, state=state_of(txn.id, None))
        if self.chance.random() < 0.5:
            self.scene.transfer(sender, b"", number=number, aborted=True)
        else:
            sender.detach()

    def take(self) -> None:
        peer, session = self._peer()
        receiver = peer.receiver(session=session, default_outcome=self.chance.choice([None, MODIFIED_FAILED, RELEASED]))
        receiver.flow(self.chance.randint(1, 4), drain=True)
        self.held += [Held(receiver, delivery) for delivery in receiver.take()]

    def acquire(self) -> None:
        txn = self._txn()
        peer = txn.control.peer
        presettled = self.chance.random() < 0.5
        receiver = peer.receiver(session=self.chance.choice(self.sessions[peer]), snd_settle_mode=int(presettled))
        receiver.flow(self.chance.randint(1, 3), drain=True, properties={SYMBOL_TXN_ID: txn.id})
        for delivery in receiver.take():
            held = Held(receiver, delivery, txn, presettled, ACCEPTED if presettled else None, acquired=True)
            txn.work.append(held)
            self.held.append(held)

    def retire(self) -> None:
        """Enlist what is free, or change one's mind about what is enlisted and not settled."""
        txn = self._txn()
        able = [h for h in self.held if h.receiver.peer is txn.control.peer and not h.settled and h.txn in (None, txn)]
        for held in self.chance.sample(able, min(len(able), 3)):
            held.outcome = self.chance.choice([ACCEPTED, ACCEPTED, RELEASED])
            held.settled = self.chance.random() < 0.5
            held.receiver.dispose([held.delivery], in_transaction(txn.id, held.outcome), held.settled)
            if held.txn is None:
                held.txn = txn
                txn.work.append(held)

    def accept(self) -> None:
        free = [held for held in self.held if held.txn is None]
        if free:
            held = self.chance.choice(free)
            held.receiver.accept([held.delivery])
            self.held.remove(held)
            self.alive.remove(body_of(held.delivery.payload))

    def discharge(self) -> None:
        txn = self._txn()
        if self.chance.random() < 0.6:
            assert txn.control.commit(txn.id) is None
            self.alive |= set(txn.posts)
            for held in txn.work:
                if held.outcome is not None:
                    self.held.remove(held)
                if held.outcome is ACCEPTED:
                    self.alive.remove(body_of(held.delivery.payload))
                held.txn = None
            self.txns.remove(txn)
        else:
            assert txn.control.roll_back(txn.id) is None
            self.undone(txn)

    def undone(self, txn: Txn) -> None:
        self.txns.remove(txn)
        for held in txn.work:
            held.txn, held.outcome = None, None
            if held.settled or held.acquired:
                self.held.remove(held)

    def lose_link(self) -> None:
        """What is free on it goes back; what is enlisted stays so, and is nobody's to change."""
        receivers = [held.receiver for held in self.held]
        if receivers:
            receiver = self.chance.choice(receivers)
            receiver.detach()
            self.scene.advance(0)
            self.scene.advance(2)
            self._gone(lambda held: held.receiver is receiver)

    def lose_control(self) -> None:
        if self.txns:
            txn = self.chance.choice(self.txns)
            txn.control.detach(closed=self.chance.random() < 0.5)
            self.undone(txn)

    def lose_session(self) -> None:
        peer, session = self._peer()
        session.end()
        self.scene.run()
        self.sessions[peer].remove(session)
        self.sessions[peer].append(peer.begin())
        for txn in [txn for txn in self.txns if txn.control.link.session is session]:
            self.undone(txn)
        self._gone(lambda held: held.receiver.link.session is session)

    def lose_peer(self) -> None:
        peer = self.chance.choice(self.peers)
        peer.cut()
        self.peers.remove(peer)
        self.peers.append(new := self.scene.connect())
        self.sessions[new] = [new.begin(), new.begin()]
        for txn in [txn for txn in self.txns if txn.control.peer is peer]:
            self.undone(txn)
        self._gone(lambda held: held.receiver.peer is peer)

    def _gone(self, which: Any) -> None:
        for held in [held for held in self.held if which(held)]:
            if held.txn is None:
                self.held.remove(held)
            else:
                held.settled = True
                if held.outcome is None:
                    held.txn.work.remove(held)
                    self.held.remove(held)

    def close(self) -> None:
        for peer in self.peers:
            peer.cut()
        assert self.scene.broker.transactions() == []
        assert self.scene.queue().acquired == 0, "nobody is there to hold anything"
        bodies = [body.partition("+")[0] for body in self.scene.connect().receiver().drain()]
        assert sorted(bodies) == sorted(self.alive)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_lost_and_nothing_doubled(seed: int) -> None:
    account = Account(seed)
    for _ in range(60):
        account.step()
    account.close()
