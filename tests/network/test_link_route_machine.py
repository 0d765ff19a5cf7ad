"""Link routes, whatever happens: what was sent is at the broker once or not at all, and nobody waits for an answer.

Four routers in memory, a broker behind one of them and another behind another one, and clients at any of the routers
that send, receive, declare, discharge, drain and go; wires break, the broker ends links, sessions and connections,
routers are killed and come again. The model knows what each message has come to, as far as its client could know.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    RELEASED,
    AmqpError,
    Declare,
    Declared,
    Discharge,
    Rejected,
    TransactionalState,
)
from tests.broker.world import Controller, Peer, Receiver, Sender, message
from tests.network.test_mobile import bodies
from tests.network.world import Network, Site

LINE = "EA1-INT.A-INT.B-EB1"
ROUTERS = ("EA1", "INT.A", "INT.B", "EB1")
ROUTES = {"orders": ("INT.B", "broker"), "bills": ("INT.A", "other")}
ADDRESSES = ("orders.a", "orders.b", "bills.a")
SIZES = (10, 10, 10, 30_000, 600_000)
GONE = AmqpError("test:gone", "gone")
YES, NO, MAYBE = "yes", "no", "maybe"
numbers = st.integers(0, 1 << 16)


class Txn:
    """A transaction, and what is known of it: committed or not, or nobody can know."""

    def __init__(self, controller: Controller, id: bytes) -> None:
        self.controller = controller
        self.id = id
        self.answers: list[Any] | None = None
        """What was said to its discharge, once that was sent."""
        self.fail = False

    @property
    def peer(self) -> Peer:
        return self.controller.peer

    @property
    def is_live(self) -> bool:
        return self.answers is None and is_there(self.controller)

    @property
    def came_to_pass(self) -> str:
        if self.answers is None or self.fail:
            return NO
        if not self.answers:
            return MAYBE
        return NO if isinstance(self.answers[0], Rejected) else YES


class Letter:
    """A message: who sent it, what was heard of it, and who has accepted it."""

    def __init__(self, number: int, sender: Sender, address: str, told: list[Any], txn: Txn | None) -> None:
        self.number = number
        self.sender = sender
        self.address = address
        self.told = told
        self.txn = txn
        self.settled = self.aborted = False
        self.takes: list[Txn | None] = []
        """Acceptances that were said; of those without a transaction the broker has heard, or nobody can know."""
        self.taken = NO

    def __repr__(self) -> str:
        return f"<Letter {self.number} to {self.address!r}{' settled' * self.settled} {self.told} {self.came}>"

    @property
    def came(self) -> str:
        """Whether it has come to be at the broker."""
        if self.aborted:
            return NO
        said = self.told[-1] if self.told else None
        if self.txn is not None:
            if isinstance(said, TransactionalState):
                said = said.outcome
            if said is not None and said != ACCEPTED:
                return NO
            passed = self.txn.came_to_pass
            sure = said == ACCEPTED or (self.settled and self.sender.link.session is self.txn.controller.link.session)
            return passed if passed != YES or sure else MAYBE
        if said is None:
            return MAYBE
        return YES if said == ACCEPTED else NO

    @property
    def is_used(self) -> str:
        """Whether it was taken for good."""
        passed = [self.taken, *(txn.came_to_pass for txn in self.takes if txn is not None)]
        return YES if YES in passed else MAYBE if MAYBE in passed else NO


def is_there(end: Any) -> bool:
    """Whether an end can say and hear something still."""
    peer = end.peer
    gone = peer.cut_off or peer.closed or peer.failed or end.detached or end.link.local_closed or end.error is not None
    return not gone and bool(end.link.remote_attached)


class LinkRouting(RuleBasedStateMachine):
    """Clients of two brokers, over four routers."""

    @initialize(at=st.lists(st.sampled_from(ROUTERS), min_size=2, max_size=3))
    def begin(self, at: list[str]) -> None:
        self.network = Network(LINE, routes=ROUTES)
        self.peers: list[Peer] = []
        self.senders: list[Sender] = []
        self.receivers: list[Receiver] = []
        self.controllers: list[Controller] = []
        self.addresses: dict[Any, str] = {}
        self.letters: dict[int, Letter] = {}
        self.txns: list[Txn] = []
        self.holds: list[tuple[Receiver, Any]] = []
        self.down: list[str] = []
        self.asked: list[Any] = []
        """Ends whose attach is to be answered."""
        for name in at:
            self.connect(name)

    def some(self, items: list[Any], number: int) -> Any:
        return items[number % len(items)]

    # --- clients

    @rule(at=st.sampled_from(ROUTERS))
    def connect(self, at: str) -> None:
        if len(self.peers) < 5 and at not in self.down:
            self.peers.append(self.network.connect(at))
            number = len(self.peers) - 1
            address = ADDRESSES[number % 3]
            self.open_sender(number, address, False)
            self.open_receiver(number, address, 3, False)
            self.open_controller(number, False)
            if self.controllers:
                self.declare(len(self.controllers) - 1)

    def session(self, peer: Peer, own: bool) -> Any:
        if own or peer.session.mute:
            return peer.begin()
        return peer.session

    @precondition(lambda self: self.peers)
    @rule(number=numbers, address=st.sampled_from(ADDRESSES), own=st.booleans())
    def open_sender(self, number: int, address: str, own: bool) -> None:
        peer = self.some(self.peers, number)
        self.opened(self.senders, peer.sender(address, session=self.session(peer, own)), address)

    @precondition(lambda self: self.peers)
    @rule(number=numbers, address=st.sampled_from(ADDRESSES), credit=st.integers(0, 4), own=st.booleans())
    def open_receiver(self, number: int, address: str, credit: int, own: bool) -> None:
        peer = self.some(self.peers, number)
        receiver = peer.receiver(address, session=self.session(peer, own))
        self.opened(self.receivers, receiver, address)
        if is_there(receiver) and credit:
            receiver.flow(credit)

    @precondition(lambda self: self.peers)
    @rule(number=numbers, own=st.booleans())
    def open_controller(self, number: int, own: bool) -> None:
        peer = self.some(self.peers, number)
        self.opened(self.controllers, peer.controller(session=self.session(peer, own)), "")

    def opened(self, group: list[Any], end: Any, address: str) -> None:
        if address and end.peer.connection.node.link_routes.home_of(address) is None:
            end.detach()  # nobody here knows of the broker now: it is a mobile address
            return
        group.append(end)
        self.asked.append(end)
        self.addresses[end] = address

    # --- transactions

    @precondition(lambda self: self.controllers)
    @rule(number=numbers)
    def declare(self, number: int) -> None:
        controller = self.some(self.controllers, number)
        if is_there(controller) and controller.link.credit > 0:
            (answer,) = controller.command(Declare())
            if isinstance(answer, Declared):
                self.txns.append(Txn(controller, answer.txn_id))

    @precondition(lambda self: any(txn.is_live for txn in self.txns))
    @rule(number=numbers, fail=st.booleans(), run=st.booleans())
    def discharge(self, number: int, fail: bool, run: bool) -> None:
        txn = self.some([txn for txn in self.txns if txn.is_live], number)
        if txn.controller.link.credit > 0:
            txn.fail = fail
            txn.answers = txn.controller.command(Discharge(txn.id, fail), run=run)
            if run and is_there(txn.controller):
                assert len(txn.answers) == 1

    def txn_of(self, peer: Peer, wanted: int) -> Txn | None:
        """One of the transactions of a client, or none."""
        live = [txn for txn in self.txns if txn.is_live and txn.peer is peer]
        return self.some([None, *live], wanted)  # type: ignore[no-any-return]

    # --- messages

    @precondition(lambda self: self.senders)
    @rule(
        number=numbers, size=st.sampled_from(SIZES), settled=st.booleans(), abort=st.booleans(), run=st.booleans(),
        wanted=numbers,
    )  # fmt: skip
    def send(self, number: int, size: int, settled: bool, abort: bool, run: bool, wanted: int) -> None:
        sender = self.some(self.senders, number)
        if not is_there(sender) or sender.link.credit <= 0:
            return
        txn = self.txn_of(sender.peer, wanted)
        if txn is not None and self.addresses[sender][:6] != self.home_of(txn):
            return
        told: list[Any] = []
        identity = len(self.letters)
        state = None if txn is None else TransactionalState(txn.id, None)
        payload = message(f"{identity}:" + "x" * size)
        delivery = sender.link.send(payload, state=state, settled=settled, context=told)
        letter = self.letters[identity] = Letter(identity, sender, self.addresses[sender], told, txn)
        letter.settled = settled
        if abort and size > 500_000:
            sender.peer.speak()
            self.network.named.update(sender.peer.connection.node.step())
            if any(item.delivery is delivery for item in (*sender.link.session.backlog, *sender.link.held)):
                sender.link.abort(delivery)
                letter.aborted = True
        if run:
            self.network.run()
            if is_there(sender) and not (settled or letter.aborted):
                assert told, f"{letter} was not answered"

    def home_of(self, txn: Txn) -> str:
        """The prefix of the broker that a transaction is at: a client's session has one."""
        ends = [end for end in (*self.senders, *self.receivers) if end.link.session is txn.controller.link.session]
        return next((self.addresses[end][:6] for end in ends if is_there(end)), "")

    @precondition(lambda self: self.receivers)
    @rule(number=numbers, credit=st.integers(0, 5), drain=st.booleans(), run=st.booleans())
    def flow(self, number: int, credit: int, drain: bool, run: bool) -> None:
        receiver = self.some(self.receivers, number)
        if not is_there(receiver):
            return
        receiver.flow(credit, drain=drain, run=run)
        if run and drain and is_there(receiver):
            assert receiver.link.credit == 0, "a drain was not answered"

    @precondition(lambda self: self.holds)
    @rule(number=numbers, state=st.sampled_from([ACCEPTED, ACCEPTED, RELEASED, MODIFIED_FAILED]), wanted=numbers,
          run=st.booleans())  # fmt: skip
    def dispose(self, number: int, state: Any, wanted: int, run: bool) -> None:
        receiver, delivery = hold = self.some(self.holds, number)
        self.holds.remove(hold)
        if not is_there(receiver) or delivery.settled:
            return
        letter = self.letters[identity_of(delivery)]
        txn = self.txn_of(receiver.peer, wanted) if state is ACCEPTED else None
        if txn is not None and self.addresses[receiver][:6] != self.home_of(txn):
            return
        said = state if txn is None else TransactionalState(txn.id, state)
        receiver.session.disposition(delivery, said, True)
        if state is ACCEPTED:
            letter.takes.append(txn)
            if txn is None:
                letter.taken = MAYBE
        if run:
            self.network.run()
            if state is ACCEPTED and txn is None and is_there(receiver):
                letter.taken = YES

    @precondition(lambda self: self.senders)
    @rule(number=numbers, count=st.integers(1, 5), wanted=numbers)
    def send_several(self, number: int, count: int, wanted: int) -> None:
        for index in range(count):
            self.send(number, SIZES[(number + index) % 4], index % 3 == 2, False, True, wanted)

    @precondition(lambda self: self.receivers)
    @rule(number=numbers, count=st.integers(1, 5), wanted=numbers)
    def receive_several(self, number: int, count: int, wanted: int) -> None:
        self.flow(number, count, False, True)
        self.look()
        for index in range(len(self.holds)):
            if self.holds:
                self.dispose(index, ACCEPTED, wanted, True)

    # --- trouble

    @rule(data=st.data(), kind=st.sampled_from(["detach", "session", "client", "broker", "cut", "kill"]))
    def trouble(self, data: Any, kind: str) -> None:
        number = data.draw(numbers)
        if kind == "broker":
            self.broker_ends(number, data.draw(st.sampled_from(["link", "session", "connection", "wire"])))
        elif kind == "cut":
            self.cut(number % 3)
        elif kind == "kill":
            self.kill(ROUTERS[number % 4])
        elif not self.peers:
            pass
        elif kind == "session":
            self.end_session(number)
        elif kind == "client":
            self.lose_client(number, data.draw(st.booleans()))
        elif self.senders or self.receivers or self.controllers:
            self.detach(number, data.draw(st.booleans()))

    def detach(self, number: int, closed: bool) -> None:
        end = self.some([*self.senders, *self.receivers, *self.controllers], number)
        if is_there(end):
            end.detach(closed)

    def end_session(self, number: int) -> None:
        peer = self.some(self.peers, number)
        if not peer.session.mute:
            for end in self.ends_of(peer):
                if end.link.session is peer.session:
                    end.detached = True
            peer.session.end()
            self.network.run()

    def lose_client(self, number: int, politely: bool) -> None:
        peer = self.some(self.peers, number)
        self.peers.remove(peer)
        for end in self.ends_of(peer):
            end.detached = True
        if politely:
            peer.close()
        else:
            peer.cut()

    def ends_of(self, peer: Peer) -> list[Any]:
        return [end for end in (*self.senders, *self.receivers, *self.controllers) if end.peer is peer]

    def broker_ends(self, number: int, how: str) -> None:
        """The broker has had enough, or is gone: of one client, or of all."""
        ends = [wire for wire in self.network.wires if not wire.is_cut and wire.far.broker in self.brokers]
        ends = [wire for wire in ends if not wire.far.ended]
        if not ends:
            return
        wire = self.some(ends, number)
        if how == "wire":
            wire.cut()
        elif how == "connection":
            wire.far.close(GONE)
        else:
            sessions = wire.far._sessions
            session = self.some(sessions, number) if sessions else None
            terminals = [each for each in session.context if hasattr(each, "detach")] if session else []
            if how == "link" and terminals:
                self.some(terminals, number).detach(GONE)
            elif how == "session" and session is not None:
                session.fail(GONE)
                wire.far._ended(session, GONE)
            wire.far.touched()
        self.network.run()

    @property
    def brokers(self) -> list[Any]:
        return list(self.network.brokers.values())

    def cut(self, number: int) -> None:
        for wire in self.network.wires:
            if wire.ends == {ROUTERS[number], ROUTERS[number + 1]} and not wire.near.ended:
                wire.cut()
        self.network.run()

    def kill(self, name: str) -> None:
        if self.down or name not in self.network.nodes:
            return
        node = self.network.nodes[name]
        for peer in [each for each in self.peers if each.connection.node is node]:
            self.peers.remove(peer)
            for end in self.ends_of(peer):
                end.detached = True
        self.down.append(name)
        self.network.kill(name)

    @precondition(lambda self: self.down)
    @rule()
    def revive(self) -> None:
        self.network.revive(self.down.pop())

    @rule(seconds=st.sampled_from([0.1, 2.0]))
    def advance(self, seconds: float) -> None:
        self.network.advance(seconds)

    # --- what holds

    def look(self) -> None:
        for receiver in self.receivers:
            for delivery in receiver.take():
                letter = self.letters[identity_of(delivery)]
                assert letter.address == self.addresses[receiver]
                assert letter.came != NO, f"{letter} never came to be, and was received"
                assert letter.is_used != YES, f"{letter} was taken for good, and came again"
                self.holds.append((receiver, delivery))
        for group in (self.senders, self.receivers, self.controllers):
            for end in group[:]:
                if not is_there(end) and end not in self.asked:
                    group.remove(end)

    @invariant()
    def holds_true(self) -> None:
        if not hasattr(self, "network"):
            return
        asked, self.asked = self.asked, []
        for end in asked:
            gone = end.peer.cut_off or end.peer.closed or end.detached or end.link.session.mute
            assert gone or end.link.remote_attached, "an attach was not answered"
        for peer in self.peers:
            assert not peer.failed
        for receiver in self.receivers:
            if is_there(receiver):
                assert receiver.link.credit >= 0
        for letter in self.letters.values():
            outcomes = {type(state) for state in letter.told if not isinstance(state, (TransactionalState, type(None)))}
            assert len(outcomes) <= 1, letter
        self.look()

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        while self.down:
            self.revive()
        for _ in range(3):
            self.network.advance(2.5)
        self.holds_true()
        self.check_healed()
        for peer in self.peers:
            peer.close()
        for _ in range(3):
            self.network.advance(2.5)
        self.check_account()
        self.check_nothing_stays()

    def check_healed(self) -> None:
        """Whatever was lost, a new client can use both brokers from everywhere."""
        for name in ROUTERS:
            peer = self.network.connect(name)
            for address in ("orders.new", "bills.new"):
                assert peer.sender(address, session=peer.begin()).send("x") == [[ACCEPTED]]
            peer.close()

    def check_account(self) -> None:
        """What each client knows is so."""
        there: dict[int, int] = {}
        for name, broker in self.network.brokers.items():
            peer = Peer(Site(self.network, broker), "auditor")  # type: ignore[arg-type]
            self.network.peers.append(peer)
            for address in ADDRESSES:
                if ROUTES[address.partition(".")[0]][1] == name:
                    for delivery in drained(peer.receiver(address)):
                        there[identity_of(delivery)] = there.get(identity_of(delivery), 0) + 1
            peer.close()
        for letter in self.letters.values():
            count = there.get(letter.number, 0)
            assert count <= 1, f"{letter} is there {count} times"
            if letter.came == NO or letter.is_used == YES:
                assert count == 0, letter
            elif letter.came == YES and letter.is_used == NO:
                assert count == 1, f"{letter} is lost"
        for txn in self.txns:
            if txn.came_to_pass == MAYBE:
                sure = [each for each in self.letters.values() if each.txn is txn and each.told and not each.takes]
                assert len({there.get(each.number, 0) for each in sure}) <= 1, "committed in part"
            assert not any(broker.transactions() for broker in self.brokers)

    def check_nothing_stays(self) -> None:
        for broker in self.brokers:
            assert len(broker.connections()) == 1  # the connector's own
        for node in self.network.nodes.values():
            assert not node.link_routes._ways and not node.link_routes._relays and not node.link_routes._controls
            for neighbour in node.neighbours:
                assert len(neighbour.sessions) == 2 and not neighbour._continued
            assert len(node.neighbours) == (1 if node.name.startswith("E") else 2)


def drained(receiver: Receiver) -> list[Any]:
    """All that is in a queue."""
    receiver.flow(10_000, drain=True)
    return receiver.take()


def identity_of(delivery: Any) -> int:
    (body,) = bodies([delivery])
    return int(body.partition(":")[0])


TestLinkRouting = LinkRouting.TestCase
TestLinkRouting.settings = settings(
    settings.default, stateful_step_count=30, max_examples=max(settings.default.max_examples // 3, 50)
)
