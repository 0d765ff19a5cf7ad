"""An AMQP client that knows nothing of JMS: it puts any octets on a queue, and takes them off as they are."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import TracebackType

from jmsish.engine import events
from jmsish.engine.delivery import Delivery
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import ACCEPTED
from jmsish.engine.sasl import SaslClient
from jmsish.engine.termini import Source, Target
from tests.relay import undelayed

from .blocking import PATIENCE
from .face import Face


class ForeignClient:
    """One connection over TCP, with one session, for as long as its block lasts."""

    def __init__(self, face: Face) -> None:
        self._socket = undelayed(socket.create_connection((face.listener.host, face.listener.port), timeout=PATIENCE))
        self._engine = Engine(server=False, container_id="foreign", sasl=SaslClient(username=None, password=None))
        self._engine.open()
        self._session = self._engine.begin()
        self._got: list[Delivery] = []
        self._accepted = 0
        self._links = 0

    def __enter__(self) -> ForeignClient:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._engine.close()
        self._socket.sendall(self._engine.take_output())
        self._socket.close()

    def put(self, queue: str, *payloads: bytes) -> None:
        """Sends the octets as messages; the broker has accepted them when this returns."""
        self._links += 1
        link = self._session.sender(
            f"to-{self._links}", source=Source(), target=Target(address=queue, capabilities=("queue",))
        )
        self._until(lambda: link.credit >= len(payloads))
        wanted = self._accepted + len(payloads)
        for payload in payloads:
            link.send(payload)
        self._until(lambda: self._accepted == wanted)

    def take(self, queue: str, count: int = 1) -> list[bytes]:
        """The octets of the next messages, which are then gone."""
        self._links += 1
        source = Source(address=queue, capabilities=("queue",))
        link = self._session.receiver(f"from-{self._links}", source=source, target=Target())
        link.flow(count)
        self._until(lambda: len(self._got) == count)
        got, self._got = self._got, []
        for delivery in got:
            self._session.disposition(delivery, ACCEPTED, True)
        link.detach(closed=True)
        self._until(lambda: not link.remote_attached)
        return [delivery.payload for delivery in got]

    def _until(self, condition: Callable[[], bool]) -> None:
        while True:
            output = self._engine.take_output()
            if output:
                self._socket.sendall(output)
            if condition():
                return
            octets = self._socket.recv(1 << 16)
            assert octets, "the broker hung up"
            self._engine.receive(octets)
            for event in self._engine.take_events():
                if event[0] == events.DELIVERED:
                    self._got.append(event[2])
                elif event[0] == events.DISPOSED:
                    assert event[3] == ACCEPTED, f"the broker does not take it: {event[3]}"
                    self._accepted += len(event[2])
                elif event[0] in (events.FAILED, events.CLOSED):
                    raise AssertionError(f"the broker ended the connection: {event[1]}")
