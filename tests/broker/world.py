"""A broker and its clients in one memory: engines joined by hand, a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from jmsish.broker import Broker, QueueView
from jmsish.engine import events
from jmsish.engine.codec import Header, encode_header, split_header
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import (
    ACCEPTED,
    AmqpError,
    Coordinator,
    Declare,
    Declared,
    DeliveryState,
    Discharge,
    Rejected,
    Source,
    Target,
    TransactionalState,
    encode_control,
)
from jmsish.engine.sasl import SaslClient
from jmsish.engine.values import encode_described, encode_list, encode_string, encode_ulong

UNSETTLED, SETTLED, MIXED = 0, 1, 2
ALL_OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")


class Clock:
    """Seconds that pass only by :meth:`World.advance`."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class World:
    """One broker, and the peers connected to it."""

    def __init__(self, config: dict[str, Any] | None = None, *, portion: int = 0, **options: Any) -> None:
        """With a ``portion`` the broker does so little of its long jobs in a step."""
        self.clock = Clock()
        self.broker = Broker("test", config, clock=self.clock, **options)
        if portion:
            self.broker.portions.size = portion
            self.broker._engine_limits = replace(self.broker._engine_limits, most_disposed=portion)
        self.peers: list[Peer] = []
        self.monotonic = 1000.0

    def connect(self, container_id: str | None = None, **options: Any) -> Peer:
        peer = Peer(self, container_id or f"peer-{len(self.peers)}", **options)
        self.peers.append(peer)
        self.run()
        return peer

    def run(self) -> None:
        """Carry bytes to and fro until nobody has anything to say."""
        moved = True
        while moved or self.broker.unfinished:
            moved = False
            for peer in self.peers:
                moved = peer.speak() or moved
            questions = self.broker.questions[:]
            self.broker.questions.clear()
            for connection, question in questions:
                connection.login.answered(question())
            self.broker.step()
            for peer in self.peers:
                moved = peer.hear() or moved

    def advance(self, seconds: float) -> None:
        """Let time pass, by both clocks."""
        self.clock.now += seconds
        self.monotonic += seconds
        self.broker.tick(self.clock.now)
        for peer in self.peers:
            if not peer.cut_off:
                peer.connection.tick(self.monotonic)
        self.run()

    def queue(self, name: str = "q") -> QueueView:
        return self.broker.queue(name)

    def bodies(self, name: str = "q", acquired: bool = False) -> list[str]:
        return [body_of(payload) for payload in self.queue(name).payloads(acquired)]

    def depth(self, name: str = "q") -> tuple[int, int]:
        """(available, acquired)"""
        view = self.queue(name)
        assert view.depth >= view.available + view.acquired
        return view.available, view.acquired


class Peer:
    """A client by its engine alone: what it sends is what a test says."""

    def __init__(
        self,
        world: World,
        container_id: str,
        *,
        trusted: bool = True,
        sasl: SaslClient | None = None,
        accepted: dict[str, Any] | None = None,
        peer: str = "memory",
        **options: Any,
    ) -> None:
        self.world = world
        self.engine = Engine(server=False, container_id=container_id, sasl=sasl or SaslClient(), **options)
        self.connection = world.broker.accept(**{"trusted": trusted, "peer": peer, **(accepted or {})})
        self.cut_off = False
        self.closed: list[AmqpError | None] = []
        self.ended: list[AmqpError | None] = []
        self.failed: list[AmqpError] = []
        self.engine.open()
        self.session: Any = self.engine.begin()

    def speak(self) -> bool:
        data = b"" if self.cut_off else self.engine.take_output()
        if data:
            self.connection.receive(data)
        return bool(data)

    def hear(self) -> bool:
        data = self.connection.take_output()
        if data and not self.cut_off:
            self.engine.receive(data)
        for event in self.engine.take_events():
            self._note(event)
        return bool(data)

    def _note(self, event: tuple[Any, ...]) -> None:
        kind = event[0]
        if kind == events.DELIVERED:
            event[2].context = []
            event[1].context.arrived.append(event[2])
        elif kind == events.DETACHED:
            event[1].context.error = event[3]
            event[1].context.detached = True
        elif kind == events.DISPOSED:
            for delivery in event[2]:
                delivery.context.append(event[3])
        elif kind == events.CLOSED:
            self.closed.append(event[1])
            self.engine.close()
        elif kind == events.ENDED:
            self.ended.append(event[2])
            event[1].end()
        elif kind == events.FAILED:
            self.failed.append(event[1])

    def begin(self) -> Any:
        session = self.engine.begin()
        self.world.run()
        return session

    def sender(self, address: str | None = "q", *, session: Any = None, **options: Any) -> Sender:
        sender = Sender(self, session or self.session, address, options)
        self.world.run()
        return sender

    def receiver(self, address: str | None = "q", *, credit: int = 0, session: Any = None, **options: Any) -> Receiver:
        receiver = Receiver(self, session or self.session, address, options)
        self.world.run()
        if credit:
            receiver.flow(credit)
        return receiver

    def controller(self, *, session: Any = None, outcomes: tuple[str, ...] | None = ALL_OUTCOMES) -> Controller:
        controller = Controller(self, session or self.session, outcomes)
        self.world.run()
        return controller

    def cut(self) -> None:
        """The socket dies."""
        self.cut_off = True
        self.connection.receive_eof()
        self.world.run()

    def close(self) -> None:
        self.engine.close()
        self.world.run()


class End:
    """What a test knows of a link."""

    link: Any

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.world = peer.world
        self.arrived: list[Any] = []
        self.error: AmqpError | None = None
        self.detached = False

    def name(self) -> str:
        return f"link-{id(self)}"

    def detach(self, closed: bool = True) -> None:
        self.link.detach(closed=closed)
        self.world.run()


class Sender(End):
    """A link on which the peer sends."""

    def __init__(self, peer: Peer, session: Any, address: str | None, options: dict[str, Any]) -> None:
        super().__init__(peer)
        source = options.pop("source", Source(address="here", outcomes=ALL_OUTCOMES))
        target = options.pop("target", Target(address=address))
        self.link = session.sender(self.name(), source=source, target=target, context=self, **options)

    def send(
        self, *bodies: str, run: bool = True, state: Any = None, settled: bool = False, **header: Any
    ) -> list[Any]:
        """Send messages, and give what was answered to each: a list that grows with the answers."""
        answers = [self.transfer(message(body, **header), state=state, settled=settled) for body in bodies]
        if run:
            self.world.run()
        return answers

    def send_octets(self, payload: bytes, **options: Any) -> list[Any]:
        """Send one message as it is; what was answered."""
        answers = self.transfer(payload, **options)
        self.world.run()
        return answers

    def transfer(self, payload: bytes, *, state: Any = None, settled: bool = False) -> list[Any]:
        answers: list[Any] = []
        self.link.send(payload, state=state, settled=settled, context=answers)
        return answers


class Receiver(End):
    """A link on which the peer receives."""

    def __init__(self, peer: Peer, session: Any, address: str | None, options: dict[str, Any]) -> None:
        super().__init__(peer)
        source = options.pop("source", None)
        if source is None:
            fields = ("default_outcome", "distribution_mode", "outcomes", "capabilities", "filter", "dynamic")
            source = Source(address=address, **{key: options.pop(key) for key in fields if key in options})
        self.session = session
        target = options.pop("target", Target(address="there"))
        self.link = session.receiver(self.name(), source=source, target=target, context=self, **options)

    def flow(self, credit: int, *, drain: bool = False, run: bool = True, **options: Any) -> None:
        self.link.flow(credit, drain=drain, **options)
        if run:
            self.world.run()

    def take(self) -> list[Any]:
        """The deliveries since the last call."""
        arrived, self.arrived = self.arrived, []
        return arrived

    def receive(self, credit: int = 0) -> list[str]:
        """The bodies since the last call, with more credit before if wanted: "m1" or "m1+2" for delivery count 2."""
        if credit:
            self.flow(credit)
        return [described(delivery) for delivery in self.take()]

    def dispose(self, deliveries: Iterable[Any], state: DeliveryState | None, settled: bool = True) -> None:
        for delivery in deliveries:
            self.session.disposition(delivery, state, settled)
        self.world.run()

    def accept(self, deliveries: Iterable[Any]) -> None:
        self.dispose(deliveries, ACCEPTED)

    def drain(self, credit: int = 1000) -> list[str]:
        """All that is there for this link, and the proof that it is all."""
        self.flow(credit, drain=True)
        assert self.link.credit == 0
        return self.receive()


class Controller(End):
    """A control link."""

    def __init__(self, peer: Peer, session: Any, outcomes: tuple[str, ...] | None) -> None:
        super().__init__(peer)
        source = Source(address="here", outcomes=outcomes)
        self.link = session.sender(self.name(), source=source, target=Coordinator(), context=self)

    def command(self, command: Declare | Discharge, *, run: bool = True, **options: Any) -> list[Any]:
        answers: list[Any] = []
        self.link.send(encode_control(command), context=answers, **options)
        if run:
            self.world.run()
        return answers

    def declare(self) -> bytes:
        (answer,) = self.command(Declare())
        assert isinstance(answer, Declared)
        return answer.txn_id

    def commit(self, txn_id: bytes) -> Any:
        return self._discharge(txn_id, False)

    def roll_back(self, txn_id: bytes) -> Any:
        return self._discharge(txn_id, True)

    def _discharge(self, txn_id: bytes, fail: bool) -> Any:
        """None for accepted, else the condition."""
        answers = self.command(Discharge(txn_id, fail))
        if not answers:
            assert self.error is not None
            return self.error.condition
        (answer,) = answers
        if isinstance(answer, Rejected):
            assert answer.error is not None
            return answer.error.condition
        assert answer is ACCEPTED or answer == ACCEPTED
        return None


def in_transaction(txn_id: bytes, outcome: DeliveryState | None = None) -> TransactionalState:
    return TransactionalState(txn_id, outcome)


def message(
    body: str,
    *,
    priority: int | None = None,
    ttl: int | None = None,
    durable: bool | None = None,
    delivery_count: int = 0,
    annotations: bytes = b"",
    properties: bytes = b"",
) -> bytes:
    """A message in octets; without header fields it has no header section."""
    header = b""
    if priority is not None or ttl is not None or durable is not None or delivery_count:
        header = encode_header(Header(bool(durable), 4 if priority is None else priority, ttl, False, delivery_count))
    return header + annotations + properties + encode_described(0x77, encode_string(body))


def properties(*fields: bytes) -> bytes:
    return encode_described(0x73, encode_list(fields))


def body_of(payload: bytes) -> str:
    at = payload.rindex(b"\x00\x53\x77\xa1")
    return payload[at + 5 : at + 5 + payload[at + 4]].decode()


def count_of(payload: bytes) -> int:
    header = split_header(payload)[0]
    return 0 if header is None else header.delivery_count


def described(delivery: Any) -> str:
    count = count_of(delivery.payload)
    body = body_of(delivery.payload)
    return f"{body}+{count}" if count else body


__all__ = ["Clock", "Controller", "Peer", "Receiver", "Sender", "World", "encode_ulong"]
