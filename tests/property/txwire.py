"""Peers whose words reach the broker when, and as far as, the test says; each word knows what it means to the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jmsish.engine import events
from jmsish.engine.decoding import decode
from jmsish.engine.outcomes import TransactionalState
from tests.broker.world import Peer, Receiver, World, body_of, count_of
from tests.property.txmodel import Hold, Line, Model, Txn

Act = Callable[[], None]
SMALL_FRAME = 600
"""What the peers put into one frame: a message with a long annotation takes several."""
DISPOSITION = 0x15


def frames_of(octets: bytes) -> list[bytes]:
    frames = []
    while octets:
        size = 8 if octets[:4] == b"AMQP" else int.from_bytes(octets[:4], "big")
        frames.append(octets[:size])
        octets = octets[size:]
    return frames


def range_of(frame: bytes) -> range:
    """The deliveries a disposition is about; none for other frames."""
    if len(frame) <= 8:
        return range(0)
    described, _ = decode(frame, frame[4] * 4)
    if int(described.descriptor) != DISPOSITION:
        return range(0)
    first, last = (list(described.value) + [None] * 3)[1:3]
    return range(int(first), int(first if last is None else last) + 1)


class Wire(Peer):
    """A peer; what it has to say waits in ``outbox`` while it is paused."""

    def __init__(self, world: TxWorld, name: str) -> None:
        self.paused = False
        self.single = False
        """The broker is served after each frame, not after all of them."""
        self.outbox: list[tuple[bytes, Act | None]] = []
        self.settling: dict[bytes, list[Hold]] = {}
        """What the dispositions in the outbox settle, by their octets."""
        self.model = world.model
        self.answers: list[tuple[list[Any], object]] = []
        """Discharges said: what was answered, and what should be."""
        super().__init__(world, name)
        self.session.context = self
        self.sessions = [self.session, self.engine.begin()]

    def say(self, act: Act | None) -> None:
        """What the engine has written since is one word: it takes effect once its last frame is there."""
        frames = frames_of(self.engine.take_output())
        self.outbox += [(frame, None) for frame in frames[:-1]]
        self.outbox += [(frame, act) for frame in frames[-1:]]

    def say_dispositions(self, holds: list[Hold], settled: bool, act: Callable[[list[Hold]], None]) -> None:
        """What was said of these, in as many frames as the engine has made of it."""
        for frame in frames_of(self.engine.take_output()):
            numbers = range_of(frame)
            named = sorted((hold for hold in holds if hold.delivery.id in numbers), key=lambda hold: hold.delivery.id)
            self.outbox.append((frame, partial(act, named) if named else None))
            if settled:
                self.settling[frame] = named

    def speak(self) -> bool:
        if self.cut_off:
            return False
        self.say(None)
        if self.paused or not self.outbox:
            return False
        self.let_through(1 if self.single else len(self.outbox))
        return True

    def let_through(self, number: int, more: bool = False) -> None:
        """The first frames arrive, and half of the next if wanted."""
        heard, self.outbox = self.outbox[:number], self.outbox[number:]
        octets = b"".join(frame for frame, _ in heard)
        if more and self.outbox:
            octets += self.outbox[0][0][: len(self.outbox[0][0]) // 2]
        self.connection.receive(octets)
        for frame, _ in heard:
            self.model.ahead.update(self.settling.get(frame, ()))
        for _, act in heard:
            if act is not None:
                act()
        self.model.ahead.clear()

    def _note(self, event: tuple[Any, ...]) -> None:
        if event[0] == events.DELIVERED:
            delivery = event[2]
            delivery.context = []
            self._arrived(event[1].context, delivery)
            return
        super()._note(event)
        if event[0] == events.DETACHED and event[1].attached:
            event[1].detach(closed=True)

    def _arrived(self, end: LineEnd, delivery: Any) -> None:
        line, payload = end.line, delivery.payload
        letter = next(each for each in self.model.letters if each.body == body_of(payload))
        assert line.queue == letter.queue
        assert delivery.remote_settled == line.presettled
        named = delivery.remote_state
        if line.txn is None:
            assert named is None
        else:
            assert isinstance(named, TransactionalState) and named.txn_id == end.ids[line.txn]
        self.model.heard.append((count_of(payload), line, letter, delivery))


class LineEnd(Receiver):
    """A receiver and its line in the model."""

    wire: Wire
    line: Line
    ids: dict[Txn, bytes]


class TxWorld(World):
    """A broker, its peers and the model of both, in step."""

    peers: list[Any]

    def __init__(self, config: dict[str, Any], model: Model) -> None:
        super().__init__(config)
        self.model = model
        model.now = self.clock.now

    def join(self, name: str) -> Wire:
        wire = Wire(self, name)
        self.peers.append(wire)
        self.run()
        wire.engine.max_frame_out = SMALL_FRAME
        return wire

    def run(self) -> None:
        moved = True
        while moved:
            moved = False
            for peer in self.peers:
                moved = peer.speak() or moved
            moved = self.serve() or moved

    def serve(self) -> bool:
        """One step of the broker, and all peers hear of it."""
        self.model.bury()
        self.broker.step()
        moved = False
        for peer in self.peers:
            moved = peer.hear() or moved
        self.model.end_round()
        return moved

    def advance(self, seconds: float) -> None:
        self.clock.now += seconds
        self.monotonic += seconds
        self.broker.tick(self.clock.now)
        self.model.pass_time(self.clock.now)
        for peer in self.peers:
            peer.connection.tick(self.monotonic)
        self.model.pass_graces(self.monotonic)
        self.run()
