"""A broker end that does as the test says, facing a client core: frames are recorded and told in short words.

Nothing moves by itself: `Peer.run` steps a procedure of the client and carries the octets to and fro until it is done
or nothing moves any more, in which case its time is over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jmsish.client.connection import ClientConnection
from jmsish.client.consumer import ClientConsumer
from jmsish.client.producer import ClientProducer
from jmsish.client.session import ClientSession
from jmsish.destination import Queue
from jmsish.engine import events
from jmsish.engine.engine import Engine
from jmsish.engine.link import Link
from jmsish.engine.outcomes import (
    ACCEPTED,
    AmqpError,
    Coordinator,
    Declare,
    Declared,
    TransactionalState,
    decode_control,
)
from jmsish.errors import OperationTimeoutError
from jmsish.modes import AcknowledgeMode
from jmsish.options import ConnectionOptions

from .frames import Frame, read


class Peer:
    """The far end of one client connection."""

    def __init__(
        self,
        *,
        offers: tuple[str, ...] = ("ANONYMOUS-RELAY",),
        properties: dict[str, Any] | None = None,
        client_id: str | None = None,
        **options: Any,
    ) -> None:
        self.engine = Engine(server=True, container_id="peer", offered_capabilities=offers, properties=properties)
        near = Engine(server=False, container_id=client_id or "client")
        self.core = ClientConnection(near, ConnectionOptions(**options), lambda: 1_700_000_000.0, "peer")
        self.core.client_id = client_id
        self.log: list[str] = []
        self.frames: list[Frame] = []
        self.messages: list[bytes] = []
        self.links: list[Link] = []
        self.coordinators: list[Link] = []
        self._begun: dict[Any, Any] = {}
        self.declared = 0
        self.answers_drains = True
        self.answers_declares = True
        self.answer: Callable[[bool], Any] | None = lambda fail: ACCEPTED
        """What a discharge is answered with; None is no answer."""
        self.answer_attach: Callable[[Link], Any] = Link.attach
        """What is done about an attach: by default it is granted as it was asked for."""
        self.answer_close: Callable[[Link], AmqpError | None] = lambda link: None
        """The error that answers a detach."""
        self.run(self.core.open())
        self.core.start()

    # -- moving ------------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        while True:
            data = self.core.take_output()
            if data:
                self._record(data)
                self.engine.receive(data)
            self._react()
            back = self.engine.take_output()
            if back:
                self.core.receive(back)
            if not data and not back:
                return

    def begin(self, steps: Any) -> Any:
        """The first step of a procedure, without moving anything; `run` goes on with it."""
        self._begun[steps] = next(steps)
        return steps

    def run(self, steps: Any) -> Any:
        result, error = None, None
        while True:
            try:
                if steps in self._begun:
                    future, _ = self._begun.pop(steps)
                else:
                    future, _ = steps.throw(error) if error is not None else steps.send(result)
            except StopIteration as stop:
                self.pump()
                return stop.value
            except BaseException:
                self.pump()
                raise
            self.pump()
            result, error = None, None
            if not future.done():
                error = OperationTimeoutError("nothing moves any more")
            elif future.exception() is not None:
                error = future.exception()
            else:
                result = future.result()

    def told(self) -> list[str]:
        """What the client said since the last call."""
        self.pump()
        told, self.log = self.log, []
        return told

    # -- what the client does ----------------------------------------------------------------------------------------

    def session(self, mode: AcknowledgeMode = AcknowledgeMode.TRANSACTED) -> ClientSession:
        return self.run(self.core.create_session(mode))  # type: ignore[no-any-return]

    def consumer(self, session: ClientSession, prefetch: int = 10) -> ClientConsumer:
        consumer = ClientConsumer(session, Queue("q"), prefetch=prefetch)
        self.run(session.add_consumer(consumer))
        return consumer

    def producer(self, session: ClientSession) -> ClientProducer:
        producer = ClientProducer(session, Queue("q"))
        self.run(producer.attach())
        return producer

    def receive(self, consumer: ClientConsumer, count: int) -> list[bytes]:
        got = []
        for _ in range(count):
            delivery = self.run(consumer.receive(None, wait=False))
            assert delivery is not None, "nothing in the buffer"
            got.append(delivery.payload)
        self.pump()
        return got

    # -- what this end does ------------------------------------------------------------------------------------------

    def give(self, count: int, first: int = 1) -> None:
        """Send so many messages to the consumer as its credit allows."""
        self.messages += [message(number) for number in range(first, first + count)]
        self.pump()

    def _react(self) -> None:
        for event in self.engine.take_events():
            kind = event[0]
            if kind == events.OPENED:
                self.engine.open()
            elif kind == events.BEGUN:
                event[1].accept_begin()
            elif kind == events.ATTACHED:
                self._attached(event[1])
            elif kind == events.DETACHED and event[1].attached:
                event[1].detach(closed=event[2], error=self.answer_close(event[1]))
            elif kind == events.ENDED:
                event[1].end()
            elif kind == events.DELIVERED:
                self._delivered(event[1], event[2])
            elif kind == events.CLOSED:
                self.engine.close()
        for link in self.links:
            self._serve(link)

    def _attached(self, link: Link) -> None:
        self.answer_attach(link)
        if link.is_sender:
            self.links.append(link)
            return
        if isinstance(link.remote_target, Coordinator):
            self.coordinators.append(link)
        if link.attached:
            link.flow(100)

    def _serve(self, link: Link) -> None:
        while self.messages and link.credit > 0 and link.attached and link.remote_attached:
            link.send(self.messages.pop(0))
        if link.drain and self.answers_drains:
            link.drained()

    def _delivered(self, link: Link, delivery: Any) -> None:
        if link not in self.coordinators:
            state = delivery.remote_state
            if isinstance(state, TransactionalState):
                state = TransactionalState(state.txn_id, ACCEPTED)
            link.session.disposition(delivery, state or ACCEPTED, True)
            return
        control = decode_control(delivery.payload)
        if isinstance(control, Declare):
            if self.answers_declares:
                self.declared += 1
                link.session.disposition(delivery, Declared(b"txn-%d" % self.declared), True)
        elif self.answer is not None:
            link.session.disposition(delivery, self.answer(control.fail), True)

    # -- records -----------------------------------------------------------------------------------------------------

    def _record(self, data: bytes) -> None:
        for frame in read(data):
            self.frames.append(frame)
            self.log.append(self._say(frame))

    def _say(self, frame: Frame) -> str:
        fields = frame.fields
        if frame.name == "transfer" and frame.payload[:3] == b"\x00\x53\x77" and b"\x53\x31" in frame.payload[:8]:
            return "declare"
        if frame.name == "transfer" and frame.payload[:3] == b"\x00\x53\x77" and b"\x53\x32" in frame.payload[:8]:
            return "rollback" if decode_control(frame.payload).fail else "commit"  # type: ignore[union-attr]
        if frame.name == "flow":
            return "drain" if fields.get("drain") else f"credit {fields.get('link_credit')}"
        if frame.name == "disposition":
            return f"{outcome_of(frame)} {span(fields)}"
        return frame.name


def span(fields: dict[str, Any]) -> str:
    first, last = fields["first"], fields.get("last")
    return str(first) if last is None or last == first else f"{first}-{last}"


def outcome_of(frame: Frame) -> str:
    """`accepted`, `released`, `failed`, and `accepted in txn-1`; `unsettled` where it is."""
    name = str(frame.fields.get("state"))
    words = [word for word in ("accepted", "released", "rejected") if word in name]
    if "modified" in name:
        words.append("failed" if "True" in name or "true" in name else "modified")
    said = words[0] if words else "nothing"
    if "transactional-state" in name or "txn" in name:
        said += " in a transaction"
    return said if frame.fields.get("settled") else f"unsettled {said}"


def message(number: int) -> bytes:
    text = f"m{number}".encode()
    return b"\x00\x53\x77\xa1" + bytes([len(text)]) + text
