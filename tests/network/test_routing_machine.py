"""Whatever clients and wires do: a message has one outcome, accepted only if somebody accepted it, and nothing stays.

Four routers in memory, and clients that come, send, receive, say what they like, stop reading, are cut off, and go; the
wires between the routers break, and come again. The model knows what was sent and what receivers have said.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jmsish.engine.outcomes import ACCEPTED, MODIFIED_FAILED, RELEASED, AmqpError, Rejected
from jmsish.engine.values import encode_described, encode_list, encode_string
from tests.broker.world import Peer, Receiver, Sender, message
from tests.network.test_mobile import bodies
from tests.network.world import Network

LINE = "EA1-INT.A-INT.B-EB1"
ROUTERS = ("EA1", "INT.A", "INT.B", "EB1")
ADDRESSES = ("a", "b", "news")
STATES = (ACCEPTED, Rejected(AmqpError("test:no", "no")), RELEASED, MODIFIED_FAILED)
SIZES = (10, 10, 30_000, 600_000)
numbers = st.integers(0, 1 << 16)


class Sent:
    """A message that was sent, and what its sender heard of it."""

    def __init__(self, number: int, sender: Sender, address: str, told: list[Any], settled: bool) -> None:
        self.number = number
        self.sender = sender
        self.address = address
        self.told = told
        self.settled = settled
        self.aborted = False

    def __repr__(self) -> str:
        return f"<Sent {self.number} to {self.address!r}{' settled' * self.settled} {self.told}>"

    @property
    def is_owed(self) -> bool:
        """Whether its sender is there still, to be told."""
        end = self.sender
        gone = end.detached or end.peer.cut_off or end.link.local_closed or bool(end.peer.closed)
        return not (self.settled or self.aborted or gone or self.is_here)

    @property
    def is_here(self) -> bool:
        """Whether it has not left: the window was shut, and then the credit taken back."""
        link = self.sender.link
        return any(item.delivery.context is self.told for item in (*link.session.backlog, *link.held))


class Routing(RuleBasedStateMachine):
    """Mobile addresses over four routers."""

    network: Network

    @initialize(third=st.sampled_from(ROUTERS), addresses=st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=4))
    def begin(self, third: str, addresses: list[str]) -> None:
        self.network = self.make()
        self.peers: list[Peer] = []
        self.deaf: list[Peer] = []
        self.senders: list[Sender] = []
        self.receivers: list[Receiver] = []
        self.addresses: dict[Any, str | None] = {}
        self.seen: dict[Any, int] = {}
        """How many of a receiver's deliveries were looked at."""
        self.order: dict[tuple[int, Any], int] = {}
        self.sent: dict[int, Sent] = {}
        self.by_id: dict[int, set[Any]] = {}
        """Which receivers got a message."""
        self.accepted: set[int] = set()
        for at, window in (("EA1", 2048), ("EB1", 2048), (third, 2)):
            self.connect(at, window)
        for number, address in enumerate(addresses):
            self.open_receiver(number + 1, address, 3, own=False)
            self.open_sender(number, address, own=False)

    def make(self) -> Network:
        return Network(LINE, multicast=("news",))

    def some(self, items: list[Any], number: int) -> Any:
        return items[number % len(items)]

    # --- clients

    @rule(at=st.sampled_from(ROUTERS), window=st.sampled_from([2048, 2]))
    def connect(self, at: str, window: int) -> None:
        if len(self.peers) < 6:
            self.peers.append(self.network.connect(at, incoming_window=window))

    @precondition(lambda self: self.peers)
    @rule(number=numbers, address=st.sampled_from((*ADDRESSES, None)), own=st.booleans())
    def open_sender(self, number: int, address: str | None, own: bool) -> None:
        peer = self.some(self.peers, number)
        sender = peer.sender(address, session=peer.begin() if own else None)
        self.senders.append(sender)
        self.addresses[sender] = address

    @precondition(lambda self: self.peers)
    @rule(number=numbers, address=st.sampled_from(ADDRESSES), credit=st.integers(0, 4), own=st.booleans())
    def open_receiver(self, number: int, address: str, credit: int, own: bool) -> None:
        peer = self.some(self.peers, number)
        receiver = peer.receiver(address, credit=credit, session=peer.begin() if own else None)
        self.receivers.append(receiver)
        self.addresses[receiver] = address

    # --- messages

    @precondition(lambda self: self.senders)
    @rule(
        number=numbers,
        address=st.sampled_from(ADDRESSES),
        size=st.sampled_from(SIZES),
        settled=st.booleans(),
        abort=st.booleans(),
        run=st.booleans(),
    )
    def send(self, number: int, address: str, size: int, settled: bool, abort: bool, run: bool) -> None:
        sender = self.some(self.senders, number)
        if sender.link.credit <= 0 or sender.link.local_closed or sender.peer.closed or sender.peer.cut_off:
            return
        address = self.addresses[sender] or address
        identity = len(self.sent)
        told: list[Any] = []
        payload = properties_to(address) + long_message(f"{identity}:" + "x" * size)
        delivery = sender.link.send(payload, settled=settled, context=told)
        sent = self.sent[identity] = Sent(identity, sender, address, told, settled)
        if abort and size > 500_000 and sender.peer not in self.deaf:
            sender.peer.speak()
            self.network.named.update(self.network.nodes[sender.peer.connection.node.name].step())
            if any(item.delivery is delivery for item in (*sender.link.session.backlog, *sender.link.held)):
                sender.link.abort(delivery)
                sent.aborted = True
        if run:
            self.network.run()

    @precondition(lambda self: self.senders)
    @rule(number=numbers, count=st.integers(1, 6), size=st.sampled_from(SIZES[:3]))
    def send_several(self, number: int, count: int, size: int) -> None:
        for index in range(count):
            self.send(number, ADDRESSES[index % 3], size, False, False, True)

    @precondition(lambda self: self.receivers)
    @rule(number=numbers, credit=st.integers(0, 5), drain=st.booleans())
    def flow(self, number: int, credit: int, drain: bool) -> None:
        receiver = self.some(self.receivers, number)
        if not (receiver.link.local_closed or receiver.peer.cut_off or receiver.peer.closed):
            receiver.flow(credit, drain=drain)

    @precondition(lambda self: self.receivers)
    @rule(number=numbers, which=numbers, state=st.sampled_from(STATES), settled=st.booleans())
    def dispose(self, number: int, which: int, state: Any, settled: bool) -> None:
        receiver = self.some(self.receivers, number)
        self.look(receiver)
        open_ = [each for each in receiver.arrived if not (each.settled or each.remote_settled)]
        if not open_ or receiver.peer.cut_off or receiver.peer.closed or receiver.detached:
            return
        if receiver.link.local_closed:
            return
        delivery = self.some(open_, which)
        if state is ACCEPTED:
            self.accepted.add(identity_of(delivery))
        if not settled:
            receiver.session.disposition(delivery, state, False)
            self.network.run()
        receiver.dispose([delivery], state)

    # --- trouble

    @precondition(lambda self: self.senders or self.receivers)
    @rule(number=numbers, closed=st.booleans())
    def detach(self, number: int, closed: bool) -> None:
        end = self.some([*self.senders, *self.receivers], number)
        if not (end.link.local_closed or end.detached or end.peer.cut_off or end.peer.closed):
            self.leave(end)
            end.detach(closed)

    def leave(self, end: Any) -> None:
        """Nothing is asked of it any more."""
        for group in (self.senders, self.receivers):
            if end in group:
                self.look(end)
                group.remove(end)

    @precondition(lambda self: self.peers)
    @rule(number=numbers)
    def end_session(self, number: int) -> None:
        peer = self.some(self.peers, number)
        for end in [each for each in (*self.senders, *self.receivers) if each.link.session is peer.session]:
            self.leave(end)
            end.detached = True
        peer.session.end()
        self.network.run()
        peer.session = peer.begin()

    @precondition(lambda self: self.peers)
    @rule(number=numbers, politely=st.booleans())
    def lose_client(self, number: int, politely: bool) -> None:
        peer = self.some(self.peers, number)
        self.peers.remove(peer)
        for end in [each for each in (*self.senders, *self.receivers) if each.peer is peer]:
            self.leave(end)
            end.detached = True
        if peer in self.deaf:
            self.deaf.remove(peer)
            self.network.peers.append(peer)
        if politely:
            peer.close()
        else:
            peer.cut()

    @precondition(lambda self: self.peers)
    @rule(number=numbers)
    def stop_reading(self, number: int) -> None:
        peer = self.some(self.peers, number)
        if peer not in self.deaf and len(self.network.peers) > 1:
            self.deaf.append(peer)
            self.network.peers.remove(peer)

    @precondition(lambda self: self.deaf)
    @rule()
    def read_again(self) -> None:
        self.network.peers.extend(self.deaf)
        for peer in self.deaf:
            self.network.named.add(peer.connection)
        self.deaf.clear()
        self.network.run()

    @rule(number=st.integers(0, 2))
    def cut(self, number: int) -> None:
        near, far = ROUTERS[number], ROUTERS[number + 1]
        for wire in self.network.wires:
            if wire.ends == {near, far} and not wire.near.ended:
                wire.cut()
        self.network.run()

    @rule(seconds=st.sampled_from([0.1, 2.0]))
    def advance(self, seconds: float) -> None:
        self.network.advance(seconds)

    # --- what holds

    def look(self, receiver: Any) -> None:
        """What has come to a receiver since."""
        if not isinstance(receiver, Receiver):
            return
        start = self.seen.get(receiver, 0)
        self.seen[receiver] = len(receiver.arrived)
        for delivery in receiver.arrived[start:]:
            sent = self.sent[identity_of(delivery)]
            assert not sent.aborted
            assert sent.address == self.addresses[receiver]
            got = self.by_id.setdefault(sent.number, set())
            assert receiver not in got
            got.add(receiver)
            assert sent.address == "news" or len(got) == 1, f"{sent} came to {len(got)} receivers"
            key = (id(sent.sender), receiver)
            assert self.order.get(key, -1) < sent.number
            self.order[key] = sent.number

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "sent"):
            return
        for receiver in self.receivers:
            self.look(receiver)
        for sent in self.sent.values():
            said = [state for state in sent.told if state is not None]
            if ACCEPTED in said:
                assert sent.number in self.accepted, f"{sent}: accepted by nobody"
            assert len([state for state in said if state != ACCEPTED]) <= 2 and not sent.settled or not said
        for sender in self.senders:
            assert sender.link.credit <= 250
            assert not sender.peer.closed and not sender.detached and not sender.peer.failed, sender.error
        for receiver in self.receivers:
            assert receiver.link.credit >= 0
            assert not receiver.peer.closed and not receiver.detached and not receiver.peer.failed

    def teardown(self) -> None:
        if not hasattr(self, "sent"):
            return
        if self.deaf:
            self.read_again()
        self.settle_all()
        for receiver in self.receivers[:]:
            self.leave(receiver)
            receiver.detach()
        for _ in range(3):
            self.network.advance(2.5)
        for sent in self.sent.values():
            if sent.is_owed:
                assert sent.told, f"{sent} was never told"
        self.holds()
        self.check_outcomes()
        for sender in self.senders:
            assert sender.link.credit <= 0 or self.addresses[sender] is None
        for peer in self.peers:
            peer.close()
        for _ in range(3):
            self.network.advance(2.5)
        self.check_nothing_stays()

    def settle_all(self) -> None:
        for receiver in self.receivers:
            self.look(receiver)
            for delivery in receiver.arrived:
                if not (delivery.settled or delivery.remote_settled):
                    self.accepted.add(identity_of(delivery))
                    receiver.dispose([delivery], ACCEPTED)

    def check_outcomes(self) -> None:
        """One outcome each, whatever states were said before it."""
        for sent in self.sent.values():
            kinds = {type(state) for state in sent.told if state is not None}
            assert len(kinds) <= 1, sent

    def check_nothing_stays(self) -> None:
        for node in self.network.nodes.values():
            left = {
                name: [(len(branch.waiting), branch.in_flight, branch.ingress) for branch in address.branches]
                for name, address in node._addresses.items()
            }
            assert not left, (node.name, left)
            assert not node.link_routes._ways and not node.link_routes._relays
            assert set(node.reach.keys("A")) == set()
            for neighbour in node.neighbours:
                assert len(neighbour.sessions) == 2
                for session in neighbour.sessions:
                    assert not session.outgoing and not session.incoming
            assert len(node.neighbours) == (1 if node.name.startswith("E") else 2)


def properties_to(address: str) -> bytes:
    """A properties section with a `to`."""
    return encode_described(0x73, encode_list((b"\x40", b"\x40", encode_string(address))))


def long_message(body: str) -> bytes:
    return message(body)


def identity_of(delivery: Any) -> int:
    return int(bodies_of(delivery).partition(":")[0])


def bodies_of(delivery: Any) -> str:
    (body,) = bodies([delivery])
    return body


TestRouting = Routing.TestCase
TestRouting.settings = settings(
    settings.default, stateful_step_count=30, max_examples=max(settings.default.max_examples // 3, 50)
)
