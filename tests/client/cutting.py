"""A client that reconnects and a broker in one loop, with a wire that breaks at any frame, in either direction."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from jmsish.broker.broker import Broker
from jmsish.client.connection import ClientConnection
from jmsish.client.consumer import ClientConsumer
from jmsish.client.producer import ClientProducer
from jmsish.client.reconnection import Reconnection
from jmsish.client.restoring import Dial
from jmsish.client.session import ClientSession
from jmsish.destination import Destination, Queue
from jmsish.engine.engine import Engine
from jmsish.errors import ConnectionLostError, JMSError, OperationTimeoutError
from jmsish.modes import AcknowledgeMode
from jmsish.options import ConnectionTarget, parse_url

TO_BROKER, TO_CLIENT = "to broker", "to client"


def take_frame(octets: bytearray) -> bytes:
    """Takes the first frame, or protocol header, off the beginning; empty where none is whole."""
    if len(octets) < 8:
        return b""
    size = 8 if octets[:4] == b"AMQP" else int.from_bytes(octets[:4], "big")
    if len(octets) < size:
        return b""
    frame = bytes(octets[:size])
    del octets[:size]
    return frame


def make_engine(_: str) -> Engine:
    """Of the same container each time, as where there is a client id."""
    return Engine(server=False, container_id="client")


class CuttingRig:
    """One connection of a client that reconnects, and one broker; `cut` says before which frame the wire breaks.

    Frames are counted from the first of the first connection; there is one cut, and what is under way then is lost.
    Whoever waits moves the frames, one by one.
    """

    def __init__(self, cut: tuple[str, int] | None = None, *, broker: Broker | None = None, **options: Any) -> None:
        self.time = 1_700_000_000.0
        self.broker = broker or Broker("rig", None, clock=lambda: self.time)
        self.cut_at = cut
        self.cuts = 0
        self.moved = {TO_BROKER: 0, TO_CLIENT: 0}
        self.server: Any = None
        self.events: list[Any] = []
        self.errors: list[Any] = []
        self.down = False
        """Nobody answers when the client dials."""
        self._pending = {TO_BROKER: bytearray(), TO_CLIENT: bytearray()}
        self._steps: Any = None
        self._wait: tuple[Future[Any], float | None] | None = None
        target = parse_url("failover:(vm://rig)", **options)
        self.core = self._make(target)
        self.core.event_listener = self.events.append
        self.core.exception_listener = self.errors.append
        self.core.dial_first(opening=True)
        self.pump()
        self.run(self.core.open())
        self.core.start()

    def _make(self, target: ConnectionTarget) -> ClientConnection:
        place = target.targets[0]
        core = ClientConnection(make_engine("client"), place.options, lambda: self.time, place.peer)
        core.reconnection = Reconnection(target)
        return core

    # -- moving ------------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Move whatever moves, until nothing does; time passes only for who waits to connect."""
        while True:
            while self._move():
                self._background()
            self._background()
            if self._busy():
                continue
            if self._wait is None or self._wait[1] is None or isinstance(self._wait[0], Dial):
                self._tell()
                return
            if self._wait[0].done() or not self.core.offline or self.down:
                self._tell()
                return
            self.core.now = max(self.core.now, self._wait[1])

    def _busy(self) -> bool:
        return bool(self.server is not None and self.core.engine.output_size and not self.core.engine.mute) or (
            self._wait is not None and self._wait[0].done()
        )

    def _tell(self) -> None:
        calls, self.core.calls[:] = list(self.core.calls), []
        for call, arguments in calls:
            call(*arguments)

    def _move(self) -> bool:
        """One frame in each direction; whether there was one."""
        if self.server is None:
            return False
        self._pending[TO_BROKER] += self.core.take_output()
        self.broker.step()
        self._pending[TO_CLIENT] += self.server.take_output()
        moved = False
        for direction, receive in ((TO_BROKER, self._serve), (TO_CLIENT, self.core.receive)):
            frame = take_frame(self._pending[direction])
            if not frame:
                continue
            if self.cut_at == (direction, self.moved[direction]):
                self.cut_at = None
                self.cut()
                return True
            self.moved[direction] += 1
            receive(frame)
            moved = True
        return moved

    def _serve(self, octets: bytes) -> None:
        self.server.receive(octets)
        self.broker.step()

    def cut(self) -> None:
        """The wire breaks: what is under way is lost, and both ends see the end."""
        self.cuts += 1
        server, self.server = self.server, None
        self._pending = {TO_BROKER: bytearray(), TO_CLIENT: bytearray()}
        server.receive_eof()
        self.broker.step()
        self.core.receive_eof()

    def _background(self) -> None:
        """What a driver does beside its application: runs the procedure that reconnects."""
        if self._steps is None:
            if not self.core.offline or self.core.failure is not None:
                return
            self._steps = self.core.reconnect()
            self._step(None, None)
        while self._wait is not None:
            future, deadline = self._wait
            if isinstance(future, Dial) and not future.done():
                self._dial(future)
            if future.done():
                error = future.exception()
                self._step(None if error else future.result(), error)
            elif deadline is not None and self.core.now >= deadline:
                self._step(None, OperationTimeoutError("time passed"))
            else:
                return

    def _step(self, result: Any, error: BaseException | None) -> None:
        try:
            self._wait = self._steps.throw(error) if error is not None else self._steps.send(result)
        except StopIteration:
            self._steps = self._wait = None

    def _dial(self, dial: Dial) -> None:
        if self.server is not None:
            self.server.receive_eof()
        if self.down:
            dial.set_exception(ConnectionLostError("nobody answers"))
            return
        self._pending = {TO_BROKER: bytearray(), TO_CLIENT: bytearray()}
        self.server = self.broker.accept(trusted=True)
        self.core.join(dial.place, make_engine)
        dial.set_result(None)

    # -- the application -----------------------------------------------------------------------------------------------

    def run(self, steps: Any) -> Any:
        """Run a procedure; one that waits for what never comes is told that its time is over."""
        result, error = None, None
        while True:
            try:
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

    def outcome(self, steps: Any) -> Any:
        """What a procedure returns, or the error it raises."""
        try:
            return self.run(steps)
        except JMSError as error:
            return error

    def wait(self, future: Future[Any]) -> Any:
        self.pump()
        assert future.done(), "nothing moves any more"
        return future.exception() or future.result()

    def session(self, mode: AcknowledgeMode = AcknowledgeMode.AUTO) -> ClientSession:
        return self.run(self.core.create_session(mode))  # type: ignore[no-any-return]

    def consumer(self, session: ClientSession, queue: str | Destination = "q", **wishes: Any) -> ClientConsumer:
        destination = Queue(queue) if isinstance(queue, str) else queue
        consumer = ClientConsumer(session, destination, **{"prefetch": 10, **wishes})
        self.run(session.add_consumer(consumer))
        return consumer

    def producer(self, session: ClientSession, queue: str | Destination | None = "q") -> ClientProducer:
        producer = ClientProducer(session, Queue(queue) if isinstance(queue, str) else queue)
        self.run(producer.attach())
        return producer

    def close(self) -> None:
        self.run(self.core.close())

    def drain_broker(self) -> None:
        """Let the broker see the end of the connection."""
        if self.server is not None:
            self.server.receive_eof()
            self.server = None
        self.broker.step()


def every_cut(conversation: Callable[[CuttingRig], object], **options: Any) -> list[tuple[str, int] | None]:
    """All the places at which the wire can break in a conversation: before each frame, each way."""
    rig = CuttingRig(**options)
    conversation(rig)
    return [None, *((way, number) for way, count in rig.moved.items() for number in range(count))]
