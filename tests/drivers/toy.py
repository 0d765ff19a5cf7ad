"""A broker for the tests of the drivers: lines instead of AMQP, and every rule of the real one that a driver sees.

A line is a command: ``echo TEXT`` comes back, ``say NAME TEXT`` goes to the connection that called itself NAME by
``name NAME``, ``flood COUNT SIZE`` is answered by COUNT lines as fast as they are taken away, ``at SECONDS TEXT``
comes back after some time of the broker's clock, ``beat SECONDS`` makes the connection itself say ``beat`` by the
real clock, ``ask NAME`` has the question of that name asked, ``bye`` ends the connection, ``fault`` is a fault inside
the broker; anything else is answered by ``wrong`` and the end.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import Any

#: As in the real broker, no more is given to a connection that holds so much output.
FULL = 1 << 18


class ToyConnection:
    def __init__(self, broker: ToyBroker, trusted: bool, identity: str | None, peer: str) -> None:
        self.broker = broker
        self.trusted = trusted
        self.identity = identity
        self.certificate: Mapping[str, Any] | None = None
        self.exposed = False
        self.login = self
        self.crowd = peer.rpartition(":")[0]
        self.peer = peer
        self.name = ""
        self.closed = False
        self.eof = False
        self.received = 0
        self.unsent = 0
        self.is_busy = False
        self.is_open = True
        self.largest_output = 0
        self.flood: list[bytes] = []
        self.next_beat: float | None = None
        self.beat_every = 0.0
        self._pieces: list[bytes] = []
        self._output = bytearray()

    def receive(self, data: bytes) -> None:
        assert not self.closed
        self.received += len(data)
        self._pieces.append(data)
        if b"\n" not in data:
            return  # so that a long line in many pieces is joined once
        *lines, rest = b"".join(self._pieces).split(b"\n")
        self._pieces = [rest]
        for line in lines:
            self._command(line)

    def _command(self, line: bytes) -> None:
        verb, _, rest = line.partition(b" ")
        if self.closed:
            return
        if verb == b"echo":
            self.say(rest)
        elif verb == b"name":
            self.name = rest.decode()
        elif verb == b"say":
            name, _, text = rest.partition(b" ")
            self.broker.letters.append((name.decode(), text))
        elif verb == b"flood":
            count, size = map(int, rest.split())
            self.flood = [b"%08d" % number + b"x" * (size - 9) for number in reversed(range(count))]
            self.broker.dirty.add(self)
        elif verb == b"at":
            seconds, _, text = rest.partition(b" ")
            heapq.heappush(self.broker.later, (self.broker.clock() + float(seconds), self.name, text))
        elif verb == b"beat":
            self.beat_every = float(rest)
            self.next_beat = 0.0
        elif verb == b"ask":
            self.broker.questions.append((self, self.broker.asked[rest.decode()]))
        elif verb == b"bye":
            self.close()
        elif verb == b"fault":
            raise RuntimeError("a fault inside the toy")
        elif verb == b"interrupt":
            raise KeyboardInterrupt
        elif verb == b"stepfault":
            self.broker.faults += 1
        else:
            self.say(b"wrong")
            self.close()

    def answered(self, answer: Any) -> None:
        self.say(b"answer " + (answer if isinstance(answer, bytes) else repr(answer).encode()))

    def say(self, text: bytes) -> None:
        self._output += text + b"\n"
        self.largest_output = max(self.largest_output, len(self._output))
        self.broker.dirty.add(self)

    @property
    def full(self) -> bool:
        return len(self._output) >= FULL

    def close(self) -> None:
        if not self.closed:
            self.say(b"bye")
            self.closed = True

    def receive_eof(self) -> None:
        self.eof = True
        self.closed = True

    def take_output(self) -> bytes:
        data = bytes(self._output)
        self._output.clear()
        if self.flood:
            self.broker.dirty.add(self)
        return data

    def tick(self, now: float) -> float | None:
        if self.next_beat is None or self.closed:
            return None
        if self.next_beat == 0.0:
            self.next_beat = now + self.beat_every
        elif now >= self.next_beat:
            self.say(b"beat")
            self.next_beat = now + self.beat_every
        return self.next_beat


class ToyBroker:
    unfinished = False

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.clock = clock
        self.connections: list[ToyConnection] = []
        self.dirty: set[ToyConnection] = set()
        self.letters: list[tuple[str, bytes]] = []
        self.later: list[tuple[float, str, bytes]] = []
        self.lost = 0
        self.faults = 0
        self.asked: dict[str, Callable[[], Any]] = {}
        self.questions: list[tuple[ToyConnection, Callable[[], Any]]] = []
        self.dials: list[Any] = []
        self.high_water = 1 << 20

    def accept(
        self,
        *,
        trusted: bool,
        identity: str | None = None,
        peer: str = "",
        certificate: Mapping[str, Any] | None = None,
        exposed: bool = False,
        role: str | None = None,
    ) -> ToyConnection:
        connection = ToyConnection(self, trusted, identity, peer)
        connection.certificate, connection.exposed = certificate, exposed
        self.connections.append(connection)
        connection.say(b"hello")
        return connection

    def step(self) -> list[ToyConnection]:
        if self.faults:
            self.faults -= 1
            raise RuntimeError("a fault in the step of the toy")
        names = {connection.name: connection for connection in self.connections if not connection.closed}
        letters, self.letters = self.letters, []
        for name, text in letters:
            if name in names:
                names[name].say(text)
            else:
                self.lost += 1
        for connection in list(self.dirty):
            while connection.flood and not connection.full:
                connection.say(connection.flood.pop())
        ready, self.dirty = [connection for connection in self.dirty if connection._output], set()
        return ready

    def tick(self, now: float) -> float | None:
        while self.later and self.later[0][0] <= now:
            _, name, text = heapq.heappop(self.later)
            self.letters.append((name, text))
        return self.later[0][0] if self.later else None

    def interrupted(self) -> None:
        """It keeps nothing in mind that could be forgotten."""

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
