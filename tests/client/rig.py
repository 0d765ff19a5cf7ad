"""A client core and a broker core in one loop: no socket, no thread, no clock but the test's."""

from __future__ import annotations

from typing import Any

from jmsish.broker.broker import Broker
from jmsish.client.connection import ClientConnection
from jmsish.client.consumer import ClientConsumer
from jmsish.client.producer import ClientProducer
from jmsish.client.session import ClientSession
from jmsish.destination import Destination, Queue
from jmsish.engine.delivery import Delivery
from jmsish.engine.engine import Engine
from jmsish.engine.sections import delivery_count_of
from jmsish.errors import OperationTimeoutError
from jmsish.modes import AcknowledgeMode
from jmsish.options import ConnectionOptions


class Rig:
    """Any number of client connections to one broker; whoever waits moves the bytes until nothing moves any more."""

    def __init__(self, **config: Any) -> None:
        self.time = 1_700_000_000.0
        self.broker = Broker("rig", config or None, clock=lambda: self.time)
        self.pairs: list[tuple[ClientConnection, Any]] = []

    def connect(self, **options: Any) -> ClientConnection:
        engine = Engine(server=False, container_id=f"client-{len(self.pairs)}")
        core = ClientConnection(engine, ConnectionOptions(**options), lambda: self.time, "rig")
        self.pairs.append((core, self.broker.accept(trusted=True)))
        self.run(core.open())
        core.start()
        return core

    def pump(self) -> None:
        moved = True
        while moved:
            moved = False
            for core, server in self.pairs:
                data = core.take_output()
                if data:
                    server.receive(data)
                    moved = True
            self.broker.step()
            for core, server in self.pairs:
                data = server.take_output()
                if data:
                    core.receive(data)
                    moved = True

    def run(self, steps: Any) -> Any:
        """Run a procedure; one that waits for what never comes is told that its time is over."""
        result, error = None, None
        while True:
            try:
                future, deadline = steps.throw(error) if error is not None else steps.send(result)
            except StopIteration as stop:
                self.pump()
                return stop.value
            self.pump()
            result, error = None, None
            if not future.done():
                error = OperationTimeoutError("nothing moves any more")
            elif future.exception() is not None:
                error = future.exception()
            else:
                result = future.result()

    # -- what tests do all the time ----------------------------------------------------------------------------------

    def session(self, core: ClientConnection, mode: AcknowledgeMode = AcknowledgeMode.TRANSACTED) -> ClientSession:
        return self.run(core.create_session(mode))  # type: ignore[no-any-return]

    def consumer(self, session: ClientSession, queue: str = "q", prefetch: int = 10) -> ClientConsumer:
        consumer = ClientConsumer(session, Queue(queue), prefetch=prefetch)
        self.run(session.add_consumer(consumer))
        return consumer

    def producer(self, session: ClientSession, queue: str | None = "q") -> ClientProducer:
        destination: Destination | None = None if queue is None else Queue(queue)
        producer = ClientProducer(session, destination)
        self.run(producer.attach())
        return producer

    def send(self, *texts: str, queue: str = "q") -> None:
        core = self.connect()
        producer = self.producer(self.session(core, AcknowledgeMode.AUTO), queue)
        for text in texts:
            self.run(producer.send(encode(text), None))
        self.run(core.close())

    def receive(self, consumer: ClientConsumer) -> str | None:
        delivery = self.run(consumer.receive(None, wait=False))
        return None if delivery is None else decode(delivery)


def encode(text: str) -> bytes:
    """A message whose body is an amqp-value string (Part 3, 3.2.8)."""
    octets = text.encode()
    return b"\x00\x53\x77\xa1" + bytes([len(octets)]) + octets


def decode(delivery: Delivery) -> str:
    """The text, with the count of deliveries behind it where it is not the first: `m1`, `m1*2`."""
    payload = delivery.payload
    at = payload.rindex(b"\x00\x53\x77\xa1")
    text = payload[at + 5 :].decode()
    count = delivery_count_of(payload)
    return text if not count else f"{text}*{count + 1}"
