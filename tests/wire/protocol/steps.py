"""The usual turns of a talk with a broker, frame by frame, and the broker that is talked to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from jmsish.broker import Broker
from jmsish.engine.codec import ReceivedMessage
from jmsish.engine.values import encode_described, encode_list, encode_string
from tests.wire.frames import AMQP_HEADER, RECEIVER, SENDER, Frame, Raw, composite, write
from tests.wire.raw import Line, MemoryLine, RawPeer, SocketLine

WINDOW = 1000
ACCEPTED_ONLY = ["amqp:accepted:list"]
WITH_REJECTED = ["amqp:accepted:list", "amqp:rejected:list"]
ALL_OUTCOMES = ["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"]
RELEASING = ("flow", "disposition")
"""What may come at any time."""


def message(body: str, to: str | None = None) -> bytes:
    """A message of one amqp-value, with an address where one is given."""
    value = encode_described(0x77, encode_string(body))
    if to is None:
        return value
    return encode_described(0x73, encode_list([b"\x40", b"\x40", encode_string(to)])) + value


def body_of(payload: bytes) -> Any:
    return ReceivedMessage(payload).body()[1]


def in_transaction(txn: bytes, outcome: Raw | None = None) -> Raw:
    return composite("transactional-state", txn_id=txn, outcome=outcome)


def control(body: Raw) -> bytes:
    """A message to the coordinator."""
    return encode_described(0x77, body.octets)


ACCEPTED = composite("accepted")
REJECTED = composite("rejected")
RELEASED = composite("released")


class Client(RawPeer):
    """A peer that knows what is usual: one session on channel 1, of which it counts the frames."""

    def __init__(self, line: Line, name: str, *, foreign: bool = False) -> None:
        super().__init__(line, name)
        self.foreign = foreign
        self.channel = 1
        self.sent = 0
        """Deliveries begun."""
        self.received = 0
        """The id of the next transfer frame that comes."""
        self._controls = count()

    def passes_over(self, frame: Frame, names: tuple[str, ...], but: tuple[str, ...], pattern: dict[str, Any]) -> bool:
        if super().passes_over(frame, names, but, pattern):
            return True
        # A flow may come at any time (2.7.4): others grant the coordinator new credit after each command, for one.
        wanted = "flow" in names and pattern.get("handle", frame.fields.get("handle")) == frame.fields.get("handle")
        return self.foreign and frame.name == "flow" and not wanted

    # -- the opening ---------------------------------------------------------------------------------------------------

    def open(self, **fields: Any) -> Frame:
        self.send(AMQP_HEADER, write("open", **{"container_id": self.name, **fields}))
        self.expect("header", octets=AMQP_HEADER)
        return self.expect("open")

    def begin(self, channel: int = 1, **fields: Any) -> Frame:
        self.channel = channel
        usual: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": WINDOW, "outgoing_window": WINDOW}
        self.say("begin", channel, **{**usual, **fields})
        begun = self.expect("begin", remote_channel=channel)
        self.received = begun.next_outgoing_id
        return begun

    # -- links ---------------------------------------------------------------------------------------------------------

    def terminus(self, kind: str, address: str | None, **fields: Any) -> Raw:
        if self.foreign and address is not None:
            fields.setdefault("capabilities", "queue")  # Elsewhere an address alone may mean a topic.
        return composite(kind, address=address, **fields)

    def attach_sender(self, address: str | None, handle: int = 0, **fields: Any) -> None:
        """Say it only; `outcomes` are those of the source, others are fields of the attach."""
        outcomes = fields.pop("outcomes", None)
        usual: dict[str, Any] = {
            "name": "testLink", "role": SENDER, "initial_delivery_count": 0,
            "source": composite("source", outcomes=outcomes), "target": self.terminus("target", address),
        }  # fmt: skip
        self.say("attach", self.channel, handle=handle, **{**usual, **fields})

    def sender(self, address: str | None, handle: int = 0, **fields: Any) -> Frame:
        self.attach_sender(address, handle, **fields)
        attached = self.expect("attach", role=RECEIVER, target=...)
        self.expect("flow", handle=attached.handle, link_credit=lambda credit: credit > 0)
        return attached

    def attach_receiver(self, address: str | None, handle: int = 0, **fields: Any) -> None:
        """Say it only; `filter`, `outcomes` and `default_outcome` are those of the source."""
        names = ("outcomes", "default_outcome", "distribution_mode")
        source = {name: fields.pop(name) for name in names if name in fields}
        usual: dict[str, Any] = {
            "name": "testLink", "role": RECEIVER,
            "source": self.terminus("source", address, **source), "target": composite("target"),
        }  # fmt: skip
        self.say("attach", self.channel, handle=handle, **{**usual, **fields})

    def receiver(self, address: str | None, handle: int = 0, *, credit: int = 0, **fields: Any) -> Frame:
        self.attach_receiver(address, handle, **fields)
        attached = self.expect("attach", role=SENDER, source=..., initial_delivery_count=...)
        if credit:
            self.flow(handle, link_credit=credit, delivery_count=0)
        return attached

    def flow(self, handle: int | None = None, **fields: Any) -> None:
        usual: dict[str, Any] = {
            "next_incoming_id": self.received, "incoming_window": WINDOW, "next_outgoing_id": self.sent,
            "outgoing_window": WINDOW,
        }  # fmt: skip
        self.say("flow", self.channel, handle=handle, **{**usual, **fields})

    def detach(self, handle: int = 0, *, closed: bool = True) -> None:
        self.say("detach", self.channel, handle=handle, closed=closed)
        self.expect("detach", but=RELEASING, closed=closed, error=None)

    # -- deliveries ----------------------------------------------------------------------------------------------------

    def transfer(self, payload: bytes | str, handle: int = 0, **fields: Any) -> int:
        """A delivery of one frame; its id is the next one."""
        number, self.sent = self.sent, self.sent + 1
        usual: dict[str, Any] = {"delivery_id": number, "delivery_tag": b"tag-%d" % number, "message_format": 0}
        octets = message(payload) if isinstance(payload, str) else payload
        self.say("transfer", self.channel, octets, handle=handle, **{**usual, **fields})
        return number

    def take(self, **pattern: Any) -> Frame:
        """A delivery of one frame."""
        self.received += 1
        return self.expect("transfer", but=("flow",), more=False, **pattern)

    def dispose(
        self, first: int, last: int | None = None, *, state: Raw | None = ACCEPTED, settled: bool = True
    ) -> None:
        self.say("disposition", self.channel, role=RECEIVER, first=first, last=last, settled=settled, state=state)

    # -- transactions --------------------------------------------------------------------------------------------------

    def controller(self, handle: int = 0, **fields: Any) -> Frame:
        usual: dict[str, Any] = {"name": f"controller-{handle}", "target": composite("coordinator")}
        return self.sender(None, handle, **{**usual, **fields})

    def command(self, body: Raw, handle: int = 0) -> Frame:
        """Send a control message and hear the answer: a settled disposition, or the end of the link."""
        number = self.transfer(control(body), handle, delivery_tag=b"c-%d" % next(self._controls), message_format=None)
        answer = self.expect("disposition", "detach", but=("flow",))
        if answer.name == "disposition" and (answer.role, answer.first, answer.settled) != (RECEIVER, number, True):
            self.fail(f"no answer to the control message {number}: {answer}")
        return answer

    def declare(self, handle: int = 0) -> bytes:
        state = self.command(composite("declare"), handle).state
        if not isinstance(state, Frame) or state.name != "declared":
            self.fail(f"a declare answered {state}")
        txn: bytes = state.txn_id
        return txn

    def discharge(self, txn: bytes, handle: int = 0, *, fail: bool | None = None) -> Any:
        """The outcome, or the detach."""
        answer = self.command(composite("discharge", txn_id=txn, fail=fail), handle)
        return answer.state if answer.name == "disposition" else answer

    def commit(self, txn: bytes, handle: int = 0) -> None:
        outcome = self.discharge(txn, handle, fail=False)
        if outcome.name != "accepted":
            self.fail(f"a commit answered {outcome}")

    # -- the end -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Nothing is left to be said: the next frame is the close. Others may grant credit before it."""
        self.say("close")
        self.expect("close", error=None, but=("flow",) if self.foreign else ())
        self.line.drop()

    def drop(self) -> None:
        """Gone without a word."""
        self.line.drop()


class Wire:
    """The broker under test, and a queue of it that no other test knows."""

    def __init__(self, line: Callable[[], Line], queue: str, *, broker: Broker | None = None) -> None:
        self._line = line
        self.queue = queue
        self.broker = broker
        self.foreign = broker is None
        self._count = count(1)
        self._peers: list[Client] = []

    def hang_up(self) -> None:
        """Cut every line that is left."""
        for peer in self._peers:
            peer.drop()

    def peer(self) -> Client:
        """A connection on which nothing was said."""
        peer = Client(self._line(), f"{self.queue}-{next(self._count)}", foreign=self.foreign)
        self._peers.append(peer)
        return peer

    def client(self, **fields: Any) -> Client:
        """A client with an open connection and a session."""
        client = self.peer()
        client.open(**fields)
        client.begin()
        return client

    def put(self, *bodies: str, queue: str | None = None) -> None:
        client = self.client()
        client.sender(queue or self.queue)
        for body in bodies:
            client.transfer(body)
        left = set(range(len(bodies)))
        while left:
            told = client.expect("disposition", but=("flow",), role=RECEIVER, settled=True, state="accepted")
            left -= set(range(told.first, (told.first if told.last is None else told.last) + 1))
        client.close()

    def take(self, queue: str | None = None) -> list[str]:
        """All messages that are available now; they are gone."""
        client = self.client()
        client.receiver(queue or self.queue, snd_settle_mode=1)
        client.flow(0, link_credit=100, delivery_count=0, drain=True)
        bodies = []
        while (frame := client.expect("transfer", "flow", but=("disposition",))).name == "transfer":
            bodies.append(body_of(frame.payload))
            client.received += 1
            if not frame.settled:
                client.dispose(frame.delivery_id)
        client.say("close")
        client.expect("close", but=("flow", "disposition"))
        client.drop()
        return bodies

    def needs(self, offered: object, what: str) -> None:
        """An optional capability: ours must have it, another broker need not."""
        if not offered:
            assert self.foreign, f"{what} is missing"
            pytest.skip(f"this broker has no {what}")

    def ours(self, what: str) -> Broker:
        """What follows looks into the broker, or is this one's choice."""
        if self.broker is None:
            pytest.skip(f"for our own broker only: {what}")
        return self.broker


def memory_wire(queue: str, *, octet_by_octet: bool = False, config: dict[str, Any] | None = None) -> Wire:
    broker = Broker("wire", config, clock=lambda: 1_700_000_000.0)
    return Wire(lambda: MemoryLine(broker, octet_by_octet=octet_by_octet), queue, broker=broker)


def socket_wire(queue: str, target: str) -> Wire:
    host, _, port = target.rpartition(":")
    return Wire(lambda: SocketLine(host, int(port)), queue)
