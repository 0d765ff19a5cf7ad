"""A broker in memory, peers made of engines, and every frame between them on record."""

from __future__ import annotations

from typing import Any

from jmsish.engine.outcomes import ACCEPTED, Declared, Rejected, TransactionalState
from jmsish.engine.values import encode_string
from jmsish.types import Symbol
from tests.broker.world import Controller, Peer, Receiver, Sender, World, in_transaction, message, properties
from tests.wire.frames import Frame, Raw, composite, read

ROLLBACK = "amqp:transaction:rollback"
TIMEOUT = "amqp:transaction:timeout"
UNKNOWN_ID = "amqp:transaction:unknown-id"
ACCEPTED_ONLY = ("amqp:accepted:list",)
SYMBOL_TXN_ID = Symbol("txn-id")


class Scene(World):
    """A world whose peers keep the frames they hear."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self.heard: dict[Peer, list[Frame]] = {}

    def connect(self, container_id: str | None = None, **options: Any) -> Peer:
        peer = super().connect(container_id, **options)
        frames = self.heard[peer] = []
        take_output = peer.connection.take_output

        def recorded() -> bytes:
            data = take_output()
            frames.extend(read(data))
            return data

        peer.connection.take_output = recorded  # type: ignore[method-assign]
        return peer

    def frames(self, peer: Peer, *names: str) -> list[Frame]:
        """What the peer heard since the last call, of these kinds where some are named."""
        heard = list(self.heard[peer])
        self.heard[peer].clear()
        return [frame for frame in heard if not names or frame.name in names]

    def say(self, peer: Peer, name: str, payload: bytes = b"", *, session: Any = None, **fields: Any) -> None:
        """Write a frame by hand, wrong ones included, and let everybody answer."""
        channel = (session or peer.session).channel
        peer.engine.write(channel, composite(name, **fields).octets + payload)
        self.run()

    def transfer(self, end: Sender | Controller, payload: bytes, *, number: int | None = None, **fields: Any) -> int:
        """A transfer by hand on a link of ours; gives its delivery-id. ``number``: a further frame of that delivery."""
        session = end.link.session
        if number is None:
            number = session.next_delivery_id
            session.next_delivery_id += 1
            fields = {"delivery_tag": b"tag-%d" % number, "message_format": 0, **fields}
        session.remote_left -= 1  # else the engine would not know of this frame
        self.say(end.peer, "transfer", payload, session=session, handle=end.link.handle, delivery_id=number, **fields)
        return number


def states(frames: list[Frame], number: int) -> list[tuple[bool, Any]]:
    """(settled, state) of each disposition among the frames that covers the delivery."""
    return [
        (bool(frame.settled), frame.state)
        for frame in frames
        if frame.name == "disposition" and frame.first <= number <= (frame.first if frame.last is None else frame.last)
    ]


def state_of(txn_id: bytes | None, outcome: str | None = "accepted", **fields: Any) -> Raw:
    """A transactional-state for a frame by hand."""
    return composite(
        "transactional-state", txn_id=txn_id, outcome=None if outcome is None else composite(outcome, **fields)
    )


class Stage:
    """One peer with the usual: a control link, a transaction declared on it, and messages on the queue q."""

    def __init__(self, scene: Scene, *bodies: str, **options: Any) -> None:
        self.scene = scene
        self.peer = scene.connect()
        if bodies:
            self.peer.sender().send(*bodies)
        self.control = self.peer.controller(**options)
        self.txn = self.control.declare()

    def taken(self, credit: int = 1, **options: Any) -> tuple[Receiver, list[Any]]:
        """A receiver, and so many messages it has got."""
        receiver = self.peer.receiver(credit=credit, **options)
        return receiver, receiver.take()

    def acquired(self, credit: int = 1, **options: Any) -> tuple[Receiver, list[Any]]:
        """A receiver, and so many messages acquired under the transaction."""
        receiver = self.peer.receiver(**options)
        receiver.flow(credit, properties={SYMBOL_TXN_ID: self.txn})
        return receiver, receiver.take()

    def left(self, name: str = "q") -> list[str]:
        """What anybody could get from a queue now."""
        return self.scene.connect().receiver(name).drain()


def condition_of(end: Any) -> str | None:
    """The condition with which the broker detached a link, or None for one that is attached."""
    if not end.detached:
        return None
    assert end.error is not None
    return str(end.error.condition)


def rejected_with(answer: Any) -> str:
    """The condition of an outcome that must be rejected."""
    outcome = answer.outcome if isinstance(answer, TransactionalState) else answer
    assert isinstance(outcome, Rejected) and outcome.error is not None
    return outcome.error.condition


__all__ = [
    "ACCEPTED", "ACCEPTED_ONLY", "ROLLBACK", "TIMEOUT", "UNKNOWN_ID", "Declared", "Scene", "Stage", "condition_of",
    "in_transaction", "message", "rejected_with", "state_of", "states",
]  # fmt: skip


def properties_to(address: str) -> bytes:
    """A properties section that says where a message on an anonymous link goes."""
    return properties(b"\x40", b"\x40", encode_string(address))
